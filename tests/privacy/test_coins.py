"""Coins and categorical draws from uniform integers. Each test raises a false alarm with probability below 1e-6."""

import math
import random
import secrets

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare

from pgmpy_dp.privacy.coins import Categorical, exponential_coin, logistic_coin


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
    table = Categorical(weights)
    drawn = np.bincount([table.draw(1, secrets.randbelow) for _ in range(5000)], minlength=outcomes)
    share = np.exp(weights[1] - np.logaddexp.reduce(weights[1]))
    if outcomes > 1:
        assert chisquare(drawn, 5000 * share).pvalue > 1e-7
        bug = np.exp(weights[0] - np.logaddexp.reduce(weights[0]))  # the other row
        assert chisquare(drawn, 5000 * bug).pvalue < 1e-7
    assert drawn.sum() == 5000


def test_impossible_outcomes_are_never_drawn():
    table = Categorical(np.array([[-np.inf, 0.0, -np.inf, -np.inf, -3.0]]))
    assert {table.draw(0, secrets.randbelow) for _ in range(500)} <= {1, 4}


@pytest.mark.parametrize("outcomes", [1, 2, 3, 7, 16])
def test_the_total_is_that_of_all_weights_of_a_row(outcomes):
    weights = np.random.default_rng(outcomes).normal(scale=3.0, size=(3, outcomes)) - 900.0
    table = Categorical(weights)
    for row in range(3):
        assert table.log_total(row) == pytest.approx(np.logaddexp.reduce(weights[row]), rel=1e-14)
