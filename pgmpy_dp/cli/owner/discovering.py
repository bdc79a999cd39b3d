"""`pgmpy-dp states` discovers the states of a variable of which there is no public list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pgmpy_dp.cli.owner.records import RecordOptions, record_options
from pgmpy_dp.cli.shared.common import Command, delta_cautions, emit, json_option, stages
from pgmpy_dp.cli.shared.files import out_option, records_argument


@click.command(cls=Command)
@records_argument
@click.option("--variable", required=True, help="Variable of which the schema declares no states.")
@click.option("--epsilon", type=float, required=True, help="Privacy loss of the choice.")
@click.option("--delta", type=float, required=True, help="Chance that what a single record has is found.")
@record_options
@out_option(
    "--out",
    kind="a schema",
    endings=(".json",),
    required=True,
    help="Schema file to write, with the states that were found.",
)
@out_option(
    "--release", "release_path", kind="a release", endings=(".zip",), help="Release file to write as well, .zip."
)
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@json_option
def states(
    data: Path,
    variable: str,
    epsilon: float,
    delta: float,
    out: Path,
    release_path: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Discover states that are not public: the values that enough records of DATA have.

    The schema declares the variable with no states and with one for all other values (a row of the data dictionary with
    neither states nor edges, but with other), and is written with the states that were found. That costs privacy: it
    is charged to the ledger, like a release from the same records.

    \b
      pgmpy-dp states records.csv --schema open.json --variable town --epsilon 0.5 --delta 1e-7 \\
          --ledger ledger.json --out schema.json
    """
    chosen = RecordOptions(**options)
    with stages(2) as begin:
        begin("Reading the records")
        schema = chosen.schema()
        budget = chosen.budget(epsilon, delta)
        dataset = chosen.dataset(data, schema, budget)
        begin("Choosing states")
        found = dataset.discover_states(variable, epsilon, delta=delta)
        found.schema.save(out)
        if release_path is not None:
            found.save(release_path)
    ledger, line = chosen.charged(budget)
    held = {"variable": variable, "states": list(found.states), "threshold": found.threshold, "file": str(out)}
    some = ", ".join(map(str, found.states[:10])) + (", ..." if len(found.states) > 10 else "")
    lines = [
        found.guarantee.sentence(),
        f"{len(found.states)} states of {variable}{': ' if some else ''}{some}",
        f"Written to {out}.",
        *delta_cautions(delta),
        line,
    ]
    emit(as_json, held | {"guarantee": found.guarantee.to_dict()} | ledger, lines)
