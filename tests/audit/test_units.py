"""Units of several rows and private quantiles, as whole releases: what one person can change is what noise pays for.

By brute force over neighbours that differ in all rows of one person, with the draws of rows that persons share held
equal; and by audits of the real noise, which must catch a bound that is not kept. An audit's false alarm has
probability 1e-6.
"""

import itertools
from functools import cache

import numpy as np
import pandas as pd
import pytest
from trials import Noise

import pgmpy_dp as dp
from pgmpy_dp.evaluation import audit

pytestmark = pytest.mark.full

SCHEMA = dp.Schema({"a": ["x", "y"], "b": dp.Bins([0, 1, 2, 3, 4])}, other={"b": "other"})
CLIQUES = [("a", "b"), ("b",)]
RELATIONS = ("add_remove", "replace_one")
BOUNDS = (1, 2, None)
FIXED = [("x", 0.5), ("y", 2.5), ("y", 3.5)]  # the rows of another person
CELLS = [("x", 0.5), ("y", 1.5), ("x", 3.5), ("y", 9.0)]  # what a row of the person in question may say
PERSONS = [rows for number in (1, 2, 3) for rows in itertools.combinations_with_replacement(CELLS, number)]
CONFIDENCE = 1 - 1e-6


class Silent:
    """No noise; rows drawn in a given order; choices noted and then the first taken."""

    private = False

    def __init__(self, order=(0, 1, 2)):
        self.order, self.choices = order, []

    def keys(self, size):
        return np.array([5, 6, 7, *self.order][:size], dtype=np.uint64)

    def coins(self, rate, size):
        return np.zeros(size, dtype=np.bool_)

    def permute_and_flip(self, scores, scale):
        self.choices.append((scores, scale))
        return 0


def opened(rows, relation, max_rows, noise, delta=0.0):
    """Records of two persons: one with the FIXED rows, one with these."""
    records = [*(("p", *row) for row in FIXED), *(("q", *row) for row in rows)]
    frame = pd.DataFrame(records, columns=["who", "a", "b"])
    budget = dp.PrivacyBudget(1e9, delta)
    return dp.PrivateDataset(frame, SCHEMA, budget, relation, noise, unit="who", max_rows=max_rows)


def orders(rows, max_rows):
    return [(0, 1, 2), (1, 2, 0), (2, 0, 1)] if max_rows and len(rows) > max_rows else [(0, 1, 2)]


def neighbouring(outcomes, relation):
    """Pairs of what the person's rows lead to: with and without them, or with these and with those."""
    without = outcomes[()] if relation == "add_remove" else [o for rows in PERSONS for o in outcomes[rows]]
    return itertools.product([o for rows in PERSONS for o in outcomes[rows]], without)


def every(relation, max_rows, outcome):
    """Outcome of each choice of the person's rows, in all orders of drawing them."""
    return {
        rows: [outcome(opened(rows, relation, max_rows, Silent(order), 1e-6)) for order in orders(rows, max_rows)]
        for rows in [(), *PERSONS]
    }


@cache
def chances(scores, scale):
    """Probabilities of permute-and-flip (McKenna and Sheldon 2020, Algorithm 1)."""
    accept = np.exp(-(np.array(scores) - min(scores)) / scale)
    found = np.zeros(len(scores))
    for order in (all_orders := list(itertools.permutations(range(len(scores))))):
        left = 1.0
        for candidate in order:
            found[candidate] += left * accept[candidate] / len(all_orders)
            left *= 1 - accept[candidate]
    return found


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("max_rows", BOUNDS)
def test_quantiles_pay_for_every_person(relation, max_rows):
    """The largest log-ratio of probabilities over all outcomes of both edges, which are drawn independently."""

    def loss(data):
        data.quantile_bins("b", 3, 0.7)
        return tuple((tuple(scores.tolist()), scale) for scores, scale in data._noise.choices)

    outcomes = every(relation, max_rows, loss)
    worst = max(
        sum(np.log(chances(*x) / chances(*y)).max() for x, y in zip(one, other, strict=True))
        for one, other in set(neighbouring(outcomes, relation))
    )
    assert 0.2 * 0.7 < worst <= 0.7 * (1 + 1e-9)


@pytest.fixture
def audited():
    """Three rows of a person more or less; nobody has more than three, so that none are drawn."""

    def run(release, max_rows, epsilon, trials):
        pair = tuple(opened(rows, "add_remove", max_rows, Noise()) for rows in ((), (("x", 3.5),) * 3))
        return audit(release, pair, epsilon, trials=trials, confidence=CONFIDENCE)

    return run


def table(data):
    return data.measure(CLIQUES[:1], 2.0)


@pytest.mark.parametrize("max_rows", [3, None])
def test_releases_of_persons_stay_below_their_claims(audited, max_rows):
    result = audited(table, max_rows, 2.0, 600)
    assert not result.refuted, result
    assert result.epsilon_lower > 0.5, result


def test_quantiles_of_persons_stay_below_their_claims(audited):
    result = audited(lambda data: data.quantile_bins("b", 2, 8.0).edges, 3, 8.0, 400)
    assert not result.refuted, result
    assert result.epsilon_lower > 0.2, result


def test_a_bound_on_rows_that_is_not_kept_is_caught(audited):
    """Three rows of a person counted, noise for one."""

    def release(data):
        data._unit = None
        return table(data)

    result = audited(release, 3, 2.0, 600)
    assert result.refuted, result


def test_weights_that_do_not_sum_to_one_are_caught(audited, monkeypatch):
    """Each row of full weight."""
    monkeypatch.setattr("pgmpy_dp.records.memory.row_weights", lambda labels: np.full(labels.size, 2**20))
    result = audited(table, None, 2.0, 600)
    assert result.refuted, result
