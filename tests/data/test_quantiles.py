"""Bins at private quantiles."""

from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare

from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.data.mechanisms.quantiles import edge_scores, score_sensitivity
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy import OPENDP_NOISE, PrivacyBudget, SimulatedNoise
from pgmpy_dp.privacy.noise import selection_scale
from pgmpy_dp.schema import Bins, Schema

FINE = Schema({"age": Bins(range(0, 101, 5)), "sex": ["f", "m"]}, missing={"age": "none"}, other={"age": "none"})


def people(budget, noise=OPENDP_NOISE, neighbours="add_remove", **unit):
    ages = [*np.linspace(0, 99, 1000) ** 2 / 99, 1e9, float("nan")]
    frame = pd.DataFrame({"age": ages, "sex": "f", "person": np.arange(len(ages)) // 3})
    return PrivateDataset(frame, FINE, budget, neighbours, noise, **unit)


@pytest.mark.parametrize("parts", [2, 3, 5])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("rows", [1, 2])
def test_sensitivity_by_brute_force(parts, neighbours, rows):
    # All ways in which a unit's rows lie in three bins and in the state of missing values, over one data set where
    # no score changes its sign.
    rest = np.array([40, 1, 20, 0])
    places = [np.bincount(cells, minlength=4) for n in range(rows + 1) for cells in product(range(4), repeat=n)]
    before = [np.zeros(4, dtype=int)] if neighbours == "add_remove" else places

    def scores(change):
        return np.array(list(edge_scores((rest + change)[:3], parts)))

    reached = np.array([abs(scores(new) - scores(old)) for new, old in product(places, before)]).max(axis=(0, 2))
    stated = [score_sensitivity(quantile, parts, neighbours, rows) for quantile in range(1, parts)]
    assert (reached <= stated).all()
    assert reached.max() == max(stated)


def as_stated(scores, scale):
    """Probabilities of the mechanism as McKenna and Sheldon (2020, Algorithm 1) state it."""
    accept = np.exp(-(scores - scores.min()) / scale)
    chances, orders = np.zeros(len(scores)), list(permutations(range(len(scores))))
    for order in orders:
        left = 1.0
        for candidate in order:
            chances[candidate] += left * accept[candidate] / len(orders)
            left *= 1 - accept[candidate]
    return chances


def test_draws_are_those_of_permute_and_flip():
    # A false alarm has probability 1e-6 each; at the doubled scale the test must fail.
    scores = np.array([5, 0, 3, 9], dtype=np.int64)
    simulated = SimulatedNoise(0)
    for draw in (OPENDP_NOISE.permute_and_flip, simulated.permute_and_flip):
        found = np.bincount([draw(scores, 4.0) for _ in range(3000)], minlength=4)
        assert chisquare(found, 3000 * as_stated(scores, 4.0)).pvalue > 1e-6
        assert chisquare(found, 3000 * as_stated(scores, 8.0)).pvalue < 1e-6


def test_permute_and_flip_keeps_its_epsilon():
    # All scores of three candidates, against all that differ by at most the sensitivity.
    sensitivity, epsilon = 1, 0.7
    scale = selection_scale(epsilon, sensitivity)
    worst = 0.0
    for scores in product(range(4), repeat=3):
        here = as_stated(np.array(scores), scale)
        for change in product((-1, 0, 1), repeat=3):
            there = as_stated(np.add(scores, change), scale)
            worst = max(worst, float(np.log(here / there).max()))
    assert 0.5 * epsilon < worst <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize("unit", [{}, {"unit": "person", "max_rows": 3}, {"unit": "person"}])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_edges_are_near_the_quantiles_and_paid_for(unit, neighbours):
    budget = PrivacyBudget(2e3)
    bins = people(budget, neighbours=neighbours, **unit).quantile_bins("age", 4, 1e3)
    # Quarters of u**2 / 99, u uniform on 0 to 99, lie at 6.2, 24.8 and 55.7: the fine edges next to them.
    assert bins.edges == (0.0, 5.0, 25.0, 55.0, 100.0)
    (charge,) = budget.history
    assert (charge.epsilon, charge.mechanism) == (1000, "permute_and_flip")


def test_where_quantiles_meet_there_are_fewer_bins():
    frame = pd.DataFrame({"age": [3.0] * 450 + [7.0] * 550})
    data = PrivateDataset(frame, Schema({"age": Bins([0, 5, 10, 100])}), PrivacyBudget(1e3))
    assert data.quantile_bins("age", 3, 1e3) == Bins([0, 5, 100])


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        *(((variable, 2, 0.5), SchemaError) for variable in ("sex", "weight")),
        *((("age", parts, 0.5), ValueError) for parts in (1, 21, True)),
    ],
)
def test_refusals_charge_and_draw_nothing(arguments, error):
    class Untouched(SimulatedNoise):
        def permute_and_flip(self, scores, scale):
            raise AssertionError

    budget = PrivacyBudget(1.0)
    with pytest.raises(error):
        people(budget, Untouched(0)).quantile_bins(*arguments)
    assert budget.history == ()


def test_simulated_bins_are_repeatable():
    once, again = (people(PrivacyBudget(1.0), SimulatedNoise(1)).quantile_bins("age", 4, 0.01) for _ in range(2))
    assert once == again
