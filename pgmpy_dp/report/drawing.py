"""Where the boxes and lines of a drawn network go. The template turns them into SVG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import networkx as nx

WIDTH, HEIGHT = 132.0, 34.0  # of a box
GAP_X, GAP_Y, MARGIN = 26.0, 58.0, 14.0
MOST_NODES = 200
_LONGEST = 17  # letters that fit in a box

Point = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """A variable."""

    name: str
    short: str
    x: float
    y: float
    level: str | None


@dataclass(frozen=True)
class Line:
    """An edge, as the path of an SVG line."""

    path: str
    level: str | None
    label: str


@dataclass(frozen=True)
class Drawing:
    """A network with the place of everything, in pixels."""

    width: float
    height: float
    directed: bool
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]


def draw(
    graph: nx.Graph, nodes: Mapping[str, str | None], edges: Mapping[tuple[str, str], str | None]
) -> Drawing | None:
    """Lay a graph out, from top to bottom if it is directed.

    Parameters
    ----------
    graph : networkx Graph or DiGraph
    nodes, edges : mapping to a level of noise, or None for what was not measured

    Returns
    -------
    Drawing or None
        None if the graph has too many nodes to be legible.
    """
    if len(graph) > MOST_NODES:
        return None
    directed = graph.is_directed()
    centres = _layered(graph) if directed else _spread(graph)
    left, top = min(x for x, _ in centres.values()), min(y for _, y in centres.values())
    centres = {n: (x - left + WIDTH / 2 + MARGIN, y - top + HEIGHT / 2 + MARGIN) for n, (x, y) in centres.items()}
    boxes = tuple(
        Box(node, _shortened(node), x - WIDTH / 2, y - HEIGHT / 2, nodes[node]) for node, (x, y) in centres.items()
    )
    arrow = " to " if directed else " and "
    lines = tuple(
        Line(_path(centres[a], centres[b], directed), edges[a, b], f"{a}{arrow}{b}") for a, b in graph.edges()
    )
    width = max(x for x, _ in centres.values()) + WIDTH / 2 + MARGIN
    height = max(y for _, y in centres.values()) + HEIGHT / 2 + MARGIN
    return Drawing(width, height, directed, boxes, lines)


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _layered(graph: nx.DiGraph) -> dict[str, Point]:
    """Ancestors above descendants; within a layer, near the mean of the neighbours (Sugiyama et al. 1981)."""
    layers = [sorted(layer) for layer in nx.topological_generations(graph)]
    place = {node: float(i) - (len(layer) - 1) / 2 for layer in layers for i, node in enumerate(layer)}
    for sweep in range(8):
        near = graph.predecessors if sweep % 2 == 0 else graph.successors
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            layer.sort(key=lambda node: (_mean((place[other] for other in near(node)), place[node]), node))
            place.update({node: float(i) - (len(layer) - 1) / 2 for i, node in enumerate(layer)})
    return {
        node: (place[node] * (WIDTH + GAP_X), number * (HEIGHT + GAP_Y))
        for number, layer in enumerate(layers)
        for node in layer
    }


def _mean(values: Iterable[float], otherwise: float) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else otherwise


def _spread(graph: nx.Graph) -> dict[str, Point]:
    """Components side by side, each with distances as in the graph (Kamada and Kawai 1989), boxes apart."""
    points: dict[str, Point] = {}
    left = 0.0
    parts = sorted((sorted(part) for part in nx.connected_components(graph)), key=lambda part: (-len(part), part))
    for part in parts:
        layout = nx.kamada_kawai_layout(graph.subgraph(part)) if len(part) > 1 else {part[0]: (0.0, 0.0)}
        placed = _apart({node: (float(x), float(y)) for node, (x, y) in layout.items()})
        start = min(x for x, _ in placed.values())
        points.update({node: (left + x - start, y) for node, (x, y) in placed.items()})
        left = max(points[node][0] for node in part) + WIDTH + GAP_X
    return points


def _apart(points: Mapping[str, Point]) -> dict[str, Point]:
    """Scaled so that no two boxes touch."""
    listed = list(points.values())
    scale = WIDTH + GAP_X
    for i, (x, y) in enumerate(listed):
        for other_x, other_y in listed[:i]:
            wide = (WIDTH + GAP_X) / max(abs(x - other_x), 1e-6)
            high = (HEIGHT + GAP_Y / 2) / max(abs(y - other_y), 1e-6)
            scale = max(scale, min(wide, high))
    scale = min(scale, 40.0 * (WIDTH + GAP_X))
    return {node: (x * scale, y * scale) for node, (x, y) in points.items()}


def _path(start: Point, end: Point, directed: bool) -> str:
    (x1, y1), (x2, y2) = start, end
    if not directed:
        return f"M{x1:.1f} {y1:.1f} L{x2:.1f} {y2:.1f}"
    y1, y2 = y1 + HEIGHT / 2, y2 - HEIGHT / 2 - 7  # the arrow's head takes the rest
    bend = max((y2 - y1) / 2, 12.0)
    return f"M{x1:.1f} {y1:.1f} C{x1:.1f} {y1 + bend:.1f} {x2:.1f} {y2 - bend:.1f} {x2:.1f} {y2:.1f}"
