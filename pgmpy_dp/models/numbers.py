"""Conversion of states of synthetic records to values of the original types."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pgmpy_dp.errors import Message, SchemaError, callers_level
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.models.shapes import Shape, require_scale
from pgmpy_dp.schema import Bins, Schema

Numbers = Literal["states", "drawn", "midpoint"]

# Records whose distributions given the other variables are held at a time.
_RECORDS = 50_000


def require_numbers(bins: Mapping[str, Bins], numbers: str) -> Numbers:
    """Raise if numbers cannot be drawn, before any privacy is spent; return the name of what is asked for.

    Raises
    ------
    ValueError
        If `numbers` is not "states", "drawn" or "midpoint".
    SchemaError
        If a bin is open and midpoints are requested, or numbers are requested of open bins without two finite edges.

    Warns
    -----
    DeprecationWarning
        If numbers are "uniform": the former name of "drawn", which drew evenly.
    """
    if numbers == "uniform":
        warnings.warn(
            'numbers="uniform" is called "drawn" now, and the old name goes with the next version. Numbers follow '
            "a density fitted to the counts of all bins, and are no longer spread evenly.",
            DeprecationWarning,
            stacklevel=callers_level(),
        )
        numbers = "drawn"
    if numbers not in get_args(Numbers):
        raise ValueError(f'numbers must be "states", "drawn" or "midpoint", got {numbers!r}.')
    for variable, declared in bins.items():
        if numbers == "drawn":
            require_scale(variable, declared)
        elif numbers == "midpoint" and not np.isfinite(declared.edges).all():
            raise SchemaError(
                Message(
                    f"Variable {variable!r} has an open bin, which has no middle",
                    'declare finite edges, or use numbers="drawn"',
                    "declare finite edges, or use --numbers drawn",
                )
            )
    return numbers  # type: ignore[return-value]


@dataclass(frozen=True)
class WithinBins:
    """Draws numbers within the bins of records.

    Attributes
    ----------
    shapes : mapping of variable to Shape
    generator : numpy.random.Generator
    states : mapping of variable to states
        In the order of `given_others`.
    given_others : callable, optional
        See `pgmpy_dp.models.answering.GivenOthers`; without it, numbers depend on their bins alone.
    draw : int, optional
        A draw of the shapes, in place of their estimates.
    """

    shapes: Mapping[str, Shape]
    generator: np.random.Generator
    states: Mapping[str, Sequence[Any]]
    given_others: Callable[[str, NDArray[np.integer]], Vector] | None = None
    draw: int | None = None

    def __call__(self, variable: str, bins: Bins, places: NDArray[Any], known: NDArray[np.bool_]) -> Vector:
        """Draw a number in the bin of each known record."""
        shape, own, leanings = self.shapes[variable], places[known], None
        if self.given_others is not None:
            columns = np.array([self.states[variable].index(label) for label in bins.labels])
            kept, leanings = np.flatnonzero(known), np.empty(own.size)
            for begin in range(0, own.size, _RECORDS):
                part = slice(begin, begin + _RECORDS)
                chances = self.given_others(variable, kept[part])
                leanings[part] = shape.leanings(chances[:, columns], own[part])
        return shape.draw(own, leanings, self.generator, self.draw)


def decoded(schema: Schema, variable: str, codes: NDArray[Any], numbers: Numbers, within: WithinBins) -> Any:
    """Convert a column of positions to states, or to numbers within bins.

    Parameters
    ----------
    schema : Schema
    variable : str
    codes : ndarray of shape (records,)
    numbers : {"states", "drawn", "midpoint"}
        What to return for bins. Numbers have the decimals that the bins declare. Without declared decimals, numbers are
        integers if all edges are: bins of width 1 then give their lower edge, and a spike that was declared as its own
        bin stays exact.
    within : WithinBins

    Returns
    -------
    Categorical, ndarray or Series
        States, or numbers or dates. Missing or other values of a binned variable have their own states; among numbers
        they are missing.
    """
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
    """Order the columns of records as in the schemas, and replace names of bins by numbers.

    Parameters
    ----------
    records : DataFrame
        Every column holds states.
    schemas : iterable of Schema
        The schemas with the bins of some variables; the first counts if several have a variable. Columns without a
        schema come last.
    numbers : {"states", "drawn", "midpoint"}
    within : WithinBins
    """
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
