"""What attacks on the gate have found, one by one: cases in which a record once decided how others were read."""

import math
import random
from decimal import Decimal

import dask.dataframe
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from gate import Unit, Weights, open_records, outcome
from writers import objects

import pgmpy_dp as dp
from pgmpy_dp.data.features import PrivateFeatures
from pgmpy_dp.privacy.coins import random_keys
from pgmpy_dp.privacy.noise import UNIT_WEIGHT

pytestmark = pytest.mark.full


STAND_INS = {"missing": {"v": "missing"}, "other": {"v": "other"}}


def counted(source, schema, unit=None, max_rows=None):
    """Number of records or units and the table of all variables, or the message by which they are refused."""

    def read():
        opened = open_records(source, schema, schema.variables, unit and Unit(unit, max_rows, random_keys))
        return opened.size, opened.counts([schema.variables])[schema.variables].tolist()

    return outcome(read)


def refused(found):
    return isinstance(found, str)


# A file's types are its own.


@pytest.mark.parametrize("first", [[30, 30], [30, None], [None, None], [30.0, 30.5]])
@pytest.mark.parametrize("last", [[17.5], [17], [17, None], [17.5, None]])
def test_a_missing_age_in_one_file_rounds_no_age_in_another(first, last, tmp_path):
    schema = dp.Schema({"age": dp.Bins([0, 18, 65])}, missing={"age": "missing"})
    for kind in ("float64", None):  # where pandas finds another type, with or without a missing age
        for number, ages in enumerate([first, last]):
            column = pd.Series(ages, dtype=kind)
            frame = pd.DataFrame({"age": column if kind else column.convert_dtypes()})
            frame.to_parquet(tmp_path / f"{number}.parquet")
        ages = [*first, *last]
        young, absent = sum(age in (17, 17.5) for age in ages), ages.count(None)
        found = counted(tmp_path, schema)
        assert refused(found) or found == (len(ages), [young, len(ages) - young - absent, absent])


@pytest.mark.parametrize("values", [(["1"], [1]), ([1], ["x"]), ([True], [1]), ([True], ["true"]), ([b"x"], ["x"])])
def test_a_file_does_not_change_the_kind_of_values_in_another(values, tmp_path):
    schema = dp.Schema({"v": ["1", "x", "true", 7]}, **STAND_INS)
    alone = []
    for number, part in enumerate(values):
        for folder in (tmp_path / "both", tmp_path / str(number)):
            folder.mkdir(exist_ok=True)
            pd.DataFrame({"v": part}).to_parquet(folder / f"{number}.parquet")
        alone.append(counted(tmp_path / str(number), schema)[1])
    found = counted(tmp_path / "both", schema)
    assert refused(found) or found == (2, [sum(both) for both in zip(*alone, strict=True)])


@pytest.mark.parametrize("ages", [[0.0, math.nan], [math.nan, 5.0], [0.0, 5.0, math.nan, None]])
def test_a_nan_is_missing_whatever_the_other_values_of_a_file_are(ages, tmp_path):
    """Statistics in the file leave it out, and engines take them for all values."""
    pa.parquet.write_table(pa.table({"v": pa.array(ages, pa.float64())}), tmp_path / "records.parquet")
    schema = dp.Schema({"v": dp.Bins([0, 1, 18])}, **STAND_INS)
    size, absent = len(ages), sum(age is None or math.isnan(age) for age in ages)
    assert counted(tmp_path / "records.parquet", schema) == (size, [ages.count(0.0), ages.count(5.0), absent, 0])


# Names of columns, which an engine matches without regard to case, decide nothing across files.


def write_columns(path, columns):
    """Write a file of columns whose names may differ in their case alone, or in nothing."""
    names, values = zip(*columns, strict=True)
    pa.parquet.write_table(pa.Table.from_arrays([pa.array(column) for column in values], list(names)), path)


@pytest.mark.parametrize("names", [["v", "a", "U", "u"], ["v", "U", "u", "a"], ["u", "U", "v"], ["V", "v", "u", "U"]])
@pytest.mark.parametrize("max_rows", [None, 1])
def test_a_person_is_found_in_the_column_of_her_name_in_each_file(names, max_rows, tmp_path):
    values = {"v": [1] * 100, "u": ["p"] * 100, "a": [0] * 100, "V": [2] * 100, "U": [f"q{row}" for row in range(100)]}
    for number, order in enumerate([["v", "a", "u", "U"], names, ["v", "a", "u", "U"]]):
        write_columns(tmp_path / f"{number}.parquet", [(name, values[name]) for name in order])
    schema = dp.Schema({"v": [1, 2]})
    one = 1 if max_rows else 300 * (UNIT_WEIGHT // 300)
    assert counted(tmp_path, schema, "u", max_rows) == (1, [one, 0])
    assert counted(tmp_path, schema) == (300, [300, 0])


def test_files_of_one_layout_with_names_that_an_engine_changes_are_read_by_place(tmp_path):
    """DuckDB calls the columns u, u_1, U, u of a file something else; files of one layout it calls alike."""
    for number in range(3):
        names = ["u", "u_1", "U", "x", "x", "filename", "file_row_number"]
        columns = [(name, [place + 10 * number]) for place, name in enumerate(names)]
        write_columns(tmp_path / f"{number}.parquet", columns)
    for place, name in enumerate(["u", "u_1", "U"]):
        schema = dp.Schema({name: [place + 10 * number for number in range(3)]})
        assert counted(tmp_path, schema) == (3, [1, 1, 1])
        assert counted(tmp_path, schema, "file_row_number", 1) == (3, [1, 1, 1])


# Columns may be called anything.

FORMS = {
    "pandas": lambda frame: frame,
    "Polars": pl.from_pandas,
    "PyArrow": pa.Table.from_pandas,
    "Polars lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "DuckDB relation": lambda frame: duckdb.from_arrow(pa.Table.from_pandas(frame)),
    "Dask": lambda frame: dask.dataframe.from_pandas(frame, npartitions=2),
}
NAMES = ["__pgmpy_dp_weight__", "__pgmpy_dp_key__", "^z$", "*", "rows", "key0", "c0", 'a"b', "a.b"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NAMES)
def test_columns_of_any_name_are_read_as_such(form, name):
    frame = pd.DataFrame({"who": ["p", "p", "q", "q"], name: [1, 2, 3, 3], "z": 0})
    schema, half = dp.Schema({name: [1, 2, 3]}), UNIT_WEIGHT // 2
    assert counted(FORMS[form](frame), schema) == (4, [1, 1, 2])
    assert counted(FORMS[form](frame), schema, "who") == (2, [half, half, 2 * half])
    persons = pd.DataFrame({name: ["p", "p", "p", "q"], "v": [1, 1, 1, 2], "z": 0})
    third = UNIT_WEIGHT // 3
    assert counted(FORMS[form](persons), dp.Schema({"v": [1, 2]}), name) == (2, [3 * third, UNIT_WEIGHT])
    assert counted(FORMS[form](persons), dp.Schema({"v": [1, 2]}), name, 1) == (2, [1, 1])


# Strange values are other values, or missing, and refusals do not show them.

DAYS = [2932897, -719163, 2**31 - 1, -(2**31)]  # of which Python has none


def polars_column(stored, cast):
    return lambda values: pl.DataFrame({"v": pl.Series(values, dtype=stored).cast(cast)})


def arrow_column(stored, cast):
    return lambda values: pa.table({"v": pa.array(values, stored).cast(cast)})


ODD = {
    "long field": ("csv", ["9" * 32_000, "1" + "0" * 10**6, "-" + "9" * 32_000]),
    "dotless i": ("csv", ["ınf", "ınfınıty", "-ınf"]),
    "signalling NaN": (lambda v: pd.DataFrame({"v": objects(v)}), [Decimal("sNaN"), Decimal("-sNaN12")]),
    "Polars dates": (polars_column(pl.Int32, pl.Date), DAYS),
    "Polars times": (polars_column(pl.Int64, pl.Datetime("us")), [2**62, -(2**62), 0]),
    "Polars durations": (polars_column(pl.Int64, pl.Duration("ms")), [2**62, -(2**62), 0]),
    "Arrow dates": (arrow_column(pa.int32(), pa.date32()), DAYS),
    "Arrow times": (arrow_column(pa.int64(), pa.timestamp("s")), [2**62, 0]),
    "Arrow durations": (arrow_column(pa.int64(), pa.duration("s")), [2**62, 0]),
    "lazy dates": (lambda values: polars_column(pl.Int32, pl.Date)(values).lazy(), DAYS),
    "lazy durations": (lambda values: polars_column(pl.Int64, pl.Duration("ms"))(values).lazy(), [2**62, 0]),
}
KINDS = [["x"], [1, 2], [0.5], [True], ["x", 1], dp.Bins([-5, 0, 5]), dp.DateBins(["1950-01-01", "1950-01-02"])]


@pytest.mark.parametrize("kind", ODD)
def test_a_strange_value_is_another_or_none(kind, tmp_path):
    make, values = ODD[kind]

    def source(values):
        if make != "csv":
            return make(values)
        (tmp_path / "records.csv").write_text("\n".join(["v,w", *(f"{value},1" for value in values), ""]))
        return tmp_path / "records.csv"

    for states in KINDS:
        size, table = counted(source(values), dp.Schema({"v": states}, **STAND_INS))
        assert (size, sum(table), sum(table[-2:])) == (len(values),) * 3
        for value in values:
            message = counted(source([value]), dp.Schema({"v": states}))
            assert "'v' has " in message
            assert str(value)[:9] not in message or value == 0


# A path is a path.


@pytest.mark.parametrize("name", ["a[12]", "a*", "a?", "a[!b]", "**", "{a1,a2}", "a%d"])
def test_a_path_with_signs_of_patterns_reads_no_other_file(name, tmp_path):
    for other in ("a1", "a2", "ab", name):
        folder = tmp_path / f"folder{other}"
        folder.mkdir()
        for path in (tmp_path / f"{other}.parquet", folder / f"{other}.parquet"):
            pd.DataFrame({"v": ["own" if other == name else "other"]}).to_parquet(path)
    for path in (tmp_path / f"{name}.parquet", tmp_path / f"folder{name}"):
        assert counted(path, dp.Schema({"v": ["own", "other"]})) == (1, [1, 0])


# Numbers agree by value, in every type.


FLOATS = [0.0, -0.0, 1.0, 0.5, 6e-8, 60000.0, -60000.0, 65504.0, -65504.0, 2.0**63, math.inf, -math.inf, math.nan]

STATES = [[0, 60000, -60000], [1, 70000], [-65504, 65504], [0.5, 1e300], [1.7e308, -1.7e308, 0], [2**60, 1], [2.0**63]]


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble])
@pytest.mark.parametrize("states", [*STATES, dp.Bins([-1e300, 0.25, 1e6])], ids=str)
def test_floats_of_any_width_are_the_states_that_they_equal(kind, states):
    """What is computed of states overflows in no short type."""
    schema = dp.Schema({"v": states}, **STAND_INS)
    with np.errstate(over="ignore"):
        short = np.array(FLOATS, dtype=kind)
    one_by_one = counted(pd.DataFrame({"v": pd.Series([float(value) for value in short], dtype=object)}), schema)
    assert counted(pd.DataFrame({"v": short}), schema) == one_by_one
    assert not refused(one_by_one)


@pytest.mark.parametrize("kind", ["Sparse[int64]", "Sparse[float32]"])
def test_sparse_columns_are_the_columns_that_they_are_made_of(kind):
    frame = pd.DataFrame({"v": pd.Series([0, 1, 0, 2**24], dtype=kind)})
    assert counted(frame, dp.Schema({"v": [0, 2**24]}, **STAND_INS), "v", 1) == (3, [1, 1, 0, 1])


def test_a_long_float_between_two_floats_is_no_state():
    just_above = np.nextafter(np.longdouble(1), np.longdouble(2))
    for value, table in ((np.longdouble(1), [1, 0, 0]), (just_above, [0, 0, 1])):
        column = np.array([value], dtype=np.longdouble)
        assert counted(pd.DataFrame({"v": column}), dp.Schema({"v": [1]}, **STAND_INS)) == (1, table)


class Failing(Decimal):
    """A number none of whose methods works, as the hash of a signalling NaN does not."""

    def _fails(self, *others):
        raise TypeError

    __hash__ = __eq__ = __lt__ = __float__ = __str__ = __repr__ = is_nan = _fails


@pytest.mark.parametrize(("text", "position"), [("1", 0), ("7", 2), ("1E+400", 2), ("NaN", 1), ("sNaN", 1)])
def test_a_decimal_whose_methods_fail_is_read_as_its_number(text, position):
    frame = pd.DataFrame({"v": objects([Failing(text)])})
    expected = [int(place == position) for place in range(3)]
    assert counted(frame, dp.Schema({"v": dp.Bins([0, 2])}, **STAND_INS)) == (1, expected)
    expected = [0, position == 1, position != 1]  # a decimal is no state
    assert counted(frame, dp.Schema({"v": [1]}, **STAND_INS)) == (1, expected)


class FailingComplex(complex):
    """A number that cannot be compared."""

    __hash__ = __eq__ = __ne__ = Failing._fails


class FailingFloat(np.float64):
    """A number of numpy none of whose methods works."""

    dtype = property(Failing._fails)
    __hash__ = __eq__ = __float__ = item = astype = Failing._fails


class FailingLongFloat(np.longdouble):
    """A long float that cannot be converted."""

    __hash__ = __eq__ = __float__ = item = astype = Failing._fails


class Closed:
    """An object that does not say what it is."""

    def __init__(self, value):
        pass

    def __getattribute__(self, name):
        raise TypeError


@pytest.mark.parametrize(
    ("kind", "position"), [(FailingComplex, 0), (FailingFloat, 0), (FailingLongFloat, 0), (Closed, 2)]
)
def test_no_method_of_an_object_is_called(kind, position):
    """Numbers of unknown classes are read as numbers, and narwhals looks for the type of no column of objects."""
    table = np.eye(3, dtype=int)[0] + np.eye(3, dtype=int)[position]
    frame = pd.DataFrame({"v": objects([1, kind(1)])})
    assert counted(frame, dp.Schema({"v": [1]}, **STAND_INS)) == (2, table.tolist())


def test_features_are_no_objects():
    frame = pd.DataFrame({"x": np.array([1, FailingComplex(1)], dtype=object)})
    with pytest.raises(dp.SchemaError, match="'x' is not numeric"):
        PrivateFeatures(frame, [1, 2], bounds=(0, 1), classes=[1, 2], budget=dp.PrivacyBudget(1.0))


@pytest.mark.parametrize("kind", [np.float16, np.float32])
@pytest.mark.parametrize("make", [pa.table, pl.DataFrame, pd.DataFrame])
def test_a_signalling_nan_is_missing_without_a_warning(kind, make):
    one, signalling = {np.float16: (0x3C00, 0x7D00), np.float32: (0x3F800000, 0x7FA00000)}[kind]
    values = np.array([one, signalling], dtype=f"u{kind().itemsize}").view(kind)
    for states in (dp.Bins([0, 2]), [1]):
        assert counted(make({"v": values}), dp.Schema({"v": states}, **STAND_INS)) == (2, [1, 1, 0])
    source, weights = make({"v": [1, 1], "w": values}), Weights("w", 1)
    opened = outcome(lambda: open_records(source, dp.Schema({"v": [1]}), ["v"], weights=weights))
    assert opened.counts([("v",)])["v",].tolist() == [UNIT_WEIGHT]


# A source that is another each time it is read.


def random_relation():
    connection = duckdb.connect()
    connection.execute("create temp table t as select (i % 20)::int as v, i % 20 as who from range(200) t(i)")
    return connection.sql("select * from t where random() < 0.5")


def random_frame():
    frame = pl.LazyFrame({"v": [*range(20)] * 10}).with_columns(who=pl.col("v"))
    return frame.map_batches(lambda rows: rows.sample(fraction=random.random(), shuffle=True))


@pytest.mark.parametrize("source", [random_relation, random_frame])
@pytest.mark.parametrize("max_rows", [None, 1, 2])
def test_no_person_weighs_more_where_rows_come_and_go(source, max_rows):
    schema = dp.Schema({"v": range(20)})
    for _ in range(5):
        opened = open_records(source(), schema, ["v"], Unit("who", max_rows, random_keys))
        assert opened.size <= 20
        for _ in range(3):
            tables = outcome(lambda: opened.counts([("v",)]))
            assert refused(tables) or tables["v",].max() <= (max_rows or UNIT_WEIGHT)


# A partition of a Dask frame has the types that the frame states.


def partitions(columns, convert=False):
    """A Dask frame of partitions that each have their own types, of which it states the first one's."""
    with dask.config.set({"dataframe.convert-string": convert}):
        parts = [pd.DataFrame(part) for part in columns]
        meta = dask.dataframe.utils.clear_known_categories(parts[0].iloc[:0])
        return dask.dataframe.from_map(lambda part: part, parts, meta=meta)


TWENTY = list(range(20))
NULLABLE, ARROW = pd.Int64Dtype(), pd.ArrowDtype(pa.int64())
DICTIONARY = pd.ArrowDtype(pa.dictionary(pa.int8(), pa.int64()))
DRIFTING = {
    "a text": (TWENTY, [*TWENTY, "zz"]),
    "a long integer": (TWENTY, [*TWENTY, 10**20]),
    "a fraction": (TWENTY, [*TWENTY, 0.5]),
    "a missing id": (TWENTY, [*TWENTY, None]),
    "nullable": (TWENTY, pd.array([*TWENTY, 20], dtype=NULLABLE)),
    "Arrow": (pd.array(TWENTY, dtype=NULLABLE), pd.array([*TWENTY, 20], dtype=ARROW)),
    "categories": (TWENTY, pd.Categorical([*TWENTY, "zz"])),
    "dictionaries": (pd.array(TWENTY, dtype=ARROW), pd.array([*TWENTY, 20], dtype=ARROW).astype(DICTIONARY)),
    "short": (TWENTY, np.array([*TWENTY, 20], dtype=np.int8)),
}


@pytest.mark.parametrize("ids", DRIFTING)
@pytest.mark.parametrize("convert", [False, True])
@pytest.mark.parametrize("order", [1, -1])
def test_one_partition_does_not_decide_whose_the_rows_of_another_are(ids, convert, order):
    """Rows were brought together by hashes of ids, which Dask takes of the type that a partition has."""
    parts = [{"who": column, "v": [0] * 20 + [1] * (len(column) - 20)} for column in DRIFTING[ids]][::order]
    found = counted(partitions(parts, convert), dp.Schema({"v": [0, 1]}), "who", 1)
    assert "hold the column 'who' in another type" in found or "'who' of units must hold" in found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([2**53 + 1, 1], [1.0, 0.5]),
        ([2**53 + 1, 1], [1, "x"]),
        (pd.array([2**53 + 1, 1], dtype=NULLABLE), [1.0, None]),
        ([True, False], [1, 0]),
        (pd.Categorical([2**53 + 1, 1]), pd.Categorical([1.0, 0.5])),
        (pd.Categorical(["x", "1"]), pd.Categorical(["x", 1])),
        (["2020-01-01"], pd.to_datetime(["2020-01-01"])),
        (pd.to_datetime(["2020-01-01"]), pd.to_datetime(["2020-01-01"], utc=True)),
    ],
)
@pytest.mark.parametrize("unit", [None, "who"])
def test_one_partition_does_not_decide_the_type_of_the_values_of_another(one, other, unit):
    schema = dp.Schema({"v": [2**53 + 1, 1, "x", "1"]}, **STAND_INS)
    for values in ((one, other), (other, one)):
        parts = [{"v": column, "who": range(len(column))} for column in values]
        assert "'v' in another type" in counted(partitions(parts), schema, unit)


LONE = "\ud800"  # half of a surrogate pair, which pandas takes for the letters that it is shown by
SPLIT = {
    "objects": [pd.Series([value], dtype=object) for value in (1, "x", True, 10**20, (1,), None, 2**53 + 1, LONE, 1.0)],
    "categories": [
        pd.Series(pd.Categorical.from_codes([0, -1], pd.Index([text], dtype=object)))
        for text in ("x", LONE, repr(LONE)[1:-1], "1", "x\0")
    ],
}


@pytest.mark.parametrize("columns", SPLIT.values(), ids=SPLIT)
@pytest.mark.parametrize("state", [1, 2**53 + 1, repr(LONE)[1:-1], "x\0"])
def test_values_of_any_kind_are_read_one_by_one_from_all_partitions(columns, state):
    """Dask writes partitions to a disk, and joins them, to bring the rows of persons together."""
    schema = dp.Schema({"v": [state, "x"]}, **STAND_INS)
    alone = [counted(pd.DataFrame({"v": column}), schema)[1] for column in columns]
    parts = [{"v": column, "who": [10 * n + k for k in range(len(column))]} for n, column in enumerate(columns)]
    expected = sum(map(len, columns)), np.sum(alone, axis=0).tolist()
    assert counted(partitions(parts), schema) == counted(partitions(parts), schema, "who", 1) == expected


def test_ids_that_hash_tables_take_for_others_are_told_apart_in_all_partitions():
    ids = [[LONE, "p"], [repr(LONE)[1:-1], LONE, "p\0"], ["p\0", repr(LONE)[1:-1]]]
    parts = [{"v": [0] * len(who), "who": pd.Series(who, dtype="string[python]")} for who in ids]
    assert counted(partitions(parts), dp.Schema({"v": [0, 1]}), "who", 1) == (4, [4, 0])
