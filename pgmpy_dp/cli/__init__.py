"""The command line is `pgmpy-dp`.

Command modules import only click at their top; each command imports what it needs when it runs, so that help is fast.
"""

from __future__ import annotations

import click

from pgmpy_dp import __version__
from pgmpy_dp.cli.analyst.fitted import check, fit, query, sample
from pgmpy_dp.cli.analyst.reporting import report
from pgmpy_dp.cli.demonstrate import demo
from pgmpy_dp.cli.owner.accuracy import plan_accuracy
from pgmpy_dp.cli.owner.binning import bins
from pgmpy_dp.cli.owner.discovering import states
from pgmpy_dp.cli.owner.draft import schema
from pgmpy_dp.cli.owner.households import households
from pgmpy_dp.cli.owner.ledgers import ledger
from pgmpy_dp.cli.owner.planning import plan
from pgmpy_dp.cli.owner.probing import probe
from pgmpy_dp.cli.owner.releases import inspect, release
from pgmpy_dp.cli.owner.searching import structure
from pgmpy_dp.cli.owner.synthesis import synthesize
from pgmpy_dp.cli.reproducing import reproduce
from pgmpy_dp.cli.shared.common import Group


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="pgmpy-dp")
def main() -> None:
    """Differentially private graphical models for pgmpy.

    \b
    The owner of the records                  Anyone, from the release alone
      schema   say what columns may hold        inspect  read what it promises
      ledger   fix a budget for the records     fit      make a network of it
      bins     cut numbers at quantiles         check    hold it against the release
      states   find those of which no list is   query    ask the network
      plan     which tables, and how noisy      sample   draw synthetic records
      release  measure, with noise              report   see all of it in one page
      probe    where a fitted network is farthest off
      structure   a graph from the records
      synthesize  records without a network
      households  the same for two tables: households, and persons in them

    Every command has its own --help, and all but demo print JSON with --json. Exit codes: 0 done, 1 refused (the
    message says what to do), 2 wrong usage.
    """


for command in (
    schema,
    ledger,
    bins,
    states,
    plan,
    plan_accuracy,
    release,
    probe,
    structure,
    synthesize,
    households,
    inspect,
    fit,
    check,
    query,
    sample,
    report,
    demo,
    reproduce,
):
    main.add_command(command)
