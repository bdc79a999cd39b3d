"""Data dictionaries and rules as people write them, in CSV: one row a variable, and one row a rule."""

from __future__ import annotations

import csv
import io
import itertools
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgmpy_dp._files import parse_json
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.schema.bins import Bins
from pgmpy_dp.schema.csv_format import CsvFormat, shortened
from pgmpy_dp.schema.date_bins import DATED, DateBins, iso, iso_day
from pgmpy_dp.schema.fields import declarations
from pgmpy_dp.schema.rules import Allowed, Dependency, Forbidden, Rule
from pgmpy_dp.schema.variable import Variable

if TYPE_CHECKING:
    from pgmpy_dp.schema.schema import Schema

DICTIONARY_COLUMNS = (
    "variable", "type", "states", "edges", "format", "labels", "decimals", "detail", "missing", "other",
    "missing_values",
)  # fmt: skip
_QUOTE = '"'
_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_TYPES = ("string", "integer", "number", "boolean", *DATED)
_RULES = ("forbidden", "allowed", "comparison", "dependent")
_NAMED = "types are string, integer, number, boolean, date and, in bins, datetime"


def read_dictionary(path: Path) -> tuple[list[Variable], list[Rule], CsvFormat]:
    """Read a data dictionary, .csv or .json, as arguments of `Schema.of`; see `Schema.from_dictionary`."""
    if path.suffix.lower() == ".csv":
        return [_variable(name, _entry(name, row)) for name, row in _rows_of_variables(path)], [], CsvFormat()
    try:
        content = parse_json(path.read_bytes())
        if not isinstance(content, Mapping):
            raise SchemaError("a data dictionary in JSON maps each variable to its states.")
        content = content["schema"] if isinstance(content.get("format"), str) else content  # a network of ours
        if isinstance(content.get("fields"), list):
            return declarations(content)
        return [_variable(name, entry) for name, entry in content.items()], [], CsvFormat()
    except SchemaError:
        raise
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise SchemaError(f"{path}: not a data dictionary ({error}); see pgmpy-dp schema --help.") from None


def read_rules(path: Path, schema: Schema) -> list[Rule]:
    """Read rules in CSV, with the columns rule and combination, about the variables of a schema."""
    results: list[Rule] = []
    allowed: dict[tuple[str, ...], list[tuple[Any, ...]]] = {}
    follows: dict[tuple[str, str], dict[Any, Any]] = {}
    try:
        header, *rows = _rows(path)
    except UnicodeDecodeError:
        raise SchemaError(f"{path}: not a text file in UTF-8; save it as one.") from None
    for number, cells in _named(path, rows, list(map(str.strip, header))):
        kind, text = cells.get("rule"), cells.get("combination", "")
        try:
            if kind not in _RULES:
                raise SchemaError(f"a rule is {', '.join(_RULES[:-1])} or {_RULES[-1]}, got {kind!r}.")
            if kind == "comparison":
                results.append(Allowed.comparing(schema, text))
                continue
            parts = assigned([part.strip() for part in text.split(";")], schema, "a rule")
            known = {name: {str(state): state for state in schema.states[name]} for name in parts}
            named = {name: [known[name].get(one, one) for one in _listed(states)] for name, states in parts.items()}
            names = tuple(named)
            if kind == "forbidden":
                results.append(Forbidden(named))
            elif kind == "allowed":
                names = tuple(sorted(names, key=schema.variables.index))  # rows may name them in any order
                allowed.setdefault(names, []).extend(itertools.product(*(named[name] for name in names)))
            elif kind == "dependent" and len(names) == 2 and len(named[names[1]]) == 1:
                follows.setdefault((names[0], names[1]), {}).update(dict.fromkeys(named[names[0]], named[names[1]][0]))
            else:
                raise SchemaError("a dependent rule names two variables, and one state of the second, which follows.")
        except SchemaError as error:
            raise SchemaError(f"{path}, row {number}: {error}") from None
    results += [Allowed(names, combinations) for names, combinations in allowed.items()]
    return results + [Dependency(finer, coarser, states) for (finer, coarser), states in follows.items()]


def assigned(texts: Sequence[str], schema: Schema, what: str) -> dict[str, str]:
    """Read texts such as ``name=state`` by the variables that they name; a name may itself hold an equals sign."""
    given: dict[str, str] = {}
    for text in texts:
        splits = [(text[:i], text[i + 1 :]) for i, character in enumerate(text) if character == "="]
        if not splits:
            raise SchemaError(f"{what} {text}: write VARIABLE=STATE.")
        variable, state = next((split for split in splits if split[0] in schema.states), splits[0])
        schema.require([(variable,)])
        if variable in given:
            raise SchemaError(f"{what} names {variable!r} twice: give it once.")
        given[variable] = state
    return given


def _variable(name: str, entry: Any) -> Variable:
    """Make a variable of its states, or of the properties that a dictionary gives it."""
    if not isinstance(entry, Mapping):
        return Variable.of(name, entry)
    if unknown := set(entry) - set(DICTIONARY_COLUMNS):
        raise SchemaError(f"Variable {name!r}: unknown property {sorted(unknown)[0]!r}.")
    if "edges" in entry and "states" in entry:
        raise SchemaError(f"Variable {name!r} has both states and edges: give one of them.")
    _require_type(name, entry)
    declared: Any = entry.get("states", [])
    if "edges" in entry:
        kind = DATED.get(entry.get("type", ""), DateBins if entry.get("format") else Bins)
        edges = entry["edges"] if kind is not Bins else [_number(name, edge) for edge in entry["edges"]]
        try:
            given = {
                role: entry[role] for role in ("labels", "decimals", "detail", "format") if entry.get(role) is not None
            }
            if entry.get("type") == "integer":
                given.setdefault("decimals", 0)
            declared = kind(edges, **given)
        except SchemaError as error:
            raise SchemaError(f"Variable {name!r}: {error}") from None
    roles = {role: entry[role] for role in ("missing", "other") if entry.get(role) is not None}
    return Variable.of(name, declared, entry.get("missing_values", []), **roles)


def _rows_of_variables(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    try:
        columns, *rows = _rows(path) or [[]]
    except UnicodeDecodeError:
        columns = []
    known, asked = {*columns} <= {*DICTIONARY_COLUMNS}, "variable" in columns and {"states", "edges"} & {*columns}
    # The file may be the records themselves, so the message does not quote it.
    if not (known and asked and len({*columns}) == len(columns)):
        raise SchemaError(
            f"{path}: not a data dictionary: it needs the columns 'variable' and 'states' or 'edges', and no "
            f"others than {', '.join(DICTIONARY_COLUMNS)}, each once, with commas between them and in UTF-8. If these "
            "are the records: states are never read off them, since which values occur is private. Write a dictionary, "
            "one row a variable."
        )
    seen = set()
    for number, cells in _named(path, rows, columns):
        name = cells.get("variable")
        if not name:
            raise SchemaError(f"{path}: row {number} names no variable: name it, or delete the row.")
        if name in seen:
            raise SchemaError(f"{path}: variable {name!r} has two rows; give it one.")
        seen.add(name)
        yield name, cells


def _rows(path: Path) -> list[list[str]]:
    """Read the rows of a file in CSV; a damaged header is left out, since it may be a record."""
    text, rows = path.read_bytes().decode("utf-8-sig"), []
    limit = csv.field_size_limit(sys.maxsize)
    try:
        for row in csv.reader(io.StringIO(text, newline=""), strict=True):
            if any('"' in cell and f'"{cell.replace(_QUOTE, 2 * _QUOTE)}"' not in text for cell in row):
                raise csv.Error("a quotation mark in a cell without quotes")
            rows.append(row)
    except csv.Error:
        if rows:
            raise SchemaError(
                f"{path}: row {len(rows) + 1} is damaged: quote cells with commas or quotation marks, and double the "
                "quotation marks in them."
            ) from None
    finally:
        csv.field_size_limit(limit)
    return rows


def _named(path: Path, rows: Sequence[list[str]], columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Number the rows after the header, and name their cells by its columns; blank rows are left out."""
    for number, row in enumerate(rows, 2):
        if len(row) > len(columns):
            raise SchemaError(
                f"{path}: row {number} has {len(row)} cells, and the header {len(columns)}: separate states by |, "
                "quote cells with commas, and leave out surplus cells."
            )
        if row:
            yield number, dict(zip(columns, map(str.strip, row), strict=False))


def _entry(name: str, row: Mapping[str, str]) -> dict[str, Any]:
    """Read the cells of a variable's row, as a dictionary in JSON has them."""
    kind = row.get("type") or "string"
    entry: dict[str, Any] = {own: row[own] for own in ("missing", "other", "format") if row.get(own)}
    if row.get("edges") and row.get("states"):
        raise SchemaError(f"Variable {name!r} has both states and edges: give one of them.")
    if row.get("missing_values"):
        entry["missing_values"] = _listed(row["missing_values"])
    for column in ("states", "edges", "labels"):
        if "" in _listed(row.get(column, "")):
            raise SchemaError(f"Variable {name!r}: a | in {column} has nothing before or after it.")
    _require_type(name, row)
    if row.get("edges"):
        entry |= {"edges": _listed(row["edges"]), "type": kind}
        entry |= {"labels": _listed(row["labels"])} if row.get("labels") else {}
        for column in ("decimals", "detail"):
            if row.get(column):
                number = _number(name, row[column])
                entry[column] = int(number) if number.is_integer() else number
    elif kind == "boolean" and not row.get("states"):
        entry["states"] = [False, True]
    else:
        entry["states"] = [_typed(name, kind, text) for text in _listed(row.get("states", ""))]
    return entry


def _require_type(name: str, entry: Mapping[str, Any]) -> None:
    """Refuse unknown types, and a format of dates unless the variable is dates in bins."""
    if entry.get("type") not in (None, "", *_TYPES):
        raise SchemaError(f"Variable {name!r} has the type {shortened(entry['type'])}; {_NAMED}.")
    if entry.get("format") and not (entry.get("edges") and entry.get("type") in (None, "", "string", *DATED)):
        raise SchemaError(
            f"Variable {name!r} has a format, which is that of dates in bins: give edges, and type=date or datetime."
        )


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split("|")] if text else []


def _number(name: str, given: Any) -> float:
    """Read a number; refuse a number too large for a float, rather than reading infinity."""
    try:
        number = float(given)
    except (ValueError, TypeError, OverflowError):
        number = math.nan
    if math.isnan(number) or (math.isinf(number) and isinstance(given, str) and "inf" not in given.lower()):
        written = isinstance(given, str) and any(map(str.isdigit, given))
        hint = ": decimals are written as 1.5, and dates need type=date or a format" if written else ""
        raise SchemaError(f"Variable {name!r}: {shortened(given)} is not a finite number, inf or -inf{hint}.")
    return number


def _typed(name: str, kind: str, text: str) -> Any:
    if kind == "string":
        return text
    if kind == "number":
        return _number(name, text)
    if kind == "boolean" and text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if kind == "integer":
        with suppress(ValueError):
            return int(text)
    if kind == "date" and (day := iso_day(text)) is not None:
        return iso(day)
    raise SchemaError(f"Variable {name!r}: {shortened(text)} is not of type {kind}; {_NAMED}.")
