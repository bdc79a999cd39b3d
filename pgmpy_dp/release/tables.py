"""Tables whose cells have independent noise: margins, and means of tables of the same counts."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.privacy.guarantee import Guarantee
from pgmpy_dp.schema import Clique, Schema

Floats = NDArray[np.float64]
Variance = float | Floats  # common to all cells of a table, or one per cell

# Least variance of noise, that of half a record: less is negligible beside sampling, and badly conditioned.
LEAST_VARIANCE = 0.25

# Variance of noise of scale 1, by law.
UNIT_VARIANCE = {"laplace": 2.0, "gaussian": 1.0}

# Variance that rounding to integers adds to a cell, in records squared: 1/12, but 1/8 where half of all means are ties.
_ROUNDING = 1.0 / 8.0


class IndependentTables:
    """Tables whose cells have independent noise, with one variance per table."""

    schema: Schema
    tables: Mapping[Clique, NDArray[Any]]
    variances: Mapping[Clique, float]
    guarantee: Guarantee

    @property
    def law(self) -> str:
        """The distribution of the noise: "laplace" or "gaussian"."""
        return noise_law(self.guarantee)

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

    def marginal(self, clique: Clique, tables: Mapping[Clique, NDArray[Any]] | None = None) -> tuple[Floats, float]:
        """Return the least noisy table of a clique, and the noise variance of its cells.

        A measured clique that contains the clique is summed over the other variables, which adds up their noise.

        Parameters
        ----------
        clique : tuple of str
        tables : mapping of clique to ndarray, optional
            Tables to read instead of the release's own.

        Raises ValueError if no measured clique contains it.
        """
        measured = self.holding_clique(clique)
        table = margin(measured, (tables or self.tables)[measured], clique).astype(np.float64)
        return table, self._summed_variance(measured, clique)

    def cell_variance(self, measured: Clique, clique: Clique) -> Variance:
        """Return the noise variance of the cells of a measured table's margin, one by one if they differ."""
        return self._summed_variance(measured, clique)

    def strata(self, clique: Clique) -> tuple[int, Sequence[float]] | None:
        """Return an axis of a clique whose states have known numbers of records, and these; None if there is none."""
        return None

    def tables_of(self, variables: Sequence[str]) -> list[tuple[Clique, Floats, float]]:
        """List the tables that contain no other variables, each with the standard deviation of its noise."""
        return [
            (clique, np.asarray(table, dtype=np.float64), math.sqrt(self.variances[clique]))
            for clique, table in self.tables.items()
            if set(clique) <= set(variables)
        ]

    def _summed_variance(self, measured: Clique, clique: Clique) -> float:
        cells = math.prod(len(self.schema.states[variable]) for variable in clique)
        return self.variances[measured] * self.tables[measured].size / cells


def noise_law(guarantee: Guarantee) -> str:
    """Return the distribution of the noise in a release; that of exact counts does not matter."""
    return "gaussian" if guarantee.mechanism == "gaussian" else "laplace"


def margin(clique: Clique, table: NDArray[Any], wanted: Collection[str]) -> NDArray[Any]:
    """Sum a table over the variables that are not wanted; its axes are then in the wanted order."""
    kept = [variable for variable in clique if variable in wanted]
    summed = table.sum(axis=tuple(axis for axis, variable in enumerate(clique) if variable not in wanted))
    return np.asarray(summed.transpose([kept.index(variable) for variable in wanted]))


def holding_cliques(measured: Iterable[Clique], clique: Clique) -> list[Clique]:
    """Return the measured cliques that contain a clique; ValueError if none does."""
    wanted, measured = set(clique), tuple(measured)
    holding = [each for each in measured if wanted <= set(each)]
    if not holding:
        raise ValueError(
            f"The release has no table that holds {clique}; it holds {', '.join(map(str, measured))}: "
            "measure one, or fit with CollectiveEM, which infers what was not measured."
        )
    return holding


def pooled_counts(
    tables: tuple[NDArray[Any], NDArray[Any]], scales: tuple[float, float], law: str, parts: int = 1
) -> tuple[NDArray[Any], float]:
    """Average two noisy tables of counts, weighted by precision, and round the mean.

    Parameters
    ----------
    tables : pair of ndarrays of one shape
    scales : pair of float
        Their noise scales.
    law : {"laplace", "gaussian"}
        The noise of the mean is treated as noise of this law with its variance, which is exact for Gaussian noise.
    parts : int
        Counts, and so the rounded mean, are integer multiples of 1 over this number.

    Returns
    -------
    table, scale

    Examples
    --------
    >>> table, scale = pooled_counts((np.array([10, 20]), np.array([14, 26])), (4.0, 4.0), "gaussian")
    >>> table.tolist(), round(scale, 3)
    ([12, 23], 2.85)
    """
    one, other = (scale**-2.0 for scale in scales)
    mean = (one * tables[0] + other * tables[1]) / (one + other)
    counts = np.rint(np.round(mean * parts, 9))  # ties to even: floating point would break them by their last digit
    table = counts / parts if parts > 1 else counts.astype(np.int64)
    return table, float((1.0 / (one + other) + _ROUNDING / parts**2 / UNIT_VARIANCE[law]) ** 0.5)
