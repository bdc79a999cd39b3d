"""Files that earlier versions wrote are read back with their exact values; `tests/golden/make.py` wrote them."""

import io
import json
import shutil
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from archives import packed
from click.testing import CliRunner

import pgmpy_dp as dp
from pgmpy_dp.cli import main
from pgmpy_dp.errors import ReleaseFormatError
from pgmpy_dp.networks import load_network
from pgmpy_dp.release import Guarantee, Release
from pgmpy_dp.release.kinds import KINDS

GOLDEN = Path(__file__).parents[1] / "golden"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text())
RELEASES = [name for name, held in EXPECTED.items() if "kind" in held]
MODELS = {
    "bayesian.zip": load_network,
    "bayesian_costs.zip": load_network,
    "bayesian.json": load_network,
    "markov.zip": load_network,
    "mixture.zip": dp.PrivateMixtureNetwork.load,
    "mixture_costs.zip": dp.PrivateMixtureNetwork.load,
    "households.json": dp.PrivateHouseholdNetwork.load,
}
OMITTED = {"max_rows": 1, "largest_weight": None, "sampling_rate": 1.0, "overlap": None}


def check_guarantee(found, outputs):
    """Compare a guarantee with what a file says of it: costs, or sums before they had names, and its shared parts."""
    if "costs" in outputs:
        assert found == Guarantee.from_dict(outputs)
        return
    sums = OMITTED | {name: value for name, value in outputs.items() if name not in ("payment", "shared", "accepted")}
    assert {name: getattr(found, name) for name in sums} == sums
    assert {cost.label for cost in found.costs} == {"accepted among tries" if outputs.get("accepted") else ""}
    for part in outputs.get("shared", ()):
        check_guarantee(Guarantee(frozenset(cost for cost in found.every if cost.id == part["payment"])), part)


def test_each_file_has_its_test():
    files = {path.name for path in GOLDEN.iterdir() if path.suffix in (".zip", ".json")} - {"expected.json"}
    assert files == set(EXPECTED) == {*RELEASES, *MODELS}
    kinds = {held["kind"] for held in EXPECTED.values() if "kind" in held}
    assert kinds == {kind.__name__ for kind in KINDS.values()}


@pytest.mark.parametrize("name", RELEASES)
def test_releases_are_read_as_they_were(name):
    held, release = EXPECTED[name], Release.load(GOLDEN / name)
    assert type(release).__name__ == held["kind"]
    assert release.schema == dp.Schema.from_dict(held["schema"])
    check_guarantee(release.guarantee, held["guarantee"])
    assert release.public_total == held["public_total"]
    assert [list(clique) for clique in release.cliques] == held["cliques"]
    assert [[list(clique), among] for clique, among in release.chosen_among.items()] == held["chosen_among"]
    measured = release.measurements()
    assert [values.tolist() for values, _ in measured] == held["numbers"]
    for (_, variances), known in zip(measured, held["variances"], strict=True):
        assert (variances is None) == (known is None)
        assert known is None or np.allclose(variances, known, rtol=1e-12, atol=0.0)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore:The release contradicts")
def test_models_answer_as_they_did(name):
    held, model = EXPECTED[name], MODELS[name](GOLDEN / name)
    check_guarantee(model.guarantee_, held["guarantee"])
    if name.startswith("households"):
        for level, asked in {"households": ["home", "size"], "persons": ["home", "a"]}.items():
            assert getattr(model, level).query(asked).values == pytest.approx(np.array(held[level]), rel=1e-9)
        return
    answer = model.query(["a", "c"], {"b": 1})
    places = [answer.variables.index(variable) for variable in held["variables"]]
    assert answer.values.transpose(places) == pytest.approx(np.array(held["answer"]), rel=1e-9)
    if name.endswith(".zip"):
        releases = model.release_ if isinstance(model.release_, tuple) else (model.release_,)
        assert [sorted(release.cliques) for release in releases] == [[("a", "b"), ("a", "c"), ("b", "c")]]


# A zip ends in a record of 22 bytes: disks, their entries, the directory's size and place, a comment. Before it stand,
# in large files, a locator and a record of 64-bit numbers, which Python's zipfile follows wherever they point.


def ending(content: bytes, **changes: int) -> bytes:
    names = ("disk", "directory_disk", "here", "entries", "size", "place", "comment")
    stated = dict(zip(names, struct.unpack("<4H2LH", content[-18:]), strict=True)) | changes
    return content[:-18] + struct.pack("<4H2LH", *stated.values())


def with_64_bits(content: bytes) -> bytes:
    """Write the numbers of the ending in 64 bits before it, as zipfile does for files beyond 4 GiB."""
    *_, entries, size, place, _ = struct.unpack("<4H2LH", content[-18:])
    record = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, entries, entries, size, place)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, len(content) - 22, 1)
    return content[:-22] + record + locator + content[-22:]


@pytest.fixture
def content():
    return packed(Release.load(GOLDEN / "tables_laplace.zip"))


@pytest.mark.parametrize(
    "change",
    [
        lambda c: ending(c, disk=1),
        lambda c: ending(c, directory_disk=1),
        lambda c: ending(c, disk=1, directory_disk=1),
        lambda c: ending(c, comment=1),
        with_64_bits,
        lambda c: ending(with_64_bits(c), here=0xFFFF, entries=0xFFFF, size=0xFFFFFFFF, place=0xFFFFFFFF),
    ],
    ids=["this disk", "the directory's disk", "both disks", "a comment", "64 bits", "64 bits alone"],
)
def test_several_disks_comments_and_64_bits_are_refused(change, content, tmp_path):
    altered = change(content)
    (tmp_path / "r.zip").write_bytes(altered)
    with pytest.raises(ReleaseFormatError, match="a comment, several disks or 64-bit extensions"):
        Release.load(tmp_path / "r.zip")


def test_what_is_refused_so_is_what_zipfile_would_read(content):
    """The refusal is ours: Python reads the 64-bit record, and directories of any size that it points to."""
    with zipfile.ZipFile(io.BytesIO(with_64_bits(content))) as archive:
        assert len(archive.namelist()) == 2


@pytest.mark.parametrize(
    "changes",
    [{"here": 1}, {"entries": 3}, {"here": 3, "entries": 3}, {"here": 1, "entries": 1}, {"size": 4097}],
    ids=["fewer here", "more elsewhere", "three", "one", "a large directory"],
)
def test_numbers_of_members_that_no_release_has_are_refused(changes, content, tmp_path):
    (tmp_path / "r.zip").write_bytes(ending(content, **changes))
    with pytest.raises(ReleaseFormatError, match=r"the zip must hold datapackage\.json and measurements\.csv"):
        Release.load(tmp_path / "r.zip")


OLDER = {version: json.loads((GOLDEN / version / "expected.json").read_text()) for version in ("0.2", "0.3")}
OLDER_MODELS = [(version, name) for version, known in OLDER.items() for name in known["models"]]


@pytest.mark.parametrize("version", OLDER)
def test_a_ledger_of_commands_is_read_and_charged_further(version, tmp_path):
    ledger = tmp_path / "ledger.json"
    shutil.copy(GOLDEN / version / ledger.name, ledger)
    budget = dp.PrivacyBudget.open(ledger)
    assert [cost.label for cost in budget.history] == OLDER[version]["charges"]
    assert vars(budget.spent) == OLDER[version]["spent"]
    data = dp.PrivateDataset({("x",): [4, 6]}, dp.Schema({"x": ["y", "n"]}), budget)
    data.measure([("x",)], 1.0)
    assert dp.PrivacyBudget.open(ledger).spent.epsilon == OLDER[version]["spent"]["epsilon"] + 1


@pytest.mark.parametrize("version", OLDER)
def test_schemas_releases_and_plans_of_commands_are_read(version, tmp_path):
    folder, records = GOLDEN / version, tmp_path / "records.csv"
    records.write_text("smoke,lung,age\n")
    schema = folder / "schema.json"
    for name, known in OLDER[version]["releases"].items():
        release = Release.load(folder / name)
        assert (release.guarantee.epsilon, release.total) == pytest.approx((known["epsilon"], known["total"]))
        assert sorted(map(sorted, release.cliques)) == sorted(map(sorted, known["tables"]))
    measured = Release.load(folder / "release.zip").schema
    assert measured == dp.Schema.load(schema).select(measured.variables)
    for option, name in {"--cliques": "tables.json", "--plan": "plan.json"}.items():
        if (plan := folder / name).exists():
            call = ["release", records, "--schema", schema, "--dry-run", option, plan]
            call += ["--epsilon", 1] if option == "--cliques" else []
            assert CliRunner().invoke(main, list(map(str, call))).exit_code == 0


@pytest.mark.parametrize(("version", "name"), OLDER_MODELS)
def test_models_of_commands_answer_as_they_did(version, name):
    answer = dp.load(GOLDEN / version / name).query(["lung"], evidence={"smoke": "yes"})
    for state, probability in OLDER[version]["models"][name]:
        assert answer.get_value(lung=state) == pytest.approx(probability, rel=1e-9)
