"""Hamiltonian Monte Carlo for the posterior of log-potentials given noisy sums of counts.

The mass matrix combines a diagonal with the few stiffest directions of the Gauss-Newton Hessian.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
from tqdm import tqdm

from pgmpy_dp.inference.posterior.log_posterior import LogPosterior
from pgmpy_dp.inference.posterior.mixing import UNCERTAIN, uncertain
from pgmpy_dp.inference.posterior.redrawing import TAIL, HiddenRows, redraw_tails
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.inference.tables.optimisation import minimise

_MODE_ITERATIONS = 100
_STEPS = 6
_ACCEPTANCE = 0.65
_WARM_UP, _THINNING = 250, 2
# A chain is extended while a mean has at least this standard error and fewer than this share of effective draws.
_WANTED = (0.025, 0.5)

Renew = Callable[[Vector, np.random.Generator], Vector]


def sample_posterior(
    density: LogPosterior,
    start: Vector,
    draws: int,
    renew: Renew,
    generator: np.random.Generator,
    warm_up: int = _WARM_UP,
    thinning: int = _THINNING,
    longest: int = 2,
) -> tuple[Vector, Vector, str]:
    """Draw from the posterior by a Markov chain that starts near the mode.

    While the mean of some probability is too uncertain, the chain is extended, up to `longest` times its length.

    Parameters
    ----------
    density : LogPosterior
        Its prior is updated during the chain.
    start : ndarray
    draws : int
    renew : callable
        Draws the prior's parameters given the cells' values, with a generator.
    generator : numpy.random.Generator
    warm_up, thinning : int
        Number of trajectories before the first draw, in which the step size is adapted, and between draws.
    longest : int
        Largest length of the chain, as a multiple of the requested draws: a power of 2.

    Returns
    -------
    points : ndarray of shape (length, density.size)
        Points of the chain; the length is the number of requested draws, or 2, 4, ... times that.
    priors : ndarray of shape (length, density.free)
    poor : str
        Describes what is still too uncertain; empty if nothing is.
    """
    chain = itertools.islice(_chain(density, start, renew, generator, warm_up), thinning - 1, None, thinning)
    found: list[tuple[Vector, Vector]] = []
    # The progress bar is for the longest chain, since the final length is not known in advance.
    with tqdm(total=longest * draws, desc="posterior", leave=False, delay=1.0, disable=None) as bar:
        while True:
            for each in itertools.islice(chain, len(found) or draws):
                found.append(each)
                bar.update()
            points, priors = (np.array(parts) for parts in zip(*found, strict=True))
            shares = _shares(density, points)
            whole = len(found) >= longest * draws
            poor = uncertain(shares, *(UNCERTAIN if whole else _WANTED))
            if whole or not poor:
                return points, priors, poor


def _shares(density: LogPosterior, points: Vector) -> Vector:
    """Compute the probabilities of cells at each point; for rows these are conditional ones."""
    logs = np.array([density.potentials(point) for point in points])
    if density.terms.rows.size:
        return np.asarray(np.exp(logs[:, density.terms.cells]))
    return np.array([density.tree.calibrate(each).marginals[density.terms.cells] for each in logs])


def _chain(
    density: LogPosterior, start: Vector, renew: Renew, generator: np.random.Generator, warm_up: int
) -> Iterator[tuple[Vector, Vector]]:
    """Yield the chain's points, and the prior's parameters, after the warm-up."""

    def downhill(point: Vector) -> tuple[float, Vector]:
        value, gradient = density(point)
        return -value, -gradient

    mode = minimise(downhill, start, _MODE_ITERATIONS, gain=1e-8, memory=10, scale=density.unit(start)).point
    directed = density.terms.rows.size > 0
    point, hidden = mode, None
    if directed:
        curvature = density.curvature(mode)
        hidden = HiddenRows(density.precision_of_rows(mode, curvature))
        point = density.bent(mode, curvature)
    metric = density.metric(point)
    value, gradient = density(point)
    begins = density.terms.bends if directed else mode[: density.free] + np.log(metric.unit[: density.free])
    tails = begins + math.log(TAIL)
    adaptation = _StepSize(0.5)
    for number in itertools.count():
        step = adaptation.current if number < warm_up else adaptation.settled
        momentum = metric.momentum(generator)
        end, slope, before = point.copy(), gradient.copy(), value - metric.kinetic(momentum)
        steps = int(generator.integers(_STEPS // 2, 3 * _STEPS // 2 + 1))
        reached = density.trajectory(end, momentum, slope, step, steps, metric)
        change = reached - metric.kinetic(momentum) - before if math.isfinite(reached) else -math.inf
        accepted = math.exp(min(change, 0.0)) if not math.isnan(change) else 0.0
        if generator.random() < accepted:
            point = end
        if number < warm_up:
            adaptation.learn(accepted)
        density.terms = density.terms._replace(prior=renew(density.values(point)[0], generator))
        state = redraw_tails(density, point, tails, generator)
        if hidden is not None and number >= warm_up / 2:
            state = hidden.redraw(density, state, generator, learning=number < warm_up)
        point, value, gradient = state
        if number >= warm_up:
            yield point, density.terms.prior


class _StepSize:
    """Step size, adapted by dual averaging (Hoffman and Gelman 2014, section 3.2)."""

    def __init__(self, start: float) -> None:
        self.centre, self.current, self.settled = math.log(2 * start), start, start
        self.number, self.excess, self.mean = 0, 0.0, math.log(start)

    def learn(self, accepted: float) -> None:
        self.number += 1
        share = 1 / (self.number + 10)
        self.excess = (1 - share) * self.excess + share * (_ACCEPTANCE - accepted)
        logarithm = self.centre - math.sqrt(self.number) / 0.05 * self.excess
        logarithm = min(max(logarithm, -8.0), 1.1)
        weight = self.number**-0.75
        self.mean = weight * logarithm + (1 - weight) * self.mean
        self.current, self.settled = math.exp(logarithm), math.exp(self.mean)
