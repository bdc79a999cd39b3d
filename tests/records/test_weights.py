"""Survey weights are read alike from every source."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from writers import every_form

import pgmpy_dp as dp
from pgmpy_dp.privacy.coins import random_keys
from pgmpy_dp.privacy.noise import UNIT_WEIGHT
from pgmpy_dp.records import CsvFile, open_records
from pgmpy_dp.records.units import Unit
from pgmpy_dp.records.weights import Weights

SCHEMA = dp.Schema({"a": ["x", "y"]})
FRAME = pd.DataFrame(
    {"a": ["x", "y", "x", "y", "x"], "w": [0.5, 4.0, 99.0, -1.0, np.nan], "who": ["p", "p", "q", "q", "q"]}
)
COUNTED = {"x": 4.5, "y": 4.0}  # of at most 4 each


def _sources(folder):
    FRAME.to_csv(folder / "commas.csv", index=False, sep=";", decimal=",")
    forms = every_form(FRAME, folder)
    decimals = pa.array(FRAME["w"], from_pandas=True).cast(pa.decimal128(9, 2))
    return forms | {
        "nullable": FRAME.convert_dtypes(),
        "decimals": forms["Arrow"].set_column(1, "w", decimals),
        "commas": CsvFile(folder / "commas.csv", ";", decimal=","),
    }


@pytest.mark.parametrize(
    ("max_rows", "expected"),
    [
        ("records", COUNTED),
        (9, COUNTED),
        (None, {"x": 0.5 / 2 + 4.0 / 3, "y": 4.0 / 2}),  # half of a row of p, a third of a row of q
    ],
)
def test_every_source_gives_the_same(tmp_path, max_rows, expected):
    unit = None if max_rows == "records" else Unit("who", max_rows, random_keys)
    for name, source in _sources(tmp_path).items():
        (table,) = open_records(source, SCHEMA, ["a"], unit, Weights("w", 4.0)).counts([("a",)]).values()
        assert (table / UNIT_WEIGHT * 4.0).tolist() == pytest.approx(list(expected.values()), abs=1e-5), name


def test_a_weight_in_the_schema_and_states_found_privately():
    schema = dp.Schema({"place": [], "w": dp.Bins([0, 2, 8])}, other={"place": "elsewhere"})
    frame = pd.DataFrame({"place": ["Ulm"] * 300, "w": [1.0, 3.0, 8.0] * 100})
    budget = dp.PrivacyBudget(10.0, 1e-6)
    data = dp.PrivateDataset(frame, schema, budget, weights="w", largest_weight=8.0)
    found = data.discover_states("place", 2.0, delta=1e-7)
    assert found.threshold < 20  # rows are counted there, whatever they weigh
    again = dp.PrivateDataset(frame, found.schema, budget, weights="w", largest_weight=8.0)
    release = again.measure([("place", "w")], 5.0)
    assert release.total_weight == pytest.approx(1200, abs=100)


def test_a_release_says_that_it_is_weighted():
    data = dp.PrivateDataset(FRAME.iloc[:3], SCHEMA, dp.PrivacyBudget(1.0), weights="w", largest_weight=4.0)
    release = data.measure([("a",)], 1.0)
    assert "of survey weight at most 4" in str(release.guarantee)
    alike = dp.PrivateDataset(FRAME, SCHEMA, dp.PrivacyBudget(1.0)).measure([("a",)], 1.0)
    with pytest.raises(ValueError, match="different largest_weight"):
        release + alike


def test_weighted_shares_are_no_less_certain_than_the_total_says():
    """Sampling moves the share of the weight in a cell by no more than as many records of the largest weight would."""
    generator, largest = np.random.default_rng(0), 20.0
    weights = generator.choice([1.0, 2.0, 5.0, largest], (4000, 500), p=[0.4, 0.3, 0.2, 0.1])
    yes = generator.random(weights.shape) < np.where(weights > 4, 0.5, 0.2)  # who weighs more says yes more often
    shares = (weights * yes).sum(axis=1) / weights.sum(axis=1)
    counted = weights.sum(axis=1).mean() / largest
    assert shares.var() < shares.mean() * (1 - shares.mean()) / counted
    assert shares.var() > 0.5 * shares.mean() * (1 - shares.mean()) / counted
