"""Sources of noise for tests: none, what a test wants, or an interruption; some keep what they were asked for."""

from fractions import Fraction

import numpy as np

from pgmpy_dp.privacy import SimulatedNoise


class NoNoise(SimulatedNoise):
    """Hands out sums as they are."""

    def discrete_gaussian(self, counts, scale):
        return counts


class Silent:
    """No noise; of a unit's rows, the first are counted."""

    private = False

    def discrete_laplace(self, counts, scale):
        return counts

    discrete_gaussian = discrete_laplace

    def keys(self, size):
        return np.arange(size, dtype=np.uint64)


class Noted(Silent):
    """Keeps what it was asked for."""

    def __init__(self):
        self.seen = []

    def discrete_laplace(self, counts, scale):
        self.seen.append((counts.tolist(), Fraction(scale)))
        return counts

    discrete_gaussian = discrete_laplace


class NotedSums:
    """No noise for sums of records, of which samples take all or the first; what it was asked for is kept."""

    private = False

    def __init__(self):
        self.seen = []

    def discrete_gaussian(self, counts, scale):
        self.seen.append((counts.copy(), scale))
        return counts

    def coins(self, rate, size):
        return np.ones(size, dtype=bool)

    def choose(self, chosen, size):
        return np.arange(size) < chosen


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
