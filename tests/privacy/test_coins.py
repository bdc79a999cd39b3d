"""Coins and categorical draws from uniform integers. Each test raises a false alarm with probability below 1e-6."""

import math
import random
import secrets
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare

from pgmpy_dp.privacy import OPENDP_NOISE, SimulatedNoise
from pgmpy_dp.privacy.coins import Categorical, exponential_coin, fixed_sample, logistic_coin, poisson_sample


@pytest.mark.parametrize("below", [secrets.randbelow, random.Random(1).randrange], ids=["secure", "seeded"])
@pytest.mark.parametrize("x", [0.0, 0.3, 1.0, 1.7, 4.25])
def test_coins_have_their_probabilities(x, below):
    heads = sum(exponential_coin(x, below) for _ in range(4000))
    assert binomtest(heads, 4000, math.exp(-x)).pvalue > 1e-7
    if x < 4:  # power: a probability a quarter off is noticed
        assert binomtest(heads, 4000, 0.75 * math.exp(-x)).pvalue < 1e-7
    heads = sum(logistic_coin(x, below) for _ in range(4000))
    assert binomtest(heads, 4000, 1 / (1 + math.exp(-x))).pvalue > 1e-7


def test_unlikely_coins_come_down():
    for x in (50.0, 1e9, 2.0**60):
        assert not any(exponential_coin(x, secrets.randbelow) for _ in range(50))
        assert all(logistic_coin(x, secrets.randbelow) for _ in range(50))


@pytest.mark.parametrize("outcomes", [1, 2, 7, 16])
def test_categorical_draws_follow_the_weights(outcomes):
    generator = np.random.default_rng(outcomes)
    weights = generator.normal(scale=1.5, size=(2, outcomes)) - 1e4  # far from 1 in linear space
    table = Categorical(weights[1])
    drawn = np.bincount([table.draw(secrets.randbelow) for _ in range(5000)], minlength=outcomes)
    share = np.exp(weights[1] - np.logaddexp.reduce(weights[1]))
    if outcomes > 1:
        assert chisquare(drawn, 5000 * share).pvalue > 1e-7
        bug = np.exp(weights[0] - np.logaddexp.reduce(weights[0]))  # other weights
        assert chisquare(drawn, 5000 * bug).pvalue < 1e-7
    assert drawn.sum() == 5000


def test_impossible_outcomes_are_never_drawn():
    table = Categorical(np.array([-np.inf, 0.0, -np.inf, -np.inf, -3.0]))
    assert {table.draw(secrets.randbelow) for _ in range(500)} <= {1, 4}


@pytest.mark.parametrize("outcomes", [1, 2, 3, 7, 16])
def test_the_total_is_that_of_all_weights(outcomes):
    for weights in np.random.default_rng(outcomes).normal(scale=3.0, size=(3, outcomes)) - 900.0:
        assert Categorical(weights).log_total == pytest.approx(np.logaddexp.reduce(weights), rel=1e-14)


SOURCES = pytest.mark.parametrize("source", [OPENDP_NOISE, SimulatedNoise(3)], ids=["system", "simulated"])


@SOURCES
def test_samples_of_one_size_are_uniform(source):
    """All ten pairs out of five, 20,000 times: false alarm below 1e-8."""
    counts = dict.fromkeys(range(32), 0)
    for _ in range(20_000):
        mask = source.choose(2, 5)
        counts[int(mask @ 2 ** np.arange(5))] += 1
    seen = [count for key, count in counts.items() if bin(key).count("1") == 2]
    assert sum(seen) == 20_000
    assert chisquare(seen).pvalue > 1e-8
    assert source.choose(4, 4).all()


def test_ties_are_drawn_again(monkeypatch):
    draws = iter([np.array([5, 9, 9], dtype=np.uint64), np.array([7, 3, 3], dtype=np.uint64)])
    monkeypatch.setattr("pgmpy_dp.privacy.coins.os.urandom", lambda size: next(draws).tobytes())
    assert fixed_sample(2, 3).tolist() == [False, True, True]


@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1, 3), Fraction(999, 1000)])
@SOURCES
def test_coins_are_independent_with_the_exact_rate(source, rate):
    coins = source.coins(rate, 200_000)
    assert coins.dtype == bool
    assert binomtest(int(coins.sum()), coins.size, float(rate)).pvalue > 1e-8
    both = int((coins[:-1] & coins[1:]).sum())
    assert abs(both / (coins.size - 1) - float(rate) ** 2) < 6 * math.sqrt(2 / coins.size)
    assert binomtest(int(coins.sum()), coins.size, float(rate) * 0.94).pvalue < 1e-3  # a rate 6 % off shows


def test_a_tie_in_the_first_64_digits_is_decided_exactly(monkeypatch):
    """1/3 in binary is 0.0101...: words equal to its first digits leave a third to decide."""
    first = (1 << 64) // 3
    monkeypatch.setattr(
        "pgmpy_dp.privacy.coins.os.urandom", lambda n: np.full(n // 8, first, dtype=np.uint64).tobytes()
    )
    asked = []

    def below(n):
        asked.append(n)
        return len(asked) % 3

    monkeypatch.setattr("pgmpy_dp.privacy.coins.secrets.randbelow", below)
    coins = poisson_sample(Fraction(1, 3), 3000)
    assert set(asked) == {3}
    assert coins.mean() == pytest.approx(1 / 3)
