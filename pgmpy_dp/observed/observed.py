"""Several releases of the same records as one system of linear observations, y = A n + noise.

Some measured tables only test a network: other tables already give all their information about its families. They add
little to a fit if the network is right, and bias its parameters if it is wrong, but they show the errors of its
answers. There may be too many of them for a junction tree.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.inference import JunctionTree
from pgmpy_dp.inference.collective.duals import CollectiveMarginals, Engine, LinearMap, counts_by_dual
from pgmpy_dp.inference.collective.noise_laws import LinearObservations
from pgmpy_dp.inference.tables.table import Layout, Vector, pooled
from pgmpy_dp.observed.contradictions import warn_of_tables_left_out
from pgmpy_dp.observed.reading import observe, observed_parts, side_by_side
from pgmpy_dp.release import Release
from pgmpy_dp.release.kinds import MIN_VARIANCE
from pgmpy_dp.schema import Clique, Schema

# Limits on the junction tree with such tables: its cells, and its size relative to the tree without them. The larger
# limit applies.
_MAX_CELLS, _GROWTH = 2**17, 2


@dataclass(frozen=True, eq=False)
class Observed(LinearObservations):
    """Joint observations y = A n + independent noise from several releases of the same records."""

    releases: tuple[Release, ...]
    schema: Schema
    total: float  # number of records, or its estimate
    total_variance: float  # variance of `total`; 0 if the number is public

    @classmethod
    def of(
        cls,
        releases: Sequence[Any],
        variables: Sequence[str],
        chosen: Callable[[Sequence[Clique]], Sequence[Clique]] = list,
    ) -> Observed:
        """Join the observations of some variables, from those tables of the releases that `chosen` selects."""
        schema = agreed_schema(releases, variables)
        parts: list[LinearObservations] = []
        names: dict[frozenset[str], Clique] = {}
        for release in releases:
            measured = {variable for clique in release.cliques for variable in clique}
            part = observe(release, [variable for variable in variables if variable in measured])
            cliques = tuple(names.setdefault(frozenset(clique), clique) for clique in part.cliques)
            parts.append(part.ordered(cliques, schema.cardinalities()))
        kept = chosen([clique for part in parts for clique in part.cliques])
        joint = side_by_side([part.only(kept) for part in parts])
        total, total_variance = agreed_total(releases)
        return cls(
            joint.cliques, joint.noise, joint.owners, joint.matrix, tuple(releases), schema, total, total_variance
        )

    @cached_property
    def layout(self) -> Layout:
        """Return the layout of the tables."""
        return Layout.of(self.schema.cardinalities(), self.cliques)

    def residuals(self, shares: Vector) -> tuple[Vector, Vector]:
        """Compare with a model's probabilities of the cells of `cliques`."""
        expected, squares = self.total * self.expected(shares), self.total * self.expected_squares(shares)
        sampling = self.repeats * np.maximum(squares - expected**2 / self.total, 0.0)
        weights: Vector = 1.0 / np.sqrt(np.maximum(self.noise.variance, MIN_VARIANCE) + sampling)
        return self.noise.observed - expected, weights

    @property
    def repeats(self) -> int:
        """The maximum number of rows of one unit, which may all be equal."""
        return max(release.guarantee.max_rows or 1 for release in self.releases)

    @property
    def chosen_among(self) -> NDArray[np.int64]:
        """Return the number of candidates from which each table was chosen for its distance from a network, or 0."""
        among = [{frozenset(c): many for c, many in release.chosen_among.items()} for release in self.releases]
        return np.array([max(own.get(frozenset(clique), 0) for own in among) for clique in self.cliques], np.int64)

    def explain(self, engine: Engine, potentials: Vector, max_iter: int) -> CollectiveMarginals:
        """Find the most probable counts given the observations and log-potentials: the E-step, solved by its dual."""
        function = LinearMap(engine.layout.places(self.cliques), self.matrix)
        noise = self.noise.at_least(MIN_VARIANCE)
        return counts_by_dual(engine, potentials, noise, self.total, max_iter=max_iter, function=function)


def observed_of(
    releases: Sequence[Any], nodes: Sequence[str], scopes_of: Callable[[Sequence[Clique]], Sequence[Clique]]
) -> Observed:
    """Join the observations from which a network is fitted, without tests that make its junction tree too large."""
    observed_parts([clique for release in releases for clique in release.cliques], nodes)
    cardinalities = agreed_schema(releases, nodes).cardinalities()

    def chosen(cliques: Sequence[Clique]) -> Sequence[Clique]:
        kept = affordable(cardinalities, scopes_of(cliques), cliques)
        warn_of_tables_left_out(releases, cliques, kept)
        return kept

    return Observed.of(releases, nodes, chosen).of_tables


def agreed_schema(releases: Sequence[Any], nodes: Sequence[str]) -> Schema:
    """Return the schema of a network's variables; SchemaError where releases lack or disagree on one."""
    states: dict[str, Any] = {}
    for release in releases:
        for variable in nodes:
            own = release.schema.states.get(variable)
            if own is not None and states.setdefault(variable, own) != own:
                raise SchemaError(f"Variable {variable!r} has other states in one release than in another.")
    missing = [variable for variable in nodes if variable not in states]
    if missing:
        raise SchemaError(f"The model has variables that are in no release: {', '.join(map(repr, missing))}.")
    rules = [rule for release in releases for rule in release.schema.rules if set(rule.variables) <= set(nodes)]
    return Schema({variable: states[variable] for variable in nodes}, rules=rules)


def agreed_total(releases: Sequence[Any]) -> tuple[float, float]:
    """Return the number of records and its variance: the public number, or the precision-weighted mean of estimates."""
    known = [release for release in releases if not release.total_variance]
    if known or len(releases) == 1:
        first = (known or releases)[0]
        return float(first.total), float(first.total_variance)
    mean, precision = pooled(*zip(*((r.total, 1 / r.total_variance) for r in releases), strict=True))
    return float(mean), float(1 / precision)


def sampling_variance(counts: Vector, total: float | Vector, squares: Vector | None = None) -> Vector:
    """Compute the sampling variance of expected counts, or of sums with these expected squares; at least 0.25."""
    return np.maximum((counts if squares is None else squares) - counts**2 / total, 0.25)


def informative_tables(cliques: Sequence[Clique], scopes: Sequence[Clique]) -> list[Clique]:
    """Leave out tables that only test: not within a family, minimal around one, or alone in covering part of one."""
    sets = [frozenset(clique) for clique in cliques]
    parts = [frozenset(scope) for scope in scopes]
    sets_of, parts_of = _by_variable(sets), _by_variable(parts)
    kept = {own for own in sets for part in parts_of[next(iter(own), None)] if own <= part}
    for part in parts:
        holders = {own for own in sets_of[next(iter(part))] if len(part) > 1 and part <= own}
        kept |= {own for own in holders if not any(other < own for other in holders)}
    for own in sets:
        overlaps = {own & part for variable in own for part in parts_of[variable]}
        if any(kept.isdisjoint(other for other in sets_of[next(iter(o))] if o <= other) for o in overlaps):
            kept.add(own)
    return [clique for clique, own in zip(cliques, sets, strict=True) if own in kept]


def _by_variable(sets: Iterable[frozenset[str]]) -> dict[str | None, list[frozenset[str]]]:
    """Map each variable to the sets that contain it."""
    found: dict[str | None, list[frozenset[str]]] = defaultdict(list)
    for own in sets:
        for variable in own:
            found[variable].append(own)
    return found


def affordable(cardinalities: Mapping[str, int], scopes: Sequence[Clique], cliques: Sequence[Clique]) -> list[Clique]:
    """Keep informative tables, and the first tests while the tree has few cells, or twice those without tests."""
    kept = set(map(frozenset, informative_tables(cliques, scopes)))
    tests = [clique for clique in cliques if frozenset(clique) not in kept]

    def taken(count: int) -> list[Clique]:
        also = set(map(frozenset, tests[:count]))
        return [clique for clique in cliques if frozenset(clique) in kept or frozenset(clique) in also]

    def cells(count: int) -> int:
        return tree_cells(cardinalities, [*scopes, *taken(count)])

    if not tests:
        return list(cliques)
    maximum = max(_MAX_CELLS, _GROWTH * cells(0))
    if cells(len(tests)) <= maximum:
        return list(cliques)
    return taken(bisect_right(range(len(tests)), maximum, key=cells) - 1)


def first_tests(
    cardinalities: Mapping[str, int], scopes: Sequence[Clique], cliques: Sequence[Clique], maximum: int
) -> list[Clique]:
    """Keep all informative tables, and the first tests of the network, up to `maximum` cells of tables in total."""
    kept = set(map(frozenset, informative_tables(cliques, scopes)))
    sizes = {clique: math.prod(cardinalities[variable] for variable in clique) for clique in cliques}
    left = maximum - sum(size for clique, size in sizes.items() if frozenset(clique) in kept)
    tests = [clique for clique in sizes if frozenset(clique) not in kept]
    kept_tests = set(tests[: bisect_right(list(itertools.accumulate(sizes[clique] for clique in tests)), left)])
    return [clique for clique in cliques if frozenset(clique) in kept or clique in kept_tests]


def tree_cells(cardinalities: Mapping[str, int], scopes: Sequence[Clique]) -> int:
    """Count the cells of the junction tree of the given scopes."""
    cliques = JunctionTree.cliques_of(cardinalities, scopes)
    return sum(int(np.prod([cardinalities[v] for v in clique], dtype=object)) for clique in cliques)
