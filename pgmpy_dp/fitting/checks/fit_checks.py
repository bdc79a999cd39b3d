"""A fitted network is held against the releases that it was fitted to."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import networkx as nx
import numpy as np
from pgmpy.models import DiscreteBayesianNetwork, DiscreteMarkovNetwork

from pgmpy_dp.fitting.checks.misfit import FitCheck, held_against, scoring_step
from pgmpy_dp.inference import Calibration, JunctionTree, Layout, TreeTooLargeError, build_engine, sample
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.inference.tables.rows import Rows
from pgmpy_dp.inference.tables.table import Table
from pgmpy_dp.inference.trees.tree_sampling import counted, sample_counts
from pgmpy_dp.observed.factors import Network, log_linear
from pgmpy_dp.observed.observations import Observations, agreed_schema
from pgmpy_dp.observed.testing_tables import first_tests, telling, tree_cells
from pgmpy_dp.release import Release
from pgmpy_dp.release.observations import observed_parts
from pgmpy_dp.schema import Clique

# The law is simulated so many times, or fewer where there are many cells.
_MOST_DRAWS, _FEWEST_DRAWS, _MOST_DRAWN = 1000, 400, 2**22
# One suffices but where the fit was to a release that says nearly nothing beside another.
_STEPS = 2
# Derivatives of all tables by all parameters are at most so many.
_MAX_DERIVATIVES = 2**26
# Of a network that is too wide a part is tested, whose tree has at most so many cells.
_MOST_PART = 2**20
# Tables that only test share the network's tree while it has no more cells, or twice its own; others have one each.
_MOST_CELLS = 2**14
# Records are drawn so many at a time, and at most so many in all, of no fewer draws than these.
_AT_A_TIME, _MOST_RECORDS, _DISTINCT = 2**16, 2**22, 200
# One that stands for several moves counts by no more than so many standard deviations of the noise. A draw has so many.
_JUMP, _FEWEST_RECORDS = 0.5, 500
# Cells times derivatives and draws of a check that takes a second: of alarm's tables, or of all pairs of sachs.
QUICK = 2**25


def check_network(
    network: Network, releases: Sequence[Release], seed: int = 0, most_work: float = math.inf
) -> FitCheck:
    """Test whether releases contradict a network: post-processing, at no cost to privacy.

    Of a wide network that fits in no memory a part is tested: some variables of a Bayesian network with all of their
    ancestors, of whose tables the others' CPDs tell nothing. `FitCheck.left_out` says how many tables are not in it.

    Parameters
    ----------
    network : DiscreteBayesianNetwork or DiscreteMarkovNetwork
        With parameters that were fitted to the releases, by any estimator.
    releases : sequence of NoisyMarginals or NoisyCoefficients
        One or several releases of the same records.
    seed : int
    most_work : float
        Refuse what takes more cells times derivatives and draws, such as `QUICK`.

    Raises
    ------
    SchemaError
        If the releases disagree on the states of a variable, or lack one.
    TreeTooLargeError
        If the junction tree, or the derivatives of all tables of a Markov network, do not fit in memory; and if they
        take too much work.
    """
    try:
        return _checked(network, releases, seed, most_work)
    except TreeTooLargeError:
        part = _part(network, releases) if most_work == math.inf else None
        if part is None:
            raise
    every = _measured(releases, list(network.nodes()))
    found = _checked(part, releases, seed, most_work)
    return replace(found, left_out=len([clique for clique in every if not set(clique) <= set(part.nodes())]))


def _measured(releases: Sequence[Release], nodes: Sequence[str]) -> list[Clique]:
    """List what was measured of a network's variables, each table once."""
    parts = (observed_parts(release.cliques, [v for v in nodes if v in release.variables]) for release in releases)
    return list({frozenset(clique): clique for part in parts for clique in part.values()}.values())


def _part(network: Network, releases: Sequence[Release]) -> DiscreteBayesianNetwork | None:
    """Cut a Bayesian network down to variables of measured tables and their ancestors: the most that can be tested.

    Tables with few ancestors come first, and of equal ones those of variables that share no family: only such show
    missing edges.
    """
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

    def held(count: int) -> set[str]:
        return set().union(*(closed[clique] for clique in every[:count]))

    def work(count: int) -> int:
        kept = held(count)
        tables = {tuple(v for v in clique if v in kept) for clique in every} - {()}
        scopes = [tuple(families[variable]) for variable in kept]
        if tree_cells(states.cardinalities(), scopes or list(tables)) > _MOST_PART:
            return _MAX_DERIVATIVES + 1
        return sum(map(states.cells, tables)) * sum(map(states.cells, scopes))

    count = bisect_right(range(1, len(every) + 1), _MAX_DERIVATIVES, key=work)
    if not count:
        return None
    kept = held(count)
    part = DiscreteBayesianNetwork([edge for edge in network.edges() if set(edge) <= kept])
    part.add_nodes_from([variable for variable in network.nodes() if variable in kept])
    part.add_cpds(*(cpds[variable] for variable in part.nodes()))
    return part


def _checked(network: Network, releases: Sequence[Release], seed: int, most_work: float) -> FitCheck:
    nodes = list(network.nodes())
    schema = agreed_schema(releases, nodes)
    layout, logs, _ = log_linear(network, schema.states)
    rows = None if isinstance(network, DiscreteMarkovNetwork) else Rows(layout)
    cards, scopes = layout.cardinalities, layout.scopes
    seen = Observations.of(releases, nodes, partial(first_tests, cards, scopes, most=_MAX_DERIVATIVES // layout.size))
    most = max(_MOST_CELLS, 2 * tree_cells(cards, scopes))
    whole = tree_cells(cards, [*scopes, *seen.cliques]) <= most
    near = seen if whole else Observations.of(releases, nodes, partial(telling, scopes=scopes))
    tables = dict.fromkeys(near.cliques)
    others = [clique for clique in dict.fromkeys(seen.cliques) if clique not in tables]
    tree = build_engine(cards, dict.fromkeys([*scopes, *tables]), "junction_tree")
    assert isinstance(tree, JunctionTree)
    draws = int(np.clip(_MOST_DRAWN // seen.layout.size, _FEWEST_DRAWS, _MOST_DRAWS))
    cells, work = seen.layout.size, (seen.layout.size + tree.table_cells) * (layout.size + draws)
    if cells * layout.size > _MAX_DERIVATIVES or work > most_work:
        raise TreeTooLargeError(
            f"the test of fit needs derivatives of {cells:,} measured cells by {layout.size:,} parameters in a tree of "
            f"{tree.table_cells:,} cells, more than allowed"
        )
    # The law is that of small steps of the parameters. They may be far off if a closer release was attached later.
    for _ in range(_STEPS):
        at = _Calibrated.of(tree, layout, logs, rows)
        logs = logs + scoring_step(near, at.shares(near.cliques), at.tangents)
        logs = logs if rows is None else rows.normalise(logs)
    at = _Calibrated.of(tree, layout, logs, rows)
    holders = {
        clique: _Calibrated.of(JunctionTree.build(cards, [*scopes, clique]), layout, logs, rows) for clique in others
    }

    def tangents(cliques: Sequence[Clique]) -> Vector:
        if tables.keys() >= set(cliques):
            return at.tangents(cliques)
        return np.vstack([holders.get(clique, at).tangents([clique]) for clique in cliques])

    shares = np.concatenate([holders.get(clique, at).shares([clique]) for clique in seen.cliques])
    draw = _drawn_records if others else _drawn_tables
    deviations = draw(tree, at.calibration, seen, shares, draws, np.random.default_rng(seed))
    found = held_against(seen, shares, deviations, tangents, tables.keys(), seed)
    return replace(found, left_out=len(_measured(releases, nodes)) - len(set(map(frozenset, seen.cliques))))


@dataclass(frozen=True)
class _Calibrated:
    """A tree that holds a network's factors and further tables is calibrated for log-potentials of the network."""

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
        """Return tables that the tree holds, end to end."""
        return self.calibration.marginals[self.tree.layout.places(tables)]

    def tangents(self, tables: Sequence[Clique]) -> Vector:
        """Compute derivatives of such tables by the log-potentials; rows of a CPD stay normalised.

        They are covariances of cells: of each cell of the tables with all parameters, or the other way, as is less
        work.
        """
        places, free = (self.tree.layout.places(scopes) for scopes in (tables, self.layout.scopes))
        direction, masses = np.zeros(self.tree.layout.size), np.exp(self.logs)
        tangents = np.empty((places.size, free.size))
        if places.size < free.size:
            for number, cell in enumerate(places):
                direction[cell] = 1.0
                moved = self.tree.covariance_product(self.calibration, direction)[free]
                tangents[number] = moved if self.rows is None else moved - masses * self.rows.sums(moved)
                direction[cell] = 0.0
            return tangents
        for number, cell in enumerate(free):
            if self.rows is not None:
                row = self.rows.numbers == self.rows.numbers[number]
                direction[free[row]] = -masses[number]
            direction[cell] += 1.0
            tangents[:, number] = self.tree.covariance_product(self.calibration, direction)[places]
            direction[:] = 0.0
        return tangents


def _drawn_tables(
    tree: JunctionTree,
    calibration: Calibration,
    seen: Observations,
    shares: Vector,
    draws: int,
    generator: np.random.Generator,
) -> Vector:
    """Simulate tables that a tree holds, of as many records as there are, less their expectation.

    In parts, for large trees; without records, so that their number does not matter.
    """
    count, layout = max(1, round(seen.total)), seen.layout
    number = {variable: place for place, variable in enumerate(tree.variables)}
    scopes = [tuple(number[variable] for variable in clique) for clique in layout.scopes]
    holders = [
        min(
            (place for place, clique in enumerate(tree.cliques) if set(scope) <= set(clique.table.scope)),
            key=lambda place: tree.cliques[place].table.cells,
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
    tree: JunctionTree,
    calibration: Calibration,
    seen: Observations,
    shares: Vector,
    draws: int,
    generator: np.random.Generator,
) -> Vector:
    """Simulate any tables by drawing records.

    Fewer than there are where the noise hides it, or where there are very many: each then stands for several. Where a
    draw still has many records there are fewer draws, that several draws of the noise share.
    """
    records, least = max(1, round(seen.total)), float(seen.noise.variance.min())
    enough = max(_FEWEST_RECORDS, math.ceil(records / max(1.0, _JUMP**2 * least)))
    count = min(records, enough, _MOST_RECORDS // _DISTINCT)
    distinct = min(draws, _MOST_RECORDS // count)
    counts = np.empty((distinct, seen.layout.size))
    part = max(1, _AT_A_TIME // count)
    for start in range(0, distinct, part):
        own = min(part, distinct - start)
        drawn = sample(tree, calibration, own * count, generator)
        counts[start : start + own] = counted(tree, drawn, seen.layout.scopes, own)
    counts -= count * shares
    counts *= math.sqrt(records / count)
    return counts if distinct == draws else counts[np.arange(draws) * distinct // draws]
