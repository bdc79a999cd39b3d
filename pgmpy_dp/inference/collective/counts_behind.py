"""MAP inference of counts from noisy counts in a collective graphical model.

Given log-potentials theta, a population of N records and noisy counts y of every clique, find the clique counts n that
maximise

    theta . n + H(n) + log p(y | n)    over N x the marginal polytope

(Bernstein et al. 2017, problem 6), where H is N times the entropy of the distribution with marginals n / N.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pgmpy_dp.inference.collective.noise_laws import Noise
from pgmpy_dp.inference.tables.layout import Layout, Vector
from pgmpy_dp.inference.trees.junction_tree import Calibration


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
    """Clique counts of a collective graphical model.

    Attributes
    ----------
    counts : ndarray of shape (layout.size,)
        n, in records.
    potentials : ndarray of shape (layout.size,)
        Log-potentials whose marginals are `counts` / N: theta plus the contribution of the noisy counts.
    gap : float
        Upper bound on the distance of the objective from its maximum, in nats; zero only at the maximum. For a factor
        graph it is not a bound.
    iterations : int
    converged : bool
    """

    counts: Vector
    potentials: Vector
    gap: float
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
                found = self.engine.calibrate(potentials + gradient / self.engine.repeats)
                counts = counts + alpha * (total * found.marginals - counts)
        return CollectiveMarginals(counts, tilted, gap, k, converged)
