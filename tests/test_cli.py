"""The command line, as a data officer and an analyst use it."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import pandas as pd
import pytest
from click.testing import CliRunner

import pgmpy_dp as dp
from pgmpy_dp import demo
from pgmpy_dp.cli import main
from pgmpy_dp.exports import load_network, save_network


def run(*arguments, code=0):
    """Output of a command, which must end with this exit code and never with a traceback."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.output if code else result.stdout


def refused(*arguments):
    """The one line that a refusal prints."""
    message = run(*arguments, code=1)
    assert message.startswith("Error: ")
    assert message.count("\n") == 1
    return message


@pytest.fixture
def asia(tmp_path, bnlearn, simulate, monkeypatch):
    """A folder with the network, records drawn from it, and a schema file; the test runs in it."""
    monkeypatch.chdir(tmp_path)
    save_network(bnlearn("asia"), "asia.json")  # pgmpy's reader takes a second for any BIF file
    simulate("asia", 3000, 1).to_csv("records.csv", index=False)
    run("schema", "asia.json", "--out", "schema.json")
    return tmp_path


def release(*more, code=0, epsilon=1, out="release.zip"):
    call = ["release", "records.csv", "--schema", "schema.json", "--model", "asia.json"]
    return run(*call, "--epsilon", epsilon, "--out", out, *more, code=code)


def test_the_whole_path_on_asia(asia):
    save_network(load_network("asia.json"), "asia.bif")
    assert run("schema", "asia.bif", "--json") == (asia / "schema.json").read_text()
    run("ledger", "create", "ledger.json", "--epsilon", 2)
    made = json.loads(release("--ledger", "ledger.json", "--json"))
    assert made["ledger"]["remaining"]["epsilon"] == 1.0
    held = json.loads(run("inspect", "release.zip", "--json"))
    assert held["guarantee"]["epsilon"] == 1.0
    assert held["guarantee"]["private"] is True
    assert {v for table in held["tables"] for v in table["variables"]} == set(dp.Schema.load("schema.json").variables)
    assert "differentially private with epsilon = 1.0" in run("inspect", "release.zip").lower()
    assert abs(held["records"]["value"] - 3000) < 10 * held["records"]["deviation"]
    for method, suffix in (("collective-em", "bif"), ("private-mle", "xmlbif")):
        fitted = json.loads(
            run("fit", "release.zip", "--model", "asia.bif", "--method", method, "--out", f"a.{suffix}", "--json")
        )
        assert fitted["guarantee"] == held["guarantee"]
        call = ["query", f"a.{suffix}", "--target", "lung", "--evidence", "smoke=yes", "--json"]
        answer = {row["states"]["lung"]: row["probability"] for row in json.loads(run(*call))["answer"]}
        assert answer["yes"] == pytest.approx(0.1, abs=0.05)
        assert sum(answer.values()) == pytest.approx(1.0)
    assert "P(lung | smoke = yes)" in run("query", "a.bif", "--target", "lung", "--evidence", "smoke=yes")
    joint = json.loads(run("query", "a.bif", "--target", "tub", "--target", "lung", "--json"))["answer"]
    assert sum(row["probability"] for row in joint) == pytest.approx(1.0)
    printed = run("sample", "a.bif", "--rows", 20, "--seed", 1)
    assert printed == run("sample", "a.bif", "--rows", 20, "--seed", 1)
    assert len(pd.read_csv(io.StringIO(printed))) == 20
    run("sample", "a.bif", "--rows", 20, "--seed", 1, "--out", "s.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet("s.parquet"), pd.read_csv(io.StringIO(printed)), check_dtype=False)


def test_the_whole_path_on_the_rand_records_with_a_markov_network(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    demo.load_records().to_csv("records.csv", index=False)
    demo.SCHEMA.save("schema.json")
    with open("edges.txt", "w") as handle:
        handle.write("# who influences whom\n" + "".join(f"{a} -- {b}\n" for a, b in demo.EDGES))
    run("ledger", "create", "l.json", "--epsilon", 1, "--delta", 1e-6)
    call = ["release", "records.csv", "--schema", "schema.json", "--model", "edges.txt", "--epsilon", 1]
    run(*call, "--delta", 1e-6, "--mechanism", "gaussian", "--ledger", "l.json", "--out", "r.zip")
    assert "gaussian" in run("ledger", "show", "l.json")
    assert "Nothing is left" in refused(*call, "--ledger", "l.json", "--out", "r2.zip")
    for method, out in (("collective-em", "m.json"), ("naive-mle", "m.uai")):
        run("fit", "r.zip", "--model", "edges.txt", "--method", method, "--out", out)
        call = ["query", out, "--target", "limitation", "--evidence", "health=poor", "--json"]
        answer = {row["states"]["limitation"]: row["probability"] for row in json.loads(run(*call))["answer"]}
        assert 0.4 < answer["yes"] < 0.8  # 0.6 among the records
    assert len(run("sample", "m.json", "--rows", 5).splitlines()) == 6
    (tmp_path / "nodes.txt").write_text("visits -> health\nlimitation\n")
    assert "Markov networks: give edges a -- b" in refused(
        "fit", "r.zip", "--model", "nodes.txt", "--method", "naive-mle", "--out", "x.bif"
    )
    assert "give edges a -> b" in refused(
        "fit", "r.zip", "--model", "edges.txt", "--method", "private-mle", "--out", "x.bif"
    )


def test_cliques_may_be_named(asia):
    (asia / "cliques.json").write_text('{"cliques": [["smoke", "lung"], ["xray"]], "weights": [3, 1]}')
    call = ["release", "records.csv", "--schema", "schema.json", "--cliques", "cliques.json", "--epsilon", 1]
    tables = json.loads(run(*call, "--neighbours", "replace_one", "--out", "r.zip", "--json"))["tables"]
    assert [table["variables"] for table in tables] == [["smoke", "lung"], ["xray"]]
    assert tables[1]["scale"] == pytest.approx(8.0)
    (asia / "cliques.json").write_text('{"smoke": "lung"}')
    assert "list of lists" in refused(*call, "--out", "r2.zip")


def test_a_refused_release_charges_and_writes_nothing(asia):
    run("ledger", "create", "ledger.json", "--epsilon", 0.5)
    before = (asia / "ledger.json").read_bytes()
    for wrong in (
        ["--ledger", "ledger.json"],
        ["--ledger", "none.json"],
        ["--mechanism", "gaussian"],
        ["--delta", "1e-6"],
        ["--out", "none/release.zip"],
    ):
        release(*wrong, code=1)
    for epsilon in ("0", "-1", "nan", "inf"):
        release("--ledger", "ledger.json", epsilon=epsilon, code=1)
    assert "create none.json --epsilon" in release("--ledger", "none.json", code=1)
    assert (asia / "ledger.json").read_bytes() == before
    assert not (asia / "release.zip").exists()
    assert not (asia / "none.json").exists()
    release()
    assert "--force" in release(code=1)
    release("--force")


def test_messages_name_no_value_of_the_records(asia):
    secret = "Xylophone-4711"
    frame = pd.read_csv("records.csv")
    frame.loc[7, "lung"] = secret
    frame.to_csv("records.csv", index=False)
    message = release(code=1)
    assert "'lung'" in message
    assert secret not in message
    (asia / "numbers.json").write_text('{"lung": {"edges": [0, 1, 2]}}')
    (asia / "edges.txt").write_text("lung\n")
    run("schema", "numbers.json", "--out", "numbers-schema.json")
    call = ["release", "records.csv", "--model", "edges.txt", "--epsilon", 1, "--out", "r.zip"]
    assert secret not in refused(*call, "--schema", "numbers-schema.json")
    (asia / "records.csv").write_text(f'asia,lung\n"{secret}, ,,,,\n{secret},{secret},{secret}\n')
    assert secret not in refused(*call, "--schema", "schema.json")
    (asia / "records.parquet").write_text(secret)
    call[1] = "records.parquet"
    assert secret not in refused(*call, "--schema", "schema.json")


def test_schemas_come_from_dictionaries(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.csv").write_text(
        "variable,type,states,edges,labels,missing\n"
        '"sex, at birth",,"m | f",,,unknown\n'
        "visits,integer,0|1|2,,,\n"
        "ill,boolean,,,,\n"
        "age,,,0|18|inf,child|adult,\n"
    )
    run("schema", "words.csv", "--out", "a.json")
    expected = dp.Schema(
        {
            "sex, at birth": ["m", "f"],
            "visits": [0, 1, 2],
            "ill": [False, True],
            "age": dp.Bins([0, 18, float("inf")], ["child", "adult"]),
        },
        missing={"sex, at birth": "unknown"},
    )
    assert dp.Schema.load("a.json") == expected
    (tmp_path / "b.json").write_text(
        '{"sex, at birth": {"states": ["m", "f"], "missing": "unknown"}, "visits": [0, 1, 2], "ill": [false, true], '
        '"age": {"edges": [0, 18, "inf"], "labels": ["child", "adult"]}}'
    )
    assert dp.Schema.from_dict(json.loads(run("schema", "b.json", "--json"))) == expected
    assert dp.Schema.from_dict(json.loads(run("schema", "a.json", "--json"))) == expected


def test_a_schema_is_never_read_off_records(asia):
    message = refused("schema", "records.csv")
    assert "never read off" in message
    assert "xray" not in message
    for wrong, hint in (
        ("variable,states\nsmoke,yes|no\nsmoke,yes|no\n", "two rows"),
        ("variable,type,states\nsmoke,integer,yes|no\n", "'yes' is no integer"),
        ("variable,states\nsmoke,\n", "smoke"),
    ):
        (asia / "words.csv").write_text(wrong)
        assert hint in refused("schema", "words.csv")


def test_queries_that_cannot_be_answered(asia):
    for arguments, hint in (
        (["--target", "lun"], "did you mean 'lung'"),
        (["--target", "lung", "--evidence", "smoke=maybe"], "it has: yes, no"),
        (["--target", "lung", "--evidence", "lung=yes"], "both asked for and given"),
        (["--target", "lung", "--evidence", "tub=yes", "--evidence", "either=no"], "probability zero"),
    ):
        assert hint in refused("query", "asia.json", *arguments)
    assert "VARIABLE=STATE" in run("query", "asia.json", "--target", "lung", "--evidence", "smoke", code=2)


def test_evidence_with_odd_names_and_types(tmp_path, monkeypatch):
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.models import DiscreteBayesianNetwork

    monkeypatch.chdir(tmp_path)
    network = DiscreteBayesianNetwork([("a=b", "c")])
    states = {"a=b": [1, 2], "c": ["x=y", "z"]}
    network.add_cpds(TabularCPD("a=b", 2, [[0.25], [0.75]], state_names=states))
    network.add_cpds(TabularCPD("c", 2, [[0.1, 1], [0.9, 0]], ["a=b"], [2], state_names=states))
    save_network(network, "n.json")
    answer = json.loads(run("query", "n.json", "--target", "a=b", "--evidence", "c=x=y", "--json"))
    assert answer["evidence"] == {"c": "x=y"}
    assert answer["answer"][0] == {"states": {"a=b": 1}, "probability": pytest.approx(0.025 / 0.775)}


def test_wrong_usage_is_exit_code_2(asia):
    for wrong in ([], ["relase"], ["fit", "none.zip"], ["sample", "asia.json", "--rows", "0"]):
        run(*wrong, code=2)
    both = ["release", "records.csv", "--schema", "schema.json", "--epsilon", "1", "--out", "r.zip"]
    assert "either --model or --cliques" in run(*both, code=2)


def test_help_imports_nothing_slow_and_covers_all_commands():
    code = (
        "import sys\n"
        "from pgmpy_dp.cli import main\n"
        "main(['--help'], standalone_mode=False)\n"
        "print([m for m in ('numpy', 'pandas', 'pgmpy', 'tqdm', 'matplotlib') if m in sys.modules], file=sys.stderr)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stderr.strip() == "[]"
    for name in main.commands:
        assert name in shown.stdout
        assert "Usage:" in run(name, "--help")


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
    assert refusal.stderr.startswith("Error: asia.json: not a release file")
    assert call("inspect").returncode == 2
