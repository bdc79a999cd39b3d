"""`pgmpy-dp synthesize` and `households` write synthetic records, without a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgmpy_dp.cli.owner.planning import foreseen
from pgmpy_dp.cli.owner.spending import Spending, spends
from pgmpy_dp.cli.shared.common import (
    Command,
    Result,
    charged_already,
    delta_cautions,
    hidden_by_noise,
    promised,
    stage,
    unidentified_means,
)
from pgmpy_dp.cli.shared.files import file_argument, file_option, out_option, records_argument
from pgmpy_dp.cli.shared.options import (
    delta_option,
    dry_run_option,
    epsilon_option,
    numbers_option,
    outlook_options,
    release_out_option,
    rows_option,
    seed_option,
    spreadsheet_option,
    written_option,
)
from pgmpy_dp.cli.shared.written import RECORDS, columns_of_files, write_records

if TYPE_CHECKING:
    from pgmpy_dp.schema import Schema


@click.command(cls=Command, stages=4)
@records_argument
@epsilon_option
@delta_option()
@click.option(
    "--target",
    metavar="VARIABLE",
    help="A variable to be predicted from the others: its pairs get less noise, and triples with it are measured.",
)
@click.option(
    "--stages",
    "number",
    type=click.IntRange(1, 2),
    default=1,
    show_default=True,
    help="Measure once; or twice, with less noise where the first fit is most uncertain, which needs a --delta.",
)
@click.option(
    "--measure",
    type=click.Choice(["tables", "residuals", "auto"]),
    default="auto",
    show_default=True,
    help="Deprecated: what is closer is measured, tables of pairs or, where variables have few states, residuals.",
)
@rows_option()
@numbers_option
@seed_option
@spends(own=("records",))
@written_option("--out", "records", endings=RECORDS, help="Synthetic records to write, .csv or .parquet.")
@release_out_option
@out_option(
    "--model",
    kind="a network",
    endings=(".json", ".zip"),
    help="Model to write as well, for pgmpy-dp query and sample: .zip, which carries its release, or .json.",
)
@spreadsheet_option
@dry_run_option
@outlook_options
def synthesize(
    spending: Spending,
    data: Path,
    target: str | None,
    number: int,
    measure: str,
    rows: int | None,
    numbers: Any,
    seed: int | None,
    out: Path,
    release_path: Path | None,
    model: Path | None,
    spreadsheet: bool,
    records: float | None,
) -> Result:
    """Write synthetic records that resemble those of DATA, without a network.

    All pairs of variables are measured with noise, a mixture is fitted to them, and records are drawn from it. Pairs of
    the synthetic records are close to those of DATA; interactions of three variables and rare states are blurred. All
    files written may be published. With --weights, records are drawn from the weighted distribution. All have the same
    weight, in a column of that name, and the weights add up to the estimated total. Single variables
    are measured first, and where noise would drown the pairs of as many records as these show, the rest is spent on
    them too. With --records, triples are measured where noise would be small. Pairs with a variable of more than 100
    states are measured over groups of these if noise would drown them; the output says how many.

    \b
      pgmpy-dp ledger create ledger.json --epsilon 2 --delta 1e-8
      pgmpy-dp synthesize records.csv --schema schema.json --epsilon 1 --delta 1e-9 \\
          --ledger ledger.json --out synthetic.csv --release release.zip --model model.json
    """
    from pgmpy_dp.estimators.mixtures import PairwiseMixture

    numbers = numbers or "drawn"
    epsilon, delta = spending.epsilon, spending.delta
    if measure != "auto":
        click.echo("--measure is deprecated: leave it out, and what is closer is measured.", err=True)
    stage("Reading the schema")
    schema = spending.schema()
    _require_numbers([schema], numbers)
    if spending.dry_run:  # shows one stage: two have as much noise in total, but its division is not known in advance
        planned = PairwiseMixture(epsilon, delta, target=target, records=records, measure=measure)
        plan = planned.plan(spending.public(schema))
        mechanism: Any = plan.mechanism
        priced = not mechanism.measures_residuals(records)
        return spending.planned(*foreseen(plan.quote, plan.schema, records, spending.error, plan.noise, priced))
    dataset = spending.dataset(data, schema)
    stage("Measuring pairs, and fitting a mixture")
    estimator = PairwiseMixture(epsilon, delta, stages=number, target=target, records=records, measure=measure).fit(
        dataset
    )
    network = estimator.network_
    with charged_already():
        _save((estimator.release_, release_path), (network, model))
        stage("Drawing records")
        drawn = network.simulate(rows, seed=seed, numbers=numbers, predicting=target)
        if spending.weights is not None and spending.weights not in drawn:
            drawn[spending.weights] = float(f"{estimator.release_.total_weight / len(drawn):.6g}")
        cautions = [*hidden_by_noise(estimator.release_), *(unidentified_means(network) if numbers == "drawn" else [])]
        cautions += _write([drawn], [schema], [out], spreadsheet)
    files = [path for path in (out, release_path, model) if path is not None]
    remarks = [*delta_cautions(spending.delta), *cautions]
    groups = network.groups_
    result = {**promised(network.guarantee_), "files": list(map(str, files)), "rows": len(drawn), "groups": groups}
    result["cautions"] = remarks
    lines = [
        network.guarantee_.sentence(),
        f"{len(drawn)} synthetic records of {len(schema.variables)} variables written to {out}.",
        *(f"Written to {path}." for path in files[1:]),
        *(f"Pairs with {name!r} are of {number} groups of its states." for name, number in groups.items()),
        *cautions,
    ]
    return spending.paid(result, lines)


@click.command(cls=Command, stages=4)
@file_argument("homes", "records")
@file_argument("people", "records")
@epsilon_option
@delta_option()
@file_option(
    "--persons-schema", kinds=("a schema",), required=True, help="Schema file of PEOPLE; --schema is that of HOMES."
)
@click.option("--key", metavar="COLUMN", required=True, help="Column of both tables that identifies the household.")
@click.option(
    "--max-persons",
    type=click.IntRange(1, 100),
    required=True,
    help="Largest number of persons counted in a household; of larger households this number is drawn at random.",
)
@click.option("--size", default="size", show_default=True, help="Name for the number of persons of a household.")
@spends(unit=False)
@rows_option("households")
@numbers_option
@seed_option
@written_option("--out", "records", endings=RECORDS, help="Synthetic households to write, .csv or .parquet.")
@written_option("--persons-out", "records", endings=RECORDS, help="Synthetic persons to write, .csv or .parquet.")
@release_out_option
@out_option(
    "--model",
    kind="a model of households",
    endings=(".json",),
    help="Model to write as well, .json: for PrivateHouseholdNetwork.load.",
)
@spreadsheet_option
@dry_run_option
@outlook_options
def households(
    spending: Spending,
    homes: Path,
    people: Path,
    persons_schema: Path,
    key: str,
    max_persons: int,
    size: str,
    rows: int | None,
    numbers: Any,
    seed: int | None,
    out: Path,
    persons_out: Path,
    release_path: Path | None,
    model: Path | None,
    spreadsheet: bool,
) -> Result:
    """Write synthetic households and persons that resemble those of HOMES and PEOPLE.

    Both tables have the column of keys. Each household has one row in HOMES and at least one in PEOPLE, and is
    protected with all of its persons. All pairs of variables are measured with noise, within a table, across tables
    and of two persons of a household; a mixture is fitted to them, and two tables are drawn from it, joined by the
    key. All files written may be published.

    \b
      pgmpy-dp households homes.csv people.csv --key household_id --max-persons 8 \\
          --schema homes.json --persons-schema people.json --epsilon 1 --delta 1e-9 \\
          --ledger ledger.json --out synthetic_homes.csv --persons-out synthetic_people.csv
    """
    from pgmpy_dp.data import PrivateHouseholds
    from pgmpy_dp.estimators.mixtures import HouseholdMixture
    from pgmpy_dp.schema import HouseholdSchema

    spending, numbers = replace(spending, unit=key), numbers or "drawn"
    stage("Reading the schemas")
    schemas = _schemas(spending, persons_schema)
    schema = HouseholdSchema(*schemas, key, max_persons, size)
    _require_numbers(schemas, numbers)
    if spending.dry_run:
        asked = HouseholdMixture(spending.epsilon, spending.delta, schema, neighbours=spending.neighbours)
        return spending.planned(*foreseen(asked.plan().quote, schema.measured, spending.records, spending.error))
    budget = spending.budget
    stage("Reading the tables")
    dataset = PrivateHouseholds(homes, people, schema, budget, spending.neighbours)
    stage("Measuring pairs, and fitting a mixture")
    estimator = HouseholdMixture(spending.epsilon, spending.delta).fit(dataset)
    network = estimator.network_
    with charged_already():
        _save((estimator.release_, release_path), (network, model))
        stage("Drawing households and persons")
        drawn = network.simulate(rows, seed=seed, numbers=numbers)
        cautions = hidden_by_noise(estimator.release_) + _write(drawn, schemas, [out, persons_out], spreadsheet)
    files = [path for path in (out, persons_out, release_path, model) if path is not None]
    counts = [len(table) for table in drawn]
    result = {
        **promised(network.guarantee_),
        "files": list(map(str, files)),
        "households": counts[0],
        "persons": counts[1],
        "cautions": [*delta_cautions(spending.delta), *cautions],
    }
    lines = [
        network.guarantee_.sentence(),
        f"{counts[0]} synthetic households written to {out}, with {counts[1]} persons in {persons_out}.",
        *(f"Written to {path}." for path in files[2:]),
        *cautions,
    ]
    return spending.paid(result, lines)


def _require_numbers(schemas: Sequence[Schema], numbers: Any) -> None:
    """Refuse open bins before anything is charged."""
    from pgmpy_dp.models.simulated import require_numbers

    for schema in schemas:
        require_numbers(schema.bins, numbers)


def _save(*kept: tuple[Any, Path | None]) -> None:
    for thing, path in kept:
        if path is not None:
            thing.save(path)


def _write(tables: Sequence[Any], schemas: Sequence[Schema], paths: Sequence[Path], spreadsheet: bool) -> list[str]:
    """Write synthetic tables, and return cautions about them."""
    return [
        caution
        for table, schema, path in zip(tables, schemas, paths, strict=True)
        for caution in write_records(columns_of_files(table, schema), path, schema, spreadsheet)
    ]


def _schemas(spending: Spending, persons_schema: Path) -> tuple[Schema, Schema]:
    """Read both schemas; each --missing and --other goes to the table that has the variable."""
    from pgmpy_dp.schema import Schema

    own = Schema.load(persons_schema).states

    def of_persons(text: str) -> bool:
        return any(text[:position] in own for position, character in enumerate(text) if character == "=")

    def of_table(persons: bool) -> dict[str, tuple[str, ...]]:
        texts = {"missing": spending.missing, "other": spending.other}
        return {role: tuple(text for text in named if of_persons(text) is persons) for role, named in texts.items()}

    homes = replace(spending, **of_table(False)).schema()  # type: ignore[arg-type]
    return homes, replace(spending, schema_path=persons_schema, **of_table(True)).schema()  # type: ignore[arg-type]
