"""The characters of a CSV file are decoded before the file is split into records, and handed on in UTF-8.

What a character becomes depends on no other record. In an encoding of one byte a character each byte is looked up by
itself. In UTF-16 and UTF-32 each two or four bytes, counted from the beginning of the file, are a character or half of
one; the halves of a pair stand side by side, with nothing between them that could end a record, and a half alone stays
alone. UTF-8 is handed on as it is, since no character's bytes are those of a delimiter, a quotation mark or an end of
line. A file that cannot be decoded at all is refused, as one is that breaks the grammar.
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
    """Open a file, to be read in UTF-8; bytes that are no character become others that are none, as different."""
    handle = _uncompressed(file.path)
    return handle if file.encoding == "utf-8" else _Decoded(handle, file)


class _Decoded:
    """A file's bytes are decoded as they are read."""

    def __init__(self, handle: Any, file: CsvFile) -> None:
        self._handle, self._file = handle, file
        self._decode, self._ready, self._last = _decoder(file.encoding), b"", False

    def __enter__(self) -> _Decoded:
        return self

    def __exit__(self, *error: object) -> None:
        self._handle.close()

    def read(self, size: int) -> bytes:
        """Read at most so many bytes of UTF-8, and none only at the end."""
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
        # This is raised here and not above, so as not to carry the other error, which quotes bytes of records.
        encoding = self._file.encoding
        raise SchemaError(
            f"{self._file.path}: not a file in {encoding}: it has no byte order mark, where utf-16 and utf-32 need one "
            "and utf-16-le, say, does not, or bytes that are no characters. Declare its encoding, or save it as UTF-8."
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
