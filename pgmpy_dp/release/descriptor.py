"""The descriptor of a release file, ``datapackage.json``: written, and checked before use."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp._files import parse_json
from pgmpy_dp.errors import ReleaseFormatError
from pgmpy_dp.privacy.guarantee import Guarantee
from pgmpy_dp.schema import Clique, Schema

FORMAT_VERSION = 3
NAMED_COSTS = 3  # the first version in which costs have names
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
    try:
        guarantee = Guarantee.from_dict(entry(contents, "guarantee", dict))
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"guarantee is no set of costs ({type(error).__name__}: {error}).") from error
    if guarantee.mechanism == "none":
        raise ValueError("exact counts are not a release.")
    return guarantee


def require_costs(contents: Mapping[str, Any]) -> None:
    """Refuse a file that states sums without the costs that make them, which only earlier versions wrote."""
    for each in (contents, *contents.get("parts", ())):
        if contents["format_version"] >= NAMED_COSTS and "costs" not in each["guarantee"]:
            raise ValueError("the guarantee states no costs.")


def with_payments(contents: Mapping[str, Any], arrays: Sequence[NDArray[Any]]) -> dict[str, Any]:
    """Name the cost of a release of an earlier version as that version did: by its content.

    So a release that another file names among what it counts is counted once.
    """
    stated = {name: value for name, value in contents.items() if name not in ("format_version", "state")}
    named = dict(contents)
    if "parts" in contents:
        ends = np.cumsum([0, *(len(part["cliques"]) for part in contents["parts"])])
        own = [arrays[start:end] for start, end in pairwise(ends)]
        named["parts"] = [with_payments(part, each) for part, each in zip(contents["parts"], own, strict=True)]
    digest = hashlib.sha256(json.dumps(stated, sort_keys=True).encode())
    for values in arrays:
        digest.update(np.ascontiguousarray(values).tobytes())
    return named | {"guarantee": {"payment": digest.hexdigest()[:32]} | contents["guarantee"]}


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
