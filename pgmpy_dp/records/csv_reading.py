"""Encoding of the records in a CSV file, whose texts are read as the types of value that the schema declares."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy.coins import random_keys
from pgmpy_dp.records import csv_grammar as grammar
from pgmpy_dp.records.columns import Codes, Positions, column_reader, objects, read_columns, settled, variable_codes
from pgmpy_dp.records.csv_decoding import CsvFile, opened
from pgmpy_dp.records.refusals import require_columns, require_declared
from pgmpy_dp.records.units import require_ids
from pgmpy_dp.records.values import ValueNumbers
from pgmpy_dp.records.weights import Weights
from pgmpy_dp.schema import Schema

_BLOCK_BYTES = 2**22
_BLOCK_ROWS = 2**16
_MAX_COLUMNS = 2**16
# Number of distinct texts, or of their bytes, above which a column's table is emptied. This bounds memory if all texts
# differ.
_MAX_TEXTS = 2**18
_MAX_TEXT_BYTES = 2**26

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
    labels: NDArray[np.int64] | None
    owners: _Texts
    values: dict[str, ValueNumbers]
    parts: NDArray[np.int64] | None


def encode_csv_with_ids(
    file: CsvFile, schema: Schema, variables: Sequence[str], column: str
) -> tuple[dict[str, Codes], NDArray[np.object_]]:
    """Encode a CSV file and return the texts of a column of ids, for tables that are joined; see :func:`encode_csv`."""
    result = encode_csv(file, schema, variables, column)
    return result.codes, result.owners.texts()[result.labels]


def encode_csv(
    file: CsvFile,
    schema: Schema,
    variables: Sequence[str],
    column: str | None = None,
    weights: Weights | None = None,
) -> Encoded:
    """Encode a CSV file, block by block, and label its rows by the texts of a column."""
    wanted, variables = variables, read_columns(schema, variables)
    weighing = None if weights is None else weights.column
    asked = list(dict.fromkeys([*variables, *(name for name in (column, weighing) if name is not None)]))
    readers = {variable: column_reader(schema, variable, file.decimal) for variable in variables}
    values = {variable: ValueNumbers(variable) for variable in schema.undiscovered if variable in readers}
    reading = {
        variable: values[variable].text_reading(reader) if variable in values else reader.text_position
        for variable, reader in readers.items()
    }
    texts, owners = {variable: _Texts() for variable in variables}, _Texts()
    parts = {variable: [np.zeros(0, dtype=np.int32)] for variable in variables}
    ids, parts_of = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    weights_seen, weigh = _Texts(), None if weights is None else weights.text_reading(file.decimal)
    for buffer, starts, stops in _blocks(file, asked):
        for row, name in enumerate(asked):
            if name in parts:
                found_places = texts[name].positions(buffer, starts[row], stops[row], reading[name])
                parts[name].append(found_places)
            if name == column:
                require_ids(bool((starts[row] == stops[row]).any()), column)
                ids.append(owners.numbered(buffer, starts[row], stops[row]))
            if name == weighing and weigh is not None:
                parts_of.append(weights_seen.positions(buffer, starts[row], stops[row], weigh).astype(np.int64))
    codes, results = {}, {}
    for variable, part in parts.items():
        positions: Positions = np.concatenate(part)
        if variable in values:
            positions = values[variable].settle(positions, readers[variable])
        codes[variable], results[variable] = settled(positions, readers[variable])
    require_declared(schema, results, file)
    return Encoded(
        variable_codes(codes, schema, wanted),
        None if column is None else np.concatenate(ids),
        owners,
        values,
        None if weights is None else np.concatenate(parts_of),
    )


def _text(raw: bytes) -> str:
    """Decode the text of a field; invalid bytes become a text that cannot be a state."""
    return raw.replace(b'""', b'"').decode("utf-8", "surrogateescape")


@dataclass
class _Texts:
    """Table of the distinct texts of a column and the position of each."""

    count: int = 0
    # Hashes start from a secret, so that nobody can make a file whose texts all collide.
    seed: Any = field(default_factory=lambda: random_keys(1)[0])
    slots: NDArray[np.int64] = field(default_factory=lambda: np.zeros(2**10, dtype=np.int64))
    ends: NDArray[np.int64] = field(default_factory=lambda: np.zeros(2**10, dtype=np.int64))
    pool: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(2**14, dtype=np.uint8))
    places: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))

    def numbered(self, buffer: Any, starts: Any, stops: Any) -> NDArray[np.int64]:
        """Return the number of each field's text."""
        numbers = np.empty(starts.size, dtype=np.int64)
        done = 0
        while True:
            done, self.count = grammar.number_texts(
                buffer,
                starts,
                stops,
                done,
                starts.size,
                self.seed,
                self.slots,
                self.ends,
                self.pool,
                self.count,
                numbers,
            )
            if done == starts.size:
                return numbers
            self._grow(int(stops[done] - starts[done]))

    def positions(self, buffer: Any, starts: Any, stops: Any, read: Callable[[str], int]) -> NDArray[np.int32]:
        """Return the position of each field's text; every distinct text is read once."""
        if self.count > _MAX_TEXTS or self.pool.size > _MAX_TEXT_BYTES:
            self.slots[:], self.count, self.places = 0, 0, self.places[:0]
            self.pool = self.pool[: 2**14].copy()
        known = self.count
        numbers = self.numbered(buffer, starts, stops)
        if self.count > known:
            bounds = np.concatenate([self.ends[known - 1 : known] if known else [0], self.ends[known : self.count]])
            fresh = self.pool[bounds[0] : bounds[-1]].tobytes()
            cuts = pairwise((bounds - bounds[0]).tolist())
            positions = [read(_text(fresh[start:stop])) for start, stop in cuts]
            self.places = np.concatenate([self.places, np.array(positions, dtype=np.int32)])
        result: NDArray[np.int32] = self.places[numbers]
        return result

    def texts(self) -> NDArray[np.object_]:
        """Return the numbered texts in the order of their numbers."""
        cuts = pairwise([0, *self.ends[: self.count].tolist()])
        return objects([_text(self.pool[start:stop].tobytes()) for start, stop in cuts])

    def _grow(self, size: int) -> None:
        used = int(self.ends[self.count - 1]) if self.count else 0
        if used + size > self.pool.size:
            self.pool = np.concatenate([self.pool, np.zeros(self.pool.size + size, dtype=np.uint8)])
        if 2 * self.count >= self.slots.size or self.count >= self.ends.size:
            self.slots = np.zeros(2 * self.slots.size, dtype=np.int64)
            self.ends = np.concatenate([self.ends, np.zeros(self.ends.size, dtype=np.int64)])
            grammar.rehash(self.pool, self.ends, self.count, self.seed, self.slots)


def _blocks(file: CsvFile, asked: Sequence[str]) -> Iterator[tuple[Any, Any, Any]]:
    """Yield bytes, and where in them the fields of the wanted columns start and stop, with a row for each column."""
    whole = file.path.stat().st_size
    with (
        opened(file) as handle,
        tqdm(total=whole, desc="Reading", unit="B", unit_scale=True, delay=1, leave=False, disable=None) as bar,
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
    """Refuse a header that another delimiter or encoding explains: read so, it has all public names."""
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

    def split(self, ending: int, width: int, places: Any, starts: Any, stops: Any) -> tuple[int, int]:
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
            places,
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
