"""The command line, as a data officer and an analyst use it."""

import io
import itertools
import json
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from pgmpy.factors.discrete import TabularCPD
from pgmpy.models import DiscreteBayesianNetwork

import pgmpy_dp as dp
from pgmpy_dp import demo
from pgmpy_dp.cli import main
from pgmpy_dp.cli.shared.structures import edge_lines, read_structure
from pgmpy_dp.exports import load_network, save_network
from pgmpy_dp.fitting.checks import fit_checks
from pgmpy_dp.privacy.noise import laplace_variance
from pgmpy_dp.release import Release

RELEASE = "release records.csv --schema schema.json"
SYNTHESIZE = "synthesize records.csv --schema schema.json"
STRUCTURE = "structure records.csv --schema schema.json"


def run(line, code=0):
    """Output of a command, which must end with this exit code and never with a traceback."""
    result = CliRunner().invoke(main, shlex.split(line))
    assert result.exit_code == code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.output if code else result.stdout


def refused(line):
    """The one line that a refusal prints."""
    message = run(line, code=1)
    assert message.startswith("Error: ")
    assert message.count("\n") == 1
    return message


def as_json(line):
    """What a command prints as JSON."""
    return json.loads(run(f"{line} --json"))


def probabilities(line, variable):
    """The answer to a query, by the states of a variable."""
    return {row["states"][variable]: row["probability"] for row in as_json(line)["answer"]}


def remaining(ledger="ledger.json"):
    """The epsilon that is left."""
    return as_json(f"ledger show {ledger}")["remaining"]["epsilon"]


def variables(tables):
    """Those of each table that a command lists."""
    return [table["variables"] for table in tables]


@pytest.fixture(autouse=True)
def _in_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def asia(bnlearn, simulate):
    """Files of the network, of records drawn from it, and of their schema."""
    save_network(bnlearn("asia"), "asia.json")  # pgmpy's reader takes a second for any BIF file
    simulate("asia", 3000, 1).to_csv("records.csv", index=False)
    run("schema asia.json --out schema.json")


def release(more="", code=0, epsilon=1):
    ledger = "" if "--ledger" in more else "--no-ledger"
    return run(f"{RELEASE} --model asia.json --epsilon {epsilon} --out release.zip {ledger} {more}", code)


def test_the_whole_path_on_asia(asia):
    save_network(load_network("asia.json"), "asia.bif")
    assert run("schema asia.bif --json") == Path("schema.json").read_text()
    run("ledger create ledger.json --epsilon 2")
    made = json.loads(release("--ledger ledger.json --json"))
    assert made["ledger"]["remaining"]["epsilon"] == 1.0
    held = as_json("inspect release.zip")
    assert held["guarantee"]["epsilon"] == 1.0
    assert held["guarantee"]["private"] is True
    assert set(itertools.chain(*variables(held["tables"]))) == set(dp.Schema.load("schema.json").variables)
    assert "differentially private with epsilon = 1.0" in run("inspect release.zip").lower()
    assert abs(held["total"]["value"] - 3000) < 10 * held["total"]["deviation"]
    for method, suffix in {
        "private-bayesian": "json", "private-mle": "xmlbif", "collective-em": "bif", "auto": "bif",
    }.items():  # fmt: skip
        call = f"fit release.zip --model asia.bif --estimator {method} --force --out a.{suffix}"
        assert as_json(call)["guarantee"] == held["guarantee"]
        answer = probabilities(f"query a.{suffix} --target lung --evidence smoke=yes", "lung")
        assert answer["yes"] == pytest.approx(0.1, abs=0.05)
        assert sum(answer.values()) == pytest.approx(1.0)
    simulated = dp.PrivateDataset(
        "records.csv", dp.Schema.load("schema.json"), dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(1)
    )
    tables = list(map(tuple, variables(held["tables"])))
    simulated.measure(tables, 1.0).save("simulated.zip")  # which reading is chosen depends on the noise
    call = "fit simulated.zip --model asia.bif --out simulated.bif --force"
    fitted = as_json(call)
    assert (fitted["method"], fitted["reading"]) == ("auto", "inference")
    assert "by auto: all tables inform every CPD." in run(call)
    assert "P(lung | smoke = yes)" in run("query a.bif --target lung --evidence smoke=yes")
    joint = as_json("query a.bif --target tub --target lung")["answer"]
    assert sum(row["probability"] for row in joint) == pytest.approx(1.0)
    printed = run("sample a.bif --rows 20 --seed 1")
    assert "give --rows, or name the release" in refused("sample a.bif")
    assert printed == run("sample a.bif --rows 20 --seed 1 --predicting lung")  # draws keep every table
    assert printed == run("sample a.bif --rows 20 --seed 1")
    assert len(pd.read_csv(io.StringIO(printed))) == 20
    run("sample a.bif --rows 20 --seed 1 --out s.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet("s.parquet"), pd.read_csv(io.StringIO(printed)), check_dtype=False)


def test_the_whole_path_on_the_rand_records_with_a_markov_network():
    demo.load_records().to_csv("records.csv", index=False)
    demo.SCHEMA.save("schema.json")
    Path("edges.txt").write_text("# who influences whom\n" + "".join(f"{a} -- {b}\n" for a, b in demo.EDGES))
    run("ledger create l.json --epsilon 1 --delta 1e-6")
    call = f"{RELEASE} --model edges.txt --epsilon 1 --ledger l.json"
    run(f"{call} --delta 1e-6 --mechanism gaussian --out r.zip")
    assert "gaussian" in run("ledger show l.json")
    assert "Nothing is left" in refused(f"{call} --out r2.zip")
    for method, out in (("collective-em", "m.json"), ("naive-mle", "m.uai")):
        run(f"fit r.zip --model edges.txt --method {method} --out {out}")
        answer = probabilities(f"query {out} --target limitation --evidence health=poor", "limitation")
        assert 0.4 < answer["yes"] < 0.8  # 0.6 among the records
    assert len(run("sample m.json --rows 5").splitlines()) == 6
    Path("nodes.txt").write_text("visits -> health\nlimitation\n")
    for options, message in (
        ("--model nodes.txt --method naive-mle", "Markov networks: give edges a -- b"),
        ("--model edges.txt", ".uai, .json"),
        ("--model edges.txt --method private-mle", "give edges a -> b"),
    ):
        assert message in refused(f"fit r.zip {options} --out x.bif")


def test_synthetic_records_are_counted_and_cautions_are_no_notes(asia):
    release(epsilon=0.01)  # noise of less than the records, whose number is that of those drawn
    run("fit release.zip --model asia.json --out fitted.zip")
    call = "sample fitted.zip --seed 1 --out drawn.csv --force"
    drawn = as_json(call)
    assert drawn["rows"] == len(pd.read_csv("drawn.csv"))
    outputs = run(call)
    assert outputs.startswith(f"{drawn['rows']} synthetic records written to drawn.csv.")
    assert "\nCaution: noise hides much of the release" in outputs
    assert "Note: Caution" not in outputs + run("query fitted.zip --target lung")


@pytest.mark.full
def test_dates_are_written_as_the_records_write_them():
    days = pd.Timestamp("2023-01-01") + pd.to_timedelta(np.arange(400) % 365, unit="D")
    frame = pd.DataFrame({"seen": days.strftime("%d.%m.%Y"), "left": days.strftime("%b %Y"), "cost": "1,5"})
    frame.loc[::9, "seen"] = "?"
    frame.to_csv("records.csv", index=False, sep=";")
    words = (
        "variable,type,edges,format,missing,missing_values\n"
        "seen,date,01.01.2023|quarter|01.01.2024,,none,?\n"
        "left,date,2023-01-01|month|2024-01-01,%b %Y,,\ncost,,0|1|2,,,\n"
    )
    Path("words.csv").write_text(words)
    drafted = "schema words.csv --delimiter ';' --decimal , --dates %d.%m.%Y --out schema.json"
    assert "Bins of dates" in refused(drafted)
    Path("words.csv").write_text(words.replace("01.01.2023|quarter|01.01.2024", "2023-01-01|quarter|2024-01-01"))
    run(drafted)
    run(f"{SYNTHESIZE} --epsilon 9 --delta 1e-6 --no-ledger --out drawn.csv --seed 1 --model model.zip")
    drawn = pd.read_csv("drawn.csv", sep=";")
    assert drawn["seen"].str.fullmatch(r"\?|\d\d\.\d\d\.2023").all()
    assert {"?"} < set(drawn["seen"])
    assert drawn["left"].str.fullmatch(r"[A-Z][a-z]{2} 2023").all()
    dp.PrivateDataset("drawn.csv", dp.Schema.load("schema.json"), dp.PrivacyBudget(1.0))  # nothing is undeclared
    assert as_json("query model.zip --target left --evidence seen=31.12.2023")["evidence"] == {"seen": "2023-Q4"}
    wrong = refused("query model.zip --target left --evidence seen=2023-12-31")
    assert "no state '2023-12-31'" in wrong
    assert "Dates are written as '01.01.2023'." in wrong
    assert re.search(r"seen  \d\d\.\d\d\.2023$", run("query model.zip --mean seen"), re.MULTILINE)
    assert re.search(r"left  [A-Z][a-z]{2} 2023$", run("query model.zip --mean left"), re.MULTILINE)
    frame.assign(seen=days.strftime("%Y-%m-%d")).to_csv("records.csv", index=False, sep=";")
    Path("tables.json").write_text('[["seen"]]')
    other = refused(f"{RELEASE} --cliques tables.json --epsilon 1 --no-ledger --out x.zip")
    assert "dates from 01.01.2023 to 01.01.2024, as texts in %d.%m.%Y" in other


def test_cliques_may_be_named(asia):
    Path("cliques.json").write_text('{"cliques": [["smoke", "lung"], ["xray"]], "weights": [3, 1]}')
    call = f"{RELEASE} --cliques cliques.json --no-ledger --epsilon 1"
    tables = as_json(f"{call} --neighbours replace_one --out r.zip")["tables"]
    assert variables(tables) == [["smoke", "lung"], ["xray"]]
    assert tables[1]["scale"] == pytest.approx(8.0)
    Path("cliques.json").write_text('{"smoke": "lung"}')
    assert "list of lists" in refused(f"{call} --out r2.zip")
    run("plan-accuracy --schema schema.json --table smoke,lung=50 --out plan.json")
    (table,) = as_json(f"{RELEASE} --plan plan.json --no-ledger --out r2.zip")["tables"]
    assert table["variables"] == ["smoke", "lung"]


def test_releases_of_holders_are_united_fitted_and_asked_about_each_of_them(asia):
    """From each holder's records to answers for one of them, with the promise of each stated and that of all."""
    frame = pd.read_csv("records.csv")
    Path("edges.txt").write_text("asia -> tub\nsmoke -> lung\nlung -> either\ntub -> either\neither -> xray\n")
    for epsilon, site, rows in ((1, "north", frame[:2000]), (2, "south", frame[2000:])):
        rows.to_csv("records.csv", index=False)
        run(f"{RELEASE} --model edges.txt --epsilon {epsilon} --no-ledger --out {site}.zip")
    said = run("union north.zip south.zip --as site --out all.zip")
    assert "epsilon = 2.0, for one record added or removed in one of the united releases" in said
    assert "north: Differentially private with epsilon = 1.0" in said
    held = as_json("inspect all.zip")
    assert (held["variable"], held["overlap"]) == ("site", 1)
    assert [part["state"] for part in held["parts"]] == ["north", "south"]
    assert as_json("union north.zip south.zip --overlap 2 --out two.zip")["guarantee"]["epsilon"] == 3.0
    run("fit all.zip --model edges.txt --out fitted.zip")
    asked = run("query fitted.zip --target xray --evidence site=north --evidence tub=yes")
    assert "P(xray | site = north, tub = yes)" in asked
    run("fit all.zip --model edges.txt --pooled --out pooled.zip")
    assert "no variable" not in run("query pooled.zip --target xray --evidence tub=yes")
    run("report pooled.zip --out report.html")
    page = Path("report.html").read_text()
    assert "The release unites 2 of different records" in page
    assert "in one of the united releases" in page
    for releases, message in (
        ("north.zip south.zip --as xray", "give the new one another name by --as"),
        ("north.zip", "two release files or more"),
        ("north.zip ./north.zip", "called 'north'"),
    ):
        assert message in refused(f"union {releases} --out other.zip")
    run("fit all.zip --model edges.txt --partial --out partial.zip")
    assert "site = south" in run("query partial.zip --target xray --evidence site=south --interval 0.9")
    assert "are for a union" in refused("fit north.zip --model edges.txt --pooled --out other.zip")


def test_monthly_releases_are_periods_in_their_order(asia):
    """By dates or numbers, whatever the order of the files; a name that is not written like the others is refused."""
    for number, month in enumerate(("2024-01", "2024-02", "2023-12")):
        release("--force", epsilon=number + 1)
        for copied in (month, 12 - number, "2024-2"):
            Path(f"{copied}.zip").write_bytes(Path("release.zip").read_bytes())
    union = "union --as month --periods --out year.zip --force"
    assert "by month, in this order:\n  2023-12: " in run(f"{union} 2024-01.zip 2024-02.zip 2023-12.zip")
    assert Release.load("year.zip").parts["2023-12"] == Release.load("2023-12.zip")
    run(f"{union} 12.zip 11.zip 10.zip")
    assert "by month, in this order:\n  10: " in run("inspect year.zip")
    assert "2024-2.zip is not named after a period" in refused(f"{union} 2024-01.zip 2024-2.zip 2023-12.zip")
    assert "12.zip is not named" in refused(f"{union} 2024-01.zip 12.zip 2023-12.zip")
    assert "called 10" in refused(f"{union} 12.zip 10.zip ./10.zip")


@pytest.fixture
def visits():
    """Files of rows of persons who have one to four each, some of them undeclared or missing; a schema, and edges."""
    rows = [
        (f"p{k}", "yes" if (k + j) % 3 else "no", (7 * k + 11 * j) % 90) for k in range(400) for j in range(k % 4 + 1)
    ]
    frame = pd.DataFrame(rows, columns=["person, id", "smoke", "age"])
    frame.loc[5, "smoke"], frame.loc[9, "smoke"] = "?", None
    frame.to_csv("visits.csv", index=False)
    frame.to_parquet("visits.parquet", index=False)
    Path("words.csv").write_text("variable,states,edges\nsmoke,yes|no,\nage,,0|10|20|30|40|50|60|70|80|90\n")
    Path("edges.txt").write_text("age -> smoke\n")
    run("schema words.csv --out schema.json")


def test_all_rows_of_a_person_and_values_outside_the_schema(visits):
    options = "--schema schema.json --model edges.txt --epsilon 1 --unit 'person, id' --out r.zip --force --no-ledger"
    call = f"release visits.parquet {options}"
    assert "'smoke' twice" in refused(f"{call} --missing smoke=no --missing smoke=yes")
    call += " --missing smoke=no --other smoke=other"
    shown = run(call)
    assert "for one person, id (all rows, of weight 1 together) added or removed" in shown
    assert "Number of units: " in shown
    held = as_json("inspect r.zip")
    assert held["guarantee"]["unit"] == "person, id"
    assert abs(held["total"]["value"] - 400) < 10 * held["total"]["deviation"]
    assert dp.NoisyMarginals.load("r.zip").schema.states["smoke"] == ("yes", "no", "other")
    run(f"{call} --max-rows 2 --neighbours replace_one")
    shown = run("inspect r.zip")
    assert "(at most 2 rows) replaced by another" in shown
    assert "in each cell, in rows" in shown
    Path("none").mkdir()
    assert "no .parquet file" in refused(f"release none {options}")
    Path("edges.txt").write_bytes(b"\xff -> smoke")
    assert "edges.txt: not a text file in UTF-8" in refused(call)
    assert "--unit" in run("release --help")


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ("a -> b\nb -> c\nc -> a\n", "form a cycle, a -> b -> c -> a"),
        ("a -> a\n", "'a' has an edge to itself"),
        ("a -- a\n", "'a' has an edge to itself"),
        ("a -> b\n\na->c\n", "line 3: write one edge a line, with blanks"),
        ("a -> b -> c\n", "line 1: write one edge a line"),
        ("a => b\n", "line 1: write one edge a line"),
        ("\ufeffa -> nothing\n", "Unknown variable 'nothing'"),
        ("a -> b\nb -- c\n", "not both"),
    ],
)
def test_what_is_wrong_with_edges_is_named(edges, message):
    Path("edges.txt").write_text(edges, encoding="utf-8")
    dp.Schema({name: ["x", "y"] for name in "abc"}).save("schema.json")
    Path("records.csv").write_text("a,b,c\nx,y,x\n")
    assert message in refused(f"{RELEASE} --model edges.txt --epsilon 1 --out r.zip")


PIECES = ["->", "--", "<-", "=>", "-", ">", "#", '"', "\\", "\n", "\x85", "\u2028", "\u202e", " ", "a", ",", "|"]
ODD = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=4)
ODD |= st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join)


@settings(max_examples=100, deadline=None)
@given(st.lists(ODD, min_size=4, max_size=4, unique=True), st.booleans())
def test_edges_that_are_written_read_back_as_the_same(tmp_path_factory, names, known):
    """Whatever the names, also of variables without edges; what reads them may know the names or not."""
    first, second, third, _ = names
    path = tmp_path_factory.getbasetemp() / "written.txt"
    edges = [(first, second), (second, third)]
    path.write_text("\n".join([*edge_lines(edges, names), ""]), encoding="utf-8")
    read = read_structure(path, names if known else ())
    assert set(read.edges()) == set(edges)
    assert set(read.nodes()) == set(names)


@pytest.mark.parametrize(
    ("names", "endings"),
    [
        (["a -> b", "c\nd", '"e" -- f'], ["zip", "bif"]),
        (["\u202ea=b", "\x1b[2J=", "#, | = "], ["json", "xmlbif", "uai"]),
    ],
)
def test_every_file_that_a_command_writes_is_read_by_those_that_take_its_kind(names, endings):
    """From a schema to synthetic records, which are released again, with odd names of variables and states."""
    schema = dp.Schema(dict.fromkeys(names, names[:2]))
    schema.save("declared.json")
    run("schema declared.json --out schema.json")
    assert dp.Schema.load("schema.json") == schema
    pd.DataFrame(dict.fromkeys(names, names[:2] * 20)).to_csv("records.csv", index=False)
    Path("edges.txt").write_text("\n".join(edge_lines([tuple(names[:2])], names)), encoding="utf-8")
    asked = "--schema schema.json --epsilon 5"
    run(f"plan {asked} --model edges.txt --out tables.json")
    run(f"release records.csv {asked} --cliques tables.json --no-ledger --out release.zip")
    for ending in endings:
        model = f"fitted.{ending}"
        run(f"fit release.zip --model edges.txt --out {model}")
        fitted = load_network(model)
        assert set(fitted.edges()) == {tuple(names[:2])}
        assert set(fitted.nodes()) == set(names)
        run(f"plan {asked} --model {model}")
        run(f"query {model} --target {shlex.quote(names[2])} --evidence {shlex.quote(f'{names[0]}={names[1]}')}")
        run(f"sample {model} --rows 20 --release release.zip --out {ending}.csv")
        run(f"release {ending}.csv {asked} --model {model} --no-ledger --out {ending}.zip")


def test_a_release_that_cannot_be_written_says_that_it_was_paid(asia, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device", "release.zip")

    run("ledger create ledger.json --epsilon 2")
    monkeypatch.setattr(dp.NoisyMarginals, "save", full)
    message = release("--ledger ledger.json", code=1)
    assert "release.zip: No space left on device. The release is lost and stays charged" in message


def test_a_delta_that_is_no_small_one_gets_a_caution(asia):
    caution = "Caution: with probability delta, 0.001 here, a mechanism may reveal everything about somebody"
    assert caution.replace("0.001", "0.5") in run("ledger create large.json --epsilon 1 --delta 0.5")
    assert "Caution" not in run("ledger create ledger.json --epsilon 1 --delta 9.9e-4")
    call = f"{RELEASE} --model asia.json --mechanism gaussian --epsilon 0.5 --ledger large.json --out release.zip"
    assert "rho" not in run("ledger show large.json")
    assert caution in run(f"{call} --delta 1e-3 --dry-run")
    assert caution in run(f"{call} --delta 1e-3")
    assert caution in run("inspect release.zip")
    assert "Caution" not in run(f"{call} --delta 1e-6 --force")
    assert "stated at the ledger's own delta" in run("ledger show large.json")
    for command in (SYNTHESIZE, STRUCTURE):
        assert caution in run(f"{command} --epsilon 1 --delta 1e-3 --dry-run")


def test_cautions(asia):
    assert "Caution" not in release()
    assert "Caution: at an epsilon this large" in release("--force", epsilon=100)
    assert "tables the noise of all cells exceeds the records" in release("--force", epsilon=0.001)


@pytest.mark.parametrize("source", ["visits.csv", "visits.parquet"])
def test_a_sample_of_the_records(visits, source):
    call = f"release {source} --schema schema.json --model edges.txt --epsilon 5 --out r.zip --no-ledger"
    call += " --other smoke=no --missing smoke=no --sampling-rate 0.5"
    assert "Number of records of the sample" in run(call)
    assert abs(dp.NoisyMarginals.load("r.zip").total - 500) < 200
    assert "single records" in refused(f"{call} --unit 'person, id' --force")


def test_bins_at_private_quantiles(visits):
    run("ledger create l.json --epsilon 90")
    call = "bins visits.csv --schema schema.json --ledger l.json --out coarse.json"
    made = as_json(f"{call} --variable age --parts 3 --epsilon 80")
    assert made["edges"] == [0, 30, 60, 90]
    assert made["ledger"]["remaining"]["epsilon"] == 10
    assert dp.Schema.load("coarse.json").states["age"] == ("0_to_30", "30_to_60", "60_to_90")
    assert dp.Schema.load("coarse.json").states["smoke"] == ("yes", "no")
    assert "does not fit" in refused(f"{call} --variable age --parts 2 --epsilon 11 --force")
    unbinned = f"{call} --variable smoke --parts 2 --epsilon 1 --force --other smoke=no --missing smoke=no"
    assert "no bins" in refused(unbinned)
    assert len(as_json("ledger show l.json")["charges"]) == 1


def test_states_that_are_not_public():
    pd.DataFrame({"town": ["Ulm"] * 80 + ["Bonn"] * 60 + ["Farm"], "a": "x"}).to_csv("records.csv", index=False)
    dp.Schema({"town": [], "a": ["x", "y"]}, other={"town": "elsewhere"}).save("open.json")
    run("ledger create l.json --epsilon 3 --delta 1e-6")
    call = "states records.csv --schema open.json --ledger l.json --epsilon 1 --delta 1e-7"
    call += " --out schema.json --release states.zip"
    assert "2 states of town: Bonn, Ulm" in run(f"{call} --variable town")
    assert dp.Schema.load("schema.json").states == {"town": ("Bonn", "Ulm", "elsewhere"), "a": ("x", "y")}
    shown = run("inspect states.zip")
    assert "private partition selection" in shown
    assert shown.splitlines()[-2:] == ["Bonn", "Ulm"]
    assert as_json("inspect states.zip")["kind"] == "discovered_states"
    assert "has public states" in refused(f"{call} --variable a --force")
    assert len(as_json("ledger show l.json")["charges"]) == 1


def test_releases_of_coefficients_are_read_as_well(visits):
    records = pd.DataFrame({"smoke": ["yes", "no"] * 50, "age": [5, 65] * 50})
    data = dp.PrivateDataset(records, dp.Schema.load("schema.json"), dp.PrivacyBudget(1.0))
    data.measure_coefficients([("age", "smoke")], 1.0).save("c.zip")
    held = as_json("inspect c.zip")
    assert (held["kind"], held["tables"][0]["cells"]) == ("coefficients", 18)
    run("fit c.zip --model edges.txt --out c.bif")
    run("report c.zip --out c.html")
    assert "smoke" in Path("c.html").read_text()


def test_names_of_others_do_not_reach_the_terminal():
    hostile = "\x1b[2Jx\n\u202eEpsilon = 0"
    data = dp.PrivateDataset(
        pd.DataFrame({hostile: ["a"]}), dp.Schema({hostile: ["a", hostile]}), dp.PrivacyBudget(1.0), unit=hostile
    )
    data.measure([(hostile,)], 1.0).save("r.zip")
    Path("model.json").write_text(json.dumps({hostile: ["a", hostile]}))
    network = dp.PrivateMarkovNetwork()
    network.add_node(hostile)
    network.fit(dp.NoisyMarginals.load("r.zip"))
    network.save("n.json")
    said = [run("inspect r.zip"), run("schema model.json"), run(f"query n.json --target {shlex.quote(hostile)}")]
    said += [refused("query n.json --target y"), refused("query n.json --target y --evidence =")]
    for text in said:
        assert "\\x1b[2Jx\\n\\u202eEpsilon" in text
        assert not {"\x1b", "\u202e"} & set(text)


def test_json_and_records_that_are_printed_move_no_cursor_and_read_back_as_the_same(monkeypatch):
    """JSON escapes what is not printable; CSV on a terminal does, and where it is sent to a file it stays as it is."""
    hostile = "\x7f\x9b2J\u202e\u2028\U000e0001\x1b[2J\n"
    dp.Schema({hostile: ["a", hostile], "é": ["ü", "ö"]}).save("schema.json")
    pd.DataFrame({hostile: ["a"], "é": ["ü"]}).to_csv("records.csv", index=False)
    Path("tables.json").write_text(json.dumps([[hostile, "é"]]))
    run(f"{RELEASE} --epsilon 1 --cliques tables.json --no-ledger --out r.zip")
    dp.PrivateBayesianNetwork([(hostile, "é")]).fit(dp.NoisyMarginals.load("r.zip")).save("n.zip")
    sampled = "sample n.zip --rows 50 --seed 1"
    printed = {
        "schema": run("schema schema.json --json"),
        "inspect": run("inspect r.zip --json"),
        "plan": run("plan --schema schema.json --epsilon 1 --pairs --json"),
        "query": run(f"query n.zip --target {shlex.quote(hostile)} --json"),
        "sample": run(f"{sampled} --json"),
    }
    for text in printed.values():
        assert all(character.isprintable() or character == "\n" for character in text)
        assert repr(hostile) in repr(json.loads(text))
    assert "é" in printed["inspect"]
    frame = pd.DataFrame(json.loads(printed["sample"]))
    assert set(frame) == {hostile, "é"}
    assert pd.read_csv(io.StringIO(run(sampled))).equals(frame)
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda self: True, raising=False)
    shown = run(sampled)
    assert all(character.isprintable() or character == "\n" for character in shown)
    assert "\\x9b2J" in shown


def test_warnings_of_the_library_are_said_safely(asia, monkeypatch):
    def warning(*_):
        warnings.warn("of \x1b[2J: leave\njson out.", stacklevel=1)
        raise ValueError("no")

    release()
    monkeypatch.setattr(dp.NoisyMarginals, "load", warning)
    monkeypatch.setattr("pgmpy_dp.release.Release.load", warning)
    assert run("inspect release.zip", code=1) == "Note: of \\x1b[2J: leave json out.\nError: no\n"


def test_synthetic_records_of_states_of_several_types():
    schema = dp.Schema({"a, b": [0, 1.5, "ü, unknown"]})
    network = DiscreteBayesianNetwork()
    network.add_node("a, b")
    network.add_cpds(TabularCPD("a, b", 3, [[0.25], [0.25], [0.5]], state_names=schema.state_names))
    save_network(network, "n.bif")
    assert "several types" in refused("sample n.bif --rows 40 --seed 1 --out s.parquet")
    run("sample n.bif --rows 40 --seed 1 --out s.csv")
    table = dp.exact_marginals("s.csv", schema, [("a, b",)]).tables["a, b",]
    assert table.sum() == 40
    assert (table > 0).all()


@pytest.mark.full
def test_a_poor_fit_is_told_in_the_command_lines_words(asia, monkeypatch, recwarn):
    Path("edges.txt").write_text("smoke -> lung\n")
    run(f"{RELEASE} --model edges.txt --no-ledger --epsilon 1 --out release.zip")
    name = "pgmpy_dp.fitting.readings.posterior_networks.mean_network"
    monkeypatch.setattr(name, lambda *drawn: "errors of its means add 7% to the divergence" if drawn[2] else "too few")
    fitted = run("fit release.zip --model edges.txt --estimator posterior-mean --out fitted.bif")
    assert "Note: The chain that draws networks mixes slowly: errors of its means add 7% to the divergence" in fitted
    assert "--estimator auto" in fitted
    assert "draws=" not in fitted
    assert not [warning for warning in recwarn if "mixes" in str(warning.message)]


IMPORTED = """
import sys
from pgmpy_dp.cli import main
main(sys.argv[1:], standalone_mode=False)
print([m for m in ('numpy', 'pandas', 'pgmpy', 'tqdm', 'matplotlib', 'duckdb') if m in sys.modules], file=sys.stderr)
"""


def in_a_process(line):
    """What a command prints in a process of its own, and which of some libraries it has imported."""
    command = [sys.executable, "-c", IMPORTED, *line.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout, done.stderr.splitlines()[-1]


def test_help_imports_nothing_slow_and_covers_all_commands():
    shown, imported = in_a_process("--help")
    assert imported == "[]"
    for name in main.commands:
        assert name in shown
        assert "Usage:" in run(f"{name} --help")


@pytest.mark.full
def test_records_without_a_network_need_no_pgmpy(asia):
    dp.Schema.load("schema.json").select(["smoke", "lung", "bronc"]).save("schema.json")
    _, imported = in_a_process(f"{SYNTHESIZE} --no-ledger --epsilon 1 --delta 1e-6 --out made.csv")
    assert not re.search("pgmpy|matplotlib|duckdb", imported)


def test_as_a_process(asia):
    def call(*arguments):
        command = [sys.executable, "-m", "pgmpy_dp.cli", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    shown = call("query", "asia.json", "--target", "lung", "--json")
    assert shown.returncode == 0
    assert shown.stderr == ""
    assert json.loads(shown.stdout)["answer"][0]["probability"] == pytest.approx(0.055)
    refusal = call("inspect", "asia.json")
    assert (refusal.returncode, refusal.stdout) == (1, "")
    assert refusal.stderr.startswith("Error: asia.json: not a release, but a network")
    assert call("inspect").returncode == 2


def test_synthetic_records_without_a_network(asia):
    run("ledger create ledger.json --epsilon 2 --delta 1e-6")
    call = f"{SYNTHESIZE} --delta 1e-7 --ledger ledger.json"
    call += " --out synthetic.csv --release pairs.zip --model model.json"
    said = run(f"{call} --epsilon 1")
    assert said.startswith("Differentially private with epsilon = 1.0 and delta = 1e-07")
    assert "synthetic records of 8 variables written to synthetic.csv" in said
    real, made = pd.read_csv("records.csv", dtype=str), pd.read_csv("synthetic.csv", dtype=str)
    assert list(made) == list(dp.Schema.load("schema.json").variables)
    assert abs(len(made) - len(real)) < 100
    for variable in made:
        shares, others = (frame[variable].value_counts(normalize=True) for frame in (real, made))
        assert shares.sub(others, fill_value=0).abs().sum() / 2 < 0.05
    assert run("inspect pairs.zip").startswith("Differentially private with epsilon = 1.0")
    answer = as_json("query model.json --target dysp --evidence bronc=yes")["answer"]
    assert answer[0]["probability"] == pytest.approx(0.8, abs=0.1)
    run("sample model.json --rows 50 --seed 1 --out more.parquet --target dysp")
    assert pd.read_parquet("more.parquet").shape == (50, 8)
    assert "budget" in refused(f"{call} --epsilon 5 --force")
    assert remaining() == 1.0


def test_persons_in_households():
    dp.Schema({"tenure": ["owned", "rented"]}).save("homes.json")
    dp.Schema({"age": dp.Bins([0, 18, 100]), "sex": ["f", "m"]}).save("people.json")
    homes = pd.DataFrame({"id": [f"h{i}" for i in range(600)], "tenure": ["owned", "rented"] * 300})
    people = pd.concat([homes[["id"]].assign(age=40, sex="f"), homes[["id"]][::2].assign(age=7, sex="m")])
    homes.to_csv("homes.csv", index=False)
    people.to_parquet("people.parquet")
    run("ledger create ledger.json --epsilon 3 --delta 1e-6")
    call = "households homes.csv people.parquet --schema homes.json --persons-schema people.json"
    call += " --key id --max-persons 2 --delta 1e-7 --ledger ledger.json"
    files = "--out made.csv --persons-out persons.csv --release r.zip --model model.json"
    planned = as_json(f"{call} --epsilon 2 {files} --dry-run")
    assert ["age", "another sex"] in variables(planned["tables"])
    assert not Path("made.csv").exists()
    same = refused(f"{call} --epsilon 2 --out made.csv --persons-out made.csv")
    assert "made.csv: named for --persons-out and for --out" in same
    assert "'sexx'" in refused(f"{call} --epsilon 2 {files} --missing sexx=unknown")
    assert "tenure, sex" in run(f"{call} --epsilon 2 {files} --dry-run --missing tenure=unknown --other sex=else")
    said = run(f"{call} --epsilon 2 {files} --seed 1")
    assert said.startswith("Differentially private with epsilon = 2.0 and delta = 1e-07, for one id (all rows")
    made, persons = pd.read_csv("made.csv"), pd.read_csv("persons.csv")
    assert (list(made), list(persons)) == (["id", "tenure"], ["id", "age", "sex"])
    assert set(made["id"]) == set(persons["id"])
    both = persons.merge(made, on="id")
    assert (both["tenure"][both["age"] < 18] == "owned").mean() > 0.8
    assert dp.PrivateHouseholdNetwork.load("model.json").households.query(["size"]).values.argmax() in (0, 1)
    assert run("inspect r.zip").startswith("Differentially private with epsilon = 2.0")
    assert "a model of households" in refused("query model.json --target age")
    result = as_json(f"{call} --epsilon 0.05 {files} --force")
    assert (result["households"], result["persons"]) == tuple(len(pd.read_csv(file)) for file in result["files"][:2])
    people.assign(id="nobody's").to_parquet("people.parquet")
    assert "no household has" in refused(f"{call} --epsilon 1 {files} --force")
    assert remaining() > 0.9


def test_a_graph_from_records(asia):
    run("ledger create ledger.json --epsilon 3 --delta 1e-5")
    call = f"{STRUCTURE} --ledger ledger.json --epsilon 2 --delta 1e-6"
    call += " --out edges.txt --model found.bif --release found.zip --picture graph.png"
    assert "choose a forest" in run(f"{call} --dry-run")
    assert not list(Path().glob("found*"))
    assert "single records" in refused(f"{call} --unit asia --max-rows 2 --repeat 2")
    assert "choose a forest" in run(f"{call} --unit asia --max-rows 1 --repeat 2 --dry-run")
    assert "An edge names 'smok'" in refused(f"{call} --forbid 'smok->lung'")
    outputs = run(f"{call} --forbid 'asia->smoke' --require 'smoke->lung' --json")
    made = json.loads(outputs, parse_constant=lambda name: pytest.fail(name))
    assert made["ledger"]["remaining"]["epsilon"] < 3
    assert made["files"] == ["edges.txt", "found.bif", "found.zip", "graph.png"]
    lines = Path("edges.txt").read_text().splitlines()
    assert "smoke -> lung" in lines
    assert {f"{edge['parent']} -> {edge['child']}" for edge in made["edges"]} <= set(lines)
    assert Path("graph.png").read_bytes()[:4] == b"\x89PNG"
    assert "P(" in run("query found.bif --target lung --evidence smoke=yes")
    run("fit found.zip --model edges.txt --out again.bif")


def test_a_fitted_network_is_probed(asia):
    """The fit lacks an edge between two variables that hang together closely: it is the first to be measured."""
    edges = [f"{a} -> {b}" for a, b in load_network("asia.json").edges() if (a, b) != ("either", "xray")]
    Path("edges.txt").write_text("\n".join([*edges, "xray"]))
    run("ledger create ledger.json --epsilon 6")
    run(f"{RELEASE} --model edges.txt --epsilon 4 --ledger ledger.json --out release.zip")
    for end in ("zip", "bif"):
        run(f"fit release.zip --model edges.txt --out fitted.{end}")
    call = "probe records.csv --schema schema.json --epsilon 1 --ledger ledger.json"
    assert "at most 3 pairs" in run(f"{call} --model fitted.zip --dry-run")
    assert "another change" in refused(f"{call} --model fitted.zip --neighbours replace_one --dry-run")
    assert "carries no release" in refused(f"{call} --model fitted.bif --out probed.zip")
    assert remaining() == 2.0
    outputs = as_json(f"{call} --model fitted.zip --out probed.zip --pairs 1")
    assert set(outputs["measured"][0]) == {"either", "xray"}
    assert (outputs["guarantee"]["epsilon"], outputs["ledger"]["remaining"]["epsilon"]) == (5.0, 1.0)
    assert outputs["check"]["fails"]
    assert "the network fails" in run("check probed.zip")
    run("report probed.zip --out report.html")
    assert "5.0" in Path("report.html").read_text()


def test_a_network_too_large_to_test_is_probed_all_the_same(asia, monkeypatch):
    release()
    run("fit release.zip --model asia.json --out fitted.zip")
    monkeypatch.setattr(fit_checks, "_MAX_DERIVATIVES", 1)
    call = "probe records.csv --schema schema.json --epsilon 1 --no-ledger --model fitted.zip"
    assert "Not tested, because the test of fit needs derivatives" in run(f"{call} --out probed.zip")
    assert as_json(f"{call} --out again.zip")["check"] is None
    assert "Not tested, because the test of fit needs derivatives" in refused("check probed.zip")
    run("report probed.zip --out report.html")
    assert "Not tested</strong>, because the test of fit needs derivatives" in Path("report.html").read_text()


def test_a_dry_run_reads_and_charges_nothing(asia):
    Path("records.csv").write_text("no such columns\n")
    run("ledger create ledger.json --epsilon 2 --delta 1e-6")
    held = json.loads(release("--dry-run --json --ledger ledger.json"))
    assert held["guarantee"]["epsilon"] == 1.0
    assert held["ledger"] == {"remaining": {"epsilon": 2.0, "delta": 1e-6}, "enough": True}
    for command in (f"{RELEASE} --model asia.json --mechanism gaussian", SYNTHESIZE, STRUCTURE):
        dear = as_json(f"{command} --ledger ledger.json --epsilon 1 --delta 2e-6 --dry-run")
        assert dear["ledger"]["enough"] is False
    wanted, weights = dp.plan_measurements(load_network("asia.json"), dp.Schema.load("schema.json"))
    assert variables(held["tables"]) == list(map(list, wanted))
    assert held["tables"][0]["noise"] == pytest.approx(laplace_variance(sum(weights) / weights[0]) ** 0.5)
    assert "Nothing was read or charged." in release("--dry-run --unit person")
    call = f"{SYNTHESIZE} --ledger ledger.json --out made.csv --epsilon 1 --delta 1e-7 --dry-run"
    assert "36 tables of 128 cells." in run(call)
    assert not Path("made.csv").exists()
    assert not Path("release.zip").exists()
    assert remaining() == 2.0


@pytest.mark.parametrize(
    ("call", "instead"),
    [("plan", "--pairs"), ("release records.csv --dry-run", "--cliques tables.json")],
    ids=["plan", "release"],
)
def test_pairs_that_the_network_does_not_join_are_measured_unless_told_otherwise(call, instead):
    """Tables are those of the library's plan; Gaussian noise is advised where it would be far less."""
    names = [f"v{i}" for i in range(30)]
    schema = dp.Schema(dict.fromkeys(names, range(3)))
    schema.save("schema.json")
    Path("edges.txt").write_text("".join(f"{first} -> {second}\n" for first, second in itertools.pairwise(names)))
    Path("records.csv").write_text("not read\n")
    Path("tables.json").write_text('[["v0", "v1"]]')
    network = dp.PrivateBayesianNetwork(list(itertools.pairwise(names)))
    asked, gaussian = f"{call} --schema schema.json --epsilon 1", "--mechanism gaussian --delta 1e-9"
    for more, options in {
        "": {}, "--check 0": {"check": 0}, "--check 0.5": {"check": 0.5}, gaussian: {"mechanism": "gaussian"},
    }.items():  # fmt: skip
        cliques, _ = dp.plan_measurements(network, schema, **options)
        assert variables(as_json(f"{asked} --model edges.txt {more}")["tables"]) == list(map(list, cliques))
    advice = r"--mechanism gaussian --delta 1e-09, would be ([\d.]+) times less"
    assert float(re.search(advice, run(f"{asked} --model edges.txt"))[1]) > 2
    assert "times less" not in run(f"{asked} --model edges.txt {gaussian}")
    assert "--check belongs to --model" in run(f"{asked} {instead} --check 0.1", code=2)


@pytest.mark.parametrize("more", ["", "--mechanism gaussian --delta 1e-6", "--unit xray"])
def test_a_dry_run_foresees_the_noise_that_the_release_states(asia, more):
    call = f"{RELEASE} --cliques tables.json --epsilon 1 {more}"
    Path("tables.json").write_text(json.dumps([["smoke", "lung"], ["asia"]]))
    foreseen = as_json(f"{call} --dry-run --records 8000")["tables"]
    stated = as_json(f"{call} --no-ledger --out release.zip")["tables"]
    for before, after in zip(foreseen, stated, strict=True):
        for name in ("variables", "cells", "noise", "share"):
            assert before[name] == pytest.approx(after[name])
        assert before["records"] * before["cells"] == pytest.approx(8000)
    assert "Missing option '--out'" in run(f"{call} --no-ledger", code=2)


def test_a_declared_hierarchy_is_measured_in_place_of_groups(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    codes = np.random.default_rng(0).integers(0, 600, 3000)
    frame = pd.DataFrame({"code": codes, "chapter": codes // 50, "sex": codes % 2, "other": 0})
    frame.to_csv("records.csv", index=False)
    states = {"code": list(range(600)), "chapter": list(range(12)), "sex": [0, 1], "other": [0, 1]}
    rule = dp.Hierarchy("code", "chapter", {code: code // 50 for code in range(600)})
    dp.Schema(states, rules=[rule]).save("schema.json")
    Path("edges.txt").write_text("code -> sex\n")
    call = f"{RELEASE} --model edges.txt --epsilon 1"
    for options in ("--dry-run", "--no-ledger --out release.zip"):
        tables = as_json(f"{call} {options}")["tables"]
        assert [set(table["variables"]) for table in tables] == [{"code"}, {"sex", "chapter"}]
    assert as_json("fit release.zip --model edges.txt --out fitted.zip")["groups"] == {"code": 12}


def test_a_network_of_many_states_is_measured_in_groups_as_its_dry_run_foresees(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    codes = np.random.default_rng(0).integers(0, 600, 3000)
    pd.DataFrame({"code": codes, "kind": codes // 200, "sex": codes % 2}).to_csv("records.csv", index=False)
    dp.Schema({"code": list(range(600)), "kind": [0, 1, 2], "sex": [0, 1]}).save("schema.json")
    Path("edges.txt").write_text("code -> kind\ncode -> sex\n")
    call = f"{RELEASE} --model edges.txt --epsilon 1"
    foreseen = as_json(f"{call} --dry-run --records 3000")["tables"]
    stated = as_json(f"{call} --no-ledger --out release.zip")["tables"]
    for tables in (foreseen, stated):
        assert tables[0]["variables"] == ["code"]
        assert any({"kind", "code in groups"} <= set(table["variables"]) for table in tables)
        assert max(table["cells"] for table in tables) == 600
    assert stated[0]["noise"] == pytest.approx(foreseen[0]["noise"])
    assert "all states. pgmpy-dp release --model measures" in run(
        "plan --schema schema.json --model edges.txt --epsilon 1"
    )
    Path("edge.txt").write_text("code -> kind\n")
    monkeypatch.setattr("pgmpy_dp.cli.owner.planning._WORTHWHILE", 0.1)
    printed = run(f"{RELEASE} --model edge.txt --epsilon 1 --dry-run")
    assert "Left out, since no edge names them: 'sex'." in printed
    assert "Gaussian noise, --mechanism gaussian" in printed
    printed = run("fit release.zip --model edges.txt --out fitted.zip")
    (number,) = as_json("fit release.zip --model edges.txt --out fitted.zip --force")["groups"].values()
    assert f"Tables with 'code' are of {number} groups of its states." in printed
    assert "Left out" not in printed
    answer = as_json("query fitted.zip --target kind --evidence code=250 --interval 0.9")
    assert max(answer["answer"], key=lambda row: row["probability"])["states"] == {"kind": 1}
    assert "does not depend on other variables" in run(
        "query fitted.zip --target kind --evidence code=250 --interval 0.9"
    )


@pytest.mark.full
def test_a_guess_of_the_records_says_whether_to_go_before_anything_is_paid(asia):
    Path("records.csv").write_text("not read")
    for call in (f"{SYNTHESIZE} --dry-run", f"{STRUCTURE} --dry-run", "plan --schema schema.json --pairs"):
        for epsilon, verdict in ((3, "Go: "), (0.003, "No go: ")):
            asked = f"{call} --delta 1e-9 --epsilon {epsilon}"
            assert f"With 8,000 records. {verdict}" in run(f"{asked} --records 8000")
        assert "needs a public guess" in run(f"{asked} --error 0.1", code=2)
    found = as_json(f"{asked} --records 8000 --error 0.1")
    (minimum,) = found["outlook"]["least_epsilon"]
    assert minimum["epsilon"] > 0.003
    assert found["outlook"]["pairs"]["error"] > minimum["error"] == 0.1
    assert "The costliest table takes" in release("--dry-run --records 50")
    assert "leave it out" in refused("plan --model asia.json --schema schema.json --epsilon 1 --records 50 --error 0.1")
    for call, option in ((f"{SYNTHESIZE} --out m.csv", "--error"), (f"{STRUCTURE} --out edges.txt", "--records")):
        assert f"For --dry-run alone: {option}" in run(f"{call} --delta 1e-9 --epsilon 1 {option} 0.1", code=2)


@pytest.mark.full
def test_synthesis_measures_what_its_dry_run_foresees_for_a_guess_of_the_records(asia):
    call = f"{SYNTHESIZE} --epsilon 0.1 --delta 1e-9"
    few, maximum = (
        {tuple(table["variables"]): table["noise"] for table in as_json(f"{call} {guess} --dry-run")["tables"]}
        for guess in ("--records 40", "")
    )
    assert all((few[clique] < maximum[clique]) == (len(clique) == 1) for clique in maximum)
    run(f"{call} --records 40 --no-ledger --out synthetic.csv --release release.zip")
    paid = dp.NoisyMarginals.load("release.zip").variances
    assert paid == pytest.approx({clique: deviation**2 for clique, deviation in few.items()}, rel=1e-4)


def test_every_command_says_that_noise_hides_much_of_a_release():
    outputs = "noise hides much of the release: "
    dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]}).save("schema.json")
    Path("edges.txt").write_text("smoke -> lung\n")
    pd.DataFrame({"smoke": ["yes", "no"] * 50, "lung": ["yes"] * 100}).to_csv("records.csv", index=False)
    for command in (
        f"{RELEASE} --no-ledger --epsilon 0.001 --model edges.txt --out r.zip",
        "fit r.zip --model edges.txt --out fitted.zip",
        "inspect r.zip",
        "query fitted.zip --target lung",
        "sample fitted.zip --rows 5 --out s.csv",
        "check fitted.zip",
        "report fitted.zip --out report.html",
        f"{SYNTHESIZE} --no-ledger --epsilon 0.001 --delta 1e-6 --rows 9 --stages 1 --out made.csv",
    ):
        assert outputs in run(command)
    assert outputs not in run(f"{RELEASE} --no-ledger --epsilon 1 --model edges.txt --out clear.zip")


def test_bounds_and_the_test_of_fit_need_a_release_and_no_python(monkeypatch):
    dp.Schema({name: ["yes", "no"] for name in ("smoke", "lung", "xray")}).save("schema.json")
    Path("edges.txt").write_text("smoke -> lung\nxray\n")
    records = pd.DataFrame({"smoke": ["yes", "no"] * 500, "lung": ["yes", "no", "no", "no"] * 250})
    records.assign(xray=records["lung"]).to_csv("records.csv", index=False)  # the network lacks this edge
    run("ledger create ledger.json --epsilon 2 --delta 1e-6")
    planned = as_json("plan --schema schema.json --epsilon 1 --model edges.txt --check 0.3 --out tables.json")
    assert sum(table["cells"] for table in planned["tables"]) > 6
    call = f"{RELEASE} --ledger ledger.json --epsilon"
    assert "epsilon 2 remains." in run(f"{call} 1 --cliques tables.json --out release.zip --dry-run")
    run(f"{call} 1 --cliques tables.json --out release.zip")
    assert "remains: not enough" in run(f"{call} 1.5 --model edges.txt --out r.zip --dry-run")
    fitted = run("fit release.zip --model edges.txt --estimator posterior-mean --out fitted.bif")
    assert "by posterior-mean." in fitted
    call = "query fitted.bif --target lung --evidence smoke=yes --interval 0.9 --release release.zip"
    held = as_json(call)
    network = dp.PrivateBayesianNetwork.load("fitted.bif")
    network.attach_release(dp.NoisyMarginals.load("release.zip"))
    with pytest.warns(UserWarning, match="contradicts the network"):
        frame = network.query(["lung"], {"smoke": "yes"}, interval=0.9)
    assert [(row["lower"], row["probability"], row["upper"]) for row in held["answer"]] == [
        (row.lower, row.value, row.upper) for row in frame.itertuples()
    ]
    assert "add edges where pgmpy-dp check finds it" in held["notes"][0]
    assert "Note: " in run(f"{call} --of records")
    found = as_json("check release.zip --model fitted.bif")
    assert found["fails"]
    assert found["measured"] == (network.check_fit().measured or None)
    assert "fails" in run("check release.zip --model fitted.bif")

    # one file for all of it
    run("fit release.zip --model edges.txt --estimator posterior-mean --out fitted.zip")
    Path("release.zip").rename("elsewhere.zip")
    assert as_json("query fitted.zip --target lung --evidence smoke=yes --interval 0.9")["answer"] == held["answer"]
    assert as_json("check fitted.zip") == found
    plain = run("query fitted.zip --target lung")
    assert "Note: The release contradicts the network" in plain
    assert "--estimator private-mle" in plain
    run("fit elsewhere.zip --out other.zip --estimator private-mle --model edges.txt")
    noted = run("query other.zip --target lung")
    assert "Note: The release contradicts the network" in noted
    assert "private-mle" not in noted
    assert "UserWarning" not in plain
    run("report fitted.zip --out one.html --date ''")
    run("report elsewhere.zip --model fitted.bif --out two.html --date ''")
    assert Path("one.html").read_bytes() == Path("two.html").read_bytes()
    assert "(<code>--estimator collective-em</code>)" in Path("one.html").read_text()

    call = "sample fitted.zip --rows 3"
    printed = CliRunner().invoke(main, call.split())
    assert len(printed.stdout.splitlines()) == 4
    assert printed.stderr.startswith("Note: The release contradicts the network")
    assert "Note: The release contradicts the network" in run(f"{call} --out made.csv")
    held = as_json(f"{call} --out made.csv --force")
    assert f"Note: {held['notes'][0]}" in plain
    monkeypatch.setattr("pgmpy_dp.networks.fitted_network.FittedNetwork._tested", lambda *_: None)
    untested = (
        "Whether the release contradicts the network was not tested, since it takes long: "
        "use pgmpy-dp check fitted.zip, if it fits in memory."
    )
    assert untested in run("query fitted.zip --target lung")
    assert as_json(f"{call} --out more.csv")["notes"] == [untested]
    assert untested not in run("query fitted.bif --target lung")


def test_a_family_that_no_table_holds_is_fitted_by_the_estimator_that_is_named():
    records = pd.DataFrame({"a": ["x", "y"] * 50, "b": ["x"] * 100, "c": ["y"] * 100})
    data = dp.PrivateDataset(records, dp.Schema({variable: ["x", "y"] for variable in "abc"}), dp.PrivacyBudget(1.0))
    data.measure([("a", "b"), ("b", "c"), ("a", "c")], 1.0).save("release.zip")
    Path("edges.txt").write_text("a -> b\na -> c\nb -> c\n")
    call = "fit release.zip --model edges.txt --out fitted.zip"
    said = refused(call)
    assert "no table that holds" in said
    assert "or fit with --estimator collective-em" in said
    run(f"{call} --estimator collective-em")


def test_synthetic_records_have_the_columns_of_the_schema(asia):
    wanted = list(dp.Schema.load("schema.json").variables)
    Path("edges.txt").write_text("".join(f"{a} -> {b}\n" for a, b in itertools.pairwise(reversed(wanted))))
    call = f"{RELEASE} --no-ledger --epsilon 1"
    run(f"{call} --out release.zip --model edges.txt")
    run("fit release.zip --model edges.txt --estimator private-mle --out fitted.zip")
    assert run("sample fitted.zip --rows 1").splitlines()[0] == ",".join(wanted)
    Path("pair.json").write_text(json.dumps([[wanted[5], wanted[2]]]))
    run(f"{call} --out pair.zip --cliques pair.json")
    assert dp.NoisyMarginals.load("pair.zip").schema.variables == (wanted[2], wanted[5])


@pytest.mark.full
def test_a_mean_that_a_prior_decides_is_said_to_be_a_guess():
    """Most wages are in a bin without an end, and nothing tells how far they reach; ages were measured finely."""
    dp.Schema({"wage": dp.Bins([0, 10, float("inf")], detail=0), "age": dp.Bins([0, 20, 40, 60, 80])}).save(
        "schema.json"
    )
    rows = range(2000)
    wages, ages = ([5, 5, 15, 15, 25, 25, 25, 25, 25, 900][row % 10] for row in rows), (row // 10 % 80 for row in rows)
    pd.DataFrame({"wage": wages, "age": ages}).to_csv("records.csv", index=False)
    call = f"{SYNTHESIZE} --epsilon 5 --delta 1e-6 --no-ledger"
    said = run(f"{call} --out synthetic.csv --release release.zip --numbers drawn")
    assert "hardly identifies the mean of wage: how far a wide bin reaches is mostly an assumption" in said
    run("report release.zip --out report.html")
    assert Path("report.html").read_text().count("is mostly an assumption") == 1


@pytest.mark.full
def test_bins_of_a_network_come_back_as_numbers():
    schema = dp.Schema({"age": dp.Bins([0, 18, 65]), "smoke": ["yes", "no"], "pay": dp.Bins([0, 9, float("inf")])})
    records = pd.DataFrame({"age": [7, 18, 40, 64] * 50, "smoke": ["no", "yes"] * 100, "pay": [1, 2, 3, 40] * 50})
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(2.0), noise=dp.SimulatedNoise(0))
    data.measure([("age", "smoke")], 1.0).save("release.zip")
    data.measure([("smoke", "pay")], 1.0).save("open.zip")
    Path("edges.txt").write_text("age -> smoke\n")
    Path("pay.txt").write_text("smoke -> pay\n")
    for out in ("fitted.zip", "fitted.bif"):
        run(f"fit release.zip --model edges.txt --out {out}")
    ask = "--target smoke --evidence"
    asked = run(f"query fitted.zip {ask} age=40")
    assert asked == run(f"query fitted.zip {ask} age=18_to_65")
    assert "| age = 18_to_65)" in asked
    beyond = refused(f"query fitted.zip {ask} age=65.5")
    assert "'age' has no state '65.5'; it has '0_to_18', '18_to_65'." in beyond
    assert "'age' has no state '40'" in refused(f"query fitted.bif {ask} age=40")
    assert "| age = 18_to_65)" in run(f"query fitted.bif {ask} age=40 --interval 0.9 --release release.zip")
    exact = as_json("query fitted.zip --mean age --evidence smoke=no")["answer"]
    bounded = as_json("query fitted.zip --mean age --interval 0.9")["answer"]
    assert exact[0]["variable"] == "age"
    assert bounded[0]["lower"] < bounded[0]["mean"] < bounded[0]["upper"]
    assert "--mean" in run("query fitted.zip", code=2)
    call = "--rows 60 --seed 1"
    ages = pd.read_csv(io.StringIO(run(f"sample fitted.zip {call}")))["age"]
    assert ages.between(0, 64).all()
    assert ages.dtype.kind == "i"
    assert run(f"sample fitted.bif --release release.zip {call}") == run(f"sample fitted.zip {call}")
    assert set(pd.read_csv(io.StringIO(run(f"sample fitted.bif {call}")))["age"]) == {"0_to_18", "18_to_65"}
    assert "--numbers states, or name" in refused(f"sample fitted.bif --numbers midpoint {call}")
    run(f"sample fitted.zip {call} --out drawn.parquet")
    assert pd.read_parquet("drawn.parquet")["age"].equals(ages)
    run("fit open.zip --model pay.txt --out open_ended.zip")
    assert pd.read_csv(io.StringIO(run(f"sample open_ended.zip {call}")))["pay"].max() > 9
    assert "open bin" in refused(f"sample open_ended.zip {call} --numbers midpoint")
    assert "9_or_more" in run(f"sample open_ended.zip {call} --numbers states")


@pytest.mark.full
def test_a_mixture_is_fitted_to_a_release_of_pairs():
    schema = dp.Schema({"smoke": ["yes", "no"], "=lung": ["=1+1", "no"]})
    records = pd.DataFrame({"smoke": ["yes", "no"] * 500, "=lung": ["=1+1", "no", "no", "no"] * 250})
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(0))
    cliques, weights = dp.plan_pairs(schema)
    data.measure(cliques, 1.0, weights=weights).save("pairs.zip")
    run("fit pairs.zip --estimator mixture --out mixture.json")
    assert "the network passes" in run("check pairs.zip --model mixture.json")
    run("fit pairs.zip --estimator mixture --out mixture.zip")
    assert "the network passes" in run("check mixture.zip")
    assert "no  " in run("query mixture.zip --target smoke")
    assert "Caution: variable '=lung'" in run("sample mixture.json --rows 40 --out plain.csv")
    assert "Caution" not in run("sample mixture.json --rows 40 --out guarded.csv --spreadsheet")
    plain, guarded = pd.read_csv("plain.csv"), pd.read_csv("guarded.csv")
    assert set(plain["=lung"]) == {"=1+1", "no"}
    assert set(guarded["'=lung"]) == {"'=1+1", "no"}


def test_variables_that_no_edge_names_are_left_out_and_named(visits):
    call = "release visits.csv --schema schema.json --model edges.txt --epsilon 50 --no-ledger"
    call += " --missing smoke=no --other smoke=no"
    Path("edges.txt").write_text("age\n")
    outputs = (
        "Left out, since no edge names them: 'smoke'. In a list of edges, a line with its name alone keeps a variable."
    )
    assert outputs in run(f"{call} --out age.zip")
    assert outputs in run(f"{call} --dry-run")
    assert outputs in run("plan --schema schema.json --model edges.txt --epsilon 1")
    Path("edges.txt").write_text("age\nsmoke\n")
    assert "Left out" not in run(f"{call} --out both.zip")
    assert "Left out" not in run("fit both.zip --model edges.txt --out both.json")
    Path("edges.txt").write_text("smoke\n")
    assert "'age'" in run("fit both.zip --model edges.txt --out smoke.json")
    assert "'age'" in as_json("fit both.zip --model edges.txt --out s.json")["notes"][0]
    edges = dp.PrivateBayesianNetwork()
    edges.add_nodes_from(dp.Schema.load("schema.json").variables)
    assert sorted(edges.fit(dp.NoisyMarginals.load("both.zip")).nodes()) == ["age", "smoke"]
