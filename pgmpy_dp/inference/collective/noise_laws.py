"""Additive noise on a vector of counts has log densities, which are given here with their gradients.

Each value holds what was observed and how noisy it is; `log_density` and `gradient` are functions of the noiseless
vector. The normal-Laplace density is that of a Laplace variable whose centre is itself normal: noise on counts that
are a sample.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import erf, log_ndtr

from pgmpy_dp.inference.tables.layout import Vector


@dataclass(frozen=True)
class LaplaceNoise:
    """Laplace noise is added cell by cell: observed = true + Laplace(scale).

    Attributes
    ----------
    observed, scale : ndarrays of shape (cells,)
        In counts.
    """

    observed: Vector
    scale: Vector

    def log_density(self, counts: Vector) -> float:
        """Sum log p(observed | counts) over the cells, in nats."""
        return float(-(np.abs(self.observed - counts) / self.scale + np.log(2 * self.scale)).sum())

    def gradient(self, counts: Vector) -> Vector:
        """Compute the subgradient sign(observed - counts) / scale, 0 where they are equal."""
        return np.sign(self.observed - counts) / self.scale

    def loss(self, counts: Vector) -> float:
        """Compute sum(|y - n| / scale)."""
        return float((np.abs(self.observed - counts) / self.scale).sum())

    def gap(self, counts: Vector, multipliers: Vector) -> float:
        """Compute sum(|y - n| / scale - l (y - n)) for multipliers l within 1 / scale: zero at subgradients alone."""
        residual = self.observed - counts
        return float((np.abs(residual) / self.scale - multipliers * residual).sum())


@dataclass(frozen=True)
class GaussianNoise:
    """Gaussian noise is added cell by cell: observed = true + Normal(0, scale^2); attributes as `LaplaceNoise`."""

    observed: Vector
    scale: Vector

    def log_density(self, counts: Vector) -> float:
        """Sum log p(observed | counts) over the cells, in nats."""
        residual = (self.observed - counts) / self.scale
        return float(-(residual**2 / 2 + np.log(self.scale) + np.log(2 * np.pi) / 2).sum())

    def gradient(self, counts: Vector) -> Vector:
        """Compute (observed - counts) / scale^2."""
        return (self.observed - counts) / self.scale**2

    def loss(self, counts: Vector) -> float:
        """Compute sum((y - n)^2 / scale^2) / 2."""
        return float(((self.observed - counts) ** 2 / self.scale**2).sum() / 2)

    def gap(self, counts: Vector, multipliers: Vector) -> float:
        """Compute sum((y - n - scale^2 l)^2 / scale^2) / 2 for multipliers l: zero at the gradient alone."""
        square = self.scale**2
        return float(((self.observed - counts - square * multipliers) ** 2 / square).sum() / 2)

    def curvature(self, counts: Vector) -> Vector:
        """Compute minus the derivative of the gradient: 1 / scale^2."""
        return np.broadcast_to(1.0 / self.scale**2, counts.shape)


@dataclass(frozen=True)
class NormalLaplaceNoise:
    """Laplace noise is added to counts that vary by sampling: true + Normal(0, spread^2) + Laplace(scale).

    Attributes
    ----------
    observed, scale, spread : ndarrays of shape (cells,)
        In counts; `spread` > 0.
    """

    observed: Vector
    scale: Vector
    spread: Vector

    def _tails(self, counts: Vector) -> tuple[Vector, Vector]:
        residual = self.observed - counts
        ratio = self.spread / self.scale
        standard = residual / self.spread
        above = -residual / self.scale + log_ndtr(standard - ratio)
        below = residual / self.scale + log_ndtr(-standard - ratio)
        return above, below

    def log_density(self, counts: Vector) -> float:
        """Sum log p(observed | counts) over the cells, in nats."""
        above, below = self._tails(counts)
        ratio = self.spread / self.scale
        return float((np.logaddexp(above, below) + ratio**2 / 2 - np.log(2 * self.scale)).sum())

    def gradient(self, counts: Vector) -> Vector:
        """Compute tanh((above - below) / 2) / scale: sign(...) / scale smoothed over the spread."""
        above, below = self._tails(counts)
        return np.tanh((above - below) / 2) / self.scale


@dataclass(frozen=True)
class SmoothedLaplaceNoise:
    """Laplace noise has this expected log density when the noiseless count is Normal(counts, spread^2).

    It is quadratic in the residual within the spread, linear beyond: a residual many scales large pulls no harder than
    one of a few. It is concave in the counts. Attributes as `NormalLaplaceNoise`.
    """

    observed: Vector
    scale: Vector
    spread: Vector

    def log_density(self, counts: Vector) -> float:
        """Sum E[log p(observed | n)] over the cells, in nats, without the constant -log(2 scale)."""
        residual = self.observed - counts
        standard = residual / (np.sqrt(2.0) * self.spread)
        expected = residual * erf(standard) + np.sqrt(2.0 / np.pi) * self.spread * np.exp(-(standard**2))
        return float(-(expected / self.scale).sum())

    def gradient(self, counts: Vector) -> Vector:
        """Compute erf(residual / (sqrt(2) spread)) / scale."""
        smoothed: Vector = erf((self.observed - counts) / (np.sqrt(2.0) * self.spread)) / self.scale
        return smoothed

    def curvature(self, counts: Vector) -> Vector:
        """Differentiate the gradient and negate: sqrt(2 / pi) exp(-residual^2 / (2 spread^2)) / (spread scale)."""
        standard = (self.observed - counts) / self.spread
        curvature: Vector = np.sqrt(2.0 / np.pi) * np.exp(-(standard**2) / 2) / (self.spread * self.scale)
        return curvature
