"""Density of a number within its bins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.inference.collective.noise_laws import GaussianNoise, Law
from pgmpy_dp.inference.densities import EDGE, Density, FineHistogram, fit_density
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.schema import Bins

_RECORDS = 10_000.0  # number of records assumed for shares without a release
# Maximum number of standard deviations (of the position within a bin) by which other variables move a number's density,
# and of the log factor by which they change a cell's probability in its bin: if most of a wide bin is empty, noise in
# its empty cells would otherwise dominate means. Then the number of steps to which tilts are rounded.
MAX_TILT, _TILTS = 2.0, 32
# Standard deviation of the error of tilts in the means within bins, in standard deviations of the numbers in a bin. On
# surveys of marriages, voters and travellers (shipped with statsmodels) it is .1 to .35.
_MISSED = 0.25
# Share of the variance of changes of the bins' log-probabilities that is linear in the numbers, .3 to .6 on these
# surveys.
_TREND = 0.4
_NORMAL = (np.pi / 2) ** 0.5
_RAKES = 3  # rounds in which the densities of all records are scaled to sum to the shape
_MIN = 1e-12
UNSEEN = "where numbers are within bins was not measured finely enough"
GUESSED = "how far a wide bin reaches is mostly an assumption"

Places = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Shape:
    """A density within bins."""

    density: Density
    chances: Vector  # probabilities of the bins
    spikes: NDArray[np.bool_]  # bins that hold one number and are not informative about their neighbours
    tilted: NDArray[np.bool_]
    step: float | None  # the number of steps in a unit; None if numbers may have any decimals

    @cached_property
    def middles(self) -> Vector:
        """The mean of each cell's numbers."""
        low, size = self.density.bounds[:-1], np.diff(self.density.bounds)
        return low + size / 2 if self.step is None else (low + (size - 1) / 2) / self.step

    @cached_property
    def places(self) -> Vector:
        """Cells on the scale on which a density is tilted: logarithmic to both sides of the densest bin."""
        bounds, ends = self.density.bounds, self.density.bounds[self.density.starts]
        widths = np.diff(ends)
        top = int(np.where(self.spikes, -1.0, self.chances / widths).argmax())
        return np.arcsinh((bounds[1:] + bounds[:-1] - ends[top] - ends[top + 1]) / widths[top])

    @cached_property
    def centres(self) -> tuple[Vector, Vector]:
        """Mean and standard deviation of the places in each bin."""
        weights, owners = self.density.shares, self.density.owners
        mean: Vector = np.bincount(owners, weights * self.places).astype(np.float64)
        return mean, np.sqrt(np.bincount(owners, weights * (self.places - mean[owners]) ** 2))

    @property
    def max_tilt(self) -> Vector:
        """The largest slope that other variables add to the log-density within each bin."""
        return np.where(self.tilted, MAX_TILT / np.maximum(self.centres[1], _MIN), 0.0)

    def tilts(self, chances: Vector, bins: Places) -> Vector:
        """Compute the slope of the log-density within bins from the bins' probabilities given other variables."""
        knots = np.flatnonzero(~self.spikes)
        if knots.size < 2:
            return np.zeros(len(bins))
        centres, maximum = self.centres[0], self.max_tilt[bins]
        position = np.clip(np.searchsorted(knots, bins), 0, knots.size - 1)
        base = np.log(np.maximum(self.chances[knots], _MIN))
        rows = np.arange(len(bins))

        def ratio(at: Places) -> Vector:
            own = chances[rows, knots[at]]
            return np.where(own > 0, np.log(np.maximum(own, _MIN)) - base[at], np.nan)

        here, low, high = ratio(position), np.maximum(position - 1, 0), np.minimum(position + 1, knots.size - 1)
        apart = [np.maximum(np.abs(centres[knots[position]] - centres[knots[at]]), _MIN) for at in (low, high)]
        below, above = (here - ratio(low)) / apart[0], (ratio(high) - here) / apart[1]
        below, above = np.where(low == position, above, below), np.where(high == position, below, above)
        slope = (np.nan_to_num(below) + np.nan_to_num(above)) / 2
        return np.asarray(np.clip(slope, -maximum, maximum))

    def given(self, chances: Vector) -> Shape:
        """Return the shape for bins with probabilities proportional to `chances`, which also tilt it within bins."""
        bins, owners, starts = np.arange(chances.size), self.density.owners, self.density.starts[:-1]
        tilts = self.tilts(np.broadcast_to(chances, (bins.size, bins.size)), bins)[owners]
        tilt = np.exp(np.clip(tilts * (self.places - self.centres[0][owners]), -MAX_TILT, MAX_TILT))

        def tilted(shares: Vector) -> Vector:
            result = shares * tilt
            return result / np.add.reduceat(result, starts, axis=-1)[..., owners]

        density = replace(self.density, shares=tilted(self.density.shares), draw=lambda: tilted(self.density.drawn))
        return replace(self, density=density, chances=chances / max(float(chances.sum()), _MIN))

    @cached_property
    def means(self) -> Vector:
        """The mean of the numbers in each bin."""
        return np.bincount(self.density.owners, self.density.shares * self.middles).astype(np.float64)

    @property
    def mean(self) -> float:
        """The mean of all numbers."""
        return float(self.chances @ self.means)

    @property
    def drawn_means(self) -> Vector:
        """The mean of all numbers in each draw of the density."""
        return self.density.drawn @ (self.middles * self.chances[self.density.owners])

    def mean_ends(self, interval: float) -> tuple[float, float]:
        """Return the equal-tailed interval of the mean among the draws of the density."""
        low, high = np.quantile(self.drawn_means, [(1 - interval) / 2, (1 + interval) / 2], method="weibull").tolist()
        return low, high

    @cached_property
    def ends(self) -> tuple[Vector, Vector]:
        """The smallest and the largest number that each cell's numbers may be, by the counted bins and cells."""
        minimum, maximum = self.density.minimum, self.density.maximum
        return (minimum, maximum) if self.step is None else (minimum / self.step, (maximum - 1) / self.step)

    @property
    def unseen(self) -> tuple[float, float]:
        """The distance of the mean from its value if all numbers were at the lower, or at the upper, ends."""
        weights = self.density.shares * self.chances[self.density.owners]
        return float(weights @ (self.middles - self.ends[0])), float(weights @ (self.ends[1] - self.middles))

    def missed(self, records: float, trend: float) -> float:
        """Compute the standard deviation of the tilts' error in the mean of some records, given other variables."""
        owners = self.density.owners
        # The mean deviation, as a far tail has too large a standard deviation; of normal numbers both are the same.
        within = _NORMAL * np.bincount(owners, self.density.shares * np.abs(self.middles - self.means[owners]))
        between = self.chances @ (self.means - self.mean) ** 2
        variance = (_MISSED * (self.chances @ within)) ** 2 + self.chances @ within**2 / max(records, 1.0)
        return float(np.sqrt(variance + _TREND * trend**2 * between))

    @property
    def unidentified(self) -> str | None:
        """The reason why counts do not identify the mean, with bounds wider than half the mean deviation, or None."""
        drawn = float(np.ptp(self.mean_ends(0.9)))
        if drawn + sum(self.unseen) <= self.chances @ np.abs(self.means - self.mean) / 2:
            return None
        return UNSEEN if 2 * min(self.unseen) > drawn else GUESSED  # numbers in a tail may be unseen to one side only

    def quantiles(self, levels: Sequence[float]) -> Vector:
        """Return quantiles of the number."""
        weights = self.density.shares * self.chances[self.density.owners]
        sums = np.append(0.0, np.cumsum(weights)) / max(float(weights.sum()), _MIN)
        cell = np.clip(np.searchsorted(sums, levels, side="right") - 1, 0, weights.size - 1)
        along = (np.asarray(levels) - sums[cell]) / np.maximum(sums[cell + 1] - sums[cell], _MIN)
        return self.numbers(cell, np.clip(along, 0.0, np.nextafter(1.0, 0.0)))

    def drawing(self, bins: Places, tilts: Vector | None, draw: int | None = None) -> Drawing:
        """Return the drawing of a number in each of the given bins."""
        shares, starts = self.density.shares if draw is None else self.density.drawn[draw], self.density.starts
        levels, tables = np.zeros(len(bins), dtype=np.intp), dict[int, Vector]()
        for number, rows in _by_bin(bins):
            first = starts[number]
            own = shares[first : starts[number + 1]]
            found = own[None]
            if own.size > 1 and tilts is not None and tilts[rows].any():
                found, levels[rows] = self._tilted(number, own, first, tilts[rows])
            below = np.cumsum(found, axis=1)
            tables[number] = below / below[:, -1:]
        return Drawing(self, bins, tables, levels)

    def _tilted(self, number: int, shares: Vector, first: int, slopes: Vector) -> tuple[Vector, NDArray[np.intp]]:
        """Return a table of probabilities for each tilt of a bin's cells, and the table of each record."""
        mean, spread = (values[number] for values in self.centres)
        size = MAX_TILT / max(float(spread), _MIN) / _TILTS
        steps, level, counts = np.unique(np.rint(slopes / size), return_inverse=True, return_counts=True)
        positions = self.places[first : first + shares.size] - mean
        factors, base = np.exp(np.clip(np.outer(steps * size, positions), -MAX_TILT, MAX_TILT)), shares.copy()
        tables = factors * base
        for _ in range(_RAKES):
            tables /= tables.sum(axis=1, keepdims=True)
            base = base * shares / np.maximum(counts @ tables / counts.sum(), 1e-300)
            tables = factors * base
        return tables, level.ravel()

    def numbers(self, cells: Places, along: Vector) -> Vector:
        """Return the number at a given share of each cell's width; numbers in a heap are at its edge."""
        low, size = self.density.bounds[cells], np.diff(self.density.bounds)[cells]
        if self.step is None:
            edges, owners = self.density.bounds[self.density.starts], self.density.owners[cells]
            along = np.where(size > 2.0 * EDGE * np.diff(edges)[owners], along, 0.0)
            return np.minimum(low + size * along, np.nextafter(edges[owners + 1], -np.inf))
        return (low + np.floor(size * along)) / self.step


@dataclass(frozen=True)
class Drawing:
    """The densities from which records' numbers are drawn within their bins."""

    shape: Shape
    bins: Places
    tables: Mapping[int, Vector]  # by bin, the sums of its cells' probabilities for each tilt
    levels: Places  # which tilt a record has

    def draw(self, generator: np.random.Generator, records: Places | None = None) -> Vector:
        """Draw a number for each record, or for some."""
        bins, levels = (own if records is None else own[records] for own in (self.bins, self.levels))
        cells, starts = np.empty(len(bins), dtype=np.intp), self.shape.density.starts
        for number, rows in _by_bin(bins):
            below, first = self.tables[number], starts[number]
            size = below.shape[1]
            if size == 1:
                cells[rows] = first
                continue
            # Sums of row k lie between k and k + 1, so that one search serves all rows.
            sums = (below + np.arange(len(below))[:, None]).ravel()
            found = np.searchsorted(sums, levels[rows] + generator.random(rows.size), side="right")
            cells[rows] = first + np.minimum(found - levels[rows] * size, size - 1)
        return self.shape.numbers(cells, generator.random(len(bins)))

    def between(self, records: Places, low: Vector, high: Vector, generator: np.random.Generator) -> Vector:
        """Draw a number between two ends, both included, for some records; if both are beyond the bin, the nearer."""
        shape, density, step = self.shape, self.shape.density, self.shape.step
        bins, levels = self.bins[records], self.levels[records]
        cells, along = np.empty(len(bins), dtype=np.intp), generator.random(len(bins))
        for number, rows in _by_bin(bins):
            first, end = density.starts[number], density.starts[number + 1]
            bounds, places = density.bounds[first : end + 1], np.arange(rows.size)
            sums = np.insert(self.tables[number], 0, 0.0, axis=1)[levels[rows]]
            lower, upper = (
                np.clip(own[rows] if step is None else own[rows] * step + more, bounds[0], bounds[-1])
                for own, more in ((low, 0.0), (high, 1.0))
            )

            def below(numbers: Vector, bounds: Vector = bounds, sums: Vector = sums, places: Places = places) -> Vector:
                cell = np.clip(np.searchsorted(bounds, numbers, side="right") - 1, 0, bounds.size - 2)
                part = (numbers - bounds[cell]) / np.diff(bounds)[cell]
                return sums[places, cell] + part * (sums[places, cell + 1] - sums[places, cell])

            share, ends = along[rows], (below(lower), below(upper))
            level = ends[0] + share * (ends[1] - ends[0])
            cell = np.clip((sums[:, 1:] <= level[:, None]).sum(axis=1), 0, bounds.size - 2)
            part = (level - sums[places, cell]) / np.maximum(np.diff(sums)[places, cell], _MIN)
            bare = ends[1] - ends[0] <= _MIN  # then evenly
            even = lower + share * (upper - lower)
            cell = np.where(bare, np.clip(np.searchsorted(bounds, even, side="right") - 1, 0, bounds.size - 2), cell)
            along[rows] = np.where(bare, (even - bounds[cell]) / np.diff(bounds)[cell], part)
            cells[rows] = first + cell
        return np.clip(shape.numbers(cells, np.clip(along, 0.0, np.nextafter(1.0, 0.0))), low, high)


def _by_bin(bins: Places) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Yield each bin that has records, and their indices."""
    order = np.argsort(bins, kind="stable")
    numbers, starts = np.unique(bins[order], return_index=True)
    yield from zip(numbers.tolist(), np.split(order, starts[1:]), strict=False)


def require_scale(variable: str, bins: Bins) -> None:
    """Raise unless two edges are finite, which give open bins a scale."""
    if np.isfinite(bins.edges).sum() < 2:
        raise SchemaError(
            f"Variable {variable!r} has fewer than two finite edges: the range of its numbers is unknown: "
            'declare more edges, or use numbers="states".'
        )


@lru_cache(maxsize=512)
def shape_of(
    bins: Bins,
    chances: tuple[float, ...],
    deviation: float,
    total: float | None,
    detail: tuple[tuple[float, ...], float] | None = None,
    law: Law = GaussianNoise,
) -> Shape:
    """Find the shape of a number from the probabilities of its bins, and its histogram in detail."""
    ends, records = bins.closed(), _RECORDS if total is None else total
    steps = ends.steps()
    edges = np.array(ends.edges if steps is None else steps, dtype=np.float64)
    shares = np.maximum(chances, 0.0)
    noise = deviation / records
    variances = noise**2 + np.maximum(shares, max(noise, 1 / records)) / records
    single = np.diff(edges) == 1 if steps is not None else np.zeros(len(shares), dtype=bool)
    # The first of a run of bins that hold one number may be a spike; those after it show the shape.
    spikes = single & ~np.append(False, single[:-1])
    scale = 1.0 if steps is not None else float(np.abs(edges).max())
    fine = None
    if detail is not None and bins.fine is not None:
        cells = Bins([ends.edges[0], *bins.fine.edges[1:-1], ends.edges[-1]], decimals=bins.decimals)
        cuts = np.array(cells.edges if steps is None else cells.steps(), dtype=np.float64) / scale
        fine = FineHistogram(cuts, np.array(detail[0]), detail[1], law, records)
    result = fit_density(edges / scale, shares, variances, ~spikes, whole=steps is not None, fine=fine)
    bounds = result.bounds * scale
    bounds[result.starts] = edges
    step = None if steps is None else 10.0 ** (bins.decimals or 0)
    tilted = ~spikes & np.isfinite(bins.edges[:-1]) & np.isfinite(bins.edges[1:])
    density = replace(result, bounds=bounds, minimum=result.minimum * scale, maximum=result.maximum * scale)
    return Shape(density, shares / max(float(shares.sum()), _MIN), spikes, tilted, step)
