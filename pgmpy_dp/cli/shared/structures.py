"""Structures of networks, cliques and plans are read from files."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgmpy_dp._files import parse_json
from pgmpy_dp.cli.shared.common import as_json_text
from pgmpy_dp.models.formats.file_kinds import endings_of
from pgmpy_dp.privacy.guarantee import DECLARED, GRAPH_KEY, Guarantee, Learned, learned_graph

if TYPE_CHECKING:
    from pgmpy_dp.data.mechanisms.mechanism import PublicRecords
    from pgmpy_dp.estimators.base import Plan
    from pgmpy_dp.schema import Schema

# A name, plain or in quotation marks as JSON writes it.
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_NAME = re.compile(_QUOTED)
_FOUND = "# found at the cost of: "
_EDGE = re.compile(rf'(?P<first>{_QUOTED}|[^"].*?)\s+(?P<arrow>->|--)\s+(?P<second>{_QUOTED}|[^"].*)')
_ARROWS = ("->", "--", "=>", "<-")
LISTS = endings_of("a list of edges")
# Signs that other programs, word processors or hands write for an arrow.
_LIKE_ARROWS = re.compile(r"\s*[-=<>,;\u2010-\u2015\u2190-\u21ff\u2212\u2794\u27f5-\u27ff]+\s*")


def read_structure(path: Path, variables: Collection[str] = ()) -> Any:
    """Read a network without parameters: a PrivateBayesianNetwork or a PrivateMarkovNetwork.

    It comes from a network file, whose parameters are ignored, or a list of edges: one a line, ``a -> b`` or ``a --
    b``, all of one kind; a line with one name is a variable without edges. A name that contains an arrow, or could be
    read otherwise, stands in quotation marks. Known ``variables`` distinguish an edge without its arrow from a name.
    """
    from pgmpy.models import DiscreteMarkovNetwork

    from pgmpy_dp.models.formats.formats import SUFFIXES
    from pgmpy_dp.networks import PrivateBayesianNetwork, PrivateMarkovNetwork, load_network

    result = DECLARED
    if path.suffix.lower() in LISTS:
        nodes, edges, undirected, result = _edge_list(path, variables)
    elif path.suffix.lower() in (*SUFFIXES, ".xml"):
        network = load_network(path)
        nodes, edges, result = list(network.nodes()), list(network.edges()), learned_graph(network)
        undirected = isinstance(network, DiscreteMarkovNetwork)
    else:
        raise click.ClickException(
            f"{path}: unknown kind of model. Give a network file ({', '.join(SUFFIXES)}) or a list of edges "
            f"({', '.join(LISTS)})."
        )
    _require_network(path, edges, undirected)
    structure = PrivateMarkovNetwork() if undirected else PrivateBayesianNetwork()
    structure.add_nodes_from(nodes)
    structure.add_edges_from(edges)
    if result.every:
        structure.graph[GRAPH_KEY] = result
    return structure


def _require_network(path: Path, edges: list[tuple[str, str]], undirected: bool) -> None:
    """Refuse loops and cycles, and name them."""
    import networkx as nx

    loop = next((first for first, second in edges if first == second), None)
    if loop is not None:
        raise click.ClickException(f"{path}: {loop!r} has an edge to itself; remove it.")
    graph = nx.DiGraph(edges)
    if not undirected and not nx.is_directed_acyclic_graph(graph):
        circle = [first for first, _ in nx.find_cycle(graph)]
        raise click.ClickException(
            f"{path}: the edges form a cycle, {' -> '.join([*circle, circle[0]])}: remove or reverse one of them, "
            "or write all as a -- b for a Markov network."
        )


def _edge_list(path: Path, variables: Collection[str]) -> tuple[list[str], list[tuple[str, str]], bool, Guarantee]:
    """Read the nodes and edges, whether these are undirected, and the cost that a comment of `edge_lines` states."""
    nodes: dict[str, None] = {}
    edges, arrows = [], set()
    stated = None
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise click.ClickException(f"{path}: not a text file in UTF-8; save it as one.") from None
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if stated is None and text.startswith(_FOUND):
            stated = text.removeprefix(_FOUND)
        if not text or text.startswith("#"):
            continue
        result = _EDGE.fullmatch(text)
        written = (result["first"], result["second"]) if result else (text,)
        ends = [name for name in map(_unquoted, written) if name is not None]
        unclear = len(ends) < len(written)
        meant = _meant(text, variables) if unclear or (ends == [text] and text not in variables) else ""
        if meant or unclear:
            raise click.ClickException(
                f"{path}, line {number}: write one edge a line, with blanks around its arrow, such as: smoke -> lung."
                f"{meant}"
            )
        nodes.update(dict.fromkeys(ends))
        if result:
            edges.append((ends[0], ends[1]))
            arrows.add(result["arrow"])
    if len(arrows) > 1:
        raise click.ClickException(f"{path}: edges are all directed (a -> b) or all undirected (a -- b), not both.")
    if not nodes:
        raise click.ClickException(f"{path}: no edges; write one a line, such as: smoke -> lung")
    try:
        cost = DECLARED if stated is None else Guarantee.from_dict(parse_json(stated.encode()))
    except (ValueError, TypeError, KeyError) as error:
        raise click.ClickException(f"{path}: its line {_FOUND.strip()} was altered ({error}): get it again.") from None
    return list(nodes), edges, arrows == {"--"}, cost


def edge_lines(edges: Iterable[tuple[str, str]], nodes: Iterable[str], found: Guarantee = DECLARED) -> list[str]:
    """Write one edge or isolated variable per line, and the guarantee of finding the edges as a comment."""
    edges = list(edges)
    joined = {name for edge in edges for name in edge}
    alone = [_quoted(name) for name in nodes if name not in joined]
    stated = [f"{_FOUND}{json.dumps(found.to_dict())}"] if found.every else []
    return [*stated, *(f"{_quoted(parent)} -> {_quoted(child)}" for parent, child in edges), *alone]


def _quoted(name: str) -> str:
    """Put a name in quotation marks if it would be read back differently."""
    plain = name.isprintable() and name == name.strip() and name[:1] not in ("", "#", '"')
    return name if plain and not any(arrow in name for arrow in _ARROWS) else as_json_text(name)


def _unquoted(text: str) -> str | None:
    """Read a name; None if the text is not a name."""
    if text.startswith('"'):
        try:
            return str(parse_json(text.encode())) if _NAME.fullmatch(text) else None
        except ValueError:
            return None
    return None if any(arrow in text for arrow in _ARROWS) else text


def _meant(text: str, variables: Collection[str]) -> str:
    """Suggest an edge for a line that has two names with another sign for the arrow."""
    splits = [(text[: sign.start()], text[sign.end() :]) for sign in _LIKE_ARROWS.finditer(text)]
    edges = [ends for ends in splits if set(ends) <= set(variables)]
    if not edges and not variables and len(splits) == 1 and all(splits[0]) and any(arrow in text for arrow in _ARROWS):
        edges = splits
    return f" Did you mean: {edges[0][0]} -> {edges[0][1]}?" if edges else ""


def planned(schema: Schema, model: Path, check: float | None, mechanism: str) -> tuple[Any, list[float]]:
    """Plan the tables of a network and their shares of the budget, by default with the library's own `check`."""
    from pgmpy_dp.fitting.plans.planning import plan_measurements

    structure = read_structure(model, schema.variables)
    schema.require([list(structure.nodes())])
    own = {} if check is None else {"check": check}
    return plan_measurements(structure, schema, mechanism=mechanism, **own)


def planned_in_groups(public: PublicRecords, model: Path, records: float | None, **options: Any) -> Plan | None:
    """Plan the tables of a network in stages, if nodes have so many states that they are measured in groups.

    The plan is for the network's nodes and the coarser variables that the schema declares for these.
    """
    from pgmpy_dp.data.mechanisms.steps import StagedTables
    from pgmpy_dp.estimators.from_tables import CollectiveEM
    from pgmpy_dp.fitting.plans.groups import many_states
    from pgmpy_dp.fitting.readings.grouped_networks import declared_coarser

    structure = read_structure(model, public.schema.variables)
    nodes = list(structure.nodes())
    coarser = declared_coarser(structure, public.schema, nodes)
    if not many_states(public.schema, nodes) and not coarser:
        return None
    public = replace(public, schema=schema_of(public.schema, [nodes, list(coarser.values())]))
    given = {name: option for name, option in options.items() if option is not None}
    plan = CollectiveEM(**given).plan(structure, public, records)
    return plan if isinstance(plan.mechanism, StagedTables) else None


def left_out(schema: Schema, kept: Collection[str]) -> list[str]:
    """Name the variables that a network does not have, and how to keep them."""
    from pgmpy_dp.schema.states import some

    derived = schema.structure.derived  # groups of a node's states stand for it
    names = [v for v in schema.variables if v not in kept and (v not in derived or derived[v][0] not in kept)]
    if not names:
        return []
    return [
        f"Left out, since no edge names them: {some(names)}. In a list of edges, a line with its name alone keeps "
        "a variable."
    ]


def read_cliques(path: Path) -> tuple[Sequence[list[str]], list[float] | None]:
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
        and set(content) <= {"cliques", "weights", "guarantee"}
    ):
        result = Guarantee.from_dict(content["guarantee"]) if "guarantee" in content else DECLARED
        return Learned(content["cliques"], result), content.get("weights")
    raise click.ClickException(
        f'{path}: write the cliques as a list of lists, such as [["smoke", "lung"]], or as '
        '{"cliques": [...], "weights": [...]}.'
    )


def schema_of(schema: Schema, cliques: Iterable[Iterable[str]]) -> Schema:
    """Select the variables of some cliques, in the schema's order."""
    named = {variable for clique in cliques for variable in clique}
    used = named | {schema.details[name].variable for name in named & schema.details.keys()}
    return schema.select([variable for variable in schema.variables if variable in used])


def read_plan(path: Path) -> tuple[dict[tuple[str, ...], float], float]:
    """Read the scales of residuals, and delta, as plan-accuracy writes them."""
    try:
        content = parse_json(path.read_bytes())
        return {tuple(each["variables"]): each["scale"] for each in content["residuals"]}, content["delta"]
    except (ValueError, KeyError, TypeError):
        raise click.ClickException(f"{path}: not a plan that pgmpy-dp plan-accuracy --out wrote: make one.") from None
