"""Networks with the same scopes share a junction tree for conditioning, which is calibrated for each."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference import JunctionTree, Layout, Maximisation, build_engine, sample
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.inference.trees.junction_tree import Calibration
from pgmpy_dp.models.answering import ImpossibleEvidenceError, Places
from pgmpy_dp.schema import Clique


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
