"""Declaration of a CSV file: its format is stated and never guessed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from pgmpy_dp.schema import CsvFormat, Schema

CSV_ENDINGS = tuple(f".csv{compression}" for compression in ("", ".gz", ".bz2", ".xz", ".zst"))
"""Endings of the names of CSV files that are read from a path alone."""


@dataclass(frozen=True)
class CsvFile:
    """A CSV file with a header line, in a declared format.

    Parameters
    ----------
    path : str or path
        Compressed if its name ends in .gz, .bz2, .xz or .zst (which needs PyArrow).
    delimiter, encoding, strip, decimal
        As in :class:`~pgmpy_dp.CsvFormat`. They apply to this file, whatever the schema declares; a path alone is read
        in the format of the schema.

    Raises
    ------
    ValueError
        If the delimiter or the encoding is invalid.

    Notes
    -----
    Files are read strictly by RFC 4180: every record has as many fields as the header; all lines end like the header,
    with LF or CR LF; a field with a delimiter, a quotation mark or an end of line is quoted, and quotation marks in it
    are doubled. Other files are refused, and so are those with a record of more than 16 MiB. Blanks belong to the text
    unless they are stripped. An empty field is a missing value unless the empty text is a state.

    Examples
    --------
    >>> CsvFile("visits.csv", delimiter=";", encoding="latin-1").delimiter
    ';'
    """

    path: Path
    delimiter: str = ","
    encoding: str = "utf-8"
    strip: bool = False
    decimal: str = "."

    def __init__(
        self,
        path: str | os.PathLike[str],
        delimiter: str = ",",
        encoding: str = "utf-8",
        *,
        strip: bool = False,
        decimal: str = ".",
    ) -> None:
        checked = CsvFormat(delimiter, encoding, strip, decimal)
        object.__setattr__(self, "path", Path(path))
        object.__setattr__(self, "delimiter", checked.delimiter)
        object.__setattr__(self, "encoding", checked.encoding)
        object.__setattr__(self, "strip", checked.strip)
        object.__setattr__(self, "decimal", checked.decimal)


def declared_file(path: str | os.PathLike[str], schema: Schema) -> CsvFile:
    """Return a CSV file in the format that the schema declares."""
    declared = schema.csv
    return CsvFile(path, declared.delimiter, declared.encoding, strip=declared.strip, decimal=declared.decimal)
