"""Comparisons of two numbers, such as ``vehicle_year <= accident_year + 1``, which rules state."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Self

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.schema.states import State, typed

if TYPE_CHECKING:
    from pgmpy_dp.schema.bins import Bins
    from pgmpy_dp.schema.schema import Schema

# The least number, the largest or the end, and whether that end is included. Decimals add up as they are written.
Range = tuple[Decimal, Decimal, bool]


def _at_most(first: Range, second: Range) -> bool:
    """Whether some number of the first range is at most one of the second."""
    return first[0] < second[1] or (second[2] and first[0] == second[1])


_POSSIBLE: Mapping[str, Callable[[Range, Range], bool]] = {
    "<=": _at_most,
    ">=": lambda first, second: _at_most(second, first),
    "<": lambda first, second: first[0] < second[1],
    ">": lambda first, second: second[0] < first[1],
    "=": lambda first, second: _at_most(first, second) and _at_most(second, first),
}
_SIGNS = re.compile(r"<=|>=|<|>|=")
_ADDED = re.compile(r"(.+?)\s*([+-])\s*(\d+(?:\.\d+)?)", re.ASCII)


@dataclass(frozen=True)
class Comparison:
    """A comparison of two numbers, of which something may be added to the second."""

    first: str
    sign: str
    second: str
    added: Decimal = Decimal(0)

    @classmethod
    def read(cls, text: str, names: Collection[str]) -> Self:
        """Read two names, the sign between them, and what is added to the second."""
        for sign in _SIGNS.finditer(text):  # a name may hold a sign
            first, second = text[: sign.start()].strip(), text[sign.end() :].strip()
            added = _ADDED.fullmatch(second)
            for name, more in ((second, Decimal(0)), *([(added[1], Decimal(added[2] + added[3]))] if added else [])):
                if {first, name} <= {*names} and first != name:
                    return cls(first, sign[0], name, more)
        raise SchemaError(
            f"{text!r} is not a comparison of two variables: write one such as vehicle_year <= accident_year + 1, "
            "with names that the schema declares."
        )

    def __str__(self) -> str:
        more = f" {'-' if self.added < 0 else '+'} {abs(self.added):f}" if self.added else ""
        return f"{self.first} {self.sign} {self.second}{more}"

    def combinations(self, schema: Schema) -> list[tuple[State, State]]:
        """List the states of which some numbers meet the comparison."""
        more, possible = self.added, _POSSIBLE[self.sign]
        own, others = (_ranges(schema, name) for name in (self.first, self.second))
        moved = {state: (lower + more, upper + more, closed) for state, (lower, upper, closed) in others.items()}
        return [(a, b) for a, left in own.items() for b, right in moved.items() if possible(left, right)]


def _ranges(schema: Schema, variable: str) -> dict[State, Range]:
    """Return the range of each state's numbers."""
    states, everything = schema.states[variable], (Decimal("-inf"), Decimal("inf"), True)
    bins = schema.bins.get(variable)
    if bins is not None:
        return dict.fromkeys(states, everything) | dict(zip(bins.labels, _of_bins(bins), strict=True))
    stand_ins = [typed(role[variable]) for role in (schema.missing, schema.other) if variable in role]
    numbers = {state: (*2 * (Decimal(str(state)),), True) for state in states if type(state) in (int, float)}
    if any(state not in numbers and typed(state) not in stand_ins for state in states) or not numbers:
        raise SchemaError(f"Variable {variable!r} has states that are not numbers: a comparison needs bins or numbers.")
    return {state: everything if typed(state) in stand_ins else numbers[state] for state in states}


def _of_bins(bins: Bins) -> list[Range]:
    edges = [Decimal(str(edge)) for edge in bins.edges]
    whole = all(edge.is_integer() for edge in bins.edges if math.isfinite(edge))
    decimals = 0 if bins.decimals is None and whole else bins.decimals
    if decimals is None:
        ranges = [(lower, upper, False) for lower, upper in pairwise(edges)]
        return [*ranges[:-1], (*ranges[-1][:2], True)]
    unit = Decimal(1).scaleb(-decimals)

    def rounded(edge: Decimal, rounding: str) -> Decimal:
        return (edge / unit).to_integral_value(rounding) * unit if edge.is_finite() else edge

    lower = [rounded(edge, ROUND_CEILING) for edge in edges]
    upper = [*(after - unit for after in lower[1:-1]), rounded(edges[-1], ROUND_FLOOR)]
    return [(low, high, True) for low, high in zip(lower, upper, strict=False)]
