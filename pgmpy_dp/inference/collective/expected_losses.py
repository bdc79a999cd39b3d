"""Expected losses of noisy observations, if the counts behind them are uncertain.

The counts are log-normal, n exp(sqrt(v) t - v / 2) for standard normal t. Each loss handles observed counts, and sums
of counts by their means and variances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from pgmpy_dp.inference.collective.noise_laws import ByRows, GaussianNoise, Noise
from pgmpy_dp.inference.tables.table import Vector

# Half of a symmetric seven-point Gauss-Hermite rule for expectations over a standard normal variable.
_POINTS, _WEIGHTS = (half[3:] for half in hermegauss(7))
_WEIGHTS = np.concatenate([_WEIGHTS[:1] / 2, _WEIGHTS[1:]]) / math.sqrt(2 * math.pi)

# Share of b within which the Laplace loss |d| / b is rounded, so that quasi-Newton steps see a curvature.
_ROUNDING = 0.6

Derivatives = tuple[float, Vector, Vector]


@dataclass(frozen=True, eq=False)
class GaussianLoss:
    """The loss (y - n)^2 / (2 variance), for which `of_sums` is exact."""

    observed: Vector
    variance: Vector
    minimum = 0.0  # minimum of the loss

    @property
    def information(self) -> Vector:
        """The Fisher information of each observation."""
        return 1.0 / self.variance

    def allow(self, sampled: Vector) -> GaussianLoss:
        """Add variance to observations, since they may deviate as far as a sample of records does."""
        return replace(self, variance=self.variance + sampled)

    def of_counts(self, counts: Vector, spread: Vector) -> Derivatives:
        """Return the loss and its derivatives by n and v, for observed counts."""
        growth = np.exp(spread)
        value, by_sum, by_square = self.of_sums(counts, counts**2 * (growth - 1))
        return value, by_sum + 2 * counts * (growth - 1) * by_square, counts**2 * growth * by_square

    def of_sums(self, sums: Vector, fluctuation: Vector) -> Derivatives:
        """Return the loss and its derivatives by the means and variances of observed sums."""
        residual = self.observed - sums
        value = float(((residual**2 + fluctuation) / (2 * self.variance)).sum())
        return value, -residual / self.variance, 0.5 / self.variance


@dataclass(frozen=True, eq=False)
class RoundedLaplaceLoss:
    """The loss sqrt((y - n)^2 + corner) / scale. For sums, the fluctuation is treated as normal."""

    observed: Vector
    variance: Vector
    scale: Vector
    corner: Vector
    minimum: float = 0.0

    @property
    def information(self) -> Vector:
        return 2.0 / (1 + _ROUNDING**2 + 0.8 * _ROUNDING) / self.variance

    def allow(self, sampled: Vector) -> RoundedLaplaceLoss:
        """Add variance: exp(-sqrt(r^2 + c) / s) has the variance s sqrt(c) for large c, and is then nearly normal.

        The minimum of such a loss is large, and must be subtracted for the optimiser to notice gains.
        """
        corner = self.corner + (sampled / self.scale) ** 2
        minimum = float((np.sqrt(corner) / self.scale)[sampled > 0].sum())
        return replace(self, variance=self.variance + sampled, corner=corner, minimum=minimum)

    def of_counts(self, counts: Vector, spread: Vector) -> Derivatives:
        from pgmpy_dp.inference.collective.rounded_loss import expected_rounded_loss  # imports numba, only for fits

        value, by_count, by_spread = expected_rounded_loss(
            self.observed, self.scale, self.corner, counts, spread, _POINTS, _WEIGHTS
        )
        return float(value), by_count, by_spread

    def of_sums(self, sums: Vector, fluctuation: Vector) -> Derivatives:
        root = np.sqrt(fluctuation)
        apart = self.observed - sums + np.stack([_POINTS[:, None] * root, -_POINTS[:, None] * root])
        rounded = np.sqrt(apart**2 + self.corner)
        slopes = apart / rounded / self.scale
        value = float((_WEIGHTS @ rounded / self.scale).sum())
        by_root = (_WEIGHTS * _POINTS) @ (slopes[0] - slopes[1])
        return value, -(_WEIGHTS @ slopes).sum(axis=0), by_root / (2 * np.maximum(root, 1e-12))


ExpectedLoss = GaussianLoss | RoundedLaplaceLoss | ByRows


def expected_loss(noise: Noise) -> ExpectedLoss:
    """Return minus the expected log density, rounded where it has corners."""
    if isinstance(noise, ByRows):
        return replace(noise, parts=tuple(expected_loss(part) for part in noise.parts))
    if isinstance(noise, GaussianNoise):
        return GaussianLoss(noise.observed, noise.variance)
    return RoundedLaplaceLoss(noise.observed, noise.variance, noise.scale, (_ROUNDING * noise.scale) ** 2)
