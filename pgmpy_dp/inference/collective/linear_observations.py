"""Linear functions of the counts of some tables, observed with independent noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference.collective.noise_laws import Noise
from pgmpy_dp.inference.tables.layout import Layout, Scope, Variable, Vector
from pgmpy_dp.inference.tables.table import Table


@dataclass(frozen=True, eq=False)
class LinearObservations:
    """Observations y = A n + noise, where n are the counts of some tables.

    For noisy tables A is the identity. For noisy coefficients each row of A is a product of contrasts: noise is
    independent only on A n, and would be correlated on the counts themselves.

    Attributes
    ----------
    cliques : tuple of tuples
        The tables whose concatenated counts are n. Tables of several releases may repeat.
    noise : LaplaceNoise, GaussianNoise or ByRows
        y and the distribution of its noise, in records.
    owners : ndarray of int, shape (observations,)
        Index of each observation's table; -1 for a number of records that was observed separately.
    matrix : sparse array of shape (observations, cells), or None for the identity
        A.
    """

    cliques: tuple[Scope, ...]
    noise: Noise
    owners: NDArray[np.int64]
    matrix: Any

    @cached_property
    def _squares(self) -> Any:
        return None if self.matrix is None else self.matrix.multiply(self.matrix).tocsr()

    @cached_property
    def sums(self) -> Any:
        """A as a sparse array, even if it is the identity."""
        from scipy import sparse

        return sparse.csr_array(sparse.eye_array(self.owners.size)) if self.matrix is None else self.matrix

    @cached_property
    def contrasts(self) -> NDArray[np.bool_]:
        """Whether each observation combines several counts."""
        if self.matrix is None:
            return np.zeros(self.owners.size, dtype=bool)
        several: NDArray[np.bool_] = np.diff(self.matrix.tocsr().indptr) > 1
        return several

    def expected(self, counts: Vector) -> Vector:
        """Compute A n."""
        return counts if self.matrix is None else self.matrix @ counts

    def to_counts(self, values: Vector) -> Vector:
        """Compute A' v: derivatives by the counts from derivatives by the observations."""
        return values if self.matrix is None else self.matrix.T @ values

    def expected_squares(self, values: Vector) -> Vector:
        """Multiply A, with its entries squared, by values of the counts' shape."""
        return values if self._squares is None else self._squares @ values

    def squares_to_counts(self, values: Vector) -> Vector:
        """Apply the transpose of `expected_squares`."""
        return values if self._squares is None else self._squares.T @ values

    @property
    def of_tables(self) -> Self:
        """The observations without those of numbers of records."""
        return self if (self.owners >= 0).all() else self._take(self.owners >= 0)

    def _take(self, rows: NDArray[np.bool_]) -> Self:
        matrix = None if self.matrix is None else self.matrix[np.flatnonzero(rows)]
        return replace(self, noise=self.noise.take(rows), owners=self.owners[rows], matrix=matrix)

    def ordered(self, cliques: tuple[Scope, ...], cardinalities: Mapping[Variable, int]) -> Self:
        """Reorder the axes of each table as in another name of it."""
        if cliques == self.cliques:
            return self
        layout = Layout.of(cardinalities, self.cliques)
        old = zip(self.cliques, layout.split(np.arange(layout.size, dtype=np.float64)), cliques, strict=True)
        moved = [Table(clique, numbers).margin(name).values.ravel() for clique, numbers, name in old]
        cells = np.concatenate(moved).astype(np.int64)
        if self.matrix is None:
            return replace(self, cliques=cliques, noise=self.noise.take(cells))
        return replace(self, cliques=cliques, matrix=self.matrix[:, cells])

    def only(self, cliques: Sequence[Scope]) -> Self:
        """Keep the observations of some tables; coefficients are all kept, since those of one table inform others."""
        if self.matrix is not None or set(self.cliques) <= set(cliques):
            return self
        kept = [number for number, clique in enumerate(self.cliques) if clique in cliques]
        rows = np.isin(self.owners, kept)
        return replace(
            self,
            cliques=tuple(self.cliques[number] for number in kept),
            noise=self.noise.take(rows),
            owners=np.searchsorted(kept, self.owners[rows]),
        )
