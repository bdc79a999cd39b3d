"""Coins: random samples of records, and exact sampling from discrete distributions, by uniform integers only.

Samples come from the operating system's secure generator.

No floating-point number is drawn. A coin of probability exp(-x), for x rational (as every float is), is drawn by
comparing uniform integers (Canonne, Kamath and Steinke 2020, Algorithm 1); everything here consists of such coins.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Below = Callable[[int], int]
"""Draws a uniform integer in [0, bound)."""


def poisson_sample(rate: Fraction, size: int) -> NDArray[np.bool_]:
    """Draw independent coins, each true with exactly the given probability, from the system's secure generator.

    The first 64 binary digits of a coin decide, except in one case in 2**64, which a further exact draw decides.
    """
    whole, rest = divmod(rate.numerator << 64, rate.denominator)
    if whole >> 64:
        return np.ones(size, dtype=bool)
    words = np.frombuffer(os.urandom(8 * size), dtype=np.uint64)
    coins: NDArray[np.bool_] = words < np.uint64(whole)
    for tie in np.flatnonzero(words == np.uint64(whole)):
        coins[tie] = secrets.randbelow(rate.denominator) < rest
    return coins


def fixed_sample(chosen: int, size: int) -> NDArray[np.bool_]:
    """Draw a uniformly random set of `chosen` out of `size` records exactly, from the system's secure generator.

    Every record draws a 64-bit number, and those with the smallest are chosen. If there is a tie at the border, all are
    drawn again, so by symmetry every set is equally likely.
    """
    if chosen == size:
        return np.ones(size, dtype=bool)
    while True:
        words = random_keys(size)
        border = np.partition(words, (chosen - 1, chosen))[chosen - 1 : chosen + 1]
        if border[0] < border[1]:
            won: NDArray[np.bool_] = words <= border[0]
            return won


random_integer = secrets.randbelow
"""Draws a uniform integer in [0, bound) from the system's secure generator."""


def random_keys(size: int) -> NDArray[np.uint64]:
    """Draw independent uniform 64-bit numbers from the operating system's secure generator."""
    return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)


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
    """A categorical distribution, given by log-weights.

    An outcome is drawn by descending a binary tree whose nodes hold the logarithm of the sum of the weights below them.
    Each branch is a logistic coin of the difference of two logarithms. The coins are exact; the logarithms are floats,
    each off by at most some units in its last place. So the log-probability of every outcome, however unlikely, is off
    by at most about 2**-50 times the number of levels times the range of the log-weights, and is never cut to zero.
    """

    def __init__(self, log_weights: Floats) -> None:
        levels = max(log_weights.size - 1, 0).bit_length()
        self._tree = [np.pad(log_weights, (0, 2**levels - log_weights.size), constant_values=-np.inf)]
        for _ in range(levels):
            self._tree.append(np.logaddexp(self._tree[-1][0::2], self._tree[-1][1::2]))
        self.log_total = float(self._tree[-1][0])  # logarithm of the sum of the weights

    def draw(self, below: Below) -> int:
        """Draw one outcome."""
        position = 0
        for level in reversed(self._tree[:-1]):
            position *= 2
            left, right = float(level[position]), float(level[position + 1])
            heavier = left >= right
            gap = abs(left - right) if min(left, right) > -np.inf else np.inf
            if gap == np.inf or logistic_coin(gap, below):
                position += 0 if heavier else 1
            else:
                position += 1 if heavier else 0
        return position
