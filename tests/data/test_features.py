"""Real-valued records behind the wall: encoding, refusals, the ledger."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

import pgmpy_dp as dp
from pgmpy_dp.data import features as module

X = [[0.5, 20.0], [3.0, -7.0], [1.0, 55.0]]
Y = ["no", "yes", "no"]
OPTIONS = {"bounds": ([0, 0], [2, 50]), "classes": ["no", "yes"]}
NUMBERS = {"y": [1.0, -2.0, 7.0], "classes": None, "target_bounds": (0, 5)}


def features(x=X, y=Y, budget=None, **options):
    return dp.PrivateFeatures(x, y, budget=budget or dp.PrivacyBudget(2.0, 1e-5), **{**OPTIONS, **options})


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (X, Y),
        (np.array(X, dtype=np.float32), np.array(Y)),
        (pd.DataFrame(X, columns=["a", "b"], index=[7, 3, 9]), pd.Series(Y, index=[1, 2, 3])),
        (pl.DataFrame(X, schema=["a", "b"], orient="row"), pl.Series(Y).cast(pl.Categorical)),
    ],
)
def test_records_are_kept_within_their_bounds_with_the_number_of_their_class(x, y):
    data = features(x, y)
    assert data._rows.tolist() == [[0.5, 20.0, 0.0], [2.0, 0.0, 1.0], [1.0, 50.0, 0.0]]
    assert data.names == (("a", "b") if hasattr(x, "columns") else None)


@pytest.mark.parametrize("form", [list, tuple, np.array, pd.Series, pl.Series])
def test_targets_are_kept_within_their_bounds(form):
    data = features(**{**NUMBERS, "y": form(NUMBERS["y"])})
    assert data._rows[:, -1].tolist() == [1.0, 0.0, 5.0]
    assert (data.classes, data.target_bounds) == (None, (0.0, 5.0))
    assert repr(data).startswith("PrivateFeatures(2 features, a target, ")


def test_a_plan_is_charged_whole_and_sums_are_of_the_features():
    data = features(X * 1000, Y * 1000, noise=dp.SimulatedNoise(1))
    plan = data.plan(2, epsilon=1.5, delta=1e-6, sampling_rate=1.0)
    assert (data.budget.spent.epsilon, plan.guarantee.delta, plan.steps) == (1.5, 1e-6, 2)
    assert plan.noisy_sum(lambda rows: rows, 51.0) == pytest.approx([3500, 70_000, 1000], abs=600)
    with pytest.raises(dp.BudgetExceededError):
        data.plan(2, epsilon=1.5, delta=1e-6, sampling_rate=1.0)


class Unwilling:
    """What a library says of a value that it does not convert."""

    def __float__(self):
        raise ValueError("secret")


def wrong(error, match, *changes):
    return [(change, error, match) for change in changes]


HIDDEN = np.ma.masked_array([1.0, -2.0, 7.0], [False, True, False])
MISSING = {"a": [1, None, 2], "b": [1, 2, 3]}
BAD = [
    *wrong(dp.SchemaError, "Feature 1 holds missing", *({"x": [[0.5, v], *X[1:]]} for v in (math.nan, -math.inf))),
    *wrong(dp.SchemaError, "Feature 'a' holds missing", {"x": pd.DataFrame(MISSING)}, {"x": pl.DataFrame(MISSING)}),
    *wrong(dp.SchemaError, "Feature 'a' holds missing", {"x": pl.DataFrame(MISSING | {"a": [True, None, False]})}),
    *wrong(dp.SchemaError, r"Feature '\^b.\*\$' holds", {"x": pl.DataFrame({"b": [1, 2, 3], "^b.*$": [1, 2, None]})}),
    *wrong(dp.SchemaError, "Feature 'a' is not numeric", {"x": pd.DataFrame({"a": ["1", "2", "3"], "b": [1, 2, 3]})}),
    *wrong(dp.SchemaError, "the same name", {"x": pd.DataFrame(X, columns=["a", "a"])}),
    *wrong(TypeError, "two-dimensional", {"x": [1.0, 2.0]}, {"x": pl.LazyFrame({"a": [1, 2, 3]})}),
    *wrong(TypeError, "numbers", {"x": [["a"], ["b"], ["c"]]}, {"x": [[Unwilling(), 1.0]] * 3}),
    *wrong(dp.SchemaError, "'y'", {"y": ["no", "maybe", "no"]}, {"y": ["no", None, "no"]}),
    *wrong(dp.SchemaError, "one row each", {"y": Y[:2]}, {**NUMBERS, "y": [1.0, 2.0]}),
    *wrong(TypeError, "one class a record", {"y": np.array([Y])}, {"y": "abc"}, {"y": 3}, {"y": {*Y, "maybe"}}),
    *wrong(TypeError, "one class a record", {"y": {"no": 1, "yes": 2, "maybe": 3}}),
    *wrong(dp.SchemaError, "at least two", {"classes": ["no"]}),
    *wrong(dp.SchemaError, "no", {"classes": ["no", "no"]}),
    *wrong(ValueError, "Declare what y holds", {"classes": None}, {"target_bounds": (0, 1)}),
    *wrong(ValueError, "^target_bounds must be finite", {**NUMBERS, "target_bounds": (1, 0)}),
    *wrong(ValueError, "^target_bounds must be a pair", {**NUMBERS, "target_bounds": 1.0}),
    *wrong(dp.SchemaError, "The target holds missing", {**NUMBERS, "y": [1.0, math.nan, 2.0]}),
    *wrong(dp.SchemaError, "The target holds missing", {**NUMBERS, "y": pl.Series([1, None, 2])}),
    *wrong(dp.SchemaError, "The target is not numeric", {**NUMBERS, "y": pd.Series(Y)}),
    *wrong(TypeError, "one number a record", *({**NUMBERS, "y": y} for y in (Y, None, np.zeros((3, 1)), HIDDEN))),
    *wrong(ValueError, "must be a pair", {"bounds": None}, {"bounds": 1.0}),
    *wrong(ValueError, "each of the 2 features", {"bounds": (0, [1, 2, 3])}),
    *wrong(ValueError, "finite", *({"bounds": b} for b in ((0, math.inf), (0, math.nan), (-1e308, 1e308)))),
    *wrong(
        ValueError,
        "below its upper",
        *({"bounds": b} for b in (([0, 5], [2, 5]), (0, 5e-324), (2**60, 2**60 + 1))),
    ),
    *wrong(ValueError, "neighbours", {"neighbours": "none"}),
    *wrong(TypeError, "noise", {"noise": dp.SimulatedNoise}),
    *wrong(TypeError, "PrivacyBudget", {"budget": 1.0}),
]


@pytest.mark.parametrize(("change", "error", "match"), BAD)
def test_bad_input(change, error, match):
    with pytest.raises(error, match=match) as caught:
        features(**change)
    assert not any(word in str(caught.value) for word in ("secret", "maybe"))


def test_what_a_library_says_of_a_column_is_kept_back(monkeypatch):
    def unwilling(values):
        raise OverflowError("secret")

    monkeypatch.setattr(module, "floats", unwilling)
    with pytest.raises(dp.SchemaError, match="Feature 'b' has a type") as caught:
        features(pd.DataFrame({"b": [1, 2, 3]}), bounds=(0, 1))
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


def test_what_numpy_says_of_values_is_kept_back_but_for_want_of_memory():
    class Array:
        def __init__(self, error):
            self.error = error

        def __array__(self, *_, **__):
            raise self.error

    with pytest.raises(TypeError, match="two-dimensional") as caught:
        features(Array(OverflowError("secret")))
    assert "secret" not in str(caught.value)
    with pytest.raises(MemoryError):
        features(Array(MemoryError()))


def test_missing_booleans_and_numbers_keep_their_rows():
    x = pl.DataFrame({"a": [True, False, True], "b": [0.25, 3.0, -1.0]})
    assert features(x, bounds=(0, 2))._rows.tolist() == [[1.0, 0.25, 0.0], [0.0, 2.0, 1.0], [1.0, 0.0, 0.0]]


def test_features_are_converted_whatever_their_type_and_no_value_is_shown():
    arrow = pytest.importorskip("pyarrow")
    big = arrow.table({"x": [1, 2**53 + 1, 7], "z": [True, True, False]})
    for frame in (big, big.to_pandas(types_mapper=pd.ArrowDtype), big.to_pandas().convert_dtypes(), pl.from_arrow(big)):
        data = features(frame, ["no"] * 3, bounds=(-1, 2.0**60))
        assert data._rows[:2, 0].tolist() == [1.0, 2.0**53]
    texts = arrow.table({"x": [1, 2], "z": ["secret", "2"]})
    with pytest.raises(dp.SchemaError, match="'z' is not numeric") as caught:
        features(texts, ["no"] * 2)
    assert "secret" not in str(caught.value)
