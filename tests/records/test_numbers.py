"""Numbers with bounds behind the wall."""

import math
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import pgmpy_dp as dp
from pgmpy_dp.records.frames import STEPS, encode_numbers, moments

SCHEMA = dp.Schema({"smoke": ["yes", "no"]}, bounds={"age": (0, 100), "change": 2.5})
FRAME = pd.DataFrame({"smoke": ["yes", "no", "no"], "age": [0, 50, 120], "change": [-2.5, 1.0, -99.0]})


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, lambda frame: pl.from_pandas(frame).to_arrow()])
def test_values_become_steps_between_the_bounds(make):
    found = encode_numbers(make(FRAME), SCHEMA)
    assert found["age"].tolist() == [-STEPS, 0, STEPS]
    assert found["change"].tolist() == [-STEPS, round(0.4 * STEPS), -STEPS]


def test_moments_are_exact_over_blocks():
    generator = np.random.default_rng(0)
    numbers = {v: generator.integers(-STEPS, STEPS + 1, 2**20 + 5).astype(np.int32) for v in "yx"}
    squares, products = moments(numbers, "y", ("x",))
    x, y = numbers["x"].astype(object), numbers["y"].astype(object)
    assert squares == [[STEPS**2 * len(x), STEPS * sum(x)], [STEPS * sum(x), sum(x * x)]]
    assert products == [STEPS * sum(y), sum(x * y)]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([1.0, math.nan, 2.0], "'age' has missing or infinite"),
        ([1.0, math.inf, 2.0], "'age' has missing or infinite"),
        ([1, None, 2], "'age' has missing or infinite"),
        (["1", "2", "3"], "not numeric"),
        ([True, False, True], "not numeric"),
    ],
)
def test_what_is_no_number_is_refused_by_name_alone(column, message):
    for make in (pd.DataFrame, pl.DataFrame):
        with pytest.raises(dp.SchemaError, match=message):
            dp.PrivateDataset(make({"age": column}), dp.Schema(bounds={"age": 3.0}), dp.PrivacyBudget(1.0))
    with pytest.raises(dp.SchemaError, match="has no column"):
        encode_numbers(FRAME[["smoke"]], SCHEMA)
    with pytest.raises(dp.SchemaError, match="frame in memory"):
        encode_numbers(pl.from_pandas(FRAME).lazy(), SCHEMA)


@pytest.mark.parametrize(
    "bounds",
    [
        {"x": b}
        for b in (0, -1.0, math.nan, math.inf, True, np.True_, "1", None, (1, 1), (2, 1), (0, math.inf), (1,), (0, "1"))
    ]
    + [{"x": (2**60, 2**60 + 1)}, {"x": (0, 5e-324)}]
    + [{"smoke": 1.0}, {"": 1.0}, [("x", 1.0)]],
)
def test_bounds_that_are_none_are_refused(bounds):
    with pytest.raises(dp.SchemaError):
        dp.Schema({"smoke": ["yes", "no"]}, bounds=bounds)


@pytest.mark.parametrize("ends", [(1e16, 1e16 + 2), (0, 1e-323), 5e-324, 9.9e149, (1e149, 9.9e149), (-1e-300, 1e149)])
def test_no_value_is_beyond_the_steps(ends):
    """Sensitivities rest on it."""
    low, high = dp.Schema(bounds={"x": ends}).bounds["x"]
    values = [low, high, 0.0, -0.0, 5e-324, -1e308, 1e308, low / 2 + high / 2, math.nextafter(low, high)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        steps = encode_numbers(pd.DataFrame({"x": values}), dp.Schema(bounds={"x": ends}))["x"]
    assert -STEPS <= steps.min() < steps.max() <= STEPS


def test_bounds_are_part_of_the_schema():
    assert SCHEMA.variables == ("smoke",)
    assert dict(SCHEMA.bounds) == {"age": (0.0, 100.0), "change": (-2.5, 2.5)}
    for copy in (dp.Schema.from_dict(SCHEMA.to_dict()), pickle.loads(pickle.dumps(SCHEMA))):
        assert copy == SCHEMA
        assert copy.bounds == SCHEMA.bounds
    assert dp.Schema({"smoke": ["yes", "no"]}) != SCHEMA
    with pytest.raises(dp.SchemaError, match="no states to count"):
        SCHEMA.require([("age",)])
    data = dp.PrivateDataset(FRAME, SCHEMA, dp.PrivacyBudget(1.0))
    assert data.measure([("smoke",)], 0.5).tables["smoke",].shape == (2,)  # both kinds, one ledger
    numbers = dp.PrivateDataset(FRAME, dp.Schema(bounds=SCHEMA.bounds), data.budget)
    with pytest.raises(dp.SchemaError, match="name at least one"):
        numbers.plan(3, delta=1e-6, epsilon=0.1, sampling_rate=0.1)
