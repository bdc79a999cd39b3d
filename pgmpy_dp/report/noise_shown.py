"""The noise of a release is compared with its signal, from the release alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.privacy.mechanisms import table_sensitivity
from pgmpy_dp.release import NoisyMarginals
from pgmpy_dp.release.kinds import first_holding
from pgmpy_dp.schema import Clique

LEVELS = ("clear", "visible", "drowned")


@dataclass(frozen=True)
class TableNoise:
    """Noise of one table, measured or summed from a measured one, beside its counts.

    Attributes
    ----------
    variables : tuple of str
    cells : int
    deviation : float
        Standard deviation of the noise in a cell, in records.
    mean : float
        Mean number of records per cell.
    cost : float
        Share of the release's privacy loss, between 0 and 1 (of epsilon for Laplace noise, of rho for Gaussian).
    """

    variables: Clique
    cells: int
    deviation: float
    mean: float
    cost: float = math.nan

    @property
    def ratio(self) -> float:
        """Return the noise-to-signal ratio: deviation over mean."""
        return self.deviation / self.mean

    @property
    def level(self) -> str:
        """Classify the noise: "clear" below a tenth of the signal, "visible" below the signal, else "drowned"."""
        return LEVELS[(self.ratio >= 0.1) + (self.ratio >= 1.0)]


@dataclass(frozen=True)
class MarginalNoise:
    """Distribution of a variable from its least noisy table: shares of the records, and the deviation of the noise."""

    variable: str
    shares: Vector
    deviation: float
    noise: TableNoise

    @property
    def variables(self) -> Clique:
        """Return the variable as a clique."""
        return (self.variable,)

    def level_of(self, state: int) -> str:
        """Classify the noise of one state beside its own records."""
        share = max(float(self.shares[state]), 0.0)
        return LEVELS[(self.deviation >= 0.1 * share) + (self.deviation >= share)]

    @property
    def level(self) -> str:
        """Classify the noise of all states: "clear" or "drowned" if every state is, else "visible"."""
        levels = {self.level_of(state) for state in range(self.shares.size)}
        return levels.pop() if len(levels) == 1 else "visible"


def table_noise(release: NoisyMarginals) -> list[TableNoise]:
    """List every measured table, in the order of the release."""
    neighbours = release.guarantee.neighbours
    if release.guarantee.mechanism == "gaussian":
        one = table_sensitivity(neighbours, "squared_l2")
        costs = {clique: float(one) / scale**2 for clique, scale in release.scales.items()}
    else:
        one = table_sensitivity(neighbours, "l1")
        costs = {clique: float(one) / scale if scale else 0.0 for clique, scale in release.scales.items()}
    whole = math.fsum(costs.values()) or 1.0
    return [
        TableNoise(
            clique,
            table.size,
            math.sqrt(release.variances[clique]),
            release.total / table.size,
            costs[clique] / whole,
        )
        for clique, table in release.tables.items()
    ]


def clique_noise(release: NoisyMarginals, clique: Clique) -> TableNoise | None:
    """Return the noise of a clique's least noisy table; None if no measured clique contains it."""
    if first_holding([release], clique) is None:
        return None
    cells = release.schema.cells(clique)
    _, variance = release.marginal(clique)
    return TableNoise(clique, cells, math.sqrt(variance), release.total / cells)


def marginal_noise(release: NoisyMarginals) -> list[MarginalNoise]:
    """List every measured variable, in the order of the schema."""
    result = []
    for variable in release.variables:
        counts, variance = release.marginal((variable,))
        deviation, cells = math.sqrt(variance), counts.size
        noise = TableNoise((variable,), cells, deviation, release.total / cells)
        result.append(MarginalNoise(variable, np.asarray(counts) / release.total, deviation / release.total, noise))
    return result
