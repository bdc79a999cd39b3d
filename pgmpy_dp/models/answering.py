"""Interface between a model and its inference: a junction tree, a mixture, or a level of households.

States are given by their positions. `pgmpy_dp.models.questions` converts the names of states, numbers in bins and texts
of missing values to positions beforehand, and `pgmpy_dp.models.model` converts positions back to names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pgmpy_dp._notebooks import bar, table
from pgmpy_dp.inference.distribution import GivenOthers, ImpossibleEvidenceError
from pgmpy_dp.inference.distribution import Positions as Places
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.privacy.checks import choice
from pgmpy_dp.schema import Schema

# Advice for a model without a release, in Python and on the command line.
ATTACH_RELEASE = "attach the release it was fitted to by network.attach_release(dp.NoisyMarginals.load('release.zip'))"

# Records. A bound closer than this to 0 or 1 is set to 0 or 1, since counts are integers.
_HALF = 0.5


def bounds(draws: Vector, interval: float, records: Any = None) -> tuple[Vector, Vector]:
    """Compute lower and upper bounds of each column of draws.

    Parameters
    ----------
    draws : ndarray of shape (draws, answers)
    interval : float
        The probability that a further draw lies between the bounds; it is equally likely to lie below and above. This
        requires Weibull's plotting positions: the usual ones are too narrow for a small number of draws.
    records : float or ndarray of shape (answers,), optional
        The number of records that probabilities are shares of: bounds within half a record of 0 or 1 are set to 0 or 1.
    """
    lower, upper = np.quantile(draws, [(1 - interval) / 2, (1 + interval) / 2], axis=0, method="weibull")
    return (lower, upper) if records is None else rounded_to_records(lower, upper, records)


def rounded_to_records(lower: Vector, upper: Vector, records: Any) -> tuple[Vector, Vector]:
    """Set bounds of probabilities to 0 or 1 if they are less than half a record away."""
    return np.where(lower * records < _HALF, 0.0, lower), np.where((1 - upper) * records < _HALF, 1.0, upper)


def bounds_frame(values: Vector, draws: Vector, interval: float, index: Any, records: Any) -> pd.DataFrame:
    """Make a frame of values and bounds, widened where necessary to contain the value."""
    lower, upper = bounds(draws, interval, records)
    lower, upper = np.minimum(lower, values), np.maximum(upper, values)
    return BoundedAnswer({"value": values, "lower": lower, "upper": upper}, index=index)


class BoundedAnswer(pd.DataFrame):
    """Values and bounds, which a notebook shows with bars; operations on it return plain data frames."""

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
        return table(f"P({names}), with bounds.{notes}", [names, "value", "lower", "upper", ""], rows, most=60)


def state_index(schema: Schema, variables: Sequence[str]) -> pd.Index:
    """Label rows by the states of one variable, or by the joint states of several."""
    states, names = [list(schema.states[variable]) for variable in variables], list(variables)
    return pd.MultiIndex.from_product(states, names=names) if len(names) > 1 else pd.Index(*states, name=names[0])


def check_interval(interval: Any, name: str = "interval") -> None:
    """Raise unless the interval, or another number of this name, is between 0 and 1."""
    if isinstance(interval, bool) or not isinstance(interval, int | float | np.number) or not 0 < interval < 1:
        raise ValueError(f"{name} is {interval!r}; it must be between 0 and 1, such as 0.9.")


def check_target(target: Any) -> None:
    """Raise unless the target is "population" or "records"."""
    choice("population", "records")("target", target)


FEW_STATES = 1000
"""Maximum number of joint states for which `surest` draws the whole table."""


@contextmanager
def named_evidence(given: Mapping[str, Any]) -> Iterator[None]:
    """Raise an error that names the evidence if its probability is zero."""
    try:
        yield
    except ImpossibleEvidenceError as error:
        raise impossible(given) from error


def impossible(given: Mapping[str, Any]) -> ValueError:
    """Build the error that evidence, named by its states, has probability zero."""
    return ValueError(f"The evidence {dict(given)} has probability zero in the network: leave a part of it out.")


class Uncertain(Protocol):
    """An answer with its uncertainty.

    Attributes
    ----------
    values : ndarray of shape (answers,)
        Probabilities of joint states, flattened, or a single mean.
    records : float
        The number of records with the evidence.
    least : float
        A lower bound of `records` that holds with a probability of 95 %.
    """

    @property
    def values(self) -> Vector: ...
    @property
    def records(self) -> float: ...
    @property
    def least(self) -> float: ...

    def bounds(self, interval: float) -> tuple[Vector, Vector]:
        """Compute bounds of each value that contain this share of its distribution."""


class Answering(Protocol):
    """Distributions over states, given by their positions in the model's schema.

    Every method raises `ImpossibleEvidenceError` if `given` has probability zero, and `TreeTooLargeError` or
    `AnswerTooLargeError` if its tables do not fit in memory.
    """

    def marginal(self, asked: Sequence[str], given: Places) -> Vector:
        """Compute the joint probabilities of some variables given the states of others.

        The array has one axis for each variable asked for, and sums to one.
        """

    def draws(self, asked: Sequence[str], given: Places, target: str, numbers: Vector | None = None) -> Uncertain:
        """Compute the same probabilities with their uncertainty.

        Parameters
        ----------
        asked, given
        target : {"population", "records"}
            What the answer is about: the distribution behind the records, or the records without noise.
        numbers : ndarray, optional
            A number for each joint state; the answer is then their mean in place of probabilities.
        """

    def surest(self, asked: Sequence[str], given: Places, target: str) -> tuple[tuple[int, ...], float]:
        """Find the most probable joint state in the mean of all draws, and the share of draws that agree.

        For more than `FEW_STATES` joint states, it is the state of `most_probable`.
        """

    def marginals(self, asked: Sequence[str], givens: Iterable[Places]) -> Iterator[list[Vector]]:
        """Compute the distribution of each of the same variables under each evidence."""

    def most_probable(self, asked: Sequence[str], givens: Iterable[Places]) -> Iterator[tuple[int, ...]]:
        """Find the most probable joint state of the same variables under each evidence; ties go to the first."""

    def codes(
        self, count: int, given: Places, generator: np.random.Generator, predicting: str | None = None
    ) -> tuple[Mapping[str, NDArray[np.integer]], GivenOthers]:
        """Draw records; evenly drawn records also preserve tables of three variables that include `predicting`.

        Also return the conditional distributions of each variable given the others in these records.
        """

    def log_probability(self, codes: Mapping[str, NDArray[np.integer]]) -> Vector:
        """Compute the log-probabilities of records in nats; missing variables are summed out."""
