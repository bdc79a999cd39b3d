"""`pgmpy-dp bins` chooses bins at private quantiles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pgmpy_dp.cli.owner.records import RecordOptions, record_options
from pgmpy_dp.cli.shared.common import Command, emit, json_option, stages
from pgmpy_dp.cli.shared.files import out_option, records_argument


@click.command(cls=Command)
@records_argument
@click.option("--variable", required=True, help="Variable with fine bins in the schema.")
@click.option("--parts", type=click.IntRange(2), required=True, help="How many bins of about equally many records.")
@click.option("--epsilon", type=float, required=True, help="Privacy loss of the choice.")
@record_options
@out_option(
    "--out", kind="a schema", endings=(".json",), required=True, help="Schema file to write, with the chosen bins."
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@json_option
def bins(data: Path, variable: str, parts: int, epsilon: float, out: Path, as_json: bool, **options: Any) -> None:
    """Choose bins of a number at private quantiles of the records.

    The schema declares the variable with fine public bins (edges 0|1|2|...|120 in the dictionary). Some of these edges
    are kept, so that the bins hold about equally many records of DATA (.csv, .parquet), and the schema is written with
    them. That costs privacy: it is charged to the ledger, like a release from the same records.

    \b
      pgmpy-dp bins records.csv --schema fine.json --variable age --parts 4 --epsilon 0.1 \\
          --ledger ledger.json --out schema.json
    """
    chosen = RecordOptions(**options)
    with stages(2) as begin:
        begin("Reading the records")
        schema = chosen.schema()
        schema.require([(variable,)])
        budget = chosen.budget(epsilon)
        dataset = chosen.dataset(data, schema.select([variable]), budget)
        begin("Choosing bins")
        found = dataset.quantile_bins(variable, parts, epsilon)
        rules = [rule for rule in schema.rules if variable not in rule.variables]  # they are about its former states
        drafted = schema.replace(variables={**schema.declared, variable: found}, rules=rules)
        drafted.save(out)
    ledger, line = chosen.charged(budget)
    held = {"file": str(out), "variable": variable, "edges": [_edge(edge) for edge in found.edges]}
    lines = [f"{variable}: {' | '.join(found.labels)}", f"Written to {out}.", line]
    emit(as_json, held | {"labels": list(found.labels), "epsilon": epsilon} | ledger, lines)


def _edge(edge: float) -> float | str:
    return edge if abs(edge) < float("inf") else str(edge)
