"""The noise of a clique or a variable is compared with its signal, from the release alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pgmpy_dp.fitting.plans.outlook import TableNoise, noise_level
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
