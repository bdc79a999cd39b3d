"""Households with all of their persons: what one of them can change is what noise pays for.

By brute force over neighbours that differ in one household and all of its persons, with the draws of others' persons
held equal; and by audits of the real noise, which must catch bounds that are not kept. An audit's false alarm has
probability 1e-6.
"""

import itertools

import numpy as np
import pandas as pd
import pytest
from noises import Noted
from trials import Noise

import pgmpy_dp as dp
from pgmpy_dp.evaluation import audit
from pgmpy_dp.records.households import HouseholdRecords

HOME, PERSON = dp.Schema({"h": ["x", "y"]}), dp.Schema({"a": ["x", "y"], "b": ["x", "y", "z"]})
CLIQUES = [("h", "size"), ("h", "a"), ("a", "b"), ("a", "another b"), ("h", "a", "another a")]
RELATIONS = ("add_remove", "replace_one")
FIXED = [("p", "x", [("x", "x")]), ("q", "y", [("x", "y"), ("y", "z"), ("y", "z")])]
CELLS = [("x", "x"), ("x", "y"), ("y", "z")]
HOUSEHOLDS = [
    (home, list(rows))
    for home in "xy"
    for number in (1, 2, 3, 4)
    for rows in itertools.combinations_with_replacement(CELLS, number)
]
CONFIDENCE = 1 - 1e-6


def tables(households):
    """Two frames of (key, home, persons)."""
    homes = pd.DataFrame([(key, home) for key, home, _ in households], columns=["key", "h"])
    rows = [(key, *row) for key, _, persons in households for row in persons]
    return homes, pd.DataFrame(rows, columns=["key", "a", "b"])


def opened(households, relation, max_persons, noise):
    schema = dp.HouseholdSchema(HOME, PERSON, "key", max_persons)
    return dp.PrivateHouseholds(*tables(households), schema, dp.PrivacyBudget(1e9, 1e-6), relation, noise)


def released(households, relation, max_persons):
    """All cells in units of the noise's scale, Laplace and Gaussian, and rho."""
    data = opened(households, relation, max_persons, Noted())
    pure = data.measure(CLIQUES, 0.7, weights=range(1, 6))
    gaussian = data.measure(CLIQUES, 0.7, delta=1e-6, mechanism="gaussian", weights=range(1, 6))
    cells = (np.concatenate([n.tables[c].ravel() / n.scales[c] for c in CLIQUES]) for n in (pure, gaussian))
    return *cells, gaussian.guarantee.rho


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("max_persons", [1, 3])
def test_the_noise_of_a_release_pays_for_every_household(relation, max_persons):
    found = [released([*FIXED, ("one", *own)], relation, max_persons) for own in HOUSEHOLDS]
    without = [released(FIXED, relation, max_persons)] if relation == "add_remove" else found
    pure, squares = 0.0, 0.0
    for one, other in itertools.product(found, without):
        pure = max(pure, abs(one[0] - other[0]).sum())
        squares = max(squares, ((one[1] - other[1]) ** 2).sum())
    for worst, claim in ((pure, 0.7), (squares / 2, found[0][2])):
        assert claim * (1 - 1e-5) <= worst <= claim * (1 + 1e-12)


def test_a_household_is_counted_by_itself():
    """Tables of all households together are the sum of those of each alone, in whatever order records come."""
    every = [(f"k{number}", *own) for number, own in enumerate(HOUSEHOLDS) if len(own[1]) <= 3]
    schema = dp.HouseholdSchema(HOME, PERSON, "key", 3)
    cliques = schema.measured.require([*CLIQUES, ("size",), ("a",), ("another a", "another b")])

    def counts(households, order=None):
        homes, people = tables(households)
        if order is not None:
            homes, people = (t.iloc[order.permutation(len(t))] for t in (homes, people))
        return dp.PrivateHouseholds(homes, people, schema, dp.PrivacyBudget(1.0))._records.counts(cliques)

    together, mixed = counts(every), counts(every, np.random.default_rng(0))
    alone = [counts([own]) for own in every]
    for clique in cliques:
        assert (together[clique] == mixed[clique]).all()
        assert (together[clique] == sum(own[clique] for own in alone)).all()
        assert all(2**20 - 6 <= own[clique].sum() <= 2**20 for own in alone)


TWELVE = ("one", "x", [("x", "x")] * 12)


@pytest.fixture
def audited():
    """A household of twelve persons who are alike, more or less, or in the place of one of twelve others."""

    def run(cliques, relation):
        without = FIXED if relation == "add_remove" else [*FIXED, ("one", "y", [("y", "z")] * 12)]
        pair = tuple(opened(own, relation, 12, Noise()) for own in (without, [*FIXED, TWELVE]))
        return audit(lambda data: data.measure(cliques, 1.0), pair, 1.0, trials=200, confidence=CONFIDENCE)

    return run


WEIGHED = HouseholdRecords._weighed


def of_one_person(self, cliques, first, second, weights):
    """Every person counts for one, and noise is that of one person."""
    return WEIGHED(self, cliques, first, second, np.full_like(weights, 2**20))


def of_one_person_in_pairs(self, cliques, first, second, weights):
    """Pairs of K persons weigh 1 / K each: one for every person."""
    return WEIGHED(self, cliques, first, second, 2**20 // self._sizes[first])


@pytest.mark.parametrize(
    ("bug", "cliques"),
    [(of_one_person, [("a", "b")]), (of_one_person_in_pairs, [("a", "another a")])],
    ids=lambda case: getattr(case, "__name__", ""),
)
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_household_that_counts_for_more_is_caught(bug, cliques, relation, audited, monkeypatch):
    assert not audited(cliques, relation).refuted
    monkeypatch.setattr(HouseholdRecords, "_weighed", bug)
    result = audited(cliques, relation)
    assert result.refuted, result
