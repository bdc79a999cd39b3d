"""Audits of units of several rows: releases and quantiles stay below their claims, and a bound that is not kept shows.

What one person can change is counted by brute force in tests/data/test_tables.py and test_gate_others.py. An audit's
false alarm has probability 1e-6.
"""

import numpy as np
import pandas as pd
import pytest
from trials import Noise

import pgmpy_dp as dp
from pgmpy_dp.evaluation import audit

pytestmark = pytest.mark.full

SCHEMA = dp.Schema({"a": ["x", "y"], "b": dp.Bins([0, 1, 2, 3, 4])}, other={"b": "other"})
CLIQUES = [("a", "b"), ("b",)]
FIXED = [("x", 0.5), ("y", 2.5), ("y", 3.5)]  # the rows of another person
CONFIDENCE = 1 - 1e-6


def opened(rows, relation, max_rows, noise, delta=0.0):
    """Records of two persons: one with the FIXED rows, one with these."""
    records = [*(("p", *row) for row in FIXED), *(("q", *row) for row in rows)]
    frame = pd.DataFrame(records, columns=["who", "a", "b"])
    budget = dp.PrivacyBudget(1e9, delta)
    return dp.PrivateDataset(frame, SCHEMA, budget, relation, noise, unit="who", max_rows=max_rows)


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
