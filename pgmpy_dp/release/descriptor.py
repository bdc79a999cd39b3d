"""The descriptor of a release file, ``datapackage.json``: written, and checked before use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from pgmpy_dp._files import parse_json
from pgmpy_dp.errors import ReleaseFormatError
from pgmpy_dp.privacy.guarantee import Guarantee
from pgmpy_dp.schema import Clique, Schema

FORMAT_VERSION = 2
DESCRIPTOR = "datapackage.json"
MEASUREMENTS = "measurements.csv"
RELEASE_PROPERTY = "pgmpy_dp:release"
PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"

MAX_DESCRIPTOR_BYTES = 2**24  # 50,000 states of long names in a hierarchy take half of it
MAX_DESCRIPTOR_PARTS = 2**17  # lists and objects; an empty one, once parsed, takes thirty times its text


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


def checked_guarantee(contents: Mapping[str, Any]) -> Guarantee:
    stated = entry(contents, "guarantee", dict)
    names = ("epsilon", "delta", "rho", "neighbours", "mechanism", "private", "unit", "versions")
    shared = entry(stated, "shared", list) if "shared" in stated else []
    for each in (stated, *shared):
        optional = {"sampling_rate", "max_rows", "accepted", "payment", "shared", "overlap", "largest_weight"}
        if type(each) is not dict or set(each) - optional != set(names):
            raise ValueError(f"guarantee must have the properties {list(names)}.")
        for name in ("neighbours", "mechanism", "unit"):
            entry(each, name, str)
        entry(each, "versions", dict)
    guarantee = Guarantee.from_dict(stated)
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
