"""XMLBIF 0.3, written here and read by pgmpy.

pgmpy's writer replaces all but ASCII letters and digits in a state by underscores, which makes one state of "<5" and
">5"; its reader takes names as they are. The note on names is a property of the network.

Source: Cozman, "The Interchange Format for Bayesian Networks" (1998), whose tables run with the variable's own states
fastest and the last parent's next.
"""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

from pgmpy.models import DiscreteBayesianNetwork

from pgmpy_dp._files import parse_json
from pgmpy_dp.exports.names import NOTE, escaped, escaped_schema, ordered, renamed
from pgmpy_dp.schema import Schema

_START = f"{NOTE} = "
_DECLARATION = re.compile(r"\A\s*<\?xml[^>]*>")


def escape(text: str) -> str:
    """A name as XML can hold it: without control characters."""
    return escaped(text, str.isprintable)


def to_xmlbif(network: DiscreteBayesianNetwork, schema: Schema) -> bytes:
    """The network as XMLBIF."""
    safe = escaped_schema(schema, escape)
    names = dict(zip(schema.variables, safe.variables, strict=True))
    root = ElementTree.Element("BIF", VERSION="0.3")
    body = ElementTree.SubElement(root, "NETWORK")
    _add(body, "NAME", "unknown")
    _add(body, "PROPERTY", _START + json.dumps(schema.to_dict(), ensure_ascii=True, allow_nan=False))
    for variable in safe.variables:
        element = ElementTree.SubElement(body, "VARIABLE", TYPE="nature")
        _add(element, "NAME", variable)
        for state in safe.states[variable]:
            _add(element, "OUTCOME", str(state))
    for variable in schema.variables:
        cpd = ordered(network.get_cpds(variable), schema.states)
        element = ElementTree.SubElement(body, "DEFINITION")
        _add(element, "FOR", names[variable])
        for parent in cpd.variables[1:]:
            _add(element, "GIVEN", names[parent])
        _add(element, "TABLE", " ".join(map(repr, cpd.get_values().ravel(order="F").tolist())))
    ElementTree.indent(root)
    content: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return content


def from_xmlbif(content: bytes) -> DiscreteBayesianNetwork:
    """Inverse of `to_xmlbif`; files of other programs are read as pgmpy reads them."""
    from pgmpy.readwrite import XMLBIFReader

    # All is read as UTF-8: another encoding, declared, would hide entities from this look, and mislead pgmpy's reader.
    text = _DECLARATION.sub("", content.decode("utf-8-sig"), count=1)
    if "<!ENTITY" in text:
        raise ValueError("XMLBIF needs no entities; a file that declares some is not read.")
    try:
        note = ElementTree.fromstring(text).findtext("NETWORK/PROPERTY") or ""
    except ElementTree.ParseError as error:
        raise ValueError(f"the XML is damaged: {error}.") from error
    network = XMLBIFReader(string=text).get_model()
    if not note.startswith(_START):
        return network
    schema = Schema.from_dict(parse_json(note.removeprefix(_START).encode()))
    return renamed(network, escaped_schema(schema, escape), schema)


def _add(parent: ElementTree.Element, tag: str, text: str) -> None:
    ElementTree.SubElement(parent, tag).text = text
