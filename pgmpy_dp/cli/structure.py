"""Structures of networks and cliques are read from files: they say what to fit and to measure."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from pgmpy_dp._files import parse_json

_EDGE = re.compile(r"(?P<first>.*\S)\s+(?P<arrow>->|--)\s+(?P<second>\S.*)")
_ARROWS = ("->", "--", "=>", "<-")
_LISTS = (".txt", ".edges")


def read_structure(path: Path) -> Any:
    """Read a network without parameters: a DiscreteBayesianNetwork or a PrivateMarkovNetwork.

    It comes from a network file, whose parameters are ignored, or a list of edges: one a line, ``a -> b`` or
    ``a -- b``, all of one kind; a line with one name is a variable without edges.
    """
    from pgmpy.models import DiscreteBayesianNetwork, DiscreteMarkovNetwork

    from pgmpy_dp.networks import SUFFIXES, PrivateMarkovNetwork, load_network

    if path.suffix.lower() in _LISTS:
        nodes, edges, undirected = _edge_list(path)
    elif path.suffix.lower() in (*SUFFIXES, ".xml"):
        network = load_network(path)
        nodes, edges = list(network.nodes()), list(network.edges())
        undirected = isinstance(network, DiscreteMarkovNetwork)
    else:
        raise click.ClickException(
            f"{path}: unknown kind of model. Give a network file ({', '.join(SUFFIXES)}) or a list of edges "
            f"({', '.join(_LISTS)})."
        )
    _require_network(path, edges, undirected)
    structure = PrivateMarkovNetwork() if undirected else DiscreteBayesianNetwork()
    structure.add_nodes_from(nodes)
    structure.add_edges_from(edges)
    return structure


def _require_network(path: Path, edges: list[tuple[str, str]], undirected: bool) -> None:
    """Refuse edges that no network can have, and name them."""
    import networkx as nx

    loop = next((first for first, second in edges if first == second), None)
    if loop is not None:
        raise click.ClickException(f"{path}: the edge of {loop!r} to itself; remove it.")
    graph = nx.DiGraph(edges)
    if not undirected and not nx.is_directed_acyclic_graph(graph):
        circle = [first for first, _ in nx.find_cycle(graph)]
        raise click.ClickException(
            f"{path}: the edges go round in a circle, {' -> '.join([*circle, circle[0]])}: remove or turn one of them, "
            "or write all as a -- b for a Markov network."
        )


def _edge_list(path: Path) -> tuple[list[str], list[tuple[str, str]], bool]:
    nodes: dict[str, None] = {}
    edges, arrows = [], set()
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise click.ClickException(f"{path}: not a text in UTF-8; save it as one.") from None
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        found = _EDGE.fullmatch(text)
        ends = (found["first"], found["second"]) if found else (text,)
        if any(arrow in name for name in ends for arrow in _ARROWS):
            raise click.ClickException(
                f"{path}, line {number}: write one edge a line, with blanks around its arrow, such as: smoke -> lung"
            )
        nodes.update(dict.fromkeys(ends))
        if found:
            edges.append(ends)
            arrows.add(found["arrow"])
    if len(arrows) > 1:
        raise click.ClickException(f"{path}: edges are all directed (a -> b) or all undirected (a -- b), not both.")
    if not nodes:
        raise click.ClickException(f"{path}: no edges; write one a line, such as: smoke -> lung")
    return list(nodes), edges, arrows == {"--"}  # type: ignore[return-value]


def read_cliques(path: Path) -> tuple[list[list[str]], list[float] | None]:
    """Read cliques and, if given, their shares: a JSON list of lists, or {"cliques": [...], "weights": [...]}."""
    try:
        content = parse_json(path.read_bytes())
    except ValueError as error:
        raise click.ClickException(f"{path}: not JSON ({error})") from None
    if isinstance(content, list):
        return content, None
    if (
        isinstance(content, dict)
        and isinstance(content.get("cliques"), list)
        and set(content) <= {"cliques", "weights"}
    ):
        return content["cliques"], content.get("weights")
    raise click.ClickException(
        f'{path}: write the cliques as a list of lists, such as [["smoke", "lung"]], or as '
        '{"cliques": [...], "weights": [...]}.'
    )
