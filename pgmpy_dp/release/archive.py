"""The release file: a zip of two members, readable without this library.

``measurements.csv`` has one row a table cell: ``clique`` (position in the list of cliques), ``cell``
(row-major position in the table, last axis fastest), ``value`` (noisy count; where the guarantee's ``max_rows`` is
null, in units of 2**-20, which are the parts that the weight of a person is divided into) and ``variance`` (of the
noise in the count). ``datapackage.json`` is a Frictionless Data Package (version 2) that describes it; its property
``pgmpy_dp:release`` holds the format version, the kind of the release, the schema of the records (a Table
Schema), the guarantee, the public number of records where there is one, and the cliques with their axes, shapes
and exact noise scales. Numbers are written so that they read back to the same float.

Of kind "tables" the measurements are the cells of the cliques' tables. Of kind "coefficients" they are integer
Fourier coefficients: ``clique`` is the position in a list of subsets of the cliques, ``cell`` that in the subset's
array of coefficients, and the contrasts of every number of states and the one noise scale b are given. A coefficient
is the sum over records of the product of contrasts; its noise has scale b over its weight, the product of
sqrt(states / sum of squares of the contrast). Version 1 of the format had no kinds: its files hold tables.

The package gives the SHA-256 of ``measurements.csv``. It reveals accidents and careless edits, but it is no
signature: whoever edits the file can write a new hash. Where authenticity matters, sign the file or use a
channel that does.

Members are stored uncompressed with fixed times, so equal releases give equal bytes wherever they are
written, and no member can be larger than the file. A file compressed again by another tool is read too,
within limits.
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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp._files import replacing
from pgmpy_dp.errors import ReleaseFormatError
from pgmpy_dp.privacy.mechanisms import UNIT_WEIGHT
from pgmpy_dp.release.coefficients import NoisyCoefficients
from pgmpy_dp.release.descriptor import (
    DESCRIPTOR,
    MAX_DESCRIPTOR_BYTES,
    MAX_DESCRIPTOR_PARTS,
    MEASUREMENTS,
    Release,
    checked_contents,
    checked_descriptor,
    contents_named,
    descriptor_of,
    parts_of,
)
from pgmpy_dp.release.marginals import NoisyMarginals

Kind = TypeVar("Kind", NoisyMarginals, NoisyCoefficients)

MAX_MEASUREMENTS_BYTES = 2**31 - 1  # beyond it a zip needs its 64-bit extension
MAX_COMPRESSION = 100  # a csv of this kind compresses about tenfold
MAX_DIRECTORY_BYTES = 4096

_COLUMNS = np.dtype([("clique", np.int64), ("cell", np.int64), ("value", np.int64), ("variance", np.float64)])
_HEADER = ",".join(_COLUMNS.names or ()).encode() + b"\n"
_NUMBER = rb"[0-9]{1,20}(?:\.[0-9]{1,40})?(?:e[+-]?[0-9]{1,3})?"
_ROW = re.compile(rb"[0-9]{1,10},[0-9]{1,10},-?[0-9]{1,19}," + _NUMBER + rb"\n")
_ROWS = re.compile(rb"(?:" + _ROW.pattern + rb")*+")  # possessive: linear time, no memory of earlier rows
_SHORTEST_ROW = len(b"0,0,0,1\n")
_LONGEST_ROW = 200
_BLOCK_BYTES = 2**20
_BLOCK_ROWS = 2**16

# What zipfile and zlib raise on damaged files.
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


def save_release(release: Release, path: str | os.PathLike[str]) -> None:
    """Write a release file; see :meth:`NoisyMarginals.save`."""
    if release.guarantee.mechanism == "none":
        raise ValueError("Exact counts are never written to a release file: save a release made by measure().")
    with replacing(Path(path)) as handle, zipfile.ZipFile(handle, "w") as archive:
        digest, size = hashlib.sha256(), 0
        with archive.open(_member(MEASUREMENTS), "w") as member:
            for block in _measurement_blocks(release):
                size += len(block)
                if size > MAX_MEASUREMENTS_BYTES:
                    raise ValueError("The release is too large for one file (2 GiB): measure fewer or smaller cliques.")
                digest.update(block)
                member.write(block)
        descriptor = descriptor_of(release, f"sha256:{digest.hexdigest()}", size)
        content = json.dumps(descriptor, indent=1, ensure_ascii=False, allow_nan=False).encode("utf-8")
        if len(content) > MAX_DESCRIPTOR_BYTES or parts_of(content) > MAX_DESCRIPTOR_PARTS:
            raise ValueError("The release has too many states or cliques for one file: split the cliques.")
        archive.writestr(_member(DESCRIPTOR), content)


def load_release(path: str | os.PathLike[str], kind: type[Kind]) -> Kind:
    """Read and check a release file of one kind; see :meth:`NoisyMarginals.load`."""
    release = read_release(path)
    if not isinstance(release, kind):
        raise ReleaseFormatError(f"{path}: the file holds another kind of release: use {type(release).__name__}.load.")
    return release


def read_release(path: str | os.PathLike[str]) -> Release:
    """Read and check a release file of any kind; see :meth:`NoisyMarginals.load`."""
    path = Path(path)
    if path.exists() and not path.is_file():
        raise ReleaseFormatError(f"{path}: not a file; give the path of a release file.")
    with path.open("rb") as handle:
        try:
            return _read(handle)
        except ReleaseFormatError as error:
            raise ReleaseFormatError(f"{path}: {error}") from error.__cause__


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.create_system = 3  # the same on every system
    info.external_attr = 0o644 << 16
    info.compress_type = zipfile.ZIP_STORED
    return info


def _measured(release: Release) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Values and noise variances of each table, or of each subset's coefficients, flat."""
    if isinstance(release, NoisyCoefficients):
        arrays, variances = release.values, release.noise_variances
        return [(array.ravel(), variances[subset].ravel()) for subset, array in arrays.items()]
    each, parts = release.variances, UNIT_WEIGHT if release.guarantee.max_rows is None else 1
    return [
        ((table.ravel() * parts).astype(np.int64), np.broadcast_to(each[clique], table.size))
        for clique, table in release.tables.items()
    ]


def _measurement_blocks(release: Release) -> Iterator[bytes]:
    yield _HEADER
    for number, (values, variances) in enumerate(_measured(release)):
        for start in range(0, values.size, _BLOCK_ROWS):
            block = slice(start, start + _BLOCK_ROWS)
            pairs = zip(values[block].tolist(), variances[block].tolist(), strict=True)
            rows = [f"{number},{cell},{value},{variance!r}\n" for cell, (value, variance) in enumerate(pairs, start)]
            yield "".join(rows).encode("ascii")


def _read(handle: IO[bytes]) -> Release:
    _check_ending(handle)
    with _damage_named(), zipfile.ZipFile(handle) as archive:
        members = _checked_members(archive)
        with archive.open(members[DESCRIPTOR]) as member:
            content = b"".join(_blocks(member))
        resource, contents = checked_descriptor(content)
        csv_size = members[MEASUREMENTS].file_size
        with archive.open(members[MEASUREMENTS]) as member:
            _check_hash(member, resource, csv_size)
        with contents_named():
            checked = checked_contents(contents)
        sizes = [math.prod(shape) for shape in checked.shapes.values()]
        if sum(sizes) * _SHORTEST_ROW > csv_size:
            raise ReleaseFormatError(f"{MEASUREMENTS} has fewer rows than the {checked.kind} need.")
        values, variances = np.empty(sum(sizes), np.int64), np.empty(sum(sizes))
        with archive.open(members[MEASUREMENTS]) as member:
            _read_measurements(member, np.array(sizes), values, variances)
        parts = np.split(values, np.cumsum(sizes)[:-1])
        with contents_named():
            release = checked.release(
                {k: p.reshape(s) for (k, s), p in zip(checked.shapes.items(), parts, strict=True)}
            )
        # Computed elsewhere, a variance may differ in its last digits.
        for (_, expected), part in zip(_measured(release), np.split(variances, np.cumsum(sizes)[:-1]), strict=True):
            if not np.allclose(part, expected, rtol=1e-9, atol=0.0):
                raise ReleaseFormatError(f"the variances in {MEASUREMENTS} do not follow from the noise scales.")
        return release


@contextmanager
def _damage_named() -> Iterator[None]:
    try:
        yield
    except ReleaseFormatError:
        raise
    except _DAMAGE as error:
        raise ReleaseFormatError(f"the zip file is damaged or altered ({str(error)[:200]}): get it anew.") from error


def _check_ending(handle: IO[bytes]) -> None:
    """Check the last bytes of the zip, so that zipfile never reads a directory of unlimited size."""
    size = handle.seek(0, os.SEEK_END)
    handle.seek(max(size - 42, 0))
    tail = handle.read(42)
    handle.seek(0)
    start = handle.read(4)
    handle.seek(0)
    if len(tail) < 42 or tail[-22:-18] != b"PK\x05\x06":
        if start == b"PK\x03\x04":
            raise ReleaseFormatError("the zip file is truncated or has something after its end: get it anew.")
        raise ReleaseFormatError("not a release file: it is not a zip file, or its beginning is damaged.")
    disk, directory_disk, here, entries, directory, _, comment = struct.unpack("<4H2LH", tail[-18:])
    if disk or directory_disk or comment or tail[:4] == b"PK\x06\x07":
        raise ReleaseFormatError("not a release file: the zip has a comment, several disks or 64-bit extensions.")
    if here != 2 or entries != 2 or directory > MAX_DIRECTORY_BYTES:
        raise ReleaseFormatError(
            f"not a release file: the zip must hold {DESCRIPTOR} and {MEASUREMENTS}, nothing else."
        )


def _checked_members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    members = {info.filename: info for info in archive.infolist()}
    if set(members) != {DESCRIPTOR, MEASUREMENTS}:
        raise ReleaseFormatError(
            f"not a release file: the zip must hold {DESCRIPTOR} and {MEASUREMENTS}, each once, nothing else."
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
            f"{MEASUREMENTS} was changed after the release was saved (its hash or size differs): get it anew."
        )


def _read_measurements(
    member: IO[bytes], sizes: NDArray[np.int64], values: NDArray[np.int64], variances: NDArray[np.float64]
) -> None:
    """Fill `values` and `variances`, checking that the rows are all cells of all cliques, in order."""
    if member.read(len(_HEADER)) != _HEADER:
        raise ReleaseFormatError(f"{MEASUREMENTS} must begin with the line {_HEADER.decode().strip()}.")
    ends, done, rest = np.cumsum(sizes), 0, b""
    for block in _blocks(member):
        complete, newline, rest = (rest + block).rpartition(b"\n")
        if len(rest) > _LONGEST_ROW:
            raise ReleaseFormatError(f"{MEASUREMENTS}: a row is longer than any row can be.")
        rows = _parsed_rows(complete + newline, done)
        places = np.arange(done, done + rows.size)
        if done + rows.size > values.size:
            raise ReleaseFormatError(f"{MEASUREMENTS} has more rows than the cliques have cells.")
        cliques = np.searchsorted(ends, places, side="right")
        cells = places - (ends - sizes)[cliques]
        wrong = np.flatnonzero((rows["clique"] != cliques) | (rows["cell"] != cells))
        if wrong.size:
            raise ReleaseFormatError(f"{MEASUREMENTS}: row {done + wrong[0] + 1} is not the next cell in order.")
        values[places], variances[places] = rows["value"], rows["variance"]
        done += rows.size
    if rest or done < values.size:
        raise ReleaseFormatError(f"{MEASUREMENTS} ends after {done} complete rows; {values.size} are needed.")


def _parsed_rows(block: bytes, done: int) -> NDArray[Any]:
    if not block:
        return np.empty(0, _COLUMNS)
    matched = _ROWS.match(block)
    if matched is None or matched.end() < len(block):
        row = done + block.count(b"\n", 0, matched.end() if matched else 0) + 1
        raise ReleaseFormatError(f"{MEASUREMENTS}: row {row} is not two indices, an integer and a variance.")
    try:
        return np.loadtxt(io.BytesIO(block), dtype=_COLUMNS, delimiter=",", comments=None, ndmin=1)
    except ValueError as error:
        raise ReleaseFormatError(f"{MEASUREMENTS}: a value does not fit 64-bit integers ({error}).") from error
