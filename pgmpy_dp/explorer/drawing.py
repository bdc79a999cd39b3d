"""The graph on the page: a network's own, or the strongest dependencies of a mixture."""

from __future__ import annotations

import html
from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np

from pgmpy_dp._names import printable
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.report.network_drawing import HEIGHT, MOST_NODES, WIDTH, Box, draw
from pgmpy_dp.schema import Schema

_MOST_EDGES = 1.5  # strongest dependencies per variable
_LEAST = 0.001  # nats of mutual information
_MOST_CELLS = 4_000_000
_FRAME = """<details id="graph">
<summary>Drawing of the {name}</summary>
<div class="scroll" tabindex="0" role="region" aria-label="Drawing of the variables">
<svg width="{width:.1f}" height="{height:.1f}" viewBox="0 0 {width:.1f} {height:.1f}">
<defs><marker id="arrow" viewBox="0 0 10 10" refX="2" refY="5" markerWidth="9" markerHeight="9"
 markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 L10 5 L0 10 z"/></marker></defs>
{shapes}
</svg>
</div>
</details>"""


def drawing(model: Any, schema: Schema) -> str:
    """Write the graph as HTML whose boxes have the numbers of variables; nothing if there are too many to draw."""
    if len(schema.variables) > MOST_NODES:
        return ""
    if hasattr(model, "edges"):
        graph, name = nx.DiGraph() if hasattr(model, "get_parents") else nx.Graph(), "network"
        graph.add_nodes_from(model.nodes())
        graph.add_edges_from(model.edges())
    else:
        graph, name = _strongest(model, schema), "strongest dependencies"
    found = draw(graph)
    arrow = ' marker-end="url(#arrow)"' if found.directed else ""
    shapes = [f'<path class="edge" d="{line.path}"{arrow}/>' for line in found.lines]
    shapes += [_box(box, schema.variables.index(box.name)) for box in found.boxes]
    parts = {"name": name, "width": found.width, "height": found.height, "shapes": "\n".join(shapes)}
    return _FRAME.format(**parts)


def _box(box: Box, number: int) -> str:
    title, text = (html.escape(printable(name).strip() or repr(name)) for name in (box.name, box.short))
    return (
        f'<a href="#" data-variable="{number}"><title>{title}</title>'
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{WIDTH}" height="{HEIGHT}" rx="7"/>'
        f'<text x="{box.x + WIDTH / 2:.1f}" y="{box.y + 21.5:.1f}">{text}</text></a>'
    )


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
