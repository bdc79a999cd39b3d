"""What every mechanism costs, by brute force: over all neighbours of small data, what changes before the noise is added
is paid for by the noise's scale. Whole calls are made, so encoding, bounding, sampling and counting are walked as well.

Draws from posteriors add no noise; tests/data/test_posterior.py has their exact odds.
"""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from noises import Noted

from pgmpy_dp.data.mechanisms import contrasts, partition_selection, quantiles, selection, tables
from pgmpy_dp.privacy import PrivacyBudget, blocks, calibrate
from pgmpy_dp.privacy.blocks import block_price, discrete_gaussian_epsilon
from pgmpy_dp.privacy.sequences import sequence_epsilon
from pgmpy_dp.privacy.subsampling import epsilon_on_sample
from pgmpy_dp.release import coefficients as released

EPSILON = 0.75
DELTA = 0.1  # of the mechanisms in conftest.py
# One of each cell of (v, w), in all bins of n. The states of v and w alone decide over a record's place.
ROWS = [("x", "x", 0.5), ("x", "y", 1.5), ("y", "x", 1.5), ("y", "y", 2.5)]
REAL = ("fourier_sensitivity", "residual_sensitivity")  # the others are whole numbers
REST = [("x", "x", 0.5)] * 3 + [("y", "y", 2.5)]  # more below the first edge than above: no score changes its sign


def frame(records):
    """Rows of (v, w, n, person)."""
    made = pd.DataFrame(records, columns=["v", "w", "n", "person"])
    return made.astype({"v": "str", "w": "str", "n": "float64", "person": "int64"})


def data_sets(mechanism):
    """What one record, or all rows of one person, may be; each completed to a data set by the same others."""
    others = [(*row, person) for person, row in enumerate(REST)]
    maximum = 3 if "unit" in mechanism.unit else 1
    units = [rows for number in range(1, maximum + 1) for rows in itertools.combinations_with_replacement(ROWS, number)]
    return frame(others), [frame([*others, *((*row, 99) for row in rows)]) for rows in units]


def seen(mechanism, records):
    noise = Noted(private=True)
    budget = PrivacyBudget(1.0, mechanism.delta)
    # What a second stage costs is asked after one and the same first answer.
    same = {"wanted": lambda first: True} if mechanism.name == "stages" else {}
    mechanism.call(mechanism.data(records, noise, budget), EPSILON, **same)
    seen = [(kind, np.array(values, dtype=float), scale) for kind, values, scale in noise.seen]
    return seen, replace(budget.history[0], id="", holder=None)  # the names are random


def loss(one, other):
    """Privacy loss of what two data sets hand to the noise: epsilon, or rho for Gaussian noise."""
    total = 0.0
    assert [(kind, scale, values.shape) for kind, values, scale in one] == [
        (kind, scale, values.shape) for kind, values, scale in other
    ]
    for (kind, values, scale), (_, others, _) in zip(one, other, strict=True):
        change = np.abs(values - others)
        if kind == "laplace":
            total += change.sum() / scale
        elif kind == "gaussian":
            total += (change**2).sum() / (2 * scale**2)
        elif kind == "exponential":
            total += (2 * change.max() / scale) ** 2 / 8
        else:
            total += 2 * change.max() / scale
    return total


def test_no_neighbour_costs_more_than_is_charged(mechanism):
    if mechanism.draws:
        pytest.skip("draws add no noise")
    without, units = data_sets(mechanism)
    found = [seen(mechanism, records) for records in units]
    charge = found[0][1]
    assert all(own == charge for _, own in found)
    before = [seen(mechanism, without)[0]] if mechanism.relation == "add_remove" else [own for own, _ in found]
    worst = max(loss(one, other) for one, _ in found for other in before)
    paid = charge.rho or float(charge.epsilon)
    if mechanism.name == "gaussian block":
        # No neighbour moves more counts than are priced, each by 1; tests/privacy/test_blocks.py sums that price up.
        counts = 2 if mechanism.relation == "replace_one" else 1
        paid = sum(counts / (2 * scale**2) for _, _, scale in found[0][0])
        calls = [(one, other) for one, _ in found for other in before]
        moved = [np.abs(v - w) for pair in calls for (_, v, _), (_, w, _) in zip(*pair, strict=True)]
        assert max(change.sum() for change in moved) == counts
        assert max(change.max() for change in moved) == 1
        assert block_price([scale for _, _, scale in found[0][0]], DELTA, mechanism.relation) <= float(charge.epsilon)
    if mechanism.name in ("steps", "stages", "stages of groups"):  # tests/privacy/test_sequences.py sums that price up
        counts = 2 if mechanism.relation == "replace_one" else 1
        paid, parts = 0.0, []
        for number, (kind, _, scale) in enumerate(found[0][0]):
            if kind == "exponential":
                parts.append(((counts * selection._GRID / scale) ** 2 / 2, 1))
                paid += parts[-1][0]
            else:  # one call for all tables of a scale, in each of which a neighbour moves so many counts by 1
                moved = [np.abs(one[number][1] - other[number][1]) for one, _ in found for other in before]
                assert max(change.max() for change in moved) == 1
                tables_of_scale = round(max(change.sum() for change in moved) / counts)
                parts += [(counts / (2 * (scale**2 - 2.0)), 0)] * tables_of_scale
                paid += tables_of_scale * counts / (2 * scale**2)
        assert sequence_epsilon(parts, DELTA) <= float(charge.epsilon)
    if mechanism.name == "residuals":  # tests/privacy/test_blocks.py sums that price up
        paid, minimum = worst, min(scale for _, _, scale in found[0][0])
        costs = discrete_gaussian_epsilon(2 * worst, minimum, DELTA)
        assert 0.98 * float(charge.epsilon) <= costs <= float(charge.epsilon)
    if mechanism.name == "sample":
        paid = float(epsilon_on_sample(EPSILON, 0.5))
    if mechanism.name.startswith("sums"):  # steps, each of a sum whose noise is this many times its sensitivity
        added = mechanism.relation == "add_remove"
        plan = {"sampling": "poisson" if added else "without_replacement", "sampling_rate": 0.5 if added else 0.2}
        steps = 1 if mechanism.name == "sums of moments" else 2
        paid = steps / (2 * calibrate(EPSILON, mechanism.delta, steps=steps, **plan) ** 2)
    assert worst <= paid * (1 + 1e-9)
    # No noise is wasted either. Two states do not reach the worst moments; tests/data/test_integer_sums.py does.
    assert worst >= paid * (0.8 if mechanism.name == "sums of moments" else 0.98)


@pytest.mark.parametrize(
    ("name", "room", "sensitivity"),
    [
        ("laplace", tables, "table_sensitivity"),
        ("gaussian", tables, "table_sensitivity"),
        ("gaussian block", blocks, "table_sensitivity"),
        ("stages", tables, "table_sensitivity"),
        ("persons of two rows", tables, "table_sensitivity"),
        ("survey weights", tables, "table_sensitivity"),
        ("coefficients", contrasts, "fourier_sensitivity"),
        ("residuals", released, "residual_sensitivity"),
        ("quantiles", quantiles, "score_sensitivity"),
        ("selection", selection, "table_sensitivity"),
        ("pure selection", selection, "table_sensitivity"),
        ("partition selection", partition_selection, "table_sensitivity"),
        ("steps", tables, "table_sensitivity"),
        ("steps", selection, "table_sensitivity"),
    ],
)
def test_a_halved_sensitivity_is_caught(name, room, sensitivity, mechanisms, monkeypatch):
    right = getattr(room, sensitivity)
    monkeypatch.setattr(
        room, sensitivity, lambda *given: right(*given) / 2 if sensitivity in REAL else right(*given) // 2
    )
    (mechanism,) = (m for m in mechanisms if (m.name, m.relation) == (name, "replace_one"))
    with pytest.raises((AssertionError, ValueError), match=r"costs|assert"):  # releases of tables check it themselves
        test_no_neighbour_costs_more_than_is_charged(mechanism)
