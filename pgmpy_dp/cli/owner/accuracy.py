"""`pgmpy-dp plan-accuracy` says what an accuracy costs before anything is paid."""

from __future__ import annotations

import json
import math
from pathlib import Path

import click

from pgmpy_dp.cli.shared.common import Command, emit, json_option
from pgmpy_dp.cli.shared.files import file_option, out_option


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
@out_option(
    "--out", kind="a plan for an accuracy", endings=(".json",), help="Plan to write, .json, for release --plan."
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@json_option
def plan_accuracy(
    schema_path: Path,
    tables: tuple[str, ...],
    confidence: float,
    delta: float,
    replace: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Find what to measure so that tables are as accurate as asked for, and the least epsilon that pays for it.

    No record is needed, and nothing is charged.

    \b
      pgmpy-dp plan-accuracy --schema schema.json --table age,sex=50 --table region=20 --out plan.json
      pgmpy-dp release records.csv --schema schema.json --plan plan.json --ledger ledger.json --out release.zip
    """
    from pgmpy_dp.fitting.plans.accuracy import plan_accuracy as planned
    from pgmpy_dp.schema import Schema

    wanted: dict[tuple[str, ...], float] = {}
    for given in tables:
        names, found, width = given.rpartition("=")
        try:
            records = float(width) if found else math.nan
        except ValueError:
            records = math.nan
        if not 0 < records < math.inf:
            raise click.BadParameter(f"{given!r}: write names and records, such as age,sex=50.", param_hint="--table")
        wanted[tuple(name.strip() for name in names.split(","))] = records
    plan = planned(Schema.load(schema_path), wanted, confidence, delta, "replace_one" if replace else "add_remove")
    held = {
        "epsilon": plan.epsilon,
        "delta": plan.delta,
        "least_epsilon": plan.least_epsilon,
        "residuals": [{"variables": list(subset), "scale": scale} for subset, scale in plan.residuals.items()],
        "half_widths": [
            {"variables": list(clique), "records": reached} for clique, reached in plan.half_widths.items()
        ],
        "tables_epsilon": plan.tables_epsilon,
        "tables": [
            {"variables": list(clique), "scale": plan.scales[clique], "weight": weight}
            for clique, weight in zip(plan.cliques, plan.weights, strict=True)
        ],
    }
    widest = max(len(", ".join(clique)) for clique in (*plan.cliques, *plan.half_widths))
    lines = [
        f"epsilon {plan.epsilon:.4g} at delta {plan.delta:g}, for the residuals of {len(plan.residuals)} sets of "
        f"variables; no measurement of marginals does it for less than {plan.least_epsilon:.4g}.",
        f"Cells are then within so many records of the truth, {100 * confidence:g} % of the time:",
        *(f"  {', '.join(clique):<{widest}}  {reached:.4g}" for clique, reached in plan.half_widths.items()),
        f"Tables with independent noise do it for epsilon {plan.tables_epsilon:.4g}; its deviation in records:",
        *(f"  {', '.join(clique):<{widest}}  {scale:.4g}" for clique, scale in plan.scales.items()),
    ]
    if out is not None:
        out.write_text(json.dumps(held, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        lines += ["", f"Written to {out}, for pgmpy-dp release DATA --plan {out} ..."]
    emit(as_json, held, lines)
