"""Checks of arguments, made before anything is computed from them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from numbers import Number, Rational, Real
from typing import Any

import numpy as np

# A constraint takes a parameter's name and value, and raises a ValueError that says what is allowed.
Constraint = Callable[[str, Any], object]

_MAX_BITS = 4096
_LONGEST = 40
_EXACT = re.compile(r"[0-9]{1,1300}(/[1-9][0-9]{0,1299})?", re.ASCII)


def settle(frozen: object, **fields: Any) -> None:
    """Store checked fields of a frozen value."""
    for name, value in fields.items():
        object.__setattr__(frozen, name, value)


def _wrong(name: str, problem: str) -> ValueError:
    return ValueError(f"{name} {problem}.")


def exact_positive(name: str, value: Any) -> Fraction:
    """Return a positive finite number as the exact fraction of its decimal text: 0.1 is one tenth.

    Booleans, NaN, infinity, zero, negative numbers and text are refused with a ValueError.
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise _wrong(name, f"must be a positive number, got {shown(value)}")
    if isinstance(value, Rational):  # integers as well
        exact = Fraction(int(value.numerator), int(value.denominator))
    elif not math.isfinite(value):
        raise _wrong(name, f"must be finite, got {shown(value)}")
    else:
        exact = Fraction(str(value))
    if exact <= 0:
        raise _wrong(name, f"must be greater than 0, got {shown(value)}")
    if not 0.0 < rounded_down(exact) < math.inf:
        raise _wrong(name, "is too small or too large for floating-point numbers")
    return exact


def whole_number(name: str, value: Any, minimum: int = 1, maximum: int = 2**63 - 1) -> int:
    """Return a Python or numpy integer as an int; booleans, floats and values out of range are refused."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not minimum <= value <= maximum:
        bounds = f"at least {minimum}" if maximum == 2**63 - 1 else f"from {minimum} to {maximum}"
        raise _wrong(name, f"must be a whole number, {bounds}, got {shown(value)}")
    return int(value)


def choice(*known: Any) -> Constraint:
    """Allow some values only."""

    def check(name: str, value: Any) -> None:
        if not (value is None or isinstance(value, str)) or value not in known:
            raise _wrong(name, f"is {shown(value)}; choose one of {', '.join(map(repr, known))}")

    return check


def number(*, minimum: float = 0.0, maximum: float = math.inf, above: float = -math.inf) -> Constraint:
    """Allow finite numbers in a range only."""
    parts = [f"greater than {above:g}" if above >= minimum else f"at least {minimum:g}"]
    wanted = " and ".join([*parts, *([f"at most {maximum:g}"] if maximum < math.inf else ["finite"])])

    def check(name: str, value: Any) -> None:
        real = isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
        if not (real and math.isfinite(value) and above < value and minimum <= value <= maximum):
            raise _wrong(name, f"must be a number {wanted}, got {shown(value)}")

    return check


def optional(constraint: Constraint) -> Constraint:
    """Allow None and whatever `constraint` allows."""
    return lambda name, value: value is None or constraint(name, value)


def whole(minimum: int, maximum: int = 2**63 - 1) -> Constraint:
    """Allow whole numbers in a range only."""
    return lambda name, value: whole_number(name, value, minimum, maximum)


def shown(value: Any) -> str:
    """Format an argument for an error message: a number or a short text as it is, anything else by its type only."""
    if isinstance(value, type) or (is_scalar(value) and not (isinstance(value, str) and len(value) > _LONGEST)):
        return repr(value)
    return f"<{type(value).__name__}>"


def is_scalar(value: Any) -> bool:
    """Whether an argument is a number, a text or None, so that it cannot hold records."""
    return value is None or isinstance(value, (str, Number, np.generic))


def exact_text(name: str, exact: Fraction) -> str:
    """Write a fraction as text, such as "1/10"; ValueError if it has more than about a thousand digits."""
    if max(exact.numerator.bit_length(), exact.denominator.bit_length()) > _MAX_BITS:
        raise _wrong(name, "is a fraction with thousands of digits: round it up")
    return str(exact)


def exact_from_text(name: str, text: Any) -> Fraction:
    """Read the output of :func:`exact_text` and nothing else: the text "1e999999999" would exhaust memory."""
    if not isinstance(text, str) or _EXACT.fullmatch(text) is None:
        raise ValueError(f"{name} must be a fraction as text, such as '1/10'.")
    return Fraction(text)


def checked_delta(value: Any, *, zero_allowed: bool) -> float:
    """Return delta as a float in [0, 1), or in (0, 1)."""
    wanted = "in [0, 1)" if zero_allowed else "greater than 0 and less than 1"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise _wrong("delta", f"must be a number {wanted}, got {shown(value)}")
    number: Any = value
    delta = float(number) if 0 <= number < 1 else math.nan
    if not delta < 1.0 or (delta == 0.0 and not zero_allowed):
        raise _wrong("delta", f"must be {wanted}, got {shown(value)}")
    return delta


def rounded_down(exact: Fraction) -> float:
    """Return the largest float not above a non-negative fraction; infinity if it exceeds all floats."""
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf
    return math.nextafter(nearest, -math.inf) if Fraction(nearest) > exact else nearest


def decimal_above(exact: Fraction) -> float:
    """Return a float whose printed decimal is just at least a fraction."""
    nearest = float(exact)
    return math.nextafter(nearest, math.inf) if Fraction(str(nearest)) < exact else nearest


def decimal_below(exact: Fraction) -> float:
    """Return a float whose printed decimal is just at most a fraction."""
    nearest = float(exact)
    return math.nextafter(nearest, -math.inf) if Fraction(str(nearest)) > exact else nearest


def checked_number(name: str, value: Any) -> float:
    """Return a number as a float; ValueError for anything else and for NaN."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ValueError(f"{name} must be a number, got {value!r}.")
    try:
        number = float(value)
    except OverflowError:
        number = math.nan
    if math.isnan(number):
        raise ValueError(f"{name} must be a number, got NaN or one too large.")
    return number
