"""The lemma that every sensitivity rests on: records are read one by one.

What all records together are counted as is the sum of what each is counted as alone, in the same form, by the same
writer; and where records belong to persons, of what the rows of each are counted as alone. So no record decides how
another is read, how often it is counted, or whether it is found at all.

A source may be refused. Where every variable has states for missing and for other values, it is so for its names or the
types of its columns alone, as it is without any records, or as a CSV file that RFC 4180 does not allow, or as a folder
or a Dask frame whose parts have types that do not agree: never for a value.

The quick run takes some hundreds of drawn sets of records, `pytest -m slow` twenty thousand. What was found once is in
tests/audit/test_gate_findings.py.
"""

import functools
import random
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import dask
import duckdb
import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest
from gate import CsvFile, Unit, Weights, open_records, outcome
from hostile_records import LARGEST, SECRET, ZONE, Case, Column, drawn_case
from hypothesis import HealthCheck, Phase, given, note, reject, seed, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from spark_sessions import spark_session
from writers import FORMS, NOT_TAKEN, Form, rfc4180, taken

import pgmpy_dp as dp
from pgmpy_dp.privacy.coins import random_keys
from pgmpy_dp.privacy.noise import UNIT_WEIGHT

pytestmark = pytest.mark.full


@dataclass(frozen=True)
class Counted:
    """What a source was read as: all variables at once, and the first of them."""

    size: int
    tables: list[np.ndarray]


Reader = Callable[[Any, Case], Counted | str]


def gate(source: Any, case: Case) -> Counted:
    """The library's reader."""
    unit = None if case.unit is None else Unit(case.unit, case.max_rows, random_keys)
    variables = case.schema.variables
    weights = None if case.weights is None else Weights(case.weights, LARGEST)
    opened = open_records(source, case.schema, variables, unit, weights)
    cliques = list(dict.fromkeys([variables, variables[:1]]))
    tables = opened.counts(cliques)
    return Counted(opened.size, [tables[clique] for clique in cliques])


def read(reader: Reader, source: Any, case: Case, folder: Path) -> Counted | str:
    """What a source is counted as, or the message by which it is refused, wherever it is."""
    found = outcome(lambda: reader(source, case))
    return found.replace(str(folder), "") if isinstance(found, str) else found


def written(write: Callable[[Any, Path], Any], frame: Any, folder: Path, name: str) -> Any:
    """A source in a folder of its own; an example that the writer does not take is none."""
    (folder / name).mkdir()
    try:
        return write(frame, folder / name)
    except NOT_TAKEN:
        reject()


def require_sum(together: Counted, alone: list[Counted], case: Case) -> None:
    """All records together are what they are alone."""
    rows = np.array([len(person) for person in case.persons])
    maximum = case.size if case.max_rows is None else case.max_rows
    weighted = case.unit is not None and case.max_rows is None
    each = rows * (UNIT_WEIGHT // rows) if weighted else rows.clip(max=maximum)
    assert together.size == len(rows)
    assert [one.size for one in alone] == [1] * len(rows)
    for number, table in enumerate(together.tables):
        if case.weights is None:
            assert table.sum() == each.sum()
            assert [one.tables[number].sum() for one in alone] == each.tolist()
        else:
            bound = UNIT_WEIGHT * (1 if case.unit is None else case.max_rows or 1)
            assert all(0 <= one.tables[number].sum() <= bound for one in alone)
        if (rows <= maximum).all():  # no rows were drawn
            assert (table == sum(one.tables[number] for one in alone)).all()


def require_lemma(reader: Reader, form: Form, case: Case, folder: Path, chance: random.Random) -> str:
    """Write the records together and one by one, and read them all; what became of them."""
    flavour, write = chance.choice(list(form.typed)), chance.choice(form.written)
    note(f"{flavour}, {write}, {case}")
    try:
        frame = form.typed[flavour](case.columns)
    except NOT_TAKEN:
        reject()
    source = written(write, frame, folder, "together")
    is_csv = isinstance(source, CsvFile) or (isinstance(source, (str, Path)) and ".csv" in Path(source).name)
    grammatical = rfc4180(source) if is_csv else []
    if grammatical and len(grammatical) != case.size + 1:
        reject()  # the writer makes other records of them
    together = read(reader, source, case, folder / "together")
    alone = [
        read(reader, written(write, taken(frame, rows), folder, str(number)), case, folder / str(number))
        for number, rows in enumerate(case.persons)
    ]
    refused = [one for one in alone if isinstance(one, str)]
    if not isinstance(together, str):
        assert not refused
        require_sum(together, alone, case)
        return "read"
    if not form.alike:
        return "refused"
    assert refused
    if len(refused) == 1:  # with one such record, word by word what would be said of it alone
        assert together == refused[0]
    if case.tolerant and grammatical is not None:
        nothing = written(write, taken(frame, []), folder, "nothing")
        assert isinstance(read(reader, nothing, case, folder / "nothing"), str), together  # for its names or types
    return "refused"


def undiscovered(case: Case) -> Case:
    """The same records, none of whose values is a public state."""
    variables, said = case.schema.variables, case.schema.missing_values
    schema = dp.Schema(
        dict.fromkeys(variables, ()),
        missing=dict.fromkeys(variables, "missing"),
        other=dict.fromkeys(variables, "other"),
        missing_values=said,
    )
    maximum = None if case.unit is None else case.max_rows or case.size
    return replace(case, schema=schema, max_rows=maximum, tolerant=True)


def values(source: Any, case: Case) -> Counted:
    """The library's counts of values without states, each in a place that follows from the value, and of the rest."""
    unit = None if case.unit is None else Unit(case.unit, case.max_rows, random_keys)
    opened, tables = open_records(source, case.schema, case.schema.variables, unit), []
    for variable in case.schema.variables:
        found = opened.value_counts(variable)
        table = np.bincount([zlib.crc32(repr(value).encode()) % 64 for value in found], [*found.values()], 65)
        table[64] = opened.counts([(variable,)])[variable,].sum() - table.sum()
        tables.append(table.astype(np.int64))
        if case.unit is None:  # the states that the values become are read as often
            schema = case.schema.with_states(variable, list(found))
            again = open_records(source, schema, [variable]).counts([(variable,)])[variable,]
            assert dict(zip(schema.states[variable], again.tolist(), strict=True)).items() >= found.items()
    return Counted(opened.size, tables)


def examples(
    number: int, reader: Reader, name: str, shrink: bool = True, prepared: Callable[[Case], Case] = lambda case: case
) -> Counter[str]:
    """Try the lemma on so many examples of a form, the same each time; how often records were read, or refused."""
    outcomes: Counter[str] = Counter()
    form = FORMS[name]

    @seed(zlib.crc32(name.encode()))
    @settings(
        max_examples=number,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        phases=[Phase.generate, *([Phase.shrink] if shrink else [])],
    )
    @given(st.randoms(use_true_random=True))  # choices that hypothesis makes one by one are much alike
    def attempt(chance):
        case = prepared(drawn_case(chance, form.maximum, form.kinds))
        with tempfile.TemporaryDirectory() as folder:
            outcomes[require_lemma(reader, form, case, Path(folder), chance)] += 1

    attempt()
    return outcomes


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("times", [1, pytest.param(50, marks=pytest.mark.slow)], ids=["hundreds", "thousands"])
def test_records_together_are_what_they_are_alone(times, form):
    number = (10 if form == "Spark" and times > 1 else times) * FORMS[form].examples
    assert examples(number, gate, form)["read"] >= number / (4 if FORMS[form].alike else 10)


# pandas writes the times of a column in a form that its other times decide; Spark is slow, and in test_sources.py.
@pytest.mark.parametrize("form", [form for form in FORMS if "to_csv" not in form and form != "Spark"])
def test_values_together_are_what_they_are_alone(form):
    """What states are discovered among is counted value by value, and becomes states that are read alike."""
    number = max(FORMS[form].examples // 12, 4)
    assert examples(number, values, form, prepared=undiscovered)["read"] >= 1


DAYS = ["1883-01-01", "1969-12-31", "1970-01-01", "2019-12-31", "2020-01-01", "2020-03-08", "2020-03-09", "2020-11-02"]
INSTANTS = [1577840400000000, 1577854799999999, 1577854800000000, 1583643600000000, 1583726400000000, 1604293200000000]
INSTANTS += [1604294999999999, 0, -1, 17999999999, 18000000000, -2717650800000000]
ZONE_OF = {"DuckDB to parquet": "UTC"}  # DuckDB writes no other


@pytest.mark.parametrize("form", [form for form in FORMS if form != "every encoding"])
def test_times_in_a_zone_have_one_day_from_every_source(form, tmp_path):
    """That of the column's zone; where the column of a source has none, that of the session which reads it."""
    if form == "Spark":
        spark_session().conf.set("spark.sql.session.timeZone", ZONE)
    zone, start = ZoneInfo(ZONE_OF.get(form, ZONE)), datetime(1970, 1, 1, tzinfo=UTC)
    days = [(start + timedelta(microseconds=instant)).astimezone(zone).date() for instant in INSTANTS]
    expected = Counter(sum(f"{day}" >= edge for edge in DAYS) for day in days)
    columns = Column("v", "zoned", tuple(INSTANTS)), Column("n", "number", tuple(range(len(INSTANTS))))
    bins, stand_ins = dp.DateBins(["-inf", *DAYS, "inf"], detail=0), {"missing": {"v": "none"}, "other": {"v": "other"}}
    schema = dp.Schema({"v": bins}, **stand_ins)
    case = Case(columns, schema, None, None, None, True)
    writers = FORMS[form].written[: 1 if form == "csv module" else None]  # the others' files may be no CSV
    for number, (make, write) in enumerate(product(FORMS[form].typed.values(), writers)):
        found = read(gate, written(write, make(columns), tmp_path, str(number)), case, tmp_path)
        if form == "DuckDB relation" and not write.keywords.get("table"):
            assert "without their time zone" in found
        else:
            assert found.tables[0].tolist() == [expected[place] for place in range(len(DAYS) + 3)], (make, write)


@pytest.mark.parametrize(
    "form", ["csv module", "PyArrow to parquet", "pandas", "Polars lazy", "DuckDB relation", "Dask"]
)
def test_records_in_many_batches_are_what_they_are_alone(form, tmp_path):
    """Engines and readers of files take some 2**16 records at a time."""
    columns = (
        Column("v", "text", ("x", "y\r\n,1", '"', "x ", None, "1", SECRET)),
        Column("n", "number", (0, 1, 0.5, 17.5, -1, None, 2**53)),
        Column("who", "text", ("p", "q", "q", "p", "P", "q", "p")),
    )
    stand_ins = {role: dict.fromkeys("vn", role) for role in ("missing", "other")}
    schema = dp.Schema({"v": ["x", "x ", "1"], "n": dp.Bins([0, 1, 18])}, **stand_ins)
    case = Case(columns, schema, None, None, None, True)
    typed, write = next(iter(FORMS[form].typed.values())), FORMS[form].written[0]
    frame = typed(columns)
    repeated = np.array([20_011, 3, 40_009, 1, 30_011, 17, 25_013])
    rows = np.random.default_rng(0).permutation(np.repeat(np.arange(7), repeated))
    each = [written(write, taken(frame, [row]), tmp_path, str(row)) for row in range(7)]
    source = written(write, taken(frame, rows), tmp_path, "together")
    sizes = np.array([sum(repeated[row] for row in person) for person in replace(case, unit="who").persons])
    weights = [UNIT_WEIGHT // sizes["pqP".index(who)] for who in columns[2].values]
    for survey in (None, "n"):
        weighted, parts = replace(case, weights=survey), 1 if survey is None else UNIT_WEIGHT
        alone = [read(gate, one, weighted, tmp_path) for one in each]
        for unit, size, weight in ((None, len(rows), [parts] * 7), ("who", 3, weights)):
            together = read(gate, source, replace(weighted, unit=unit), tmp_path)
            assert together.size == size
            for number, table in enumerate(together.tables):
                tables = [w * one.tables[number] // parts for w, one in zip(weight, alone, strict=True)]
                assert (table == sum(n * one for n, one in zip(repeated, tables, strict=True))).all()


def test_codes_in_an_array_are_what_they_are_alone():
    """Positions beyond the states are other values; a masked array is refused."""
    schema = dp.Schema({"a": ["x", "y"], "b": list(range(300))}, other={"a": "other", "b": "other"})
    kinds = arrays.integer_dtypes() | arrays.unsigned_integer_dtypes()

    @settings(max_examples=40, derandomize=True, deadline=None, database=None)
    @given(arrays.arrays(kinds, st.tuples(st.integers(1, 5), st.just(2)), elements={"max_value": 127}), st.booleans())
    def attempt(codes, masked):
        if masked:
            with pytest.raises((TypeError, dp.SchemaError)):
                open_records(np.ma.masked_less(codes, 1), schema, ["a", "b"])
        together, *alone = (
            open_records(rows, schema, ["a", "b"]).counts([("a", "b")])["a", "b"] for rows in (codes, *codes[:, None])
        )
        assert together.sum() == len(codes)
        assert (together == sum(alone)).all()

    attempt()


# Planted readers, which the same examples must catch, and one that they must not.


def texts(rows: list[list[str]]) -> pd.DataFrame:
    return pd.DataFrame(rows[1:], columns=pd.Index(rows[0], dtype=object), dtype=object)


def by_the_grammar(source: Any, case: Case) -> Counted | str:
    """A sound reader: texts are texts."""
    rows = rfc4180(source)
    return "refused" if rows is None else gate(texts(rows), case)


def refusing(read: Reader) -> Reader:
    """A reader that refuses what it fails to read."""

    @functools.wraps(read)
    def reader(source: Any, case: Case) -> Counted | str:
        try:
            return read(source, case)
        except (duckdb.Error, ValueError, TypeError, NotImplementedError, OverflowError):
            return "refused"

    return reader


@refusing
def by_pandas(source: Any, case: Case) -> Counted | str:
    """To `pandas.read_csv` a line ends where a lone CR is."""
    frame = pd.read_csv(source, header=None, dtype=str, keep_default_na=False, skip_blank_lines=False)
    return gate(texts(frame.values.tolist()), case)


@refusing
def folder_at_once(source: Any, case: Case) -> Counted | str:
    """To DuckDB the columns of all files have the types of the first one."""
    return gate(duckdb.read_parquet(str(source / "*.parquet")).to_arrow_table(), case)


@refusing
def folder_by_name(source: Any, case: Case) -> Counted | str:
    """To DuckDB the columns of all files are where the names of the first one's are, in capitals or not."""
    names = pyarrow.parquet.read_schema(sorted(source.iterdir())[0]).names
    return gate(duckdb.read_parquet(str(source / "*.parquet")).to_arrow_table().rename_columns(names), case)


@refusing
def times_as_objects(source: Any, case: Case) -> Counted | str:
    """To Python there are times of four digits of years alone."""
    return gate(source.astype(object), case)


@refusing
def weights_in_the_frame(source: Any, case: Case) -> Counted | str:
    """Adds up a column of weights beside those of the records, where one may have its name."""
    if case.unit is None or case.max_rows is not None:
        return gate(source, case)
    frame = source.reset_index(drop=True)
    own = frame.groupby(case.unit)[case.unit].transform("size").rdiv(UNIT_WEIGHT).astype(int)
    weights = frame.get("__pgmpy_dp_weight__", own)
    rows = [gate(frame.iloc[[row]], replace(case, unit=None)).tables for row in range(len(frame))]
    tables = [sum(int(w) * row for w, row in zip(weights, each, strict=True)) for each in zip(*rows, strict=True)]
    return Counted(frame[case.unit].nunique(), tables)


@refusing
def shuffled_as_it_is(source: Any, case: Case) -> Counted | str:
    """Dask brings a person's rows together by hashes of ids, which it takes of the type that a partition has."""
    if case.unit is None:
        return gate(source, case)
    found = [gate(part, case) for part in dask.compute(*source.shuffle(on=case.unit).to_delayed()) if len(part)]
    tables = zip(*(one.tables for one in found), strict=True)
    return Counted(sum(one.size for one in found), [sum(each) for each in tables])


PLANTED = {
    by_pandas: "csv module",
    folder_at_once: "folder of several types",
    folder_by_name: "folder of shuffled names",
    times_as_objects: "pandas",
    weights_in_the_frame: "pandas",
    shuffled_as_it_is: "Dask of several types",
}


@pytest.mark.parametrize("planted", PLANTED)
def test_planted_readers_are_caught(planted):
    with pytest.raises(AssertionError) as caught:
        examples(400, planted, PLANTED[planted], shrink=False)
    assert caught.traceback[-1].name.startswith("require")


def test_a_sound_reader_is_not_caught():
    assert examples(60, by_the_grammar, "csv module")["read"] > 20
