"""Interface of distributions of records, which junction trees and mixtures implement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference.tables.table import Vector

Positions = Mapping[str, int]
"""States of variables, by their positions among the variable's states."""

Codes = Mapping[str, NDArray[np.integer]]
"""Positions of states by variable, with an entry for every record."""

GivenOthers = Callable[[str, NDArray[np.integer]], Vector]
"""Maps a variable and numbers of records to the probabilities of its states in these, given all other variables.

They need not be normalised, and are all 0 where the others are impossible together.
"""


class ImpossibleEvidenceError(ValueError):
    """The evidence has probability zero."""


class Distribution(Protocol):
    """A distribution over variables' states, given evidence.

    Every method raises `ImpossibleEvidenceError` if the evidence has probability zero, and `TreeTooLargeError` or
    `AnswerTooLargeError` if its tables do not fit in memory.
    """

    def given(self, evidence: Positions) -> Self:
        """Return the distribution given the states of some variables; computations for other states are reused."""

    def marginal(self, scope: Sequence[str]) -> Vector:
        """Compute the joint probabilities of some variables: an axis for each, and a sum of one."""

    def singles(self, scope: Sequence[str]) -> list[Vector]:
        """Compute the distribution of each of some variables."""

    def most_probable(self, scope: Sequence[str]) -> tuple[int, ...]:
        """Find the most probable joint state of some variables; ties go to the first."""

    def singles_of(self, scope: Sequence[str], rows: Iterable[Positions]) -> Iterator[list[Vector]]:
        """Compute `singles` given each of some rows, all of which know the same variables."""

    def most_probable_of(self, scope: Sequence[str], rows: Iterable[Positions]) -> Iterator[tuple[int, ...]]:
        """Find `most_probable` given each of some rows, all of which know the same variables."""

    def sample(
        self, count: int, generator: np.random.Generator, predicting: str | None = None
    ) -> tuple[Codes, GivenOthers]:
        """Draw records, and return the conditional distributions of each variable in them.

        Evenly drawn records also preserve tables of three variables that include `predicting`.
        """

    def log_probability(self, codes: Codes) -> Vector:
        """Compute the log-probabilities of records in nats; missing variables are summed out."""
