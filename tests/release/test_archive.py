import hashlib
import json
import math
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
import tracemalloc
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from archives import altered, members, packed, zipped
from hypothesis import given, settings
from hypothesis import strategies as st

from pgmpy_dp.errors import ReleaseFormatError
from pgmpy_dp.release import Guarantee, NoisyMarginals, archive
from pgmpy_dp.release.archive import FORMAT_VERSION
from pgmpy_dp.schema import Bins, Schema

DESCRIPTOR, MEASUREMENTS = archive.DESCRIPTOR, archive.MEASUREMENTS
SCHEMA = Schema({"größe": Bins([0, 1.5, math.inf]), "b": ["x,y", "ж", '"']}, missing={"größe": "unknown"})
GUARANTEE = Guarantee.of(3.1, 0.0, None, "add_remove", "laplace", True, versions={"opendp": "0.16.0"})
RELEASE = NoisyMarginals(
    SCHEMA,
    {("b", "größe"): np.arange(-4, 5).reshape(3, 3), ("b",): np.array([3, 2**63 - 1, -(2**63)])},
    {("b", "größe"): 20.000000000000004, ("b",): 1 / 3},
    GUARANTEE,
)


def saved(release: NoisyMarginals = RELEASE) -> dict[str, bytes]:
    """The members of the file the release is saved to."""
    return members(packed(release))


def loaded(content: bytes) -> NoisyMarginals:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "other.zip"
        path.write_bytes(content)
        return NoisyMarginals.load(path)


def rewritten(release=RELEASE, **changes) -> bytes:
    """A file whose descriptor and measurements were changed by someone who also wrote a new hash."""
    return altered(packed(release), **changes)


@pytest.mark.parametrize("limit", ["MAX_DESCRIPTOR_BYTES", "MAX_DESCRIPTOR_PARTS", "MAX_MEASUREMENTS_BYTES"])
def test_what_could_not_be_read_again_is_not_written(tmp_path, monkeypatch, limit):
    monkeypatch.setattr(archive, limit, 1)
    with pytest.raises(ValueError, match="for one file"):
        RELEASE.save(tmp_path / "release.zip")
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=50, deadline=None)
@given(
    st.floats(2.0**-40, 2.0**50),
    st.floats(1e-10, 1e10),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=3, max_size=3),
    st.sampled_from(["laplace", "gaussian"]),
)
def test_round_trip_of_any_numbers(scale, epsilon, values, mechanism):
    if mechanism == "laplace":
        guarantee = Guarantee.of(max(epsilon, 1 / scale), 0.0, None, "add_remove", mechanism, True)
    else:
        rho = max(0.1, 0.5 / scale**2)
        epsilon = max(epsilon, rho + 2 * math.sqrt(rho * math.log(1e6)))  # what zCDP implies
        guarantee = Guarantee.of(epsilon, 1e-6, rho, "add_remove", mechanism, True)
    release = NoisyMarginals(SCHEMA, {("b",): np.array(values, np.int64)}, {("b",): scale}, guarantee)
    back = loaded(zipped(saved(release)))
    assert back == release
    assert (back.scales, back.variances) == (release.scales, release.variances)


def test_same_release_same_bytes(tmp_path, monkeypatch):
    RELEASE.save(str(tmp_path / "a.zip"))
    monkeypatch.setattr(time, "time", lambda: 2e9)
    RELEASE.save(tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as members:
        stated = [(i.filename, i.date_time[0], i.create_system) for i in members.infolist()]
        assert stated == [(MEASUREMENTS, 1980, 3), (DESCRIPTOR, 1980, 3)]


def test_the_file_says_what_it_holds():
    held = saved()
    lines = held[MEASUREMENTS].decode().splitlines()
    assert lines[:2] == ["clique,cell,value,variance", f"0,0,-4,{RELEASE.variances['b', 'größe']!r}"]
    assert len(lines) == 1 + 9 + 3
    descriptor = json.loads(held[DESCRIPTOR])
    (resource,) = descriptor["resources"]
    assert resource["path"] == MEASUREMENTS
    assert resource["hash"] == f"sha256:{hashlib.sha256(held[MEASUREMENTS]).hexdigest()}"
    contents = descriptor["pgmpy_dp:release"]
    assert Schema.from_dict(contents["schema"]) == SCHEMA
    assert contents["guarantee"]["private"] is True
    assert contents["cliques"][0] == {"variables": ["b", "größe"], "shape": [3, 3], "scale": 20.000000000000004}
    assert b"seed" not in held[DESCRIPTOR]


def test_exact_counts_are_not_written(tmp_path):
    exact = Guarantee.of(math.inf, 0.0, None, "add_remove", "none", False)
    release = NoisyMarginals(SCHEMA, {("b",): np.array([1, 2, 3])}, {("b",): 0.0}, exact)
    with pytest.raises(ValueError, match="Exact counts"):
        release.save(tmp_path / "a.zip")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a.json", "a.bif", "a.xdsl", "a.NET"])
def test_a_release_is_not_saved_under_the_name_of_another_format(name, tmp_path):
    with pytest.raises(ValueError, match=f"{name}: a release is a zip file"):
        RELEASE.save(tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("failing", ["fsync", "replace", "blocks"])
def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch, failing):
    path = tmp_path / "release.zip"
    path.write_bytes(b"old")

    def fail(*_):
        raise KeyboardInterrupt

    def half(_):
        yield b"clique,cell"
        raise KeyboardInterrupt

    if failing == "blocks":
        monkeypatch.setattr(archive, "_measurement_blocks", half)
    else:
        monkeypatch.setattr(os, failing, fail)
    with pytest.raises(KeyboardInterrupt):
        RELEASE.save(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "release.zip"
    RELEASE.save(path)
    before = path.read_bytes()
    script = (
        "import os, signal, sys\n"
        "from pgmpy_dp.release import NoisyMarginals\n"
        "release = NoisyMarginals.load(sys.argv[1])\n"
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        "release.save(sys.argv[1])\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert path.read_bytes() == before
    assert NoisyMarginals.load(path) == RELEASE


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")
def test_a_new_file_has_ordinary_permissions(tmp_path):
    RELEASE.save(tmp_path / "a.zip")
    (tmp_path / "plain").touch()
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a.zip", "plain")}
    assert len(modes) == 1


def test_paths_that_are_no_files(tmp_path):
    with pytest.raises(FileNotFoundError):
        RELEASE.save(tmp_path / "none" / "a.zip")
    with pytest.raises(FileNotFoundError):
        NoisyMarginals.load(tmp_path / "none.zip")
    with pytest.raises(ReleaseFormatError, match="not a file"):
        NoisyMarginals.load(tmp_path)


GENUINE = saved()
ROWS, STATED = GENUINE[MEASUREMENTS], GENUINE[DESCRIPTOR]


CHANGED = GENUINE | {MEASUREMENTS: ROWS.replace(b"0,0,-4,", b"0,0,40,")}
# Refused files by what they are: a file's own bytes, which differ from run to run, name no test.
REFUSED = {
    "empty": (b"", "not a release"),
    "two letters": (b"PK", "not a release"),
    "no member": (b"PK\x05\x06" + bytes(18), "not a release"),
    "text": (b"hello" * 100, "not a release"),
    "empty zip": (zipped({}), "not a release"),
    "cut": (zipped(GENUINE)[:-30], "truncated"),
    "longer": (zipped(GENUINE) + b"more", "truncated"),
    "descriptor alone": (zipped({DESCRIPTOR: STATED}), "must hold"),
    "third member": (zipped(GENUINE | {"extra": b""}), "must hold"),
    "parent folder": (zipped({MEASUREMENTS: ROWS, "../datapackage.json": STATED}), "must hold"),
    "root folder": (zipped({MEASUREMENTS: ROWS, "/datapackage.json": STATED}), "must hold"),
    "member twice": (zipped([(DESCRIPTOR, STATED)] * 2), "each once"),
    "bzip2": (zipped(GENUINE, zipfile.ZIP_BZIP2), "unknown way"),
    "changed": (zipped(CHANGED), "was changed after the release was saved"),
}


@pytest.mark.parametrize(("content", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_files_that_are_no_release_or_were_changed_are_refused(content, message):
    with pytest.raises(ReleaseFormatError, match=rf"other\.zip: .*{message}"):
        loaded(content)


def test_compressed_again_by_another_tool():
    assert loaded(zipped(GENUINE, zipfile.ZIP_DEFLATED)) == RELEASE


BOMBS = {  # members, how they are compressed, and the message
    **{name: ({name: b" " * 10**8}, zipfile.ZIP_DEFLATED, "too large") for name in (DESCRIPTOR, MEASUREMENTS)},
    "directory": ({f"{i}": b"" for i in range(20_000)}, zipfile.ZIP_STORED, "nothing else"),
}


@pytest.mark.parametrize(("members", "compression", "message"), BOMBS.values(), ids=BOMBS)
def test_bombs_are_refused_in_little_memory(members, compression, message):
    bomb = zipped(members | saved() if len(members) > 1 else saved() | members, compression)
    tracemalloc.start()
    with pytest.raises(ReleaseFormatError, match=message):
        loaded(bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5e6


def test_declared_cells_are_not_allocated_before_the_rows_are_there():
    def change(descriptor):
        contents = descriptor["pgmpy_dp:release"]
        states = list(range(20_000))
        field = {"type": "integer", "constraints": {"enum": states}}
        contents["schema"]["fields"] = [{"name": name, **field} for name in "ab"]
        contents["cliques"] = [{"variables": ["a", "b"], "shape": [20_000, 20_000], "scale": 1.0}]

    with pytest.raises(ReleaseFormatError, match="fewer rows"):
        loaded(rewritten(change=change))


def changing(*place):
    """Function: what some part of the release's contents is changed to; the function that changes a descriptor."""

    def with_(**changes):
        def change(descriptor):
            part = descriptor["pgmpy_dp:release"]
            for key in place:
                part = part[key]
            part |= changes

        return change

    return with_


contents_with, guarantee_with, clique_with = changing(), changing("guarantee"), changing("cliques", 1)


def cost_with(stated=None, **changes):
    """Change the one cost, and what the guarantee states of it."""

    def change(descriptor):
        guarantee_with(**stated or {})(descriptor)
        changing("guarantee", "costs", 0)(**changes)(descriptor)

    return change


CHANGED, NO_SET = "something else than its costs", "no set of costs"
EXACT = {"mechanism": "none", "private": False}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (contents_with(format_version=FORMAT_VERSION + 1), "upgrade pgmpy_dp"),
        (contents_with(format_version=0), "version"),
        (contents_with(format_version="1"), "format_version"),
        (contents_with(format_version=True), "format_version"),
        (contents_with(extra=1), "properties"),
        (contents_with(schema={}), "Table Schema"),
        (contents_with(public_total=5), "private"),
        (contents_with(cliques=[]), "No cliques"),
        (contents_with(cliques=[None]), "variables"),
        (contents_with(cliques={}), "cliques"),
        (guarantee_with(epsilon=math.nan), "NaN"),
        *((guarantee_with(epsilon=epsilon), CHANGED) for epsilon in ("0.1", 1.0)),
        *((guarantee_with(mechanism="gaussian"), CHANGED), (guarantee_with(neighbours="replace_one"), CHANGED)),
        *((guarantee_with(private=False), CHANGED), (guarantee_with(seed=1), CHANGED)),
        *((guarantee_with(costs=costs), message) for costs, message in (([], CHANGED), ([3], NO_SET), (None, NO_SET))),
        (cost_with({"epsilon": 0.1}, epsilon="0.1"), "epsilon must be a fraction"),
        (cost_with({"epsilon": -1}, epsilon=-1), "epsilon must be greater"),
        (cost_with({"epsilon": 10**400}, epsilon=10**400), "epsilon is too small or too large"),
        (cost_with({"mechanism": "none"}, mechanism="none"), "only exact counts have none"),
        (cost_with({"epsilon": "inf", **EXACT}, epsilon=None, **EXACT), "exact counts are not a release"),
        (cost_with({"mechanism": []}, mechanism=[]), "mechanism must be text"),
        (cost_with({"neighbours": "replace_one"}, protects="one record replaced by another"), "public_total"),
        (cost_with({"private": "yes"}, private="yes"), "private"),
        (cost_with(versions={"a": 1}), "versions"),
        (cost_with(seed=1), NO_SET),
        (clique_with(variables=["c"]), "Unknown variable 'c'"),
        (clique_with(variables=["b", "größe"]), "repeats"),
        *((clique_with(shape=shape), "shape") for shape in ([4], [3.0])),
        *((clique_with(scale=scale), "scale") for scale in (0, -1.0, None, 10**400)),
        (clique_with(scale=2.0), "variances"),
        (clique_with(extra=2.0), "must state"),
        (lambda d: d.clear(), "'pgmpy_dp:release' is missing"),
        (lambda d: d.update(resources=[]), "one resource"),
        (lambda d: d["resources"][0].update(path="../measurements.csv"), "one resource"),
        (lambda d: d["resources"][0].update(hash=None), "hash"),
        (lambda d: d["resources"][0].update(bytes=1), "was changed"),
        (lambda d: d["resources"][0].pop("hash"), "hash"),
    ],
)
def test_wrong_descriptors_are_refused(change, message):
    with pytest.raises(ReleaseFormatError, match=message):
        loaded(rewritten(change=change))


def one_table(**promise):
    guarantee = Guarantee.of(**promise)
    table = np.array([3, 4, 5], float if guarantee.weighted else int)
    total = 12 if guarantee.neighbours == "replace_one" else None
    return NoisyMarginals(SCHEMA, {("b",): table}, {("b",): 4.0}, guarantee, total)


SAMPLED = cost_with({"epsilon": 0.01}, epsilon="1/100", sampling_rate=0.01)
LITTLE = {"epsilon": 0.001, "delta": 0.0, "rho": None}
GAUSSIAN = {"epsilon": 3.0, "delta": 1e-6, "rho": 0.2, "mechanism": "gaussian"}
TINY = {"epsilon": "1/1000", "rho": None, "implies": None}


def without_costs(descriptor):
    guarantee = descriptor["pgmpy_dp:release"]["guarantee"]
    del guarantee["costs"]
    guarantee["versions"] = {}


@pytest.mark.parametrize(
    ("promise", "change", "message"),
    [
        (GAUSSIAN, cost_with(LITTLE, **TINY), "rho|delta"),
        (GAUSSIAN, cost_with(LITTLE | {"delta": 1e-9}, delta="1/1000000000", **TINY), "rho"),
        ({"epsilon": 0.5, "neighbours": "replace_one"}, SAMPLED, "sampling_rate"),
        ({"epsilon": 0.5, "unit": "person", "max_rows": None}, SAMPLED, "sampl|max_rows"),
        ({"epsilon": 2.5, "unit": "person", "max_rows": 5}, SAMPLED, "sampl|max_rows|costs epsilon"),
        ({"epsilon": 0.5, "largest_weight": 10.0}, SAMPLED, "sampling_rate"),
        ({"epsilon": 0.5}, cost_with(protects="one record swapped"), "neighbours differ in"),
        ({"epsilon": 0.5}, cost_with(protects=None), "neighbours differ in"),
        ({"epsilon": 0.5}, without_costs, "costs"),
    ],
)
def test_costs_that_no_tables_have_are_refused(promise, change, message):
    with pytest.raises(ReleaseFormatError, match=message):
        loaded(rewritten(one_table(**promise), change=change))


NO_OBJECTS = [b"", b"\xff", b"[" * 10**6, b'{"a":' * 10**5, b"[]", b"null", b'{"a": 1, "a": 2}', b"1" * 10**4]
NO_OBJECTS += [b'{"pgmpy_dp:release": NaN}', b"\xef\xbb\xbf{}"]


@pytest.mark.parametrize("content", NO_OBJECTS)
def test_descriptors_that_are_no_json_object_are_refused(content):
    with pytest.raises(ReleaseFormatError, match=DESCRIPTOR):
        loaded(zipped(saved() | {DESCRIPTOR: content}))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"clique,cell", b"cell,clique", "begin with"),
        (b"\n0,0,-4,", b"\n0,0,-4.0,", "row 1 is not"),
        *((b"\n0,2,-2,", new, "row 3 is not") for new in (b"\n0,2,nan,", b"\n0,2,,", b"\n\n0,2,-2,", b"\n# 0,2,-2,")),
        (b"\n0,2,-2,", b"\n0,2, -2,", "row 3 is not"),
        (b"\n0,2,-2,", b"\n0,1,-2,", "row 3 is not the next cell"),
        (b"\n1,0,3,", b"\n0,0,3,", "row 10 is not the next cell"),
        (b"9223372036854775807", b"9223372036854775808", "64-bit"),
        (b"0,0,-4,", b"0,0,-4,1", "do not follow"),
    ],
)
def test_wrong_measurements_are_refused(old, new, message):
    with pytest.raises(ReleaseFormatError, match=message):
        loaded(rewritten(rows=lambda content: content.replace(old, new)))


def test_rows_too_few_or_too_many():
    lines = saved()[MEASUREMENTS].splitlines(keepends=True)
    for content, message in [
        (b"".join(lines[:-1]), "ends after 11 complete rows; 12"),
        (b"".join(lines)[:-1], "ends after 11"),
        (b"".join(lines) + lines[-1], "more rows"),
        (lines[0], "fewer rows"),
        (b"".join(lines) + b"1" * 300, "longer"),
        (b"", "fewer rows"),
        (b"".join(lines).replace(b"\n", b"\r\n"), "begin with"),
    ]:
        with pytest.raises(ReleaseFormatError, match=message):
            loaded(rewritten(rows=lambda _, content=content: content))


def test_files_of_version_1_load():
    def older(descriptor):
        contents = descriptor["pgmpy_dp:release"]
        contents["format_version"] = 1
        del contents["kind"]
        (cost,) = contents["guarantee"].pop("costs")
        contents["guarantee"]["versions"] = cost["versions"]

    release = loaded(rewritten(change=older))
    sums = ("epsilon", "delta", "rho", "neighbours", "unit", "max_rows", "mechanism", "private", "versions")
    assert all(getattr(release.guarantee, name) == getattr(GUARANTEE, name) for name in sums)
    assert replace(release, guarantee=GUARANTEE) == RELEASE


def test_a_variance_computed_elsewhere_may_differ_in_its_last_digits():
    variance = RELEASE.variances["b", "größe"]
    near = repr(variance * (1 + 1e-14)).encode()
    release = loaded(rewritten(rows=lambda content: content.replace(repr(variance).encode(), near)))
    assert release == RELEASE
