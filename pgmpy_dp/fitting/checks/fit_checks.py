"""Test of a fitted network or mixture against the releases that it was fitted to."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from pgmpy.models import DiscreteBayesianNetwork, DiscreteMarkovNetwork
from scipy.sparse.linalg import LinearOperator

from pgmpy_dp.fitting.checks.misfit import FitCheck, fit_test, scoring_step
from pgmpy_dp.inference import Calibration, JunctionTree, Layout, TreeTooLargeError, sample
from pgmpy_dp.inference.mixtures.mixture import Mixture
from pgmpy_dp.inference.tables.table import Rows, Table, Vector
from pgmpy_dp.inference.trees.factor_graph import MAX_TABLE_CELLS
from pgmpy_dp.inference.trees.junction_tree import counted, sample_counts
from pgmpy_dp.observed.factors import Network, log_linear
from pgmpy_dp.observed.observed import Observed, agreed_schema, first_tests, informative_tables, tree_cells
from pgmpy_dp.observed.reading import observed_parts
from pgmpy_dp.release import Release
from pgmpy_dp.schema import Clique, Schema

# Number of simulated draws of the null distribution: the maximum, the minimum for many cells, and the maximum times
# cells.
_MAX_DRAWS, _FEWEST_DRAWS, _MAX_DRAWN = 1000, 400, 2**20
# Maximum number of scoring steps; one suffices for a single release, and for several if none is far noisier than
# another.
_STEPS = 2
# Largest number of derivatives of all tables by all parameters.
_MAX_DERIVATIVES = 2**26
# Largest junction tree, in cells, of the part of a network that is tested if the whole is too wide.
_MAX_PART = 2**20
# Largest junction tree, in cells, of the network and tables that only test it; or a multiple of the network's tree. If
# all of these tables together need a larger tree, they are divided among several trees.
_MAX_CELLS, _GROWTH = 2**14, 2
# Number of records drawn at a time, the maximum drawn in all, and the minimum number of distinct draws for that.
_AT_A_TIME, _MAX_RECORDS, _DISTINCT = 2**16, 2**22, 200
# A drawn record that stands for several changes counts by at most _JUMP standard deviations of the noise; minimum
# number of records in a draw.
_JUMP, _FEWEST_RECORDS = 0.5, 500
# Largest work (cells times derivatives and draws) of a check of about a second, such as all pairs of sachs.
QUICK = 2**25


def check_network(network: Network, releases: Sequence[Release], seed: int = 0, max_work: float = math.inf) -> FitCheck:
    """Test whether releases contradict a network; if it is too wide for memory, a part of it is tested."""
    releases = [release.as_measured for release in releases]
    shown = tuple(node for node in network.nodes() if node not in network.latents)
    try:
        return replace(_checked(network, releases, seed, max_work), variables=shown)
    except TreeTooLargeError:
        part = _part(network, releases) if max_work == math.inf else None
        if part is None:
            raise
    every = _measured(releases, list(network.nodes()))
    result = _checked(part, releases, seed, max_work)
    left_out = len([clique for clique in every if not set(clique) <= set(part.nodes())])
    return replace(result, left_out=left_out, variables=shown)


def _measured(releases: Sequence[Release], nodes: Sequence[str]) -> list[Clique]:
    """List the measured cliques of a network's variables, each once."""
    parts = (observed_parts(release.cliques, [v for v in nodes if v in release.variables]) for release in releases)
    return list({frozenset(clique): clique for part in parts for clique in part.values()}.values())


def _part(network: Network, releases: Sequence[Release]) -> DiscreteBayesianNetwork | None:
    """Restrict a Bayesian network to the largest testable part; tables that reveal missing edges come first."""
    if isinstance(network, DiscreteMarkovNetwork):
        return None
    states = agreed_schema(releases, list(network.nodes()))
    cpds = {cpd.variable: cpd for cpd in network.get_cpds()}
    families = {variable: set(cpd.variables) for variable, cpd in cpds.items()}
    above = {variable: nx.ancestors(network, variable) | {variable} for variable in cpds}
    every = _measured(releases, list(network.nodes()))
    closed = {clique: set().union(*(above[variable] for variable in clique)) for clique in every}
    fitted = {clique for clique in every if any(set(clique) <= family for family in families.values())}
    every.sort(key=lambda clique: (len(closed[clique]), clique in fitted))

    def closure(count: int) -> set[str]:
        return set().union(*(closed[clique] for clique in every[:count]))

    def work(count: int) -> int:
        kept = closure(count)
        tables = {tuple(v for v in clique if v in kept) for clique in every} - {()}
        scopes = [tuple(families[variable]) for variable in kept]
        if tree_cells(states.cardinalities(), scopes or list(tables)) > _MAX_PART:
            return _MAX_DERIVATIVES + 1
        return sum(map(states.cells, tables)) * sum(map(states.cells, scopes))

    count = bisect_right(range(1, len(every) + 1), _MAX_DERIVATIVES, key=work)
    if not count:
        return None
    kept = closure(count)
    part = DiscreteBayesianNetwork([edge for edge in network.edges() if set(edge) <= kept])
    part.add_nodes_from([variable for variable in network.nodes() if variable in kept])
    part.add_cpds(*(cpds[variable] for variable in part.nodes()))
    return part


def _checked(network: Network, releases: Sequence[Release], seed: int, max_work: float) -> FitCheck:
    nodes = list(network.nodes())
    schema = agreed_schema(releases, nodes)
    layout, logs, _ = log_linear(network, schema.states)
    rows = None if isinstance(network, DiscreteMarkovNetwork) else Rows(layout)
    cards, scopes = layout.cardinalities, layout.scopes
    seen = Observed.of(releases, nodes, partial(first_tests, cards, scopes, maximum=_MAX_DERIVATIVES // layout.size))
    maximum = max(_MAX_CELLS, _GROWTH * tree_cells(cards, scopes))
    whole = tree_cells(cards, [*scopes, *seen.cliques]) <= maximum
    near = seen if whole else Observed.of(releases, nodes, partial(informative_tables, scopes=scopes))
    tables = dict.fromkeys(near.cliques)
    others = [clique for clique in dict.fromkeys(seen.cliques) if clique not in tables]
    tree = JunctionTree.build(cards, dict.fromkeys([*scopes, *tables]), max_cells=MAX_TABLE_CELLS)
    draws = int(np.clip(_MAX_DRAWN // seen.layout.size, _FEWEST_DRAWS, _MAX_DRAWS))
    cells, work = seen.layout.size, (seen.layout.size + tree.table_cells) * (layout.size + draws)
    if cells * layout.size > _MAX_DERIVATIVES or work > max_work:
        raise TreeTooLargeError(
            f"the test of fit needs derivatives of {cells:,} measured cells by {layout.size:,} parameters in a tree of "
            f"{tree.table_cells:,} cells, more than allowed"
        )
    # The null distribution assumes small steps of the parameters, which may be far off if a release was attached later.
    for _ in releases[:_STEPS]:
        at = _Calibrated.of(tree, layout, logs, rows)
        step = scoring_step(near, at.shares(near.cliques), at.derivatives(near.cliques))
        logs = logs.copy()
        logs[at.free] += step
        logs = logs if rows is None else rows.normalise(logs)
    at = _Calibrated.of(tree, layout, logs, rows)
    holders: dict[Clique, _Calibrated] = {}
    for group in _grouped(cards, scopes, others, _GROWTH * tree_cells(cards, scopes)):
        joined = _Calibrated.of(JunctionTree.build(cards, [*scopes, *group]), layout, logs, rows)
        holders |= dict.fromkeys(group, joined)

    def tangents(cliques: Sequence[Clique]) -> Vector:
        if tables.keys() >= set(cliques):
            return at.tangents(cliques)
        return np.vstack([holders.get(clique, at).tangents([clique]) for clique in cliques])

    shares = np.concatenate([holders.get(clique, at).shares([clique]) for clique in seen.cliques])
    generator = np.random.default_rng(seed)
    if others:
        draw = partial(sample, tree, at.calibration, generator=generator)
        deviations = _drawn_records(draw, tree.layout.cardinalities, seen, shares, draws)
    else:
        deviations = _drawn_tables(tree, at.calibration, seen, shares, draws, generator)
    result = fit_test(seen, shares, deviations, tangents, tables.keys(), seed)
    tested = set(map(frozenset, seen.cliques))  # of a union, also the numbers of records of its parts
    return replace(result, left_out=sum(frozenset(clique) not in tested for clique in _measured(releases, nodes)))


def _grouped(
    cards: Mapping[str, int], scopes: Sequence[Clique], tests: Sequence[Clique], maximum: int
) -> Iterator[Sequence[Clique]]:
    """Divide tables into groups whose tree with the network's tables has at most `maximum` cells, or single tables."""
    if len(tests) < 2 or tree_cells(cards, [*scopes, *tests]) <= maximum:
        yield from [tests] if tests else []
        return
    half = len(tests) // 2
    yield from _grouped(cards, scopes, tests[:half], maximum)
    yield from _grouped(cards, scopes, tests[half:], maximum)


@dataclass(frozen=True)
class _Calibrated:
    """A tree of a network's factors and further tables, calibrated at the network's log-potentials."""

    tree: JunctionTree
    layout: Layout
    logs: Vector
    rows: Rows | None
    calibration: Calibration

    @classmethod
    def of(cls, tree: JunctionTree, layout: Layout, logs: Vector, rows: Rows | None) -> _Calibrated:
        potentials = np.zeros(tree.layout.size)
        potentials[tree.layout.places(layout.scopes)] = logs
        return cls(tree, layout, logs, rows, tree.calibrate(potentials))

    def shares(self, tables: Sequence[Clique]) -> Vector:
        """Return tables that the tree contains, concatenated."""
        return self.calibration.marginals[self.tree.layout.places(tables)]

    @cached_property
    def free(self) -> NDArray[np.int64]:
        """Positions of the parameters: all log-potentials, or all in a row of a CPD except for the largest."""
        if self.rows is None:
            return np.arange(self.logs.size)
        order = np.lexsort((self.logs, self.rows.numbers))  # the last of each row is its largest
        return np.sort(order[:-1][np.diff(self.rows.numbers[order]) == 0])

    def derivatives(self, tables: Sequence[Clique]) -> LinearOperator:
        """Return derivatives of tables in the tree by the parameters, with the rows of CPDs kept normalised."""
        positions, own = (self.tree.layout.places(scopes) for scopes in (tables, self.layout.scopes))
        masses = np.exp(self.logs)

        def product(places: NDArray[np.int64], values: Vector) -> Vector:
            direction = np.zeros(self.tree.layout.size)
            direction[places] = values
            return self.tree.covariance_product(self.calibration, direction)

        def of_cells(step: Vector) -> Vector:
            moved = np.zeros(self.logs.size)
            moved[self.free] = step
            moved = moved if self.rows is None else moved - self.rows.sums(masses * moved)
            return product(own, moved)[positions]

        def of_parameters(cells: Vector) -> Vector:
            moved = product(positions, cells)[own]
            moved = moved if self.rows is None else moved - masses * self.rows.sums(moved)
            return moved[self.free]

        shape = positions.size, self.free.size
        return LinearOperator(shape, matvec=of_cells, rmatvec=of_parameters, dtype=np.float64)

    def tangents(self, tables: Sequence[Clique]) -> Vector:
        """Return these derivatives as a matrix."""
        derivatives = self.derivatives(tables)
        cells, parameters = derivatives.shape
        tangents, one = np.empty((cells, parameters)), np.zeros(min(cells, parameters))
        for number in range(one.size):
            one[number] = 1.0
            if cells < parameters:
                tangents[number] = derivatives.rmatvec(one)
            else:
                tangents[:, number] = derivatives.matvec(one)
            one[number] = 0.0
        return tangents


def _drawn_tables(
    tree: JunctionTree,
    calibration: Calibration,
    seen: Observed,
    shares: Vector,
    draws: int,
    generator: np.random.Generator,
) -> Vector:
    """Simulate deviations of tables in a tree for the actual number of records, without drawing the records."""
    count, layout = max(1, round(seen.total)), seen.layout
    number = {variable: position for position, variable in enumerate(tree.variables)}
    scopes = [tuple(number[variable] for variable in clique) for clique in layout.scopes]
    holders = [
        min(
            (position for position, clique in enumerate(tree.cliques) if set(scope) <= set(clique.table.scope)),
            key=lambda position: tree.cliques[position].table.cells,
        )
        for scope in scopes
    ]
    part = int(np.clip(2**23 // tree.table_cells, 1, draws))
    parts = []
    for start in range(0, draws, part):
        drawn = sample_counts(tree, calibration, count, min(part, draws - start), generator)
        tables = [
            Table((-1, *tree.cliques[holder].table.scope), drawn[holder]).margin((-1, *scope)).values
            for scope, holder in zip(scopes, holders, strict=True)
        ]
        parts.append(np.hstack([table.reshape(len(table), -1) for table in tables]))
    deviations: Vector = np.vstack(parts) - count * shares
    return deviations


def _drawn_records(
    draw: Callable[[int], NDArray[np.integer]],
    cardinalities: Mapping[str, int],
    seen: Observed,
    shares: Vector,
    draws: int,
) -> Vector:
    """Simulate deviations of any tables by drawing records, of which each stands for several if there are many."""
    records, minimum = max(1, round(seen.total)), float(seen.noise.variance.min())
    enough = max(_FEWEST_RECORDS, math.ceil(records / max(1.0, _JUMP**2 * minimum)))
    count = min(records, enough, _MAX_RECORDS // _DISTINCT)
    distinct = min(draws, _MAX_RECORDS // count)
    counts = np.empty((distinct, seen.layout.size))
    part = max(1, _AT_A_TIME // count)
    for start in range(0, distinct, part):
        own = min(part, distinct - start)
        counts[start : start + own] = counted(cardinalities, draw(own * count), seen.layout.scopes, own)
    counts -= count * shares
    counts *= math.sqrt(records / count)
    return counts if distinct == draws else counts[np.arange(draws) * distinct // draws]


def check_mixture(mixture: Mixture, schema: Schema, release: Release) -> FitCheck:
    """Test conservatively whether a mixture can have given a release, since the fit has absorbed some of the noise."""
    seen = Observed.of([release.as_measured], list(schema.variables))
    size, scopes = seen.layout.size, seen.cliques
    if size * _FEWEST_DRAWS > _MAX_DERIVATIVES:
        raise TreeTooLargeError(f"the test of fit simulates {size:,} measured cells, more than allowed")
    shares = np.concatenate([mixture.marginal(clique).ravel() for clique in scopes])
    draws = int(np.clip(_MAX_DRAWN // size, _FEWEST_DRAWS, _MAX_DRAWS))

    def draw(count: int) -> NDArray[np.integer]:
        codes = mixture.sample(count, generator)
        return np.asarray(generator.permutation(codes))  # they come component by component

    generator = np.random.default_rng(0)
    deviations = _drawn_records(draw, mixture.cardinalities, seen, shares, draws)
    return replace(fit_test(seen, shares, deviations), variables=schema.variables)
