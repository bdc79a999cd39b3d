"""Layout of many tables in one flat vector.

Log-potentials, marginals and noisy counts of a list of cliques are concatenated in one float64 vector, which optimisers
use as a vector and kernels as a buffer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pgmpy_dp.inference.tables.table import Scope, Variable, Vector

__all__ = ["Layout", "Scope", "Variable", "Vector"]


@dataclass(frozen=True)
class Layout:
    """Order of cliques, axes and cells in a flat vector.

    Parameters
    ----------
    cardinalities : mapping of variable to int
        Number of states of every variable of the model, including those in no scope.
    scopes : tuple of tuples
        Cliques in the order of their tables; within a table the last variable varies fastest.

    Examples
    --------
    >>> layout = Layout.of({"a": 2, "b": 3}, [("a", "b"), ("b",)])
    >>> layout.size
    9
    >>> layout.tables(layout.flatten([np.ones((2, 3)), np.zeros(3)]))[("b",)]
    array([0., 0., 0.])
    """

    cardinalities: Mapping[Variable, int]
    scopes: tuple[Scope, ...]

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
