"""Selection: the exact law of the exponential mechanism, its price in zCDP, and what a wrong price would be."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, logsumexp
from scipy.stats import chi2

from pgmpy_dp.privacy import OPENDP_NOISE, SimulatedNoise
from pgmpy_dp.privacy.noise import exponential_choice, exponential_scale, selection_scale

ORDERS = np.array([1.0001, 1.5, 2.0, 4.0, 16.0, 64.0, 512.0])


def log_odds(scores, scale):
    """Logarithms of the exponential mechanism's probabilities, by its definition."""
    return log_softmax(-np.asarray(scores, float) / scale)


def renyi_over_order(one, other):
    """The largest D_a / a over orders: at most rho for a mechanism of rho-zCDP."""
    return max(logsumexp(a * one + (1 - a) * other) / (a - 1) / a for a in ORDERS)


@given(
    st.lists(st.integers(-30, 30), min_size=2, max_size=6),
    st.data(),
    st.integers(1, 5),
    st.floats(0.001, 2.0),
)
@settings(max_examples=200, deadline=None)
def test_no_neighbouring_scores_cost_more_than_rho(scores, data, sensitivity, rho):
    moved = [score + data.draw(st.integers(-sensitivity, sensitivity)) for score in scores]
    scale = exponential_scale(rho, sensitivity)
    assert renyi_over_order(log_odds(scores, scale), log_odds(moved, scale)) <= rho * (1 + 1e-9) + 1e-12


def test_the_price_is_reached_and_half_of_it_is_too_little():
    """Two candidates that move against each other come near it; at the price of monotone scores they would not pay."""
    rho = 1e-3
    for times, paid in ((1.0, True), (0.5, False)):
        scale = times * exponential_scale(rho, 1)
        worst = renyi_over_order(log_odds([0, 0], scale), log_odds([1, -1], scale))
        assert (worst <= rho) == paid
        assert worst > 0.999 * rho


@given(st.fractions(Fraction(1, 1000), 10), st.integers(1, 4096))
@settings(max_examples=50, deadline=None)
def test_scales_are_the_smallest(rho, sensitivity):
    assert exponential_scale(rho, sensitivity) == pytest.approx(sensitivity / math.sqrt(2 * rho), rel=1e-12)


def test_pure_epsilon_would_cost_four_times_as_much():
    """As epsilon**2 / 2, which holds for any pure mechanism, in place of epsilon**2 / 8."""
    rho = 0.02
    assert exponential_scale(rho, 1) == pytest.approx(selection_scale(math.sqrt(2 * rho), 1) / 2)


@pytest.mark.parametrize("noise", [OPENDP_NOISE, SimulatedNoise(3)])
def test_draws_have_the_odds_of_the_exponential_mechanism(noise):
    """A right law fails with probability 1e-6; permute-and-flip, whose odds differ, is caught."""
    scores, scale, trials = np.array([0, 1, 3, 7]), 3.0, 6_000
    expected = trials * np.exp(log_odds(scores, scale))

    def distance(draw):
        seen = np.bincount([draw(scores, scale) for _ in range(trials)], minlength=4)
        return ((seen - expected) ** 2 / expected).sum()

    limit = chi2.isf(1e-6, 3)
    assert distance(noise.exponential_least) < limit
    assert distance(noise.least) > limit


def test_other_scores_are_refused():
    for scores in ([1, 2], np.array([1.0]), np.array([], dtype=np.int64)):
        with pytest.raises(ValueError, match="one-dimensional array of int64"):
            exponential_choice(scores, 1.0)
    with pytest.raises(ValueError, match="scale"):
        exponential_choice(np.array([1]), 0.0)
