"""`pgmpy-dp release` and `pgmpy-dp inspect`: records to a release, and what a release says."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgmpy_dp.cli.common import Command, emit, file_argument, file_option, json_option, stages

if TYPE_CHECKING:
    from pgmpy_dp.release import NoisyMarginals


@click.command(cls=Command)
@click.argument("data", type=click.Path(exists=True, path_type=Path))
@file_option("--schema", "schema_path", required=True, help="Schema file: what each column may hold.")
@file_option("--model", help="Network whose tables to measure: .bif, .xmlbif, .uai, .json, or edges in .txt.")
@file_option("--cliques", help='Or the tables to measure, in JSON: [["smoke", "lung"], ...].')
@click.option("--epsilon", type=float, required=True, help="Privacy loss of this release.")
@click.option("--delta", type=float, default=0.0, show_default=True, help="Above 0 for Gaussian noise only.")
@click.option(
    "--mechanism", type=click.Choice(["laplace", "gaussian"]), default="laplace", show_default=True, help="Noise."
)
@click.option(
    "--neighbours",
    type=click.Choice(["add_remove", "replace_one"]),
    default="add_remove",
    show_default=True,
    help="What one record may change: whether it is there (their number is private), or what it says (it is public).",
)
@file_option("--ledger", exists=False, help="Ledger to charge; see pgmpy-dp ledger create.")
@file_option("--out", exists=False, required=True, help="Release file to write, .zip.")
@click.option("--force", is_flag=True, help="Overwrite an existing release file.")
@json_option
def release(
    data: Path,
    schema_path: Path,
    model: Path | None,
    cliques: Path | None,
    epsilon: float,
    delta: float,
    mechanism: str,
    neighbours: str,
    ledger: Path | None,
    out: Path,
    force: bool,
    as_json: bool,
) -> None:
    """Count the records of DATA (.csv, .parquet) with noise, and write the release file.

    This is the one command that reads records. The ledger is charged, on disk, before noise is drawn. What it writes
    may be published: it promises what `pgmpy-dp inspect` prints.

    \b
      pgmpy-dp ledger create ledger.json --epsilon 2
      pgmpy-dp release records.csv --schema schema.json --model model.bif --epsilon 1 \\
          --ledger ledger.json --out release.zip
    """
    if (model is None) == (cliques is None):
        raise click.UsageError("Say what to measure: give either --model or --cliques.")
    if out.exists() and not force:
        raise click.ClickException(f"{out} exists already: choose another name, or add --force to overwrite it.")
    if not os.access(out.parent, os.W_OK):  # found out later, the charge would be lost
        raise click.ClickException(f"{out.parent}: no folder that can be written to; make it first.")
    from pgmpy_dp import PrivacyBudget, PrivateDataset, Schema, plan_measurements
    from pgmpy_dp.cli.ledgers import open_ledger, summary
    from pgmpy_dp.cli.structure import read_cliques, read_structure

    with _values_kept_back(), stages(3) as begin:
        begin("Reading the schema and the model")
        schema = Schema.load(schema_path)
        weights: list[float] | None
        if model is not None:
            structure = read_structure(model)
            schema.require([list(structure.nodes())])
            wanted, weights = plan_measurements(structure, schema)
        else:
            wanted, weights = read_cliques(cliques)  # type: ignore[assignment, arg-type]
        wanted = schema.require(wanted)
        schema = schema.select(list(dict.fromkeys(variable for clique in wanted for variable in clique)))
        budget = PrivacyBudget(epsilon, delta) if ledger is None else open_ledger(ledger)
        begin("Reading the records")
        dataset = PrivateDataset(data, schema, budget, neighbours=neighbours)
        begin("Counting, with noise")
        noisy = dataset.measure(wanted, epsilon, delta=delta, mechanism=mechanism, weights=weights)
        noisy.save(out)
    description = describe(noisy) | {"file": str(out)}
    lines = [str(noisy), f"Written to {out}."]
    if ledger is None:
        lines.append("Charged to no ledger: nothing adds this up with other releases from these records (--ledger).")
    else:
        description["ledger"] = summary(budget)  # type: ignore[arg-type]
        lines.append(f"Ledger {ledger}: epsilon {budget.remaining.epsilon:.6g} remains.")
    emit(as_json, description, "\n".join(lines))


@contextmanager
def _values_kept_back() -> Iterator[None]:
    """Let through only messages that this package wrote: those of other libraries may hold values of records."""
    try:
        yield
    except (click.ClickException, OSError, ImportError):
        raise
    except Exception as error:
        frames = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
        if isinstance(error, (ValueError, TypeError)) and frames[-1].startswith("pgmpy_dp."):
            raise
        raise click.ClickException(
            f"The release failed ({type(error).__name__}). The message is kept back, since it may show values of "
            "records; check that the columns of the data are what the schema says. What was charged stays charged."
        ) from None


@click.command(cls=Command)
@file_argument("path")
@json_option
def inspect(path: Path, as_json: bool) -> None:
    """Check the release file PATH and show what it promises and holds."""
    from pgmpy_dp.release import NoisyMarginals

    noisy = NoisyMarginals.load(path)
    held = describe(noisy)
    guarantee, records = noisy.guarantee, held["records"]
    promise = str(guarantee)
    versions = ", ".join(f"{name} {version}" for name, version in guarantee.versions.items())
    about = "public" if records["public"] else f"estimated, give or take {records['deviation']:.3g}"
    lines = [
        f"{promise[0].upper()}{promise[1:]}.",
        f"Made with {versions or 'unknown versions'}.",
        f"Number of records: {records['value']:.6g} ({about})",
        "",
        f"{'cells':>8}  {'noise':>9}  table (noise: standard deviation in each cell, in records)",
    ]
    for table in held["tables"]:
        lines.append(f"{table['cells']:>8}  {table['noise']:>9.4g}  {', '.join(table['variables'])}")
    emit(as_json, held, "\n".join(lines))


def describe(noisy: NoisyMarginals) -> dict[str, Any]:
    """What a release holds, for JSON."""
    return {
        "guarantee": noisy.guarantee.to_dict() | {"text": str(noisy.guarantee)},
        "records": {
            "value": noisy.total,
            "public": noisy.public_total is not None,
            "deviation": noisy.total_variance**0.5,
        },
        "tables": [
            {
                "variables": list(clique),
                "cells": int(table.size),
                "scale": noisy.scales[clique],
                "noise": noisy.variances[clique] ** 0.5,
            }
            for clique, table in noisy.tables.items()
        ],
        "schema": noisy.schema.to_dict(),
    }
