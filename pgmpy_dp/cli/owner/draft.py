"""`pgmpy-dp schema` drafts a schema from public knowledge of the records."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgmpy_dp.cli.owner.spending import with_format
from pgmpy_dp.cli.shared.common import Command, Result
from pgmpy_dp.cli.shared.files import file_argument, file_option, out_option
from pgmpy_dp.cli.shared.options import csv_options
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.models.formats.file_kinds import endings_of

if TYPE_CHECKING:
    from pgmpy_dp.schema.variable import Variable

_NETWORKS = endings_of("a network")


@click.command(cls=Command)
@file_argument("source", "a network", "a data dictionary", "a schema", "records")
@file_option("--rules", "rules", kinds=("rules",), help="Rules that hold in every record, in CSV; see above.")
@out_option("--out", kind="a schema", help="Schema file to write; by default it is printed.")
@csv_options
def schema(source: Path, rules: Path | None, out: Path | None, **csv: Any) -> Result:
    """Draft a schema file from a network or a data dictionary.

    It is never drafted from the records, since which values occur in them is itself private. States come from public
    sources: the states of a network (.bif, .xmlbif, .xdsl, .net, .uai), or a data dictionary.

    A dictionary in CSV has one row per variable, with the columns

    \b
      variable  its name: the column of the records
      states    its values, separated by |            (yes|no)
      edges     or the edges of its bins, for numbers (0|18|65|120), dates (2020-01-01|month|2024-01-01) or times
      labels    names of the bins, separated by |     (optional)
      decimals  of synthetic numbers; by default none for integers, or where edges are whole (optional)
      detail    approximate number of cells of a finer histogram of the number (64 by default; 0: none is measured)
      type      string, integer, number, boolean, date or, in bins, datetime (optional)
      format    of dates in the records, such as %d/%m/%Y, %Y%m%d or %b %Y (optional; by default 2024-03-01)
      missing   the state for missing values           (optional)
      other     the state for undeclared values        (optional)
      missing_values  texts of missing values (optional, ?|NA; |NA if the empty cell comes first, | for it alone)

    A row with other, but with neither states nor edges, declares a variable without a public list of values:
    pgmpy-dp states discovers them privately. The first of missing_values is written in synthetic files.

    Edges of dates are written as 2024-03-01, or in their format. Between two edges, month, quarter or year cuts where
    each of them begins; between times, such as 2024-03-01 08:00, day or hour too. No form of dates is guessed: years of
    two digits (%y) need edges within a hundred years.

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

    --delimiter, --encoding, --strip, --decimal and --dates describe the records' own .csv file, and become part of the
    schema.

    Check the draft before use: all later steps use its states in this order. States for missing and undeclared values
    are marked (missing) and (other).
    """
    from pgmpy_dp.schema import Allowed, DateBins, Schema
    from pgmpy_dp.schema.dictionary import read_rules

    if source.suffix.lower() in _NETWORKS:
        from pgmpy_dp.networks import load_network

        drafted = Schema.from_model(load_network(source))
    elif source.suffix.lower() in (".csv", ".json"):
        drafted = Schema.from_dictionary(source)
    else:
        raise SchemaError(f"{source}: give a network ({', '.join(_NETWORKS)}) or a data dictionary (.csv or .json).")
    if rules is not None:
        drafted = drafted.replace(rules=[*drafted.rules, *read_rules(rules, drafted)])
    drafted = with_format(drafted, **csv)
    if out is not None:
        drafted.save(out)
    counted = [variable for variable in drafted.fields if variable.bounds is None]
    width = max(len(variable.name) for variable in counted)
    lines = [f"{variable.name:<{width}}  {' | '.join(_marked(variable))}" for variable in counted]
    numbers = {
        v: bins.edges for v, bins in drafted.bins.items() if not isinstance(bins, DateBins) and len(bins.edges) > 2
    }
    if wide := [v for v, (*_, before, last) in numbers.items() if math.inf > last > 10 * before > 0]:
        lines += [
            "",
            f"Caution: the last edge of {', '.join(wide)} is over ten times the one before: add edges between.",
        ]
    lines += [
        f"Caution: the only state of {v} is {states[0]!r}: separate states by |."
        for v, states in ((variable.name, variable.values) for variable in counted)
        if len(states) == 1 and isinstance(states[0], str) and any(sign in states[0] for sign in ",;/")
    ]
    lines += [
        f"Caution: {' and '.join(rule.variables)} are drawn within bins so that {rule.comparison} holds: their "
        "difference is only as accurate as the bins are wide. If the difference matters, such as a length of stay, "
        "declare it as a column in place of one of them."
        for rule in drafted.rules
        if isinstance(rule, Allowed) and rule.comparison and drafted.bins.keys() >= {*rule.variables}
    ]
    if out is not None:
        lines += ["", f"Written to {out}. Check it, then: pgmpy-dp release DATA --schema {out} ..."]
    return drafted.to_dict(), lines


def _marked(variable: Variable) -> list[str]:
    """List the states of a variable, with marks for missing and undeclared values."""
    marks = [[role for role, stand_in in variable.roles.items() if stand_in == state] for state in variable.states]
    return [
        f"{state} ({', '.join(mark)})" if mark else str(state)
        for state, mark in zip(variable.states, marks, strict=True)
    ]
