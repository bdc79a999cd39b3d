"""A numeric variable has public bins or bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.schema.states import checked_states, is_listable, listed, plain


@dataclass(frozen=True, init=False)
class Bins:
    """Bins cut the range of a numeric variable at public edges.

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


def checked_bounds(variable: str, declared: Any) -> tuple[float, float]:
    """Check public bounds of a numeric variable: low and high, or one positive number for both signs."""
    wanted = f"Variable {variable!r}: bounds are two finite numbers, low < high, or one positive number"
    single = plain(declared)
    ends = [-single, single] if isinstance(single, (int, float)) else declared
    if isinstance(ends, (str, bytes)) or not is_listable(ends) or len(list(ends)) != 2:
        raise SchemaError(f"{wanted}, got {type(declared).__name__}.")  # its contents may be records
    low, high = (plain(end) for end in ends)
    numbers = all(isinstance(end, (int, float)) and not isinstance(end, bool) for end in (low, high))
    if isinstance(single, bool) or not numbers or not -1e150 < low < high < 1e150:
        raise SchemaError(f"{wanted}, got {type(declared).__name__}.")  # its contents may be records
    low, high = float(low), float(high)
    if not (high - low) / 2.0 > 0.0:  # half the range scales the values
        raise SchemaError(f"{wanted}; as floating-point numbers these are too close to each other: {declared!r}.")
    return low, high


def _edge(edge: Any) -> float:
    value = plain(edge)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SchemaError(f"Bins: edges are numbers, got {edge!r}.")
    try:
        number = float(value) + 0.0  # turns -0.0 into 0.0
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
