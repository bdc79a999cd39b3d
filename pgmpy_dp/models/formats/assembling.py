"""Conversion between pgmpy's networks and the tables and names that files hold.

Names that a format cannot hold are percent-encoded as in URLs: a percent sign and two hexadecimal digits for each byte
of UTF-8. A note in the file holds the original names and the types of the states as a Table Schema, from which they are
restored; other programs see the escaped names.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from pgmpy.factors.discrete import DiscreteFactor, TabularCPD
from pgmpy.models import DiscreteBayesianNetwork, DiscreteMarkovNetwork

from pgmpy_dp._files import parse_json
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.observed.factors import ordered_table
from pgmpy_dp.schema import Clique, Schema, State

_NOTE = "pgmpy_dp:schema"


def escaped(text: str, allowed: Callable[[str], bool]) -> str:
    """Percent-encode all characters that are not allowed, and the percent sign; an empty text becomes "%"."""
    parts = (c if allowed(c) and c != "%" else "".join(f"%{byte:02X}" for byte in c.encode()) for c in text)
    return "".join(parts) or "%"


def identifier(text: str) -> str:
    """Make a name an identifier of ASCII letters, digits and underscores; `escaped_schema` refuses equal ones."""
    plain = escaped(text, lambda c: c.isascii() and (c.isalnum() or c == "_")).replace("%", "_")
    return plain if plain[0].isalpha() else f"x{plain}"


def escaped_schema(schema: Schema, escape: Callable[[str], str], fold: Callable[[str], str] = str) -> Schema:
    """Escape the names of a schema's variables, and convert its states to escaped texts."""
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


def assembled_bayesian(schema: Schema, cliques: Sequence[Clique], tables: Sequence[Vector]) -> DiscreteBayesianNetwork:
    """Build a network from families, each with the child before its parents, and their tables."""
    network = DiscreteBayesianNetwork()
    network.add_nodes_from(schema.variables)
    network.add_edges_from([(parent, child) for child, *parents in cliques for parent in parents])
    for clique, table in zip(cliques, tables, strict=True):
        states, cards = _states(schema, clique, table), schema.shape(clique)
        network.add_cpds(TabularCPD(clique[0], cards[0], table.reshape(cards[0], -1), clique[1:], cards[1:], states))
    return network


def assembled_families(
    states: Mapping[str, Sequence[State]], rows: Iterable[tuple[str, Sequence[str], Sequence[float]]]
) -> DiscreteBayesianNetwork:
    """Build a network from variables, their parents and their probabilities in the order of `family_rows`."""
    schema, cliques, tables = Schema(states), [], []
    for variable, parents, numbers in rows:
        schema.require([(variable, *parents)])
        cards = schema.shape((*parents, variable))
        if len(numbers) != math.prod(cards):
            raise ValueError(f"{variable!r} has {len(numbers)} probabilities, and needs {math.prod(cards)}")
        cliques.append((variable, *parents))
        tables.append(np.moveaxis(np.array(numbers, dtype=np.float64).reshape(cards), -1, 0))
    if len({child for child, *_ in cliques}) < len(schema.variables) or len(cliques) > len(schema.variables):
        raise ValueError("each variable needs one table of probabilities")
    return assembled_bayesian(schema, cliques, tables)


def family_rows(network: DiscreteBayesianNetwork, schema: Schema) -> Iterator[tuple[str, list[str], list[float]]]:
    """List each variable, its parents and its CPD; its own states vary fastest, then the last parent's."""
    for variable in schema.variables:
        cpd = network.get_cpds(variable)
        table = ordered_table(cpd, schema.states)
        yield variable, cpd.variables[1:], np.moveaxis(table, 0, -1).ravel().tolist()


def assembled_markov(
    schema: Schema, edges: Iterable[tuple[str, str]], cliques: Sequence[Clique], tables: Sequence[Vector]
) -> DiscreteMarkovNetwork:
    """Build a network from edges, cliques and their tables."""
    network = DiscreteMarkovNetwork()
    network.add_nodes_from(schema.variables)
    network.add_edges_from(edges)
    for clique, table in zip(cliques, tables, strict=True):
        states = _states(schema, clique, table)
        network.add_factors(DiscreteFactor(clique, schema.shape(clique), table.ravel(), state_names=states))
    return network


def _states(schema: Schema, clique: Clique, table: Vector) -> dict[str, list[State]]:
    if not (np.isfinite(table).all() and (table >= 0).all()):
        raise ValueError(f"the table of {clique} holds numbers that are negative or not finite")
    return {variable: list(schema.states[variable]) for variable in clique}
