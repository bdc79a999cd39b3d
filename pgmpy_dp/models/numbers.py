"""Density of a number within its bins, and conversion of synthetic records to values of the original types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.inference.collective.noise_laws import GaussianNoise, Law
from pgmpy_dp.inference.densities import EDGE, Density, FineHistogram, fit_density
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.schema import Bins, Schema

_RECORDS = 10_000.0  # behind shares that no release tells
# Most standard deviations (of the place within a bin) by which other variables move a number's density, and the number
# of steps between, to which leanings are rounded.
MAX_TILT, _TILTS = 2.0, 32
# Most log of the factor by which they change a cell's probability in its bin: where most of a wide bin is empty, noise
# in the empty cells would decide means otherwise.
MAX_TILT = 2.0
# Standard deviation of what leanings miss of means within bins, in those of the numbers there. On surveys of marriages,
# voters and travellers (shipped with statsmodels) it is .1 to .35.
_MISSED = 0.25
# The share of the variance of what moves the bins' log-probabilities that is linear in the numbers, there .3 to .6.
_TREND = 0.4
_NORMAL = (np.pi / 2) ** 0.5
_RAKES = 3  # rounds in which the densities of all records are scaled to sum to the shape
_MIN = 1e-12
UNSEEN = "where numbers are within bins was not measured finely enough"
GUESSED = "how far a wide bin reaches is mostly a guess"

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
        """Cells on the scale on which a density leans: logarithmic to both sides of the densest bin."""
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
        """Compute the slope of the log-density within given bins, from the bins' probabilities given other variables.

        The logarithm of these probabilities, relative to those without the other variables, is interpolated over the
        bins; its slope about a bin's centre is the density's. A bin without probability or without an end has no slope.
        """
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
        """Return the shape where the bins have probabilities proportional to these: within bins it leans with them."""
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
        """The least and the greatest number that each cell's may be, as far as anything was counted."""
        minimum, maximum = self.density.minimum, self.density.maximum
        return (minimum, maximum) if self.step is None else (minimum / self.step, (maximum - 1) / self.step)

    @property
    def unseen(self) -> tuple[float, float]:
        """How far the mean is above, and below, what it would be with all numbers at one of the ends."""
        weights = self.density.shares * self.chances[self.density.owners]
        return float(weights @ (self.middles - self.ends[0])), float(weights @ (self.ends[1] - self.middles))

    def missed(self, records: float, trend: float) -> float:
        """Compute the standard deviation of what is missed in the mean of some records, given other variables."""
        owners = self.density.owners
        # The mean deviation, as a far tail has too large a standard deviation; of normal numbers both are the same.
        within = _NORMAL * np.bincount(owners, self.density.shares * np.abs(self.middles - self.means[owners]))
        between = self.chances @ (self.means - self.mean) ** 2
        variance = (_MISSED * (self.chances @ within)) ** 2 + self.chances @ within**2 / max(records, 1.0)
        return float(np.sqrt(variance + _TREND * trend**2 * between))

    @property
    def unidentified(self) -> str | None:
        """Why counts do not tell the mean: its bounds are wider than half of the mean deviation; None if they do."""
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
        return self._numbers(cell, np.clip(along, 0.0, np.nextafter(1.0, 0.0)))

    def draw(
        self, bins: Places, tilts: Vector | None, generator: np.random.Generator, draw: int | None = None
    ) -> Vector:
        """Draw a number in each of the given bins."""
        shares, starts = self.density.shares if draw is None else self.density.drawn[draw], self.density.starts
        cells, order = np.empty(len(bins), dtype=np.intp), np.argsort(bins, kind="stable")
        ends = np.searchsorted(bins[order], np.arange(len(starts)))
        for number in np.flatnonzero(np.diff(ends)).tolist():
            rows, first = order[ends[number] : ends[number + 1]], starts[number]
            own = shares[first : starts[number + 1]]
            if own.size == 1:
                cells[rows] = first
                continue
            tables, level = own[None], np.zeros(rows.size, dtype=np.intp)
            if tilts is not None and tilts[rows].any():
                tables, level = self._tilted(number, own, first, tilts[rows])
            below = np.cumsum(tables, axis=1)
            below /= below[:, -1:]
            # Sums of row k lie between k and k + 1, so that one search serves all rows.
            sums = (below + np.arange(len(below))[:, None]).ravel()
            result = np.searchsorted(sums, level + generator.random(rows.size), side="right") - level * own.size
            cells[rows] = first + np.minimum(result, own.size - 1)
        return self._numbers(cells, generator.random(len(bins)))

    def _tilted(self, number: int, shares: Vector, first: int, slopes: Vector) -> tuple[Vector, NDArray[np.intp]]:
        """Return a table of probabilities for each leaning of a bin's cells, and the table of each record."""
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

    def _numbers(self, cells: Places, along: Vector) -> Vector:
        """Return the number at a share of each cell; those of a heap are at its edge."""
        low, size = self.density.bounds[cells], np.diff(self.density.bounds)[cells]
        if self.step is None:
            edges, owners = self.density.bounds[self.density.starts], self.density.owners[cells]
            along = np.where(size > 2.0 * EDGE * np.diff(edges)[owners], along, 0.0)
            return np.minimum(low + size * along, np.nextafter(edges[owners + 1], -np.inf))
        return (low + np.floor(size * along)) / self.step


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


Numbers = Literal["states", "drawn", "midpoint"]

# Records whose distributions given the other variables are held at a time.
_DRAWN_AT_ONCE = 50_000


def require_numbers(bins: Mapping[str, Bins], numbers: str) -> Numbers:
    """Raise if numbers cannot be drawn, before any privacy is spent; return the name of what is asked for."""
    if numbers not in get_args(Numbers):
        raise ValueError(f'numbers must be "states", "drawn" or "midpoint", got {numbers!r}.')
    for variable, declared in bins.items():
        if numbers == "drawn":
            require_scale(variable, declared)
        elif numbers == "midpoint" and not np.isfinite(declared.edges).all():
            raise SchemaError(
                f"Variable {variable!r} has an open bin, which has no middle: "
                'declare finite edges, or use numbers="drawn".'
            )
    return numbers  # type: ignore[return-value]


@dataclass(frozen=True)
class WithinBins:
    """Draws numbers within the bins of records."""

    shapes: Mapping[str, Shape]
    generator: np.random.Generator
    states: Mapping[str, Sequence[Any]]  # in the order of `given_others`
    given_others: Callable[[str, NDArray[np.integer]], Vector] | None = None
    draw: int | None = None  # a draw of the shapes, in place of their estimates

    def __call__(self, variable: str, bins: Bins, places: NDArray[Any], known: NDArray[np.bool_]) -> Vector:
        """Draw a number in the bin of each known record."""
        shape, own, tilts = self.shapes[variable], places[known], None
        if self.given_others is not None:
            columns = np.array([self.states[variable].index(label) for label in bins.labels])
            kept, tilts = np.flatnonzero(known), np.empty(own.size)
            for begin in range(0, own.size, _DRAWN_AT_ONCE):
                part = slice(begin, begin + _DRAWN_AT_ONCE)
                chances = self.given_others(variable, kept[part])
                tilts[part] = shape.tilts(chances[:, columns], own[part])
        return shape.draw(own, tilts, self.generator, self.draw)


def decoded(schema: Schema, variable: str, codes: NDArray[Any], numbers: Numbers, within: WithinBins) -> Any:
    """Convert a column of positions to states, or to numbers within bins."""
    bins = schema.bins.get(variable)
    if bins is None or numbers == "states":
        return pd.Categorical.from_codes(codes, pd.Index(schema.state_names[variable]))
    known = (codes >= 0) & (codes < len(bins.labels))  # states for missing and other values come after the bins
    ends = bins.closed()
    steps, values = ends.steps(), np.full(codes.size, np.nan)
    if numbers == "drawn":
        values[known] = within(variable, bins, codes, known)
    elif steps is None:
        low, high = np.array(ends.edges)[[codes[known], codes[known] + 1]]
        values[known] = low + (high - low) / 2
    else:
        first, end = np.array(steps)[[codes[known], codes[known] + 1]]
        unit = 10 ** (bins.decimals or 0)
        values[known] = (first + (end - first - 1) // 2) / unit  # the float nearest to the decimal number
    if bins.kind == "date":
        days = np.where(known, values, 0).astype(np.int64).astype("datetime64[D]").astype("datetime64[s]")
        return np.where(known, days, np.datetime64("NaT", "s"))
    whole = steps is not None and not bins.decimals
    if known.all():
        return values.astype(np.int64) if whole else values
    return pd.Series(values).astype("Int64" if whole else "float64")


def labelled(codes: Mapping[str, NDArray[Any]], schema: Schema, variables: Sequence[str]) -> pd.DataFrame:
    """Convert positions of states to categorical columns."""
    states = {variable: pd.Index(schema.state_names[variable]) for variable in variables}
    return pd.DataFrame({v: pd.Categorical.from_codes(codes[v], states[v]) for v in variables})  # type: ignore[type-var]


def numbered(records: pd.DataFrame, schemas: Iterable[Schema], numbers: Numbers, within: WithinBins) -> pd.DataFrame:
    """Order the columns of records as in the schemas, and replace names of bins by numbers."""
    owners, columns = dict[str, Schema](), {}
    for schema in schemas:
        for variable in schema.variables:
            if variable in records:
                owners.setdefault(variable, schema)
    for variable, schema in owners.items():
        if variable in schema.bins and numbers != "states":
            column, names = records[variable], pd.Index(schema.state_names[variable])
            if isinstance(column.dtype, pd.CategoricalDtype):
                codes = np.append(names.get_indexer(column.cat.categories), -1)[column.cat.codes]  # -1 is missing
            else:
                codes = names.get_indexer(column)  # type: ignore[arg-type]
            values = decoded(schema, variable, codes, numbers, within)
            columns[variable] = pd.Series(getattr(values, "array", values), records.index)
    return records.assign(**columns)[[*owners, *(v for v in records if v not in owners)]]
