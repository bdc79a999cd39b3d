"""Dates are read in the form that is declared, and in no other."""

from datetime import date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pgmpy_dp as dp
from pgmpy_dp.schema import DateFormat
from pgmpy_dp.schema.date_bins import iso
from pgmpy_dp.schema.date_format import DAY

FORMS = [
    "%Y%m%d", "%d/%m/%Y", "%m/%d/%Y", "%Y-%m-%d %H:%M:%S", "%d %B %Y", "%b %d, %Y", "%d.%m.%Y", "%m/%d/%Y %I:%M %p",
    "%Y.%d.%m", "%%%d%m%Y", "%Y-%m-%dT%H:%M:%S.%f",
]  # fmt: skip


@pytest.mark.parametrize(
    ("form", "text", "day"),
    [
        ("%Y%m%d", "20240131", "2024-01-31"),
        ("%d/%m/%Y", "31/01/2024", "2024-01-31"),
        ("%d/%m/%Y", "1/2/2024", "2024-02-01"),
        ("%m/%d/%Y", "1/2/2024", "2024-01-02"),
        ("%m/%d/%Y", "31/01/2024", None),
        *(("%d/%m/%Y", text, None) for text in ("2024-01-31", "31/01/24", "31/01/2024 ", "30/02/2024")),
        ("%d/%m/%Y", "\u0661/01/2024", None),
        ("%Y%m%d", "2024131", None),
        ("%Y-%m-%d %H:%M:%S", "2024-01-31 08:15:00", "2024-01-31"),
        ("%Y-%m-%d %H:%M:%S", "2024-01-31 24:15:00", None),
        ("%m/%d/%Y %I:%M %p", "01/31/2024 08:15 pm", "2024-01-31"),
        ("%m/%d/%Y %I:%M %p", "01/31/2024 13:15 pm", None),
        ("%b %Y", "Jan 2024", "2024-01-01"),
        ("%b %Y", "January 2024", None),
        ("%B %Y", "may 2024", "2024-05-01"),
        ("%B %Y", "Mayo 2024", None),
        ("%Y", "2024", "2024-01-01"),
        ("%Y", "0000", None),
    ],
)
def test_a_text_is_a_date_in_one_form(form, text, day):
    found = DateFormat(form).seconds(text)
    assert (found and iso(found // DAY)) == day


NO_FORMS = ["", "%d", "%d/%m", "%Y%Y", "%Y %y", "%b %m %Y", "%Y %d", "%H %I %p %Y", "%I %Y", "%j %Y", "%Y%", "%Y %z"]


@pytest.mark.parametrize("form", [*NO_FORMS, "31/01/2024"])
def test_what_says_no_date_or_says_it_twice_is_refused(form):
    with pytest.raises(ValueError, match="a format of dates has %Y or %y for years"):
        DateFormat(form)
    with pytest.raises(dp.SchemaError, match="Bins of dates: a format"):
        dp.DateBins(["2020-01-01", "2021-01-01"], format=form)
    with pytest.raises(ValueError, match="a format of dates"):
        dp.CsvFormat(dates=form)


@pytest.mark.parametrize("form", FORMS)
@given(day=st.integers(-719_162, 2_932_896))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_what_is_written_is_read_again_and_as_python_reads_it(form, day):
    text = DateFormat(form).text(datetime(1970, 1, 1) + timedelta(days=day))
    assert DateFormat(form).seconds(text) == day * DAY
    assert datetime.strptime(text, form).date() == date.fromordinal(day + date(1970, 1, 1).toordinal())


@given(text=st.text("0123456789/.-: JanFebPM%\u0661", max_size=20), form=st.sampled_from([*FORMS, "%d.%m.%y", "%b %Y"]))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_any_text_is_read_without_an_error(text, form):
    found = DateFormat(form).seconds(text, 0.0)
    assert found is None or isinstance(found, int)


def test_years_of_two_digits_are_those_between_the_edges():
    bins = dp.DateBins(["1940-06-01", "1980-01-01", "2040-05-30"], format="%d.%m.%y")
    read = {text: iso(bins.day(text)) for text in ("31.01.24", "30.05.40", "01.06.40", "01.01.99")}
    assert read == {
        "31.01.24": "2024-01-31", "30.05.40": "2040-05-30", "01.06.40": "1940-06-01", "01.01.99": "1999-01-01",
    }  # fmt: skip
    assert bins.written(bins.day("01.06.40")) == "01.06.40"
    for edges in (["1940-06-01", "2040-06-01"], ["-inf", "2000-01-01"], ["2000-01-01", "inf"]):
        with pytest.raises(dp.SchemaError, match="have two digits"):
            dp.DateBins(edges, format="%d.%m.%y")


def test_numbers_are_dates_where_digits_are_all_of_the_form():
    bins = dp.DateBins(["2000-01-01", "2030-01-01"], format="%d%m%Y")
    assert bins.day(1022024) == bins.day("01022024") == bins.day(1022024.0)
    assert [bins.day(value) for value in (1.5, -1, 10**9, float("inf"), "1022024")] == [None] * 5
    assert dp.DateBins(["2000-01-01", "2030-01-01"]).day(20240131) is None
    assert dp.DateBins(["2000-01-01", "2030-01-01"], format="%Y-%m-%d").day(20240131) is None


def test_bins_keep_their_format_in_copies_and_files(tmp_path):
    bins = dp.DateBins(["01/02/2020", "month", "01/04/2020"], format="%d/%m/%Y")
    assert bins == dp.DateBins(["2020-02-01", "2020-03-01", "2020-04-01"])
    assert bins.closed().format == bins.fine.format == bins.format
    odd = dp.DateBins(["2020-02-01", "2020-03-01"], format="%Y-%d-%m")
    assert odd.listed_edges() == ["2020-01-02", "2020-01-03"]
    schema = dp.Schema({"day": bins, "odd": odd, "plain": dp.DateBins(["2020-01-01", "2021-01-01"])})
    schema.save(tmp_path / "schema.json")
    read = dp.Schema.load(tmp_path / "schema.json")
    assert read == schema
    assert {v: own.format for v, own in read.bins.items()} == {"day": "%d/%m/%Y", "odd": "%Y-%d-%m", "plain": None}
    assert schema.to_dict()["fields"][0]["format"] == "%d/%m/%Y"
    german = schema.replace(csv=dp.CsvFormat(dates="%d.%m.%Y"))
    assert [own.format for own in german.bins.values()] == ["%d/%m/%Y", "%Y-%d-%m", "%d.%m.%Y"]
    assert dp.Schema.from_dict(german.to_dict()).csv == german.csv
    assert dp.agree([schema, german]).bins["day"].format == "%d/%m/%Y"
    with pytest.raises(dp.SchemaError, match=r"'plain': .*two digits"):
        schema.replace(csv=dp.CsvFormat(dates="%d.%m.%y"), variables={"plain": dp.DateBins(["2020-01-01", "inf"])})
