"""Formats of other programs: BIF, XMLBIF, XDSL of GeNIe and NET of Hugin for Bayesian networks, and UAI for both kinds.

Names that a format cannot hold are escaped first, and a note has the original ones: in BIF and NET a comment in the
first line (Hugin sees one after a percent sign, pgmpy after slashes), in XMLBIF a property of the network, in XDSL an
extension, which other programs skip. pgmpy's writers do not escape commas, brackets, quotes, blanks and comment signs,
which readers lose or confuse; that of XMLBIF makes "<5" and ">5" equal, that of NET keeps eight decimals, and that of
XDSL 16, and names that neither its reader nor GeNIe accepts. The time of its reader of BIF is quadratic or cubic in the
size of a malicious file (2,000 blanks in a header: ten seconds), and it allocates every table that the file declares;
here time and memory are linear. Its reader of XDSL skips nodes without a table and fails on their children.

UAI, the format of the inference competitions, has no names: these are in a Table Schema file beside it. As the format
requires, the child is last in the scope of a Bayesian network's table, and the last variable varies fastest. pgmpy
1.1.2 writes the values of Bayesian tables with the child first, by which its files are recognised; its reader takes
parents in no fixed order, and so returns wrong CPDs. It reads Markov networks without isolated variables and without
exponents in numbers, which are therefore not used here.

Sources: Cozman, "The Interchange Format for Bayesian Networks" (1998), versions 0.15 and XMLBIF 0.3, in whose tables
the variable's own states vary fastest, then the last parent's; https://support.bayesfusion.com/docs/, "XDSL file
format"; Hugin Expert, "The Hugin NET language", https://download.hugin.com/webdocs/manuals/Htmlhelp/;
https://uaicompetition.github.io/uci-2022/file-formats/model-format/
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any
from xml.etree import ElementTree

import networkx as nx
import numpy as np
from pgmpy.factors.discrete import TabularCPD
from pgmpy.models import DiscreteBayesianNetwork

from pgmpy_dp.inference.tables.table import Table, Vector
from pgmpy_dp.models.formats.assembling import (
    assembled_bayesian,
    assembled_families,
    assembled_markov,
    escaped,
    escaped_schema,
    family_rows,
    identifier,
    note_on,
    renamed,
    unescaped,
)
from pgmpy_dp.observed.factors import Network, ordered_table
from pgmpy_dp.schema import Clique, Schema

_START = "// "
_COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|/\*')  # quoted names may contain comment signs
_HEADER = re.compile(r"\s*(network|variable|probability)\b([^{}]*)\{")
_VARIABLE = re.compile(r"([^{}]*)\{([^{}]*)\}[^{}]*\}")
_BODY = re.compile(r"([^{}]*)\}")
_TYPE = re.compile(r"\s*type\s+\w+\s*\[\s*(\d+)\s*\]\s*")
_MAX_BY_DEFAULT = 2**24  # cells filled by default rows; all other cells are in the file


def escape_bif(text: str) -> str:
    """Escape a name for BIF."""
    safe = escaped(text, lambda character: character.isalnum() or character in "_-.<>=+:&@!?'#$^~/")
    return safe.replace("//", "/%2F")  # two slashes begin a comment


def to_bif(network: DiscreteBayesianNetwork, schema: Schema, remark: str = "") -> bytes:
    """Write the network as BIF, with a remark; raise SchemaError if two names become equal."""
    from pgmpy.readwrite import BIFWriter

    safe = renamed(network, schema, escaped_schema(schema, escape_bif, str.lower))
    remark = f"{_START}{remark}\n" if remark else ""
    return f"{_START}{note_on(schema)}\n{remark}{BIFWriter(safe)}".encode()


def from_bif(content: bytes) -> DiscreteBayesianNetwork:
    """Read a BIF file of `to_bif` or another program; skip properties, and raise ValueError if it is malformed."""
    text = content.decode("utf-8-sig")
    network = _network(_without_comments(text).replace('"', " "))
    return unescaped(network, text.partition("\n")[0].removeprefix(_START), escape_bif, str.lower)


def _without_comments(text: str) -> str:
    kept, position = [], 0
    while result := _COMMENT.search(text, position):
        quoted = result[0].startswith('"')
        kept.append(text[position : result.end() if quoted else result.start()])
        position = result.end()
        if result[0] == "/*":
            position = text.find("*/", position) + 2
            if position < 2:
                raise ValueError("a comment does not end.")
    return "".join([*kept, text[position:]])


def _network(text: str) -> DiscreteBayesianNetwork:
    states: dict[str, list[str]] = {}
    network, written, position = DiscreteBayesianNetwork(), [], 0
    text = text.rstrip()
    while position < len(text):
        header = _HEADER.match(text, position)
        body = header and (_VARIABLE if header[1] == "variable" else _BODY).match(text, header.end())
        if not (header and body):
            raise ValueError(f"no complete block at {text[position : position + 40].strip()!r}.")
        kind, named, position = header[1], header[2].strip(), body.end()
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
    if sum(math.prod(len(states[variable]) for variable in clique) for clique in by_default) > _MAX_BY_DEFAULT:
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
        result = name if name in states else folded.get(name.lower())
        if result is None:
            raise ValueError(f"probabilities of {name!r}, which is not declared.")
        return result

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
    positions = [{state: number for number, state in enumerate(states[parent])} for parent in clique[1:]]
    for row, numbers in listed.items():
        if len(row) != len(positions) or any(
            state not in position for state, position in zip(row, positions, strict=True)
        ):
            raise ValueError(wrong)
        index = [position[state] for state, position in zip(row, positions, strict=True)]
        table[:, np.ravel_multi_index(index, cards)] = numbers
    if not (np.isfinite(table).all() and (table >= 0).all()):
        raise ValueError(f"the rows of {clique[0]!r} hold numbers that are negative or not finite.")
    return TabularCPD(clique[0], child, table, clique[1:], cards, {variable: states[variable] for variable in clique})


_NET_START = "% // "
_NET_COMMENT = re.compile(r'("[^"]*")|(?:%|//)[^\n]*')
_BLOCK = re.compile(r'\s*(net|(?:\w+\s+)?node|potential)\b([^{}"]*+)\{((?:"[^"]*"|[^}"]++)*+)\}')
_FIELD = re.compile(r'\b(\w++)\s*+=((?:"[^"]*"|[^;="]++)*+);')
_WORD = re.compile(r'"([^"]*)"|([^\s,"()]+)')


def to_net(network: DiscreteBayesianNetwork, schema: Schema, remark: str = "") -> bytes:
    """Write the network as NET, with a remark; raise SchemaError if two names become equal."""
    safe = escaped_schema(schema, identifier)
    names = dict(zip(schema.variables, safe.variables, strict=True))
    lines = [f"{_NET_START}{note_on(schema)}", *([f"{_NET_START}{remark}"] if remark else []), "net", "{", "}"]
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
    text = _NET_COMMENT.sub(lambda result: result[1] or "", whole).rstrip()
    states, rows, position = dict[str, list[str]](), [], 0
    while position < len(text):
        block = _BLOCK.match(text, position)
        if block is None:
            raise ValueError(f"no complete block at {text[position : position + 40].strip()!r}")
        (kind, head, body), position = block.groups(), block.end()
        if kind == "potential":
            rows.append(_potential(head.strip(), body))
        elif kind != "net":
            name, fields = head.strip(), dict(_FIELD.findall(body))
            if kind.split() not in (["node"], ["discrete", "node"]) or "states" not in fields:
                raise ValueError(f"node {name!r} is not one with states")
            if name in states:
                raise ValueError(f"node {name!r} is declared twice")
            states[name] = [quoted or word for quoted, word in _WORD.findall(fields["states"])]
    note = whole.partition("\n")[0].removeprefix(_NET_START)
    return unescaped(assembled_families(states, rows), note, identifier)


def _potential(head: str, body: str) -> tuple[str, list[str], list[float]]:
    """Read a variable, its parents and the numbers of its table."""
    children, _, parents = head.removeprefix("(").removesuffix(")").partition("|")
    data = dict(_FIELD.findall(body)).get("data")
    if len(children.split()) != 1 or data is None:
        raise ValueError(f"the potential {head[:40]} is not a table of one variable")
    return children.strip(), parents.split(), [float(number) for number in re.findall(r"[^\s()]+", data)]


_LIMIT = 10**8
_MAX_UNUSED = 2**16  # states of variables without a table


def to_uai(network: Network, schema: Schema) -> bytes:
    """Write the network as UAI."""
    bayesian = isinstance(network, DiscreteBayesianNetwork)
    position = {variable: number for number, variable in enumerate(schema.variables)}
    factors = [network.get_cpds(v) for v in schema.variables] if bayesian else network.get_factors()
    scopes, tables = [], []
    for factor in factors:
        scope, values = list(factor.variables), ordered_table(factor, schema.states)
        if bayesian:  # the child goes last
            scope, values = [*scope[1:], scope[0]], np.moveaxis(values, 0, -1)
        scopes.append(scope)
        tables.append(values)
    lines = [
        "BAYES" if bayesian else "MARKOV",
        str(len(position)),
        " ".join(map(str, schema.cardinalities().values())),
        str(len(scopes)),
        *(" ".join(map(str, [len(scope), *(position[v] for v in scope)])) for scope in scopes),
    ]
    for table in tables:
        numbers = (np.format_float_positional(value, trim="0") for value in table.ravel())
        lines += ["", str(table.size), " ".join(numbers)]
    return ("\n".join(lines) + "\n").encode()


def from_uai(content: bytes, schema: Schema | None) -> Network:
    """Read a UAI file; without a schema the variables are var_0, var_1, ... and their states 0, 1, ..."""
    parts = content.decode("utf-8-sig").split()
    words = iter(parts)
    kind = next(words, "")
    if kind not in ("BAYES", "MARKOV"):
        raise ValueError("a UAI file begins with BAYES or MARKOV.")
    cards = _whole(words, _count(words))
    if sum(cards) > max(len(parts), _MAX_UNUSED):  # a table has a number for each state of its variables
        raise ValueError("it declares more states than its tables can have.")
    if schema is None:
        schema = Schema({f"var_{number}": range(card) for number, card in enumerate(cards)})
    names = schema.variables
    if cards != list(schema.shape(names)):
        raise ValueError("the numbers of states are not those of the schema beside it.")
    scopes = [tuple(_whole(words, _count(words))) for _ in range(_count(words))]
    if any(number >= len(names) for scope in scopes for number in scope):
        raise ValueError("a table names a variable that is not declared.")
    tables = [_table(words, [cards[number] for number in scope]) for scope in scopes]
    if next(words, None) is not None:
        raise ValueError("something follows the last table.")
    cliques = [tuple(names[number] for number in scope) for scope in scopes]
    if kind == "BAYES":
        families = [(clique[-1], *clique[:-1]) for clique in cliques]
        rows = [np.moveaxis(table, -1, 0) for table in tables]
        if not _are_rows(rows):  # as pgmpy writes them: the child varies slowest, and the first parent fastest
            turned = [table.reshape(table.shape[::-1]) for table in tables]
            turned = [np.moveaxis(table, range(1, table.ndim), range(table.ndim - 1, 0, -1)) for table in turned]
            rows = turned if _are_rows(turned) else rows
        return assembled_bayesian(schema, families, rows)
    products = _products(cliques, tables)
    edges = [pair for clique in products for pair in combinations(clique, 2)]
    return assembled_markov(schema, edges, list(products), list(products.values()))


def _are_rows(tables: Sequence[Vector]) -> bool:
    return all(np.allclose(table.sum(axis=0), 1.0, atol=1e-3) for table in tables)


def _products(cliques: Sequence[Clique], tables: Sequence[Vector]) -> dict[Clique, Vector]:
    """Multiply tables over the same variables, which the format allows but `PrivateMarkovNetwork` does not."""
    first: dict[frozenset[str], Clique] = {}
    products: dict[Clique, Vector] = {}
    for clique, table in zip(cliques, tables, strict=True):
        own = first.setdefault(frozenset(clique), clique)
        with np.errstate(over="ignore", invalid="ignore"):  # refused when the network is assembled
            products[own] = products.get(own, 1.0) * Table(clique, table).margin(own).values
    return products


def _count(words: Iterator[str]) -> int:
    return _whole(words, 1)[0]


def _whole(words: Iterator[str], count: int) -> list[int]:
    numbers = [int(next(words, "the file ends early")) for _ in range(count)]
    if any(not 0 <= number <= _LIMIT for number in numbers):
        raise ValueError("a count is negative or too large.")
    return numbers


def _table(words: Iterator[str], shape: Sequence[int]) -> Vector:
    if _count(words) != math.prod(shape):
        raise ValueError("a table has another number of values than its variables have states.")
    return np.array([float(next(words, "the file ends early")) for _ in range(math.prod(shape))]).reshape(shape)


_DECLARATION = re.compile(r"\A\s*<\?xml[^>]*>")


def escape_xml(text: str) -> str:
    """Escape control characters, which XML cannot hold."""
    return escaped(text, str.isprintable)


def to_xmlbif(network: DiscreteBayesianNetwork, schema: Schema, remark: str = "") -> bytes:
    """Write the network as XMLBIF, with a remark."""
    safe = escaped_schema(schema, escape_xml)
    names = dict(zip(schema.variables, safe.variables, strict=True))
    root = ElementTree.Element("BIF", VERSION="0.3")
    body = ElementTree.SubElement(root, "NETWORK")
    _add(body, "NAME", "unknown")
    _add(body, "PROPERTY", note_on(schema))
    if remark:
        _add(body, "PROPERTY", remark)
    for variable in safe.variables:
        element = ElementTree.SubElement(body, "VARIABLE", TYPE="nature")
        _add(element, "NAME", variable)
        for state in safe.states[variable]:
            _add(element, "OUTCOME", str(state))
    for variable, parents, numbers in family_rows(network, schema):
        element = ElementTree.SubElement(body, "DEFINITION")
        _add(element, "FOR", names[variable])
        for parent in parents:
            _add(element, "GIVEN", names[parent])
        _add(element, "TABLE", " ".join(map(repr, numbers)))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)


def from_xmlbif(content: bytes) -> DiscreteBayesianNetwork:
    """Read an XMLBIF file; files of other programs are read as by pgmpy."""
    from pgmpy.readwrite import XMLBIFReader

    text = harmless_xml(content)
    note = ElementTree.fromstring(text).findtext("NETWORK/PROPERTY") or ""
    return unescaped(XMLBIFReader(string=text).get_model(), note, escape_xml)


def harmless_xml(content: bytes) -> str:
    """Decode XML, as UTF-8 whatever it declares, and refuse entities, which may expand to any size."""
    text = _DECLARATION.sub("", content.decode("utf-8-sig"), count=1)
    if "<!ENTITY" in text:
        raise ValueError("it declares XML entities, which no network needs: write what they stand for instead")
    return text


def _add(parent: ElementTree.Element, tag: str, text: str) -> None:
    ElementTree.SubElement(parent, tag).text = text


def to_xdsl(network: DiscreteBayesianNetwork, schema: Schema, remark: str = "") -> bytes:
    """Write the network as XDSL, with a remark; raise SchemaError if two names become equal."""
    safe = escaped_schema(schema, identifier)
    names = dict(zip(schema.variables, safe.variables, strict=True))
    root = ElementTree.Element("smile", version="1.0", id="network", numsamples="1000", discsamples="10000")
    nodes = ElementTree.SubElement(root, "nodes")
    rows = {variable: (parents, numbers) for variable, parents, numbers in family_rows(network, schema)}
    ordered = {v: rows[v] for v in nx.topological_sort(network)}  # SMILE needs parents first
    for variable, (parents, numbers) in ordered.items():
        element = ElementTree.SubElement(nodes, "cpt", id=names[variable])
        for state in safe.states[names[variable]]:
            ElementTree.SubElement(element, "state", id=str(state))
        if parents:
            ElementTree.SubElement(element, "parents").text = " ".join(names[parent] for parent in parents)
        ElementTree.SubElement(element, "probabilities").text = " ".join(map(repr, numbers))
    extensions = ElementTree.SubElement(root, "extensions")
    ElementTree.SubElement(extensions, "pgmpy_dp", remark=remark).text = note_on(schema)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)


def from_xdsl(content: bytes) -> DiscreteBayesianNetwork:
    """Read an XDSL file of `to_xdsl` or another program; raise ValueError if it is not a network of tables."""
    root = ElementTree.fromstring(harmless_xml(content))
    states, rows = dict[str, list[str]](), []
    for node in root.iterfind("nodes/*"):
        name = node.attrib["id"]
        if node.tag != "cpt":
            raise ValueError(f"node {name!r} is a <{node.tag}>: only tables of probabilities, <cpt>, are read")
        if name in states:
            raise ValueError(f"node {name!r} is declared twice")
        states[name] = [state.attrib["id"] for state in node.iterfind("state")]
        numbers = [float(number) for number in (node.findtext("probabilities") or "").split()]
        rows.append((name, (node.findtext("parents") or "").split(), numbers))
    note = root.findtext("extensions/pgmpy_dp") or ""
    return unescaped(assembled_families(states, rows), note, identifier)
