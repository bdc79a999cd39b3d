"""Private records behind a ledger; only measurements leave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from pgmpy_dp.data.mechanisms.contrasts import FourierCoefficients, Residuals
from pgmpy_dp.data.mechanisms.integer_sums import Statistic, Vector, checked_sum
from pgmpy_dp.data.mechanisms.mechanism import PrivateRecords, PublicRecords
from pgmpy_dp.data.mechanisms.partition_selection import PartitionSelection
from pgmpy_dp.data.mechanisms.posterior import LikelyRows, PosteriorRows
from pgmpy_dp.data.mechanisms.quantiles import QuantileBins
from pgmpy_dp.data.mechanisms.regression import PosteriorRegressions
from pgmpy_dp.data.mechanisms.sums import NoisySums, SampledSums
from pgmpy_dp.data.mechanisms.tables import CountedTables, delta_within
from pgmpy_dp.data.wall import Wall
from pgmpy_dp.privacy.budget import PrivacyBudget
from pgmpy_dp.privacy.noise import OPENDP_NOISE, NoiseSource
from pgmpy_dp.records import open_records
from pgmpy_dp.records.frames import encode_numbers
from pgmpy_dp.records.units import checked_unit, warn_of_unit
from pgmpy_dp.records.weights import checked_weights
from pgmpy_dp.release import (
    DiscoveredStates,
    NoisyCoefficients,
    NoisyMarginals,
    NoisyResiduals,
    PosteriorDraws,
    RegressionDraws,
)
from pgmpy_dp.schema import Bins, Clique, Schema


class PrivateDataset(Wall):
    """Private records with their public schema and their privacy budget.

    All answers come from methods that check their arguments, charge the budget, and only then draw. A refused call,
    with one of the errors named or an ImportError where OpenDP is missing, charges and draws nothing. A failure after
    the charge, such as a lack of memory, leaves the charge in place, since the drawn noise may have been seen. A data
    set can be neither copied nor pickled.

    Parameters
    ----------
    records : frame, array, path or mapping
        One row per record. Columns outside the schema are ignored. Numbers with bounds are read only from frames in
        memory.

        - A pandas, Polars or PyArrow frame, or the path of a CSV file: checked and encoded once, here. Only the codes
          are kept, one or two bytes per value, for fewer than 2**31 records.
        - A lazy Polars frame, a DuckDB relation, a Dask or Spark frame, or the path of a Parquet file or of a folder of
          them: checked here in one scan, and read again in one scan per measurement, in batches that never hold all
          records in memory. It must not change in the meantime: a different number of rows is refused. Partitions of a
          Dask frame must have the types that the frame states. Spark's workers need a Python with this package and
          PyArrow, named by the environment variable PYSPARK_PYTHON.
        - A two-dimensional array of integers: indices of states, with one column per variable in schema order.
        - A mapping of cliques to arrays of integers: ready-made counts, with axes in clique order and states in schema
          order. They must agree with each other, and any clique within one of theirs can be measured.

        A CSV file has no types: its texts are read as the types of the declared states, and an empty field is a missing
        value unless the empty text is a state. :class:`~pgmpy_dp.CsvFile` declares a delimiter other than the comma or
        an encoding other than UTF-8. Each Parquet file of a folder is read by its own types.
    schema : Schema
        Public variables with their states or bounds; every variable needs a column.
    budget : PrivacyBudget
        The ledger for these records. Several data sets of the same persons should share one, with the same
        `neighbours` and `unit`, since losses for different neighbours do not add up.
    neighbours : {"add_remove", "replace_one"}
        How neighbouring data sets differ: in one record added or removed (the number of records is private), or in one
        record changed (the number of records is public).
    unit : str, optional
        Column of the records, in the schema or not, that identifies whose a row is, such as "person_id". Neighbours
        then differ in all rows of one such unit, and under "replace_one" the number of units is public; their numbers
        of rows are private. By default each record is a unit of its own.
    max_rows : int, optional
        The most rows counted per unit. From units with more, this number is sampled uniformly (once where records are
        encoded, anew for each measurement where they are lazy), and the noise is proportional to it. Without it all
        rows of a unit count and share a weight of 1: tables then count units, in fractions.
    weights : str, optional
        Column of the records, in the schema or not, that holds survey weights. Tables then add up weights, in records
        of the largest weight: `release.total` times `largest_weight` estimates the sum of all weights.
    largest_weight : float, optional
        The public largest weight, to which the noise is scaled. Larger weights count as this one. Weights that are
        missing, negative or no numbers count as 0; none is refused. A weight is rounded to a multiple of 2**-20 of the
        largest.
    noise : NoiseSource
        Keep the default for privacy. Releases with a :class:`~pgmpy_dp.privacy.SimulatedNoise` state that they are not
        private.

    Raises
    ------
    SchemaError
        If the records do not match the schema. The message names the variable.
    TypeError, ValueError
        If another argument is of the wrong kind.
    ImportError
        If the library that reads Parquet files is not installed.

    Examples
    --------
    >>> import pandas
    >>> records = pandas.DataFrame({"smoke": ["yes", "no", "no"]})
    >>> data = PrivateDataset(records, Schema({"smoke": ["yes", "no"]}), PrivacyBudget(1.0))
    >>> noisy = data.measure([("smoke",)], epsilon=0.25)
    >>> noisy.scales[("smoke",)], data.budget.remaining.epsilon
    (4.0, 0.75)
    """

    _stays = (
        "A PrivateDataset can be neither copied nor pickled: records and ledger stay where they are. "
        "Save the release that measure returns instead."
    )

    def __init__(
        self,
        records: Any,
        schema: Schema,
        budget: PrivacyBudget,
        neighbours: str = "add_remove",
        noise: NoiseSource = OPENDP_NOISE,
        *,
        unit: str | None = None,
        max_rows: int | None = None,
        weights: str | None = None,
        largest_weight: float | None = None,
    ) -> None:
        if not isinstance(schema, Schema):
            raise TypeError(
                f"schema must be a Schema, got {type(schema).__name__}: write Schema({{variable: states}})."
            )
        super().__init__(budget, neighbours, noise)
        self._schema = schema
        self._unit = checked_unit(unit, max_rows, noise)
        warn_of_unit(schema, unit)
        self._numbers = encode_numbers(records, schema)
        self._weights = checked_weights(weights, largest_weight)
        read = (*schema.variables, *schema.details)
        self._records = open_records(records, schema, read, self._unit, self._weights)

    @property
    def schema(self) -> Schema:
        """The public schema."""
        return self._schema

    @property
    def unit(self) -> str:
        """The column that identifies units, or "record" where each record is one."""
        return "record" if self._unit is None else self._unit.column

    @property
    def max_rows(self) -> int | None:
        """The most rows counted per unit; 1 where records are units, None where all rows share a weight of 1."""
        return 1 if self._unit is None else self._unit.max_rows

    @property
    def single_records(self) -> bool:
        """Whether records are units of their own and count alike."""
        return self._public.single_records

    @property
    def largest_weight(self) -> float | None:
        """The largest weight of a record; None where all records count alike."""
        return None if self._weights is None else self._weights.largest

    def measure(
        self,
        cliques: Iterable[Iterable[str]],
        epsilon: float | Fraction,
        *,
        delta: float = 0.0,
        mechanism: str = "auto",
        weights: Iterable[float] | None = None,
        sampling_rate: float = 1.0,
    ) -> NoisyMarginals:
        """Count the records in every cell of the cliques, with noise, for a charge of epsilon (and delta).

        Parameters
        ----------
        cliques : iterable of iterables of str
            Variables of each table, in the order of its axes.
        epsilon : float
            Privacy loss of all tables together. It is charged exactly, as its printed decimal.
        delta : float
            0 for Laplace noise, in (0, 1) for Gaussian noise.
        mechanism : {"auto", "laplace", "gaussian", "gaussian_block"}
            Discrete Laplace noise (pure epsilon, which the tables share), or discrete Gaussian noise (zCDP, whose rho
            they share). "auto" is Gaussian exactly where delta > 0: "gaussian_block" where units have one row, else
            "gaussian". The latter charges rho, which a budget composes with other zCDP measurements and pure ones.
            "gaussian_block" charges (epsilon, delta) at the exact price of all its tables together: this needs 5 % less
            noise at (1, 1e-9) and 7 % less at (1, 1e-6), and is best if one measurement takes the whole budget. A
            budget takes both kinds of charges, blocks first.
        weights : iterable of float, optional
            One positive number per clique; the tables share in proportion to these. Equal by default.
        sampling_rate : float
            Count a Poisson sample that contains each record with this probability; all tables of the call use the same
            sample, whose size is not released. Epsilon is still the cost for all records. Since it is not revealed who
            was sampled, noise is drawn at the larger log(1 + (exp(epsilon) - 1) / rate). This never lowers the relative
            noise of a table; it serves methods that are defined with it. Only for the Laplace mechanism under
            "add_remove".

        Returns
        -------
        NoisyMarginals

        Raises
        ------
        BudgetExceededError
            If the charge does not fit.
        SchemaError
            If a clique does not match the schema or is too large.
        ValueError
            If another argument is out of range.
        """
        return self.release(CountedTables(cliques, epsilon, delta, mechanism, weights, sampling_rate))

    def measure_coefficients(self, cliques: Iterable[Iterable[str]], epsilon: float | Fraction) -> NoisyCoefficients:
        """Measure Fourier coefficients of the cliques' marginals, with noise, for a charge of epsilon.

        Unlike those of `measure`, the marginals obtained agree on common variables. The coefficients of every subset of
        a clique are measured once (Barak et al. 2007; Zhang et al. 2016, Algorithm 2).

        Parameters
        ----------
        cliques : iterable of iterables of str
        epsilon : float

        Returns
        -------
        NoisyCoefficients
            Under "replace_one", the coefficient of the empty set is the public number of records, without noise.

        Raises
        ------
        BudgetExceededError, SchemaError, ValueError
            As in `measure`; and if there are too many coefficients.

        Examples
        --------
        >>> import pandas
        >>> records = pandas.DataFrame({"a": ["x", "y", "y"], "b": ["x", "x", "y"], "c": ["y", "y", "x"]})
        >>> schema = Schema(dict.fromkeys("abc", ["x", "y"]))
        >>> data = PrivateDataset(records, schema, PrivacyBudget(1.0))
        >>> noisy = data.measure_coefficients([("a", "b"), ("b", "c")], epsilon=1.0)
        >>> tables = noisy.to_coefficients().non_negative().tables
        >>> bool(abs(tables["a", "b"].sum(axis=0) - tables["b", "c"].sum(axis=1)).max() < 1e-9)
        True
        """
        return self.release(FourierCoefficients(cliques, epsilon))

    def measure_residuals(self, scales: Mapping[Clique, float], *, delta: float) -> NoisyResiduals:
        """Measure residuals of tables with Gaussian noise, charged as one block at its exact price.

        The residuals of a set of variables are the part of its table that the tables of its subsets do not determine.
        With the scales of :func:`~pgmpy_dp.plan_accuracy`, no other Gaussian noise is as accurate at the same price.

        Parameters
        ----------
        scales : mapping of tuple of str to float
            Standard deviation of the noise in each set's residuals, in records. The subsets of each set must be there
            as well, including the empty set (the number of records) unless that number is public.
        delta : float
            In (0, 1).

        Returns
        -------
        NoisyResiduals
            Its guarantee states the epsilon that is charged, with delta.

        Raises
        ------
        BudgetExceededError, SchemaError, ValueError
            As in `measure`; and if a subset's scale is missing, or units have several records.

        Examples
        --------
        >>> import pandas
        >>> records = pandas.DataFrame({"a": ["x", "y", "y"] * 500, "b": ["x", "x", "y"] * 500})
        >>> schema = Schema(dict.fromkeys("ab", ["x", "y"]))
        >>> data = PrivateDataset(records, schema, PrivacyBudget(1.0, 1e-6))
        >>> noisy = data.measure_residuals({(): 40, ("a",): 20, ("b",): 20, ("a", "b"): 10}, delta=1e-6)
        >>> round(noisy.guarantee.epsilon, 3), round(noisy.noise(("a", "b"))[1], 1)
        (0.292, 15.0)
        """
        return self.release(Residuals(scales, delta))

    def sample_posterior(
        self,
        families: Iterable[Iterable[str]],
        prior: Mapping[Clique, Any],
        epsilon: float | Fraction,
        *,
        draws: int = 1,
    ) -> PosteriorDraws:
        """Draw CPDs from the truncated posterior of a Bayesian network, for a charge of epsilon per draw.

        Used by :class:`~pgmpy_dp.papers.PosteriorSampler`. `families` lists each node with its parents; `prior` holds
        positive Dirichlet parameters, with axes in family order. Raises the errors of `measure`.
        """
        return self.release(PosteriorRows(families, prior, epsilon, draws))

    def sample_map(
        self,
        families: Iterable[Iterable[str]],
        prior: Mapping[Clique, Any],
        epsilon: float,
        *,
        floor: float = 0.01,
    ) -> PosteriorDraws:
        """Draw CPDs near the most likely ones by the exponential mechanism, for a charge of epsilon.

        Used by :class:`~pgmpy_dp.papers.ExponentialMAP`. The arguments are as in `sample_posterior`.
        """
        return self.release(LikelyRows(families, prior, epsilon, floor=floor))

    def sample_regressions(
        self,
        families: Iterable[Iterable[str]],
        std: Mapping[str, float],
        coefficient_bound: Mapping[str, float],
        epsilon: float | Fraction,
        *,
        prior_precision: float = 1.0,
        draws: int = 1,
    ) -> RegressionDraws:
        """Draw linear regressions from their truncated posterior, for a charge of at most epsilon per draw.

        Used by :class:`~pgmpy_dp.papers.LinearPosteriorSampler`. `families` lists each node with its parents, all with
        bounds in the schema; `std` and `coefficient_bound` have a number per node. Raises the errors of `measure`.
        """
        return self.release(PosteriorRegressions(families, std, coefficient_bound, epsilon, prior_precision, draws))

    def quantile_bins(self, variable: str, parts: int, epsilon: float) -> Bins:
        """Choose bins with about equal numbers of values from the variable's finer bins, for a charge of epsilon.

        Declare the variable with fine public bins, choose coarser ones here, and declare those in the schema of another
        data set on the same budget.

        Parameters
        ----------
        variable : str
            Binned in the schema; missing and other values are ignored.
        parts : int
            Number of bins wanted, from 2 to the number of fine ones. Where quantiles coincide, there are fewer.
        epsilon : float
            Pure privacy loss of all edges together.

        Returns
        -------
        Bins
            Their edges are some of the fine edges, including the first and the last.

        Raises
        ------
        BudgetExceededError, SchemaError, ValueError
            As in `measure`; and if the variable is not declared with bins.

        Notes
        -----
        Each inner edge is drawn by OpenDP's permute-and-flip, an improved exponential mechanism, for an equal share of
        epsilon; scores and sensitivities are in :mod:`pgmpy_dp.data.mechanisms.quantiles`.

        Examples
        --------
        >>> import pandas
        >>> people = pandas.DataFrame({"age": [20, 30, 40, 50, 60, 70, 80, 90] * 100})
        >>> budget = PrivacyBudget(100.0)
        >>> data = PrivateDataset(people, Schema({"age": Bins(range(0, 121, 10))}), budget)
        >>> data.quantile_bins("age", 2, epsilon=99.0).labels
        ('0_to_60', '60_to_120')
        """
        return self.release(QuantileBins(variable, parts, epsilon))

    def discover_states(self, variable: str, epsilon: float | Fraction, *, delta: float) -> DiscoveredStates:
        """Find the values that many records have, as states of a variable, for a charge of epsilon and delta.

        Declare the variable without states, ``Schema({"place": []}, other={"place": "elsewhere"})``, discover some
        here, and measure a data set on the same budget with the schema of the answer. Values that are not discovered
        remain other values.

        Parameters
        ----------
        variable : str
            Declared without states. Texts of up to 200 characters and integers of 64 bits can be discovered; anything
            else remains an other value.
        epsilon : float
            Privacy loss of the noise on each value's number of rows.
        delta : float
            In (0, 1): the probability of releasing a value that only one record or unit has.

        Returns
        -------
        DiscoveredStates
            States are in ascending order, integers before texts.

        Raises
        ------
        BudgetExceededError, SchemaError, ValueError
            As in `measure`; and if the variable has public states or rules, or more than four million different values,
            or units have no `max_rows`.

        Notes
        -----
        A value is found if its number of rows plus discrete Laplace noise reaches a threshold. At delta 1e-6 this is 15
        records for epsilon 1, and 133 for epsilon 0.1. Values below the threshold do not appear in any release, log or
        error. The refusal of more than four million different values depends on the records and is not paid for by the
        budget: only the owner may see it. The sensitivity is derived in
        :mod:`pgmpy_dp.data.mechanisms.partition_selection`.

        Examples
        --------
        >>> import pandas
        >>> records = pandas.DataFrame({"place": ["Ulm"] * 300 + ["Bonn"] * 200 + ["Nowhere"]})
        >>> schema = Schema({"place": []}, other={"place": "elsewhere"})
        >>> budget = PrivacyBudget(1.0, 1e-6)
        >>> found = PrivateDataset(records, schema, budget).discover_states("place", 0.5, delta=1e-7)
        >>> data = PrivateDataset(records, found.schema, budget)
        >>> data.schema.states["place"], budget.remaining.epsilon
        (('Bonn', 'Ulm', 'elsewhere'), 0.5)
        """
        return self.release(PartitionSelection(variable, epsilon, delta))

    def set_aside(self, epsilon: float | Fraction, delta: float = 0.0) -> PrivateDataset:
        """Return the same records behind a ledger of their own, for a method of several steps.

        The whole part is charged with the first step, or refused; see
        :meth:`~pgmpy_dp.privacy.PrivacyBudget.set_aside`.
        """
        if delta:
            delta_within(self._public, delta)
        return self._with(_budget=self._budget.set_aside(epsilon, delta))

    def plan(
        self,
        steps: int,
        *,
        delta: float,
        epsilon: float | None = None,
        noise_multiplier: float | None = None,
        sampling_rate: float | None = None,
        batch_size: int | None = None,
        sampling: str | None = None,
        variables: Iterable[str] | None = None,
        width: int | tuple[int, int, int] | None = None,
    ) -> NoisySums:
        """Charge a plan of Gaussian sums over random samples, and return it to a method that iterates.

        The plan is priced before it starts (see :func:`~pgmpy_dp.privacy.price`) and charged as a whole, as one
        (epsilon, delta) block.

        Parameters
        ----------
        steps : int
            The largest number of sums.
        delta : float
            In (0, 1).
        epsilon : float, optional
            What to charge. Leave it out to charge what the noise multiplier costs.
        noise_multiplier : float, optional
            Standard deviation of the noise divided by the sensitivity of a sum. Leave it out for the least that epsilon
            allows; if both are given and the noise costs more than epsilon, the plan is refused.
        sampling_rate : float, optional
            Probability that a record is in the sample of a step, in (0, 1].
        batch_size : int, optional
            Size of a sample, instead of the rate, where the number of records is public.
        sampling : {"poisson", "without_replacement"}, optional
            Follows from the neighbour relation: the first for "add_remove", the second for "replace_one".
        variables : iterable of str, optional
            Columns of the records passed to a statistic, in order; all variables of the schema by default.
        width : int or tuple of int, optional
            Length of the longest sum, or the shape of moments (`pgmpy_dp.data.mechanisms.integer_sums.Moments`): sums
            too long for delta are then refused before the charge.

        Returns
        -------
        NoisySums

        Raises
        ------
        BudgetExceededError, SchemaError, ValueError
            As in `measure`; the first names the noise multiplier that would fit.

        Examples
        --------
        >>> import pandas
        >>> records = pandas.DataFrame({"smoke": ["yes", "no", "no"] * 1000})
        >>> budget = PrivacyBudget(1.0, 1e-6)
        >>> data = PrivateDataset(records, Schema({"smoke": ["yes", "no"]}), budget)
        >>> sums = data.plan(10, epsilon=1.0, delta=1e-6, sampling_rate=0.1)
        >>> total = sums.noisy_sum(lambda codes: codes == 1, clip_norm=1.0)
        >>> bool(120 < total[0] < 280), sums.steps_left, budget.remaining.epsilon
        (True, 9, 0.0)
        """
        (chosen,) = self._schema.require([self._schema.variables if variables is None else variables])
        return self.begin(
            SampledSums(steps, delta, epsilon, noise_multiplier, sampling_rate, batch_size, sampling, width, chosen)
        )

    def noisy_sum(
        self,
        statistic: Statistic,
        clip_norm: float,
        noise_multiplier: float,
        sampling: str | None = None,
        *,
        delta: float,
        sampling_rate: float | None = None,
        batch_size: int | None = None,
        non_negative: bool = False,
    ) -> Vector:
        """Sum one clipped vector per record over a random sample, with Gaussian noise: a plan of one step.

        See :meth:`plan` and :meth:`NoisySums.noisy_sum` for the parameters, charges and errors.
        """
        checked_sum(statistic, np.zeros((1, len(self._schema.variables)), dtype=np.uint8), clip_norm)
        sums = self.plan(
            1,
            delta=delta,
            noise_multiplier=noise_multiplier,
            sampling_rate=sampling_rate,
            batch_size=batch_size,
            sampling=sampling,
        )
        return sums.noisy_sum(statistic, clip_norm, non_negative=non_negative)

    @property
    def _public(self) -> PublicRecords:
        # Numbers of rows per unit, and weights, are private: the tables' total is public where each unit counts once.
        once = self._weights is None and (self._unit is None or (self._unit.max_rows or 1) == 1)
        public = self._neighbours == "replace_one" and once
        size = self._records.size if self._schema.variables else int(next(iter(self._numbers.values())).size)
        total, delta, private = size if public else None, self._budget.delta, self._noise.private
        return PublicRecords(self._neighbours, self._unit, total, delta, private, self._schema, weights=self._weights)

    @property
    def _read_from(self) -> PrivateRecords:
        return PrivateRecords(self._records, self._numbers)

    def __repr__(self) -> str:
        names = [*self._schema.variables, *self._schema.bounds]
        unit = "" if self._unit is None else f"unit={self._unit.column!r}, max_rows={self._unit.max_rows!r}, "
        unit += "" if self._weights is None else f"largest_weight={self._weights.largest!r}, "
        return (
            f"PrivateDataset({len(names)} variable{'s' if len(names) > 1 else ''}, "
            f"neighbours={self._neighbours!r}, {unit}budget={self._budget!r})"
        )
