"""Numbered states and cells of a mixture in flat vectors, and target tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Matrix = NDArray[Any]  # float32 in fits, float64 where tests compare gradients
Whole = NDArray[np.intp]


@dataclass(frozen=True)
class Shape:
    """Places of the states of variables and of the cells of blocks in flat vectors.

    Parameters
    ----------
    cardinalities : tuple of int
    blocks : tuple of tuples of int
        Each variable that follows from no other is in exactly one.
    cells : tuple of ndarrays of shape (cells of the block, variables of the block)
        States of the cells in a block's tables.
    dependent : mapping of int to (int, ndarray)
        Variables that follow from another one, their root, with the state for each state of the root.
    """

    cardinalities: tuple[int, ...]
    blocks: tuple[tuple[int, ...], ...]
    cells: tuple[Whole, ...]
    dependent: Mapping[int, tuple[int, Whole]] = field(default_factory=dict)

    @cached_property
    def states(self) -> Whole:
        """Start of every variable's states, followed by their number."""
        return np.cumsum([0, *self.cardinalities])

    @cached_property
    def starts(self) -> Whole:
        """Start of every block's cells, followed by their number."""
        return np.cumsum([0, *(len(cells) for cells in self.cells)])

    @cached_property
    def members(self) -> NDArray[np.int32]:
        """Places of every cell's states, by variable of its block; -1 beyond the last one."""
        found = np.full((self.starts[-1], max(map(len, self.blocks))), -1, np.int32)
        for number, block in enumerate(self.blocks):
            found[self.of_block(number), : len(block)] = self.states[list(block)] + self.cells[number]
        return found

    @cached_property
    def places(self) -> tuple[tuple[int, int], ...]:
        """Block of every variable, and its place within it; for one that follows from another, those of the root."""
        found = {v: (number, place) for number, block in enumerate(self.blocks) for place, v in enumerate(block)}
        found |= {variable: found[root] for variable, (root, _) in self.dependent.items()}
        return tuple(found[variable] for variable in range(len(self.cardinalities)))

    def codes(self, number: int, variables: Sequence[int] = ()) -> Whole:
        """Return the places of a block's cells in the full table of some of its variables, of all by default."""
        block = self.blocks[number]
        axes = [block.index(variable) for variable in variables or block]
        shape = [self.cardinalities[block[axis]] for axis in axes]
        codes: Whole = np.ravel_multi_index(tuple(self.cells[number][:, axes].T), shape)
        return codes

    def of_variable(self, variable: int) -> slice:
        return slice(int(self.states[variable]), int(self.states[variable + 1]))

    def add_dependent(self, states: Matrix) -> None:
        """Fill the rows of variables that follow from others with sums of their roots' rows."""
        if self.dependent:
            rows, sums, *_ = self._following
            states[rows] = sums @ states

    def add_to_roots(self, states: Matrix) -> None:
        """Add rows of variables that follow from others to those of their roots' states."""
        if self.dependent:
            _, _, rows, sums = self._following
            states[rows] += sums @ states

    @cached_property
    def _following(self) -> tuple[Whole, Any, Whole, Any]:
        """Rows of variables that follow from roots, matrix of sums from the roots' rows, and the same in reverse."""
        finer = np.concatenate([self.states[root] + np.arange(len(groups)) for root, groups in self.dependent.values()])
        coarser = np.concatenate([self.states[variable] + groups for variable, (_, groups) in self.dependent.items()])
        shape, ones = (self.states[-1], self.states[-1]), np.ones(len(finer), np.float32)
        sums = sparse.csr_array((ones, (coarser, finer)), shape=shape)
        present, roots = np.unique(coarser), np.unique(finer)
        return present, sums[present], roots, sums.T.tocsr()[roots]

    def of_block(self, number: int) -> slice:
        return slice(int(self.starts[number]), int(self.starts[number + 1]))


@dataclass(frozen=True)
class Target:
    """A table that the mixture's marginal should equal.

    Parameters
    ----------
    variables : tuple of int
    shares : ndarray
        The table's cells, as shares of the records; or their residuals.
    precision : float
        One over the variance of each cell.
    """

    variables: tuple[int, ...]
    shares: Matrix
    precision: float
