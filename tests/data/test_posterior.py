"""Posterior draws: the distribution, its privacy by exact density ratios, the charge."""

from __future__ import annotations

import itertools
import math
import secrets
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, chisquare, kstest

import pgmpy_dp as dp
from pgmpy_dp.data.mechanisms import posterior
from pgmpy_dp.data.mechanisms.posterior import draw_rows
from pgmpy_dp.experiments.papers import posteriors as papers
from pgmpy_dp.privacy.posterior import draw_cost, floor_of, range_of, tempering, truncation

PAIR = ("b", "a")


@cache
def grid(states, floor, steps):
    shares = [t for t in itertools.product(range(steps + 1), repeat=states) if sum(t) == steps]
    return floor + (1 - states * floor) * np.array(shares) / steps


def log_distribution(counts, prior, span, power, steps):
    """Of one row over the grid, in the order of `grid`: the definition itself."""
    points = grid(len(counts), floor_of(span, len(counts)), steps)
    logs = np.log(points) @ (power * np.asarray(counts) + np.asarray(prior) - 1)
    return logs - np.logaddexp.reduce(logs)


@pytest.mark.parametrize("counts", [(3, 1), (2, 5, 0), (4, 0, 2, 1)])
@pytest.mark.parametrize("power", [1.0, 0.3])
def test_draws_have_exactly_the_stated_distribution(counts, power, monkeypatch):
    """Chi-square at 1e-7; a prior counted twice is the planted bug."""
    states, steps, span = len(counts), 6, 1.5
    monkeypatch.setattr(posterior, "STEPS", steps)
    monkeypatch.setattr(posterior, "STEPS_OF_TWO_STATES", steps)
    prior = np.linspace(1.0, 2.5, states)
    table = np.array(counts)[:, None]
    drawn = draw_rows({("a",): table}, {("a",): prior[:, None]}, {("a",): span}, power, 4000, secrets.randbelow)
    points = grid(states, floor_of(span, states), steps)
    values = np.array([network["a",][:, 0] for network in drawn])
    places = np.abs(values[:, None] - points[None]).max(axis=2).argmin(axis=1)
    assert np.abs(values - points[places]).max() < 1e-12
    seen = np.bincount(places, minlength=len(points))

    def p_value(exponents):
        expected = 4000 * np.exp(log_distribution(counts, exponents, span, power, steps))
        rare = expected < 20
        pooled = [np.append(np.asarray(x)[~rare], np.asarray(x)[rare].sum()) for x in (seen, expected)]
        return chisquare(*[x[pooled[1] > 0] for x in pooled]).pvalue

    assert p_value(prior) > 1e-7
    assert p_value(2 * prior + 1) < 1e-7


def test_two_states_follow_the_truncated_beta_posterior_not_a_clipped_one():
    """Kolmogorov-Smirnov at 1e-7 against the continuous distribution, of which the grid keeps 1 part in 4095."""
    span, counts = 1.2, np.array([[30], [4]])
    drawn = draw_rows({("a",): counts}, {("a",): np.ones((2, 1))}, {("a",): span}, 1.0, 3000, secrets.randbelow)
    values = np.array([network["a",][0, 0] for network in drawn])
    floor = floor_of(span, 2)
    low, high = beta.cdf([floor, 1 - floor], 31, 5)
    step = (1 - 2 * floor) / 4095

    def truncated(x):
        return np.clip((beta.cdf(x + step / 2, 31, 5) - low) / (high - low), 0, 1)

    assert kstest(values, truncated).pvalue > 1e-7
    clipped = np.clip(np.random.default_rng(0).beta(31, 5, 3000), floor, 1 - floor)
    assert kstest(clipped, truncated).pvalue < 1e-7


@pytest.mark.parametrize("states", [2, 3])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("mechanism", ["sampler", "paper's sampler", "exponential", "paper's exponential"])
def test_privacy_by_exact_density_ratios(states, neighbours, mechanism):
    """Largest log-ratio over all outcomes and all neighbours: at most what is charged, and near it as records grow."""
    epsilon, paper = Fraction(3), "paper" in mechanism
    if "sampler" in mechanism:
        (span,), power = (papers.truncation if paper else truncation)([states], epsilon, neighbours), 1.0
    else:
        cases = tempering([states], 0.05, epsilon, neighbours), papers.tempering([states], 0.05, epsilon)
        (span,), power = cases[paper]
    charged = draw_cost([span], power, neighbours) if paper else 3.0
    assert charged <= 3.0
    worst = 0.0
    for total in (0, 1, 3, 400):
        data = [total * unit for unit in np.eye(states, dtype=int)]
        if total < 10:
            data = [np.array(c) for c in itertools.product(range(total + 1), repeat=states) if sum(c) == total]
        for counts in data:
            own = log_distribution(counts, np.ones(states), span, power, 12)
            added = [counts + unit for unit in np.eye(states, dtype=int)]
            replaced = [one - unit for one in added for unit in np.eye(states, dtype=int) if (one - unit >= 0).all()]
            for other in added if neighbours == "add_remove" else replaced:
                ratio = np.abs(own - log_distribution(other, np.ones(states), span, power, 12)).max()
                worst = max(worst, ratio)
    assert worst <= charged
    assert worst > 0.8 * charged


def test_truncations_are_the_published_ones():
    """D.7: w = 1 / (1 + exp(eps / (2 |I|))) under "replace_one"; the printed form needs 2 |I| log 2, 23.6 for 17."""
    for epsilon in (0.1, 1.0, 40.0):
        spans = truncation([2] * 17, Fraction(str(epsilon)), "replace_one")
        assert floor_of(spans[0], 2) == pytest.approx(1 / (1 + math.exp(epsilon / 34)), rel=1e-5)
        added = truncation([2] * 17, Fraction(str(epsilon)), "add_remove")
        assert floor_of(added[0], 2) == pytest.approx(1 / (1 + math.exp(epsilon / 17)), rel=1e-5)
    with pytest.raises(ValueError, match=r"needs more than epsilon=23\.56"):
        papers.truncation([2] * 17, Fraction(23), "replace_one")
    spans = papers.truncation([2] * 17, Fraction(24), "replace_one")
    assert floor_of(spans[0], 2) == pytest.approx(math.exp(-24 / 34))
    assert truncation([1, 3], Fraction(1), "add_remove")[0] == 0.0
    assert range_of(floor_of(0.7, 3), 3) == pytest.approx(0.7)
    with pytest.raises(ValueError, match=r"less than 1 / 4 = 0\.25"):
        tempering([2, 4], 0.25, Fraction(1), "add_remove")


def test_an_epsilon_below_what_floats_may_be_off_by_is_refused():
    tempered = (
        lambda e: tempering([2, 3, 1], 0.1, e, "replace_one"),
        lambda e: papers.tempering([2, 3, 1], 0.1, e),
    )
    truncated = (
        lambda e: truncation([2, 3, 1], e, "replace_one"),
        lambda e: papers.truncation([2, 3, 1], e, "replace_one"),
    )
    for draw in (*tempered, *truncated):
        with pytest.raises(ValueError, match=r"epsilon=3e-08 is too small.*give 4e-08 or more"):
            draw(Fraction("3e-8"))
    for draw in tempered:
        draw(Fraction("4e-8"))


SCHEMA = dp.Schema({"a": ["x", "y"], "b": [0, 1, 2]})
FAMILIES, PRIOR = [("a",), PAIR], {("a",): np.ones(2), PAIR: np.ones((3, 2))}


def dataset(epsilon=1.0, neighbours="add_remove", noise=None):
    frame = pd.DataFrame({"a": ["x", "y"] * 30, "b": [0, 1, 2] * 20})
    budget = dp.PrivacyBudget(epsilon)
    return dp.PrivateDataset(frame, SCHEMA, budget, neighbours=neighbours, noise=noise or dp.SimulatedNoise(1))


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_every_draw_is_paid_for(neighbours):
    data = dataset(1.0, neighbours)
    found = data.sample_posterior(FAMILIES, PRIOR, 0.1, draws=7)
    assert len(found.draws) == 7
    assert found.guarantee.epsilon == 0.7
    assert found.guarantee.mechanism == "posterior_sampling"
    assert not found.guarantee.private
    assert data.budget.remaining.epsilon == 0.3
    for rows in found.draws:
        assert rows[PAIR].shape == (3, 2)
        np.testing.assert_allclose(rows[PAIR].sum(axis=0), 1.0)
        assert rows[PAIR].min() >= found.floors[PAIR] * (1 - 1e-12)
    data.sample_map(FAMILIES, PRIOR, 0.3)
    assert data.budget.remaining.epsilon == 0.0
    assert {charge.mechanism for charge in data.budget.history} == {"posterior_sampling", "exponential"}


def test_bad_input_charges_nothing():
    data = dataset()
    for call, message in [
        (lambda: data.sample_posterior(FAMILIES, PRIOR, 0.3, draws=4), "budget"),
        (lambda: data.sample_posterior(FAMILIES, PRIOR, 0.3, draws=0), "draws"),
        (lambda: data.sample_posterior(FAMILIES, PRIOR, 0.3, draws=True), "draws"),
        (lambda: data.sample_posterior(FAMILIES, PRIOR, math.nan), "epsilon"),
        (lambda: data.release(papers.PrintedRows(FAMILIES, PRIOR, 0.3)), r"needs more than epsilon=4\.39"),
        (lambda: data.sample_posterior([("a",), ("a", "b")], PRIOR, 0.3), "different nodes"),
        (lambda: data.sample_posterior(FAMILIES, {("a",): np.ones(2)}, 0.3), "prior"),
        (lambda: data.sample_posterior(FAMILIES, PRIOR | {("a",): np.array([1.0, 0.0])}, 0.3), "positive"),
        (lambda: data.sample_map(FAMILIES, PRIOR, 0.3, floor=0.4), "less than 1 / 3"),
        (lambda: data.sample_map(FAMILIES, PRIOR, 0.3, floor=0.0), "floor"),
        (lambda: data.sample_map(FAMILIES, PRIOR, 0.0), "epsilon"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    assert data.budget.history == ()


def test_secure_draws_and_failures_after_the_charge():
    private = dataset(noise=dp.privacy.OPENDP_NOISE)
    assert private.sample_posterior(FAMILIES, PRIOR, 1.0).guarantee.private

    class Broken(dp.SimulatedNoise):
        def below(self, bound):
            raise OSError("no entropy")

    data = dataset(noise=Broken(0))
    with pytest.raises(OSError, match="entropy"):
        data.sample_posterior(FAMILIES, PRIOR, 0.4)
    assert data.budget.remaining.epsilon == 0.6


@pytest.mark.parametrize("weight", [0.0, -1.0, math.nan, math.inf, 2.0**65])
def test_a_prior_that_cannot_be_drawn_from_is_refused_before_the_charge(weight):
    schema = dp.Schema({"a": ["x", "y"]})
    data = dp.PrivateDataset(pd.DataFrame({"a": ["x", "y"]}), schema, dp.PrivacyBudget(1.0))
    with pytest.raises(ValueError, match="prior of"):
        data.sample_posterior([("a",)], {("a",): np.array([1.0, weight])}, 1.0)
    assert data.budget.history == ()
