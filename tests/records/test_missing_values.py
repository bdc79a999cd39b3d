"""Texts that say that a value is missing, from every kind of source, beside states and bins."""

import pickle

import pandas as pd
import pytest
from writers import every_form

import pgmpy_dp as dp

SCHEMA = dp.Schema(
    {"work": ["private", "state"], "age": dp.Bins([0, 40, 99])},
    missing={"work": "?", "age": "unknown"},
    missing_values={"work": ["?", "NA"], "age": ["?"]},
)
FRAME = pd.DataFrame({"work": ["private", "?", "NA", "state", None], "age": ["?", "?", "?", "?", None]}, dtype=object)


def test_texts_that_say_missing_are_missing_in_every_source(tmp_path):
    for name, source in every_form(FRAME, tmp_path).items():
        data = dp.PrivateDataset(source, SCHEMA, dp.PrivacyBudget(200.0), noise=dp.SimulatedNoise(0))
        release = data.measure([("work",), ("age",)], 200.0)
        assert release.tables["work",].tolist() == [1, 1, 3], name
        assert release.tables["age",].tolist() == [0, 0, 5], name


def test_they_are_among_numbers_too():
    mixed = pd.DataFrame({"work": ["state"] * 3, "age": [17, "?", 50.5]})
    data = dp.PrivateDataset(mixed, SCHEMA, dp.PrivacyBudget(200.0), noise=dp.SimulatedNoise(0))
    assert data.measure([("age",)], 200.0).tables["age",].tolist() == [1, 1, 1]


def test_without_a_state_for_missing_values_they_are_refused_for_all_variables_at_once():
    schema = dp.Schema({"work": ["private", "state"], "age": ["young"]}, missing_values=["?", "NA"])
    with pytest.raises(dp.SchemaError, match=r"'work' has missing values.*missing values of 'age'"):
        dp.PrivateDataset(FRAME, schema, dp.PrivacyBudget(1.0))


@pytest.mark.parametrize(
    ("states", "said"),
    [
        ("abc", r"'a' has missing values.*for missing values of 'c' and undeclared values of 'b', 'c'\.$"),
        ("bac", r"'a' has missing values.*for missing values of 'c' and undeclared values of 'b', 'c'\.$"),
        ("ab", r"'a' has missing values.*for undeclared values of 'b'\.$"),
        ("bd", r"'b' has values.*for undeclared values of 'd'\.$"),
    ],
)
def test_a_refusal_names_every_variable_that_has_missing_or_undeclared_values(states, said):
    frame = pd.DataFrame({"a": ["x", None], "b": ["x", "z"], "c": [None, "z"], "d": ["z", "x"]}, dtype=object)
    with pytest.raises(dp.SchemaError, match=said):
        dp.PrivateDataset(frame, dp.Schema({variable: ["x"] for variable in states}), dp.PrivacyBudget(1.0))


def test_files_keep_them(tmp_path):
    SCHEMA.save(tmp_path / "schema.json")
    for again in (dp.Schema.load(tmp_path / "schema.json"), pickle.loads(pickle.dumps(SCHEMA)), SCHEMA.join(SCHEMA)):
        assert again == SCHEMA
        assert again.missing_values == SCHEMA.missing_values
    assert SCHEMA.select(["age"]).missing_values == {"age": ("?",)}
    assert dp.Schema({"work": ["private", "state"], "age": dp.Bins([0, 40, 99])}, SCHEMA.missing) != SCHEMA


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["state"], "'work': 'state' is both a state"),
        ({"wrk": ["?"]}, "missing_values: Unknown variable 'wrk'"),
        ({"work": [9]}, "'work': missing_values are texts"),
        ("?", "must be a list"),
        (["\ud800"], "cannot be written as UTF-8"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(given, message):
    with pytest.raises(dp.SchemaError, match=message):
        dp.Schema({"work": ["private", "state"], "age": dp.Bins([0, 40])}, missing_values=given)
