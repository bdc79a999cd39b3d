"""`pgmpy-dp schema` drafts a schema from public knowledge of the records."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgmpy_dp._kinds import DICTIONARY_COLUMNS, endings_of
from pgmpy_dp.cli.owner.spending import with_format
from pgmpy_dp.cli.shared.common import Command, assignments, emit
from pgmpy_dp.cli.shared.files import file_argument, file_option, out_option
from pgmpy_dp.cli.shared.options import csv_options, force_option, json_option
from pgmpy_dp.errors import SchemaError

if TYPE_CHECKING:
    from pgmpy_dp.schema import Schema

_NETWORKS = endings_of("a network")
_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@click.command(cls=Command)
@file_argument("source", "a network", "a data dictionary", "a schema", "records")
@file_option("--rules", "rules", kinds=("rules",), help="Rules that hold in every record, in CSV; see above.")
@out_option("--out", kind="a schema", help="Schema file to write; by default it is printed.")
@csv_options
@force_option
@json_option
def schema(
    source: Path,
    rules: Path | None,
    delimiter: str | None,
    encoding: str | None,
    strip: bool | None,
    decimal: str | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Draft a schema file from a network or a data dictionary.

    It is never drafted from the records, since which values occur in them is itself private. States come from public
    sources: the states of a network (.bif, .xmlbif, .xdsl, .net, .uai), or a data dictionary.

    A dictionary in CSV has one row per variable, with the columns

    \b
      variable  its name: the column of the records
      states    its values, separated by |            (yes|no)
      edges     or the edges of its bins, for numbers (0|18|65|120), or dates (2020-01-01|month|2024-01-01)
      labels    names of the bins, separated by |     (optional)
      decimals  of synthetic numbers; by default none where edges are whole numbers (optional)
      detail    approximate number of cells of a finer histogram of the number (64 by default; 0: none is measured)
      type      string, integer, number, boolean or date (optional)
      missing   the state for missing values           (optional)
      other     the state for undeclared values        (optional)
      missing_values  texts of missing values (optional, ?|NA; |NA if the empty cell comes first)

    A row with other, but with neither states nor edges, declares a variable without a public list of values:
    pgmpy-dp states discovers them privately. The first of missing_values is written in synthetic files.

    Dates are written as 2024-03-01. Between two edges, month, quarter or year cuts where each of them begins.

    A dictionary in JSON is a Table Schema or a network of ours, or maps each variable to a list of states or to
    {"edges": [...], "labels": [...], "missing": ..., "other": ...}.

    A bin contains its lower edge but not its upper one; the last bin contains both. The first edge may be -inf, and the
    last inf. Numbers outside all bins are refused, unless `other` has a state for them. Synthetic numbers follow a
    density fitted to the noisy counts of all bins and of a finer histogram, which plans measure for a small share of
    the budget. If noise hides the histogram, the other bins determine the density in a wide last bin: for incomes
    prefer 0|20000|50000|100000|200000|500000|inf to 0|50000|1000000.

    Rules in CSV have the columns rule and combination, and one of these in a row:

    \b
      forbidden   age=0_to_18; marital=married|divorced   (never together)
      allowed     sex=f; pregnant=yes|no                  (rows with the same names list all that may occur)
      dependent   place=Ulm|Aalen; region=south           (the second follows from the first)
      comparison  vehicle_year <= accident_year + 1       (of bins or numbers; also <, >, >=, =)

    --delimiter, --encoding, --strip and --decimal describe the records' own .csv file, and become part of the schema.

    Check the draft before use: all later steps use its states in this order. States for missing and undeclared values
    are marked (missing) and (other).
    """
    drafted = read_dictionary(source)
    if rules is not None:
        drafted = drafted.replace(rules=[*drafted.rules, *_rules(rules, drafted)])
    drafted = with_format(drafted, delimiter, encoding, strip, decimal)
    if out is not None:
        drafted.save(out)
    width = max(len(variable) for variable in drafted.variables)
    lines = [f"{v:<{width}}  {' | '.join(_marked(drafted, v))}" for v in drafted.variables]
    if wide := [v for v, bins in drafted.bins.items() if bins.kind == "number" and _is_wide(bins.edges)]:
        lines += [
            "",
            f"Caution: the last edge of {', '.join(wide)} is over ten times the one before: add edges between.",
        ]
    if out is not None:
        lines += ["", f"Written to {out}. Check it, then: pgmpy-dp release DATA --schema {out} ..."]
    emit(as_json, drafted.to_dict(), lines)


def _is_wide(edges: Sequence[float]) -> bool:
    """Return whether the last edge is finite, and over ten times the one before."""
    return len(edges) > 2 and math.inf > edges[-1] > 10 * edges[-2] > 0


def _marked(schema: Schema, variable: str) -> list[str]:
    """List the states of a variable, with marks for missing and undeclared values."""
    roles = {"missing": schema.missing.get(variable), "other": schema.other.get(variable)}
    marks = [[role for role, stand_in in roles.items() if stand_in == state] for state in schema.states[variable]]
    return [
        f"{state} ({', '.join(mark)})" if mark else str(state)
        for state, mark in zip(schema.states[variable], marks, strict=True)
    ]


def read_dictionary(source: Path) -> Schema:
    """Read the schema of a network, a Table Schema or a data dictionary."""
    from pgmpy_dp._files import parse_json
    from pgmpy_dp.schema import Schema

    suffix = source.suffix.lower()
    if suffix in _NETWORKS:
        from pgmpy_dp.networks import load_network

        return Schema.from_model(load_network(source))
    if suffix == ".csv":
        return _from_rows(source)
    if suffix != ".json":
        raise SchemaError(f"{source}: give a network ({', '.join(_NETWORKS)}) or a data dictionary (.csv or .json).")
    try:
        content = parse_json(source.read_bytes())
        if isinstance(content, dict) and isinstance(content.get("fields"), list):
            return Schema.from_dict(content)
        if isinstance(content, dict) and isinstance(content.get("format"), str):  # this package wrote the network
            return Schema.from_dict(content["schema"])
        return _from_mapping(content)
    except SchemaError:
        raise
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise SchemaError(f"{source}: not a data dictionary ({error}); see pgmpy-dp schema --help.") from None


def _from_mapping(content: Any) -> Schema:
    from pgmpy_dp.schema import Bins, DateBins, Schema

    if not isinstance(content, Mapping):
        raise SchemaError("a data dictionary in JSON maps each variable to its states.")
    variables: dict[str, Any] = {}
    stand_ins: dict[str, dict[str, Any]] = {"missing": {}, "other": {}}
    said: dict[str, list[str]] = {}
    for variable, entry in content.items():
        if not isinstance(entry, Mapping):
            variables[variable] = entry
            continue
        if unknown := set(entry) - set(DICTIONARY_COLUMNS):
            raise SchemaError(f"Variable {variable!r}: unknown property {sorted(unknown)[0]!r}.")
        if "edges" in entry and "states" in entry:
            raise SchemaError(f"Variable {variable!r} has both states and edges: give one of them.")
        if "edges" in entry:
            dated, edges = entry.get("type") == "date", entry["edges"]
            edges = edges if dated else [_number(variable, edge) for edge in edges]
            try:
                own = entry.get("labels"), entry.get("decimals")
                named = {name: entry[name] for name in ("detail",) if name in entry}
                variables[variable] = (DateBins if dated else Bins)(edges, *own, **named)
            except SchemaError as error:
                raise SchemaError(f"Variable {variable!r}: {error}") from None
        else:
            variables[variable] = entry.get("states", [])
        for role, states in stand_ins.items():
            if entry.get(role) is not None:
                states[variable] = entry[role]
        said[variable] = entry.get("missing_values", [])
    return Schema(variables, stand_ins["missing"], stand_ins["other"], missing_values=said)


def _from_rows(source: Path) -> Schema:
    try:
        rows = _rows(source, source.read_bytes().decode("utf-8-sig"))
        columns = next(rows, [])
    except ValueError:
        columns = []
    known, asked = {*columns} <= {*DICTIONARY_COLUMNS}, "variable" in columns and {"states", "edges"} & {*columns}
    # The file may be the records themselves, so the message does not quote it.
    if not (known and asked and len({*columns}) == len(columns)):
        raise SchemaError(
            f"{source}: not a data dictionary: it needs the columns 'variable' and 'states' or 'edges', and no "
            f"others than {', '.join(DICTIONARY_COLUMNS)}, each once, with commas between them and in UTF-8. If these "
            "are the records: states are never read off them, since which values occur is private. Write a dictionary, "
            "one row a variable."
        )
    entries: dict[str, Any] = {}
    for number, cells in _named(source, rows, columns):
        name = cells.get("variable")
        if not name:
            raise SchemaError(f"{source}: row {number} names no variable: name it, or delete the row.")
        if name in entries:
            raise SchemaError(f"{source}: variable {name!r} has two rows; give it one.")
        entries[name] = _entry(name, cells)
    return _from_mapping(entries)


def _named(source: Path, rows: Iterable[list[str]], columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Number the rows after the header, and name their cells by its columns; blank rows are left out."""
    for number, row in enumerate(rows, 2):
        if row == [""]:
            continue
        if len(row) > len(columns):
            raise SchemaError(
                f"{source}: row {number} has {len(row)} cells, and the header {len(columns)}: separate states by |, "
                "quote cells with commas, and leave out surplus cells."
            )
        yield number, dict(zip(columns, map(str.strip, row), strict=False))


def _rules(source: Path, schema: Schema) -> list[Any]:
    """Read rules in CSV."""
    from itertools import product

    from pgmpy_dp.schema import Allowed, Dependency, Forbidden

    try:
        rows = _rows(source, source.read_bytes().decode("utf-8-sig"))
        columns = next(rows)  # they say what kind of file it is
    except UnicodeDecodeError:
        raise SchemaError(f"{source}: not a text file in UTF-8; save it as one.") from None
    found: list[Any] = []
    allowed: dict[tuple[str, ...], list[tuple[Any, ...]]] = {}
    follows: dict[tuple[str, str], dict[Any, Any]] = {}
    for number, cells in _named(source, rows, list(map(str.strip, columns))):
        kind, text = cells.get("rule"), cells.get("combination", "")
        try:
            if kind == "comparison":
                found.append(Allowed.comparing(schema, text))
                continue
            named = _combination(text, schema)
            names = tuple(named)
            if kind == "forbidden":
                found.append(Forbidden(named))
            elif kind == "allowed":
                names = tuple(sorted(names, key=schema.variables.index))  # rows may name them in any order
                allowed.setdefault(names, []).extend(product(*(named[name] for name in names)))
            elif kind == "dependent" and len(names) == 2 and len(named[names[1]]) == 1:
                follows.setdefault((names[0], names[1]), {}).update(dict.fromkeys(named[names[0]], named[names[1]][0]))
            else:
                raise SchemaError("a rule is forbidden, allowed, comparison, or dependent with one state that follows.")
        except (SchemaError, click.ClickException) as error:
            raise SchemaError(f"{source}, row {number}: {error}") from None
    found += [Allowed(names, combinations) for names, combinations in allowed.items()]
    return found + [Dependency(finer, coarser, states) for (finer, coarser), states in follows.items()]


def _combination(text: str, schema: Schema) -> dict[str, list[Any]]:
    """Read ``name=state|state; name=state``; a number of the schema is written as it is."""
    named: dict[str, list[Any]] = {}
    for variable, states in assignments(schema, [part.strip() for part in text.split(";")], "a rule").items():
        known = {str(state): state for state in schema.states[variable]}
        named[variable.strip()] = [known.get(state, state) for state in _parts(states)]
    return named


_CELL = re.compile(r'(?:"([^"]*(?:""[^"]*)*)"|([^",\r\n]*))(,|\r\n|\r|\n|\Z)')


def _rows(source: Path, text: str) -> Iterator[list[str]]:
    """Split a dictionary by RFC 4180, with any line endings."""
    row: list[str] = []
    number, place = 1, 0
    while place < len(text):
        cell = _CELL.match(text, place)
        if cell is None:
            raise SchemaError(
                f"{source}: row {number} is damaged: quote cells with commas or quotation marks, and double the "
                "quotation marks in them."
            )
        row.append(cell[2] if cell[1] is None else cell[1].replace('""', '"'))
        place = cell.end()
        if cell[3] != ",":
            yield row
            row, number = [], number + 1
    if row:
        yield [*row, ""]


def _entry(name: str, row: Mapping[str, str]) -> dict[str, Any]:
    kind = row.get("type") or "string"
    entry: dict[str, Any] = {}
    if row.get("edges") and row.get("states"):
        raise SchemaError(f"Variable {name!r} has both states and edges: give one of them.")
    if row.get("missing_values"):
        entry["missing_values"] = _parts(row["missing_values"])
    for column in ("states", "edges", "labels"):
        if "" in _parts(row.get(column, "")):
            raise SchemaError(f"Variable {name!r}: a | in {column} has nothing before or after it.")
    if row.get("edges"):
        entry |= {"edges": _parts(row["edges"]), "type": kind}
        if row.get("labels"):
            entry["labels"] = _parts(row["labels"])
        for column in ("decimals", "detail"):
            if row.get(column):
                number = _number(name, row[column])
                entry[column] = int(number) if number.is_integer() else number
    elif kind == "boolean" and not row.get("states"):
        entry["states"] = [False, True]
    else:
        entry["states"] = [_typed(name, kind, text) for text in _parts(row.get("states", ""))]
    return entry | {role: row[role] for role in ("missing", "other") if row.get(role)}


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split("|")] if text else []


def _number(name: str, given: Any) -> float:
    """Read a number; a number too large for a float is refused, and not infinite."""
    try:
        number = float(given)
    except (ValueError, TypeError, OverflowError):
        number = math.nan
    if math.isnan(number) or (math.isinf(number) and isinstance(given, str) and "inf" not in given.lower()):
        raise SchemaError(f"Variable {name!r}: {_short(given)} is not a finite number, inf or -inf.")
    return number


def _short(given: Any) -> str:
    text = repr(given)
    return text if len(text) <= 40 else f"{text[:40]}..."


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
    if kind == "date":
        from pgmpy_dp.schema.date_bins import iso, iso_day

        if (day := iso_day(text)) is not None:
            return iso(day)
    raise SchemaError(
        f"Variable {name!r}: {_short(text)} is not of type {kind}; types are string, integer, number, boolean and date."
    )
