"""Data dictionaries are read to the letter: what they say of a variable is public, and decides what its cells mean."""

import json
import math

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import pgmpy_dp as dp
from pgmpy_dp.cli import main

NINES = "9" * 400
HEADERS = ['"variable,states', "variable,states,", f"variable,states,{'Y' * 2**18}"]
NO_STATES = "If no list of them is public, declare a state for all values as its 'other'"
MONTHS = ["2020-02-01", "month", "2020-04-01"]
DAYS, HOURS = dp.DateBins(MONTHS, format="%d/%m/%Y"), dp.TimeBins(["2022-01-01 08:00", "hour", "2022-01-01 18:00"])
OPEN = dp.Schema({"place": [], "sex": ["f", "m"]}, other={"place": "elsewhere"})
MIXED = dp.Schema(
    {
        "sex, at birth": ["m", "f"],
        "visits": [0, 1, 2],
        "ill": [False, True],
        "age": dp.Bins([0, 18, math.inf], ["a", "b"]),
    },
    missing={"sex, at birth": "unknown"},
    other={"sex, at birth": "else"},
)
MIXED_ROWS = """variable,type,states,edges,labels,missing,other
"sex, at birth",,"m | f",,,unknown,else
visits,integer,0|1|2,,,,
ill,boolean,,,,,
age,,,0|18|inf,a|b,,
"""
MIXED_JSON = """{"sex, at birth": {"states": ["m", "f"], "missing": "unknown", "other": "else"}, "visits": [0, 1, 2],
"ill": [false, true], "age": {"edges": [0, 18, "inf"], "labels": ["a", "b"]}}"""
WITH_DETAIL = dp.Schema({"pay": dp.Bins([0, 9, 99], detail=8), "age": dp.Bins([0, 18, math.inf], detail=64)})
WITH_TEXTS = dp.Schema({"a": ["x", "y"]}, {"a": "?"}, missing_values={"a": ["?", "NA"]})


def dated(row):
    """A dictionary of one variable, which is dates or means to be."""
    return f"variable,type,states,edges,format\nday,{row}\n"


def drafted(folder, text, name="words.csv"):
    (folder / name).write_text(text, newline="")
    return CliRunner().invoke(main, ["schema", str(folder / name)])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("variable,states,other\nvote,Y,N,U\n", "row 2 has 4 cells, and the header 3: separate states by |"),
        ("variable,states\nage,a|b\nvote,Y|N,,,\n", "row 3 has 5 cells, and the header 2"),
        ("variable,states\n\nvote,Y,N\n", "row 3 has 3 cells, and the header 2"),
        *((f"variable,states\nvote,{states}\n", "'vote': a | in states") for states in ("Y|N|", "Y||N")),
        ("variable,edges\nage,0|1|\n", "'age': a | in edges"),
        ("variable,edges,labels\nage,0|1|2,a||b\n", "'age': a | in labels"),
        ('variable,states\nvote,"Y|N\nage,a|b\n', "row 2 is damaged"),
        ('variable,states\nage,a|b\nvote,Y"|N\n', "row 3 is damaged"),
        ('variable,states\nvote,"Y"|N\n', "row 2 is damaged"),
        *((f"{header}\nvote,Y|N\n", "not a data dictionary") for header in HEADERS),
        ("variable,states,states\nvote,Y|N,A|B\n", "not a data dictionary"),
        ("variable,states\n ,Y|N\n", "row 2 names no variable"),
        ("variable,states\nvote,Y|N\nvote,Y\n", "'vote' has two rows"),
        (f"variable,edges\nage,0|{NINES}\n", f"'age': '{NINES[:39]}... is not a finite number"),
        ("variable,edges\nage,0|1e999\n", "'age': '1e999' is not a finite number, inf or -inf"),
        (f"variable,edges,decimals\nage,0|1,{NINES}\n", "'age': '999"),
        (f"variable,states,type\nage,{NINES * 20},integer\n", "is not of type integer"),
        ("variable,states,type\nage,+-5,integer\n", "'+-5' is not of type integer"),
        (f'{{"age": {{"edges": [0, {NINES}]}}}}', "'age': 999"),
        (f'{{"age": {{"edges": [0, "{NINES}"]}}}}', "'age': '999"),
        ('{"age": {"edges": [0, null]}}', "'age': None is not a finite number"),
        ("variable,edges\nage,5|1\n", "'age': Bins: edges must increase"),
        ('{"fields": [{"name": "age", "pgmpy_dp:bins": {"edges": [5, 1]}}]}', "'age': Bins: edges must increase"),
        ("variable,states,edges\nage,a|b,0|1\n", "'age' has both states and edges"),
        ('{"age": {"states": ["a"], "edges": [0, 1]}}', "'age' has both states and edges"),
        ("variable,edges,detail\nage,0|18|120,-1\n", "detail is a whole number from 0"),
        ("variable,states\nplace,\n", f"'place' has no states: list at least one. {NO_STATES}"),
        ("variable,states,other\nplace,,\n", NO_STATES),
        (dated("date,,2022-01-01|week|2022-03-01,"), "Bins of dates"),
        (dated("date,,01/02/2020|01/04/2020,"), "Bins of dates"),
        (dated("date,2022-01-01|soon,,"), "not of type date"),
        (dated("time,,00:00|hour|24:00,"), "has the type 'time'; types are string, "),
        (dated("number,,2022-01-01|month|2022-03-01,"), "is not a finite number"),
        (dated("date,31/01/2020,,%d/%m/%Y"), "has a format, which is that of dates in bins"),
        (dated("number,,1|2,%d/%m/%Y"), "has a format, which is that of dates in bins"),
        (dated("date,,2020-02-01|2020-04-01,%d"), "a format of dates has %Y or %y for years"),
    ],
)
def test_a_dictionary_that_says_nothing_sound_is_refused_in_one_line(text, said, tmp_path):
    refused = drafted(tmp_path, text, "words.json" if text.startswith("{") else "words.csv")
    assert refused.exit_code == 1
    assert refused.stderr.count("\n") == 1
    assert said in refused.stderr
    assert len(refused.stderr) < 600


def test_the_summary_marks_the_states_for_missing_and_for_other_values(tmp_path):
    text = "variable,states,other,missing\nvote,Y|N,N,unknown\nage,a|b,rest,rest\nsex,f|m\n"
    assert drafted(tmp_path, text).stdout.splitlines() == [
        "vote  Y | N (other) | unknown (missing)",
        "age   a | b | rest (missing, other)",
        "sex   f | m",
    ]


def test_long_cells_blank_rows_and_all_ends_of_lines_are_read(tmp_path):
    long = "Y" * 2**18
    for end in ("\n", "\r\n", "\r"):
        for last in ("", end, end * 2):
            text = end.join(["\ufeffvariable,states,other", f'vote,"{long}|a,b|say ""no"""', "", "sex, f | m ,"]) + last
            assert drafted(tmp_path, text).exit_code == 0
            assert dp.Schema.from_dictionary(tmp_path / "words.csv").states == {
                "vote": (long, "a,b", 'say "no"'),
                "sex": ("f", "m"),
            }


@pytest.mark.parametrize(
    ("text", "declared"),
    [
        (MIXED_ROWS, MIXED),
        (MIXED_JSON, MIXED),
        ("variable,edges\nage,-inf|0|Infinity\n", dp.Schema({"age": dp.Bins([-math.inf, 0, math.inf])})),
        ("variable,type,edges\nill,integer,0|0.5|1\n", dp.Schema({"ill": dp.Bins([0, 0.5, 1], decimals=0)})),
        ("variable,type,edges\nrate,number,0|0.5|1\n", dp.Schema({"rate": dp.Bins([0, 0.5, 1])})),
        ("variable,edges,detail\npay,0|9|99,8\nage,0|18|inf,\n", WITH_DETAIL),
        ('{"pay": {"edges": [0, 9, 20], "detail": 0}}', dp.Schema({"pay": dp.Bins([0, 9, 20], detail=0)})),
        ("variable,states,missing,missing_values\na,x|y,?,?|NA\n", WITH_TEXTS),
        ("variable,states,missing,missing_values\na,x|y,?,|\n", WITH_TEXTS.replace(missing_values={"a": [""]})),
        ("variable,states,other\nplace,,elsewhere\nsex,f|m,\n", OPEN),
        ("variable,edges,other,type,states\nplace,,elsewhere,integer,\nsex,,,,f|m\n", OPEN),
        ('{"place": {"other": "elsewhere"}, "sex": ["f", "m"]}', OPEN),
        (
            '{"fields": [{"name": "place", "pgmpy_dp:states": [], "pgmpy_dp:other": "elsewhere"}]}',
            OPEN.select(["place"]),
        ),
        (dated("date,2022-01-01|2022-01-02,,"), dp.Schema({"day": ["2022-01-01", "2022-01-02"]})),
        (dated("date,,2020-02-01|month|2020-04-01,"), dp.Schema({"day": dp.DateBins(MONTHS)})),
        (dated("date,,01/02/2020|month|01/04/2020,%d/%m/%Y"), dp.Schema({"day": DAYS})),
        (dated(",,2020-02-01|month|2020-04-01,%d/%m/%Y"), dp.Schema({"day": DAYS})),
        (dated("datetime,,2022-01-01 08:00|hour|2022-01-01 18:00,"), dp.Schema({"day": HOURS})),
    ],
)
def test_what_a_dictionary_declares_is_the_schema_and_comes_back_from_its_file(text, declared, tmp_path):
    name = "words.json" if text.startswith("{") else "words.csv"
    assert drafted(tmp_path, text, name).exit_code == 0
    found = dp.Schema.from_dictionary(tmp_path / name)
    assert found.to_dict() == declared.to_dict()
    assert dp.Schema.from_dict(found.to_dict()) == found == declared


@given(st.text(alphabet='ab|,"\r\n \0', max_size=20), st.sampled_from(["states", "edges"]))
@settings(max_examples=80, derandomize=True, deadline=None)
def test_any_rows_are_read_or_refused_in_one_line(tmp_path_factory, rows, column):
    answer = drafted(tmp_path_factory.getbasetemp(), f"variable,{column},other\n{rows}", "any.csv")
    if answer.exit_code:
        assert isinstance(answer.exception, SystemExit)
        assert answer.stderr.count("\n") == 1
    else:
        json.dumps(dp.Schema.from_dictionary(tmp_path_factory.getbasetemp() / "any.csv").to_dict())


def test_a_wide_last_bin_is_named(tmp_path):
    drawn = drafted(tmp_path, "variable,edges,detail\nincome,0|1000|100000,8\nage,0|18|120,\nvisits,0|1|inf,\n")
    assert "Caution: the last edge of income is over ten times the one before" in drawn.output


def test_states_that_are_not_separated_by_bars_are_cautioned_against(tmp_path):
    text = 'variable,states,missing\nsex,"F,M",\nvote,Y;N,unknown\nage,a|b,\nonly,one,\n'
    said = drafted(tmp_path, text).stdout
    assert "Caution: the only state of sex is 'F,M': separate states by |." in said
    assert "Caution: the only state of vote is 'Y;N'" in said
    assert said.count("Caution") == 2


def test_files_in_other_encodings_are_named(tmp_path):
    (tmp_path / "words.csv").write_text("variable,states\nvote,Y|N\n")
    (tmp_path / "rules.csv").write_bytes("rule,combination\nforbidden,vote=Zoë\n".encode("latin-1"))
    result = CliRunner().invoke(main, ["schema", str(tmp_path / "words.csv"), "--rules", str(tmp_path / "rules.csv")])
    assert result.exit_code == 1
    assert "rules.csv: not a text file in UTF-8; save it as one." in result.output
