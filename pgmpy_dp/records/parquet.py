"""Parquet files, each read by its own types.

What one file holds must not decide how another is read. An engine that scans a folder in one call converts all files to
the types of the first, and finds their columns by the names of the first, ignoring case. So only files of one layout,
with the same names in the same order and the same types, are read in one call: each is then read as the first is, whose
columns are found by their places. Columns of one name that are not encoded alike, such as texts and numbers, are
refused. So are columns of times whose values DuckDB would convert, since it refuses those that it cannot: one record
could stop the whole read. A column's times have the days of its time zone, of which DuckDB knows nothing: a file states
it in a schema of Arrow's, and times without one, such as those that DuckDB writes, have the days of UTC.
"""

from __future__ import annotations

import base64
import glob
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.records.columns import local_seconds
from pgmpy_dp.records.engines import (
    DUCKDB_FAMILIES,
    DUCKDB_ZONED,
    duckdb_batches,
    duckdb_cell,
    duckdb_id,
    duckdb_key,
    duckdb_kind,
)
from pgmpy_dp.records.refusals import require_columns, sealed
from pgmpy_dp.records.streams import Counted, Source, Tally, sum_of_batches
from pgmpy_dp.records.units import Unit

Layout = tuple[tuple[str, bool, Any, str | None], ...]

_ARROW = "ARROW:schema"

PARQUET_ENDINGS = (".parquet", ".pq")
"""Endings of the names of Parquet files that are read from a path alone."""


def is_parquet(path: Path) -> bool:
    """Whether a path is read as Parquet: a file by its ending, and every folder."""
    return path.name.lower().endswith(PARQUET_ENDINGS) or path.is_dir()


@dataclass(frozen=True)
class Part:
    """The files of one layout, with the places and types of the wanted columns."""

    paths: tuple[str, ...]
    places: dict[str, int]
    types: dict[str, str]  # of DuckDB
    zones: dict[str, str | None]  # which DuckDB does not keep

    def kind(self, column: str) -> str:
        """Return the type of a column without its parameters."""
        return self.types[column].partition("(")[0].lower()

    def cells(self, columns: Sequence[str]) -> list[str]:
        """Write the expressions for the cells of some columns as DuckDB delivers them."""
        return [duckdb_cell(self.places[column], self.kind(column)) for column in columns]

    def nulls(self, columns: Sequence[str]) -> list[str]:
        """Write the expressions for empty cells of the types of :meth:`cells`."""
        types = {"texts": "VARCHAR", None: "BLOB", "nothing": "BLOB"}
        return [f"NULL::{types.get(DUCKDB_FAMILIES.get(self.kind(c)), self.types[c])}" for c in columns]


def _total(connection: Any, parts: Sequence[Part], unit: Unit | None, tally: Tally, rows: int | None) -> Counted:
    """Sum the tally over batches of all rows, read by DuckDB, which needs the least memory."""
    with connection.cursor() as cursor:  # one per measurement, since they may run in threads
        columns = tally.columns
        batches = _batches(cursor, parts, columns) if unit is None else _batches_of_units(cursor, parts, unit, columns)
        return sum_of_batches(batches, tally, rows)


def _batches(connection: Any, parts: Sequence[Part], variables: Sequence[str]) -> Iterator[Any]:
    for part in parts:
        columns = ", ".join(f"{cell} AS c{i}" for i, cell in enumerate(part.cells(variables)))
        kinds = [part.kind(variable) for variable in variables]
        zones = [part.zones[variable] for variable in variables]
        for batch in duckdb_batches(_scan(connection, part.paths).project(columns), kinds, None):
            yield _in_zones(batch, zones)


def _batches_of_units(connection: Any, parts: Sequence[Part], unit: Unit, variables: Sequence[str]) -> Iterator[Any]:
    """Yield the batches of one scan over all files, since a unit may have rows in several.

    Every part has columns of its own in the scan, which are empty in the rows of others: a column for all parts
    would have one type for all.
    """
    relations = []
    for number, part in enumerate(parts):
        cells = [
            cell for other in parts for cell in (part.cells(variables) if other is part else other.nulls(variables))
        ]
        name = unit.column
        whose = duckdb_id(part.places[name], part.kind(name), unit)
        columns = [f"{cell} AS c{i}" for i, cell in enumerate([str(number), *cells])]
        relations.append(_scan(connection, part.paths).project(", ".join([*columns, f"{whose} AS u"])))
    rows = reduce(lambda one, other: one.union(other), relations).project(f"*, {duckdb_key(unit)} AS k")
    kinds = ["integer", *(part.kind(variable) for part in parts for variable in variables)]
    width = len(variables)
    for batch in duckdb_batches(rows, kinds, unit):
        whole = batch.num_columns
        for number, part in enumerate(parts):
            mine = batch.filter(pyarrow.compute.equal(batch.column(0), number)) if len(parts) > 1 else batch
            own = range(1 + number * width, 1 + (number + 1) * width)
            zones = [part.zones[variable] for variable in variables]
            yield _in_zones(mine.select([*own, *range(whole - 3, whole)]), zones)


def _in_zones(table: Any, zones: Iterable[str | None]) -> Any:
    """State the time zones of the columns that a table begins with; a column without one is unchanged."""
    for position, zone in enumerate(zones):
        times = table.column(position)
        if zone is not None and pyarrow.types.is_timestamp(times.type):
            named = times.cast(pyarrow.timestamp(times.type.unit, zone))
            table = table.set_column(position, table.field(position).with_type(named.type), named)
    return table


def _scan(connection: Any, paths: Sequence[str]) -> Any:
    # Pattern characters in a name are literal; folders named year=2024 do not become columns.
    return connection.read_parquet([glob.escape(path) for path in paths], hive_partitioning=False)


def parquet_source(path: Path, columns: Sequence[str], unit: Unit | None) -> Source:
    """Group the files of a path by their layout."""
    files = _files(path) if path.is_dir() else [path]
    if not path.exists() or not files:
        raise FileNotFoundError(f"{path}: the file does not exist, or the folder contains no .parquet file.")
    try:
        import duckdb
    except ImportError:
        raise ImportError("Parquet files are read by DuckDB: run `pip install 'pgmpy-dp[duckdb]'`.") from None
    results: dict[Layout, list[str]] = {}
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")  # days of times do not depend on where this runs
    for file in files:
        results.setdefault(_layout(connection, file), []).append(str(file))
    parts = []
    for layout, paths in results.items():
        positions = dict(zip(columns, require_columns([name for name, *_ in layout], columns), strict=True))
        for column, position in positions.items():
            if layout[position][1]:
                raise SchemaError(
                    f"{paths[0]}: the column {column!r} has times that DuckDB converts, and where it cannot, nothing "
                    "is read: write the file again with dates, or times of microseconds, such as by "
                    "pyarrow.parquet.write_table(..., coerce_timestamps='us')."
                )
        kinds = {column: layout[position][2] for column, position in positions.items()}
        types = {v: str(kind) if duckdb_kind(kind) == "decimal" else duckdb_kind(kind) for v, kind in kinds.items()}
        zones = {column: layout[position][3] for column, position in positions.items()}
        for column, zone in zones.items():
            _require_known(zone, paths[0], column)
        parts.append(Part(tuple(paths), positions, types, zones))
    _require_alike(path, parts, columns, unit)
    return partial(_total, connection, parts, unit)


def parquet_table(path: Path, columns: Sequence[str] | None = None) -> Any:
    """Read one file into memory as a PyArrow table; pandas would make integers floats where one is missing."""
    if path.is_dir():
        raise ValueError(f"{path}: a folder cannot be read into memory: give one .csv or .parquet file.")
    from pyarrow import parquet

    def read() -> Any:
        file = parquet.ParquetFile(path)
        table, written = file.read(columns=columns), (file.metadata.metadata or {}).get(_ARROW.encode())
        zones = _zones(written, [field.name for field in table.schema if getattr(field.type, "tz", None)])
        return _in_zones(table, map(zones.get, table.column_names))

    return sealed(read, str(path))


def _files(folder: Path) -> list[Path]:
    """List the Parquet files of a folder; refuse those that other programs skip, or that are listed twice."""
    files = sorted(folder.glob("*.parquet"))
    known: dict[tuple[int, int], Path] = {}
    for file in files:
        if file.name.startswith((".", "_")):
            raise SchemaError(
                f"{folder}: {file.name} is hidden, and most programs skip such files: delete or move it, or "
                "rename it if its records should be counted."
            )
        result = file.stat()
        other = known.setdefault((result.st_dev, result.st_ino), file)
        if other is not file:
            raise SchemaError(
                f"{folder}: {other.name} and {file.name} are the same file, whose records would be counted twice: "
                "delete one of the links."
            )
    return files


def _require_known(zone: str | None, path: str, column: str) -> None:
    """Refuse a time zone of which no day is known, even where there is no record."""
    try:
        local_seconds(np.zeros(0, dtype="datetime64[s]"), zone)
    except Exception:
        problem = f"{path}: the column {column!r} has times in a zone that is not known here"
    else:
        return
    raise SchemaError(f"{problem}: write the file again with dates, or with times in another zone.")


def _layout(connection: Any, file: Path) -> Layout:
    """Return the name, type and time zone of each column, and whether DuckDB converts times in it to its own units."""

    def read() -> Layout:
        query = "SELECT name, type, logical_type, coalesce(num_children, 0) FROM parquet_schema(?)"
        elements = iter(connection.execute(query, [glob.escape(str(file))]).fetchall()[1:])  # without the root
        kinds = _scan(connection, [str(file)]).types  # the relation's own names are not always the file's
        columns = [(*_column(elements), kind) for kind in kinds]
        query = f"SELECT value FROM parquet_kv_metadata(?) WHERE key = '{_ARROW}'"
        written = connection.execute(query, [glob.escape(str(file))]).fetchone()
        zones = _zones(written and written[0], [name for name, _, kind in columns if duckdb_kind(kind) in DUCKDB_ZONED])
        return tuple((*column, zones.get(column[0])) for column in columns)

    return sealed(read, str(file))


def _zones(written: bytes | None, columns: Sequence[str]) -> dict[str, str]:
    """Return the time zones of columns of times in UTC, which writers state in a schema of Arrow's, or else UTC."""
    if written is None or not columns:
        return dict.fromkeys(columns, "UTC")
    try:
        fields = pyarrow.ipc.read_schema(pyarrow.py_buffer(base64.b64decode(written)))
    except NotImplementedError:  # a schema with types that PyArrow lacks, such as integers of 128 bits
        return dict.fromkeys(columns, "unknown")
    types = {field.name: getattr(field.type, "value_type", field.type) for field in fields}  # of dictionaries, too
    return {column: getattr(types.get(column), "tz", None) or "UTC" for column in columns}


def _column(elements: Iterator[tuple[str, str, str, int]]) -> tuple[str, bool]:
    """Return the name of the next column, skipping the columns nested in it, and whether it is converted."""
    name, physical, logical, children = next(elements)
    nested = [_column(elements)[1] for _ in range(children)]
    times = physical == "INT96" or "MILLIS=Milli" in str(logical) or str(logical).startswith("TimeType")
    return name, times or any(nested)


def _require_alike(path: Path, parts: Sequence[Part], columns: Sequence[str], unit: Unit | None) -> None:
    for column in columns:
        families = {DUCKDB_FAMILIES.get(part.kind(column), part.types[column]) for part in parts} - {"nothing"}
        whose = unit is not None and unit.column == column
        if len(families) > 1 or (whose and len({part.types[column] for part in parts}) > 1):
            raise SchemaError(
                f"{path}: the column {column!r} has a type in some of the files that does not match that in others: "
                "write the files again, with one type for each column."
            )
