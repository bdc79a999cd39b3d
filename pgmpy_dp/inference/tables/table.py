"""Tables that know the variables of their axes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Variable = Any  # hashable; mappings are invariant in their keys, so no narrower type serves all callers
Scope = tuple[Variable, ...]
Vector = NDArray[np.float64]

Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, eq=False)
class Table(Generic[Number]):
    """Values for all configurations of some variables, with one axis per variable.

    Examples
    --------
    >>> table = Table(("a", "b"), np.array([[1, 2, 3], [4, 5, 6]]))
    >>> table.margin(("b",)).values
    array([5, 7, 9])
    >>> table.margin(("b", "a")).values.shape
    (3, 2)
    """

    variables: Scope
    values: NDArray[Number]

    def margin(self, variables: Collection[Variable]) -> Table[Number]:
        """Sum over all other variables; the axes of the result are in the given order."""
        kept = [variable for variable in self.variables if variable in variables]
        summed = self.values.sum(axis=tuple(i for i, v in enumerate(self.variables) if v not in variables))
        return Table(tuple(variables), summed.transpose([kept.index(variable) for variable in variables]))

    def expand(self, variables: Collection[Variable]) -> NDArray[Number]:
        """Return the values with axes in the order of these variables, of length 1 for those that the table lacks."""
        values = self.margin([variable for variable in variables if variable in self.variables]).values
        return np.expand_dims(values, [i for i, v in enumerate(variables) if v not in self.variables])


def pooled(tables: Sequence[Vector], precisions: Sequence[Any]) -> tuple[Vector, Any]:
    """Average noisy tables of the same counts by precision (one over the noise variance); return the mean's too.

    Examples
    --------
    >>> pooled([np.array([10.0, 20.0]), np.array([14.0, 26.0])], [3.0, 1.0])
    (array([11. , 21.5]), 4.0)
    """
    whole = sum(precisions)
    mean = sum(precision * table for precision, table in zip(precisions, tables, strict=True)) / whole
    return np.asarray(mean), whole


def thinned(
    table: NDArray[Any], deviation: float, share: float, generator: np.random.Generator
) -> tuple[Vector, Vector]:
    """Split a noisy table into two of the same counts, whose noise is independent if it is Gaussian, else uncorrelated.

    Normal noise of `share` times the table's deviation is added for one, and subtracted, divided by share^2, for the
    other: their deviations are sqrt(1 + share^2) and sqrt(1 + 1 / share^2) times the table's.
    """
    noise = deviation * generator.standard_normal(table.shape)
    return table + share * noise, table - noise / share


def centred(table: NDArray[Any], first: int = 0) -> NDArray[Any]:
    """Subtract means along every axis from `first` on: project on the tables that sum to 0 along each.

    Examples
    --------
    >>> centred(np.array([[4.0, 1.0], [1.0, 4.0]]))
    array([[ 1.5, -1.5],
           [-1.5,  1.5]])
    """
    for axis in range(first, table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def project_to_simplex(values: ArrayLike) -> NDArray[np.float64]:
    """Find the nearest probability table, in Euclidean distance, to a table of any shape.

    Parameters
    ----------
    values : array_like
        Finite numbers, such as a noisy table divided by the number of records. All cells form one simplex.

    Returns
    -------
    ndarray of float64
        Same shape; non-negative with sum 1 up to rounding. Cells are often exactly zero.

    Raises ValueError if the table is empty or a value is not finite.

    Notes
    -----
    Duchi, Shalev-Shwartz, Singer and Chandra 2008, Figure 1; O(d log d) for d cells.

    Examples
    --------
    >>> project_to_simplex([0.9, 0.4, -0.2]).round(3).tolist()
    [0.75, 0.25, 0.0]
    """
    table = np.asarray(values, dtype=np.float64)
    if table.size == 0 or not np.isfinite(table).all():
        raise ValueError("project_to_simplex: values must be a non-empty table of finite numbers.")
    # The projection is invariant to shifts. With the largest value at 0 every cell of the support is above -1, so the
    # sums below lose no precision however large the values are.
    with np.errstate(over="ignore"):
        shifted = table - table.max()
    candidates = np.sort(shifted[shifted > -1.0])[::-1]
    thresholds = (np.cumsum(candidates) - 1.0) / np.arange(1, candidates.size + 1)
    support = np.flatnonzero(candidates > thresholds)[-1]
    projected: NDArray[np.float64] = np.maximum(shifted - thresholds[support], 0.0)
    return projected
