"""Log densities of additive noise on a vector of counts, with their gradients.

Each value holds what was observed and how noisy it is; `log_density` and `gradient` are functions of the noiseless
vector. The normal-Laplace density is that of a Laplace variable whose centre is itself normal: noise on counts that
are a sample.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import erf, log_ndtr

from pgmpy_dp.inference.layout import Vector


@dataclass(frozen=True)
class LaplaceNoise:
    """Observed = true + Laplace(scale), cell by cell.

    Attributes
    ----------
    observed, scale : ndarrays of shape (cells,)
        In counts.
    """

    observed: Vector
    scale: Vector

    def log_density(self, counts: Vector) -> float:
        """Sum over cells of log p(observed | counts), in nats."""
        return float(-(np.abs(self.observed - counts) / self.scale + np.log(2 * self.scale)).sum())

    def gradient(self, counts: Vector) -> Vector:
        """Subgradient sign(observed - counts) / scale, 0 where they are equal."""
        return np.sign(self.observed - counts) / self.scale


@dataclass(frozen=True)
class GaussianNoise:
    """Observed = true + Normal(0, scale^2), cell by cell; attributes as `LaplaceNoise`."""

    observed: Vector
    scale: Vector

    def log_density(self, counts: Vector) -> float:
        """Sum over cells of log p(observed | counts), in nats."""
        residual = (self.observed - counts) / self.scale
        return float(-(residual**2 / 2 + np.log(self.scale) + np.log(2 * np.pi) / 2).sum())

    def gradient(self, counts: Vector) -> Vector:
        """(observed - counts) / scale^2."""
        return (self.observed - counts) / self.scale**2

    def curvature(self, counts: Vector) -> Vector:
        """Minus the derivative of the gradient: 1 / scale^2."""
        return np.broadcast_to(1.0 / self.scale**2, counts.shape)


@dataclass(frozen=True)
class NormalLaplaceNoise:
    """Observed = true + Normal(0, spread^2) + Laplace(scale): Laplace noise on counts that vary by sampling.

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
        """Sum over cells of log p(observed | counts), in nats."""
        above, below = self._tails(counts)
        ratio = self.spread / self.scale
        return float((np.logaddexp(above, below) + ratio**2 / 2 - np.log(2 * self.scale)).sum())

    def gradient(self, counts: Vector) -> Vector:
        """tanh((above - below) / 2) / scale: sign(...) / scale smoothed over the spread."""
        above, below = self._tails(counts)
        return np.tanh((above - below) / 2) / self.scale


@dataclass(frozen=True)
class SmoothedLaplaceNoise:
    """Expected log density of Laplace noise when the noiseless count is Normal(counts, spread^2).

    Quadratic in the residual within the spread, linear beyond: a residual many scales large pulls no harder than
    one of a few. Concave in the counts. Attributes as `NormalLaplaceNoise`.
    """

    observed: Vector
    scale: Vector
    spread: Vector

    def log_density(self, counts: Vector) -> float:
        """Sum over cells of E[log p(observed | n)], in nats, without the constant -log(2 scale)."""
        residual = self.observed - counts
        standard = residual / (np.sqrt(2.0) * self.spread)
        expected = residual * erf(standard) + np.sqrt(2.0 / np.pi) * self.spread * np.exp(-(standard**2))
        return float(-(expected / self.scale).sum())

    def gradient(self, counts: Vector) -> Vector:
        """erf(residual / (sqrt(2) spread)) / scale."""
        smoothed: Vector = erf((self.observed - counts) / (np.sqrt(2.0) * self.spread)) / self.scale
        return smoothed

    def curvature(self, counts: Vector) -> Vector:
        """Minus the derivative of the gradient: sqrt(2 / pi) exp(-residual^2 / (2 spread^2)) / (spread scale)."""
        standard = (self.observed - counts) / self.spread
        curvature: Vector = np.sqrt(2.0 / np.pi) * np.exp(-(standard**2) / 2) / (self.spread * self.scale)
        return curvature
