"""One schema for several holders of records, who declared their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy.guarantee import learned
from pgmpy_dp.schema.bins import Bins
from pgmpy_dp.schema.csv_format import CsvFormat
from pgmpy_dp.schema.date_bins import DateBins
from pgmpy_dp.schema.schema import Schema
from pgmpy_dp.schema.states import State, typed
from pgmpy_dp.schema.variable import Variable


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
    declared: dict[str, list[Variable]] = {}
    for variable in (variable for schema in given for variable in schema.fields):
        declared.setdefault(variable.name, []).append(variable)
    fields = sorted(map(_agreed, declared.values()), key=lambda variable: variable.bounds is not None)
    rules = dict.fromkeys(rule for schema in given for rule in schema.rules)
    common = [
        rule
        for rule in rules
        if all(rule in schema.rules for schema in given if set(rule.variables) <= schema.states.keys())
    ]
    return Schema.of(fields, common, given[0].csv if len({schema.csv for schema in given}) == 1 else CsvFormat())


def _agreed(declared: Sequence[Variable]) -> Variable:
    """Refine a variable as its holders declare it."""
    name, bounds = declared[0].name, [own.bounds for own in declared if own.bounds is not None]
    if bounds and len(bounds) < len(declared):
        raise SchemaError(
            f"Variable {name!r} has states for one holder and is a number with bounds for another: declare the same "
            "Bins for it everywhere."
        )
    if bounds:
        lows, highs = zip(*bounds, strict=True)
        return Variable(name, bounds=(min(lows), max(highs)))
    roles = {role: state for role in ("missing", "other") for state in _stand_in(role, declared)}
    texts = list(dict.fromkeys(text for own in declared for text in own.missing_values))
    return Variable.of(name, _refined(declared), texts, learned(*(own.found for own in declared)), **roles)


def _stand_in(role: str, declared: Sequence[Variable]) -> list[State]:
    """List the state for missing or other values, if any; holders that declare one must agree on it."""
    states = list({typed(each.roles[role]): each.roles[role] for each in declared if role in each.roles}.values())
    if len(states) > 1:
        named = " and ".join(map(repr, states))
        raise SchemaError(
            f"Variable {declared[0].name!r}: {role} values are called {named}: declare one state for all."
        )
    return states


def _refined(declared: Sequence[Variable]) -> Bins | list[State]:
    """Refine the states of a variable, without those for missing and other values."""
    name, binned = declared[0].name, [own.bins for own in declared if own.bins is not None]
    if binned and len(binned) < len(declared):
        raise SchemaError(
            f"Variable {name!r} has bins for one holder and states for another: declare Bins, or the same states, for "
            "all."
        )
    if binned:
        return _refined_bins(name, binned)
    states = [own.values for own in declared]
    for number, own in enumerate(states[1:], 2):
        if own and states[0] and not set(map(typed, own)) & set(map(typed, states[0])):
            raise SchemaError(
                f"Variable {name!r}: schema {number} has no state of schema 1 ({own[0]!r} there, {states[0][0]!r} "
                "here): declare the states that both mean by the same values."
            )
    union = {typed(state): state for own in states for state in own}
    written: dict[str, State] = {}
    for state in union.values():
        other = written.setdefault(str(state).strip().casefold(), state)
        if typed(other) != typed(state):
            raise SchemaError(
                f"Variable {name!r}: {other!r} and {state!r} look like one state: declare one of them for all, or "
                "other names."
            )
    return list(union.values())


def _refined_bins(variable: str, binned: Sequence[Bins]) -> Bins:
    """Cut bins at the edges of all holders; a bin that none of them declares is named by its edges."""
    if len(kinds := {type(own) for own in binned}) > 1:
        named = " and of ".join(sorted(f"{own.kind}s" for own in kinds))
        raise SchemaError(f"Variable {variable!r} has bins of {named}: all holders declare bins of one kind.")
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
    maximum = None if None in decimals else max(own for own in decimals if own is not None)
    forms = {own.format for own in binned if isinstance(own, DateBins)}
    return kind(edges, labels, maximum) if len(forms) != 1 else kind(edges, labels, format=forms.pop())  # type: ignore[call-arg]
