"""Names that a file format cannot hold: written with escapes, and brought back by a note in the file.

A format gets every name and state as text of its own alphabet. What lies outside is written as in web addresses: a
percent sign and two hexadecimal digits for each byte of UTF-8. The network's true names, with the types of its
states, go into the file beside it as a Table Schema, so that `load_network` returns them; other programs see the
escaped ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pgmpy.factors.discrete import TabularCPD
from pgmpy.models import DiscreteBayesianNetwork

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.estimators.networks import tabular_cpd
from pgmpy_dp.schema import Schema, State

NOTE = "pgmpy_dp:schema"


def escaped(text: str, allowed: Callable[[str], bool]) -> str:
    """Text with all other characters than the allowed ones, and the percent sign, as %XX; an empty text is "%".

    Examples
    --------
    >>> escaped("less than 5 %", str.isalnum)
    'less%20than%205%20%25'
    """
    parts = (c if allowed(c) and c != "%" else "".join(f"%{byte:02X}" for byte in c.encode()) for c in text)
    return "".join(parts) or "%"


def escaped_schema(schema: Schema, escape: Callable[[str], str], fold: Callable[[str], str] = str) -> Schema:
    """The schema with escaped names, and all states as escaped text.

    Parameters
    ----------
    escape : callable
        What the format makes of a name; two names never become one.
    fold : callable
        What the format's readers make of a variable's name before they compare it.

    Raises
    ------
    SchemaError
        If two names, or two states of a variable, become one; the message names them.
    """
    names: dict[str, str] = {}
    states: dict[str, list[State]] = {}
    for variable in schema.variables:
        name = escape(variable)
        if fold(name) in names:
            raise SchemaError(
                f"Variables {names[fold(name)]!r} and {variable!r} are one name to readers of this format: rename one, "
                "or save as JSON."
            )
        names[fold(name)] = variable
        texts: dict[str, State] = {}
        for state in schema.states[variable]:
            text = escape(str(state))
            if text in texts:
                raise SchemaError(
                    f"Variable {variable!r}: states {texts[text]!r} and {state!r} are one text in this format: rename "
                    "one, or save as JSON."
                )
            texts[text] = state
        states[name] = list(texts)
    return Schema(states)


def renamed(network: DiscreteBayesianNetwork, old: Schema, new: Schema) -> DiscreteBayesianNetwork:
    """The network with the variables and states of another schema of the same shape, states in schema order.

    Raises
    ------
    SchemaError
        If the network does not have the old schema's variables and states.
    """
    name: Mapping[str, str] = dict(zip(old.variables, new.variables, strict=True))
    result = DiscreteBayesianNetwork()
    if set(network.nodes()) != set(old.variables):
        raise SchemaError("its variables are not those of the note on names.")
    result.add_nodes_from([name[v] for v in old.variables])
    result.add_edges_from([(name[a], name[b]) for a, b in network.edges()])
    for variable in old.variables:
        cpd = ordered(network.get_cpds(variable), old.states)
        clique = tuple(name[v] for v in cpd.variables)
        result.add_cpds(tabular_cpd(clique, cpd.values, new.states))
    return result


def ordered(cpd: TabularCPD, states: Mapping[str, Any]) -> TabularCPD:
    """The CPD with all axes in the order of the given states."""
    values = cpd.values
    for axis, variable in enumerate(cpd.variables):
        own = list(cpd.state_names[variable])
        if set(own) != set(states[variable]) or len(own) != len(states[variable]):
            raise SchemaError(f"the states of {variable!r} are not those of the note on names.")
        values = values.take([own.index(state) for state in states[variable]], axis=axis)
    return tabular_cpd(tuple(cpd.variables), values, states)
