"""The descriptor of a release file, ``datapackage.json``: what it says, and what of it can be believed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.errors import ReleaseFormatError
from pgmpy_dp.privacy.fourier import contrasts
from pgmpy_dp.privacy.mechanisms import UNIT_WEIGHT
from pgmpy_dp.release.coefficients import NoisyCoefficients, downward_closure
from pgmpy_dp.release.guarantee import Guarantee, checked_number
from pgmpy_dp.release.marginals import NoisyMarginals
from pgmpy_dp.schema import Clique, Schema, parse_json

Release = NoisyMarginals | NoisyCoefficients

FORMAT_VERSION = 2
DESCRIPTOR = "datapackage.json"
MEASUREMENTS = "measurements.csv"
RELEASE_PROPERTY = "pgmpy_dp:release"
PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"

MAX_DESCRIPTOR_BYTES = 2**22
MAX_DESCRIPTOR_PARTS = 2**17  # lists and objects: parsed, an empty one takes thirty times its text


def descriptor_of(release: Release, digest: str, size: int) -> dict[str, Any]:
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


def checked_descriptor(content: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    with contents_named():
        if parts_of(content) > MAX_DESCRIPTOR_PARTS:
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


def parts_of(content: bytes) -> int:
    """Number of lists and objects in a text of JSON, or more."""
    return content.count(b"[") + content.count(b"{")


@dataclass(frozen=True)
class Contents:
    """A checked descriptor: shapes of the arrays of measurements, and how a release is made of them."""

    kind: str
    shapes: Mapping[Clique, tuple[int, ...]]
    release: Callable[[dict[Clique, NDArray[np.int64]]], Release]


def checked_contents(contents: Mapping[str, Any]) -> Contents:
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
        scale = checked_number("scale", contents["scale"])
        return Contents(
            "coefficients", shapes, lambda arrays: NoisyCoefficients(schema, cliques, arrays, scale, guarantee, total)
        )
    scales: dict[Clique, float] = {}
    for clique, entry in zip(cliques, entries, strict=True):
        _check_shape(entry, clique, schema.shape(clique), {"variables", "shape", "scale"})
        scales[clique] = checked_number(f"scale of {clique}", entry["scale"])
    shapes = {clique: schema.shape(clique) for clique in cliques}

    def release(counts: dict[Clique, NDArray[np.int64]]) -> NoisyMarginals:
        weighted = guarantee.max_rows is None
        tables = {clique: count / UNIT_WEIGHT if weighted else count for clique, count in counts.items()}
        return NoisyMarginals(schema, tables, scales, guarantee, total)

    return Contents("tables", shapes, release)


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


@contextmanager
def contents_named() -> Iterator[None]:
    try:
        yield
    except ReleaseFormatError:
        raise
    except ValueError as error:
        raise ReleaseFormatError(f"{DESCRIPTOR}: {str(error)[:500]}") from error
