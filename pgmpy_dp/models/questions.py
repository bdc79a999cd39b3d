"""Validation of queries: their variables, evidence and records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pgmpy_dp._names import suggestion
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.privacy.checks import shown
from pgmpy_dp.records.cells import MISSING, Reader
from pgmpy_dp.schema import Schema, State


def checked_question(
    schema: Schema,
    variables: Sequence[str] | None,
    evidence: Mapping[str, Any] | None,
    declared: Sequence[Schema] = (),
) -> tuple[list[str], dict[str, Any]]:
    """Check variables and evidence against a schema; by default the variables are all those without evidence.

    Evidence is read by `checked_evidence`.
    """
    if isinstance(variables, str):
        raise TypeError(f"Name the variables in a list: [{variables!r}].")
    if variables is not None:
        schema.require([variables])
    given = checked_evidence(schema, evidence, declared)
    if twice := set(given) & set(variables or ()):
        raise SchemaError(f"Variable {min(twice)!r} is both asked for and given as evidence.")
    return [v for v in schema.variables if v not in given] if variables is None else list(variables), given


def checked_evidence(
    schema: Schema, evidence: Mapping[str, Any] | None, declared: Sequence[Schema] = ()
) -> dict[str, Any]:
    """Convert evidence to states.

    A value that is not a state is read like a cell of the records: a number means the bin that contains it, and one of
    the variable's `missing_values` means the state for missing values. The state for other values must be given by its
    name; otherwise every misspelt state would mean it.

    Parameters
    ----------
    schema : Schema
    evidence : mapping of variable to state, number or text, optional
    declared : sequence of Schema
        The schemas of the original records. The first with a variable's states is used, or `schema` if there is none.

    Raises
    ------
    TypeError
        If it is not a mapping.
    SchemaError
        If a variable is unknown, or a value is neither a state nor in a bin.

    Examples
    --------
    >>> from pgmpy_dp.schema import Bins
    >>> schema = Schema({"age": Bins([0, 18, 65])}, missing={"age": "unknown"}, missing_values=["?"])
    >>> checked_evidence(schema, {"age": 18}), checked_evidence(schema, {"age": "?"})
    ({'age': '18_to_65'}, {'age': 'unknown'})
    """
    if not isinstance(evidence, Mapping | None):
        raise TypeError(f'evidence must be a dict such as {{"smoke": "yes"}}, got {shown(evidence)}.')
    given = dict(evidence or {})
    for variable, value in given.items():
        schema.require([(variable,)])
        if value not in schema.states[variable]:
            given[variable] = _read(reading_schema(schema, declared, variable), variable, value)
    return given


def checked_records(schema: Schema, records: pd.DataFrame, declared: Sequence[Schema] = ()) -> pd.DataFrame:
    """Convert the cells of public records to states, each as in `checked_evidence`.

    Missing cells (None, NaN) stay missing, for the caller to refuse or predict.

    Examples
    --------
    >>> from pgmpy_dp.schema import Bins
    >>> records = pd.DataFrame({"age": [40.0, None, 3.0]})
    >>> checked_records(Schema({"age": Bins([0, 18, 65])}), records)["age"].tolist()
    ['18_to_65', nan, '0_to_18']
    """
    columns, names = {}, list[Any](records)
    for variable in names:
        schema.require([(variable,)])
        meant: dict[tuple[type, Any], Any] = {}
        keys = [
            (type(value), value) if known else None  # 1 == True, but they are different values
            for value, known in zip(records[variable].tolist(), records[variable].notna(), strict=True)
        ]
        for key in filter(None, keys):
            if key not in meant:
                meant[key] = checked_evidence(schema, {variable: key[1]}, declared)[variable]
        states = [np.nan if key is None else meant[key] for key in keys]
        columns[variable] = pd.Series(states, records.index, dtype=object)
    return pd.DataFrame(columns, index=records.index)


def reading_schema(schema: Schema, declared: Sequence[Schema], variable: str) -> Schema:
    """Find the schema that maps a variable's values to states: the first declared one with its states."""
    states = set(schema.states[variable])
    return next((own for own in declared if variable in own.states and set(own.states[variable]) == states), schema)


def _read(schema: Schema, variable: str, value: Any) -> State:
    """Convert a value of the records to its state."""
    reader = Reader.of(schema, variable)
    place: int | None = reader.text_position(value) if isinstance(value, str) else reader.position(value)
    if place == MISSING and value in reader.missing_values:
        place, _ = reader.stand_ins
    if place is None or place < 0:
        raise SchemaError(
            f"Variable {variable!r} has no state {value!r}; it has {', '.join(map(repr, reader.states))}."
            f"{suggestion(value, reader.states)}"
        )
    return reader.states[place]


def numbers_of_states(schema: Schema, values: Mapping[str, Mapping[Any, float]]) -> dict[str, Vector]:
    """Put the numbers assigned to states in the order of the states, for every variable.

    Raises
    ------
    TypeError, SchemaError, ValueError
        If there are none, or not exactly one finite number for every state.
    """
    if not isinstance(values, Mapping):
        raise TypeError('Give a number for every state: expectation({"age": {"young": 25, "old": 70}}).')
    found = {}
    for variable, numbers in values.items():
        schema.require([(variable,)])
        states = schema.states[variable]
        if set(numbers) != set(states):
            named, other = ", ".join(map(repr, states)), [state for state in numbers if state not in states]
            wrong = f" It has no state {shown(other[0])}." if other else ""
            raise SchemaError(f"Give a number for each state of {variable!r}, every state needing one: {named}.{wrong}")
        found[variable] = np.array([float(numbers[state]) for state in states])
        if not np.isfinite(found[variable]).all():
            raise ValueError(f"The numbers of {variable!r} must be finite.")
    return found
