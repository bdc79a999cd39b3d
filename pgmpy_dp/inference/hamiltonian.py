"""Hamiltonian Monte Carlo draws from the posterior of log-potentials given noisy sums of counts.

The density is that of `pgmpy_dp.inference.trajectories`: exact inference on a junction tree gives its value and
gradient, both compiled. The mass matrix is a diagonal and the few stiffest directions of the Gauss-Newton Hessian.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from scipy.special import kn, log_ndtr, ndtri_exp
from tqdm import tqdm

from pgmpy_dp.inference.junction_tree import JunctionTree
from pgmpy_dp.inference.layout import Vector
from pgmpy_dp.inference.optimisation import minimise

# An absolute residual is rounded off within this many scales, and the scale adapted so that the variance stays.
_ROUNDING = 1.0
# This is the mean curvature of a rounded absolute loss, in units of one over the squared scale.
_CURVATURE = 0.7

_STIFF = 20
_FLOOR = 0.3
_MODE_ITERATIONS = 100
_STEPS = 16
_ACCEPTANCE = 0.8
# A cell is in its tail where it counts for less than this share of what the noise hides.
_TAIL = 0.1

Renew = Callable[[Vector, np.random.Generator], tuple[Vector, Vector]]


def rounded_laplace(scale: Vector) -> tuple[Vector, Vector]:
    """Find scale and squared corner of a hyperbolic density with the variance of a Laplace one.

    exp(-sqrt(r^2 + (c s)^2) / s) has the variance c s^2 K_2(c) / K_1(c), K being modified Bessel functions.
    """
    fitted = scale * math.sqrt(2.0 / (_ROUNDING * float(kn(2, _ROUNDING) / kn(1, _ROUNDING))))
    return fitted, (_ROUNDING * fitted) ** 2


@dataclass(frozen=True)
class _Metric:
    """The inverse mass is S (1 + U (1 / L - 1) U') S for S = diag(unit), U the rows of `stiff`, L = `stiffness`."""

    unit: Vector
    stiff: Vector
    stiffness: Vector

    def momentum(self, generator: np.random.Generator) -> Vector:
        normal = generator.standard_normal(self.unit.size)
        drawn: Vector = (normal + self.stiff.T @ ((np.sqrt(self.stiffness) - 1) * (self.stiff @ normal))) / self.unit
        return drawn

    def kinetic(self, momentum: Vector) -> float:
        scaled = self.unit * momentum
        if not np.isfinite(scaled).all() or np.abs(scaled).max() > 1e100:
            return math.inf
        along = self.stiff @ scaled
        return 0.5 * float(scaled @ scaled + (1 / self.stiffness - 1) @ along**2)


class LogPosterior:
    """The posterior density can be called from Python here.

    Parameters
    ----------
    tree : JunctionTree
    terms : Terms
        Of `pgmpy_dp.inference.trajectories`, made for that tree.
    """

    def __init__(self, tree: JunctionTree, terms: Any) -> None:
        from pgmpy_dp.inference import trajectories  # numba is needed at the first draw only

        self.tree, self.terms, self._compiled = tree, terms, trajectories
        self.scratch = trajectories.scratch_space(terms, tree.buffer_size)
        self.free, self.effects = terms.cells.size, terms.effects.size
        self.size = self.free + self.effects + 1
        shape = (terms.observed.size, terms.places.size)
        self._sums = sparse.csr_array((terms.entries, terms.columns, terms.starts), shape=shape)

    def __call__(self, point: Vector) -> tuple[float, Vector]:
        gradient = np.empty(self.size)
        value = self._compiled.log_posterior(self.terms, point, gradient, *self.scratch)
        return (float(value), gradient) if math.isfinite(value) else (-math.inf, np.zeros(self.size))

    def potentials(self, point: Vector) -> Vector:
        """Compute the log-potentials of the whole layout."""
        potentials = np.empty(self.tree.layout.size)
        self._compiled.potentials_at(self.terms, point, potentials, *self.scratch[3:])
        return potentials

    def total(self, point: Vector) -> float:
        """Compute the number of records."""
        return float(self.terms.total + self.terms.total_scale * point[-1])

    def tops(self, point: Vector) -> Vector:
        """Find for each cell the largest value in its row; 0 for free potentials."""
        rows = self.terms.rows
        if not rows.size:
            return np.zeros(self.free)
        tops = np.full(rows.max() + 1, -np.inf)
        np.maximum.at(tops, rows, point[: self.free])
        each: Vector = tops[rows]
        return each

    def trajectory(
        self, point: Vector, momentum: Vector, gradient: Vector, value: float, step: float, steps: int, metric: _Metric
    ) -> float:
        """Move all three vectors, and return the log density at the end."""
        easing = 1 / metric.stiffness - 1
        return float(
            self._compiled.trajectory(
                self.terms, point, momentum, gradient, value, step, steps, metric.unit, metric.stiff, easing,
                self.scratch,
            )
        )  # fmt: skip

    def metric(self, point: Vector) -> _Metric:
        """Make the Gauss-Newton Hessian at a point a mass matrix."""
        jacobian, adjoint = self._derivatives(point)
        precision = np.where(self.terms.corner < 0, 1.0, _CURVATURE) / self.terms.scale**2
        own = np.ones(self.size)
        own[: self.free] = np.minimum(np.exp(point[: self.free]), self.terms.prior)
        if not self.terms.rows.size:
            own[: self.free] = self.terms.prior
        own[-1] = self.terms.total_scale == 0
        diagonal, axis = own.copy(), np.zeros(self.size)
        for k in range(self.size):
            axis[k] = 1.0
            diagonal[k] += precision @ jacobian(axis) ** 2
            axis[k] = 0.0
        unit = 1 / np.sqrt(diagonal + _FLOOR)

        def product(vector: Vector) -> Vector:
            scaled = unit * vector.ravel()
            curved: Vector = unit * (adjoint(precision * jacobian(scaled)) + own * scaled)
            return curved

        operator = LinearOperator((self.size, self.size), matvec=product, dtype=np.float64)
        start = np.ones(self.size)
        try:
            values, vectors = eigsh(operator, k=min(_STIFF, self.size - 1), which="LM", tol=1e-2, v0=start)
        except ArpackNoConvergence as partial:  # any directions do; the best are those that converged
            values, vectors = partial.eigenvalues, partial.eigenvectors
        kept = values > 1.0
        return _Metric(unit, np.ascontiguousarray(vectors.T[kept]), values[kept])

    def _derivatives(self, point: Vector) -> tuple[Callable[[Vector], Vector], Callable[[Vector], Vector]]:
        """Return the directional derivatives of the expected sums, and their transpose."""
        terms, tree, free = self.terms, self.tree, self.free
        calibration, total = tree.calibrate(self.potentials(point)), self.total(point)
        shares = self._sums @ calibration.marginals[terms.places]
        rows = np.zeros(free)
        if terms.rows.size:
            rows = np.exp(point[:free] - point[:free].max())
            rows /= np.bincount(terms.rows, rows)[terms.rows]

        def centred(values: Vector, weights: Vector) -> Vector:
            """Return what to subtract: the sum of values * weights in each row."""
            return np.bincount(terms.rows, weights * values)[terms.rows] if terms.rows.size else np.zeros(free)

        def jacobian(vector: Vector) -> Vector:
            direction = np.zeros(tree.layout.size)
            direction[terms.cells] = vector[:free] - centred(vector[:free], rows)
            direction[terms.effects] += vector[free:-1] * terms.spread
            moved = tree.covariance_product(calibration, direction)[terms.places]
            result: Vector = total * (self._sums @ moved) + terms.total_scale * vector[-1] * shares
            return result

        def adjoint(values: Vector) -> Vector:
            direction = np.zeros(tree.layout.size)
            np.add.at(direction, terms.places, total * (self._sums.T @ values))
            slope = tree.covariance_product(calibration, direction)
            own = slope[terms.cells]
            by_cell = own - rows * centred(own, np.ones(free)) if terms.rows.size else own
            by_total = terms.total_scale * float(values @ shares)
            return np.concatenate([by_cell, slope[terms.effects] * terms.spread, [by_total]])

        return jacobian, adjoint


def sample_posterior(
    density: LogPosterior,
    start: Vector,
    draws: int,
    renew: Renew,
    generator: np.random.Generator,
    warm_up: int = 400,
    thinning: int = 10,
) -> tuple[Vector, Vector]:
    """Draw from the posterior by a Markov chain that starts near the mode.

    Parameters
    ----------
    density : LogPosterior
        Its prior is renewed on the way.
    start : ndarray
    draws : int
    renew : callable
        The cells' values and a generator to values and the prior's parameters; leaves the posterior as it is.
    generator : numpy.random.Generator
    warm_up, thinning : int
        Trajectories before the first draw, in which the step size is found, and from draw to draw.

    Returns
    -------
    points : ndarray of shape (draws, density.size)
    priors : ndarray of shape (draws, density.free)
    """

    def downhill(point: Vector) -> tuple[float, Vector]:
        value, gradient = density(point)
        return -value, -gradient

    metric = density.metric(start)
    point = minimise(downhill, start, _MODE_ITERATIONS, gain=1e-8, memory=10, scale=metric.unit).point
    metric = density.metric(point)
    value, gradient = density(point)
    depths = point[: density.free] - density.tops(point) + np.log(_TAIL * metric.unit[: density.free])
    adaptation = _StepSize(0.2)
    points, priors = np.empty((draws, density.size)), np.empty((draws, density.free))
    for number in tqdm(range(warm_up + draws * thinning), desc="posterior", leave=False, delay=1.0, disable=None):
        warm = number < warm_up
        step = adaptation.current if warm else adaptation.settled
        momentum = metric.momentum(generator)
        end, slope, before = point.copy(), gradient.copy(), value - metric.kinetic(momentum)
        steps = int(generator.integers(_STEPS // 2, 3 * _STEPS // 2 + 1))
        reached = density.trajectory(end, momentum, slope, value, step, steps, metric)
        change = reached - metric.kinetic(momentum) - before if math.isfinite(reached) else -math.inf
        accepted = math.exp(min(change, 0.0)) if not math.isnan(change) else 0.0
        if generator.random() < accepted:
            point = end
        if warm:
            adaptation.learn(accepted)
        point[: density.free], prior = renew(point[: density.free], generator)
        density.terms = density.terms._replace(prior=prior)
        point, value, gradient = _redraw_tails(density, point, depths, generator)
        if not warm and (number - warm_up) % thinning == thinning - 1:
            points[(number - warm_up) // thinning] = point
            priors[(number - warm_up) // thinning] = density.terms.prior
    return points, priors


def _redraw_tails(
    density: LogPosterior, point: Vector, depths: Vector, generator: np.random.Generator
) -> tuple[Vector, float, Vector]:
    """Draw all cells that are in their tails from the prior there; all or none are taken.

    A cell that may hold no records is nearly free to move far down, from where trajectories need long to come back.

    Parameters
    ----------
    depths : ndarray
        Where each cell's tail begins, beside the top of its row, which is in no tail.
    """
    edges, prior = density.tops(point) + depths, density.terms.prior
    tail = np.flatnonzero(point[: density.free] < edges)
    edges, prior, old = edges[tail], prior[tail], point[tail]
    logs = np.log1p(-generator.random(tail.size))
    if density.terms.rows.size:  # These are Gamma variables, whose density is nearly a power here.
        new = edges + logs / prior
        proposed = float(prior @ (new - old))
    else:
        new = ndtri_exp(logs + log_ndtr(edges * np.sqrt(prior))) / np.sqrt(prior)
        proposed = 0.5 * float(prior @ (old**2 - new**2))
    moved = point.copy()
    moved[tail] = new
    value, gradient = density(point)
    reached, slope = density(moved)
    if math.log1p(-generator.random()) < reached - value - proposed:
        return moved, reached, slope
    return point, value, gradient


class _StepSize:
    """The step size is adapted by dual averaging (Hoffman and Gelman 2014, section 3.2)."""

    def __init__(self, start: float) -> None:
        self.centre, self.current, self.settled = math.log(2 * start), start, start
        self.number, self.excess, self.mean = 0, 0.0, math.log(start)

    def learn(self, accepted: float) -> None:
        self.number += 1
        share = 1 / (self.number + 10)
        self.excess = (1 - share) * self.excess + share * (_ACCEPTANCE - accepted)
        logarithm = self.centre - math.sqrt(self.number) / 0.05 * self.excess
        logarithm = min(max(logarithm, -8.0), 0.5)
        weight = self.number**-0.75
        self.mean = weight * logarithm + (1 - weight) * self.mean
        self.current, self.settled = math.exp(logarithm), math.exp(self.mean)
