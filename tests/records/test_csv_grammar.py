"""CSV files are split by the grammar of RFC 4180, whatever the sizes of the blocks in which they are read."""

import csv
import gzip
import io
import re
import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import pgmpy_dp as dp
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.records import CsvFile, csv_reading, open_records

FIELD = rb'(?:"((?:[^"\0]|"")*)"|([^",\r\n\0]*))'


def by_regular_expressions(content: bytes) -> list[list[bytes]] | None:
    """The fields of each line, header first, by the grammar as it stands in RFC 4180; None for other files."""
    for end in (b"\n", b"\r\n"):
        line, rest, lines = re.compile(FIELD + rb"(?:,|(?=" + end + rb")|\Z)"), content, []
        while rest:
            fields = []
            while True:
                found = line.match(rest)
                if found is None:
                    break
                fields.append((found[1] if found[1] is not None else found[2]).replace(b'""', b'"'))
                rest = rest[found.end() :]
                if not found[0].endswith(b",") or (found[1] is None and found[2].endswith(b",")):
                    break
            if found is None or not (rest.startswith(end) or not rest):
                break
            lines.append(fields)
            rest = rest.removeprefix(end)
        else:
            if lines and all(len(fields) == len(lines[0]) for fields in lines):
                return lines
    return None


def split(content: bytes, folder) -> list[list[bytes]] | None:
    """The same by the reader, of columns that all have names of their own."""
    path = Path(folder) / "records.csv"
    path.write_bytes(content)
    with path.open("rb") as handle:
        window = csv_reading._Window(handle, CsvFile(path))
        try:
            names, _ = window.header()
        except SchemaError:
            return None
    asked = [name for name in names if names.count(name) == 1]
    lines = [[name.encode("utf-8", "surrogateescape") for name in asked]]
    try:
        for buffer, starts, stops in csv_reading._blocks(CsvFile(path), asked):
            for record in range(starts.shape[1] if asked else 0):
                cells = zip(starts[:, record], stops[:, record], strict=True)
                lines.append([bytes(buffer[start:stop]).replace(b'""', b'"') for start, stop in cells])
    except SchemaError:
        return None
    return lines


STRAYS = [b'"x,1', b'x,"1', b'x"y,1', b'x,1"', b'"x"y,1', b'x,"1"2', b'"x,"y",1', b'x, "1"', b'"x\n",1"']


def with_strays(test):
    """Quotes that are not doubled, which swallow no records."""
    for line in STRAYS:
        test = example([line, b"\n", b"x,1"])(example([b"x,1\r\n", line, b"\r\nx,1"])(test))
    return test


@with_strays
@given(st.lists(st.sampled_from([b"a", b"b", b",", b'"', b"\n", b"\r", b"\r\n", b"\0", b"xyz"]), max_size=24))
@example([b"a", b",", b"b", b"\n"])
@example([b"a", b"\r\n", b'"', b"\r", b'"', b"\r\n"])
@example([b"a", b"\n", b"b", b"\r", b"b"])
@example([b"a", b"\n", b"\n", b"\n"])
@example([b"a", b"\n", b'"', b"\0", b'"', b"\n"])
@example([b"a", b"\n", b"\0", b"\n"])
@settings(max_examples=600, derandomize=True, deadline=None)
def test_any_bytes_are_split_by_the_grammar_or_refused(pieces):
    content = b"h,i\n" + b"".join(pieces) if len(pieces) % 2 else b"".join([b"h", *pieces])
    expected = by_regular_expressions(content)
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        for rows, size in ((1, 1), (2, 3), (2**10, 2**12)):
            patch.setattr(csv_reading, "_BLOCK_ROWS", rows)
            patch.setattr(csv_reading, "_BLOCK_BYTES", size)
            found = split(content, folder)
            if expected is None or found is None:
                assert found is None
                assert expected is None
            else:
                kept = [k for k, name in enumerate(expected[0]) if expected[0].count(name) == 1]
                if kept:
                    assert found == [[line[k] for k in kept] for line in expected]


@given(
    st.lists(st.lists(st.text(alphabet='a,;"\r\n é\t\ufeff', max_size=6), min_size=3, max_size=3), max_size=12),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([",", ";", "\t"]),
    st.booleans(),
)
@settings(max_examples=200, derandomize=True, deadline=None)
def test_what_is_quoted_comes_back(rows, end, delimiter, strip):
    written = io.StringIO(newline="")
    csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator=end, delimiter=delimiter).writerows(
        [["x", "y", "z"], *rows]
    )
    with TemporaryDirectory() as folder:
        path = Path(folder) / "records.csv"
        path.write_bytes(written.getvalue().encode())
        found = [
            [bytes(buffer[start:stop]).replace(b'""', b'"').decode() for start, stop in zip(*cells, strict=True)]
            for buffer, starts, stops in csv_reading._blocks(CsvFile(path, delimiter, strip=strip), ["x", "y", "z"])
            for cells in zip(starts.T, stops.T, strict=True)
        ]
    assert found == [[text.strip(" ") if strip else text for text in row] for row in rows]


@pytest.mark.parametrize("delimiter", ["", ",,", '"', "\n", "\r", "\0", "é", None, 44])
def test_delimiters_that_mean_something_else_are_refused(delimiter):
    with pytest.raises(ValueError, match="delimiter"):
        CsvFile("records.csv", delimiter=delimiter)


def test_blanks_at_the_ends_are_stripped_where_that_is_declared(tmp_path):
    """Of names, of texts in quotes or not, of numbers and of persons; what is blank is missing."""
    path = tmp_path / "census.csv"
    path.write_text('age , job, person\n 30,clerk , 1\n40 ," clerk",1 \n50,   ,2\n')
    schema = dp.Schema({"age": dp.Bins([0, 35, 99]), "job": ["clerk"]}, missing={"job": "none"})
    budget = dp.PrivacyBudget(1e6)
    with pytest.raises(SchemaError, match="age"):
        dp.PrivateDataset(CsvFile(path), schema, budget)
    data = dp.PrivateDataset(CsvFile(path, strip=True), schema, budget, unit="person", max_rows=1)
    table = data.measure([("job",)], 1e5).tables["job",]
    assert table.tolist() == [1, 1]
    with pytest.raises(ValueError, match="strip"):
        CsvFile(path, strip="yes")


def test_a_header_of_more_columns_than_the_most_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_reading, "_MAX_COLUMNS", 3)
    path, schema = tmp_path / "records.csv", dp.Schema({"c": ["x"]})
    path.write_text("a,b,c\n1,2,x\n")
    assert open_records(path, schema, ["c"]).size == 1
    path.write_text("a,b,c,d\n1,2,x\n")  # whose records would be sound without the last
    with pytest.raises(SchemaError, match="more or fewer fields"):
        open_records(path, schema, ["c"])


@pytest.mark.parametrize("quoted", [False, True])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("block", [1, 7, 2**10])
def test_a_record_of_more_bytes_than_the_most_is_refused_wherever_it_stands(quoted, end, block, tmp_path, monkeypatch):
    monkeypatch.setattr(csv_reading, "MAX_RECORD_BYTES", 20)
    monkeypatch.setattr(csv_reading, "_BLOCK_BYTES", block)
    path, schema = tmp_path / "a.csv", dp.Schema({"v": ["x"]})
    for size in range(17, 24):
        long = f'x,"{"w" * (size - 4)}"' if quoted else f"x,{'w' * (size - 2)}"
        for lines in ([long], ["x,", long, "x,"], ["x,"] * 9 + [long], [f"v,{'w' * (size - 2)}"]):
            for last in (end, ""):
                named = lines if lines[0].startswith("v") else ["v,w", *lines]
                path.write_text(end.join(named) + last, newline="")
                if size <= 20:
                    assert open_records(path, schema, ["v"]).size == len(named) - 1
                else:
                    with pytest.raises(SchemaError, match="more than 16,777,216 bytes"):
                        open_records(path, schema, ["v"])


def test_a_small_file_of_one_huge_field_is_refused_in_little_memory(tmp_path):
    """A compressed file is as long as it says; no more of it is held than a record may have."""
    path = tmp_path / "a.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"v\n")
        for _ in range(5):
            file.write(b"x" * 2**23)
    tracemalloc.start()
    with pytest.raises(SchemaError, match="more than 16,777,216 bytes"):
        open_records(path, dp.Schema({"v": ["x"]}), ["v"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**27
