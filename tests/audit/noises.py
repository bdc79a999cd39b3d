"""Sources of noise for tests: none, what a test wants, or an interruption; some keep what they were asked for."""

import itertools
import math
from fractions import Fraction

import numpy as np

from pgmpy_dp.privacy import SimulatedNoise


class NoNoise(SimulatedNoise):
    """Hands out sums as they are."""

    def discrete_gaussian(self, counts, scale):
        return counts


class Noted:
    """No noise: keeps what it was asked for, takes all or the last into samples, and the first of candidates."""

    def __init__(self, private=False):
        self.private = private
        self.seen = []  # the kind of noise, the numbers, and the scale

    def _keep(self, kind, numbers, scale):
        self.seen.append((kind, numbers.tolist(), scale))
        return numbers

    def discrete_laplace(self, counts, scale):
        return self._keep("laplace", counts, scale)

    def discrete_gaussian(self, counts, scale):
        return self._keep("gaussian", counts, scale)

    def permute_and_flip(self, scores, scale):
        self._keep("permute_and_flip", scores, scale)
        return 0

    def exponential_mechanism(self, scores, scale):
        self._keep("exponential", scores, scale)
        return 0

    def coins(self, rate, size):
        return np.ones(size, dtype=bool)

    def choose(self, chosen, size):
        return np.arange(size) >= size - chosen

    def keys(self, size):
        return np.arange(size, dtype=np.uint64)


class Scripted(SimulatedNoise):
    """Replaces every sum by numbers of its own."""

    mean = 2.0  # in scales

    def discrete_gaussian(self, counts, scale):
        return np.rint(self._generator.normal(self.mean * scale, scale, counts.size)).astype(np.int64)


class ScriptedForAll(Scripted):
    """Takes everybody into samples."""

    def coins(self, rate, size):
        return np.ones(size, dtype=bool)


class Interrupting(SimulatedNoise):
    """The user interrupts during a sum."""

    draws, at = 0, 3

    def discrete_gaussian(self, counts, scale):
        self.draws += counts.size > 1  # not the trial draw
        if self.draws == self.at:
            raise KeyboardInterrupt
        return super().discrete_gaussian(counts, scale)


def moved(one, other, power):
    """How far the numbers that `Noted` was asked for lie apart, in scales of their noise: an exact sum of powers."""
    assert [scale for *_, scale in one] == [scale for *_, scale in other]
    return sum(
        (abs(n - m) / Fraction(scale)) ** power
        for (_, values, scale), (_, others, _) in zip(one, other, strict=True)
        for n, m in zip(values, others, strict=True)
    )


def largest_move(records, neighbours, total):
    """Largest move of a sum of integers between neighbours, over the sensitivity that `total` gives with it.

    The record that differs comes last, so that what is drawn for the others is equal.
    """
    worst = 0.0
    for base in itertools.combinations_with_replacement(records, 2):
        pairs = [((*base, record), base) for record in records]
        if neighbours == "replace_one":
            pairs = [((*base, one), (*base, other)) for one, other in itertools.combinations(records, 2)]
        for first, second in pairs:
            (left, allowed), (right, _) = total(first), total(second)
            worst = max(worst, math.sqrt(sum((a - b) ** 2 for a, b in zip(left, right, strict=True))) / allowed)
    return worst
