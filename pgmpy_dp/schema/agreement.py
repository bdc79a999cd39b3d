"""One schema for several holders of records, who declared their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy.guarantee import learned
from pgmpy_dp.schema.bins import Bins
from pgmpy_dp.schema.csv_format import CsvFormat
from pgmpy_dp.schema.rules import Rule
from pgmpy_dp.schema.schema import Schema
from pgmpy_dp.schema.states import State, typed


def agree(schemas: Iterable[Schema]) -> Schema:
    """Find a schema under which all holders can measure, so that their releases can be united.

    It is the common refinement: every state that some holder declares, and every edge of bins. No record is seen. A
    holder that lacks a variable measures under ``agreed.select(...)`` of its own.

    Parameters
    ----------
    schemas : iterable of Schema
        At least two. Bounds become the widest, and the format of files is kept if all have the same. A rule is kept if
        all holders that have its variables declare it. If a holder found states in records, guarantees of all releases
        under the schema include that cost.

    Returns
    -------
    Schema
        Variables and states in the order of their first declaration, with those for missing and other values.

    Raises
    ------
    SchemaError
        If there is no refinement; the message names the variable and says what to declare.

    Examples
    --------
    >>> north = Schema({"age": Bins([0, 40, 80]), "ward": ["a", "b"]})
    >>> south = Schema({"age": Bins([0, 60, 80, 120]), "ward": ["b", "c"], "payer": ["state", "own"]})
    >>> agreed = agree([north, south])
    >>> agreed.states["age"], agreed.states["ward"], agreed.variables
    (('0_to_40', '40_to_60', '60_to_80', '80_to_120'), ('a', 'b', 'c'), ('age', 'ward', 'payer'))
    """
    given = list(schemas)
    if len(given) < 2 or not all(isinstance(schema, Schema) for schema in given):
        raise SchemaError("agree takes a list of two schemas or more, one of each holder.")
    names = dict.fromkeys(variable for schema in given for variable in schema.states)
    declared = {v: _agreed(v, [schema for schema in given if v in schema.states]) for v in names}
    numbers = dict.fromkeys(variable for schema in given for variable in schema.bounds)
    for variable in numbers:
        if variable in names:
            raise SchemaError(
                f"Variable {variable!r} has states for one holder and is a number with bounds for another: declare the "
                "same Bins for it everywhere."
            )
    ends = {v: [schema.bounds[v] for schema in given if v in schema.bounds] for v in numbers}
    found = {v: learned(*(schema.found[v] for schema in given if v in schema.found)) for v in names}
    said = {v: dict.fromkeys(t for schema in given for t in schema.missing_values.get(v, ())) for v in names}
    return Schema(
        declared,
        _stand_ins("missing", given, names),
        _stand_ins("other", given, names),
        {v: (min(low for low, _ in own), max(high for _, high in own)) for v, own in ends.items()},
        _common_rules(given),
        {v: list(texts) for v, texts in said.items() if texts},
        given[0].csv if len({schema.csv for schema in given}) == 1 else CsvFormat(),
        found,
    )


def _agreed(variable: str, schemas: Sequence[Schema]) -> Bins | list[State]:
    """Refine the states of a variable, without those for missing and other values."""
    binned = [schema.bins[variable] for schema in schemas if variable in schema.bins]
    if binned and len(binned) < len(schemas):
        raise SchemaError(
            f"Variable {variable!r} has bins for one holder and states for another: declare Bins, or the same states, "
            "for all."
        )
    if binned:
        return _refined(variable, binned)
    roles = [(schema.missing.get(variable), schema.other.get(variable)) for schema in schemas]
    states = [[s for s in own.states[variable] if s not in role] for own, role in zip(schemas, roles, strict=True)]
    found = {typed(state): state for own in states for state in own}
    for number, own in enumerate(states[1:], 2):
        if own and states[0] and not set(map(typed, own)) & set(map(typed, states[0])):
            raise SchemaError(
                f"Variable {variable!r}: schema {number} has no state of schema 1 ({own[0]!r} there, "
                f"{states[0][0]!r} here): declare the states that both mean by the same values."
            )
    written: dict[str, State] = {}
    for state in found.values():
        other = written.setdefault(str(state).strip().casefold(), state)
        if typed(other) != typed(state):
            raise SchemaError(
                f"Variable {variable!r}: {other!r} and {state!r} look like one state: declare one of them for all, or "
                "other names."
            )
    return list(found.values())


def _refined(variable: str, binned: Sequence[Bins]) -> Bins:
    """Cut bins at the edges of all; one that is nobody's own gets the name of its edges."""
    if len(kinds := {type(own) for own in binned}) > 1:
        raise SchemaError(f"Variable {variable!r} has bins of numbers for one holder and of dates for another.")
    (kind,) = kinds
    edges = sorted({edge for own in binned for edge in own.edges})
    names: dict[tuple[float, float], str] = {}
    for own in binned:
        for ends, label in zip(pairwise(own.edges), own.labels, strict=True):
            if names.setdefault(ends, label) != label:
                raise SchemaError(
                    f"Variable {variable!r}: the bin from {own.written(ends[0], 6)} to {own.written(ends[1], 6)} is "
                    f"called {names[ends]!r} and {label!r}: give it one name."
                )
    labels = [names.get(ends, kind(ends).labels[0]) for ends in pairwise(edges)]
    decimals = [own.decimals for own in binned]
    most = None if None in decimals else max(own for own in decimals if own is not None)
    return kind(edges, labels, most, learned(*(own.found for own in binned)))


def _stand_ins(role: str, schemas: Sequence[Schema], variables: Iterable[str]) -> dict[str, State]:
    """Collect the states for missing or other values, on which those who declare one must agree."""
    found: dict[str, Any] = {}
    for variable in variables:
        declared: dict[Any, State] = {}
        for schema in schemas:
            given: Mapping[str, State] = getattr(schema, role)
            if variable in given:
                declared[typed(given[variable])] = given[variable]
        if len(declared) > 1:
            named = " and ".join(map(repr, declared.values()))
            raise SchemaError(f"Variable {variable!r}: {role} values are called {named}: declare one state for all.")
        if declared:
            found[variable] = next(iter(declared.values()))
    return found


def _common_rules(schemas: Sequence[Schema]) -> list[Rule]:
    rules = dict.fromkeys(rule for schema in schemas for rule in schema.rules)
    return [
        rule
        for rule in rules
        if all(rule in schema.rules for schema in schemas if set(rule.variables) <= schema.states.keys())
    ]
