"""Networks with the same tables are conditioned on evidence by one junction tree, with a calibration for each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference import JunctionTree, Layout, Maximisation, build_engine, sample
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.inference.trees.junction_tree import Calibration
from pgmpy_dp.models.answering import ImpossibleEvidenceError, Places
from pgmpy_dp.schema import Clique


class Conditioning:
    """A conditioning answers from vectors of log-potentials in one layout.

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
        """Find the joint distribution of some variables given the states of others, in each network.

        Returns
        -------
        answers : ndarray of shape (networks, states of the first variable, ...)
        probabilities : ndarray of shape (networks,)
            The evidence has them, where the potentials are normalised.

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
        """Find the numbers of the states that are most probable together, in each network; of equal ones the first.

        Raises
        ------
        ImpossibleEvidenceError
            If a network forbids the evidence.
        TreeTooLargeError
            If all variables but these and the given ones cannot be summed out in memory.
        """
        maximisation = Maximisation.plan(self.layout, variables, evidence)
        try:
            return [maximisation.most_probable(logs) for logs in potentials]
        except ValueError as error:
            raise ImpossibleEvidenceError(str(error)) from error

    def sample(
        self, logs: Vector, evidence: Places, count: int, generator: np.random.Generator
    ) -> dict[str, NDArray[np.int32]]:
        """Draw independent records from one network given the evidence, as state numbers of every variable."""
        tree = self._tree(())
        calibration = _calibrated(tree, logs + self._mask(evidence))
        codes = sample(tree, calibration, count, generator)
        return {variable: codes[:, number] for number, variable in enumerate(tree.variables)}

    def log_partition(self, logs: Vector, evidence: Places) -> float:
        """Compute the logarithm of the mass that one network gives the evidence; minus infinity where it is none."""
        tree = self._tree(())
        try:
            return tree.calibrate(logs + self._mask(evidence)).log_partition
        except ValueError:
            return -math.inf

    def _tree(self, together: Sequence[str]) -> JunctionTree:
        key = frozenset(together if len(together) > 1 else ())
        if key not in self._trees:
            cover = [tuple(together)] if key else []
            engine = build_engine(self.layout.cardinalities, self.layout.scopes, "junction_tree", cover)
            assert isinstance(engine, JunctionTree)
            self._trees[key] = engine
        return self._trees[key]

    def _mask(self, evidence: Places) -> Vector:
        """Give the cells that contradict the evidence minus infinity, and all others 0."""
        tables = []
        for scope, shape in zip(self.layout.scopes, self.layout.shapes, strict=True):
            table = np.zeros(shape)
            for axis, variable in enumerate(scope):
                if variable in evidence:
                    other = np.arange(shape[axis]) != evidence[variable]
                    table[(slice(None),) * axis + (other,)] = -math.inf
            tables.append(table)
        return self.layout.flatten(tables)


def distribution(layout: Layout, logs: Vector, asked: Sequence[str], given: Places) -> Vector:
    """Find the joint distribution of some variables given the states of others, which need no place in the tree.

    Tables that share no variable with what is asked for matter only where they may forbid the evidence.

    Raises
    ------
    ImpossibleEvidenceError
        If the evidence has probability zero.
    TreeTooLargeError
        If the junction tree of what the answer depends on does not fit in memory.
    """
    scopes, tables = [], []
    for scope, table in zip(layout.scopes, layout.split(logs), strict=True):
        tables.append(table[tuple(given.get(variable, slice(None)) for variable in scope)])
        scopes.append(tuple(variable for variable in scope if variable not in given))
    graph: nx.Graph = nx.Graph()
    for scope in (*scopes, tuple(asked)):
        nx.add_path(graph, scope)
    joined = set().union(*(nx.node_connected_component(graph, variable) for variable in asked))
    own = [number for number, scope in enumerate(scopes) if joined.issuperset(scope) and scope]
    others = [number for number in range(len(scopes)) if not joined.issuperset(scopes[number]) or not scopes[number]]
    if given and any(np.isneginf(tables[number]).any() for number in others):
        _calibrate(layout, scopes, tables, others, ())
    tree, calibration = _calibrate(layout, scopes, tables, own, tuple(asked))
    return tree.marginal(calibration, asked)


def _calibrate(
    layout: Layout, scopes: Sequence[Sequence[str]], tables: Sequence[Vector], numbers: Sequence[int], asked: Clique
) -> tuple[JunctionTree, Calibration]:
    """Calibrate a tree of some tables, which may be without variables."""
    if any(np.ndim(tables[number]) == 0 and np.isneginf(tables[number]) for number in numbers):
        raise ImpossibleEvidenceError("a table forbids what is given")
    kept = [number for number in numbers if scopes[number]]
    named = {*asked}.union(*(scopes[number] for number in kept))
    left = {variable: card for variable, card in layout.cardinalities.items() if variable in named}
    reduced = Layout.of(left, [tuple(scopes[number]) for number in kept])
    tree = build_engine(left, reduced.scopes, "junction_tree", [asked] if asked else [])
    assert isinstance(tree, JunctionTree)
    return tree, _calibrated(tree, reduced.flatten(tables[number] for number in kept))


def _calibrated(tree: JunctionTree, logs: Vector) -> Calibration:
    try:
        return tree.calibrate(logs)
    except ValueError as error:
        raise ImpossibleEvidenceError(str(error)) from error
