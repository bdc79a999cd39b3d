"""The page: what it holds of a model, and its text."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from pgmpy_dp._names import printable
from pgmpy_dp.explorer.drawing import drawing
from pgmpy_dp.explorer.mixtures import mixture_content
from pgmpy_dp.explorer.packed import Packed
from pgmpy_dp.explorer.shapes import shape_content
from pgmpy_dp.explorer.trees import tree_content
from pgmpy_dp.inference import TreeTooLargeError
from pgmpy_dp.models.mixtures.answers import MixtureAnswers
from pgmpy_dp.models.questions import reading_schema
from pgmpy_dp.models.trees.answers import TreeAnswers
from pgmpy_dp.report.templates import promise as promised
from pgmpy_dp.schema import Schema, State

if TYPE_CHECKING:
    from pgmpy_dp.models.model import Model

SCRIPTS = (
    "numbers.js",
    "tree.js",
    "deviations.js",
    "draws.js",
    "mixture.js",
    "refits.js",
    "shapes.js",
    "questions.js",
    "cards.js",
    "sharing.js",
    "page.js",
)
INTERVAL = 0.9


@dataclass(frozen=True)
class ExplorerPage:
    """A page of HTML that answers questions; a notebook shows it in the cell."""

    html: str

    def _repr_html_(self) -> str:
        page = html.escape(self.html)
        return f'<iframe srcdoc="{page}" style="width:100%;height:800px;border:0" title="Explorer"></iframe>'


def explorer_page(model: Model, title: str | None = None) -> ExplorerPage:
    """Write the page about a fitted model; see `Model.explore`."""
    packed, schema = Packed(), model._fitted()
    content = model_content(model, schema, packed)
    head = json.dumps(content).replace("<", "\\u003c")
    script, style = "{\n" + "\n".join(map(_source, SCRIPTS)) + "\n}", _source("page.css")
    parts = {"title": html.escape(title or "Ask the records"), "head": head, "arrays": packed.text()}
    parts |= {"script": script, "style": style, "script-hash": _hash(script), "style-hash": _hash(style)}
    promise, notices = _promised(model, content["bounded"])
    parts |= {"drawing": drawing(model, schema), "promise": promise, "notices": notices}
    parts["bounds"] = "" if content["bounded"] else "no-bounds"
    # In one pass: names and titles may hold what looks like a placeholder.
    return ExplorerPage(re.sub(r"\{([a-z-]+)\}", lambda found: parts[found[1]], _source("page.html")))


def model_content(model: Model, schema: Schema, packed: Packed) -> dict[str, Any]:
    """Return everything that the page's scripts know about a model, as JSON whose arrays are packed."""
    answers = model._answering()
    drawn = _drawn(model, answers)
    shown = set(model._predicted())
    content: dict[str, Any] = {
        "bounded": drawn is not None,
        "variables": [_variable(model, schema, variable, packed) for variable in schema.variables],
        "shown": [number for number, variable in enumerate(schema.variables) if variable in shown],
        "rules": [
            {
                "scope": [schema.variables.index(variable) for variable in rule.variables],
                "allowed": packed.add(schema.possible(rule.variables), np.uint8),
            }
            for rule in schema.rules
        ],
        "total": None,
    }
    with suppress(ValueError):
        content["total"] = float(model._total())
    if isinstance(answers, MixtureAnswers):
        content["mixture"] = mixture_content(answers.mixture, drawn, packed, INTERVAL)
    else:
        assert isinstance(answers, TreeAnswers)
        content["tree"] = tree_content(answers, drawn, packed)
    return content


def _drawn(model: Model, answers: Any) -> Any:
    """Return the draws from which bounds are computed; None if the model has no release."""
    try:
        model._releases()
        return answers.drawn() if isinstance(answers, TreeAnswers) else answers.drawn(list(model._fitted().variables))
    except TreeTooLargeError:
        raise
    except ValueError:
        return None


def _variable(model: Model, schema: Schema, variable: str, packed: Packed) -> dict[str, Any]:
    states, bins = schema.states[variable], reading_schema(schema, model._declared(), variable).bins.get(variable)
    held: dict[str, Any] = {"name": variable, "states": _texts(states)}
    literals = {number: repr(state) for number, state in enumerate(states) if not isinstance(state, str)}
    if literals:
        held["literals"] = literals
    if bins is not None and list(bins.labels) == list(states[: len(bins.labels)]):
        held |= {"edges": packed.add(bins.edges, np.float64), "kind": bins.kind}
        if np.isfinite(bins.edges).sum() > 1:
            held["shape"] = shape_content(model._shape_of(variable, bins), packed)
    return held


def _texts(states: Iterable[State]) -> list[str]:
    """Write states as different texts."""
    texts = [str(state) for state in states]
    return texts if len(set(texts)) == len(texts) else [repr(state) for state in states]


def _promised(model: Model, bounded: bool) -> tuple[str, str]:
    """Write what is promised about the records, and what a reader has to know first."""
    guarantee, promise, notices = getattr(model, "guarantee_", None), "", list[str]()
    if guarantee is None:
        notices.append(_paragraph("No guarantee is known for the records behind this page."))
    elif not guarantee.private:
        notices.append(_paragraph("Not private: nothing is promised about the records behind this page."))
    if guarantee is not None:
        told = _paragraph(f"Everything on this page follows from that release. Formally: {guarantee}.")
        told = (promised(guarantee) if guarantee.private else "") + told
        promise = _details("What is promised about privacy", told)
    misfit = _misfit(model) if bounded else None
    if misfit:
        told = _paragraph(f"{misfit}. Answers follow what was measured, and bounds allow for the rest if known.")
        notices.append(_details("The release contradicts the model: answers may be far off.", told))
    return promise, "".join(notices)


def _details(summary: str, told: str) -> str:
    return f"<details><summary>{summary}</summary>{told}</details>"


def _paragraph(text: str) -> str:
    return f"<p>{html.escape(printable(text))}</p>"


def _misfit(model: Model) -> str | None:
    """Say what the test of fit found, if it fails."""
    with suppress(ValueError):  # it is impossible
        check = model.check_fit()
        if check.fails:
            return ", ".join([*map(str, check.worst(1)), check.probability])
    return None


@cache
def _source(name: str) -> str:
    return files("pgmpy_dp.explorer").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
