"""Variables that depend on one other variable alone: functions of it, and finer variables within it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pgmpy_dp.inference.tables.table import Variable, Vector

Whole = NDArray[np.intp]


@dataclass(frozen=True)
class Child:
    """Probabilities of a variable's states given its parent's."""

    parent: Variable
    shares: Any  # rows sum to one; those of states that never occur may be empty

    @classmethod
    def function(cls, parent: Variable, states: Whole, count: int) -> Child:
        """Build a child that has one of `count` states for each state of its parent."""
        shape = len(states), count
        return cls(parent, sparse.csr_array((np.ones(len(states)), (np.arange(len(states)), states)), shape=shape))

    @classmethod
    def within(cls, parent: Variable, groups: Whole, shares: Vector, count: int) -> Child:
        """Build a child each of whose states belongs to one of the parent's `count` states, with a share of it."""
        shape = count, len(groups)
        return cls(parent, sparse.csr_array((shares, (groups, np.arange(len(groups)))), shape=shape))

    @property
    def states(self) -> int:
        """Number of states of the child."""
        return int(self.shares.shape[1])

    @property
    def certain(self) -> bool:
        """Whether the parent's state determines the child's."""
        return bool(np.diff(self.shares.indptr).max(initial=0) <= 1)

    def given(self, likelihood: Vector) -> tuple[Vector, Child]:
        """Condition on evidence on the child: return the likelihood of the parent's states, and the new child."""
        rows, joint = self._rows, self.shares.data * likelihood[self.shares.indices]
        sums = np.bincount(rows, joint, self.shares.shape[0]).astype(np.float64)
        within = sums[rows]
        data = np.where(within > 0, joint / np.where(within > 0, within, 1.0), self.shares.data)
        shares = sparse.csr_array((data, self.shares.indices, self.shares.indptr), shape=self.shares.shape)
        return sums, replace(self, shares=shares)

    def draw(self, parents: NDArray[Any], generator: np.random.Generator, *, even: bool) -> Whole:
        """Draw a state for each record's parent: at random, or so that each has its expected number, rounded."""
        starts, ends = self.shares.indptr[:-1], self.shares.indptr[1:]
        sizes = ends - starts
        if self.certain:
            result: Whole = self.shares.indices[np.minimum(starts[parents], self.shares.nnz - 1)]
            return result
        sums = np.cumsum(self.shares.data)
        before = np.concatenate([[0.0], sums])[starts]
        # Sums of parent p lie between p and p + 1, so that one search serves all.
        steps = sums - before[self._rows] + self._rows
        spots = generator.random(parents.size)
        if even:
            by_parent = np.lexsort((spots, parents))
            counts = np.bincount(parents, minlength=sizes.size)
            ranks = np.arange(parents.size) - np.repeat(np.cumsum(counts) - counts, counts)
            start = generator.random(counts.size)
            spots[by_parent] = (ranks + np.repeat(start, counts)) / np.repeat(counts, counts)
        positions = np.searchsorted(steps, parents + spots, side="right")
        drawn: Whole = self.shares.indices[np.clip(positions, starts[parents], ends[parents] - 1)]
        return drawn

    @property
    def _rows(self) -> Whole:
        return np.repeat(np.arange(self.shares.shape[0]), np.diff(self.shares.indptr))


def row_products(first: Any, second: Any) -> Any:
    """Compute the outer products of the rows of two sparse matrices."""
    rows = np.repeat(np.arange(first.shape[0]), np.diff(first.indptr))
    counts = np.diff(second.indptr)[rows]
    one = np.repeat(np.arange(rows.size), counts)
    other = np.arange(one.size) + np.repeat(second.indptr[rows] - np.cumsum(counts) + counts, counts)
    columns = first.indices[one].astype(np.int64) * second.shape[1] + second.indices[other]
    entries = first.data[one] * second.data[other], (rows[one], columns)
    return sparse.csr_array(entries, shape=(first.shape[0], first.shape[1] * second.shape[1]))


def along(table: Vector, axis: int, matrix: Any) -> Vector:
    """Multiply an axis of a table by a sparse matrix."""
    moved = np.moveaxis(table, axis, 0)
    result = matrix.T @ moved.reshape(len(moved), -1)
    return np.moveaxis(result.reshape(-1, *moved.shape[1:]), 0, axis)
