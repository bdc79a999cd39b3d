"""What very many trials of an audit draw from and are charged to."""

from collections import defaultdict
from dataclasses import replace
from secrets import token_hex

import numpy as np

from pgmpy_dp.privacy import OPENDP_NOISE, PrivacyBudget


class Noise:
    """OpenDP's noise at some times the scale asked for, drawn for many cells at a time: audits ask very often.

    Each draw is twice as large as the one before, since few trials need few cells and OpenDP is slow.
    """

    private = True

    def __init__(self, times=1.0):
        self.times = times
        self.drawn = defaultdict(lambda: np.empty(0, np.int64))
        self.sizes = defaultdict(lambda: 256)

    def _draw(self, name, counts, scale):
        asked = name, scale  # not the method, which is another object at each access
        if self.drawn[asked].size < counts.size:
            zeros = np.zeros(max(self.sizes[asked], counts.size), np.int64)
            self.drawn[asked] = getattr(OPENDP_NOISE, name)(zeros, self.times * scale)
            self.sizes[asked] = min(2 * self.sizes[asked], 8192)
        noise, self.drawn[asked] = np.split(self.drawn[asked], [counts.size])
        return counts + noise

    def discrete_laplace(self, counts, scale):
        return self._draw("discrete_laplace", counts, scale)

    def discrete_gaussian(self, counts, scale):
        return self._draw("discrete_gaussian", counts, scale)

    def permute_and_flip(self, scores, scale):
        return OPENDP_NOISE.permute_and_flip(scores, self.times * scale)

    def exponential_mechanism(self, scores, scale):
        return OPENDP_NOISE.exponential_mechanism(scores, self.times * scale)

    coins, choose = staticmethod(OPENDP_NOISE.coins), staticmethod(OPENDP_NOISE.choose)
    keys, below = staticmethod(OPENDP_NOISE.keys), staticmethod(OPENDP_NOISE.below)


class Bottomless(PrivacyBudget):
    """For any number of trials."""

    protects = None

    def charge(self, cost):
        self.protects = cost.protects
        return replace(cost, id=token_hex(16), holder="bottomless")
