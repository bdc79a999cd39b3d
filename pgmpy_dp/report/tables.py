"""Noise and fit of the released tables, and a map of the pairs among them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from pgmpy_dp.evaluation import compare
from pgmpy_dp.fitting.plans.outlook import LEVELS, Outlook, TableNoise, noise_level
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.models.mixture_network import PrivateMixtureNetwork
from pgmpy_dp.observed.reading import law_of
from pgmpy_dp.release import NoisyMarginals
from pgmpy_dp.report.network_drawing import shortened
from pgmpy_dp.schema import Clique


@dataclass(frozen=True)
class MarginalNoise:
    """Distribution of a variable from its least noisy table: shares of the records, and the deviation of the noise."""

    variable: str
    shares: Vector
    deviation: float

    @property
    def variables(self) -> Clique:
        """Return the variable as a clique."""
        return (self.variable,)

    def level_of(self, state: int) -> str:
        """Classify the noise of one state compared with its number of records."""
        return noise_level(self.deviation, max(float(self.shares[state]), 0.0))

    @property
    def level(self) -> str:
        """Classify the noise of all states: "clear" or "drowned" if every state is, else "visible"."""
        levels = {self.level_of(state) for state in range(self.shares.size)}
        return levels.pop() if len(levels) == 1 else "visible"


@dataclass(frozen=True)
class ReleasedTable(TableNoise):
    """A released table, judged by the cells that its noise hides."""

    hidden: float = 0.0  # share of the cells that rules allow whose count is below two standard deviations of the noise

    @property
    def level(self) -> str:
        """Classify the noise: "clear" if it hides below a tenth of the cells, "visible" below half, else "drowned"."""
        return LEVELS[(self.hidden >= 0.1) + (self.hidden >= 0.5)]


def clique_noise(release: NoisyMarginals, clique: Clique, cost: float = math.nan) -> ReleasedTable:
    """Return the noise of the least noisy table of a clique, which some measured clique contains."""
    counts, variance = release.marginal(clique)
    deviation, possible = math.sqrt(variance), np.asarray(release.schema.possible(clique), dtype=bool)
    hidden = float(np.mean(np.asarray(counts)[possible] < 2.0 * deviation))
    return ReleasedTable(clique, counts.size, deviation, release.total / counts.size, cost, hidden=hidden)


def released_tables(release: NoisyMarginals) -> list[ReleasedTable]:
    """List the tables of a release, those with more hidden cells first."""
    result = (
        clique_noise(release, table.variables, table.cost)
        for table in Outlook.of_release(release).tables
        if not table.detail
    )
    return sorted(result, key=attrgetter("hidden"), reverse=True)


def marginal_noise(release: NoisyMarginals) -> list[MarginalNoise]:
    """List every measured variable, in the order of the schema."""
    result = []
    for variable in release.variables:
        counts, variance = release.marginal((variable,))
        result.append(MarginalNoise(variable, np.asarray(counts) / release.total, math.sqrt(variance) / release.total))
    return result


MAX_MAPPED = 100
_LABEL, _MARGIN, _LETTER = 132.0, 4.0, 6.4
_OFTEN = 0.8416  # upper 20 % quantile of the standard normal distribution
_BEYOND = 3.0  # standard deviations of the noise's sum of squares above which a table is not fitted
_SIDE, _LARGEST, _SMALLEST = 720.0, 30.0, 8.0  # width of the map, and bounds for one square, in pixels


@dataclass(frozen=True)
class TableFit:
    """Fit of a model to one table of the release, with `error`, `noise` and `excess` as `compare` defines them."""

    variables: Clique
    error: float
    noise: float
    excess: float
    detectable: float

    @property
    def level(self) -> str:
        """Classify the misfit: "clear" within the noise, "visible" beyond it, "drowned" far beyond it."""
        return LEVELS[(self.excess >= _BEYOND) + (self.excess >= 10.0)]


@dataclass(frozen=True)
class Square:
    """Square of a pair, or of a variable."""

    variables: Clique
    x: float
    y: float
    table: TableFit | TableNoise | MarginalNoise | None


@dataclass(frozen=True)
class PairMap:
    """Lower half of a matrix, with each variable's name left of its row and below its column."""

    labels: tuple[tuple[str, float], ...]
    squares: tuple[Square, ...]
    step: float
    left: float
    side: float
    size: float
    height: float


def table_fits(release: NoisyMarginals, network: PrivateMixtureNetwork) -> list[TableFit]:
    """Compare a model with every table of the release, worst first."""
    result = compare(release, network)
    kurtosis = law_of(release).kurtosis
    return [
        TableFit(clique, error, noise, excess, detectable_error(noise, release.schema.cells(clique), kurtosis))
        for clique, error, noise, excess in result[["error", "noise", "excess"]].itertuples(name=None)
    ]


def detectable_error(noise: float, cells: int, kurtosis: float) -> float:
    """Find the smallest error that puts a table beyond its noise with 80 % probability.

    Of n cells, in units of the noise's standard deviation, squares sum to n + v + z sqrt((k - 1) n + 4 v), z about
    standard normal, if the errors' own squares sum to v; k is the noise's kurtosis, 3 or 6. The table is beyond the
    noise from n + 3 sqrt(2 n) on. An error of total variation t, the same in all cells, has v = 2 n (t / noise)^2 / pi,
    for normal noise alone has errors of sqrt(2 / pi) on average.
    """
    bar, spread = _BEYOND * math.sqrt(2 * cells), (kurtosis - 1) * cells
    half = bar + 2 * _OFTEN**2
    squares = half + math.sqrt(half**2 - bar**2 + _OFTEN**2 * spread)
    return noise * math.sqrt(math.pi * squares / (2 * cells))


def table_power(fits: Sequence[TableFit]) -> str:
    """State the errors that would have been detected in tables that are within their noise."""
    within = sorted(fit.detectable for fit in fits if fit.level == "clear")
    seen = [error for error in within if error < 1]
    if not within:
        return ""
    if not seen:
        return "In all tables within their noise, the noise would have hidden any error."
    hidden = f"; in {len(within) - len(seen)} of these {len(within)} tables the noise hides any error"
    return (
        f"In tables within their noise, an error (total variation) of {seen[0]:.2g} to {seen[-1]:.2g} would have been "
        f"found with 80 % probability{hidden if len(seen) < len(within) else ''}."
    )


def pair_map(variables: Sequence[str], tables: Iterable[TableFit | TableNoise | MarginalNoise]) -> PairMap | None:
    """Lay out a map of tables of one and two variables; None for more variables than can be distinguished."""
    known = {frozenset(table.variables): table for table in tables}
    if len(variables) > MAX_MAPPED:
        return None
    step = max(min(_SIDE / len(variables), _LARGEST), _SMALLEST)
    short = shortened(variables)
    labels = tuple((short[name], _MARGIN + (i + 0.5) * step) for i, name in enumerate(variables))
    squares = tuple(
        Square(
            (row,) if row == column else (column, row),
            _LABEL + j * step,
            _MARGIN + i * step,
            known.get(frozenset((row, column))),
        )
        for i, row in enumerate(variables)
        for j, column in enumerate(variables[: i + 1])
    )
    side = step * len(variables)
    height = side + 4 * _MARGIN + _LETTER * max(map(len, short.values()))
    return PairMap(labels, squares, step, _LABEL, _MARGIN + side, _LABEL + side + 2 * _MARGIN, height)
