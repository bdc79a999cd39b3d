"""EM in collective graphical models as Bernstein et al. (2017) publish it, to compare with `CollectiveEM`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pgmpy_dp import estimators
from pgmpy_dp.inference import LaplaceNoise, Layout, NonlinearBeliefPropagation, laplace_dual
from pgmpy_dp.inference.collective import Engine, Noise
from pgmpy_dp.inference.layout import Vector
from pgmpy_dp.privacy.checks import Constraint, choice, exact_positive, optional, whole
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


@dataclass(eq=False, repr=False)
class PublishedEM(estimators.NaiveMLE):
    """EM in collective graphical models starts from the naive fit here, and every iteration is kept.

    It fits Laplace noise that was added to the tables of the network's own cliques. Run on, it follows the noise: use
    :class:`~pgmpy_dp.CollectiveEM` for networks that are to be near the truth.

    Parameters
    ----------
    iterations : int
        Of EM; the paper does not say how many.
    e_step : {"propagation", "dual"}
        Non-linear belief propagation, or the exact dual of the same problem, which needs a junction tree.
    inner : int
        Most iterations of either within an E-step.
    total : float, optional
        N, which the paper takes as known; by default it is estimated from the release.
    **parameters
        As :class:`~pgmpy_dp.NaiveMLE`; with ``inference="loopy"`` propagation is loopy.

    Attributes
    ----------
    path_ : list of ndarray
        Log-potentials of the start and after every iteration, in the order of the cliques.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> from pgmpy_dp.experiments import papers
    >>> schema = dp.Schema({"a": ["x", "y"], "b": ["x", "y"]})
    >>> records = pd.DataFrame({"a": ["x", "x", "y", "y"] * 25, "b": ["x", "x", "y", "x"] * 25})
    >>> data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(0))
    >>> published = papers.PublishedEM(epsilon=1.0, iterations=8)
    >>> _ = dp.PrivateMarkovNetwork([("a", "b")]).fit(data, estimator=published)
    >>> len(published.path_)
    9
    """

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        **estimators.NaiveMLE._constraints,
        "iterations": whole(1),
        "e_step": choice("propagation", "dual"),
        "inner": whole(1),
        "total": optional(exact_positive),
    }

    iterations: int = 16
    e_step: str = "propagation"
    inner: int = 50
    total: float | None = None

    def _maximise(self, engine: Engine, release: Any) -> Vector:
        if release.guarantee.mechanism != "laplace" or not set(engine.layout.scopes) <= set(release.cliques):
            raise ValueError("PublishedEM fits Laplace noise on the tables of the network's own cliques.")
        start = super()._maximise(engine, release)
        noise, total = laplace_noise(engine.layout, release), float(self.total or release.total)
        if self.e_step == "propagation":
            self.path_ = list(published_em(engine, start, noise, total, self.iterations, self.inner))
            return self.path_[-1]
        self.path_ = [start]
        for _ in range(self.iterations):
            found = laplace_dual(engine, self.path_[-1], noise.observed, noise.scale, total, max_iter=self.inner)
            self.path_.append(found.potentials)
        return self.path_[-1]
