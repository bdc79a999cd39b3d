"""The files of a Parquet folder are read each by its own names, places and types; rows of a unit may be in several."""

import os
from decimal import Decimal
from itertools import product

import pyarrow as pa
import pyarrow.parquet
import pytest

import pgmpy_dp as dp
from pgmpy_dp.privacy.coins import random_keys
from pgmpy_dp.privacy.noise import UNIT_WEIGHT
from pgmpy_dp.records import open_records
from pgmpy_dp.records.parquet import parquet_table
from pgmpy_dp.records.units import Unit

SCHEMA = dp.Schema(
    {"v": dp.Bins([0, 1, 9]), "w": ["x", "y"]}, **{role: dict.fromkeys("vw", role) for role in ("missing", "other")}
)


def write(folder, *files):
    """Write files of columns, each given by its type and its values."""
    for number, columns in enumerate(files):
        arrays = {name: pa.array(values, kind) for name, (kind, values) in columns.items()}
        pa.parquet.write_table(pa.table(arrays), folder / f"{number}.parquet")
    return folder


WHOLE = {"v": (pa.int8(), [0, 5, None]), "u": (pa.int64(), [1, 1, 2]), "w": (pa.string(), ["x", "y", None])}
PARTS = {"w": (pa.dictionary(pa.int8(), pa.string()), ["y", "z"]), "v": (pa.float64(), [0.5, 11.0])}
MONEY = {
    "u": (pa.int64(), [2, 3]),
    "v": (pa.decimal128(5, 2), [Decimal("0.99"), Decimal(1)]),
    "w": (pa.null(), [None] * 2),
}
PARTS["u"] = (pa.int64(), [1, 3])


@pytest.mark.parametrize("files", [[WHOLE, PARTS, MONEY], [MONEY, WHOLE, PARTS, WHOLE], [PARTS], [PARTS, PARTS]])
def test_rows_of_a_unit_in_files_of_several_layouts_are_counted_by_what_they_are(files, tmp_path):
    rows = [row for columns in files for row in zip(*(columns[name][1] for name in "uvw"), strict=True)]
    sizes = {unit: sum(row[0] == unit for row in rows) for unit in {row[0] for row in rows}}
    expected = dict.fromkeys(product(SCHEMA.states["v"], SCHEMA.states["w"]), 0)
    for unit, v, w in rows:
        number = "missing" if v is None else "other" if v > 9 else SCHEMA.states["v"][v >= 1]
        text = "missing" if w is None else w if w in "xy" else "other"
        expected[number, text] += UNIT_WEIGHT // sizes[unit]
    opened = open_records(write(tmp_path, *files), SCHEMA, ["v", "w"], Unit("u", None, random_keys))
    assert opened.size == len(sizes)
    assert opened.counts([("v", "w")])["v", "w"].ravel().tolist() == list(expected.values())
    drawn = open_records(tmp_path, SCHEMA, ["v", "w"], Unit("u", 2, random_keys)).counts([("v",)])["v",]
    assert drawn.sum() == sum(min(size, 2) for size in sizes.values())
    each = open_records(tmp_path, SCHEMA, ["v", "w"]).counts([("w",)])["w",]
    assert each.sum() == len(rows)


@pytest.mark.parametrize(
    ("first", "second", "unit"),
    [
        ({"v": (pa.int8(), [1])}, {"v": (pa.string(), ["1"])}, None),
        ({"v": (pa.bool_(), [True])}, {"v": (pa.int8(), [1])}, None),
        ({"v": (pa.int8(), [1])}, {"v": (pa.date32(), [1])}, None),
        ({"v": (pa.int8(), [1]), "u": (pa.int8(), [1])}, {"v": (pa.int8(), [1]), "u": (pa.float64(), [1.0])}, "u"),
        ({"v": (pa.int8(), [1]), "u": (pa.string(), ["1"])}, {"v": (pa.int8(), [1]), "u": (pa.null(), [None])}, "u"),
    ],
)
def test_types_that_do_not_agree_across_files_are_refused(first, second, unit, tmp_path):
    whose = unit and Unit(unit, 1, random_keys)
    schema, column = SCHEMA.select(["v"]), unit or "v"
    with pytest.raises(dp.SchemaError, match=f"the column '{column}' has a type in some of the files"):
        open_records(write(tmp_path, first, second), schema, ["v"], whose)


def test_a_column_of_nothing_agrees_with_all_types(tmp_path):
    write(tmp_path, {"v": (pa.null(), [None, None])}, {"v": (pa.int8(), [1])})
    table = open_records(tmp_path, SCHEMA, ["v"]).counts([("v",)])["v",]
    assert dict(zip(SCHEMA.states["v"], table.tolist(), strict=True))["missing"] == 2


def test_a_folder_without_parquet_files_and_a_file_that_lacks_a_column_are_named(tmp_path):
    for nothing in (tmp_path, tmp_path / "none.parquet"):
        message = r"the file does not exist, or the folder contains no \.parquet file"
        with pytest.raises(FileNotFoundError, match=message):
            open_records(nothing, SCHEMA, ["v"])
    write(tmp_path, {"v": (pa.int8(), [1])}, {"V": (pa.int8(), [1])})
    with pytest.raises(dp.SchemaError, match="Variable 'v' has no column in the records"):
        open_records(tmp_path, SCHEMA, ["v"])


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (pa.timestamp("ms"), {}),
        (pa.timestamp("ms", "Asia/Tokyo"), {}),
        (pa.timestamp("us"), {"use_deprecated_int96_timestamps": True}),
        (pa.time64("ns"), {}),
        (pa.list_(pa.timestamp("ms")), {}),
    ],
)
def test_times_that_the_engine_converts_are_refused_by_their_type(kind, options, tmp_path):
    """It refuses those that it cannot convert: one record would decide that nothing is read."""
    table = pa.table({"nested": pa.array([{"u": [1], "w": "x"}]), "v": pa.nulls(1, kind), "w": ["x"]})
    pa.parquet.write_table(table, tmp_path / "0.parquet", **options)
    with pytest.raises(dp.SchemaError, match=r"column 'v' has times that DuckDB converts.* coerce_timestamps='us'"):
        open_records(tmp_path / "0.parquet", dp.Schema({"v": ["x"]}, missing={"v": "none"}), ["v"])
    assert open_records(tmp_path / "0.parquet", dp.Schema({"w": ["x"]}), ["w"]).size == 1


@pytest.mark.parametrize("name", [".part.parquet", "_part.parquet"])
def test_a_hidden_file_of_a_folder_is_refused_by_name(name, tmp_path):
    """Most programs leave it out, and its records would count beside those of the file it was made for."""
    write(tmp_path, {"v": (pa.int8(), [1])}, {"v": (pa.int8(), [1])})
    (tmp_path / "1.parquet").rename(tmp_path / name)
    with pytest.raises(dp.SchemaError, match=f": {name} is hidden, and most programs skip such files"):
        open_records(tmp_path, SCHEMA, ["v"])
    assert open_records(tmp_path / name, SCHEMA, ["v"]).size == 1


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_file_with_two_names_in_a_folder_is_refused(link, tmp_path):
    write(tmp_path, {"v": (pa.int8(), [1])})
    link(tmp_path / "0.parquet", tmp_path / "b.parquet")
    with pytest.raises(dp.SchemaError, match=r": 0\.parquet and b\.parquet are the same file"):
        open_records(tmp_path, SCHEMA, ["v"])
    assert open_records(tmp_path / "b.parquet", SCHEMA, ["v"]).size == 1


def test_one_file_is_read_into_memory_and_a_folder_is_refused(tmp_path):
    write(tmp_path, {"v": (pa.int8(), [1, None]), "w": (pa.string(), ["x", "y"]), "u": (pa.int8(), [5, 6])})
    assert parquet_table(tmp_path / "0.parquet", ["w", "v"]).to_pydict() == {"w": ["x", "y"], "v": [1, None]}
    with pytest.raises(ValueError, match="a folder cannot be read into memory: give one"):
        parquet_table(tmp_path)


def test_what_is_said_of_a_damaged_file_in_memory_is_kept_back(tmp_path):
    path = tmp_path / "0.parquet"
    path.write_bytes(b"PAR1" + b"secret" * 9 + b"PAR1")
    with pytest.raises(dp.SchemaError, match="The message is suppressed") as refusal:
        parquet_table(path)
    assert "secret" not in str(refusal.value)
    assert refusal.value.__cause__ is refusal.value.__context__ is None
