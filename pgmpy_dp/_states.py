"""Names, states and bins: what a variable may be called and which values it may take."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from pgmpy_dp.errors import SchemaError

State = str | int | float | bool

FIELD_TYPES: dict[type, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


@dataclass(frozen=True, init=False)
class Bins:
    """Public bin edges of a numeric variable.

    Bin k is half-open, ``edges[k] <= x < edges[k + 1]``; the last bin also holds its upper edge.

    Parameters
    ----------
    edges : iterable of float
        Strictly increasing, in the variable's own unit; at least two. The first may be ``-inf``, the last
        ``inf``.
    labels : iterable of str, optional
        One name for each bin. By default ``"18_to_65"``, ``"below_18"`` and ``"65_or_more"``: names without
        commas, blanks or brackets, which pgmpy's BIF files bring back unchanged.

    Raises
    ------
    SchemaError
        If the edges are not strictly increasing numbers, or the labels do not fit them.

    Examples
    --------
    >>> Bins([0, 18, 65, float("inf")]).labels
    ('0_to_18', '18_to_65', '65_or_more')
    """

    edges: tuple[float, ...]
    labels: tuple[str, ...]

    def __init__(self, edges: Iterable[float], labels: Iterable[str] | None = None) -> None:
        values = tuple(_edge(edge) for edge in listed(edges, "Bins: edges"))
        if len(values) < 2:
            raise SchemaError(f"Bins need at least two edges, got {len(values)}: write Bins([0, 18, 65, 120]).")
        if any(low >= high for low, high in pairwise(values)):
            raise SchemaError(f"Bins: edges must increase strictly, got {list(values)}.")
        if labels is None:
            names = tuple(_bin_label(low, high) for low, high in pairwise(values))
        else:
            names = checked_states("Bins", labels, "labels")  # type: ignore[assignment]
        if len(names) != len(values) - 1 or not all(isinstance(name, str) for name in names):
            raise SchemaError(
                f"Bins: {len(values)} edges make {len(values) - 1} bins; give as many labels, all strings."
            )
        object.__setattr__(self, "edges", values)
        object.__setattr__(self, "labels", names)


def listed(values: Any, what: str, expected: str = "a list") -> list[Any]:
    if not _is_listable(values):
        given = repr(values) if isinstance(values, str) else type(values).__name__
        raise SchemaError(f"{what} must be {expected}, got {given}.")
    return list(values)


def _is_listable(values: Any) -> bool:
    # Sets have no order. The edge views of networkx are sets and mappings by type, but do have one.
    if isinstance(values, (str, bytes, dict, set, frozenset)):
        return False
    return isinstance(values, Iterable) and not (isinstance(values, np.ndarray) and values.ndim == 0)


def checked_name(name: Any) -> str:
    if not isinstance(name, str) or not name or not _is_text(name):
        raise SchemaError(f"Variable names are non-empty strings, got {name!r}.")
    return str(name)


def checked_states(owner: str, declared: Any, what: str) -> tuple[State, ...]:
    if isinstance(declared, (str, bytes)):
        raise SchemaError(f"{owner}: {what} given as one string, {declared!r}; write a list, such as [{declared!r}].")
    if not _is_listable(declared):
        raise SchemaError(f"{owner}: {what} must be a list in a fixed order, got {type(declared).__name__}.")
    states = tuple(checked_state(owner, state) for state in declared)
    if not states:
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
    """A numpy bool, number or text as Python's own. Times stay: numpy would make integers of them."""
    return value.item() if isinstance(value, np.generic) and value.dtype.kind in "biufU" else value


def checked_state(owner: str, state: Any) -> State:
    value = plain(state)
    if type(value) not in FIELD_TYPES:
        raise SchemaError(
            f"{owner}: a state is a str, int, float or bool, got one of type {type(value).__name__}. "
            "For missing values, name a state in Schema(..., missing={variable: state})."
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise SchemaError(
            f"{owner}: {value!r} cannot be a state. For missing values, name a state in "
            "Schema(..., missing={variable: state}); for infinite ranges, use Bins."
        )
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise SchemaError(f"{owner}: an integer state does not fit 64 bits; use a string.")
    if isinstance(value, str) and not _is_text(value):
        raise SchemaError(f"{owner}: the state {value!r} cannot be written as UTF-8.")
    return value + 0.0 if isinstance(value, float) else value  # -0.0 becomes 0.0


def _is_text(value: str) -> bool:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def checked_bounds(variable: str, declared: Any) -> tuple[float, float]:
    """Public bounds of a numeric variable: low and high, or one positive number for both signs."""
    wanted = f"Variable {variable!r}: bounds are two finite numbers, low < high, or one positive number"
    single = plain(declared)
    ends = [-single, single] if isinstance(single, (int, float)) else declared
    if isinstance(ends, (str, bytes)) or not _is_listable(ends) or len(list(ends)) != 2:
        raise SchemaError(f"{wanted}, got {type(declared).__name__}.")  # what it holds may be records
    low, high = (plain(end) for end in ends)
    numbers = all(isinstance(end, (int, float)) and not isinstance(end, bool) for end in (low, high))
    if isinstance(single, bool) or not numbers or not -1e150 < low < high < 1e150:
        raise SchemaError(f"{wanted}, got {declared!r}.")
    low, high = float(low), float(high)
    if not (high - low) / 2.0 > 0.0:  # values are scaled by it
        raise SchemaError(f"{wanted}; as floating-point numbers these are too close to each other: {declared!r}.")
    return low, high


def typed(state: State) -> tuple[type, State]:
    return type(state), state


def _edge(edge: Any) -> float:
    value = plain(edge)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SchemaError(f"Bins: edges are numbers, got {edge!r}.")
    try:
        number = float(value) + 0.0  # -0.0 becomes 0.0
    except OverflowError:
        raise SchemaError("Bins: an edge is too large for a float; use inf.") from None
    if math.isnan(number):
        raise SchemaError("Bins: an edge is NaN; edges are numbers, -inf or inf.")
    return number


def _bin_label(low: float, high: float) -> str:
    if math.isinf(low) and math.isinf(high):
        return "any"
    if math.isinf(low):
        return f"below_{_short(high)}"
    return f"{_short(low)}_or_more" if math.isinf(high) else f"{_short(low)}_to_{_short(high)}"


def _short(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)
