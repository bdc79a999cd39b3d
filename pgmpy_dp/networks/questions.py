"""Questions to a network name variables and states of its schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.inference.layout import Vector
from pgmpy_dp.schema import Schema


def checked_question(
    schema: Schema, variables: Sequence[str] | None, evidence: Mapping[str, Any] | None
) -> tuple[list[str], dict[str, Any]]:
    """Refuse what the schema does not have; by default all variables are asked for that are not given."""
    if isinstance(variables, str):
        raise TypeError(f"Name the variables in a list: [{variables!r}].")
    if variables is not None:
        schema.require([variables])
    given = checked_evidence(schema, evidence)
    if twice := set(given) & set(variables or ()):
        raise SchemaError(f"Variable {min(twice)!r} is both asked for and given as evidence.")
    return [v for v in schema.variables if v not in given] if variables is None else list(variables), given


def checked_evidence(schema: Schema, evidence: Mapping[str, Any] | None) -> dict[str, Any]:
    """Refuse evidence with variables or states that the schema does not have."""
    given = dict(evidence or {})
    for variable, state in given.items():
        schema.require([(variable,)])
        if state not in schema.states[variable]:
            states = ", ".join(map(repr, schema.states[variable]))
            raise SchemaError(f"Variable {variable!r} has no state {state!r}; it has {states}.")
    return given


def impossible(evidence: Mapping[str, Any]) -> ValueError:
    """Say that nothing can be told given what the network excludes."""
    return ValueError(f"The evidence {dict(evidence)} has probability zero in the network: leave a part of it out.")


def numbers_of_states(schema: Schema, values: Mapping[str, Mapping[Any, float]]) -> dict[str, Vector]:
    """Put the numbers that are attached to states in the order of the states, for every variable.

    Raises
    ------
    TypeError, SchemaError, ValueError
        If there are none, or not one finite number for every state.
    """
    if not isinstance(values, Mapping):
        raise TypeError('Give a number for every state: expectation({"age": {"young": 25, "old": 70}}).')
    found = {}
    for variable, numbers in values.items():
        schema.require([(variable,)])
        states = schema.states[variable]
        if set(numbers) != set(states):
            named = ", ".join(map(repr, states))
            raise SchemaError(f"Give a number for each state of {variable!r}, every state needing one: {named}.")
        found[variable] = np.array([float(numbers[state]) for state in states])
        if not np.isfinite(found[variable]).all():
            raise ValueError(f"The numbers of {variable!r} must be finite.")
    return found
