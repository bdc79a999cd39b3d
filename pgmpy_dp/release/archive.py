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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp._files import replacing
from pgmpy_dp.errors import ReleaseFormatError
from pgmpy_dp.privacy.fourier import contrasts
from pgmpy_dp.privacy.mechanisms import UNIT_WEIGHT
from pgmpy_dp.release.coefficients import NoisyCoefficients, downward_closure
from pgmpy_dp.release.marginals import Guarantee, NoisyMarginals, _number
from pgmpy_dp.schema import Clique, Schema, parse_json

Release = NoisyMarginals | NoisyCoefficients
Kind = TypeVar("Kind", NoisyMarginals, NoisyCoefficients)

FORMAT_VERSION = 2
DESCRIPTOR = "datapackage.json"
MEASUREMENTS = "measurements.csv"
RELEASE_PROPERTY = "pgmpy_dp:release"
PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"

MAX_DESCRIPTOR_BYTES = 2**22
MAX_DESCRIPTOR_PARTS = 2**17  # lists and objects: parsed, an empty one takes thirty times its text
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
        descriptor = _descriptor(release, f"sha256:{digest.hexdigest()}", size)
        content = json.dumps(descriptor, indent=1, ensure_ascii=False, allow_nan=False).encode("utf-8")
        if len(content) > MAX_DESCRIPTOR_BYTES or _parts(content) > MAX_DESCRIPTOR_PARTS:
            raise ValueError("The release has too many states or cliques for one file: split the cliques.")
        archive.writestr(_member(DESCRIPTOR), content)


def load_release(path: str | os.PathLike[str], kind: type[Kind]) -> Kind:
    """Read and check a release file of one kind; see :meth:`NoisyMarginals.load`."""
    path = Path(path)
    if path.exists() and not path.is_file():
        raise ReleaseFormatError(f"{path}: not a file; give the path of a release file.")
    with path.open("rb") as handle:
        try:
            release = _read(handle)
            if not isinstance(release, kind):
                raise ReleaseFormatError(f"the file holds another kind of release: use {type(release).__name__}.load.")
            return release
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


def _descriptor(release: Release, digest: str, size: int) -> dict[str, Any]:
    fields = [{"name": name, "type": "integer"} for name in ("clique", "cell", "value")]
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
            "fields": [*fields, {"name": "variance", "type": "number"}],
            "primaryKey": ["clique", "cell"],
        },
    }
    contents: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "kind": "coefficients" if isinstance(release, NoisyCoefficients) else "tables",
        "schema": release.schema.to_dict(),
        "guarantee": release.guarantee.to_dict(),
        "public_total": release.public_total,
        "cliques": [{"variables": list(c), "shape": list(release.schema.shape(c))} for c in release.cliques],
    }
    if isinstance(release, NoisyCoefficients):
        contents |= _coefficient_entries(release)
    else:
        for entry, clique in zip(contents["cliques"], release.cliques, strict=True):
            entry["scale"] = release.scales[clique]
    return {
        "$schema": PROFILE,
        "name": "pgmpy-dp-release",
        "resources": [resource],
        RELEASE_PROPERTY: contents,
    }


def _coefficient_entries(release: NoisyCoefficients) -> dict[str, Any]:
    return {
        "scale": release.scale,
        "subsets": [{"variables": list(subset), "shape": list(a.shape)} for subset, a in release.values.items()],
        "contrasts": _contrast_entries(release.schema, release.cliques),
    }


def _contrast_entries(schema: Schema, cliques: Iterable[Clique]) -> dict[str, Any]:
    states = sorted({schema.cardinality(variable) for clique in cliques for variable in clique})
    return {str(number): contrasts(number).values[1:].tolist() for number in states}


def _read(handle: IO[bytes]) -> Release:
    _check_ending(handle)
    with _damage_named(), zipfile.ZipFile(handle) as archive:
        members = _checked_members(archive)
        with archive.open(members[DESCRIPTOR]) as member:
            content = b"".join(_blocks(member))
        resource, contents = _checked_descriptor(content)
        csv_size = members[MEASUREMENTS].file_size
        with archive.open(members[MEASUREMENTS]) as member:
            _check_hash(member, resource, csv_size)
        with _contents_named():
            checked = _checked_contents(contents)
        sizes = [math.prod(shape) for shape in checked.shapes.values()]
        if sum(sizes) * _SHORTEST_ROW > csv_size:
            raise ReleaseFormatError(f"{MEASUREMENTS} has fewer rows than the {checked.kind} need.")
        values, variances = np.empty(sum(sizes), np.int64), np.empty(sum(sizes))
        with archive.open(members[MEASUREMENTS]) as member:
            _read_measurements(member, np.array(sizes), values, variances)
        parts = np.split(values, np.cumsum(sizes)[:-1])
        with _contents_named():
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


@contextmanager
def _contents_named() -> Iterator[None]:
    try:
        yield
    except ReleaseFormatError:
        raise
    except ValueError as error:
        raise ReleaseFormatError(f"{DESCRIPTOR}: {str(error)[:500]}") from error


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


def _checked_descriptor(content: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    with _contents_named():
        if _parts(content) > MAX_DESCRIPTOR_PARTS:
            raise ValueError("it has more lists and objects than a release can have.")
        descriptor = parse_json(content)
        contents = _entry(descriptor, RELEASE_PROPERTY, dict)
        version = _entry(contents, "format_version", int)
        if version > FORMAT_VERSION:
            raise ReleaseFormatError(
                f"the file has format version {version}, newer than {FORMAT_VERSION}: upgrade pgmpy_dp."
            )
        if version < 1:
            raise ValueError(f"unknown format version {version}.")
        expected = {"format_version", "schema", "guarantee", "public_total", "cliques"}
        kind = "tables" if version == 1 else _entry(contents, "kind", str)
        if kind not in ("tables", "coefficients"):
            raise ValueError(f"unknown kind of release {kind!r}.")
        expected |= set() if version == 1 else {"kind"}
        expected |= {"scale", "subsets", "contrasts"} if kind == "coefficients" else set()
        if set(contents) != expected:
            raise ValueError(f"{RELEASE_PROPERTY} must have the properties {sorted(expected)}.")
        resources = _entry(descriptor, "resources", list)
        if len(resources) != 1 or _entry(resources[0], "path", str) != MEASUREMENTS:
            raise ValueError(f"resources must hold one resource, {MEASUREMENTS}.")
        resource: dict[str, Any] = resources[0]
        _entry(resource, "hash", str)
        _entry(resource, "bytes", int)
    return resource, contents


def _parts(content: bytes) -> int:
    return content.count(b"[") + content.count(b"{")


@dataclass(frozen=True)
class _Contents:
    """The checked descriptor: shapes of the arrays of measurements, and how a release is made of them."""

    kind: str
    shapes: Mapping[Clique, tuple[int, ...]]
    release: Callable[[dict[Clique, NDArray[np.int64]]], Release]


def _checked_contents(contents: Mapping[str, Any]) -> _Contents:
    schema = Schema.from_dict(_entry(contents, "schema", dict))
    stated = _entry(contents, "guarantee", dict)
    names = ("epsilon", "delta", "rho", "neighbours", "mechanism", "private", "unit", "versions")
    if set(stated) - {"sampling_rate", "max_rows"} != set(names):
        raise ValueError(f"guarantee must have the properties {list(names)}.")
    for name in ("neighbours", "mechanism", "unit"):
        _entry(stated, name, str)
    _entry(stated, "versions", dict)
    guarantee = Guarantee(**stated)
    if guarantee.mechanism == "none":
        raise ValueError("exact counts are no release.")
    total = contents["public_total"]
    entries = _entry(contents, "cliques", list)
    cliques = schema.require([_entry(entry, "variables", list) for entry in entries])
    if contents.get("kind") == "coefficients":
        for clique, entry in zip(cliques, entries, strict=True):
            _check_shape(entry, clique, schema.shape(clique), {"variables", "shape"})
        shapes = _subset_shapes(contents, schema, cliques, total is None)
        scale = _number("scale", contents["scale"])
        return _Contents(
            "coefficients", shapes, lambda arrays: NoisyCoefficients(schema, cliques, arrays, scale, guarantee, total)
        )
    scales: dict[Clique, float] = {}
    for clique, entry in zip(cliques, entries, strict=True):
        _check_shape(entry, clique, schema.shape(clique), {"variables", "shape", "scale"})
        scales[clique] = _number(f"scale of {clique}", entry["scale"])
    shapes = {clique: schema.shape(clique) for clique in cliques}

    def release(counts: dict[Clique, NDArray[np.int64]]) -> NoisyMarginals:
        weighted = guarantee.max_rows is None
        tables = {clique: count / UNIT_WEIGHT if weighted else count for clique, count in counts.items()}
        return NoisyMarginals(schema, tables, scales, guarantee, total)

    return _Contents("tables", shapes, release)


def _subset_shapes(
    contents: Mapping[str, Any], schema: Schema, cliques: Sequence[Clique], private_total: bool
) -> dict[Clique, tuple[int, ...]]:
    closure = downward_closure(schema, cliques)  # refuses what would be too large
    if _entry(contents, "contrasts", dict) != _contrast_entries(schema, cliques):
        raise ValueError("the contrasts are not those of this version of the format.")
    expected = closure if private_total else closure[1:]
    entries = _entry(contents, "subsets", list)
    if [_entry(entry, "variables", list) for entry in entries] != [list(subset) for subset in expected]:
        raise ValueError("the subsets are not those of the cliques, in order of their sizes and the schema.")
    shapes = {subset: tuple(schema.cardinality(v) - 1 for v in subset) for subset in expected}
    for (subset, shape), entry in zip(shapes.items(), entries, strict=True):
        _check_shape(entry, subset, shape, {"variables", "shape"})
    return shapes


def _check_shape(entry: Mapping[str, Any], clique: Clique, expected: tuple[int, ...], properties: set[str]) -> None:
    shape = _entry(entry, "shape", list)
    if set(entry) != properties or any(type(length) is not int for length in shape):
        raise ValueError(f"{clique} must state {', '.join(sorted(properties))}, and nothing else.")
    if tuple(shape) != expected:
        raise ValueError(f"{clique} has shape {expected} by the schema, {tuple(shape)} is given.")


def _entry(mapping: Any, name: str, *kinds: type) -> Any:
    if type(mapping) is not dict or name not in mapping:
        raise ValueError(f"the property {name!r} is missing.")
    if type(mapping[name]) not in kinds:
        raise ValueError(f"the property {name!r} must be of type {kinds[0].__name__}.")
    return mapping[name]


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
