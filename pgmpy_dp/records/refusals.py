"""The gate refuses records here, with messages that tell nothing private.

Messages name variables, files and the way out, which are public. They never hold a value, a line or a number of
records, and what other libraries say of records is kept back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.records.columns import Found
from pgmpy_dp.schema import Schema

Answer = TypeVar("Answer")


def sealed(read: Callable[[], Answer], source: str) -> Answer:
    """Run code that reads records with other libraries, and keep back what they say.

    Our own refusals pass, as do missing libraries, files and memory.
    """
    try:
        return read()
    except (SchemaError, MemoryError, ImportError, FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except Exception as error:
        problem = type(error).__name__
    # This is raised here and not above, so as not to carry the other error, which may quote values of records.
    raise SchemaError(
        f"Reading {source} failed ({problem}). The message is kept back, since it may show values of records: read it "
        "with its own library to see what is wrong."
    )


def require_columns(names: list[Any], variables: Iterable[str], what: str = "Variable") -> list[int]:
    """Find the places of the variables' columns; refuse records without exactly one for each."""
    asked = list(variables)
    for variable in asked:
        if names.count(variable) != 1:
            problem = "has no column in" if variable not in names else "is the name of more than one column of"
            raise SchemaError(
                f"{what} {variable!r} {problem} the records: they need exactly one for each variable. Names are "
                "compared letter by letter. In a .csv file commas part the columns, unless CsvFile(path, "
                "delimiter=...) says otherwise, and blanks after them count, unless CsvFile(path, strip=True) does."
            )
    return [names.index(variable) for variable in asked]


def require_declared(schema: Schema, found: Mapping[str, Found]) -> None:
    """Refuse cells that no state stands for, and name all variables that have such."""
    missing = [variable for variable, cells in found.items() if cells.missing]
    undeclared = [variable for variable, cells in found.items() if cells.undeclared]
    if missing:
        raise SchemaError(_missing(missing[0]) + _also(missing[1:], undeclared))
    if undeclared:
        raise SchemaError(_undeclared(schema, undeclared[0]) + _also([], undeclared[1:]))


def _missing(variable: str) -> str:
    return (
        f"Variable {variable!r} has missing values in the records. Either declare a state that stands "
        f"for them, Schema(..., missing={{{variable!r}: 'unknown'}}), at the command line --missing "
        f"{variable}=unknown, or fill or drop them before."
    )


def _undeclared(schema: Schema, variable: str) -> str:
    way_out = (
        f"or declare a state that stands for them, Schema(..., other={{{variable!r}: 'other'}}), at the command line "
        f"--other {variable}=other."
    )
    said = f"Variable {variable!r} has values in the records that are not among its declared states."
    if variable in schema.bins:
        edges = schema.bins[variable].edges
        return (
            f"{said} Its bins hold numbers from {edges[0]:g} to {edges[-1]:g}, and texts in a column of a frame are "
            f"none: widen the edges (inf is one), correct the records, {way_out}"
        )
    return (
        f"{said} Values must agree in kind as well ('1' is not 1, True is not 1), and blanks at the ends of texts "
        f"count: correct the records or the declaration, {way_out}"
    )


def _also(missing: list[str], undeclared: list[str]) -> str:
    others = [
        f"{', '.join(map(repr, variables))} in {role}="
        for role, variables in (("missing", missing), ("other", undeclared))
        if variables
    ]
    return f" The same goes for {' and '.join(others)}." if others else ""
