"""EM in collective graphical models as Bernstein et al. (2017) publish it, to compare with `CollectiveEM`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from pgmpy_dp import estimators
from pgmpy_dp.fitting.plans.tying import PooledTables
from pgmpy_dp.inference import LaplaceNoise, Layout, NonlinearBeliefPropagation, laplace_dual
from pgmpy_dp.inference.collective.counts_behind import Engine
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.privacy.checks import Constraint, choice, exact_positive, optional, whole
from pgmpy_dp.release import NoisyMarginals


def laplace_noise(layout: Layout, release: NoisyMarginals | PooledTables) -> LaplaceNoise:
    """Read the noise of a release that has exactly the layout's tables."""
    observed = layout.flatten(release.tables[scope] for scope in layout.scopes).astype(np.float64)
    scales = [math.sqrt(release.variances[scope] / 2.0) for scope in layout.scopes]
    return LaplaceNoise(observed, layout.per_cell(scales))


def published_em(
    engine: Engine,
    start: Vector,
    noise: LaplaceNoise,
    total: float,
    iterations: int,
    e_step: str = "dual",
    inner: int = 500,
) -> Iterator[Vector]:
    """Run Algorithm 2 and give the log-potentials of every iteration.

    The M-step maximises theta . n - N A(theta) at the counts n of the E-step. It costs nothing: n = N mu(theta + l), so
    that theta + l, the E-step's own log-potentials, are a maximum.

    Parameters
    ----------
    engine : JunctionTree, TiedTree or FactorGraph
        Marginals and log Z are approximations on a factor graph.
    start : ndarray of shape (engine.layout.size,)
    noise : LaplaceNoise
    total : float
        N, known or estimated.
    iterations : int
        Of EM.
    e_step : {"dual", "propagation"}
        The dual of problem 6, which a junction tree solves exactly, or the paper's non-linear belief propagation, which
        approaches the same counts, but where noise is a small share of the records needs very many iterations.
    inner : int
        Most iterations of either in an E-step; on a junction tree Newton's method then ends what the dual began.

    Yields
    ------
    ndarray
        The start, then the log-potentials after each iteration.

    Warns
    -----
    ConvergenceWarning
        At the end, if E-steps did not reach their tolerance.
    """
    belief = NonlinearBeliefPropagation(engine, max_iter=inner)
    potentials, gaps = start, []
    yield potentials
    for _ in range(iterations):
        if e_step == "propagation":
            found = belief.run(potentials, noise, total)
        else:
            found = laplace_dual(engine, potentials, noise.observed, noise.scale, total, max_iter=inner)
        potentials = found.potentials
        if not found.converged:
            gaps.append(found.gap)
        yield potentials
    if gaps:
        warnings.warn(
            f"{len(gaps)} of {iterations} E-steps of the published EM did not reach their tolerance in {inner} "
            f"iterations (duality gap up to {max(gaps):.3g} nats): raise inner, or choose e_step='dual' on a junction "
            "tree.",
            ConvergenceWarning,
            stacklevel=2,
        )


@dataclass(eq=False, repr=False)
class PublishedEM(estimators.NaiveMLE):
    """EM in collective graphical models starts from the naive fit here, and every iteration is kept.

    It fits Laplace noise that was added to the tables of the network's own cliques. Run on, it follows the noise: use
    :class:`~pgmpy_dp.CollectiveEM` for networks that are to be near the truth. Of cliques that share a table, but were
    measured one by one, it fits the mean table; the noise of a mean is taken for Laplace noise of its variance.

    Parameters
    ----------
    iterations : int
        Of EM; the paper does not say how many.
    e_step : {"dual", "propagation"}
        The dual of the E-step's problem, which a junction tree solves exactly, or the paper's non-linear belief
        propagation, which approaches the same counts.
    inner : int
        Most iterations of either within an E-step; a warning says where they did not reach the tolerance.
    total : float, optional
        N, which the paper takes as known; by default it is estimated from the release.
    **parameters
        As :class:`~pgmpy_dp.NaiveMLE`; with ``inference="loopy"`` both E-steps are approximations.

    Attributes
    ----------
    path_ : list of ndarray
        Log-potentials of the start and after every iteration, in the order of the cliques.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> from pgmpy_dp import papers
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
        "e_step": choice("dual", "propagation"),
        "inner": whole(1),
        "total": optional(exact_positive),
    }

    iterations: int = 16
    e_step: str = "dual"
    inner: int = 500
    total: float | None = None

    def _maximise(self, engine: Engine, release: Any) -> Vector:
        if release.guarantee.mechanism != "laplace" or not set(engine.layout.scopes) <= set(release.cliques):
            raise ValueError("PublishedEM fits Laplace noise on the tables of the network's own cliques.")
        start = super()._maximise(engine, release)
        noise, total = laplace_noise(engine.layout, release), float(self.total or release.total)
        self.path_ = list(published_em(engine, start, noise, total, self.iterations, self.e_step, self.inner))
        return self.path_[-1]
