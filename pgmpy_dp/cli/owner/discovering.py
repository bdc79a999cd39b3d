"""`pgmpy-dp bins` and `states` choose bins or states privately, where no public list of them serves."""

from __future__ import annotations

from pathlib import Path

import click

from pgmpy_dp.cli.owner.spending import Spending, spends
from pgmpy_dp.cli.shared.common import Command, Result, charged_already, stage
from pgmpy_dp.cli.shared.files import out_option, records_argument
from pgmpy_dp.cli.shared.options import epsilon_option, release_out_option

_schema_out = out_option(
    "--out", kind="a schema", endings=(".json",), required=True, help="Schema file to write, with what was chosen."
)


@click.command(cls=Command, stages=2)
@records_argument
@click.option("--variable", required=True, help="Variable with fine bins in the schema.")
@click.option("--parts", type=click.IntRange(2), required=True, help="Number of bins, with similar numbers of records.")
@epsilon_option
@spends()
@_schema_out
def bins(spending: Spending, data: Path, variable: str, parts: int, out: Path) -> Result:
    """Choose bins of a number at private quantiles of the records.

    The schema declares the variable with fine public bins (edges 0|1|2|...|120 in the dictionary). Some of these edges
    are kept, so that the bins hold similar numbers of records of DATA (.csv, .parquet), and the schema is written with
    them. This costs privacy, and is charged to the ledger.

    \b
      pgmpy-dp bins records.csv --schema fine.json --variable age --parts 4 --epsilon 0.1 \\
          --ledger ledger.json --out schema.json
    """
    schema = spending.schema()
    schema.require([(variable,)])
    dataset = spending.dataset(data, schema.select([variable]))
    stage("Choosing bins")
    found = dataset.quantile_bins(variable, parts, spending.epsilon)
    rules = [rule for rule in schema.rules if variable not in rule.variables]  # they are about its former states
    with charged_already():
        schema.replace(variables={**schema.declared, variable: found}, rules=rules).save(out)
    edges, labels = found.listed_edges(), list(found.labels)
    held = {"file": str(out), "variable": variable, "edges": edges, "labels": labels, "epsilon": spending.epsilon}
    return spending.paid(held, [f"{variable}: {' | '.join(labels)}", f"Written to {out}."])


@click.command(cls=Command, stages=2)
@records_argument
@click.option("--variable", required=True, help="Variable without declared states in the schema.")
@epsilon_option
@click.option(
    "--delta",
    type=float,
    required=True,
    help="Probability that a value of a single record is found, such as 1e-9.",
)
@spends()
@_schema_out
@release_out_option
def states(spending: Spending, data: Path, variable: str, out: Path, release_path: Path | None) -> Result:
    """Discover states that are not public: the values that many records of DATA have.

    The schema declares the variable with no states and with one for all other values (a row of the data dictionary with
    neither states nor edges, but with other), and is written with the states that were found. This costs privacy, and
    is charged to the ledger.

    \b
      pgmpy-dp states records.csv --schema open.json --variable town --epsilon 0.5 --delta 1e-7 \\
          --ledger ledger.json --out schema.json
    """
    dataset = spending.dataset(data, spending.schema())
    stage("Choosing states")
    found = dataset.discover_states(variable, spending.epsilon, delta=spending.delta)
    with charged_already():
        found.schema.save(out)
        if release_path is not None:
            found.save(release_path)
    held = {"variable": variable, "states": list(found.states), "threshold": found.threshold, "file": str(out)}
    some = ", ".join(map(str, found.states[:10])) + (", ..." if len(found.states) > 10 else "")
    lines = [
        found.guarantee.sentence(),
        f"{len(found.states)} states of {variable}{': ' if some else ''}{some}",
        f"Written to {out}.",
    ]
    return spending.paid(held | {"guarantee": found.guarantee.to_dict()}, lines)
