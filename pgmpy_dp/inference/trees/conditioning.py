"""Distributions of networks given the states of some variables, and their most probable states.

Most probable states are found by elimination: other variables are summed out first, then maxima are taken. Sources:
Dechter (1999), "Bucket elimination: a unifying framework for reasoning"; Park and Darwiche (2004), "Complexity results
and approximation strategies for MAP explanations", for summing before maximising, which the answer requires, and which
makes tables larger than those of a junction tree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Self

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference.distribution import Codes, GivenOthers, ImpossibleEvidenceError, Positions
from pgmpy_dp.inference.tables.table import Layout, Scope, Table, Variable, Vector
from pgmpy_dp.inference.trees.factor_graph import MAX_TABLE_CELLS
from pgmpy_dp.inference.trees.junction_tree import Calibration, JunctionTree, TreeTooLargeError, sample
from pgmpy_dp.inference.trees.triangulation import constrained_order, moral_graph

# Log-probabilities that differ by less than this are considered equal.
_TIED = 1e-9
_MAX_CACHED = 2000  # plans of a distribution, and answers of a plan


@dataclass(frozen=True, eq=False)
class TreeDistribution:
    """A `Distribution` by tables of log-potentials, whose junction trees are built once for each kind of question."""

    layout: Layout
    logs: Vector
    families: bool = False
    evidence: Positions = field(default_factory=dict)
    _parts: dict[frozenset[str], TreeDistribution] = field(default_factory=dict)
    _plans: dict[Any, Plan] = field(default_factory=dict)

    def given(self, evidence: Positions) -> Self:
        return replace(self, evidence={**self.evidence, **evidence})

    def marginal(self, scope: Sequence[str]) -> Vector:
        return self._plan(scope).joint(self.evidence)

    def singles(self, scope: Sequence[str]) -> list[Vector]:
        return self._plan(scope).singles(self.evidence)

    def most_probable(self, scope: Sequence[str]) -> tuple[int, ...]:
        return self._plan(scope).most_probable(self.evidence)

    def singles_of(self, scope: Sequence[str], rows: Iterable[Positions]) -> Iterator[list[Vector]]:
        return (self.given(row).singles(scope) for row in rows)

    def most_probable_of(self, scope: Sequence[str], rows: Iterable[Positions]) -> Iterator[tuple[int, ...]]:
        return (self.given(row).most_probable(scope) for row in rows)

    def sample(
        self, count: int, generator: np.random.Generator, predicting: str | None = None
    ) -> tuple[Codes, GivenOthers]:
        codes = self._trees.sample(self.logs, self.evidence, count, generator)
        return codes, partial(self.given_others, codes)

    def given_others(self, codes: Codes, variable: str, records: NDArray[np.integer]) -> Vector:
        """See `GivenOthers`."""
        logs = np.zeros((records.size, self.layout.cardinalities[variable]))
        for scope, table in zip(self.layout.scopes, self.layout.split(self.logs), strict=True):
            if variable in scope:
                last = np.moveaxis(table, scope.index(variable), -1)
                logs += last[tuple(codes[other][records] for other in scope if other != variable)]
        maximum = logs.max(axis=1, keepdims=True)
        return np.exp(logs - np.where(maximum > -np.inf, maximum, 0.0))

    def log_probability(self, codes: Codes) -> Vector:
        whole = self.ancestral(codes)
        partition = 0.0 if self.families else whole._trees.log_partition(whole.logs, {})
        if set(codes) >= set(whole.layout.cardinalities):
            tables = zip(whole.layout.scopes, whole.layout.split(whole.logs), strict=True)
            return np.asarray(sum(table[tuple(codes[v] for v in scope)] for scope, table in tables) - partition)
        rows, positions = np.unique(np.stack(list(codes.values()), axis=1), axis=0, return_inverse=True)
        logs = [whole._trees.log_partition(whole.logs, dict(zip(codes, row, strict=True))) for row in rows.tolist()]
        return np.array(logs)[positions.ravel()] - partition

    @cached_property
    def _trees(self) -> Conditioning:
        return Conditioning(self.layout)

    def _plan(self, scope: Sequence[str]) -> Plan:
        key = tuple(scope), frozenset(self.evidence)
        if key not in self._plans:
            _make_room(self._plans)
            whole = self.ancestral([*scope, *self.evidence])
            self._plans[key] = Plan(whole.layout, whole.logs, scope, frozenset(self.evidence))
        return self._plans[key]

    def ancestral(self, names: Iterable[str]) -> TreeDistribution:
        """Restrict a Bayesian network to these variables and their ancestors, since all others sum out to one."""
        if not self.families:
            return self
        parents = {scope[0]: scope[1:] for scope in self.layout.scopes}
        kept, waiting = set[str](), list(names)
        while waiting:
            if (name := waiting.pop()) not in kept:
                kept.add(name)
                waiting += parents[name]
        key = frozenset(kept)
        if key not in self._parts:
            cards = {variable: card for variable, card in self.layout.cardinalities.items() if variable in kept}
            tables = zip(self.layout.scopes, self.layout.split(self.logs), strict=True)
            own = [(scope, table) for scope, table in tables if scope[0] in kept]
            layout = Layout.of(cards, [scope for scope, _ in own])
            self._parts[key] = TreeDistribution(layout, layout.flatten(table for _, table in own), True)
        return self._parts[key]


class Conditioning:
    """Conditional distributions from vectors of log-potentials in one layout, which share junction trees."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._trees: dict[frozenset[str], JunctionTree] = {}

    def distributions(
        self, potentials: Iterable[Vector], variables: Sequence[str], evidence: Positions
    ) -> tuple[Vector, Vector]:
        """Compute each network's joint distribution of some variables, and the probability of the evidence."""
        tree, mask = self._tree(variables), self._mask(evidence)
        answers, partitions = [], []
        for logs in potentials:
            calibration = _calibrated(tree, logs + mask)
            answers.append(tree.marginal(calibration, variables))
            partitions.append(calibration.log_partition)
        with np.errstate(over="ignore"):  # factors in a file may have any scale
            return np.array(answers), np.exp(partitions)

    def marginals(self, potentials: Iterable[Vector], scopes: Sequence[Sequence[str]]) -> Vector:
        """Concatenate marginals on scopes of the layout or subsets of them, a row for each network."""
        tree = self._tree(())
        calibrations = (tree.calibrate(logs) for logs in potentials)
        return np.array([np.concatenate([tree.marginal(c, scope).ravel() for scope in scopes]) for c in calibrations])

    def pairs(self, logs: Vector, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Vector]:
        """Compute tables of any pairs in one network, by a calibration for each state of a first variable."""
        tree = self._tree(())
        whole = tree.calibrate(logs)
        results = {pair: np.zeros([self.layout.cardinalities[v] for v in pair]) for pair in pairs}
        for first in dict.fromkeys(first for first, _ in pairs):
            seconds = [second for other, second in pairs if other == first]
            for position, share in enumerate(tree.marginal(whole, [first])):
                if share > 0.0:
                    given = tree.calibrate(logs + self._mask({first: position}))
                    for second in seconds:
                        results[first, second][position] = share * tree.marginal(given, [second])
        return results

    def most_probable(
        self, potentials: Iterable[Vector], variables: Sequence[str], evidence: Positions
    ) -> list[tuple[int, ...]]:
        """Find the most probable joint state in each network; ties go to the first."""
        maximisation = Maximisation.plan(self.layout, variables, evidence)
        return [maximisation.most_probable(logs) for logs in potentials]

    def sample(
        self, logs: Vector, evidence: Positions, count: int, generator: np.random.Generator
    ) -> dict[str, NDArray[np.int32]]:
        """Draw independent records from one network given the evidence, as positions of states."""
        tree = self._tree(())
        calibration = _calibrated(tree, logs + self._mask(evidence))
        codes = sample(tree, calibration, count, generator)
        return {variable: codes[:, number] for number, variable in enumerate(tree.variables)}

    def log_partition(self, logs: Vector, evidence: Positions) -> float:
        """Compute the log-mass of the evidence in one network; minus infinity if it is impossible."""
        tree = self._tree(())
        try:
            return tree.calibrate(logs + self._mask(evidence)).log_partition
        except ValueError:
            return -math.inf

    def _tree(self, together: Sequence[str]) -> JunctionTree:
        key = frozenset(together if len(together) > 1 else ())
        if key not in self._trees:
            self._trees[key] = _tree(self.layout, [tuple(together)] if key else [])
        return self._trees[key]

    def _mask(self, evidence: Positions) -> Vector:
        """Return minus infinity for cells that contradict the evidence, and 0 for others."""
        tables = []
        for scope, shape in zip(self.layout.scopes, self.layout.shapes, strict=True):
            table = np.zeros(shape)
            for axis, variable in enumerate(scope):
                if variable in evidence:
                    other = np.arange(shape[axis]) != evidence[variable]
                    table[(slice(None),) * axis + (other,)] = -math.inf
            tables.append(table)
        return self.layout.flatten(tables)


class Plan:
    """The part of a network that a question depends on given some variables, for all states of these.

    Given variables are not in its tree. Tables that are not connected to those asked for matter only if they may forbid
    the evidence. Answers are cached, since many records agree in the evidence that an answer depends on.
    """

    def __init__(self, layout: Layout, logs: Vector, asked: Sequence[str], known: Collection[str]) -> None:
        self._asked, self._cardinalities = tuple(asked), layout.cardinalities
        left = [tuple(variable for variable in scope if variable not in known) for scope in layout.scopes]
        graph: nx.Graph = nx.Graph()
        graph.add_nodes_from(asked)
        for scope in left:
            nx.add_path(graph, scope)
        joined = set().union(*(nx.node_connected_component(graph, variable) for variable in asked))
        tables = list(zip(left, layout.scopes, layout.split(logs), strict=True))
        self._own = [each for each in tables if each[0] and joined.issuperset(each[0])]
        others = [each for each in tables if not (each[0] and joined.issuperset(each[0]))]
        self._forbidding = [each for each in others if known and np.isneginf(each[2]).any()]
        self._layout = self._part(joined, [own for own, _, _ in self._own])
        self._near = sorted({variable for _, scope, _ in self._own for variable in scope if variable in known})
        self._answers = dict[tuple[Any, ...], Any]()

    def joint(self, given: Positions) -> Vector:
        self._require_possible(given)
        tree = self._joint_tree
        return tree.marginal(_calibrated(tree, self._logs(given)), self._asked)

    def singles(self, given: Positions) -> list[Vector]:
        def compute(logs: Vector) -> list[Vector]:
            calibration = _calibrated(self._tree, logs)
            return [self._tree.marginal(calibration, [variable]) for variable in self._asked]

        return self._remembered("singles", given, compute)

    def most_probable(self, given: Positions) -> tuple[int, ...]:
        return self._remembered("states", given, lambda logs: self._maximisation.most_probable(logs))

    def _remembered(self, kind: str, given: Positions, compute: Callable[[Vector], Any]) -> Any:
        """Compute an answer once for all evidence that agrees on the variables that affect it."""
        self._require_possible(given)
        key = kind, *(given[variable] for variable in self._near)
        if key not in self._answers:
            _make_room(self._answers)
            self._answers[key] = compute(self._logs(given))
        return self._answers[key]

    @cached_property
    def _joint_tree(self) -> JunctionTree:
        return _tree(self._layout, [self._asked])

    @cached_property
    def _tree(self) -> JunctionTree:
        return _tree(self._layout, [])

    @cached_property
    def _maximisation(self) -> Maximisation:
        return Maximisation.plan(self._layout, self._asked, {})

    def _part(self, variables: Collection[str], scopes: Sequence[Scope]) -> Layout:
        cards = {variable: card for variable, card in self._cardinalities.items() if variable in variables}
        return Layout.of(cards, scopes)

    def _logs(self, given: Positions) -> Vector:
        return self._layout.flatten(_slice(table, scope, given) for _, scope, table in self._own)

    def _require_possible(self, given: Positions) -> None:
        """Refuse evidence that is forbidden by tables on which the answer does not depend."""
        sliced = [(left, _slice(table, scope, given)) for left, scope, table in self._forbidding]
        kept = [(left, table) for left, table in sliced if np.isneginf(table).any()]
        if any(not left for left, _ in kept):
            raise ImpossibleEvidenceError("a table forbids what is given")
        if kept:
            part = self._part(set().union(*(left for left, _ in kept)), [left for left, _ in kept])
            _calibrated(_tree(part, []), part.flatten(table for _, table in kept))


def _make_room(cache: dict[Any, Any]) -> None:
    if len(cache) >= _MAX_CACHED:
        cache.clear()


def _slice(table: Vector, scope: Sequence[str], given: Positions) -> Vector:
    return np.asarray(table[tuple(given.get(variable, slice(None)) for variable in scope)])


def _tree(layout: Layout, cover: Sequence[Scope]) -> JunctionTree:
    return JunctionTree.build(layout.cardinalities, layout.scopes, cover, MAX_TABLE_CELLS)


def _calibrated(tree: JunctionTree, logs: Vector) -> Calibration:
    try:
        return tree.calibrate(logs)
    except ValueError as error:
        raise ImpossibleEvidenceError(str(error)) from error


@dataclass(frozen=True)
class Maximisation:
    """An order of elimination, which serves all log-potentials of one layout."""

    layout: Layout
    asked: tuple[Variable, ...]  # whose joint state is maximised; what is neither asked nor given is summed out
    given: Mapping[Variable, int]
    sums: tuple[Variable, ...]  # in order of elimination
    maxima: tuple[Variable, ...]  # likewise

    @classmethod
    def plan(cls, layout: Layout, asked: Sequence[Variable], given: Mapping[Variable, int]) -> Maximisation:
        """Find an order of elimination."""
        names = [variable for variable in layout.cardinalities if variable not in given]
        number = {variable: position for position, variable in enumerate(names)}
        cards = [layout.cardinalities[variable] for variable in names]
        scopes = [[number[variable] for variable in scope if variable in number] for scope in layout.scopes]
        summed = [number[variable] for variable in names if variable not in asked]
        steps = constrained_order(moral_graph(len(names), scopes), cards, summed)
        if sum(math.prod(cards[node] for node in clique) for _, clique in steps) > MAX_TABLE_CELLS:
            raise TreeTooLargeError(
                f"The most probable state of these {len(asked)} variables needs tables of more than "
                f"{MAX_TABLE_CELLS:,} cells: ask for fewer variables, or for all that are not given."
            )
        order = [names[node] for node, _ in steps]
        return cls(layout, tuple(asked), dict(given), tuple(order[: len(summed)]), tuple(order[len(summed) :]))

    def most_probable(self, potentials: Vector) -> tuple[int, ...]:
        """Return the indices of the jointly most probable states; among equals the first, in the order of `asked`."""
        tables = [_given(table, self.given) for table in map(Table, self.layout.scopes, self.layout.split(potentials))]
        left = (*self.sums, *self.maxima)  # some may be in no table
        tables += [Table((variable,), np.zeros(self.layout.cardinalities[variable])) for variable in left]
        for variable in self.sums:
            product, tables = _gathered(tables, variable)
            tables.append(Table(product.variables[1:], _log_sum(product.values)))
        highest, states, unique = self._maximum(tables)
        if not highest > -math.inf:
            raise ImpossibleEvidenceError("the log-potentials forbid every configuration")
        for variable in self.asked if not unique else ():
            for state in range(states[variable]):
                fixed = [_given(table, {variable: state}, keep=True) for table in tables]
                value, others, _ = self._maximum(fixed)
                if value >= highest - _TIED:
                    states = others
                    break
            tables = [_given(table, {variable: states[variable]}, keep=True) for table in tables]
        return tuple(states[variable] for variable in self.asked)

    def _maximum(self, tables: Sequence[Table[np.float64]]) -> tuple[float, dict[Variable, int], bool]:
        """Return the maximum, states that attain it, and whether they are the only ones."""
        left, products = list(tables), []
        for variable in self.maxima:
            product, left = _gathered(left, variable)
            left.append(Table(product.variables[1:], product.values.max(axis=0)))
            products.append(product)
        states: dict[Variable, int] = {}
        unique = True
        for product in reversed(products):
            known: tuple[slice | int, ...] = tuple(states[variable] for variable in product.variables[1:])
            row = product.values[(slice(None), *known)]
            highest = np.flatnonzero(row >= row.max() - _TIED)
            states[product.variables[0]], unique = int(highest[0]), unique and highest.size == 1
        return float(sum(float(table.values) for table in left)), states, unique


def _given(table: Table[np.float64], given: Mapping[Variable, int], keep: bool = False) -> Table[np.float64]:
    """Restrict a table to the given states; with `keep`, axes stay and other states are forbidden."""
    values = table.values
    if keep:
        for axis in (position for position, variable in enumerate(table.variables) if variable in given):
            other = np.arange(values.shape[axis]) != given[table.variables[axis]]
            values = np.where(np.expand_dims(other, [n for n in range(values.ndim) if n != axis]), -math.inf, values)
        return Table(table.variables, values)
    index = tuple(given.get(variable, slice(None)) for variable in table.variables)
    return Table(tuple(variable for variable in table.variables if variable not in given), values[index])


def _gathered(
    tables: Sequence[Table[np.float64]], variable: Variable
) -> tuple[Table[np.float64], list[Table[np.float64]]]:
    """Add up the tables of a variable, which becomes the first axis of the result; return the other tables too."""
    own = [table for table in tables if variable in table.variables]
    scope = (variable, *dict.fromkeys(v for table in own for v in table.variables if v != variable))
    total = sum(table.expand(scope) for table in own)
    return Table(scope, np.asarray(total)), [table for table in tables if variable not in table.variables]


def _log_sum(values: Vector) -> Vector:
    """Sum over the first axis of a table of logarithms."""
    top = values.max(axis=0)
    top = np.where(top > -math.inf, top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(values - top).sum(axis=0)) + top)
