"""The forms in which records come, and what they all can do: be counted.

Frames in memory are encoded once. Lazy, database and distributed frames stay where they are
(:mod:`pgmpy_dp.data.lazy`). Ready-made counts are summed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Protocol

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.data.counting import Codes, Counts, count, encode, id_column, margin, require_no_undeclared
from pgmpy_dp.data.csv_file import encode_csv
from pgmpy_dp.data.lazy import LazyRecords
from pgmpy_dp.data.sums import require_summable
from pgmpy_dp.data.units import Unit, labels_of, row_weights, sampled_rows
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.schema import Clique, Schema

# Times the 2**22 of a contrast, or the parts of a quantile, a sum of counts still fits 64 bits.
_MOST_COUNTED = 2**40


class Records(Protocol):
    """Checked records of any form."""

    @property
    def size(self) -> int:
        """Number of records, or of units."""

    def counts(self, cliques: Sequence[Clique]) -> dict[Clique, Counts]:
        """Number of records in each cell of each clique.

        Parameters
        ----------
        cliques : sequence of tuples of str
            As :meth:`Schema.require` returns them.

        Returns
        -------
        dict of clique to ndarray of int64
            Axes in clique order, states in schema order.
        """


@dataclass(frozen=True)
class EncodedRecords:
    """Records in memory, as positions of their states; with the weights of the rows where units have such."""

    codes: Mapping[str, Codes]
    schema: Schema
    size: int
    weights: NDArray[np.int64] | None = None

    @classmethod
    def bounded(
        cls, codes: Mapping[str, Codes], schema: Schema, labels: NDArray[np.int64] | None, unit: Unit | None
    ) -> EncodedRecords:
        """Records of units, sampled here and once, or weighted; without a unit, all of them."""
        if unit is None or labels is None:
            size = next((int(column.shape[0]) for column in codes.values()), 0)
            require_summable(size)
            return cls(codes, schema, size)
        size = int(labels.max(initial=-1)) + 1
        if unit.max_rows is None:
            return cls(codes, schema, size, row_weights(labels))
        chosen = sampled_rows(labels, unit)
        return cls({variable: column[chosen] for variable, column in codes.items()}, schema, size)

    def counts(self, cliques: Sequence[Clique]) -> dict[Clique, Counts]:
        """See :class:`Records`."""
        return {clique: count(self.codes, self.schema, clique, self.weights) for clique in cliques}


@dataclass(frozen=True)
class CountedRecords:
    """Tables that somebody else has counted."""

    tables: Mapping[Clique, Counts]
    size: int

    def counts(self, cliques: Sequence[Clique]) -> dict[Clique, Counts]:
        """See :class:`Records`; the cliques must be contained in counted ones."""
        return {clique: self._margin(clique) for clique in cliques}

    def _margin(self, clique: Clique) -> Counts:
        holding = [scope for scope in self.tables if set(clique) <= set(scope)]
        if not holding:
            counted = ", ".join(map(str, self.tables))
            raise SchemaError(f"No ready-made table holds clique {clique}: measure parts of {counted}.")
        scope = min(holding, key=lambda scope: self.tables[scope].size)
        return margin(self.tables[scope], scope, clique)


def open_records(records: Any, schema: Schema, variables: Iterable[str], unit: Unit | None = None) -> Records:
    """Check records of any form against the schema.

    Parameters
    ----------
    records : frame, array, path or mapping
        See :class:`~pgmpy_dp.data.PrivateDataset`.
    schema : Schema
    variables : iterable of str
        Those that will be counted.
    unit : Unit, optional
        Whose rows are whose, and what one of them may contribute. Records are units of their own without it.

    Raises
    ------
    TypeError
        If records are of no known form.
    ImportError
        If a path needs a library that is not installed.
    SchemaError
        If the records do not agree with the schema; the message names the variable.
    """
    asked = list(variables)
    if isinstance(records, Mapping):
        if unit is not None:
            raise ValueError("Ready-made counts do not tell whose rows they count: hand in the records, or no unit.")
        return _counted(records, schema)
    labels = None
    if isinstance(records, np.ndarray):
        codes = _array_codes(records, schema, asked)
        if unit is not None:
            if unit.column not in schema.states:
                raise SchemaError(f"An array has columns for the schema's variables only: {unit.column!r} is none.")
            labels = labels_of(records[:, schema.variables.index(unit.column)], unit)
        return EncodedRecords.bounded(codes, schema, labels, unit)
    if isinstance(records, (str, os.PathLike)):
        path = Path(records)
        name = path.name.lower()
        if name.endswith((".csv", ".csv.gz", ".csv.zst", ".csv.bz2", ".csv.xz")):
            codes, labels = encode_csv(path, schema, asked, unit)
            return EncodedRecords.bounded(codes, schema, labels, unit)
        if name.endswith((".parquet", ".pq")) or path.is_dir():
            return LazyRecords.open(_scan_parquet(path), schema, asked, unit)
        raise ValueError(f"{path}: records are read from .csv and .parquet files; hand others in as a frame.")
    try:
        frame = nw.from_native(records, pass_through=True)
    except nw.exceptions.DuplicateError:
        raise SchemaError("Two columns of the records have the same name: give each one of its own.") from None
    if isinstance(frame, nw.LazyFrame):
        return LazyRecords.open(frame, schema, asked, unit)
    codes = encode(records, schema, asked)
    if unit is not None:
        labels = labels_of(id_column(records, unit.column), unit)
    return EncodedRecords.bounded(codes, schema, labels, unit)


def _scan_parquet(path: Path) -> nw.LazyFrame[Any]:
    if not path.exists() or (path.is_dir() and not any(path.glob("*.parquet"))):
        raise FileNotFoundError(f"{path}: there is no such file, or no .parquet file in this folder.")
    for backend in ("duckdb", "polars"):  # DuckDB needs the least memory
        try:
            __import__(backend)
        except ImportError:
            continue
        source = str(path / "*.parquet") if path.is_dir() else str(path)
        return nw.scan_parquet(source, backend=backend)
    raise ImportError("Parquet files are read by DuckDB or Polars: run `pip install duckdb`.")


def _array_codes(array: NDArray[Any], schema: Schema, variables: list[str]) -> dict[str, Codes]:
    columns = len(schema.variables)
    if array.ndim != 2 or array.shape[1] != columns or array.dtype.kind not in "iu":
        raise TypeError(
            f"Records in an array are positions of states: integers, one column for each of the {columns} variables "
            f"of the schema, in its order. Got dtype {array.dtype} and {array.ndim} dimensions"
            f"{f' with {array.shape[1]} columns' if array.ndim == 2 else ''}."
        )
    codes = {}
    for variable in variables:
        column, states = array[:, schema.variables.index(variable)], schema.cardinality(variable)
        outside = (column < 0) | (column >= states)
        if outside.any():
            position = require_no_undeclared(schema, variable)
            column = np.where(outside, 0, column).astype(np.int64)  # a narrow type may not hold the position
            column[outside] = position
        codes[variable] = column.astype(np.min_scalar_type(states - 1))  # a copy
    return codes


def _counted(records: Mapping[Any, Any], schema: Schema) -> CountedRecords:
    if any(isinstance(clique, str) for clique in records):
        raise TypeError(
            "Ready-made counts map cliques, which are tuples of variables, to tables. For columns by name, make a "
            "pandas or polars DataFrame."
        )
    cliques = schema.require(list(records))
    tables = {}
    for clique, given in zip(cliques, records.values(), strict=True):
        table = np.asarray(given)
        if table.dtype.kind not in "iu" or table.shape != schema.shape(clique):
            raise SchemaError(
                f"The ready-made table of {clique} must hold whole numbers and have shape {schema.shape(clique)}, "
                f"got dtype {table.dtype} and shape {table.shape}."
            )
        if (table < 0).any() or table.sum(dtype=np.float64) > _MOST_COUNTED:
            raise SchemaError(f"The ready-made table of {clique} has counts that are negative or beyond 2**40 in all.")
        tables[clique] = np.array(table, dtype=np.int64, order="C")
    totals = {int(table.sum()) for table in tables.values()}
    if len(totals) > 1:
        raise SchemaError("The ready-made tables have different totals: they must count the same records.")
    for one, other in combinations(tables, 2):
        shared = tuple(variable for variable in one if variable in other)
        if shared and (margin(tables[one], one, shared) != margin(tables[other], other, shared)).any():
            raise SchemaError(
                f"The ready-made tables of {one} and {other} disagree about {shared}: they must count the same records."
            )
    return CountedRecords(tables, totals.pop())
