"""Draws in a ball: the exact distribution, on coarse grids where it can be enumerated."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from pgmpy_dp.privacy import OPENDP_NOISE, SimulatedNoise, ball
from pgmpy_dp.privacy.ball import draw_in_ball

# A, g: the centre inside, far outside, a flat density, and a long valley that leaves the ball.
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
    coin = ball.exponential_coin
    monkeypatch.setattr(ball, "exponential_coin", lambda e, below: exponents.append(e) or coin(e, below))
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
    assert ball._energy(square, linear, 6)(point) == quadratic / 2 - sum(map(Fraction.__mul__, linear, s))
    assert ball._proposed([1.5, 0.7])([3, -2]) == 9 / (2 * Fraction(1.5) ** 2) + 4 / (2 * Fraction(0.7) ** 2)


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
    """Where the centre is far away, nearly every proposal is still near the ball. Simulated and repeatable."""
    square = [[Fraction(20 * (i == j) + 10) for j in range(size)] for i in range(size)]
    linear = [Fraction(pull)] * size
    noise = Counted(1)
    draws = 5
    norms = [math.hypot(*draw_in_ball(square, linear, 2**16, noise)) / 2**16 for _ in range(draws)]
    assert max(norms) <= 1
    tilt = size + pull * math.sqrt(size)
    assert noise.proposed / size / draws < 16 + 3 * math.sqrt(math.pi * (size + 2 * tilt))
