"""Networks with the same tables are conditioned on evidence by one junction tree, with a calibration for each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference import JunctionTree, Layout, Maximisation, build_engine, sample
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.inference.trees.engine import MAX_TABLE_CELLS
from pgmpy_dp.inference.trees.junction_tree import Calibration
from pgmpy_dp.models.questions import impossible
from pgmpy_dp.schema import Schema


class Conditioning:
    """A conditioning answers from vectors of log-potentials in one layout.

    Parameters
    ----------
    layout : Layout
    schema : Schema
        Its states are in the order of the layout's tables.
    """

    def __init__(self, layout: Layout, schema: Schema) -> None:
        self.layout, self.schema = layout, schema
        self._trees: dict[frozenset[str], JunctionTree] = {}

    def distributions(
        self, potentials: Iterable[Vector], variables: Sequence[str], evidence: Mapping[str, Any]
    ) -> tuple[Vector, Vector]:
        """Find the joint distribution of some variables given the states of others, in each network.

        Returns
        -------
        answers : ndarray of shape (networks, states of the first variable, ...)
        probabilities : ndarray of shape (networks,)
            The evidence has them, where the potentials are normalised.

        Raises
        ------
        ValueError
            If a network forbids the evidence.
        TreeTooLargeError
            If the junction tree that joins the variables does not fit in memory.
        """
        tree, mask = self._tree(variables), self._mask(evidence)
        answers, partitions = [], []
        for logs in potentials:
            calibration = self._calibrated(tree, logs + mask, evidence)
            answers.append(tree.marginal(calibration, variables))
            partitions.append(calibration.log_partition)
        with np.errstate(over="ignore"):  # factors from a file may have any scale
            return np.array(answers), np.exp(partitions)

    def marginals(self, potentials: Iterable[Vector], scopes: Sequence[Sequence[str]]) -> Vector:
        """Put marginals of tables of the layout, or of parts of them, end to end; the shape is (networks, cells)."""
        tree = self._tree(())
        calibrations = (tree.calibrate(logs) for logs in potentials)
        return np.array([np.concatenate([tree.marginal(c, scope).ravel() for scope in scopes]) for c in calibrations])

    def pairs(self, logs: Vector, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Vector]:
        """Find the tables of pairs of variables in one network, also of those that no clique holds.

        Each state of a first variable takes one calibration, which tells of all second ones.
        """
        tree = self._tree(())
        whole = tree.calibrate(logs)
        found = {pair: np.zeros(self.schema.shape(pair)) for pair in pairs}
        for first in dict.fromkeys(first for first, _ in pairs):
            seconds = [second for other, second in pairs if other == first]
            for place, share in enumerate(tree.marginal(whole, [first])):
                if share > 0.0:
                    given = tree.calibrate(logs + self._mask({first: self.schema.states[first][place]}))
                    for second in seconds:
                        found[first, second][place] = share * tree.marginal(given, [second])
        return found

    def most_probable(
        self, potentials: Iterable[Vector], variables: Sequence[str], evidence: Mapping[str, Any]
    ) -> list[tuple[int, ...]]:
        """Find the numbers of the states that are most probable together, in each network; of equal ones the first.

        Raises
        ------
        ValueError
            If a network forbids the evidence.
        TreeTooLargeError
            If all variables but these and the given ones cannot be summed out in memory.
        """
        given = {variable: self.schema.states[variable].index(state) for variable, state in evidence.items()}
        maximisation = Maximisation.plan(self.layout, variables, given)
        try:
            return [maximisation.most_probable(logs) for logs in potentials]
        except ValueError as error:
            raise impossible(evidence) from error

    def sample(
        self, logs: Vector, evidence: Mapping[str, Any], count: int, generator: np.random.Generator
    ) -> dict[str, NDArray[np.int32]]:
        """Draw independent records from one network given the evidence, as state numbers of every variable."""
        tree = self._tree(())
        calibration = self._calibrated(tree, logs + self._mask(evidence), evidence)
        codes = sample(tree, calibration, count, generator)
        return {variable: codes[:, number] for number, variable in enumerate(tree.variables)}

    def _calibrated(self, tree: JunctionTree, logs: Vector, evidence: Mapping[str, Any]) -> Calibration:
        try:
            return tree.calibrate(logs)
        except ValueError as error:
            if not evidence:
                raise
            raise impossible(evidence) from error

    def _tree(self, together: Sequence[str]) -> JunctionTree:
        key = frozenset(together if len(together) > 1 else ())
        if key not in self._trees:
            cover = [tuple(together)] if key else []
            engine = build_engine(self.layout.cardinalities, self.layout.scopes, "junction_tree", cover)
            assert isinstance(engine, JunctionTree)
            self._trees[key] = engine
        return self._trees[key]

    def _mask(self, evidence: Mapping[str, Any]) -> Vector:
        """Give the cells that contradict the evidence minus infinity, and all others 0."""
        tables = []
        for scope, shape in zip(self.layout.scopes, self.layout.shapes, strict=True):
            table = np.zeros(shape)
            for axis, variable in enumerate(scope):
                if variable in evidence:
                    given = self.schema.states[variable].index(evidence[variable])
                    other = np.arange(shape[axis]) != given
                    table[(slice(None),) * axis + (other,)] = -math.inf
            tables.append(table)
        return self.layout.flatten(tables)


def distribution(
    layout: Layout, logs: Vector, schema: Schema, asked: Sequence[str], given: Mapping[str, Any]
) -> Vector:
    """Find the joint distribution of some variables given the states of others, which need no place in the tree.

    Raises
    ------
    ValueError
        If the evidence has probability zero.
    TreeTooLargeError
        If the junction tree of what the answer depends on does not fit in memory.
    """
    places = {variable: schema.states[variable].index(state) for variable, state in given.items()}
    scopes, tables = [], []
    for scope, table in zip(layout.scopes, layout.split(logs), strict=True):
        tables.append(table[tuple(places.get(variable, slice(None)) for variable in scope)])
        scopes.append(tuple(variable for variable in scope if variable not in given))
    left = {variable: card for variable, card in layout.cardinalities.items() if variable not in given}
    kept = [number for number, scope in enumerate(scopes) if scope]
    if any(tables[number] == -math.inf for number, scope in enumerate(scopes) if not scope):
        raise impossible(given)
    reduced = Layout.of(left, [scopes[number] for number in kept])
    tree = build_engine(left, reduced.scopes, "junction_tree", [tuple(asked)])
    assert isinstance(tree, JunctionTree)
    try:
        calibration = tree.calibrate(reduced.flatten(tables[number] for number in kept))
    except ValueError as error:
        raise impossible(given) from error
    return tree.marginal(calibration, asked)


def require_answerable(
    cardinalities: Mapping[str, int], scopes: Iterable[Sequence[str]], asked: Sequence[str], given: Iterable[str]
) -> None:
    """Refuse a question whose junction tree, of the tables that the evidence leaves joined, does not fit in memory.

    Raises
    ------
    TreeTooLargeError
    """
    known = set(given)
    left = [*([v for v in scope if v not in known] for scope in scopes), [*asked]]
    graph = nx.Graph()
    for scope in left:
        nx.add_path(graph, scope)
    joined = set().union(*(nx.node_connected_component(graph, variable) for variable in asked))
    within = {variable: card for variable, card in cardinalities.items() if variable in joined}
    JunctionTree.cliques_of(within, [scope for scope in left if joined.issuperset(scope)], MAX_TABLE_CELLS)
