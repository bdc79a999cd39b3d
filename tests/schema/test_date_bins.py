"""Bins of dates are cut at days, months, quarters and years."""

import math
from datetime import date, datetime
from functools import partial

import numpy as np
import pandas as pd
import pytest

import pgmpy_dp as dp
from pgmpy_dp.records import open_records

FORM = "%Y-%m-%d %H:%M:%S"
DATES = [
    (["2023-12-15", "month", "2024-02-01"], ["2023-12-15_to_2024-01-01", "2024-01"]),
    ([date(2023, 1, 1), "year", datetime(2025, 1, 1)], ["2023", "2024"]),
    (["2023-02-01", "quarter", "2023-07-01"], ["2023-02-01_to_2023-04-01", "2023-Q2"]),
    ([-math.inf, "2024-02-29", "2024-03-01", "inf"], ["before_2024-02-29", "2024-02-29", "2024-03-01_or_later"]),
    ([date(9998, 1, 1), "year", date(9999, 12, 31)], ["9998", "9999-01-01_to_9999-12-31"]),
    ([0, np.datetime64("9998-01-01"), "year", "9999-12-31"],
     ["1970-01-01_to_9998-01-01", "9998", "9999-01-01_to_9999-12-31"]),
]  # fmt: skip
TIMES = [
    (["2024-02-28 23:00", "hour", "2024-02-29 01:00"], ["2024-02-28T23h", "2024-02-29T00h"]),
    ([datetime(2024, 2, 28, 12), "day", date(2024, 3, 1)],
     ["2024-02-28T12:00:00_to_2024-02-29T00:00:00", "2024-02-29"]),
    (["-inf", pd.Timestamp("2023-12-01"), "month", "2024-02-01T00:00", "inf"],
     ["before_2023-12-01T00:00:00", "2023-12", "2024-01", "2024-02-01T00:00:00_or_later"]),
    ([0, np.datetime64("1970-01-01T00:00:01"), 3600],
     ["1970-01-01T00:00:00_to_1970-01-01T00:00:01", "1970-01-01T00:00:01_to_1970-01-01T01:00:00"]),
    (["9999-12-31 22:00", "hour", "9999-12-31T23:59:59"],
     ["9999-12-31T22h", "9999-12-31T23:00:00_to_9999-12-31T23:59:59"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "bins", "labels"),
    [
        *(("date", dp.DateBins(edges), labels) for edges, labels in DATES),
        *(("datetime", dp.TimeBins(edges, format=FORM), labels) for edges, labels in TIMES),
    ],
)
def test_bins_of_dates_and_times_survive_a_file(kind, bins, labels):
    schema = dp.Schema({"time": bins}, other={"time": "other"})
    read = dp.Schema.from_dict(schema.to_dict())
    assert read == schema
    assert read.bins["time"].format == bins.format
    assert schema.to_dict()["fields"][0]["type"] == kind
    assert bins.labels == tuple(labels)


WRONG = [["2023-02-29"], ["month"], ["2023-01-01", "week"], ["2023-01-01", "month", "year"], ["-inf", "month"]]
WRONG = [*([*edges, "2024-01-01"] for edges in WRONG), ["2024-01-01", pd.NaT], [0.5, 2], [True, 2]]
NEXT = ["2024-01-01", "2024-01-02"]


@pytest.mark.parametrize(
    ("kind", "edges", "message"),
    [
        *((dp.DateBins, edges, "Bins of dates") for edges in WRONG),
        (dp.DateBins, ["2024-01-01 08:00", "2024-01-02"], "Times of a day are edges of TimeBins"),
        (dp.DateBins, [pd.Timestamp("2024-01-01 08:00"), "2024-01-02"], "Times of a day are edges of TimeBins"),
        (dp.DateBins, ["2024-01-01", "hour", "2024-01-02"], "may stand 'year', 'quarter', 'month'"),
        (dp.TimeBins, ["2024-01-01 25:00", "2024-01-02"], "an edge is one such as '2024-03-01 08:00'"),
        (dp.TimeBins, [0.5, 1], "an edge is one such as"),
        (partial(dp.TimeBins, format="%d/%m/%Y"), NEXT, "writes no hours"),
        (partial(dp.TimeBins, decimals=1), NEXT, "datetimes have no decimals"),
        (partial(dp.TimeBins, format="%d/%m/%y %H"), ["2024-01-01", "2124-01-02"], "less than a hundred years"),
    ],
)
def test_what_cuts_no_days_or_times_is_refused(kind, edges, message):
    with pytest.raises(dp.SchemaError, match=message):
        kind(edges)


def test_dates_are_compared():
    schema = dp.Schema({v: dp.DateBins(["2024-01-01", "month", "2024-04-01"]) for v in ("admitted", "left")})
    rule = dp.Allowed.comparing(schema, "admitted <= left + 29")
    assert ("2024-03", "2024-01") not in rule.combinations
    assert ("2024-02", "2024-01") in rule.combinations


def test_holders_agree_on_bins_of_dates():
    months, quarters = (
        dp.Schema({"day": dp.DateBins(["2024-01-01", word, "2024-07-01"])}) for word in ("month", "year")
    )
    assert dp.agree([months, quarters]).bins["day"] == months.bins["day"]
    with pytest.raises(dp.SchemaError, match="bins of dates and of numbers"):
        dp.agree([months, dp.Schema({"day": dp.Bins([0, 1])})])


@pytest.mark.parametrize(
    "edges",
    [
        ["-inf", "1500-01-01", "1600-01-01"],
        ["1500-01-01", "1600-01-01", "inf"],
        ["-inf", "1677-01-01", "2263-01-01", "inf"],
        ["-inf", "0001-01-02", "9999-12-30", "inf"],
        ["2300-01-01", "2400-01-01", "inf"],
    ],
)
def test_open_bins_beyond_what_nanoseconds_hold_are_closed(edges):
    bins = dp.DateBins(edges)
    closed = bins.closed()
    assert [edge for edge in closed.edges if edge in bins.edges] == [e for e in bins.edges if np.isfinite(e)]
    assert np.isfinite(closed.edges).all()
    assert bins.fine is not None
    schema = dp.Schema({"day": bins})
    data = dp.PrivateDataset(
        pd.DataFrame({"day": [closed.written(closed.edges[0])] * 50}), schema, dp.PrivacyBudget(9.0)
    )
    network = dp.PrivateBayesianNetwork()
    network.add_node("day")
    drawn = network.fit(data, estimator=dp.PrivateMLE(epsilon=5.0)).simulate(20, seed=1, numbers="drawn")
    assert len(drawn) == 20


def test_open_bins_of_times_are_closed_where_those_of_dates_are():
    edges = ["-inf", "2000-01-01", "2001-01-01", "inf"]
    closed = dp.TimeBins(edges).closed().edges
    assert closed == tuple(86_400 * edge for edge in dp.DateBins(edges).closed().edges)


@pytest.mark.parametrize("edges", [["-inf", "0001-01-01", "2000-01-01"], ["2000-01-01", "9999-12-31", "inf"]])
def test_bins_beyond_the_calendar_are_counted_and_not_drawn(edges):
    bins = dp.DateBins(edges)
    assert bins.fine is None
    with pytest.raises(dp.SchemaError, match=r"the bin beyond (0001-01-01|9999-12-31) is open: no value there"):
        bins.closed()
    texts = ["-0005-01-01", "1000-01-01", "2500-01-01", "10000-01-01"]
    counts = open_records(pd.DataFrame({"day": texts}), dp.Schema({"day": bins}, other={"day": "other"}), ["day"])
    (table,) = counts.counts([("day",)]).values()
    assert table.tolist() == [1, 1, 2]
