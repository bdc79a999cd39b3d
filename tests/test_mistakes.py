"""Deliberate mistakes: each gets one line that names the thing and the way out, and nothing is charged."""

import ast
import re
from pathlib import Path

import click
import pandas as pd
import pytest
from click.testing import CliRunner
from pgmpy.estimators import MaximumLikelihoodEstimator
from pgmpy.inference import VariableElimination

import pgmpy_dp as dp
from pgmpy_dp._names import closest, printable, suggestion
from pgmpy_dp.cli import main
from pgmpy_dp.cli.shared.files import FileOf
from pgmpy_dp.cli.shared.wording import in_command_words

SECRET = "Xylophone-4711"
SCHEMA = dp.Schema({"age": dp.Bins([0, 18, 65, 120]), "race": ["a", "b"], "ill": ["yes", "no"]})
RECORDS = pd.DataFrame({"age": [5, 40, 70, 12] * 50, "race": ["a", "b"] * 100, "ill": ["yes", "no"] * 100})
LEVELS = RECORDS.set_axis(pd.MultiIndex.from_product([["x"], RECORDS.columns]), axis=1)
# What a shell cannot run: calls, arguments and classes of Python, and the messages of its own library.
PYTHON = re.compile(
    r"\bdp\.|\w\(|\b\w+=(?=\W|None|True|False)|\b(Collective|Private|Pairwise|Noisy|Csv)[A-Z]\w+|codec|Expecting value"
)


def data_set(epsilon=2.0, records=RECORDS):
    return dp.PrivateDataset(records, SCHEMA, dp.PrivacyBudget(epsilon))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Records, their schema, ledger, edges and cliques, and a release with a network fitted to it."""
    work = tmp_path_factory.mktemp("mistakes")
    RECORDS.to_csv(work / "records.csv", index=False)
    RECORDS.assign(ill=[SECRET, *RECORDS["ill"][1:]]).to_csv(work / "wrong.csv", index=False)
    RECORDS.assign(ill=[None, *RECORDS["ill"][1:]]).to_csv(work / "gaps.csv", index=False)
    (work / "empty.csv").write_text("")
    (work / "blanks.csv").write_text("age, race, ill\n5, a, yes\n")
    SCHEMA.save(work / "schema.json")
    dp.Schema({"age": dp.Bins([0, 18, float("inf")]), "race": ["a", "b"]}).save(work / "open.json")
    SCHEMA.replace(missing={"ill": "unknown"}).save(work / "unknown.json")
    dp.PrivacyBudget.open(work / "ledger.json", 2.0)
    dp.PrivacyBudget.open(work / "gaussian.json", 2.0, 1e-6)
    for name, line in (
        ("edges", "age -> race"), ("hyphen", "age - race"), ("bare", "age-race"), ("comma", "age,race"),
        ("unicode", "age \u2192 race"), ("misspelt", "age -> rase"), ("circle", "age -> race\nrace -> age"),
        ("nothing", "# none yet"), ("undirected", "age -- race"),
    ):  # fmt: skip
        (work / f"{name}.txt").write_text(f"{line}\n", encoding="utf-8")
    (work / "tables.json").write_text('[["age", "race"]]')
    (work / "ill.json").write_text('[["ill"]]')
    (work / "accuracy.json").write_text('{"residuals": []}')
    (work / "german.csv").write_text("variable,edges\nday,1.2.2020|1.3.2020\n")
    for name, table in (("ill", "homes"), ("age", "people")):
        SCHEMA.select([name]).save(work / f"{name}_schema.json")
        RECORDS[["race", name]].to_csv(work / f"{table}.csv", index=False)
    (work / "words.csv").write_text("variable,states\nill,yes|no\n")
    (work / "rules.csv").write_text("rule,combination\nforbidden,ill=yes\n")
    noisy = data_set(1.0).measure([("age", "race")], 1.0)
    noisy.save(work / "release.zip")
    network = dp.PrivateBayesianNetwork([("age", "race")]).fit(noisy, estimator=dp.PrivateMLE())
    network.save(work / "fitted.bif")
    network.save(work / "fitted.zip")
    (work / "damaged.zip").write_bytes((work / "release.zip").read_bytes()[:200])
    return work


RELEASE = "release records.csv --schema schema.json --model edges.txt --epsilon 1 --ledger ledger.json --out new.zip"
ILL = RELEASE.replace("--model edges.txt", "--cliques ill.json")
FIT = "fit release.zip --model edges.txt --out new.bif"
QUERY = "query fitted.bif --target race"
SYNTHESIZE = "synthesize records.csv --schema schema.json --epsilon 1 --delta 1e-7 --ledger gaussian.json --out new.csv"
PROBE = "probe records.csv --model fitted.zip --schema schema.json --epsilon 1 --ledger ledger.json --out new.zip"
HOUSEHOLDS = (
    "households people.csv homes.csv --schema ill_schema.json --persons-schema age_schema.json --key race "
    "--max-persons 2 --epsilon 1 --delta 1e-7 --ledger gaussian.json --out new.csv --persons-out newer.csv"
)
STRUCTURE = "structure records.csv --schema schema.json --epsilon 1 --delta 1e-9 --ledger gaussian.json --out new.txt"


def swapped(call, *pairs):
    for old, new in pairs:
        assert old in call
        call = call.replace(old, new)
    return call


COMMANDS = [
    # files in each other's places
    (swapped(RELEASE, ("--schema schema.json", "--schema records.csv")), "records.csv: not a schema for --schema, but"),
    (swapped(RELEASE, ("records.csv", "schema.json")), "schema.json: not records, but a schema: --schema takes it"),
    (swapped(RELEASE, ("--schema schema.json", "--schema words.csv")), "words.csv: not a schema for --schema"),
    (swapped(RELEASE, ("--schema schema.json", "--schema ledger.json")), "but a ledger: --ledger takes it"),
    (swapped(RELEASE, ("edges.txt", "records.csv")), "records.csv: not a network or a list of edges for --model"),
    (swapped(RELEASE, ("edges.txt", "schema.json")), "--schema takes it"),
    (swapped(RELEASE, ("edges.txt", "tables.json")), "--cliques of release takes it"),
    (swapped(RELEASE, ("--model edges.txt", "--cliques edges.txt")), "--model of plan, release and fit takes it"),
    (swapped(RELEASE, ("ledger.json", "schema.json")), "schema.json: not a ledger for --ledger, but a schema"),
    (swapped(RELEASE, ("records.csv", "release.zip")), "release.zip: not records, but a release"),
    (swapped(FIT, ("release.zip", "edges.txt"), ("--model edges.txt", "--model release.zip")), "but a release: it"),
    (swapped(FIT, ("release.zip", "records.csv")), "records.csv: not a release, but records"),
    ("query release.zip --target race", "release.zip: not a network, but a release"),
    ("sample schema.json --rows 3", "schema.json: not a network, but a schema"),
    ("inspect ledger.json", "ledger.json: not a release, but a ledger: --ledger takes it"),
    ("ledger show release.zip", "release.zip: not a ledger, but a release"),
    ("schema ledger.json", "ledger.json: not a network or a data dictionary"),
    ("schema records.csv", "states are never read off them"),
    ("report fitted.bif --out new.html", "pgmpy-dp report RELEASE --model fitted.bif"),
    # files that are missing, damaged or named wrongly
    (swapped(RELEASE, ("records.csv", "recods.csv")), "'recods.csv' does not exist"),
    (swapped(RELEASE, ("ledger.json", "none.json")), "pgmpy-dp ledger create none.json --epsilon"),
    (swapped(RELEASE, ("records.csv", "empty.csv")), "first line must name the columns"),
    (swapped(RELEASE, ("new.zip", "new.csv")), "new.csv: such files end in .zip"),
    (swapped(RELEASE, ("new.zip", "nowhere/new.zip")), "nowhere: no folder that can be written to"),
    (swapped(RELEASE, ("new.zip", "release.zip")), "release.zip exists already"),
    ("inspect damaged.zip", "damaged.zip: the zip file is truncated"),
    (swapped(FIT, ("new.bif", "new.docx")), "are written to .bif, .xmlbif, .xdsl, .net, .uai, .json"),
    (swapped(SYNTHESIZE, ("new.csv", "new.xlsx")), "new.xlsx: such files end in .csv or .parquet"),
    ("sample fitted.bif --rows 3 --out new.xlsx", "records are written to .csv and .parquet"),
    ("ledger create ledger.json --epsilon 1", "ledger.json exists already: pgmpy-dp ledger show ledger.json shows"),
    ("ledger create schema.json --epsilon 1", "schema.json exists already: choose another name"),
    # edges
    (swapped(RELEASE, ("edges.txt", "hyphen.txt")), "Did you mean: age -> race?"),
    (swapped(RELEASE, ("edges.txt", "bare.txt")), "Did you mean: age -> race?"),
    (swapped(RELEASE, ("edges.txt", "comma.txt")), "Did you mean: age -> race?"),
    (swapped(RELEASE, ("edges.txt", "unicode.txt")), "Did you mean: age -> race?"),
    (swapped(FIT, ("edges.txt", "hyphen.txt")), "Did you mean: age -> race?"),
    (swapped(RELEASE, ("edges.txt", "misspelt.txt")), "did you mean 'race'"),
    (swapped(RELEASE, ("edges.txt", "circle.txt")), "form a cycle"),
    (swapped(RELEASE, ("edges.txt", "nothing.txt")), "nothing.txt: no edges"),
    (swapped(FIT, ("--out", "--estimator private-mle --out"), ("edges.txt", "undirected.txt")), "give edges a -> b"),
    # numbers and options
    (swapped(RELEASE, ("--epsilon 1", "--epsilon 0")), "--epsilon must be greater than 0"),
    (swapped(RELEASE, ("--epsilon 1", "--epsilon nan")), "--epsilon must be"),
    ("demo --epsilon 0 --out .", "--epsilon must be greater than 0"),
    (swapped(RELEASE, ("--epsilon 1", "--epsilon 3")), "does not fit in the privacy budget"),
    (swapped(RELEASE, ("--epsilon 1", "--epsilon 1,5")), "'1,5' is not a valid float"),
    (f"{RELEASE} --delta 1e-6 --mechanism laplace", "use --mechanism gaussian"),
    (f"{RELEASE} --mechanism gaussian", "--mechanism gaussian needs a --delta"),
    (f"{RELEASE} --mechanism gaussian --delta 1e-6", "delta"),
    (f"{RELEASE} --max-rows 2", "name the column that identifies units, --unit"),
    (f"{RELEASE} --unit who", "--unit must name a column, and 'who' has no column in the records"),
    (f"{RELEASE} --weights w --largest-weight 2", "--weights must name a column, and 'w' has no column in the records"),
    (f"{PROBE} --neighbours replace_one", "which is for --neighbours add_remove: name these, and no others"),
    (HOUSEHOLDS, "'ill' has no column in the table of households: "),
    (HOUSEHOLDS, "Households come first and persons second: are the tables swapped, or their schemas?"),
    (swapped(HOUSEHOLDS, ("people.csv homes", "homes.csv people"), ("key race", "key rase")), "--key must name a"),
    (f"{RELEASE} --sampling-rate 2", "--sampling-rate must be"),
    (f"{RELEASE} --delimiter ;", "add --delimiter ','"),
    (swapped(RELEASE, ("records.csv", "blanks.csv")), "add --delimiter or --strip"),
    (swapped(RELEASE, ("schema.json", "words.csv")), "a data dictionary: pgmpy-dp schema makes a schema of it"),
    (swapped(SYNTHESIZE, ("schema.json", "open.json")) + " --numbers midpoint", "or use --numbers drawn"),
    (swapped(SYNTHESIZE, ("schema.json", "open.json")) + " --numbers midpoint", "'age' has an open bin"),
    ("sample fitted.bif --rows 5 --numbers drawn", "name the release it was fitted to by --release"),
    (f"{RELEASE} --encoding utf99", "'utf99' is not known"),
    (f"{RELEASE} --missing rase=none", "did you mean 'race'"),
    (swapped(f"{RELEASE} --missing ill=unknwon", ("schema.json", "unknown.json")), "the schema says 'unknown'"),
    (f"{RELEASE} --missing race", "write VARIABLE=STATE"),
    (f"{RELEASE} --cliques tables.json", "either --model or --cliques"),
    (f"{RELEASE} --no-ledger", "either --ledger or --no-ledger"),
    (swapped(RELEASE, (" --ledger ledger.json", "")), "that are released once need none: --no-ledger"),
    (swapped(RELEASE, ("release", "relase")), "Did you mean 'release'?"),
    (f"{SYNTHESIZE} --target rase", "did you mean 'race'"),
    (swapped(SYNTHESIZE, ("--delta 1e-7", "--delta 0 --stages 2")), "give a --delta"),
    (swapped(SYNTHESIZE, ("--delta 1e-7 ", "")), "number of records, such as 1e-9. With --delta 0 there is none"),
    (swapped(SYNTHESIZE, ("--delta 1e-7 ", "")), "Missing option '--delta': the probability"),
    (swapped(RELEASE, ("--epsilon 1 ", "")), "Missing option '--epsilon'"),
    (swapped(SYNTHESIZE, ("gaussian.json", "ledger.json")), "or take --delta 0."),
    (swapped(RELEASE, ("--out", "--delta 1e-7 --out")), "or take --mechanism laplace."),
    (f"{QUERY.split(' --')[0]} --mean race", "ask for its states by --target, or name the release"),
    ("query fitted.zip --mean race", "'race' is not binned: ask for its states by --target."),
    ("plan --schema schema.json --epsilon 1", "either --model or --pairs"),
    (f"{QUERY} --evidence age=5", "has no state '5'; it has '"),
    ("query fitted.zip --target race --evidence age=5,5", "Write decimals with a point: '5.5'."),
    (f"{QUERY} --evidence age=5 --evidence age=6", "'age' twice"),
    ("schema words.csv --dates dd/mm/yyyy", "--dates is not understood: a format of dates has %Y or %y for years"),
    ("schema german.csv", "'1.2.2020' is not a finite number, inf or -inf: decimals are written as 1.5, and dates"),
    (f"{QUERY} --evidence age", "VARIABLE=STATE"),
    ("ledger shw ledger.json", "Did you mean 'show'?"),
    (f"{RELEASE} --sampling-rat 1", "--sampling-rate"),
    (f"{QUERY} --interval 0.9", "fitted.bif carries no release, from which bounds are drawn"),
    (f"{QUERY} --of records", "--of is for bounds: add --interval"),
    (f"{QUERY} --release release.zip", "--release is for bounds: add --interval"),
    ("query fitted.zip --target rase", "did you mean 'race'"),
    (f"{QUERY} --interval 90 --release release.zip", "not in the range 0<x<1"),
    (swapped(FIT, (" --model edges.txt", "")), "give its --model"),
    (f"{FIT} --estimator mixture", "leave --model out"),
    # a network that carries its release, and one that does not
    ("inspect fitted.zip", "fitted.zip: not a release, but a network"),
    (swapped(FIT, ("release.zip", "fitted.zip")), "fitted.zip: not a release, but a network"),
    ("check fitted.bif", "carries no release: pgmpy-dp check RELEASE --model fitted.bif"),
    ("check release.zip", "--model fitted.bif, say"),
    ("check release.zip --model edges.txt", "edges.txt: not a network for --model"),
    ("check fitted.zip --model fitted.bif", "is a model with its release"),
    ("report fitted.zip --model fitted.bif --out new.html", "is a model with its release"),
    ("report fitted.zip --out new.pdf", "new.pdf: pages are written to .html and .htm files"),
    ("query fitted.zip --target age,race", "by an option of its own: --target age --target race"),
    ("query fitted.zip --target age,rase", "Unknown variable 'age,rase'"),
    # a graph, and what accuracy costs
    (swapped(STRUCTURE, ("new.txt", "new.bif")), "new.bif: edges are written to .txt files"),
    (f"{STRUCTURE} --model new.docx", "networks are written to .bif"),
    (f"{STRUCTURE} --forbid age-race", "age-race"),
    (f"{STRUCTURE} --max-indegree 0", "not in the range x>=1"),
    (swapped(STRUCTURE, (" --ledger gaussian.json", "")), "that are released once need none: --no-ledger"),
    (swapped(STRUCTURE, ("--epsilon 1", "--epsilon 3")), "does not fit in the privacy budget"),
    ("plan-accuracy --schema schema.json --table age,rase=5", "did you mean 'race'"),
    ("plan-accuracy --schema schema.json --table age,race", "such as age,sex=50"),
    ("plan-accuracy --schema schema.json --table age=0", "such as age,sex=50"),
    ("plan-accuracy --schema schema.json --table age=inf", "such as age,sex=50"),
    ("plan-accuracy --schema records.csv --table age=5", "records.csv: not a schema for --schema"),
    # records
    (swapped(ILL, ("records.csv", "wrong.csv")), "--other ill=other"),
    (swapped(ILL, ("records.csv", "gaps.csv")), "--missing ill=unknown"),
    (f"{ILL} --missing ill=gone --cliques ill.json --other il=x", "did you mean 'ill'"),
]  # fmt: skip


def commands(group=main, path=()):
    """All commands, with their names."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


def writes(parameter):
    return isinstance(parameter.type, FileOf) and parameter.type.endings is not None


def named(parameter):
    return parameter.opts[0] if isinstance(parameter, click.Option) else parameter.human_readable_name


WRITTEN = [
    pytest.param(path, command, out, other, id=f"{' '.join(path)} {named(out)} {named(other)}")
    for path, command in commands()
    for number, out in enumerate(command.params)
    for other in command.params
    if writes(out) and isinstance(other.type, FileOf)
    if not writes(other) or command.params.index(other) < number
]
FILES = {
    "records": "records.csv", "a schema": "schema.json", "a network": "fitted.zip", "a list of edges": "edges.txt",
    "a release": "release.zip", "a ledger": "ledger.json", "a list of tables": "tables.json",
    "a plan for an accuracy": "accuracy.json", "a data dictionary": "words.csv", "a model of households": "none.json",
    "rules": "rules.csv",
}  # fmt: skip
VALUES = {"text": "x", "float": "1", "integer": "3", "float range": "0.5", "integer range": "3"}


def called(path, command, places):
    """A call of a command with all options that it needs, and files at some places; the others are files of a kind."""
    call = list(path)
    for parameter in command.params:
        if not (parameter.required or parameter.name in places or parameter.callback):
            continue
        if parameter.name in places:
            value = places[parameter.name]
        elif isinstance(parameter.type, FileOf):
            fresh = f"fresh_{parameter.name}{next(iter(parameter.type.endings or ()), '.txt')}"
            value = fresh if writes(parameter) else FILES[parameter.type.kinds[0]]
        else:
            value = VALUES[parameter.type.name]
        call += [parameter.opts[0], value] if isinstance(parameter, click.Option) else [value]
    return [*call, "--force"]


@pytest.mark.parametrize(("path", "command", "out", "other"), WRITTEN)
def test_no_command_writes_over_what_it_reads_nor_two_results_to_one_file(
    path, command, out, other, folder, monkeypatch, tmp_path
):
    """Whatever is forced, and by whatever name the file goes."""
    monkeypatch.chdir(folder)
    file = "fresh.zip" if writes(other) else FILES[other.type.kinds[0]]
    (tmp_path / "link").symlink_to(folder / file)
    before = {each: each.read_bytes() for each in folder.iterdir()}
    for same in (file, f"../{folder.name}/{file}", str(tmp_path / "link")):
        result = CliRunner().invoke(main, called(path, command, {out.name: same, other.name: file}))
        assert result.exit_code == 1, result.output
        assert f"{same}: named for {named(out)} and for " in result.output  # of two that are read, the first
    assert {each: each.read_bytes() for each in folder.iterdir()} == before


OUTS = {
    (*path, out.name): (path, command, out) for path, command in commands() for out in command.params if writes(out)
}


@pytest.mark.parametrize(("path", "command", "out"), OUTS.values(), ids=map(" ".join, OUTS))
def test_what_exists_is_overwritten_by_force_alone_and_nothing_of_another_kind(path, command, out, folder, monkeypatch):
    monkeypatch.chdir(folder)
    kept = folder / f"kept{next(iter(out.type.endings), '.unknown')}"
    kept.write_text("kept")
    before = {each: each.read_bytes() for each in folder.iterdir()}
    unforced = called(path, command, {out.name: kept.name})[:-1]
    assert f"{kept.name} exists already" in CliRunner().invoke(main, unforced).output
    line = CliRunner().invoke(main, called(path, command, {out.name: "gaussian.json"})).output
    assert f"gaussian.json is a ledger, which {named(out)} would" in line or "gaussian.json: such files end in" in line
    assert {each: each.read_bytes() for each in folder.iterdir()} == before
    kept.unlink()


def test_every_file_of_a_command_is_declared_as_read_or_written():
    """But for folders to write to, and a ledger, which is made and never overwritten."""
    others = {
        (path, parameter.name)
        for path, command in commands()
        for parameter in command.params
        if isinstance(parameter.type, click.Path) and not isinstance(parameter.type, FileOf)
    }
    assert others == {(("demo",), "out"), (("ledger", "create"), "path")}
    assert all(
        any(parameter.name == "force" for parameter in command.params)
        for _, command in commands()
        if any(map(writes, command.params))
    )


@pytest.mark.parametrize(("call", "hint"), COMMANDS, ids=range(len(COMMANDS)))
def test_a_mistake_at_the_command_line(call, hint, folder, monkeypatch):
    monkeypatch.chdir(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    result = CliRunner().invoke(main, call.split())
    assert result.exit_code in (1, 2), result.output
    assert isinstance(result.exception, SystemExit)
    *usage, line = result.output.strip().splitlines()
    assert line.startswith("Error: ")
    assert hint in line
    assert usage == [] or usage[0].startswith("Usage: ")
    assert not PYTHON.search(line)
    assert SECRET not in result.output
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".lock"} == {
        name: content for name, content in before.items() if not name.endswith(".lock")
    }


# Estimators and judgements that no command runs; the command line calls the rest with arguments of the right type.
PYTHON_ALONE = re.compile(
    r"(evaluation|exports|papers|plotting|cli)\b|estimators/(?!from_tables|mixtures|base|iterated)"
)


def outputs():
    """The texts of all errors and warnings that commands reach, with the words that stand for values left out."""
    package = Path(dp.__file__).parent
    for path in package.rglob("*.py"):
        if PYTHON_ALONE.match(str(path.relative_to(package))):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            raised = node.exc if isinstance(node, ast.Raise) else node
            if isinstance(raised, ast.Call) and raised.args:
                name = ast.unparse(raised.func)
                if name.endswith((".warn", "Error")) and name not in ("TypeError", "AttributeError", "ImportError"):
                    yield f"{path.relative_to(package)}:{node.lineno}", raised.args[0]


def test_a_warning_finds_a_caller_without_a_module():
    level = {}
    exec("from pgmpy_dp.errors import callers_level\nlevel = callers_level()", level)
    assert level["level"] == 1


def test_a_message_that_names_a_call_of_python_has_words_for_the_command_line():
    shown = {place: in_command_words(text) for place, text in texts_told()}
    assert len(shown) > 200
    assert {place: text for place, text in shown.items() if re.search(r"\bdp\.|\w\(", text)} == {}


def texts_told():
    """Yield each message with stand-ins for what is filled in."""
    for place, text in outputs():
        if isinstance(text, ast.Constant | ast.JoinedStr):
            parts = text.values if isinstance(text, ast.JoinedStr) else [text]
            yield place, "".join(_part(part) for part in parts)


def _part(part):
    if isinstance(part, ast.FormattedValue):
        return "'x'" if part.conversion == ord("r") else "x"
    return str(part.value)


def test_values_of_parameters_are_written_for_a_shell():
    text = "for unit=\"person id\", max_rows=3, delta=1e-09 and neighbours='add_remove': give the same weights."
    shown = "for --unit 'person id', --max-rows 3, --delta 1e-09 and --neighbours add_remove: give the same --weights."
    assert in_command_words(text, main.commands["release"]) == shown


@pytest.mark.parametrize(
    ("command", "advice"), [("release", "take --mechanism laplace"), ("synthesize", "take --delta 0"), ("inspect", "")]
)
def test_the_way_to_laplace_noise_is_that_of_the_command(command, advice):
    text = "Gaussian noise needs a delta: use the Laplace mechanism."
    shown = text.replace("use the Laplace mechanism", advice) if advice else text
    assert in_command_words(text, main.commands[command]) == shown


def unfitted():
    return dp.PrivateBayesianNetwork([("age", "race")])


# What is done with a data set of these records, and what the refusal says.
CALLS = [
    (lambda data: data.measure([("age", "rase")], epsilon=1), "did you mean 'race'"),
    (lambda data: data.measure(["age", "race"], epsilon=1), "clique"),
    (lambda data: data.measure([("age", "age")], epsilon=1), "'age'"),
    (lambda data: data.measure([], epsilon=1), "clique"),
    (lambda data: data.measure([("age",)], epsilon=-1), "epsilon must be greater than 0"),
    (lambda data: data.measure([("age",)], epsilon=float("nan")), "epsilon"),
    (lambda data: data.measure([("age",)], epsilon="one"), "epsilon"),
    (lambda data: data.measure([("age",)], epsilon=3), "does not fit"),
    (lambda data: data.measure([("age",)], epsilon=1, delta=1e-6, mechanism="laplace"), 'mechanism="gaussian"'),
    (lambda data: data.measure([("age",)], epsilon=1, mechanism="gaussian"), "delta"),
    (lambda data: data.measure([("age",)], epsilon=1, mechanism="laplac"), "mechanism"),
    (lambda data: data.measure([("age",)], epsilon=1, weights=[1, 2]), "weights"),
    (lambda data: data.measure([("age",)], epsilon=1, weights=[float("inf")]), "weight"),
    (lambda data: data.measure([("age",)], epsilon=1, sampling_rate=0), "sampling_rate"),
    (lambda data: data.quantile_bins("race", 2, epsilon=1), "no bins"),
    (lambda data: data.quantile_bins("age", 1, epsilon=1), "parts"),
    (lambda data: dp.PrivateBayesianNetwork([("age", "rase")]).fit(data, dp.PrivateMLE(epsilon=1.0)), "'rase'"),
    (lambda data: dp.PrivateMarkovNetwork([("age", "race")]).fit(data), "epsilon"),
    (lambda data: dp.PrivateBayesianNetwork([("age", "rase")]).fit(data, dp.PrivateMLE(epsilon=1.0)), "mean 'race'"),
    (lambda data: unfitted().fit("release.zip"), "NoisyMarginals.load"),
    (lambda data: unfitted().fit(data, dp.PrivateMLE), "PrivateMLE(epsilon=1.0, "),
    (lambda data: unfitted().fit(data, "AutoMLE"), "give an estimator"),
    (lambda data: dp.PrivateMarkovNetwork([("age", "race")]).fit(data, dp.CollectiveEM), "CollectiveEM(epsilon=1.0, "),
    (lambda data: dp.PrivateBayesianNetwork([("age", "race"), ("race", "age")]), "age -> race -> age"),
    (lambda data: data.measure([("age",)], epsilon=1, mechanism="gaussian"), "such as 1e-9"),
]


@pytest.mark.parametrize(("call", "hint"), CALLS, ids=range(len(CALLS)))
def test_a_mistake_in_python(call, hint):
    data = data_set()
    with pytest.raises((ValueError, TypeError)) as caught:
        call(data)
    message = str(caught.value)
    assert hint in message
    assert "\n" not in message
    assert data.budget.history == ()


@pytest.fixture(scope="module")
def models(folder):
    """A network, a mixture, a network that was changed, and the folder."""
    network, changed = (dp.load(folder / "fitted.zip") for _ in range(2))
    changed.remove_edge("age", "race")
    release = dp.NoisyMarginals.load(folder / "release.zip")
    return network, dp.PairwiseMixture(members=1).fit(release).network_, changed, folder


ODD = [
    (lambda n, m, c, f: data_set(records=LEVELS).measure([("age",)], 0.1), "names of 2 levels: flatten them"),
    (lambda n, m, c, f: n.predict(LEVELS), "names of 2 levels: flatten them"),
    (lambda n, m, c, f: dp.VariableElimination(unfitted()), "not fitted yet: call fit first"),
    (lambda n, m, c, f: n.query([]), "No variable is named"),
    (lambda n, m, c, f: n.query(3), "Name the variables in a list, .* got 3"),
    (lambda n, m, c, f: n.query("race"), "Name the variables in a list"),
    (lambda n, m, c, f: n.expectation(3), "Name the variables in a list, .* got 3"),
    (lambda n, m, c, f: n.expectation(["race"]), r"'race' is not binned: give a number"),
    (lambda n, m, c, f: n.quantiles("age"), r"levels is 'age'; it must be a list .* variables="),
    (lambda n, m, c, f: n.quantiles(0.5), "levels is 0.5; it must be a list"),
    (lambda n, m, c, f: n.simulate(5, seed="a"), "seed must be a whole number, at least 0, got 'a'"),
    (lambda n, m, c, f: m.simulate(5, seed=-1), "seed must be a whole number, at least 0, got -1"),
    (lambda n, m, c, f: n.simulate(partial_samples=[1]), "DataFrame are needed, got list"),
    (lambda n, m, c, f: dp.NoisyMarginals.load(f / "fitted.zip"), "not a release file: .* pgmpy_dp.load"),
    (lambda n, m, c, f: dp.Schema.load(f / "fitted.zip"), "not a schema, .* schema_"),
    (lambda n, m, c, f: dp.load(RECORDS), "load reads the file of a model, by its name; got DataFrame"),
    (lambda n, m, c, f: dp.plan_pairs(RECORDS), "planned for a Schema, got DataFrame"),
    (lambda n, m, c, f: unfitted().fit(epsilon=1.0), "fit takes no epsilon: give it to an estimator"),
    (lambda n, m, c, f: unfitted().fit("records.csv"), "give the estimator an epsilon and states"),
    (lambda n, m, c, f: unfitted().fit(RECORDS, estimator=MaximumLikelihoodEstimator), "must be an instance with fit"),
    (lambda n, m, c, f: dp.AutoMLE(epsilon=1.0).release_, "AutoMLE is not fitted yet, and fit sets release_"),
    (lambda n, m, c, f: VariableElimination(m), r"A mixture has no graph and no CPDs: to_bayesian_network\(\)"),
    (lambda n, m, c, f: m.nodes, r"A mixture has no graph .* to_bayesian_network\(\)"),
    (lambda n, m, c, f: m.get_cpds(), r"A mixture has no graph .* to_bayesian_network\(\)"),
    (lambda n, m, c, f: c.query(["race"]), "changed since it was fitted, .* a CPD of 'race' given"),
    *(
        (call, "by its name|named by a text or a path, .* got int")
        for call in (
            lambda n, m, c, f: n.save(3),
            lambda n, m, c, f: m.save(3),
            lambda n, m, c, f: m.release_.save(3),
            lambda n, m, c, f: n.explore(3),
            lambda n, m, c, f: dp.explore(m, 3),
            lambda n, m, c, f: dp.load(3),
            lambda n, m, c, f: type(n).load(3),
            lambda n, m, c, f: type(m).load(3),
            lambda n, m, c, f: dp.NoisyMarginals.load(3),
            lambda n, m, c, f: dp.Schema.load(3),
            lambda n, m, c, f: m.schema_.save(3),
            lambda n, m, c, f: dp.Schema.from_dictionary(3),
            lambda n, m, c, f: dp.PrivacyBudget.open(3, 1.0),
            lambda n, m, c, f: dp.report.write_report(m.release_, 3),
            lambda n, m, c, f: dp.CsvFile(3),
        )
    ),
]


@pytest.mark.parametrize("number", range(len(ODD)))
def test_odd_arguments_are_named(models, number):
    call, message = ODD[number]
    with pytest.raises((TypeError, ValueError, AttributeError), match=message):
        call(*models)


def test_commands_name_odd_files_and_do_not_caution_twice(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    (tmp_path / "words.csv").write_text('variable,states\nrace,"F,M"\nill,yes|no\n')

    def run(line):
        result = CliRunner().invoke(main, line.split())
        return result.output + result.stderr

    assert "Caution: the only state of race is 'F,M': separate states by |" in run(f"schema {tmp_path / 'words.csv'}")
    drawn = run(f"sample fitted.zip --out {tmp_path / 'drawn.csv'}")
    assert re.match(r"\d+ synthetic records written", drawn)
    for shown in (drawn, run("check fitted.zip"), run("query fitted.zip --target race")):
        assert "Note: Caution:" not in shown


def test_close_names_are_suggested_and_shown_as_they_are():
    assert [closest("smok", ["smoke", "lung"]), closest("male", ["Female", "Male"])] == ["smoke", "Male"]
    assert closest(7, ["smoke"]) is None
    assert suggestion("smok", ["smoke", "lung"]) == " Did you mean 'smoke'?"
    assert suggestion("x", ["smoke"]) == ""
    assert printable("age\n\u202e") == r"age\n\u202e"
