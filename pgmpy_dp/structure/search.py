"""Search of a graph in steps, each of which measures what the answers before it suggest, and hill climbing.

The steps and their shares of the privacy loss are public and fixed before the first. A climb adds, removes and reverses
edges while a score rises, within what experts know.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from graphlib import TopologicalSorter
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pgmpy.models import DiscreteBayesianNetwork
from tqdm.auto import tqdm

from pgmpy_dp._threads import one_thread
from pgmpy_dp.data.mechanisms.steps import Asking, Choose, Measure, Step
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.fitting.plans.planning import plan_tables, shares
from pgmpy_dp.fitting.readings.directed import fit_releases
from pgmpy_dp.fitting.readings.mixture_fits import MixtureRelease
from pgmpy_dp.inference.tables.table import Table, Vector
from pgmpy_dp.observed.informed_marginals import ReleasedTables
from pgmpy_dp.observed.observed import tree_cells
from pgmpy_dp.observed.reading import maximal, observe
from pgmpy_dp.records.memory import require_countable
from pgmpy_dp.release import NoisyMarginals
from pgmpy_dp.schema import Clique, Schema
from pgmpy_dp.schema.states import alike

Parents = tuple[int, ...]  # in ascending order
Score = Callable[[int, Parents], float]

_GAIN = 1e-6  # minimum gain of the score for which an edge is changed
_MAX_STEPS = 10_000
_SEED = 0
_RESTARTS, _MAX_PERTURBED = 100, 5  # number of restarts, and maximum number of nodes that lose their edges in one


@dataclass(frozen=True)
class Knowledge:
    """Allowed and required edges between variables, by index."""

    allowed: NDArray[np.bool_]  # from the row's variable to the column's
    required: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, expert: Any, variables: Sequence[str], max_indegree: int) -> Knowledge:
        """Read pgmpy's `ExpertKnowledge` without changing it, and refuse contradictions; None allows all edges."""
        position = {variable: number for number, variable in enumerate(variables)}
        allowed = ~np.eye(len(variables), dtype=bool)
        if expert is None:
            return cls(allowed, ())
        from pgmpy.causal_discovery import ExpertKnowledge  # imports pgmpy, which takes seconds

        if not isinstance(expert, ExpertKnowledge):
            raise TypeError(f"expert_knowledge must be pgmpy's ExpertKnowledge, got {type(expert).__name__}.")

        def numbers(edges: Any) -> list[tuple[int, int]]:
            for edge in edges:
                if unknown := [variable for variable in edge if variable not in position]:
                    raise SchemaError(f"An edge names {unknown[0]!r}, which is not a variable of the records.")
            return sorted((position[first], position[second]) for first, second in edges)

        if expert.search_space:
            within = np.zeros_like(allowed)
            within[tuple(np.transpose(numbers(expert.search_space)))] = True
            allowed &= within
        forbidden = numbers(expert.forbidden_edges)
        order = expert.temporal_ordering
        numbers([(variable, variable) for variable in order])
        forbidden += [(position[one], position[other]) for one in order for other in order if order[one] > order[other]]
        for edge in forbidden:
            allowed[edge] = False
        required = numbers(expert.required_edges)
        graph = nx.DiGraph(required)
        if not nx.is_directed_acyclic_graph(graph):
            raise ValueError("The required edges form a cycle.")
        for edge in required:
            named = " -> ".join(variables[number] for number in edge)
            if edge in forbidden:
                raise ValueError(f"The edge {named} is both required and forbidden.")
            if graph.in_degree(edge[1]) > max_indegree:
                raise ValueError(
                    f"More parents of {variables[edge[1]]!r} are required than the indegree allows, {max_indegree}."
                )
            allowed[edge] = True
        return cls(allowed, tuple(required))


def climb(
    score: Score,
    allowed: NDArray[np.bool_],
    required: Iterable[tuple[int, int]],
    max_indegree: int,
) -> list[Parents]:
    """Find an acyclic directed graph with a high score, which no change of one edge increases.

    The best change is made first, which often ends in a poor local maximum. So some nodes, drawn at random, lose their
    edges, and a graph that is found from there is kept if it is better (Lourenço, Martin and Stützle 2003).
    """
    generator, known = np.random.default_rng(_SEED), dict[tuple[int, Parents], float]()

    def of(node: int, parents: Iterable[int]) -> float:
        key = node, tuple(sorted(parents))
        if key not in known:
            known[key] = score(*key)
        return known[key]

    best = _Graph(of, allowed, required, max_indegree)
    best.ascend()
    for _ in range(_RESTARTS):
        perturbed = best.perturbed(generator)
        perturbed.ascend()
        if perturbed.score() > best.score() + _GAIN:
            best = perturbed
    return [tuple(sorted(own)) for own in best.parents]


class _Graph:
    """A graph under search. The gain of every change of an edge is stored, and updated for families that change."""

    def __init__(
        self,
        of: Callable[[int, Iterable[int]], float],
        allowed: NDArray[np.bool_],
        required: Iterable[tuple[int, int]],
        max_indegree: int,
    ) -> None:
        self._of, self._allowed, self._max_indegree = of, allowed, max_indegree
        self.parents: list[set[int]] = [set() for _ in allowed]
        self._fixed = np.zeros(allowed.shape, dtype=bool)
        for first, second in required:
            self.parents[second].add(first)
            self._fixed[first, second] = True
        self._adding, self._removing = np.full((2, *allowed.shape), -np.inf)
        for node in range(len(allowed)):
            self._renew(node)

    def score(self) -> float:
        return sum(self._of(node, own) for node, own in enumerate(self.parents))

    def perturbed(self, generator: np.random.Generator) -> _Graph:
        """Copy the graph without the edges of some nodes, drawn at random, except the required ones."""
        perturbed, nodes = copy(self), len(self.parents)
        perturbed._adding, perturbed._removing = self._adding.copy(), self._removing.copy()
        some = min(int(generator.integers(1, _MAX_PERTURBED + 1)), nodes)
        alone = set(generator.choice(nodes, some, replace=False).tolist())
        perturbed.parents = [
            {parent for parent in own if self._fixed[parent, node] or not alone & {parent, node}}
            for node, own in enumerate(self.parents)
        ]
        for node, own in enumerate(perturbed.parents):
            if own != self.parents[node]:
                perturbed._renew(node)
        return perturbed

    def ascend(self) -> None:
        """Change edges until no single change increases the score."""
        for _ in range(_MAX_STEPS):
            gain, changes = self._best()
            if not gain > _GAIN:
                return
            for source, target in changes:
                self.parents[target] ^= {source}
                self._renew(target)

    def _best(self) -> tuple[float, list[tuple[int, int]]]:
        """Find the change of largest gain, as edges to add or remove (both, to reverse an edge)."""
        parents, adding, removing = self.parents, self._adding, self._removing
        reach = reachable(parents)
        first, second = _largest(np.where(reach.T, -np.inf, adding))
        best = adding[first, second] if not reach[second, first] else -np.inf
        changes = [(first, second)]
        removed = _largest(removing)
        if removing[removed] > best:
            best, changes = removing[removed], [removed]
        for source, target in zip(*np.nonzero(np.isfinite(removing)), strict=True):
            full = len(parents[source]) >= self._max_indegree or not self._allowed[target, source]
            if full or any(reach[source, other] for other in parents[target] if other != source):
                continue
            turned = (
                removing[source, target]
                + self._of(source, parents[source] | {int(target)})
                - self._of(source, parents[source])
            )
            if turned > best:
                best, changes = turned, [(int(source), int(target)), (int(target), int(source))]
        return float(best), changes

    def _renew(self, node: int) -> None:
        own = self.parents[node]
        now = self._of(node, own)
        self._adding[:, node] = self._removing[:, node] = -np.inf
        for other in range(len(self.parents)):
            if other in own:
                if not self._fixed[other, node]:
                    self._removing[other, node] = self._of(node, own - {other}) - now
            elif self._allowed[other, node] and len(own) < self._max_indegree:
                self._adding[other, node] = self._of(node, own | {other}) - now


def reachable(parents: Sequence[Iterable[int]]) -> NDArray[np.bool_]:
    """Return which nodes are reachable from each node, including itself."""
    count = len(parents)
    ancestors, size = [1 << node for node in range(count)], -(-count // 8)
    for node in TopologicalSorter(dict(enumerate(parents))).static_order():
        for parent in parents[node]:
            ancestors[node] |= ancestors[parent]
    packed = np.frombuffer(b"".join(bits.to_bytes(size, "little") for bits in ancestors), dtype=np.uint8)
    return np.unpackbits(packed.reshape(count, size), axis=1, count=count, bitorder="little").T > 0


def _largest(gains: NDArray[np.float64]) -> tuple[int, int]:
    row, column = np.unravel_index(int(gains.argmax()), gains.shape)
    return int(row), int(column)


@dataclass(frozen=True)
class Round:
    """Shares to choose edges, to measure the families that they enlarge, and to measure all families after a climb."""

    choosing: float
    measuring: float
    families: float = 0.0


@dataclass(frozen=True)
class Steps:
    """Shares of the privacy loss, of rho or of epsilon; only their proportions count."""

    singles: float  # tables of one variable
    forest: Round
    rounds: tuple[Round, ...]  # exactly one of them measures families
    edges: float = 0.25  # number of edges that a round adds, per variable

    def listed(self, variables: int) -> list[tuple[str, Step]]:
        """List the names of all steps for this number of variables, with their shares of the privacy loss."""
        some = max(1, round(self.edges * variables))
        steps = [
            ("count each variable", Step(self.singles)),
            ("choose a forest", Step(self.forest.choosing, max(1, variables - 1))),
            ("measure the forest", Step(self.forest.measuring)),
        ]
        for number, each in enumerate(self.rounds, 1):
            steps.append((f"round {number}: choose edges", Step(each.choosing, some)))
            steps.append((f"round {number}: measure their families", Step(each.measuring)))
            if each.families:
                steps.append((f"round {number}: climb, and measure all families", Step(each.families)))
        whole = sum(step.share for _, step in steps)
        return [(name, replace(step, share=step.share / whole)) for name, step in steps]


Edge = tuple[int, int]

RECORDS = 40_000  # number of records drawn from a fit, for its marginals
_CELLS = 200_000  # largest size of the junction tree, in cells
_ROUGH = 25  # iterations of intermediate fits
_SUPPORT = 5.0  # minimum support of an edge that is kept
_DROPS = 2  # number of times that edges are removed


_AT_ONCE = 4096  # records counted at a time


def positions(records: pd.DataFrame, schema: Schema) -> NDArray[np.int64]:
    """Return the state indices of records drawn from a network, with one column per variable."""
    columns = [pd.Categorical(records[v], categories=alike(schema.states[v])).codes for v in schema.variables]
    return np.stack(columns, axis=1).astype(np.int64)


def penalty(release: MixtureRelease, variables: Sequence[str]) -> float:
    """Return the price of a parameter in nats of all records: half the log of their number, plus a term for noise.

    The former is the price of BIC. As for the latter, a table of K cells whose noise has variance v raises the
    likelihood of N records by about v K / (2 N) for every parameter that is read from it, if its cells are alike.
    """
    total = release.total
    if isinstance(release, ReleasedTables) and release.independent:
        seen = observe(release, variables)
        noise = np.bincount(seen.owners, seen.noise.variance)  # summed over the cells of each table
    else:
        known = [clique for clique in release.cliques if set(clique) <= set(variables)]
        noise = np.array([release.marginal(clique)[1] * release.schema.cells(clique) for clique in known])
    return 0.5 * (math.log(max(total, 2.0)) + float((noise / total).mean()))


@dataclass
class DrawnRecords:
    """Records whose tables can be counted for any variables."""

    codes: NDArray[np.int64]
    cardinalities: Sequence[int]
    _kept: dict[Parents, Vector] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        tables: Mapping[Clique, Vector],
        variables: Sequence[str],
        cardinalities: Sequence[int],
        count: int,
        generator: np.random.Generator,
    ) -> DrawnRecords:
        """Draw records from parents to children; the variables are in the order of the graph's families."""
        position = {variable: number for number, variable in enumerate(variables)}
        codes = np.zeros((len(variables), count), dtype=np.int64)
        left, done = dict(tables), set[str]()
        while left:
            for family in [family for family in left if done.issuperset(family[1:])]:
                table = left.pop(family)
                heights = (table.cumsum(axis=0) / table.sum(axis=0)).reshape(len(table), -1)
                row = np.zeros(count, dtype=np.int64)
                for parent, states in zip(family[1:], table.shape[1:], strict=True):
                    row = row * states + codes[position[parent]]
                place_in_row, node = generator.random(count), codes[position[family[0]]]
                for height in heights[:-1]:
                    node += height[row] < place_in_row
                done.add(family[0])
        return cls(codes, cardinalities)

    def shares(self, scope: Sequence[int]) -> Vector:
        """Return the share of records in each cell, with axes in the order of the scope."""
        ordered = tuple(sorted(scope))
        if len(ordered) == 2:
            (first, second), starts = ordered, self._starts
            table = self._pairs[starts[first] : starts[first + 1], starts[second] : starts[second + 1]]
            return table if tuple(scope) == ordered else table.T
        if ordered not in self._kept:
            shape = [self.cardinalities[variable] for variable in ordered]
            cell = self.codes[ordered[0]]
            for variable, states in zip(ordered[1:], shape[1:], strict=True):
                cell = cell * states + self.codes[variable]
            counts = np.bincount(cell, minlength=int(np.prod(shape)))
            self._kept[ordered] = counts.reshape(shape) / self.codes.shape[1]
        return self._kept[ordered].transpose([ordered.index(variable) for variable in scope])

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """Index of the first state of each variable among all states."""
        return np.concatenate([[0], np.cumsum(self.cardinalities)])

    @cached_property
    def _pairs(self) -> Vector:
        """Counts of all pairs of states, computed in blocks of records."""
        counts = np.zeros((self._starts[-1], self._starts[-1]))
        for start in range(0, self.codes.shape[1], _AT_ONCE):
            cells = self.codes[:, start : start + _AT_ONCE] + self._starts[:-1, None]
            marks = np.zeros((cells.shape[1], len(counts)), dtype=np.float32)
            marks[np.arange(len(marks)), cells] = 1.0
            with one_thread():
                counts += marks.T @ marks
        return counts / self.codes.shape[1]

    def log_likelihood(self, node: int, parents: Parents) -> float:
        """Return the mean over records of log P(node | parents), in nats, with shares of records as probabilities."""
        joint = self.shares((node, *parents))
        given = joint.sum(axis=0, keepdims=True)
        return float((joint * np.log(np.where(joint > 0, joint, 1.0) / np.where(joint > 0, given, 1.0))).sum())

    def parameters(self, node: int, parents: Parents) -> int:
        """Return the number of free parameters of P(node | parents)."""
        return (self.cardinalities[node] - 1) * math.prod(self.cardinalities[parent] for parent in parents)


class Search:
    """State of a search, whose steps are generators: they yield requests for measurements, and are sent the answers."""

    def __init__(self, schema: Schema, knowledge: Knowledge, max_indegree: int) -> None:
        self.schema, self.knowledge, self.max_indegree = schema, knowledge, max_indegree
        self.variables = list(self.schema.variables)
        self.cards = [self.schema.cardinality(variable) for variable in self.variables]
        self.releases: list[NoisyMarginals] = []
        self.release: NoisyMarginals  # all releases joined
        self.parents: list[Parents] = [()] * len(self.variables)
        for parent, node in knowledge.required:
            self.parents[node] = tuple(sorted((*self.parents[node], parent)))
        self._generator = np.random.default_rng(_SEED)
        for pair in self._open_pairs():  # before anything is paid
            require_countable(self.schema, self._named(pair))

    def run(self, steps: Steps, title: str | None = None) -> Asking[Search]:
        """Run all steps, and return the search. The progress bar shows the title; None shows no bar."""
        listed, hidden = steps.listed(len(self.variables)), None if title else True
        self._left = iter(tqdm(listed, title, unit="step", delay=1.0, leave=False, disable=hidden))
        yield from self._measure([(variable,) for variable in self.variables], [1.0] * len(self.variables))
        yield from self.add_forest()
        for each in steps.rounds:
            yield from self.add_edges()
            if each.families:
                self.climb(self.drawn())
                network = DiscreteBayesianNetwork()
                network.add_nodes_from(self.variables)
                network.add_edges_from(self.named_edges())
                yield from self._measure(*plan_tables(network, self.schema, check=0))
        next(self._left, None)  # finish the bar
        self.drop_edges()
        return self

    def named_edges(self) -> list[tuple[str, str]]:
        """Return the edges by name, each from parent to child."""
        return [(self.variables[parent], self.variables[node]) for parent, node in self._edges()]

    def add_forest(self) -> Asking[None]:
        """Choose a spanning forest of the pairs farthest from independence, rooted at large degrees, and measure it."""
        total, alone = self.release.total, [np.maximum(self.release.tables[v,], 1.0) for v in self.variables]
        references = {
            (first, second): total * np.outer(alone[first] / alone[first].sum(), alone[second] / alone[second].sum())
            for first, second in self._open_pairs()
        }

        firsts, seconds = np.array(list(references), dtype=np.intp).reshape(-1, 2).T

        def apart(chosen: Sequence[Edge]) -> NDArray[np.bool_]:
            component = np.arange(len(self.variables))
            for first, second in [*self._edges(), *chosen]:
                component[component == component[second]] = component[first]
            return component[firsts] != component[seconds]

        forest = nx.Graph((yield from self._choose(references, apart)))
        for part in sorted(map(sorted, nx.connected_components(forest))):
            root = max(part, key=lambda node: (forest.degree(node), -node))
            for edge in nx.bfs_edges(forest, root, sort_neighbors=sorted):
                directions = self._directions(edge, self.parents, reachable(self.parents))
                if directions:
                    self.parents = _with_edge(self.parents, edge if edge in directions else directions[0])
        yield from self._measure(self._larger(self._families()))

    def add_edges(self) -> Asking[None]:
        """Choose pairs farthest from the fitted graph, at most one parent a variable, and measure larger families."""
        drawn, total, before = self.drawn(), self.release.total, self.parents
        joined = {frozenset(edge) for edge in self._edges()}
        references = {pair: total * drawn.shares(pair) for pair in self._open_pairs() if frozenset(pair) not in joined}

        firsts, seconds = np.array(list(references), dtype=np.intp).reshape(-1, 2).T
        graphs = [list(before)]  # after each choice

        def grown(chosen: Sequence[Edge]) -> list[Parents]:
            for pair in chosen[len(graphs) - 1 :]:
                parents = graphs[-1]
                result = self._directions(pair, parents, reachable(parents))
                edge = next(edge for edge in result if parents[edge[1]] == before[edge[1]])
                graphs.append(_with_edge(parents, edge))
            return graphs[len(chosen)]

        def fitting(chosen: Sequence[Edge]) -> NDArray[np.bool_]:
            parents = grown(chosen)
            full = [len(own) >= self.max_indegree or own != before[node] for node, own in enumerate(parents)]
            open_to = self.knowledge.allowed & ~reachable(parents).T & ~np.array(full)
            return (open_to | open_to.T)[firsts, seconds]

        self.parents = grown((yield from self._choose(references, fitting)))
        families = self._families()
        changed = [families[node] for node, own in enumerate(self.parents) if own != before[node]]
        self._shrink(drawn)
        yield from self._measure(self._larger(changed))

    def climb(self, drawn: DrawnRecords) -> None:
        """Find the graph of highest penalised likelihood for records drawn from a fit."""
        price, total = penalty(self.release, self.variables), self.release.total

        def score(node: int, parents: Parents) -> float:
            return total * drawn.log_likelihood(node, parents) - price * drawn.parameters(node, parents)

        self.parents = climb(score, self.knowledge.allowed, self.knowledge.required, self.max_indegree)
        self._shrink(drawn)

    def drop_edges(self) -> None:
        """Remove the edges that the tables do not support, one per node at a time."""
        for _ in range(_DROPS):
            drawn, kept = self.drawn(), self.parents
            self.parents = list(kept)
            for node, own in enumerate(kept):
                supports = {
                    parent: support(self.release, drawn, self.variables, node, own, parent)
                    for parent in own
                    if (parent, node) not in self.knowledge.required
                }
                if supports and supports[weakest := min(supports, key=supports.__getitem__)] < _SUPPORT:
                    self.parents[node] = tuple(parent for parent in own if parent != weakest)
            if self.parents == list(kept):
                return

    def _measure(self, cliques: Sequence[Clique], weights: Sequence[float] | None = None) -> Asking[None]:
        next(self._left)
        measured = yield Measure(cliques, shares(self.schema, cliques) if weights is None else weights)
        if measured is not None:
            self.release = self.release + measured if self.releases else measured
            self.releases.append(measured)

    def _choose(
        self, references: dict[Edge, Vector], allowed: Callable[[Sequence[Edge]], NDArray[np.bool_]]
    ) -> Asking[list[Edge]]:
        """Choose pairs privately; `allowed` returns which of them may come next."""
        next(self._left)
        pairs = {self._named(pair): pair for pair in references}
        names = list(pairs)
        chosen = yield Choose(
            dict(zip(names, references.values(), strict=True)),
            lambda chosen: [names[k] for k in np.flatnonzero(allowed([pairs[clique] for clique in chosen]))],
        )
        return [pairs[clique] for clique in chosen]

    def drawn(self) -> DrawnRecords:
        """Fit the graph to everything that was measured, and draw records from it."""
        fit = fit_releases([self.release], self._families(), _ROUGH, "junction_tree")
        return DrawnRecords.of(fit.tables, self.variables, self.cards, RECORDS, self._generator)

    def _shrink(self, drawn: DrawnRecords) -> None:
        """Remove the least informative edges while the junction tree is too large."""

        def loss(edge: Edge) -> float:
            parent, node = edge
            own = self.parents[node]
            rest = tuple(other for other in own if other != parent)
            return drawn.log_likelihood(node, own) - drawn.log_likelihood(node, rest)

        cards = self.schema.cardinalities()
        while tree_cells(cards, self._families()) > _CELLS:
            open_to = [edge for edge in self._edges() if edge not in self.knowledge.required]
            if not open_to:
                return
            parent, node = min(open_to, key=loss)
            self.parents = list(self.parents)
            self.parents[node] = tuple(other for other in self.parents[node] if other != parent)

    def _directions(self, pair: Edge, parents: Sequence[Parents], reach: NDArray[np.bool_]) -> list[Edge]:
        """Return the directions that a new edge may have, starting with the one of the smaller family."""
        results = [
            (first, second)
            for first, second in (pair, pair[::-1])
            if len(parents[second]) < self.max_indegree
            and self.knowledge.allowed[first, second]
            and not reach[second, first]
        ]
        return sorted(results, key=lambda edge: math.prod(self.cards[node] for node in (*parents[edge[1]], *edge)))

    def _edges(self) -> list[Edge]:
        return [(parent, node) for node, own in enumerate(self.parents) for parent in own]

    def _open_pairs(self) -> list[Edge]:
        allowed = self.knowledge.allowed | self.knowledge.allowed.T
        return [pair for pair in itertools.combinations(range(len(self.variables)), 2) if allowed[pair]]

    def _named(self, scope: Iterable[int]) -> Clique:
        return tuple(self.variables[number] for number in scope)

    def _families(self) -> list[Clique]:
        return [self._named((node, *own)) for node, own in enumerate(self.parents)]

    @staticmethod
    def _larger(families: Iterable[Clique]) -> list[Clique]:
        return list(maximal([family for family in families if len(family) > 1]))


def _with_edge(parents: Sequence[Parents], edge: Edge) -> list[Parents]:
    grown = list(parents)
    grown[edge[1]] = tuple(sorted((*grown[edge[1]], edge[0])))
    return grown


def support(
    release: NoisyMarginals, drawn: DrawnRecords, variables: Sequence[str], node: int, parents: Parents, parent: int
) -> float:
    """Compute by how much an edge lowers the squared residuals of a table, minus its number of parameters there."""
    best = -np.inf
    for clique, values in release.tables.items():
        if variables[node] not in clique or variables[parent] not in clique:
            continue
        scope = [node, parent, *(other for other in parents if other != parent and variables[other] in clique)]
        seen = Table(clique, values).margin([variables[number] for number in scope]).values
        noise = release.variances[clique] * values.size / seen.size
        expected = release.total * drawn.shares(scope) + 0.5
        apart = expected.sum(axis=0, keepdims=True) * expected.sum(axis=1, keepdims=True)
        apart = apart / expected.sum(axis=(0, 1), keepdims=True)
        without, given = (
            ((seen - apart) ** 2 / (noise + apart)).sum(),
            ((seen - expected) ** 2 / (noise + expected)).sum(),
        )
        parameters = (seen.shape[0] - 1) * (seen.shape[1] - 1) * (seen.size // (seen.shape[0] * seen.shape[1]))
        best = max(best, float(without - given) - parameters)
    return best
