"""Test whether the releases of a union could be of records from one distribution."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.fitting.checks.misfit import LEVEL
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.observed.reading import law_of
from pgmpy_dp.observed.united_marginals import UnitedMarginals
from pgmpy_dp.release import NoisyMarginals
from pgmpy_dp.release.kinds import LEAST_VARIANCE
from pgmpy_dp.schema import Clique

# Simulated unions of like releases for the null distribution of a table, whose mean and variance are used.
_DRAWS = 200


def unlike(union: UnitedMarginals, seed: int = 0) -> tuple[Clique, ...]:
    """List the variables in which the parts of a union differ, and pairs that differ although neither variable does.

    For each variable, and each measured table, the statistic is the sum over parts and cells of
    (y - T p)^2 / (v + T p), where y are noisy counts of variance v and sum T, and p are the shares in all parts
    together. Its null distribution is that of Poisson counts with shares p and fresh noise, as a gamma distribution
    with the simulated mean and variance. All tests together falsely name something in about one of a hundred unions.

    Parameters
    ----------
    union : UnitedMarginals
    seed : int
        Of the simulation; privacy does not depend on it.

    Examples
    --------
    >>> from pgmpy_dp.observed.united_marginals import union as united
    >>> from pgmpy_dp.release import Guarantee
    >>> from pgmpy_dp.schema import Schema
    >>> schema, scales = Schema({"smoke": ["yes", "no"]}), {("smoke",): 1.0}
    >>> parts = {
    ...     name: NoisyMarginals(schema, {("smoke",): np.array(counts)}, scales, Guarantee.of(1.0))
    ...     for name, counts in {"north": [310, 680], "south": [290, 704], "west": [600, 390]}.items()
    ... }
    >>> unlike(united(parts)), unlike(united({name: parts[name] for name in ("north", "south")}))
    ((('smoke',),), ())
    """
    singles = [(v,) for v in union.variables if v != union.variable]
    whole = {frozenset(clique[1:]): clique[1:] for clique in union.cliques if len(clique) > 2}
    scopes = [*singles, *whole.values()]
    generator = np.random.default_rng(seed)
    level = LEVEL / len(scopes)
    found: list[Clique] = []
    for scope in scopes:
        if not any(set(other) <= set(scope) for other in found) and _p_value(union, scope, generator) < level:
            found.append(scope)
    return tuple(found)


def _p_value(union: UnitedMarginals, scope: Clique, generator: np.random.Generator) -> float:
    from scipy.stats import gamma

    held = list(_tables(union, scope))
    if len(held) < 2:
        return 1.0
    counts = np.stack([table.ravel() for _, table, _ in held])
    variance = np.array([max(spread, LEAST_VARIANCE) for _, _, spread in held])[:, None]
    shares = np.maximum(counts.sum(axis=0), 0.0)
    shares = shares / shares.sum() if shares.any() else np.full(shares.size, 1.0 / shares.size)
    means = np.array([part.total for part, _, _ in held])[:, None] * shares
    drawn = generator.poisson(means, (_DRAWS, *means.shape)).astype(np.float64)
    for number, (part, table, _) in enumerate(held):
        noise = law_of(part)(np.zeros(table.size), np.full(table.size, variance[number, 0]))
        drawn[:, number] += noise.draw(_DRAWS, generator)
    null = _statistic(drawn, variance)
    center, spread = float(null.mean()), float(null.var())
    return float(gamma.sf(_statistic(counts, variance), center**2 / spread, scale=spread / center))


def _tables(union: UnitedMarginals, scope: Clique) -> Iterator[tuple[NoisyMarginals, Vector, float]]:
    """Yield the table of each part that has one, and the variance of its noise."""
    for part in union.parts.values():
        if any(set(scope) <= set(clique) for clique in part.cliques):
            yield part, *part.marginal(scope)


def _statistic(counts: Vector, variance: Vector) -> NDArray[np.float64]:
    """Compute the statistic of counts of shape (..., parts, cells)."""
    sums = np.maximum(counts.sum(axis=-1, keepdims=True), 1.0)
    shares = np.maximum(counts.sum(axis=-2, keepdims=True), 0.0)
    shares /= np.maximum(shares.sum(axis=-1, keepdims=True), 1.0)
    expected = sums * shares
    found: NDArray[np.float64] = ((counts - expected) ** 2 / (variance + expected)).sum(axis=(-2, -1))
    return found
