"""Layout of a drawn network: places of boxes and lines, which the template writes as SVG."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import networkx as nx
import numpy as np
from scipy.optimize import isotonic_regression

from pgmpy_dp._names import printable

WIDTH, HEIGHT = 132.0, 34.0  # of a box, in pixels
GAP_X, GAP_Y, MARGIN = 26.0, 58.0, 14.0
MAX_NODES = 200
MAX_ACROSS = 8  # boxes in a row, the width of a page
_LONGEST = 17  # letters in a box

Point = tuple[float, float]
Edge = tuple[str, str]
EMPTY: Mapping[Any, None] = MappingProxyType({})
Place = str | tuple[str, int]  # of a variable, or of its edges in a row that they pass


@dataclass(frozen=True)
class Box:
    """Box of a variable."""

    name: str
    short: str
    x: float
    y: float
    level: str | None


@dataclass(frozen=True)
class Line:
    """Line of an edge: end points and two control points of each cubic Bézier curve, end to end."""

    points: tuple[Point, ...]
    level: str | None
    label: str

    @property
    def path(self) -> str:
        """Write the line as an SVG path."""
        start, *curves = (f"{x:.1f} {y:.1f}" for x, y in self.points)
        return f"M{start} C{' '.join(curves)}"


@dataclass(frozen=True)
class Drawing:
    """A network with all of its places, in pixels."""

    width: float
    height: float
    directed: bool
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]


def draw(graph: nx.Graph, nodes: Mapping[str, str | None] = EMPTY, edges: Mapping[Edge, str | None] = EMPTY) -> Drawing:
    """Lay a graph out in layers from top to bottom, its components side by side."""
    directed = graph.is_directed()
    away = graph if directed else _oriented(graph)
    centres, between = _packed(away)
    listed = [*centres.values(), *(point for points in between.values() for point in points)]
    left, top = min(x for x, _ in listed) - WIDTH / 2 - MARGIN, min(y for _, y in listed) - HEIGHT / 2 - MARGIN
    width, height = (max(ends) for ends in zip(*listed, strict=True))

    def shown(point: Point) -> Point:
        return point[0] - left, point[1] - top

    centres = {node: shown(point) for node, point in centres.items()}
    short = shortened(centres)
    boxes = tuple(
        Box(node, short[node], x - WIDTH / 2, y - HEIGHT / 2, nodes.get(node)) for node, (x, y) in centres.items()
    )
    arrow = " to " if directed else " and "
    lines = tuple(
        Line(
            _curves(centres[a], [shown(point) for point in between[a, b]], centres[b], 7.0 if directed else 0.0),
            edges.get((a, b), edges.get((b, a))),
            f"{a}{arrow}{b}",
        )
        for a, b in away.edges()
    )
    return Drawing(width - left + WIDTH / 2 + MARGIN, height - top + HEIGHT / 2 + MARGIN, directed, boxes, lines)


def shortened(names: Iterable[str]) -> dict[str, str]:
    """Cut names so that they fit in a box and stay different: at their ends, else in their middles, else by number."""
    full, half = {name: printable(name) for name in names}, _LONGEST // 2 - 1
    number = {name: position for position, name in enumerate(full, 1)}

    def middle(name: str) -> str:
        return f"{full[name][:half]}…{full[name][-half:]}"

    def numbered(name: str) -> str:
        return f"{full[name][:half]}…{number[name]}"

    results = {name: text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…" for name, text in full.items()}
    for cut in (middle, numbered):
        taken = Counter(results.values())
        results = {
            name: cut(name) if taken[short] > 1 and len(full[name]) > _LONGEST else short
            for name, short in results.items()
        }
    return results


def _packed(graph: nx.DiGraph) -> tuple[dict[str, Point], dict[Edge, list[Point]]]:
    """Lay out every component by itself, and put them on shelves as wide as a page, or as the widest of them."""
    parts = sorted(nx.weakly_connected_components(graph), key=lambda part: (-len(part), min(part)))
    results = [_layered(graph.subgraph(part)) for part in parts]
    reached = [np.array([*positions.values(), *itertools.chain(*passed.values())]) for positions, passed in results]
    lefts = [points[:, 0].min() - WIDTH / 2 for points in reached]
    sizes = [np.ptp(points, axis=0) + np.array([WIDTH, HEIGHT]) for points in reached]
    widest = max(MAX_ACROSS * (WIDTH + GAP_X), *(width for width, _ in sizes))
    centres: dict[str, Point] = {}
    between: dict[Edge, list[Point]] = {}
    across = down = lowest = 0.0
    for (positions, passed), left, (width, height) in zip(results, lefts, sizes, strict=True):
        if across + width > widest:
            across, down = 0.0, lowest
        right = across - left
        centres |= {node: (x + right, y + down) for node, (x, y) in positions.items()}
        between |= {edge: [(x + right, y + down) for x, y in points] for edge, points in passed.items()}
        across += width + GAP_X
        lowest = max(lowest, down + height + GAP_Y)
    return centres, between


def _layered(graph: nx.DiGraph) -> tuple[dict[str, Point], dict[Edge, list[Point]]]:
    """Find centres of the boxes, ancestors above descendants, and the points that each edge passes between boxes.

    After Sugiyama, Tagawa and Toda (1981): an edge over several rows has a position in each row that it passes, which
    edges of one node share. Sweeps down and up sort every row by the mean position of the neighbours already placed,
    and move nodes there as far as widths allow, by least squares.
    """
    layer = _rows(graph)
    chains = {(a, b): [a, *((a, number) for number in range(layer[a] + 1, layer[b])), b] for a, b in graph.edges()}
    steps: nx.DiGraph = nx.DiGraph()
    steps.add_nodes_from(sorted(graph))
    for edge in sorted(chains):
        nx.add_path(steps, chains[edge])
    rows: list[list[Place]] = [[] for _ in range(1 + max(layer.values()))]
    for position in sorted(steps, key=lambda position: isinstance(position, tuple)):
        if isinstance(position, tuple):  # if nothing else decides, edges pass in the middle of a row
            rows[position[1]].insert(len(rows[position[1]]) // 2, position)
        else:
            rows[layer[position]].append(position)
    across = {position: float(i) for row in rows for i, position in enumerate(row)}
    for sweep in range(100):
        before, order = (steps.predecessors, rows) if sweep % 2 == 0 else (steps.successors, rows[::-1])
        for row in order:
            wanted = {p: float(np.mean([across[other] for other in before(p)] or across[p])) for p in row}
            row.sort(key=wanted.__getitem__)
            widths = [GAP_X if isinstance(position, tuple) else WIDTH for position in row]
            offsets = np.cumsum([0.0, *((one + other) / 2 + GAP_X for one, other in itertools.pairwise(widths))])
            placed = isotonic_regression([wanted[position] for position in row] - offsets).x + offsets
            across.update(zip(row, placed.tolist(), strict=True))
    at = {position: (across[position], i * (HEIGHT + GAP_Y)) for i, row in enumerate(rows) for position in row}
    return {node: at[node] for node in graph}, {edge: [at[p] for p in chain[1:-1]] for edge, chain in chains.items()}


def _rows(graph: nx.DiGraph) -> dict[str, int]:
    """Give nodes their rows: a layer that is wider than a page takes several, those without children first."""
    above = {node: number for number, nodes in enumerate(nx.topological_generations(graph)) for node in nodes}
    for node in reversed(list(nx.topological_sort(graph))):
        if graph.out_degree(node) > graph.in_degree(node):  # it moves down to its children
            above[node] = min(above[child] for child in graph.successors(node)) - 1
    layers: dict[int, list[str]] = {}
    for node, layer in sorted(above.items()):
        layers.setdefault(layer, []).append(node)
    row: dict[str, int] = {}
    below = 0
    for _, nodes in sorted(layers.items()):
        nodes.sort(key=lambda node: graph.out_degree(node) > 0)
        needed = -(-len(nodes) // MAX_ACROSS)
        row |= {node: below + position * needed // len(nodes) for position, node in enumerate(nodes)}
        below += needed
    return row


def _oriented(graph: nx.Graph) -> nx.DiGraph:
    """Direct edges away from the middle of each component, so that an undirected graph is drawn in layers too."""
    away: nx.DiGraph = nx.DiGraph()
    for part in nx.connected_components(graph):
        component = graph.subgraph(part)
        nearness = nx.closeness_centrality(component)
        middle = max(sorted(part), key=lambda node: nearness[node])
        results = [middle, *(node for _, node in nx.bfs_edges(component, middle, sort_neighbors=sorted))]
        number = {node: i for i, node in enumerate(results)}
        away.add_nodes_from(results)
        away.add_edges_from((a, b) if number[a] < number[b] else (b, a) for a, b in component.edges())
    return away


def _curves(start: Point, between: list[Point], end: Point, head: float) -> tuple[Point, ...]:
    """Run an edge straight down between boxes, past their height; an arrow's head takes the last pixels."""
    (x1, y1), (x2, y2) = start, end
    ends = [(x1, y1 + HEIGHT / 2)]
    for x, y in between:
        ends += [(x, y - HEIGHT / 2), (x, y + HEIGHT / 2)]
    ends.append((x2, y2 - HEIGHT / 2 - head))
    points = ends[:1]
    for (x, y), (to_x, to_y) in itertools.pairwise(ends):
        bend = (to_y - y) / 2
        points += [(x, y + bend), (to_x, to_y - bend), (to_x, to_y)]
    return tuple(points)
