"""The counts behind noisy sums of counts are found as in `pgmpy_dp.inference.collective`, with A n observed, not n."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference.collective import CollectiveMarginals, Engine
from pgmpy_dp.inference.layout import Vector
from pgmpy_dp.inference.optimisation import Minimum, minimise


@dataclass(frozen=True)
class LinearMap:
    """A linear map is a linear function of some of the counts of an engine's layout.

    Attributes
    ----------
    places : ndarray of int
        Where the counts stand in the layout.
    matrix : sparse array of shape (observations, places), or None for the identity
    """

    places: NDArray[np.int64]
    matrix: Any = None

    def apply(self, counts: Vector) -> Vector:
        """Compute A n, from all counts of the layout."""
        held: Vector = counts[self.places]
        return held if self.matrix is None else self.matrix @ held

    def adjoint(self, values: Vector, size: int) -> Vector:
        """Compute A' l, in a vector of the layout's size."""
        spread = np.zeros(size)
        spread[self.places] = values if self.matrix is None else self.matrix.T @ values
        return spread


def linear_laplace_dual(
    engine: Engine,
    potentials: Vector,
    function: LinearMap,
    observed: Vector,
    scale: Vector,
    total: float,
    max_iter: int = 500,
) -> CollectiveMarginals:
    """Minimise N A(theta + A' l) - l . y subject to |l| <= 1 / scale: `laplace_dual` for y = A n + Laplace(scale).

    The potentials of the result are theta + A' l; its gap is sum(|y - A n| / b - l (y - A n)).
    """
    bound = 1.0 / scale
    limits = np.column_stack([-bound, bound])
    none = np.zeros_like(scale)
    tilted, counts, found = _solve(engine, potentials, function, observed, none, total, limits, max_iter)
    residual = observed - function.apply(counts)
    loss = np.abs(residual) / scale
    gap = float((loss - found.point * residual).sum())
    return CollectiveMarginals(counts, tilted, gap, found.iterations, gap <= 1e-6 * max(1.0, float(loss.sum())))


def linear_gaussian_dual(
    engine: Engine,
    potentials: Vector,
    function: LinearMap,
    observed: Vector,
    scale: Vector,
    total: float,
    max_iter: int = 500,
) -> CollectiveMarginals:
    """Solve the dual for y = A n + Normal(0, scale^2): `gaussian_dual`, as `linear_laplace_dual`."""
    square = scale**2
    limits = np.column_stack([np.full_like(scale, -np.inf), np.full_like(scale, np.inf)])
    tilted, counts, found = _solve(engine, potentials, function, observed, square, total, limits, max_iter)
    residual = observed - function.apply(counts)
    gap = float((((residual - square * found.point) ** 2) / square).sum() / 2)
    loss = float((residual**2 / square).sum() / 2)
    return CollectiveMarginals(counts, tilted, gap, found.iterations, gap <= 1e-6 * max(1.0, loss))


def _solve(
    engine: Engine,
    potentials: Vector,
    function: LinearMap,
    observed: Vector,
    square: Vector,
    total: float,
    bounds: Vector,
    max_iter: int,
) -> tuple[Vector, Vector, Minimum]:
    """Find tilted potentials, their counts, and the minimum of the dual."""

    def tilted(multipliers: Vector) -> Vector:
        return potentials + function.adjoint(multipliers, potentials.size)

    def objective(multipliers: Vector) -> tuple[float, Vector]:
        calibration = engine.calibrate(tilted(multipliers))
        pull = square * multipliers
        value = total * calibration.log_partition - multipliers @ observed + multipliers @ pull / 2
        return float(value / total), function.apply(calibration.marginals) + (pull - observed) / total

    found = minimise(objective, np.zeros(observed.size), max_iter, slope=1e-12, bounds=bounds)
    solution = tilted(found.point)
    return solution, total * engine.calibrate(solution).marginals, found
