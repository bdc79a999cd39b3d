"""The command line `pgmpy-dp`.

Modules of commands import only click at their top, and the rest when a command runs, so that help is fast.
"""

from __future__ import annotations

from pathlib import Path

import click

from pgmpy_dp import __version__
from pgmpy_dp.cli.analyst.fitted import check, explore, fit, query, sample
from pgmpy_dp.cli.analyst.releases import report, union
from pgmpy_dp.cli.owner.draft import schema
from pgmpy_dp.cli.owner.planning import plan, plan_accuracy
from pgmpy_dp.cli.owner.releases import inspect, release
from pgmpy_dp.cli.owner.searching import bins, probe, states, structure
from pgmpy_dp.cli.owner.spending import ledger
from pgmpy_dp.cli.owner.synthesis import households, synthesize
from pgmpy_dp.cli.shared.common import Group, Refusing, stage


class _Printing(Refusing):
    """A command whose text is printed when its progress bar is gone."""

    def invoke(self, ctx: click.Context) -> None:
        click.echo(f"\n{super().invoke(ctx)}")


@click.command(cls=_Printing, stages=5)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("pgmpy-dp-demo"),
    show_default=True,
    help="Folder for the release, the fitted models and the plots; made if it is missing.",
)
@click.option("--epsilon", type=float, default=1.0, show_default=True, help="Privacy loss.")
def demo(out: Path, epsilon: float) -> str:
    """Release, fit and query the RAND Health Insurance Experiment.

    Noisy marginals of 4,836 persons are released under differential privacy, a Bayesian and a Markov network are
    fitted to them, and their answers are printed beside the non-private ones.
    """
    from pgmpy_dp.demo import run

    return run(out, epsilon, stage)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="pgmpy-dp")
def main() -> None:
    """Differentially private graphical models for pgmpy.

    \b
    The owner of the records                  Anyone, from the release alone
      schema   declare states of variables      inspect  print its guarantee and tables
      ledger   fix a budget for the records     fit      fit a network to it
      bins     bin numbers at quantiles         union    unite releases of different records
      states   discover undeclared states       check    test the network against it
      plan     plan tables and their noise      query    ask the network
      release  measure, with noise              sample   draw synthetic records
      structure   find a graph                  report   write all of it on one page
                                                explore  write a page that answers
      probe    find where a fitted network is farthest off
      synthesize  write synthetic records without a network
      households  the same for two tables: households, and the persons in them

    Every command has its own --help, and all except demo print JSON with --json. Exit codes: 0 done, 1 refused (the
    message says what to do), 2 wrong usage.
    """


for command in (
    *(schema, ledger, bins, states, plan, plan_accuracy, release, probe, structure, synthesize, households),
    *(inspect, union, fit, check, query, sample, report, explore),
    demo,
):
    main.add_command(command)
