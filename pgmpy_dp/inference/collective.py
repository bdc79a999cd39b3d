"""MAP inference in a collective graphical model finds the counts behind noisy counts.

Given log-potentials theta, a population of N records and noisy counts y of every clique, find the clique counts n
that maximise

    theta . n + H(n) + log p(y | n)    over N x the marginal polytope

(Bernstein et al. 2017, problem 6), H being N times the entropy of the distribution with marginals n / N.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pgmpy_dp.inference.junction_tree import Calibration
from pgmpy_dp.inference.layout import Layout, Vector
from pgmpy_dp.inference.optimisation import minimise


class Engine(Protocol):
    """An engine answers for marginals: a junction tree, or loopy propagation on a factor graph."""

    @property
    def layout(self) -> Layout: ...

    def calibrate(self, potentials: Vector) -> Calibration: ...


class Noise(Protocol):
    """A noise has a log density and its gradient with respect to the noiseless counts."""

    def log_density(self, counts: Vector) -> float: ...

    def gradient(self, counts: Vector) -> Vector: ...


@dataclass(frozen=True)
class CollectiveMarginals:
    """These are the clique counts of a collective graphical model.

    Attributes
    ----------
    counts : ndarray of shape (layout.size,)
        n, in records.
    potentials : ndarray of shape (layout.size,)
        Log-potentials of which `counts` / N are the marginals: theta plus what the noisy counts add to it.
    gap : float
        For the dual: upper bound on how far the objective is from its maximum, in nats. For belief propagation: the
        largest change of a count in the last step, in records.
    iterations : int
    converged : bool
    """

    counts: Vector
    potentials: Vector
    gap: float
    iterations: int
    converged: bool


@dataclass(frozen=True)
class NonlinearBeliefPropagation:
    """Algorithm 1 of Bernstein et al. (2017) runs on a junction tree or, loopily, on a factor graph.

    It repeats n <- (1 - alpha) n + alpha N mu(theta + grad log p(y | n)). With Laplace noise the gradient jumps where a
    count meets its observation, and a constant alpha chatters there for ever; the default alpha = 2 / (k + 2) is that
    of generalised Frank-Wolfe, and converges.

    Attributes
    ----------
    engine : JunctionTree or FactorGraph
    step : callable
        Iteration number k = 0, 1, ... to alpha in (0, 1].
    max_iter : int
    tolerance : float
        Stop when no count moves by more than this share of N.
    """

    engine: Engine
    step: Callable[[int], float] = lambda k: 2.0 / (k + 2.0)
    max_iter: int = 500
    tolerance: float = 1e-6

    def run(self, potentials: Vector, noise: Noise, total: float) -> CollectiveMarginals:
        """Iterate from n = N mu(theta).

        Parameters
        ----------
        potentials : ndarray of shape (layout.size,)
            theta.
        noise : object with `gradient`
            Likelihood of the noisy counts.
        total : float
            N, in records.
        """
        counts = total * self.engine.calibrate(potentials).marginals
        tilted, moved = potentials, np.inf
        for k in range(self.max_iter):
            tilted = potentials + noise.gradient(counts)
            change = self.step(k) * (total * self.engine.calibrate(tilted).marginals - counts)
            counts = counts + change
            moved = float(np.abs(change).max(initial=0.0))
            if moved <= self.tolerance * total:
                return CollectiveMarginals(counts, tilted, moved, k + 1, True)
        return CollectiveMarginals(counts, tilted, moved, self.max_iter, False)


def laplace_dual(
    engine: Engine,
    potentials: Vector,
    observed: Vector,
    scale: Vector,
    total: float,
    tolerance: float = 1e-6,
    max_iter: int = 500,
) -> CollectiveMarginals:
    """Solve problem 6 for Laplace noise exactly, by its smooth dual.

    Since -|y - n| / b is the least of l (n - y) over |l| <= 1 / b, the problem equals

        minimise  N A(theta + l) - l . y    subject to |l| <= 1 / b, cell by cell,

    convex and smooth, with gradient N mu(theta + l) - y; its solution gives n = N mu(theta + l), a fixed point of
    non-linear belief propagation. L-BFGS-B solves it; the duality gap sum(|y - n| / b - l (y - n)) bounds the error.

    Parameters
    ----------
    engine : JunctionTree or FactorGraph
        With a factor graph, A is Bethe's approximation and the gap no bound.
    potentials, observed, scale : ndarrays of shape (layout.size,)
        theta; noisy counts y; noise scales b in counts, infinite where nothing was observed.
    total : float
        N, in records.
    tolerance : float
        Gap at which the solution counts as converged, as a share of the largest of 1 and the loss |y - n| / b.
    max_iter : int
    """
    bound = 1.0 / scale
    multipliers, counts, iterations = _minimise_dual(
        engine, potentials, observed, total, np.zeros_like(bound), np.column_stack([-bound, bound]), max_iter
    )
    residual = observed - counts
    loss = np.abs(residual) / scale
    gap = float((loss - multipliers * residual).sum())
    converged = gap <= tolerance * max(1.0, float(loss.sum()))
    return CollectiveMarginals(counts, potentials + multipliers, gap, iterations, converged)


def gaussian_dual(
    engine: Engine,
    potentials: Vector,
    observed: Vector,
    scale: Vector,
    total: float,
    tolerance: float = 1e-6,
    max_iter: int = 500,
) -> CollectiveMarginals:
    """Solve problem 6 for Gaussian noise of standard deviation `scale`, as `laplace_dual` does for Laplace noise.

    The dual is N A(theta + l) - l . y + sum(scale^2 l^2) / 2 without bounds, solved where l = (y - n) / scale^2; the
    gap is sum((y - n - scale^2 l)^2 / scale^2) / 2.
    """
    seen = np.isfinite(scale)
    square = np.where(seen, scale, 1.0) ** 2
    limits = np.where(seen, np.inf, 0.0)
    multipliers, counts, iterations = _minimise_dual(
        engine, potentials, observed, total, square, np.column_stack([-limits, limits]), max_iter
    )
    residual = np.where(seen, observed - counts, 0.0)
    gap = float((((residual - square * multipliers) ** 2) / square).sum() / 2)
    converged = gap <= tolerance * max(1.0, float((residual**2 / square).sum() / 2))
    return CollectiveMarginals(counts, potentials + multipliers, gap, iterations, converged)


def _minimise_dual(
    engine: Engine,
    potentials: Vector,
    observed: Vector,
    total: float,
    square: Vector,
    bounds: Vector,
    max_iter: int,
) -> tuple[Vector, Vector, int]:
    """Find multipliers, counts and iterations of: minimise N A(theta + l) - l . y + square . l^2 / 2 within bounds."""

    def objective(multipliers: Vector) -> tuple[float, Vector]:
        calibration = engine.calibrate(potentials + multipliers)
        pull = square * multipliers
        value = total * calibration.log_partition - multipliers @ observed + multipliers @ pull / 2
        return float(value / total), calibration.marginals + (pull - observed) / total

    found = minimise(objective, np.zeros(potentials.size), max_iter, slope=1e-12, bounds=bounds)
    counts = total * engine.calibrate(potentials + found.point).marginals
    return found.point, counts, found.iterations
