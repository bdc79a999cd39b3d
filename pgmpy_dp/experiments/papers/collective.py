"""EM in collective graphical models as Bernstein et al. (2017) publish it, to compare with `CollectiveEM`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pgmpy_dp.inference import LaplaceNoise, Layout, NonlinearBeliefPropagation
from pgmpy_dp.inference.collective import Engine, Noise
from pgmpy_dp.inference.layout import Vector
from pgmpy_dp.release import NoisyMarginals


def laplace_noise(layout: Layout, release: NoisyMarginals) -> LaplaceNoise:
    """Read the noise of a release that has exactly the layout's tables."""
    observed = layout.flatten(release.tables[scope] for scope in layout.scopes).astype(np.float64)
    return LaplaceNoise(observed, layout.per_cell([release.scales[scope] for scope in layout.scopes]))


def published_em(
    engine: Engine, start: Vector, noise: Noise, total: float, iterations: int, inner: int = 50
) -> Iterator[Vector]:
    """Run Algorithm 2, its E-step by non-linear belief propagation, and give the log-potentials of every iteration.

    The M-step maximises theta . n - N A(theta) at the counts n of the E-step. It costs nothing: n = N mu(theta + l), so
    that theta + l, the E-step's own log-potentials, are a maximum.

    Parameters
    ----------
    engine : JunctionTree or FactorGraph
        Loopy propagation on a factor graph.
    start : ndarray of shape (engine.layout.size,)
    noise : LaplaceNoise or GaussianNoise
    total : float
        N, known or estimated.
    iterations : int
        Of EM.
    inner : int
        Of belief propagation in each E-step.

    Yields
    ------
    ndarray
        The start, then the log-potentials after each iteration.
    """
    belief = NonlinearBeliefPropagation(engine, max_iter=inner)
    potentials = start
    yield potentials
    for _ in range(iterations):
        potentials = belief.run(potentials, noise, total).potentials
        yield potentials
