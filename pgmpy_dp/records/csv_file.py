"""What must be known of a CSV file to read it is declared, and never guessed."""

from __future__ import annotations

import codecs
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CSV_ENDINGS = tuple(f".csv{compression}" for compression in ("", ".gz", ".bz2", ".xz", ".zst"))
"""How the names of CSV files end that are read from a path alone."""


@dataclass(frozen=True)
class CsvFile:
    """A CSV file has a header line, and what must be known to read it is declared and never guessed.

    Parameters
    ----------
    path : str or path
        Compressed if its name ends in .gz, .bz2, .xz or .zst (which needs PyArrow).
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
        If the delimiter or the encoding is of another kind.

    Notes
    -----
    Files are read by RFC 4180 to the letter: every record has as many fields as the header; lines end as the header
    does, with LF or CR LF; a field with a delimiter, a quotation mark or an end of line is quoted, and quotation marks
    in it are doubled. Other files are refused. Blanks belong to the text, unless they are stripped. An empty field is a
    missing value, unless the empty text is a state.

    Examples
    --------
    >>> CsvFile("visits.csv", delimiter=";", encoding="latin-1").delimiter
    ';'
    """

    path: Path
    delimiter: str = ","
    encoding: str = "utf-8"
    strip: bool = False

    def __init__(
        self, path: str | os.PathLike[str], delimiter: str = ",", encoding: str = "utf-8", *, strip: bool = False
    ) -> None:
        if not isinstance(delimiter, str) or len(delimiter) != 1 or not "\0" < delimiter < "\x80":
            raise ValueError(f"delimiter must be one character of ASCII, such as ';' or '\\t', got {delimiter!r}.")
        if delimiter in '"\r\n':
            raise ValueError(f"delimiter {delimiter!r} quotes fields or ends lines: name the one that parts fields.")
        object.__setattr__(self, "path", Path(path))
        object.__setattr__(self, "delimiter", delimiter)
        object.__setattr__(self, "encoding", _checked_encoding(encoding))
        if not isinstance(strip, bool):
            raise ValueError(f"strip must be True or False, got {strip!r}.")
        object.__setattr__(self, "strip", strip)


def _checked_encoding(encoding: Any) -> str:
    try:
        name = codecs.lookup(encoding).name
    except (LookupError, TypeError):
        raise ValueError(f"encoding {encoding!r} is not known: name one such as 'utf-8' or 'latin-1'.") from None
    if name in ("utf-8", "utf-8-sig"):
        return "utf-8"
    try:
        ascii_alone = bytes(range(128)).decode(name) == "".join(map(chr, range(128)))
        single = all(bytes([byte, 65]).decode(name, "replace")[1:] == "A" for byte in range(128, 256))
    except (UnicodeError, LookupError):
        ascii_alone = single = False
    if not (ascii_alone and single):
        raise ValueError(
            f"encoding {encoding!r} writes some characters with bytes that mean commas or quotes alone: save the file "
            "as UTF-8."
        )
    return name
