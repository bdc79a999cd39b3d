"""Checks of the numbers a caller hands in, before anything is computed from them."""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Rational, Real
from typing import Any

import numpy as np


def exact_positive(name: str, value: Any) -> Fraction:
    """Return a positive finite number as the exact fraction of its decimal text: 0.1 is one tenth.

    Booleans, NaN, infinity, zero, negative numbers and text are refused with a ValueError.
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise ValueError(f"{name} must be a positive number, got {value!r}.")
    if isinstance(value, Rational):  # integers as well
        exact = Fraction(int(value.numerator), int(value.denominator))
    elif not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value!r}.")
    else:
        exact = Fraction(str(value))
    if exact <= 0:
        raise ValueError(f"{name} must be greater than 0, got {value!r}.")
    if not 0.0 < rounded_down(exact) < math.inf:
        raise ValueError(f"{name} is too small or too large for floating-point numbers.")
    return exact


def checked_delta(value: Any, *, zero_allowed: bool) -> float:
    """Return delta as a float in [0, 1), or in (0, 1)."""
    wanted = "in [0, 1)" if zero_allowed else "greater than 0 and less than 1"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise ValueError(f"delta must be a number {wanted}, got {value!r}.")
    number: Any = value
    delta = float(number) if 0 <= number < 1 else math.nan
    if not delta < 1.0 or (delta == 0.0 and not zero_allowed):
        raise ValueError(f"delta must be {wanted}, got {value!r}.")
    return delta


def rounded_down(exact: Fraction) -> float:
    """Return the largest float not above a non-negative fraction; infinity if it is beyond all floats."""
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf
    return math.nextafter(nearest, -math.inf) if Fraction(nearest) > exact else nearest


def decimal_above(exact: Fraction) -> float:
    """Return a float that, read as the decimal it prints as, is just enough to cover a fraction."""
    nearest = float(exact)
    return math.nextafter(nearest, math.inf) if Fraction(str(nearest)) < exact else nearest


def decimal_below(exact: Fraction) -> float:
    """Return a float that, read as the decimal it prints as, just fits in a fraction."""
    nearest = float(exact)
    return math.nextafter(nearest, -math.inf) if Fraction(str(nearest)) > exact else nearest
