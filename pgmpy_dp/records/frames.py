"""Encoding of frames in memory (pandas, Polars and PyArrow), column by column, by the columns' places.

Cells become positions of states; numeric columns with public bounds become integers on a public grid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.records.cells import Reader
from pgmpy_dp.records.columns import (
    Codes,
    Positions,
    Values,
    column_readers,
    decoded,
    is_number,
    listed_cells,
    objects,
    positions,
    read_columns,
    times_of,
    variable_codes,
)
from pgmpy_dp.records.memory import declared_codes
from pgmpy_dp.records.refusals import require_columns, sealed
from pgmpy_dp.records.units import no_ids
from pgmpy_dp.schema import Schema
from pgmpy_dp.schema.states import alike

STEPS = 2**16
"""Grid steps from the middle of a variable's bounds to either bound."""

Integers = NDArray[np.int32]


def encode(frame: Any, schema: Schema, variables: Iterable[str]) -> dict[str, Codes]:
    """Replace the values of the records by the positions of their states."""
    return encode_with_values(frame, schema, variables)[0]


def encode_with_values(
    frame: Any, schema: Schema, variables: Iterable[str]
) -> tuple[dict[str, Codes], dict[str, Values]]:
    """Encode a frame, and return the values of variables without public states as well."""
    asked = list(variables)
    columns = read_columns(schema, asked)
    indices = dict(zip(columns, require_columns(column_names(frame), columns), strict=True))
    readers = column_readers(schema, columns)
    read = {v: _positions(frame, index, readers[v], v) for v, index in indices.items()}
    values = {v: Values.of(v, read[v], reader) for v, reader in readers.items() if reader.numbers is not None}
    return variable_codes(declared_codes(read, readers, schema), schema, asked), values


def labelled(records: Any, schema: Schema) -> Schema:
    """Read binned variables by the labels of their bins if a frame holds categories, as synthetic records do."""
    kinds = dict(records.dtypes) if isinstance(records, pd.DataFrame) else {}
    labels = {v: alike(states) for v, states in schema.states.items() if isinstance(kinds.get(v), pd.CategoricalDtype)}
    stand_ins = [
        {v: labels[v][schema.states[v].index(state)] if v in labels else state for v, state in role.items()}
        for role in (schema.missing, schema.other)
    ]
    declared = {"variables": {**schema.declared, **labels}, "missing": stand_ins[0], "other": stand_ins[1]}
    return schema.replace(**declared, bounds={}, rules=())


def _positions(frame: Any, index: int, reader: Reader, variable: str) -> Positions:
    return sealed(lambda: positions(column_at(frame, index), reader), f"variable {variable!r}")


def is_frame(records: Any) -> bool:
    """Whether records are a frame in memory: of pandas, Polars or PyArrow."""
    known = nw.dependencies
    return any(of(records) for of in (known.is_pandas_dataframe, known.is_polars_dataframe, known.is_pyarrow_table))


def column_names(frame: Any) -> list[Any]:
    """Return the names of the columns of a frame in memory; TypeError for other objects."""
    if nw.dependencies.is_pandas_dataframe(frame) and frame.columns.nlevels > 1:
        raise SchemaError(
            f"The columns have names of {frame.columns.nlevels} levels: flatten them, so that each has one name."
        )
    if is_frame(frame):
        return list(frame.column_names if nw.dependencies.is_pyarrow_table(frame) else frame.columns)
    raise TypeError(
        "Records must be a frame (pandas, Polars, PyArrow, DuckDB, Dask, Spark), an array of codes, the path of a "
        f".parquet or .csv file, or ready-made counts, got {type(frame).__name__}."
    )


def column_at(frame: Any, place: int) -> Any:
    """Return the column at a place: some libraries give names a special meaning."""
    if nw.dependencies.is_pandas_dataframe(frame):
        return frame.iloc[:, place]
    if nw.dependencies.is_pyarrow_table(frame):
        return frame.column(place)
    return frame.to_series(place).alias("c")  # some of its methods look up its name


def id_column(frame: Any, name: str) -> Any:
    """Return a column of ids with unchanged values: missing ones are None or NaN, integers stay integers."""
    (position,) = require_columns(column_names(frame), [name], "Unit")
    return sealed(lambda: _ids(column_at(frame, position), name), f"the column {name!r} of units")


def _ids(given: Any, name: str) -> Any:
    column = decoded(given)
    native: Any = column.to_native()
    if nw.dependencies.is_pandas_series(native):
        return native
    dtype = column.dtype
    if isinstance(dtype, nw.Time):  # the integers that they are, since Python's times resolve only microseconds
        polars = column.implementation.is_polars()
        column = column.cast(nw.Int64) if polars else decoded(native.cast(f"int{native.type.bit_width}"))
        dtype = column.dtype
    if (times := times_of(column)) is not None:
        return times[0] if times[1] is None else pd.Series(times[0]).dt.tz_localize("UTC")
    # Other columns avoid numpy: its texts lose trailing zero bytes, and integers with missing values become floats.
    if isinstance(dtype, nw.Duration) or (is_number(dtype) and not column.is_null().any()):
        return column.to_numpy()
    if dtype.is_nested() or (column.implementation.is_pyarrow() and native.type.num_fields):  # unknown to narwhals
        raise no_ids(name)
    return objects(listed_cells(column))


MAX_RECORDS = 2**31


def encode_numbers(frame: Any, schema: Schema) -> dict[str, Integers]:
    """Scale variables with bounds to integers from -STEPS to STEPS, rounded and clipped: (x - middle) / half width."""
    if not schema.bounds:
        return {}
    if not is_frame(frame):
        raise SchemaError(
            f"Numbers with bounds are read from a frame in memory (pandas, Polars, PyArrow), got "
            f"{type(frame).__name__}: read or collect it first."
        )
    indices = dict(zip(schema.bounds, require_columns(column_names(frame), schema.bounds), strict=True))
    if frame.shape[0] > MAX_RECORDS:
        raise SchemaError("Numbers with bounds are read for at most 2**31 records.")
    return sealed(
        lambda: {v: _steps(column_at(frame, indices[v]), v, ends) for v, ends in schema.bounds.items()},
        "the numbers with bounds",
    )


def _steps(native: Any, variable: str, ends: tuple[float, float]) -> Integers:
    column = nw.from_native(native, series_only=True)
    if not is_number(column.dtype):
        raise SchemaError(f"Variable {variable!r} has bounds, but its column is not numeric: convert it.")
    values = np.zeros(0) if column.is_null().any() else column.to_numpy().astype(np.float64)
    if values.size != len(column) or not np.isfinite(values).all():
        raise SchemaError(
            f"Variable {variable!r} has missing or infinite values in the records: fill or drop them first."
        )
    low, high = ends
    shares = (np.clip(values, low, high) - (low + (high - low) / 2)) / ((high - low) / 2)
    return np.clip(np.rint(shares * STEPS), -STEPS, STEPS).astype(np.int32)


def moments(numbers: Mapping[str, Integers], node: str, parents: tuple[str, ...]) -> tuple[list[list[int]], list[int]]:
    """Sum x x' and y x over records, where x = (STEPS, parents) and y is the node: exact integers."""
    block = 2**20  # products are at most 2**32: sums over a block are below 2**53, where floats are exact in any order
    size = len(parents) + 1
    squares: NDArray[Any] = np.zeros((size, size), dtype=object)
    products: NDArray[Any] = np.zeros(size, dtype=object)
    for start in range(0, numbers[node].size, block):
        rows = slice(start, start + block)
        y = numbers[node][rows].astype(np.float64)
        x = np.stack([np.full(y.size, float(STEPS)), *(numbers[v][rows].astype(np.float64) for v in parents)], axis=1)
        squares += (x.T @ x).astype(np.int64).astype(object)
        products += (x.T @ y).astype(np.int64).astype(object)
    return squares.tolist(), products.tolist()
