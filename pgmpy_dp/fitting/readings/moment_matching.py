"""Maximum likelihood log-potentials, which match observed marginals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference import Layout
from pgmpy_dp.inference.collective.counts_behind import Engine
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.inference.tables.optimisation import minimise
from pgmpy_dp.inference.tables.table import project_to_simplex
from pgmpy_dp.release import Release
from pgmpy_dp.release.kinds import first_holding
from pgmpy_dp.schema import Clique

# Bound on log-potentials: an empty cell pulls its potential to minus infinity, but beyond this only rounding changes.
_FARTHEST = 100.0
_MISSED = 1e-3


@dataclass(frozen=True)
class LikelihoodFit:
    """Maximum likelihood log-potentials, and their distance from the maximum.

    Attributes
    ----------
    potentials : ndarray of shape (engine.layout.size,)
    slope : float
        Largest component of the gradient: the largest error of a marginal, as a share of the records.
    """

    potentials: Vector
    slope: float

    @property
    def converged(self) -> bool:
        """Whether every marginal is within a thousandth of the records of its target."""
        return self.slope <= _MISSED


def maximise_likelihood(
    engine: Engine,
    marginals: Vector,
    regularization: float,
    max_iter: int,
    tolerance: float,
    gain: float = 1e-15,
    places: NDArray[np.int64] | None = None,
) -> LikelihoodFit:
    """Maximise theta . marginals - A(theta) - regularization |theta|^2 over log-potentials theta, by L-BFGS.

    If k cliques share a table, the mean of their marginals counts k times.

    Parameters
    ----------
    engine : JunctionTree, TiedTree or FactorGraph
    marginals : ndarray
        Clique marginals, each summing to 1; they need not agree with each other.
    regularization : float
        Per record; positive if a marginal has zeros, else there is no maximum.
    max_iter : int
    tolerance : float
        Largest component of the (scaled) gradient at which to stop.
    gain : float
        Relative gain of an iteration at which to stop.
    places : ndarray of int, optional
        Places of the marginals in the engine's layout; all of it by default. Other potentials stay zero.
    """
    size = engine.layout.size
    places = np.arange(size) if places is None else places
    # The Hessian is the covariance of the cell indicators: scaling by its diagonal makes equal steps suit rare and
    # common cells.
    repeats = np.broadcast_to(engine.repeats, size)[places]
    share = np.clip(marginals, 0.0, 1.0)
    scale = 1.0 / np.sqrt(repeats * share * (1 - share) + 2 * regularization + 1e-12)
    target = repeats * marginals

    def spread(own: Vector) -> Vector:
        potentials = np.zeros(size)
        potentials[places] = np.clip(own, -_FARTHEST, _FARTHEST)
        return potentials

    def objective(own: Vector) -> tuple[float, Vector]:
        calibration = engine.calibrate(spread(own))
        value = calibration.log_partition - own @ target + regularization * own @ own
        slope = repeats * calibration.marginals[places] * (np.abs(own) < _FARTHEST) - target
        return float(value), slope + 2 * regularization * own

    start = np.zeros(places.size)
    found = minimise(objective, start, max_iter, slope=tolerance, gain=gain, scale=scale)
    return LikelihoodFit(spread(found.point), found.slope)


def noise_regularization(variances: Sequence[float], total: float) -> float:
    """Return a regularisation of the size of the noise: a third of its mean scale, as a share of the records.

    `variances` are the noise variances of a cell of each table, `total` is the number of records.
    """
    return max(math.sqrt(float(np.mean(variances)) / 2) / (3 * total), 1e-12)


def naive_start(engine: Engine, scopes: Sequence[Clique], releases: Sequence[Release]) -> Vector:
    """Maximise the likelihood of the measured tables, with a regularisation of the size of the noise.

    If several releases contain a table, the first one's is used.
    """
    sources = {scope: first_holding(releases, scope) for scope in scopes}
    held = {scope: source for scope, source in sources.items() if source is not None}
    if not held:
        return np.zeros(engine.layout.size)
    total = releases[0].total
    places = engine.layout.places(list(held))
    own = [source.marginal(scope) for scope, source in held.items()]
    layout = Layout.of(engine.layout.cardinalities, list(held))
    marginals = layout.flatten(project_to_simplex(table / total) for table, _ in own)
    weight = noise_regularization([variance for _, variance in own], total)
    fit = maximise_likelihood(engine, marginals, weight, 200, tolerance=0.0, gain=3e-3 * weight, places=places)
    return fit.potentials
