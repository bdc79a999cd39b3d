"""XMLBIF 0.3 is written here and read by pgmpy.

pgmpy's writer replaces all characters of a state except ASCII letters and digits by underscores, so that "<5" and ">5"
become equal; its reader does not change names. The note on names is a property of the network.

Source: Cozman, "The Interchange Format for Bayesian Networks" (1998), in whose tables the variable's own states vary
fastest, then the last parent's.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from pgmpy.models import DiscreteBayesianNetwork

from pgmpy_dp.models.formats.assembling import family_rows
from pgmpy_dp.models.formats.escaping import escaped, escaped_schema, note_on, unescaped
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
    content: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return content


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
