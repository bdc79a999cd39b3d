"""`pgmpy-dp households` writes two synthetic tables, of households and of the persons in them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from pgmpy_dp.cli.owner.records import (
    RecordOptions,
    dry_run_option,
    foreseen,
    public_table,
    table_options,
    written_option,
)
from pgmpy_dp.cli.shared.common import (
    Command,
    charged_already,
    delta_cautions,
    emit,
    json_option,
    stages,
)
from pgmpy_dp.cli.shared.files import file_argument, file_option, out_option
from pgmpy_dp.cli.shared.written import NUMBERS, RECORDS, columns_of_files, spreadsheet_option, write_records


@click.command(cls=Command)
@file_argument("homes", "records")
@file_argument("people", "records")
@click.option("--epsilon", type=float, required=True, help="Privacy loss of a household with all of its persons.")
@click.option(
    "--delta", type=float, required=True, help="For Gaussian noise: far below one over the number of households, 1e-9."
)
@file_option(
    "--persons-schema", kinds=("a schema",), required=True, help="Schema file of PEOPLE; --schema is that of HOMES."
)
@click.option("--key", metavar="COLUMN", required=True, help="Column of both tables: which household a row is about.")
@click.option(
    "--max-persons",
    type=click.IntRange(1, 100),
    required=True,
    help="The most persons of a household that are counted: of one with more, so many are drawn.",
)
@click.option("--size", default="size", show_default=True, help="What to call the number of persons of a household.")
@table_options
@click.option(
    "--rows", type=click.IntRange(1), help="How many households to draw; by default as many as there seem to be."
)
@click.option(
    "--numbers",
    type=NUMBERS,
    default="uniform",
    show_default=True,
    help="What bins become: numbers within them, their middles, or their names.",
)
@click.option(
    "--seed", type=click.IntRange(0), help="For the same tables from the same release; no privacy hangs on it."
)
@written_option("--out", "records", endings=RECORDS, help="Synthetic households to write, .csv or .parquet.")
@written_option("--persons-out", "records", endings=RECORDS, help="Synthetic persons to write, .csv or .parquet.")
@out_option(
    "--release", "release_path", kind="a release", endings=(".zip",), help="Release file to write as well, .zip."
)
@out_option(
    "--model",
    kind="a model of households",
    endings=(".json",),
    help="Model to write as well, .json: for PrivateHouseholdNetwork.load.",
)
@spreadsheet_option
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@dry_run_option
@json_option
def households(
    homes: Path,
    people: Path,
    epsilon: float,
    delta: float,
    persons_schema: Path,
    key: str,
    max_persons: int,
    size: str,
    rows: int | None,
    numbers: Any,
    seed: int | None,
    out: Path | None,
    persons_out: Path | None,
    release_path: Path | None,
    model: Path | None,
    spreadsheet: bool,
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Write synthetic households and persons that are like those of HOMES and PEOPLE.

    Both tables have the column of keys. Each household has one row in HOMES and at least one in PEOPLE, and is
    protected with all of its persons. All pairs of variables are measured with noise, within a table and across,
    and of two persons of a household; a mixture is fitted to them, and two tables are drawn from it, joined by
    the key. All that is written may be published.

    \b
      pgmpy-dp households homes.csv people.csv --key household_id --max-persons 8 \\
          --schema homes.json --persons-schema people.json --epsilon 1 --delta 1e-9 \\
          --ledger ledger.json --out synthetic_homes.csv --persons-out synthetic_people.csv
    """
    from pgmpy_dp.data import PrivateHouseholds
    from pgmpy_dp.estimators.for_records.household_mixture import HouseholdMixture, tables_of_households
    from pgmpy_dp.models.numbers import require_numbers
    from pgmpy_dp.schema import HouseholdSchema

    with stages(4) as begin:
        begin("Reading the schemas")
        chosen, schemas = _schemas(persons_schema, key, options)
        schema = HouseholdSchema(*schemas, key, max_persons, size)
        for level in schemas:
            require_numbers(level.bins, numbers)
        if dry_run:
            public = public_table(schema.measured, delta, chosen.neighbours, key)
            quote = tables_of_households(schema, epsilon, delta, "gaussian").quote(public)
            foreseen(quote, schema.measured, as_json, *chosen.affordable(epsilon, delta))
            return
        assert out is not None
        assert persons_out is not None
        budget = chosen.budget(epsilon, delta)
        begin("Reading the tables")
        dataset = PrivateHouseholds(homes, people, schema, budget, chosen.neighbours)
        begin("Measuring pairs, and fitting a mixture")
        estimator = HouseholdMixture(epsilon, delta).fit(dataset)
        network = estimator.network_
        with charged_already():
            if release_path is not None:
                estimator.release_.save(release_path)
            if model is not None:
                network.save(model)
            begin("Drawing households and persons")
            drawn = network.simulate(rows, seed=seed, numbers=numbers)
            cautions = [
                caution
                for table, own, path in zip(drawn, schemas, (out, persons_out), strict=True)
                for caution in write_records(columns_of_files(table, own), path, own, spreadsheet)
            ]
    cautions = [*delta_cautions(delta), *cautions]
    ledger, line = chosen.charged(budget)
    files = [path for path in (out, persons_out, release_path, model) if path is not None]
    counts = [len(table) for table in drawn]
    held = {
        "guarantee": network.guarantee_.to_dict() | {"text": str(network.guarantee_)},
        "files": list(map(str, files)),
        "households": counts[0],
        "persons": counts[1],
        "cautions": cautions,
    }
    lines = [
        network.guarantee_.sentence(),
        f"{counts[0]} synthetic households written to {out}, with {counts[1]} persons in {persons_out}.",
        *(f"Written to {path}." for path in files[2:]),
        *cautions,
        line,
    ]
    emit(as_json, held | ledger, lines)


def _schemas(persons_schema: Path, key: str, options: dict[str, Any]) -> tuple[RecordOptions, tuple[Any, Any]]:
    """Read both schemas; each --missing and --other goes to that of the table that has the variable."""
    from pgmpy_dp.schema import Schema

    own = Schema.load(persons_schema).states

    def of_persons(text: str) -> bool:
        return any(text[:place] in own for place, character in enumerate(text) if character == "=")

    chosen = RecordOptions(**options, unit=key, max_rows=None)
    homes, people = (
        replace(
            chosen,
            schema_path=path,
            missing=tuple(text for text in chosen.missing if of_persons(text) is persons),
            other=tuple(text for text in chosen.other if of_persons(text) is persons),
        ).schema()
        for path, persons in ((chosen.schema_path, False), (persons_schema, True))
    )
    return chosen, (homes, people)
