"""Refusals of records, with messages that reveal nothing private.

Messages name variables, files and the way out, which are public. They never show a value, a line or a number of
records, and messages of other libraries about records are suppressed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.records.csv_decoding import CsvFile
from pgmpy_dp.schema import CsvFormat, DateBins, Schema

Answer = TypeVar("Answer")


class ColumnError(SchemaError):
    """Records have no column, or several columns, of a name."""

    def __init__(self, column: str, problem: str, what: str = "Variable") -> None:
        super().__init__(column, problem, what)
        self.column, self.problem, self.what = column, problem, what

    def __str__(self) -> str:
        return f"{self.what} {self.column!r} {self.problem}"


def sealed(read: Callable[[], Answer], source: str) -> Answer:
    """Run code that reads records with other libraries, and suppress their error messages.

    Our own refusals are raised unchanged, as are errors of missing libraries, files and memory.
    """
    try:
        return read()
    except (SchemaError, MemoryError, ImportError, FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except Exception as error:
        problem = type(error).__name__
    # Raised outside of the handler, so that it does not carry the other error, which may quote values of records.
    raise SchemaError(
        f"Reading {source} failed ({problem}). The message is suppressed, since it may show values of records: read it "
        "with its own library to see what is wrong."
    )


def unknown_ending(path: Path, read: str) -> ValueError:
    """Refuse a file with an unsupported ending; `read` is the text that names the supported ones."""
    return ValueError(f"{path}: {read}: read others into a frame.")


def require_columns(
    names: list[Any],
    variables: Iterable[str],
    what: str = "Variable",
    advice: str = "rename the column, or declare the name it has",
) -> list[int]:
    """Return the places of the variables' columns; refuse records without exactly one for each.

    Other names of columns are not shown: they are values of a record where a file without a header was read. Nor is it
    revealed that a record resembles some names: a name is said to differ in case or blanks only if all variables have a
    name, as in a header. `advice` says what helps if a column is missing.
    """
    asked = list(variables)
    for variable in asked:
        if names.count(variable) > 1:
            twice = "is the name of more than one column of the records: rename or drop the others."
            raise ColumnError(variable, twice, what)
        if variable not in names:
            near = {*map(_folded, asked)} <= {_folded(name) for name in names if isinstance(name, str)}
            is_near = ". One has this name in another case or with blanks beside it" if near else ""
            raise ColumnError(variable, f"has no column in the records{is_near}: {advice}.", what)
    return [names.index(variable) for variable in asked]


def _folded(name: str) -> str:
    return name.strip().casefold()


def require_declared(schema: Schema, lacking: Mapping[str, Sequence[bool]], file: CsvFile | None = None) -> None:
    """Refuse cells without a state; `lacking` says of each variable if it has missing and if it has undeclared ones.

    All such variables are named. Hints at the format of a .csv file go by that of `file`, or else by the schema's.
    """
    missing, undeclared = ([variable for variable, cells in lacking.items() if cells[role]] for role in range(2))
    if not missing and not undeclared:
        return
    variable = (missing or undeclared)[0]
    if missing:
        problem, correct = f"Variable {variable!r} has missing values in the records", "fill or drop them"
    else:
        problem, correct = _undeclared(schema, variable, file or schema.csv)
    role, state = ("missing", "unknown") if missing else ("other", "other")
    others = [
        f"{noun} of {', '.join(map(repr, names))}"
        for noun, names in (
            ("missing values", missing[1:]),
            ("undeclared values", undeclared if missing else undeclared[1:]),
        )
        if names
    ]
    also = f". The same goes for {' and '.join(others)}" if others else ""
    declare = f"{correct}, or declare a state for them, "
    raise SchemaError(f"{problem}: {declare}Schema(..., {role}={{{variable!r}: {state!r}}}){also}.")


def _undeclared(schema: Schema, variable: str, declared: CsvFile | CsvFormat) -> tuple[str, str]:
    """Say what values of a variable may be, and how to correct them."""
    problem = f"Variable {variable!r} has values in the records that are not among its declared states."
    if variable in schema.bins:
        bins = schema.bins[variable]
        ends = f"from {bins.written(bins.edges[0], 6)} to {bins.written(bins.edges[-1], 6)}"
        ends = (
            f"{bins.kind}s {ends}, as texts in {'ISO' if bins.format is None else bins.format}"
            if isinstance(bins, DateBins)
            else f"numbers {ends}, and no texts of a frame's column"
        )
        return (
            f"{problem} Its bins hold {ends}{_written(schema, variable, declared)}",
            "widen the edges (inf is one), list texts of missing values in missing_values, correct the records",
        )
    return (
        f"{problem} Types must agree ('1' is not 1, True is not 1; a data dictionary declares numbers by type=number), "
        f"and blanks at the ends of texts count{_written(schema, variable, declared)}",
        "correct the records or the declaration",
    )


def _written(schema: Schema, variable: str, declared: CsvFile | CsvFormat) -> str:
    """Name possible causes in a file's format, from the declared states alone; no record is read."""
    numbers = any(type(state) is float for state in schema.states[variable])
    if variable in schema.bins:
        numbers = not isinstance(schema.bins[variable], DateBins)
    foreign = any(isinstance(state, str) and not state.isascii() for state in schema.states[variable])
    causes = [
        *(["decimal commas (decimal=',')"] if numbers and declared.decimal == "." else []),
        *([f"another encoding than {declared.encoding}"] if foreign else []),
    ]
    return f". In a .csv file the cause may be {' or '.join(causes)}, to be declared in its format" if causes else ""
