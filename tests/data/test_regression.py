"""Regressions: what a record moves is paid for, and what a price needs is asked for before anything is charged."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare

import pgmpy_dp as dp
from pgmpy_dp.data.mechanisms import regression
from pgmpy_dp.data.mechanisms.regression import draw_in_ball
from pgmpy_dp.privacy import OPENDP_NOISE, SimulatedNoise

SCHEMA = dp.Schema({"sex": ["f", "m"]}, bounds={"age": (0, 100), "income": (0, 5000)})
RECORDS = pd.DataFrame({"sex": ["f", "m"], "age": [30.0, 50.0], "income": [1000.0, 3000.0]})
ASKED = {
    "families": [("age",), ("income", "age")],
    "std": {"age": 25.0, "income": 900.0},
    "coefficient_bound": {"age": 2.0, "income": 2.0},
    "epsilon": 1.0,
}


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"families": [("sex",)]}, dp.SchemaError, "'sex' has no bounds"),
        ({"families": [("income", "sex")]}, dp.SchemaError, "'sex' has no bounds"),
        ({"families": [("age",), ("age", "income")]}, ValueError, "different nodes"),
        ({"std": {"age": 25.0}}, ValueError, "std has no number for 'income'"),
        ({"coefficient_bound": {"income": 2.0}}, ValueError, "coefficient_bound has no number for 'age'"),
        ({"std": {"age": 25.0, "income": 0.0}}, ValueError, "std of 'income'"),
        ({"coefficient_bound": {"age": -1.0, "income": 2.0}}, ValueError, "coefficient_bound of 'age'"),
        ({"prior_precision": 0.0}, ValueError, "prior_precision"),
        ({"draws": 0}, ValueError, "draws"),
    ],
)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_what_cannot_be_priced_is_refused_unpaid(change, error, match, neighbours):
    data = dp.PrivateDataset(RECORDS, SCHEMA, dp.PrivacyBudget(1e9), neighbours)
    with pytest.raises(error, match=match):
        data.sample_regressions(**ASKED | change)
    assert data.budget.history == ()


def test_draws_that_could_take_too_many_tries_are_refused_whatever_the_records_are():
    data = dp.PrivateDataset(RECORDS, SCHEMA, dp.PrivacyBudget(1e9))
    with pytest.raises(ValueError, match="tries"):
        data.sample_regressions(**ASKED | {"std": {"age": 1e-9, "income": 900.0}, "epsilon": 1e7})
    assert data.budget.history == ()


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_no_record_moves_a_posterior_by_more_than_is_charged(neighbours, monkeypatch):
    """The range of what a record adds to the log-density over the ball, in exact fractions at many of its points."""
    seen = []
    monkeypatch.setattr(regression, "draw_in_ball", lambda *given: seen.append(given[:2]) or (0,) * len(given[1]))
    corners = list(itertools.product((0.0, 50.0, 100.0), (0.0, 2500.0, 5000.0)))

    def posteriors(rows):
        frame = pd.DataFrame([*([(20.0, 4000.0)] * 3), *rows], columns=["age", "income"]).assign(sex="f")
        data = dp.PrivateDataset(frame, SCHEMA, dp.PrivacyBudget(1e9), neighbours)
        seen.clear()
        released = data.sample_regressions(**ASKED)
        return list(seen), data.budget.history[0], released

    rng = np.random.default_rng(0)
    points = {size: rng.normal(size=(100, size)) for size in (1, 2)}
    points = {
        size: [[Fraction(x) for x in p / max(np.linalg.norm(p), 1e-300) * (1 - 1e-12)] for p in some]
        + [[Fraction(0)] * size]
        for size, some in points.items()
    }

    def log_density(posterior, point):
        square, linear = posterior
        bent = sum(a * b * s for a, row in zip(point, square, strict=True) for b, s in zip(point, row, strict=True))
        return sum(a * b for a, b in zip(point, linear, strict=True)) - bent / 2

    found = [posteriors([row]) for row in corners]
    before = [posteriors([])] if neighbours == "add_remove" else found
    values = {
        id(each): [[log_density(p, point) for point in points[len(p[1])]] for p in each[0]]
        for each in [*found, *before]
    }
    worst = Fraction(0)
    for one, other in itertools.product(found, before):
        loss = Fraction(0)
        for mine, others in zip(values[id(one)], values[id(other)], strict=True):
            change = [a - b for a, b in zip(mine, others, strict=True)]
            loss += max(change) - min(change)
        worst = max(worst, loss)
    charge = found[0][1]
    assert Fraction(7, 10) * charge.epsilon < worst <= charge.epsilon <= 1


# A, g: the centre inside, far outside, a flat density, and a long valley that leaves the regression.
CASES = {
    "inside": ([[6, 2], [2, 5]], [2, -1]),
    "outside": ([[6, 2], [2, 5]], [15, -6]),
    "flat": ([["1/100", 0], [0, "1/100"]], [0, 0]),
    "valley": ([[10, 9], [9, 10]], [12, 9]),
    "one": ([[3]], [9]),
    "three": ([[4, 1, 0], [1, 3, 1], [0, 1, 2]], [3, 3, -5]),
}


def exact(square, linear):
    return [[Fraction(entry) for entry in row] for row in square], [Fraction(entry) for entry in linear]


def distribution(square, linear, steps):
    """The definition itself."""
    points = [
        t for t in itertools.product(range(-steps, steps + 1), repeat=len(linear)) if sum(x**2 for x in t) <= steps**2
    ]
    s = np.array(points) / steps
    a, g = np.array([[float(x) for x in row] for row in square]), np.array([float(x) for x in linear])
    weights = np.exp(-0.5 * np.einsum("ni,ij,nj->n", s, a, s) + s @ g)
    return points, weights / weights.sum()


@pytest.mark.parametrize("case", CASES)
def test_draws_have_exactly_the_stated_distribution(case, monkeypatch):
    """Chi-square at 1e-7; half the linear part is the planted bug. No acceptance is ever above 1."""
    exponents = []
    coin = regression.exponential_coin
    monkeypatch.setattr(regression, "exponential_coin", lambda e, below: exponents.append(e) or coin(e, below))
    (square, linear), steps, size = exact(*CASES[case]), 6 if case == "three" else 12, 600
    noise = SimulatedNoise(7)
    drawn = [tuple(draw_in_ball(square, linear, steps, noise)) for _ in range(size)]
    assert min(exponents) >= 0
    points, expected = distribution(square, linear, steps)
    assert set(drawn) <= set(points)

    def p_value(probabilities):
        seen = np.array([drawn.count(point) for point in points], dtype=float)
        order = np.argsort(probabilities)
        groups = np.cumsum(probabilities[order]) * size // 25
        pooled = [np.bincount(groups.astype(int), x[order]) for x in (seen, size * probabilities)]
        filled = pooled[1] > 0
        return chisquare(pooled[0][filled], pooled[1][filled]).pvalue

    assert p_value(expected) > 1e-7
    if max(linear) > 5:
        assert p_value(distribution(square, [x / 2 for x in linear], steps)[1]) < 1e-7


def test_acceptance_is_computed_from_the_exact_densities():
    """Of the target, and of the proposals: a few hundred draws would not show an error of a third in either."""
    (square, linear), point = exact(*CASES["three"]), [3, -2, 5]
    s = [Fraction(place, 6) for place in point]
    quadratic = sum(
        one * entry * other for one, row in zip(s, square, strict=True) for entry, other in zip(row, s, strict=True)
    )
    assert regression._energy(square, linear, 6)(point) == quadratic / 2 - sum(map(Fraction.__mul__, linear, s))
    assert regression._proposed([1.5, 0.7])([3, -2]) == 9 / (2 * Fraction(1.5) ** 2) + 4 / (2 * Fraction(0.7) ** 2)


def test_private_draws_come_from_opendp():
    square, linear = exact(*CASES["outside"])
    drawn = np.array([draw_in_ball(square, linear, 2**20, OPENDP_NOISE) for _ in range(60)]) / 2**20
    assert (np.linalg.norm(drawn, axis=1) <= 1).all()
    assert drawn[:, 0].mean() > 0.7


class Counted(SimulatedNoise):
    proposed = 0

    def discrete_gaussian(self, counts, scale):
        self.proposed += counts.size
        return super().discrete_gaussian(counts, scale)


@pytest.mark.parametrize("size", [1, 6])
@pytest.mark.parametrize("pull", [0, 1000])
def test_tries_do_not_depend_on_how_unlikely_the_ball_is(size, pull):
    """Where the centre is far away, nearly every proposal is still near the regression. Simulated and repeatable."""
    square = [[Fraction(20 * (i == j) + 10) for j in range(size)] for i in range(size)]
    linear = [Fraction(pull)] * size
    noise = Counted(1)
    draws = 5
    norms = [math.hypot(*draw_in_ball(square, linear, 2**16, noise)) / 2**16 for _ in range(draws)]
    assert max(norms) <= 1
    tilt = size + pull * math.sqrt(size)
    assert noise.proposed / size / draws < 16 + 3 * math.sqrt(math.pi * (size + 2 * tilt))
