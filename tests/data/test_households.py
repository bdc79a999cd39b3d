"""Households behind the wall; tests/audit/test_households.py has their sensitivity."""

import copy
import itertools
import pickle
from fractions import Fraction

import pandas as pd
import pytest
from noises import Noted

import pgmpy_dp as dp

SCHEMA = dp.HouseholdSchema(dp.Schema({"h": ["x", "y"]}), dp.Schema({"a": ["x", "y"], "b": ["x", "y"]}), "key", 3)


def private(households=7, **options):
    homes = pd.DataFrame({"key": range(households), "h": "x"})
    people = pd.DataFrame({"key": range(households), "a": "x", "b": "y"})
    return dp.PrivateHouseholds(homes, people, SCHEMA, dp.PrivacyBudget(1.0), **options)


PERSONS = [("x", "x"), ("x", "y"), ("y", "y")]
CLIQUES = [("h", "size"), ("h", "a", "b"), ("a", "another a"), ("b", "another a", "h")]


def measured(one, relation):
    """What a household leads to beside two others, each (home, its persons)."""
    noise, every = Noted(), [("x", PERSONS), ("y", PERSONS[:1] * 2), *([] if one is None else [one])]
    homes = pd.DataFrame([(key, home) for key, (home, _) in enumerate(every)], columns=["key", "h"])
    rows = [(key, *person) for key, (_, persons) in enumerate(every) for person in persons]
    people = pd.DataFrame(rows, columns=["key", "a", "b"])
    data = dp.PrivateHouseholds(homes, people, SCHEMA, dp.PrivacyBudget(1.0), relation, noise)
    data.measure(CLIQUES, 0.7, weights=[1, 2, 3, 4])
    return noise.seen


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_no_household_costs_more_than_is_charged(relation):
    """In exact fractions, households of up to five persons, of whom three count."""
    ones = [
        (home, list(persons))
        for home in "xy"
        for number in (1, 2, 5)
        for persons in itertools.combinations_with_replacement(PERSONS[::2], number)
    ]
    found = [measured(one, relation) for one in ones]
    worst = max(
        sum(
            abs(Fraction(n - m)) / scale
            for (values, scale), (others, _) in zip(one, other, strict=True)
            for n, m in zip(values, others, strict=True)
        )
        for one in found
        for other in ([measured(None, relation)] if relation == "add_remove" else found[:: len(found) // 5])
    )
    assert Fraction(7, 10) * (1 - Fraction(1, 10**5)) < worst <= Fraction(7, 10)


def test_what_is_shown_tells_nothing_of_the_records():
    assert repr(private(7)) == repr(private(4711))
    assert repr(private()).startswith("PrivateHouseholds(1 + 2 variables, key='key', neighbours='add_remove'")
    assert private().household_schema is SCHEMA


def test_households_stay_where_they_are():
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="copied"):
            duplicate(private())


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [({"neighbours": "swap"}, ValueError, "neighbours"), ({"noise": dp.SimulatedNoise}, TypeError, "noise")],
)
def test_bad_input(options, error, match):
    with pytest.raises(error, match=match):
        private(**options)
    with pytest.raises(TypeError, match="HouseholdSchema"):
        dp.PrivateHouseholds(None, None, dp.Schema({"a": ["x", "y"]}), dp.PrivacyBudget(1.0))
