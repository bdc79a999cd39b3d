"""Public bins of dates, which are numbers of days behind their face."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import Any, ClassVar

import numpy as np

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy.guarantee import DECLARED, Guarantee
from pgmpy_dp.schema.bins import DETAIL, Bins
from pgmpy_dp.schema.date_format import DateFormat, date_format
from pgmpy_dp.schema.states import listed

_EPOCH = date(1970, 1, 1).toordinal()
_MIN, _MAX = date.min.toordinal() - _EPOCH, date.max.toordinal() - _EPOCH
_CENTURY = 36_524  # the least number of days of a hundred years
_CYCLE = date(401, 1, 1).toordinal() - 1  # days in 400 years, after which the calendar repeats
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_TIME = r"\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}(?::?\d{2}){0,2})?"
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
    span: ClassVar[tuple[float, float]] = (-106_650.0, 106_650.0)  # 1678 to 2261, which nanoseconds in 64 bits hold
    limits: ClassVar[tuple[float, float]] = (float(_MIN), float(_MAX))

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
            raise SchemaError(f"Bins of dates: dates are whole days, got decimals={decimals!r}.")
        form, given = _checked_format(format), listed(edges, "Bins: edges")
        if form is not None and form.of_centuries:
            read = {edge: form.day(edge) for edge in given if isinstance(edge, str)}
            given = [edge if not isinstance(edge, str) or read[edge] is None else read[edge] for edge in given]
        super().__init__(_cut(given), labels, 0, found, detail)
        object.__setattr__(self, "format", format)

        if form is not None and not form.of_centuries and not self.edges[-1] - self.edges[0] < _CENTURY:
            raise SchemaError(
                f"Bins of dates: the years of {format!r} have two digits, which say their century only between finite "
                "edges that span less than a hundred years."
            )

    def __repr__(self) -> str:
        form = "" if self.format is None else f", format={self.format!r}"
        return f"DateBins(edges={self.listed_edges()}, labels={list(self.labels)}{form})"

    @staticmethod
    def _label(low: float, high: float) -> str:
        if math.isinf(low) or math.isinf(high):
            if math.isinf(low):
                return "any" if math.isinf(high) else f"before_{iso(high)}"
            return f"{iso(low)}_or_later"
        first = _day(low)
        for name, months in reversed(_MONTHS.items()):
            if first.day == 1 and (first.month - 1) % months == 0 and high == _start(first, months):
                own = {"year": "", "quarter": f"-Q{first.month // 3 + 1}", "month": f"-{first.month:02}"}
                return f"{first.year:04}{own[name]}"
        return iso(low) if high == low + 1 else f"{iso(low)}_to_{iso(high)}"

    def written(self, number: float, digits: int = 4) -> str:
        """Write a number of days as texts of the variable do."""
        if not math.isfinite(number):
            return str(number)
        return iso(number) if self.format is None else date_format(self.format).written(number)

    def listed_edges(self) -> list[Any]:
        """Return the edges as files write them, in ISO."""
        return [iso(edge) if math.isfinite(edge) else str(edge) for edge in self.edges]

    def day(self, value: str | float) -> int | None:
        """Return the days since 1970-01-01 of a text, or of a number whose digits write a date; None if there is none.

        Examples
        --------
        >>> bins = DateBins(["2023-01-01", "2024-01-01"], format="%Y%m%d")
        >>> bins.day("20230102") == bins.day(20230102) == bins.edges[0] + 1, bins.day("2023-01-02")
        (True, None)
        """
        if isinstance(value, str):
            return written_day(value) if self.format is None else date_format(self.format).day(value, self.edges[0])
        return None if self.format is None else date_format(self.format).of_number(value, self.edges[0])

    def numbers(self, column: Any) -> np.ndarray[Any, Any]:
        """Return the days since 1970-01-01 of a pandas column of dates, NaN where it has none."""
        cells = column.astype(object).where(column.notna(), None).tolist()
        days = [number_of(cell) if isinstance(cell, date) else cell and self.day(cell) for cell in cells]
        return np.array(days, dtype=np.float64)

    def value(self, number: float) -> Any:
        """Return a mean or quantile as a timestamp, as pandas gives the mean of dates."""
        import pandas as pd

        return pd.Timestamp(np.datetime64(round(number * 86_400), "s"))


def _checked_format(format: Any) -> DateFormat | None:
    if format is None:
        return None
    if not isinstance(format, str):
        raise SchemaError(f"Bins of dates: a format is a text such as '%d/%m/%Y', got {type(format).__name__}.")
    try:
        return date_format(format)
    except ValueError as error:
        raise SchemaError(f"Bins of dates: {error}") from None


def iso_day(text: str) -> int | None:
    """Return the days since 1970-01-01 of a text that begins with an ISO date, as a time of that day may follow."""
    day = written_day(text)
    return day if day is not None and _MIN <= day <= _MAX else None


def written_day(text: str) -> int | None:
    """Return the days as :func:`iso_day` does, of years before 1 and after 9999 too."""
    result = _ISO.fullmatch(text)
    try:
        return None if result is None else civil_day(*map(int, result.groups()))
    except ValueError:  # such as February 30
        return None


def civil_day(year: int, month: int, day: int) -> int:
    """Return the days since 1970-01-01 of a day of any year; ValueError if the year has no such day."""
    cycles, year = divmod(year - 1, 400)
    return date(year + 1, month, day).toordinal() + cycles * _CYCLE - _EPOCH


def day_of(value: date) -> int:
    """Return the days since 1970-01-01 of a date or a time, by the calendar where it was written.

    No method of a class derived from `date` is called: one that raises would make a record refuse the others.
    """
    return date.toordinal(value) - _EPOCH


def iso(number: float) -> str:
    """Write a number of days since 1970-01-01 as an ISO date, that of the nearest day."""
    return _day(number).isoformat()


def number_of(edge: Any) -> float:
    """Return the days since 1970-01-01 of an edge of bins of dates."""
    if isinstance(edge, np.datetime64):
        edge = str(edge.astype("datetime64[D]"))
    if isinstance(edge, date):
        number: Any = day_of(edge) if 1 <= edge.year <= 9999 else None
    else:
        number = iso_day(edge) if isinstance(edge, str) else edge
        if edge in ("inf", "-inf"):
            number = float(edge)
    whole = isinstance(number, (int, float, np.integer, np.floating)) and not isinstance(number, bool)
    if not whole or not (math.isinf(number) or (number == int(number) and _MIN <= number <= _MAX)):
        raise SchemaError(
            f"Bins of dates: an edge is a date such as '2024-03-01', inf or -inf; between two of them may stand "
            f"{', '.join(map(repr, _MONTHS))}. Got {edge!r}."
        )
    return float(number)


def _cut(edges: list[Any]) -> Iterator[float]:
    """Replace words between dates by the dates at which months, quarters or years begin."""
    for position, edge in enumerate(edges):
        if not isinstance(edge, str) or edge not in _MONTHS:
            yield number_of(edge)
            continue
        ends = edges[position - 1 : position] + edges[position + 1 : position + 2]
        low, high = map(number_of, ends) if len(ends) == 2 else (math.inf, math.inf)
        if not (math.isfinite(low) and math.isfinite(high)):
            raise SchemaError(f"Bins of dates: {edge!r} cuts the days between two dates, and stands between them.")
        start = _start(_day(low), _MONTHS[edge])
        while start < high:
            yield start
            start = _start(_day(start), _MONTHS[edge])


def _start(day: date, months: int) -> float:
    """Return when the next month, quarter or year after a day begins."""
    month = day.month - (day.month - 1) % months + months
    if day.year + (month - 1) // 12 > date.max.year:
        return math.inf
    return float(date(day.year + (month - 1) // 12, (month - 1) % 12 + 1, 1).toordinal() - _EPOCH)


def _day(number: float) -> date:
    return date.fromordinal(min(max(round(number) + _EPOCH, 1), date.max.toordinal()))
