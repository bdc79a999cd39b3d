"""Decoding of a CSV file to UTF-8, before it is split into records.

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
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.records.csv_file import CsvFile
from pgmpy_dp.schema.csv_format import byte_table

_CHUNK_BYTES = 2**20


def opened(file: CsvFile) -> Any:
    """Open a file for reading in UTF-8; distinct invalid byte sequences stay invalid and distinct."""
    handle = _uncompressed(file.path)
    return handle if file.encoding == "utf-8" else _Decoded(handle, file)


class _Decoded:
    """A file whose bytes are decoded as they are read."""

    def __init__(self, handle: Any, file: CsvFile) -> None:
        self._handle, self._file = handle, file
        self._decode, self._ready, self._last = _decoder(file.encoding), b"", False

    def __enter__(self) -> _Decoded:
        return self

    def __exit__(self, *error: object) -> None:
        self._handle.close()

    def read(self, size: int) -> bytes:
        """Read at most `size` bytes of UTF-8, and none only at the end."""
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


def _decoder(encoding: str) -> Callable[[bytes, bool], str]:
    table = byte_table(encoding)
    if table is None:
        return codecs.getincrementaldecoder(encoding)("surrogatepass").decode
    return lambda chunk, last: codecs.charmap_decode(chunk, "strict", table)[0]


def _uncompressed(path: Path) -> Any:
    name = path.name.lower()
    if name.endswith(".gz"):
        return gzip.open(path, "rb")
    if name.endswith(".bz2"):
        return bz2.open(path, "rb")
    if name.endswith(".xz"):
        return lzma.open(path, "rb")
    if name.endswith(".zst"):
        import pyarrow

        return pyarrow.input_stream(str(path), compression="zstd")
    return path.open("rb")
