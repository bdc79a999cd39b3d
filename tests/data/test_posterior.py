"""Posterior draws: the distribution, its privacy by exact density ratios, the charge."""

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
from pgmpy_dp.papers import zhang_2016 as papers
from pgmpy_dp.privacy.posterior import draw_cost, floor_of, range_of, tempering, truncation

PAIR = ("b", "a")


@cache
def grid(states, steps):
    """All points of the grid, as masses of the states, and the volumes of their cells: the definition itself."""
    if states == 1:
        return np.ones((1, 1)), np.ones(1)
    edges = np.sin(np.pi * np.arange(steps + 1) / (2 * steps)) ** 2
    middles = np.sin(np.pi * (2 * np.arange(steps) + 1) / (4 * steps)) ** 2
    parts = grid(states // 2, steps), grid(states - states // 2, steps)
    points, volumes = [], []
    for width, share in zip(np.diff(edges), middles, strict=True):
        for one, other in itertools.product(*(zip(*part, strict=True) for part in parts)):
            points.append(np.concatenate([share * one[0], (1 - share) * other[0]]))
            jacobian = share ** (states // 2 - 1) * (1 - share) ** (states - states // 2 - 1)
            volumes.append(width * jacobian * one[1] * other[1])
    return np.array(points), np.array(volumes)


def probabilities(states, span, steps):
    floor = floor_of(span, states)
    return floor + (1 - states * floor) * grid(states, steps)[0]


def log_distribution(counts, prior, span, power, steps):
    """Of one row over the grid, in the order of `grid`: density of the posterior times volume."""
    points, volumes = probabilities(len(counts), span, steps), grid(len(counts), steps)[1]
    logs = np.log(points) @ (power * np.asarray(counts) + np.asarray(prior) - 1) + np.log(volumes)
    return logs - np.logaddexp.reduce(logs)


def test_the_base_measure_of_the_grid_is_uniform():
    """Volumes sum to that of the simplex, and moments are those of the uniform distribution, as far as steps allow."""
    points, volumes = grid(3, 40)
    assert volumes.sum() == pytest.approx(1 / 2, rel=1e-3)
    np.testing.assert_allclose(volumes @ points / volumes.sum(), 1 / 3, rtol=1e-3)
    np.testing.assert_allclose(volumes @ points**2 / volumes.sum(), 1 / 6, rtol=5e-3)


def p_value(drawn, counts, prior, span, power, steps):
    """Chi-square test of draws of one row against the definition; they must lie on the grid."""
    points = probabilities(len(counts), span, steps)
    values = np.array([network["a",][:, 0] for network in drawn])
    places = np.abs(values[:, None] - points[None]).max(axis=2).argmin(axis=1)
    assert np.abs(values - points[places]).max() < 1e-12
    seen = np.bincount(places, minlength=len(points))
    expected = len(drawn) * np.exp(log_distribution(counts, prior, span, power, steps))
    rare = expected < 20
    pooled = [np.append(np.asarray(x)[~rare], np.asarray(x)[rare].sum()) for x in (seen, expected)]
    return chisquare(*[x[pooled[1] > 0] for x in pooled]).pvalue


def rows_drawn(counts, prior, span, power, draws):
    table, weights = np.array(counts)[:, None], np.asarray(prior)[:, None]
    return draw_rows({("a",): table}, {("a",): weights}, {("a",): span}, power, draws, secrets.randbelow)


@pytest.mark.parametrize("counts", [(3, 1), (2, 5, 0), (4, 0, 2, 1)])
@pytest.mark.parametrize("power", [1.0, 0.3])
def test_draws_have_exactly_the_stated_distribution(counts, power, monkeypatch):
    """Chi-square at 1e-7; a prior counted twice is the planted bug."""
    steps, span = 6, 1.5
    monkeypatch.setattr(posterior, "STEPS", steps)
    monkeypatch.setattr(posterior, "STEPS_OF_TWO_STATES", steps)
    prior = np.linspace(0.6, 2.5, len(counts))
    drawn = rows_drawn(counts, prior, span, power, 4000)
    assert p_value(drawn, counts, prior, span, power, steps) > 1e-7
    assert p_value(drawn, counts, 2 * prior + 1, span, power, steps) < 1e-7


def test_draws_are_exact_however_loose_the_bounds_are(monkeypatch):
    """Chi-square at 1e-7; draws by the bounds that all are accepted are the planted bug."""
    steps, span, counts, prior = 6, 4.0, (0, 2, 9, 30), np.full(4, 0.4)
    monkeypatch.setattr(posterior, "STEPS", steps)
    monkeypatch.setattr(posterior, "_FIRST_KNOTS", 2)
    monkeypatch.setattr(posterior, "_CLOSE", math.inf)
    assert p_value(rows_drawn(counts, prior, span, 1.0, 3000), counts, prior, span, 1.0, steps) > 1e-7
    monkeypatch.setattr(posterior, "exponential_coin", lambda *_: True)
    assert p_value(rows_drawn(counts, prior, span, 1.0, 3000), counts, prior, span, 1.0, steps) < 1e-7


@pytest.mark.parametrize("growth", [0.1, 20.0, 1e13])
def test_bounds_are_never_below_the_sums(growth):
    """Exponents of all signs and sizes, at random masses: up to rounding, and a straight line alone is below."""
    generator, below = np.random.default_rng(0), 0
    for trial in range(20):
        exponents = generator.choice([-0.99, -0.5, 0.0, 3.0, 1000.0], 2 + trial % 3)
        part = posterior._bounded(exponents, 0, 2, posterior._grid(64, growth))
        knots, values, _, _ = part.bound
        for log_mass in generator.uniform(knots[0], 0.0, 50):
            total = log_mass + np.logaddexp.reduce(posterior._weights(part, log_mass, posterior._grid(64, growth)))
            bound = posterior._bound_at(part, log_mass)
            assert -1e-9 <= bound - total < posterior._CLOSE + 1e-9
            below += np.interp(log_mass, knots, values) < total - 1e-9
    assert below > 0


@pytest.mark.parametrize("states", [2, 3, 5, 9])
def test_draws_are_refused_by_no_more_than_their_bounds_are_loose(states, monkeypatch):
    refusals = []
    monkeypatch.setattr(posterior, "exponential_coin", lambda gap, below: refusals.append(gap) or True)
    points = posterior.SimplexPoints(np.linspace(-0.9, 30.0, states), 20.0, 64)
    for _ in range(30):
        points.draw(secrets.randbelow)
    splits = states - 2  # besides the first, whose sum is exact
    assert min(refusals) >= 0
    assert max(refusals) <= splits * (posterior._CLOSE + 1e-9)


@pytest.mark.parametrize("states", [2, 3, 5, 9])
def test_bounds_reach_down_to_the_smallest_mass_that_splits_leave(states):
    parts, grid = (
        [(posterior.SimplexPoints(np.linspace(-0.9, 30.0, states), 20.0, 64)._whole, 0)],
        posterior._grid(64, 20.0),
    )
    while parts:
        part, depth = parts.pop()
        if depth and part.halves:
            assert part.bound[0][0] <= depth * grid.logs.min()
            assert part.bound[0][-1] == 0.0
        parts += [(half, depth + 1) for half in part.halves]


@pytest.mark.parametrize("counts", [(999_800, 100, 100), (100, 999_800, 100), (500_000, 100, 100, 499_800)])
def test_rare_states_are_drawn_as_rare_as_they_are(counts):
    """Means of 60 draws within six standard errors of the posterior's; an even grid of 1023 steps gave 9.8e-4."""
    ranges = truncation([len(counts)], Fraction(100), "replace_one")
    drawn = rows_drawn(counts, np.ones(len(counts)), ranges[0], 1.0, 60)
    means = np.mean([network["a",][:, 0] for network in drawn], axis=0)
    expected = (np.array(counts) + 1) / (sum(counts) + len(counts))
    np.testing.assert_array_less(np.abs(means - expected), 6 * np.sqrt(expected * (1 - expected) / sum(counts) / 60))


def test_two_states_follow_the_truncated_beta_posterior_not_a_clipped_one():
    """Kolmogorov-Smirnov at 1e-7 against the continuous distribution, of which the grid keeps 1 part in 8192."""
    span, counts, steps = 1.2, (30, 4), posterior.STEPS_OF_TWO_STATES
    values = np.array([network["a",][0, 0] for network in rows_drawn(counts, (1.0, 1.0), span, 1.0, 3000)])
    floor = floor_of(span, 2)
    low, high = beta.cdf([floor, 1 - floor], 31, 5)

    def truncated(x):
        angles = np.arcsin(np.sqrt(np.clip((x - floor) / (1 - 2 * floor), 0, 1)))
        edges = floor + (1 - 2 * floor) * np.sin(np.minimum(angles + np.pi / (4 * steps), np.pi / 2)) ** 2
        return np.clip((beta.cdf(edges, 31, 5) - low) / (high - low), 0, 1)

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
    with pytest.raises(ValueError, match=r"leaves no room for 4 states: it must be below 1 / 4"):
        tempering([2, 4], 0.25, Fraction(1), "add_remove")


def test_an_epsilon_below_what_floats_may_be_off_by_is_refused():
    tempered = (lambda e: tempering([2, 3, 1], 0.1, e, "replace_one"), lambda e: papers.tempering([2, 3, 1], 0.1, e))
    truncated = (
        lambda e: truncation([2, 3, 1], e, "replace_one"),
        lambda e: papers.truncation([2, 3, 1], e, "replace_one"),
    )
    for draw in (*tempered, *truncated):
        with pytest.raises(ValueError, match=r"epsilon=3e-08 is too small.*use at least 4e-08"):
            draw(Fraction("3e-8"))
    for draw in tempered:
        draw(Fraction("4e-8"))
    with pytest.raises(ValueError, match="too small"):  # more states are off by more
        truncation([64], Fraction("1e-6"), "add_remove")


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
        (lambda: data.release(papers.PrintedRows(FAMILIES, PRIOR, 0.3)), r"needs more than epsilon=4\.39"),
        (lambda: data.sample_posterior([("a",), ("a", "b")], PRIOR, 0.3), "different nodes"),
        (lambda: data.sample_posterior(FAMILIES, {("a",): np.ones(2)}, 0.3), "prior"),
        (lambda: data.sample_posterior(FAMILIES, PRIOR | {("a",): np.array([1.0, 0.0])}, 0.3), "positive"),
        (lambda: data.sample_posterior(FAMILIES, PRIOR | {PAIR: np.ones((2, 3))}, 0.3), r"shape \(3, 2\)"),
        (lambda: data.sample_posterior(FAMILIES, PRIOR | {PAIR: np.ones(6)}, 0.3), r"shape \(3, 2\)"),
        (lambda: data.sample_map(FAMILIES, PRIOR | {("a",): np.array(["1", "1"])}, 0.3), "numbers"),
        (lambda: data.sample_map(FAMILIES, PRIOR, 0.3, floor=0.4), "below 1 / 3"),
        (lambda: data.sample_map(FAMILIES, PRIOR, 0.3, floor=0.0), "floor"),
        *(
            (lambda w=w: data.sample_posterior(FAMILIES, PRIOR | {("a",): np.array([1.0, w])}, 0.3), "prior of")
            for w in (0.0, -1.0, math.nan, math.inf, 2.0**65)
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    assert data.budget.history == ()


def test_draws_from_opendp_are_private():
    assert dataset(noise=dp.privacy.OPENDP_NOISE).sample_posterior(FAMILIES, PRIOR, 1.0).guarantee.private
