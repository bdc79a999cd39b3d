"""Releases of tables observe noisy counts; tables of the same variables are pooled."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.errors import Message
from pgmpy_dp.inference.collective.linear_observations import LinearObservations
from pgmpy_dp.inference.collective.noise_laws import GaussianNoise, LaplaceNoise, Law
from pgmpy_dp.inference.tables.table import Table, Vector, pooled
from pgmpy_dp.privacy.guarantee import Guarantee
from pgmpy_dp.schema import Clique, Schema

Variance = float | Vector  # of all cells of a table, or one each

# Noise below half a record counts as half a record: that is nothing beside sampling, and better conditioned.
LEAST_VARIANCE = 0.25


# Rounding to whole numbers adds a twelfth to the variance of a cell.
_ROUNDING = 1.0 / 12.0

_LAWS: Mapping[str, Law] = {"gaussian": GaussianNoise}


def noise_law(guarantee: Guarantee) -> Law:
    """Find the law of the noise in a release, of exact counts that of no noise."""
    return _LAWS.get(guarantee.mechanism, LaplaceNoise)


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

    @property
    def law(self) -> Law:
        """Return the law of the noise."""
        return noise_law(self.guarantee)

    def observe(self, variables: Sequence[str]) -> LinearObservations:
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
        owners = np.repeat(np.arange(len(mean)), [table.size for table, _ in mean])
        return LinearObservations(tuple(tables), self.law(observed, variance), owners, None)

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
    tables, variances = zip(*same, strict=True)
    mean, precision = pooled(tables, [1.0 / np.maximum(variance, LEAST_VARIANCE) for variance in variances])
    return mean, 1.0 / precision


def pooled_counts(
    tables: tuple[NDArray[Any], NDArray[Any]], scales: tuple[float, float], law: Law, parts: int = 1
) -> tuple[NDArray[Any], float]:
    """Average two noisy tables of counts by their precision, and round the mean.

    Parameters
    ----------
    tables : pair of ndarrays
        Of one shape.
    scales : pair of float
        Of their noise.
    law : type
        The pooled noise is taken for noise of this law, of the mean's variance. Of Gaussian noise it is.
    parts : int
        Counts are whole multiples of one by this number, and so is the mean.

    Returns
    -------
    table, scale

    Examples
    --------
    >>> table, scale = pooled_counts((np.array([10, 20]), np.array([14, 26])), (4.0, 4.0), GaussianNoise)
    >>> table.tolist(), round(scale, 3)
    ([12, 23], 2.843)
    """
    mean, precision = pooled(tables, [scale**-2.0 for scale in scales])
    counts = np.rint(mean * parts)
    table = counts / parts if parts > 1 else counts.astype(np.int64)
    return table, float((1.0 / precision + _ROUNDING / parts**2 / law.unit) ** 0.5)


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
            Message(
                f"The release has no table that holds {clique}; it holds {', '.join(map(str, measured))}",
                "measure one, or fit with CollectiveEM, which infers what was not measured",
                "measure one, or fit by --estimator collective-em, which infers what was not measured",
            )
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
