"""BIF, the Bayesian Interchange Format, by pgmpy's writer and reader.

pgmpy's writer puts names into the file as they are, and its reader then loses or mixes up names with commas,
brackets, quotes, blanks or comment signs, and variables that differ in their case alone: so they are escaped first.
The note on names is a comment in the first line.
"""

from __future__ import annotations

import json

from pgmpy.models import DiscreteBayesianNetwork

from pgmpy_dp._files import parse_json
from pgmpy_dp.exports.names import NOTE, escaped, escaped_schema, renamed
from pgmpy_dp.schema import Schema

_START = f"// {NOTE} "


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
    """Inverse of `to_bif`; files of other programs are read as pgmpy reads them."""
    from pgmpy.readwrite import BIFReader

    text = content.decode("utf-8")
    network = BIFReader(string=text).get_model()
    first = text.partition("\n")[0]
    if not first.startswith(_START):
        return network
    schema = Schema.from_dict(parse_json(first.removeprefix(_START).encode()))
    return renamed(network, escaped_schema(schema, escape, str.lower), schema)
