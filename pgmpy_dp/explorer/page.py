"""The page: its text, and the graph on it, a network's own or the strongest dependencies of a mixture."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import combinations
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np

from pgmpy_dp._files import path_of, replacing, require_page
from pgmpy_dp._names import printable
from pgmpy_dp.errors import warn
from pgmpy_dp.explorer.content import Packed, groups_content, mixture_content, shape_content, tree_content
from pgmpy_dp.fitting.plans.outlook import hidden_by_noise
from pgmpy_dp.inference import TreeTooLargeError
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.models.fitted import Fitted
from pgmpy_dp.models.household_network import PrivateHouseholdNetwork
from pgmpy_dp.models.mixture_network import FittedMixture
from pgmpy_dp.models.questions import reading_schema
from pgmpy_dp.networks.fitted_in_groups import FittedInGroups
from pgmpy_dp.networks.fitted_network import FittedNetwork
from pgmpy_dp.report.network_drawing import HEIGHT, MAX_NODES, WIDTH, Box, draw
from pgmpy_dp.report.page import promise as promised
from pgmpy_dp.schema import DateBins, DateFormat, Schema

if TYPE_CHECKING:
    from pgmpy_dp.models.model import Model

_MAX_EDGES = 1.5  # strongest dependencies per variable
_MIN = 0.001  # nats of mutual information
_MAX_CELLS = 4_000_000
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
    if len(schema.variables) > MAX_NODES:
        return ""
    if hasattr(model, "edges"):
        graph, name = nx.DiGraph() if hasattr(model, "get_parents") else nx.Graph(), "network"
        graph.add_nodes_from(model.nodes())
        graph.add_edges_from(model.edges())
    else:
        graph, name = _strongest(model, schema), "strongest dependencies"
    result = draw(graph)
    arrow = ' marker-end="url(#arrow)"' if result.directed else ""
    shapes = [f'<path class="edge" d="{line.path}"{arrow}/>' for line in result.lines]
    shapes += [_box(box, schema.variables.index(box.name)) for box in result.boxes]
    parts = {"name": name, "width": result.width, "height": result.height, "shapes": "\n".join(shapes)}
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
    coarser = {
        finer: groups for finer, (groups, _) in schema.structure.refined.items() if groups in schema.structure.hidden
    }
    whole.add_nodes_from(variable for variable in schema.variables if variable not in schema.structure.hidden)
    for pair in combinations(whole.nodes, 2):
        asked = [coarser.get(variable, variable) for variable in pair]  # as informative about others
        if schema.cells(asked) <= _MAX_CELLS:
            strength = mutual_information(model.marginal(asked))
            if strength > _MIN:
                whole.add_edge(*pair, weight=strength)
    graph = nx.maximum_spanning_tree(whole)
    others = sorted((edge for edge in whole.edges(data="weight") if not graph.has_edge(*edge[:2])), key=lambda e: -e[2])
    room = int(_MAX_EDGES * len(whole)) - graph.number_of_edges()
    graph.add_edges_from((one, other) for one, other, _ in others[: max(room, 0)])
    return graph


def mutual_information(joint: Vector) -> float:
    """Return the mutual information of a table's two axes, in nats."""
    even = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    possible = joint > 0
    return float((joint[possible] * np.log(joint[possible] / even[possible])).sum())


SCRIPTS = ("numbers.js", "trees.js", "groups.js", "mixtures.js", "questions.js", "page.js")
INTERVAL = 0.9
_NO_BOUNDS = (
    "Bounds of so large a network are drawn question by question, by query, which also corrects answers that the "
    "release contradicts. Answers of the page are those of the network's own parameters."
)


@dataclass(frozen=True)
class ExplorerPage:
    """A page of HTML that answers questions; a notebook shows it in the cell."""

    html: str

    def _repr_html_(self) -> str:
        page = html.escape(self.html)
        return f'<iframe srcdoc="{page}" style="width:100%;height:800px;border:0" title="Explorer"></iframe>'


def explore(
    model: Model, path: str | os.PathLike[str] | None = None, *, title: str | None = None
) -> ExplorerPage | None:
    """Make an HTML page that answers queries about a model in a browser, with bounds.

    The page is self-contained: it works offline and fetches nothing. It contains the model, the draws from which
    bounds are computed and a small interpreter, and answers scripts as well:
    ``explorer.query(["visits"], {"health": "poor"})``. It follows from the release and may be published with it.

    Parameters
    ----------
    model : PrivateBayesianNetwork, PrivateMarkovNetwork, PrivateMixtureNetwork or PrivateHouseholdNetwork
        A fitted model.
    path : path, optional
        A name that ends in .html or .htm. Without it the page is returned, for display in a notebook.
    title : str, optional
        Heading of the page.

    Returns
    -------
    ExplorerPage or None
        The page, if no path is given.

    Raises
    ------
    ValueError
        If the path has another ending.
    TreeTooLargeError
        If the tables of a network are too large for a page; a `PairwiseMixture` needs no such tables.

    Notes
    -----
    Bounds hold with a probability of 90 %. They agree with those of `query` up to the single precision of the draws
    on the page. A model without a release has a page without bounds, and so has a network so large that bounds are
    drawn question by question; a warning says so. The page of a network of households answers for persons.

    Examples
    --------
    >>> import pgmpy_dp as dp
    >>> network = dp.PrivateBayesianNetwork.of(dp.evaluation.bnlearn_network("asia"))
    >>> page = dp.explore(network)
    >>> "smoke" in page.html
    True
    """
    if path is not None:
        require_page(path)
    guarantee = getattr(model, "guarantee_", None)
    counted = "records" if guarantee is None else guarantee.counted
    if isinstance(model, PrivateHouseholdNetwork):
        model, counted = model.persons, "persons"
    packed, fitted = Packed(), model._fitted
    content = model_content(model, fitted, packed) | {"counted": counted}
    head = json.dumps(content).replace("<", "\\u003c")
    script, style = "{\n" + "\n".join(map(_source, SCRIPTS)) + "\n}", _source("page.css")
    parts = {"title": html.escape(title or "Ask the records"), "head": head, "arrays": packed.text()}
    parts |= {"script": script, "style": style, "script-hash": _hash(script), "style-hash": _hash(style)}
    promise, notices = _promised(model, content["bounded"])
    parts |= {"drawing": drawing(model, fitted.schema), "promise": promise, "notices": notices}
    parts["counted"] = html.escape(printable(counted))
    parts["bounds"] = "" if content["bounded"] else "no-bounds"
    # In one pass, since names and titles may contain text that looks like a placeholder.
    page = re.sub(r"\{([a-z-]+)\}", lambda result: parts[result[1]], _source("page.html"))
    if path is None:
        return ExplorerPage(page)
    with replacing(path_of(path)) as handle:
        handle.write(page.encode())
    return None


def model_content(model: Model, fitted: Fitted, packed: Packed) -> dict[str, Any]:
    """Return everything that the page's scripts know about a model, as JSON whose arrays are packed."""
    schema, bounded = fitted.schema, _is_bounded(fitted)
    whole = fitted.inner if isinstance(fitted, FittedInGroups) else fitted
    shown, ordered = set(model._predicted()), set(schema.ordered)
    variables = [_variable(fitted, variable, packed) for variable in schema.variables]
    content: dict[str, Any] = {
        "bounded": bounded,
        "variables": variables,
        "shown": [number for number, variable in enumerate(schema.variables) if variable in shown],
        "ordered": [n for n, own in enumerate(variables) if "edges" in own or own["name"] in ordered],
        "rules": [
            {
                "scope": [whole.schema.variables.index(variable) for variable in rule.variables],
                "allowed": packed.add(whole.schema.possible(rule.variables), np.uint8),
            }
            for rule in whole.schema.rules
            if shown.issuperset(rule.variables)
        ],
        "total": None,
    }
    with suppress(ValueError):
        content["total"] = float(fitted.total)
    if isinstance(fitted, FittedInGroups):
        content["groups"] = groups_content(fitted, bounded, packed)
    if isinstance(whole, FittedNetwork):
        content["tree"] = tree_content(whole, bounded, packed)
    else:
        assert isinstance(fitted, FittedMixture)
        mixture = fitted.distribution.mixture
        content["mixture"] = mixture_content(mixture, fitted.refits if bounded else None, packed, INTERVAL)
    return content


def _is_bounded(fitted: Any) -> bool:
    """Return whether the page has draws for bounds; without a release, and for wide networks, it has none."""
    try:
        fitted.required_releases()
        if _is_wide(fitted):
            warn(f"The page has no bounds. {_NO_BOUNDS} A page of a PairwiseMixture has bounds.")
            return False
        _ = fitted.uncertainty if isinstance(fitted, FittedNetwork) else fitted.drawn_of(fitted.schema.variables)
    except TreeTooLargeError:
        raise
    except ValueError:
        return False
    return True


def _is_wide(fitted: Any) -> bool:
    """Return whether bounds are drawn question by question, from a part of the network each."""
    network = fitted.inner if isinstance(fitted, FittedInGroups) else fitted
    return isinstance(network, FittedNetwork) and network.is_wide


def _variable(fitted: Fitted, variable: str, packed: Packed) -> dict[str, Any]:
    states, reading = fitted.schema.states[variable], reading_schema(fitted.schema, fitted.declared, variable)
    bins, missing = reading.bins.get(variable), reading.missing.get(variable)
    texts = list(map(str, states))
    texts = texts if len(set(texts)) == len(texts) else list(map(repr, states))
    content: dict[str, Any] = {"name": variable, "states": texts}
    literals = {number: repr(state) for number, state in enumerate(states) if not isinstance(state, str)}
    if literals:
        content["literals"] = literals
    if missing is not None:
        marks = list(reading.missing_values.get(variable, ()))
        content["missing"] = {"state": states.index(missing), "texts": marks}
    if bins is not None and list(bins.labels) == list(states[: len(bins.labels)]):
        content["edges"] = packed.add(bins.edges, np.float64)
        if isinstance(bins, DateBins):
            content["dates"] = {"unit": bins.unit}
            if bins.format is not None:
                content["dates"] |= {"format": bins.format, "expression": DateFormat(bins.format).expression}
        if np.isfinite(bins.edges).sum() > 1:
            content["shape"] = shape_content(fitted.shape(variable, bins=bins), packed)
    return content


def _promised(model: Model, bounded: bool) -> tuple[str, str]:
    """Write the guarantee for the records, and the cautions that a reader needs first."""
    guarantee, promise, notices = getattr(model, "guarantee_", None), "", list[str]()
    if guarantee is None:
        notices.append(_paragraph("No guarantee is known for the records behind this page."))
    elif not guarantee.private:
        notices.append(_paragraph("Not private: nothing is promised about the records behind this page."))
    if guarantee is not None:
        body = _paragraph(f"Everything on this page follows from that release. Formally: {guarantee}.")
        body = (promised(guarantee) if guarantee.private else "") + body
        promise = _details("What is promised about privacy", body)
    if groups := getattr(model, "groups_", None):
        states = model._fitted.schema.cardinalities()
        each = "; ".join(f"{name} has {states[name]:,} states in {number:,} groups" for name, number in groups.items())
        body = _paragraph(
            f"{each}. A state depends on other variables as its group does, and so does evidence on the state."
        )
        notices.append(_details("Variables of many states depend on others by groups of states.", body))
    if bounded:
        for reason in hidden_by_noise(model._fitted.releases):
            notices.append(_details("Noise hides much of the release: answers say little.", _paragraph(f"{reason}.")))
    elif _is_wide(model._fitted):
        notices.append(_details("This page has no bounds.", _paragraph(_NO_BOUNDS)))
    misfit = _misfit(model) if bounded else None
    if misfit:
        body = _paragraph(f"{misfit}. Answers follow what was measured, and bounds allow for the rest if known.")
        notices.append(_details("The release contradicts the model: answers may be far off.", body))
    return promise, "".join(notices)


def _details(summary: str, body: str) -> str:
    return f"<details><summary>{summary}</summary>{body}</details>"


def _paragraph(text: str) -> str:
    return f"<p>{html.escape(printable(text))}</p>"


def _misfit(model: Model) -> str | None:
    """Describe the misfit if the test of fit fails."""
    with suppress(ValueError):  # the test is impossible
        check = model.check_fit()
        if check.fails:
            return ", ".join([*map(str, check.worst(1)), check.probability])
    return None


@cache
def _source(name: str) -> str:
    return files("pgmpy_dp.explorer").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
