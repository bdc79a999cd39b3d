"""Conversion of synthetic records to values of the original types: states, and numbers within their bins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.models.comparisons import ComparedNumbers, compared, meeting, names_of
from pgmpy_dp.models.numbers import Drawing, Shape, require_scale
from pgmpy_dp.schema import Bins, DateBins, Schema
from pgmpy_dp.schema.states import alike, typed

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


def numbers_in(records: pd.DataFrame, bins: Mapping[str, Bins]) -> dict[str, pd.Series[Any]]:
    """Return the columns of binned variables that contain numbers or dates, rather than texts or names of bins."""
    own = [v for v in bins if v in records and not isinstance(records[v].dtype, pd.CategoricalDtype)]
    return {v: records[v].where(records[v].map(lambda cell: not isinstance(cell, str))) for v in own}


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
