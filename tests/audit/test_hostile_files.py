"""Hostile release files: whatever they hold, loading gives a sound release or a ReleaseFormatError, in little memory,
and writes nothing.

Four kinds of attack are generated: bytes of the zip changed at random, zips with hostile members, descriptors with
hostile JSON under a correct hash, and measurements of hostile text under a correct hash. The default run takes some
hundreds of them, `pytest -m slow` fifty thousand.
"""

import copy
import functools
import json
import math
import os
import stat
import subprocess
import sys
import tempfile
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from archives import altered, members, packed, zipped
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pgmpy_dp as dp
from pgmpy_dp.release import Release
from pgmpy_dp.release.archive import DESCRIPTOR, MEASUREMENTS

pytestmark = pytest.mark.full

SCHEMA = dp.Schema({"a": dp.Bins([0, 1.5, math.inf]), "b": ["x,y", "ж", '"']}, missing={"a": "unknown"})
COUNTS = {("b",): np.array([1, 2, 3])}


def promise(epsilon, delta=0.0, rho=None, relation="add_remove", mechanism="laplace", **more):
    return dp.Guarantee.of(epsilon, delta, rho, relation, mechanism, True, **more)


def draws(epsilon, relation):
    return promise(epsilon, relation=relation, mechanism="posterior_sampling")


RELEASES = [
    dp.NoisyMarginals(
        SCHEMA,
        {("b", "a"): np.arange(-4, 5).reshape(3, 3), ("b",): np.array([3, 2**63 - 1, -(2**63)])},
        {("b", "a"): 20.0, ("b",): 1 / 3},
        promise(3.1, versions={"opendp": "0.16.0"}),
    ),
    dp.NoisyMarginals(
        SCHEMA, COUNTS, {("b",): 7.1}, promise(1.3, 1e-9, 0.02, "replace_one", "gaussian", unit="user"), 10
    ),
    dp.NoisyMarginals(SCHEMA, COUNTS, {("b",): 1.0}, promise(1.0, sampling_rate=0.25)),
    dp.NoisyResiduals(
        SCHEMA,
        (("b",),),
        {(): np.array(9000), ("b",): np.array([1, -(2**63)])},
        {(): 20.0, ("b",): 1 / 3},
        promise(60.0, 1e-9, 3.1, mechanism="gaussian"),
    ),
    dp.union(
        {
            "n": dp.NoisyMarginals(SCHEMA, COUNTS, {("b",): 1.0}, promise(1.0)),
            2: dp.NoisyMarginals(SCHEMA.select(["b"]), {("b",): np.array([4, 2, 3])}, {("b",): 2.0}, promise(1.0)),
        }
    ),
    dp.papers.PosteriorDraws(
        SCHEMA,
        ({("b",): np.array([0.2, 0.3, 0.5])}, {("b",): np.array([0.1, 0.1, 0.8])}),
        {("b",): 0.1},
        0.5,
        draws(5.0, "add_remove"),
    ),
    dp.papers.RegressionDraws(
        dp.Schema({"b": ["x", "y"]}, bounds={"y": (0.0, 10.0), "x": (-1.0, 1.0)}),
        ({("y", "x"): np.array([5.0, -0.5])},),
        *({"y": 1.0}, {"y": 2.0}, {"y": 0.25}),
        draws(1.0, "replace_one"),
    ),
]
FOLDER = tempfile.TemporaryDirectory()
HERE = Path(FOLDER.name)


@functools.cache
def genuine(number: int) -> bytes:
    return packed(RELEASES[number])


@functools.cache
def parts(number: int) -> dict[str, bytes]:
    return members(genuine(number))


def hashed(number: int, csv: bytes | None = None, change=lambda descriptor: None) -> bytes:
    """A file made by someone who also writes the right hash."""
    return altered(genuine(number), change, lambda own: own if csv is None else csv)


def attack(content: bytes) -> dp.NoisyMarginals | None:
    """Load it; None if it is refused. Anything but a sound release and a ReleaseFormatError is an error here."""
    path = HERE / "hostile.zip"
    path.write_bytes(content)
    try:
        release = Release.load(path)
    except dp.ReleaseFormatError:
        return None
    finally:
        assert [entry.name for entry in HERE.iterdir()] == ["hostile.zip"]
    assert release.guarantee.epsilon > 0
    assert math.isfinite(release.guarantee.epsilon)
    assert 0 <= release.guarantee.delta < 1
    if release.cliques:
        measured = release.values if release.kind == "residuals" else release.tables
        assert all(array.dtype == np.int64 for array in measured.values()) or release.kind == "united_tables"
        assert all(0 < release.scales[one] < math.inf for one in measured)
        for clique, table in release.tables.items():
            assert table.shape == release.schema.shape(clique)
            assert np.isfinite(table).all()
        assert math.isfinite(release.total)
    else:
        assert all(np.isfinite(table).all() for draw in release.draws for table in draw.values())
    repr(release)
    return release


ODD = ["inf", "NaN", "../../etc/passwd", "\ud800", "\x00", "a" * 5000, "b", "none", "laplace", MEASUREMENTS]
ODD += [10**400, -0.0, 5e-324, 1.7e308, 2**63, 2**31, 0.1, 1]
scalars = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=30)
scalars |= st.sampled_from(ODD)
trees = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
    max_leaves=12,
)


@st.composite
def changed_bytes(draw):
    content = bytearray(genuine(draw(st.integers(0, len(RELEASES) - 1))))
    for _ in range(draw(st.integers(1, 6))):
        place = draw(st.integers(0, len(content) - 1))
        match draw(st.integers(0, 4)):
            case 0:
                content[place] ^= 1 << draw(st.integers(0, 7))
            case 1:
                content[place] = draw(st.sampled_from([0, 1, 80, 127, 255]))
            case 2:
                del content[place : place + draw(st.integers(1, 40))]
            case 3:
                content[place:place] = draw(st.binary(min_size=1, max_size=20))
            case 4:
                content[place : place + 4] = draw(st.sampled_from([0, 1, 2**31 - 1, 2**32 - 1])).to_bytes(4, "little")
        if not content:
            return b""
    return bytes(content)


EVIL = r"../evil /tmp/evil ..\evil C:\evil a/../../evil con . ./datapackage.json".split()  # noqa: SIM905
names = st.sampled_from([DESCRIPTOR, MEASUREMENTS]) | st.sampled_from([*EVIL, "\u202egpj.zip"])
names |= st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@st.composite
def strange_members(draw):
    own = parts(draw(st.integers(0, len(RELEASES) - 1)))
    entries = []
    for _ in range(draw(st.integers(0, 4))):
        info = zipfile.ZipInfo(draw(names).replace("\x00", "0") or "0")
        info.compress_type = draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2]))
        attributes = [0, stat.S_IFLNK << 16, (stat.S_IFLNK | 0o777) << 16, stat.S_IFDIR << 16, 0x10]
        info.external_attr = draw(st.sampled_from(attributes))
        info.comment = draw(st.binary(max_size=5))
        content = st.sampled_from([*own.values(), b"/etc/passwd", b"", bytes(100_000)]) | st.binary(max_size=50)
        entries.append((info, draw(content)))
    return zipped(entries)


def places(node, path=()):
    yield path
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in items:
        yield from places(child, (*path, key))


@functools.cache
def spots(number: int):
    return [path for path in places(json.loads(parts(number)[DESCRIPTOR])) if path]


@st.composite
def strange_descriptors(draw):
    number = draw(st.integers(0, len(RELEASES) - 1))
    if draw(st.integers(0, 9)) == 0:
        text = draw(st.one_of(trees.map(lambda tree: json.dumps(tree).encode()), st.binary(max_size=60)))
        return zipped(parts(number) | {DESCRIPTOR: text})
    paths = draw(st.lists(st.sampled_from(spots(number)), min_size=1, max_size=3))
    values = [draw(trees) for _ in paths]
    removed = draw(st.lists(st.booleans(), min_size=len(paths), max_size=len(paths)))

    def change(parts):
        for (*path, last), value, remove in zip(paths, values, removed, strict=True):
            node = parts
            try:
                for key in path:
                    node = node[key]
                if remove:
                    del node[last]
                else:
                    node[last] = copy.deepcopy(value)
            except (KeyError, IndexError, TypeError):  # an earlier change took it away
                continue

    return hashed(number, change=change)


FIELDS = b'nan inf -inf 1e400 9223372036854775808 1_0 0x1 "1"'.split()


@st.composite
def strange_measurements(draw):
    number = draw(st.integers(0, len(RELEASES) - 1))
    lines = parts(number)[MEASUREMENTS].splitlines(keepends=True)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(lines) - 1)) if lines else 0
        match draw(st.integers(0, 4)):
            case 0:
                cells = lines[place].split(b",") if lines else [b""]
                field = draw(st.sampled_from([*FIELDS, b"", b"1" * 500]))
                cells[draw(st.integers(0, len(cells) - 1))] = field
                lines[place : place + 1] = [b",".join(cells)]
            case 1:
                lines[place:place] = lines[place : place + 1] * draw(st.integers(1, 3))
            case 2:
                del lines[place : place + 1]
            case 3:
                lines[place:place] = [draw(st.binary(max_size=20)) + draw(st.sampled_from([b"", b"\n", b"\r\n"]))]
            case 4:
                lines.reverse()
    return hashed(number, csv=b"".join(lines))


KINDS = {
    "bytes": changed_bytes(),
    "members": strange_members(),
    "descriptor": strange_descriptors(),
    "measurements": strange_measurements(),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("examples", [100, pytest.param(12_500, marks=pytest.mark.slow)])
def test_hostile_files(kind, examples):
    @settings(max_examples=examples, deadline=5000, database=None, suppress_health_check=list(HealthCheck))
    @given(KINDS[kind])
    def attempt(content):
        release = attack(content)
        if kind == "bytes":  # all of them are under the checksum of the zip
            assert release is None or release in RELEASES

    attempt()


def test_genuine_files_are_accepted():
    for number, release in enumerate(RELEASES):
        assert attack(genuine(number)) == attack(hashed(number)) == release
        assert release.guarantee.private


def peak(content: bytes) -> float:
    """Largest memory that loading takes, in MB, beyond the file itself."""
    path = HERE / "hostile.zip"
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(dp.ReleaseFormatError):
            dp.NoisyMarginals.load(path)
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def bomb(descriptor: bytes) -> bytes:
    """Small on disk, and compressed no further than the loader allows."""
    content = zipped(parts(0) | {DESCRIPTOR: descriptor}, zipfile.ZIP_DEFLATED)
    assert len(content) < len(descriptor) / 3
    return content


def varied(piece, size: int) -> bytes:
    """JSON of about a size whose pieces differ enough to compress less than a hundredfold."""
    generator = np.random.default_rng(0)
    pieces, total = [], 0
    while total < size:
        block = [piece(int(number)) for number in generator.integers(0, 10**6, 2000)]
        pieces.append(",".join(block))
        total += len(pieces[-1])
    return ("[" + ",".join(pieces) + "]").encode()


@pytest.mark.parametrize(
    ("piece", "size"),
    [
        (lambda n: "[]" if n % 2 else "{}", 4_000_000),
        (lambda n: f"{n % 10}e1", 4_000_000),
        (lambda n: f'"{n % 1000}"', 4_000_000),
        (lambda n: "[" * 20 + str(n % 10) + "]" * 20, 4_000_000),
        (lambda n: "[" * 20 + str(n % 10) + "]" * 20, 17_000_000),  # more than a descriptor may have
    ],
    ids=["empty lists", "numbers", "texts", "nested lists", "too large"],
)
def test_json_bombs_take_little_memory(piece, size):
    assert peak(bomb(varied(piece, size))) < 120


LOADER = """
import resource, sys
import pgmpy_dp as dp
dp.NoisyMarginals.load(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sys.argv[2:]:
    try:
        dp.NoisyMarginals.load(path)
    except dp.ReleaseFormatError:
        continue
    raise SystemExit("accepted")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="kibibytes, as Linux counts them")
def test_a_process_that_loads_bombs_stays_small(tmp_path):
    """Memory as the system counts it: that of zlib and of parsers as well."""
    rows = b"".join(b"0,%d,0,800.0\n" % cell for cell in range(1_000_000))
    header = parts(0)[MEASUREMENTS].splitlines(keepends=True)[0]
    files = {
        "genuine": genuine(0),
        "json": bomb(varied(lambda n: "[]" if n % 2 else "{}", 17_000_000)),
        "rows": zipped(parts(0) | {MEASUREMENTS: rows}, zipfile.ZIP_DEFLATED),
        "hashed rows": hashed(0, csv=header + rows),
        "one row": hashed(0, csv=header + b"0,0,0,1" + bytes(15_000_000)),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    command = [sys.executable, "-c", LOADER, *(str(tmp_path / name) for name in files)]
    grown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert int(grown) < 120_000


def test_nothing_but_the_file_is_read(tmp_path):
    """A link inside the zip is its text, and not followed; a pipe or a folder in place of a file is refused."""
    own = parts(0)
    secret = tmp_path / "secret.csv"
    secret.write_bytes(own[MEASUREMENTS])
    link = zipfile.ZipInfo(MEASUREMENTS)
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    assert not attack(zipped([(link, str(secret)), (DESCRIPTOR, own[DESCRIPTOR])]))
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(dp.ReleaseFormatError, match="not a file"):
            dp.NoisyMarginals.load(tmp_path / "pipe")


def test_limits_leave_room_for_large_releases(tmp_path):
    schema = dp.Schema({"v": [f"state {i}" for i in range(100_000)], **{f"w{i}": [0, 1] for i in range(2000)}})
    tables = {("v",): np.zeros(100_000, np.int64), **{(f"w{i}",): np.zeros(2, np.int64) for i in range(2000)}}
    guarantee = dp.Guarantee.of(1.0, 0.0, None, "add_remove", "laplace", True)
    release = dp.NoisyMarginals(schema, tables, dict.fromkeys(tables, 3000.0), guarantee)
    release.save(tmp_path / "large.zip")
    assert dp.NoisyMarginals.load(tmp_path / "large.zip") == release
