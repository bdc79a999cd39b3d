"""Release files: a zip of two members that can be read without this library.

``measurements.csv`` has one row per table cell: ``clique`` (index in the list of cliques), ``cell`` (row-major index in
the table, last axis fastest), ``value`` (noisy count; if the guarantee's ``max_rows`` is null or it has a
``largest_weight``, in units of 2**-20, the parts into which a person's or a record's weight is divided) and
``variance`` (of the noise in the count). ``datapackage.json`` is a Frictionless Data Package (version 2) that describes
it. Its property ``pgmpy_dp:release`` holds the format version, the kind of the release, the schema of the records (a
Table Schema), the guarantee, the number of records if it is public, and the cliques with their axes, shapes and exact
noise scales. Numbers are written so that they read back to the same float.

In the kind "tables", the measurements are the cells of the cliques' tables. In the kind "coefficients", they are
integer Fourier coefficients: ``clique`` is the index in a list of subsets of the cliques, ``cell`` that in the subset's
array of coefficients, and the contrasts for every number of states and the one noise scale b are given. A coefficient
is the sum over records of the product of contrasts; its noise has scale b divided by its weight, the product of
sqrt(states / sum of squares of the contrast). In the kind "residuals", they are the same coefficients with discrete
Gaussian noise, in fractions of a record: each subset states the number of ``parts`` of a record, and the ``scale`` s of
its noise in records. The noise of a coefficient has standard deviation s, times the root of the sum of squares of each
of its contrasts, times the parts. Version 1 of the format had no kinds: its files hold tables.

Cliques and subsets are stated one by one, with the names of their ``variables``. More than 4,096 are stated by kinds:
those of one shape and noise together, by the ``positions`` of their variables in the schema, one after the other, and
by their ``numbers``, the indices above, unless these follow each other in the order of the list.

In the kinds "united_tables" and "partially_pooled_tables", the measurements are those of several releases of these
kinds, one after the other; ``parts`` holds what each states, and its ``state`` of the ``variable`` that distinguishes
them. The guarantee of the whole is checked against theirs. In the kinds "informed_tables", "informed_coefficients" and
"informed_residuals", ``public`` tables are stated beside a release.

In the kinds "posterior_draws" and "regression_draws", they are parameters of a network's families, drawn at random and
without noise to state: a row is ``clique`` (index of the family), ``cell`` (row-major, with the draws as first axis)
and ``value``, a decimal fraction. In the kind "discovered_states" there are no measurements: the states are in the
schema.

The package contains the SHA-256 of ``measurements.csv``. It detects accidents and careless edits, but it is not a
signature: whoever edits the file can write a new hash. If authenticity matters, sign the file or use a channel that
does.

Members are stored uncompressed with fixed times, so equal releases give equal bytes wherever they are written, and no
member can be larger than the file. A file compressed again by another tool is read too, within limits.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp._files import parse_json, path_of
from pgmpy_dp.errors import ReleaseFormatError
from pgmpy_dp.privacy.guarantee import Guarantee
from pgmpy_dp.schema import Clique, Schema

if TYPE_CHECKING:
    from pgmpy_dp.release.kinds import Release

FORMAT_VERSION = 3
NAMED_COSTS = 3  # the first version in which costs have names
DESCRIPTOR = "datapackage.json"
MEASUREMENTS = "measurements.csv"
RELEASE_PROPERTY = "pgmpy_dp:release"
PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"

MAX_DESCRIPTOR_BYTES = 2**24  # 50,000 states of long names in a hierarchy take half of it
_INDENTED_BYTES = 2**20  # a longer descriptor is not for reading, and is written without blanks
MAX_DESCRIPTOR_PARTS = 2**17  # lists and objects; an empty one, once parsed, takes thirty times its text

# For each array its values and, if these are noisy integers, the variances of their noise.
Measurements = list[tuple[NDArray[Any], NDArray[np.float64] | None]]

MAX_MEASUREMENTS_BYTES = 2**31 - 1  # a larger zip would need its 64-bit extension
MAX_COMPRESSION = 100  # largest ratio; a csv of this kind compresses about tenfold
MAX_DIRECTORY_BYTES = 4096

_NUMBER = rb"[0-9]{1,20}(?:\.[0-9]{1,40})?(?:e[+-]?[0-9]{1,3})?"


@dataclass(frozen=True)
class _Columns:
    """Format of a row: the types of its numbers, its pattern, its minimum number of bytes, and its description."""

    dtype: np.dtype[Any]
    row: bytes
    shortest: int
    words: str

    @property
    def header(self) -> bytes:
        return ",".join(self.dtype.names or ()).encode() + b"\n"

    @property
    def rows(self) -> re.Pattern[bytes]:
        return re.compile(rb"(?:" + self.row + rb")*+")  # possessive: linear time, no memory of earlier rows


_COUNTS = _Columns(
    np.dtype([("clique", np.int64), ("cell", np.int64), ("value", np.int64), ("variance", np.float64)]),
    rb"[0-9]{1,10},[0-9]{1,10},-?[0-9]{1,19}," + _NUMBER + rb"\n",
    len(b"0,0,0,1\n"),
    "two indices, an integer and a variance",
)
_DRAWS = _Columns(
    np.dtype([("clique", np.int64), ("cell", np.int64), ("value", np.float64)]),
    rb"[0-9]{1,10},[0-9]{1,10},-?" + _NUMBER + rb"\n",
    len(b"0,0,0\n"),
    "two indices and a number",
)
_LONGEST_ROW = 200
_BLOCK_BYTES = 2**20
_BLOCK_ROWS = 2**16

# Errors that the modules zipfile and zlib raise on damaged files.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    RuntimeError,
    ValueError,
    OverflowError,
    OSError,
)


class Numbers:
    """The numbers of a release file, which are taken array by array, by the shapes that its descriptor states."""

    def __init__(self, member: IO[bytes], size: int) -> None:
        self._member, self._left = member, size
        self._blocks: Iterator[NDArray[Any]] | None = None
        self._ready: NDArray[Any] = np.empty(0)
        self._arrays = self._rows = 0  # that were taken
        self.variances: list[NDArray[np.float64]] = []

    def take(self, shapes: Mapping[Clique, tuple[int, ...]], drawn: bool = False) -> dict[Clique, NDArray[Any]]:
        """Take the next arrays; the next rows must be all of their cells, in order."""
        columns, size = _DRAWS if drawn else _COUNTS, sum(map(math.prod, shapes.values()))
        if size * columns.shortest > self._left:
            raise ReleaseFormatError(f"{MEASUREMENTS} has fewer rows than the descriptor needs.")
        self._blocks = self._blocks or _row_blocks(self._member, columns)
        sizes = np.array(list(map(math.prod, shapes.values())), dtype=np.int64)
        cells = {name: np.empty(size, columns.dtype[name]) for name in (columns.dtype.names or ())[2:]}
        ends, done = np.cumsum(sizes), 0
        while done < size:
            rows = self._next(size - done)
            if not rows.size:
                complete, needed = self._rows + done, self._rows + size
                raise ReleaseFormatError(f"{MEASUREMENTS} ends after {complete} complete rows; {needed} are needed.")
            positions = np.arange(done, done + rows.size)
            arrays = np.searchsorted(ends, positions, side="right")
            wrong = (rows["clique"] != self._arrays + arrays) | (rows["cell"] != positions - (ends - sizes)[arrays])
            if wrong.any():
                row = self._rows + done + int(wrong.argmax()) + 1
                raise ReleaseFormatError(
                    f"{MEASUREMENTS}: row {row} is not the next cell in order, as where there are more rows than cells."
                )
            for name, values in cells.items():
                values[positions] = rows[name]
            done += rows.size
        self._arrays, self._rows = self._arrays + sizes.size, self._rows + size
        self._left -= size * columns.shortest
        if not drawn:
            self.variances.append(cells["variance"])
        parts = np.split(cells["value"], ends[:-1]) if shapes else []
        return {name: part.reshape(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}

    def require_end(self) -> None:
        """Raise if rows are left, or part of one."""
        self._blocks = self._blocks or _row_blocks(self._member, _COUNTS)
        if self._next(1).size:
            raise ReleaseFormatError(f"{MEASUREMENTS} has more rows than the cliques have cells.")

    def _next(self, maximum: int) -> NDArray[Any]:
        """Return the next rows, none at the end."""
        if not self._ready.size and self._blocks is not None:
            self._ready = next(self._blocks, self._ready)
        rows, self._ready = self._ready[:maximum], self._ready[maximum:]
        return rows


def write_release(release: Release, handle: IO[bytes]) -> None:
    """Write the content of a release file."""
    if release.guarantee.mechanism == "none":
        raise ValueError(
            "Exact counts are never written to a release file: save a release that was measured with noise."
        )
    with zipfile.ZipFile(handle, "w") as archive:
        digest, size = hashlib.sha256(), 0
        with archive.open(stored_member(MEASUREMENTS), "w") as member:
            for block in _measurement_blocks(release):
                size += len(block)
                if size > MAX_MEASUREMENTS_BYTES:
                    raise ValueError("The release is too large for one file (2 GiB): measure fewer or smaller cliques.")
                digest.update(block)
                member.write(block)
        columns = _DRAWS if release.drawn else _COUNTS
        descriptor = descriptor_of(release.contents(), columns.dtype, f"sha256:{digest.hexdigest()}", size)
        content = _written(descriptor, indent=1)
        if len(content) > _INDENTED_BYTES:
            content = _written(descriptor, separators=(",", ":"))
        if len(content) > MAX_DESCRIPTOR_BYTES or parts_of(content) > MAX_DESCRIPTOR_PARTS:
            raise ValueError("The release has too many states or cliques for one file: split the cliques.")
        archive.writestr(stored_member(DESCRIPTOR), content)


def _written(descriptor: Mapping[str, Any], **layout: Any) -> bytes:
    return json.dumps(descriptor, ensure_ascii=False, allow_nan=False, **layout).encode("utf-8")


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file of the format, whose name stands before messages about it."""
    path = path_of(path)
    if path.exists() and not path.is_file():
        raise ReleaseFormatError(f"{path}: not a file; give the path of a release file.")
    with path.open("rb") as handle:
        try:
            yield handle
        except ReleaseFormatError as error:
            raise ReleaseFormatError(f"{path}: {error}") from error.__cause__


def stored_member(name: str) -> zipfile.ZipInfo:
    """Describe a member of a zip with the same bytes on every system at any time."""
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.create_system = 3  # the same on every system
    info.external_attr = 0o644 << 16
    info.compress_type = zipfile.ZIP_STORED
    return info


def _measurement_blocks(release: Release) -> Iterator[bytes]:
    yield (_DRAWS if release.drawn else _COUNTS).header
    rows: list[str] = []
    for number, (values, variances) in enumerate(release.measurements()):
        for start in range(0, values.size, _BLOCK_ROWS):
            block = slice(start, start + _BLOCK_ROWS)
            noise = (
                [f",{variance!r}" for variance in variances[block].tolist()] if variances is not None else repeat("")
            )
            pairs = zip(values[block].tolist(), noise, strict=False)
            rows += [f"{number},{cell},{value!r}{variance}\n" for cell, (value, variance) in enumerate(pairs, start)]
            if len(rows) >= _BLOCK_ROWS:
                yield "".join(rows).encode("ascii")
                rows.clear()
    yield "".join(rows).encode("ascii")


def read_release(handle: IO[bytes], interpret: Callable[[dict[str, Any], Numbers], Release]) -> Release:
    """Read and check the content of a release file."""
    check_ending(handle, 2, f"not a release file: the zip must hold {DESCRIPTOR} and {MEASUREMENTS}, nothing else.")
    with damage_named(), zipfile.ZipFile(handle) as archive:
        members = _checked_members(archive)
        with archive.open(members[DESCRIPTOR]) as member:
            content = b"".join(_blocks(member))
        resource, contents = checked_descriptor(content)
        size = members[MEASUREMENTS].file_size
        with archive.open(members[MEASUREMENTS]) as member:
            _check_hash(member, resource, size)
        with archive.open(members[MEASUREMENTS]) as member:
            numbers = Numbers(member, size)
            with contents_named():
                release = interpret(contents, numbers)
            numbers.require_end()
        # Variances computed elsewhere may differ in the last digits.
        expected = [each for _, each in release.measurements() if each is not None]
        if expected and not np.allclose(
            np.concatenate(numbers.variances), np.concatenate(expected), rtol=1e-9, atol=0.0
        ):
            raise ReleaseFormatError(f"the variances in {MEASUREMENTS} do not follow from the noise scales.")
        return release


@contextmanager
def damage_named() -> Iterator[None]:
    """Unify the errors of the modules zipfile and zlib about damaged files."""
    try:
        yield
    except ReleaseFormatError:
        raise
    except _DAMAGE as error:
        raise ReleaseFormatError(f"the zip file is damaged or altered ({str(error)[:200]}): get it again.") from error


def check_ending(handle: IO[bytes], maximum: int, otherwise: str) -> int:
    """Check the last bytes of the zip, so that zipfile never reads a directory of unlimited size; count its members."""
    size = handle.seek(0, os.SEEK_END)
    handle.seek(max(size - 42, 0))
    tail = handle.read(42)
    handle.seek(0)
    start = handle.read(4)
    handle.seek(0)
    if len(tail) < 42 or tail[-22:-18] != b"PK\x05\x06":
        if start == b"PK\x03\x04":
            raise ReleaseFormatError("the zip file is truncated or has data after its end: get it again.")
        raise ReleaseFormatError("not a release file: it is not a zip file, or its beginning is damaged.")
    disk, directory_disk, here, entries, directory, _, comment = struct.unpack("<4H2LH", tail[-18:])
    if disk or directory_disk or comment or tail[:4] == b"PK\x06\x07":
        raise ReleaseFormatError("not a release file: the zip has a comment, several disks or 64-bit extensions.")
    if here != entries or not 2 <= entries <= maximum or directory > MAX_DIRECTORY_BYTES:
        raise ReleaseFormatError(otherwise)
    return int(entries)


def _checked_members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    members = {info.filename: info for info in archive.infolist()}
    if set(members) != {DESCRIPTOR, MEASUREMENTS}:
        raise ReleaseFormatError(
            f"not a release file: the zip must hold {DESCRIPTOR} and {MEASUREMENTS}, each once, nothing else. A model "
            "is read by pgmpy_dp.load, and has its release as release_."
        )
    limits = {DESCRIPTOR: MAX_DESCRIPTOR_BYTES, MEASUREMENTS: MAX_MEASUREMENTS_BYTES}
    for name, info in members.items():
        if info.flag_bits & 0x1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ReleaseFormatError(f"{name} is encrypted or compressed in an unknown way: store or deflate it.")
        if info.file_size > min(limits[name], MAX_COMPRESSION * info.compress_size):
            raise ReleaseFormatError(f"{name} is too large, or compressed too far to be genuine.")
    return members


def _blocks(member: IO[bytes]) -> Iterator[bytes]:
    while block := member.read(_BLOCK_BYTES):
        yield block


def _check_hash(member: IO[bytes], resource: Mapping[str, Any], size: int) -> None:
    digest = hashlib.sha256()
    for block in _blocks(member):
        digest.update(block)
    if resource["hash"] != f"sha256:{digest.hexdigest()}" or resource["bytes"] != size:
        raise ReleaseFormatError(
            f"{MEASUREMENTS} was changed after the release was saved (its hash or size differs): get it again."
        )


def _row_blocks(member: IO[bytes], columns: _Columns) -> Iterator[NDArray[Any]]:
    """Yield the rows after the header, some at a time."""
    if member.read(len(columns.header)) != columns.header:
        raise ReleaseFormatError(f"{MEASUREMENTS} must begin with the line {columns.header.decode().strip()}.")
    done, rest = 0, b""
    for block in _blocks(member):
        complete, newline, rest = (rest + block).rpartition(b"\n")
        if len(rest) > _LONGEST_ROW:
            raise ReleaseFormatError(f"{MEASUREMENTS}: a row is longer than any row can be.")
        if newline:
            yield (rows := _parsed_rows(complete + newline, columns, done))
            done += rows.size
    if rest:
        raise ReleaseFormatError(f"{MEASUREMENTS} ends after {done} complete rows, in the middle of one.")


def _parsed_rows(block: bytes, columns: _Columns, done: int) -> NDArray[Any]:
    matched = columns.rows.match(block)
    if matched is None or matched.end() < len(block):
        row = done + block.count(b"\n", 0, matched.end() if matched else 0) + 1
        raise ReleaseFormatError(f"{MEASUREMENTS}: row {row} is not {columns.words}.")
    try:
        return np.loadtxt(io.BytesIO(block), dtype=columns.dtype, delimiter=",", comments=None, ndmin=1)
    except ValueError as error:
        raise ReleaseFormatError(f"{MEASUREMENTS}: a value does not fit 64-bit integers ({error}).") from error


def descriptor_of(contents: Mapping[str, Any], columns: np.dtype[Any], digest: str, size: int) -> dict[str, Any]:
    fields = [{"name": n, "type": "integer" if columns[n].kind == "i" else "number"} for n in columns.names or ()]
    resource = {
        "name": "measurements",
        "type": "table",
        "path": MEASUREMENTS,
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8",
        "bytes": size,
        "hash": digest,
        "schema": {
            "fields": fields,
            "primaryKey": ["clique", "cell"],
        },
    }
    return {
        "$schema": PROFILE,
        "name": "pgmpy-dp-release",
        "resources": [resource],
        RELEASE_PROPERTY: {"format_version": FORMAT_VERSION, **contents},
    }


def checked_descriptor(content: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    with contents_named():
        if parts_of(content) > MAX_DESCRIPTOR_PARTS:
            raise ValueError("it has more lists and objects than a release can have.")
        descriptor = parse_json(content)
        contents = entry(descriptor, RELEASE_PROPERTY, dict)
        version = entry(contents, "format_version", int)
        if version > FORMAT_VERSION:
            raise ReleaseFormatError(
                f"the file has format version {version}, newer than {FORMAT_VERSION}: upgrade pgmpy_dp."
            )
        if version < 1:
            raise ValueError(f"unknown format version {version}.")
        if version == 1:  # without kinds
            if "kind" in contents:
                raise ValueError(f"{RELEASE_PROPERTY} has no property 'kind' in version 1.")
            contents = {**contents, "kind": "tables"}
        resources = entry(descriptor, "resources", list)
        if len(resources) != 1 or entry(resources[0], "path", str) != MEASUREMENTS:
            raise ValueError(f"resources must hold one resource, {MEASUREMENTS}.")
        resource: dict[str, Any] = resources[0]
        entry(resource, "hash", str)
        entry(resource, "bytes", int)
    return resource, contents


def parts_of(content: bytes) -> int:
    """Bound the number of lists and objects in a JSON text from above."""
    return content.count(b"[") + content.count(b"{")


def checked_schema(contents: Mapping[str, Any]) -> Schema:
    return Schema.from_dict(entry(contents, "schema", dict))


def checked_guarantee(contents: Mapping[str, Any], arrays: Iterable[NDArray[Any]]) -> Guarantee:
    """Read a guarantee. Earlier versions named the cost by the file's content, so that it is counted once."""
    stated = entry(contents, "guarantee", dict)
    if contents["format_version"] < NAMED_COSTS:
        content = {name: value for name, value in contents.items() if name not in ("format_version", "state")}
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
        for values in arrays:
            digest.update(np.ascontiguousarray(values).tobytes())
        stated = {"payment": digest.hexdigest()[:32]} | stated
    elif "costs" not in stated:
        raise ValueError("the guarantee states no costs.")
    try:
        guarantee = Guarantee.from_dict(stated)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"guarantee is no set of costs ({type(error).__name__}: {error}).") from error
    if guarantee.mechanism == "none":
        raise ValueError("exact counts are not a release.")
    return guarantee


def check_shape(stated: Mapping[str, Any], clique: Clique, expected: tuple[int, ...], properties: set[str]) -> None:
    shape = entry(stated, "shape", list)
    if set(stated) != properties or any(type(length) is not int for length in shape):
        raise ValueError(f"{clique} must state {', '.join(sorted(properties))}, and nothing else.")
    if tuple(shape) != expected:
        raise ValueError(f"{clique} has shape {expected} by the schema, got {tuple(shape)}.")


def entry(mapping: Any, name: str, *kinds: type) -> Any:
    if type(mapping) is not dict or name not in mapping:
        raise ValueError(f"the property {name!r} is missing.")
    if type(mapping[name]) not in kinds:
        raise ValueError(f"the property {name!r} must be of type {kinds[0].__name__}.")
    return mapping[name]


@contextmanager
def contents_named() -> Iterator[None]:
    try:
        yield
    except ReleaseFormatError:
        raise
    except ValueError as error:
        raise ReleaseFormatError(f"{DESCRIPTOR}: {str(error)[:500]}") from error
