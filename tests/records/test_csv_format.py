"""How CSV files are written is declared in the schema, in Python, in its file and on the command line."""

import json
import pickle
import tempfile
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import pgmpy_dp as dp
from pgmpy_dp.cli import main
from pgmpy_dp.cli.shared.written import to_csv
from pgmpy_dp.evaluation import compare, compare_prediction
from pgmpy_dp.privacy.coins import random_keys
from pgmpy_dp.records import csv_reading, open_records
from pgmpy_dp.records.households import HouseholdTables
from pgmpy_dp.records.units import Unit

GERMAN = dp.CsvFormat(";", "latin-1", strip=True)
SCHEMA = dp.Schema({"größe": ["groß", "klein"], "a": ["x", "y"]}, missing={"a": "unknown"}, csv=GERMAN)
TEXT = "größe ; a\n groß;x\nklein ;\nklein; y \n"


def counts(records, schema):
    return {v: open_records(records, schema, [v]).counts([(v,)])[v,].tolist() for v in schema.variables}


def command(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)))


def test_a_path_is_read_as_the_schema_says_unless_the_file_is_declared_itself(tmp_path):
    (tmp_path / "a.csv").write_text(TEXT, encoding="latin-1")
    assert counts(tmp_path / "a.csv", SCHEMA) == {"größe": [1, 2], "a": [1, 1, 1]}
    (tmp_path / "b.csv").write_text(TEXT.replace(";", ",").replace(" ", ""), encoding="utf-8")
    assert counts(dp.CsvFile(tmp_path / "b.csv"), SCHEMA) == {"größe": [1, 2], "a": [1, 1, 1]}
    with pytest.raises(dp.SchemaError, match="has no column"):
        counts(tmp_path / "b.csv", SCHEMA)
    (tmp_path / "c.csv").write_text("größe,a\ngroß ,x\n", encoding="utf-8")
    with pytest.raises(dp.SchemaError, match="'größe' has values"):  # nothing is stripped unless it is said
        counts(dp.CsvFile(tmp_path / "c.csv"), SCHEMA)


def test_the_format_goes_wherever_the_schema_goes(tmp_path):
    SCHEMA.save(tmp_path / "schema.json")
    data = dp.PrivateDataset(
        pd.DataFrame({"größe": ["groß"], "a": ["x"]}), SCHEMA, dp.PrivacyBudget(1), noise=dp.SimulatedNoise(0)
    )
    data.measure([("größe", "a")], 1).save(tmp_path / "release.zip")
    others = dp.Schema({"b": ["u", "v"]})
    for schema in (
        dp.Schema.load(tmp_path / "schema.json"),
        dp.NoisyMarginals.load(tmp_path / "release.zip").schema,
        pickle.loads(pickle.dumps(SCHEMA)),
        SCHEMA.select(["a"]),
        SCHEMA.with_states("a", ["x", "z"]),
        SCHEMA.join(others),
        others.join(SCHEMA),
    ):
        assert schema.csv == GERMAN
    assert dp.Schema.load(tmp_path / "schema.json") == SCHEMA != SCHEMA.replace(csv=dp.CsvFormat())
    assert "pgmpy_dp:csv" not in others.to_dict()


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"delimiter": ""}, "delimiter must be one character"),
        ({"delimiter": "ab" * 10**6}, "delimiter must be one character"),
        ({"delimiter": "\n"}, "delimiter '.n' quotes fields or ends lines"),
        ({"delimiter": '"'}, "quotes fields or ends lines"),
        ({"delimiter": "\0"}, "delimiter must be one character"),
        ({"delimiter": "ß"}, "delimiter must be one character"),
        ({"delimiter": ["," * 99]}, "delimiter must be one character of ASCII, .* got list"),
        ({"delimiter": " ", "strip": True}, "delimiter ' ' is a blank, and strip"),
        ({"encoding": "shift-jis"}, "encoding 'shift-jis' does not encode each character independently"),
        ({"encoding": "iso2022_jp_2004"}, "encoding 'iso2022_jp_2004' does not encode each"),
        ({"encoding": "rot13"}, "encoding 'rot13' does not encode each"),
        ({"encoding": "utf-8\0"}, "encoding 'utf-8.x00' is not known"),
        ({"encoding": "\ud800"}, "encoding .* is not known"),
        ({"encoding": "x" * 10**6}, "encoding 'x{39}... is not known"),
        ({"encoding": 8}, "encoding 8 is not known"),
        ({"encoding": None}, "encoding None is not known"),
        ({"strip": "yes"}, "strip must be True or False"),
        ({"decimal": ";"}, "decimal is the mark '.' or ',', got ';'"),
        ({"decimal": ["."]}, "decimal is the mark '.' or ',', got list"),
        ({"delimiter": ".", "decimal": "."}, "delimiter and decimal cannot both be '.'"),
        ({"quote": "'"}, "an object of delimiter, encoding, strip, decimal, dates, and nothing else"),
        ([";"], "an object of delimiter, encoding, strip, decimal, dates, and nothing else"),
    ],
)
def test_hostile_formats_are_refused_by_name_in_one_line(declared, message, tmp_path):
    descriptor = dp.Schema({"a": ["x", "y"]}).to_dict() | {"pgmpy_dp:csv": declared}
    with pytest.raises(dp.SchemaError, match=message):
        dp.Schema.from_dict(descriptor)
    (tmp_path / "schema.json").write_text(json.dumps(descriptor))
    refused = command("plan", "--schema", tmp_path / "schema.json", "--pairs", "--epsilon", 1)
    assert refused.exit_code == 1
    assert refused.stderr.count("\n") == 1
    assert "'pgmpy_dp:csv'" in refused.stderr
    assert len(refused.stderr) < 400


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (lambda: dp.Schema({"stadt": ["Łódź"]}, csv=GERMAN), "'stadt': 'Łódź' cannot be written in iso8859-1"),
        (lambda: dp.Schema({"Łódź": ["ja"]}, csv=GERMAN), "'Łódź': its name cannot be written"),
        (lambda: dp.Schema({"a": ["x", "y "]}, csv=GERMAN), "'a': 'y ' has blanks at its ends"),
        (lambda: SCHEMA.replace(missing_values={"a": ["— "]}), "'a': '— ' has blanks"),
        (lambda: dp.Schema({"a": ["x"]}, csv=";"), "csv must be a CsvFormat"),
    ],
)
def test_a_schema_that_its_files_cannot_hold_is_refused(declared, message):
    with pytest.raises(dp.SchemaError, match=message):
        declared()


def test_missing_values_are_written_by_their_first_text_and_odd_states_are_read_again(tmp_path):
    schema = dp.Schema(
        {"a": ["x\ry", 'say "no"', "1;2", "-"], "b": ["u"], "c": [0, 1], "age": dp.Bins([0, 50, 100])},
        missing={"a": "none", "b": "unknown", "c": -1, "age": "unknown"},
        missing_values={"a": ["", "NA"], "b": ["?", "NA"], "age": ["NA"]},
        csv=dp.CsvFormat(";"),
    )
    frame = pd.DataFrame(
        {v: pd.Categorical.from_codes(range(len(s)), list(s)) for v, s in schema.states.items() if v == "a"}
    )
    frame["b"], frame["c"] = pd.Categorical(["u", "unknown"] * 2 + ["u"]), pd.Categorical([0, 1, -1, 1, 0])
    frame["age"] = pd.Series([7, None, 61, 62, 63], dtype="Int64")
    lines = to_csv(frame[["b", "c", "age"]], None, schema, False).splitlines()
    assert lines == ["b;c;age", "u;0;7", "?;1;NA", "u;-1;61", "?;1;62", "u;0;63"]
    to_csv(frame, tmp_path / "a.csv", schema, False)
    assert counts(tmp_path / "a.csv", schema) == {
        "a": [1, 1, 1, 1, 1], "b": [3, 2], "c": [2, 2, 1], "age": [1, 3, 1],
    }  # fmt: skip


def test_a_dictionary_declares_the_format_and_options_of_a_command_win(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("words.csv").write_text("variable,states,missing,missing_values\ngröße,groß|klein,,\na,x|y,unknown,|NA\n")
    said = ("--delimiter", ";", "--encoding", "latin-1", "--strip")
    assert command("schema", "words.csv", *said, "--out", "schema.json").exit_code == 0
    assert dp.Schema.load("schema.json") == SCHEMA.replace(missing_values={"a": ["", "NA"]})
    Path("records.csv").write_text(TEXT, encoding="latin-1")
    Path("pipes.csv").write_text(TEXT.replace(";", "|"), encoding="utf-8")
    Path("tables.json").write_text('{"cliques": [["größe", "a"]]}')
    call = ["--schema", "schema.json", "--cliques", "tables.json", "--epsilon", 1, "--no-ledger", "--force"]
    assert command("release", "records.csv", *call, "--out", "a.zip").exit_code == 0
    assert "has no column" in command("release", "pipes.csv", *call, "--out", "a.zip").stderr
    other = ("--delimiter", "|", "--encoding", "utf-8")
    assert command("release", "pipes.csv", *call, "--out", "b.zip", *other).exit_code == 0
    assert dp.NoisyMarginals.load("b.zip").schema.csv == dp.CsvFormat("|", strip=True)
    assert "has no column" in command("release", "records.csv", *call, "--out", "c.zip", "--no-strip").stderr
    refused = command("release", "records.csv", *call, "--out", "c.zip", "--encoding", "ascii")
    assert "'größe': its name cannot be written in ascii" in refused.stderr


NUMBERS = {
    "bins": dp.Bins([0, 1.5, 20_000]),
    "whole": [1, 2, 15],
    "texts": ["1", "15", "x", "007", "2.50"],
    "floats": [0.5, 2.0, 15.0],
}


def expected(variable, text, decimal):
    """A plain reading of one cell: -2 is missing, -1 undeclared."""
    states = NUMBERS[variable]
    if variable == "texts" and text in states:
        return states.index(text)
    if text == "":
        return -2
    if decimal == ",":
        if "." in text:
            return -1
        text = text.replace(",", ".")
    front, point, zeros = text.partition(".")
    if variable == "texts":  # an integer that a program wrote as a float
        written = bool(point) and set(zeros) == {"0"} and front == str(int(front)) if front.isdigit() else False
        return states.index(front) if written and front in states else -1
    try:
        number = float(text)
    except ValueError:
        return -1
    if variable == "bins":
        return 0 if 0 <= number < 1.5 else 1 if 1.5 <= number <= 20_000 else -1
    return states.index(number) if number in states else -1


@pytest.mark.parametrize("decimal", [".", ","])
@settings(deadline=None)
@given(texts=st.lists(st.one_of(st.sampled_from(["15.0", "15,00", "007.0", "2,5", "1.000", "0,5"]),
                                st.text("0125.,-+ex", max_size=6)), min_size=1, max_size=8))  # fmt: skip
def test_cells_are_read_as_plainly_and_each_by_itself(texts, decimal):
    """Whatever else the file holds, a cell's position is that of a plain Python reading of it."""
    schema = dp.Schema(NUMBERS, missing=dict.fromkeys(NUMBERS, "no"), other=dict.fromkeys(NUMBERS, "else"))
    places = {v: {-2: schema.states[v].index("no"), -1: schema.states[v].index("else")} for v in NUMBERS}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.csv")
        path.write_text(";".join(NUMBERS) + "\n" + "".join(";".join([text] * 4) + "\n" for text in texts))
        codes = open_records(dp.CsvFile(path, ";", decimal=decimal), schema, list(NUMBERS)).codes
    for variable in NUMBERS:
        found = [expected(variable, text, decimal) for text in texts]
        assert codes[variable].tolist() == [places[variable].get(place, place) for place in found]


def test_synthetic_numbers_are_written_as_the_records_were(tmp_path):
    schema = dp.Schema(
        {"income": dp.Bins([0, 1000, 5000], decimals=2), "rooms": ["1", "2"], "rate": [0.5, 1.5]},
        missing={"income": "unknown", "rooms": "unknown", "rate": "unknown"},
        csv=dp.CsvFormat(";", decimal=","),
    )
    records = pd.DataFrame({
        "income": pd.Series([1.5, None]),
        "rooms": pd.Categorical(["2", "unknown"], categories=["1", "2", "unknown"]),
        "rate": pd.Categorical([0.5, "unknown"], categories=[0.5, 1.5, "unknown"]),
    })  # fmt: skip
    to_csv(records, tmp_path / "made.csv", schema, False)
    assert (tmp_path / "made.csv").read_text().splitlines() == ["income;rooms;rate", "1,50;2;0,5", ";;"]
    again = pd.read_csv(tmp_path / "made.csv", sep=";", decimal=",")
    assert all(dtype.kind == "f" for dtype in again.dtypes)
    assert counts(tmp_path / "made.csv", schema) == {"income": [1, 0, 1], "rooms": [0, 1, 1], "rate": [1, 0, 1]}
    said = schema.replace(missing_values={"income": ["NA"]})
    assert to_csv(records, None, said, False).splitlines()[1:] == ["1,50;2;0,5", "NA;;"]
    below = schema.replace(variables={"income": dp.Bins([-5, 0, 5], decimals=3), "rooms": ["1"], "rate": [1.5]})
    numbers = pd.DataFrame({"income": [-1.5, 4.125]})
    assert to_csv(numbers, None, below, True).splitlines() == ["income", "-1,500", "4,125"]
    (tmp_path / "words.csv").write_text("variable,edges\nincome,0|1000\n")
    assert command("schema", tmp_path / "words.csv", "--delimiter", ";", "--decimal", ",").exit_code == 0
    with pytest.raises(ValueError, match="delimiter and decimal cannot both be ','"):
        dp.CsvFormat(decimal=",")


SIZES = dp.Schema({"größe": ["groß"], "income": dp.Bins([0, 10])})
SEMICOLONS = SIZES.replace(csv=dp.CsvFormat(";"))


@pytest.mark.parametrize(
    ("text", "encoding", "schema", "message"),
    [
        ("größe;income\ngroß;1,5\n", "utf-8", SIZES, "its header is split at ';', and ',' is declared"),
        ("größe,income\ngroß,1\n", "cp1252", SIZES, "its header is not in utf-8"),
        ('"größe";"income"\n"groß";1\n', "utf-8", SIZES, "declare the delimiter, which may be another"),
        ("größe;income\nklein;1\n", "utf-8", SEMICOLONS, "may be another encoding than utf-8, to be declared"),
        ("größe\tincome\n", "utf-8", SEMICOLONS, r"its header is split at .*use Schema\(..., csv=CsvFormat\('\\t'\)\)"),
        ("größe|income\n", "utf-8", SEMICOLONS, r"its header is split at .*use Schema\(..., csv=CsvFormat\('\|'\)\)"),
    ],
)
def test_a_refusal_names_the_format_where_the_header_or_the_schema_shows_it(text, encoding, schema, message, tmp_path):
    (tmp_path / "a.csv").write_text(text, encoding=encoding)
    with pytest.raises(dp.SchemaError, match=message):
        counts(tmp_path / "a.csv", schema)


def test_decimal_commas_are_suggested_whatever_the_value_is_unless_the_file_declares_them(tmp_path):
    path, messages = tmp_path / "a.csv", set()
    for number in ("1,5", "99"):
        path.write_text(f"größe;income\ngroß;{number}\n", encoding="utf-8")
        with pytest.raises(dp.SchemaError, match="decimal commas") as refused:
            counts(path, SEMICOLONS)
        messages.add(str(refused.value))
    (message,) = messages
    assert "another encoding" not in message  # no state of the variable could be written in another
    path.write_text("größe;income\ngroß;1.5\n", encoding="utf-8")
    with pytest.raises(dp.SchemaError, match="'income' has values") as refused:
        counts(dp.CsvFile(path, ";", decimal=","), SEMICOLONS)
    assert "decimal commas" not in str(refused.value)


def test_files_are_compared_by_path(tmp_path):
    schema = dp.Schema({"a": dp.Bins([0, 2, 4]), "b": ["x", "y"]}, csv=dp.CsvFormat(";"))
    frame = pd.DataFrame({"a": [0, 1, 2, 3] * 50, "b": ["x", "x", "y", "y"] * 50})
    frame.to_csv(tmp_path / "made.csv", index=False, sep=";")
    frame.to_parquet(tmp_path / "made.parquet", index=False)
    for name in ("made.csv", "made.parquet"):
        path = tmp_path / name
        assert (compare(frame, path, schema)["error"] == 0).all()
        found = compare_prediction(frame, path, path, "b", schema)
        assert (found["accuracy"].xs("boosting") == 1.0).all()
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match="a folder cannot be read into memory"):
        compare_prediction(frame, tmp_path / "folder", frame, "b", schema)


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
