"""`pgmpy-dp plan` says what would be measured, and how noisy it would be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from pgmpy_dp.cli.owner.records import (
    GAUSSIAN_DELTA,
    check_option,
    foreseen,
    gaussian_advice,
    noise_options,
    public_table,
    require_delta,
)
from pgmpy_dp.cli.shared.common import Command, json_option
from pgmpy_dp.cli.shared.files import STRUCTURES, file_option, out_option


@click.command(cls=Command)
@file_option("--schema", "schema_path", kinds=("a schema",), required=True, help="Schema file.")
@file_option("--model", kinds=STRUCTURES, help="Network whose tables to plan: a network file, or edges in .txt.")
@click.option("--pairs", is_flag=True, help="Or every variable and every pair, for a mixture.")
@click.option("--target", metavar="VARIABLE", help="With --pairs: a variable that is to be predicted gets less noise.")
@check_option
@noise_options
@out_option(
    "--out",
    kind="a list of tables",
    endings=(".json",),
    help="Tables and their shares to write, .json, for release --cliques.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@json_option
def plan(
    schema_path: Path,
    model: Path | None,
    pairs: bool,
    target: str | None,
    check: float | None,
    epsilon: float,
    delta: float,
    mechanism: str,
    out: Path | None,
    as_json: bool,
) -> None:
    """Say which tables to measure and how noisy they would be. No record is needed, and nothing is charged.

    \b
      pgmpy-dp plan --schema schema.json --model edges.txt --epsilon 1 --out tables.json
      pgmpy-dp release records.csv --schema schema.json --cliques tables.json --epsilon 1 ...
    """
    from pgmpy_dp.cli.shared.structures import left_out, planned, schema_of
    from pgmpy_dp.data.mechanisms.tables import NoisyTables
    from pgmpy_dp.fitting import plan_pairs
    from pgmpy_dp.schema import Schema

    if (model is None) == (not pairs):
        raise click.UsageError("Say what to plan for: give either --model or --pairs.")
    if (target is not None and not pairs) or (check is not None and pairs):
        raise click.UsageError("--target belongs to --pairs, --check belongs to --model.")
    require_delta(mechanism, delta)
    schema = Schema.load(schema_path)
    wanted, weights = plan_pairs(schema, target) if model is None else planned(schema, model, check, mechanism)
    asked = NoisyTables(wanted, epsilon, delta, mechanism, weights)
    whole, schema = schema, schema_of(schema, wanted)
    told = [] if model is None else left_out(whole, schema.variables)
    quote = asked.quote(public_table(schema, delta))  # refuses what cannot be, before a file is written
    advised = gaussian_advice(asked, quote, public_table(schema, GAUSSIAN_DELTA)) if model is not None else []
    foreseen(quote, schema, as_json, lines=[*told, *advised, *_written(out, wanted, weights)])


def _written(out: Path | None, wanted: Any, weights: list[float]) -> list[str]:
    """Write the plan, if that is asked for, and say so."""
    if out is None:
        return []
    tables = {"cliques": [list(clique) for clique in wanted], "weights": weights}
    out.write_text(json.dumps(tables, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return ["", f"Written to {out}, for pgmpy-dp release DATA --cliques {out} ..."]
