"""Dates are numbers of days behind their face: every source gives the same, and so does every way to write one."""

import io
from datetime import date, datetime, tzinfo

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from writers import every_form, objects

import pgmpy_dp as dp
from pgmpy_dp.cli.shared.written import to_csv
from pgmpy_dp.records import open_records
from pgmpy_dp.records.units import number_ids

TIMES = [
    pd.Timestamp("2023-11-15"),
    pd.Timestamp("2023-11-30 23:59:59.999999"),
    pd.Timestamp("1969-12-31 23:59"),
    pd.Timestamp("2024-02-29 12:00"),
    pd.Timestamp("2024-03-01"),  # the last bin holds its upper edge
    pd.NaT,
    pd.Timestamp("2024-03-02"),
]
BINS = dp.DateBins(["1969-12-31", "1970-01-01", "2023-11-15", "month", "2024-03-01"])


def _schema(**variables):
    return dp.Schema(variables, dict.fromkeys(variables, "none"), dict.fromkeys(variables, "other"))


SCHEMA = _schema(day=BINS, state=["2024-02-29", "2024-2-29", "x"])
DAYS = {"1969-12-31": 1, "2023-11-15_to_2023-12-01": 2, "2024-02": 2, "none": 1, "other": 1}
STATES = {"2024-02-29": 1, "none": 1, "other": 5}


def _frame(column):
    return pd.DataFrame({"day": column, "state": column})


def _of_dates(folder):
    """The days of the times in every form that dates have; tests/audit/test_gate_times.py has those of times."""
    table = pa.Table.from_pandas(_frame(TIMES))
    days = pa.table({name: table[name].cast(pa.date32(), safe=False) for name in table.column_names})
    pyarrow.parquet.write_table(days, folder / "days.parquet")
    pl.from_arrow(days).write_csv(folder / "days.csv")
    return {
        "pandas": _frame(TIMES),
        "objects": _frame(objects([None if time is pd.NaT else time.date() for time in TIMES])),
        "texts": _frame(objects([None if time is pd.NaT else f"{time:%Y-%m-%d}" for time in TIMES])),
        "Arrow's 32 bits": days,
        "Arrow's 64 bits": pa.table({name: days[name].cast(pa.date64()) for name in days.column_names}),
        "Polars": pl.from_arrow(days),
        "DuckDB": duckdb.connect().sql("SELECT * FROM days"),
        "Parquet": folder / "days.parquet",
        "CSV": folder / "days.csv",
    }


def _counts(source, schema=SCHEMA):
    tables = open_records(source, schema, schema.variables).counts([(variable,) for variable in schema.variables])
    found = [dict(zip(schema.states[v], table.tolist(), strict=True)) for (v,), table in tables.items()]
    return [{state: count for state, count in counts.items() if count} for counts in found]


def test_dates_are_the_same_from_every_source(tmp_path):
    for name, source in _of_dates(tmp_path).items():
        assert _counts(source) == [DAYS, STATES], name


def test_times_are_read_and_written_in_their_form(tmp_path):
    bins = dp.TimeBins(["01/02/2024 08:00 AM", "hour", "2024-02-01 14:00"], format="%d/%m/%Y %I:%M %p")
    schema = _schema(time=bins)
    texts = [
        "01/02/2024 08:59 AM",
        "1/2/2024 12:00 PM",
        "01/02/2024 12:59 pm",
        "01/02/2024 12:00 AM",
        "01/02/2024",
        None,
    ]
    sources = every_form(pd.DataFrame({"time": texts}), tmp_path)
    expected = [{"2024-02-01T08h": 1, "2024-02-01T12h": 2, "none": 1, "other": 2}]
    assert {name: _counts(source, schema) for name, source in sources.items()} == dict.fromkeys(sources, expected)
    data = dp.PrivateDataset(pd.DataFrame({"time": texts}), schema, dp.PrivacyBudget(1e3))
    network = dp.PrivateBayesianNetwork()
    network.add_node("time")
    network.fit(data.measure([("time",)], epsilon=1e3), estimator=dp.PrivateMLE())
    drawn = network.simulate(500, seed=1, numbers="drawn")
    assert _counts(drawn, schema)[0].keys() <= {*schema.states["time"]}
    assert drawn["time"].dropna().dt.minute.nunique() > 30
    read = pd.read_csv(io.StringIO(to_csv(drawn, None, schema, spreadsheet=False)))["time"].replace({"": None})
    assert _counts(pd.DataFrame({"time": read}), schema) == _counts(drawn, schema)
    mean = network.expectation().loc["time"]
    assert mean["lower"] <= mean["value"] <= mean["upper"]
    assert bins.value(bins.edges[0]) == pd.Timestamp("2024-02-01 08:00")


FORMS = {"%d/%m/%Y": "31/01/2024 1/2/2024 29/02/2023 2024-01-31 x", "%d.%m.%y": "31.01.24 1.2.24 29.02.23 31.01.2024 x"}


@pytest.mark.parametrize("form", FORMS)
def test_texts_in_a_form_are_the_same_from_every_source(form, tmp_path):
    texts = [*FORMS[form].split(), None, FORMS[form].split()[0]]
    schema = _schema(day=dp.DateBins(["2024-01-01", "month", "2024-03-01"], format=form))
    sources = every_form(pd.DataFrame({"day": texts}), tmp_path)
    sources["dictionary"] = pa.table({"day": sources["Arrow"]["day"].dictionary_encode()})
    expected = [{"2024-01": 2, "2024-02": 1, "none": 1, "other": 3}]
    assert {name: _counts(source, schema) for name, source in sources.items()} == dict.fromkeys(sources, expected)


def test_numbers_whose_digits_are_dates_are_the_same_from_every_source(tmp_path):
    schema = _schema(day=dp.DateBins(["2024-01-01", "month", "2024-03-01"], format="%d%m%Y"))
    frame = pd.DataFrame({"day": [1022024.0, 31012024.0, 31022024.0, -1.0, 1.5, np.nan, 10.0**12]})
    whole = frame[frame["day"] % 1 == 0].astype("Int64")
    sources = every_form(frame, tmp_path)
    expected = [{"2024-01": 1, "2024-02": 1, "none": 1, "other": 4}]
    assert {name: _counts(source, schema) for name, source in sources.items()} == dict.fromkeys(sources, expected)
    for integers in (whole, whole.astype(object), pa.Table.from_pandas(whole), pl.from_pandas(whole)):
        assert _counts(integers, schema) == [{"2024-01": 1, "2024-02": 1, "other": 3}]
    (tmp_path / "digits.csv").write_text("day\n1022024\n01022024\n31012024\n001022024\n")
    assert _counts(tmp_path / "digits.csv", schema) == [{"2024-01": 1, "2024-02": 3}]


@pytest.mark.parametrize(
    "value", [19782, 19782.0, "2024", "29.02.2024", "2023-02-29", "2024-02-29 25", True, np.datetime64("2024-02"), [1]]
)
def test_what_is_no_date_is_undeclared(value):
    assert _counts(pd.DataFrame({"day": pd.Series([value], dtype=object), "state": ["x"]}))[0] == {"other": 1}


@pytest.mark.parametrize("value", ["2024-02-29", "2024-02-29T10:00:00Z", "2024-02-29 10:00", date(2024, 2, 29)])
def test_evidence_is_read_as_a_cell_is(value):
    release = dp.PrivateDataset(_frame(TIMES), SCHEMA, dp.PrivacyBudget(1e3)).measure([("day", "state")], epsilon=1e3)
    network = dp.PrivateBayesianNetwork([("day", "state")]).fit(release, estimator=dp.PrivateMLE())
    for given in (value, pd.Timestamp(value), np.datetime64("2024-02-29")):
        assert network.query(["state"], {"day": given}).get_value(state="2024-02-29") > 0.4
    assert network.predict(pd.DataFrame({"day": [value]}))["state"].size == 1


def test_means_quantiles_and_synthetic_records_are_dates(tmp_path):
    generator = np.random.default_rng(0)
    days = np.datetime64("2022-01-01") + generator.integers(0, 700, 20_000)
    frame = pd.DataFrame({"day": np.append(days, np.datetime64("NaT"))})
    schema = dp.Schema({"day": dp.DateBins(["2022-01-01", "quarter", "2024-01-01", "inf"])}, missing={"day": "none"})
    release = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(1e3)).measure([("day",)], epsilon=1e3)
    release.save(tmp_path / "release.zip")
    network = dp.PrivateBayesianNetwork()
    network.add_node("day")
    network.fit(dp.NoisyMarginals.load(tmp_path / "release.zip"), estimator=dp.PrivateMLE())
    mean = network.expectation().loc["day"]
    assert mean["lower"] <= mean["value"] <= mean["upper"]
    assert abs(mean["value"] - frame["day"].mean()) < pd.Timedelta(days=3)
    assert abs(network.quantiles([0.5]).loc["day", 0.5] - frame["day"].median()) < pd.Timedelta(days=10)
    drawn = network.simulate(5000, seed=1, numbers="drawn")
    assert drawn["day"].min() >= pd.Timestamp("2022-01-01")
    drawn.to_csv(tmp_path / "drawn.csv", index=False)
    read = pd.read_csv(tmp_path / "drawn.csv", parse_dates=["day"])["day"]
    assert read.dtype.kind == "M"
    assert (read == drawn["day"]).sum() == drawn["day"].notna().sum()
    assert _counts(drawn, schema)[0].keys() <= {*schema.states["day"]}


def test_times_of_one_day_are_different_ids():
    ids = np.array(
        [date(2024, 2, 29), pd.Timestamp("2024-02-29 10:00"), pd.Timestamp("2024-02-29 11:00")], dtype=object
    )
    assert number_ids("when", ids).tolist() == [0, 1, 2]


def test_dates_of_other_classes_are_read_without_their_methods():
    """One that raises would make a record refuse all others."""

    class Odd(date):
        @property
        def year(self):
            raise RuntimeError

        toordinal = isoformat = __str__ = year.fget

    class Zone(tzinfo):
        def utcoffset(self, time):
            raise RuntimeError

    held = [Odd(2024, 2, 3), datetime(2024, 2, 3, tzinfo=Zone()), pd.Timestamp(np.datetime64(2**38, "s"))]
    frame = pd.DataFrame({"day": pd.Series(held, dtype=object), "state": "x"})
    noisy = dp.PrivateDataset(frame, SCHEMA, dp.PrivacyBudget(1e6)).measure([("day",)], 1e6)
    counts = dict(zip(SCHEMA.states["day"], noisy.tables["day",].tolist(), strict=True))
    assert {state: count for state, count in counts.items() if count} == {"2024-02": 2, "other": 1}


def test_a_date_is_no_number():
    schema = dp.Schema({"number": [19782, 2]})
    frame = pd.DataFrame({"number": [19782, 2] * 50})
    network = dp.PrivateBayesianNetwork()
    network.add_node("number")
    network.fit(frame, estimator=dp.PrivateMLE(epsilon=1e3, state_names=schema))
    with pytest.raises(dp.SchemaError, match="not among"):
        network.log_likelihood(pd.DataFrame({"number": pd.Series([date(2024, 2, 29)], dtype=object)}))
