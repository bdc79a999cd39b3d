"""Exact inference with tied parameters: several cliques of a junction tree share one table of log-potentials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference.tables.table import Layout, Scope, Variable, Vector
from pgmpy_dp.inference.trees.junction_tree import Calibration, JunctionTree


@dataclass(frozen=True)
class TiedTree:
    """A junction tree viewed through groups of cliques, with one table per group.

    Its marginals are the means of the marginals of a group's cliques, which is what pooled records show. The derivative
    of log Z by the log-potentials of a group of k cliques is k times that.

    Attributes
    ----------
    tree : JunctionTree
        Its scopes are the cliques of all groups.
    layout : Layout
        One table per group.
    source : ndarray of int, shape (tree.layout.size,)
        For each cell of the tree's layout the cell of its group.
    repeats : ndarray, shape (layout.size,)
        k, the number of cliques in the group.
    """

    tree: JunctionTree
    layout: Layout
    source: NDArray[np.int64]
    repeats: Vector

    @classmethod
    def build(
        cls,
        cardinalities: Mapping[Variable, int],
        groups: Mapping[Scope, Sequence[Scope]],
        names: Mapping[Variable, int],
        max_cells: float,
    ) -> TiedTree:
        """Compile the tree.

        Parameters
        ----------
        cardinalities : mapping of variable to int
            Of the variables of the model.
        groups : mapping of scope to sequence of scopes
            The name of each group's table, and its cliques, whose axes correspond.
        names : mapping of variable to int
            Cardinalities of the variables in the groups' names.
        max_cells : float
            As for `JunctionTree.build`.

        Examples
        --------
        >>> cards, pairs = dict.fromkeys("abc", 2), [("a", "b"), ("b", "c")]
        >>> tied = TiedTree.build(cards, {("now", "next"): pairs}, {"now": 2, "next": 2}, 1e6)
        >>> tied.calibrate(np.log([2.0, 1, 1, 2])).marginals.round(3)
        array([0.333, 0.167, 0.167, 0.333])
        """
        layout = Layout.of(names, groups)
        tree = JunctionTree.build(
            cardinalities, [clique for group in groups.values() for clique in group], (), max_cells
        )
        ends = zip(layout.offsets[:-1], layout.offsets[1:], groups.values(), strict=True)
        source = [np.arange(start, stop) for start, stop, group in ends for _ in group]
        return cls(tree, layout, np.concatenate(source), layout.per_cell([len(group) for group in groups.values()]))

    def expand(self, potentials: Vector) -> Vector:
        """Return the log-potentials of the tree's cliques for those of the groups."""
        return potentials[self.source]

    def sum(self, values: Vector) -> Vector:
        """Sum over each group's cliques, from values in the tree's layout."""
        return np.bincount(self.source, values, self.layout.size).astype(np.float64)

    def calibrate(self, potentials: Vector) -> Calibration:
        """Calibrate like `JunctionTree.calibrate`, with potentials and marginals of the groups."""
        found = self.tree.calibrate(self.expand(potentials))
        return Calibration(found.log_partition, self.sum(found.marginals) / self.repeats, found.beliefs)

    def covariance_product(self, calibration: Calibration, direction: Vector) -> Vector:
        """Differentiate the product of the mean marginals with a direction g by the log-potentials.

        For a `JunctionTree` this is also the derivative of the marginals along g; here only if all groups have one
        size.
        """
        return self.sum(self.tree.covariance_product(calibration, self.expand(direction / self.repeats)))
