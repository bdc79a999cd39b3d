"""Exponentials and logarithms of many numbers are computed side by side, on vector registers.

The library's functions take numbers one by one, and each processor's has other last bits. These are within some units
of the last place and alike everywhere: products are rounded.
"""

from __future__ import annotations

import math

import numpy as np

from pgmpy_dp._compiled import compiled

# Exponents are at least this: exp(-690) is about 1e-300, and its logarithm still known to the last bit.
LEAST = -690.0

_LOG2_E, _LOG_2 = 1.0 / math.log(2.0), math.log(2.0)
# A number plus this one has itself, rounded, as its last bits. The logarithm of 2 has a part whose products with whole
# numbers are exact, and a rest.
_ROUNDING = 1.5 * 2.0**52
_HIGH, _LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_FACTORIALS = tuple(1.0 / math.factorial(k) for k in range(14))


@compiled
def exponentials(exponents, out):
    """Write exp(exponent) of numbers from `LEAST` to 0 to another array; the exponents are lost.

    exp(x) = 2^n exp(r) for whole n and |r| <= log(2) / 2, where Taylor's series has 14 terms.
    """
    bits = out.view(np.int64)
    for k in range(out.shape[0]):
        out[k] = exponents[k] * _LOG2_E + _ROUNDING
    for k in range(out.shape[0]):
        number = out[k] - _ROUNDING
        rest = (exponents[k] - number * _HIGH) - number * _LOW
        series = _FACTORIALS[13]
        for term in (12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2):
            series = series * rest + _FACTORIALS[term]
        exponents[k] = 1.0 + (rest + rest * rest * series)
    for k in range(out.shape[0]):
        bits[k] = (bits[k] << 52) + (1023 << 52)  # the number 2^n
    for k in range(out.shape[0]):
        out[k] *= exponents[k]


@compiled
def log1p(number):
    """Compute log(1 + number) of a number from 0 to 1.

    The approximation, of log((1 + s) / (1 - s)) for |s| < 0.172, is that of FreeBSD's e_log.c.
    """
    large = number > 0.41421356237309503
    small = 0.5 * (number - 1.0) if large else number  # 1 + number is 1 + small, or twice that
    s = small / (2.0 + small)
    z = s * s
    tail = 1.818357216161805012e-01 + z * (1.531383769920937332e-01 + z * 1.479819860511658591e-01)
    tail = 2.857142874366239149e-01 + z * (2.222219843214978396e-01 + z * tail)
    tail = z * (6.666666666666735130e-01 + z * (3.999999999940941908e-01 + z * tail))
    half = 0.5 * small * small
    return (_LOG_2 if large else 0.0) + (small - (half - s * (half + tail)))
