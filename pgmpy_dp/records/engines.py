"""Sources whose records an engine delivers in batches: DuckDB, lazy Polars frames, Dask and Spark.

Columns are identified by their places. If a column's type, such as lists, cannot be that of a state or bin, an engine
reports only which cells are empty: values that Python cannot hold are never converted. Texts are delivered unchanged,
whatever collation an engine compares them by. Times are too, in the time zone of their column, or of the session where
an engine has no other: in DuckDB and Spark.
"""

from __future__ import annotations

import json
import pickle
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import add, iadd
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
from numpy.typing import NDArray

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.records.columns import objects
from pgmpy_dp.records.streams import BATCH_ROWS, Counted, Source, Tally, sum_of_batches
from pgmpy_dp.records.units import Unit, no_ids, number_ids, ranks_of

_INTEGERS = ["tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint"]
DUCKDB_ZONED = ["timestamp with time zone", "timestamptz_ns"]
"""Types of times that DuckDB shows in the time zone of its session."""

_TIMES = ["date", "timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", *DUCKDB_ZONED]
_LONG = ["hugeint", "uhugeint", "bignum", "varint"]  # Arrow does not have these numbers
_NESTED = ["list", "array", "struct", "map", "union", "variant"]
_ZONED = ("TIME ZONE", "TIMESTAMPTZ", "INTERVAL")
# Types that DuckDB converts as it reads them, or whose time zone it drops, by operators of its plans.
_CONVERTED = {"PYTHON_ARROW_SCAN": _ZONED, "PANDAS_SCAN": _ZONED, "PARQUET_SCAN": ("TIMESTAMP", *_ZONED)}
_MAX_DIGITS = 400  # of integers, beyond what floats hold; Python converts no text of thousands

DUCKDB_FAMILIES = {
    **dict.fromkeys([*_INTEGERS, *_LONG, "float", "double", "decimal"], "numbers"),
    **dict.fromkeys(["varchar", "enum"], "texts"),
    **dict.fromkeys(_TIMES, "dates"),
    "boolean": "booleans",
    "null": "nothing",
}
"""Types of DuckDB that are encoded alike; for all others only whether a cell is empty is read."""


def _total_of_duckdb(frame: Any, unit: Unit | None, places: dict[str, int], tally: Tally, rows: int | None) -> Counted:
    """Count a relation of DuckDB."""
    _refuse_converted(frame, places)
    types = [duckdb_kind(kind) for kind in frame.types]
    positions = [places[column] for column in tally.columns]
    columns = [f"{duckdb_cell(position, types[position])} AS c{i}" for i, position in enumerate(positions)]
    if unit is not None:
        position = places[unit.column]
        columns += [f"{duckdb_id(position, types[position], unit)} AS u", f"{duckdb_key(unit)} AS k"]
    relation = frame.project(", ".join(columns))
    return sum_of_batches(duckdb_batches(relation, [types[p] for p in positions], unit), tally, rows)


def _refuse_converted(relation: Any, places: dict[str, int]) -> None:
    """Refuse times that DuckDB converts from frames and files: one that it cannot convert would stop the whole read."""
    for column, position in places.items():
        kind = str(relation.types[position])
        if "TIME" not in kind and "INTERVAL" not in kind:
            continue
        try:
            plan = json.loads(relation.project(f"#{position + 1}").explain(format="json"))
            converted = any(word in kind for step in _operators(plan) for word in _CONVERTED.get(step, ()))
        except Exception:  # DuckDB converts the least and the largest time of a file to plan
            converted = True
        if converted:
            raise SchemaError(
                f"The column {column!r} of the relation has times that DuckDB converts from a frame or a Parquet file, "
                "without their time zone, and where it cannot, nothing is read: pass the frame or the path itself, or "
                "a relation over a table of DuckDB."
            )


def _operators(plan: list[dict[str, Any]]) -> Iterator[str]:
    for step in plan:
        yield step["name"]
        yield from _operators(step["children"])


def duckdb_kind(kind: Any) -> str:
    """Return the name of a DuckDB type without its parameters."""
    return str(kind.id).lower()


def duckdb_cell(place: int, kind: str) -> str:
    """Write the expression for the cells of a column as DuckDB delivers them, by the column's place."""
    column = f"#{place + 1}"
    family = DUCKDB_FAMILIES.get(kind)
    if family == "texts" or kind in _LONG:
        return f"CAST({column} AS VARCHAR)"
    if family in ("numbers", "booleans", "dates"):
        return column
    return f"CASE WHEN {column} IS NULL THEN NULL ELSE ''::BLOB END"


def duckdb_id(place: int, kind: str, unit: Unit) -> str:
    """Write the expression for an id, which is NULL where it is missing; texts are compared letter by letter."""
    column = f"#{place + 1}"
    if kind in ("float", "double"):
        return f"CASE WHEN isnan({column}) THEN NULL ELSE {column} END"
    if kind in _NESTED:
        raise no_ids(unit.column)
    return f"encode(CAST({column} AS VARCHAR))" if DUCKDB_FAMILIES.get(kind) == "texts" else column


def duckdb_key(unit: Unit) -> str:
    """Write the key that orders a unit's rows at random if rows are sampled: hashes of a secret and row numbers."""
    if unit.max_rows is None:
        return "0"
    return f"sha256('{unit.keys(4).tobytes().hex()}' || CAST(row_number() OVER () AS VARCHAR))"


def duckdb_batches(relation: Any, kinds: Sequence[str], unit: Unit | None) -> Iterator[Any]:
    """Yield Arrow tables of a relation with the columns c0, c1, ..., and with a unit its ids u and random keys k."""
    names = [f"c{i}" for i in range(len(kinds))]
    if unit is not None:
        of_unit = "count(*) OVER (PARTITION BY u), row_number() OVER (PARTITION BY u ORDER BY k), u IS NULL"
        relation = relation.project(f"{', '.join(names)}, {of_unit}")
    long = [position for position, kind in enumerate(kinds) if kind in _LONG]
    for batch in relation.to_arrow_reader(BATCH_ROWS):
        table = pyarrow.Table.from_batches([batch])
        yield _with_integers(table, long) if long else table


def _with_integers(table: Any, places: Sequence[int]) -> pd.DataFrame:
    """Restore the 128-bit integers of a batch, which were delivered as texts."""
    columns = {}
    for position, column in enumerate(table.columns):
        if position in places:
            texts = column.to_pylist()
            values = [t if t is None else int(t) if len(t) <= _MAX_DIGITS else float(t) for t in texts]
            columns[position] = pd.Series(values, dtype=object)
        else:
            columns[position] = pd.Series(pd.arrays.ArrowExtensionArray(column))
    return pd.DataFrame(columns)


def _total_of_polars(frame: Any, unit: Unit | None, places: dict[str, int], tally: Tally, rows: int | None) -> Counted:
    """Count a lazy frame of Polars."""
    import polars

    kinds = frame.collect_schema().dtypes()
    positions = [places[column] for column in tally.columns]
    columns = [_polars_cell(position, kinds[position]).alias(f"c{i}") for i, position in enumerate(positions)]
    if unit is None:
        batches = frame.select(columns)
    else:
        position = places[unit.column]
        kind, ids = kinds[position], polars.nth(position)
        if kind in (polars.Categorical, polars.Enum):
            ids = ids.cast(polars.String)
        elif kind.is_float():
            ids = ids.fill_nan(None)
        keys = ids.map_batches(
            lambda column: polars.Series(unit.keys(len(column))), return_dtype=polars.UInt64, is_elementwise=True
        )
        batches = frame.select([*columns, ids.alias("u"), keys.alias("k")]).select(
            polars.exclude("u", "k"),
            polars.len().over("u").alias("n"),
            polars.col("k").rank("ordinal").over("u").alias("r"),
            polars.col("u").is_null().alias("nobody"),
        )
    return sum_of_batches(
        batches.collect_batches(chunk_size=BATCH_ROWS, maintain_order=False, engine="streaming"), tally, rows
    )


def _polars_cell(place: int, kind: Any) -> Any:
    import polars

    column = polars.nth(place)
    if kind.is_numeric() or kind in (polars.Boolean, polars.String, polars.Date, polars.Datetime):
        return column
    if kind == polars.Object:
        raise SchemaError("A column of Python objects cannot be streamed: convert it to text, numbers or booleans.")
    if kind in (polars.Categorical, polars.Enum):
        return column.cast(polars.String)
    return polars.when(column.is_null()).then(None).otherwise(polars.lit(b""))


def _total_of_dask(frame: Any, unit: Unit | None, places: dict[str, int], tally: Tally, rows: int | None) -> Counted:
    """Count a frame of Dask, whose partitions are counted where they are.

    A frame states a type for each column, but its partitions may deviate: one record may have changed the type of a
    partition's other values. Such a partition is refused. To bring rows of a unit together, they are moved as an id and
    positions of states, since what Dask does to values on the way may depend on those of other rows.
    """
    import dask
    from tqdm.dask import TqdmCallback

    columns = [*tally.columns, *([unit.column] if unit else [])]
    native = frame.iloc[:, [places[column] for column in columns]]
    stated = _Stated(tuple(columns), native._meta)
    parts = native.map_partitions(stated, meta=stated(native._meta))
    if unit is None:
        totals = [dask.delayed(tally)(part) for part in parts.to_delayed()]
    else:
        dtype = stated.meta.dtypes.iloc[-1]
        # Rows are grouped by the text of an id; ids of other types may be equal without having equal texts.
        if not (pd.api.types.is_integer_dtype(dtype) or isinstance(dtype, pd.StringDtype)):
            raise SchemaError(
                f"The column {unit.column!r} of units must hold integers or texts in a Dask frame: convert it "
                "with astype."
            )
        cells = parts.map_partitions(_read_cells, tally, meta=_read_cells(parts._meta, tally))
        together = cells.shuffle(on="place").to_delayed()
        totals = [dask.delayed(partial(_count_cells, tally, unit))(part) for part in together]
    while len(totals) > 1:  # in pairs, so that few tables are held at a time
        totals = [dask.delayed(reduce)(add, totals[i : i + 2]) for i in range(0, len(totals), 2)]
    with TqdmCallback(desc="Counting", unit="task", delay=1, leave=False, disable=None):
        counted: Counted = dask.compute(*totals)[0]
    return counted


@dataclass(frozen=True, eq=False)
class _Stated:
    """Require the types that a Dask frame states of each partition, and name its columns by their places."""

    columns: tuple[str, ...]
    meta: pd.DataFrame

    def __call__(self, part: pd.DataFrame) -> pd.DataFrame:
        for position, column in enumerate(self.columns):
            if len(part) and not _is_stated(part.iloc[:, position], self.meta.iloc[:, position]):
                raise SchemaError(
                    f"Partitions of the Dask frame hold the column {column!r} in another type than the frame states, "
                    "or in categories that are neither stated nor texts: convert it with astype."
                )
        return part.set_axis([f"c{i}" for i in range(part.shape[1])], axis=1)


def _is_stated(column: pd.Series[Any], meta: pd.Series[Any]) -> bool:
    from dask.dataframe.utils import has_known_categories

    categories = isinstance(column.dtype, pd.CategoricalDtype) and isinstance(meta.dtype, pd.CategoricalDtype)
    if categories and not has_known_categories(meta):
        known = column.cat.categories
        plain = known.dtype == object and all(type(value) is str for value in known)
        return plain or isinstance(known.dtype, pd.StringDtype)
    return bool(column.dtype == meta.dtype)


def _read_cells(part: pd.DataFrame, tally: Tally) -> pd.DataFrame:
    """Replace the cells of a partition by the positions that a tally reads; assign each row a place by its id alone."""
    ids = part.iloc[:, -1].reset_index(drop=True)
    cells = {  # states are texts of one type, which survive any transport
        f"c{i}": column if column.dtype != object else pd.array(list(map(json.dumps, column)), dtype="string")
        for i, column in enumerate(tally.read(part))
    }
    return pd.DataFrame(cells).assign(u=ids, place=_places(ids))


def _places(ids: pd.Series[Any]) -> NDArray[np.int64]:
    """Give rows with equal ids equal numbers. Hash tables of other libraries may confuse ids, depending on the rest."""
    if isinstance(ids.dtype, np.dtype):
        return (np.asarray(ids).astype(np.uint64) % 2**32).astype(np.int64)
    written = (str(value).encode("utf-8", "surrogatepass") for value in ids.astype(object))
    return np.fromiter(map(zlib.crc32, written), dtype=np.int64, count=len(ids))


def _count_cells(tally: Tally, unit: Unit, part: pd.DataFrame) -> Any:
    """Count the cells of all rows of some units."""
    *columns, ids, _ = (part.iloc[:, position] for position in range(part.shape[1]))
    labels = number_ids(unit.column, ids) + 1
    bounds = [np.bincount(labels)[labels], ranks_of(labels, unit), (labels == 0).astype(np.int64)]
    cells = [
        column.to_numpy() if isinstance(column.dtype, np.dtype) else objects(list(map(json.loads, column)))
        for column in columns
    ]
    return tally.count(cells, bounds)


def _total_of_spark(frame: Any, unit: Unit | None, places: dict[str, int], tally: Tally, rows: int | None) -> Counted:
    """Count a frame of Spark, whose partitions Python counts where they are."""
    from pyspark.sql import Window, functions, types

    kinds = [field.dataType for field in frame.schema.fields]
    frame = frame.toDF(*(f"c{i}" for i in range(len(kinds))))
    columns = [_spark_cell(places[v], kinds[places[v]]) for v in tally.columns]
    if unit is not None:
        position = places[unit.column]
        kind, ids, keys = kinds[position], functions.col(f"c{position}"), functions.lit(0)
        if isinstance(kind, (types.FloatType, types.DoubleType)):
            ids = functions.when(functions.isnan(ids), None).otherwise(ids)
        elif isinstance(kind, types.StringType):
            ids = ids.cast("binary")
        if unit.max_rows is not None:
            secret = functions.lit(unit.keys(4).tobytes().hex())
            number = functions.monotonically_increasing_id().cast("string")
            keys = functions.sha2(functions.concat(secret, number), 256)
        frame = frame.select(*columns, ids.alias("u"), keys.alias("k"))
        of_unit = Window.partitionBy("u")
        columns = [
            *frame.columns[:-2],
            functions.count(functions.lit(1)).over(of_unit).alias("n"),
            functions.row_number().over(of_unit.orderBy("k")).alias("r"),
            functions.col("u").isNull().alias("nobody"),
        ]
    totals = frame.select(*columns).mapInArrow(partial(_part_tally, tally), "part binary").toLocalIterator()
    return reduce(iadd, (pickle.loads(row[0]) for row in totals), tally.empty())


def _part_tally(tally: Tally, batches: Iterator[Any]) -> Iterator[Any]:
    """Tally the batches of a partition into one row."""
    total = reduce(iadd, (tally(pyarrow.Table.from_batches([batch])) for batch in batches), tally.empty())
    yield pyarrow.record_batch([pyarrow.array([pickle.dumps(total)], pyarrow.binary())], names=["part"])


def _spark_cell(place: int, kind: Any) -> Any:
    from pyspark.sql import functions, types

    column = functions.col(f"c{place}")
    times = types.DateType, types.TimestampType, types.TimestampNTZType
    if isinstance(kind, (types.NumericType, types.BooleanType, *times)):
        return column
    if isinstance(kind, types.StringType):
        return column.cast("string")
    return functions.when(column.isNull(), None).otherwise(functions.lit(bytearray(b"")))


def _require_workers(session: Any) -> None:
    """Raise if Spark's workers cannot count; tested by a job that sees no record."""
    from pyspark.sql import functions

    def lacking(_: int) -> str:  # Spark sends its code, so that workers without this package can run it
        import importlib
        import sys

        try:
            for name in ("pyarrow", "pgmpy_dp.records.engines"):
                importlib.import_module(name)
        except ImportError as error:
            return f"run {sys.executable}, which cannot import {error.name}"
        return ""

    try:
        ((problem,),) = session.range(1).select(functions.udf(lacking, "string", useArrow=False)("id")).collect()
    except Exception:
        problem = f"could not run Python {sys.version_info.major}.{sys.version_info.minor}, as this process does"
    if problem:
        raise SchemaError(
            f"Spark's workers {problem}. They need a Python of the same version as this one that has pgmpy_dp and "
            f"PyArrow: set the environment variable PYSPARK_PYTHON to its path, here {sys.executable}, before the "
            "session starts."
        )


def lazy_source(records: Any, unit: Unit | None) -> tuple[list[Any], Callable[[dict[str, int]], Source]] | None:
    """Return the columns of a lazy frame and a function from their places to its source; None for other objects."""
    import narwhals.dependencies as known

    if known.is_polars_lazyframe(records):
        names, total = records.collect_schema().names(), _total_of_polars
    elif known.is_duckdb_relation(records):
        names, total = records.columns, _total_of_duckdb
    elif known.is_dask_dataframe(records):
        names, total = list(records.columns), _total_of_dask
    elif known.is_pyspark_dataframe(records) or known.is_pyspark_connect_dataframe(records):
        _require_workers(records.sparkSession)
        names, total = records.columns, _total_of_spark
    else:
        return None
    return names, lambda places: partial(total, records, unit, places)
