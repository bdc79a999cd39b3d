"""Noisy counts observed by releases of tables, and pooling of tables of the same variables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference.collective.linear_observations import LinearObservations
from pgmpy_dp.inference.collective.noise_laws import GaussianNoise, LaplaceNoise, Law
from pgmpy_dp.inference.tables.table import Table, Vector, pooled
from pgmpy_dp.privacy.guarantee import Guarantee
from pgmpy_dp.schema import Clique, Schema

Variance = float | Vector  # common to all cells of a table, or one per cell

# Least variance of noise, that of half a record: less is negligible beside sampling, and badly conditioned.
LEAST_VARIANCE = 0.25


# Variance that rounding to integers adds to a cell, in records squared: 1/12, but 1/8 where half of all means are ties.
_ROUNDING = 1.0 / 8.0

_LAWS: Mapping[str, Law] = {"gaussian": GaussianNoise}


def noise_law(guarantee: Guarantee) -> Law:
    """Return the distribution of the noise in a release; for exact counts that of no noise."""
    return _LAWS.get(guarantee.mechanism, LaplaceNoise)


class IndependentTables:
    """Tables whose cells have independent noise, with one variance per table."""

    schema: Schema
    tables: Mapping[Clique, NDArray[Any]]
    variances: Mapping[Clique, float]
    guarantee: Guarantee

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The measured cliques, in order."""
        return tuple(self.tables)

    def holding_clique(self, clique: Clique) -> Clique:
        """Return the measured clique from which a clique's table is read: the least noisy that contains it.

        Raises ValueError if no measured clique contains it.
        """
        holding = holding_cliques(self.tables, clique)
        return min(holding, key=lambda measured: (self._summed_variance(measured, clique), len(measured)))

    def marginal(self, clique: Clique, tables: Mapping[Clique, NDArray[Any]] | None = None) -> tuple[Vector, float]:
        """Return the least noisy table of a clique, and the noise variance of its cells.

        A measured clique that contains the clique is summed over the other variables, which adds up their noise.

        Parameters
        ----------
        clique : tuple of str
        tables : mapping of clique to ndarray, optional
            Tables to read instead of the release's own.

        Raises ValueError if no measured clique contains it.
        """
        return self._summed(self.holding_clique(clique), clique, tables or self.tables)

    def with_noise(self, clique: Clique, tables: Mapping[Clique, NDArray[Any]] | None = None) -> Any:
        """Return the table of `marginal` with the noise of each of its cells."""
        measured = self.holding_clique(clique)
        table = Table(measured, (tables or self.tables)[measured]).margin(clique).values.astype(np.float64)
        return self.law(table, self._cell_variance(measured, clique))

    @property
    def law(self) -> Law:
        """Distribution of the noise."""
        return noise_law(self.guarantee)

    def observe(self, variables: Sequence[str]) -> LinearObservations:
        """Sum every table over all but these variables, as observations of their marginals.

        The noise of a sum is treated as noise of the mechanism's kind with the sum's variance. Tables of the same
        variables are averaged, weighted by precision.

        Raises ValueError if the release contains no observation of a variable.
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

    def strata(self, clique: Clique) -> tuple[int, Sequence[float]] | None:
        """Return an axis of a clique whose states have known numbers of records, and these; None if there is none."""
        return None

    def tables_of(self, variables: Sequence[str]) -> list[tuple[Clique, Vector, float]]:
        """List the tables that contain no other variables, each with the standard deviation of its noise."""
        return [
            (clique, np.asarray(table, dtype=np.float64), math.sqrt(self.variances[clique]))
            for clique, table in self.tables.items()
            if set(clique) <= set(variables)
        ]

    def _summed(self, measured: Clique, clique: Clique, tables: Mapping[Clique, NDArray[Any]]) -> tuple[Vector, float]:
        table = Table(measured, tables[measured]).margin(clique).values.astype(np.float64)
        return table, self._summed_variance(measured, clique)

    def _summed_variance(self, measured: Clique, clique: Clique) -> float:
        cells = math.prod(len(self.schema.states[variable]) for variable in clique)
        return self.variances[measured] * self.tables[measured].size / cells

    def _cell_variance(self, measured: Clique, clique: Clique) -> Variance:
        """Return the noise variance of the cells of `_summed`, one by one if they differ."""
        return self._summed_variance(measured, clique)


def weighted(same: Sequence[tuple[Vector, Variance]]) -> tuple[Vector, Variance]:
    """Average noisy tables of the same counts, weighted by precision; return the variance of the mean too."""
    tables, variances = zip(*same, strict=True)
    mean, precision = pooled(tables, [1.0 / np.maximum(variance, LEAST_VARIANCE) for variance in variances])
    return mean, 1.0 / precision


def pooled_counts(
    tables: tuple[NDArray[Any], NDArray[Any]], scales: tuple[float, float], law: Law, parts: int = 1
) -> tuple[NDArray[Any], float]:
    """Average two noisy tables of counts, weighted by precision, and round the mean.

    Parameters
    ----------
    tables : pair of ndarrays of one shape
    scales : pair of float
        Their noise scales.
    law : type
        The noise of the mean is treated as noise of this law with its variance, which is exact for Gaussian noise.
    parts : int
        Counts, and so the rounded mean, are integer multiples of 1 over this number.

    Returns
    -------
    table, scale

    Examples
    --------
    >>> table, scale = pooled_counts((np.array([10, 20]), np.array([14, 26])), (4.0, 4.0), GaussianNoise)
    >>> table.tolist(), round(scale, 3)
    ([12, 23], 2.85)
    """
    mean, precision = pooled(tables, [scale**-2.0 for scale in scales])
    counts = np.rint(np.round(mean * parts, 9))  # ties to even: floating point would break them by their last digit
    table = counts / parts if parts > 1 else counts.astype(np.int64)
    return table, float((1.0 / precision + _ROUNDING / parts**2 / law.unit) ** 0.5)


def holding_cliques(measured: Iterable[Clique], clique: Clique) -> list[Clique]:
    """Return the measured cliques that contain a clique; ValueError if none does."""
    wanted, measured = set(clique), tuple(measured)
    holding = [held for held in measured if wanted <= set(held)]
    if not holding:
        raise ValueError(
            f"The release has no table that holds {clique}; it holds {', '.join(map(str, measured))}: "
            "measure one, or fit with CollectiveEM, which infers what was not measured."
        )
    return holding


def observed_parts(cliques: Sequence[Clique], variables: Sequence[str]) -> dict[Clique, Clique]:
    """Restrict every measured clique to the given variables; those without any are left out.

    Raises ValueError if no clique contains one of the variables.
    """
    known = set(variables)
    parts = {clique: tuple(variable for variable in clique if variable in known) for clique in cliques}
    seen = {variable for part in parts.values() for variable in part}
    unseen = [variable for variable in variables if variable not in seen]
    if unseen:
        raise ValueError(
            f"The release says nothing of {', '.join(map(repr, unseen))}: no measured clique contains them. It holds "
            f"{', '.join(map(str, cliques))}."
        )
    return {clique: part for clique, part in parts.items() if part}


def joined_pairs(cliques: Iterable[Clique]) -> set[frozenset[str]]:
    """Return the pairs of variables that are in a table together."""
    return {frozenset(pair) for clique in cliques for pair in combinations(clique, 2)}


def maximal(cliques: Iterable[Clique]) -> tuple[Clique, ...]:
    """Return the cliques that no other contains; of those with equal variables, the first."""
    kept: dict[frozenset[str], Clique] = {}
    for clique in cliques:
        kept.setdefault(frozenset(clique), clique)
    larger = {size: [held for held in kept if len(held) > size] for size in {len(held) for held in kept}}
    return tuple(clique for held, clique in kept.items() if not any(held < other for other in larger[len(held)]))
