"""The XDSL format of GeNIe and SMILE is written and read here.

pgmpy's writer keeps 16 decimals, so that small probabilities become 0, and writes names that neither its reader nor
GeNIe accepts: names with blanks, and states that are not identifiers. Its reader skips nodes without a table and fails
on their children. The note on names is among the extensions, which other programs skip.

Source: https://support.bayesfusion.com/docs/, "XDSL file format".
"""

from __future__ import annotations

from xml.etree import ElementTree

import networkx as nx
from pgmpy.models import DiscreteBayesianNetwork

from pgmpy_dp.models.formats.assembling import assembled_families, family_rows
from pgmpy_dp.models.formats.escaping import escaped_schema, identifier, note_on, unescaped
from pgmpy_dp.models.formats.xmlbif import harmless_xml
from pgmpy_dp.schema import Schema


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
    content: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return content


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
