"""`pgmpy-dp plan-accuracy` says what an accuracy costs before anything is paid."""

from __future__ import annotations

from pathlib import Path

import click

from pgmpy_dp.cli.common import Command, emit, json_option
from pgmpy_dp.cli.files import file_option


@click.command("plan-accuracy", cls=Command)
@file_option("--schema", "schema_path", kinds=("a schema",), required=True, help="Schema file.")
@click.option(
    "--table",
    "tables",
    multiple=True,
    required=True,
    metavar="NAMES=RECORDS",
    help="A table, and within how many records its cells are to be, such as age,sex=50; may be repeated.",
)
@click.option("--confidence", type=float, default=0.95, show_default=True, help="How often cells are as close as that.")
@click.option("--delta", type=float, default=1e-9, show_default=True, help="Of the Gaussian noise.")
@click.option("--replace", is_flag=True, help="Neighbours replace a record; by default one is added or removed.")
@json_option
def plan_accuracy(
    schema_path: Path, tables: tuple[str, ...], confidence: float, delta: float, replace: bool, as_json: bool
) -> None:
    """Find what to measure so that tables are as accurate as asked for, and the least epsilon that pays for it.

    No record is needed, and nothing is charged.

    \b
      pgmpy-dp plan-accuracy --schema schema.json --table age,sex=50 --table region=20 --confidence 0.95
    """
    from pgmpy_dp.fitting.accuracy import plan_accuracy as planned
    from pgmpy_dp.schema import Schema

    wanted: dict[tuple[str, ...], float] = {}
    for given in tables:
        names, found, width = given.rpartition("=")
        try:
            wanted[tuple(name.strip() for name in names.split(","))] = float(width)
        except ValueError:
            found = ""
        if not found:
            raise click.BadParameter(f"{given!r}: write names and records, such as age,sex=50.", param_hint="--table")
    plan = planned(Schema.load(schema_path), wanted, confidence, delta, "replace_one" if replace else "add_remove")
    held = {
        "epsilon": plan.epsilon,
        "delta": plan.delta,
        "least_epsilon": plan.least_epsilon,
        "tables": [
            {"variables": list(clique), "scale": plan.scales[clique], "weight": weight}
            for clique, weight in zip(plan.cliques, plan.weights, strict=True)
        ],
        "half_widths": [
            {"variables": list(clique), "records": reached} for clique, reached in plan.half_widths.items()
        ],
    }
    widest = max(len(", ".join(clique)) for clique in (*plan.cliques, *plan.half_widths))
    lines = [
        f"epsilon {plan.epsilon:.4g} at delta {plan.delta:g}; no measurement of marginals does it for less than "
        f"{plan.least_epsilon:.4g}.",
        "To measure, with the standard deviation of the noise in records:",
        *(f"  {', '.join(clique):<{widest}}  {scale:.4g}" for clique, scale in plan.scales.items()),
        f"Cells are then within so many records of the truth, {100 * confidence:g} % of the time:",
        *(f"  {', '.join(clique):<{widest}}  {reached:.4g}" for clique, reached in plan.half_widths.items()),
    ]
    emit(as_json, held, lines)
