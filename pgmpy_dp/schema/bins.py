"""Public bins and bounds of numeric variables."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, Decimal
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy.checks import settle, shown
from pgmpy_dp.privacy.guarantee import DECLARED, Guarantee
from pgmpy_dp.schema.states import checked_states, is_listable, listed, plain

_MAX_WHOLE = 2**53  # largest magnitude up to which floats represent every integer
# An open bin ends at this multiple of the range of the finite edges beyond them.
_OPEN = 100.0
DETAIL = 64
# A bin up to this multiple of the narrower neighbour's width has cells of equal width.
_EVEN = 3.0
_MAX_DETAIL = 2**12


@dataclass(frozen=True, init=False)
class Bins:
    """Bins of a numeric variable, cut at public edges.

    Bin k is half-open, ``edges[k] <= x < edges[k + 1]``; the last bin also holds its upper edge.

    Parameters
    ----------
    edges : iterable of float
        Strictly increasing, in the variable's own unit; at least two. The first may be ``-inf``, the last ``inf``.
    labels : iterable of str, optional
        One name for each bin. By default ``"18_to_65"``, ``"below_18"`` and ``"65_or_more"``: names without commas,
        blanks or brackets, which survive pgmpy's BIF files.
    decimals : int, optional
        Number of decimals of the numbers that are drawn from bins; 0 for integers. By default they are integers if all
        edges are, and any floats otherwise. It does not affect how records are read.
    found : Guarantee, optional
        What choosing the edges from records cost, as by `PrivateDataset.quantile_bins`. By default they are declared.
    detail : int
        Approximate number of cells of the finer histogram that plans measure to fill the bins; 0 for none. See `fine`.

    Raises
    ------
    SchemaError
        If the edges are not strictly increasing numbers, the labels do not match them, or a bin holds no number with
        this number of decimals.

    Examples
    --------
    >>> Bins([0, 18, 65, float("inf")]).labels
    ('0_to_18', '18_to_65', '65_or_more')
    """

    edges: tuple[float, ...]
    labels: tuple[str, ...]
    decimals: int | None
    found: Guarantee = field(default=DECLARED, repr=False, compare=False)
    detail: int = field(default=DETAIL, repr=False)
    kind: ClassVar[str] = "number"
    span: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    """Numbers beyond are not drawn from open bins, unless an edge lies there."""
    limits: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    """Then those beyond these are not."""

    def __init__(
        self,
        edges: Iterable[float],
        labels: Iterable[str] | None = None,
        decimals: int | None = None,
        found: Guarantee = DECLARED,
        detail: int = DETAIL,
    ) -> None:
        values = tuple(_edge(edge) for edge in listed(edges, "Bins: edges"))
        if len(values) < 2:
            raise SchemaError(f"Bins need at least two edges, such as 0, 18, 65, 120; got {len(values)}.")
        if any(low >= high for low, high in pairwise(values)):
            raise SchemaError(f"Bins: edges must increase strictly, got {list(values)}.")
        if labels is None:
            names = tuple(self._label(low, high) for low, high in pairwise(values))
        else:
            names = checked_states("Bins", labels, "labels")  # type: ignore[assignment]
        if len(names) != len(values) - 1 or not all(isinstance(name, str) for name in names):
            raise SchemaError(
                f"Bins: {len(values)} edges make {len(values) - 1} bins; give that number of labels, all strings."
            )
        cells = plain(detail)
        if isinstance(cells, bool) or not isinstance(cells, int) or not 0 <= cells <= _MAX_DETAIL:
            raise SchemaError(f"Bins: detail is a whole number from 0 to {_MAX_DETAIL}, got {detail!r}.")
        settle(self, edges=values, labels=names, decimals=_checked_decimals(decimals, values))
        settle(self, found=checked_guarantee(found), detail=cells)

    def steps(self) -> list[int] | None:
        """For each edge the least value at or above it, in units of the last decimal; the edges must be finite.

        None if the numbers may have any decimals.

        Examples
        --------
        >>> Bins([0, 0.25, 1.5], decimals=1).steps()
        [0, 3, 15]
        """
        if self.decimals is not None:
            *steps, last = (_step(edge, self.decimals) for edge in self.edges)
            return [*steps, max(last, steps[-1] + 1)]  # the last bin also holds its upper edge, perhaps nothing else
        whole = all(edge.is_integer() and abs(edge) <= _MAX_WHOLE for edge in self.edges)
        return [int(edge) for edge in self.edges] if whole else None

    @classmethod
    def _label(cls, low: float, high: float) -> str:
        if math.isinf(low) and math.isinf(high):
            return "any"
        if math.isinf(low):
            return f"below_{_short(high)}"
        return f"{_short(low)}_or_more" if math.isinf(high) else f"{_short(low)}_to_{_short(high)}"

    def listed_edges(self) -> list[Any]:
        """Return the edges as files write them: infinite ones, and those of dates, as texts.

        Examples
        --------
        >>> Bins([0, 18, float("inf")]).listed_edges()
        [0.0, 18.0, 'inf']
        """
        return [edge if math.isfinite(edge) else str(edge) for edge in self.edges]

    def written(self, number: float, digits: int = 4) -> str:
        """Write a number in few digits, for messages."""
        return str(int(number)) if number.is_integer() and abs(number) < 1e15 else f"{number:.{digits}g}"

    def value(self, number: float) -> Any:
        """Return a mean or quantile as users see it, here as a number."""
        return number

    def numbers(self, column: Any) -> np.ndarray[Any, Any]:
        """Return the numbers of a pandas column, NaN where it has none.

        Examples
        --------
        >>> import pandas as pd
        >>> Bins([0, 18, 65]).numbers(pd.Series([17, None]))
        array([17., nan])
        """
        found: np.ndarray[Any, Any] = column.astype("Float64").to_numpy(dtype=np.float64, na_value=math.nan)
        return found

    @cached_property
    def fine(self) -> Bins | None:
        """The finer bins of the histogram in detail; None if there are no finer ones.

        Each bin is cut into the same number of cells, or into single numbers where it holds few. Cells are equally wide
        in a bin whose neighbours are about as wide, and otherwise widen away from the narrower neighbour by a constant
        factor, beginning with the width of that neighbour's cells. They depend on the declaration alone.

        Examples
        --------
        >>> Bins([0, 10, 20, 1000], detail=15).fine.edges
        (0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 22.0, 31.0, 70.0, 242.0, 1000.0)
        """
        if self.detail <= len(self.labels) or sum(map(math.isfinite, self.edges)) < 2:
            return None
        try:
            ends, results = self.closed(), [self.edges[0]]
        except SchemaError:  # an open bin beyond the calendar
            return None
        if not math.isfinite(ends.edges[-1] - ends.edges[0]):
            return None
        steps, widths, unit = ends.steps(), np.diff(ends.edges), 10.0 ** (self.decimals or 0)
        maximum = np.full(widths.size, self.detail) if steps is None else np.diff(np.array(steps, dtype=np.float64))
        for number, cells in enumerate(_shared(self.detail, maximum)):
            low, high = ends.edges[number : number + 2]
            left, right = (widths[i] if 0 <= i < widths.size else math.inf for i in (number - 1, number + 1))
            inner = low + (high - low) * _parts(cells, min(left, right, high - low) / (high - low), right < left)
            if steps is not None:
                whole, first, end = np.rint(inner * unit), *steps[number : number + 2]
                inner, low, high = whole[(whole > first) & (whole < end)] / unit, first / unit, end / unit
            results += [edge for edge in np.unique(inner).tolist() if low < edge < high]
            results.append(self.edges[number + 1])
        finer: dict[str, Any] = {"edges": results, "labels": None, "detail": 0}  # as the constructor takes them
        return None if len(results) == len(self.edges) else replace(ends, **finer)

    def closed(self) -> Bins:
        """Close open bins, a hundred ranges of the finite edges beyond these."""
        finite = [edge for edge in self.edges if math.isfinite(edge)]
        # Far enough for them to contain a number with these decimals.
        reach = max(_OPEN * (finite[-1] - finite[0]), 0.0 if self.decimals is None else 2 / 10.0**self.decimals)
        maximum = _MAX_WHOLE / 10.0 ** (self.decimals or 0)  # larger floats have fewer decimals
        room = max(-finite[0], finite[-1]) < maximum
        maximum, decimals = (maximum, self.decimals) if room else (math.inf, None)
        minimum = self.span[0] if self.span[0] < finite[0] else self.limits[0]
        greatest = self.span[1] if finite[-1] < self.span[1] else self.limits[1]
        low = min(finite[0], max(finite[0] - reach, -maximum, minimum))
        high = max(finite[-1], min(finite[-1] + reach, maximum, greatest))
        for end, edge, inner in ((self.edges[0], low, finite[0]), (self.edges[-1], high, finite[-1])):
            if math.isinf(end) and edge == inner:
                raise SchemaError(
                    f"Bins: the bin beyond {self.written(inner, 6)} is open: no value there can be drawn."
                )
        return replace(self, edges=tuple(min(max(edge, low), high) for edge in self.edges), decimals=decimals)


def _shared(cells: int, maximum: np.ndarray[Any, Any]) -> list[int]:
    """Divide cells evenly among bins, up to the maximum of each."""
    result, order = np.ones(maximum.size), np.argsort(maximum, kind="stable")
    left = float(cells)
    for position, number in enumerate(order):
        result[number] = max(1.0, min(maximum[number], left // (maximum.size - position)))
        left -= result[number]
    return [int(number) for number in result]


def _parts(cells: int, narrower: float, falling: bool) -> np.ndarray[Any, Any]:
    """Return the inner bounds of cells of the unit interval.

    `narrower` is the width of the narrower neighbour; its cells set the width of the first cell, or of the last if
    `falling`.
    """
    first, powers = max(narrower / cells, 1e-300), np.arange(cells)
    if cells * first >= 1.0 / _EVEN or cells == 1:
        inner = np.arange(1, cells) / cells
    else:
        low, high = 1.0, first ** (-1.0 / (cells - 1))  # at the latter, the last cell alone would fill the bin
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if first * (middle**powers).sum() < 1.0 else (low, middle)
        inner = np.cumsum(low ** powers[:-1]) * first
    return 1.0 - inner[::-1] if falling else inner


def checked_guarantee(found: Any) -> Guarantee:
    """Check the guarantee of finding states or bins in records."""
    if not isinstance(found, Guarantee):
        raise SchemaError(f"found is a Guarantee, as made by discover_states and quantile_bins, got {shown(found)}.")
    return DECLARED.after(found)


def checked_bounds(variable: str, declared: Any) -> tuple[float, float]:
    """Check public bounds of a numeric variable: (low, high), or one positive number R for (-R, R)."""
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
        raise SchemaError(f"{wanted}; as floating-point numbers these are too close together: {declared!r}.")
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


def _checked_decimals(decimals: Any, edges: tuple[float, ...]) -> int | None:
    value = plain(decimals)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 15:
        raise SchemaError(f"Bins: decimals is a whole number from 0 to 15, got {decimals!r}.")
    finite = [edge for edge in edges if math.isfinite(edge)]
    if any(abs(edge) * 10**value > _MAX_WHOLE for edge in finite):
        raise SchemaError(f"Bins: floating-point numbers as large as an edge do not have {value} decimals.")
    for low, high in pairwise(finite):
        closed = high == edges[-1] and Decimal(repr(high)).scaleb(value) % 1 == 0
        if _step(low, value) == _step(high, value) and not closed:
            raise SchemaError(f"Bins: no number with {value} decimals lies in the bin from {low} to {high}.")
    return value


def _step(edge: float, decimals: int) -> int:
    """Return the first integer multiple of the last decimal that is not below the edge as written, as an integer."""
    return int(Decimal(repr(edge)).scaleb(decimals).to_integral_value(ROUND_CEILING))


def _short(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)
