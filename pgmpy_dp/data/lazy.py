"""Counting of records that stay where they are: lazy frames, databases and distributed frames.

Each count is a query for its engine; only the groups come back, and they become positions of states here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from pgmpy_dp._states import State
from pgmpy_dp.data.counting import (
    Counts,
    as_dtype,
    column_codes,
    is_binnable,
    is_number,
    margin,
    require_columns,
    require_no_missing,
    require_no_undeclared,
)
from pgmpy_dp.data.units import WEIGHT, Unit, require_ids, sampled_frame, weighted_frame
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.schema import Clique, Schema

# Cliques are counted in one scan as long as their joint table is no larger than this, in cells: larger tables of
# groups leave the cache and cost engines more than another scan (tests/benchmarks/sources.py).
_SHARED_CELLS = 2**14

# Kinds of values.
_DECLARED, _MISSING, _OUTSIDE = 0, 1, 2


@dataclass(frozen=True)
class LazyRecords:
    """Records behind a lazy frame, read anew for each count.

    Attributes
    ----------
    frame : narwhals.LazyFrame
    schema : Schema
    dtypes : mapping of str to narwhals dtype
    size : int
        Number of records, or of units, when they were checked.
    weighted : bool
        Whether the frame has a column of weights to add up.
    """

    frame: nw.LazyFrame[Any]
    schema: Schema
    dtypes: dict[str, Any]
    size: int
    weighted: bool = False

    @classmethod
    def open(
        cls, frame: nw.LazyFrame[Any], schema: Schema, variables: Iterable[str], unit: Unit | None = None
    ) -> LazyRecords:
        """Check all values in one scan, which returns two answers a variable and the number of records or units.

        Raises
        ------
        SchemaError
            As :func:`~pgmpy_dp.data.counting.encode`.
        """
        asked = list(variables)
        found = frame.collect_schema()
        needed = list(dict.fromkeys([*asked, *([unit.column] if unit else [])]))
        require_columns(found.names(), needed)
        if frame.implementation.is_duckdb():
            frame = _letter_by_letter(frame, needed)
            found = frame.collect_schema()
        dtypes = {variable: found[variable] for variable in asked}
        for variable, dtype in dtypes.items():
            if isinstance(dtype, nw.Object):
                raise SchemaError(
                    f"Variable {variable!r} has a column of Python objects, which no engine compares by kind: "
                    "convert it to text, numbers or booleans."
                )
        checks = {"rows": nw.len()}
        for i, (variable, dtype) in enumerate(dtypes.items()):
            missing = _is_missing(variable, dtype)
            checks[f"missing{i}"] = missing.any()
            checks[f"outside{i}"] = (~missing & ~_is_held(variable, dtype, schema)).any()
        if unit is not None:
            checks["rows"] = nw.col(unit.column).n_unique()
            checks["nobody"] = _is_missing(unit.column, found[unit.column]).any()
        row = _collected(frame.select(**checks)).rows(named=True)[0]
        for i, variable in enumerate(asked):
            if row[f"missing{i}"]:
                require_no_missing(schema, variable)
            if row[f"outside{i}"]:
                require_no_undeclared(schema, variable)
        size = int(row["rows"] or 0)  # some engines find no number of different units in no rows
        if unit is None:
            return cls(frame, schema, dtypes, size)
        require_ids(bool(row["nobody"]), unit)
        frame = frame.select(needed)
        if unit.max_rows is None:
            return cls(weighted_frame(frame, unit), schema, dtypes, size, weighted=True)
        return cls(sampled_frame(frame, unit), schema, dtypes, size)

    def counts(self, cliques: Sequence[Clique]) -> dict[Clique, Counts]:
        """Count the records in each cell of the cliques, in as few scans as their sizes allow."""
        tables: dict[Clique, Counts] = {}
        scans = shared_scans(self.schema, cliques)
        for scope, members in tqdm(scans, desc="Counting", unit="scan", delay=1, leave=False, disable=None):
            table = self._table(scope)
            tables |= {clique: margin(table, scope, clique) for clique in members}
        return {clique: tables[clique] for clique in cliques}

    def _table(self, scope: Clique) -> Counts:
        # Own names for the keys: a column may be called anything.
        keys: dict[str, nw.Expr] = {}
        for i, variable in enumerate(scope):
            keys[f"key{i}"] = _key(variable, self.dtypes[variable], self.schema)
            if _has_kinds(variable, self.schema):
                keys[f"kind{i}"] = _kind(variable, self.dtypes[variable], self.schema)
        rows = nw.col("weight").sum() if self.weighted else nw.len()
        weight = {"weight": nw.col(WEIGHT)} if self.weighted else {}
        grouped = _collected(self.frame.select(**keys, **weight).group_by(list(keys)).agg(rows.alias("rows")))
        codes = [_key_codes(grouped, i, self.schema, variable) for i, variable in enumerate(scope)]
        table = np.zeros(self.schema.shape(scope), dtype=np.int64)
        # One cell may have several groups: null and NaN, values in one bin.
        # Some engines return sums as decimals.
        np.add.at(table, tuple(codes), np.array([int(number) for number in grouped["rows"].to_list()], dtype=np.int64))
        return table


def shared_scans(schema: Schema, cliques: Sequence[Clique]) -> list[tuple[Clique, list[Clique]]]:
    """Put cliques together whose joint table is small, so that one scan counts them all.

    First fit, larger cliques first.

    Returns
    -------
    list of (clique, list of cliques)
        The joint clique of each scan, and the cliques that are its margins.

    Examples
    --------
    >>> schema = Schema({v: [0, 1] for v in "abc"})
    >>> shared_scans(schema, [("a", "b"), ("b", "c"), ("c",)])
    [(('a', 'b', 'c'), [('a', 'b'), ('b', 'c'), ('c',)])]
    """
    scans: list[tuple[Clique, list[Clique]]] = []
    for clique in sorted(cliques, key=schema.cells, reverse=True):
        for i, (scope, members) in enumerate(scans):
            joint = (*scope, *(variable for variable in clique if variable not in scope))
            if len(joint) == len(scope) or schema.cells(joint) <= _SHARED_CELLS:
                scans[i] = (joint, [*members, clique])
                break
        else:
            scans.append((clique, [clique]))
    return scans


def _collected(frame: nw.LazyFrame[Any]) -> nw.DataFrame[Any]:
    try:
        # Polars holds whole columns in memory unless asked to stream.
        return frame.collect(engine="streaming") if frame.implementation.is_polars() else frame.collect()
    except (MemoryError, OSError, ImportError):
        raise
    except Exception as error:
        problem = type(error).__name__
    # Here and not above, so that the other error, which may quote values of records, does not hang on this one.
    raise SchemaError(
        f"The engine of the lazy frame failed ({problem}). Its message is kept back, since it may show values of "
        "records: collect the frame to see it."
    )


def _is_missing(variable: str, dtype: Any) -> nw.Expr:
    column = nw.col(variable)
    return column.is_null() | column.is_nan() if dtype.is_float() else column.is_null()


def _is_held(variable: str, dtype: Any, schema: Schema) -> nw.Expr:
    """Whether a value that is not missing is a declared one, in value and in kind."""
    if variable in schema.bins:
        edges = schema.bins[variable].edges
        if not is_binnable(dtype):
            return nw.lit(False)
        value = nw.col(variable).cast(nw.Float64)
        return (value >= edges[0]) & (value <= edges[-1])
    held = _held_states(dtype, schema.states[variable])
    if not held:
        return nw.lit(False)
    if (
        dtype.is_integer() and max(held) - min(held) == len(held) - 1
    ):  # no gaps: engines compare faster than they search
        return nw.col(variable).is_between(min(held), max(held))
    value = nw.col(variable).cast(nw.Float64) if dtype.is_float() else _comparable(variable, dtype)
    return value.is_in(held)


def _held_states(dtype: Any, states: tuple[State, ...]) -> list[Any]:
    """The states that a column of this type can hold."""
    if is_number(dtype):
        numbers = (as_dtype(state, np.dtype(str(dtype).lower())) for state in states)
        return [number.item() for number in numbers if number is not None]
    if isinstance(dtype, nw.Boolean):
        return [state for state in states if isinstance(state, bool)]
    if isinstance(dtype, (nw.String, nw.Categorical, nw.Enum)):
        return [state for state in states if isinstance(state, str)]
    return []


def _letter_by_letter(frame: nw.LazyFrame[Any], columns: Sequence[str]) -> nw.LazyFrame[Any]:
    """Columns of DuckDB, with texts that are equal only letter by letter: they may have a collation of their own."""
    native: Any = frame.to_native()
    found = frame.collect_schema()
    parts = []
    for name in columns:
        quoted = '"' + name.replace('"', '""') + '"'
        text = isinstance(found[name], (nw.String, nw.Categorical, nw.Enum))
        parts.append(f"CAST({quoted} AS VARCHAR) COLLATE C AS {quoted}" if text else quoted)
    exact: nw.LazyFrame[Any] = nw.from_native(native.project(", ".join(parts)))
    return exact


def _comparable(variable: str, dtype: Any) -> nw.Expr:
    column = nw.col(variable)
    return column.cast(nw.String) if isinstance(dtype, (nw.Categorical, nw.Enum)) else column


def _has_kinds(variable: str, schema: Schema) -> bool:
    """Whether values are grouped by their kind first: those in bins, and those that need not be declared."""
    return variable in schema.bins or variable in schema.other


def _kind(variable: str, dtype: Any, schema: Schema) -> nw.Expr:
    held = nw.when(_is_held(variable, dtype, schema)).then(nw.lit(_DECLARED)).otherwise(nw.lit(_OUTSIDE))
    return nw.when(_is_missing(variable, dtype)).then(nw.lit(_MISSING)).otherwise(held)


def _key(variable: str, dtype: Any, schema: Schema) -> nw.Expr:
    """What a variable is grouped by: its declared values, or the positions of its bins. There are few of either."""
    if variable in schema.bins:
        position = nw.lit(0)
        if is_binnable(dtype):
            for edge in schema.bins[variable].edges[1:-1]:
                position = position + (nw.col(variable).cast(nw.Float64) >= edge).cast(nw.Int64)
        return nw.when(_kind(variable, dtype, schema) == _DECLARED).then(position).otherwise(nw.lit(0))
    value = _comparable(variable, dtype)
    if variable not in schema.other:
        return value
    # Nulls in place of the others would make floats of integers where pandas is the engine.
    held = _held_states(dtype, schema.states[variable])
    if not held:
        return nw.lit(0)
    stand_in = nw.lit(held[0], dtype) if is_number(dtype) else nw.lit(held[0])
    return nw.when(_kind(variable, dtype, schema) == _DECLARED).then(value).otherwise(stand_in)


def _key_codes(grouped: nw.DataFrame[Any], place: int, schema: Schema, variable: str) -> NDArray[np.intp]:
    keys = grouped[f"key{place}"]
    if not _has_kinds(variable, schema):
        return column_codes(keys, schema, variable).astype(np.intp)
    kinds = grouped[f"kind{place}"].to_numpy()
    codes = np.zeros(kinds.shape, dtype=np.intp)
    declared = kinds == _DECLARED
    if variable in schema.bins:
        codes[declared] = keys.to_numpy()[declared]
    else:
        codes[declared] = column_codes(keys.filter(declared.tolist()), schema, variable)
    if (kinds == _MISSING).any():
        codes[kinds == _MISSING] = require_no_missing(schema, variable)
    if (kinds == _OUTSIDE).any():
        codes[kinds == _OUTSIDE] = require_no_undeclared(schema, variable)
    return codes
