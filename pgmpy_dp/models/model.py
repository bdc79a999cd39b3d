"""The one face of fitted models: networks, mixtures and households answer the same calls in the same sense."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from pgmpy_dp.errors import Message
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.models.answering import Answering, Places, Uncertain, named_evidence
from pgmpy_dp.models.bounds import (
    ATTACH_RELEASE,
    NAME_RELEASE,
    BoundedAnswer,
    check_interval,
    rounded_to_records,
    state_index,
)
from pgmpy_dp.models.numbers import Numbers, labelled, numbered, require_numbers
from pgmpy_dp.models.prediction import Rows
from pgmpy_dp.models.questions import checked_evidence, checked_question, numbers_of_states, reading_schema
from pgmpy_dp.privacy.checks import whole_number
from pgmpy_dp.records.frames import encode
from pgmpy_dp.schema import Schema

if TYPE_CHECKING:
    from pgmpy.factors.discrete import DiscreteFactor

    from pgmpy_dp.fitting.checks.misfit import FitCheck

_NO_RELEASE = Message(
    "The network has no release, or was changed since it was fitted", f"fit it, or {ATTACH_RELEASE}", NAME_RELEASE
)


_UNTOLD = Message(
    "These variables were not measured together, nor enough pairs that the network does not join: the bounds hold if "
    "its structure is right, and otherwise the release cannot tell",
    "plan_measurements(..., check=0.15) measures such pairs",
    "pgmpy-dp release --check 0.15 measures such pairs",
)


class Model(ABC):
    """What every fitted model answers. All of it is post-processing, and costs no privacy.

    A model says in `_fitted` which variables and states it has, and in `_answering` what answers questions about them.
    """

    @abstractmethod
    def _fitted(self) -> Schema:
        """Return the variables and states, in the order that answers have; refuse a model that is not fitted."""

    @abstractmethod
    def _answering(self, names: Collection[str] | None = None) -> Answering:
        """Return what answers a question that names these variables, or one about all of them."""

    def _declared(self) -> tuple[Schema, ...]:
        """List the schemas that the records were read by, if they are known."""
        return (self._fitted(),)

    def _releases(self) -> tuple[Any, ...]:
        """List the releases that bounds and the test of fit come from."""
        held = getattr(self, "release_", None)
        if held is None:
            raise ValueError(_NO_RELEASE)
        return held if isinstance(held, tuple) else (held,)

    @abstractmethod
    def _total(self) -> float:
        """Return the number of records as the release tells it."""

    def _warn_of_misfit(self, bounds: bool = False) -> None:  # noqa: B027
        """Warn if the release is known to contradict the model; for bounds it is found out."""

    def _tells(self, asked: Sequence[str], given: Mapping[str, Any]) -> bool:
        """Say whether the release tells how far an answer is off if the model's structure is wrong."""
        return True

    def query(
        self,
        variables: Sequence[str],
        evidence: Mapping[str, Any] | None = None,
        interval: float | None = None,
        target: str = "population",
    ) -> DiscreteFactor | pd.DataFrame:
        """Find the distribution of some variables given the states of others.

        Parameters
        ----------
        variables : sequence of str
        evidence : mapping of variable to state, optional
            A number stands for the bin that holds it, as in ``{"age": 40}``, and a text among the `missing_values` of
            the records' schema for the state of missing values. Networks know bins and texts from their release.
        interval : float in (0, 1), optional
            The truth lies between the bounds with this probability, such as 0.9; without it there are no bounds.
        target : {"population", "records"}
            Bounds are for the distribution behind the records, or for the answer that the same records would give
            without noise. The first are wider, and hold both: they count the chance in which records were sampled.

        Returns
        -------
        DiscreteFactor, or with `interval` a DataFrame
            The answer is normalised. The frame has a row for each state (or joint state) and the columns `value`,
            `lower` and `upper`; a value is always between its bounds. Bounds less than half a record away from 0 or 1
            are 0 or 1. ``attrs["misfit"]`` and ``attrs["note"]`` say what else is known of their truth.

        Raises
        ------
        SchemaError
            If a variable or state is unknown, or no bin holds a number.
        ValueError
            If the evidence has probability zero, if the interval is not between 0 and 1, or with an interval if the
            model has no release.
        TreeTooLargeError, AnswerTooLargeError
            If tables of what the answer depends on do not fit in memory.

        Warns
        -----
        UserWarning
            With an interval, if the release does not tell whether the evidence occurs at all. Once, if the release
            contradicts the model; see `check_fit`.

        Notes
        -----
        Records count as independent: with several rows a person, the population's bounds are too narrow. What bounds
        rest on is said at `draws_`.
        """
        schema, asked, given = self._question(variables, evidence)
        if interval is not None:
            check_interval(interval)
            found = self._uncertain(schema, asked, given, target)
            return self._noted(_bounded_answer(schema, asked, given, found, interval), self._tells(asked, given))
        from pgmpy.factors.discrete import DiscreteFactor  # takes time and memory that records do without

        states = {variable: list(schema.states[variable]) for variable in asked}
        return DiscreteFactor(asked, list(schema.shape(asked)), self._marginal(schema, asked, given), states)

    def marginal(self, variables: Sequence[str]) -> Vector:
        """Compute the joint probabilities of some variables, an axis for each in the order asked for."""
        schema, asked, _ = self._question(variables, None)
        return self._marginal(schema, asked, {})

    def map_query(
        self, variables: Sequence[str] | None = None, evidence: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Find the most probable joint state of some variables, by default of all that are not given.

        Other variables are summed out first. Of states that are equally probable it is the first, in the order in
        which variables are asked for.

        Raises
        ------
        SchemaError, ValueError, TreeTooLargeError, AnswerTooLargeError
            As `query`.
        """
        schema, asked, given = self._question(variables, evidence)
        with named_evidence(given):
            (found,) = self._answering([*asked, *given]).most_probable(asked, [places(schema, given)])
        return {variable: schema.states[variable][place] for variable, place in zip(asked, found, strict=True)}

    def map_probability(
        self,
        variables: Sequence[str] | None = None,
        evidence: Mapping[str, Any] | None = None,
        target: str = "population",
    ) -> tuple[dict[str, Any], float]:
        """Find the most probable joint state of some variables, and how sure the release makes it.

        Parameters
        ----------
        variables, evidence
            They are those of `map_query`.
        target : {"population", "records"}
            It is that of `query`.

        Returns
        -------
        state : dict
        probability : float
            That it is the most probable one, as far as the release tells.

        Notes
        -----
        The state is the most probable one in the answer of `query` with an interval, which allows for what the release
        says beside the model: it may be another than that of `map_query`, which takes the model at its word. Of more
        than a thousand joint states of a network it is that of `map_query`, and the probability the share of `draws_`
        that agree.
        """
        schema, asked, given = self._question(variables, evidence)
        self._warn_of_misfit(bounds=True)
        with named_evidence(given):
            found, sure = self._answering([*asked, *given]).surest(asked, places(schema, given), target)
        return {v: schema.states[v][place] for v, place in zip(asked, found, strict=True)}, sure

    def expectation(
        self,
        values: Mapping[str, Mapping[Any, float]],
        evidence: Mapping[str, Any] | None = None,
        interval: float | None = 0.9,
        target: str = "population",
    ) -> pd.DataFrame:
        """Find the expected values of numbers attached to states, with bounds.

        Parameters
        ----------
        values : mapping of variable to mapping of state to float
            Every state has a number, as in ``{"age": {"young": 25, "old": 70}}``.
        evidence, interval, target
            They are those of `query`; with None for `interval` there are no bounds, and no release is needed.

        Returns
        -------
        DataFrame
            It has a row for each variable, and columns `value`, `lower` and `upper`.
        """
        rows, told = dict[str, dict[str, float]](), True
        if interval is not None:
            check_interval(interval)
        for variable, weights in numbers_of_states(self._fitted(), values).items():
            schema, asked, given = self._question([variable], evidence)
            if interval is None:
                rows[variable] = {"value": float(self._marginal(schema, asked, given) @ weights)}
                continue
            found = self._uncertain(schema, asked, given, target, weights)
            told &= self._tells(asked, given)
            (value,), ends = found.values.tolist(), found.bounds(interval)
            lower, upper = (float(np.clip(end[0], weights.min(), weights.max())) for end in ends)
            rows[variable] = {"value": value, "lower": min(lower, value), "upper": max(upper, value)}
        frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("variable")
        return frame if interval is None else self._noted(frame, told)

    def predict(
        self,
        data: pd.DataFrame,
        algo: Any = None,
        stochastic: bool = False,
        n_jobs: int = -1,
        seed: int | None = None,
        **options: Any,
    ) -> pd.DataFrame:
        """Predict what a frame lacks, by the most probable joint state of it in each row.

        Parameters
        ----------
        data : DataFrame
            Public records, or one's own: columns are some of the variables, and cells are evidence as that of `query`.
            Missing cells (None, NaN) are predicted too.
        algo, n_jobs, **options
            pgmpy's choice of an algorithm, which has no effect: answers are exact and quick.
        stochastic : bool
            Draw what is lacking from its joint distribution given the row.
        seed : int, optional
            The same seed draws the same states.

        Returns
        -------
        DataFrame
            It has the rows and columns of `data`, sorted by the index, and then a column for each other variable.
            Latent variables are summed out.

        Raises
        ------
        SchemaError
            If a column or state is unknown.
        ValueError
            If nothing is lacking, or the evidence of a row has probability zero.
        """
        if options and algo is None:
            raise TypeError(f"predict takes no {min(options)!r} without an algorithm of pgmpy that does.")
        rows = self._rows(data)
        if stochastic:
            return rows.completed(rows.drawn(self._answering(), np.random.default_rng(seed)))
        return rows.completed(rows.most_probable(self._answering()))

    def predict_probability(self, data: pd.DataFrame) -> pd.DataFrame:
        """Find the probability of each state of the variables that a frame lacks, for each of its rows.

        Parameters
        ----------
        data : DataFrame
            It is that of `predict`. A variable with missing cells is lacking; where a row has it, its state has
            probability 1.

        Returns
        -------
        DataFrame
            It has the rows of `data`, and a column ``variable_state`` for each state of each lacking variable.

        Raises
        ------
        SchemaError, ValueError
            As `predict`.
        """
        return self._rows(data).probabilities(self._answering())

    def _rows(self, data: pd.DataFrame) -> Rows:
        rows = Rows.of(data, self._fitted(), self._declared(), self._predicted())
        self._warn_of_misfit()
        return rows

    def _predicted(self) -> list[str]:
        """List the variables that predictions are about."""
        return self._shown()

    def log_likelihood(self, records: Any) -> float:
        """Compute the mean log-likelihood of records that were not used in the fit, in nats a record.

        The records must be public, or the number kept secret: it is computed from them exactly.

        Parameters
        ----------
        records : pandas, Polars or Arrow frame
            A column for each variable; numbers are read as `query` reads evidence.

        Raises
        ------
        SchemaError
            If a column is missing, or a cell is not a state.
        ValueError
            If there are no records.
        """
        schema, declared = self._fitted(), self._declared()
        shown = self._shown()
        codes = dict[str, Any]()
        for variable in shown:
            own = reading_schema(schema, declared, variable)
            order = np.array([schema.states[variable].index(state) for state in own.states[variable]])
            codes[variable] = order[encode(records, own, [variable])[variable]]
        if not codes[shown[0]].size:
            raise ValueError("There are no records, and so no mean.")
        return float(self._answering(shown).log_probability(codes).mean())

    def simulate(
        self,
        n_samples: int | None = None,
        *,
        evidence: Mapping[str, Any] | None = None,
        seed: int | None = None,
        numbers: Numbers = "states",
        predicting: str | None = None,
    ) -> pd.DataFrame:
        """Draw synthetic records.

        Parameters
        ----------
        n_samples : int, optional
            By default as many as the release says there are.
        evidence : mapping of variable to state, optional
            Records are drawn from the distribution given these states, named as in `query`.
        seed : int, optional
            The same seed gives the same records. Privacy does not depend on it: the distribution is released already.
        numbers : {"states", "uniform", "midpoint"}
            Binned variables come back as the labels of their bins, as numbers drawn from within them, or as their
            middles. Between whole edges numbers are whole; a bin of width 1 gives its lower edge.
        predicting : str, optional
            A variable that others are to predict. Where records are drawn evenly, tables of three variables of which
            it is one are kept close too; independent draws keep every table as close as chance leaves it.

        Returns
        -------
        pandas.DataFrame
            Columns in the order of the schema.

        Raises
        ------
        ValueError
            If the number of records is not given, and the model has no release that tells it; if numbers are asked for,
            and the model has no release, which says the edges of bins; or if the evidence has probability zero.
        SchemaError
            If a variable or state is unknown, or numbers are asked for and a bin is open.
        """
        return self._records(n_samples, evidence, seed, numbers, predicting, self._shown())

    def _records(
        self,
        n_samples: int | None,
        evidence: Mapping[str, Any] | None,
        seed: int | None,
        numbers: Numbers,
        predicting: str | None,
        shown: Sequence[str],
    ) -> pd.DataFrame:
        schema, declared = self._fitted(), self._read_as(numbers)
        given, count = checked_evidence(schema, evidence, declared), self._count(n_samples)
        if predicting is not None:
            schema.require([(predicting,)])
        self._warn_of_misfit()
        generator = np.random.default_rng(seed)
        with named_evidence(given):
            codes = self._answering().codes(count, places(schema, given), generator, predicting)
        return numbered(labelled(codes, schema, shown), declared, numbers, self._within_bins(seed) or generator)

    def check_fit(self) -> FitCheck:
        """Hold the release against the model: could records of this model have given it?

        The release says how noisy it is, so that the misfit of a right model has a known law; see
        `pgmpy_dp.fitting.checks.misfit`. The result is kept until the model or its release changes.

        Returns
        -------
        FitCheck
            `p_value`, `z2`, the frames `tables` and `pairs` of what is off and by how much, and `fails`, which is true
            of at most one release in a hundred if the model is right.

        Raises
        ------
        ValueError
            If the model has no release.
        TreeTooLargeError
            If what the test needs does not fit in memory.

        Notes
        -----
        Records are counted as independent; where units have several rows, the test errs to the side of the model.
        """
        self._fitted()
        self._releases()  # a network that was changed has none, and drops the check
        return self._check

    @cached_property
    def _check(self) -> FitCheck:
        raise NotImplementedError

    @property
    def draws_(self) -> Any:
        """Return what bounds rest on: drawn from what the release leaves open, unless `sample_draws` was called."""
        raise NotImplementedError

    def sample_draws(self, draws: int = 0, seed: int = 0) -> Any:
        """Draw `draws_` afresh, and keep them.

        Parameters
        ----------
        draws : int
            Bounds have an error from a finite number of draws.
        seed : int
            The same seed gives the same draws; privacy does not depend on them.
        """
        raise NotImplementedError

    @property
    def posterior_(self) -> Any:
        """Return `draws_`, by the name of an earlier version."""
        renamed("posterior_", "draws_")
        return self.draws_

    def sample_posterior(self, draws: int = 200, seed: int = 0) -> Any:
        """Call `sample_draws`, by the name of an earlier version."""
        renamed("sample_posterior", "sample_draws")
        return self.sample_draws(draws, seed)

    @abstractmethod
    def save(self, filename: str | os.PathLike[str]) -> None:
        """Write the model; `pgmpy_dp.load` reads it."""

    @classmethod
    @abstractmethod
    def load(cls, filename: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote."""

    def _shown(self) -> list[str]:
        """List the variables of records, in the order of their columns."""
        return list(self._fitted().variables)

    def _within_bins(self, seed: int | None) -> np.random.Generator | None:
        """Choose what places numbers within bins; by default what draws the records."""
        return None

    def _count(self, n_samples: int | None) -> int:
        return max(round(self._total()), 1) if n_samples is None else whole_number("n_samples", n_samples, 0)

    def _read_as(self, numbers: Numbers) -> tuple[Schema, ...]:
        """List the schemas that the records were read by; for numbers they must say the edges of bins."""
        schemas, known = self._declared(), self._fitted().states
        if numbers != "states" and not schemas:
            raise ValueError(
                Message(
                    "The network has no release, which states the edges of its bins",
                    f'use numbers="states", or {ATTACH_RELEASE}',
                    f"use --numbers states, or {NAME_RELEASE}",
                )
            )
        for schema in schemas:
            require_numbers({v: bins for v, bins in schema.bins.items() if v in known}, numbers)
        return schemas

    def _question(
        self, variables: Sequence[str] | None, evidence: Mapping[str, Any] | None
    ) -> tuple[Schema, list[str], dict[str, Any]]:
        """Refuse what the model does not have; warn where the release is known to contradict it."""
        schema = self._fitted()
        question = checked_question(schema, variables, evidence, self._declared())
        self._warn_of_misfit()
        return schema, *question

    def _marginal(self, schema: Schema, asked: Sequence[str], given: Mapping[str, Any]) -> Vector:
        with named_evidence(given):
            return self._answering([*asked, *given]).marginal(asked, places(schema, given))

    def _uncertain(
        self,
        schema: Schema,
        asked: Sequence[str],
        given: Mapping[str, Any],
        target: str,
        numbers: Vector | None = None,
    ) -> Uncertain:
        """Find an answer with what the release leaves open; warn where the noise decides it."""
        self._warn_of_misfit(bounds=True)
        with named_evidence(given):
            found = self._answering([*asked, *given]).draws(asked, places(schema, given), target, numbers)
        if given and found.least < 1:
            warnings.warn(
                f"The release does not tell whether any record has the evidence {dict(given)}: the noise decides the "
                "answer.",
                stacklevel=4,
            )
        return found

    def _noted(self, frame: pd.DataFrame, told: bool) -> pd.DataFrame:
        """Note beside answers that the test of fit fails, and where the release does not tell how far they are off."""
        check = vars(self).get("_check")
        if check is not None and check.fails:
            frame.attrs["misfit"] = f"The release contradicts the network ({check.probability})"
        if not told:
            frame.attrs["note"] = _UNTOLD
        return frame


def _bounded_answer(
    schema: Schema, asked: Sequence[str], given: Mapping[str, Any], found: Uncertain, interval: float
) -> pd.DataFrame:
    """Put the probabilities of states beside their bounds, which hold them."""
    lower, upper = found.bounds(interval)
    upper = np.where(schema.possible(asked, given).ravel(), upper, 0.0)
    lower, upper = rounded_to_records(lower.clip(0.0), upper.clip(None, 1.0), found.records)
    values = {"value": found.values, "lower": np.minimum(lower, found.values), "upper": np.maximum(upper, found.values)}
    return BoundedAnswer(values, index=state_index(schema, asked))


def places(schema: Schema, given: Mapping[str, Any]) -> Places:
    """Find the positions of given states."""
    return {variable: schema.states[variable].index(state) for variable, state in given.items()}


def renamed(before: str, now: str) -> None:
    """Warn of a name of an earlier version, two calls up."""
    said = f"{before} is called {now} now, and the old name goes with the next version."
    warnings.warn(said, DeprecationWarning, stacklevel=3)
