"""Structures of networks and cliques are read from files: they say what to fit and to measure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgmpy_dp._files import parse_json

if TYPE_CHECKING:
    from pgmpy_dp.schema import Schema

_EDGE = re.compile(r"(?P<first>.*\S)\s+(?P<arrow>->|--)\s+(?P<second>\S.*)")
_ARROWS = ("->", "--", "=>", "<-")
_LISTS = (".txt", ".edges")
# What stands between two names for an arrow, by hand, from other programs or from a word processor.
_LIKE_ARROWS = re.compile(r"\s*[-=<>,;\u2010-\u2015\u2190-\u21ff\u2212\u2794\u27f5-\u27ff]+\s*")


def read_structure(path: Path, variables: Collection[str] = ()) -> Any:
    """Read a network without parameters: a PrivateBayesianNetwork or a PrivateMarkovNetwork.

    It comes from a network file, whose parameters are ignored, or a list of edges: one a line, ``a -> b`` or
    ``a -- b``, all of one kind; a line with one name is a variable without edges. Where ``variables`` are known, an
    edge that lacks its arrow is told from a name.
    """
    from pgmpy.models import DiscreteMarkovNetwork

    from pgmpy_dp.networks import SUFFIXES, PrivateBayesianNetwork, PrivateMarkovNetwork, load_network

    if path.suffix.lower() in _LISTS:
        nodes, edges, undirected = _edge_list(path, variables)
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
    structure = PrivateMarkovNetwork() if undirected else PrivateBayesianNetwork()
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


def _edge_list(path: Path, variables: Collection[str]) -> tuple[list[str], list[tuple[str, str]], bool]:
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
        meant = "" if found or text in variables else _meant(text, variables)
        if meant or any(arrow in name for name in ends for arrow in _ARROWS):
            raise click.ClickException(
                f"{path}, line {number}: write one edge a line, with blanks around its arrow, such as: smoke -> lung."
                f"{meant}"
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


def _meant(text: str, variables: Collection[str]) -> str:
    """Suggest an edge, if a line is two names with another sign for the arrow."""
    splits = [(text[: sign.start()], text[sign.end() :]) for sign in _LIKE_ARROWS.finditer(text)]
    edges = [ends for ends in splits if set(ends) <= set(variables)]
    if not edges and not variables and len(splits) == 1 and all(splits[0]) and any(arrow in text for arrow in _ARROWS):
        edges = splits
    return f" Did you mean: {edges[0][0]} -> {edges[0][1]}?" if edges else ""


def planned(schema: Schema, model: Path, check: float | None, mechanism: str) -> tuple[Any, list[float]]:
    """Plan the tables of a network, and the shares of the budget; without a `check`, with the library's own."""
    from pgmpy_dp.fitting import plan_measurements

    structure = read_structure(model, schema.variables)
    schema.require([list(structure.nodes())])
    own = {} if check is None else {"check": check}
    return plan_measurements(structure, schema, mechanism=mechanism, **own)


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


def schema_of(schema: Schema, cliques: Iterable[Iterable[str]]) -> Schema:
    """Keep the variables of some cliques, in the schema's order, which synthetic records will have."""
    used = {variable for clique in cliques for variable in clique}
    return schema.select([variable for variable in schema.variables if variable in used])


def read_plan(path: Path) -> tuple[dict[tuple[str, ...], float], float]:
    """Read the scales of residuals, and delta, as plan-accuracy writes them."""
    try:
        content = parse_json(path.read_bytes())
        return {tuple(each["variables"]): each["scale"] for each in content["residuals"]}, content["delta"]
    except (ValueError, KeyError, TypeError):
        raise click.ClickException(f"{path}: no plan as pgmpy-dp plan-accuracy --out writes it: make one.") from None
