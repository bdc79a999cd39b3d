"""The noise of a clique or a variable is compared with its signal, from the release alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from pgmpy_dp.fitting.plans.outlook import LEVELS, Outlook, TableNoise, noise_level
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.release import NoisyMarginals
from pgmpy_dp.release.kinds import first_holding
from pgmpy_dp.schema import Clique


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
        return noise_level(self.deviation, max(float(self.shares[state]), 0.0))

    @property
    def level(self) -> str:
        """Classify the noise of all states: "clear" or "drowned" if every state is, else "visible"."""
        levels = {self.level_of(state) for state in range(self.shares.size)}
        return levels.pop() if len(levels) == 1 else "visible"


@dataclass(frozen=True)
class ReleasedTable(TableNoise):
    """A released table, judged by the cells that its noise hides.

    Attributes
    ----------
    hidden : float
        Share of the cells that rules allow whose count is below two standard deviations of the noise.
    """

    hidden: float = 0.0

    @property
    def level(self) -> str:
        """Classify the noise: "clear" if it hides below a tenth of the cells, "visible" below half, else "drowned"."""
        return LEVELS[(self.hidden >= 0.1) + (self.hidden >= 0.5)]


def clique_noise(release: NoisyMarginals, clique: Clique, cost: float = math.nan) -> ReleasedTable | None:
    """Return the noise of a clique's least noisy table; None if no measured clique contains it."""
    if first_holding([release], clique) is None:
        return None
    counts, variance = release.marginal(clique)
    deviation, possible = math.sqrt(variance), np.asarray(release.schema.possible(clique), dtype=bool)
    hidden = float(np.mean(np.asarray(counts)[possible] < 2.0 * deviation))
    return ReleasedTable(clique, counts.size, deviation, release.total / counts.size, cost, hidden=hidden)


def released_tables(release: NoisyMarginals) -> list[ReleasedTable]:
    """List the tables of a release, those of which more is hidden first."""
    found = (
        clique_noise(release, table.variables, table.cost)
        for table in Outlook.of_release(release).tables
        if not table.detail
    )
    return sorted((table for table in found if table is not None), key=attrgetter("hidden"), reverse=True)


def marginal_noise(release: NoisyMarginals) -> list[MarginalNoise]:
    """List every measured variable, in the order of the schema."""
    result = []
    for variable in release.variables:
        counts, variance = release.marginal((variable,))
        deviation, cells = math.sqrt(variance), counts.size
        noise = TableNoise((variable,), cells, deviation, release.total / cells)
        result.append(MarginalNoise(variable, np.asarray(counts) / release.total, deviation / release.total, noise))
    return result
