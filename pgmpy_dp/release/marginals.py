"""Release of noisy tables, and what all tables of cells with independent noise have in common."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, combinations, pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.privacy.checks import checked_number, whole_number
from pgmpy_dp.privacy.guarantee import Guarantee, counted
from pgmpy_dp.privacy.noise import UNIT_WEIGHT, gaussian_variance, laplace_variance, table_sensitivity
from pgmpy_dp.privacy.subsampling import amplified_epsilon
from pgmpy_dp.release.archive import Measurements, Numbers, checked_guarantee, entry
from pgmpy_dp.release.contrasts import Coefficients, Floats, Means, coefficients_of, margin
from pgmpy_dp.release.kinds import (
    Release,
    checked_total,
    cliques_containing,
    guarantee_of_joined,
)
from pgmpy_dp.release.listing import check_arrays, read_arrays, state_arrays
from pgmpy_dp.schema import Clique, Schema
from pgmpy_dp.schema.schema import places

Variance = float | Floats  # common to all cells of a table, or one per cell

# Variance of noise of scale 1, by law.
UNIT_VARIANCE = {"laplace": 2.0, "gaussian": 1.0}

_VARIANCE = {"laplace": laplace_variance, "gaussian": gaussian_variance}
# Variance that rounding to integers adds to a cell, in records squared: 1/12, but 1/8 if half of all means are halfway
# between integers.
_ROUNDING = 1.0 / 8.0


class IndependentTables:
    """Tables whose cells have independent noise, with one variance per table."""

    if TYPE_CHECKING:

        @property
        def schema(self) -> Schema: ...
        @property
        def guarantee(self) -> Guarantee: ...
        @property
        def tables(self) -> Mapping[Clique, NDArray[Any]]: ...
        @property
        def variances(self) -> Mapping[Clique, float]: ...
        @property
        def law(self) -> str: ...
        def noise(self, clique: Clique) -> tuple[float, float]: ...

    @property
    def independent(self) -> bool:
        """Whether the noise of all cells of a table is independent."""
        return True

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The measured cliques, in order."""
        return tuple(self.tables)

    def clique_containing(self, clique: Clique) -> Clique:
        """Return the measured clique from which a clique's table is read: the least noisy that contains it."""
        containing = cliques_containing(self._by_pair.get(frozenset(clique[:2])) or self.tables, clique)
        return min(containing, key=lambda measured: (self._summed_variance(measured, clique), len(measured)))

    @cached_property
    def _by_pair(self) -> Mapping[frozenset[str], list[Clique]]:
        """Measured cliques by each variable and each pair of variables that they contain."""
        result: dict[frozenset[str], list[Clique]] = {}
        for clique in self.tables:
            for pair in chain(combinations(clique, 1), combinations(clique, 2)):
                result.setdefault(frozenset(pair), []).append(clique)
        return result

    def marginal(self, clique: Clique, tables: Mapping[Clique, NDArray[Any]] | None = None) -> tuple[Floats, float]:
        """Return the least noisy table of a clique, and the noise variance of its cells."""
        measured = self.clique_containing(clique)
        table = margin(measured, (tables or self.tables)[measured], clique)
        return table.astype(np.float64), self._summed_variance(measured, clique)

    def cell_variance(self, measured: Clique, clique: Clique) -> Variance:
        """Return the noise variance of the cells of a measured table's margin, one by one if they differ."""
        return self._summed_variance(measured, clique)

    def strata(self, clique: Clique) -> tuple[int, Sequence[float]] | None:
        """Return an axis of a clique whose states have known numbers of records, and these numbers, or None."""
        return None

    def tables_of(self, variables: Sequence[str]) -> list[tuple[Clique, Floats, float]]:
        """List the tables that contain no other variables, each with the standard deviation of its noise."""
        wanted = set(variables)
        return [
            (clique, np.asarray(table, dtype=np.float64), math.sqrt(self.variances[clique]))
            for clique, table in self.tables.items()
            if wanted.issuperset(clique)
        ]

    def squares(self, clique: Clique, apart: Floats) -> tuple[float, int]:
        """Sum the squares of a table's distance from its expectation, in units of noise; count the dimensions."""
        variance = self.cell_variance(clique, clique)
        return float((apart**2 / variance).sum()) if np.all(variance) else math.nan, apart.size

    def means(self, tables: Mapping[Clique, NDArray[Any]] | None = None) -> Means:
        """Average each set's coefficients over the tables that contain it; return their noise's deviations too."""
        schema = self.schema
        sums: dict[Clique, NDArray[np.float64]] = {}
        weights: dict[Clique, float] = {}
        for clique, table in (tables or self.tables).items():
            weight = 1.0 / (max(self.variances[clique], 1e-200) * table.size)
            for subset, coefficients in coefficients_of(schema, clique, table).items():
                sums[subset] = sums.get(subset, 0.0) + weight * coefficients
                weights[subset] = weights.get(subset, 0.0) + weight
        values = {subset: np.asarray(total / weights[subset]) for subset, total in sums.items()}
        return values, {subset: (schema.cells(subset) * weight) ** -0.5 for subset, weight in weights.items()}

    def _summed_variance(self, measured: Clique, clique: Clique) -> float:
        cells = math.prod(len(self.schema.states[variable]) for variable in clique)
        return self.variances[measured] * self.tables[measured].size / cells


@dataclass(frozen=True, eq=False, repr=False)
class NoisyMarginals(IndependentTables, Release, kind="tables", properties=("public_total", "cliques")):
    """Release of noisy contingency tables of some cliques.

    Everything computed from it is post-processing and costs no privacy.

    Parameters
    ----------
    schema : Schema
        The public schema by which the tables are counted.
    tables : mapping of clique to ndarray of int64 or float64
        Noisy counts in numbers of records, axes in clique order, states in schema order. May be negative. Copied, and
        read-only afterwards. If the rows of a unit share a weight of 1 (the guarantee's max_rows is None), floats:
        integer multiples of 2**-20 units, to which the noise was added as integers. Tables of the schema's `details`
        become `details`.
    scales : mapping of clique to float
        Noise scale of each table's cells, in numbers of records (or units): b of the discrete Laplace, sigma of the
        discrete Gaussian distribution; 0 for exact counts.
    guarantee : Guarantee
        Guarantee of all tables together.
    public_total : int or None
        The number of units if it is public (``replace_one``) and each counts once; else None, since units of several
        rows have a private number of rows.
    chosen_among : mapping of clique to int
        For each table that was chosen by its distance from a network, the number of candidates. A test of fit uses it:
        the farthest of many tables is far off by chance.
    details : mapping of clique to ndarray, optional
        Noisy finer histograms of numbers, which fill their bins. No fit reads them, so they are not among the `tables`.

    Raises
    ------
    SchemaError
        If a clique does not match the schema.
    ValueError
        If a table has the wrong shape or type, or the scales or the total contradict the guarantee.

    Examples
    --------
    >>> schema = Schema({"smoke": ["yes", "no"]})
    >>> guarantee = Guarantee.of(0.5)
    >>> NoisyMarginals(schema, {("smoke",): np.array([31, 68])}, {("smoke",): 2.0}, guarantee)
    NoisyMarginals: 1 table, 2 cells
      differentially private with epsilon = 0.5, for one record added or removed (discrete Laplace noise)
      ('smoke',): 2 cells, noise scale 2
    """

    schema: Schema
    tables: Mapping[Clique, NDArray[np.int64] | NDArray[np.float64]]
    scales: Mapping[Clique, float]
    guarantee: Guarantee
    public_total: int | None = None
    chosen_among: Mapping[Clique, int] = field(default_factory=dict)
    details: Mapping[Clique, NDArray[np.int64] | NDArray[np.float64]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        guarantee = self._require_promise(*_VARIANCE, "none")
        if not isinstance(self.tables, Mapping) or not isinstance(self.scales, Mapping):
            raise ValueError("NoisyMarginals: tables and scales must map cliques, such as ('smoke', 'lung').")
        given, names = {**self.tables, **self.details}, self.schema.details
        cliques = tuple(sorted(self.schema.require(list(given)), key=lambda clique: clique[0] in names))
        if set(self.scales) != set(cliques):
            raise ValueError("NoisyMarginals: tables and scales must have the same cliques.")
        tables = _checked_tables(self.schema, {clique: given[clique] for clique in cliques}, guarantee.weighted)
        scales = {clique: checked_number(f"scale of {clique}", self.scales[clique]) for clique in cliques}
        exact = guarantee.mechanism == "none"
        for clique, scale in scales.items():
            if not (scale == 0 if exact else 0 < scale <= 2.0**50):
                wanted = "0 for exact counts" if exact else "positive, at most 2**50"
                raise ValueError(f"NoisyMarginals: the noise scale of {clique} must be {wanted}, got {scale!r}.")
        for clique, candidates in self.chosen_among.items():
            if clique not in cliques:
                raise ValueError(f"NoisyMarginals: {clique} is stated to be chosen, but was not measured.")
            whole_number(f"the number of candidates of {clique}", candidates)
        self._settle(
            tables={clique: table for clique, table in tables.items() if clique[0] not in names},
            details={clique: table for clique, table in tables.items() if clique[0] in names},
            scales=scales,
            chosen_among=dict(self.chosen_among),
            public_total=checked_total("NoisyMarginals", self.public_total, guarantee),
            guarantee=guarantee,
        )
        if not exact:
            self._require_covered(_loss(guarantee, scales.values()))

    @cached_property
    def variances(self) -> Mapping[Clique, float]:
        """The variance of the noise in each cell of each table, exact and in records squared.

        A discrete Laplace variable of scale b has variance 2 q / (1 - q)**2 with q = exp(-1/b), slightly less than
        2 b**2.
        """
        if self.guarantee.mechanism == "none":
            return MappingProxyType(dict.fromkeys(self.scales, 0.0))
        variance = _VARIANCE[self.guarantee.mechanism]
        parts = self._parts  # noise is an integer multiple of 1 / parts
        by_scale = {scale: float(variance(scale * parts)) / parts**2 for scale in set(self.scales.values())}
        return MappingProxyType({clique: by_scale[scale] for clique, scale in self.scales.items()})

    @cached_property
    def total(self) -> float:
        """The number of records (of units, if weighted), estimated if it is private; at least 1.

        Under ``replace_one`` it is the public number, unless units have several rows. Otherwise it is estimated from
        the tables: each table's sum is the number of records plus noise of variance v_C times its number of cells, and
        the sums are averaged, weighted by the inverse of those variances (the best linear unbiased estimate; Bernstein
        et al. 2017 assume that the number is known).

        Examples
        --------
        >>> guarantee = Guarantee.of(1.0)
        >>> schema = Schema({"smoke": ["yes", "no"]})
        >>> NoisyMarginals(schema, {("smoke",): np.array([31, 68])}, {("smoke",): 1.0}, guarantee).total
        99.0
        """
        if self.public_total is not None:
            return float(max(self.public_total, 1))
        tables = self.measured.values()
        starts = np.cumsum([0, *(table.size for table in tables)])[:-1]
        sums = np.add.reduceat(np.concatenate([table.ravel() for table in tables], dtype=np.float64), starts)
        return float(max(np.average(sums, weights=1.0 / self._sum_variances()), 1.0))

    @property
    def total_variance(self) -> float:
        """The variance of `total` before its floor of 1; 0 if the number is public or exact."""
        if self.public_total is not None or self.guarantee.mechanism == "none":
            return 0.0
        return float(1.0 / (1.0 / self._sum_variances()).sum())

    def _sum_variances(self) -> NDArray[np.float64]:
        # The variance of tiny noise underflows to 0, and that of exact counts is 0: a common floor keeps the weights
        # finite, so that only the numbers of cells matter.
        return np.array([max(self.variances[c], 1e-200) * table.size for c, table in self.measured.items()])

    @property
    def measured(self) -> Mapping[Clique, NDArray[Any]]:
        """All tables, and then the details."""
        return {**self.tables, **self.details}

    def join(self, other: NoisyMarginals) -> NoisyMarginals:
        """Join two releases with the same kind of noise, also as ``noisy + other``; their epsilons add up.

        Use it for tables of different data sets about the same units, such as the steps and the starts of people's
        days, and for tables measured one after the other. Two tables of the same variables are averaged, weighted by
        precision, and rounded; the mean of Laplace noise is treated as Laplace noise of its variance.

        Raises
        ------
        SchemaError
            If a variable has other states in the other release.
        ValueError
            If it is the same release, or has another kind of noise, another number of records, or a guarantee for other
            neighbours or units.

        Warns
        -----
        UserWarning
            If their noisy numbers of records differ far beyond noise; `union` is for releases of different records.

        Examples
        --------
        >>> one, two = (Schema({variable: ["x", "y"]}) for variable in "ab")
        >>> first = NoisyMarginals(one, {("a",): np.array([31, 68])}, {("a",): 2.0}, Guarantee.of(0.5))
        >>> second = NoisyMarginals(two, {("b",): np.array([52, 49])}, {("b",): 2.0}, Guarantee.of(0.5))
        >>> print((first + second).guarantee)
        differentially private with epsilon = 1.0, for one record added or removed (discrete Laplace noise)
        """
        guarantee = guarantee_of_joined(self, other)
        sampled = min(self.guarantee.sampling_rate, other.guarantee.sampling_rate) < 1
        if guarantee.mechanism not in _VARIANCE or sampled:
            raise ValueError(
                "Only releases with the same kind of noise, on all records, can be joined: both Laplace or Gaussian."
            )
        schema = self.schema.join(other.schema)
        tables, scales = dict(self.measured), dict(self.scales)
        own = {frozenset(clique): clique for clique in tables}
        both: dict[tuple[Any, ...], dict[Clique, NDArray[Any]]] = {}  # tables of one shape are averaged at once
        for clique, table in other.measured.items():
            mine, scale = own.setdefault(frozenset(clique), clique), other.scales[clique]
            if mine in tables:
                its = margin(clique, table, mine)
                both.setdefault((its.shape, scales[mine], scale), {})[mine] = its
            else:
                tables[mine], scales[mine] = table, scale
        for (_, *alike), pairs in both.items():
            stacked = np.stack([tables[clique] for clique in pairs]), np.stack(list(pairs.values()))
            pooled, scale = pooled_counts(stacked, (alike[0], alike[1]), self.law, self._parts)
            tables |= zip(pairs, pooled, strict=True)
            scales |= dict.fromkeys(pairs, scale)
        among = dict(self.chosen_among)
        for clique, candidates in other.chosen_among.items():
            mine = own[frozenset(clique)]
            among[mine] = max(candidates, among.get(mine, 0))
        return NoisyMarginals(schema, tables, scales, guarantee, self.public_total, among)

    def __add__(self, other: object) -> NoisyMarginals:
        return self.join(other) if isinstance(other, NoisyMarginals) else NotImplemented

    @property
    def _parts(self) -> int:
        """Counts are integer multiples of 1 over this number."""
        return UNIT_WEIGHT if self.guarantee.weighted else 1

    def to_coefficients(self) -> Coefficients:
        """Make the tables agree on common variables, by their Fourier coefficients.

        Every table that contains a set of variables measures that set's coefficients with independent noise. These are
        averaged, weighted by the inverse of its variance (the noise variance of a cell times the number of cells). As
        the contrasts are orthogonal, this is the least-squares fit of one, possibly negative, distribution to all
        tables. ``noisy.to_coefficients().tables`` converts back.

        Examples
        --------
        >>> schema = Schema({"a": ["x", "y"], "b": ["x", "y"]})
        >>> tables = {("a", "b"): np.array([[10, 20], [30, 40]]), ("a",): np.array([33, 67])}
        >>> guarantee = Guarantee.of(1.0)
        >>> noisy = NoisyMarginals(schema, tables, dict.fromkeys(tables, 2.0), guarantee)
        >>> agreed = noisy.to_coefficients().tables
        >>> agreed["a",].round(6).tolist(), agreed["a", "b"].sum(axis=1).round(6).tolist()
        ([32.0, 68.0], [32.0, 68.0])
        """
        values = dict(self.means()[0])
        if self.public_total is not None:
            values[()] = np.array(float(self.public_total))
        return Coefficients(self.schema, self.cliques, MappingProxyType(values))

    def noise(self, clique: Clique) -> tuple[float, float]:
        """Return the scale and standard deviation of the noise in a cell of a measured clique's table."""
        return self.scales[clique], self.variances[clique] ** 0.5

    def contents(self) -> dict[str, Any]:
        """Return what the descriptor of the file states about the release."""
        return super().contents() | {
            "public_total": self.public_total,
            "cliques": self._entries(),
        }

    def _entries(self) -> list[dict[str, Any]]:
        """State the shape and scale of each table, and the number of candidates of a chosen one."""
        states = {variable: self.schema.cardinality(variable) for variable in places(self.schema)}
        stated = {}
        for clique, scale in self.scales.items():
            stated[clique] = {"shape": [states[variable] for variable in clique], "scale": scale}
            if clique in self.chosen_among:
                stated[clique]["chosen_among"] = self.chosen_among[clique]
        return state_arrays(self.schema, stated)

    def measurements(self) -> Measurements:
        """Return the arrays of numbers in the file, flat, with the variances of their noise."""
        each, parts = self.variances, self._parts
        return [
            ((table.ravel() * parts).astype(np.int64), np.full(table.size, each[clique]))
            for clique, table in self.measured.items()
        ]

    @classmethod
    def interpret(cls, schema: Schema, contents: Mapping[str, Any], numbers: Numbers) -> Self:
        """Invert `contents`."""
        arrays = read_arrays(schema, entry(contents, "cliques", list))
        cliques = schema.require([clique for clique, _ in arrays])
        shapes = {clique: tuple(map(schema.cardinality, clique)) for clique in cliques}
        check_arrays(arrays, shapes.values(), {"shape", "scale"}, frozenset({"chosen_among"}))
        scales = {clique: checked_number(f"scale of {clique}", each["scale"]) for clique, each in arrays}
        among = {clique: entry(each, "chosen_among", int) for clique, each in arrays if "chosen_among" in each}
        counts = numbers.take(shapes)
        guarantee = checked_guarantee(contents, counts.values())
        tables = {clique: count / UNIT_WEIGHT if guarantee.weighted else count for clique, count in counts.items()}
        return cls(schema, tables, scales, guarantee, contents["public_total"], among)

    def __repr__(self) -> str:
        sizes = [table.size for table in self.measured.values()]
        lines = [
            f"NoisyMarginals: {counted(len(sizes), 'table')}, {counted(sum(sizes), 'cell')}",
            str(self.guarantee),
        ]
        if self.public_total is not None:
            lines.append(f"public number of {self.guarantee.counted}: {self.public_total}")
        for clique, size in list(zip(self.measured, sizes, strict=True))[:5]:
            lines.append(f"{clique}: {counted(size, 'cell')}, noise scale {self.scales[clique]:.6g}")
        if len(sizes) > 5:
            lines.append(f"and {counted(len(sizes) - 5, 'more table')}")
        return "\n  ".join(lines)


def _checked_tables(schema: Schema, given: Mapping[Clique, Any], weighted: bool) -> dict[Clique, NDArray[Any]]:
    """Check tables, and return read-only ones, which are parts of one array."""
    wanted, kinds = ("floats", "f") if weighted else ("integers", "iu")
    flat, starts = [], [0]
    for clique, table in given.items():
        array = np.asarray(table)
        if array.dtype.kind not in kinds:
            raise ValueError(f"NoisyMarginals: the table of {clique} must hold {wanted}, got dtype {array.dtype}.")
        if array.shape != tuple(map(schema.cardinality, clique)):
            raise ValueError(
                f"NoisyMarginals: the table of {clique} needs shape {schema.shape(clique)}, got {array.shape}."
            )
        if array.dtype.kind == "u" and (array > np.iinfo(np.int64).max).any():
            raise ValueError(f"NoisyMarginals: a value of the table of {clique} does not fit 64-bit signed integers.")
        flat.append(array.ravel())
        starts.append(starts[-1] + array.size)
    values = np.concatenate(flat, dtype=np.float64 if weighted else np.int64, casting="unsafe")
    if weighted:
        with np.errstate(invalid="ignore", over="ignore"):
            fits = (np.abs(values) < 2.0**43) & (values * UNIT_WEIGHT == np.rint(values * UNIT_WEIGHT))
        if not fits.all():
            clique = list(given)[np.searchsorted(starts, np.argmin(fits), side="right") - 1]
            raise ValueError(
                f"NoisyMarginals: the table of {clique} must hold integer multiples of 2**-20, less than 2**43 in size."
            )
    values.setflags(write=False)
    tables = zip(given.items(), pairwise(starts), strict=True)
    return {clique: values[start:end].reshape(np.shape(table)) for (clique, table), (start, end) in tables}


def _loss(guarantee: Guarantee, scales: Iterable[float]) -> float:
    """Compute the epsilon of Laplace noise, or the rho of Gaussian noise, of these scales for one unit."""
    rows = guarantee.max_rows or 1  # without max_rows, a unit has a weight of 1; so has a record of the largest weight
    if guarantee.mechanism == "gaussian":
        squared = table_sensitivity(guarantee.neighbours, "squared_l2", rows)
        return sum(squared / scale / scale / 2.0 for scale in scales)
    sensitivity = table_sensitivity(guarantee.neighbours, "l1", rows)
    loss = sum(sensitivity / scale for scale in scales)
    sampled = guarantee.sampling_rate < 1 and math.isfinite(loss)
    return amplified_epsilon(loss, guarantee.sampling_rate) if sampled else loss


def pooled_counts(
    tables: tuple[NDArray[Any], NDArray[Any]], scales: tuple[float, float], law: str, parts: int = 1
) -> tuple[NDArray[Any], float]:
    """Average two noisy tables of counts, weighted by precision, and round the mean."""
    one, other = (scale**-2.0 for scale in scales)
    mean = (one * tables[0] + other * tables[1]) / (one + other)
    counts = np.rint(np.round(mean * parts, 9))  # ties to even: floating point would break them by their last digit
    table = counts / parts if parts > 1 else counts.astype(np.int64)
    return table, float((1.0 / (one + other) + _ROUNDING / parts**2 / UNIT_VARIANCE[law]) ** 0.5)
