"""Public bins of dates and times, which are represented as numbers of days or seconds."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, ClassVar

import numpy as np

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy.checks import settle
from pgmpy_dp.privacy.guarantee import DECLARED, Guarantee
from pgmpy_dp.schema.bins import DETAIL, Bins
from pgmpy_dp.schema.date_format import DAY, DateFormat, date_format
from pgmpy_dp.schema.states import listed

_EPOCH = date(1970, 1, 1).toordinal()
_MIN, _MAX = date.min.toordinal() - _EPOCH, date.max.toordinal() - _EPOCH
_DRAWN = 106_650  # days from 1970 to 2261, the range of 64-bit nanoseconds, which also reach back to 1678
_CENTURY = 36_524  # minimum number of days in a hundred years
_CYCLE = date(401, 1, 1).toordinal() - 1  # days in 400 years, after which the calendar repeats
_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_SECONDS = {"day": DAY, "hour": 3600}
_TIME = r"(\d{2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?(?:Z|[+-]\d{2}(?::?\d{2}){0,2})?"
# Times of 64 bits have years of at most twelve digits.
_ISO = re.compile(rf"([+-]?\d{{4,12}})-(\d{{2}})-(\d{{2}})(?:[T ]{_TIME})?", re.ASCII)


@dataclass(frozen=True, init=False, repr=False)
class DateBins(Bins):
    """Bins of a variable of dates, cut at public dates.

    A bin holds the days from its lower edge up to, but not including, the upper one; the last bin also holds its upper
    edge. Dates are treated as numbers of days since 1970-01-01, for means, quantiles and synthetic dates. A time is in
    the bin of its day in its column's time zone; DuckDB's and Spark's columns have that of the session.

    Parameters
    ----------
    edges : iterable
        Strictly increasing dates: ISO texts such as ``"2024-03-01"``, `datetime.date`, `pandas.Timestamp`, or numbers
        of days since 1970-01-01. The first may be ``-inf``, the last ``inf``. Between two dates, ``"month"``,
        ``"quarter"`` or ``"year"`` cuts where each of them begins.
    labels : iterable of str, optional
        One name for each bin. By default ``"2024"``, ``"2024-Q1"`` or ``"2024-03"`` where a bin is a year, a quarter or
        a month, and otherwise ``"2024-03-01_to_2024-03-15"``, ``"before_2024-03-01"`` and ``"2024-03-01_or_later"``.
    decimals : 0
        Dates are whole days.
    found : Guarantee, optional
    detail : int
        See :class:`Bins`.
    format : str, optional
        How texts write the dates, in the letters of `datetime.strptime`, such as ``"%d/%m/%Y"``, ``"%Y%m%d"`` or
        ``"%b %Y"``; by default as in ISO. No other form is read, and nothing is guessed: years of two digits need
        finite edges within a hundred years. Edges may be written so, too. See :class:`DateFormat`.

    Raises
    ------
    SchemaError
        If an edge is not a date, or as for :class:`Bins`.

    Examples
    --------
    >>> DateBins(["2023-01-01", "year", "2024-01-01", "quarter", "2024-07-01", "inf"]).labels
    ('2023', '2024-Q1', '2024-Q2', '2024-07-01_or_later')
    """

    format: str | None = field(default=None, compare=False)
    kind: ClassVar[str] = "date"
    span: ClassVar[tuple[float, float]] = (-float(_DRAWN), float(_DRAWN))
    limits: ClassVar[tuple[float, float]] = (float(_MIN), float(_MAX))
    unit: ClassVar[int] = DAY
    """Seconds in one of the numbers that stand for dates."""
    _periods: ClassVar[tuple[str, ...]] = tuple(_MONTHS)
    _example: ClassVar[str] = "2024-03-01"

    def __init__(
        self,
        edges: Iterable[Any],
        labels: Iterable[str] | None = None,
        decimals: int | None = 0,
        found: Guarantee = DECLARED,
        detail: int = DETAIL,
        format: str | None = None,
    ) -> None:
        if decimals not in (0, None):
            raise SchemaError(f"Bins of {self.kind}s have no decimals, got decimals={decimals!r}.")
        form, given = self._checked_format(format), listed(edges, "Bins: edges")
        if form is not None and form.has_century:
            read = {edge: form.seconds(edge) for edge in given if isinstance(edge, str)}
            given = [edge if (seconds := read.get(edge)) is None else seconds / self.unit for edge in given]
        super().__init__(self._cut(given), labels, 0, found, detail)
        settle(self, format=format)
        if form is not None:
            self._require_complete(form)

    def __repr__(self) -> str:
        form = "" if self.format is None else f", format={self.format!r}"
        return f"{type(self).__name__}(edges={self.listed_edges()}, labels={list(self.labels)}{form})"

    @classmethod
    def _label(cls, low: float, high: float) -> str:
        if math.isinf(low) or math.isinf(high):
            if math.isinf(low):
                return "any" if math.isinf(high) else f"before_{cls._iso(high)}"
            return f"{cls._iso(low)}_or_later"
        first = cls._moment(low)
        for period in (*_MONTHS, *_SECONDS):
            if first == _begin(first, period) and high * cls.unit == _end(first, period):
                return _name(first, period)
        return f"{cls._iso(low)}_to_{cls._iso(high)}"

    @classmethod
    def _moment(cls, number: float) -> datetime:
        """Return the time of the nearest whole number, within the years that Python supports."""
        seconds = min(max(round(number) * cls.unit, _MIN * DAY), (_MAX + 1) * DAY - 1)
        return datetime(1970, 1, 1) + timedelta(seconds=seconds)

    @classmethod
    def _iso(cls, number: float) -> str:
        return cls._moment(number).date().isoformat()

    @classmethod
    def _cut(cls, edges: list[Any]) -> Iterator[float]:
        """Replace the name of a period between two edges by the beginnings of all such periods between them."""
        for position, edge in enumerate(edges):
            if not isinstance(edge, str) or edge not in cls._periods:
                yield cls.edge(edge)
                continue
            ends = edges[position - 1 : position] + edges[position + 1 : position + 2]
            low, high = map(cls.edge, ends) if len(ends) == 2 else (math.inf, math.inf)
            if not (math.isfinite(low) and math.isfinite(high)):
                raise SchemaError(
                    f"Bins of {cls.kind}s: {edge!r} cuts what is between two {cls.kind}s, and stands between them."
                )
            start = _end(cls._moment(low), edge) / cls.unit
            while start < high:
                yield start
                start = _end(cls._moment(start), edge) / cls.unit

    @classmethod
    def edge(cls, edge: Any) -> float:
        """Return the number of an edge; infinite ones may be texts."""
        given = str(edge.astype("datetime64[s]")) if isinstance(edge, np.datetime64) else edge
        seconds = text_seconds(given) if isinstance(given, str) else None
        if isinstance(given, date) and 1 <= given.year <= 9999:
            seconds = seconds_of(given)
        number: Any = given if seconds is None else seconds / cls.unit
        if given in ("inf", "-inf"):
            number = float(given)
        numeric = isinstance(number, (int, float, np.integer, np.floating)) and not isinstance(number, bool)
        if not numeric or not (math.isinf(number) or (number == int(number) and _is_python(number * cls.unit))):
            times = " Times of a day are edges of TimeBins." if seconds is not None and seconds % DAY else ""
            raise SchemaError(
                f"Bins of {cls.kind}s: an edge is one such as {cls._example!r}, inf or -inf; between two of them may "
                f"stand {', '.join(map(repr, cls._periods))}. Got {edge!r}.{times}"
            )
        return float(number)

    def written(self, number: float, digits: int = 4) -> str:
        """Write a number as texts of the variable do."""
        if not math.isfinite(number):
            return str(number)
        if self.format is None:
            return self._iso(number)
        return date_format(self.format).text(self._moment(number))

    def listed_edges(self) -> list[Any]:
        """Return the edges as files write them, in ISO."""
        return [self._iso(edge) if math.isfinite(edge) else str(edge) for edge in self.edges]

    def number(self, value: str | float) -> int | None:
        """Return the number of a text, or of a number whose digits write a date; None if there is none.

        Examples
        --------
        >>> bins = DateBins(["2023-01-01", "2024-01-01"], format="%Y%m%d")
        >>> bins.number("20230102") == bins.number(20230102) == bins.edges[0] + 1, bins.number("2023-01-02")
        (True, None)
        """
        if self.format is None:
            seconds = text_seconds(value) if isinstance(value, str) else None
        else:
            form, first = date_format(self.format), self.edges[0] * self.unit / DAY
            seconds = form.seconds(value, first) if isinstance(value, str) else form.of_number(value, first)
        return None if seconds is None else seconds // self.unit

    def day(self, value: str | float) -> int | None:
        """Return the days since 1970-01-01 of a text, or of a number whose digits write a date; None if there is none.

        Examples
        --------
        >>> DateBins(["2023-01-01", "2024-01-01"]).day("1970-01-03")
        2
        """
        number = self.number(value)
        return None if number is None else number * self.unit // DAY

    def numbers(self, column: Any) -> np.ndarray[Any, Any]:
        """Return the numbers of a pandas column of dates, NaN where it has none."""
        cells = column.astype(object).where(column.notna(), None).tolist()
        numbers = [
            seconds_of(cell) // self.unit if isinstance(cell, date) else cell and self.number(cell) for cell in cells
        ]
        return np.array(numbers, dtype=np.float64)

    def value(self, number: float) -> Any:
        """Return a mean or quantile as a timestamp, as pandas gives the mean of dates."""
        import pandas as pd

        return pd.Timestamp(np.datetime64(round(number * self.unit), "s"))

    def number_of(self, value: Any) -> float:
        """Return the number of a timestamp: the inverse of :meth:`value`.

        Examples
        --------
        >>> bins = DateBins(["2023-01-01", "2024-01-01"])
        >>> bins.number_of(bins.value(19358.5))
        19358.5
        """
        return float(value.timestamp() / self.unit)

    @classmethod
    def _checked_format(cls, format: Any) -> DateFormat | None:
        if format is None:
            return None
        if not isinstance(format, str):
            raise SchemaError(
                f"Bins of {cls.kind}s: a format is a text such as '%d/%m/%Y', got {type(format).__name__}."
            )
        try:
            return date_format(format)
        except ValueError as error:
            raise SchemaError(f"Bins of {cls.kind}s: {error}") from None

    def _require_complete(self, form: DateFormat) -> None:
        """Refuse a format that leaves out what the edges need."""
        if not form.has_century and not self.edges[-1] - self.edges[0] < _CENTURY * DAY / self.unit:
            raise SchemaError(
                f"Bins of {self.kind}s: the years of {form.pattern!r} have two digits, whose century is known only "
                "between finite edges that span less than a hundred years."
            )


@dataclass(frozen=True, init=False, repr=False)
class TimeBins(DateBins):
    """Bins of a variable of dates with times of the day, cut at public times.

    As :class:`DateBins`, in seconds where those have days: a bin holds the times from its lower edge up to, but not
    including, the upper one. A time is read as the calendar and the clock of its column's time zone show it; fractions
    of a second are dropped, and a date is its midnight.

    Parameters
    ----------
    edges : iterable
        Strictly increasing times: ISO texts such as ``"2024-03-01 08:00"``, `datetime.datetime`, `pandas.Timestamp`, or
        numbers of seconds since 1970-01-01. The first may be ``-inf``, the last ``inf``. Between two times, ``"hour"``,
        ``"day"``, ``"month"``, ``"quarter"`` or ``"year"`` cuts where each of them begins.
    labels : iterable of str, optional
        One name for each bin. By default ``"2024-03-01T08h"`` where a bin is an hour, names as for :class:`DateBins`
        where it is a day, a month or longer, and otherwise ``"2024-03-01T08:30:00_to_2024-03-01T12:00:00"``.
    decimals : 0
        Times are whole seconds.
    found : Guarantee, optional
    detail : int
        See :class:`Bins`.
    format : str, optional
        See :class:`DateBins`; such as ``"%d/%m/%Y %H:%M"``.

    Raises
    ------
    SchemaError
        If an edge is not a time, or as for :class:`Bins`.

    Examples
    --------
    >>> TimeBins(["2024-03-01 22:00", "hour", "2024-03-02", "day", "2024-03-04"]).labels
    ('2024-03-01T22h', '2024-03-01T23h', '2024-03-02', '2024-03-03')
    """

    kind: ClassVar[str] = "datetime"
    span: ClassVar[tuple[float, float]] = (-float(_DRAWN * DAY), float(_DRAWN * DAY))
    limits: ClassVar[tuple[float, float]] = (float(_MIN * DAY), float((_MAX + 1) * DAY - 1))
    unit: ClassVar[int] = 1
    _periods: ClassVar[tuple[str, ...]] = (*_MONTHS, *_SECONDS)
    _example: ClassVar[str] = "2024-03-01 08:00"

    @classmethod
    def _iso(cls, number: float) -> str:
        return cls._moment(number).isoformat()

    def _require_complete(self, form: DateFormat) -> None:
        if not form.has_time:
            raise SchemaError(f"Bins of datetimes: {form.pattern!r} writes no hours: add %H:%M, or use DateBins.")
        super()._require_complete(form)


DATED: dict[str, type[DateBins]] = {bins.kind: bins for bins in (DateBins, TimeBins)}
"""Bins of dates and times by their type in a Table Schema."""


def iso_day(text: str) -> int | None:
    """Return the days since 1970-01-01 of a text that begins with an ISO date, as a time of that day may follow."""
    seconds = text_seconds(text)
    return seconds // DAY if seconds is not None and _is_python(seconds) else None


def text_seconds(text: str) -> int | None:
    """Return the seconds since 1970-01-01 of an ISO date or time, of years before 1 and after 9999 too.

    The seconds follow the calendar and the clock where the text was written: an offset from UTC is not subtracted.
    """
    result = _ISO.fullmatch(text)
    if result is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in result.groups())
    if hour > 23 or minute > 59 or second > 60:
        return None
    try:
        return civil_day(year, month, day) * DAY + hour * 3600 + minute * 60 + min(second, 59)  # a leap second
    except ValueError:  # such as February 30
        return None


def civil_day(year: int, month: int, day: int) -> int:
    """Return the days since 1970-01-01 of a day of any year; ValueError if the year has no such day."""
    cycles, year = divmod(year - 1, 400)
    return date(year + 1, month, day).toordinal() + cycles * _CYCLE - _EPOCH


def seconds_of(value: date) -> int:
    """Return the seconds since 1970-01-01 of a date or a time, by the calendar and the clock where it was written.

    No method of a class derived from `date` is called, since a record with one that raises would stop the whole read.
    """
    days = date.toordinal(value) - _EPOCH
    return days * DAY + (_clock(value) if isinstance(value, datetime) else 0)


def _clock(value: datetime) -> int:
    hour, minute, second = (part.__get__(value) for part in (datetime.hour, datetime.minute, datetime.second))
    return int(hour * 3600 + minute * 60 + second)


def iso(number: float) -> str:
    """Write a number of days since 1970-01-01 as an ISO date, that of the nearest day."""
    return DateBins._iso(number)


def _is_python(seconds: float) -> bool:
    """Whether Python supports the day of a time."""
    return _MIN * DAY <= seconds < (_MAX + 1) * DAY


def _begin(moment: datetime, period: str) -> datetime:
    """Return when the period that holds a time begins."""
    if period in _MONTHS:
        return datetime(moment.year, moment.month - (moment.month - 1) % _MONTHS[period], 1)
    return moment.replace(hour=0 if period == "day" else moment.hour, minute=0, second=0)


def _end(moment: datetime, period: str) -> float:
    """Return when the next period begins, in seconds since 1970-01-01; infinite beyond the calendar."""
    begin = _begin(moment, period)
    if period in _SECONDS:
        return seconds_of(begin) + _SECONDS[period]
    year, month = divmod(begin.year * 12 + begin.month - 1 + _MONTHS[period], 12)
    return float(seconds_of(date(year, month + 1, 1))) if year <= date.max.year else math.inf


def _name(begin: datetime, period: str) -> str:
    """Name the period that begins at a time."""
    names = {"year": "", "quarter": f"-Q{begin.month // 3 + 1}", "month": f"-{begin.month:02}"}
    if period in names:
        return f"{begin.year:04}{names[period]}"
    return begin.date().isoformat() + ("" if period == "day" else f"T{begin.hour:02}h")
