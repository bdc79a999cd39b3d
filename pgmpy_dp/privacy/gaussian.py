"""Gaussian noise on many numbers is one Gaussian mechanism, whose price is known exactly.

Numbers that a neighbour moves by d_j, each with independent normal noise of standard deviation s_j, are, divided by
these, a vector with noise of standard deviation 1 that a neighbour moves by the root of sum (d_j / s_j)**2 in L2 norm:
the analytic Gaussian mechanism (Balle and Wang 2018).

Discrete noise. A discrete Gaussian of variance s**2 is, but for a factor in 1 -+ 3e-17 of every probability, what a
continuous one of variance s**2 - 2 becomes if its number x is replaced by an integer k with odds exp(-(k - x)**2 / 4):
the sum of these odds over k is the same for all x but for a part of 2 exp(-4 pi**2) (Peikert 2010, Theorem 3.1). So it
costs what the continuous one does, and a billionth of epsilon and of delta pays for those factors of up to ten million
numbers that a neighbour moves.
"""

from __future__ import annotations

import math
from functools import lru_cache

from scipy.special import log_ndtr

from pgmpy_dp.privacy.checks import checked_delta, exact_positive, number

BLUR = 2.0  # variance of the integers about the numbers that they replace
SAFE = 1e-9  # for what discrete noise and rounded sums add, of epsilon and of delta

# With more noise than this, discrete noise costs less than one part in a hundred more than continuous noise.
LEAST_SCALE = 16.0


def discrete_gaussian_epsilon(squared: float, least_scale: float, delta: float) -> float:
    """Compute the epsilon of independent discrete Gaussian noise on integers at a delta, rounded up.

    Parameters
    ----------
    squared : float
        At least the sum over the integers of (change / scale)**2, for any two neighbours.
    least_scale : float
        Of the noise on any of them; at least 16.
    delta : float

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> round(discrete_gaussian_epsilon(0.04, 1000.0, 1e-6), 3)
    0.834
    """
    delta = checked_delta(delta, zero_allowed=False)
    number(least=LEAST_SCALE)("least_scale", least_scale)
    return _epsilon(float(exact_positive("squared", squared)) / (1.0 - BLUR / least_scale**2), delta)


def gaussian_delta(squared: float, epsilon: float) -> float:
    """Compute the least delta with which continuous Gaussian noise keeps an epsilon (Balle and Wang 2018, Theorem 8).

    Parameters
    ----------
    squared : float
        The sum of (change / scale)**2 over the numbers.
    epsilon : float

    Examples
    --------
    >>> round(gaussian_delta(0.04, 0.834) * 1e6, 2)
    1.0
    """
    mean = math.sqrt(squared)
    above, below = (float(log_ndtr(sign * mean / 2.0 - epsilon / mean)) for sign in (1.0, -1.0))
    return math.exp(above) * -math.expm1(min(epsilon + below - above, 0.0))


@lru_cache(maxsize=256)
def _epsilon(squared: float, delta: float) -> float:
    from dp_accounting import get_epsilon_gaussian  # the import takes a second

    return float(get_epsilon_gaussian(squared**-0.5, delta * (1.0 - SAFE))) * (1.0 + SAFE) + SAFE
