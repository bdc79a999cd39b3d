"""Pairs of variables get a map: a square for every pair, and one for every variable on the diagonal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pgmpy_dp.evaluation import compare
from pgmpy_dp.release import NoisyMarginals
from pgmpy_dp.report.drawing import shortened
from pgmpy_dp.report.noise import LEVELS, MarginalNoise, TableNoise
from pgmpy_dp.schema import Clique
from pgmpy_dp.synthesis import PrivateMixtureNetwork

MOST_MAPPED = 100
_LABEL, _MARGIN, _LETTER = 132.0, 4.0, 6.4
_SIDE, _LARGEST, _SMALLEST = 720.0, 30.0, 8.0  # of all squares together, and of one


@dataclass(frozen=True)
class TableFit:
    """A model is compared with one table of the release; `error`, `noise` and `excess` are those of `compare`."""

    variables: Clique
    error: float
    noise: float
    excess: float

    @property
    def level(self) -> str:
        """Name the misfit as noise is named: "clear" within the noise, "drowned" far beyond it."""
        return LEVELS[(self.excess >= 3.0) + (self.excess >= 10.0)]


@dataclass(frozen=True)
class Square:
    """A square stands for a pair, or for a variable by itself."""

    variables: Clique
    x: float
    y: float
    table: TableFit | TableNoise | MarginalNoise | None


@dataclass(frozen=True)
class PairMap:
    """A map is the lower half of a matrix; the name of a variable is to the left of its row, and below its column."""

    labels: tuple[tuple[str, float], ...]
    squares: tuple[Square, ...]
    step: float
    left: float
    side: float
    size: float
    height: float


def table_fits(release: NoisyMarginals, network: PrivateMixtureNetwork) -> list[TableFit]:
    """Compare a model with every table of the release, the worst first."""
    found = compare(release, network)
    return [TableFit(*row) for row in found[["error", "noise", "excess"]].itertuples(name=None)]


def pair_map(variables: Sequence[str], tables: Iterable[TableFit | TableNoise | MarginalNoise]) -> PairMap | None:
    """Lay out a map of the tables of one and two variables; None for more variables than can be told apart."""
    known = {frozenset(table.variables): table for table in tables}
    if len(variables) > MOST_MAPPED:
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
