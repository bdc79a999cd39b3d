"""A release observes noisy linear functions of counts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference.tables.table import Table
from pgmpy_dp.release.guarantee import Guarantee
from pgmpy_dp.schema import Clique, Schema

Vector = NDArray[np.float64]
Variance = float | Vector  # of all cells of a table, or one each

# Noise below half a record counts as half a record: that is nothing beside sampling, and better conditioned.
LEAST_VARIANCE = 0.25


@dataclass(frozen=True)
class Observations:
    """A release observes y = A n + independent noise, where n is the counts of some tables.

    For noisy tables A is the identity. For noisy coefficients each row of A is a product of contrasts, and the noise on
    the counts themselves would be correlated: it is independent on A n only.

    Attributes
    ----------
    cliques : tuple of tuples of str
        Tables, end to end, whose counts are n.
    observed, variance : ndarrays of shape (observations,)
        y and the variance of its noise, in records and records squared.
    matrix, squares : sparse arrays of shape (observations, cells), or None for the identity
        A, and A with squared entries.
    gaussian : bool
        Gaussian noise, else Laplace.
    total : (float, float) or None
        The number of records and the variance of its noise, where it was measured apart from the tables.
    """

    cliques: tuple[Clique, ...]
    observed: Vector
    variance: Vector
    gaussian: bool
    matrix: Any = None
    squares: Any = None
    total: tuple[float, float] | None = None

    def expected(self, counts: Vector) -> Vector:
        """Compute A n."""
        return counts if self.matrix is None else self.matrix @ counts

    def to_counts(self, values: Vector) -> Vector:
        """Compute A' v, from derivatives by the observations to derivatives by the counts."""
        return values if self.matrix is None else self.matrix.T @ values

    def expected_squares(self, values: Vector) -> Vector:
        """Multiply A with squared entries by values of the counts' shape."""
        return values if self.squares is None else self.squares @ values

    def squares_to_counts(self, values: Vector) -> Vector:
        """Apply the transpose of `expected_squares`."""
        return values if self.squares is None else self.squares.T @ values


class IndependentTables:
    """Tables are read and observed alike where their cells have independent noise, of one variance a table."""

    schema: Schema
    tables: Mapping[Clique, NDArray[Any]]
    variances: Mapping[Clique, float]
    guarantee: Guarantee

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """Return the measured cliques, in order."""
        return tuple(self.tables)

    def holding_clique(self, clique: Clique) -> Clique:
        """Find the clique from which a clique's table is read: the least noisy of those measured that contain it.

        Raises
        ------
        ValueError
            If no measured clique contains it.
        """
        holding = holding_cliques(self.cliques, clique)
        return min(holding, key=lambda measured: (self._summed_variance(measured, clique), len(measured)))

    def marginal(self, clique: Clique, tables: Mapping[Clique, NDArray[Any]] | None = None) -> tuple[Vector, float]:
        """Read the least noisy table of a clique, and the noise variance of its cells.

        A measured clique that contains the clique is summed over the other variables, which adds their noise.

        Parameters
        ----------
        clique : tuple of str
        tables : mapping of clique to ndarray, optional
            What to read in place of the release's own tables.

        Raises
        ------
        ValueError
            If no measured clique contains it.
        """
        return self._summed(self.holding_clique(clique), clique, tables or self.tables)

    def observe(self, variables: Sequence[str]) -> Observations:
        """Sum every table over all but these variables: what the release says of their marginals.

        The noise of a sum is taken for noise of the mechanism's kind with the sum's variance. Tables of the same
        variables are averaged, weighted by their precision.

        Raises
        ------
        ValueError
            If they say nothing of a variable.
        """
        names: dict[frozenset[str], Clique] = {}
        tables: dict[Clique, list[tuple[Vector, Variance]]] = {}
        for clique, part in observed_parts(self.cliques, variables).items():
            name = names.setdefault(frozenset(part), part)
            table = Table(clique, self.tables[clique]).margin(name).values.astype(np.float64)
            tables.setdefault(name, []).append((table, self._cell_variance(clique, name)))
        mean = [same[0] if len(same) == 1 else weighted(same) for same in tables.values()]
        observed = np.concatenate([table.ravel() for table, _ in mean])
        variance = np.concatenate([np.broadcast_to(noise, table.shape).ravel() for table, noise in mean])
        return Observations(tuple(tables), observed, variance, self.guarantee.mechanism == "gaussian")

    def _summed(self, measured: Clique, clique: Clique, tables: Mapping[Clique, NDArray[Any]]) -> tuple[Vector, float]:
        table = Table(measured, tables[measured]).margin(clique).values.astype(np.float64)
        return table, self._summed_variance(measured, clique)

    def _summed_variance(self, measured: Clique, clique: Clique) -> float:
        cells = math.prod(len(self.schema.states[variable]) for variable in clique)
        return self.variances[measured] * self.tables[measured].size / cells

    def _cell_variance(self, measured: Clique, clique: Clique) -> Variance:
        """Say how noisy the cells of `_summed` are, one by one where they differ."""
        return self._summed_variance(measured, clique)


def weighted(same: Sequence[tuple[Vector, Variance]]) -> tuple[Vector, Variance]:
    """Average noisy tables of the same counts by their precision; give the variance of the mean as well."""
    tables, variances = (list(part) for part in zip(*same, strict=True))
    if any(np.ndim(variance) for variance in variances):
        variances = [np.broadcast_to(v, table.shape) for v, table in zip(variances, tables, strict=True)]
    precisions = 1.0 / np.maximum(variances, LEAST_VARIANCE)
    table: Vector = np.average(tables, axis=0, weights=precisions)
    return table, 1.0 / precisions.sum(axis=0)


def holding_cliques(measured: Iterable[Clique], clique: Clique) -> list[Clique]:
    """Find the measured cliques that contain a clique.

    Raises
    ------
    ValueError
        If none does.
    """
    wanted, measured = set(clique), tuple(measured)
    holding = [held for held in measured if wanted <= set(held)]
    if not holding:
        raise ValueError(
            f"The release has no table that holds {clique}; it holds {', '.join(map(str, measured))}. Measure a "
            "clique with these variables, or fit with CollectiveEM, which infers what was not measured."
        )
    return holding


def observed_parts(cliques: Sequence[Clique], variables: Sequence[str]) -> dict[Clique, Clique]:
    """Cut every measured clique down to the variables that are asked for; those that hold none are left out.

    Raises
    ------
    ValueError
        If no clique holds one of the variables.
    """
    known = set(variables)
    parts = {clique: tuple(variable for variable in clique if variable in known) for clique in cliques}
    seen = {variable for part in parts.values() for variable in part}
    unseen = [variable for variable in variables if variable not in seen]
    if unseen:
        raise ValueError(
            f"The release says nothing of {', '.join(map(repr, unseen))}: no measured clique holds them. It holds "
            f"{', '.join(map(str, cliques))}."
        )
    return {clique: part for clique, part in parts.items() if part}


def joined_pairs(cliques: Iterable[Clique]) -> set[frozenset[str]]:
    """Collect the pairs of variables that lie in a table together."""
    return {frozenset(pair) for clique in cliques for pair in combinations(clique, 2)}


def maximal(cliques: Iterable[Clique]) -> tuple[Clique, ...]:
    """Keep the cliques that no other contains; of those with equal variables, the first."""
    kept: dict[frozenset[str], Clique] = {}
    for clique in cliques:
        kept.setdefault(frozenset(clique), clique)
    larger = {size: [held for held in kept if len(held) > size] for size in {len(held) for held in kept}}
    return tuple(clique for held, clique in kept.items() if not any(held < other for other in larger[len(held)]))
