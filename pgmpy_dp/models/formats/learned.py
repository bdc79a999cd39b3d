"""What a network was learned from, in files of every format: its guarantee, and what found its graph and states.

JSON has it as properties, UAI in the file of its names, and the other formats as a remark of one line, which other
programs skip: a sentence, and the costs as JSON.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pgmpy_dp.observed.factors import Network
from pgmpy_dp.privacy.guarantee import GRAPH_KEY, Guarantee, learned_graph

SIDECAR_PROPERTY = "pgmpy_dp:network"
_MARK = "pgmpy_dp guarantee: "
_REMARK = re.compile(_MARK.encode() + rb"(.*)")


def stated(network: Network, guarantee: Guarantee | None) -> dict[str, Any]:
    """Return what a file states of a network's guarantee, and by names of costs what found its graph and states."""
    if guarantee is None:
        return {}
    found = {node: _names(data[GRAPH_KEY]) for node, data in network.nodes(data=True) if GRAPH_KEY in data}
    graph = _names(learned_graph(network))
    own = {"graph": graph} if graph else {}
    return {"guarantee": guarantee.to_dict(), **own, **({"states": found} if found else {})}


def restore(network: Network, content: Mapping[str, Any]) -> None:
    """Give a network that was read what `stated` wrote."""
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
    found = _REMARK.search(content)
    if found is None:
        return {}
    read: Mapping[str, Any] = json.JSONDecoder().raw_decode(html.unescape(found[1].decode()))[0]
    return read


def _names(guarantee: Guarantee) -> list[str]:
    costs: Iterable[Any] = guarantee.every
    return sorted(cost.id for cost in costs)
