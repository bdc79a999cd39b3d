"""Encoding of columns in memory, each cell independently.

A column has one type, which its writer chose. Each distinct value of a column of numbers, texts or days is read by
:class:`~pgmpy_dp.records.cells.Reader`, as cells of other columns are one by one; numbers in bins are found among the
edges. Columns of lists and other values that cannot be states are not converted: only whether a cell is empty counts.

No library converts values that Python may be unable to represent to Python objects, since one such value would prevent
all records from being read. So times are counted as what they are, integers of 64 bits, and each has a day, which is
that of the column's time zone: the zone's offset on the first or last day that Python supports is that of all times
before or after. The least integer is what numpy takes for an empty cell.

Undeclared values that could become states are counted by value, which does not depend on the order of the records:
neighbours' counts differ only in the values of the neighbour's own rows. Columns with more of them than a public bound
are refused.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Self

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow
from numpy.typing import NDArray

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.records.cells import MISSING, PER_DAY, UNDECLARED, Reader, as_float, key
from pgmpy_dp.schema import Schema, State
from pgmpy_dp.schema.date_bins import civil_day
from pgmpy_dp.schema.date_format import DAY
from pgmpy_dp.schema.variable import IN_DETAIL

Codes = NDArray[np.unsignedinteger[Any]]
Positions = NDArray[np.signedinteger[Any]]
ValueCounts = Mapping[State, int]

MAX_VALUES = 2**22
"""Most different values of a column that are counted, about a gigabyte of texts."""

_BLOCK = 2**20
_REMEMBERED = 2**16  # number of texts remembered of a column that has no type
_FARTHEST = 2**62  # seconds
_CALENDAR = civil_day(1, 1, 2) * DAY, civil_day(9999, 12, 30) * DAY  # Python supports these days in every zone
_TEXTS = (nw.String, nw.Categorical, nw.Enum)


def settled(places: Positions, reader: Reader) -> tuple[Codes, list[bool]]:
    """Insert the states that stand for missing and undeclared cells; return whether some of either have no state."""
    lacking = [False, False]
    if reader.numbers is not None:
        places = np.where(places < len(reader.states), places, UNDECLARED)
    if places.size and places.min() < 0:
        for role, mark in enumerate((MISSING, UNDECLARED)):
            marked, stand_in = places == mark, reader.stand_ins[role]
            lacking[role] = stand_in is None and bool(marked.any())
            places = np.where(marked, places.dtype.type(stand_in or 0), places)
    return places.astype(np.min_scalar_type(len(reader.states) - 1)), lacking


def read_columns(schema: Schema, variables: Iterable[str]) -> list[str]:
    """Name the columns to read for some variables: for the coarser variable of a hierarchy, that of the finer one."""
    derived, details = schema.structure.derived, schema.details
    own = (details[variable].variable if variable in details else variable for variable in variables)
    return list(dict.fromkeys(derived[variable][0] if variable in derived else variable for variable in own))


def column_reader(schema: Schema, variable: str, decimal: str = ".") -> Reader:
    """Make the reader of a variable's column, which finds the cells of a finer histogram if there is one."""
    reader, detail = Reader.of(schema, variable, decimal), schema.details.get(variable + IN_DETAIL)
    if detail is None:
        return reader
    cells = tuple(f"cell {number}" for number in range(detail.places.size))
    size, others = len(detail.bins.labels), detail.places[len(detail.bins.labels) :].tolist()
    stand_ins = [None if position is None else size + others.index(position) for position in reader.stand_ins]
    return replace(reader, states=cells, bins=detail.bins, stand_ins=(stand_ins[0], stand_ins[1]))


def column_readers(schema: Schema, variables: Iterable[str], decimal: str = ".") -> dict[str, Reader]:
    """Make the readers of columns in memory, which number the values of variables without public states."""
    readers = {variable: column_reader(schema, variable, decimal) for variable in variables}
    return {v: replace(r, numbers={}) if v in schema.undiscovered else r for v, r in readers.items()}


def variable_codes(codes: Mapping[str, Codes], schema: Schema, variables: Iterable[str]) -> dict[str, Codes]:
    """Derive each variable's codes from those of the columns that `column_reader` read, record by record."""
    finest = {v + IN_DETAIL if v + IN_DETAIL in schema.details else v: column for v, column in codes.items()}
    return with_derived(finest, schema, variables)


def with_derived(codes: Mapping[str, Codes], schema: Schema, variables: Iterable[str]) -> dict[str, Codes]:
    """Derive each variable's codes from its own or those of a finer variable, record by record."""
    derived = schema.structure.derived | {own.variable: (name, own.places) for name, own in schema.details.items()}
    results = {}
    for variable in variables:
        finest, places = variable, None
        while finest not in codes:
            finest, own = derived[finest]
            places = own if places is None else places[own]
        if places is None:
            results[variable] = codes[variable]
        else:
            results[variable] = places.astype(np.min_scalar_type(schema.cardinality(variable) - 1))[codes[finest]]
    return results


def positions(given: Any, reader: Reader) -> Positions:
    """Find the position of each cell, which may be MISSING or UNDECLARED."""
    column = decoded(given)
    if _is_pandas_category(native := column.to_native()):  # before narwhals looks at the categories for a type
        return _by_category(native, lambda categories: positions(categories, reader), MISSING)
    if (cells := _cells_of_no_array(column)) is not None:
        return _one_by_one(cells, reader)
    if isinstance(column.dtype, _TEXTS):
        return _text_positions(column, reader)
    empty = np.asarray(column.is_null().to_numpy(), dtype=bool)
    if is_number(column.dtype):
        values = _numbers(column, empty)
        states = reader.bins is None or reader.of_dates
        result = _each_distinct(values, reader, reader.position) if states else _binned(values, reader)
        empty = empty | np.isnan(values) if values.dtype.kind == "f" else empty
    elif isinstance(column.dtype, nw.Boolean):
        values = column.fill_null(False).to_numpy().astype(bool)
        result = np.where(values, reader.position(True), reader.position(False)).astype(smallest_type(reader))
    elif (times := times_of(column)) is not None:
        units = local_seconds(*times) // reader.unit
        # Seconds are nearly all distinct, so that reading each distinct one would save no time.
        result = _each_distinct(units, reader, reader.time_position) if reader.unit == DAY else _binned(units, reader)
        empty = empty | np.isnat(times[0])
    else:
        result = np.full(len(column), UNDECLARED, dtype=smallest_type(reader))
    result[empty] = MISSING
    return result


def is_number(dtype: Any) -> bool:
    """Whether a column has a type of integers or floats that numpy knows; it has no 128-bit integers."""
    return bool(dtype.is_float() or (dtype.is_integer() and not isinstance(dtype, (nw.Int128, nw.UInt128))))


def objects(values: Any) -> NDArray[np.object_]:
    """Make an array of the values unchanged: numpy and pandas would convert them to one type."""
    return np.fromiter(values, dtype=object, count=len(values))


def decoded(given: Any) -> nw.Series[Any]:
    """Return a column in memory with plain values: Arrow arrays are taken out of pandas, and dictionaries decoded.

    Dictionaries may hold nulls and NaN that the index does not show; whether pandas sees these depends on other cells.
    """
    dtype = given.dtype if nw.dependencies.is_pandas_series(given) else None
    if isinstance(dtype, pd.SparseDtype):
        given = given.sparse.to_dense()
    if isinstance(dtype, pd.ArrowDtype) or (isinstance(dtype, pd.StringDtype) and dtype.storage == "pyarrow"):
        given = pyarrow.chunked_array(pyarrow.array(given.array))
    if nw.dependencies.is_pyarrow_chunked_array(given):
        if pyarrow.types.is_dictionary(given.type):
            given = given.cast(given.type.value_type)
        if pyarrow.types.is_date64(given.type):  # milliseconds, which narwhals does not know
            given = given.cast(pyarrow.timestamp("ms"))
    column: nw.Series[Any] = nw.from_native(given, series_only=True)
    return column


def column_numbers(given: Any) -> NDArray[np.float64]:
    """Find the number in each cell, as `key` reads it; NaN where there is none, and infinity beyond floats."""
    column = decoded(given)
    if _is_pandas_category(native := column.to_native()):
        return _by_category(native, column_numbers, np.nan)
    if (cells := _cells_of_no_array(column)) is not None:
        keys = map(key, cells)
        each = (as_float(number) if kind in (float, Decimal) else np.nan for kind, number in keys)
        return np.fromiter(each, dtype=np.float64, count=len(cells))
    if not is_number(column.dtype):
        return np.full(len(column), np.nan)
    empty = column.is_null().to_numpy().astype(bool)
    numbers = _as_floats(_numbers(column, empty))
    numbers[empty] = np.nan
    return numbers


def _is_pandas_category(native: Any) -> bool:
    return nw.dependencies.is_pandas_series(native) and isinstance(native.dtype, pd.CategoricalDtype)


def _by_category(column: pd.Series[Any], read: Callable[[pd.Series[Any]], NDArray[Any]], empty: Any) -> NDArray[Any]:
    """Read each category once, and find the category of each cell."""
    by_category = read(pd.Series(column.cat.categories))
    # The last entry is for code -1, an empty cell.
    by_code = np.append(by_category, by_category.dtype.type(empty))
    return np.asarray(by_code[column.cat.codes.to_numpy()])


def _cells_of_no_array(column: nw.Series[Any]) -> list[Any] | None:
    """List the cells of a column that has no single type, or one that frames lack, to be read one by one."""
    native = column.to_native()
    if nw.dependencies.is_pandas_series(native) and isinstance(native.dtype, np.dtype):
        if native.dtype == object or isinstance(column.dtype, nw.Unknown):  # of objects narwhals would call methods
            return list(native.to_list())
    elif isinstance(column.dtype, (nw.Object, nw.Decimal, nw.Int128, nw.UInt128)):
        return column.to_list()
    return None


def listed_cells(column: nw.Series[Any]) -> list[Any]:
    """List the cells of a column of texts, numbers or the like; bytes of Arrow's texts may not be UTF-8."""
    native: Any = column.to_native()
    if not (isinstance(column.dtype, _TEXTS) and nw.dependencies.is_pyarrow_chunked_array(native)):
        return column.to_list()
    written = native.cast(pyarrow.large_binary()).to_pylist()
    return [None if cell is None else as_text(cell) for cell in written]


def _one_by_one(values: list[Any], reader: Reader) -> Positions:
    of_text = functools.lru_cache(_REMEMBERED)(reader.position)
    each = (of_text(value) if type(value) is str else reader.position(value) for value in values)
    return np.fromiter(each, dtype=smallest_type(reader), count=len(values))


def _numbers(column: nw.Series[Any], empty: NDArray[np.bool_]) -> NDArray[Any]:
    values = (column.fill_null(0) if empty.any() else column).to_numpy()
    if values.dtype == object:  # nullable columns of some frames
        values = values.astype(np.float64 if column.dtype.is_float() else np.int64)
    return values.astype(np.float32) if values.dtype == np.float16 else values


def times_of(column: nw.Series[Any]) -> tuple[NDArray[np.datetime64], Any] | None:
    """Return a column's dates or times, in UTC, and its time zone, if it has any; None for columns of other types."""
    native: Any = column.to_native()
    if nw.dependencies.is_pandas_series(native) and isinstance(native.dtype, pd.DatetimeTZDtype):
        return native.dt.tz_convert(None).to_numpy(), native.dtype.tz  # narwhals does not know all zones
    if not isinstance(column.dtype, (nw.Date, nw.Datetime)):
        return None
    return column.to_numpy(), getattr(column.dtype, "time_zone", None)


def local_seconds(times: NDArray[np.datetime64], zone: Any) -> NDArray[np.int64]:
    """Return the seconds since 1970-01-01, by the clocks of a time zone, of times in UTC.

    Integers too large for 64 bits of seconds become the largest, whose days no calendar has.
    """
    counts, per_day = times.view(np.int64), PER_DAY[np.datetime_data(times.dtype)[0]]
    if per_day < DAY:
        scale = DAY // per_day
        seconds = counts.clip(-_FARTHEST // scale, _FARTHEST // scale) * scale
    else:
        seconds = (counts // (per_day // DAY)).clip(-_FARTHEST, _FARTHEST)
    if zone is None:
        return np.asarray(seconds)
    known = seconds.clip(*_CALENDAR)
    local = pd.DatetimeIndex(known.view("datetime64[s]"), tz="UTC").tz_convert(zone).tz_localize(None)
    offsets = local.to_numpy().astype("datetime64[s]").view(np.int64) - known
    return np.asarray(seconds + offsets)


def smallest_type(reader: Reader) -> np.dtype[Any]:
    """Return the smallest type that holds the positions of a reader's states and the marks of cells without one."""
    return np.dtype(np.int32) if reader.numbers is not None else np.min_scalar_type(-len(reader.states) - 2)


def _each_distinct(values: NDArray[Any], reader: Reader, read: Callable[[Any], int]) -> Positions:
    """Read each distinct number of an array once."""
    positions = np.empty(values.shape, dtype=smallest_type(reader))
    for start in range(0, values.size, _BLOCK):
        codes, known = pd.factorize(values[start : start + _BLOCK])
        by_code = [*map(read, known.tolist()), MISSING]  # the last is for code -1, NaN
        positions[start : start + _BLOCK] = np.array(by_code, dtype=positions.dtype)[codes]
    return positions


def _as_floats(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return a copy as floats of 64 bits, without the warning that a signalling NaN would give."""
    with np.errstate(invalid="ignore"):
        return values.astype(np.float64)


def _binned(values: NDArray[Any], reader: Reader) -> Positions:
    assert reader.bins is not None
    edges, numbers = np.array(reader.bins.edges), _as_floats(values)
    result = (np.searchsorted(edges, numbers, side="right") - 1).astype(smallest_type(reader))
    result[numbers == edges[-1]] = edges.size - 2
    result[~(numbers <= edges[-1])] = UNDECLARED  # includes NaN
    return result


def _text_positions(column: nw.Series[Any], reader: Reader) -> Positions:
    native: Any = column.to_native()
    if nw.dependencies.is_pandas_series(native):  # hash tables of pandas do not compare all texts letter by letter
        return _one_by_one(native.astype(object).tolist(), reader)
    if nw.dependencies.is_polars_series(native):
        native = pyarrow.chunked_array([column.cast(nw.String).to_arrow()])
    texts = native.cast(pyarrow.large_binary())
    return text_positions(texts, lambda raw: reader.position(as_text(raw)), smallest_type(reader))


def as_text(raw: bytes) -> str:
    """Decode a text; bytes that are no UTF-8 become a text that cannot be a state."""
    return raw.decode("utf-8", "surrogateescape")


def text_positions(texts: Any, read: Callable[[bytes], int], kind: np.dtype[Any]) -> Positions:
    """Read each distinct text of an Arrow column of bytes once."""
    if not len(texts):  # early versions of Arrow cannot combine them
        return np.zeros(0, kind)
    encoded = texts.dictionary_encode().combine_chunks()
    by_text = np.array([*map(read, encoded.dictionary.to_pylist()), MISSING], dtype=kind)  # the last is for no text
    return np.asarray(by_text[encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)])


@dataclass(frozen=True)
class Values:
    """The undeclared values of a variable that could become states, with the index of each row's, or -1."""

    states: tuple[State, ...]
    of_rows: NDArray[np.int32]

    @classmethod
    def of(cls, variable: str, positions: Positions, reader: Reader) -> Self:
        """Take the values of a column that its reader numbered."""
        require_few(variable, reader.numbers or ())
        return cls(tuple(reader.numbers or ()), np.maximum(positions - len(reader.states), -1).astype(np.int32))

    def counts(self) -> ValueCounts:
        """Count the rows of each value that has one."""
        counts = np.bincount(self.of_rows[self.of_rows >= 0], minlength=len(self.states)).tolist()
        return {state: rows for state, rows in zip(self.states, counts, strict=True) if rows}


def require_few(variable: str, values: Sized) -> None:
    """Refuse a column with more different values than are counted, without revealing their number."""
    if len(values) > MAX_VALUES:
        raise SchemaError(
            f"Variable {variable!r} has more than {MAX_VALUES:,} different values in the records, too many to choose "
            "states from: leave it out of the schema, or make its values coarser first."
        )
