"""A raw CSV file with every difficulty at once goes in at the command line; synthetic records of its form come out."""

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner

import pgmpy_dp as dp
from pgmpy_dp.cli import main
from pgmpy_dp.records import open_records

REGIONS = {f"Öd {number:04}": ("Nord", "Süd", "Ost", "West")[number % 4] for number in range(5000)}
YEARS = {"primary": 4, "secondary": 9, "high": 12}
NOTES = ["a;b", "two\nlines", 'so "called"']
RULES = [
    dp.Hierarchy("town", "région", REGIONS),
    dp.Dependency("school", "years", YEARS),
    dp.Forbidden({"age": "0_to_18", "married": "yes"}),
]
JOBS = [f"{number:02}" for number in range(25)]
DICTIONARY = [
    ["variable", "type", "states", "edges", "missing", "other", "missing_values", "decimals"],
    ["code", "", "007|012|103", "", "", "", "", ""],
    ["visit", "", "2024-01-05|2024-02-11", "", "", "", "", ""],
    ["batch", "integer", "1001|1002|1003", "", "", "", "", ""],
    ["town", "", "|".join(REGIONS), "", "", "", "", ""],
    ["région", "", "Nord|Süd|Ost|West", "", "", "", "", ""],
    ["age", "", "", "0|18|40|65|100", "unknown", "", "NA", ""],
    ["income", "", "", "0|1000.5|2500.25|9000", "unknown", "", "", "2"],
    ["work", "", "private|state", "", "unknown", "", "?", ""],
    ["home", "", "rent|own", "", "unknown", "", "|none", ""],
    ["school", "", "|".join(YEARS), "", "", "", "", ""],
    ["years", "integer", "4|9|12", "", "", "", "", ""],
    ["married", "", "no|yes", "", "", "", "", ""],
    ["note", "", "|".join(NOTES), "", "", "", "", ""],
    ["club", "", "", "", "", "other club", "", ""],
    ["job", "", "|".join(JOBS), "", "", "", "", ""],
]
COLUMNS = [row[0] for row in DICTIONARY[1:]]
COUNT = 1500


def run(*arguments):
    done = CliRunner().invoke(main, list(map(str, arguments)))
    assert done.exit_code == 0, done.output
    return done.stdout


def raw_records() -> list[list[str]]:
    draw, towns = np.random.default_rng(0), np.array(list(REGIONS))
    rows = []
    for _ in range(COUNT):
        town, school = str(draw.choice(towns)), draw.choice(list(YEARS))
        age = "NA" if draw.random() < 0.2 else str(draw.integers(0, 100))
        grown = age == "NA" or int(age) >= 18
        rows.append(
            [
                draw.choice(["007", "012", "103"]),
                draw.choice(["2024-01-05", "2024-02-11"]),
                str(draw.integers(1001, 1004)),
                town,
                REGIONS[town],
                age,
                "" if draw.random() < 0.2 else f"{draw.uniform(0, 9000):.2f}",
                draw.choice(["private", "state", "?"]),
                draw.choice(["rent", "own", "", "none"]),
                school,
                str(YEARS[school]),
                draw.choice(["no", "yes"]) if grown else "no",
                draw.choice(NOTES),
                draw.choice(["Chor; Tanz", "Ruderclub", f"Stammtisch {draw.integers(10**6)}"]),
                draw.choice(JOBS[:4]) if draw.random() < 0.99 else draw.choice(JOBS[4:]),
            ]
        )
    return rows


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The synthetic rows, their header, and the schema of them; the test runs in a folder of its own."""
    folder = tmp_path_factory.mktemp("tables")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        with open("dictionary.csv", "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(DICTIONARY)
        with open("records.csv", "w", encoding="latin-1", newline="") as file:
            padded = [[f" {cell}  " for cell in row] for row in [COLUMNS, *raw_records()]]
            csv.writer(file, delimiter=";").writerows(padded)
        run("schema", "dictionary.csv", "--delimiter", ";", "--encoding", "latin-1", "--strip", "--out", "draft.json")
        dp.Schema.load("draft.json").replace(rules=RULES).save("open.json")
        run("ledger", "create", "ledger.json", "--epsilon", 40, "--delta", 1e-5)
        paid = ("records.csv", "--ledger", "ledger.json", "--schema")
        run("states", *paid, "open.json", "--variable", "club", "--epsilon", 5, "--delta", 1e-6, "--out", "found.json")
        (folder / "tables.json").write_text(json.dumps([["job"]]))
        run("release", *paid, "found.json", "--cliques", "tables.json", "--epsilon", 0.5, "--out", "jobs.zip")
        merged = dp.merge_rare_states(dp.NoisyMarginals.load("jobs.zip"), "job", "job group")
        schema = dp.Schema.load("found.json").join(merged)
        schema.save("schema.json")
        spent = ("--epsilon", 20, "--delta", 1e-6, "--stages", 1, "--seed", 0)
        run("synthesize", *paid, "schema.json", *spent, "--out", "synthetic.csv")
        with open("synthetic.csv", encoding="latin-1", newline="") as file:
            header, *rows = csv.reader(file, delimiter=";")
        yield header, [dict(zip(header, row, strict=True)) for row in rows], schema, folder / "synthetic.csv"


def test_columns_and_their_order_are_those_of_the_records(files):
    header, rows, *_ = files
    assert header == COLUMNS  # what rare jobs are merged to is a variable of the model, and no column
    assert len(rows) == pytest.approx(COUNT, rel=0.1)


def test_values_have_the_kinds_of_the_records(files):
    _, rows, *_ = files
    found = {column: {row[column] for row in rows} for column in COLUMNS}
    assert found["code"] == {"007", "012", "103"}
    assert found["visit"] == {"2024-01-05", "2024-02-11"}
    assert found["batch"] == {"1001", "1002", "1003"}
    assert found["town"] <= set(REGIONS)
    assert found["note"] == set(NOTES)
    assert found["club"] == {"Chor; Tanz", "Ruderclub", "other club"}
    assert found["job"] <= set(JOBS)
    assert all(0 <= int(age) <= 100 for age in found["age"] - {"NA"})
    assert all(0 <= float(income) <= 9000 for income in found["income"] - {""})
    assert {len(income.partition(".")[2]) for income in found["income"] - {""}} == {2}


def test_missing_values_are_said_as_in_the_records(files):
    _, rows, *_ = files
    codes = {
        code: {column for column in COLUMNS if any(row[column] == code for row in rows)} for code in ("?", "NA", "")
    }
    assert codes == {"?": {"work"}, "NA": {"age"}, "": {"income", "home"}}
    assert not any("unknown" in row.values() for row in rows)


def test_rules_hold_in_every_row(files):
    _, rows, *_ = files
    for row in rows:
        assert row["région"] == REGIONS[row["town"]]
        assert int(row["years"]) == YEARS[row["school"]]
        assert row["married"] == "no" or row["age"] == "NA" or int(row["age"]) >= 18


def test_synthetic_records_are_read_as_the_records_are(files):
    _, rows, schema, path = files
    assert open_records(path, schema, schema.variables).size == len(rows)
