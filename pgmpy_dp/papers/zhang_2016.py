"""Private Bayesian inference of Zhang, Rubinstein and Dimitrakakis (2016), and its calibration as printed.

The printed calibrations use a coarser bound, so their epsilon is at least the actual cost of a release. The actual cost
is charged and stated in the guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from pgmpy_dp.data.mechanisms import regression
from pgmpy_dp.data.mechanisms.contrasts import FourierCoefficients
from pgmpy_dp.data.mechanisms.posterior import LikelyRows, PosteriorRows
from pgmpy_dp.data.mechanisms.regression import PosteriorRegressions, Regression, largest_mean, root_above
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.papers.private_bayesian import ExponentialMAP, PosteriorSampler, PrivateBayesianEstimator
from pgmpy_dp.papers.regression_sampling import LinearPosteriorSampler
from pgmpy_dp.privacy import posterior
from pgmpy_dp.privacy.checks import decimal_above, exact_positive
from pgmpy_dp.privacy.posterior import RESERVE, WIDEST, draw_cost, range_of
from pgmpy_dp.release import Coefficients, NoisyCoefficients, PosteriorDraws, RegressionDraws
from pgmpy_dp.release.contrasts import contrasts, downward_closure, fourier_sensitivity
from pgmpy_dp.schema import Clique

__all__ = [
    "Coefficients",
    "NoisyCoefficients",
    "PosteriorDraws",
    "PrintedBayesianEstimator",
    "PrintedCoefficients",
    "PrintedExponentialMAP",
    "PrintedLikelyRows",
    "PrintedLinearSampler",
    "PrintedPosteriorSampler",
    "PrintedRegressions",
    "PrintedRows",
    "RegressionDraws",
    "printed_increment",
    "printed_sensitivity",
]


def truncation(states: Sequence[int], epsilon: Fraction, neighbours: str) -> list[float]:
    """Find the ranges of the nodes' rows for the printed smallest probability, exp(-epsilon / (2 |I|)) for every node.

    It follows from the lower bound w**|I| on a record's probability. It is valid, but coarser than
    :func:`~pgmpy_dp.privacy.posterior.truncation`, and needs an epsilon above 2 |I| log r for nodes of r states.
    """
    posterior.truncation(states, epsilon, neighbours)  # refuses an epsilon too small for floating-point numbers
    target = float(epsilon)
    floor, maximum = math.exp(-target / (2 * len(states))), max(states)
    if floor * maximum >= 1:
        minimum = math.nextafter(2 * len(states) * math.log(maximum), math.inf)
        raise ValueError(
            f"epsilon={target!r} truncates probabilities at {floor:.4g}, but {maximum} states leave at most "
            f"1 / {maximum}: the paper's form needs more than epsilon={minimum!r} here. PosteriorSampler has no such "
            "limit."
        )
    return [min(range_of(floor, r), WIDEST) for r in states]


def tempering(states: Sequence[int], floor: float, epsilon: Fraction) -> tuple[list[float], float]:
    """Find the ranges of the nodes' rows and the printed power epsilon / (2 |I| log(1 / w)) for both relations."""
    ranges, _ = posterior.tempering(states, floor, epsilon, "replace_one")
    bound = -len(states) * math.log(floor)
    return ranges, float(epsilon) / (2 * bound) * (1 - 2 * RESERVE)


def temper(
    parents: int, bound: float, tau: float, prior_precision: float, epsilon: Fraction, neighbours: str
) -> Regression:
    """Temper as the library does, with the printed Lipschitz constant L' in the record.

    Epsilon is 2 L' with L' = tau R sqrt(1 + (1 + k) B**2), for records scaled to |x| <= 1 (appendix D). This is at
    least the actual cost 2 L, since (1 + a)**2 <= 2 (1 + a**2).
    """
    mean = largest_mean(parents, bound)
    stated = 2 * (1 + mean) * root_above(1 + mean**2)
    return regression.temper(parents, bound, tau, prior_precision, epsilon, neighbours, stated)


def printed_sensitivity(subsets: Sequence[Clique], cardinalities: Mapping[str, int]) -> float:
    """Return twice the sensitivity to adding a record, in any basis: 2 |N_I| for binary variables."""
    return 2 * math.fsum(math.prod(contrasts(cardinalities[v]).spread for v in subset) for subset in subsets)


def printed_increment(release: NoisyCoefficients, failure_probability: float = 0.1) -> float:
    """Compute the printed increment, which makes the full table non-negative except with the failure probability p.

    It does not depend on the noisy values. With probability at least 1 - p, none of the m coefficients has noise above
    b log(m / p) for noise of scale b. A cell of the full table is the sum of the coefficients, weighted by products of
    contrasts of at most A_i. For binary variables and the printed scale the increment is 4 t |N_I|**2 / epsilon with t
    = log(|N_I| / p) / 2 (Corollary 3, recalled because the formula is illegible in the available copy; it agrees with
    Theorem 3).

    Parameters
    ----------
    release : NoisyCoefficients
    failure_probability : float
        Bound p on the probability of failure.

    Returns
    -------
    float
        Number of records, for :meth:`pgmpy_dp.papers.Coefficients.non_negative`.
    """
    if not 0 < failure_probability < 1:
        raise ValueError(f"failure_probability must be between 0 and 1, got {failure_probability!r}.")
    closure = downward_closure(release.schema, release.cliques)
    cards = {v: release.schema.cardinality(v) for clique in release.cliques for v in clique}
    size = sum(math.prod(cards[v] - 1 for v in subset) for subset in closure)
    largest = release.scale * math.log(size / failure_probability)
    return fourier_sensitivity(closure, cards, "add_remove") * largest


@dataclass(frozen=True)
class PrintedRows(PosteriorRows):
    """Draw rows from the posterior with the printed :func:`truncation`."""

    def _priced(self, states: list[int], epsilon: Fraction, neighbours: str) -> tuple[list[float], float, Fraction]:
        ranges = truncation(states, epsilon, neighbours)
        return ranges, 1.0, Fraction(str(draw_cost(ranges, 1.0, neighbours)))


@dataclass(frozen=True)
class PrintedLikelyRows(LikelyRows):
    """Draw rows by the exponential mechanism with the printed :func:`tempering`."""

    def _priced(self, states: list[int], epsilon: Fraction, neighbours: str) -> tuple[list[float], float, Fraction]:
        ranges, power = tempering(states, float(exact_positive("floor", self.floor)), epsilon)
        return ranges, power, Fraction(str(draw_cost(ranges, power, neighbours)))


@dataclass(frozen=True)
class PrintedRegressions(PosteriorRegressions):
    """Draw linear regressions with the printed :func:`temper`."""

    _temper: ClassVar[Callable[..., Regression]] = staticmethod(temper)


@dataclass(frozen=True)
class PrintedCoefficients(FourierCoefficients):
    """Measure Fourier coefficients with noise for the :func:`printed_sensitivity`."""

    def _price(
        self, closure: Sequence[Clique], cardinalities: Mapping[str, int], sensitivity: float, epsilon: Fraction
    ) -> tuple[Fraction, float]:
        scale = printed_sensitivity(closure, cardinalities) / float(epsilon) * (1 + 1e-9)
        return min(epsilon, Fraction(str(decimal_above(Fraction(sensitivity) / Fraction(scale))))), scale


class PrintedPosteriorSampler(PosteriorSampler):
    """`PosteriorSampler` with the printed truncation."""

    def _plan(self, structure: Any, public: Any) -> PrintedRows:
        return PrintedRows(**vars(super()._plan(structure, public)))


class PrintedExponentialMAP(ExponentialMAP):
    """`ExponentialMAP` with the printed tempering."""

    def _plan(self, structure: Any, public: Any) -> PrintedLikelyRows:
        return PrintedLikelyRows(**vars(super()._plan(structure, public)))


class PrintedLinearSampler(LinearPosteriorSampler):
    """`LinearPosteriorSampler` with the printed tempering."""

    def _plan(self, structure: Any, public: Any) -> PrintedRegressions:
        return PrintedRegressions(**vars(super()._plan(structure, public)))


class PrintedBayesianEstimator(PrivateBayesianEstimator):
    """`PrivateBayesianEstimator` with the printed sensitivity, and the printed increment unless more is needed."""

    def _plan(self, structure: Any, public: Any) -> Any:
        planned = super()._plan(structure, public)
        return PrintedCoefficients(**vars(planned)) if isinstance(planned, FourierCoefficients) else planned

    def _counts(self, release: Any, scopes: Sequence[Clique]) -> dict[Clique, Vector]:
        if self.increment is None or not isinstance(release, NoisyCoefficients):
            return super()._counts(release, scopes)
        coefficients = release.to_coefficients().non_negative(printed_increment(release))
        return {scope: np.maximum(coefficients.table(scope), 0.0) for scope in scopes}
