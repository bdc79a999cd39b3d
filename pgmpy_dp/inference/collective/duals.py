"""MAP inference in a collective graphical model, y = A n + noise: by non-linear belief propagation, or exactly.

A is the identity for noisy counts, and consists of contrasts of tables for noisy coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference.collective.noise_laws import LaplaceNoise, Noise
from pgmpy_dp.inference.tables.optimisation import minimise
from pgmpy_dp.inference.tables.table import Layout, Vector
from pgmpy_dp.inference.trees.junction_tree import Calibration, JunctionTree, TiedTree


class Engine(Protocol):
    """Computes marginals: a junction tree, or loopy propagation on a factor graph.

    If k cliques share a table of log-potentials, its marginal is the mean of theirs. The derivative of log Z by the
    log-potentials is `repeats` (k for each cell) times the marginals.
    """

    @property
    def layout(self) -> Layout: ...

    @property
    def repeats(self) -> Vector | float: ...

    def calibrate(self, potentials: Vector) -> Calibration: ...


@dataclass(frozen=True)
class CollectiveMarginals:
    """Clique counts of a collective graphical model."""

    counts: Vector  # n, in records
    potentials: Vector  # log-potentials whose marginals are n / N: theta plus the contribution of the noisy counts
    gap: float  # at least the distance of the objective from its maximum, in nats; not a bound for a factor graph
    iterations: int
    converged: bool


@dataclass(frozen=True)
class NLBP:
    """Non-linear belief propagation (NLBP), Algorithm 1 of Bernstein et al. (2017).

    Starting from n = N mu(theta), each iteration adds the gradient of log p(y | n) to the log-potentials, finds the
    counts n' = N mu(theta + gradient) by belief propagation, and averages them into n with weight alpha. On a junction
    tree it solves problem 6; on a factor graph it approximates it, by loopy propagation.

    Parameters
    ----------
    engine : JunctionTree, TiedTree or FactorGraph
    averages : {"counts", "multipliers"}
        What is averaged: the counts n, as printed in the paper, or the gradients, that is l <- (1 - alpha) l + alpha
        grad log p(y | n) at n = N mu(theta + l). Fixed points are the same. With the latter, n is always the counts of
        `potentials`, and with alpha = 2 / (k + 2) it is the Frank-Wolfe algorithm on the dual of the problem (see
        `counts_by_dual`), whose gap decreases with 1 / k.
    step : callable
        Function from the iteration k = 0, 1, ... to alpha in (0, 1]. The gradient of Laplace noise jumps where a count
        equals its observation, so no constant alpha converges.
    max_iter : int
    tolerance : float
        Duality gap at which to stop, in nats per observed count. It does not depend on the step.

    Notes
    -----
    If k cliques share a table, n is the mean of their counts, and l / k is added to the log-potentials of each.

    Examples
    --------
    >>> from pgmpy_dp.inference import JunctionTree, LaplaceNoise
    >>> tree = JunctionTree.build({"a": 2, "b": 2}, [("a", "b")])
    >>> noise = LaplaceNoise.of_scale(np.array([70.0, 12.0, 8.0, 20.0]), np.full(4, 1.0))
    >>> NLBP(tree, averages="counts").run(np.zeros(4), noise, 100.0).counts.round(1)
    array([59.8, 12.1,  8.1, 20. ])
    """

    engine: Engine
    averages: str = "multipliers"
    step: Callable[[int], float] = lambda k: 2.0 / (k + 2.0)
    max_iter: int = 500
    tolerance: float = 1e-5

    def run(self, potentials: Vector, noise: Noise, total: float) -> CollectiveMarginals:
        """Iterate from n = N mu(theta).

        Parameters
        ----------
        potentials : ndarray of shape (layout.size,)
            theta.
        noise : LaplaceNoise or GaussianNoise
            The noisy counts and their likelihood.
        total : float
            N, in records.
        """
        multipliers = counts = np.zeros_like(potentials)
        for k in range(self.max_iter + 1):
            tilted = potentials + multipliers / self.engine.repeats
            calibration = self.engine.calibrate(tilted)
            own = total * calibration.marginals
            gap = noise.gap(own, multipliers)
            converged = gap <= self.tolerance * own.size and calibration.converged
            if k == 0 or self.averages == "multipliers":
                counts = own
            if converged or k == self.max_iter:
                break
            alpha, gradient = self.step(k), noise.gradient(counts)
            multipliers = multipliers + alpha * (gradient - multipliers)
            if self.averages == "counts":
                result = self.engine.calibrate(potentials + gradient / self.engine.repeats)
                counts = counts + alpha * (total * result.marginals - counts)
        return CollectiveMarginals(counts, tilted, gap, k, converged)


# Newton's method: maximum number of steps, and of conjugate gradients in each, and the accuracy of the latter. Largest
# step, as a share of the way to the edge of the box, and factor by which rounding shrinks after a full step.
_NEWTON_STEPS, _PRODUCTS, _ACCURACY = 500, 300, 1e-2
_TO_THE_EDGE, _SHARPER = 0.9, 0.1


@dataclass(frozen=True)
class LinearMap:
    """Linear function of some of the counts in an engine's layout."""

    places: NDArray[np.int64]  # places of the counts in the layout
    matrix: Any = None

    def apply(self, counts: Vector) -> Vector:
        """Compute A n from all counts of the layout."""
        own: Vector = counts[self.places]
        return own if self.matrix is None else self.matrix @ own

    def adjoint(self, values: Vector, size: int) -> Vector:
        """Compute A' l as a vector of the layout's size."""
        weights = values if self.matrix is None else self.matrix.T @ values
        return np.bincount(self.places, weights, size).astype(np.float64, copy=False)

    def squares(self, variances: Vector) -> Vector:
        """Compute the variances of A n for independent counts of these variances."""
        own: Vector = variances[self.places]
        return own if self.matrix is None else self._squared @ own

    @cached_property
    def _squared(self) -> Any:
        return self.matrix.power(2)


def counts_by_dual(
    engine: Engine,
    potentials: Vector,
    noise: Noise,
    total: float,
    tolerance: float = 1e-6,
    max_iter: int = 500,
    function: LinearMap | None = None,
) -> CollectiveMarginals:
    """Solve problem 6 exactly by its smooth dual.

    Since -|y - n| / b is the minimum of l (n - y) over |l| <= 1 / b, the problem for Laplace noise equals

        minimise  N A(theta + l) - l . y    subject to |l| <= 1 / b, cell by cell,

    which is convex and smooth, with gradient N mu(theta + l) - y; its solution gives n = N mu(theta + l), a fixed point
    of non-linear belief propagation. The duality gap sum(|y - n| / b - l (y - n)) bounds the error. For Gaussian noise
    the box is replaced by sum(sigma^2 l^2) / 2. L-BFGS-B solves it unless b is small relative to N. Then the box is
    wide and L-BFGS-B stalls; for Laplace noise alone on a junction tree, Newton's method continues: it rounds the
    corner of |y - n| less and less, and its steps are computed by conjugate gradients on exact derivatives of
    marginals.

    Potentials are theta, and `noise` is y with its noise, of infinite variance if not observed; with a `function` A, y
    is A n plus noise, and the potentials of the solution are theta + A' l. For a factor graph, A(theta) is Bethe's
    approximation and the gap is not a bound. The solution has converged at a gap of `tolerance` times the larger of 1
    and the loss.
    """
    problem = _Dual(engine, potentials, function, noise, total, tolerance)
    multipliers, iterations = problem.minimise(max_iter)
    result = problem.solution(multipliers, iterations)
    if isinstance(engine, JunctionTree | TiedTree) and isinstance(problem.noise, LaplaceNoise) and not result.converged:
        multipliers, steps = _newton(problem, problem.noise, engine, multipliers)
        result = problem.solution(multipliers, iterations + steps)
    return result


class _Dual:
    """The dual, as a function of multipliers of the observations."""

    def __init__(
        self,
        engine: Engine,
        potentials: Vector,
        function: LinearMap | None,
        noise: Noise,
        total: float,
        tolerance: float,
    ) -> None:
        if function is None:
            positions = np.flatnonzero(np.isfinite(noise.variance))
            noise, function = noise.take(positions), LinearMap(positions)
        self.engine, self.potentials, self.total, self.tolerance = engine, potentials, total, tolerance
        self.function, self.noise = function, noise

    def tilted(self, multipliers: Vector) -> Vector:
        """Compute theta + A' l / k, where k is the number of cliques that share a table."""
        return self.potentials + self.function.adjoint(multipliers, self.potentials.size) / self.engine.repeats

    def counts(self, multipliers: Vector) -> Vector:
        """Compute N mu(theta + A' l / k)."""
        return self.total * self.engine.calibrate(self.tilted(multipliers)).marginals

    def minimise(self, max_iter: int) -> tuple[Vector, int]:
        """Minimise N A(theta + A' l / k) - l . y + the loss's conjugate; return multipliers and iterations."""
        square, maximum = self.noise.conjugate
        bounds = np.column_stack([-maximum, maximum]) if np.isfinite(maximum).any() else None

        def objective(multipliers: Vector) -> tuple[float, Vector]:
            calibration = self.engine.calibrate(self.tilted(multipliers))
            pull = square * multipliers
            value = self.total * calibration.log_partition - multipliers @ self.noise.observed + multipliers @ pull / 2
            slope = self.function.apply(calibration.marginals) + (pull - self.noise.observed) / self.total
            return float(value / self.total), slope

        result = minimise(objective, np.zeros(self.noise.observed.size), max_iter, slope=1e-12, bounds=bounds)
        return result.point, result.iterations

    def gap(self, multipliers: Vector, counts: Vector) -> tuple[float, bool]:
        """Compute the duality gap, and whether it is small relative to the loss."""
        seen = self.function.apply(counts)
        gap = self.noise.gap(seen, multipliers)
        return gap, gap <= self.tolerance * max(1.0, self.noise.loss(seen))

    def solution(self, multipliers: Vector, iterations: int) -> CollectiveMarginals:
        counts = self.counts(multipliers)
        gap, converged = self.gap(multipliers, counts)
        return CollectiveMarginals(counts, self.tilted(multipliers), gap, iterations, converged)


def _newton(problem: _Dual, noise: LaplaceNoise, tree: JunctionTree | TiedTree, start: Vector) -> tuple[Vector, int]:
    """Solve the Laplace dual by Newton's method in x = b l, |x| < 1; return multipliers and steps.

    The loss |d| / b, d = y - A n, is rounded to sqrt((d / b)^2 + c^2), whose conjugate -c sqrt(1 - x^2) keeps x within
    the box. A step s solves (N A Cov A' / b^2 + diag(c (1 - x^2)^(-3/2))) s = d / b - c x / sqrt(1 - x^2). The distance
    1 - |x| to the edge is stored separately, since in x it would be rounded to zero.
    """
    from scipy.sparse.linalg import LinearOperator, cg

    function, total, size = problem.function, problem.total, problem.potentials.size
    observed, scale = noise.observed, noise.scale

    def calibrate(x: Vector) -> Calibration:
        return tree.calibrate(problem.tilted(x / scale))

    def dual(x: Vector, room: Vector, calibration: Calibration) -> float:
        partition = calibration.log_partition
        return float(total * partition - (x / scale) @ observed - corner * np.sqrt(room * (2 - room)).sum())

    x = np.clip(start * scale, -0.99, 0.99)
    room, calibration = 1 - np.abs(x), calibrate(x)
    corner = max(1.0, float(np.abs((observed - function.apply(total * calibration.marginals)) / scale).max()))
    for number in range(_NEWTON_STEPS):
        counts = total * calibration.marginals
        _, converged = problem.gap(x / scale, counts)
        if converged:
            return x / scale, number
        inner = room * (2 - room)
        slope = (observed - function.apply(counts)) / scale - corner * x / np.sqrt(inner)
        barrier = corner / inner**1.5
        variance = function.squares(np.maximum(counts * (1 - calibration.marginals), 0.0) / tree.repeats) / scale**2

        def curvature(direction: Vector, calibration: Calibration = calibration, barrier: Vector = barrier) -> Vector:
            moved = tree.covariance_product(calibration, function.adjoint(direction / scale, size)) / tree.repeats
            return total * function.apply(moved) / scale + barrier * direction

        shape, diagonal = (x.size, x.size), variance + barrier
        step, _ = cg(
            LinearOperator(shape, curvature, dtype=np.float64),
            slope,
            rtol=_ACCURACY,
            maxiter=_PRODUCTS,
            M=LinearOperator(shape, lambda v, d=diagonal: v / d, dtype=np.float64),
        )
        limit = float(np.min(np.where(x * step > 0, room, 1 + np.abs(x)) / np.maximum(np.abs(step), 1e-300)))
        length, before, gain = min(1.0, _TO_THE_EDGE * limit), dual(x, room, calibration), float(step @ slope)
        for _ in range(20):
            moved = x + length * step
            left = np.where(x * moved > 0, room - np.sign(x) * length * step, 1 - np.abs(moved))
            calibration = calibrate(moved)
            if dual(moved, left, calibration) <= before - 1e-4 * length * gain + 1e-12 * abs(before):
                break
            length /= 2
        x, room = moved, left
        if length > 0.5:
            corner *= _SHARPER if length > _TO_THE_EDGE else math.sqrt(_SHARPER)
    return x / scale, _NEWTON_STEPS
