"""Rows of CPDs, as sets of cells of the families' tables."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference.tables.layout import Layout, Vector


def row_maxima(values: Vector, numbers: NDArray[np.int64]) -> Vector:
    """Return the largest value of each row, given the row number of each cell."""
    maxima = np.full(numbers.max() + 1, -np.inf)
    np.maximum.at(maxima, numbers, values)
    return maxima


class Rows:
    """Rows of all CPDs: the cells of a family's table that share a configuration of the parents.

    Parameters
    ----------
    families : Layout
        Tables whose first axis is the node's own, all others its parents'.

    Attributes
    ----------
    numbers : ndarray of int64, shape (families.size,)
        The row of each cell, counted over all families.
    shapes : sequence of tuples of int
        Shapes of the families' tables.

    Examples
    --------
    >>> rows = Rows(Layout.of({"a": 2, "b": 2}, [("a",), ("b", "a")]))
    >>> rows.numbers.tolist()
    [0, 0, 1, 2, 1, 2]
    >>> rows.sums(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])).tolist()
    [3.0, 3.0, 8.0, 10.0, 8.0, 10.0]
    """

    def __init__(self, families: Layout) -> None:
        numbers, count = [], 0
        for shape in families.shapes:
            width = math.prod(shape[1:])
            numbers.append(count + np.arange(shape[0] * width) % width)
            count += width
        self.numbers: NDArray[np.int64] = np.concatenate(numbers)
        self.shapes = families.shapes
        self._count = count

    def totals(self, values: Vector) -> Vector:
        """Sum each row; shape (number of rows,)."""
        totals: Vector = np.bincount(self.numbers, values, self._count).astype(np.float64)
        return totals

    def sums(self, values: Vector) -> Vector:
        """Return each cell's row sum; shape of `values`."""
        return self.totals(values)[self.numbers]

    def normalise(self, logs: Vector) -> Vector:
        """Return the logarithms of exp(logs) divided by its sum in each row; shape of `logs`."""
        shifted = logs - row_maxima(logs, self.numbers)[self.numbers]
        normalised: Vector = shifted - np.log(self.sums(np.exp(shifted)))
        return normalised
