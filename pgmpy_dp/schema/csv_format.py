"""How a CSV file writes its records is public, and is declared rather than guessed."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class CsvFormat:
    """A CSV file has fields between delimiters, characters in an encoding, and blanks that count or do not.

    Parameters
    ----------
    delimiter : str
        The one ASCII character that separates the fields of a line.
    encoding : str
        UTF-8, with or without a byte order mark, or an encoding of one byte a character that extends ASCII, such
        as latin-1 and cp1252. Bytes that are no text in it are an undeclared value.
    strip : bool
        Whether blanks (spaces) at the ends of a field, quoted or not, are no part of it, nor of a column's name.

    Raises
    ------
    ValueError
        If one of them is of another kind.

    Examples
    --------
    >>> CsvFormat(";", "latin-1").encoding
    'iso8859-1'
    """

    delimiter: str = ","
    encoding: str = "utf-8"
    strip: bool = False

    def __post_init__(self) -> None:
        delimiter = self.delimiter
        if not isinstance(delimiter, str) or len(delimiter) != 1 or not "\0" < delimiter < "\x80":
            raise ValueError(
                f"delimiter must be one character of ASCII, such as ';' or '\\t', got {_short(delimiter)}."
            )
        if delimiter in '"\r\n':
            raise ValueError(f"delimiter {delimiter!r} quotes fields or ends lines: name the one that parts fields.")
        object.__setattr__(self, "encoding", _checked_encoding(self.encoding))
        if not isinstance(self.strip, bool):
            raise ValueError(f"strip must be True or False, got {_short(self.strip)}.")
        if self.strip and delimiter == " ":
            raise ValueError("delimiter ' ' is a blank, and strip leaves blanks out: declare one of them.")

    def refusal(self, text: str) -> str | None:
        """Say why a file in this format cannot hold a text, if it cannot.

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


def _checked_encoding(encoding: Any) -> str:
    try:
        name = codecs.lookup(encoding).name
    except (LookupError, TypeError, ValueError):
        known = "name one such as 'utf-8' or 'latin-1'"
        raise ValueError(f"encoding {_short(encoding)} is not known: {known}.") from None
    if name in ("utf-8", "utf-8-sig"):
        return "utf-8"
    try:
        ascii_alone = bytes(range(128)).decode(name) == "".join(map(chr, range(128)))
        single = all(bytes([byte, 65]).decode(name, "replace")[1:] == "A" for byte in range(128, 256))
    except (UnicodeError, LookupError):
        ascii_alone = single = False
    if not (ascii_alone and single):
        raise ValueError(
            f"encoding {_short(encoding)} writes some characters with bytes that mean commas or quotes alone: save the "
            "file as UTF-8."
        )
    return name


def _short(value: Any) -> str:
    shown = repr(value) if isinstance(value, str | int | float | None) else type(value).__name__
    return shown if len(shown) <= 40 else f"{shown[:40]}..."
