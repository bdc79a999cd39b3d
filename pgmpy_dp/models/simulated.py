"""Synthetic records in the original types: states, and numbers within bins that meet the comparisons of rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal, Self, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.models.numbers import Drawing, Shape, require_scale
from pgmpy_dp.schema import Bins, DateBins, Schema
from pgmpy_dp.schema.rules import Allowed, Comparison
from pgmpy_dp.schema.states import alike, typed

Mask = NDArray[np.bool_]

# Number of times that the numbers of records which violate a comparison are drawn again, from the distribution given
# that all comparisons hold.
_TRIES = 30
# Number of times that each number is then drawn given the others.
_SWEEPS = 30
# Records whose densities between two ends are in memory at a time.
_AT_ONCE = 20_000


@dataclass(frozen=True)
class ComparedNumbers:
    """The numbers of a variable that is compared."""

    values: Vector  # NaN where one is missing
    steps: float | None  # the number of steps in a unit; None if numbers may have any decimals
    drawing: Drawing | None  # None if they are given
    drawn: Mask
    lower: Vector  # ends of the record's bin, both included
    upper: Vector
    order: NDArray[np.intp]  # index of the record in the drawing

    @classmethod
    def of_states(cls, schema: Schema, variable: str, places: NDArray[Any]) -> ComparedNumbers:
        """Read the numbers of a variable whose states are numbers, except those for missing and other values."""
        stand_ins = [role[variable] for role in (schema.missing, schema.other) if variable in role]
        texts = [None if state in stand_ins else str(state) for state in schema.states[variable]]
        numbers = np.array([math.nan if text is None else float(text) for text in texts] + [math.nan])[places]
        decimals = [-int(Decimal(text).as_tuple().exponent) for text in texts if text is not None]
        none = np.zeros(places.size, dtype=bool)
        return cls(numbers, 10.0 ** max(0, *decimals), None, none, numbers, numbers, none.astype(np.intp))

    @classmethod
    def within(
        cls, bins: Bins, places: NDArray[Any], known: Mask, values: Vector, drawn: Mask, drawing: Drawing
    ) -> ComparedNumbers:
        """Take the numbers of records, which were drawn in bins or are given."""
        steps, edges = drawing.shape.step, np.array(bins.edges)
        low = _lower(steps, edges[:-1])
        high = np.append(_upper(steps, edges[1:-1], strict=True), _upper(steps, edges[-1:]))
        lower, upper = (np.where(drawn, ends[np.where(drawn, places, 0)], values) for ends in (low, high))
        return cls(values, steps, drawing, drawn, lower, upper, np.cumsum(known) - 1)


def compared(schemas: Iterable[Schema], variables: Iterable[str]) -> list[list[Comparison]]:
    """List the comparisons of some variables, in groups that share variables."""
    known, groups = set(variables), list[list[Comparison]]()
    rules = dict.fromkeys(rule for schema in schemas for rule in schema.rules if isinstance(rule, Allowed))
    for comparison in dict.fromkeys(rule.comparison for rule in rules):
        if comparison is None or not {comparison.first, comparison.second} <= known:
            continue
        shared = [group for group in groups if {comparison.first, comparison.second} & names_of(group)]
        groups = [group for group in groups if group not in shared]
        groups.append([*(one for group in shared for one in group), comparison])
    return groups


def names_of(comparisons: Iterable[Comparison]) -> set[str]:
    """Return the variables that are compared."""
    return {name for one in comparisons for name in (one.first, one.second)}


def meeting(
    comparisons: Sequence[Comparison], numbers: Mapping[str, ComparedNumbers], generator: np.random.Generator
) -> Iterator[tuple[str, Vector]]:
    """Draw numbers anew in the records that break a comparison, given that all hold, and yield each variable's."""
    links = [_Link(one, numbers[one.first].steps, numbers[one.second].steps) for one in comparisons]
    # Variables with the fewest decimals first, since numbers with more decimals can equal theirs.
    names = sorted(names_of(comparisons), key=lambda name: (numbers[name].steps or math.inf, list(numbers).index(name)))
    free = [name for name in names if numbers[name].drawing is not None]
    values = {name: numbers[name].values.copy() for name in names}
    rows = np.flatnonzero(~_met(links, values) & np.any([numbers[name].drawn for name in names], axis=0))
    equal = any(one.sign == "=" for one in comparisons)
    for _ in range(0 if equal else _TRIES):
        for name in free if rows.size else ():
            own = rows[numbers[name].drawn[rows]]
            values[name][own] = numbers[name].drawing.draw(generator, numbers[name].order[own])  # type: ignore[union-attr]
        rows = rows[~_met(links, {name: column[rows] for name, column in values.items()})]
    for begin in range(0, rows.size, _AT_ONCE):
        part = rows[begin : begin + _AT_ONCE]
        found = _Narrowed(links, {name: numbers[name] for name in names}, part).draw(
            {name: column[part] for name, column in values.items()}, generator, 0 if equal else _SWEEPS
        )
        for name in free:
            values[name][part] = found[name]
    yield from ((name, values[name]) for name in free)


@dataclass(frozen=True)
class _Link:
    """A comparison of columns in floats, or in decimal numbers if both have steps."""

    comparison: Comparison
    of_first: float | None
    of_second: float | None

    @cached_property
    def unit(self) -> float | None:
        if self.of_first is None or self.of_second is None:
            return None
        added = 10 ** max(0, -int(self.comparison.added.as_tuple().exponent))
        return float(math.lcm(round(self.of_first), round(self.of_second), added))

    def met(self, first: Vector, second: Vector) -> Mask:
        """Mark the records in which the comparison holds, or a number is missing."""
        moved = self.moved(second)
        signs = {"<=": first <= moved, "<": first < moved, ">=": first >= moved, ">": first > moved}
        return signs.get(self.comparison.sign, first == moved) | np.isnan(first) | np.isnan(moved)

    def moved(self, second: Vector, back: bool = False) -> Vector:
        """Add the constant to the second number; with `back`, subtract it."""
        found = second + float(-self.comparison.added if back else self.comparison.added)
        return found if self.unit is None else np.round(found * self.unit) / self.unit

    def narrow(self, low: dict[str, Vector], high: dict[str, Vector]) -> None:
        """Narrow the ends of both variables to numbers that satisfy the comparison with some number of the other."""
        one, sign, strict = self.comparison, self.comparison.sign, self.comparison.sign in "<>"
        first, second = one.first, one.second
        if sign in ("<=", "<", "="):
            high[first] = _lesser(high[first], _upper(self.of_first, self.moved(high[second]), strict))
            low[second] = _greater(low[second], self._second(low[first], strict, 1.0))
        if sign in (">=", ">", "="):
            low[first] = _greater(low[first], _lower(self.of_first, self.moved(low[second]), strict))
            high[second] = _lesser(high[second], self._second(high[first], strict, -1.0))

    def _second(self, first: Vector, strict: bool, sign: float) -> Vector:
        """Return the smallest second number that satisfies first <= sum; with sign -1, the largest for first >= sum."""
        found = sign * _lower(self.of_second, sign * self.moved(first, back=True), strict)
        for _ in range(3):  # sums of floats are rounded
            reached, wanted = sign * self.moved(found), sign * first
            short = ((reached <= wanted) if strict else (reached < wanted)) & np.isfinite(first)
            if self.of_second is None:  # a smaller step than those of the sum would change nothing
                size = np.where(short, np.maximum(np.abs(found), np.abs(first)), 0.0)
                farther = found + sign * np.spacing(size)
            else:
                farther = sign * _lower(self.of_second, sign * found, strict=True)
            found = np.where(short, farther, found)
        return found


def _met(links: Sequence[_Link], values: Mapping[str, Vector]) -> Mask:
    met: Mask = np.all([link.met(values[link.comparison.first], values[link.comparison.second]) for link in links], 0)
    return met


def _upper(steps: float | None, end: Vector, strict: bool = False) -> Vector:
    """Return the largest numbers at most, or below, some ends."""
    if steps is None:
        return np.where(np.isfinite(end) & strict, np.nextafter(end, -np.inf), end)
    scaled = end * steps
    near = np.round(scaled)
    with np.errstate(invalid="ignore"):  # of infinite ends
        exact = np.abs(scaled - near) <= 1e-12 * np.maximum(np.abs(near), 1.0)
    found: Vector = np.where(exact, near - strict, np.floor(scaled)) / steps
    over = (found >= end) if strict else (found > end)
    return np.where(over & np.isfinite(end), np.round(found * steps - 1) / steps, found)


def _lower(steps: float | None, end: Vector, strict: bool = False) -> Vector:
    return -_upper(steps, -end, strict)


def _lesser(own: Vector, other: Vector) -> Vector:
    return np.where(np.isnan(other), own, np.minimum(own, other))


def _greater(own: Vector, other: Vector) -> Vector:
    return -_lesser(-own, -other)


@dataclass(frozen=True)
class _Narrowed:
    """Numbers of some records, drawn variable by variable, each within the ends that the others leave."""

    links: Sequence[_Link]
    numbers: Mapping[str, ComparedNumbers]
    rows: NDArray[np.intp]

    def draw(self, values: dict[str, Vector], generator: np.random.Generator, sweeps: int) -> dict[str, Vector]:
        ends = self._ends()
        low, high = ({name: column.copy() for name, column in end.items()} for end in ends)
        for name in self.numbers:
            values[name] = self._drawn(name, low[name], high[name], values[name], generator)
            low[name] = high[name] = values[name]
            self._narrow(low, high, len(self.numbers))
        for _ in range(sweeps):
            for name in self.numbers:
                low, high = ({**values, name: end[name]} for end in ends)
                self._narrow(low, high, 1)
                values[name] = self._drawn(name, low[name], high[name], values[name], generator)
        return values

    def _ends(self) -> tuple[dict[str, Vector], dict[str, Vector]]:
        """Return the narrowed ends of the bins; none if no numbers in the bins satisfy all comparisons."""
        low = {name: own.lower[self.rows] for name, own in self.numbers.items()}
        high = {name: own.upper[self.rows] for name, own in self.numbers.items()}
        self._narrow(low, high, len(self.numbers))
        empty = np.any([low[name] > high[name] for name in self.numbers], axis=0)
        for name, own in self.numbers.items():
            drawn = own.drawn[self.rows]
            low[name] = np.where(empty, np.where(drawn, -np.inf, own.lower[self.rows]), low[name])
            high[name] = np.where(empty, np.where(drawn, np.inf, own.upper[self.rows]), high[name])
        self._narrow(low, high, len(self.numbers))
        return low, high

    def _narrow(self, low: dict[str, Vector], high: dict[str, Vector], rounds: int) -> None:
        for _ in range(rounds):
            for link in self.links:
                link.narrow(low, high)

    def _drawn(self, name: str, low: Vector, high: Vector, before: Vector, generator: np.random.Generator) -> Vector:
        own = self.numbers[name]
        places = np.flatnonzero(own.drawn[self.rows])
        if own.drawing is None or not places.size:
            return before
        found = before.copy()
        found[places] = own.drawing.between(own.order[self.rows[places]], low[places], high[places], generator)
        return found


Numbers = Literal["states", "drawn", "midpoint"]

# Records whose distributions given the other variables are held at a time.
_DRAWN_AT_ONCE = 50_000


def require_numbers(bins: Mapping[str, Bins], numbers: str) -> Numbers:
    """Raise if numbers cannot be drawn, before any privacy is spent; return the checked argument."""
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
    given: Mapping[str, Vector] = field(default_factory=dict)  # given numbers of records, or NaN

    def numbers(self, records: Mapping[str, tuple[Schema, NDArray[Any]]]) -> dict[str, Vector]:
        """Draw numbers, NaN where there is none, from the schemas of variables and their positions of states."""
        values, drawings, known = dict[str, Vector](), dict[str, Drawing](), dict[str, NDArray[np.bool_]]()
        for variable, (schema, places) in records.items():
            if (bins := schema.bins.get(variable)) is None:
                continue
            known[variable] = _in_bins(bins, places)
            drawings[variable] = self._drawing(variable, bins, places, known[variable])
            values[variable] = np.full(places.size, np.nan)
            values[variable][known[variable]] = drawings[variable].draw(self.generator)
        for comparisons in compared((schema for schema, _ in records.values()), records):
            own = dict[str, ComparedNumbers]()
            for variable, (schema, places) in records.items():
                if variable in drawings:
                    bins, fixed = schema.bins[variable], self.given.get(variable)
                    drawn = known[variable] & (True if fixed is None else np.isnan(fixed))
                    column = values[variable] if fixed is None else np.where(drawn, values[variable], fixed)
                    own[variable] = ComparedNumbers.within(
                        bins, places, known[variable], column, drawn, drawings[variable]
                    )
                elif variable in names_of(comparisons):
                    own[variable] = ComparedNumbers.of_states(schema, variable, places)
            values.update(meeting(comparisons, own, self.generator))
        return values

    def _drawing(self, variable: str, bins: Bins, places: NDArray[Any], known: NDArray[np.bool_]) -> Drawing:
        shape, own, tilts = self.shapes[variable], places[known], None
        if self.given_others is not None:
            columns = np.array([self.states[variable].index(label) for label in bins.labels])
            kept, tilts = np.flatnonzero(known), np.empty(own.size)
            for begin in range(0, own.size, _DRAWN_AT_ONCE):
                part = slice(begin, begin + _DRAWN_AT_ONCE)
                chances = self.given_others(variable, kept[part])
                tilts[part] = shape.tilts(chances[:, columns], own[part])
        return shape.drawing(own, tilts, self.draw)


@dataclass(frozen=True)
class GivenNumbers:
    """Numbers and dates of binned variables that records have already, rather than texts or names of bins."""

    columns: Mapping[str, pd.Series[Any]]
    values: Mapping[str, Vector]  # NaN where there is none

    @classmethod
    def of(cls, records: pd.DataFrame | None, bins: Mapping[str, Bins], numbers: Numbers) -> Self:
        """Read them, unless all numbers are to be returned as the names of their bins."""
        records = pd.DataFrame() if records is None else records
        own = [v for v in bins if v in records and not isinstance(records[v].dtype, pd.CategoricalDtype)]
        columns = {
            v: records[v].where(records[v].map(lambda cell: not isinstance(cell, str)))
            for v in own
            if numbers != "states"
        }
        return cls(columns, {v: bins[v].numbers(column) for v, column in columns.items()})

    def kept_in(self, drawn: pd.DataFrame) -> pd.DataFrame:
        """Return drawn records with these numbers in place of drawn ones."""
        columns = {v: column.set_axis(drawn.index) for v, column in self.columns.items()}
        return drawn.assign(**{v: drawn[v].mask(column.notna(), column) for v, column in columns.items()})


def _in_bins(bins: Bins, places: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which records have a number: states for missing and other values come after the bins."""
    return (places >= 0) & (places < len(bins.labels))


def converted(
    records: Mapping[str, tuple[Schema, NDArray[Any]]], numbers: Numbers, within: WithinBins
) -> dict[str, Any]:
    """Convert positions of states to columns of states, or of numbers within bins, by the schema of each variable."""
    drawn = within.numbers(records) if numbers == "drawn" else {}
    return {v: _column(schema, v, codes, numbers, drawn.get(v)) for v, (schema, codes) in records.items()}


def _column(schema: Schema, variable: str, codes: NDArray[Any], numbers: Numbers, drawn: Vector | None) -> Any:
    bins = schema.bins.get(variable)
    if bins is None or numbers == "states":
        return (labels if numbers == "states" else _states)(codes, schema, variable)
    known, ends = _in_bins(bins, codes), bins.closed()
    steps = ends.steps()
    if drawn is None:
        values, own = np.full(codes.size, np.nan), np.array(ends.edges if steps is None else steps)
        low, high = own[[codes[known], codes[known] + 1]]
        # In steps, the float nearest to the decimal number.
        middle = low + (high - low) / 2 if steps is None else (low + (high - low - 1) // 2) / 10 ** (bins.decimals or 0)
        values[known] = middle
    else:
        values = drawn
    if isinstance(bins, DateBins):
        times = (np.where(known, values, 0).astype(np.int64) * bins.unit).astype("datetime64[s]")
        return np.where(known, times, np.datetime64("NaT", "s"))
    whole = steps is not None and not bins.decimals
    if known.all():
        return values.astype(np.int64) if whole else values
    return pd.Series(values).astype("Int64" if whole else "float64")


def _states(codes: NDArray[Any], schema: Schema, variable: str) -> Any:
    """Convert a column of positions to whole numbers, numbers or Booleans, if all states but the missing one are."""
    missing = schema.missing.get(variable)
    states = [None if missing is not None and typed(s) == typed(missing) else s for s in schema.states[variable]]
    kinds = {type(state) for state in states if state is not None}
    lacking = (codes < 0) | np.array([state is None for state in states])[codes]
    for kind, dtype, optional in ((bool, "bool", "boolean"), (int, "int64", "Int64"), (float, "float64", "float64")):
        if kinds == {kind}:
            values = pd.Series(states, dtype=optional).take(codes).mask(lacking)
            return values.array.astype(optional if lacking.any() else dtype)
    return labels(codes, schema, variable)


def labels(codes: NDArray[Any], schema: Schema, variable: str) -> Any:
    """Convert a column of positions to states, in their declared order."""
    return pd.Categorical.from_codes(codes, pd.Index(alike(schema.states[variable])))


def labelled(codes: Mapping[str, NDArray[Any]], schema: Schema, variables: Sequence[str]) -> pd.DataFrame:
    """Convert positions of states to categorical columns."""
    return pd.DataFrame({v: labels(codes[v], schema, v) for v in variables})


def numbered(records: pd.DataFrame, schemas: Iterable[Schema], numbers: Numbers, within: WithinBins) -> pd.DataFrame:
    """Order the columns of records as in the schemas, and replace names of bins by numbers."""
    owners, columns = dict[str, Schema](), {}
    for schema in schemas:
        for variable in schema.variables:
            if variable in records:
                owners.setdefault(variable, schema)
    placed = dict[str, tuple[Schema, NDArray[Any]]]()
    for variable, schema in owners.items() if numbers != "states" else ():
        column, names = records[variable], pd.Index(alike(schema.states[variable]))
        if isinstance(column.dtype, pd.CategoricalDtype):
            codes = np.append(names.get_indexer(column.cat.categories), -1)[column.cat.codes]  # -1 is missing
        else:
            codes = names.get_indexer(column)  # type: ignore[arg-type]
        placed[variable] = schema, codes
    for variable, values in converted(placed, numbers, within).items():
        columns[variable] = pd.Series(getattr(values, "array", values), records.index)
    return records.assign(**columns)[[*owners, *(v for v in records if v not in owners)]]
