"""Comparison of ids that say whose a row is: whether two are equal depends on these two alone.

Hash tables of other libraries do not all satisfy this. pandas confuses texts with a lone surrogate, and before version
3 with a NUL, and a single cell that is not a text changes how it compares a whole column.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.records.cells import EMPTY, STRANGE, key

# Types whose texts tell their values apart; values of other types may be equal in any way.
_WRITTEN = (
    bytes, datetime.date, datetime.datetime, datetime.time, datetime.timedelta, uuid.UUID, pd.Period, pd.Timedelta,
    pd.Timestamp, complex, np.bytes_, np.complex64, np.complex128, np.clongdouble, np.longdouble,
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
    cells = (value for column in columns for value in _cells(column))
    try:
        found = [numbers.setdefault(value if type(value) is str else _own(value), len(numbers) - 1) for value in cells]
    except _NoIdError:
        raise SchemaError(
            f"The column {name!r} identifies units, and has values that are not numbers, texts or times: convert "
            "it to texts."
        ) from None
    return np.array(found, dtype=np.int64)


class _NoIdError(Exception):
    """An id of an unknown type."""


def _is_exact(dtype: Any) -> bool:
    """Whether all values of a type are numbers of one size, which pandas compares as such."""
    if isinstance(dtype, np.dtype):
        return dtype.kind in "iubmM" or (dtype.kind == "f" and dtype.itemsize in (4, 8))
    return isinstance(dtype, pd.DatetimeTZDtype)


def _cells(column: Any) -> list[Any]:
    """List the cells unchanged: pandas would make a text column of an array of texts, and refuse some of them."""
    if isinstance(column, np.ndarray) and column.dtype == object:
        return list(column)
    return list(pd.Series(column).astype(object))


def _own(value: Any) -> Hashable:
    """Return the key of an id, which depends only on the id."""
    found = key(value)
    if found == EMPTY:
        return None
    if found[0] is str:
        return str(found[1])
    if found != STRANGE and found[0] is not datetime.date:  # times of one day are different ids
        return found
    kind = type(value)
    if kind is tuple:
        return kind, tuple(map(_own, value))
    if kind in _WRITTEN or issubclass(kind, (np.datetime64, np.timedelta64)):
        return kind.__name__, str(value)
    raise _NoIdError
