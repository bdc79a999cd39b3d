"""The cost of a regression drawn from its truncated posterior, against all neighbours of small data."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from pgmpy_dp.data.mechanisms.regression import MAX_TRIES, expected_tries, grid_steps, temper
from pgmpy_dp.papers import zhang_2016 as papers

CORNERS = [np.array(row) for row in itertools.product([-1.0, 0.0, 1.0], repeat=2)]  # y, x


def largest_ratio(regression, neighbours):
    """Largest log ratio of densities at a point of the ball, over all neighbours of up to three records."""
    angles = np.linspace(0, 2 * math.pi, 24, endpoint=False)
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    radii = regression.bound * np.linspace(0, 1, 6)[1:]
    points = np.concatenate([[[0.0, 0.0]], *(radius * directions for radius in radii)])
    residuals = np.array([[y - theta @ [1.0, x] for theta in points] for y, x in CORNERS])
    losses = -regression.precision / 2 * residuals**2
    prior = -regression.prior_precision / 2 * (points**2).sum(axis=1)

    def log_density(records):
        logs = prior + losses[list(records)].sum(axis=0)
        return logs - np.logaddexp.reduce(logs)

    worst = 0.0
    for size in (0, 1, 2):
        for records in itertools.combinations_with_replacement(range(len(CORNERS)), size):
            added = [log_density((*records, new)) for new in range(len(CORNERS))]
            pairs = (
                [(log_density(records), one) for one in added]
                if neighbours == "add_remove"
                else itertools.combinations(added, 2)
            )
            worst = max([worst, *(np.abs(one - other).max() for one, other in pairs)])
    return worst


@pytest.mark.parametrize("paper", [False, True])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("bound", [0.3, 1.0, 4.0])
def test_no_neighbour_is_told_apart_by_more_than_the_cost(bound, neighbours, paper):
    for epsilon in (Fraction(1, 2), Fraction(5)):
        regression = (papers.temper if paper else temper)(1, bound, 100.0, 1.0, epsilon, neighbours)
        worst = largest_ratio(regression, neighbours)
        assert worst <= regression.cost <= epsilon
        assert paper == (regression.cost < epsilon * Fraction(3, 4))


def test_the_cost_of_replacing_is_no_smaller_than_it_must_be():
    """The cost of adding a record, as the planted bug, is too little where one is replaced."""
    regression = temper(1, 1.0, 100.0, 1.0, Fraction(20), "replace_one")
    assert largest_ratio(regression, "replace_one") > 0.6 * regression.cost
    lax = temper(1, 1.0, 100.0, 1.0, Fraction(20), "add_remove")
    assert largest_ratio(lax, "replace_one") > lax.cost


def test_untempered_posteriors_cost_what_the_likelihood_varies():
    """Unit bounds, B = 1: 4 where a record is replaced; the paper's (1 + 10 / sqrt(b))**2 = 121 at b = 1."""
    for bound, cost in ((1.0, 4.0), (10.0, 121.0)):
        regression = temper(0, bound, 1.0, 1.0, Fraction(1000), "replace_one")
        assert (regression.power, float(regression.cost)) == (1.0, pytest.approx(cost, rel=1e-12))
    printed = papers.temper(0, 1.0, 1.0, 1.0, Fraction(1), "replace_one")
    assert printed.power == pytest.approx(1 / (2 * 2 * math.sqrt(2)))


def test_grids_are_public_and_fine():
    for records in (0, 10**3, 2**31):
        regression = temper(3, 2.0, 4.0, 1.0, Fraction(1), "add_remove")
        steps = grid_steps(regression, records)
        assert steps & (steps - 1) == 0
        assert steps / math.sqrt(4 * regression.precision * records + 4) >= 2**12
        assert expected_tries(regression, records) < MAX_TRIES
