"""Texts of a CSV file are read, and told apart, alike in all of its blocks."""

import pytest

import pgmpy_dp as dp
from pgmpy_dp.privacy.coins import random_keys
from pgmpy_dp.records import csv_reading, open_records
from pgmpy_dp.records.households import HouseholdTables
from pgmpy_dp.records.units import Unit


@pytest.mark.parametrize("maximum", [{}, {"_MAX_TEXTS": 10}, {"_LONGEST_TEXT": 2}], ids=str)
@pytest.mark.parametrize("rows", [1, 50, 2**16])
def test_texts_are_read_alike_whether_they_are_remembered(maximum, rows, tmp_path, monkeypatch):
    """Also by texts that are longer than all before them, and of which one begins or ends another."""
    monkeypatch.setattr(csv_reading, "_BLOCK_ROWS", rows)
    for name, value in maximum.items():
        monkeypatch.setattr(csv_reading, name, value)
    texts = ["x" * size for size in (1, 2, 3, 40_000)] + [f"{number}" for number in range(600)]
    (tmp_path / "a.csv").write_text("v\n" + "".join(f"{text}\n" for text in [*texts, *texts[::-1], *texts]))
    schema = dp.Schema({"v": [texts[3], "2", "x", "599"]}, other={"v": "other"})
    opened = open_records(tmp_path / "a.csv", schema, ["v"])
    assert opened.counts([("v",)])["v",].tolist() == [3, 3, 3, 3, 600 * 3]
    undiscovered = dp.Schema({"v": []}, other={"v": "other"})
    counts = open_records(tmp_path / "a.csv", undiscovered, ["v"]).value_counts("v")
    assert counts == {text: 3 for text in texts if len(text) < 40_000}


@pytest.mark.parametrize("rows", [50, 2**16])
def test_keys_come_back_as_they_were(rows, tmp_path, monkeypatch):
    """Tables of households are joined by the texts themselves."""
    monkeypatch.setattr(csv_reading, "_BLOCK_ROWS", rows)
    keys = [f"h{number}" * (1 + number % 3) for number in range(1500)]
    (tmp_path / "homes.csv").write_text("key,v\n" + "".join(f"{key},x\n" for key in keys))
    (tmp_path / "people.csv").write_text("key,w\n" + "".join(f"{key},y\n" for key in keys[::-1] * 2))
    schema = dp.HouseholdSchema(dp.Schema({"v": ["x"]}), dp.Schema({"w": ["y"]}), key="key", max_persons=2)
    unit = Unit("key", None, random_keys)
    tables = HouseholdTables(tmp_path / "homes.csv", tmp_path / "people.csv", schema)
    opened = open_records(tables, schema.measured, schema.measured.variables, unit)
    assert opened.size == 1500
    assert opened.owners.tolist() == [number for number in range(1500) for _ in range(2)]
