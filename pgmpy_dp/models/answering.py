"""Interface between a model and its inference: a junction tree, a mixture, or a level of households.

States are given by their positions. `pgmpy_dp.models.questions` converts the names of states, numbers in bins and texts
of missing values to positions beforehand, and `pgmpy_dp.models.model` converts positions back to names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference.tables.layout import Vector

Places = Mapping[str, int]

FEW_STATES = 1000
"""Maximum number of joint states for which `surest` draws the whole table."""

# Maps a variable, and the numbers of some records, to the probabilities of its states in each of them, given the other
# variables. They need not be normalised, and are all 0 where the others are impossible together.
GivenOthers = Callable[[str, NDArray[np.integer]], Vector]


class ImpossibleEvidenceError(ValueError):
    """The evidence has probability zero; `Model` reports it by the names of its states."""


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
