"""Regressions: what a record moves is paid for, and what a price needs is asked for before anything is charged."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pgmpy_dp as dp
from pgmpy_dp.data.mechanisms import regression

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
    ],
)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_what_cannot_be_priced_is_refused_unpaid(change, error, match, neighbours):
    data = dp.PrivateDataset(RECORDS, SCHEMA, dp.PrivacyBudget(1e9), neighbours)
    with pytest.raises(error, match=match):
        data.sample_regressions(**ASKED | change)
    assert data.budget.history == ()


def test_draws_that_could_take_too_many_tries_are_refused_whatever_the_records_are():
    data = dp.PrivateDataset(RECORDS, SCHEMA, dp.PrivacyBudget(1e9))
    with pytest.raises(ValueError, match="tries"):
        data.sample_regressions(**ASKED | {"std": {"age": 1e-9, "income": 900.0}, "epsilon": 1e7})
    assert data.budget.history == ()


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_no_record_moves_a_posterior_by_more_than_is_charged(neighbours, monkeypatch):
    """The range of what a record adds to the log-density over the ball, in exact fractions at many of its points."""
    seen = []
    monkeypatch.setattr(regression, "draw_in_ball", lambda *given: seen.append(given[:2]) or (0,) * len(given[1]))
    corners = list(itertools.product((0.0, 50.0, 100.0), (0.0, 2500.0, 5000.0)))

    def posteriors(rows):
        frame = pd.DataFrame([*([(20.0, 4000.0)] * 3), *rows], columns=["age", "income"]).assign(sex="f")
        data = dp.PrivateDataset(frame, SCHEMA, dp.PrivacyBudget(1e9), neighbours)
        seen.clear()
        released = data.sample_regressions(**ASKED)
        return list(seen), data.budget.history[0], released

    rng = np.random.default_rng(0)
    points = {size: rng.normal(size=(100, size)) for size in (1, 2)}
    points = {
        size: [[Fraction(x) for x in p / max(np.linalg.norm(p), 1e-300) * (1 - 1e-12)] for p in some]
        + [[Fraction(0)] * size]
        for size, some in points.items()
    }

    def log_density(posterior, point):
        square, linear = posterior
        bent = sum(a * b * s for a, row in zip(point, square, strict=True) for b, s in zip(point, row, strict=True))
        return sum(a * b for a, b in zip(point, linear, strict=True)) - bent / 2

    found = [posteriors([row]) for row in corners]
    before = [posteriors([])] if neighbours == "add_remove" else found
    values = {
        id(each): [[log_density(p, point) for point in points[len(p[1])]] for p in each[0]]
        for each in [*found, *before]
    }
    worst = Fraction(0)
    for one, other in itertools.product(found, before):
        loss = Fraction(0)
        for mine, others in zip(values[id(one)], values[id(other)], strict=True):
            change = [a - b for a, b in zip(mine, others, strict=True)]
            loss += max(change) - min(change)
        worst = max(worst, loss)
    charge = found[0][1]
    assert Fraction(7, 10) * charge.epsilon < worst <= charge.epsilon <= 1
