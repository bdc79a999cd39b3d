"""Conditional distributions of many networks with the same tables: one junction tree, a calibration a network."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pgmpy_dp.inference import JunctionTree, Layout, build_engine
from pgmpy_dp.inference.layout import Vector
from pgmpy_dp.schema import Schema

# Log-potentials times this, exponentiated and summed, are their largest term: the most probable state of all.
_SHARPNESS = 1e4


class Conditioning:
    """Answers from vectors of log-potentials in one layout.

    Parameters
    ----------
    layout : Layout
    schema : Schema
        States, in the order of the layout's tables.
    """

    def __init__(self, layout: Layout, schema: Schema) -> None:
        self.layout, self.schema = layout, schema
        self._trees: dict[frozenset[str], JunctionTree] = {}

    def distributions(
        self, potentials: Iterable[Vector], variables: Sequence[str], evidence: Mapping[str, Any]
    ) -> tuple[Vector, Vector]:
        """Joint distribution of some variables given the states of others, in each network.

        Returns
        -------
        answers : ndarray of shape (networks, states of the first variable, ...)
        probabilities : ndarray of shape (networks,)
            Of the evidence, where the potentials are normalised.

        Raises
        ------
        ValueError
            If a network forbids the evidence.
        TreeTooLargeError
            If the junction tree that joins the variables does not fit in memory.
        """
        tree, mask = self._tree(variables), self._mask(evidence)
        answers, probabilities = [], []
        for logs in potentials:
            calibration = tree.calibrate(logs + mask)
            answers.append(tree.marginal(calibration, variables))
            probabilities.append(math.exp(calibration.log_partition))
        return np.array(answers), np.array(probabilities)

    def marginals(self, potentials: Iterable[Vector], scopes: Sequence[Sequence[str]]) -> Vector:
        """Marginals of tables of the layout, or of parts of them, end to end; shape (networks, cells)."""
        tree = self._tree(())
        rows = []
        for logs in potentials:
            calibration = tree.calibrate(logs)
            rows.append(np.concatenate([tree.marginal(calibration, scope).ravel() for scope in scopes]))
        return np.array(rows)

    def most_probable(
        self, potentials: Iterable[Vector], variables: Sequence[str], evidence: Mapping[str, Any]
    ) -> list[tuple[int, ...]]:
        """State numbers of all variables without evidence, in each network where they are most probable together."""
        tree, mask = self._tree(()), self._mask(evidence)
        found = []
        for logs in potentials:
            calibration = tree.calibrate(_SHARPNESS * logs + mask)
            found.append(tuple(int(np.argmax(tree.marginal(calibration, [name]))) for name in variables))
        return found

    def _tree(self, together: Sequence[str]) -> JunctionTree:
        key = frozenset(together if len(together) > 1 else ())
        if key not in self._trees:
            cover = [tuple(together)] if key else []
            engine = build_engine(self.layout.cardinalities, self.layout.scopes, "junction_tree", cover)
            assert isinstance(engine, JunctionTree)
            self._trees[key] = engine
        return self._trees[key]

    def _mask(self, evidence: Mapping[str, Any]) -> Vector:
        """Minus infinity for the cells that contradict the evidence, else 0."""
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
