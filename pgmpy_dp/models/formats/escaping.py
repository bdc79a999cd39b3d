"""Names that a file format cannot hold are escaped, and restored from a note in the file.

Every name and state is written in the characters that the format allows. Others are percent-encoded as in URLs: a
percent sign and two hexadecimal digits for each byte of UTF-8. The note holds the original names and the types of the
states as a Table Schema, from which they are restored; other programs see the escaped names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from pgmpy.models import DiscreteBayesianNetwork

from pgmpy_dp._files import parse_json
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.models.formats.assembling import assembled_bayesian
from pgmpy_dp.observed.factors import ordered_table
from pgmpy_dp.schema import Schema, State

_NOTE = "pgmpy_dp:schema"


def escaped(text: str, allowed: Callable[[str], bool]) -> str:
    """Percent-encode all characters that are not allowed, and the percent sign; an empty text becomes "%".

    Examples
    --------
    >>> escaped("less than 5 %", str.isalnum)
    'less%20than%205%20%25'
    """
    parts = (c if allowed(c) and c != "%" else "".join(f"%{byte:02X}" for byte in c.encode()) for c in text)
    return "".join(parts) or "%"


def identifier(text: str) -> str:
    """Make a name an identifier: an ASCII letter, then ASCII letters, digits and underscores.

    Other characters are escaped with underscores in place of percent signs. Two names may become equal, which
    `escaped_schema` refuses.

    Examples
    --------
    >>> identifier("smoke_now"), identifier("18_to_65"), identifier("<5")
    ('smoke_now', 'x18_to_65', 'x_3C5')
    """
    plain = escaped(text, lambda c: c.isascii() and (c.isalnum() or c == "_")).replace("%", "_")
    return plain if plain[0].isalpha() else f"x{plain}"


def escaped_schema(schema: Schema, escape: Callable[[str], str], fold: Callable[[str], str] = str) -> Schema:
    """Escape the names of a schema's variables, and convert its states to escaped texts.

    Parameters
    ----------
    escape : callable
        Makes a name valid in the format. States of a variable that become equal are refused.
    fold : callable
        Maps a variable's name to the form that the format's readers compare. Names that become equal are refused.
    """
    states: dict[str, list[State]] = {}
    _require_apart([(variable, fold(escape(variable))) for variable in schema.variables], "Variables", "name")
    for variable in schema.variables:
        texts = [(state, escape(str(state))) for state in schema.states[variable]]
        _require_apart(texts, f"Variable {variable!r}: states", "text")
        states[escape(variable)] = [text for _, text in texts]
    return Schema(states)


def _require_apart(written: Iterable[tuple[State, str]], what: str, kind: str) -> None:
    seen: dict[str, State] = {}
    for name, text in written:
        if text in seen:
            raise SchemaError(
                f"{what} {seen[text]!r} and {name!r} are one {kind} in this format: rename one, or save as JSON."
            )
        seen[text] = name


def renamed(network: DiscreteBayesianNetwork, old: Schema, new: Schema) -> DiscreteBayesianNetwork:
    """Rename variables and states to those of another schema of the same shape, in that schema's order."""
    if set(network.nodes()) != set(old.variables):
        raise SchemaError("its variables are not those of the note on names")
    name = dict(zip(old.variables, new.variables, strict=True))
    cpds = [network.get_cpds(variable) for variable in old.variables]
    cliques = [tuple(name[variable] for variable in cpd.variables) for cpd in cpds]
    return assembled_bayesian(new, cliques, [ordered_table(cpd, old.states) for cpd in cpds])


def note_on(schema: Schema) -> str:
    """Write the note from which a schema's names are restored."""
    return f"{_NOTE} = {json.dumps(schema.to_dict(), ensure_ascii=True, allow_nan=False)}"


def unescaped(
    network: DiscreteBayesianNetwork, note: str, escape: Callable[[str], str], fold: Callable[[str], str] = str
) -> DiscreteBayesianNetwork:
    """Restore the names if the file has a note on them; files of other programs have none."""
    if not note.startswith(_NOTE):
        return network
    schema = Schema.from_dict(parse_json(note[note.index("{") :].encode()))
    return renamed(network, escaped_schema(schema, escape, fold), schema)
