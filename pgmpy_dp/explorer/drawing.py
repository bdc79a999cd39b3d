"""The graph on the page: a network's own, or the strongest dependencies of a mixture."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np

from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.report.network_drawing import MOST_NODES, draw
from pgmpy_dp.schema import Schema

_MOST_EDGES = 1.5  # strongest dependencies per variable
_LEAST = 0.001  # nats of mutual information
_MOST_CELLS = 4_000_000


def drawing_content(model: Any, schema: Schema) -> dict[str, Any] | None:
    """Return boxes and lines, or None if there are too many to draw."""
    if len(schema.variables) > MOST_NODES:
        return None
    if hasattr(model, "edges"):
        graph = nx.DiGraph() if hasattr(model, "get_parents") else nx.Graph()
        graph.add_nodes_from(model.nodes())
        graph.add_edges_from(model.edges())
    else:
        graph = _strongest(model, schema)
    found = draw(graph)
    return {
        "width": found.width,
        "height": found.height,
        "directed": found.directed,
        "strongest": not hasattr(model, "edges"),
        "boxes": [[schema.variables.index(box.name), box.short, box.x, box.y] for box in found.boxes],
        "lines": [line.path for line in found.lines],
    }


def _strongest(model: Any, schema: Schema) -> nx.Graph:
    """Join the pairs of largest mutual information: a spanning tree, and the strongest of the others."""
    whole: nx.Graph = nx.Graph()
    whole.add_nodes_from(schema.variables)
    for pair in combinations(schema.variables, 2):
        if schema.cells(pair) <= _MOST_CELLS:
            strength = mutual_information(model.marginal(pair))
            if strength > _LEAST:
                whole.add_edge(*pair, weight=strength)
    graph = nx.maximum_spanning_tree(whole)
    others = sorted((edge for edge in whole.edges(data="weight") if not graph.has_edge(*edge[:2])), key=lambda e: -e[2])
    room = int(_MOST_EDGES * len(schema.variables)) - graph.number_of_edges()
    graph.add_edges_from((one, other) for one, other, _ in others[: max(room, 0)])
    return graph


def mutual_information(joint: Vector) -> float:
    """Return the mutual information of a table's two axes, in nats."""
    even = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    held = joint > 0
    return float((joint[held] * np.log(joint[held] / even[held])).sum())
