"""A single move of a chain: the law of what is drawn, and the chance with which it is taken."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

from pgmpy_dp.inference.posterior.hamiltonian import TAIL, redraw_tails

PRIOR = np.array([0.5, 2.0, 1.5, 0.7])
LIKELIHOOD = -np.array([0.3, -0.2, 0.1, 0.4, 5.0])  # the slope of the log likelihood; the last is no cell
UNIFORM = np.array([0.2, 0.9])


class Density:
    """Prior times likelihood: Dirichlet rows whose sums are far away, or normal log-potentials."""

    def __init__(self, rows):
        self.free, self.terms = 4, SimpleNamespace(rows=np.array(rows, dtype=np.int64), prior=PRIOR)

    def values(self, point):
        return point[: self.free], np.ones(self.free)

    def __call__(self, point):
        cells = point[: self.free]
        prior = PRIOR @ cells if self.terms.rows.size else -0.5 * PRIOR @ cells**2
        return float(prior + LIKELIHOOD @ point), 2 * point


class Given:
    """A generator whose uniform numbers are given: of the draws, then of what decides."""

    def __init__(self, decides):
        self.decides = decides

    def random(self, size=None):
        return self.decides if size is None else UNIFORM[:size]


@pytest.mark.parametrize("rows", [[], [0, 0, 1, 1]], ids=["free", "rows"])
def test_a_tail_is_drawn_from_its_prior_and_taken_as_the_likelihood_says(rows):
    density, edges = Density(rows), np.array([-1.0, 3.0, -1.5, -9.0])
    point = np.array([-4.0, 2.0, -3.0, 0.5, 7.0])
    tail = [0, 2] if rows else [0, 1]  # in rows the second is the largest of its own, which is in no tail
    if not rows:
        point[2] = -1.0
    below = edges[tail]
    moved = redraw_tails(density, point, edges, Given(1 - 2**-53)).point  # always taken
    if rows:
        below = np.minimum(below, np.array([2.0, 0.5]) + math.log(TAIL))
        shares = np.exp(PRIOR[tail] * (moved[tail] - below))
    else:
        spread = np.sqrt(PRIOR[tail])
        shares = norm.cdf(moved[tail] * spread) / norm.cdf(below * spread)
    np.testing.assert_allclose(shares, 1 - UNIFORM, rtol=1e-9)
    others = np.setdiff1d(np.arange(5), tail)
    np.testing.assert_array_equal(moved[others], point[others])
    chance = math.exp(LIKELIHOOD @ (moved - point))
    assert 0.01 < chance < 0.99
    for decides, reached in ((1 - 0.999 * chance, moved), (1 - 1.001 * chance, point)):
        state = redraw_tails(density, point, edges, Given(decides))
        value, gradient = density(reached)
        np.testing.assert_array_equal(state.point, reached)
        assert state.value == value
        np.testing.assert_array_equal(state.gradient, gradient)
