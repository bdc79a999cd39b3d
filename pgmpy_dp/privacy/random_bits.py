"""Exact sampling from discrete distributions, by uniform integers only.

No floating-point number is drawn. A coin of probability exp(-x), for x rational (as every float is), is drawn by
comparing uniform integers (Canonne, Kamath and Steinke 2020, Algorithm 1); everything here consists of such coins.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Below = Callable[[int], int]
"""Draws a uniform integer in [0, bound)."""


def exponential_coin(exponent: float | Fraction, below: Below) -> bool:
    """Draw a coin that is true with probability exactly exp(-exponent), for a number of at least 0."""
    while exponent > 1:
        if not _small_exponential_coin(1, 1, below):
            return False
        exponent -= 1  # exact below 2**53; above it the coin is almost surely false long before
    return _small_exponential_coin(*exponent.as_integer_ratio(), below)


def _small_exponential_coin(numerator: int, denominator: int, below: Below) -> bool:
    """Draw a coin of probability exp(-x), 0 <= x <= 1, by von Neumann's alternating series."""
    k = 1
    while below(denominator * k) < numerator:
        k += 1
    return k % 2 == 1


def logistic_coin(gap: float, below: Below) -> bool:
    """Draw a coin that is true with probability exactly 1 / (1 + exp(-gap)), for a float of at least 0.

    A fair coin proposes; the less likely side is accepted only if an exponential coin is true:
    P = (1/2) / (1/2 + exp(-gap) / 2).
    """
    while True:
        if below(2):
            return True
        if exponential_coin(gap, below):
            return False


class Categorical:
    """Categorical distributions, one per row, given by log-weights.

    An outcome is drawn by descending a binary tree whose nodes hold the logarithm of the sum of the weights below them.
    Each branch is a logistic coin of the difference of two logarithms. The coins are exact; the logarithms are floats,
    each off by at most some units in its last place. So the log-probability of every outcome, however unlikely, is off
    by at most about 2**-50 times the number of levels times the range of the log-weights, and is never cut to zero.

    Parameters
    ----------
    log_weights : ndarray of shape (rows, outcomes)
        Finite, or minus infinity for outcomes that cannot occur.
    """

    def __init__(self, log_weights: Floats) -> None:
        rows, outcomes = log_weights.shape
        levels = max(outcomes - 1, 0).bit_length()
        padded = np.full((rows, 2**levels), -np.inf)
        padded[:, :outcomes] = log_weights
        self._tree = [padded]
        for _ in range(levels):
            last = self._tree[-1]
            self._tree.append(np.logaddexp(last[:, 0::2], last[:, 1::2]))

    def log_total(self, row: int) -> float:
        """Return the logarithm of the sum of the weights of a row."""
        return float(self._tree[-1][row, 0])

    def draw(self, row: int, below: Below) -> int:
        """Draw one outcome from the distribution of a row."""
        place = 0
        for level in reversed(self._tree[:-1]):
            place *= 2
            left, right = float(level[row, place]), float(level[row, place + 1])
            heavier = left >= right
            gap = abs(left - right) if min(left, right) > -np.inf else np.inf
            if gap == np.inf or logistic_coin(gap, below):
                place += 0 if heavier else 1
            else:
                place += 1 if heavier else 0
        return place
