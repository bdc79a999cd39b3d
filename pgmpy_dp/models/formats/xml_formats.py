"""Bayesian networks as XML: XMLBIF 0.3, which pgmpy reads, and XDSL of GeNIe and SMILE, which is read here.

pgmpy's writer of XMLBIF replaces all characters of a state except ASCII letters and digits by underscores, so that "<5"
and ">5" become equal. Its writer of XDSL keeps 16 decimals, so that small probabilities become 0, and writes names that
neither its reader nor GeNIe accepts; its reader skips nodes without a table and fails on their children. The note on
names is a property of the network in XMLBIF, and in XDSL an extension, which other programs skip.

Sources: Cozman, "The Interchange Format for Bayesian Networks" (1998), in whose tables the variable's own states vary
fastest, then the last parent's; https://support.bayesfusion.com/docs/, "XDSL file format".
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

import networkx as nx
from pgmpy.models import DiscreteBayesianNetwork

from pgmpy_dp.models.formats.assembling import (
    assembled_families,
    escaped,
    escaped_schema,
    family_rows,
    identifier,
    note_on,
    unescaped,
)
from pgmpy_dp.schema import Schema

_DECLARATION = re.compile(r"\A\s*<\?xml[^>]*>")


def escape(text: str) -> str:
    """Escape control characters, which XML cannot hold."""
    return escaped(text, str.isprintable)


def to_xmlbif(network: DiscreteBayesianNetwork, schema: Schema, remark: str = "") -> bytes:
    """Write the network as XMLBIF, with a remark."""
    safe = escaped_schema(schema, escape)
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
    return unescaped(XMLBIFReader(string=text).get_model(), note, escape)


def harmless_xml(content: bytes) -> str:
    """Decode XML without its declaration; refuse entities, which may expand to any size.

    The content is always decoded as UTF-8: another declared encoding could hide entities from this check.
    """
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
