"""Linear functions of the counts of some tables are observed with independent noise."""

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
    """Observed is y = A n + noise, where n is the counts of some tables.

    For noisy tables A is the identity. For noisy coefficients each row of A is a product of contrasts, and the noise on
    the counts themselves would be correlated: it is independent on A n only.

    Attributes
    ----------
    cliques : tuple of tuples
        Tables, end to end, whose counts are n. Tables of several releases may repeat.
    noise : LaplaceNoise, GaussianNoise or MixedNoise
        y and the law of its noise, in records.
    owners : ndarray of int, shape (observations,)
        The number of the table that each observation is of; -1 for a number of records observed by itself.
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
        """Return A as a sparse array, the identity too."""
        from scipy import sparse

        return sparse.csr_array(sparse.eye_array(self.owners.size)) if self.matrix is None else self.matrix

    def expected(self, counts: Vector) -> Vector:
        """Compute A n."""
        return counts if self.matrix is None else self.matrix @ counts

    def to_counts(self, values: Vector) -> Vector:
        """Compute A' v, from derivatives by the observations to derivatives by the counts."""
        return values if self.matrix is None else self.matrix.T @ values

    def expected_squares(self, values: Vector) -> Vector:
        """Multiply A with squared entries by values of the counts' shape."""
        return values if self._squares is None else self._squares @ values

    def squares_to_counts(self, values: Vector) -> Vector:
        """Apply the transpose of `expected_squares`."""
        return values if self._squares is None else self._squares.T @ values

    @property
    def of_tables(self) -> Self:
        """Leave numbers of records out."""
        return self if (self.owners >= 0).all() else self._take(self.owners >= 0)

    def _take(self, rows: NDArray[np.bool_]) -> Self:
        matrix = None if self.matrix is None else self.matrix[np.flatnonzero(rows)]
        return replace(self, noise=self.noise.take(rows), owners=self.owners[rows], matrix=matrix)

    def ordered(self, cliques: tuple[Scope, ...], cardinalities: Mapping[Variable, int]) -> Self:
        """Put the axes of each table in the order of another name of it."""
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
        """Keep the observations of some tables; coefficients are kept all, as those of one table tell of others."""
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
