"""Statements in the file of a model: its kind, at the beginning, and its costs.

JSON has the costs as properties, UAI in the file of its names, and the other formats as a remark of one line, which
other programs skip: a sentence, and the costs as JSON.
"""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pgmpy_dp._files import path_of
from pgmpy_dp._kinds import kind_of
from pgmpy_dp.errors import ReleaseFormatError
from pgmpy_dp.privacy.guarantee import GRAPH_KEY, Guarantee, learned_graph
from pgmpy_dp.release.carrying import MODEL_AT, carries

if TYPE_CHECKING:
    from pgmpy_dp.observed.factors import Network

SIDECAR_PROPERTY = "pgmpy_dp:network"
_MARK = "pgmpy_dp guarantee: "
_REMARK = re.compile(_MARK.encode() + rb"(.*)")


def stated(network: Network, guarantee: Guarantee | None) -> dict[str, Any]:
    """Return a network's guarantee as written in files, and the names of the costs of its graph and states."""
    if guarantee is None:
        return {}
    results = {node: _names(data[GRAPH_KEY]) for node, data in network.nodes(data=True) if GRAPH_KEY in data}
    graph = _names(learned_graph(network))
    own = {"graph": graph} if graph else {}
    return {"guarantee": guarantee.to_dict(), **own, **({"states": results} if results else {})}


def restore(network: Network, content: Mapping[str, Any]) -> None:
    """Restore in a network that was read what `stated` wrote."""
    if content.get("guarantee") is None:
        return
    network.guarantee_ = Guarantee.from_dict(content["guarantee"])
    costs = {cost.id: cost for cost in network.guarantee_.every}
    if graph := content.get("graph"):
        network.graph[GRAPH_KEY] = Guarantee(earlier=frozenset(costs[name] for name in graph))
    for node, names in content.get("states", {}).items():
        network.nodes[node][GRAPH_KEY] = Guarantee(earlier=frozenset(costs[name] for name in names))


def remark(network: Network, guarantee: Guarantee | None) -> str:
    """Write what `stated` says as one line; empty if there is no guarantee."""
    content = stated(network, guarantee)
    return f"{guarantee}. {_MARK}{json.dumps(content, separators=(',', ':'))}" if content else ""


def from_remark(content: bytes) -> Mapping[str, Any]:
    """Read the remark of a file; empty if there is none."""
    result = _REMARK.search(content)
    if result is None:
        return {}
    return json.JSONDecoder().raw_decode(html.unescape(result[1].decode()))[0]


def _names(guarantee: Guarantee) -> list[str]:
    costs: Iterable[Any] = guarantee.every
    return sorted(cost.id for cost in costs)


BAYESIAN, MARKOV = "pgmpy_dp Bayesian network", "pgmpy_dp Markov network"
MIXTURE, HOUSEHOLDS = "pgmpy_dp mixture network", "pgmpy_dp household network"
_READ_BY = {"a schema": "Schema.load", "a ledger": "PrivacyBudget.open", "a release": "release.Release.load"}
_BEGINNING = re.compile(rb'\s*\{\s*"format"\s*:\s*"(pgmpy_dp \w+ network)"')


def format_of(path: str | os.PathLike[str]) -> str | None:
    """Return the format that a JSON file, or a zip file with releases, declares, or None."""
    with path_of(path).open("rb") as file:
        file.seek(MODEL_AT if carries(path) else 0)
        result = _BEGINNING.match(file.read(200))
    return result[1].decode() if result else None


def require_format(path: str | os.PathLike[str], *forms: str) -> None:
    """Raise if a file declares the format of another kind of model, or is recognised as no model."""
    result = format_of(path)
    kind = kind_of(path_of(path)) if result is None else None
    if kind in _READ_BY:
        raise ReleaseFormatError(f"{path} holds {kind} and no model: pgmpy_dp.{_READ_BY[kind]} reads it.")
    if result is not None and result not in forms:
        kind = result.removeprefix("pgmpy_dp ")
        raise ReleaseFormatError(f"{path} holds a {kind}: pgmpy_dp.load reads models of every kind.")
