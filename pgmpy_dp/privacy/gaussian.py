"""Exact price of Gaussian noise on a vector, continuous or discrete.

Let neighbours differ by d_j in number j, which gets independent normal noise of standard deviation s_j. Dividing each
number by s_j gives a vector with unit noise that changes by the root of sum (d_j / s_j)**2 in L2 norm: the analytic
Gaussian mechanism (Balle and Wang 2018).

Discrete noise. Add continuous noise of variance s**2 - 2 to a count, then replace the result x by an integer k with
odds exp(-(k - x)**2 / 4). The sum of these odds over k is the same for all x up to a relative 2 exp(-4 pi**2) (Peikert
2010, Theorem 3.1). So the result has, up to a factor of 1 -+ 3e-17 on every probability, the distribution of discrete
Gaussian noise of variance s**2. Discrete noise thus costs as much as that continuous noise, and reserving 1e-9 of
epsilon and of delta covers the factors of up to ten million numbers that differ between neighbours.
"""

from __future__ import annotations

import math
from functools import lru_cache

from scipy.special import log_ndtr

from pgmpy_dp.privacy.checks import checked_delta, exact_positive, number

BLUR = 2.0  # variance of the integers about the numbers that they replace
SAFE = 1e-9  # share of epsilon and of delta reserved for discrete noise and rounded sums

# Least scale: with at least this, discrete noise costs at most 1 % more than continuous noise.
LEAST_SCALE = 16.0


def discrete_gaussian_epsilon(squared: float, least_scale: float, delta: float) -> float:
    """Compute the epsilon of independent discrete Gaussian noise on integers at a given delta, rounded up.

    Parameters
    ----------
    squared : float
        At least the sum over the integers of (change / scale)**2, for any two neighbours.
    least_scale : float
        The smallest noise scale; at least 16.
    delta : float

    Examples
    --------
    >>> round(discrete_gaussian_epsilon(0.04, 1000.0, 1e-6), 3)
    0.834
    """
    delta = checked_delta(delta, zero_allowed=False)
    number(least=LEAST_SCALE)("least_scale", least_scale)
    return _epsilon(float(exact_positive("squared", squared)) / (1.0 - BLUR / least_scale**2), delta)


def gaussian_delta(squared: float, epsilon: float) -> float:
    """Compute the least delta of continuous Gaussian noise at a given epsilon (Balle and Wang 2018, Theorem 8).

    `squared` is the sum of (change / scale)**2 over the numbers.

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
