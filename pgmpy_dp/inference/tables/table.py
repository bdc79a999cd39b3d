"""Tables with variables as axes; layouts of several tables in one flat vector; and rows of CPDs among their cells."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
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
    """Average noisy tables of the same counts by precision (one over the noise variance); return the mean's too."""
    whole = sum(precisions)
    mean = sum(precision * table for precision, table in zip(precisions, tables, strict=True)) / whole
    return np.asarray(mean), whole


def thinned(table: NDArray[Any], deviation: Any, share: float, generator: np.random.Generator) -> tuple[Vector, Vector]:
    """Split a noisy table into two of the same counts, whose noise is independent if it is Gaussian, else uncorrelated.

    Normal noise of `share` times the table's deviation is added for one, and subtracted, divided by share^2, for the
    other: their deviations are sqrt(1 + share^2) and sqrt(1 + 1 / share^2) times the table's.
    """
    noise = deviation * generator.standard_normal(table.shape)
    return table + share * noise, table - noise / share


def grouped(table: NDArray[Any], axis: int, groups: NDArray[np.integer[Any]], count: int) -> NDArray[Any]:
    """Sum the cells along an axis by their groups, of which there are `count`."""
    sums = np.zeros((count, *np.delete(table.shape, axis)), dtype=table.dtype)
    np.add.at(sums, groups, np.moveaxis(table, axis, 0))
    return np.moveaxis(sums, 0, axis)


def centred(table: NDArray[Any], first: int = 0) -> NDArray[Any]:
    """Subtract means along every axis from `first` on: project on the tables that sum to 0 along each."""
    for axis in range(first, table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def project_to_simplex(values: ArrayLike) -> NDArray[np.float64]:
    """Find the nearest probability table, in Euclidean distance, to a table of any shape."""
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
    return np.maximum(shifted - thresholds[support], 0.0)


@dataclass(frozen=True)
class Layout:
    """Order of cliques, axes and cells in a flat vector.

    Examples
    --------
    >>> layout = Layout.of({"a": 2, "b": 3}, [("a", "b"), ("b",)])
    >>> layout.size
    9
    >>> layout.tables(layout.flatten([np.ones((2, 3)), np.zeros(3)]))[("b",)]
    array([0., 0., 0.])
    """

    cardinalities: Mapping[Variable, int]  # of every variable of the model, including those in no scope
    scopes: tuple[Scope, ...]  # in the order of their tables; within a table the last variable varies fastest

    @classmethod
    def of(cls, cardinalities: Mapping[Variable, int], scopes: Iterable[Sequence[Variable]]) -> Layout:
        """Check and freeze both arguments."""
        sizes = {variable: int(states) for variable, states in cardinalities.items()}
        frozen = tuple(tuple(scope) for scope in scopes)
        if not sizes:
            raise ValueError("a model needs at least one variable")
        for variable, states in sizes.items():
            if states < 1:
                raise ValueError(f"variable {variable!r} has {states} states; it needs at least one")
        for scope in frozen:
            if not scope or len(set(scope)) != len(scope):
                raise ValueError(f"clique {scope!r} is empty or repeats a variable")
            for variable in scope:
                if variable not in sizes:
                    raise ValueError(f"clique {scope!r} names {variable!r}, which has no cardinality")
        return cls(sizes, frozen)

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(self.cardinalities[variable] for variable in scope) for scope in self.scopes)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Start of each table, followed by the total size; shape (number of scopes + 1,)."""
        return np.cumsum([0] + [math.prod(shape) for shape in self.shapes], dtype=np.int64)

    @property
    def size(self) -> int:
        return int(self.offsets[-1])

    def places(self, scopes: Sequence[Scope]) -> NDArray[np.int64]:
        """Return the places of all cells of some tables in the flat vector, in the given order of scopes."""
        starts = dict(zip(self.scopes, self.offsets[:-1], strict=True))
        lengths = np.diff(Layout.of(self.cardinalities, scopes).offsets)
        return np.concatenate(
            [starts[scope] + np.arange(length) for scope, length in zip(scopes, lengths, strict=True)]
        )

    def flatten(self, tables: Iterable[ArrayLike]) -> Vector:
        """Concatenate tables (in the order of `scopes`); shape (size,)."""
        arrays = [np.asarray(table, dtype=np.float64) for table in tables]
        for scope, shape, array in zip(self.scopes, self.shapes, arrays, strict=True):
            if array.shape != shape:
                raise ValueError(f"the table of {scope!r} has shape {array.shape}, not {shape}")
        return np.concatenate([array.ravel() for array in arrays]) if arrays else np.empty(0)

    def split(self, vector: Vector) -> list[Vector]:
        """View a flat vector as one table per clique, in their shapes."""
        return [
            vector[start:stop].reshape(shape)
            for start, stop, shape in zip(self.offsets[:-1], self.offsets[1:], self.shapes, strict=True)
        ]

    def tables(self, vector: Vector) -> dict[Scope, Vector]:
        """View a flat vector as tables by clique."""
        return dict(zip(self.scopes, self.split(vector), strict=True))

    def per_cell(self, values: Sequence[float]) -> Vector:
        """Repeat one value per clique over that clique's cells; shape (size,)."""
        return np.repeat(np.asarray(values, dtype=np.float64), np.diff(self.offsets))


def row_maxima(values: Vector, numbers: NDArray[np.int64]) -> Vector:
    """Return the largest value of each row, given the row number of each cell."""
    maxima = np.full(numbers.max() + 1, -np.inf)
    np.maximum.at(maxima, numbers, values)
    return maxima


class Rows:
    """Rows of all CPDs: the (`kept`) cells of a family's table that share a configuration of the parents."""

    def __init__(self, families: Layout, kept: NDArray[np.bool_] | None = None) -> None:
        numbers, count = [], 0
        for shape in families.shapes:
            width = math.prod(shape[1:])
            numbers.append(count + np.arange(shape[0] * width) % width)
            count += width
        every = np.concatenate(numbers)
        self.numbers: NDArray[np.int64] = every if kept is None else every[kept]
        self.shapes = families.shapes
        self._count = count

    def totals(self, values: Vector) -> Vector:
        """Sum each row; shape (number of rows,)."""
        return np.bincount(self.numbers, values, self._count).astype(np.float64)

    def sums(self, values: Vector) -> Vector:
        """Return each cell's row sum; shape of `values`."""
        return self.totals(values)[self.numbers]

    def even(self) -> Vector:
        """Divide one record per row equally among its cells."""
        return 1.0 / self.sums(np.ones(self.numbers.size))

    def normalise(self, logs: Vector) -> Vector:
        """Return the logarithms of exp(logs) divided by its sum in each row; shape of `logs`."""
        shifted = logs - row_maxima(logs, self.numbers)[self.numbers]
        return shifted - np.log(self.sums(np.exp(shifted)))
