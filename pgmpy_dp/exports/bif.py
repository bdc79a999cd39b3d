"""BIF, the Bayesian Interchange Format, by pgmpy's writer; read here.

pgmpy's writer puts names into the file as they are, and readers then lose or mix up names with commas, brackets,
quotes, blanks or comment signs, and variables that differ in their case alone: so they are escaped first. The note on
names is a comment in the first line.

pgmpy's reader needs a time of the square or the cube of what a file made for it holds (2,000 blanks in a header: ten
seconds), and memory for every table that it declares. Here time and memory grow as the file does.

Source: Cozman, "The Interchange Format for Bayesian Networks" (1998), version 0.15.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from pgmpy.factors.discrete import TabularCPD
from pgmpy.models import DiscreteBayesianNetwork

from pgmpy_dp._files import parse_json
from pgmpy_dp.exports.names import NOTE, escaped, escaped_schema, renamed
from pgmpy_dp.schema import Schema

_START = f"// {NOTE} "
_COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|/\*')  # quoted names may hold the signs
_HEADER = re.compile(r"\s*(network|variable|probability)\b([^{}]*)\{")
_VARIABLE = re.compile(r"([^{}]*)\{([^{}]*)\}[^{}]*\}")
_BODY = re.compile(r"([^{}]*)\}")
_TYPE = re.compile(r"\s*type\s+\w+\s*\[\s*(\d+)\s*\]\s*")
_MOST_BY_DEFAULT = 2**24  # cells; all others stand in the file


def escape(text: str) -> str:
    """A name as BIF can hold it."""
    held = escaped(text, lambda character: character.isalnum() or character in "_-.<>=+:&@!?'#$^~/")
    return held.replace("//", "/%2F")  # two of them begin a comment


def to_bif(network: DiscreteBayesianNetwork, schema: Schema) -> bytes:
    """The network as BIF; SchemaError if two names cannot be told apart in it."""
    from pgmpy.readwrite import BIFWriter

    safe = renamed(network, schema, escaped_schema(schema, escape, str.lower))
    note = json.dumps(schema.to_dict(), ensure_ascii=True, allow_nan=False)
    return f"{_START}{note}\n{BIFWriter(safe)}".encode()


def from_bif(content: bytes) -> DiscreteBayesianNetwork:
    """Inverse of `to_bif`; of other programs' files the properties are skipped.

    Raises
    ------
    ValueError
        If the file is no network.
    """
    text = content.decode("utf-8-sig")
    network = _network(_without_comments(text).replace('"', " "))
    first = text.partition("\n")[0]
    if not first.startswith(_START):
        return network
    schema = Schema.from_dict(parse_json(first.removeprefix(_START).encode()))
    return renamed(network, escaped_schema(schema, escape, str.lower), schema)


@dataclass(frozen=True)
class _Block:
    """A probability block: rows by the parents' states; the row for all others has None."""

    child: str
    parents: list[str]
    rows: dict[tuple[str, ...] | None, list[float]]
    is_table: bool


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
    if len({block.child for block in blocks}) < len(blocks):
        raise ValueError("a variable has two blocks of probabilities.")
    by_default = sum(math.prod(len(states[v]) for v in [b.child, *b.parents]) for b in blocks if None in b.rows)
    if by_default > _MOST_BY_DEFAULT:
        raise ValueError("default rows stand for too many parents' states.")
    for block in blocks:
        network.add_edges_from([(parent, block.child) for parent in block.parents])
    for block in sorted(blocks, key=lambda block: block.child):  # as pgmpy's reader does
        network.add_cpds(_cpd(block, states))
    return network


def _states(variable: str, body: re.Match[str]) -> list[str]:
    declared = _TYPE.fullmatch(body[1].rpartition(";")[2])
    states = [state.strip() for state in body[2].split(",")] if "," in body[2] else body[2].split()
    if declared is None or int(declared[1]) != len(states):
        raise ValueError(f"variable {variable!r} does not have as many states as it says.")
    return states


def _block(named: str, body: str, states: Mapping[str, list[str]], folded: Mapping[str, str]) -> _Block:
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
    if not bar and child.strip().lower() not in folded:  # an older way: the child, then its parents
        child, *parents = child.replace(",", " ").split() or [""]
    rows: dict[tuple[str, ...] | None, list[float]] = {}
    is_table = False
    for statement in filter(None, map(str.strip, body.split(";"))):
        if statement.startswith("("):
            listed, _, numbers = statement[1:].partition(")")
            row: tuple[str, ...] | None = tuple(state.strip() for state in listed.split(","))
        else:
            word, numbers = (*statement.split(None, 1), "")[:2]
            if word == "property":
                continue
            if word not in ("table", "default"):
                raise ValueError(f"a row of {child.strip()!r} begins with {word[:40]!r}.")
            is_table, row = is_table or word == "table", None
        if row in rows:
            raise ValueError(f"a row of {child.strip()!r} stands twice.")
        rows[row] = [float(number) for number in numbers.replace(",", " ").split()]
    return _Block(known(child), list(map(known, parents)), rows, is_table)


def _cpd(block: _Block, states: Mapping[str, list[str]]) -> TabularCPD:
    clique = [block.child, *block.parents]
    child, *cards = (len(states[variable]) for variable in clique)
    columns, wrong = math.prod(cards), f"the rows of {block.child!r} do not fit its states and its parents' states."
    listed = {row: numbers for row, numbers in block.rows.items() if row is not None}
    lengths = {len(numbers) for numbers in block.rows.values()}
    if block.is_table:
        if listed or lengths != {child * columns}:
            raise ValueError(wrong)
        table = np.array(block.rows[None]).reshape(child, columns)
    else:
        if lengths != {child} or len(listed) > columns or (None not in block.rows and len(listed) < columns):
            raise ValueError(wrong)
        table = np.tile(np.array([block.rows.get(None, [0.0] * child)]).T, columns)
        places = [{state: number for number, state in enumerate(states[parent])} for parent in block.parents]
        for row, numbers in listed.items():
            if len(row) != len(places) or any(state not in place for state, place in zip(row, places, strict=True)):
                raise ValueError(wrong)
            index = [place[state] for state, place in zip(row, places, strict=True)]
            table[:, np.ravel_multi_index(index, cards)] = numbers
    if not (np.isfinite(table).all() and (table >= 0).all()):
        raise ValueError(f"the rows of {block.child!r} hold numbers that are negative or not finite.")
    named = {variable: states[variable] for variable in clique}
    return TabularCPD(block.child, child, table, block.parents, cards, named)
