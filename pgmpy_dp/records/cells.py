"""Reading of one cell, by a total function of that cell and the public schema, independent of all other cells.

``encode(D) = concat(encode(r) for r in D)`` is the lemma on which every sensitivity of this package rests. This module
is its last step: it maps any value, of any type, to a position and never raises.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from pgmpy_dp.schema import Bins, DateBins, Schema, State, is_text, plain
from pgmpy_dp.schema.date_bins import civil_day, iso, iso_day, seconds_of
from pgmpy_dp.schema.date_format import DAY

PER_DAY = {"D": 1, "h": 24, "m": 1440, "s": DAY, "ms": DAY * 10**3, "us": DAY * 10**6, "ns": DAY * 10**9}
PER_DAY |= {"ps": DAY * 10**12, "fs": DAY * 10**15, "as": DAY * 10**18}
"""Units in which numpy counts times, in multiples of a day."""

MISSING, UNDECLARED = -2, -1
"""Positions of empty cells, and of those with a value that the schema does not declare."""

# No two parts can match the same letter, so matching takes time linear in the length of the text. Only ASCII matches:
# Python's floats do not know all digits of Unicode, nor a dotless i.
_NUMBER = re.compile(r"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?|nan)", re.IGNORECASE | re.ASCII)
_LONGEST_NUMBER = 400
_WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0+")  # an integer written as a float; codes with leading zeros are not
_COMMAS = str.maketrans({",": ".", ".": ","})  # a number with a point is then not a number
# Longer texts, and integers beyond 64 bits, are not discovered.
_LONGEST_STATE, _MAX_WHOLE = 200, 2**63

EMPTY = (type(None), None)
STRANGE = (object, None)
Key = tuple[type, Any]


@dataclass(frozen=True, eq=False)  # states such as 1 and True compare equal, and so would the readers
class Reader:
    """Reads the cells of one variable, using only its states or bins."""

    states: tuple[State, ...]
    bins: Bins | None
    stand_ins: tuple[int | None, int | None] = (None, None)  # positions for missing and for undeclared cells
    missing_values: frozenset[str] = frozenset()
    decimal: str = "."  # of numbers in a file without types
    numbers: dict[State, int] | None = None  # of undeclared values that could become states, where these are asked for

    @classmethod
    def of(cls, schema: Schema, variable: str, decimal: str = ".") -> Reader:
        """Make the reader of a variable of the schema."""
        states = schema.states[variable]
        named = cls(states, None)
        missing, other = (
            named.position(role[variable]) if variable in role else None for role in (schema.missing, schema.other)
        )
        text = frozenset(schema.missing_values.get(variable, ()))
        return cls(states, schema.bins.get(variable), (missing, other), text, decimal)

    @cached_property
    def _places(self) -> dict[Key, int]:
        return {key(state): position for position, state in enumerate(self.states)}

    @cached_property
    def _places_of_days(self) -> dict[int, int]:
        days = ((n, iso_day(state)) for n, state in enumerate(self.states) if isinstance(state, str))
        return {day: position for position, day in days if day is not None and iso(day) == self.states[position]}

    @cached_property
    def texts(self) -> dict[str, int]:
        """Map texts to positions: states (unless the variable is binned), and texts that mark a missing value."""
        states = self.states if self.bins is None else ()
        results = {state: position for position, state in enumerate(states) if isinstance(state, str)}
        return results | dict.fromkeys(self.missing_values, MISSING)

    @property
    def of_dates(self) -> bool:
        """Whether the bins are of dates, which frames hold as dates, times or texts in their format."""
        return isinstance(self.bins, DateBins)

    def position(self, value: Any) -> int:
        """Return the position of a value's state or bin, or MISSING or UNDECLARED, or its position in `numbers`."""
        typed = key(value)
        return self._numbered(self._of_key(typed), typed)

    def text_position(self, text: str) -> int:
        """Return the position of a text in a file without types: of the text, number or boolean that it writes.

        Programs write a column of integers with missing values as floats: "15000.0" is read as the state "15000".
        """
        return self._numbered(self._of_text(text), (str, text))

    @property
    def unit(self) -> int:
        """Seconds of the unit in which times are counted: a day, unless the bins are of times."""
        return self.bins.unit if isinstance(self.bins, DateBins) else DAY

    def time_position(self, units: int) -> int:
        """Return the position of a time, in units since 1970-01-01: of the state that writes it in ISO, or its bin."""
        if self.bins is None:
            return self._places_of_days.get(units, UNDECLARED)
        return _bin(units, self.bins.edges) if self.of_dates else UNDECLARED

    def _of_key(self, typed: Key) -> int:
        kind, number = typed
        if typed == EMPTY or (kind is str and number in self.missing_values):
            return MISSING
        if kind is date:
            return self.time_position(number // self.unit)
        if self.bins is None:
            return self._places.get(typed, UNDECLARED)
        if isinstance(self.bins, DateBins):
            units = self.bins.number(number) if kind in (str, float, Decimal) else None
            return UNDECLARED if units is None else _bin(units, self.bins.edges)
        return _bin(number, self.bins.edges) if kind in (float, Decimal) else UNDECLARED

    def _of_text(self, text: str) -> int:
        if text in self.texts:
            return self.texts[text]
        if text == "":
            return MISSING
        if self.of_dates:
            position = self._of_key((str, text))
            number = written_number(text, self.decimal) if position == UNDECLARED else None
            return position if number is None else self._of_key(key(number))
        if self.bins is None and text.lower() in ("true", "false"):
            return self._places.get((bool, text.lower() == "true"), UNDECLARED)
        whole = self.texts and _WHOLE.fullmatch(text.translate(_COMMAS) if self.decimal != "." else text)
        if whole and whole[1] in self.texts:
            return self.texts[whole[1]]
        number = written_number(text, self.decimal)
        return UNDECLARED if number is None else self._of_key(key(number))

    def _numbered(self, position: int, typed: Key) -> int:
        """Number an undeclared text or integer, beyond the states, as it appears.

        Adding it as a state keeps a schema valid, which then reads the value as that state from every source.
        """
        kind, state = typed
        if position != UNDECLARED or self.numbers is None:
            return position
        if kind is float and -_MAX_WHOLE <= state < _MAX_WHOLE and state == int(state):
            state = int(state)
        elif not (kind is str and 0 < len(state) <= _LONGEST_STATE and is_text(state)):
            return position
        # True equals 1, and the text "9" may mark a missing value beside a number 9: neither may become a state.
        if state in self.states or str(state) in self.missing_values:
            return position
        return len(self.states) + self.numbers.setdefault(state, len(self.numbers))


def key(value: Any) -> Key:
    """Pair a value with its type, since Python takes True and 1 for the same key.

    Integers, floats and complex numbers have one type: a frame may have converted a whole column for the sake of one
    record. No method of an object of an unknown type is called.
    """
    kind = type(value)
    if value is None or value is pd.NA or value is pd.NaT:
        return EMPTY
    if issubclass(kind, np.generic):
        value = np.generic.astype(value, np.generic.dtype.__get__(value))  # of numpy's own type, not of one derived
        kind = type(value)
        if issubclass(kind, (np.datetime64, np.timedelta64)):
            return EMPTY if np.isnat(value) else _seconds(value)
        value = plain(value) if kind is not np.longdouble else _exact_float(value)
        kind = type(value)
    if issubclass(kind, bool):
        return bool, value
    if issubclass(kind, str):
        return str, str.__str__(value)
    if issubclass(kind, int):
        return float, int.__int__(value)
    if issubclass(kind, complex):
        value = complex.__complex__(value)
        if value.imag != 0.0:
            return EMPTY if value != value else STRANGE
        value, kind = value.real, float
    if issubclass(kind, float):
        number = float.__float__(value)
        return EMPTY if number != number else (float, number)
    if issubclass(kind, Decimal):
        return EMPTY if Decimal.is_nan(value) else (Decimal, Decimal(value))
    if issubclass(kind, date):
        # As a Python date, a timestamp of any other year has a wrong year.
        beyond = kind is pd.Timestamp and not 1 <= value.year <= 9999
        return date, _beyond(value) if beyond else seconds_of(value)
    return STRANGE


def _beyond(value: pd.Timestamp) -> int:
    days = civil_day(value.year, value.month, value.day)
    return days * DAY + value.hour * 3600 + value.minute * 60 + value.second


def _seconds(value: Any) -> Key:
    """Compute the seconds of a numpy time, but not of a month or year, in integers: numpy's casts overflow."""
    unit, multiple = np.datetime_data(value.dtype)
    if value.dtype.kind != "M" or unit not in PER_DAY:
        return STRANGE
    return date, int(value.astype(np.int64)) * multiple * DAY // PER_DAY[unit]


def written_number(text: str, decimal: str) -> int | float | None:
    """Return the number that a text writes with a decimal mark; None if it writes none, or one that is too long."""
    if len(text) > _LONGEST_NUMBER:
        return None
    if decimal != ".":
        text = text.translate(_COMMAS)
    if not _NUMBER.fullmatch(text):
        return None
    return int(text) if text.lstrip("+-").isdigit() else float(text)


def _exact_float(value: Any) -> Any:
    """Convert a long double to an equal float if there is one; otherwise return a key that no state has."""
    number = float(value)
    return number if number != number or np.longdouble(number) == value else STRANGE


def _bin(number: Any, edges: tuple[float, ...]) -> int:
    value = as_float(number)
    if not edges[0] <= value <= edges[-1]:
        return UNDECLARED
    return min(bisect.bisect_right(edges, value) - 1, len(edges) - 2)


def as_float(number: Any) -> float:
    """Return the float nearest to an integer, float or decimal; infinite if it overflows."""
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
