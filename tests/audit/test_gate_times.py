"""Times at the gate: integers of 64 bits, each of which has a day where its column's zone is, from every source.

Python, pandas and engines have no times of some integers, and raise where they are to make one: a single record then
decided that none was read.
"""

import math
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from itertools import product
from zoneinfo import ZoneInfo

import dask.dataframe
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet
import pytest
from gate import Unit, Weights, open_records, outcome
from spark_sessions import spark_session
from writers import objects

import pgmpy_dp as dp
from pgmpy_dp.privacy.coins import random_keys
from pgmpy_dp.privacy.noise import UNIT_WEIGHT
from pgmpy_dp.records.frames import id_column
from pgmpy_dp.records.units import number_ids

pytestmark = pytest.mark.full

TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
ZONES = [None, "UTC", "America/New_York", "America/Los_Angeles", "Asia/Kolkata", "Etc/GMT+5", "+05:30", "-03:00"]
NEW_YORK = "America/New_York"
NEW_YEAR = 1577836800  # 2020 in UTC
SECONDS = [NEW_YEAR - 1, NEW_YEAR, NEW_YEAR + 3600, 0, -1, 10**15, -(10**15)]
SECONDS += [end + hours * 3600 for end in (-62135596800, 253402300800) for hours in (-30, -1, 0, 1, 30)]  # of Python's
EDGES = ["0001-01-01", "0001-01-02", "1970-01-01", "2019-01-01", "2020-01-01", "2021-01-01", "9999-12-31"]
STAND_INS = {"missing": {"v": "missing"}, "other": {"v": "other"}}
BINNED = dp.Schema({"v": dp.DateBins(["-inf", *EDGES, "inf"], detail=0)}, **STAND_INS)
NAMED = dp.Schema({"v": ["0001-01-01", "1969-12-31", "2019-12-31", "2020-01-01", "9999-12-31"]}, **STAND_INS)
CLOCKS = ["1970-01-01T00:00:00", "2019-12-31T19:00:00", "2020-01-01T00:00:00", "2020-01-01T05:30:00"]
TIMED = dp.Schema({"v": dp.TimeBins(["-inf", *CLOCKS, "inf"], detail=0)}, **STAND_INS)
# The last bin holds its upper edge: all of a day, or the second.
TO_A_DAY = dp.Schema({"v": dp.DateBins(["1970-01-01", "2020-01-01"], detail=0)}, **STAND_INS)
TO_A_SECOND = dp.Schema({"v": dp.TimeBins(["1970-01-01", "2020-01-01T00:00"], detail=0)}, **STAND_INS)
SCHEMAS = [BINNED, NAMED, TIMED, TO_A_DAY, TO_A_SECOND]
ROWS = dp.Schema({"w": [0]}, other={"w": "other"})
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instants(unit):
    """Times of 64 bits; the least of them, and the last here, is none to numpy."""
    held = dict.fromkeys([*(second * TICKS[unit] for second in SECONDS), NEW_YEAR * TICKS[unit] - 1])
    return [*(time for time in held if abs(time) < 2**63), 2**63 - 1, -(2**63) + 1, -(2**63)]


def second(instant, unit, zone):
    """The second of a time since 1970 where its zone is, by Python's integers and calendars."""
    seconds, offset = instant // TICKS[unit], timedelta()
    if zone is not None:
        known = EPOCH + timedelta(seconds=min(max(seconds, -62135510400), 253402128000))
        named = datetime.strptime(zone, "%z").tzinfo if zone[0] in "+-" else ZoneInfo(zone)
        offset = known.astimezone(named).utcoffset()
    return seconds + offset // timedelta(seconds=1)


def state(seconds, schema):
    """The state of a time: of its day, from 1 for that of year 1, where the schema has no times."""
    number = EPOCH.toordinal() + seconds // 86400
    if schema in (TO_A_DAY, TO_A_SECOND):
        last = NEW_YEAR + 86399 if schema is TO_A_DAY else NEW_YEAR
        return schema.states["v"][0] if 0 <= seconds <= last else "other"
    if schema is TIMED:
        edges = [datetime.fromisoformat(edge).replace(tzinfo=UTC).timestamp() for edge in CLOCKS]
        return schema.states["v"][sum(seconds >= edge for edge in edges)]
    if schema is BINNED:
        return schema.states["v"][sum(number >= datetime.fromisoformat(edge).toordinal() for edge in EDGES)]
    text = str(datetime.fromordinal(number).date()) if 1 <= number <= datetime.max.toordinal() else None
    return text if text in schema.states["v"] else "other"


def table_of(seconds, schema):
    """The counts of times, None of which is missing."""
    counts = Counter("missing" if second is None else state(second, schema) for second in seconds)
    return [counts[name] for name in schema.states["v"]]


# Columns of times, in all forms: functions of the integers, their unit and a zone.


def arrow(times, unit, zone):
    column = pa.array(times, pa.int64()).cast(pa.timestamp(unit, zone))
    return pa.table({"v": column, "w": pa.array(range(len(times)), pa.int64())})


def dictionary(times, unit, zone):
    table = arrow(times, unit, zone)
    return table.set_column(0, "v", table["v"].dictionary_encode())


def pandas(times, unit, zone):
    column = pd.Series(np.array(times, dtype=np.int64).view(f"datetime64[{unit}]"))
    column = column if zone is None else column.dt.tz_localize("UTC").dt.tz_convert(zone)
    return pd.DataFrame({"v": column, "w": range(len(times))})


def polars(times, unit, zone):
    return pl.from_arrow(arrow(times, unit, zone))


def duckdb_table(times, unit, zone):
    """A table of DuckDB, whose session has the zone."""
    connection = duckdb.connect()
    connection.execute(f"SET TimeZone = '{zone or 'UTC'}'")
    connection.register("given", arrow(times, unit, zone))
    connection.execute("CREATE TEMP TABLE own AS SELECT * FROM given")
    return connection.table("own")


IN_MEMORY = {
    "Arrow": arrow,
    "Arrow's dictionary": dictionary,
    "pandas": pandas,
    "pandas' categories": lambda *column: pandas(*column).astype({"v": "category"}),
    "pandas' Arrow": lambda *column: arrow(*column).to_pandas(types_mapper=pd.ArrowDtype),
    "pandas' Arrow's dictionary": lambda *column: dictionary(*column).to_pandas(types_mapper=pd.ArrowDtype),
    "Polars": polars,
}
FORMS = IN_MEMORY | {
    "Polars, lazy": lambda *column: polars(*column).lazy(),
    "DuckDB": duckdb_table,
    "Dask": lambda *column: dask.dataframe.from_pandas(pandas(*column), npartitions=2, sort=False),
    "Parquet": arrow,
    "Parquet of a dictionary": dictionary,
    "Parquet of Polars": polars,
    "Parquet in a folder": arrow,
    "Spark": arrow,
}


def exists(form, unit, zone):
    """Whether a form has such times; those of Parquet files that DuckDB converts are refused for their type."""
    shifted = zone is not None and zone[0] in "+-"
    if form == "Spark":  # slow
        return unit == "us" and zone in (None, NEW_YORK)
    if form == "DuckDB":
        return zone is None or (unit in ("us", "ns") and not shifted)
    if "Polars" in form and (unit == "s" or shifted):
        return False
    return "Parquet" not in form or unit in ("us", "ns")


COLUMNS = [column for column in product(FORMS, TICKS, ZONES) if exists(*column)]


@pytest.fixture
def source(tmp_path):
    """Function: of a form and a column of times, what the gate is handed."""

    def make(form, times, unit, zone):
        records, path = FORMS[form](times, unit, zone), tmp_path / "1.parquet"
        if "Parquet" not in form and form != "Spark":
            return records
        if isinstance(records, pl.DataFrame):
            records.write_parquet(path)
            return path
        first = len(records) // 2 if form == "Parquet in a folder" else len(records)
        pa.parquet.write_table(records[:first], path)
        if first < len(records):  # a file of another layout
            pa.parquet.write_table(records[first:].select(["w", "v"]), tmp_path / "2.parquet")
            return tmp_path
        if form == "Spark":
            spark_session().conf.set("spark.sql.session.timeZone", zone or "UTC")
            return spark_session().read.parquet(str(path))
        return path

    return make


def counted(records, schema, unit=None, weights=None):
    """The table of the only variable, or the message by which the records are refused."""
    (variable,) = schema.variables

    def read():
        whose = None if unit is None else Unit(unit, 1, random_keys)
        opened = open_records(records, schema, [variable], whose, weights and Weights(weights, 2.0))
        return opened.counts([(variable,)])[variable,].tolist()

    return outcome(read)


@pytest.mark.parametrize(("form", "unit", "zone"), COLUMNS)
def test_every_time_of_64_bits_has_the_day_and_hour_that_it_has_where_its_zone_is(form, unit, zone, source):
    times = instants(unit)
    records, seconds = source(form, times, unit, zone), [*(second(time, unit, zone) for time in times[:-1]), None]
    for schema in SCHEMAS:
        assert counted(records, schema) == table_of(seconds, schema)
    assert counted(records, dp.Schema({"v": dp.Bins([0, 1])}, **STAND_INS)) == [0, 1, len(times) - 1]


@pytest.mark.parametrize(("form", "unit", "zone"), [c for c in COLUMNS if c[2] in (None, NEW_YORK, "+05:30")])
def test_times_are_no_weights_and_no_values_but_they_are_ids(form, unit, zone, source):
    times = instants(unit)[:-1]
    records = source(form, [*times, times[3]], unit, zone)
    assert counted(records, ROWS, weights="v") == [0, 0]
    assert open_records(records, dp.Schema({"v": []}, **STAND_INS), ["v"]).value_counts("v") == {}
    if form == "Dask":
        assert "must hold integers or texts" in counted(records, ROWS, unit="v")
    else:
        assert sum(counted(records, ROWS, unit="v")) == len(times)


@pytest.mark.parametrize("zone", [None, NEW_YORK])
def test_ids_of_two_tables_are_the_times_that_they_are_in_any_forms(zone):
    times = instants("ms")[:-1]
    columns = {form: id_column(make(times, "ms", zone), "v") for form, make in IN_MEMORY.items()}
    for one, other in product(columns, columns):
        assert number_ids("v", columns[one], columns[other]).tolist() == [*range(len(times))] * 2, (one, other)
    without = id_column(arrow(times, "ms", None if zone else "UTC"), "v")
    assert number_ids("v", columns["Arrow"], without).tolist() == [*range(2 * len(times))]


def test_ids_in_other_units_are_those_that_they_equal():
    seconds = np.array([0, 2**62 // 10**6, -1, 5], dtype=np.int64)
    longer, both = (seconds * 10**6)[::-1], [0, 1, 2, 3, 3, 2, 1, 0]
    times = pandas(seconds, "s", None)["v"]
    for column in (pandas(longer, "us", None)["v"], pandas(longer, "us", None)["v"].astype("category")):
        assert number_ids("v", times, column).tolist() == both
    durations = pd.Series(seconds.view("timedelta64[s]")), pd.Series(longer.view("timedelta64[us]"))
    assert number_ids("v", *durations).tolist() == both
    cells = pd.Series([pd.Timestamp(0), pd.Timestamp(5, unit="s"), pd.NaT], dtype=object)
    assert number_ids("v", times, cells).tolist() == [0, 1, 2, 3, 0, 3, -1]


# A zone is that of the file, and not of the engine that reads it.


@pytest.mark.parametrize("unit", [None, "w"])
def test_each_file_of_a_folder_has_its_own_zones(unit, tmp_path):
    for number, zone in enumerate([NEW_YORK, "Asia/Kolkata", None, "UTC", NEW_YORK]):
        times = [(NEW_YEAR + 3600) * 10**6, NEW_YEAR * 10**6 - 1]
        pa.parquet.write_table(arrow(times, "us", zone), tmp_path / f"{number}.parquet")
    years = dp.Schema({"v": dp.DateBins(["2019-01-01", "year", "2021-01-01"])})
    opened = open_records(tmp_path, years, ["v"], unit and Unit(unit, None, random_keys))
    one = UNIT_WEIGHT // 5 if unit else 1
    assert opened.counts([("v",)])["v",].tolist() == [6 * one, 4 * one]


def test_parquet_files_of_households_have_zones(tmp_path):
    homes, persons = (make([NEW_YEAR * 10**6] * 2, "us", NEW_YORK) for make in (arrow, dictionary))
    pa.parquet.write_table(homes, tmp_path / "homes.parquet")
    pa.parquet.write_table(persons.rename_columns(["came", "w"]), tmp_path / "persons.parquet")
    own, other = (dp.Schema({v: dp.DateBins(["2019-01-01", "year", "2021-01-01"])}) for v in ("v", "came"))
    schema = dp.HouseholdSchema(own, other, key="w", max_persons=1)
    paths = tmp_path / "homes.parquet", tmp_path / "persons.parquet"
    noisy = dp.PrivateHouseholds(*paths, schema, dp.PrivacyBudget(1e6)).measure([("v", "came")], 1e6)
    assert noisy.tables["v", "came"].round().tolist() == [[2, 0], [0, 0]]


@pytest.mark.parametrize("rows", [0, 1])
def test_a_zone_that_is_not_known_is_refused_for_its_name(rows, tmp_path):
    path, table = tmp_path / "records.parquet", arrow([0] * rows, "us", "Mars/Olympus")
    assert "Reading variable 'v' failed" in counted(table, BINNED)
    pa.parquet.write_table(table, path)
    long = pl.from_arrow(arrow([0] * rows, "us", "UTC")).with_columns(pl.lit(1, pl.Int128).alias("long"))
    for write in (lambda: None, lambda: long.write_parquet(path)):  # PyArrow does not read the schema of the latter
        write()
        assert "'v' has times in a zone that is not known here" in counted(path, BINNED)
        assert counted(path, ROWS) == [rows, 0]


@pytest.mark.parametrize("rows", [0, 1])
def test_times_that_duckdb_converts_or_whose_zone_it_drops_are_refused_for_their_types(rows, tmp_path):
    times = [2**62] * rows
    columns = [arrow(times, unit, NEW_YORK)["v"] for unit in TICKS]
    columns += [pa.chunked_array([pa.array(times, pa.int64()).cast(pa.duration("s"))])]
    columns += [pa.chunked_array([pa.array([[time] for time in times], pa.list_(pa.timestamp("s", "UTC")))])]
    relations = [duckdb.from_arrow(pa.table({"v": column, "w": [0] * rows})) for column in columns]
    relations += [duckdb.from_df(pandas(times, unit, "UTC")) for unit in TICKS]
    for unit in ("ms", "us"):
        pa.parquet.write_table(arrow(times, unit, None), tmp_path / f"{unit}.parquet")
        relations.append(duckdb.read_parquet(str(tmp_path / f"{unit}.parquet")))
    for relation in relations:
        assert "'v' of the relation has times that DuckDB converts" in counted(relation, BINNED)
        assert "'v' of the relation has times that DuckDB converts" in counted(relation, ROWS, unit="v")
        assert counted(relation, dp.Schema({"w": [0, 1]}))[1] == 0


# Texts of times, and cells of no type.


def test_texts_of_times_have_the_day_and_hour_that_they_write(tmp_path):
    times = {
        "2019-12-31 23:59:59-05": "2019-12-31T23:59:59Z",
        "2019-12-31T20:00-05:00": "2019-12-31T20:00:00Z",
        "1883-01-01 00:00:00-04:56:02": "1883-01-01T00:00:00Z",
        "2020-01-01": "2020-01-01T00:00:00Z",
        "2020-01-01 00:00:00": "2020-01-01T00:00:00Z",
        "10000-01-01": "9999-12-31T00:00:00Z",
        "+292277026596-02-29T00:00:00Z": "9999-12-31T00:00:00Z",
        "-0001-12-31": None,
        "-292277026596-01-01": None,
    }
    others = ["12001-02-29", "1234567890123-01-01", "2019-12-31 23:59:59-5", "0000-00-00", "-2019-02-29"]
    seconds = [-(10**12) if own is None else int(datetime.fromisoformat(own).timestamp()) for own in times.values()]
    (tmp_path / "records.csv").write_text("\n".join(["v,w", *(f"{text},1" for text in [*times, *others]), ""]))
    frame = pd.DataFrame({"v": [*times, *others]})
    for records in (tmp_path / "records.csv", frame, frame.astype("category"), pl.from_pandas(frame).lazy()):
        for schema in (BINNED, TIMED, TO_A_DAY, TO_A_SECOND):
            *expected, beyond = table_of(seconds, schema)
            assert counted(records, schema) == [*expected, beyond + len(others)]


def test_times_in_columns_of_objects_have_the_day_and_hour_that_columns_of_times_give_them():
    cells = [(np.datetime64(count, unit), unit, count, None) for unit in TICKS for count in instants(unit)[:-1]]
    for utc, hours in product((253402286400, -62135596800 - 3600, NEW_YEAR - 1), (-5, 0, 5)):
        there = timezone(timedelta(hours=hours))
        time = pd.Timestamp(np.datetime64(utc, "s")).tz_localize("UTC").tz_convert(there)
        cells.append((time, "s", utc, f"{hours:+03}:00"))
    for count in (NEW_YEAR, NEW_YEAR - 1, -1):
        cells.append((EPOCH.replace(tzinfo=None) + timedelta(seconds=count, microseconds=999_999), "s", count, None))
    seconds = [second(count, unit, zone) for _, unit, count, zone in cells]
    frame = pd.DataFrame({"v": objects([cell for cell, *_ in cells])})
    for schema in SCHEMAS:
        assert counted(frame, schema) == table_of(seconds, schema)


# Other values of which Python, pandas or DuckDB has none.


def arrow_of(stored, kind, values):
    return pa.table({"v": pa.array(values, stored).view(kind), "w": pa.array(range(len(values)), pa.int64())})


def of_pandas(column):
    return pd.DataFrame({"v": column, "w": range(len(column))})


LONGEST = [2**63 - 1, -(2**63) + 1, 10**15]
NEVER = {
    "durations": pa.table({"v": pa.array(LONGEST, pa.duration("s")), "w": [0, 1, 2]}),
    "times of a day": arrow_of(pa.int64(), pa.time64("us"), LONGEST),
    "short times of a day": arrow_of(pa.int32(), pa.time32("s"), [2**31 - 1, -(2**31) + 1, 86400]),
    "lists": pa.table({"v": pa.array([[time] for time in LONGEST], pa.list_(pa.timestamp("s"))), "w": [0, 1, 2]}),
    "runs": pa.table({"v": pyarrow.compute.run_end_encode(arrow(LONGEST, "s", None)["v"]), "w": [0, 1, 2]}),
    "periods": of_pandas(pd.Series(pd.PeriodIndex.from_ordinals(LONGEST, freq="D"))),
    "categories of periods": of_pandas(pd.Series(pd.Categorical(pd.PeriodIndex.from_ordinals(LONGEST, freq="s")))),
    "intervals": of_pandas(pd.Series(pd.IntervalIndex.from_breaks(pandas(sorted(LONGEST), "s", "UTC")["v"]))),
    "zoned intervals": of_pandas(pd.Series(pd.IntervalIndex.from_breaks(pandas([0, 10**15], "s", NEW_YORK)["v"]))),
}


@pytest.mark.parametrize("name", NEVER)
def test_values_that_can_be_no_states_are_other_values(name):
    frame = NEVER[name]
    too = name in ("times of a day", "short times of a day", "lists")
    forms = [frame, duckdb.from_arrow(frame)] if too else [frame]
    for records in forms:
        for schema in (BINNED, NAMED, dp.Schema({"v": dp.Bins([0, 1])}, **STAND_INS)):
            assert counted(records, schema)[-2:] == [0, len(frame)]
        assert open_records(records, dp.Schema({"v": []}, **STAND_INS), ["v"]).value_counts("v") == {}
        assert counted(records, ROWS, weights="v") == [0, 0]
        ids = counted(records, ROWS, unit="v")
        if name in ("lists", "runs", "intervals", "zoned intervals"):
            assert "identifies units, and has values that are not" in ids
        else:
            assert sum(ids) == len(frame)


def test_an_integer_of_any_length_is_read_as_one_that_overflows():
    nines = "SELECT (n || repeat('9', 5000))::BIGNUM AS v, 0 AS w FROM (VALUES (''), ('-')) t(n)"
    relation = duckdb.connect().sql(nines)
    assert counted(relation, dp.Schema({"v": dp.Bins([-math.inf, 0, math.inf])})) == [1, 1]
    assert counted(relation, NAMED)[-1] == 2
    assert counted(relation, ROWS, weights="v") == [UNIT_WEIGHT, 0]
    assert counted(relation, ROWS, unit="v") == [2, 0]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_bytes_that_are_no_text_are_another_value(kind):
    stored = pa.large_binary() if "large" in str(kind) else pa.binary()
    column = pa.array([b"\xff", b"x", b"2019-12-31", b"\xfe"], stored)
    table = pa.table({"v": column.view(kind), "w": range(4)})
    for frame in (table, table.set_column(0, "v", table["v"].dictionary_encode())):
        assert counted(frame, BINNED) == [*table_of([NEW_YEAR - 1], BINNED)[:-1], 3]
        opened = open_records(frame, dp.Schema({"v": []}, **STAND_INS), ["v"])
        assert opened.value_counts("v") == {"x": 1, "2019-12-31": 1}
        assert sum(counted(frame, ROWS, unit="v")) == 4
