"""Numeric columns within public bounds, as integers on a public grid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.records.columns import is_number
from pgmpy_dp.records.frames import column_at, column_names
from pgmpy_dp.records.refusals import require_columns, sealed
from pgmpy_dp.schema import Schema

STEPS = 2**16
"""Grid steps from the middle of a variable's bounds to either of them."""

Integers = NDArray[np.int32]

MOST_RECORDS = 2**31


def encode_numbers(frame: Any, schema: Schema) -> dict[str, Integers]:
    """Numbers from -STEPS to STEPS for the variables with bounds: (x - middle) / half width, rounded to the grid.

    Values beyond a bound are moved to it, silently.

    Parameters
    ----------
    frame : pandas.DataFrame, polars.DataFrame or pyarrow.Table
    schema : Schema

    Returns
    -------
    dict of str to ndarray of int32, shape (n_records,)
        Empty where no variable has bounds.

    Raises
    ------
    SchemaError
        If a variable has no column, or two, or one that is not numeric or holds missing values, NaN or infinity; or if
        the records are no frame in memory. The message names the variable and says nothing else about the records.

    Examples
    --------
    >>> import pandas
    >>> encode_numbers(pandas.DataFrame({"x": [0.0, 5.0, 99.0]}), Schema(bounds={"x": (0, 10)}))["x"].tolist()
    [-65536, 0, 65536]
    """
    if not schema.bounds:
        return {}
    try:
        names = column_names(frame)
    except TypeError:
        raise SchemaError(
            f"Numbers with bounds are read from a frame in memory (pandas, Polars, PyArrow), got "
            f"{type(frame).__name__}: read or collect it first."
        ) from None
    places = dict(zip(schema.bounds, require_columns(names, schema.bounds), strict=True))
    if frame.shape[0] > MOST_RECORDS:
        raise SchemaError("Numbers with bounds are read for at most 2**31 records.")
    return sealed(
        lambda: {v: _steps(column_at(frame, places[v]), v, ends) for v, ends in schema.bounds.items()},
        "the numbers with bounds",
    )


def _steps(native: Any, variable: str, ends: tuple[float, float]) -> Integers:
    column = nw.from_native(native, series_only=True)
    if not is_number(column.dtype):
        raise SchemaError(f"Variable {variable!r} has bounds, but its column is not numeric: convert it.")
    values = np.zeros(0) if column.is_null().any() else column.to_numpy().astype(np.float64)
    if values.size != len(column) or not np.isfinite(values).all():
        raise SchemaError(
            f"Variable {variable!r} has missing or infinite values in the records: fill or drop them before."
        )
    low, high = ends
    shares = (np.clip(values, low, high) - (low + (high - low) / 2)) / ((high - low) / 2)
    return np.clip(np.rint(shares * STEPS), -STEPS, STEPS).astype(np.int32)


def moments(numbers: Mapping[str, Integers], node: str, parents: tuple[str, ...]) -> tuple[list[list[int]], list[int]]:
    """Sums over records of x x' and y x, where x = (STEPS, parents) and y is the node: exact integers."""
    block = 2**20  # products are at most 2**32: sums of a block are whole numbers below 2**53, exact in any order
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
