"""Units of privacy: each row belongs to one, and what one unit may contribute is bounded.

A unit with several rows is bounded in one of two ways. Either at most `max_rows` of them are counted, sampled uniformly
without replacement; or all are, and each of K rows weighs 1 / K, as an integer number of parts, of which a unit has
:data:`~pgmpy_dp.privacy.noise.UNIT_WEIGHT`.

Sensitivity. What a unit adds to a table depends on its own rows and its own part of the randomness, and sums to at
most `max_rows`, or to at most UNIT_WEIGHT parts: floor(UNIT_WEIGHT / K) per row, K times. So for the same samples of
the units that neighbours share, their tables differ as :func:`~pgmpy_dp.privacy.noise.table_sensitivity` states.
Sampling mixes such pairs, which does not increase the divergence of the release. Nothing depends on the samples being
secret, since no privacy is claimed from sampling; they come from the operating system's generator all the same.

Rounding down loses less than K / UNIT_WEIGHT of a unit of K rows. A unit of more than UNIT_WEIGHT rows is not counted.

Whether two ids are equal depends on these two alone. Hash tables of other libraries do not all satisfy this. pandas
confuses texts with a lone surrogate, and before version 3 with a NUL, and a single cell that is not a text changes how
it compares a whole column.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pgmpy_dp.errors import SchemaError, warn
from pgmpy_dp.privacy.checks import whole_number
from pgmpy_dp.privacy.noise import UNIT_WEIGHT, NoiseSource
from pgmpy_dp.records.cells import EMPTY, PER_DAY, STRANGE, key
from pgmpy_dp.records.refusals import sealed
from pgmpy_dp.schema import Schema

_FEW_STATES = 100


@dataclass(frozen=True)
class Unit:
    """Column that identifies the unit of privacy, and a bound on what one unit contributes."""

    column: str
    max_rows: int | None  # None: all count, and share a weight of 1
    keys: Callable[[int], NDArray[np.uint64]]


def checked_unit(column: Any, max_rows: Any, noise: NoiseSource) -> Unit | None:
    """Check the unit that a caller asks for; None where records are units of their own."""
    if max_rows is not None:
        max_rows = whole_number("max_rows", max_rows, maximum=2**31 - 1)
    if column is None:
        if max_rows is not None:
            raise ValueError("max_rows bounds the rows of a unit: name the column that identifies units, unit=...")
        return None
    if not isinstance(column, str) or not column or column == "record":
        raise ValueError(f"unit must name a column of the records, and not 'record', got {column!r}.")
    return Unit(column, max_rows, noise.keys)


def warn_of_unit(schema: Schema, column: str | None) -> None:
    """Warn if the column is declared to have few states, and so hardly identifies persons; no record is seen."""
    if column is not None and 1 < len(schema.states.get(column, ())) < _FEW_STATES:
        warn(
            f'unit="{column}" is a variable of {len(schema.states[column])} states, which hardly identifies persons: '
            "all rows with one of its states count as one person's. Name a column that identifies persons, or leave "
            "unit out if each row is a person's own."
        )


def require_ids(missing: bool, column: str) -> None:
    """Raise if some rows have no unit."""
    if missing:
        raise SchemaError(
            f"The column {column!r} of units has missing values: every row must belong to a unit. Fill or drop them."
        )


def labels_of(ids: Any, unit: Unit) -> NDArray[np.int64]:
    """Number the units of a column of ids, from 0."""
    labels = sealed(lambda: number_ids(unit.column, ids), f"the column {unit.column!r} of units")
    require_ids(bool((labels < 0).any()), unit.column)
    return labels


def ranks_of(labels: NDArray[np.int64], unit: Unit) -> NDArray[np.int64]:
    """Rank each row among those of its unit, from 1, in a uniformly random order."""
    order = np.lexsort((unit.keys(labels.size), labels))
    ordered = labels[order]
    ranks = np.empty(labels.size, dtype=np.int64)
    ranks[order] = np.arange(1, labels.size + 1) - np.searchsorted(ordered, ordered)
    return ranks


def sampled_rows(labels: NDArray[np.int64], unit: Unit) -> NDArray[np.bool_]:
    """Mark at most `max_rows` rows of each unit, sampled uniformly without replacement."""
    chosen: NDArray[np.bool_] = ranks_of(labels, unit) <= (unit.max_rows or 0)
    return chosen


def row_weights(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the weight of each row, in parts of its unit's weight."""
    weights: NDArray[np.int64] = UNIT_WEIGHT // np.bincount(labels)[labels]
    return weights


# Types whose texts tell their values apart; values of other types may be equal in any way.
_WRITTEN = (
    bytes, datetime.date, datetime.datetime, datetime.time, datetime.timedelta, uuid.UUID, pd.Period, complex,
    np.bytes_, np.complex64, np.complex128, np.clongdouble, np.longdouble,
)  # fmt: skip


def number_ids(name: str, *columns: Any) -> NDArray[np.int64]:
    """Number the ids of a column, or of two tables' columns in turn, as they appear, from 0; missing ids are -1."""
    if all(_is_exact(column.dtype) for column in columns) and len({column.dtype for column in columns}) == 1:
        whole = pd.concat([pd.Series(column) for column in columns]) if len(columns) > 1 else columns[0]
        return np.asarray(pd.factorize(whole)[0], dtype=np.int64)
    numbers: dict[Hashable, int] = {None: -1}
    try:
        results = [numbers.setdefault(own, len(numbers) - 1) for column in columns for own in _keys(column)]
    except _NoIdError:
        results = None
    if results is None:  # raised outside of the handler, so that it does not carry the other error
        raise no_ids(name)
    return np.array(results, dtype=np.int64)


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
        return map(_id_key, column)
    column = pd.Series(column)
    if isinstance(column.dtype, pd.CategoricalDtype):
        unit_keys = [*_keys(pd.Series(column.cat.categories)), None]  # the last is for code -1, an empty cell
        return (unit_keys[code] for code in column.cat.codes)
    if column.dtype.kind == "M":
        return _instants(column.dt.tz_convert(None) if column.dt.tz else column, column.dt.tz is not None)
    if column.dtype.kind == "m":
        return _instants(column)
    if isinstance(column.dtype, pd.IntervalDtype):
        raise _NoIdError
    return map(_id_key, column.astype(object))


def _instants(times: Any, *kind: bool) -> list[Hashable]:
    """Return the keys of times or durations in any unit: whole nanoseconds, of any size."""
    array = np.asarray(times)
    each = PER_DAY["ns"] // PER_DAY[np.datetime_data(array.dtype)[0]]
    counts = zip(array.view(np.int64).tolist(), np.isnat(array), strict=True)
    return [None if absent else (array.dtype.kind, *kind, count * each) for count, absent in counts]


def _id_key(value: Any) -> Hashable:
    """Return the key of an id, which depends only on the id."""
    if type(value) is str:
        return value
    result = key(value)
    if result == EMPTY:
        return None
    if result[0] is str:
        return str(result[1])
    if result != STRANGE and result[0] is not datetime.date:  # times of one day are different ids
        return result
    kind = type(value)
    if kind is pd.Timestamp:
        return _instants([value.asm8], value.tzinfo is not None)[0]
    if kind is pd.Timedelta:
        return _instants([value.asm8])[0]
    if kind is tuple:
        return kind, tuple(map(_id_key, value))
    if issubclass(kind, (np.datetime64, np.timedelta64)):
        return value.dtype.str, int(value.astype(np.int64))
    if kind in _WRITTEN:
        return kind.__name__, str(value)
    raise _NoIdError
