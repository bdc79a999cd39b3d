"""`pgmpy-dp release` turns records into a release, and `pgmpy-dp inspect` shows the content of a release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgmpy_dp.cli.owner.planning import GAUSSIAN_DELTA, foreseen, gaussian_advice, listed_tables, require_delta
from pgmpy_dp.cli.owner.spending import Spending, spends
from pgmpy_dp.cli.shared.common import (
    Command,
    Result,
    charged_already,
    delta_cautions,
    hidden_by_noise,
    promised,
    stage,
)
from pgmpy_dp.cli.shared.files import STRUCTURES, file_argument, file_option, records_argument
from pgmpy_dp.cli.shared.options import (
    check_option,
    dry_run_option,
    noise_options,
    outlook_options,
    written_option,
)

if TYPE_CHECKING:
    from pgmpy_dp.release import Release


@click.command(cls=Command, stages=3)
@records_argument
@file_option(
    "--model",
    kinds=STRUCTURES,
    help="Network whose tables to measure: .bif, .xmlbif, .xdsl, .net, .uai, .json, or edges in .txt.",
)
@file_option(
    "--cliques", kinds=("a list of tables",), help="Or the tables to measure, in JSON, as pgmpy-dp plan writes them."
)
@file_option(
    "--plan",
    kinds=("a plan for an accuracy",),
    help="Or the residuals to measure and their noise, as pgmpy-dp plan-accuracy writes them.",
)
@check_option
@noise_options(epsilon=False)
@click.option(
    "--sampling-rate",
    type=float,
    default=1.0,
    show_default=True,
    help="Count each record with this probability only. Never more accurate at the same epsilon; for methods that "
    "require it.",
)
@spends()
@written_option("--out", "a release", endings=(".zip",), help="Release file to write, .zip.")
@dry_run_option
@outlook_options
def release(
    spending: Spending,
    data: Path,
    model: Path | None,
    cliques: Path | None,
    plan: Path | None,
    check: float | None,
    mechanism: str,
    sampling_rate: float,
    out: Path,
) -> Result:
    """Count the records of DATA with noise, and write the release file.

    DATA is a .csv file (compressed or not), a .parquet file or a folder of them. It is never loaded whole, except for a
    sample.

    Only this command, and `bins`, `states`, `structure`, `probe`, `synthesize` and `households`, read records. The
    ledger is charged, on disk, before noise is drawn. The release file may be published; its guarantee is what
    `pgmpy-dp inspect` prints.

    \b
      pgmpy-dp ledger create ledger.json --epsilon 2
      pgmpy-dp release records.csv --schema schema.json --model model.bif --epsilon 1 \\
          --ledger ledger.json --out release.zip
      pgmpy-dp release visits.parquet --unit person_id --max-rows 3 --other ward=elsewhere ...
    """
    from pgmpy_dp.cli.shared.structures import (
        left_out,
        planned,
        planned_in_groups,
        read_cliques,
        read_plan,
        schema_of,
    )
    from pgmpy_dp.data.mechanisms.contrasts import Residuals
    from pgmpy_dp.data.mechanisms.mechanism import quoted
    from pgmpy_dp.data.mechanisms.tables import CountedTables, deviations, noise_of
    from pgmpy_dp.records.parquet import is_parquet, parquet_table
    from pgmpy_dp.release.coefficients import residual_variance

    if [model, cliques, plan].count(None) != 2:
        raise click.UsageError("Say what to measure: give either --model or --cliques, or a --plan.")
    if plan is not None and (spending.epsilon or spending.delta or mechanism != "auto" or sampling_rate != 1):
        raise click.UsageError("A --plan states its own noise: leave out --epsilon and other options of noise.")
    if check is not None and model is None:
        raise click.UsageError("--check belongs to --model.")
    if spending.epsilon is None and plan is None:
        raise click.UsageError("Missing option '--epsilon'.")
    require_delta(mechanism, spending.delta)
    stage("Reading the schema and the model")
    asked: Any
    schema, noise, in_groups = spending.schema(), None, None
    remarks: list[str] = []
    if plan is not None:
        scales, delta = read_plan(plan)
        schema = schema_of(schema, schema.require([subset for subset in scales if subset]))
        asked = Residuals(scales, delta)
        quote = quoted(asked, spending.public(schema, delta))
        noise = {v: residual_variance(schema, quote.terms.scales, v) ** 0.5 for v in quote.terms.cliques}
        spending = replace(spending, epsilon=quote.guarantee.epsilon, delta=delta)
    else:
        wanted, weights = (
            read_cliques(cliques)  # type: ignore[arg-type]
            if model is None
            else planned(schema, model, check, noise_of(mechanism, spending.delta))
        )
        wanted = schema.require(wanted)
        whole, schema = schema, schema_of(schema, wanted)
        remarks = [] if model is None else left_out(whole, schema.variables)
        asked = CountedTables(wanted, spending.epsilon, spending.delta, mechanism, weights, sampling_rate)
        if model is not None and sampling_rate == 1:
            price = {"check": check, "epsilon": spending.epsilon, "delta": spending.delta, "mechanism": mechanism}
            in_groups = planned_in_groups(spending.public(whole), model, spending.records, **price)
            schema = schema if in_groups is None else in_groups.public.schema
    if spending.dry_run:
        if in_groups is None:
            quote, foreseen_schema = quoted(asked, spending.public(schema)), schema
            noise = deviations(quote) if noise is None else noise
        else:
            quote, foreseen_schema, noise = in_groups.quote, in_groups.schema, in_groups.noise
        result, lines = foreseen(quote, foreseen_schema, spending.records, spending.error, noise)
        if model is not None and quote.cost.mechanism == "laplace" and sampling_rate == 1:
            other: Any = {"delta": GAUSSIAN_DELTA, "mechanism": "gaussian"}
            public = spending.public(whole, GAUSSIAN_DELTA)
            gaussian = in_groups and planned_in_groups(public, model, spending.records, **price | other)
            if gaussian is None:
                less = deviations(replace(asked, **other).quote(spending.public(schema, GAUSSIAN_DELTA)))
            else:
                less = gaussian.noise
            remarks += gaussian_advice(noise, less)
        return spending.planned(result, [*lines, *remarks])
    records: Any = data
    if sampling_rate != 1 and spending.unit is None and is_parquet(data):
        from pgmpy_dp.records.columns import read_columns

        records = parquet_table(data, read_columns(schema, schema.variables))  # samples are drawn in memory
    dataset = spending.dataset(records, schema)
    stage("Counting, with noise")
    if in_groups is None:
        noisy = dataset.release(asked)
    else:
        noisy = dataset.after(in_groups.quote.earlier).release(in_groups.mechanism)  # as the structure states
    with charged_already():
        noisy.save(out)
    result = describe(noisy)
    return spending.paid(
        result | {"file": str(out)}, [*described_lines(noisy, result), *remarks, "", f"Written to {out}."]
    )


@click.command(cls=Command)
@file_argument("path", "a release")
def inspect(path: Path) -> Result:
    """Check the release file PATH and print its guarantee and contents."""
    from pgmpy_dp.release import Release

    noisy = Release.load(path)
    result = describe(noisy)
    return result, described_lines(noisy, result)


def described_lines(noisy: Release, result: Mapping[str, Any]) -> list[str]:
    """Describe the guarantee and contents of a release as lines; `result` is its description for JSON."""
    from pgmpy_dp.observed.united_marginals import UnitedMarginals
    from pgmpy_dp.release import DiscoveredStates

    guarantee = noisy.guarantee
    head = [guarantee.sentence(), guarantee.origin]
    if isinstance(noisy, UnitedMarginals):
        each = [
            f"  {state}: {part.guarantee.sentence()} About {part.total:,.0f} {guarantee.counted}."
            for state, part in noisy.parts.items()
        ]
        order = ", in this order" if noisy.variable in noisy.schema.ordered else ""
        head += [f"A union of {len(each)} releases by {noisy.variable}{order}:", *each]
    if isinstance(noisy, DiscoveredStates):
        results = f"States of {noisy.variable} with a noisy count of at least {noisy.threshold}: {len(noisy.states)}"
        return [*head, results, "", *map(str, noisy.states)]
    if not noisy.cliques:
        families = [", ".join(family["variables"]) for family in result["families"]]
        return [*head, f"Draws of a network: {result['draws']}", "", "families (each node, its parents)", *families]
    total = result["total"]
    about = "public" if total["public"] else f"estimated, give or take {2 * total['deviation']:,.3g}"
    return [
        *head,
        f"Number of {guarantee.counted}: {total['value']:,.0f} ({about})",
        *([f"Sum of all weights: about {total['weight']:,.6g}"] if "weight" in total else []),
        *_cautions(noisy),
        "",
        *listed_tables(result["tables"], guarantee.counted),
    ]


def _cautions(noisy: Release) -> list[str]:
    """List cautions that a reader of tables and noise might overlook."""
    results = [*delta_cautions(noisy.guarantee.delta), *hidden_by_noise(noisy)]
    if noisy.guarantee.epsilon > 20:
        results.append("Caution: at an epsilon this large the guarantee means little.")
    minimum = noisy.total - 2 * noisy.total_variance**0.5
    drowned = sum(minimum <= noisy.noise(clique)[1] * noisy.schema.cells(clique) for clique in noisy.cliques)
    if drowned:
        results.append(
            f"Caution: in {drowned} of {len(noisy.cliques)} tables the noise of all cells exceeds the records."
        )
    return results


def describe(noisy: Release) -> dict[str, Any]:
    """Describe a release, for JSON."""
    from pgmpy_dp.fitting.plans.outlook import Outlook
    from pgmpy_dp.observed.united_marginals import UnitedMarginals
    from pgmpy_dp.release import NoisyMarginals

    result = {**promised(noisy.guarantee), "kind": noisy.kind}
    if not noisy.cliques:
        return noisy.contents() | result
    shares = (
        {} if not isinstance(noisy, NoisyMarginals) else {t.variables: t.cost for t in Outlook.of_release(noisy).tables}
    )
    united: dict[str, Any] = {}
    if isinstance(noisy, UnitedMarginals):
        parts = [{"state": state, **describe(part)} for state, part in noisy.parts.items()]
        united = {"variable": noisy.variable, "overlap": noisy.overlap, "parts": parts}
    weighed = noisy.guarantee.largest_weight is not None
    return {
        **result,
        "total": {
            "counted": noisy.guarantee.counted,
            "value": noisy.total,
            "public": noisy.public_total is not None,
            "deviation": noisy.total_variance**0.5,
            **({"weight": noisy.total_weight} if weighed else {}),
        },
        "tables": [
            {
                "variables": list(clique),
                "cells": int(noisy.schema.cells(clique)),
                **dict(zip(("scale", "noise"), noisy.noise(clique), strict=True)),
                "records": noisy.total / noisy.schema.cells(clique),
                **({"share": shares[clique]} if clique in shares else {}),
            }
            for clique in (*noisy.cliques, *noisy.details)
        ],
        "schema": noisy.schema.to_dict(),
        **united,
    }
