"""CSV files in a declared format, and their decoding to UTF-8, before they are split into records.

How a character is decoded does not depend on other records. In an encoding with one byte per character, each byte is
looked up by itself. In UTF-16 and UTF-32, each two or four bytes from the beginning of the file are a character or half
of one. The halves of a pair are adjacent, with nothing between them that could end a record, and an unpaired half stays
unpaired. UTF-8 is passed on unchanged, since no byte of a longer character is that of a delimiter, a quotation mark or
an end of line. A file that cannot be decoded at all is refused, like one that violates the grammar.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow

from pgmpy_dp._files import path_of
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy.checks import settle
from pgmpy_dp.schema import CsvFormat, Schema
from pgmpy_dp.schema.csv_format import byte_table

_CHUNK_BYTES = 2**20

CSV_ENDINGS = tuple(f".csv{compression}" for compression in ("", ".gz", ".bz2", ".xz", ".zst"))
"""Endings of the names of CSV files that are read from a path alone."""


@dataclass(frozen=True)
class CsvFile:
    """A CSV file with a header line, in a declared format.

    Parameters
    ----------
    path : str or path
        Compressed if its name ends in .gz, .bz2, .xz or .zst.
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
    strip: bool = field(default=False, kw_only=True)
    decimal: str = field(default=".", kw_only=True)

    def __post_init__(self) -> None:
        checked = CsvFormat(self.delimiter, self.encoding, self.strip, self.decimal)
        settle(self, path=path_of(self.path), encoding=checked.encoding)


def declared_file(path: Path, schema: Schema) -> CsvFile:
    """Return a CSV file in the format that the schema declares."""
    declared = schema.csv
    return CsvFile(path, declared.delimiter, declared.encoding, strip=declared.strip, decimal=declared.decimal)


def opened(file: CsvFile) -> Any:
    """Open a file for reading in UTF-8; distinct invalid byte sequences stay invalid and distinct."""
    suffix = file.path.suffix.lower()
    opening: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    if suffix == ".zst":
        handle = pyarrow.input_stream(str(file.path), compression="zstd")
    else:
        handle = opening.get(suffix, open)(file.path, "rb")
    return handle if file.encoding == "utf-8" else _Decoded(handle, file)


class _Decoded:
    """A file whose bytes are decoded as they are read."""

    def __init__(self, handle: Any, file: CsvFile) -> None:
        self._handle, self._file, self._ready, self._last = handle, file, b"", False
        table = byte_table(file.encoding)
        decoder = codecs.getincrementaldecoder(file.encoding)("surrogatepass")
        self._decode = decoder.decode if table is None else lambda b, _: codecs.charmap_decode(b, "strict", table)[0]

    def __enter__(self) -> _Decoded:
        return self

    def __exit__(self, *error: object) -> None:
        self._handle.close()

    def read(self, size: int) -> bytes:
        """Read at most `size` bytes of UTF-8; no bytes mean the end of the file."""
        while not self._ready and not self._last:
            chunk = self._handle.read(_CHUNK_BYTES)
            self._last = not chunk
            self._ready = self._decoded(chunk).encode("utf-8", "surrogatepass")
        read, self._ready = self._ready[:size], self._ready[size:]
        return read

    def _decoded(self, chunk: bytes) -> str:
        try:
            return self._decode(chunk, self._last)
        except UnicodeError:
            pass
        # Raised outside of the handler, so that it does not carry the other error, which quotes bytes of records.
        encoding = self._file.encoding
        raise SchemaError(
            f"{self._file.path}: not a file in {encoding}: it has no byte order mark, where utf-16 and utf-32 need one "
            "(utf-16-le does not), or bytes that encode no character. Declare its encoding, or save it as UTF-8."
        )
