"""Bins at private quantiles."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.data.mechanisms.quantiles import edge_scores, score_sensitivity
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy import OPENDP_NOISE, PrivacyBudget, SimulatedNoise
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
