"""What one or several releases say of a model's tables, and how far a model is from it."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest

import pgmpy_dp as dp
from pgmpy_dp.observed.contradictions import warn_of_contradictions
from pgmpy_dp.observed.observed import Observed, affordable, tree_cells
from pgmpy_dp.observed.reading import observe

SCHEMA = dp.Schema({"a": ["x", "y"], "b": [0, 1, 2]})
SHARES = np.array([[0.2, 0.2, 0.1], [0.1, 0.1, 0.3]])
PLAN = dp.plan_accuracy(SCHEMA, {("a", "b"): 60}, delta=1e-6)
MEASURE = {
    "tables": lambda data: data.measure([("a", "b")], 0.1),
    "coefficients": lambda data: data.measure_coefficients([("a", "b")], 0.1),
    "residuals": lambda data: data.measure_residuals(PLAN.residuals, delta=1e-6),
}


def released(kind, seed, rows=1):
    count = 4000 // rows
    cells = np.repeat(np.random.default_rng(seed).choice(6, count, p=SHARES.ravel()), rows)
    frame = pd.DataFrame({"a": np.where(cells < 3, "x", "y"), "b": cells % 3, "p": np.arange(count * rows) // rows})
    unit = {"unit": "p", "max_rows": rows} if rows > 1 else {}
    budget = dp.PrivacyBudget(10.0, 1e-3)
    return MEASURE[kind](dp.PrivateDataset(frame, SCHEMA, budget, noise=dp.SimulatedNoise(seed), **unit))


@pytest.mark.parametrize("kind", MEASURE)
def test_residuals_against_the_truth_are_standard_and_those_against_another_model_are_not(kind):
    squares, wrong = [], []
    for seed in range(60):
        seen = Observed.of([released(kind, seed)], ["a", "b"]).of_tables
        residuals, weights = seen.residuals(SHARES.ravel())
        squares.append((residuals * weights) ** 2)
        residuals, weights = seen.residuals(np.full(6, 1 / 6))
        wrong.append((residuals * weights) ** 2)
    assert np.mean(squares) == pytest.approx(1.0, abs=0.25)
    assert np.mean(wrong) > 2 * np.mean(squares)


def test_equal_rows_of_a_unit_are_allowed_for():
    one, four = (Observed.of([released("tables", 1, rows)], ["a", "b"]) for rows in (1, 4))
    assert (one.repeats, four.repeats) == (1, 4)
    weights = four.residuals(SHARES.ravel())[1]
    counts = four.total * SHARES.ravel()
    expected = four.noise.variance + 4 * counts * (1 - SHARES.ravel())
    np.testing.assert_allclose(weights**-2, expected)


def test_releases_are_read_together_as_one_after_the_other():
    releases = [released("tables", 0), released("residuals", 1)]
    joint = Observed.of(releases, ["a", "b"])
    apart = [observe(release, ["a", "b"]) for release in releases]
    np.testing.assert_array_equal(joint.noise.observed, np.concatenate([part.noise.observed for part in apart]))
    residuals, _ = joint.residuals(SHARES.ravel().repeat(2).reshape(6, 2).T.ravel())
    assert residuals.size == sum(part.owners.size for part in apart)


@pytest.mark.parametrize("growth", [1, 2, 8])
def test_tests_are_kept_while_the_tree_stays_small(monkeypatch, growth):
    monkeypatch.setattr("pgmpy_dp.observed.observed._MAX_CELLS", 0)
    monkeypatch.setattr("pgmpy_dp.observed.observed._GROWTH", growth)
    names = list("abcdefgh")
    cards = dict.fromkeys(names, 4)
    scopes = list(itertools.pairwise(names))
    tests = [("a", "c"), ("c", "h"), ("a", "e"), ("b", "g"), ("d", "h")]
    kept = affordable(cards, scopes, [*scopes, *tests])
    assert kept == [*scopes, *tests][: len(kept)]
    assert len(scopes) <= len(kept) < len(scopes) + len(tests)
    maximum = growth * tree_cells(cards, scopes)
    assert tree_cells(cards, kept) <= maximum < tree_cells(cards, [*kept, tests[len(kept) - len(scopes)]])


RULED = dp.Schema(
    {"place": ["Ulm", "Bonn", "Kiel"], "area": ["south", "north"], "boat": ["no", "yes"]},
    rules=[
        dp.Dependency("place", "area", {"Ulm": "south", "Bonn": "north", "Kiel": "north"}),
        dp.Forbidden({"area": "south", "boat": "yes"}),
    ],
)


@pytest.mark.parametrize(
    ("tables", "rule"),
    [
        ({("place",): [500, 300, 200], ("area",): [500, 500]}, None),
        ({("place",): [500, 300, 200], ("area",): [900, 500]}, "Dependency"),  # more than the finer states have
        ({("place",): [500, 300, 200], ("area",): [500, 100]}, "Dependency"),  # fewer
        ({("place", "boat"): [[500, 0], [100, 200], [50, 150]]}, None),
        ({("place", "boat"): [[400, 100], [100, 200], [50, 150]]}, "Forbidden"),  # by the area that a place is in
    ],
)
def test_what_contradicts_rules_about_other_tables_is_reported(tables, rule):
    tables = {clique: np.array(table) for clique, table in tables.items()}
    release = dp.NoisyMarginals(RULED, tables, dict.fromkeys(tables, 2.0), dp.Guarantee.of(1.0))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_contradictions([release])
    assert [rule in str(each.message) for each in caught] == ([True] if rule else [])
