"""Contradictions far beyond errors: between public and noisy tables, releases and rules, and parts of a union."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.errors import MIXTURE, warn
from pgmpy_dp.inference.collective.noise_laws import GaussianNoise, Law
from pgmpy_dp.inference.tables.table import Table, Vector, centred
from pgmpy_dp.observed.informed_marginals import InformedMarginals
from pgmpy_dp.observed.reading import Measured, first_containing, law_of
from pgmpy_dp.observed.united_marginals import UnitedMarginals
from pgmpy_dp.release import NoisyMarginals, Release
from pgmpy_dp.release.kinds import MIN_VARIANCE
from pgmpy_dp.schema import Clique, Dependency, Rule

# Probability of a false warning from errors alone, over all cells together.
_LEVEL = 1e-6
# Probability that a union of releases with equal distributions is said to differ in something; and number of such
# unions that are simulated for the mean and variance of a table's null distribution.
_UNLIKE, _DRAWS = 0.01, 200


@dataclass(frozen=True)
class _Test:
    """Numbers that are 0 but for errors of these standard deviations and this distribution, unless `what` is wrong."""

    what: Any
    apart: Vector
    deviations: Vector
    law: Law

    def fails(self, level: float) -> bool:
        return bool((self.apart > self.law.maximum(level) * self.deviations).any())


def _failing(tests: Sequence[_Test], level: float) -> list[_Test]:
    cells = sum(test.apart.size for test in tests)
    return [test for test in tests if test.fails(level / cells)]


def warn_of_contradictions(releases: Sequence[Release]) -> None:
    """Warn of public tables and rules that contradict releases; records may be a sample of a public population."""
    public = [
        f"{test.what} (up to {test.apart.max() / release.total:.2g} of the records)"
        for release in releases
        if isinstance(release, InformedMarginals)
        for test in _failing(list(_public_tests(release)), _LEVEL / 2)
    ]
    if public:
        warn(
            f"Public tables are contradicted far beyond noise, standard errors and sampling: {_listed(public)}. They "
            "are fitted nevertheless: leave out those not about these records, or give errors."
        )
    rules = dict.fromkeys(rule for release in releases for rule in release.schema.rules)
    broken = [
        f"{type(test.what).__name__} of {', '.join(map(repr, test.what.variables))} "
        f"(about {test.apart.max():,.0f} records)"
        for test in _failing([test for rule in rules for test in _rule_tests(rule, releases)], _LEVEL)
    ]
    if broken:
        several = "a rule" if len(broken) == 1 else f"{len(broken)} rules"
        warn(
            f"The release contradicts {several} of the schema far beyond its noise: {_listed(broken)}. "
            "Fitted models follow the rules nevertheless: correct them if they are wrong."
        )


def _listed(texts: Sequence[str]) -> str:
    return "; ".join(texts[:3]) + (" and others" if len(texts) > 3 else "")


def warn_of_tables_left_out(releases: Sequence[Any], seen: Sequence[Clique], kept: Sequence[Clique]) -> None:
    """Warn of public tables that a fit leaves out, since a junction tree that joins their variables is too large."""
    public = [clique for release in releases if isinstance(release, InformedMarginals) for clique in release.public]
    lost = set(map(frozenset, seen)) - set(map(frozenset, kept))
    nodes = {variable for clique in seen for variable in clique}
    results = [clique for clique in public if frozenset(clique) & nodes in lost]
    if results:
        warn(
            f"The fit leaves out the public {', '.join(map(str, results))}: the network does not join their variables, "
            f"and a junction tree that does is too large: add edges between them, or {MIXTURE}."
        )


def _rule_tests(rule: Rule, releases: Sequence[Release]) -> Iterator[_Test]:
    """Test values that are zero without noise if the rule holds."""
    for release in releases:
        structure = release.schema.structure
        routes: dict[str, Any] = {v: structure.dependent.get(v, (v, None)) for v in rule.variables}
        roots = tuple(dict.fromkeys(root for root, _ in routes.values()))
        if _measured(release, rule.variables):
            table, variance = release.marginal(rule.variables)
            forbidden = table[~rule.allowed(release.schema.states)]
        elif isinstance(rule, Dependency):
            if _measured(release, (rule.finer,)) and _measured(release, (rule.coarser,)):
                fine, coarse = release.marginal((rule.finer,)), release.marginal((rule.coarser,))
                codes, states = rule.codes(release.schema.states), coarse[0].size
                differences = np.abs(coarse[0] - np.bincount(codes, fine[0], states))
                spread = coarse[1] + fine[1] * np.bincount(codes, minlength=states)
                yield _Test(rule, differences, np.sqrt(spread), law_of(release))
            continue
        elif _measured(release, roots):
            table, variance = release.marginal(roots)
            axes: dict[str, Any] = dict(zip(roots, np.indices(table.shape, sparse=True), strict=True))
            cells = tuple(axes[root] if codes is None else codes[axes[root]] for root, codes in routes.values())
            forbidden = table[np.broadcast_to(~rule.allowed(release.schema.states)[cells], table.shape)]
        else:
            continue
        if forbidden.size:
            sizes = np.array([*np.ones(forbidden.size), forbidden.size])
            yield _Test(rule, np.array([*forbidden, forbidden.sum()]), np.sqrt(variance * sizes), law_of(release))


def _measured(release: Release, variables: Clique) -> bool:
    return first_containing([release], variables) is not None


def _public_tests(release: InformedMarginals) -> Iterator[_Test]:
    """Test differences between a public table and noisy ones, and between public tables."""
    total, noisy = release.total, release.noisy
    public = {clique: table.scaled(total) for clique, table in release.public.items()}
    for clique, (counts, errors) in public.items():
        shared = {frozenset(clique) & frozenset(measured) for measured in noisy.cliques} - {frozenset()}
        for part in (p for p in shared if not any(p < other for other in shared)):
            names = tuple(variable for variable in clique if variable in part)
            measured, variance = noisy.marginal(names)
            own, spread = _summed(clique, names, counts, errors)
            spread = spread + variance + _chance(own, total, release.total_variance)
            what = f"the public table of {clique} by the noisy one of {', '.join(names)}"
            yield _Test(what, np.abs(own - measured), np.sqrt(spread), law_of(release))
    for first, second in combinations(public, 2):
        names = tuple(variable for variable in first if variable in second)
        if names:
            own, spread = _summed(first, names, *public[first])
            other, further = _summed(second, names, *public[second])
            spread = spread + further + _chance(own, total, 0.0)
            what = f"the public table of {first} by that of {second}"
            yield _Test(what, np.abs(own - other), np.sqrt(spread), GaussianNoise)


def _summed(clique: Clique, names: Clique, counts: Vector, errors: Vector) -> tuple[Vector, Vector]:
    return Table(clique, counts).margin(names).values, Table(clique, errors**2).margin(names).values


def _chance(counts: Vector, total: float, total_variance: float) -> Vector:
    """Compute the variance of counts from the sampling of the records and from their estimated number."""
    share = counts / total
    return np.maximum(counts * (1 - share), MIN_VARIANCE) + share**2 * total_variance


def unlike(union: UnitedMarginals) -> tuple[Clique, ...]:
    """List the variables in which the parts of a union differ, and pairs that differ although neither variable does.

    For each variable, and each measured table, the statistic is the sum over parts and cells of
    (y - T p)^2 / (v + T p), where y are noisy counts of variance v and sum T, and p are the shares in all parts
    together. Its null distribution is that of Poisson counts with shares p and fresh noise, as a gamma distribution
    with the simulated mean and variance. All tests together falsely name something in about one of a hundred unions.
    """
    singles = [(v,) for v in union.variables if v != union.variable]
    whole = {frozenset(clique[1:]): clique[1:] for clique in union.cliques if len(clique) > 2}
    scopes = [*singles, *whole.values()]
    generator = np.random.default_rng(0)
    level = _UNLIKE / len(scopes)
    results: list[Clique] = []
    for scope in scopes:
        if not any(set(other) <= set(scope) for other in results) and _p_value(union, scope, generator) < level:
            results.append(scope)
    return tuple(results)


def _p_value(union: UnitedMarginals, scope: Clique, generator: np.random.Generator) -> float:
    from scipy.stats import gamma

    measured = list(_tables(union, scope))
    if len(measured) < 2 or union.schema.cells(scope) == 1:
        return 1.0
    counts = np.stack([table.ravel() for _, table, _ in measured])
    variance = np.array([max(spread, MIN_VARIANCE) for _, _, spread in measured])[:, None]
    shares = np.maximum(counts.sum(axis=0), 0.0)
    shares = shares / shares.sum() if shares.any() else np.full(shares.size, 1.0 / shares.size)
    means = np.array([part.total for part, _, _ in measured])[:, None] * shares
    drawn = generator.poisson(means, (_DRAWS, *means.shape)).astype(np.float64)
    for number, (part, _, _) in enumerate(measured):
        drawn[:, number] += _drawn_noise(part, scope, variance[number, 0], generator)
    null = _statistic(drawn, variance)
    center, spread = float(null.mean()), float(null.var())
    return float(gamma.sf(_statistic(counts, variance), center**2 / spread, scale=spread / center))


def _drawn_noise(part: Measured, scope: Clique, variance: float, generator: np.random.Generator) -> Vector:
    """Draw the noise of a part's table many times, flat."""
    cells = part.schema.cells(scope)
    if isinstance(part, NoisyMarginals):
        return law_of(part)(np.zeros(cells), np.full(cells, variance)).draw(_DRAWS, generator)
    drawn = np.zeros((_DRAWS, *part.schema.shape(scope)))
    for subset, deviation in part.deviations.items():
        if set(subset) <= set(scope):
            shape = [part.schema.cardinality(variable) for variable in subset]
            own = centred(deviation * generator.standard_normal((_DRAWS, *shape)), 1)
            drawn += Table((-1, *subset), own).expand((-1, *scope)) * (math.prod(shape) / cells)
    return drawn.reshape(_DRAWS, cells)


def _tables(union: UnitedMarginals, scope: Clique) -> Iterator[tuple[Measured, Vector, float]]:
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
    return ((counts - expected) ** 2 / (variance + expected)).sum(axis=(-2, -1))
