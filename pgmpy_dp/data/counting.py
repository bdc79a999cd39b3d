"""Encoding of records by the schema, and counting of cliques.

Errors name the variable and nothing else about the records: no value, no number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pgmpy_dp._states import plain
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.schema import Bins, Clique, Schema

MAX_CELLS = 2**26
"""Largest table counted, in cells: half a gigabyte of 64-bit counts."""

Codes = NDArray[np.unsignedinteger[Any]]
Counts = NDArray[np.int64]

_BLOCK = 2**16
_OUTSIDE = -1


def encode(frame: Any, schema: Schema, variables: Iterable[str]) -> dict[str, Codes]:
    """Replace the values of the records by the positions of their states.

    Values must agree with states in value and in kind: ``"1"`` is not ``1``, ``True`` is not ``1``. Numbers
    agree by value, so ``1.0`` in a float column is the state ``1``. A binned variable takes a numeric column.

    Parameters
    ----------
    frame : pandas.DataFrame, polars.DataFrame or pyarrow.Table
        One row a record. Columns that are not asked for are ignored.
    schema : Schema
    variables : iterable of str
        Variables of the schema.

    Returns
    -------
    dict of str to ndarray, shape (n_records,)
        Unsigned integers of the smallest sufficient size, in the order of `variables`.

    Raises
    ------
    TypeError
        If the frame is of another kind.
    SchemaError
        If a variable has no column, or two, or holds missing values without a state for them, or values that
        are not among its states.

    Examples
    --------
    >>> import pandas
    >>> schema = Schema({"smoke": ["yes", "no"]})
    >>> encode(pandas.DataFrame({"smoke": ["no", "yes"]}), schema, ["smoke"])["smoke"].tolist()
    [1, 0]
    """
    asked = list(variables)
    require_columns(_column_names(frame), asked)
    # Column by column: selecting several from a pandas frame would copy them all at once.
    columns = None if _is_pandas(frame) else nw.from_native(frame, eager_only=True)
    codes = {}
    for variable in asked:
        column = nw.from_native(frame[variable], series_only=True) if columns is None else columns[variable]
        codes[variable] = column_codes(column, schema, variable)
    return codes


def count(
    codes: Mapping[str, Codes], schema: Schema, clique: Clique, weights: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Count the records in each cell of a clique, or add their weights.

    Parameters
    ----------
    codes : mapping of str to ndarray, shape (n_records,)
        From :func:`encode`.
    schema : Schema
    clique : tuple of str
    weights : ndarray of int64, shape (n_records,), optional
        At most 2**20 each.

    Returns
    -------
    ndarray of int64
        Axes in clique order, states in schema order.

    Raises
    ------
    SchemaError
        If the clique does not fit the schema or has more than `MAX_CELLS` cells.
    """
    require_countable(schema, clique)
    shape = schema.shape(clique)
    cells = schema.cells(clique)
    columns = [codes[variable] for variable in clique]
    rows = columns[0].shape[0]
    # Blocks keep the cell numbers in cache; a block shorter than the table would make bincount's zeros the
    # main work.
    block = max(_BLOCK, cells)
    table = np.zeros(cells, dtype=np.int64)
    for start in range(0, rows, block):
        cell = columns[0][start : start + block].astype(np.intp)
        for column, states in zip(columns[1:], shape[1:], strict=True):
            cell *= states
            cell += column[start : start + block]
        if weights is None:
            table += np.bincount(cell, minlength=cells)
        else:  # adds floats, here whole numbers below 2**53
            table += np.bincount(cell, weights[start : start + block], minlength=cells).astype(np.int64)
    return table.reshape(shape)


def distinct(codes: Mapping[str, Codes], variables: Iterable[str]) -> tuple[Codes, NDArray[np.int64]]:
    """The distinct records in some variables, and which of them each record is.

    Parameters
    ----------
    codes : mapping of str to ndarray, shape (n_records,)
        From :func:`encode`.
    variables : iterable of str

    Returns
    -------
    rows : ndarray, shape (n_distinct, n_variables)
    groups : ndarray of int64, shape (n_records,)
    """
    # A record as one number, which sorts some ten times faster than a row.
    columns = [codes[variable] for variable in variables]
    groups, numbers = np.zeros(columns[0].size, dtype=np.int64), 1
    for column in columns:
        states = int(column.max(initial=0)) + 1
        if numbers * states > 2**62:
            found, groups = np.unique(groups, return_inverse=True)
            numbers = found.size
        groups = groups * states + column
        numbers *= states
    _, first, groups = np.unique(groups, return_index=True, return_inverse=True)
    return np.stack([column[first] for column in columns], axis=1), groups.astype(np.int64)


def id_column(frame: Any, name: str) -> Any:
    """A column of ids, as pandas can tell them apart: missing ones are None or NaN, integers stay integers."""
    require_columns(_column_names(frame), [name])
    if _is_pandas(frame):
        ids = frame[name]
        if not isinstance(ids.dtype, pd.ArrowDtype):
            return ids.astype(object) if ids.dtype == np.longdouble else ids
        frame = nw.from_native(frame[[name]], eager_only=True).to_arrow()  # where dictionaries are decoded
    column = _decoded(nw.from_native(frame, eager_only=True)[name])
    if isinstance(column.dtype, nw.Time):  # Python's times end at microseconds
        column = column.cast(nw.Int64 if column.implementation.is_polars() else nw.String)
    # Where numpy has the type: its texts lose zeros at their end, and integers with missing ones become floats.
    exact = is_number(column.dtype) or isinstance(column.dtype, (nw.Datetime, nw.Duration, nw.Date))
    return column.to_numpy() if exact and not column.is_null().any() else objects(column.to_list())


def objects(values: Sequence[Any]) -> NDArray[np.object_]:
    """Values as an array of themselves: numpy and pandas would find one type for all."""
    array = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        array[place] = value
    return array


def require_countable(schema: Schema, clique: Clique) -> None:
    """Refuse a clique whose table has more than `MAX_CELLS` cells."""
    cells = schema.cells(clique)
    if cells > MAX_CELLS:
        raise SchemaError(
            f"The table of clique {clique} has {cells} cells, more than the {MAX_CELLS} that are counted: "
            "measure smaller cliques or declare fewer states."
        )


def require_columns(names: list[Any], variables: Iterable[str]) -> None:
    """Refuse records without exactly one column for each variable."""
    for variable in variables:
        if names.count(variable) != 1:
            problem = "has no column in" if variable not in names else "is the name of more than one column of"
            raise SchemaError(
                f"Variable {variable!r} {problem} the records: they need exactly one for each variable. Names are "
                "compared letter by letter, and in a .csv file commas part the columns."
            )


def require_no_missing(schema: Schema, variable: str) -> int:
    """Position of the state that stands for missing values; without one, refuse them."""
    if variable not in schema.missing:
        raise SchemaError(
            f"Variable {variable!r} has missing values in the records. Either declare a state that stands "
            f"for them, Schema(..., missing={{{variable!r}: 'unknown'}}), at the command line --missing "
            f"{variable}=unknown, or fill or drop them before. In a .csv file a blank line is a record without values."
        )
    return _state_lookup(schema.states[variable])[_key(schema.missing[variable])]


def require_no_undeclared(schema: Schema, variable: str) -> int:
    """Position of the state that stands for undeclared values; without one, refuse them."""
    if variable not in schema.other:
        if variable in schema.bins:
            edges = schema.bins[variable].edges
            raise SchemaError(
                f"Variable {variable!r} has values in the records that are not among its declared states. Its bins "
                f"hold numbers from {edges[0]:g} to {edges[-1]:g}: widen the edges (inf is one), correct the records, "
                f"or declare a state that stands for them, Schema(..., other={{{variable!r}: 'other'}}), at the "
                f"command line --other {variable}=other."
            )
        raise SchemaError(
            f"Variable {variable!r} has values in the records that are not among its declared states. Values "
            "must agree in kind as well ('1' is not 1, True is not 1): "
            "correct the records or the declaration, or declare a state that stands for them, "
            f"Schema(..., other={{{variable!r}: 'other'}}), at the command line --other {variable}=other."
        )
    return _state_lookup(schema.states[variable])[_key(schema.other[variable])]


def margin(table: Counts, scope: Clique, clique: Clique) -> Counts:
    """Sum a table over the variables that are not in the clique.

    Parameters
    ----------
    table : ndarray of int64, axes in the order of `scope`
    scope : tuple of str
    clique : tuple of str
        Variables of `scope`, in any order.

    Returns
    -------
    ndarray of int64, axes in clique order
    """
    summed = table.sum(axis=tuple(axis for axis, variable in enumerate(scope) if variable not in clique))
    kept = [variable for variable in scope if variable in clique]
    return np.ascontiguousarray(summed.transpose([kept.index(variable) for variable in clique]))


def _is_pandas(frame: Any) -> bool:
    return nw.dependencies.is_pandas_dataframe(frame)


def _column_names(frame: Any) -> list[Any]:
    if _is_pandas(frame):
        return list(frame.columns)
    if nw.dependencies.is_pyarrow_table(frame):
        return list(frame.column_names)
    try:
        return list(nw.from_native(frame, eager_only=True).columns)
    except TypeError:
        raise TypeError(
            "Records must be a frame (pandas, Polars, PyArrow, DuckDB, Dask, Spark), an array of codes, the path of a "
            f".parquet or .csv file, or ready-made counts, got {type(frame).__name__}."
        ) from None


def column_codes(column: nw.Series[Any], schema: Schema, variable: str) -> Codes:
    """Positions of the states of one column's values; errors as :func:`encode`."""
    states = schema.states[variable]
    column = _decoded(column)
    missing = column.is_null().to_numpy().astype(bool)
    if column.dtype.is_float():
        missing |= np.isnan(_numbers(column, missing).astype(np.float64))
    stand_in = require_no_missing(schema, variable) if missing.any() else _OUTSIDE
    bins = schema.bins.get(variable)
    codes = _state_codes(column, missing, states) if bins is None else _bin_codes(column, missing, bins)
    codes[missing] = stand_in
    outside = codes == _OUTSIDE
    if outside.any():
        codes[outside] = require_no_undeclared(schema, variable)
    return codes.astype(np.min_scalar_type(len(states) - 1))


def _decoded(column: nw.Series[Any]) -> nw.Series[Any]:
    """The values of an Arrow dictionary, which may hold nulls and NaN that its index does not show."""
    native: Any = column.to_native()
    if nw.dependencies.is_pyarrow_chunked_array(native) and isinstance(column.dtype, nw.Categorical):
        return nw.from_native(native.cast(native.type.value_type), series_only=True)
    return column


def is_number(dtype: Any) -> bool:
    """Whether a column of this type holds integers or floats that numpy has; it has no 128-bit integers."""
    return bool(dtype.is_float() or (dtype.is_integer() and not isinstance(dtype, (nw.Int128, nw.UInt128))))


def is_binnable(dtype: Any) -> bool:
    """Whether a column of this type holds numbers that bins take."""
    return is_number(dtype) or isinstance(dtype, (nw.Int128, nw.UInt128, nw.Decimal))


def _state_codes(column: nw.Series[Any], missing: NDArray[np.bool_], states: tuple[Any, ...]) -> NDArray[np.int64]:
    """Position of each value among the states; `_OUTSIDE` where it is none of them or missing."""
    if is_number(column.dtype):
        return _number_codes(_numbers(column, missing), missing, states)
    native = column.to_native()
    if nw.dependencies.is_pandas_series(native) and hasattr(native.dtype, "categories"):
        lookup = _state_lookup(states)
        by_category = [lookup.get(_key(value), _OUTSIDE) for value in native.cat.categories.tolist()]
        positions = np.array([*by_category, _OUTSIDE], dtype=np.int64)  # the last one for code -1, missing
        by_row: NDArray[np.int64] = positions[native.cat.codes.to_numpy()]
        return by_row
    return _object_codes(column.to_list(), missing, states)


def _numbers(column: nw.Series[Any], missing: NDArray[np.bool_]) -> NDArray[Any]:
    """A numeric column as numpy numbers of its own kind, zero where missing."""
    filled = column.fill_null(0) if missing.any() else column
    values = filled.to_numpy()
    if values.dtype == object:  # nullable columns of some frames
        values = values.astype(np.float64 if column.dtype.is_float() else np.int64)
    if values.dtype.kind == "f" and missing.any():
        values = np.where(missing, 0.0, values)
    return np.asarray(values)


def _number_codes(values: NDArray[Any], missing: NDArray[np.bool_], states: tuple[Any, ...]) -> NDArray[np.int64]:
    numbers = [(as_dtype(state, values.dtype), position) for position, state in enumerate(states)]
    held = sorted((number, position) for number, position in numbers if number is not None)
    codes = np.full(values.shape, _OUTSIDE, dtype=np.int64)
    if held:
        known = np.array([number for number, _ in held], dtype=values.dtype)
        nearest = np.minimum(np.searchsorted(known, values), len(known) - 1)
        found = (known[nearest] == values) & ~missing
        codes[found] = np.array([position for _, position in held])[nearest[found]]
    return codes


def as_dtype(state: Any, dtype: np.dtype[Any]) -> Any:
    """The state as a number of the column's type, or None if that type does not hold it exactly."""
    if isinstance(state, bool) or not isinstance(state, (int, float)):
        return None
    if dtype.kind == "f":
        try:
            with np.errstate(over="ignore"):  # becomes infinite
                number = dtype.type(state)
        except OverflowError:
            return None
        return number if float(number) == state else None
    if state != int(state) or not np.iinfo(dtype).min <= state <= np.iinfo(dtype).max:
        return None
    return dtype.type(int(state))


def _object_codes(values: list[Any], missing: NDArray[np.bool_], states: tuple[Any, ...]) -> NDArray[np.int64]:
    if all(isinstance(state, str) for state in states):
        texts = {state: position for position, state in enumerate(states)}
        codes = (texts.get(value, _OUTSIDE) if isinstance(value, str) else _OUTSIDE for value in values)
        return np.fromiter(codes, dtype=np.int64, count=len(values))
    lookup = _state_lookup(states)
    found = (
        _OUTSIDE if absent else lookup.get(_key(value), _OUTSIDE) for value, absent in zip(values, missing, strict=True)
    )
    return np.fromiter(found, dtype=np.int64, count=len(values))


def _state_lookup(states: tuple[Any, ...]) -> dict[tuple[type, Any], int]:
    return {_key(state): position for position, state in enumerate(states)}


def _key(value: Any) -> tuple[type, Any]:
    """A value with its kind, since Python takes True and 1 for the same key.

    Integers, floats and complex numbers are one kind: a frame may have changed all numbers of a column for the sake of
    one record.
    """
    value = plain(value)
    if isinstance(value, complex) and value.imag == 0.0:
        value = value.real
    for kind, types in ((bool, bool), (float, (int, float)), (str, str)):
        if isinstance(value, types):
            return kind, value
    return type(None), None  # of a kind that no state has


def _bin_codes(column: nw.Series[Any], missing: NDArray[np.bool_], bins: Bins) -> NDArray[np.int64]:
    if is_number(column.dtype):
        values = _numbers(column, missing)
    else:
        # One by one: what a record says must not decide where others are counted.
        values = np.array([_as_float(value) for value in column.to_list()], dtype=np.float64)
    edges = np.array(bins.edges)
    codes = np.searchsorted(edges, values, side="right") - 1
    codes[values == edges[-1]] = len(edges) - 2
    codes[~(values <= edges[-1]) | missing] = _OUTSIDE  # NaN as well
    return codes.astype(np.int64, copy=False)


def _as_float(value: Any) -> float:
    """A number, or NaN for a value of another kind."""
    kind, number = _key(value)
    if kind is not float and not isinstance(value, Decimal):
        return math.nan
    try:
        return float(value if number is None else number)
    except OverflowError:  # an integer beyond all floats
        return math.inf if value > 0 else -math.inf
