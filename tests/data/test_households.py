"""Households behind the wall; tests/audit/test_households.py has their sensitivity."""

import pandas as pd
import pytest

import pgmpy_dp as dp

SCHEMA = dp.HouseholdSchema(dp.Schema({"h": ["x", "y"]}), dp.Schema({"a": ["x", "y"], "b": ["x", "y"]}), "key", 3)


def private(households=7, **options):
    homes = pd.DataFrame({"key": range(households), "h": "x"})
    people = pd.DataFrame({"key": range(households), "a": "x", "b": "y"})
    return dp.PrivateHouseholds(homes, people, SCHEMA, dp.PrivacyBudget(1.0), **options)


def test_what_is_shown_tells_nothing_of_the_records():
    assert repr(private(7)) == repr(private(4711))
    assert repr(private()).startswith("PrivateHouseholds(1 + 2 variables, key='key', neighbours='add_remove'")
    assert private().household_schema is SCHEMA


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [({"neighbours": "swap"}, ValueError, "neighbours"), ({"noise": dp.SimulatedNoise}, TypeError, "noise")],
)
def test_bad_input(options, error, match):
    with pytest.raises(error, match=match):
        private(**options)
    with pytest.raises(TypeError, match="HouseholdSchema"):
        dp.PrivateHouseholds(None, None, dp.Schema({"a": ["x", "y"]}), dp.PrivacyBudget(1.0))
