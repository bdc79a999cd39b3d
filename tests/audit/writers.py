"""The forms in which records come: typed frames of drawn columns, and what common writers make of them.

A form types all records once; what one record is alone is the same frame cut down to it, by the same writer. So it is
not the writers' own reading of values that is tested.
"""

import bz2
import csv
import encodings.aliases
import gzip
import lzma
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import dask
import dask.dataframe
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from gate import CsvFile
from hostile_records import ZONE, Column
from spark_sessions import spark_session

Columns = Sequence[Column]


NOT_TAKEN = (Exception, pl.exceptions.PanicException)
"""What writers raise."""

# Frames.


def kept(make: Callable[[list[Any]], Any], values: Sequence[Any]) -> Any:
    """A column of these values, without those that its type does not hold."""
    try:
        return make(list(values))
    except Exception:
        return make([value if _makes(make, value) else None for value in values])


def _makes(make: Callable[[list[Any]], Any], value: Any) -> bool:
    try:
        make([value])
    except Exception:
        return False
    return True


def arrow(columns: Columns, texts: str = "string", dictionary: bool = False, numbers: str = "float64") -> Any:
    """A PyArrow table."""
    types = {"text": getattr(pa, texts)(), "mixed": getattr(pa, texts)(), "integer": pa.int64(), "long": pa.uint64()}
    types |= {"number": pa.float64(), "float": getattr(pa, numbers)(), "boolean": pa.bool_()}
    types["decimal"] = pa.decimal128(38, 9)
    casts = {"date": (pa.int32(), pa.date32()), "time": (pa.int64(), pa.timestamp("us"))}
    casts |= {"duration": (pa.int64(), pa.duration("us")), "zoned": (pa.int64(), pa.timestamp("us", ZONE))}

    def array(column: Column) -> Any:
        stored, cast = casts.get(column.kind, (types.get(column.kind),) * 2)
        made = kept(lambda values: pa.array(values, stored).cast(cast), column.values)
        return made.dictionary_encode() if dictionary and column.kind == "text" else made

    return pa.Table.from_arrays([array(column) for column in columns], [column.name for column in columns])


def polars_frame(columns: Columns, own: bool = False, times: bool = True) -> Any:
    """A Polars frame; with types that only Polars has, or without times that Python has not, if asked."""
    if not times:
        known = ([value if python_value(c.kind, value) is not None else None for value in c.values] for c in columns)
        columns = [Column(c.name, c.kind, tuple(values)) for c, values in zip(columns, known, strict=True)]
    frame = pl.from_arrow(arrow(columns))
    if own:
        kinds = {"integer": pl.Int128, "long": pl.Int128, "float": pl.Float32, "text": pl.Categorical}
        frame = frame.with_columns(frame[c.name].cast(kinds[c.kind]) for c in columns if c.kind in kinds)
    return frame


def python_value(kind: str, value: Any) -> Any:
    """A value as a Python object; None for a time that Python has not."""
    if value is None or kind not in ("date", "time", "zoned", "duration"):
        return value
    try:
        if kind == "date":
            return date(1970, 1, 1) + timedelta(days=value)
        if kind == "zoned":
            return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)).astimezone(ZoneInfo(ZONE))
        return timedelta(microseconds=value) + (datetime(1970, 1, 1) if kind == "time" else timedelta())
    except OverflowError:
        return None


def pandas(columns: Columns, make: Callable[[list[Any]], Any] = pd.Series, index: Sequence[Any] | None = None) -> Any:
    """A pandas frame, each column made by itself of Python's objects."""
    series = [kept(make, [python_value(column.kind, value) for value in column.values]) for column in columns]
    frame = pd.DataFrame(dict(enumerate(series)))
    frame.columns = pd.Index([column.name for column in columns], dtype=object)
    return frame if index is None else frame.set_axis([index[0]] * len(frame))


def pandas_times(columns: Columns, categories: bool = False) -> Any:
    """A pandas frame with all times that 64 bits hold, of which Python has not all."""
    series = [
        (arrow([c]).column(0).to_pandas() if c.kind in ("time", "zoned") else pandas([c]).iloc[:, 0]) for c in columns
    ]
    frame = pd.concat([column.astype("category") if categories else column for column in series], axis=1)
    return frame.set_axis(pd.Index([column.name for column in columns], dtype=object), axis=1)


def objects(values: list[Any]) -> Any:
    """A column that holds the objects themselves."""
    array = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        array[place] = value
    return pd.Series(array)


PANDAS = {
    "inferred": pandas,
    "objects": partial(pandas, make=objects),
    "repeated index": partial(pandas, index=[7]),
    "nullable": partial(pandas, make=lambda values: pd.Series(values).convert_dtypes()),
    "Arrow": partial(pandas, make=lambda values: pd.Series(values).convert_dtypes(dtype_backend="pyarrow")),
    "categories": partial(pandas, make=pd.Categorical),
}
TIMES = {"times": pandas_times, "categories of times": partial(pandas_times, categories=True)}
ARROW = {
    "plain": arrow,
    "dictionaries": partial(arrow, dictionary=True, numbers="float32"),
    "large": partial(arrow, texts="large_string"),
}
POLARS = {"plain": polars_frame, "own": partial(polars_frame, own=True)}


def arrow_of_pandas(columns: Columns, flavour: str = "inferred") -> Any:
    """What `to_parquet` writes of a pandas frame, which types it by its values."""
    return pa.Table.from_pandas((PANDAS | TIMES)[flavour](columns))


def parts(columns: Columns, make: Callable[[Columns], Any]) -> tuple[Any, ...]:
    """Two tables, each typed by its own records alone."""
    half = (len(columns[0].values) + 1) // 2
    cuts = slice(half), slice(half, None)
    return tuple(make([Column(c.name, c.kind, c.values[cut]) for c in columns]) for cut in cuts)


def parts_by_name(columns: Columns) -> tuple[Any, ...]:
    """Two tables with their columns in two orders, one of them beside its twin, whose name differs in case alone."""
    frame, chance = arrow(columns), random.Random(repr(columns))
    names = frame.column_names
    twins = [(name, name.swapcase()) for name in names if name.swapcase() not in names]
    if twins:
        name, twin = chance.choice(twins)
        others = frame.column(name).take(list(reversed(range(len(frame)))))
        frame = frame.append_column(twin, others).add_column(0, "filler", others)
    half, order = (len(frame) + 1) // 2, [*range(frame.num_columns)]
    other = chance.choice([[order[-1], *order[1:-1], order[0]], order[::-1]])
    return frame[:half], frame[half:].select(other)


def rows(columns: Columns) -> list[list[Any]]:
    """Rows of Python objects, the first of them the names: what the csv module writes."""
    values = ([python_value(column.kind, value) for value in column.values] for column in columns)
    return [[column.name for column in columns], *map(list, zip(*values, strict=True))]


def taken(frame: Any, chosen: Sequence[int]) -> Any:
    """These rows of a typed frame."""
    chosen = np.array(chosen, dtype=np.int64)
    if isinstance(frame, tuple):
        first = len(frame[0])
        return taken(frame[0], chosen[chosen < first]), taken(frame[1], chosen[chosen >= first] - first)
    if isinstance(frame, pd.DataFrame):
        return frame.iloc[chosen]
    if isinstance(frame, list):
        return [frame[0], *(frame[1 + row] for row in chosen)]
    return frame.take(chosen) if hasattr(frame, "take") else frame[chosen]


def table_of(frame: pd.DataFrame) -> Any:
    """A PyArrow table of a pandas frame."""
    return pa.Table.from_pandas(frame, preserve_index=False)


COMMON: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "pandas": lambda frame, folder: frame,
    "objects": lambda frame, folder: frame.astype(object),
    "categories": lambda frame, folder: frame.astype("category"),
    "Arrow": lambda frame, folder: table_of(frame),
    "Polars": lambda frame, folder: pl.from_arrow(table_of(frame)),
    "lazy": lambda frame, folder: pl.from_arrow(table_of(frame)).lazy(),
    "DuckDB": lambda frame, folder: duckdb.connect().from_arrow(table_of(frame)),
    "Parquet": lambda frame, folder: arrow_parquet(table_of(frame), folder),
    "CSV": lambda frame, folder: to_csv(frame, folder),
}
ALL = COMMON | {
    "folder": lambda frame, folder: arrow_parquet(table_of(frame), folder, parts=2),
    "Dask": lambda frame, folder: dask.dataframe.from_pandas(frame, npartitions=3),
    "Spark": lambda frame, folder: spark(table_of(frame), folder),
}
"""What the gate is handed of a pandas frame, by the name of the form; of `COMMON` ones, most take little time."""


def every_form(frame: pd.DataFrame, folder: Path) -> dict[str, Any]:
    """These records in every common form, by its name."""
    return {name: make(frame, folder) for name, make in COMMON.items()}


# Writers: of a typed frame, what the gate is handed.


def itself(frame: Any, folder: Path) -> Any:
    """A frame in memory."""
    return frame


def csv_module(frame: Any, folder: Path, errors: str = "strict", **dialect: Any) -> Path:
    """A file of Python's csv module."""
    with open(folder / "records.csv", "w", newline="", encoding="utf-8", errors=errors) as file:
        csv.writer(file, **dialect).writerows(frame)
    return folder / "records.csv"


def declared_csv(frame: Any, folder: Path, delimiter: str, encoding: str) -> CsvFile:
    """A file of Python's csv module that is none by its ending, with a delimiter and an encoding of its own."""
    declared = CsvFile(folder / "records.txt", delimiter, encoding)
    with open(declared.path, "w", newline="", encoding=encoding, errors="replace") as file:
        csv.writer(file, delimiter=delimiter).writerows(frame)
    return declared


def to_csv(frame: Any, folder: Path, name: str = "records.csv", **options: Any) -> str:

    frame.to_csv(folder / name, index=False, **options)
    return str(folder / name)


def polars_csv(frame: Any, folder: Path, **options: Any) -> Path:
    frame.write_csv(folder / "records.csv", **options)
    return folder / "records.csv"


def arrow_csv(frame: Any, folder: Path, **options: Any) -> Path:

    pyarrow.csv.write_csv(frame, folder / "records.csv", pyarrow.csv.WriteOptions(**options))
    return folder / "records.csv"


def relation(frame: Any, folder: Path, huge: bool = False, table: bool = False) -> Any:
    """A relation of DuckDB; with integers of 128 bits, or over a table of its own, if asked."""
    connection = duckdb.connect()
    connection.execute(f"SET TimeZone = '{ZONE}'")
    if table:
        connection.execute("CREATE TEMP TABLE own AS SELECT * FROM frame")
        return connection.table("own")
    made = connection.from_arrow(frame)
    if not huge:
        return made
    quoted = ['"' + name.replace('"', '""') + '"' for name in made.columns]
    kinds = ("BIGINT", "UBIGINT")
    types = map(str, made.types)
    return made.project(
        ", ".join(
            f"{name}::HUGEINT AS {name}" if kind in kinds else name for name, kind in zip(quoted, types, strict=True)
        )
    )


def duckdb_csv(frame: Any, folder: Path, **options: Any) -> Path:
    relation(frame, folder).write_csv(str(folder / "records.csv"), **options)
    return folder / "records.csv"


def duckdb_parquet(frame: Any, folder: Path) -> Path:
    relation(frame, folder).write_parquet(str(folder / "records.parquet"))
    return folder / "records.parquet"


def polars_parquet(frame: Any, folder: Path) -> Path:
    frame.write_parquet(folder / "records.parquet")
    return folder / "records.parquet"


def arrow_parquet(frame: Any, folder: Path, parts: int = 0) -> Path:
    """A file of PyArrow, or a folder of several with one type a column."""
    if not parts:
        pyarrow.parquet.write_table(frame, folder / "records.parquet")
        return folder / "records.parquet"
    for part in range(parts):
        pyarrow.parquet.write_table(frame.take(np.arange(part, len(frame), parts)), folder / f"{part}.parquet")
    return folder


def parquet_parts(parts: tuple[Any, ...], folder: Path) -> Path:
    """A folder of files, each with types of its own; one without records is left out."""
    for number, part in enumerate(parts):
        if len(part) or not any(map(len, parts)):
            pyarrow.parquet.write_table(part, folder / f"{number}.parquet")
    return folder


def dask_frame(frame: Any, folder: Path, parts: int = 2) -> Any:
    """A Dask frame that Dask can compute: bytes that are no text fail it, whoever asks."""
    made = dask.dataframe.from_pandas(frame, npartitions=parts, sort=False)
    made.compute()
    return made


def dask_parts(parts: tuple[Any, ...], folder: Path, convert: bool = True) -> Any:
    """A Dask frame of partitions of their own types, which states those of the first."""
    held = [part for part in parts if len(part)] or list(parts[:1])
    with dask.config.set({"dataframe.convert-string": convert}):
        return dask.dataframe.from_map(lambda part: part, held, meta=held[0].iloc[:0])


def spark(frame: Any, folder: Path) -> Any:
    """A Spark frame."""
    return spark_session().read.parquet(str(arrow_parquet(frame, folder)))


# Forms.


@dataclass(frozen=True)
class Form:
    """A way from drawn columns to a source."""

    examples: int  # of the quick run, by what one costs
    typed: dict[str, Callable[[Columns], Any]]
    written: list[Callable[[Any, Path], Any]]  # from a frame and a folder to a source
    maximum: int = 8  # records of an example
    alike: bool = True  # all records have the same types: where they may not, they may be refused for it together
    kinds: list[str] | None = None  # of the columns


ROWS = {"rows": rows}
DRIFTING = [*["number"] * 3, "mixed"]  # kinds whose values pandas types one way or another
CODECS = sorted({*encodings.aliases.aliases.values(), "utf_8_sig", "mac_arabic"})  # those that are refused are rejected
QUOTING = [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC, csv.QUOTE_NONE]
DIALECTS = [{"quoting": quoting, "lineterminator": end} for quoting in QUOTING for end in ("\n", "\r\n")]
ENDS = [{"lineterminator": "\r"}, {"lineterminator": "\n\r"}, {"errors": "surrogatepass"}]
FORMS = {
    "csv module": Form(100, ROWS, [partial(csv_module, **dialect) for dialect in DIALECTS[:1] * 3 + DIALECTS + ENDS]),
    "pandas to_csv": Form(50, PANDAS, [partial(to_csv, **dialect) for dialect in DIALECTS[:1] * 3 + DIALECTS]),
    "pandas to_csv, zipped": Form(
        12, PANDAS, [partial(to_csv, name=f"records.csv{ending}") for ending in (".gz", ".bz2", ".xz")]
    ),
    "declared": Form(
        60,
        ROWS,
        [partial(declared_csv, delimiter=d, encoding=e) for d in ";\t|x1" for e in ("utf-8", "latin-1", "cp1252")],
    ),
    "every encoding": Form(60, ROWS, [partial(declared_csv, delimiter=";", encoding=codec) for codec in CODECS]),
    "Polars write_csv": Form(
        40,
        {name: partial(made, times=False) for name, made in POLARS.items()},  # Polars writes no others
        [partial(polars_csv, quote_style=style) for style in ("necessary", "always", "non_numeric")],
    ),
    "PyArrow write_csv": Form(
        40, ARROW, [partial(arrow_csv, quoting_style=style) for style in ("needed", "all_valid", "none")]
    ),
    "DuckDB to csv": Form(20, ARROW, [duckdb_csv, partial(duckdb_csv, quoting=csv.QUOTE_ALL)]),
    "pandas to_parquet": Form(
        8, {name: partial(arrow_of_pandas, flavour=name) for name in PANDAS | TIMES}, [arrow_parquet], 4
    ),
    "Polars to parquet": Form(6, POLARS, [polars_parquet], 4),
    "PyArrow to parquet": Form(10, ARROW, [arrow_parquet], 4),
    "DuckDB to parquet": Form(6, ARROW, [duckdb_parquet], 4),
    "folder of one type": Form(6, ARROW, [partial(arrow_parquet, parts=2)], 4),
    "folder of several types": Form(
        20, {"pandas": partial(parts, make=arrow_of_pandas)}, [parquet_parts], 4, False, DRIFTING
    ),
    "folder of shuffled names": Form(10, {"plain": parts_by_name}, [parquet_parts], 4),
    "pandas": Form(120, PANDAS | TIMES, [itself]),
    "Polars": Form(60, POLARS, [itself]),
    "PyArrow": Form(60, ARROW, [itself]),
    "Polars lazy": Form(40, POLARS, [lambda frame, folder: frame.lazy()]),
    "DuckDB relation": Form(
        30, ARROW, [partial(relation), partial(relation, huge=True), partial(relation, table=True)]
    ),
    "Dask": Form(6, PANDAS | TIMES, [dask_frame], 4),
    "Dask of several types": Form(
        10,
        {name: partial(parts, make=PANDAS[name]) for name in ("inferred", "nullable", "Arrow")},
        [dask_parts, partial(dask_parts, convert=False)],
        8,
        False,
        ["integer", "integer", "text", *DRIFTING],
    ),
    "Spark": Form(2, {"plain": arrow}, [spark], 2),
}


# The public grammar of CSV files, written down a second time.

OPENED = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def rfc4180(source: str | Path | CsvFile) -> list[list[str]] | None:
    """Rows of a CSV file by RFC 4180, the header among them; None if it is none.

    All line breaks outside of quotes are like the first one; every row has as many fields as the header.
    """
    file = source if isinstance(source, CsvFile) else CsvFile(source)
    with OPENED.get(file.path.suffix, open)(file.path, "rb") as handle:
        content = handle.read()
    try:
        text = content.decode("utf-8-sig" if file.encoding == "utf-8" else file.encoding)
    except UnicodeDecodeError:
        return None
    comma = re.escape(file.delimiter)
    field = rf'(?:"[^"\0]*(?:""[^"\0]*)*"|[^"{comma}\r\n\0]*)'
    end = re.match(rf"{field}(?:{comma}{field})*(\r\n|\n)", text)
    if end is None:
        return None
    row, cell, place, rows = re.compile(rf"({field}(?:{comma}{field})*)({end[1]}|\Z)"), re.compile(field), 0, []
    while place < len(text):
        match = row.match(text, place)
        if match is None:
            return None
        fields, at = [], place
        while at <= match.end(1):
            found = cell.match(text, at, match.end(1))[0]
            fields.append(found[1:-1].replace('""', '"') if found.startswith('"') else found)
            at += len(found) + 1
        rows.append(fields)
        place = match.end()
    return rows if {len(row) for row in rows} == {len(rows[0])} else None
