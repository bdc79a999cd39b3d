"""`pgmpy-dp synthesize` writes synthetic records, without a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pgmpy_dp.cli.owner.records import RecordOptions, dry_run_option, foreseen, record_options, written_option
from pgmpy_dp.cli.shared.common import (
    Command,
    charged_already,
    delta_cautions,
    emit,
    json_option,
    stages,
)
from pgmpy_dp.cli.shared.files import out_option, records_argument
from pgmpy_dp.cli.shared.written import NUMBERS, RECORDS, columns_of_files, spreadsheet_option, write_records


@click.command(cls=Command)
@records_argument
@click.option("--epsilon", type=float, required=True, help="Privacy loss.")
@click.option(
    "--delta", type=float, required=True, help="For Gaussian noise: far below one over the number of records, 1e-9."
)
@click.option(
    "--target",
    metavar="VARIABLE",
    help="A variable to be predicted from the others: its pairs get less noise, and triples with it are measured.",
)
@click.option(
    "--stages",
    "number",
    type=click.IntRange(1, 2),
    help="Measure once; or twice, the second time where the first left most doubt. The default is 2, but 1 where units "
    "have several rows.",
)
@click.option(
    "--rows", type=click.IntRange(1), help="How many records to draw; by default as many as there seem to be."
)
@click.option(
    "--numbers",
    type=NUMBERS,
    default="uniform",
    show_default=True,
    help="What bins become: numbers within them, their middles, or their names.",
)
@click.option(
    "--seed", type=click.IntRange(0), help="For the same records from the same release; no privacy hangs on it."
)
@record_options
@written_option("--out", "records", endings=RECORDS, help="Synthetic records to write, .csv or .parquet.")
@out_option(
    "--release", "release_path", kind="a release", endings=(".zip",), help="Release file to write as well, .zip."
)
@out_option(
    "--model",
    kind="a network",
    endings=(".json", ".zip"),
    help="Model to write as well, for pgmpy-dp query and sample: .zip, which carries its release, or .json.",
)
@spreadsheet_option
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@dry_run_option
@json_option
def synthesize(
    data: Path,
    epsilon: float,
    delta: float,
    target: str | None,
    number: int | None,
    rows: int | None,
    numbers: Any,
    seed: int | None,
    out: Path | None,
    release_path: Path | None,
    model: Path | None,
    spreadsheet: bool,
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Write synthetic records that are like those of DATA, without a network.

    All pairs of variables are measured with noise, a mixture is fitted to them, and records are drawn from it. Pairs of
    the synthetic records are close to those of DATA; what three variables do together is blurred, and so are rare
    states. All that is written may be published.

    \b
      pgmpy-dp ledger create ledger.json --epsilon 2 --delta 1e-8
      pgmpy-dp synthesize records.csv --schema schema.json --epsilon 1 --delta 1e-9 \\
          --ledger ledger.json --out synthetic.csv --release release.zip --model model.json
    """
    from pgmpy_dp.estimators.for_records.pairwise_mixture import PairwiseMixture, tables_of_pairs
    from pgmpy_dp.models.numbers import require_numbers

    chosen = RecordOptions(**options)
    with stages(4) as begin:
        begin("Reading the schema")
        schema = chosen.schema()
        require_numbers(schema.bins, numbers)
        if dry_run:  # shows one stage: two have as much noise in all, but where is not known before
            public = chosen.public(schema, delta)
            asked = tables_of_pairs(schema, epsilon, delta, "gaussian", target, single=public.contribution == 1)
            foreseen(asked.quote(public), schema, as_json, *chosen.affordable(epsilon, delta))
            return
        assert out is not None
        budget = chosen.budget(epsilon, delta)
        begin("Reading the records")
        dataset = chosen.dataset(data, schema, budget)
        begin("Measuring pairs, and fitting a mixture")
        number = number or (2 if dataset.max_rows == 1 else 1)
        estimator = PairwiseMixture(epsilon, delta, stages=number, target=target).fit(dataset)
        network = estimator.network_
        with charged_already():
            if release_path is not None:
                estimator.release_.save(release_path)
            if model is not None:
                network.save(model)
            begin("Drawing records")
            drawn = network.simulate(rows, seed=seed, numbers=numbers, predicting=target)
            cautions = write_records(columns_of_files(drawn, schema), out, schema, spreadsheet)
    cautions = [*delta_cautions(delta), *cautions]
    ledger, line = chosen.charged(budget)
    count = max(round(network.total_), 1) if rows is None else rows
    held = {
        "guarantee": network.guarantee_.to_dict() | {"text": str(network.guarantee_)},
        "files": [str(path) for path in (out, release_path, model) if path is not None],
        "rows": count,
        "cautions": cautions,
    }
    lines = [
        network.guarantee_.sentence(),
        f"{count} synthetic records of {len(schema.variables)} variables written to {out}.",
        *(f"Written to {path}." for path in (release_path, model) if path is not None),
        *cautions,
        line,
    ]
    emit(as_json, held | ledger, lines)
