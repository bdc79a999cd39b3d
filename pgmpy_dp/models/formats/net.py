"""The NET format of Hugin is written and read here.

pgmpy's writer keeps eight decimals and does not escape names with blanks, commas, brackets or letters outside ASCII,
which its reader splits or does not find. Its reader scans the whole file once for each variable. The note on names is a
comment in the first line: for Hugin by its percent sign, for pgmpy by its slashes.

Source: Hugin Expert, "The Hugin NET language", https://download.hugin.com/webdocs/manuals/Htmlhelp/.
"""

from __future__ import annotations

import re

from pgmpy.models import DiscreteBayesianNetwork

from pgmpy_dp.models.formats.assembling import assembled_families, family_rows
from pgmpy_dp.models.formats.escaping import escaped_schema, identifier, note_on, unescaped
from pgmpy_dp.schema import Schema

_START = "% // "
_COMMENT = re.compile(r'("[^"]*")|(?:%|//)[^\n]*')
_BLOCK = re.compile(r'\s*(net|(?:\w+\s+)?node|potential)\b([^{}"]*+)\{((?:"[^"]*"|[^}"]++)*+)\}')
_FIELD = re.compile(r'\b(\w++)\s*+=((?:"[^"]*"|[^;="]++)*+);')
_WORD = re.compile(r'"([^"]*)"|([^\s,"()]+)')


def to_net(network: DiscreteBayesianNetwork, schema: Schema, remark: str = "") -> bytes:
    """Write the network as NET, with a remark; raise SchemaError if two names become equal."""
    safe = escaped_schema(schema, identifier)
    names = dict(zip(schema.variables, safe.variables, strict=True))
    lines = [f"{_START}{note_on(schema)}", *([f"{_START}{remark}"] if remark else []), "net", "{", "}"]
    for variable, states in safe.states.items():
        quoted = " ".join(f'"{state}"' for state in states)
        lines += [f"node {variable}", "{", f"  states = ({quoted});", "}"]
    for variable, parents, numbers in family_rows(network, schema):
        given = " ".join(names[parent] for parent in parents)
        size = len(schema.states[variable])
        data = " ".join(f"({' '.join(map(repr, numbers[at : at + size]))})" for at in range(0, len(numbers), size))
        lines += [f"potential ({names[variable]} | {given})", "{", f"  data = ({data});", "}"]
    return "\n".join([*lines, ""]).encode()


def from_net(content: bytes) -> DiscreteBayesianNetwork:
    """Read a NET file of `to_net` or another program; raise ValueError if it is not a network of tables."""
    whole = content.decode("utf-8-sig")
    text = _COMMENT.sub(lambda found: found[1] or "", whole).rstrip()
    states, rows, place = dict[str, list[str]](), [], 0
    while place < len(text):
        block = _BLOCK.match(text, place)
        if block is None:
            raise ValueError(f"no complete block at {text[place : place + 40].strip()!r}")
        (kind, head, body), place = block.groups(), block.end()
        if kind == "potential":
            rows.append(_potential(head.strip(), body))
        elif kind != "net":
            name, fields = head.strip(), dict(_FIELD.findall(body))
            if kind.split() not in (["node"], ["discrete", "node"]) or "states" not in fields:
                raise ValueError(f"node {name!r} is not one with states")
            if name in states:
                raise ValueError(f"node {name!r} is declared twice")
            states[name] = [quoted or word for quoted, word in _WORD.findall(fields["states"])]
    note = whole.partition("\n")[0].removeprefix(_START)
    return unescaped(assembled_families(states, rows), note, identifier)


def _potential(head: str, body: str) -> tuple[str, list[str], list[float]]:
    """Read a variable, its parents and the numbers of its table."""
    children, _, parents = head.removeprefix("(").removesuffix(")").partition("|")
    data = dict(_FIELD.findall(body)).get("data")
    if len(children.split()) != 1 or data is None:
        raise ValueError(f"the potential {head[:40]} is not a table of one variable")
    return children.strip(), parents.split(), [float(number) for number in re.findall(r"[^\s()]+", data)]
