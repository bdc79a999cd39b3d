"""How dates are written in texts, in the letters of `datetime.strptime`: it is declared, and nothing is guessed."""

from __future__ import annotations

import calendar
import math
import re
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property, lru_cache

DAY = 86_400
"""Seconds of a day."""

_EPOCH = date(1970, 1, 1).toordinal()
_MONTHS = [name.lower() for name in calendar.month_name]
_SHORT = [name.lower() for name in calendar.month_abbr]
_DIGITS = {"Y": 4, "y": 2, "m": 2, "d": 2, "H": 2, "I": 2, "M": 2, "S": 2}
_LAST = {"H": 23, "M": 59, "S": 59}
_TOKEN = re.compile(r"%(.)|[^%]+|%\Z", re.DOTALL)


@dataclass(frozen=True)
class DateFormat:
    """A form in which dates are written.

    Parameters
    ----------
    pattern : str
        With ``%Y`` or ``%y``, ``%m``, ``%b`` or ``%B``, and ``%d``; without the latter a month stands for its first
        day, and without either a year. Times are ``%H`` or ``%I`` with ``%p``, ``%M``, ``%S`` and ``%f``. Names of
        months are English. Days and months may have one digit, unless they stand beside other digits.

    Raises
    ------
    ValueError
        If the pattern lacks the year, the month of a day or the half of a day, or contains one of them twice.

    Examples
    --------
    >>> german = DateFormat("%d.%m.%Y")
    >>> german.seconds("31.1.2024"), german.seconds("2024-01-31"), german.text(datetime(2024, 1, 31))
    (1706659200, None, '31.01.2024')
    """

    pattern: str

    def __post_init__(self) -> None:
        letters = [letter for letter in _letters(self.pattern) if letter and letter != "%"]
        names = ["y" if letter == "Y" else "m" if letter in "bB" else letter for letter in letters]
        known = {"y", "m", "d", "H", "I", "p", "M", "S", "f"}
        complete = "y" in names and ("m" in names or "d" not in names) and ("I" in names) == ("p" in names)
        if not complete or not {*names} <= known or len({*names}) < len(names) or {"H", "I"} <= {*names}:
            raise ValueError(
                "a format of dates has %Y or %y for years, %m, %b or %B for months and %d for days, each once, "
                f"such as '%d/%m/%Y'; times may follow, such as '%H:%M:%S'. Got {self.pattern[:40]!r}."
            )

    @property
    def has_century(self) -> bool:
        """Whether years have four digits."""
        return "%Y" in self.pattern

    @property
    def has_time(self) -> bool:
        """Whether hours are written."""
        return not {"H", "I"}.isdisjoint(_letters(self.pattern))

    @cached_property
    def width(self) -> int | None:
        """The number of digits, if dates are written in digits alone; None otherwise."""
        letters = _letters(self.pattern)
        return sum(_DIGITS[letter] for letter in letters) if {*letters} <= _DIGITS.keys() else None

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        letters, texts = _letters(self.pattern), [result[0] for result in _TOKEN.finditer(self.pattern)]
        parts = []
        for position, (letter, text) in enumerate(zip(letters, texts, strict=True)):
            before, after = texts[max(position - 1, 0) : position], texts[position + 1 : position + 2]
            beside = [*(part[-1] for part in before if part[0] != "%"), *(part[0] for part in after if part[0] != "%")]
            numbers = {*letters[max(position - 1, 0) : position], *letters[position + 1 : position + 2]} & {
                *_DIGITS,
                "f",
            }
            touching = bool(numbers) or any(character.isdigit() for character in beside)
            if letter in ("", "%"):
                parts.append(re.escape(text if letter == "" else "%"))
            elif letter in "bB":
                parts.append(rf"(?P<{letter}>[a-z]+)")
            elif letter in "pf":
                parts.append(r"(?P<p>[ap]m)" if letter == "p" else r"(?P<f>\d{1,9})")
            else:
                exact = touching or letter in "Yy"
                parts.append(rf"(?P<{letter}>\d{{{_DIGITS[letter] if exact else '1,2'}}})")
        return re.compile("".join(parts), re.ASCII | re.IGNORECASE)

    @property
    def expression(self) -> str:
        """The regular expression of dates in this format, for JavaScript, with a group for each letter."""
        return self._expression.pattern.replace("(?P<", "(?<")

    def seconds(self, text: str, first: float | None = None) -> int | None:
        """Return the seconds since 1970-01-01 of a text; None if it writes no date in this form.

        A year of two digits is that of the hundred years from the day `first` on.
        """
        result = self._expression.fullmatch(text)
        if result is None:
            return None
        parts = result.groupdict()
        if any(int(parts.get(letter) or 0) > maximum for letter, maximum in _LAST.items()):
            return None
        if "I" in parts and not 1 <= int(parts["I"]) <= 12:
            return None
        name = (parts.get("b") or parts.get("B") or "").lower()
        names = _SHORT if "b" in parts else _MONTHS
        month = int(parts["m"]) if "m" in parts else (names.index(name) if name in names[1:] else 0) if name else 1
        days = self._day_of(parts, month, int(parts.get("d") or 1), first)
        hour = int(parts["I"]) % 12 + 12 * (parts["p"].lower() == "pm") if "I" in parts else int(parts.get("H") or 0)
        minute, second = (int(parts.get(letter) or 0) for letter in "MS")
        return None if days is None else days * DAY + hour * 3600 + minute * 60 + second

    @staticmethod
    def _day_of(parts: dict[str, str], month: int, day: int, first: float | None) -> int | None:
        if "Y" in parts:
            return _days(int(parts["Y"]), month, day)
        if first is None:
            return None
        start = date.fromordinal(math.floor(first) + _EPOCH).year
        year = start + (int(parts["y"]) - start) % 100
        days = _days(year, month, day)
        return days if days is not None and days >= math.floor(first) else _days(year + 100, month, day)

    def of_number(self, number: float, first: float | None = None) -> int | None:
        """Return the seconds of a whole number whose digits write a date, as frames hold 20240131."""
        width = self.width
        if width is None or not 0 <= number < 10**width or number != int(number):
            return None
        return self.seconds(f"{int(number):0{width}}", first)

    def text(self, time: datetime) -> str:
        """Write a time."""
        half = {"p": "AM" if time.hour < 12 else "PM", "I": f"{(time.hour - 1) % 12 + 1:02}"}
        clock = {"H": f"{time.hour:02}", "M": f"{time.minute:02}", "S": f"{time.second:02}", "f": "000000", "%": "%"}
        named = {"b": calendar.month_abbr[time.month], "B": calendar.month_name[time.month]}
        digits = {"Y": f"{time.year:04}", "y": f"{time.year % 100:02}", "m": f"{time.month:02}", "d": f"{time.day:02}"}
        parts = half | clock | named | digits
        return _TOKEN.sub(lambda result: parts.get(result[1], result[0]), self.pattern)


date_format = lru_cache(maxsize=256)(DateFormat)


def _letters(pattern: str) -> list[str]:
    """List the letters after each percent sign; an empty text for other characters between them."""
    return [result[1] or ("" if result[0] != "%" else "?") for result in _TOKEN.finditer(pattern)]


def _days(year: int, month: int, day: int) -> int | None:
    try:
        return date(year, month, day).toordinal() - _EPOCH
    except ValueError:  # such as February 30
        return None
