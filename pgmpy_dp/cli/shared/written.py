"""Synthetic records are written to files, with formulas escaped for spreadsheets."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pgmpy_dp.schema import Schema

RECORDS = (".csv", ".parquet")
_RUN = ("=", "+", "-", "@", "\t", "\r")


def write_records(records: Any, out: Path, schema: Schema, spreadsheet: bool = False) -> list[str]:
    """Write a frame as CSV or Parquet, with categories as plain columns of states, and return cautions."""
    if out.suffix.lower() == ".csv":
        to_csv(records, out, schema, spreadsheet)
        return _cautions(records) if not spreadsheet else []
    import pandas as pd

    kinds = {v: c.cat.categories.dtype for v, c in records.items() if isinstance(c.dtype, pd.CategoricalDtype)}
    records.astype(kinds).to_parquet(out, index=False)
    return []


def columns_of_files(records: Any, schema: Schema) -> Any:
    """Drop coarser variables of hierarchies that files do not have as columns."""
    from pgmpy_dp.schema import Hierarchy

    coarser = [rule for rule in schema.rules if isinstance(rule, Hierarchy) and not rule.column]
    return records.drop(columns=[rule.coarser for rule in coarser if {*rule.variables} <= {*records}])


def to_csv(records: Any, out: Path | None, schema: Schema, spreadsheet: bool) -> str | None:
    """Write a frame in the format of the records' file; without a file, return the text."""
    import pandas as pd

    records = records.assign(**_dates(records, schema), **_decimals(records, schema))
    records = _with_missing_values(records, schema)
    if schema.csv.decimal != ".":  # pandas writes the mark of columns of floats alone
        for variable, column in records.items():
            if isinstance(column.dtype, pd.CategoricalDtype):
                marked = {str(n): str(n).replace(".", ",") for n in schema.states[variable] if isinstance(n, float)}
                records[variable] = column.cat.rename_categories([marked.get(str(n), n) for n in column.cat.categories])
    if spreadsheet:
        records = records.rename(columns=guarded)
        for variable, column in records.items():
            if isinstance(column.dtype, pd.CategoricalDtype):
                records[variable] = column.cat.rename_categories(list(map(guarded, column.cat.categories)))
            elif column.dtype.kind not in "biufM":
                records[variable] = column.map(guarded)
    # Before Python 3.13 a lone carriage return is not quoted, and such a file could not be read again.
    texts = [str(text) for name in records for text in (name, *getattr(records[name].dtype, "categories", ()))]
    quoting = csv.QUOTE_NONNUMERIC if any("\r" in text for text in texts) else csv.QUOTE_MINIMAL
    text: str | None = records.to_csv(
        out,
        index=False,
        sep=schema.csv.delimiter,
        encoding=schema.csv.encoding,
        quoting=quoting,
        decimal=schema.csv.decimal,
    )
    return text


def _dates(records: Any, schema: Schema) -> dict[str, Any]:
    """Write the dates of variables with a format of their own in it."""
    import pandas as pd

    from pgmpy_dp.schema import DateBins

    results = {}
    for variable, bins in schema.bins.items():
        if not isinstance(bins, DateBins) or bins.format is None or variable not in records:
            continue
        if records[variable].dtype.kind == "M":
            numbers = records[variable].dropna().to_numpy().astype("datetime64[s]").astype(int) // bins.unit
            texts = {number: bins.written(number) for number in set(numbers.tolist())}
            results[variable] = pd.Series(None, index=records.index, dtype=object)
            results[variable][records[variable].notna()] = [texts[number] for number in numbers.tolist()]
    return results


def _decimals(records: Any, schema: Schema) -> dict[str, Any]:
    """Write the numbers of variables with declared decimals in all of these, as in 1353.10."""
    results = {}
    for variable, bins in schema.bins.items():
        if bins.decimals and variable in records and records[variable].dtype.kind == "f":
            column, decimals, mark = records[variable], bins.decimals, schema.csv.decimal
            texts = [f"{number:.{decimals}f}".replace(".", mark) for number in column]
            results[variable] = column.astype(object).where(column.isna(), texts)
    return results


def _with_missing_values(records: Any, schema: Schema) -> Any:
    """Replace the state for missing values by the first of the variable's `missing_values`; blank in numbers."""
    import pandas as pd

    columns = {}
    for variable, stand_in in schema.missing.items():
        blank = variable in schema.bins or _of_numbers(schema, variable, stand_in)
        text = str(schema.missing_values.get(variable, ("" if blank else stand_in,))[0])
        if variable in records:
            column = records[variable]
            if hasattr(column, "cat"):
                names = {own: text for own in column.cat.categories if str(own) == str(stand_in)}
                columns[variable] = column.cat.rename_categories(names)
            elif text:
                mark = schema.csv.decimal if pd.api.types.is_float_dtype(column.dtype) else "."
                numbers = column.astype(str).str.replace(".", mark, regex=False)
                columns[variable] = numbers.where(column.notna(), text)
    return records.assign(**columns)


def _of_numbers(schema: Schema, variable: str, stand_in: Any) -> bool:
    """Whether all states of a variable are or write numbers, or write dates, apart from the one for missing values."""
    from pgmpy_dp.schema.date_bins import iso_day

    others = [state for state in schema.states[variable] if state != stand_in or type(state) is not type(stand_in)]
    dates = all(isinstance(state, str) and iso_day(state) is not None for state in others)
    numbers = all(type(state) in (int, float) or _writes_number(state) for state in others)
    return isinstance(stand_in, str) and (dates or numbers)


def _writes_number(state: Any) -> bool:
    try:
        float(state)
    except ValueError:
        return False
    return isinstance(state, str)


def guarded(cell: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet would run, or that begins with an apostrophe."""
    return f"'{cell}" if isinstance(cell, str) and (cell.startswith("'") or _would_run(cell)) else cell


def _would_run(text: str) -> bool:
    return text.startswith(_RUN) and not _writes_number(text.replace(",", "."))


def _cautions(records: Any) -> list[str]:
    """Warn of the first variable with a state that a spreadsheet would run; states are public."""
    for variable, column in records.items():
        states = column.cat.categories if hasattr(column, "cat") else ()
        if _would_run(str(variable)) or any(isinstance(state, str) and _would_run(state) for state in states):
            return [
                f"Caution: variable {variable!r} has texts that a spreadsheet would run as formulas: add --spreadsheet "
                "before opening the records in one."
            ]
    return []
