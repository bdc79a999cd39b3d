"""Reading and writing a schema as a Frictionless Table Schema, version 2."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy.guarantee import DECLARED, Guarantee
from pgmpy_dp.schema.bins import DETAIL, Bins, checked_bounds
from pgmpy_dp.schema.csv_format import CsvFormat
from pgmpy_dp.schema.date_bins import DATED, DateBins
from pgmpy_dp.schema.rules import Rule, rule_from_dict
from pgmpy_dp.schema.states import FIELD_TYPES, State, checked_name, typed
from pgmpy_dp.schema.variable import Variable

PROFILE = "https://datapackage.org/profiles/2.0/tableschema.json"
BINS_PROPERTY = "pgmpy_dp:bins"
STATES_PROPERTY = "pgmpy_dp:states"
BOUNDS_PROPERTY = "pgmpy_dp:bounds"
RULES_PROPERTY = "pgmpy_dp:rules"
CSV_PROPERTY = "pgmpy_dp:csv"
FOUND_PROPERTY = "pgmpy_dp:found"
_FOUND_BEFORE = "pgmpy_dp:found_by"  # in files of earlier versions, a list of guarantees
ROLE_PROPERTIES = {"missing": "pgmpy_dp:missing", "other": "pgmpy_dp:other"}


def table_field(variable: Variable) -> dict[str, Any]:
    """Describe a variable as :meth:`Schema.to_dict` does."""
    field: dict[str, Any] = {"name": variable.name}
    constraints: dict[str, Any] = {} if variable.missing is not None else {"required": True}
    if variable.bounds is not None:  # values are not constrained to them, but clipped
        return field | {"type": "number", "constraints": constraints, BOUNDS_PROPERTY: list(variable.bounds)}
    bins, closed = variable.bins, variable.other is None
    if bins is not None:
        low, high, edges = bins.edges[0], bins.edges[-1], bins.listed_edges()
        constraints |= {"minimum": edges[0]} if closed and math.isfinite(low) else {}
        constraints |= {"maximum": edges[-1]} if closed and math.isfinite(high) else {}
        field |= {"type": bins.kind, "constraints": constraints}
        decimals = {} if bins.decimals is None or isinstance(bins, DateBins) else {"decimals": bins.decimals}
        detail = {} if bins.detail == DETAIL else {"detail": bins.detail}
        field |= {"format": bins.format} if isinstance(bins, DateBins) and bins.format is not None else {}
        field[BINS_PROPERTY] = {"edges": edges, "labels": list(bins.labels), **decimals, **detail}
    else:
        states = _own_states(variable)
        types = set(map(type, states))
        field["type"] = FIELD_TYPES[types.pop()] if len(types) == 1 else "any"
        named = {"enum": list(states)} if closed else {}
        field |= {"constraints": constraints | named} | ({} if closed else {STATES_PROPERTY: list(states)})
        if "" in states:  # a Table Schema reads the empty text as missing by default
            field["missingValues"] = []
    field |= {ROLE_PROPERTIES[role]: state for role, state in variable.roles.items()}
    field |= {"missingValues": list(variable.missing_values)} if variable.missing_values else {}
    return field | ({FOUND_PROPERTY: variable.found.to_dict()} if variable.found.every else {})


def declarations(descriptor: Any) -> tuple[list[Variable], list[Rule], CsvFormat]:
    """Read the variables, rules and format of files that a Table Schema declares; SchemaError if it is not valid."""
    fields = descriptor.get("fields") if isinstance(descriptor, Mapping) else None
    if not isinstance(fields, list) or not all(isinstance(field, Mapping) for field in fields):
        raise SchemaError("Not a Table Schema: it needs a list of 'fields'.")
    variables: dict[str, Variable] = {}
    for field in fields:
        name = checked_name(field.get("name"))
        if name in variables:
            raise SchemaError(f"Table Schema: field {name!r} appears twice.")
        variables[name] = _variable(name, field, descriptor.get("missingValues", []))
    rules = descriptor.get(RULES_PROPERTY, [])
    if not isinstance(rules, list):
        raise SchemaError(f"Table Schema: {RULES_PROPERTY!r} must be a list.")
    csv, known = descriptor.get(CSV_PROPERTY, {}), ("delimiter", "encoding", "strip", "decimal", "dates")
    if not isinstance(csv, Mapping) or not set(csv) <= set(known):
        raise SchemaError(f"Table Schema: {CSV_PROPERTY!r} must be an object of {', '.join(known)}, and nothing else.")
    counted = sorted(variables.values(), key=lambda variable: variable.bounds is not None)
    read = [rule_from_dict(rule) for rule in rules]
    try:
        return counted, read, CsvFormat(**csv)
    except ValueError as error:
        raise SchemaError(f"Table Schema: {CSV_PROPERTY!r}: {error}") from None


def _variable(name: str, field: Mapping[str, Any], missing_values: Any) -> Variable:
    if BOUNDS_PROPERTY in field:
        return Variable(name, bounds=checked_bounds(name, field[BOUNDS_PROPERTY]))
    states = _field_states(name, field)
    result = DECLARED if isinstance(states, Bins) else _found(name, field)  # bins hold their own
    listed = field.get("missingValues", missing_values)
    if not isinstance(listed, list):
        raise SchemaError(f"Field {name!r}: 'missingValues' must be a list.")
    if any(isinstance(text, Mapping) and "value" not in text for text in listed):
        raise SchemaError(f"Field {name!r}: an entry of 'missingValues' has no 'value'.")
    texts = [str(text["value"] if isinstance(text, Mapping) else text) for text in listed]
    texts = [text for text in texts if text != "" or isinstance(states, Bins) or "" not in states]
    roles = {role: field[own] for role, own in ROLE_PROPERTIES.items() if field.get(own) is not None}
    return Variable.of(name, states, texts, result, **roles)


def _found(name: str, field: Mapping[str, Any]) -> Guarantee:
    """Read the guarantee of finding a field's states in records."""
    listed = field.get(_FOUND_BEFORE, [])
    try:
        parts = [field[FOUND_PROPERTY]] if FOUND_PROPERTY in field else list(listed)
        return DECLARED.after(*map(Guarantee.from_dict, parts))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise SchemaError(f"Field {name!r}: {FOUND_PROPERTY!r} holds an invalid guarantee ({error}).") from None


def _own_states(variable: Variable) -> tuple[State, ...]:
    """Drop appended stand-ins of another type ("unknown" among integers), which are not values of the column."""
    states, stand_ins = variable.states, list(variable.roles.values())
    if len(set(map(type, states))) == 1:
        return states
    for end in range(len(states) - 1, max(len(states) - len(stand_ins), 1) - 1, -1):
        own = read = states[:end]
        for stand_in in stand_ins:
            read = read if typed(stand_in) in map(typed, read) else (*read, stand_in)
        if len(set(map(type, own))) == 1 and list(map(typed, read)) == list(map(typed, states)):
            return own
    return states


def _field_states(name: str, field: Mapping[str, Any]) -> list[State] | Bins:
    if BINS_PROPERTY in field:
        bins = field[BINS_PROPERTY]
        if not isinstance(bins, Mapping) or not isinstance(bins.get("edges"), list):
            raise SchemaError(f"Field {name!r}: {BINS_PROPERTY} needs a list of 'edges'.")
        edges = [math.inf if e == "inf" else -math.inf if e == "-inf" else e for e in bins["edges"]]
        try:
            own = bins.get("labels"), bins.get("decimals"), _found(name, field), bins.get("detail", DETAIL)
            if (kind := DATED.get(str(field.get("type")))) is None:
                return Bins(edges, *own)
            # Edges in files are in ISO, whatever the format of the records is.
            form = field.get("format") if "%" in str(field.get("format")) else None
            return kind(map(kind.edge, edges), *own, format=form)
        except SchemaError as error:
            raise SchemaError(f"Field {name!r}: {error}") from None
    constraints = field.get("constraints", {})
    values = field.get(STATES_PROPERTY)
    if values is None and isinstance(constraints, Mapping):
        values = constraints.get("enum")
    if values is None:
        values = field.get("categories")
        if isinstance(values, list):
            values = [value.get("value") if isinstance(value, Mapping) else value for value in values]
    if values is None and field.get("type") == "boolean":
        values = [False, True]
    if not isinstance(values, list):
        raise SchemaError(
            f"Field {name!r} declares no states: list them in 'constraints': {{'enum': [...]}} or in 'categories', or "
            f"give {BINS_PROPERTY!r} for a numeric field. If they are not public, give {STATES_PROPERTY!r}: [] and, in "
            f"{ROLE_PROPERTIES['other']!r}, a state that stands for all values."
        )
    return [_field_value(name, value, field.get("type", "any")) for value in values]


def _field_value(name: str, value: Any, kind: Any) -> Any:
    if kind == "number" and type(value) is int and abs(value) < 2**63:
        return float(value)
    if kind == "integer" and type(value) is float and value.is_integer():
        return int(value)
    expected = next((python for python, known in FIELD_TYPES.items() if known == kind), None)
    if expected is not None and type(value) is not expected:
        raise SchemaError(f"Field {name!r} has type {kind!r} but lists the value {value!r}.")
    return value
