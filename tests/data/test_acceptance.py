"""Criteria of synthetic records: by hand and by brute force over neighbours, what is refused, and what is said."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import BernoulliNB
from sklearn.tree import DecisionTreeClassifier

import pgmpy_dp as dp
from pgmpy_dp.data.mechanisms import acceptance

SCHEMA = dp.Schema({"a": ["x", "y"], "b": ["p", "q", "r"]})
DOMAIN = list(itertools.product("xy", "pqr"))
SYNTHETIC = [("x", "p"), ("x", "p"), ("y", "q"), ("y", "r"), ("y", "q")]
CRITERIA = {
    "tables": acceptance.LargestError([("a", "b"), ("b",)], 0.3),
    "prediction": acceptance.PredictionError("a", DecisionTreeClassifier(random_state=0), 0.3),
    "unique": acceptance.UniqueMatches(1),
    "unique in b": acceptance.UniqueMatches(1, ["b"]),
}


class Noted:
    """No noise, and what it was asked for."""

    private = False

    def __init__(self):
        self.scales = []

    def discrete_laplace(self, counts, scale):
        self.scales.append(scale)
        return counts


def frame(rows):
    return pd.DataFrame(rows, columns=["a", "b"], dtype="str")


def value(criterion, rows, relation="add_remove", synthetic=SYNTHETIC):
    """The exact value times what it is divided by, and the sensitivity that the noise is scaled to, at epsilon 1."""
    noise = Noted()
    data = dp.PrivateDataset(frame(rows), SCHEMA, dp.PrivacyBudget(1.0), relation, noise)
    found = data.check(frame(synthetic), [criterion], 1.0).values["value"].iloc[0]
    total = len(rows) if relation == "replace_one" else len(synthetic)
    per = {acceptance.LargestError: 2 * total, acceptance.PredictionError: total, acceptance.UniqueMatches: 1}[
        type(criterion)
    ]
    return round(found * per), noise.scales[0]


def test_each_of_many_variables_is_predicted_from_its_own_column():
    """The target is no function of one other variable, and stands first, in the middle or last."""
    schema = dp.Schema({"a": ["x", "y"], "b": ["p", "q", "r"], "c": [0, 1], "d": ["u", "v"]})
    rows = [row for row in itertools.product("xy", "pqr", [0, 1], "uv") if (row[0] == "x") == ("u" in row) or row[2]]
    records = [*rows[:5], *rows[5:9] * 2, ("x", "q", 0, "v"), ("y", "r", 0, "u")]
    frames = [pd.DataFrame(each, columns=list(schema.variables)) for each in (rows, records)]
    for target in schema.variables:
        data = dp.PrivateDataset(frames[1], schema, dp.PrivacyBudget(1.0), "replace_one", Noted())
        found = data.check(
            frames[0], [acceptance.PredictionError(target, DecisionTreeClassifier(random_state=0), 0.9)], 1.0
        )
        others = [name for name in schema.variables if name != target]
        known = {}
        for row in frames[0].to_dict("records"):
            known.setdefault(tuple(row[name] for name in others), set()).add(row[target])
        # A tree without bounds knows the answer where the synthetic records have one alone.
        sure = [
            row for row in frames[1].to_dict("records") if len(known.get(tuple(row[name] for name in others), ())) == 1
        ]
        least = sum(row[target] not in known[tuple(row[name] for name in others)] for row in sure)
        most = least + len(records) - len(sure)
        assert least <= round(found.values["value"].iloc[0] * len(records)) <= most


def test_values_are_what_they_say():
    rows = [("x", "p"), ("x", "q"), ("y", "q"), ("y", "q"), ("y", "r")]
    assert value(CRITERIA["tables"], rows)[0] == 2  # one record stands in another cell
    assert value(CRITERIA["prediction"], rows)[0] == 1  # a tree learns that only p goes with x
    assert value(CRITERIA["unique"], rows)[0] == 2  # ("x", "p") and ("y", "r"): ("x", "q") is not among the synthetic
    assert value(CRITERIA["unique in b"], rows)[0] == 2  # p and r


def neighbours(relation):
    rows = [list(r) for size in range(3) for r in itertools.combinations_with_replacement(DOMAIN, size)]
    for own in rows:
        if relation == "add_remove":
            yield from ((own, [*own, extra]) for extra in DOMAIN)
        elif own:
            yield from ((own, [*own[1:], other]) for other in DOMAIN)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", CRITERIA)
def test_no_neighbour_moves_a_value_by_more_than_is_priced(name, relation):
    worst, sensitivity = 0, 0.0
    criterion, known = CRITERIA[name], {}
    for pair in neighbours(relation):
        values = []
        for rows in pair:
            key = tuple(sorted(rows))
            if key not in known:
                known[key], sensitivity = value(criterion, list(key), relation)
            values.append(known[key])
        worst = max(worst, abs(values[0] - values[1]))
    assert worst == round(sensitivity)


def test_a_reference_scaled_by_the_private_number_of_records_is_caught(monkeypatch):
    """As if the synthetic table were brought to the size of the records: one more record moves every cell."""
    right = acceptance.count_all

    def planted(codes, schema, cliques):
        return {clique: table * size / len(SYNTHETIC) for clique, table in right(codes, schema, cliques).items()}

    monkeypatch.setattr(acceptance, "count_all", planted)
    values = []
    for size in range(10, 15):  # which the planted bug reads
        values.append(value(CRITERIA["tables"], [("x", "q")] * size)[0])
    assert np.abs(np.diff(values)).max() > 1


def test_widths_hold_and_shares_are_equal():
    data = dp.PrivateDataset(frame(SYNTHETIC * 20), SCHEMA, dp.PrivacyBudget(1e6), noise=dp.SimulatedNoise(0))
    asked = [CRITERIA["tables"], acceptance.UniqueMatches(3)]
    found = [data.check(frame(SYNTHETIC * 20), asked, 0.5).values for _ in range(200)]
    inside = np.mean([(frame["value"].abs() <= frame["half_width"]).to_numpy() for frame in found], axis=0)
    assert (inside >= 0.95 - 0.05).all()
    assert (inside <= 0.99).all()
    assert (found[0]["half_width"] * [200, 1]).tolist() == [12.0, 12.0]  # ln 20 times a scale of 4
    assert data.budget.history[0].epsilon == 0.5


def test_a_check_passes_where_all_values_are_low_and_states_its_guarantee():
    data = dp.PrivateDataset(frame(SYNTHETIC * 200), SCHEMA, dp.PrivacyBudget(2.0))
    good = data.check(
        frame(SYNTHETIC * 200), [CRITERIA["tables"], acceptance.PredictionError("a", BernoulliNB(), 0.1)], 1.0
    )
    assert good.passed
    assert good.values["passed"].tolist() == [True, True]
    assert (good.guarantee.epsilon, good.guarantee.mechanism) == (1.0, "laplace")
    bad = data.check(frame([("x", "r")] * 1000), [CRITERIA["tables"], acceptance.UniqueMatches(100)], 1.0)
    assert bad.values["passed"].tolist() == [False, True]
    assert not bad.passed
    assert data.budget.remaining.epsilon == 0.0


def test_binned_records_are_read_by_labels_or_numbers():
    schema = dp.Schema({"age": dp.Bins([0, 18, 65, 120]), "a": ["x", "y"]})
    records = pd.DataFrame({"age": [10.0, 30, 70] * 300, "a": ["x", "y", "y"] * 300})
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(20.0, 1e-6))
    labels = dp.PairwiseMixture(9.0, 1e-6, members=2).fit(data).network_.simulate(900, seed=0)
    for synthetic in (records, labels):
        assert data.check(synthetic, [acceptance.LargestError([("age", "a")], 0.05)], 1.0).passed


def test_units_of_several_rows_have_their_sensitivity():
    rows = frame(SYNTHETIC * 20).assign(person=np.arange(100) // 2)
    for options, wanted in (({"max_rows": 2}, 2.0), ({}, 2.0**20)):
        noise = Noted()
        noise.keys = lambda size: np.arange(size, dtype=np.uint64)
        data = dp.PrivateDataset(rows, SCHEMA, dp.PrivacyBudget(1.0), noise=noise, unit="person", **options)
        data.check(frame(SYNTHETIC * 20), [CRITERIA["tables"]], 1.0)
        assert noise.scales == [wanted]
        with pytest.raises(ValueError, match=r"unit"):
            data.check(frame(SYNTHETIC), [acceptance.UniqueMatches(1)], 1e-3)


@pytest.mark.parametrize(
    ("criteria", "records", "message"),
    [
        ([], SYNTHETIC, "at least one criterion"),
        ([acceptance.LargestError([("a", "z")], 0.1)], SYNTHETIC, "'z'"),
        ([acceptance.LargestError([("a",)], 0.0)], SYNTHETIC, "most"),
        ([acceptance.LargestError([("a",)], 1.5)], SYNTHETIC, "most"),
        ([acceptance.PredictionError("z", BernoulliNB(), 0.1)], SYNTHETIC, "'z'"),
        ([acceptance.UniqueMatches(-1)], SYNTHETIC, "most"),
        ([acceptance.UniqueMatches(1)], [], "no synthetic records"),
        ([acceptance.UniqueMatches(1)], [("x", "s")], "'b'"),
    ],
)
def test_what_cannot_be_checked_is_refused_unpaid(criteria, records, message):
    data = dp.PrivateDataset(frame(SYNTHETIC), SCHEMA, dp.PrivacyBudget(1.0))
    with pytest.raises(ValueError, match=message):
        data.check(frame(records), criteria, 1.0)
    assert data.budget.spent.epsilon == 0.0


def test_a_random_learner_is_fitted_once_before_any_record_is_seen(monkeypatch):
    """One function for all records, made of synthetic ones: the price is for each function that may come out."""
    made = []

    class Chance(BernoulliNB):
        def fit(self, X, y):
            made.append((X.shape, seen.copy()))
            self.answer_ = np.random.default_rng().integers(2)
            return self

        def predict(self, X):
            assert len(X) == 1
            return np.array([self.answer_])

    seen = []
    rows = acceptance._distinct
    monkeypatch.setattr(acceptance, "_distinct", lambda *given: seen.append("records") or rows(*given))
    data = dp.PrivateDataset(frame(SYNTHETIC), SCHEMA, dp.PrivacyBudget(1.0), "replace_one", Noted())
    found = data.check(frame(SYNTHETIC), [acceptance.PredictionError("a", Chance(), 0.5)], 1.0).values["value"].iloc[0]
    assert made == [((5, 3), [])]
    assert round(found * 5) in (2, 3)
