"""Private variational Bayes of conjugate-exponential families (Foulds, Park, Chaudhuri and Welling 2020)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pgmpy_dp.data.mechanisms.sums import NoisySums
from pgmpy_dp.estimators.iterated import Learner
from pgmpy_dp.inference.tables.layout import Vector


class ConjugateExponential(Protocol):
    """A model whose posterior has the natural parameters of its prior plus the sum of expected sufficient statistics.

    Only that sum is noisy. `PrivateVB`, `PrivateLDA` and
    `papers.PrivateLinearRegression` differ in nothing else; a model with these names can be
    learned by :func:`conjugate_learner`.

    Attributes
    ----------
    start : ndarray of shape (d,)
        Public natural parameters for the first step.
    bound : float
        Norm to which the statistics of a record are clipped.
    non_negative : bool
        Whether statistics are at least 0, which lowers the sensitivity to replacing a record.
    """

    @property
    def start(self) -> Vector: ...

    @property
    def bound(self) -> float: ...

    @property
    def non_negative(self) -> bool: ...

    def statistic(self, natural: Vector) -> Callable[[Any], Any]:
        """Return the function of m records that gives their expected statistics, of shape (m, d).

        To the last bit a row must depend only on its own record: see `NoisySums.noisy_sum`.
        """

    def posterior(self, statistics: Vector) -> Vector:
        """Return valid natural parameters: those of the prior plus a noisy sum of statistics."""


def conjugate_learner(
    model: ConjugateExponential,
    rate: Callable[[int], float],
    finish: Callable[[Vector], None],
    variables: tuple[str, ...] | None = None,
) -> Learner:
    """Return the steps of private variational Bayes, which learn natural parameters.

    With S_t the noisy sum of step t over the sampling rate, an unbiased estimate of the statistics of all records, the
    average is s <- (1 - rho_t) s + rho_t S_t. Averaging before `posterior` makes the parameters valid lets noise
    cancel. A step keeps nothing of the records but its noisy sum.
    """

    def steps(sums: NoisySums) -> Iterator[Vector]:
        natural, average = model.start, np.zeros(model.start.size)
        for number in range(sums.steps):
            noisy = sums.noisy_sum(model.statistic(natural), model.bound, non_negative=model.non_negative)
            share = rate(number)
            average = (1.0 - share) * average + share * noisy / sums.sampling_rate
            natural = model.posterior(average)
            yield natural

    return Learner(model.start.size, steps, finish, variables)


@dataclass(frozen=True)
class Dirichlet:
    """Base class of models of independent Dirichlet distributions, whose statistics are expected counts."""

    start: Vector
    bound: float
    prior: float
    non_negative: bool = True

    def posterior(self, statistics: Vector) -> Vector:
        """Return the concentrations for noisy counts, of which negative ones count as 0."""
        return self.prior + np.maximum(statistics, 0.0)
