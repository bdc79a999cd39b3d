"""Data dictionaries are read to the letter: what they say of a variable is public, and decides what its cells mean."""

import json

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import pgmpy_dp as dp
from pgmpy_dp.cli import main

NINES = "9" * 400
HEADERS = ['"variable,states', "variable,states,", f"variable,states,{'Y' * 2**18}"]


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
    ],
)
def test_a_dictionary_that_says_two_things_is_refused_by_its_row_in_one_line(text, said, tmp_path):
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


def test_infinite_edges_are_written_as_such(tmp_path):
    drafted(tmp_path, "variable,edges\nage,-inf|0|Infinity\n")
    assert dp.Schema.from_dictionary(tmp_path / "words.csv").bins["age"] == dp.Bins([-float("inf"), 0, float("inf")])


@given(st.text(alphabet='ab|,"\r\n \0', max_size=20), st.sampled_from(["states", "edges"]))
@settings(max_examples=80, derandomize=True, deadline=None)
def test_any_rows_are_read_or_refused_in_one_line(tmp_path_factory, rows, column):
    answer = drafted(tmp_path_factory.getbasetemp(), f"variable,{column},other\n{rows}", "any.csv")
    if answer.exit_code:
        assert isinstance(answer.exception, SystemExit)
        assert answer.stderr.count("\n") == 1
    else:
        json.dumps(dp.Schema.from_dictionary(tmp_path_factory.getbasetemp() / "any.csv").to_dict())


def test_a_wide_last_bin_is_named_and_detail_is_read(tmp_path):
    drawn = drafted(tmp_path, "variable,edges,detail\nincome,0|1000|100000,8\nage,0|18|120,\nvisits,0|1|inf,\n")
    assert "Caution: the last edge of income is over ten times the one before" in drawn.output
    found = dp.Schema.from_dictionary(tmp_path / "words.csv")
    assert {variable: bins.detail for variable, bins in found.bins.items()} == {"income": 8, "age": 64, "visits": 64}
    (tmp_path / "words.json").write_text(json.dumps({"income": {"edges": [0, 1000, 2000], "detail": 0}}))
    assert dp.Schema.from_dictionary(tmp_path / "words.json").bins["income"].detail == 0
    assert "detail is a whole number from 0" in drafted(tmp_path, "variable,edges,detail\nage,0|18|120,-1\n").output


def test_states_that_are_not_separated_by_bars_are_cautioned_against(tmp_path):
    text = 'variable,states,missing\nsex,"F,M",\nvote,Y;N,unknown\nage,a|b,\nonly,one,\n'
    said = drafted(tmp_path, text).stdout
    assert "Caution: the only state of sex is 'F,M': separate states by |." in said
    assert "Caution: the only state of vote is 'Y;N'" in said
    assert said.count("Caution") == 2


def test_bins_of_integers_hold_whole_numbers(tmp_path):
    drafted(tmp_path, "variable,type,edges\nill,integer,0|0.5|1\nrate,number,0|0.5|1\n")
    draft = dp.Schema.from_dictionary(tmp_path / "words.csv")
    assert (draft.bins["ill"].decimals, draft.bins["rate"].decimals) == (0, None)
