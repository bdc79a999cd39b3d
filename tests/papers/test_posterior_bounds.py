"""Utility bounds against what they bound."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import betaln
from scipy.stats import beta, dlaplace

import pgmpy_dp as dp
from pgmpy_dp import papers
from pgmpy_dp.papers import (
    StochasticLipschitz,
    count_error_bound,
    divergence_bound,
    exponential_map_failure,
    fourier_marginal_bound,
    joint_stochastic_lipschitz,
    posterior_divergence,
    stochastic_lipschitz_bound,
)
from pgmpy_dp.papers.zhang_2016 import _KAPPA, _W


def test_divergence_is_the_integral():
    one, other = beta(3.5, 2.0), beta(1.5, 4.0)
    value, _ = quad(lambda x: one.pdf(x) * (one.logpdf(x) - other.logpdf(x)), 0, 1)
    assert posterior_divergence([[[3.5], [2.0]]], [[[1.5], [4.0]]]) == pytest.approx(value, abs=1e-7)
    frames = {"a": pd.DataFrame([[3.5, 3.5], [2.0, 2.0]])}, {"a": pd.DataFrame([[1.5, 1.5], [4.0, 4.0]])}
    assert posterior_divergence(*frames) == pytest.approx(2 * value, abs=1e-7)


@pytest.mark.parametrize("states", [2, 3])
def test_theorem_1_holds_over_the_box_and_in_expectation(states):
    generator = np.random.default_rng(0)
    for n in (5, 50):
        prior = np.ones((states, 1))
        found = divergence_bound([prior], n, 3.0, math.exp(-2))  # then the deviation is the row's range
        corners = np.array(np.meshgrid(*[[0, n]] * states)).reshape(states, -1).T
        inside = np.concatenate([corners, generator.uniform(0, n, size=(300, states))])
        worst = max(
            posterior_divergence([prior + one[:, None]], [prior + other[:, None]])
            for one in inside
            for other in corners
        )
        assert worst <= found.deviation <= found.paper_deviation
        ranges = (m * math.log((1 + m) * (later + m)) for later in range(1, states) for m in [later * n])
        assert found.deviation == pytest.approx(sum(ranges))  # of a beta variable for each state but the last
        noisy = [np.clip(n / 2 + generator.laplace(scale=3.0, size=(states, 1)), 0, n) for _ in range(500)]
        exact = [prior + n / 2]
        assert np.mean([posterior_divergence(exact, [prior + z]) for z in noisy]) <= found.expectation
    with pytest.raises(ValueError, match="at least 1"):
        divergence_bound([np.full((2, 1), 0.5)], 5, 1.0, 0.1)


def test_below_one_the_range_fails_as_published():
    """D.3: 17.87 > 17.05 at alpha = beta = 0.5, n = 5."""
    worst = posterior_divergence([[[0.5], [5.5]]], [[[5.5], [0.5]]])
    assert worst == pytest.approx(17.87, abs=0.01)
    assert 5 * math.log(5.5**2) == pytest.approx(17.05, abs=0.01)


@pytest.mark.parametrize("scale", [0.1, 1.0, 4.7, 34.0])
@pytest.mark.parametrize("failure", [0.9, 0.05, 1e-6])
def test_no_smaller_whole_number_bounds_discrete_noise(scale, failure):
    bound, noise = count_error_bound(10, scale, failure), dlaplace(1.0 / scale)
    assert 10 * 2 * noise.sf(bound) <= failure * (1 + 1e-9)
    assert bound == 0 or 10 * 2 * noise.sf(bound - 1) > failure


def test_proposition_1_and_theorem_3_hold():
    """500 releases each; a bound for probability 0.1 fails more than 100 times with probability below 1e-10."""
    schema = dp.Schema({v: [0, 1] for v in "abc"})
    frame = pd.DataFrame({v: np.random.default_rng(i).integers(0, 2, 40) for i, v in enumerate("abc")})
    data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(1e6), "replace_one", dp.SimulatedNoise(0))
    cliques = [("a",), ("b", "a"), ("c", "a")]
    exact = dp.exact_marginals(frame, schema, cliques)
    fails = [0, 0]
    for _ in range(500):
        tables = data.measure(cliques, 1.0)
        worst = max(np.abs(tables.tables[c] - exact.tables[c]).max() for c in cliques)
        fails[0] += worst > count_error_bound(10, tables.scales["a",], 0.1)
        noisy = data.release(papers.PrintedCoefficients(cliques, 1.0))
        distances = [np.abs(noisy.tables[c] - exact.tables[c]).sum() for c in cliques]
        bounds = [fourier_marginal_bound(noisy, c, 0.1) for c in cliques]
        fails[1] += any(d > b for d, b in zip(distances, bounds, strict=True))
    assert max(fails) < 100
    size, t = 6, math.log(6 / 0.1) / 2
    printed = (4 * size / 1.0) * (2 * math.log(size / 0.1) + t * size)
    found = fourier_marginal_bound(noisy, ("b", "a"), 0.1, papers.printed_increment(noisy, 0.1))
    assert found == pytest.approx(printed, abs=4)  # four coefficients, each rounded to whole numbers


def test_lemma_4_holds():
    """Exactly, on a grid: the mechanism's distribution is known."""
    theta, counts, power = np.linspace(0.05, 0.95, 500), (30, 10), 0.4
    score = counts[0] * np.log(theta) + counts[1] * np.log(1 - theta)
    chance = np.exp(power * (score - score.max()))
    chance /= chance.sum()
    for slack in (0.5, 2.0, 5.0):
        mass = float((score > score.max() - slack).mean())
        failed = float(chance[score <= score.max() - 2 * slack].sum())
        assert failed <= exponential_map_failure(power, slack, mass)
    with pytest.raises(ValueError, match="mass"):
        exponential_map_failure(power, 1.0, 0.0)


def smoothness(prior, rate):
    """The least offset for a row of two states: its log-likelihood's constant is the larger |log(theta / theta')|.

    With theta' = 1 - theta, and the distance 1 between two records, that is |logit(theta)|.
    """
    levels = np.linspace(0.0, 30.0, 3001)
    rough = 2 * beta(prior, prior).cdf(1 / (1 + np.exp(levels)))  # the mass of |logit| > L
    return StochasticLipschitz(rate, max(0.0, float((levels + np.log(rough) / rate).max())))


def test_lemma_3_holds():
    nodes = [smoothness(5.0, 4.0), smoothness(2.0, 1.5), smoothness(3.0, 3.0)]
    joint = joint_stochastic_lipschitz(nodes)
    for level in np.linspace(0.0, 10.0, 101):
        smooth = math.prod(1 - 2 * beta(a, a).cdf(1 / (1 + math.exp(level))) for a in (5.0, 2.0, 3.0))
        assert smooth >= 1 - math.exp(-joint.rate * (level - joint.offset)) - 1e-12
    alike = joint_stochastic_lipschitz([StochasticLipschitz(2.0, 0.0)] * 8)
    assert alike.offset == pytest.approx(math.log(8) / 2)  # |I| = exp(c L0)
    with pytest.raises(ValueError, match="at least one node"):
        joint_stochastic_lipschitz([])
    for offset in (-1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="offset must be a number of at least 0"):
            StochasticLipschitz(2.0, offset)


@pytest.mark.parametrize("delta", [0.2, 0.5, 0.7])
def test_theorem_4_2_holds(delta):
    """Recalled, so only held against what it must bound: the divergence of posteriors after one record is replaced."""
    assert math.exp(_W) == pytest.approx(1 + 2 * _W)
    assert pytest.approx(4.91081, abs=1e-5) == _KAPPA
    prior, smooth = 5.0, smoothness(5.0, 4.0)
    for records in (1, 3, 10):
        ones = np.arange(records + 1)
        maximum = np.exp(np.where(ones > 0, ones * np.log(np.maximum(ones, 1) / records), 0.0))
        maximum = maximum * maximum[::-1]
        marginal = np.exp(betaln(prior + ones, prior + records - ones) - betaln(prior, prior))
        bound = stochastic_lipschitz_bound(smooth, float((maximum / marginal).max()), 1.0, delta)
        for one in range(records):
            exact, other = ([[prior + k], [prior + records - k]] for k in (one, one + 1))
            assert max(posterior_divergence([exact], [other]), posterior_divergence([other], [exact])) <= 2 * bound**2
    with pytest.raises(ValueError, match=r"distances of at most \(1 - delta\) \* rate"):
        stochastic_lipschitz_bound(smooth, 2.0, 4.0, delta)
