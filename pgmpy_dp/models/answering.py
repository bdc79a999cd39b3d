"""What a fitted model answers from: a junction tree, a mixture, or a level of households.

Answers are about positions of states. Names of states, numbers in bins and texts of missing values are read before, by
`pgmpy_dp.models.questions`, and positions get their names again in `pgmpy_dp.models.model`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference.tables.layout import Vector

Places = Mapping[str, int]


class ImpossibleEvidenceError(ValueError):
    """The evidence has probability zero; `Model` says so in the names of its states."""


@contextmanager
def named_evidence(given: Mapping[str, Any]) -> Iterator[None]:
    """Name the states of evidence that has probability zero."""
    try:
        yield
    except ImpossibleEvidenceError as error:
        raise ValueError(
            f"The evidence {dict(given)} has probability zero in the network: leave a part of it out."
        ) from error


class Uncertain(Protocol):
    """An answer, and what the release leaves open of it.

    Attributes
    ----------
    values : ndarray of shape (answers,)
        Probabilities of joint states, flat, or one mean of numbers.
    records : float
        The number of records that the answer is about: those with the evidence.
    least : float
        There are at least this many with a probability of 95 %.
    """

    @property
    def values(self) -> Vector: ...
    @property
    def records(self) -> float: ...
    @property
    def least(self) -> float: ...

    def bounds(self, interval: float) -> tuple[Vector, Vector]:
        """Take bounds of each value that have this share of the probability between them."""


class Answering(Protocol):
    """Distributions of states by their positions in the model's schema.

    Every method raises `ImpossibleEvidenceError` where `given` has probability zero, and `TreeTooLargeError` or
    `AnswerTooLargeError` where its tables do not fit in memory.
    """

    def marginal(self, asked: Sequence[str], given: Places) -> Vector:
        """Compute the joint probabilities of some variables given the states of others, one axis a variable asked for.

        They sum to one.
        """

    def draws(self, asked: Sequence[str], given: Places, target: str, numbers: Vector | None = None) -> Uncertain:
        """Find the same with what the release leaves open of it.

        Parameters
        ----------
        asked, given
        target : {"population", "records"}
            What the answer is about: the distribution behind the records, or the records without noise.
        numbers : ndarray, optional
            One for each joint state: their mean is found in place of probabilities.
        """

    def surest(self, asked: Sequence[str], given: Places, target: str) -> tuple[tuple[int, ...], float]:
        """Find the joint state that is most probable in the mean of all draws, and the share of draws that agree."""

    def marginals(self, asked: Sequence[str], givens: Iterable[Places]) -> Iterator[list[Vector]]:
        """Compute the distribution of each of the same variables under each evidence; evidence may share a plan."""

    def most_probable(self, asked: Sequence[str], givens: Iterable[Places]) -> Iterator[tuple[int, ...]]:
        """Find the most probable joint state of the same variables under each evidence; of equal ones the first."""

    def codes(
        self, count: int, given: Places, generator: np.random.Generator, predicting: str | None = None
    ) -> Mapping[str, NDArray[np.integer]]:
        """Draw records; tables of three variables with `predicting` are kept close where records are drawn evenly."""

    def log_probability(self, codes: Mapping[str, NDArray[np.integer]]) -> Vector:
        """Compute the log-probabilities of records in nats; variables that they lack are summed over."""
