"""`pgmpy-dp plan` and `plan-accuracy` show what would be measured and how noisy it would be, without any record."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgmpy_dp.cli.shared.common import Command, Result, delta_cautions
from pgmpy_dp.cli.shared.files import STRUCTURES, file_option, out_option
from pgmpy_dp.cli.shared.options import (
    check_option,
    delta_option,
    noise_options,
    outlook_options,
    schema_option,
)

if TYPE_CHECKING:
    from pgmpy_dp.data.mechanisms.mechanism import Quote
    from pgmpy_dp.fitting.plans.outlook import Outlook
    from pgmpy_dp.schema import Clique, Schema

# Gaussian noise at this delta is advised where Laplace noise is at least this multiple of it.
GAUSSIAN_DELTA, _WORTHWHILE = 1e-9, 2.0


@click.command(cls=Command)
@schema_option
@file_option("--model", kinds=STRUCTURES, help="Network whose tables to plan: a network file, or edges in .txt.")
@click.option("--pairs", is_flag=True, help="Or all variables and all pairs, for a mixture.")
@click.option("--target", metavar="VARIABLE", help="With --pairs: a variable to be predicted gets less noise.")
@check_option
@noise_options()
@outlook_options
@out_option(
    "--out",
    kind="a list of tables",
    endings=(".json",),
    help="Tables and their shares to write, .json, for release --cliques.",
)
def plan(
    schema_path: Path,
    model: Path | None,
    pairs: bool,
    target: str | None,
    check: float | None,
    epsilon: float,
    delta: float,
    mechanism: str,
    records: float | None,
    error: float | None,
    out: Path | None,
) -> Result:
    """Plan which tables to measure, and print how noisy they would be. No record is needed, and nothing is charged.

    \b
      pgmpy-dp plan --schema schema.json --model edges.txt --epsilon 1 --out tables.json --records 8000
      pgmpy-dp release records.csv --schema schema.json --cliques tables.json --epsilon 1 ...
    """
    from pgmpy_dp.cli.shared.structures import left_out, planned, planned_in_groups, schema_of
    from pgmpy_dp.data.mechanisms.mechanism import PublicRecords, quoted
    from pgmpy_dp.data.mechanisms.tables import CountedTables, deviations, noise_of
    from pgmpy_dp.fitting.plans.pairs import plan_pairs
    from pgmpy_dp.privacy.guarantee import learned
    from pgmpy_dp.schema import Schema

    if (model is None) == (not pairs):
        raise click.UsageError("Say what to plan for: give either --model or --pairs.")
    if (target is not None and not pairs) or (check is not None and pairs):
        raise click.UsageError("--target belongs to --pairs, --check belongs to --model.")
    require_delta(mechanism, delta)
    whole = Schema.load(schema_path)
    wanted, weights = (
        plan_pairs(whole, target) if model is None else planned(whole, model, check, noise_of(mechanism, delta))
    )
    asked, schema = CountedTables(wanted, epsilon, delta, mechanism, weights), schema_of(whole, wanted)
    quote = quoted(asked, PublicRecords.of(schema, delta))  # refuses what cannot be measured, before a file is written
    result, lines = foreseen(quote, schema, records, error)
    lines += delta_cautions(delta)
    if model is not None:
        lines += left_out(whole, schema.variables)
        if quote.cost.mechanism == "laplace":
            gaussian = replace(asked, delta=GAUSSIAN_DELTA, mechanism="gaussian")
            less = gaussian.quote(PublicRecords.of(schema, GAUSSIAN_DELTA))
            lines += gaussian_advice(deviations(quote), deviations(less))
        price = {"check": check, "epsilon": epsilon, "delta": delta, "mechanism": mechanism}
        if planned_in_groups(PublicRecords.of(whole, delta), model, records, **price) is not None:
            lines += [
                "",
                "These tables are of all states. pgmpy-dp release --model measures variables of many states in groups "
                "of these, with less noise; its --dry-run shows how.",
            ]
    if out is not None:
        results = learned(wanted)
        stated = {"guarantee": results.to_dict()} if results.every else {}
        _write(out, {"cliques": [list(clique) for clique in wanted], "weights": weights, **stated})
        lines += ["", f"Written to {out}, for pgmpy-dp release DATA --cliques {out} ..."]
    return result, lines


@click.command("plan-accuracy", cls=Command)
@schema_option
@click.option(
    "--table",
    "tables",
    multiple=True,
    required=True,
    metavar="NAMES=RECORDS",
    help="A table and the largest error of its cells, in records, such as age,sex=50; may be repeated.",
)
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Probability of an error within it.")
@delta_option(default=1e-9)
@click.option("--replace", is_flag=True, help="Neighbours replace a record; by default they add or remove one.")
@out_option(
    "--out", kind="a plan for an accuracy", endings=(".json",), help="Plan to write, .json, for release --plan."
)
def plan_accuracy(
    schema_path: Path,
    tables: tuple[str, ...],
    confidence: float,
    delta: float,
    replace: bool,
    out: Path | None,
) -> Result:
    """Plan measurements that reach a given accuracy at the smallest epsilon. No record is needed, nothing is charged.

    \b
      pgmpy-dp plan-accuracy --schema schema.json --table age,sex=50 --table region=20 --out plan.json
      pgmpy-dp release records.csv --schema schema.json --plan plan.json --ledger ledger.json --out release.zip
    """
    from pgmpy_dp.fitting.plans.accuracy import plan_accuracy as planned
    from pgmpy_dp.schema import Schema

    wanted: dict[tuple[str, ...], float] = {}
    for given in tables:
        names, results, width = given.rpartition("=")
        try:
            records = float(width) if results else math.nan
        except ValueError:
            records = math.nan
        if not 0 < records < math.inf:
            raise click.BadParameter(f"{given!r}: write names and records, such as age,sex=50.", param_hint="--table")
        wanted[tuple(name.strip() for name in names.split(","))] = records
    plan = planned(Schema.load(schema_path), wanted, confidence, delta, "replace_one" if replace else "add_remove")
    result = {
        "epsilon": plan.epsilon,
        "delta": plan.delta,
        "least_epsilon": plan.least_epsilon,
        "residuals": [{"variables": list(subset), "scale": scale} for subset, scale in plan.residuals.items()],
        "half_widths": [{"variables": list(clique), "records": width} for clique, width in plan.half_widths.items()],
        "tables_epsilon": plan.tables_epsilon,
        "tables": [
            {"variables": list(clique), "scale": plan.scales[clique], "weight": weight}
            for clique, weight in zip(plan.cliques, plan.weights, strict=True)
        ],
    }
    widest = max(len(", ".join(clique)) for clique in (*plan.cliques, *plan.half_widths))
    lines = [
        f"epsilon {plan.epsilon:.4g} at delta {plan.delta:g}, for the residuals of {len(plan.residuals)} sets of "
        f"variables. The lower bound for any measurement of marginals is {plan.least_epsilon:.4g}.",
        f"Largest error of a cell with probability {100 * confidence:g} %, in records:",
        *(f"  {', '.join(clique):<{widest}}  {reached:.4g}" for clique, reached in plan.half_widths.items()),
        f"Tables with independent noise need epsilon {plan.tables_epsilon:.4g}; standard deviation in records:",
        *(f"  {', '.join(clique):<{widest}}  {scale:.4g}" for clique, scale in plan.scales.items()),
    ]
    if out is not None:
        _write(out, result)
        lines += ["", f"Written to {out}, for pgmpy-dp release DATA --plan {out} ..."]
    return result, lines


def _write(out: Path, result: Mapping[str, Any]) -> None:
    out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def require_delta(mechanism: str, delta: float) -> None:
    """Refuse Gaussian noise without a delta."""
    if mechanism.startswith("gaussian") and delta == 0:
        raise click.ClickException(
            f"--mechanism {mechanism} needs a --delta, far below one over the number of records, such as 1e-9."
        )


def foreseen(
    quote: Quote[Any],
    schema: Schema,
    records: float | None = None,
    error: float | None = None,
    noise: Mapping[Clique, float] | None = None,
    priced: bool = True,
) -> tuple[dict[str, Any], list[str]]:
    """Describe the tables that would be measured at a price, for JSON and as lines."""
    from pgmpy_dp.data.mechanisms.tables import deviations
    from pgmpy_dp.fitting.plans.outlook import Outlook
    from pgmpy_dp.privacy.guarantee import counted

    require_guess(records, error)
    noise = deviations(quote) if noise is None else noise
    tables: list[dict[str, Any]] = [
        {"variables": list(clique), "cells": schema.cells(clique), "noise": deviation}
        for clique, deviation in noise.items()
    ]
    result: dict[str, Any] = {"guarantee": quote.guarantee.to_dict(), "tables": tables}
    remarks: list[str] = []
    if records is not None:
        outlook = Outlook.of(schema, noise, records, quote.guarantee)
        for table, results in zip(tables, outlook.tables, strict=True):
            table |= {"records": results.mean} | ({"share": results.cost} if priced else {})
        seen, remarks = described(outlook, error)
        result["outlook"] = seen
        if priced:
            maximum = outlook.costliest
            share = f"{100 * maximum.cost:.3g} % of the budget"
            remarks.append(f"The costliest table takes {share}: {', '.join(maximum.variables)}.")
    lines = [
        quote.guarantee.sentence(),
        f"{counted(len(tables), 'table')} of {sum(map(schema.cells, noise)):,} cells. Nothing was read or charged.",
        *remarks,
        "",
        *listed_tables(tables, quote.guarantee.counted),
    ]
    return result, lines


def require_guess(records: float | None, error: float | None) -> None:
    """Refuse an error without a number of records."""
    if error is not None and records is None:
        raise click.UsageError("--error needs a public guess of the number of records: add --records 8000.")


def described(outlook: Outlook, error: float | None = None) -> tuple[dict[str, Any], list[str]]:
    """Describe an outlook, and the least epsilon for an error, for JSON and as lines."""
    from pgmpy_dp.fitting.plans.outlook import INDEPENDENT, INDEPENDENT_RANGE

    result = {
        "records": outlook.total,
        "advice": outlook.advice,
        "reason": outlook.reason,
        "noise_to_signal": outlook.ratio,
    }
    lines = [f"With {outlook.total:,.0f} {outlook.guarantee.counted}. {outlook.verdict}"]
    if outlook.error is not None and outlook.error_range is not None:
        errors = (0.05, 0.02) if error is None else (error,)
        needed = {wanted: outlook.least_epsilon(wanted) for wanted in errors}
        result["pairs"] = {
            "error": outlook.error,
            "range": outlook.error_range,
            "independent": INDEPENDENT,
            "resampled": outlook.resampled,
        }
        result["least_epsilon"] = [{"error": wanted, "epsilon": epsilon} for wanted, epsilon in needed.items()]
        minimum, maximum = outlook.error_range
        low, high = INDEPENDENT_RANGE
        lines += [
            f"Predicted mean error of pairs of synthetic records (total variation): {outlook.error:.2g}, in nearly all "
            f"cases {minimum:.2g} to {maximum:.2g}. Independent columns: {low:g} to {high:g}. Records drawn again: "
            f"{outlook.resampled:.2g}.",
            f"Least epsilon for an error of {'; of '.join(f'{e:g}: {epsilon:.2g}' for e, epsilon in needed.items())}.",
        ]
    elif error is not None:
        raise click.ClickException(
            "--error is for synthetic records without a network, whose tables are those of all pairs: leave it out."
        )
    return result, lines


def gaussian_advice(laplace: Mapping[Clique, float], gaussian: Mapping[Clique, float]) -> list[str]:
    """Advise Gaussian noise, as `GAUSSIAN_DELTA` allows, if it is far smaller than Laplace noise."""
    of_laplace, of_gaussian = statistics.median(laplace.values()), statistics.median(gaussian.values())
    if of_gaussian > of_laplace / _WORTHWHILE:
        return []
    return [
        "",
        f"Gaussian noise, --mechanism gaussian --delta {GAUSSIAN_DELTA:g}, would be "
        f"{of_laplace / of_gaussian:.2g} times less, and leaves room for more pairs that the network does not join. "
        "The ledger needs a delta as well.",
    ]


def listed_tables(tables: Sequence[Mapping[str, Any]], counted: str) -> list[str]:
    """List tables with the noise of their cells, before a release and after it."""
    known = [name for name in ("records", "share") if tables and name in tables[0]]
    mean = "; records: their mean in a cell" if "records" in known else ""
    what = f"table (noise: standard deviation in each cell, in {counted}{mean})"
    heads = {"records": f"{'records':>9}  ", "share": f"{'budget':>7}  "}
    return [
        f"{'cells':>10}  {'noise':>9}  {''.join(heads[name] for name in known)}{what}",
        *(
            f"{table['cells']:>10,}  {table['noise']:>9.4g}  "
            + (f"{table['records']:>9.4g}  " if "records" in known else "")
            + (f"{100 * table['share']:>5.3g} %  " if "share" in known else "")
            + ", ".join(table["variables"])
            for table in tables
        ),
    ]
