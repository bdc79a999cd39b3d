"""`pgmpy-dp probe` measures where records are farthest from a network that was fitted to their release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pgmpy_dp.cli.analyst.fitted import loaded_network, tested
from pgmpy_dp.cli.owner.records import RecordOptions, dry_run_option, record_options, written_option
from pgmpy_dp.cli.shared.common import (
    Command,
    charged_already,
    delta_cautions,
    emit,
    json_option,
    quiet,
    stages,
)
from pgmpy_dp.cli.shared.files import file_option, records_argument


@click.command(cls=Command)
@records_argument
@file_option("--model", kinds=("a network",), required=True, help="Fitted network, a .zip that carries its release.")
@click.option("--epsilon", type=float, required=True, help="Privacy loss of choosing and measuring.")
@click.option(
    "--delta",
    type=float,
    default=0.0,
    show_default=True,
    help="Above 0 for Gaussian noise: far below one over the number of records, 1e-9.",
)
@click.option("--pairs", type=click.IntRange(1), default=3, show_default=True, help="The most pairs that are measured.")
@record_options
@written_option("--out", "a network", endings=(".zip",), help="Network to write, .zip, which carries both releases.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@dry_run_option
@json_option
def probe(
    data: Path,
    model: Path,
    epsilon: float,
    delta: float,
    pairs: int,
    out: Path | None,
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Measure where DATA is farthest from a fitted network: are edges missing?

    Of the pairs of variables that the network does not join, those are chosen privately whose counts are farthest from
    what it expects; half of epsilon goes to that, half to their tables. A missing edge that a release of families
    hides is then seen, and bounds of answers allow for it.

    \b
      pgmpy-dp fit release.zip --model edges.txt --out fitted.zip
      pgmpy-dp probe records.csv --model fitted.zip --schema schema.json --epsilon 0.2 --ledger ledger.json \\
          --out probed.zip
      pgmpy-dp query probed.zip --target lung --evidence smoke=yes --interval 0.9
    """
    quiet()
    from pgmpy_dp.models.mixtures.mixture_network import PrivateMixtureNetwork

    chosen = RecordOptions(**options)
    with stages(3) as begin:
        begin("Reading the network")
        schema, network = chosen.schema(), loaded_network(model)
        if isinstance(network, PrivateMixtureNetwork):
            raise click.ClickException(
                f"{model} is a mixture, whose release measures all pairs: pgmpy-dp check {model}."
            )
        if not hasattr(network, "release_"):
            raise click.ClickException(f"{model} carries no release: write it by pgmpy-dp fit --out fitted.zip.")
        if dry_run:
            plan = f"Half of epsilon chooses at most {pairs} pairs that the network does not join, half measures them."
            held, lines = chosen.affordable(epsilon, delta)
            emit(as_json, {"pairs": pairs, **held}, [plan, *delta_cautions(delta), *lines])
            return
        assert out is not None
        budget = chosen.budget(epsilon, delta)
        begin("Reading the records")
        dataset = chosen.dataset(data, schema, budget)
        begin("Choosing and measuring")
        measured = network.measure_misfit(dataset, epsilon, delta=delta, pairs=pairs)
        with charged_already():
            network.save(out)
    found, told = tested(network.check_fit)
    ledger, line = chosen.charged(budget)
    held = {
        "guarantee": network.guarantee_.to_dict() | {"text": str(network.guarantee_)},
        "measured": [list(pair) for pair in measured.cliques],
        "file": str(out),
        "check": found,
    }
    lines = [
        f"Measured, of {next(iter(measured.chosen_among.values()))} pairs, those that are farthest off: "
        + "; ".join(", ".join(pair) for pair in measured.cliques)
        + ".",
        *told,
        f"Written to {out}. All that it carries is {network.guarantee_}.",
        *delta_cautions(delta),
        line,
    ]
    emit(as_json, held | ledger, lines)
