"""Common interface of fitted models: networks, mixtures and households."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from pgmpy_dp import _names
from pgmpy_dp.errors import warn
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.models.fitted import (
    BoundedAnswer,
    Fitted,
    Uncertain,
    check_interval,
    check_target,
    state_index,
)
from pgmpy_dp.models.questions import Question, Rows, listed_names, numbers_of_states, record_codes
from pgmpy_dp.models.simulated import GivenNumbers, Numbers, WithinBins, labelled, numbered
from pgmpy_dp.observed.contradictions import unlike
from pgmpy_dp.observed.united_marginals import UnitedMarginals
from pgmpy_dp.privacy.checks import shown, whole_number

if TYPE_CHECKING:
    from pgmpy.factors.discrete import DiscreteFactor

    from pgmpy_dp.explorer import ExplorerPage
    from pgmpy_dp.fitting.checks.misfit import FitCheck


class Model(ABC):
    """Base class of fitted models. All methods are post-processing and cost no privacy.

    A subclass returns its fit as `_fitted`.
    """

    @property
    @abstractmethod
    def _fitted(self) -> Fitted:
        """Return the fit of the model's present contents."""

    def query(
        self,
        variables: Sequence[str],
        evidence: Mapping[str, Any] | None = None,
        interval: float | None = None,
        target: str = "population",
        **eliminated: Any,
    ) -> DiscreteFactor | pd.DataFrame:
        """Find the distribution of some variables given the states of others.

        Parameters
        ----------
        variables : sequence of str
        evidence : mapping of variable to state, optional
            A number means the bin that contains it, as in ``{"age": 40}``. None, NaN, or a text among the
            `missing_values` of the records' schema means the state for missing values. Networks take bins and these
            texts from their release.
        interval : float in (0, 1), optional
            The probability that the bounds contain the truth, such as 0.9; by default no bounds are computed.
        target : {"population", "records"}
            Whether bounds are for the distribution that the records were sampled from, or for the answer of the same
            records without noise. Population bounds are wider and cover both, since they include the sampling error,
            except where a holder of records borrows strength from others (`PartiallyPooledMarginals`).
        **eliminated
            Refused: options of pgmpy's inference, such as `virtual_evidence`, belong to `VariableElimination`.

        Returns
        -------
        DiscreteFactor, or with `interval` a DataFrame
            Normalised probabilities. The frame has a row for each state (or joint state) and the columns `value`,
            `lower` and `upper`; a value always lies between its bounds. Bounds less than half a record away from 0 or 1
            are set to 0 or 1. ``attrs["misfit"]`` and ``attrs["note"]`` contain caveats.

        Raises
        ------
        SchemaError
            If a variable or state is unknown, or no bin contains a number.
        TypeError
            If an option is unknown.
        ValueError
            If the evidence has probability zero, the interval is not between 0 and 1, or an interval is given and the
            model has no release.
        TreeTooLargeError, AnswerTooLargeError
            If the tables that the answer depends on do not fit in memory.

        Warns
        -----
        UserWarning
            With an interval, if the release does not show whether the evidence occurs at all. Once, if the release
            contradicts the model; see `check_fit`.

        Notes
        -----
        The value is the same with and without bounds: that of the fitted parameters, or, if the test of fit fails
        (`check_fit`), moved to the tables that were measured of the question's variables. Records are assumed
        independent: with several rows per person, population bounds are too narrow. See `draws_` for how bounds are
        computed.
        """
        if eliminated:
            raise TypeError(
                f"query has no {', '.join(eliminated)}: dp.VariableElimination(model).query has pgmpy's options."
            )
        _check_bounds(interval, target)
        fitted, question = self._question(variables, evidence)
        schema, asked = fitted.schema, question.asked
        if interval is not None:
            answer = _bounded(fitted, question, target)
            lower, upper = answer.bounds(interval)
            upper = np.where(schema.possible(asked, question.given).ravel(), upper, 0.0)
            bounds = lower.clip(0.0), upper.clip(None, 1.0)
            frame = BoundedAnswer.of(answer.values, *bounds, answer.records, state_index(schema, asked))
            return _noted(fitted, frame, fitted.caveats(question))
        from pgmpy.factors.discrete import DiscreteFactor  # records do without pgmpy, which is slow to import

        states = {variable: list(schema.states[variable]) for variable in asked}
        return DiscreteFactor(asked, list(schema.shape(asked)), _marginal(fitted, question), states)

    def marginal(self, variables: Sequence[str]) -> Vector:
        """Compute the joint probabilities of some variables, with one axis for each in the given order."""
        return _marginal(*self._question(variables, None))

    def map_query(
        self, variables: Sequence[str] | None = None, evidence: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Find the most probable joint state of some variables, by default of all without evidence.

        Other variables are summed out first. Ties go to the first state, in the order of `variables`.
        """
        fitted, question = self._question(variables, evidence)
        fitted.warn_of_misfit()
        with question.possible():
            states = fitted.distribution_of(question.names).given(question.places).most_probable(question.asked)
        return question.states(states, fitted.schema)

    def map_probability(
        self,
        variables: Sequence[str] | None = None,
        evidence: Mapping[str, Any] | None = None,
        target: str = "population",
    ) -> tuple[dict[str, Any], float]:
        """Find the most probable joint state of some variables, and the probability that it is.

        Parameters
        ----------
        variables, evidence
            See `map_query`.
        target : {"population", "records"}
            See `query`.

        Returns
        -------
        state : dict
        probability : float
            The probability that the state is the most probable one, given the release.

        Notes
        -----
        The state is the most probable one in the answer of `query`, which follows the release where the test of fit
        fails; it may differ from the state of `map_query`, which assumes that the model is correct. With more than a
        thousand joint states, it is the state of `map_query`, and the probability is the share of `draws_` that agree.
        """
        check_target(target)
        fitted, question = self._question(variables, evidence)
        fitted.warn_of_misfit(bounds=True)
        with question.possible():
            states, probability = fitted.most_probable_states(question, target)
        return question.states(states, fitted.schema), probability

    def expectation(
        self,
        values: Mapping[str, Mapping[Any, float]] | Sequence[str] | None = None,
        evidence: Mapping[str, Any] | None = None,
        interval: float | None = 0.9,
        target: str = "population",
    ) -> pd.DataFrame:
        """Compute means of numbers and dates, with bounds.

        Parameters
        ----------
        values : mapping of variable to mapping of state to float, or sequence of str, optional
            A number for every state, as in ``{"age": {"young": 25, "old": 70}}``, or the names of binned variables; by
            default all binned variables without evidence. Within bins, numbers follow a density fitted to the counts of
            all bins, which depends on the evidence. Missing numbers are left out.
        evidence, interval, target
            See `query`; without an `interval` there are no bounds, and no release is needed. Bounds include the
            uncertainty of the means within bins.

        Returns
        -------
        DataFrame
            One row per variable, with columns `value`, `lower` and `upper`; timestamps for dates.
        """
        _check_bounds(interval, target)
        rows, caveats, fitted = dict[str, dict[str, Any]](), list[str](), self._fitted
        if isinstance(values, Mapping):
            asked_for: Mapping[str, Vector | None] = numbers_of_states(fitted.schema, values)
        else:
            asked_for = dict.fromkeys(self._binned(evidence or {}) if values is None else listed_names(values))
        for variable, weights in asked_for.items():
            fitted, question = self._question([variable], evidence)
            chances = _marginal(fitted, question)
            known, drawn, shape = 1.0, (0.0, 0.0), None
            written: Callable[[float], Any] = float
            if weights is None:
                shape, positions = fitted.shape_within(variable, chances, question.given)
                written = fitted.bins[variable].value
                known, middle = max(float(chances[positions].sum()), 1e-12), shape.mean
                if interval is not None:
                    low, high = shape.mean_ends(interval)
                    drawn = max(middle - low, 0.0), max(high - middle, 0.0)
                # Relative to their mean, records without a number do not count.
                weights = np.zeros(chances.size)
                weights[positions] = shape.means - middle
            else:
                middle = float(chances @ weights)
                weights = weights - middle
            if interval is None:
                rows[variable] = {"value": written(middle)}
                continue
            answer = _bounded(fitted, question, target, weights)
            caveats += fitted.caveats(question)
            (value,), bounds = answer.values.tolist(), answer.bounds(interval)
            lower, upper = (float(np.clip(end[0], weights.min(), weights.max())) for end in bounds)
            value, lower, upper = (middle + number / known for number in (value, lower, upper))
            below, above = max(value - lower, 0.0), max(upper - value, 0.0)
            missed, unseen = 0.0, shape.unseen if shape else (0.0, 0.0)
            if shape and question.given:
                deviation = shape.missed(answer.records, fitted.unknown_effects(question))
                missed = float(ndtri((1 + interval) / 2)) * deviation
            lower = value - unseen[0] - math.hypot(below, drawn[0], missed)
            upper = value + unseen[1] + math.hypot(above, drawn[1], missed)
            rows[variable] = {"value": written(value), "lower": written(lower), "upper": written(upper)}
        frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("variable")
        return frame if interval is None else _noted(fitted, frame, caveats)

    def quantiles(
        self,
        levels: Sequence[float] = (0.1, 0.5, 0.9),
        variables: Sequence[str] | None = None,
        evidence: Mapping[str, Any] | None = None,
    ) -> pd.DataFrame:
        """Compute quantiles of binned numbers; missing numbers are left out.

        Parameters
        ----------
        levels : sequence of float in (0, 1)
        variables : sequence of str, optional
            By default all binned variables without evidence.
        evidence : mapping of variable to state, optional
            See `query`.

        Returns
        -------
        DataFrame
            One row per variable, one column per level.
        """
        if isinstance(levels, str) or not isinstance(levels, Iterable):
            raise TypeError(
                f"levels is {shown(levels)}; it must be a list such as [0.1, 0.5, 0.9]. Name variables by variables=."
            )
        for level in levels:
            check_interval(level, "level")
        rows = {}
        for variable in self._binned(evidence or {}) if variables is None else listed_names(variables):
            fitted, question = self._question([variable], evidence)
            shape, _ = fitted.shape_within(variable, _marginal(fitted, question), question.given)
            numbers = map(fitted.bins[variable].value, shape.quantiles(levels).tolist())
            rows[variable] = dict(zip(levels, numbers, strict=True))
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("variable")

    def unidentified_means(self) -> dict[str, str]:
        """Give the reason for each binned variable whose mean the release hardly identifies.

        Either a tail in a wide bin depends mostly on its prior, or no finer histogram shows where numbers are within
        bins: bounds then allow for all of a bin, since numbers may be heaped at the edges.
        """
        return {v: why for v, shape in self._fitted.shapes(self._binned(())).items() if (why := shape.unidentified)}

    def untold_means(self) -> dict[str, str]:
        """Return `unidentified_means()`; a deprecated name."""
        warn("untold_means is called unidentified_means now, and goes with version 2.0.", DeprecationWarning)
        return self.unidentified_means()

    def _binned(self, given: Collection[str]) -> list[str]:
        """List the binned variables without evidence."""
        self._fitted.read_as("drawn")
        binned = self._fitted.bins
        return [variable for variable in self._predicted() if variable in binned and variable not in given]

    def predict(
        self,
        data: pd.DataFrame,
        algo: Any = None,
        stochastic: bool = False,
        n_jobs: int = -1,
        seed: int | None = None,
        **options: Any,
    ) -> pd.DataFrame:
        """Predict missing variables and cells in each row by their most probable joint state.

        Parameters
        ----------
        data : DataFrame
            Public records, or one's own: columns are some of the variables, and cells are read like the evidence of
            `query`. Missing cells (None, NaN) are predicted too.
        algo, n_jobs, **options
            For compatibility with pgmpy; they have no effect, since predictions are exact and fast.
        stochastic : bool
            Draw missing values from their joint distribution given the row.
        seed : int, optional
            The same seed draws the same states.

        Returns
        -------
        DataFrame
            The rows of `data`, sorted by its index: first its columns, unchanged, then one for each other variable.
            Latent variables are summed out.

        Raises
        ------
        SchemaError
            If a column or state is unknown.
        ValueError
            If nothing is missing, or the evidence of a row has probability zero.
        """
        if options and algo is None:
            raise TypeError(f"predict takes {min(options)!r} only with an algorithm of pgmpy that uses it.")
        rows = self._rows(data)
        if stochastic:
            return rows.completed(rows.drawn(self._fitted.distribution, seeded(seed)))
        return rows.completed(rows.most_probable(self._fitted.distribution))

    def predict_probability(self, data: pd.DataFrame) -> pd.DataFrame:
        """Compute the probability of each state of the missing variables, for each row of a frame.

        Parameters
        ----------
        data : DataFrame
            See `predict`. A variable with any missing cell counts as missing; in rows with a value, that state has
            probability 1.

        Returns
        -------
        DataFrame
            The rows of `data`, with a column ``variable_state`` for each state of each missing variable.
        """
        return self._rows(data).probabilities(self._fitted.distribution)

    def _rows(self, data: pd.DataFrame) -> Rows:
        fitted = self._fitted
        rows = Rows.of(data, fitted.schema, fitted.declared, self._predicted())
        if len(rows.variables) == len(data.columns) and (rows.codes >= 0).all():
            raise ValueError("The records have all variables and no missing cell: there is nothing to predict.")
        fitted.warn_of_misfit()
        return rows

    def _predicted(self) -> list[str]:
        """List the variables that can be predicted."""
        return self._shown()

    def log_likelihood(self, records: Any) -> float:
        """Compute the mean log-likelihood of records that were not used in the fit, in nats per record.

        The records must be public, or the result kept secret: it is computed exactly, without noise.

        Parameters
        ----------
        records : pandas, Polars or Arrow frame
            A column for each variable, read as by `predict`; a missing cell means the state declared for it.

        Raises
        ------
        SchemaError
            If a column is missing, or a cell is not a state.
        ValueError
            If there are no records.
        """
        fitted, shown = self._fitted, self._shown()
        codes = record_codes(fitted.schema, records, shown, fitted.declared)
        if not codes[shown[0]].size:
            raise ValueError("There are no records to average over.")
        return float(fitted.distribution_of(shown).log_probability(codes).mean())

    def simulate(
        self,
        n_samples: int | None = None,
        *,
        evidence: Mapping[str, Any] | None = None,
        seed: int | None = None,
        numbers: Numbers = "states",
        predicting: str | None = None,
        partial_samples: pd.DataFrame | None = None,
    ) -> pd.DataFrame:
        """Draw synthetic records.

        Parameters
        ----------
        n_samples : int, optional
            By default the number of records that the release reports.
        evidence : mapping of variable to state, optional
            Records are drawn from the distribution given these states, named as in `query`.
        seed : int, optional
            The same seed gives the same records. Privacy does not depend on it, since the distribution is already
            released.
        numbers : {"states", "drawn", "midpoint"}
            Whether binned variables are returned as the labels of their bins, as in pgmpy, as numbers drawn within
            them, or as their midpoints. Drawn numbers follow a density fitted to the counts of all bins, depend on the
            other variables (`pgmpy_dp.models.numbers`), and meet the comparisons that rules state; where bins admit no
            such numbers, some lie beyond their bin. States that are numbers or Booleans become columns of these.
        predicting : str, optional
            A variable to be predicted from others. A mixture then preserves tables of it with two other variables too;
            networks draw independent records, which preserve all tables up to chance.
        partial_samples : DataFrame, optional
            Public records of some variables, one for each record to draw, which has their values; the others are drawn
            given these. Missing cells are drawn too.

        Returns
        -------
        pandas.DataFrame
            Columns in the order of the schema.

        Raises
        ------
        ValueError
            If `n_samples` is not given and the model has no release to take it from, or is not that of
            `partial_samples`; if numbers are requested and the model has no release with the edges of bins; or if the
            evidence has probability zero.
        SchemaError
            If a variable or state is unknown, or midpoints are requested and a bin is open.
        """
        return self._records(n_samples, evidence, seed, numbers, predicting, partial_samples, self._shown())

    def _completed(
        self,
        data: pd.DataFrame,
        n_samples: int | None,
        evidence: Mapping[str, Any] | None,
        generator: np.random.Generator,
    ) -> dict[str, NDArray[np.intp]]:
        """Draw what some records lack, as positions of states."""
        if evidence:
            raise ValueError("Evidence is the same for all records: make it columns of partial_samples.")
        fitted = self._fitted
        rows = Rows.of(data, fitted.schema, fitted.declared, self._predicted())
        fitted.warn_of_misfit()
        if n_samples is not None and n_samples != len(data):
            raise ValueError(f"partial_samples has {len(data)} records for {n_samples}: leave n_samples out.")
        return dict(zip(rows.variables, rows.drawn(fitted.distribution, generator).T, strict=True))

    def _records(
        self,
        n_samples: int | None,
        evidence: Mapping[str, Any] | None,
        seed: int | None,
        numbers: Numbers,
        predicting: str | None,
        partial: pd.DataFrame | None,
        shown: Sequence[str],
    ) -> pd.DataFrame:
        """Draw records, or what some records lack; numbers that are given are unchanged."""
        fitted, generator = self._fitted, seeded(seed)
        schema, numbers = fitted.schema, fitted.read_as(numbers)
        if partial is None:
            codes, others = self._sampled(n_samples, evidence, generator, predicting)
        else:
            codes, others = self._completed(partial, n_samples, evidence, generator), None
        shown = [variable for variable in shown if variable in codes]
        shapes = fitted.shapes([v for v in fitted.bins if v in shown]) if numbers == "drawn" else {}
        given = GivenNumbers.of(partial, fitted.bins, numbers)
        within = WithinBins(shapes, self._within_bins(seed) or generator, schema.states, others, given=given.values)
        frame = numbered(labelled(codes, schema, shown), fitted.declared, numbers, within)
        return frame if partial is None else given.kept_in(frame.set_index(partial.index))

    def _sampled(
        self,
        n_samples: int | None,
        evidence: Mapping[str, Any] | None,
        generator: np.random.Generator,
        predicting: str | None = None,
    ) -> tuple[Mapping[str, NDArray[Any]], Any]:
        """Draw records given evidence, as positions of states, and what numbers in bins are drawn by."""
        fitted, count = self._fitted, self._count(n_samples)
        question = Question.of(fitted.schema, None, evidence, fitted.declared)
        if predicting is not None:
            fitted.schema.require([(predicting,)])
        fitted.warn_of_misfit()
        with question.possible():
            return fitted.distribution.given(question.places).sample(count, generator, predicting)

    def check_fit(self) -> FitCheck:
        """Test whether the release is compatible with the model.

        The noise of the release is known, and so is the distribution of the misfit under a correct model; see
        `pgmpy_dp.fitting.checks.misfit`. The result is cached until the model or its release changes.

        Returns
        -------
        FitCheck
            `p_value`, `z2`, the frames `tables` and `pairs` of discrepancies, and `fails`, which is true if the p-value
            is below 0.01: for at most one release in a hundred if the model is correct. If the model describes the
            records of unions of releases together, `unlike` names the variables in which these differ.

        Raises
        ------
        ValueError
            If the model has no release.
        TreeTooLargeError
            If the tables that the test needs do not fit in memory.

        Notes
        -----
        Records are assumed independent; if units have several rows, the test errs in favour of the model.
        """
        fitted = self._fitted
        releases, variables = fitted.required_releases(), fitted.schema.variables
        pooled = [one for one in releases if isinstance(one, UnitedMarginals) and one.variable not in variables]
        apart = dict.fromkeys(names for one in pooled for names in unlike(one))
        return replace(fitted.tested(), unlike=tuple(apart)) if pooled else fitted.tested()

    @property
    def draws_(self) -> Any:
        """Return the draws from which bounds are computed, drawn on first use unless `sample_draws` was called."""
        raise NotImplementedError

    def sample_draws(self, draws: int = 0, seed: int = 0) -> Any:
        """Draw and keep new `draws_`.

        Parameters
        ----------
        draws : int
            The number of draws; bounds have a Monte Carlo error that decreases with it.
        seed : int
            The same seed gives the same draws; privacy does not depend on them.
        """
        raise NotImplementedError

    def explore(self, path: str | os.PathLike[str] | None = None, *, title: str | None = None) -> ExplorerPage | None:
        """Make an HTML page that answers queries about the model in a browser; see `pgmpy_dp.explore`."""
        return _names.public("explore")(self, path, title=title)

    @abstractmethod
    def save(self, filename: str | os.PathLike[str]) -> None:
        """Write the model; `pgmpy_dp.load` reads it."""

    @classmethod
    @abstractmethod
    def load(cls, filename: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote."""

    def _shown(self) -> list[str]:
        """List the variables of records, in the order of their columns."""
        return list(self._fitted.schema.variables)

    def _within_bins(self, seed: int | None) -> np.random.Generator | None:
        """Return the generator of numbers within bins, or None to use the generator of the records."""
        return None

    def _count(self, n_samples: int | None) -> int:
        return max(round(self._fitted.total), 1) if n_samples is None else whole_number("n_samples", n_samples, 0)

    def _question(self, variables: Sequence[str] | None, evidence: Mapping[str, Any] | None) -> tuple[Fitted, Question]:
        """Check a question, and find the part of the model that answers it."""
        whole = self._fitted
        question = Question.of(whole.schema, variables, evidence, whole.declared)
        return whole.part(question.names), question


def seeded(seed: int | None) -> np.random.Generator:
    """Return the generator of a seed."""
    return np.random.default_rng(None if seed is None else whole_number("seed", seed, 0))


def _marginal(fitted: Fitted, question: Question) -> Vector:
    with question.possible():
        return fitted.marginal(question)


def _bounded(fitted: Fitted, question: Question, target: str, numbers: Vector | None = None) -> Uncertain:
    """Compute an answer with its uncertainty; warn if the noise dominates it."""
    fitted.warn_of_misfit(bounds=True)
    with question.possible():
        answer = fitted.bounded(question, target, numbers)
    if question.given and answer.minimum < 1:
        warn(
            f"The release does not tell whether any record has the evidence {question.given}: the noise decides the "
            "answer."
        )
    return answer


def _noted(fitted: Fitted, frame: pd.DataFrame, caveats: Iterable[str]) -> pd.DataFrame:
    """Add notes to answers if the test of fit fails or their bounds assume what the release does not show."""
    if fitted.check is not None and fitted.check.fails:
        frame.attrs["misfit"] = (
            f"The release contradicts the network ({fitted.check.probability}): answers follow what was measured of "
            "their variables, unlike its parameters"
        )
    if note := " ".join(dict.fromkeys(caveats)):
        frame.attrs["note"] = note
    return frame


def _check_bounds(interval: Any, target: Any) -> None:
    """Check the arguments of an answer with bounds, before anything is drawn."""
    if interval is not None:
        check_interval(interval)
    check_target(target)
