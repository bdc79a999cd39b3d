"""Noisy counts have a likelihood, given the counts that a network expects."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from pgmpy_dp.inference import GaussianNoise, SmoothedLaplaceNoise, gaussian_dual, laplace_dual
from pgmpy_dp.inference.collective.counts_behind import CollectiveMarginals, Engine
from pgmpy_dp.inference.collective.duals import LinearMap
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.release.observations import LEAST_VARIANCE, Observations


def observation_noise(
    mechanism: str, observed: Vector, variance: Vector, counts: Vector, total: float, squares: Vector | None = None
) -> SmoothedLaplaceNoise | GaussianNoise:
    """Add the sampling of the records to the noise of the mechanism: both are about expected values.

    Parameters
    ----------
    mechanism : str
        "laplace" or "gaussian".
    observed, variance : ndarrays
        Noisy counts, or other sums over records, and the variance of their noise.
    counts : ndarray
        Expected values, where to take the sampling variance; at least that of a quarter of a record.
    total : float
    squares : ndarray, optional
        Expected sums of squares over records; those of counts are the counts themselves.
    """
    sampling = np.maximum((counts if squares is None else squares) - counts**2 / total, 0.25)
    if mechanism == "gaussian":
        return GaussianNoise(observed, np.sqrt(variance + sampling))
    scale = np.sqrt(variance / 2.0)
    return SmoothedLaplaceNoise(observed, scale, np.sqrt(scale**2 + sampling))


def explain(seen: Observations, engine: Engine, potentials: Vector, total: float, max_iter: int) -> CollectiveMarginals:
    """Find the most probable counts behind observations under these log-potentials: the E-step, by its dual."""
    scale = np.sqrt(np.maximum(seen.variance, LEAST_VARIANCE) / (1 if seen.gaussian else 2))
    dual = gaussian_dual if seen.gaussian else laplace_dual
    function = LinearMap(engine.layout.places(seen.cliques), seen.matrix)
    return dual(engine, potentials, seen.observed, scale, total, max_iter=max_iter, function=function)


def most_noise(level: float, gaussian: bool) -> float:
    """Find the number of standard deviations that noise exceeds, to one side, with a probability of `level`.

    Examples
    --------
    >>> round(most_noise(0.025, gaussian=True), 2), round(most_noise(0.025, gaussian=False), 2)
    (1.96, 2.12)
    """
    return float(stats.norm.isf(level)) if gaussian else math.log(0.5 / level) / math.sqrt(2)
