"""Where the boxes and lines of a drawn network go. The template turns them into SVG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import networkx as nx
import numpy as np
from scipy.optimize import isotonic_regression

WIDTH, HEIGHT = 132.0, 34.0  # of a box
GAP_X, GAP_Y, MARGIN = 26.0, 58.0, 14.0
MOST_NODES = 200
_LONGEST = 17  # letters that fit in a box

Point = tuple[float, float]
Edge = tuple[str, str]
Place = str | tuple[str, str, int]  # of a variable, or of an edge in a layer that it passes


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
    centres, between = _layered(graph) if directed else (_spread(graph), {})
    listed = [*centres.values(), *(point for points in between.values() for point in points)]
    left, top = min(x for x, _ in listed) - WIDTH / 2 - MARGIN, min(y for _, y in listed) - HEIGHT / 2 - MARGIN
    width, height = (max(ends) for ends in zip(*listed, strict=True))

    def shown(point: Point) -> Point:
        return point[0] - left, point[1] - top

    centres = {node: shown(point) for node, point in centres.items()}
    boxes = tuple(
        Box(node, _shortened(node), x - WIDTH / 2, y - HEIGHT / 2, nodes[node]) for node, (x, y) in centres.items()
    )
    arrow = " to " if directed else " and "
    lines = tuple(
        Line(
            _path(centres[a], [shown(point) for point in between.get((a, b), [])], centres[b], directed),
            edges[a, b],
            f"{a}{arrow}{b}",
        )
        for a, b in graph.edges()
    )
    return Drawing(width - left + WIDTH / 2 + MARGIN, height - top + HEIGHT / 2 + MARGIN, directed, boxes, lines)


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _layered(graph: nx.DiGraph) -> tuple[dict[str, Point], dict[Edge, list[Point]]]:
    """Centres of the boxes, ancestors above descendants, and the points that each edge passes between boxes.

    After Sugiyama, Tagawa and Toda (1981): an edge over several layers has a place of its own in each; within a layer,
    order and place follow the mean of the neighbours.
    """
    layer = _layers(graph)
    chains = {(a, b): [a, *((a, b, number) for number in range(layer[a] + 1, layer[b])), b] for a, b in graph.edges()}
    steps: nx.DiGraph = nx.DiGraph()
    steps.add_nodes_from(sorted(graph))
    for edge in sorted(chains):
        nx.add_path(steps, chains[edge])
    number = {place: place[2] if isinstance(place, tuple) else layer[place] for place in steps}
    rows: list[list[Place]] = [[] for _ in range(1 + max(number.values()))]
    for place in steps:
        rows[number[place]].append(place)
    across = {place: float(i) for row in rows for i, place in enumerate(row)}
    for sweep in range(24):
        near = steps.predecessors if sweep % 2 == 0 else steps.successors
        for row in rows if sweep % 2 == 0 else reversed(rows):
            row.sort(key=lambda place: _mean((across[other] for other in near(place)), across[place]))
            across.update({place: float(i) for i, place in enumerate(row)})
    _settle(rows, steps, across)
    at = {place: (across[place], number[place] * (HEIGHT + GAP_Y)) for place in steps}
    return {node: at[node] for node in graph}, {edge: [at[p] for p in chain[1:-1]] for edge, chain in chains.items()}


def _layers(graph: nx.DiGraph) -> dict[str, int]:
    """Layers from the top; what has more children than parents moves down to its children."""
    layer = {node: number for number, nodes in enumerate(nx.topological_generations(graph)) for node in nodes}
    for node in reversed(list(nx.topological_sort(graph))):
        if graph.out_degree(node) > graph.in_degree(node):
            layer[node] = min(layer[child] for child in graph.successors(node)) - 1
    return layer


def _settle(rows: list[list[Place]], steps: nx.DiGraph, across: dict[Place, float]) -> None:
    """Move every row to where its neighbours are, as far as its order and the widths allow, by least squares."""
    offsets = []
    for row in rows:
        widths = [GAP_X if isinstance(place, tuple) else WIDTH for place in row]
        ends = np.cumsum([0.0, *((one + other) / 2 + GAP_X for one, other in pairwise(widths))])
        offsets.append(ends - ends[-1] / 2)
        across.update(zip(row, offsets[-1].tolist(), strict=True))
    for sweep in range(80):  # a long edge straightens slowly
        order = range(len(rows)) if sweep % 2 == 0 else reversed(range(len(rows)))
        for i in order:
            neighbours = [[*steps.predecessors(place), *steps.successors(place)] for place in rows[i]]
            wanted = [_mean((across[n] for n in near), across[p]) for p, near in zip(rows[i], neighbours, strict=True)]
            placed = isotonic_regression(np.array(wanted) - offsets[i]).x + offsets[i]
            across.update(zip(rows[i], placed.tolist(), strict=True))


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


def _path(start: Point, between: list[Point], end: Point, directed: bool) -> str:
    (x1, y1), (x2, y2) = start, end
    if not directed:
        return f"M{x1:.1f} {y1:.1f} L{x2:.1f} {y2:.1f}"
    # The arrow's head takes the last seven pixels. Between boxes an edge runs straight down, past their height.
    points = [(x1, y1 + HEIGHT / 2)]
    for x, y in between:
        points += [(x, y - HEIGHT / 2), (x, y + HEIGHT / 2)]
    points.append((x2, y2 - HEIGHT / 2 - 7))
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x, y), (to_x, to_y) in pairwise(points):
        if x == to_x:
            path += f" L{to_x:.1f} {to_y:.1f}"
        else:
            bend = (to_y - y) / 2
            path += f" C{x:.1f} {y + bend:.1f} {to_x:.1f} {to_y - bend:.1f} {to_x:.1f} {to_y:.1f}"
    return path
