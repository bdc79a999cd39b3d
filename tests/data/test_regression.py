"""Regressions: what their price needs is asked for before anything is charged."""

from __future__ import annotations

import pandas as pd
import pytest

import pgmpy_dp as dp

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
        ({"epsilon": 0.0}, ValueError, "epsilon"),
        ({"draws": 0}, ValueError, "draws"),
        ({"std": {"age": 1e-9, "income": 900.0}, "epsilon": 1e7}, ValueError, "tries"),
    ],
)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_what_cannot_be_priced_is_refused_unpaid(change, error, match, neighbours):
    data = dp.PrivateDataset(RECORDS, SCHEMA, dp.PrivacyBudget(1e9), neighbours)
    if "std" in change and neighbours == "replace_one" and change["std"]["age"] == 1e-9:
        pytest.skip("few records, whose number is public, are few tries")
    with pytest.raises(error, match=match):
        data.sample_regressions(**ASKED | change)
    assert data.budget.history == ()
