"""The fit that a model stores, and answers with bounds.

Variables and states are named in a `Question`; here and below they are positions in a schema.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from pgmpy_dp._notebooks import bar, table
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.inference.collective.noise_laws import GaussianNoise, LaplaceNoise, Law
from pgmpy_dp.inference.distribution import Distribution
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.models.numbers import Shape, require_scale, shape_of
from pgmpy_dp.models.questions import Question
from pgmpy_dp.models.simulated import Numbers, require_numbers
from pgmpy_dp.observed.reading import detail_of, law_of, lowest_noise
from pgmpy_dp.privacy.checks import choice
from pgmpy_dp.release import Release
from pgmpy_dp.schema import Bins, Schema

if TYPE_CHECKING:
    from pgmpy_dp.fitting.checks.misfit import FitCheck

# Advice for a model without a release.
ATTACH_RELEASE = "attach the release it was fitted to by network.attach_release(dp.NoisyMarginals.load('release.zip'))"

_NO_RELEASE = f"The network has no release, or was changed since it was fitted: fit it, or {ATTACH_RELEASE}."

FEW_STATES = 1000
"""Maximum number of joint states for which `most_probable_states` draws the whole table."""


class Uncertain(Protocol):
    """An answer with its uncertainty."""

    @property
    def values(self) -> Vector: ...
    @property
    def records(self) -> float: ...
    @property
    def minimum(self) -> float: ...

    def bounds(self, interval: float) -> tuple[Vector, Vector]:
        """Compute bounds of each value that contain this share of its distribution."""


class Fitted(ABC):
    """The fit of a model: replaced as a whole, never edited; derived values are computed once, on demand."""

    if TYPE_CHECKING:  # fields, or computed

        @property
        def schema(self) -> Schema: ...
        @property
        def distribution(self) -> Distribution: ...
        @property
        def releases(self) -> tuple[Release, ...]: ...
        @property
        def declared(self) -> tuple[Schema, ...]: ...
        @property
        def total(self) -> float: ...
        @property
        def check(self) -> FitCheck | None: ...

    @abstractmethod
    def bounded(self, question: Question, target: str, numbers: Vector | None = None) -> Uncertain:
        """Answer with uncertainty."""

    @abstractmethod
    def most_probable_states(self, question: Question, target: str) -> tuple[tuple[int, ...], float]:
        """Find the most probable joint state, by the draws' mean if there are few; and the share of draws for it."""

    @abstractmethod
    def tested(self) -> FitCheck:
        """Test whether the releases are compatible with the model; raise if that is impossible."""

    def required_releases(self) -> tuple[Release, ...]:
        """Return the releases; raise if there are none."""
        if not self.releases:
            raise ValueError(_NO_RELEASE)
        return self.releases

    def part(self, names: Collection[str]) -> Fitted:
        """Return the fit of a part that determines these variables' distribution: the whole, unless it is too wide."""
        return self

    def distribution_of(self, names: Collection[str]) -> Distribution:
        """Return the distribution of which these variables are asked."""
        return self.distribution

    def marginal(self, question: Question) -> Vector:
        """Compute the joint probabilities of the variables asked for, with an axis for each."""
        return self.distribution_of(question.names).given(question.places).marginal(question.asked)

    def warn_of_misfit(self, bounds: bool = False) -> None:  # noqa: B027
        """Warn once if the release contradicts the model; with `bounds`, test it whatever that takes."""

    def caveats(self, question: Question) -> list[str]:
        """Say what the bounds of an answer assume."""
        return []

    def unknown_effects(self, question: Question) -> float:
        """Return the standard deviation of effects of the evidence that the release does not identify."""
        return 0.0

    @property
    def bins(self) -> dict[str, Bins]:
        """The bins of the original records; the first schema counts if several have a variable."""
        known = self.schema.states
        return {v: bins for schema in reversed(self.declared) for v, bins in schema.bins.items() if v in known}

    def read_as(self, numbers: Numbers) -> Numbers:
        """Check `numbers`, for which the edges of bins must be known."""
        if numbers != "states" and not self.declared:
            raise ValueError(
                "The network has no release, which states the edges of its bins: "
                f'use numbers="states", or {ATTACH_RELEASE}.'
            )
        return require_numbers(self.bins, numbers)

    def shapes(self, variables: Sequence[str]) -> dict[str, Shape]:
        """Find the densities of numbers within their bins; the marginals of all are computed at once."""
        if not variables:
            return {}
        marginals = self.distribution_of(variables).singles(variables)
        return {v: self.shape(v, marginal) for v, marginal in zip(variables, marginals, strict=True)}

    def shape(self, variable: str, marginal: Vector | None = None, bins: Bins | None = None) -> Shape:
        """Find the density of a number within its bins, given its marginal and the noise of its counts."""
        bins, states = bins or self.bins[variable], self.schema.states[variable]
        if marginal is None:
            marginal = self.marginal(Question([variable], {}, {}))
        chances = dict(zip(states, marginal.tolist(), strict=True))
        total, deviation, detail = None, 0.0, None
        law: Law = GaussianNoise
        with suppress(ValueError):  # without a release, the probabilities are all that is known
            total = self.total
            detail, laws = detail_of(self.releases, variable), {law_of(release) for release in self.releases}
            law = LaplaceNoise if LaplaceNoise in laws else GaussianNoise
            deviation = math.sqrt(lowest_noise(self.releases, (variable,))[1])
        shares = tuple(chances.get(label, 0.0) for label in bins.labels)
        return shape_of(bins, shares, deviation, total, detail, law)  # type: ignore[arg-type]  # a class can be hashed

    def shape_within(self, variable: str, chances: Vector, given: Collection[str]) -> tuple[Shape, NDArray[np.intp]]:
        """Return a variable's density where its states have these probabilities, and the positions of its bins."""
        bins = self.bins.get(variable)
        if bins is None:
            asked = 'give a number for each of its states, as in {"age": {"young": 25, "old": 70}}'
            if any(variable in schema.states for schema in self.declared):
                raise SchemaError(f"Variable {variable!r} is not binned: {asked}.")
            raise SchemaError(
                f"Variable {variable!r} has no known bins: {asked}, or attach the release, which states the edges of "
                "bins."
            )
        require_scale(variable, bins)
        states = self.schema.states[variable]
        positions = np.array([states.index(label) for label in bins.labels])
        return self.shape(variable).given(chances[positions]) if given else self.shape(variable, chances), positions


def bounds(draws: Vector, interval: float) -> tuple[Vector, Vector]:
    """Compute lower and upper bounds of each column of draws.

    Small counts that noise hides are positive in all draws, which pulls shares up from zero and skews them. So bounds
    reach at least as far as those of normal draws with the same mean and variance, from which noise could have come.
    """
    lower, upper = np.quantile(draws, [(1 - interval) / 2, (1 + interval) / 2], axis=0, method="weibull")
    mean, reach = draws.mean(axis=0), float(ndtri((1 + interval) / 2)) * draws.std(axis=0)
    return np.minimum(lower, mean - reach), np.maximum(upper, mean + reach)


def rounded_to_records(lower: Vector, upper: Vector, records: Any) -> tuple[Vector, Vector]:
    """Set bounds of probabilities to 0 or 1 if they are less than half a record away, since counts are integers."""
    return np.where(lower * records < 0.5, 0.0, lower), np.where((1 - upper) * records < 0.5, 1.0, upper)


class BoundedAnswer(pd.DataFrame):
    """Values and bounds, which a notebook shows with bars; operations on it return plain data frames."""

    @classmethod
    def of(cls, values: Vector, lower: Vector, upper: Vector, records: Any, index: pd.Index) -> Self:
        """Round bounds to records, and widen them to contain the values."""
        lower, upper = rounded_to_records(lower, upper, records)
        ends = {"lower": np.minimum(lower, values), "upper": np.maximum(upper, values)}
        return cls({"value": values, **ends}, index=index)

    def _repr_html_(self) -> str:
        scale = max(1.0, float(np.nanmax(self["upper"], initial=0.0)))
        rows = [
            (
                ", ".join(map(str, label if isinstance(label, tuple) else (label,))),
                *map("{:.4f}".format, (value, low, high)),
                bar(low, value, high, scale),
            )
            for label, (value, low, high) in zip(self.index, self[["value", "lower", "upper"]].to_numpy(), strict=True)
        ]
        names = ", ".join(str(name) for name in self.index.names if name is not None)
        notes = f" {self.attrs['note']}" if "note" in self.attrs else ""
        return table(f"P({names}), with bounds.{notes}", [names, "value", "lower", "upper", ""], rows, maximum=60)


def state_index(schema: Schema, variables: Sequence[str]) -> pd.Index:
    """Label rows by the states of one variable, or by the joint states of several."""
    states, names = [list(schema.states[variable]) for variable in variables], list(variables)
    return pd.MultiIndex.from_product(states, names=names) if len(names) > 1 else pd.Index(*states, name=names[0])


def assumed_within_groups(question: Question, grouped: Collection[str]) -> list[str]:
    """Say that the bounds of an answer assume shares of states in groups, if it depends on them."""
    own = [variable for variable in question.names if variable in grouped]
    if not own or len(question.names) == 1:
        return []
    return [
        f"The bounds assume that a state's share of its group, in which {' and '.join(own)} were measured, does not "
        "depend on other variables."
    ]


def check_interval(interval: Any, name: str = "interval") -> None:
    """Raise unless the interval, or another number of this name, is between 0 and 1."""
    if isinstance(interval, bool) or not isinstance(interval, int | float | np.number) or not 0 < interval < 1:
        raise ValueError(f"{name} is {interval!r}; it must be between 0 and 1, such as 0.9.")


def check_target(target: Any) -> None:
    """Raise unless the target is "population" or "records"."""
    choice("population", "records")("target", target)
