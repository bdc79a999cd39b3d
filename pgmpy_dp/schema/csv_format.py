"""Public format of the CSV files of records: it is declared rather than guessed."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from functools import cache
from typing import Any

from pgmpy_dp.privacy.checks import settle
from pgmpy_dp.schema.date_format import date_format


@dataclass(frozen=True)
class CsvFormat:
    """Delimiter, encoding, treatment of blanks, decimal mark and form of dates in a CSV file.

    Parameters
    ----------
    delimiter : str
        The one ASCII character that separates fields.
    encoding : str
        UTF-8, UTF-16 or UTF-32, or an encoding with one byte per character, such as latin-1, cp1252 and cp037. UTF-8
        may have a byte order mark; utf-16 and utf-32 need one, and utf-16-le and the like have none. Bytes that do not
        encode a character count as an undeclared value.
    strip : bool
        Whether to strip blanks (spaces) from the ends of fields, quoted or not, and of column names.
    decimal : {".", ","}
        The decimal mark of numbers. Numbers with the other mark are undeclared values, as are marks of thousands.
    dates : str, optional
        How dates are written, such as ``"%d/%m/%Y"``: the `format` of all :class:`DateBins` without one of their own.

    Raises
    ------
    ValueError
        If an argument is of the wrong kind.

    Examples
    --------
    >>> CsvFormat(";", "latin-1").encoding
    'iso8859-1'
    """

    delimiter: str = ","
    encoding: str = "utf-8"
    strip: bool = False
    decimal: str = "."
    dates: str | None = None

    def __post_init__(self) -> None:
        delimiter = self.delimiter
        if not isinstance(delimiter, str) or len(delimiter) != 1 or not "\0" < delimiter < "\x80":
            raise ValueError(
                f"delimiter must be one character of ASCII, such as ';' or '\\t', got {shortened(delimiter)}."
            )
        if delimiter in '"\r\n':
            raise ValueError(f"delimiter {delimiter!r} quotes fields or ends lines: name the one between fields.")
        settle(self, encoding=_checked_encoding(self.encoding))
        if not isinstance(self.strip, bool):
            raise ValueError(f"strip must be True or False, got {shortened(self.strip)}.")
        if self.strip and delimiter == " ":
            raise ValueError("delimiter ' ' is a blank, and strip removes blanks: declare only one of them.")
        if self.decimal not in (".", ","):
            raise ValueError(f"decimal is the mark '.' or ',', got {shortened(self.decimal)}.")
        if self.dates is not None:
            try:
                date_format(self.dates if isinstance(self.dates, str) else shortened(self.dates))
            except ValueError as error:
                raise ValueError(f"dates is not understood: {error}") from None
        if self.decimal == delimiter:
            raise ValueError(f"delimiter and decimal cannot both be {delimiter!r}: files with decimal commas use ';'.")

    def refusal(self, text: str) -> str | None:
        """Return why a file in this format cannot hold a text; None if it can.

        Examples
        --------
        >>> CsvFormat(encoding="latin-1").refusal("Łódź")
        'cannot be written in iso8859-1'
        """
        if self.strip and text != text.strip(" "):
            return "has blanks at its ends, which are stripped"
        try:
            text.encode(self.encoding)
        except UnicodeEncodeError:
            return f"cannot be written in {self.encoding}"
        return None


_WIDE = ("utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")


def _checked_encoding(encoding: Any) -> str:
    try:
        name = codecs.lookup(encoding).name.removesuffix("-sig")
    except (LookupError, TypeError, ValueError):
        known = "name one such as 'utf-8' or 'latin-1'"
        raise ValueError(f"encoding {shortened(encoding)} is not known: {known}.") from None
    if name not in _WIDE and byte_table(name) is None:
        raise ValueError(
            f"encoding {shortened(encoding)} does not encode each character independently, as UTF-8, UTF-16, UTF-32 "
            "and one-byte encodings do: save the file as UTF-8."
        )
    return name


@cache
def byte_table(encoding: str) -> str | None:
    """Return the characters of all 256 bytes if the encoding writes each character as one byte, else None.

    Every byte is decoded alone, and every character up to U+FFFF is encoded: the characters of the encoding must be
    exactly those of the bytes, and round-trip through one byte each. Bytes without a character get a lone surrogate.
    """
    try:
        alone = [bytes([byte]).decode(encoding, "surrogateescape") for byte in range(256)]
        if any(len(character) != 1 for character in alone):
            return None
        written = "".join(map(chr, range(2**16))).encode(encoding, "ignore")
    except (UnicodeError, LookupError):
        return None
    characters = sorted({character for character in alone if not "\ud800" <= character <= "\udfff"})
    return "".join(alone) if [alone[byte] for byte in written[:257]] == characters else None


def shortened(value: Any) -> str:
    shown = repr(value) if isinstance(value, str | int | float | None) else type(value).__name__
    return shown if len(shown) <= 40 else f"{shown[:40]}..."
