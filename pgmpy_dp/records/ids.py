"""Comparison of ids that say whose a row is: whether two are equal depends on these two alone.

Hash tables of other libraries do not all satisfy this. pandas confuses texts with a lone surrogate, and before version
3 with a NUL, and a single cell that is not a text changes how it compares a whole column.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.records.cells import EMPTY, PER_DAY, STRANGE, key

# Types whose texts tell their values apart; values of other types may be equal in any way.
_WRITTEN = (
    bytes, datetime.date, datetime.datetime, datetime.time, datetime.timedelta, uuid.UUID, pd.Period, complex,
    np.bytes_, np.complex64, np.complex128, np.clongdouble, np.longdouble,
)  # fmt: skip


def number_ids(name: str, *columns: Any) -> NDArray[np.int64]:
    """Number the ids of a column, or of two tables' columns in turn, from 0 in order of appearance; missing ids are -1.

    Parameters
    ----------
    name : str
        Name of the column.
    columns : pandas.Series or ndarrays

    Raises SchemaError for ids of a type whose values cannot be compared reliably.

    Examples
    --------
    >>> number_ids("person", np.array(["p", 1, "q", 1.0, None, "1"], dtype=object)).tolist()
    [0, 1, 2, 1, -1, 3]
    """
    if all(_is_exact(column.dtype) for column in columns) and len({column.dtype for column in columns}) == 1:
        whole = pd.concat([pd.Series(column) for column in columns]) if len(columns) > 1 else columns[0]
        return np.asarray(pd.factorize(whole)[0], dtype=np.int64)
    numbers: dict[Hashable, int] = {None: -1}
    try:
        found = [numbers.setdefault(own, len(numbers) - 1) for column in columns for own in _keys(column)]
    except _NoIdError:
        found = None
    if found is None:  # raised outside of the handler, so that it does not carry the other error
        raise no_ids(name)
    return np.array(found, dtype=np.int64)


def no_ids(name: str) -> SchemaError:
    """Return the refusal of a column whose values cannot be compared."""
    return SchemaError(
        f"The column {name!r} identifies units, and has values that are not numbers, texts or times: convert "
        "it to texts."
    )


class _NoIdError(Exception):
    """An id of an unknown type."""


def _is_exact(dtype: Any) -> bool:
    """Whether all values of a type are numbers of one size, which pandas compares as such."""
    if isinstance(dtype, np.dtype):
        return dtype.kind in "iubmM" or (dtype.kind == "f" and dtype.itemsize in (4, 8))
    return isinstance(dtype, pd.DatetimeTZDtype)


def _keys(column: Any) -> Iterable[Hashable]:
    """Return the key of each cell, which depends only on the cell; no time becomes an object, as not all can."""
    if isinstance(column, np.ndarray) and column.dtype == object:  # pandas would make texts of texts, or refuse them
        return map(_own, column)
    column = pd.Series(column)
    if isinstance(column.dtype, pd.CategoricalDtype):
        held = [*_keys(pd.Series(column.cat.categories)), None]  # the last is for code -1, an empty cell
        return (held[code] for code in column.cat.codes)
    if column.dtype.kind == "M":
        return _instants(column.dt.tz_convert(None) if column.dt.tz else column, column.dt.tz is not None)
    if column.dtype.kind == "m":
        return _instants(column)
    if isinstance(column.dtype, pd.IntervalDtype):
        raise _NoIdError
    return map(_own, column.astype(object))


def _instants(times: Any, *kind: bool) -> list[Hashable]:
    """Return the keys of times or durations in any unit: whole nanoseconds, of any size."""
    array = np.asarray(times)
    each = PER_DAY["ns"] // PER_DAY[np.datetime_data(array.dtype)[0]]
    counts = zip(array.view(np.int64).tolist(), np.isnat(array), strict=True)
    return [None if absent else (array.dtype.kind, *kind, count * each) for count, absent in counts]


def _own(value: Any) -> Hashable:
    """Return the key of an id, which depends only on the id."""
    if type(value) is str:
        return value
    found = key(value)
    if found == EMPTY:
        return None
    if found[0] is str:
        return str(found[1])
    if found != STRANGE and found[0] is not datetime.date:  # times of one day are different ids
        return found
    kind = type(value)
    if kind is pd.Timestamp:
        return _instants([value.asm8], value.tzinfo is not None)[0]
    if kind is pd.Timedelta:
        return _instants([value.asm8])[0]
    if kind is tuple:
        return kind, tuple(map(_own, value))
    if issubclass(kind, (np.datetime64, np.timedelta64)):
        return value.dtype.str, int(value.astype(np.int64))
    if kind in _WRITTEN:
        return kind.__name__, str(value)
    raise _NoIdError
