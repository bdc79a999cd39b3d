"""The counts behind noisy counts: MAP inference in a collective graphical model.

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
from scipy.optimize import minimize

from pgmpy_dp.inference.junction_tree import Calibration, JunctionTree
from pgmpy_dp.inference.layout import Layout, Vector


class Engine(Protocol):
    """What answers for marginals: a junction tree, or loopy propagation on a factor graph."""

    @property
    def layout(self) -> Layout: ...

    def calibrate(self, potentials: Vector) -> Calibration: ...


class Noise(Protocol):
    """Any noise with a log density and its gradient with respect to the noiseless counts."""

    def log_density(self, counts: Vector) -> float: ...

    def gradient(self, counts: Vector) -> Vector: ...


@dataclass(frozen=True)
class CollectiveMarginals:
    """Clique counts of a collective graphical model.

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
    """Algorithm 1 of Bernstein et al. (2017) on a junction tree or, loopily, on a factor graph.

    Repeats n <- (1 - alpha) n + alpha N mu(theta + grad log p(y | n)). With Laplace noise the gradient jumps where a
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
    tree: JunctionTree,
    potentials: Vector,
    observed: Vector,
    scale: Vector,
    total: float,
    tolerance: float = 1e-6,
    max_iter: int = 500,
) -> CollectiveMarginals:
    """Problem 6 for Laplace noise, exactly, by its smooth dual.

    Since -|y - n| / b is the least of l (n - y) over |l| <= 1 / b, the problem equals

        minimise  N A(theta + l) - l . y    subject to |l| <= 1 / b, cell by cell,

    convex and smooth, with gradient N mu(theta + l) - y; its solution gives n = N mu(theta + l), a fixed point of
    non-linear belief propagation. L-BFGS-B solves it; the duality gap sum(|y - n| / b - l (y - n)) bounds the error.

    Parameters
    ----------
    tree : JunctionTree
    potentials, observed, scale : ndarrays of shape (layout.size,)
        theta; noisy counts y; noise scales b in counts.
    total : float
        N, in records.
    tolerance : float
        Gap at which the solution counts as converged, as a share of the largest of 1 and the loss |y - n| / b.
    max_iter : int
    """
    bound = 1.0 / scale

    def objective(multipliers: Vector) -> tuple[float, Vector]:
        calibration = tree.calibrate(potentials + multipliers)
        value = total * calibration.log_partition - multipliers @ observed
        return value / total, calibration.marginals - observed / total

    result = minimize(
        objective,
        np.zeros(potentials.size),
        jac=True,
        method="L-BFGS-B",
        bounds=np.column_stack([-bound, bound]),
        options={"maxiter": max_iter, "maxfun": 2 * max_iter, "ftol": 0.0, "gtol": 1e-12, "maxcor": 20},
    )
    tilted = potentials + result.x
    counts = total * tree.calibrate(tilted).marginals
    residual = observed - counts
    loss = np.abs(residual) / scale
    gap = float((loss - result.x * residual).sum())
    return CollectiveMarginals(counts, tilted, gap, int(result.nit), gap <= tolerance * max(1.0, float(loss.sum())))
