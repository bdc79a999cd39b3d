"""BIF, the Bayesian Interchange Format, is written by pgmpy and read here.

pgmpy's writer does not escape names, so that readers lose or confuse names with commas, brackets, quotes, blanks or
comment signs, and variables whose names differ only in case. They are therefore escaped first. The note on names is a
comment in the first line.

The running time of pgmpy's reader is quadratic or cubic in the size of a malicious file (2,000 blanks in a header: ten
seconds), and it allocates every table that the file declares. Here time and memory are linear in the size of the file.

Source: Cozman, "The Interchange Format for Bayesian Networks" (1998), version 0.15.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from pgmpy.factors.discrete import TabularCPD
from pgmpy.models import DiscreteBayesianNetwork

from pgmpy_dp.models.formats.escaping import escaped, escaped_schema, note_on, renamed, unescaped
from pgmpy_dp.schema import Schema

_START = "// "
_COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|/\*')  # quoted names may contain comment signs
_HEADER = re.compile(r"\s*(network|variable|probability)\b([^{}]*)\{")
_VARIABLE = re.compile(r"([^{}]*)\{([^{}]*)\}[^{}]*\}")
_BODY = re.compile(r"([^{}]*)\}")
_TYPE = re.compile(r"\s*type\s+\w+\s*\[\s*(\d+)\s*\]\s*")
_MOST_BY_DEFAULT = 2**24  # cells filled by default rows; all other cells are in the file


def escape(text: str) -> str:
    """Escape a name for BIF."""
    held = escaped(text, lambda character: character.isalnum() or character in "_-.<>=+:&@!?'#$^~/")
    return held.replace("//", "/%2F")  # two slashes begin a comment


def to_bif(network: DiscreteBayesianNetwork, schema: Schema, remark: str = "") -> bytes:
    """Write the network as BIF, with a remark; raise SchemaError if two names become equal."""
    from pgmpy.readwrite import BIFWriter

    safe = renamed(network, schema, escaped_schema(schema, escape, str.lower))
    remark = f"{_START}{remark}\n" if remark else ""
    return f"{_START}{note_on(schema)}\n{remark}{BIFWriter(safe)}".encode()


def from_bif(content: bytes) -> DiscreteBayesianNetwork:
    """Read a BIF file of `to_bif` or another program; skip properties, and raise ValueError if it is malformed."""
    text = content.decode("utf-8-sig")
    network = _network(_without_comments(text).replace('"', " "))
    return unescaped(network, text.partition("\n")[0].removeprefix(_START), escape, str.lower)


def _without_comments(text: str) -> str:
    kept, place = [], 0
    while found := _COMMENT.search(text, place):
        quoted = found[0].startswith('"')
        kept.append(text[place : found.end() if quoted else found.start()])
        place = found.end()
        if found[0] == "/*":
            place = text.find("*/", place) + 2
            if place < 2:
                raise ValueError("a comment does not end.")
    return "".join([*kept, text[place:]])


def _network(text: str) -> DiscreteBayesianNetwork:
    states: dict[str, list[str]] = {}
    network, written, place = DiscreteBayesianNetwork(), [], 0
    text = text.rstrip()
    while place < len(text):
        header = _HEADER.match(text, place)
        body = header and (_VARIABLE if header[1] == "variable" else _BODY).match(text, header.end())
        if not (header and body):
            raise ValueError(f"no complete block at {text[place : place + 40].strip()!r}.")
        kind, named, place = header[1], header[2].strip(), body.end()
        if kind == "network":
            network.name = named
        elif kind == "variable":
            if named in states:
                raise ValueError(f"variable {named!r} is declared twice.")
            states[named] = _states(named, body)
        else:
            written.append((named, body[1]))
    network.add_nodes_from(states)
    folded = {name.lower(): name for name in states}
    blocks = [_block(named, body, states, folded) for named, body in written]
    if len({clique[0] for clique, _ in blocks}) < len(blocks):
        raise ValueError("a variable has two blocks of probabilities.")
    by_default = [clique for clique, rows in blocks if "default" in rows]
    if sum(math.prod(len(states[variable]) for variable in clique) for clique in by_default) > _MOST_BY_DEFAULT:
        raise ValueError("default rows stand for too many parents' states.")
    network.add_edges_from([(parent, child) for (child, *parents), _ in blocks for parent in parents])
    for clique, rows in sorted(blocks, key=lambda block: block[0][0]):  # as pgmpy's reader does
        network.add_cpds(_cpd(clique, rows, states))
    return network


def _states(variable: str, body: re.Match[str]) -> list[str]:
    declared = _TYPE.fullmatch(body[1].rpartition(";")[2])
    states = [state.strip() for state in body[2].split(",")] if "," in body[2] else body[2].split()
    if declared is None or int(declared[1]) != len(states):
        raise ValueError(f"variable {variable!r} does not have as many states as it says.")
    return states


def _block(
    named: str, body: str, states: Mapping[str, list[str]], folded: Mapping[str, str]
) -> tuple[list[str], dict[Any, list[float]]]:
    """Read a child, its parents, and the numbers for each parent configuration, "default" or "table"."""

    def known(name: str) -> str:
        name = name.strip()
        found = name if name in states else folded.get(name.lower())
        if found is None:
            raise ValueError(f"probabilities of {name!r}, which is not declared.")
        return found

    if not (named.startswith("(") and named.endswith(")")):
        raise ValueError(f"probabilities of no variable: {named[:40]!r}.")
    child, bar, given = named[1:-1].partition("|")
    parents = given.split(",") if bar else []
    if not bar and child.strip().lower() not in folded:  # an older syntax lists the child, then its parents
        child, *parents = child.replace(",", " ").split() or [""]
    rows: dict[Any, list[float]] = {}
    for statement in filter(None, map(str.strip, body.split(";"))):
        if statement.startswith("("):
            listed, _, numbers = statement[1:].partition(")")
            row: Any = tuple(state.strip() for state in listed.split(","))
        else:
            row, numbers = (*statement.split(None, 1), "")[:2]
            if row == "property":
                continue
            if row not in ("table", "default"):
                raise ValueError(f"a row of {child.strip()!r} begins with {row[:40]!r}.")
        if row in rows:
            raise ValueError(f"a row of {child.strip()!r} occurs twice.")
        rows[row] = [float(number) for number in numbers.replace(",", " ").split()]
    return [known(child), *map(known, parents)], rows


def _cpd(clique: list[str], rows: Mapping[Any, list[float]], states: Mapping[str, list[str]]) -> TabularCPD:
    child, *cards = (len(states[variable]) for variable in clique)
    columns, wrong = math.prod(cards), f"the rows of {clique[0]!r} do not fit its states and its parents' states."
    listed = {row: numbers for row, numbers in rows.items() if isinstance(row, tuple)}
    by_row, lengths = "table" not in rows, {len(numbers) for numbers in rows.values()}
    if lengths != ({child} if by_row else {child * columns}) or (not by_row and len(rows) > 1):
        raise ValueError(wrong)
    if by_row and (len(listed) > columns or ("default" not in rows and len(listed) < columns)):
        raise ValueError(wrong)
    if by_row:
        table = np.tile(np.array([rows.get("default", [0.0] * child)]).T, columns)
    else:
        table = np.array(rows["table"]).reshape(child, columns)
    places = [{state: number for number, state in enumerate(states[parent])} for parent in clique[1:]]
    for row, numbers in listed.items():
        if len(row) != len(places) or any(state not in place for state, place in zip(row, places, strict=True)):
            raise ValueError(wrong)
        index = [place[state] for state, place in zip(row, places, strict=True)]
        table[:, np.ravel_multi_index(index, cards)] = numbers
    if not (np.isfinite(table).all() and (table >= 0).all()):
        raise ValueError(f"the rows of {clique[0]!r} hold numbers that are negative or not finite.")
    return TabularCPD(clique[0], child, table, clique[1:], cards, {variable: states[variable] for variable in clique})
