"""Encoding of columns in memory, each cell independently.

A column has one type, which its writer chose. Columns of numbers and of texts are read in bulk, with the same result
that :meth:`~pgmpy_dp.records.cells.Reader.position` gives for each cell, and so are columns of dates and times; others
are read cell by cell. Columns of lists and other values that cannot be states are not converted: only whether a cell is
empty counts.

No library makes Python objects of values of which Python may have none, since one that it refuses would decide that no
record is read. So times are counted as what they are, integers of 64 bits, and each has a day, which is that of the
column's time zone: the zone's offset on the first or last day that Python has is that of all times before or after. The
least integer is what numpy takes for an empty cell.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pgmpy_dp.records.cells import DAY, MISSING, PER_DAY, UNDECLARED, Reader, as_float, key
from pgmpy_dp.schema import Bins, Schema
from pgmpy_dp.schema.date_bins import civil_day
from pgmpy_dp.schema.variable import IN_DETAIL

Codes = NDArray[np.unsignedinteger[Any]]
Positions = NDArray[np.signedinteger[Any]]
Reading = Callable[[NDArray[Any]], NDArray[Any]]

_BLOCK = 2**16
# Integer states are looked up in a table if the largest and the least differ by less than this.
_WIDEST = 2**20
_MAX_DAYS = 2**16  # texts of dates that are remembered
_CALENDAR = civil_day(1, 1, 2) * DAY, civil_day(9999, 12, 30) * DAY  # in every zone, days that Python has
_TEXTS = (nw.String, nw.Categorical, nw.Enum)
# Number of edges above which binary search is faster than comparing with every edge.
_FEW_EDGES = 24


@dataclass(frozen=True)
class Found:
    """Whether a column holds missing or undeclared cells without a state that stands for them."""

    missing: bool = False
    undeclared: bool = False


def column_codes(column: Any, reader: Reader) -> tuple[Codes, Found]:
    """Find the positions of the states of a column's cells, and whether some cells have none."""
    return settled(positions(column, reader), reader)


def settled(places: Positions, reader: Reader) -> tuple[Codes, Found]:
    """Insert the states that stand for missing and undeclared cells; report whether some have no such state."""
    results = [False, False]
    if places.size and places.min() < 0:
        for role, mark in enumerate((MISSING, UNDECLARED)):
            marked, stand_in = places == mark, reader.stand_ins[role]
            results[role] = stand_in is None and bool(marked.any())
            places = np.where(marked, places.dtype.type(stand_in or 0), places)
    return places.astype(np.min_scalar_type(len(reader.states) - 1)), Found(*results)


def read_columns(schema: Schema, variables: Iterable[str]) -> list[str]:
    """Name the columns to read for some variables: for the coarser variable of a hierarchy, that of the finer one."""
    derived, details = schema.structure.derived, schema.details
    own = (details[variable].variable if variable in details else variable for variable in variables)
    return list(dict.fromkeys(derived[variable][0] if variable in derived else variable for variable in own))


def column_reader(schema: Schema, variable: str, decimal: str = ".") -> Reader:
    """Make the reader of a variable's column, which reads numbers in detail."""
    reader, ordered = Reader.of(schema, variable, decimal), schema.details.get(variable + IN_DETAIL)
    if ordered is None:
        return reader
    cells = tuple(f"cell {number}" for number in range(ordered.places.size))
    size, others = len(ordered.bins.labels), ordered.places[len(ordered.bins.labels) :].tolist()
    stand_ins = [None if position is None else size + others.index(position) for position in reader.stand_ins]
    return replace(reader, states=cells, bins=ordered.bins, stand_ins=(stand_ins[0], stand_ins[1]))


def variable_codes(codes: Mapping[str, Codes], schema: Schema, variables: Iterable[str]) -> dict[str, Codes]:
    """Derive each variable's codes from those of the columns that `column_reader` read, record by record."""
    results, asked = dict(codes), list(variables)
    for variable in codes:
        if (ordered := schema.details.get(variable + IN_DETAIL)) is not None:
            results[variable] = _placed(ordered.places, schema, variable, codes[variable])
    fine = {v: codes[schema.details[v].variable] for v in asked if v in schema.details}
    return with_derived(results | fine, schema, asked)


def _placed(places: NDArray[np.intp], schema: Schema, variable: str, finer: Codes) -> Codes:
    """Find the codes of a variable whose states are at these places for each finer one."""
    codes: Codes = places.astype(np.min_scalar_type(schema.cardinality(variable) - 1))[finer]
    return codes


def with_derived(codes: Mapping[str, Codes], schema: Schema, variables: Iterable[str]) -> dict[str, Codes]:
    """Derive each variable's codes from those of the columns that were read, record by record."""
    derived, results = schema.structure.derived, {}
    for variable in variables:
        if variable in derived:
            finer, positions = derived[variable]
            results[variable] = _placed(positions, schema, variable, codes[finer])
        else:
            results[variable] = codes[variable]
    return results


def positions(given: Any, reader: Reader) -> Positions:
    """Find the position of each cell, which may be MISSING or UNDECLARED."""
    column = decoded(given)
    if _is_pandas_category(native := column.to_native()):  # before narwhals looks at the categories for a type
        return _by_category(native, lambda categories: positions(categories, reader), MISSING)
    dtype = column.dtype
    if nw.dependencies.is_pyarrow_chunked_array(native) and native.num_chunks == 1 and not native.null_count:
        import pyarrow

        if pyarrow.types.is_integer(native.type):  # the case of most batches, without a copy
            return _array_positions(native.chunk(0).to_numpy(), reader)
    if (cells := _cells_of_no_array(column)) is not None:
        return _one_by_one(cells, reader)
    empty = np.array(column.is_null().to_numpy(), dtype=bool)  # a copy, since it is modified
    if is_number(dtype):
        places = _number_positions(column, empty, reader)
    elif isinstance(dtype, nw.Boolean):
        values = column.fill_null(False).to_numpy().astype(bool)
        places = np.where(values, reader.position(True), reader.position(False)).astype(np.int32)
    elif isinstance(dtype, _TEXTS):
        places = _text_positions(column, reader)
    elif (times := times_of(column)) is not None:
        places = _date_positions(*times, empty, reader)
    else:
        places = np.full(len(column), UNDECLARED, dtype=np.int32)
    places[empty] = MISSING
    return places


def undeclared(given: Any, reader: Reader) -> tuple[NDArray[np.intp], list[Any]]:
    """Find the undeclared cells, and their values if the column's type can be that of a state."""
    rows, column = np.flatnonzero(positions(given, reader) == UNDECLARED), decoded(given)
    if _is_pandas_category(native := column.to_native()):
        ordered, values = undeclared(pd.Series(native.cat.categories), reader)
        codes = native.cat.codes.to_numpy()
        rows = np.flatnonzero(np.isin(codes, ordered))
        return rows, [values[position] for position in np.searchsorted(ordered, codes[rows]).tolist()]
    cells = _cells_of_no_array(column)
    if cells is None:
        if not (is_number(column.dtype) or isinstance(column.dtype, _TEXTS)):
            return rows[:0], []
        cells = listed_cells(column)
    return rows, cells if rows.size == len(cells) else [cells[row] for row in rows.tolist()]


def is_number(dtype: Any) -> bool:
    """Whether a column has a type of integers or floats that numpy knows; it has no 128-bit integers."""
    return bool(dtype.is_float() or (dtype.is_integer() and not isinstance(dtype, (nw.Int128, nw.UInt128))))


def objects(values: Any) -> NDArray[np.object_]:
    """Make an array of the values unchanged: numpy and pandas would convert them to one type."""
    array = np.empty(len(values), dtype=object)
    for position, value in enumerate(values):
        array[position] = value
    return array


def decoded(given: Any) -> nw.Series[Any]:
    """Return a column in memory with plain values: Arrow arrays are taken out of pandas, and dictionaries decoded.

    Dictionaries may hold nulls and NaN that the index does not show; whether pandas sees these depends on other cells.
    """
    dtype = given.dtype if nw.dependencies.is_pandas_series(given) else None
    if isinstance(dtype, pd.SparseDtype):
        given = given.sparse.to_dense()
    if isinstance(dtype, pd.ArrowDtype) or (isinstance(dtype, pd.StringDtype) and dtype.storage == "pyarrow"):
        import pyarrow

        given = pyarrow.chunked_array(pyarrow.array(given.array))
    if nw.dependencies.is_pyarrow_chunked_array(given):
        import pyarrow

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
        return _each_number(cells)
    if not is_number(column.dtype):
        return np.full(len(column), np.nan)
    empty = column.is_null().to_numpy().astype(bool)
    numbers = np.array((column.fill_null(0) if empty.any() else column).to_numpy(), dtype=np.float64)
    numbers[empty] = np.nan
    return numbers


def _each_number(values: list[Any]) -> NDArray[np.float64]:
    keys = (key(value) for value in values)
    numbers = (as_float(number) if kind in (float, Decimal) else np.nan for kind, number in keys)
    return np.fromiter(numbers, dtype=np.float64, count=len(values))


def _is_pandas_category(native: Any) -> bool:
    return nw.dependencies.is_pandas_series(native) and isinstance(native.dtype, pd.CategoricalDtype)


def _by_category(column: pd.Series[Any], read: Callable[[pd.Series[Any]], NDArray[Any]], empty: Any) -> NDArray[Any]:
    """Read each category once, and find what each cell holds."""
    by_category = read(pd.Series(column.cat.categories))
    # The last entry is for code -1, an empty cell.
    by_code = np.append(by_category, by_category.dtype.type(empty))
    return np.asarray(by_code[column.cat.codes.to_numpy()])


def _cells_of_no_array(column: nw.Series[Any]) -> list[Any] | None:
    """List the cells of a column that has no single type, or one that frames lack, to be read one by one."""
    native, dtype = column.to_native(), column.dtype
    if nw.dependencies.is_pandas_series(native) and isinstance(native.dtype, np.dtype):
        if native.dtype == object or isinstance(dtype, nw.Unknown):
            return list(native.to_list())  # narwhals would inspect all values for a type
    elif isinstance(dtype, (nw.Object, nw.Decimal, nw.Int128, nw.UInt128)):
        return column.to_list()
    return None


def listed_cells(column: nw.Series[Any]) -> list[Any]:
    """List the cells of a column of texts, numbers or the like; bytes of Arrow's texts may be no text."""
    native: Any = column.to_native()
    if not (isinstance(column.dtype, _TEXTS) and nw.dependencies.is_pyarrow_chunked_array(native)):
        return column.to_list()
    import pyarrow

    written = native.cast(pyarrow.large_binary()).to_pylist()
    return [None if cell is None else cell.decode("utf-8", "surrogateescape") for cell in written]


def _one_by_one(values: list[Any], reader: Reader) -> Positions:
    texts, of_any = reader.texts, reader.position
    positions = (texts.get(value, UNDECLARED) if type(value) is str else of_any(value) for value in values)
    if reader.of_dates:
        of_text = functools.lru_cache(_MAX_DAYS)(of_any)
        positions = (of_text(value) if type(value) is str else of_any(value) for value in values)
    return np.fromiter(positions, dtype=np.int32, count=len(values))


def _number_positions(column: nw.Series[Any], empty: NDArray[np.bool_], reader: Reader) -> Positions:
    """Find the positions of numbers; NaN counts as empty too."""
    values = (column.fill_null(0) if empty.any() else column).to_numpy()
    if values.dtype == object:  # nullable columns of some frames
        values = values.astype(np.float64 if column.dtype.is_float() else np.int64)
    if values.dtype.kind == "f":
        empty |= np.isnan(values)
    return _array_positions(values, reader)


def times_of(column: nw.Series[Any]) -> tuple[NDArray[np.datetime64], Any] | None:
    """Return a column's dates or times, in UTC, and its time zone, if it has any; None for columns of other types."""
    native: Any = column.to_native()
    if nw.dependencies.is_pandas_series(native) and isinstance(native.dtype, pd.DatetimeTZDtype):
        return native.dt.tz_convert(None).to_numpy(), native.dtype.tz  # narwhals does not know all zones
    if not isinstance(column.dtype, (nw.Date, nw.Datetime)):
        return None
    return column.to_numpy(), getattr(column.dtype, "time_zone", None)


def local_days(times: NDArray[np.datetime64], zone: Any) -> NDArray[np.int64]:
    """Return the days since 1970-01-01 of times in UTC where a time zone is; of any integer, without an overflow."""
    counts, per_day = times.view(np.int64), PER_DAY[np.datetime_data(times.dtype)[0]]
    if zone is None:
        return np.asarray(counts // per_day)
    seconds = counts // (per_day // DAY)
    days, within = np.divmod(seconds, DAY)
    known = seconds.clip(*_CALENDAR)
    local = pd.DatetimeIndex(known.view("datetime64[s]"), tz="UTC").tz_convert(zone).tz_localize(None)
    offsets = local.to_numpy().astype("datetime64[s]").view(np.int64) - known
    return np.asarray(days + (within + offsets) // DAY)


def _date_positions(times: NDArray[np.datetime64], zone: Any, empty: NDArray[np.bool_], reader: Reader) -> Positions:
    """Find the positions of dates, and of times by their day."""
    empty |= np.isnat(times)
    days = local_days(times, zone)
    read = _bin_reading(reader.bins) if reader.of_dates else _state_reading(reader.days(), days.dtype)  # type: ignore[arg-type]
    return read(days)


def smallest_type(states: tuple[Any, ...]) -> np.dtype[Any]:
    """Return the smallest type that holds the positions of these states and the marks of cells without one."""
    return np.min_scalar_type(-len(states) - 2)


def _array_positions(values: NDArray[Any], reader: Reader) -> Positions:
    read = _reading(reader, values.dtype)
    positions = np.empty(values.shape, dtype=smallest_type(reader.states))
    for start in range(0, values.size, _BLOCK):  # blocks stay in the cache
        positions[start : start + _BLOCK] = read(values[start : start + _BLOCK])
    return positions


@functools.lru_cache(maxsize=1024)
def _reading(reader: Reader, dtype: np.dtype[Any]) -> Reading:
    """Return a function that reads arrays of numbers of a type; it is the same for every batch of records."""
    if reader.of_dates:
        return _each_reading(reader) if reader.reads_numbers else _state_reading((), dtype)
    return _state_reading(reader.states, dtype) if reader.bins is None else _bin_reading(reader.bins)


def _each_reading(reader: Reader) -> Reading:
    """Return a function that reads each number of an array by itself: its digits are a date."""

    def read(values: NDArray[Any]) -> NDArray[Any]:
        known, at = np.unique(values, return_inverse=True)
        return np.array([reader.position(value) for value in known.tolist()], dtype=np.int32)[at]

    return read


def _bin_reading(bins: Bins) -> Reading:
    edges = np.array(bins.edges)

    def read(values: NDArray[Any]) -> NDArray[Any]:
        numbers = values.astype(np.float64)
        if edges.size <= _FEW_EDGES:
            positions = np.full(numbers.shape, -1, dtype=np.int32)
            for edge in edges:
                positions += numbers >= edge
        else:
            positions = (np.searchsorted(edges, numbers, side="right") - 1).astype(np.int32)
        positions[numbers == edges[-1]] = edges.size - 2
        positions[~(numbers <= edges[-1])] = UNDECLARED  # includes NaN
        return positions

    return read


def _state_reading(states: tuple[Any, ...], dtype: np.dtype[Any]) -> Reading:
    """Return a function that finds the positions of numbers of a type among the states."""
    numbers = [(_as_dtype(state, dtype), position) for position, state in enumerate(states)]
    ordered = sorted((number, position) for number, position in numbers if number is not None)
    if not ordered:
        return lambda values: np.full(values.shape, UNDECLARED, dtype=np.int32)
    known = np.array([number for number, _ in ordered], dtype=dtype)
    order = np.array([position for _, position in ordered], dtype=np.int32)
    if dtype.kind in "iu" and int(known[-1]) - int(known[0]) < _WIDEST:
        return _lookup(known, order.astype(smallest_type(states)))

    def search(values: NDArray[Any]) -> NDArray[Any]:
        nearest = np.minimum(np.searchsorted(known, values), known.size - 1)
        return np.where(known[nearest] == values, order[nearest], UNDECLARED)

    minimum, maximum = float(known[0]), float(known[-1])  # arithmetic in a short type would overflow
    narrow = maximum - minimum < _WIDEST and minimum > -(2**53) and maximum < 2**53
    if dtype.kind != "f" or not narrow or not (known == np.rint(known)).all():
        return search
    by_integer = _lookup(known.astype(np.int64), order.astype(smallest_type(states)))

    def whole(values: NDArray[Any]) -> NDArray[Any]:
        with np.errstate(invalid="ignore"):  # NaN and overflows become integers that differ from them
            integers = values.astype(np.int64)
        return np.where(integers == values, by_integer(integers), UNDECLARED)

    return whole


def _lookup(known: NDArray[Any], order: Positions) -> Reading:
    """Look positions up in a table from the least to the largest state, with an entry at each end for all others."""
    minimum, span = int(known[0]), int(known[-1]) - int(known[0])
    table = np.full(span + 3, UNDECLARED, dtype=order.dtype)
    table[[int(number) - minimum + 1 for number in known]] = order
    # Differences are modulo 2**64, so that numbers of 2**63 and more work too; no other number collides.
    before = np.uint64((minimum - 1) % 2**64).astype(np.int64)
    wide = np.uint64 if known.dtype.kind == "u" else np.int64

    def read(values: NDArray[Any]) -> NDArray[Any]:
        return table.take(values.astype(wide, copy=False).view(np.int64) - before, mode="clip")

    return read


def _as_dtype(state: Any, dtype: np.dtype[Any]) -> Any:
    """Convert the state to a number of the column's type; None if that type does not hold it exactly."""
    if isinstance(state, bool) or not isinstance(state, (int, float)):
        return None
    if dtype.kind == "f":
        with np.errstate(over="ignore"):  # a state that is too large becomes infinite
            number = dtype.type(as_float(state))
        return number if float(number) == state else None
    if state != int(state) or not np.iinfo(dtype).min <= state <= np.iinfo(dtype).max:
        return None
    return dtype.type(int(state))


def _text_positions(column: nw.Series[Any], reader: Reader) -> Positions:
    """Find the positions of texts, which libraries compare letter by letter."""
    texts = list(reader.texts)
    native: Any = column.to_native()
    if reader.of_dates:
        return _one_by_one(listed_cells(column), reader)
    if not texts:
        return np.full(len(column), UNDECLARED, dtype=np.int32)
    positions = np.array([*reader.texts.values(), UNDECLARED], dtype=np.int32)
    if nw.dependencies.is_pyarrow_chunked_array(native):
        import pyarrow
        import pyarrow.compute

        known = pyarrow.array(texts, pyarrow.large_string())
        at = pyarrow.compute.index_in(native.cast(pyarrow.large_string()), value_set=known).fill_null(-1).to_numpy()
    elif nw.dependencies.is_polars_series(native):
        import polars

        numbers = list(range(len(texts)))
        at = native.cast(polars.String).replace_strict(texts, numbers, default=-1, return_dtype=polars.Int64).to_numpy()
    else:  # hash tables of pandas do not compare all texts in this way
        return _one_by_one(native.astype(object).tolist(), reader)
    return np.asarray(positions[at])
