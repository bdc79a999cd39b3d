"""Survey weights, as whole releases: whatever a record weighs, noise pays for it.

By brute force over neighbours whose record in question has any of some weights, among them those that are no weights;
and by an audit that must catch weights that are not clipped, whose false alarm has probability 1e-6.
"""

import itertools
import math
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from noises import Noted
from trials import Noise

import pgmpy_dp as dp
from pgmpy_dp.evaluation import audit
from pgmpy_dp.privacy.noise import UNIT_WEIGHT
from pgmpy_dp.records.weights import Weights

SCHEMA = dp.Schema({"a": ["x", "y"], "b": dp.Bins([0, 1, 2, 3, 4])}, other={"b": "other"})
CLIQUES = [("a", "b"), ("b",)]
LARGEST = 8.0
ODD = [None, math.nan, -1.0, -math.inf, "8", True, Decimal("2.5"), Decimal("sNaN"), 1j, b"8", [8]]
WEIGHTS = [0.0, 1.0, 8.0, 8.000001, 1e9, 10**400, math.inf, np.float32(3), np.int8(2), *ODD]
RELATIONS = ("add_remove", "replace_one")
BOUNDS = {"records": {}, "two rows": {"max_rows": 2}, "all rows": {"max_rows": None}}


def opened(rows, relation, bound, noise):
    """Records of one person who is always there, and of another with these rows."""
    records = [("p", "x", 0.5, 3.0), ("p", "y", 2.5, 8.0), *(("q", *row) for row in rows)]
    frame = pd.DataFrame(records, columns=["who", "a", "b", "w"]).astype({"w": object})
    unit = {"unit": "who", **BOUNDS[bound]} if BOUNDS[bound] else {}
    budget = dp.PrivacyBudget(1e9, 1e-6)
    return dp.PrivateDataset(frame, SCHEMA, budget, relation, noise, weights="w", largest_weight=LARGEST, **unit)


def persons(bound):
    """What the rows of the other person may be: of few weights where they are several."""
    one = [[(cell, number, weight)] for weight in WEIGHTS for cell, number in (("x", 0.5), ("y", 9.0))]
    few = [(cell, number, weight) for weight in (-1.0, 3.0, 8.0, 1e9) for cell, number in (("x", 0.5), ("y", 3.5))]
    more = [] if bound == "records" else [list(rows) for rows in itertools.product(few, repeat=3)]
    return [*one, *more[::20]]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("bound", BOUNDS)
def test_the_noise_of_a_release_pays_for_every_weight(relation, bound):
    def changes(rows):
        data = opened(rows, relation, bound, Noted())
        laplace = data.measure(CLIQUES, 0.7, weights=[3, 1])
        gaussian = data.measure(CLIQUES, 0.7, delta=1e-6, weights=[3, 1])
        return [
            np.concatenate([each.tables[c].ravel() / each.scales[c] for c in CLIQUES]) for each in (laplace, gaussian)
        ], gaussian.guarantee

    found = [changes(rows) for rows in persons(bound)]
    others = [changes([])] if relation == "add_remove" else found
    pure, concentrated = (
        np.stack([one[number] for one, _ in found])[:, None] - np.stack([other[number] for other, _ in others])
        for number in (0, 1)
    )
    guarantee = found[0][1]
    assert len({replace(cost, id="", holder=None) for _, own in found for cost in own.every}) == 1
    assert guarantee.largest_weight == LARGEST
    worst = abs(pure).sum(axis=2).max(), (concentrated**2).sum(axis=2).max() / 2
    for loss, paid in zip(worst, (0.7, guarantee.rho), strict=True):
        assert paid * (1 - 1e-6) <= loss <= paid * (1 + 1e-12)  # all three rows weigh floor(2**20 / 3) parts


def test_no_value_is_refused_and_each_counts_as_it_says():
    parts = Weights("w", LARGEST).parts(pd.Series(WEIGHTS, dtype=object))
    expected = [0, 1, 8, 8, 8, 8, 8, 3, 2, 0, 0, 0, 0, 0, 0, 2.5, 0, 0, 0, 0]
    assert (parts / UNIT_WEIGHT * LARGEST).tolist() == expected


@pytest.mark.parametrize("relation", RELATIONS)
def test_weighted_totals_are_private(relation):
    data = opened([("x", 0.5, 5.0)], relation, "records", Noted())
    release = data.measure(CLIQUES, 0.7)
    assert release.public_total is None
    assert release.total_weight == pytest.approx(16.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"weights": "w"}, "give largest_weight"),
        ({"largest_weight": 2.0}, "weights must name the column"),
        ({"weights": "w", "largest_weight": 0.0}, "largest_weight must be a number"),
        ({"weights": "w", "largest_weight": math.inf}, "largest_weight must be a number"),
        ({"weights": "missing", "largest_weight": 1.0}, "missing"),
    ],
)
def test_weights_need_a_column_and_a_public_largest(given, message):
    frame = pd.DataFrame({"a": ["x"], "b": [0.5], "w": [1.0]})
    with pytest.raises(ValueError, match=message):
        dp.PrivateDataset(frame, SCHEMA, dp.PrivacyBudget(1.0), **given)


def test_a_weight_that_is_not_clipped_is_caught(monkeypatch):
    """Ten times the largest; that clipped weights stay below their claim is audited with the other mechanisms."""
    monkeypatch.setattr(Weights, "_rounded", lambda self, numbers: (numbers / LARGEST * UNIT_WEIGHT).astype(np.int64))
    pair = tuple(opened(rows, "add_remove", "records", Noise()) for rows in ((), (("x", 3.5, 10 * LARGEST),)))
    result = audit(lambda data: data.measure(CLIQUES[:1], 2.0), pair, 2.0, trials=400, confidence=1 - 1e-6)
    assert result.refuted, result
