"""The gate: it opens records from any source as positions of the schema's states.

``encode(D) = concat(encode(r) for r in D)``: a source is split into records by a public grammar, a cell becomes a value
of one type, and a total function of the value and the schema gives its position. What one record holds never changes
how another is read. Every sensitivity argument of the mechanisms rests on that, and ``tests/audit/test_gate.py`` checks
it for all sources.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.records.columns import Codes, read_columns, with_derived
from pgmpy_dp.records.csv_decoding import CSV_ENDINGS, CsvFile, declared_file
from pgmpy_dp.records.engines import lazy_source
from pgmpy_dp.records.frames import column_at, column_names, encode, encode_with_values, id_column, is_frame
from pgmpy_dp.records.households import HouseholdRecords, HouseholdTables, joined
from pgmpy_dp.records.memory import CountedRecords, EncodedRecords, array_codes, counted_records
from pgmpy_dp.records.parquet import is_parquet, parquet_source, parquet_table
from pgmpy_dp.records.refusals import ColumnError, require_columns, sealed, unknown_ending
from pgmpy_dp.records.streams import StreamedRecords
from pgmpy_dp.records.units import Unit, labels_of
from pgmpy_dp.records.weights import Weights
from pgmpy_dp.schema import HouseholdSchema, Schema

Records = EncodedRecords | CountedRecords | HouseholdRecords | StreamedRecords
"""Records of any form that have been checked.

Their `counts` are in each cell of each clique, with axes in clique order and states in schema order; `under` another
schema they have groups of their states as further, coarser variables.
"""


def open_records(
    records: Any, schema: Schema, variables: Iterable[str], unit: Unit | None = None, weights: Weights | None = None
) -> Records:
    """Check records of any form against the schema; see :class:`~pgmpy_dp.data.PrivateDataset` for the forms."""
    try:
        return _opened(records, schema, list(variables), unit, weights)
    except ColumnError as error:
        refusal = error
    roles = {bound.column: name for name, bound in (("weights", weights), ("unit", unit)) if bound is not None}
    if refusal.column not in roles or refusal.column in schema.variables:
        raise SchemaError(str(refusal))
    raise SchemaError(f"{roles[refusal.column]} must name a column, and {refusal.column!r} {refusal.problem}")


def _opened(records: Any, schema: Schema, asked: list[str], unit: Unit | None, weights: Weights | None) -> Records:
    named = [bound.column for bound in (weights, unit) if bound is not None]
    columns = list(dict.fromkeys([*read_columns(schema, asked), *named]))
    if weights is not None and isinstance(records, (Mapping, np.ndarray)):
        raise ValueError("Weights are a column of records: arrays of positions and ready-made counts have none.")
    if isinstance(records, HouseholdTables):
        assert unit is not None
        homes = _table_of_households(records.schema, "households", records.households, records.schema.households)
        persons = _table_of_households(records.schema, "persons", records.persons, records.schema.persons)
        return joined(records.schema, homes, persons, unit)
    if isinstance(records, Mapping):
        if unit is not None:
            raise ValueError("Ready-made counts do not tell whose rows they count: pass the records, or no unit.")
        return counted_records(records, schema)
    if isinstance(records, np.ndarray):
        return _from_array(records, schema, asked, unit)
    if isinstance(records, (str, os.PathLike)):
        path = Path(records)
        if path.name.lower().endswith(CSV_ENDINGS):
            records = declared_file(path, schema)
        elif is_parquet(path):
            return StreamedRecords.open(parquet_source(path, columns, unit), schema, asked, unit, weights)
        else:
            raise unknown_ending(path, "records are read from .csv and .parquet files")
    if isinstance(records, CsvFile):
        from pgmpy_dp.records.csv_reading import encode_csv  # imports compiled code that other sources do not need

        column = None if unit is None else unit.column
        result = sealed(lambda: encode_csv(records, schema, asked, column, weights), str(records.path))
        return EncodedRecords.bounded(result.codes, schema, result.labels, unit, result.values, result.parts)
    lazy = sealed(lambda: lazy_source(records, unit), "the columns of the records")
    if lazy is not None:
        names, source = lazy
        positions = dict(zip(columns, require_columns(names, columns), strict=True))
        return StreamedRecords.open(source(positions), schema, asked, unit, weights)
    codes, values = encode_with_values(records, schema, asked)
    labels = None if unit is None else labels_of(id_column(records, unit.column), unit)
    parts = None
    if weights is not None:
        (position,) = require_columns(column_names(records), [weights.column], "The column of weights")
        weighed = f"the column {weights.column!r} of weights"
        parts = sealed(lambda: weights.parts(column_at(records, position)), weighed)
    return EncodedRecords.bounded(codes, schema, labels, unit, values, parts)


def read_table(records: Any, schema: Schema, key: str | None, what: str = "records") -> tuple[dict[str, Codes], Any]:
    """Encode one table in memory or in a file, record by record, and return the values of a column of keys, too."""
    if isinstance(records, (str, os.PathLike)):
        path = Path(records)
        if not is_parquet(path) and not path.name.lower().endswith(CSV_ENDINGS):
            raise unknown_ending(path, f"{what} are read from one .csv or .parquet file")
        wanted = [*read_columns(schema, schema.variables), *([] if key is None else [key])]
        records = parquet_table(path, wanted) if is_parquet(path) else declared_file(path, schema)
    if isinstance(records, CsvFile):
        from pgmpy_dp.records.csv_reading import encode_csv

        table = sealed(lambda: encode_csv(records, schema, schema.variables, key), str(records.path))
        return table.codes, table.keys
    if not is_frame(records):
        raise TypeError(
            f"The table of {what} must be a pandas, Polars or PyArrow frame, or the path of one .csv or .parquet "
            f"file, got {type(records).__name__}: collect a lazy frame first."
        )
    return encode(records, schema, schema.variables), None if key is None else id_column(records, key)


def _table_of_households(schema: HouseholdSchema, what: str, records: Any, own: Schema) -> tuple[dict[str, Codes], Any]:
    """Encode one of two tables, and name it if it lacks a column."""
    try:
        return read_table(records, own, schema.key, what)
    except ColumnError as error:
        refusal = error
    problem = refusal.problem.replace("the records", f"the table of {what}")
    if refusal.column == schema.key:
        raise SchemaError(f"key must name a column of both tables, and {schema.key!r} {problem}")
    raise SchemaError(
        f"Variable {refusal.column!r} {problem} Households come first and persons second: are the tables swapped, or "
        "their schemas?"
    )


def _from_array(array: np.ndarray[Any, Any], schema: Schema, asked: list[str], unit: Unit | None) -> EncodedRecords:
    asked = [variable for variable in asked if variable not in schema.details]  # positions of bins have no finer detail
    codes = with_derived(array_codes(array, schema, read_columns(schema, asked)), schema, asked)
    labels = None
    if unit is not None:
        if unit.column not in schema.states:
            raise SchemaError(f"An array has columns for the schema's variables only: {unit.column!r} is not one.")
        labels = labels_of(array[:, schema.variables.index(unit.column)], unit)
    return EncodedRecords.bounded(codes, schema, labels, unit)
