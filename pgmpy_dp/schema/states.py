"""Checks of the names of variables and of their states."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from pgmpy_dp._names import closest
from pgmpy_dp.errors import SchemaError

State = str | int | float | bool

# A month, day, week or quarter, as ISO 8601 and the labels of `DateBins` write them: in alphabetic order if alike.
_PERIOD = re.compile(r"\d{4}-((0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?|W(0[1-9]|[1-4]\d|5[0-3])|Q[1-4])", re.ASCII)

FIELD_TYPES: dict[type, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def listed(values: Any, what: str, expected: str = "a list") -> list[Any]:
    if not is_listable(values):
        given = repr(values) if isinstance(values, str) else type(values).__name__
        raise SchemaError(f"{what} must be {expected}, got {given}.")
    return list(values)


def is_listable(values: Any) -> bool:
    # Sets have no order. The edge views of networkx are sets and mappings by type, but are ordered.
    if isinstance(values, (list, tuple)):
        return True
    if isinstance(values, (str, bytes, dict, set, frozenset)):
        return False
    return isinstance(values, Iterable) and not (isinstance(values, np.ndarray) and values.ndim == 0)


def checked_name(name: Any) -> str:
    if not isinstance(name, str) or not name or not is_text(name):
        raise SchemaError(f"Variable names are non-empty strings, got {name!r}.")
    return str(name)


def checked_states(owner: str, declared: Any, what: str, *, minimum: int = 1) -> tuple[State, ...]:
    if isinstance(declared, (str, bytes)):
        raise SchemaError(f"{owner}: {what} given as one string, {declared!r}; write a list, such as [{declared!r}].")
    if not is_listable(declared):
        raise SchemaError(f"{owner}: {what} must be a list in a fixed order, got {type(declared).__name__}.")
    states = tuple(checked_state(owner, state) for state in declared)
    if len(states) < minimum:
        raise SchemaError(f"{owner}: no {what} given; list at least one.")
    return distinct(owner, states)


def distinct(owner: str, states: tuple[State, ...]) -> tuple[State, ...]:
    seen: dict[State, State] = {}
    for state in states:
        if state in seen:
            raise SchemaError(f"{owner}: states {seen[state]!r} and {state!r} are equal; give each once, in one type.")
        seen[state] = state
    return states


def plain(value: Any) -> Any:
    """Convert a numpy bool, number or text to Python's. Times are kept, since numpy would convert them to integers."""
    return value.item() if isinstance(value, np.generic) and value.dtype.kind in "biufU" else value


def checked_state(owner: str, state: Any) -> State:
    value = plain(state)
    if type(value) not in FIELD_TYPES:
        raise SchemaError(
            f"{owner}: a state is a str, int, float or bool, got one of type {type(value).__name__}. "
            "For missing values, declare a state as the variable's 'missing'."
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise SchemaError(
            f"{owner}: {value!r} cannot be a state. For missing values, declare a state as the variable's 'missing'; "
            "for infinite ranges, use bins."
        )
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise SchemaError(f"{owner}: an integer state does not fit 64 bits; use a string.")
    if isinstance(value, str) and not is_text(value):
        raise SchemaError(f"{owner}: the state {value!r} cannot be written as UTF-8.")
    return value + 0.0 if isinstance(value, float) else value  # turns -0.0 into 0.0


def written(state: State) -> str | None:
    """Return the form of a state that can be ordered, a number's or a date's; None for other states."""
    if isinstance(state, str):
        return re.sub(r"\d", "0", state) if _PERIOD.fullmatch(state) else None
    return None if isinstance(state, bool) else "number"


def in_order(states: tuple[State, ...]) -> bool:
    """Whether states are at least three numbers, or dates written alike, that ascend."""
    alike = len(states) > 2 and written(states[0]) and len({written(state) for state in states}) == 1
    return bool(alike) and all(low < high for low, high in pairwise(states))  # type: ignore[operator]


def alike(states: tuple[State, ...]) -> list[State]:
    """Return states as frames hold them, in one type: as texts if some are texts and others are not."""
    texts = list(map(str, states))
    mixed = len({isinstance(state, str) for state in states}) > 1 and len({*texts}) == len(states)
    return list(texts) if mixed else list(states)


def is_text(value: str) -> bool:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def typed(state: State) -> tuple[type, State]:
    return type(state), state


def require_known(variable: Any, states: Mapping[str, Any], where: str = "") -> None:
    if isinstance(variable, str) and variable in states:
        return
    prefix = f"{where}: " if where else ""
    close = closest(variable, states)
    hint = f"did you mean {close!r}?" if close else f"the schema has {some(states)}."
    raise SchemaError(f"{prefix}Unknown variable {variable!r}: {hint}")


def some(names: Iterable[Any]) -> str:
    names = list(names)
    return ", ".join(map(repr, names[:8])) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
