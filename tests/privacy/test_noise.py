"""Noise: distribution, scale and sensitivity.

Each distribution test raises a false alarm with probability below 1e-8, the file below 1e-6 a run.
"""

import itertools
import sys
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import log_softmax, logsumexp
from scipy.stats import chi2

from pgmpy_dp.privacy import OPENDP_NOISE, SimulatedNoise
from pgmpy_dp.privacy.noise import (
    _measurement,
    exponential_scale,
    gaussian_scale,
    gaussian_variance,
    laplace_scale,
    laplace_variance,
    selection_scale,
    table_sensitivity,
)

FALSE_ALARM = 1e-8
DRAWS = 8_000


def log_weights(kind: str, scale: float, support: np.ndarray) -> np.ndarray:
    return -np.abs(support) / scale if kind == "laplace" else -0.5 * (support / scale) ** 2


def probabilities(kind: str, scale: float) -> tuple[np.ndarray, np.ndarray]:
    reach = int(60 * scale) + 60
    support = np.arange(-reach, reach + 1)
    weights = np.exp(log_weights(kind, scale, support))
    return support, weights / weights.sum()


def chi_square_p(noise: np.ndarray, kind: str, scale: float) -> float:
    """P-value of the exact distribution, in cells of at least 60 expected draws."""
    support, pmf = probabilities(kind, scale)
    edges, mass = [], 0.0
    for value, probability in zip(support, pmf, strict=True):
        mass += probability
        if mass * noise.size >= 60:
            edges.append(value + 0.5)
            mass = 0.0
    edges = edges[:-1]  # the last cell takes the rest
    cumulative = np.cumsum(pmf)
    below = np.array([cumulative[np.searchsorted(support, edge) - 1] for edge in edges])
    expected = np.diff(np.concatenate([[0.0], below, [1.0]])) * noise.size
    observed = np.bincount(np.searchsorted(np.array(edges), noise), minlength=len(edges) + 1)
    return float(stats.chisquare(observed, expected).pvalue)


@pytest.mark.parametrize("source", [OPENDP_NOISE, SimulatedNoise(7)], ids=["opendp", "simulated"])
@pytest.mark.parametrize("scale", [0.8, 3.7, 40.0])
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_noise_has_the_exact_distribution(source, kind, scale):
    draw = source.discrete_laplace if kind == "laplace" else source.discrete_gaussian
    counts = np.arange(DRAWS, dtype=np.int64) * 1000
    noisy = draw(counts, scale)
    assert noisy.dtype == np.int64
    assert noisy.shape == counts.shape
    noise = noisy - counts
    assert chi_square_p(noise, kind, scale) > FALSE_ALARM
    # Power: the same draws reject a scale 30 % off to either side.
    assert chi_square_p(noise, kind, scale * 1.3) < FALSE_ALARM
    assert chi_square_p(noise, kind, scale / 1.3) < FALSE_ALARM


@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0, 2.9, 3.1, 17.0])
def test_variances_are_those_of_the_discrete_distributions(scale):
    for kind, variance in [("laplace", laplace_variance), ("gaussian", gaussian_variance)]:
        support, pmf = probabilities(kind, scale)
        assert variance(scale) == pytest.approx((pmf * support.astype(float) ** 2).sum(), rel=1e-12)


def test_variances_never_vanish():
    assert laplace_variance(1e-6) > 0
    assert gaussian_variance(1e-6) > 0


def test_seed_repeats_simulated_noise_only():
    counts = np.zeros(50, dtype=np.int64)
    first, again, other = (SimulatedNoise(s).discrete_gaussian(counts, 30.0) for s in (3, 3, 4))
    assert (first == again).all()
    assert (first != other).any()
    np.random.seed(0)  # noqa: NPY002
    one = OPENDP_NOISE.discrete_laplace(counts, 30.0)
    np.random.seed(0)  # noqa: NPY002
    assert (one != OPENDP_NOISE.discrete_laplace(counts, 30.0)).any()
    assert OPENDP_NOISE.private
    assert not SimulatedNoise(1).private
    assert "opendp.prelude" not in sys.modules


@given(
    share=st.fractions(min_value=Fraction(1, 10**4), max_value=20),
    neighbours=st.sampled_from(["add_remove", "replace_one"]),
)
@settings(max_examples=60, deadline=None)
def test_opendp_says_that_scales_cost_at_most_the_share_and_are_the_smallest(share, neighbours):
    """Its own price; tests/privacy/test_rounding.py has that of exact fractions, of all kinds of noise."""
    one = table_sensitivity(neighbours, "l1")
    b = laplace_scale(share, one)
    assert Fraction(_measurement("laplace", b).map(one)) <= share
    assert Fraction(_measurement("laplace", np.nextafter(b, 0)).map(one)) > share * (1 - Fraction(1, 10**15))


def test_extreme_scales_draw_without_warnings():
    counts = np.array([3, 0, -2], dtype=np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for source in (OPENDP_NOISE, SimulatedNoise(0)):
            for scale in (5e-324, 1e-200):
                assert source.discrete_laplace(counts, scale).tolist() == [3, 0, -2]
                assert source.discrete_gaussian(counts, scale).tolist() == [3, 0, -2]


def test_unknown_relation_is_refused():
    with pytest.raises(ValueError, match="neighbours"):
        table_sensitivity("swap", "l1")
    with pytest.raises(ValueError, match="norm"):
        table_sensitivity("add_remove", "l2")


@pytest.mark.parametrize("scale", [0, 0.0, -1.0, float("nan"), float("inf"), True, "3", None, 2.0**51])
@pytest.mark.parametrize("source", [OPENDP_NOISE, SimulatedNoise(1)], ids=["opendp", "simulated"])
def test_bad_scales_are_refused(source, scale):
    for draw in (source.discrete_laplace, source.discrete_gaussian):
        with pytest.raises(ValueError, match="scale"):
            draw(np.zeros(2, dtype=np.int64), scale)
    for variance in (laplace_variance, gaussian_variance):
        with pytest.raises(ValueError, match="scale"):
            variance(scale)


@pytest.mark.parametrize("counts", [[1, 2], np.zeros(2), np.zeros((2, 2), dtype=np.int64), np.zeros(2, dtype=np.int32)])
def test_bad_counts_are_refused(counts):
    for draw in (OPENDP_NOISE.discrete_laplace, OPENDP_NOISE.discrete_gaussian, SimulatedNoise(1).discrete_laplace):
        with pytest.raises(ValueError, match="counts"):
            draw(counts, 1.0)


def test_any_layout_of_counts_is_taken_and_left_alone():
    counts = np.arange(10, dtype=np.int64)[::2]
    counts.setflags(write=False)
    noisy = OPENDP_NOISE.discrete_laplace(counts, 1e-3)  # noise beyond any reasonable doubt zero
    assert noisy.tolist() == [0, 2, 4, 6, 8]
    assert OPENDP_NOISE.discrete_gaussian(np.zeros(0, dtype=np.int64), 1.0).shape == (0,)


@pytest.mark.parametrize("share", [0, -1, float("nan"), float("inf"), True, "1", None, 1e-300, Fraction(1, 10**400)])
def test_bad_shares_are_refused(share):
    with pytest.raises(ValueError, match="epsilon"):
        laplace_scale(share, 1)
    with pytest.raises(ValueError, match="rho"):
        gaussian_scale(share, 1)


@pytest.mark.parametrize("add", [OPENDP_NOISE.discrete_laplace, OPENDP_NOISE.discrete_gaussian])
def test_parts_drawn_side_by_side_keep_their_places_and_their_independence(add):
    """Counts stay in order, and the parts' noise is not a copy of each other (probability of that: below 1e-300)."""
    counts = np.arange(40_000, dtype=np.int64) * 1_000_000
    noise = add(counts, 50.0) - counts
    assert np.abs(noise).max() < 500_000
    assert not np.array_equal(noise[:20_000], noise[20_000:])


ORDERS = np.array([1.0001, 1.5, 2.0, 4.0, 16.0, 64.0, 512.0])


def log_odds(scores, scale):
    """Logarithms of the exponential mechanism's probabilities, by its definition."""
    return log_softmax(-np.asarray(scores, float) / scale)


def renyi_over_order(one, other):
    """The largest D_a / a over orders: at most rho for a mechanism of rho-zCDP."""
    return max(logsumexp(a * one + (1 - a) * other) / (a - 1) / a for a in ORDERS)


@given(st.lists(st.integers(-30, 30), min_size=2, max_size=6), st.data(), st.integers(1, 5), st.floats(0.001, 2.0))
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


def permute_and_flip(scores, scale):
    """Its probabilities, as McKenna and Sheldon (2020, Algorithm 1) state it."""
    accept = np.exp(-(scores - scores.min()) / scale)
    chances, orders = np.zeros(len(scores)), list(itertools.permutations(range(len(scores))))
    for order in orders:
        left = 1.0
        for candidate in order:
            chances[candidate] += left * accept[candidate] / len(orders)
            left *= 1 - accept[candidate]
    return chances


LAWS = {"exponential_mechanism": lambda *given: np.exp(log_odds(*given)), "permute_and_flip": permute_and_flip}


@pytest.mark.parametrize("noise", [OPENDP_NOISE, SimulatedNoise(3)], ids=["opendp", "simulated"])
@pytest.mark.parametrize("name", LAWS)
def test_choices_have_the_odds_of_their_mechanism(name, noise):
    """A right law fails with probability 1e-6; those of a doubled scale and of the other mechanism are caught."""
    scores, scale, trials = np.array([0, 1, 3, 7]), 3.0, 6_000

    def seen(mechanism):
        return np.bincount([getattr(noise, mechanism)(scores, scale) for _ in range(trials)], minlength=4)

    def distance(counts, times=1.0):
        expected = trials * LAWS[name](scores, times * scale)
        return ((counts - expected) ** 2 / expected).sum()

    drawn, limit, (other,) = seen(name), chi2.isf(1e-6, 3), LAWS.keys() - {name}
    assert distance(drawn) < limit
    assert distance(drawn, times=2.0) > limit
    assert distance(seen(other)) > limit


def test_permute_and_flip_keeps_its_epsilon():
    """All scores of three candidates, against all that differ by at most the sensitivity."""
    sensitivity, epsilon = 1, 0.7
    scale = selection_scale(epsilon, sensitivity)
    worst = 0.0
    for scores in itertools.product(range(4), repeat=3):
        here = permute_and_flip(np.array(scores), scale)
        for change in itertools.product((-1, 0, 1), repeat=3):
            there = permute_and_flip(np.add(scores, change), scale)
            worst = max(worst, float(np.log(here / there).max()))
    assert 0.5 * epsilon < worst <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize("choose", [OPENDP_NOISE.exponential_mechanism, OPENDP_NOISE.permute_and_flip])
def test_other_scores_are_refused(choose):
    for scores in ([1, 2], np.array([1.0]), np.array([], dtype=np.int64), np.zeros((1, 1), dtype=np.int64)):
        with pytest.raises(ValueError, match="one-dimensional array of int64"):
            choose(scores, 1.0)
    for scale in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="scale"):
            choose(np.array([1, 2]), scale)
