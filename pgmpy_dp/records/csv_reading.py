"""Encoding of the records in a CSV file, whose texts are read as the types of value that the schema declares."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, NoReturn

import numpy as np
import pyarrow
import pyarrow.compute
from numpy.typing import NDArray

from pgmpy_dp._progress import progress
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.records import csv_grammar as grammar
from pgmpy_dp.records.columns import (
    Codes,
    Positions,
    Values,
    as_text,
    column_readers,
    objects,
    read_columns,
    require_few,
    smallest_type,
    text_positions,
    variable_codes,
)
from pgmpy_dp.records.csv_decoding import CsvFile, opened
from pgmpy_dp.records.memory import declared_codes
from pgmpy_dp.records.refusals import require_columns
from pgmpy_dp.records.units import require_ids
from pgmpy_dp.records.weights import Weights
from pgmpy_dp.schema import Schema

_BLOCK_BYTES = 2**22
_BLOCK_ROWS = 2**16
_MAX_COLUMNS = 2**16
_MAX_TEXTS, _LONGEST_TEXT = 2**16, 256  # texts of a column that are remembered, which bounds memory if all differ

MAX_RECORD_BYTES = 2**24
"""Most bytes of a record in UTF-8, without the end of its line; a small compressed file could otherwise fill memory."""

_DELIMITERS = (",", ";", "\t", "|")

_PROBLEMS = {
    grammar.QUOTE: 'a quotation mark inside a field without quotes, or text after a closing one: write "" for " and '
    "quote the whole field, or declare the delimiter, which may be another",
    grammar.RETURN: "a carriage return that does not end a line: quote the field that contains it",
    grammar.FEED: "a line feed that does not end a line, where lines end with CR LF: quote the field that contains it",
    grammar.NUL: "a NUL byte: remove it, or declare another encoding",
    grammar.WIDTH: "a record with more or fewer fields than the header: a blank line is such a record, and the "
    "delimiter may differ from the declared one",
    grammar.UNCLOSED: "a quotation mark that is never closed",
    grammar.LONG: f"a record of more than {MAX_RECORD_BYTES:,} bytes, the most that are read: leave out columns of "
    "long texts, or look for a quotation mark that is never closed",
}

_OTHER_FORMAT = (
    "the header must name it letter by letter; if the file has another delimiter, or blanks beside it, use "
    "CsvFile(path, delimiter=..., strip=True)"
)


@dataclass(frozen=True)
class Encoded:
    """A CSV file as it was read."""

    codes: dict[str, Codes]
    ids: Any  # an Arrow array of the texts of a column as bytes, encoded by their numbers
    values: dict[str, Values]
    parts: NDArray[np.int64] | None  # the weight of each row

    @property
    def labels(self) -> NDArray[np.int64] | None:
        """The number of each row's text in the column of ids, whose texts are compared byte by byte."""
        return None if self.ids is None else self.ids.indices.to_numpy().astype(np.int64)

    @property
    def keys(self) -> NDArray[np.object_] | None:
        """The text of each row in that column."""
        return None if self.ids is None else objects(list(map(_text, self.ids.dictionary.to_pylist())))[self.labels]


def encode_csv(
    file: CsvFile,
    schema: Schema,
    variables: Sequence[str],
    column: str | None = None,
    weights: Weights | None = None,
) -> Encoded:
    """Encode a CSV file, block by block, with the texts of a column that identifies units."""
    readers = column_readers(schema, read_columns(schema, variables), file.decimal)
    read = {variable: _remembering(reader.text_position) for variable, reader in readers.items()}
    weigh = None if weights is None else _remembering(partial(weights.text_parts, file.decimal))
    asked = list(dict.fromkeys([*readers, *(name for name in (column, weights and weights.column) if name)]))
    positions: dict[str, list[Positions]] = {variable: [np.zeros(0, dtype=np.int32)] for variable in readers}
    ids, parts = [], [np.zeros(0, dtype=np.int64)]
    for buffer, *ends in _blocks(file, asked):
        texts = {name: _gathered(buffer, *each) for name, *each in zip(asked, *ends, strict=True)}
        for variable, reader in readers.items():
            positions[variable].append(text_positions(texts[variable], read[variable], smallest_type(reader)))
            require_few(variable, reader.numbers or ())
        if column is not None:
            require_ids(bool((pyarrow.compute.binary_length(texts[column]).to_numpy() == 0).any()), column)
            ids += texts[column].dictionary_encode().chunks
        if weights is not None and weigh is not None:
            parts.append(text_positions(texts[weights.column], weigh, np.dtype(np.int64)))
    whole = {variable: np.concatenate(each) for variable, each in positions.items()}
    values = {v: Values.of(v, whole[v], reader) for v, reader in readers.items() if reader.numbers is not None}
    none = pyarrow.array([], pyarrow.large_binary()).dictionary_encode()  # early versions of Arrow need some chunk
    return Encoded(
        variable_codes(declared_codes(whole, readers, schema, file), schema, variables),
        None if column is None else pyarrow.chunked_array(ids or [none]).unify_dictionaries().combine_chunks(),
        values,
        None if weights is None else np.concatenate(parts),
    )


def _text(raw: bytes) -> str:
    """Decode the text of a field."""
    return as_text(raw.replace(b'""', b'"'))


def _gathered(buffer: Any, starts: Any, stops: Any) -> Any:
    """Return the fields of a column as an Arrow array of bytes."""
    ends, texts = map(pyarrow.py_buffer, grammar.gathered(buffer, starts, stops))
    array = pyarrow.LargeBinaryArray.from_buffers(pyarrow.large_binary(), starts.size, [None, ends, texts])
    return pyarrow.chunked_array([array])


def _remembering(read: Callable[[str], int]) -> Callable[[bytes], int]:
    """Remember how the first short texts are read, from one block to the next."""
    known: dict[bytes, int] = {}

    def of_field(raw: bytes) -> int:
        position = known.get(raw)
        if position is None:
            position = read(_text(raw))
            if len(raw) <= _LONGEST_TEXT and len(known) < _MAX_TEXTS:
                known[raw] = position
        return position

    return of_field


def _blocks(file: CsvFile, asked: Sequence[str]) -> Iterator[tuple[Any, Any, Any]]:
    """Yield bytes, and where in them the fields of the wanted columns start and stop, with a row for each column."""
    whole = file.path.stat().st_size
    with (
        opened(file) as handle,
        progress("Reading", "B", whole, scaled=True) as bar,
    ):
        window = _Window(handle, file)
        names, ending = window.header()
        _require_format(names, asked, file)
        positions = np.full(len(names), -1, dtype=np.int64)
        for row, position in enumerate(require_columns(names, asked, advice=_OTHER_FORMAT)):
            positions[position] = row
        starts = np.empty((len(asked), _BLOCK_ROWS), dtype=np.int64)
        stops = np.empty_like(starts)
        while True:
            records, _ = window.split(ending, len(names), positions, starts, stops)
            if records:
                ends = starts[:, :records], stops[:, :records]
                yield window.buffer, *(_stripped(window.buffer, *ends) if file.strip else ends)
            elif not window.read_on():
                return
            bar.update(min(window.consumed, whole) - bar.n)


def _require_format(names: Sequence[str], asked: Sequence[str], file: CsvFile) -> None:
    """Refuse a header that contains all public names if it is read with another delimiter or encoding."""
    if {*asked} <= {*names}:
        return
    header = file.delimiter.join(names)
    for delimiter in _DELIMITERS:
        split = {name.strip(" ") for name in header.split(delimiter)}
        if delimiter != file.delimiter and {*asked} <= split:
            raise SchemaError(
                f"{file.path}: its header is split at {delimiter!r}, and {file.delimiter!r} is declared: "
                f"use Schema(..., csv=CsvFormat({delimiter!r})), or CsvFile(path, {delimiter!r})."
            )
    if {*asked} <= {name.encode("utf-8", "surrogateescape").decode("cp1252", "replace") for name in names}:
        raise SchemaError(
            f"{file.path}: its header is not in {file.encoding}: use Schema(..., csv=CsvFormat(encoding='cp1252'))."
        )


class _Window:
    """The bytes of a file that are being read."""

    def __init__(self, handle: BinaryIO, file: CsvFile) -> None:
        self._handle, self._file = handle, file
        self.buffer, self._start, self._stop = np.zeros(_BLOCK_BYTES, dtype=np.uint8), 0, 0
        self._last, self.consumed = False, 0
        self.read_on()
        if bytes(self.buffer[:3]) == codecs.BOM_UTF8:
            self._start = 3

    def header(self) -> tuple[list[str], int]:
        """Read the names of the columns, and determine how lines end."""
        positions = np.arange(_MAX_COLUMNS)
        starts, stops = np.empty((2, _MAX_COLUMNS, 1), dtype=np.int64)
        while not (result := self.split(grammar.EITHER, -1, positions, starts, stops))[0]:
            if not self.read_on():
                raise SchemaError(f"{self._file.path}: an empty file. Its first line must name the columns.")
        fields = result[1]
        cells = zip(starts[:fields, 0], stops[:fields, 0], strict=True)
        names = [_text(bytes(self.buffer[start:stop])) for start, stop in cells]
        names = [name.strip(" ") for name in names] if self._file.strip else names
        crlf = bytes(self.buffer[max(self._start - 2, 0) : self._start]) == b"\r\n"
        return names, grammar.CRLF if crlf else grammar.LF

    def read_on(self) -> bool:
        """Read more bytes after the rest, into a larger buffer if a record needs it; return whether there were more."""
        if self._last:
            return False
        left = self.buffer[self._start : self._stop]
        if left.size > MAX_RECORD_BYTES + 1:  # the last byte may be the first of CR LF
            self._refuse(grammar.LONG)
        target = self.buffer if left.size <= self.buffer.size // 2 else np.empty(2 * self.buffer.size, dtype=np.uint8)
        target[: left.size] = left.copy()
        self.buffer, self._start, self._stop = target, 0, left.size
        chunk = self._handle.read(target.size - left.size)
        self._last = not chunk
        target[left.size : left.size + len(chunk)] = np.frombuffer(chunk, dtype=np.uint8)
        self._stop += len(chunk)
        self.consumed += len(chunk)
        return True

    def split(self, ending: int, width: int, positions: Any, starts: Any, stops: Any) -> tuple[int, int]:
        """Find the records in the window; return their number and the number of fields of the last."""
        records, start, fields, problem = grammar.split(
            self.buffer,
            self._start,
            self._stop,
            self._last,
            ord(self._file.delimiter),
            ending,
            width,
            MAX_RECORD_BYTES,
            positions,
            starts,
            stops,
        )
        if problem != grammar.SOUND:
            self._refuse(problem)
        self._start = start
        return records, fields

    def _refuse(self, problem: int) -> NoReturn:
        raise SchemaError(
            f"{self._file.path}: not a valid CSV file (RFC 4180). It holds {_PROBLEMS[problem]}. Which record "
            "it is stays private: save the file again, with a program that quotes fields."
        )


def _stripped(buffer: Any, starts: Any, stops: Any) -> tuple[Any, Any]:
    """Move the ends of fields inwards past blanks; how a field changes depends only on its own bytes."""
    starts, stops = starts.copy(), stops.copy()
    for ends, at, step in ((starts, 0, 1), (stops, -1, -1)):
        flat, left = ends.reshape(-1), np.flatnonzero(starts.reshape(-1) < stops.reshape(-1))
        while left.size:
            left = left[buffer[flat[left] + at] == ord(" ")]
            flat[left] += step
            left = left[starts.reshape(-1)[left] < stops.reshape(-1)[left]]
    return starts, stops
