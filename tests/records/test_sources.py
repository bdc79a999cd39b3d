"""Records in all their forms give the same counts."""

import sys
from decimal import Decimal
from itertools import combinations

import dask.dataframe
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from spark_sessions import spark_session
from writers import ALL

from pgmpy_dp.data import PrivateDataset, exact_marginals
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy import PrivacyBudget
from pgmpy_dp.privacy.coins import random_keys
from pgmpy_dp.privacy.noise import UNIT_WEIGHT
from pgmpy_dp.records import csv_reading, engines, open_records
from pgmpy_dp.records.memory import CountedRecords, count, shared_scopes
from pgmpy_dp.records.streams import StreamedRecords
from pgmpy_dp.records.units import Unit
from pgmpy_dp.release import NoisyMarginals
from pgmpy_dp.schema import Bins, Schema

SCHEMA = Schema(
    {
        "text": ["x", "y, or z", "ü", "unused"],
        "digits": ["1", "2"],  # texts, though they look like integers
        "whole": [2, 1],
        "flag": [True, False],
        "share": [0.5, 0.25],
        "age": Bins([0, 18, 65, 120]),
        "rows": ["a", "b"],  # a name that the counting itself might want
    },
    missing={"text": "none", "whole": -1, "flag": "unknown", "share": 0.25, "age": "none"},
)
CLIQUES = [*combinations(SCHEMA.variables, 2), ("whole",), ("age", "text", "flag")]


def records(count=500):
    rng = np.random.default_rng(7)

    def column(values, dtype="string", absent=True):
        drawn = pd.Series(pd.array([values[i] for i in rng.integers(len(values), size=count)], dtype=dtype))
        return drawn.mask(rng.random(count) < 0.1) if absent else drawn

    return pd.DataFrame(
        {
            "text": column(["x", "y, or z", "ü"]),
            "digits": column(["1", "2"], absent=False),
            "whole": column([1, 2], "Int64"),
            "flag": column([True, False], "boolean"),
            "share": column([0.5, 0.25], "float64"),
            "age": column([0.0, 17.5, 18.0, 40.25, 65.0, 120.0], "float64"),
            "rows": column(["a", "b"], absent=False),
            "elsewhere": column(["not", "in", "the", "schema"]),
            "person": column([f"p{k}" for k in range(150)], absent=False),
        }
    )


def refused(message, source, schema, *how, error=SchemaError):
    """Require that opening a source is refused, with nothing behind the message."""
    with pytest.raises(error, match=message) as caught:
        open_records(source, schema, *how or [schema.variables])
    assert caught.value.__cause__ is caught.value.__context__ is None


def counted(source, schema, *how):
    """The table of the first variable."""
    variable = schema.variables[0]
    return open_records(source, schema, *how or [[variable]]).counts([(variable,)])[variable,].tolist()


def array(frame, folder):
    return np.column_stack([open_records(frame, SCHEMA, SCHEMA.variables).codes[v] for v in SCHEMA.variables])


def lazy(frame, folder):
    return pl.from_pandas(frame).lazy().with_columns(pl.selectors.string().cast(pl.Categorical))


FORMS = ALL | {
    "lazy": lazy,
    "array": array,
    "ready-made": lambda frame, folder: exact_marginals(frame, SCHEMA, [SCHEMA.variables]).tables,
}
LAZY = ["lazy", "Parquet", "folder", "DuckDB", "Dask", "Spark"]
EAGER = ["Polars", "Arrow", "CSV", "array", "ready-made"]


def check_units(form, frame, folder):
    """Both bounds on what a person contributes. The sample is random, but its size is not."""

    def opened(max_rows):
        return open_records(FORMS[form](frame, folder), SCHEMA, SCHEMA.variables, Unit("person", max_rows, random_keys))

    sizes = frame.groupby("person").size()
    everything = exact_marginals(frame, SCHEMA, CLIQUES).tables
    for max_rows in (2, 100):
        records = opened(max_rows)
        assert records.size == len(sizes)
        table = records.counts([("text", "age")])["text", "age"]
        assert table.sum() == sizes.clip(upper=max_rows).sum()
        assert (table <= everything["text", "age"]).all()
        assert max_rows < 100 or (table == everything["text", "age"]).all()
    whole = open_records(frame, SCHEMA, SCHEMA.variables)
    weights = (UNIT_WEIGHT // frame["person"].map(sizes)).to_numpy()
    records = opened(None)
    assert records.size == len(sizes)
    for clique, table in records.counts(CLIQUES[:3]).items():
        assert (table == count(whole.codes, SCHEMA, clique, weights)).all()
        assert len(sizes) * (1 - 1e-3) < table.sum() / UNIT_WEIGHT <= len(sizes)
    nobody = frame.assign(person=frame["person"].where(frame.index != 3))
    person = Unit("person", 2, random_keys)
    refused("'person' of units has missing values", FORMS[form](nobody, folder), SCHEMA, SCHEMA.variables, person)


def check_other_values(form, frame, folder):
    """Undeclared values become a declared state silently, whatever their kind, and missing ones theirs."""
    states = {"text": ["x"], "digits": [1, 2], "whole": [2], "flag": [True], "share": [0.5], "rows": ["b"]}
    states["age"] = Bins([18, 65])
    stand_ins = {"missing": {**SCHEMA.missing, "share": "other"}, "other": dict.fromkeys(SCHEMA.variables, "other")}
    narrow = Schema(states, **stand_ins)  # digits are no numbers
    opened = open_records(FORMS[form](frame, folder), narrow, narrow.variables)
    if form == "CSV":  # where texts are read as the states are
        narrow = Schema({**states, "digits": ["1", "2"]}, **stand_ins)
    expected = exact_marginals(frame, narrow, [("text", "whole"), ("age", "digits", "rows"), ("flag", "share")]).tables
    for clique, table in opened.counts(list(expected)).items():
        np.testing.assert_array_equal(table, expected[clique], err_msg=str(clique))
    held = frame["text"].map({"x": 0}).where(frame["text"].isna() | (frame["text"] == "x"), 2).fillna(1).astype(int)
    assert expected["text", "whole"].sum(axis=1).tolist() == np.bincount(held, minlength=3).tolist()


def check_values(form, frame, folder):
    """Values that no state stands for yet are counted alike, for states to be discovered among them."""
    stand_ins = {"missing": {"text": "none", "whole": "none"}, "other": {"text": "other", "whole": "other"}}
    nothing = Schema({"text": [], "whole": []}, **stand_ins)
    opened = open_records(FORMS[form](frame, folder), nothing, nothing.variables, Unit("person", 100, random_keys))
    for variable in ("text",) if form == "CSV" else nothing.variables:  # a CSV file has no numbers, but their texts
        assert opened.value_counts(variable) == frame[variable].dropna().value_counts().to_dict()
    one_row = open_records(FORMS[form](frame, folder), nothing, nothing.variables, Unit("person", 1, random_keys))
    assert 0 < sum(one_row.value_counts("text").values()) <= frame["person"].nunique()


@pytest.mark.parametrize("form", [*EAGER, *LAZY])
def test_all_sources_give_identical_counts(form, tmp_path):
    frame = records()
    expected = exact_marginals(frame, SCHEMA, CLIQUES)
    opened = open_records(FORMS[form](frame, tmp_path), SCHEMA, SCHEMA.variables)
    assert opened.size == len(frame)
    tables = opened.counts(CLIQUES)
    assert list(tables) == CLIQUES
    for clique, table in tables.items():
        assert table.dtype == np.int64
        np.testing.assert_array_equal(table, expected.tables[clique], err_msg=str(clique))
    assert isinstance(opened, StreamedRecords) == (form in LAZY)
    if form in ("array", "ready-made"):
        return
    check_units(form, frame, tmp_path)
    check_other_values(form, frame, tmp_path)
    check_values(form, frame, tmp_path)
    wrong = [("age", 121.0, "not among"), ("digits", "3", "not among"), ("rows", None, "miss")]
    for variable, value, message in wrong[: 1 if form == "Spark" else 3]:  # Spark is slow
        folder = tmp_path / variable
        folder.mkdir()
        odd = frame.assign(**{variable: frame[variable].where(frame.index != 7, value)})
        refused(f"'{variable}' has .*{message}", FORMS[form](odd, folder), SCHEMA)
    refused("'text' has no column", FORMS[form](frame.drop(columns="text"), tmp_path), SCHEMA)
    none = open_records(FORMS[form](frame.iloc[:0], tmp_path), SCHEMA, SCHEMA.variables)
    assert none.size == none.counts([("text", "age")])["text", "age"].sum() == 0


@pytest.mark.parametrize("form", ["pandas", "Polars", "Arrow", "lazy", "DuckDB", "Dask"])
@pytest.mark.parametrize(
    ("values", "states"),
    [
        (["1", "2"], [1, 2]),
        ([1, 2], ["1", "2"]),
        ([True, False], [1, 0]),
        ([1, 0], [True, False]),
        ([1.0, 1.5], [1, 2]),
        ([2**53 + 1], [float(2**53)]),
        (["a", "c"], ["a", "b"]),
        (["17"], Bins([0, 18, 120])),
        ([True], Bins([0, 18, 120])),
        ([18, 121], Bins([0, 18, 120])),
        ([-0.001, 3.0], Bins([0, 18, 120])),
        ([pd.Timestamp("2020-01-01")], ["2020-01-02"]),
    ],
)
def test_values_outside_the_declaration_are_refused_without_showing_them(form, values, states, tmp_path):
    source = FORMS[form](pd.DataFrame({"v": values, "text": "x"}), tmp_path)
    refused(r"^Variable 'v' has values in the records that are not among", source, Schema({"v": states}))


@pytest.mark.parametrize("form", ["lazy", "DuckDB", "Dask"])
def test_lazy_numbers_agree_by_value(form, tmp_path):
    frame = pd.DataFrame({"v": np.array([1, 3], dtype="int8"), "w": np.array([2.0, -0.0]), "text": "x"})
    assert counted(FORMS[form](frame, tmp_path), Schema({"v": [300, 3.0, 1]})) == [0, 1, 1]
    assert counted(FORMS[form](frame, tmp_path), Schema({"w": [0, 2]})) == [1, 1]


def test_decimals_and_long_integers_are_numbers_to_bins():
    schema = Schema({"v": Bins([0, 18, 65])}, missing={"v": "none"}, other={"v": "other"})
    values = [Decimal("17.5"), Decimal(18), None, Decimal("65.25"), Decimal(3)]
    frames = [pd.DataFrame({"v": values}), duckdb.sql("SELECT unnest([17.5, 18, NULL, 65.25, 3])::DECIMAL(9, 2) AS v")]
    frames.append(duckdb.sql("SELECT unnest([17, 18, NULL, 66, 3])::HUGEINT AS v"))
    for frame in frames:
        assert counted(frame, schema) == [2, 1, 1, 1]


def spark_with_nan(kind):
    column = f"CAST(CASE WHEN id = 0 THEN '1' ELSE 'NaN' END AS {kind}) AS who"
    return spark_session().range(3).selectExpr("1 AS v", column)


@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize(
    "frame",
    [
        lambda kind: duckdb.sql(f"SELECT 1 AS v, unnest(['1', 'NaN', 'NaN'])::{kind} AS who"),
        lambda kind: pl.LazyFrame({"v": 1, "who": np.array([1, np.nan, np.nan], np.dtype(kind[0]))}),
        spark_with_nan,
    ],
    ids=["DuckDB", "Polars", "Spark"],
)
def test_rows_whose_id_is_not_a_number_are_nobodys(frame, kind):
    whose = Unit("who", 1, random_keys)
    refused("'who' of units has missing values", frame(kind), Schema({"v": [1]}), ["v"], whose)


def test_objects_of_python_cannot_be_streamed():
    frame = pl.LazyFrame({"v": pl.Series([object()], dtype=pl.Object)})
    refused("column of Python objects cannot be streamed", frame, Schema({"v": [1]}))


def test_a_source_that_has_changed_is_refused_before_the_charge(tmp_path):
    frame = records()
    path = ALL["Parquet"](frame, tmp_path)
    budget = PrivacyBudget(1.0)
    data = PrivateDataset(path, SCHEMA, budget)
    frame.assign(digits="3").to_parquet(path)
    with pytest.raises(SchemaError, match="'digits' has values"):
        data.measure([("digits",)], 0.5)
    assert budget.history == ()


@pytest.mark.parametrize(
    ("change", "unit"),
    [
        ("INSERT INTO records VALUES ('x', 'p')", None),
        ("DELETE FROM records WHERE who = 'q'", None),
        ("INSERT INTO records VALUES ('x', 'p')", "who"),
        ("UPDATE records SET who = 'r' WHERE v = 'y'", "who"),  # as many rows, of more persons
    ],
)
@pytest.mark.parametrize(
    "ask",
    [lambda data: data.measure([("v",)], 0.5), lambda data: data.discover_states("w", 0.5, delta=1e-6)],
    ids=["tables", "values"],
)
def test_other_rows_than_were_opened_are_refused_before_the_charge(change, unit, ask):
    connection = duckdb.connect()
    connection.execute("CREATE TABLE records AS SELECT * FROM (VALUES ('x', 'p'), ('y', 'p'), ('x', 'q')) t(v, who)")
    schema = Schema({"v": ["x", "y"], "w": []}, other={"w": "other"})
    relation = connection.sql("SELECT v, v AS w, who FROM records")
    data = PrivateDataset(relation, schema, PrivacyBudget(1.0, 1e-6), unit=unit, max_rows=unit and 2)
    connection.execute(change)
    with pytest.raises(SchemaError, match="records have changed since they were opened"):
        ask(data)
    assert data.budget.history == ()


def test_scans_are_shared_while_the_joint_table_is_small():
    schema = Schema({f"v{i}": list(range(16)) for i in range(8)})
    pairs = list(combinations(schema.variables, 2))
    scans = shared_scopes(schema, pairs)
    assert sorted(clique for _, members in scans for clique in members) == pairs
    assert all(schema.cells(scope) <= 2**14 for scope, _ in scans)
    assert all(set(clique) <= set(scope) for scope, members in scans for clique in members)
    assert len(scans) < len(pairs) / 2
    large = Schema({"a": list(range(1000)), "b": list(range(1000))})
    assert shared_scopes(large, [("a",), ("b", "a")]) == [(("b", "a"), [("b", "a"), ("a",)])]


@pytest.mark.parametrize(
    ("text", "states", "position"),
    [
        ("1", [1, 2], 0),
        ("2.0", [1, 2], 1),
        ("+1", [1, 2], 0),
        ("1", ["1", "x"], 0),
        ("", ["a", ""], 1),
        ("TRUE", [False, True], 1),
        ("true", ["true", "false"], 0),
        ("5e-1", [0.5, 2.0], 0),
        ("18", Bins([0, 18, 65]), 1),
        ("1e400", Bins([0, np.inf]), 0),
        (" a", [" a", "a"], 0),
        ("NA", ["NA", "a"], 0),
        *((text, states, None) for text, states in [("1", [True, False]), ("1_0", [10]), ("01", ["1"]), ("x", [1])]),
        *((text, states, None) for text, states in [("true", [1]), ("x", Bins([0, 1])), ("NA", ["a"])]),
    ],
)
def test_csv_texts_are_read_as_the_states_are_or_refused(text, states, position, tmp_path):
    pd.DataFrame({"v": [text], "other": ["a,b"]}).to_csv(tmp_path / "records.csv", index=False)
    if position is None:
        refused("not among", tmp_path / "records.csv", Schema({"v": states}))
    else:
        assert np.argmax(counted(tmp_path / "records.csv", Schema({"v": states}))) == position


def test_a_csv_file_with_two_columns_of_one_name_is_refused(tmp_path):
    (tmp_path / "twice.csv").write_text("v,v\n1,2\n")
    refused("more than one", tmp_path / "twice.csv", Schema({"v": [1, 2]}))


@pytest.mark.parametrize("rows", ["1,2,3\n1,2\n", "1,2\n1,2,\n", "1\n1,2\n", "1,2,3\n", "1,2\n\n", "1,1\n2\n"])
@pytest.mark.parametrize("block", [1, 2, 70])
def test_a_csv_row_with_more_or_fewer_fields_than_the_header_is_refused(rows, block, tmp_path, monkeypatch):
    """Wherever it stands; a blank line has one field."""
    monkeypatch.setattr(csv_reading, "_BLOCK_ROWS", block)
    path = tmp_path / "records.csv"
    for column in ("v", "w"):
        path.write_text(f"v,w\n{rows}")
        refused("more or fewer fields than the header", path, Schema({column: [1, 2]}, missing={column: 1}))


def test_arrays_of_codes():
    schema = Schema({"a": ["x", "y"], "b": [10, 20, 30]})
    codes = np.array([[0, 2], [1, 0]])
    opened = open_records(codes, schema, ["b", "a"])
    codes[:] = 0
    assert opened.counts([("b", "a")])["b", "a"].tolist() == [[0, 1], [0, 0], [1, 0]]
    other = Schema({"b": [10, 20], "a": ["x", "y"]}, other={"b": "other"})
    assert counted(np.array([[7, 0], [-1, 0]]), other) == [0, 0, 2]
    for wrong in ([[0, 3]], [[-1, 0]], [[2, 0]]):
        refused("not among", np.array(wrong), schema)
    for wrong in (np.zeros((2, 2)), np.zeros((2, 3), int), np.zeros(2, int), np.zeros((2, 2), bool)):
        refused("positions of states", wrong, schema, error=TypeError)


def test_names_of_all_kinds_survive_counting_and_release(tmp_path):
    states = {"größe, cm": ["a,b", 'sa"y', " ", "ж\n", "1"], "1": [1, 2.5, "yes"]}
    schema = Schema(states, missing={"1": "∅"}, other={"größe, cm": "übrige, alle"})
    frame = pd.DataFrame(
        {"größe, cm": ["a,b", 'sa"y', " ", "ж\n", "1", "?"], "1": pd.Series([1, 2.5, "yes", None, 1, 1])}
    )
    clique = ("größe, cm", "1")
    expected = np.zeros((6, 4), dtype=int)
    expected[[0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 0, 0]] = 1
    assert (exact_marginals(frame, schema, [clique]).tables[clique] == expected).all()
    frame.to_csv(tmp_path / "records.csv", index=False)
    noisy = PrivateDataset(tmp_path / "records.csv", schema, PrivacyBudget(1e6)).measure([clique], 1e6)
    noisy.save(tmp_path / "release.zip")
    loaded = NoisyMarginals.load(tmp_path / "release.zip")
    assert loaded == noisy
    assert loaded.schema == schema
    assert (loaded.tables[clique] == expected).all()


def test_ready_made_counts():
    schema = Schema({"a": ["x", "y"], "b": [10, 20, 30], "c": [0, 1]})
    tables = {("a", "b"): [[1, 2, 3], [4, 5, 6]], ("b", "c"): np.array([[5, 0], [0, 7], [9, 0]], dtype=np.uint8)}
    opened = open_records(tables, schema, schema.variables)
    assert isinstance(opened, CountedRecords)
    assert opened.size == 21
    assert opened.counts([("b", "a")])["b", "a"].tolist() == [[1, 4], [2, 5], [3, 6]]
    budget = PrivacyBudget(1.0)
    data = PrivateDataset(tables, schema, budget)
    with pytest.raises(SchemaError, match=r"No ready-made table contains clique \('a', 'c'\)"):
        data.measure([("a", "c")], 0.5)
    assert budget.history == ()
    wrong = [
        ({("a",): [1.0, 2.0]}, "whole numbers"),
        ({("a",): [1, 2, 3]}, r"shape \(2,\)"),
        ({("a",): [-1, 2]}, "negative"),
        ({("a",): [2**40, 1]}, r"more than 2\*\*40"),
        ({("a",): np.array([2**63, 2**63], dtype=np.uint64)}, r"more than 2\*\*40"),
        ({("a",): [1, 2], ("b",): [1, 1, 2]}, "different totals"),
        ({("a", "b"): [[1, 0, 0], [0, 1, 0]], ("b", "c"): [[1, 0], [0, 0], [1, 0]]}, r"disagree about \('b',\)"),
    ]
    for given, message in wrong:
        refused(message, given, schema)


@pytest.mark.parametrize(
    ("python", "problem"),
    [
        (f"#!/bin/sh\nexec {sys.executable} -S $@\n", "run .*, which cannot import pyarrow"),
        (None, "could not run Python"),
    ],
)
def test_workers_of_spark_that_cannot_count_are_named_by_a_job_without_records(python, problem, tmp_path, monkeypatch):
    session = spark_session()
    if python is not None:
        (tmp_path / "python").write_text(python)
        (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr(session.sparkContext, "pythonExec", str(tmp_path / "python"))
    frame = session.range(3).withColumnRenamed("id", "v")
    refused(f"Spark's workers {problem}.* PYSPARK_PYTHON", frame, Schema({"v": [0, 1, 2]}))


@pytest.mark.parametrize("setting", ["create table q(v varchar collate nocase)", "set default_collation='nocase'"])
def test_duckdb_compares_letter_by_letter(setting):
    connection = duckdb.connect()
    connection.execute(setting)
    connection.execute("create table if not exists q(v varchar)")
    connection.execute("insert into q values ('A'), ('a'), ('a'), ('Ä')")
    connection.execute("create table e as select v, v::enum('A', 'a', 'Ä') as w from q")
    schema = Schema({"v": ["a", "A", "other"], "w": ["a", "A", "other"]}, other={"v": "other", "w": "other"})
    opened = open_records(connection.table("e"), schema, ["v", "w"])
    assert opened.counts([("v",)])["v",].tolist() == [2, 1, 1]
    assert opened.counts([("w",)])["w",].tolist() == [2, 1, 1]
    assert open_records(connection.table("e"), schema, ["w"], Unit("v", 1, random_keys)).size == 3


def test_rows_of_a_unit_come_together_in_dask_by_their_id_alone():
    """Alike in every process, where Python's own hashes of texts are not."""
    for kind in ("string[python]", "string[pyarrow]"):
        assert engines._places(pd.Series(["p", "q", "p"], dtype=kind)).tolist() == [2181537457, 4110462503, 2181537457]
    for kind in ("int8", "uint64", "int64"):
        assert engines._places(pd.Series([5, 7, 5], dtype=kind)).tolist() == [5, 7, 5]


@pytest.mark.parametrize("last", [[], [7], [2**53]])
def test_dask_keeps_integers_where_one_is_not_declared(last):
    schema = Schema({"v": [2**53, 2**53 + 1, "other"]}, other={"v": "other"})
    frame = pd.DataFrame({"v": [2**53 + 1] * 3 + last})
    for parts in (1, 2):
        table = counted(dask.dataframe.from_pandas(frame, npartitions=parts), schema)
        assert table == [last.count(2**53), 3, last.count(7)]


def test_a_position_that_a_narrow_type_does_not_hold():
    schema = Schema({"v": [*map(str, range(300)), "other"]}, other={"v": "other"})
    for kind in (np.int8, np.uint8, np.int64, np.uint64):
        assert np.nonzero(counted(np.array([[120], [3]], kind), schema))[0].tolist() == [3, 120]
    assert np.nonzero(counted(np.array([[-1], [3]], np.int8), schema))[0].tolist() == [3, 300]


def test_other_forms_are_refused(tmp_path):
    refused(r"\.csv and \.parquet", tmp_path / "records.xlsx", SCHEMA, error=ValueError)
    for none in (tmp_path / "none.csv", tmp_path / "none.parquet", tmp_path):
        refused("", none, SCHEMA, error=FileNotFoundError)
    for other in ({"text": ["x"]}, [["x"]], None, pd.Series([1])):
        refused("", other, SCHEMA, error=TypeError)
    for tables in ({"a": [1, 2]}, {("a",): [1, 2], "b": [1, 2]}):
        refused("cliques, which are tuples of variables", tables, Schema({"a": ["x", "y"]}), error=TypeError)


def test_mechanisms_that_go_through_the_records_refuse_lazy_ones_before_the_charge(tmp_path):
    data = PrivateDataset(ALL["Parquet"](records(), tmp_path), SCHEMA, PrivacyBudget(1.0))
    with pytest.raises(ValueError, match="in memory: collect"):
        data.measure([("text",)], 0.5, sampling_rate=0.5)
    assert data.budget.history == ()


def test_names_of_folders_are_not_columns(tmp_path):
    """DuckDB would take the states of v from a folder named v=x."""
    (tmp_path / "v=x").mkdir()
    pd.DataFrame({"v": ["x", "y", "y"]}).to_parquet(tmp_path / "v=x" / "records.parquet")
    assert counted(tmp_path / "v=x" / "records.parquet", Schema({"v": ["x", "y"]})) == [1, 2]
