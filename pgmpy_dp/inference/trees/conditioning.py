"""Distributions given the states of some variables, from networks of the same scopes, and most probable states.

Most probable states are found by elimination: other variables are summed out first, then maxima are taken. Sources:
Dechter (1999), "Bucket elimination: a unifying framework for reasoning"; Park and Darwiche (2004), "Complexity results
and approximation strategies for MAP explanations", for summing before maximising, which the answer requires, and which
makes tables larger than those of a junction tree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference.distribution import ImpossibleEvidenceError
from pgmpy_dp.inference.distribution import Positions as Places
from pgmpy_dp.inference.tables.table import Layout, Table, Variable, Vector
from pgmpy_dp.inference.tables.table import Scope as Clique
from pgmpy_dp.inference.trees.factor_graph import MAX_TABLE_CELLS, build_engine
from pgmpy_dp.inference.trees.junction_tree import Calibration, JunctionTree, TreeTooLargeError
from pgmpy_dp.inference.trees.tree_sampling import sample
from pgmpy_dp.inference.trees.triangulation import constrained_order, moral_graph

# Log-probabilities that differ by less than this are considered equal.
_TIED = 1e-9


@dataclass(frozen=True)
class Maximisation:
    """An order of elimination, which serves all log-potentials of one layout.

    Attributes
    ----------
    layout : Layout
    asked : tuple of variables
        The variables whose joint state is maximised.
    given : mapping of variable to int
        Indices of known states; all other variables are summed out.
    sums, maxima : tuples of variables
        In order of elimination.
    """

    layout: Layout
    asked: tuple[Variable, ...]
    given: Mapping[Variable, int]
    sums: tuple[Variable, ...]
    maxima: tuple[Variable, ...]

    @classmethod
    def plan(cls, layout: Layout, asked: Sequence[Variable], given: Mapping[Variable, int]) -> Maximisation:
        """Find an order of elimination.

        Raises
        ------
        TreeTooLargeError
            If its tables do not fit in memory.

        Examples
        --------
        >>> layout = Layout.of({"a": 2, "b": 2}, [("a", "b")])
        >>> joint = np.log([0.3, 0.3, 0.4, 1e-9])
        >>> Maximisation.plan(layout, ["a"], {}).most_probable(joint)  # .6 against .4
        (0,)
        >>> Maximisation.plan(layout, ["a", "b"], {}).most_probable(joint)
        (1, 0)
        """
        names = [variable for variable in layout.cardinalities if variable not in given]
        number = {variable: place for place, variable in enumerate(names)}
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
        """Return the indices of the jointly most probable states; among equals the first, in the order of `asked`.

        Raises
        ------
        ValueError
            If the given states have probability zero.
        """
        tables = [_given(table, self.given) for table in map(Table, self.layout.scopes, self.layout.split(potentials))]
        left = (*self.sums, *self.maxima)  # some may be in no table
        tables += [Table((variable,), np.zeros(self.layout.cardinalities[variable])) for variable in left]
        for variable in self.sums:
            product, tables = _gathered(tables, variable)
            tables.append(Table(product.variables[1:], _log_sum(product.values)))
        highest, states, unique = self._maximum(tables)
        if not highest > -math.inf:
            raise ValueError("the log-potentials forbid every configuration: the partition function is zero")
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
        for axis in (place for place, variable in enumerate(table.variables) if variable in given):
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


class Conditioning:
    """Conditional distributions from vectors of log-potentials in one layout.

    Parameters
    ----------
    layout : Layout
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._trees: dict[frozenset[str], JunctionTree] = {}

    def distributions(
        self, potentials: Iterable[Vector], variables: Sequence[str], evidence: Places
    ) -> tuple[Vector, Vector]:
        """Compute the joint distribution of some variables given the states of others, in each network.

        Returns
        -------
        answers : ndarray of shape (networks, states of the first variable, ...)
        probabilities : ndarray of shape (networks,)
            Probabilities of the evidence, if the potentials are normalised.

        Raises
        ------
        ImpossibleEvidenceError
            If a network forbids the evidence.
        TreeTooLargeError
            If the junction tree that joins the variables does not fit in memory.
        """
        tree, mask = self._tree(variables), self._mask(evidence)
        answers, partitions = [], []
        for logs in potentials:
            calibration = _calibrated(tree, logs + mask)
            answers.append(tree.marginal(calibration, variables))
            partitions.append(calibration.log_partition)
        with np.errstate(over="ignore"):  # factors in a file may have any scale
            return np.array(answers), np.exp(partitions)

    def marginals(self, potentials: Iterable[Vector], scopes: Sequence[Sequence[str]]) -> Vector:
        """Concatenate marginals on scopes of the layout or subsets of them; the shape is (networks, cells)."""
        tree = self._tree(())
        calibrations = (tree.calibrate(logs) for logs in potentials)
        return np.array([np.concatenate([tree.marginal(c, scope).ravel() for scope in scopes]) for c in calibrations])

    def pairs(self, logs: Vector, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Vector]:
        """Compute the tables of pairs of variables in one network, including pairs in no clique.

        Each state of a first variable takes one calibration, which gives the tables with all second variables.
        """
        tree = self._tree(())
        whole = tree.calibrate(logs)
        found = {pair: np.zeros([self.layout.cardinalities[v] for v in pair]) for pair in pairs}
        for first in dict.fromkeys(first for first, _ in pairs):
            seconds = [second for other, second in pairs if other == first]
            for place, share in enumerate(tree.marginal(whole, [first])):
                if share > 0.0:
                    given = tree.calibrate(logs + self._mask({first: place}))
                    for second in seconds:
                        found[first, second][place] = share * tree.marginal(given, [second])
        return found

    def most_probable(
        self, potentials: Iterable[Vector], variables: Sequence[str], evidence: Places
    ) -> list[tuple[int, ...]]:
        """Find the positions of the most probable joint state in each network; ties go to the first.

        Raises
        ------
        ImpossibleEvidenceError
            If a network forbids the evidence.
        TreeTooLargeError
            If the remaining variables cannot be summed out in memory.
        """
        maximisation = Maximisation.plan(self.layout, variables, evidence)
        try:
            return [maximisation.most_probable(logs) for logs in potentials]
        except ValueError as error:
            raise ImpossibleEvidenceError(str(error)) from error

    def sample(
        self, logs: Vector, evidence: Places, count: int, generator: np.random.Generator
    ) -> dict[str, NDArray[np.int32]]:
        """Draw independent records from one network given the evidence, as positions of states."""
        tree = self._tree(())
        calibration = _calibrated(tree, logs + self._mask(evidence))
        codes = sample(tree, calibration, count, generator)
        return {variable: codes[:, number] for number, variable in enumerate(tree.variables)}

    def log_partition(self, logs: Vector, evidence: Places) -> float:
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

    def _mask(self, evidence: Places) -> Vector:
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


class Reduction:
    """The part of a network that a query depends on given some variables: one plan for all of their states.

    Tables that are not connected to the queried variables matter only if they may forbid the evidence. Given variables
    are not in the tree. Answers are cached, since many records agree in the evidence that an answer depends on.

    Parameters
    ----------
    layout : Layout
    logs : ndarray of shape (layout.size,)
    asked : sequence of str
    known : collection of str
        The variables that are given.
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
        self._found = dict[tuple[int, ...], Any]()

    def joint(self, given: Places) -> Vector:
        """Compute the joint distribution of the queried variables.

        Raises
        ------
        ImpossibleEvidenceError
            If the evidence has probability zero.
        TreeTooLargeError
            If the junction tree of what the answer depends on does not fit in memory.
        """
        self._require_possible(given)
        tree = _tree(self._layout, [self._asked])
        return tree.marginal(_calibrated(tree, self._logs(given)), self._asked)

    def marginals(self, given: Places) -> list[Vector]:
        """Compute the distribution of each queried variable; errors as in `joint`."""
        return self._once(given, self._each)  # type: ignore[no-any-return]

    def most_probable(self, given: Places) -> tuple[int, ...]:
        """Find the most probable joint state of the queried variables; errors as in `joint`."""
        return self._once(given, self._states)  # type: ignore[no-any-return]

    def _once(self, given: Places, find: Callable[[Vector], Any]) -> Any:
        self._require_possible(given)
        near = tuple(given[variable] for variable in self._near)
        if near not in self._found:
            self._found[near] = find(self._logs(given))
        return self._found[near]

    def _each(self, logs: Vector) -> list[Vector]:
        calibration = _calibrated(self._tree, logs)
        return [self._tree.marginal(calibration, [variable]) for variable in self._asked]

    def _states(self, logs: Vector) -> tuple[int, ...]:
        maximisation = self._maximisation
        try:
            return maximisation.most_probable(logs)
        except ValueError as error:
            raise ImpossibleEvidenceError(str(error)) from error

    @cached_property
    def _tree(self) -> JunctionTree:
        return _tree(self._layout, [])

    @cached_property
    def _maximisation(self) -> Maximisation:
        return Maximisation.plan(self._layout, self._asked, {})

    def _part(self, variables: Collection[str], scopes: Sequence[Clique]) -> Layout:
        cards = {variable: card for variable, card in self._cardinalities.items() if variable in variables}
        return Layout.of(cards, scopes)

    def _logs(self, given: Places) -> Vector:
        return self._layout.flatten(_slice(table, scope, given) for _, scope, table in self._own)

    def _require_possible(self, given: Places) -> None:
        """Refuse evidence that is forbidden by tables on which the answer does not depend."""
        sliced = [(left, _slice(table, scope, given)) for left, scope, table in self._forbidding]
        kept = [(left, table) for left, table in sliced if np.isneginf(table).any()]
        if any(not left for left, _ in kept):
            raise ImpossibleEvidenceError("a table forbids what is given")
        if kept:
            part = self._part(set().union(*(left for left, _ in kept)), [left for left, _ in kept])
            _calibrated(_tree(part, []), part.flatten(table for _, table in kept))


def _slice(table: Vector, scope: Sequence[str], given: Places) -> Vector:
    return np.asarray(table[tuple(given.get(variable, slice(None)) for variable in scope)])


def _tree(layout: Layout, cover: Sequence[Clique]) -> JunctionTree:
    tree = build_engine(layout.cardinalities, layout.scopes, "junction_tree", cover)
    assert isinstance(tree, JunctionTree)
    return tree


def _calibrated(tree: JunctionTree, logs: Vector) -> Calibration:
    try:
        return tree.calibrate(logs)
    except ValueError as error:
        raise ImpossibleEvidenceError(str(error)) from error
