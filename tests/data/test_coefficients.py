"""Coefficients: what a record moves is paid for exactly, and what cannot be drawn is refused unpaid."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pgmpy_dp as dp

SCHEMA = dp.Schema({"a": ["x", "y"], "b": ["p", "q", "r"], "c": ["u", "v", "w", "z"]})
RECORDS = list(itertools.product(*SCHEMA.states.values()))
CLIQUES = [("b", "a"), ("c", "b")]


class Noted:
    """No noise, and what it was asked for."""

    private = False

    def __init__(self):
        self.seen = []

    def discrete_laplace(self, counts, scale):
        self.seen.append((counts.tolist(), Fraction(scale)))
        return counts


def asked(records, relation, epsilon):
    noise = Noted()
    frame = pd.DataFrame(records, columns=list(SCHEMA.variables))
    dp.PrivateDataset(frame, SCHEMA, dp.PrivacyBudget(epsilon), relation, noise).measure_coefficients(CLIQUES, epsilon)
    return noise.seen


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("epsilon", [0.1, 3.7])
def test_no_record_costs_more_than_epsilon(relation, epsilon):
    """Sums of exact fractions, over all neighbours and without a tolerance; the worst is near."""
    found = [asked([RECORDS[0], record], relation, epsilon) for record in RECORDS]
    others = [asked([RECORDS[0]], relation, epsilon)] if relation == "add_remove" else found
    worst = Fraction(0)
    for one, other in itertools.product(found, others):
        assert [scale for _, scale in one] == [scale for _, scale in other]
        moved = (
            (abs(c - d), scale)
            for (values, scale), (own, _) in zip(one, other, strict=True)
            for c, d in zip(values, own, strict=True)
        )
        worst = max(worst, sum((change / scale for change, scale in moved), Fraction(0)))
    assert Fraction(str(epsilon)) * (1 - Fraction(1, 10**7)) < worst <= Fraction(str(epsilon))


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_noise_beyond_64_bits_is_refused_unpaid(relation):
    class Untouched(Noted):
        def discrete_laplace(self, counts, scale):
            raise AssertionError

    for epsilon, message in ((1e-14, "outside the range of 64-bit"), (0.0, "epsilon"), (float("nan"), "epsilon")):
        data = dp.PrivateDataset(np.zeros((2, 3), int), SCHEMA_OF_NUMBERS, dp.PrivacyBudget(1.0), relation, Untouched())
        with pytest.raises(ValueError, match=message):
            data.measure_coefficients(CLIQUES, epsilon)
        assert data.budget.history == ()


SCHEMA_OF_NUMBERS = dp.Schema({"a": [0, 1], "b": [0, 1, 2], "c": [0, 1, 2, 3]})


def test_variables_of_one_state_have_no_coefficients_beside_the_number_of_records():
    schema = dp.Schema({"a": ["only"], "b": ["alone"]})
    frame = pd.DataFrame({"a": ["only"] * 3, "b": ["alone"] * 3})
    for relation, expected in (("replace_one", []), ("add_remove", [[3]])):
        noise = Noted()
        data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(1.0), relation, noise)
        released = data.measure_coefficients([("a", "b")], 1.0)
        assert [counts for counts, _ in noise.seen] == expected
        assert len(released.values) == len(expected)
