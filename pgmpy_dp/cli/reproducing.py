"""`pgmpy-dp reproduce` runs experiments of the papers."""

from __future__ import annotations

from pathlib import Path

import click

from pgmpy_dp.cli.shared.common import Command, emit, json_option, quiet
from pgmpy_dp.papers.experiments import CATALOGUE


class _Listing(Command):
    """The help of this command ends with the experiments."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Names"):
            formatter.write_dl([(name, title) for name, (_, title) in CATALOGUE.items()])


@click.command(cls=_Listing)
@click.argument("names", metavar="NAME...", type=click.Choice([*CATALOGUE, "all"]), nargs=-1, required=True)
@click.option("--quick", is_flag=True, help="Few and small trials: each experiment within 40 seconds on two cores.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("pgmpy-dp-experiments"),
    show_default=True,
    help="Folder for the tables and figures; made if it is missing.",
)
@json_option
def reproduce(names: tuple[str, ...], quick: bool, out: Path, as_json: bool) -> None:
    """Run experiments of the papers, with simulated noise and fixed seeds.

    Each writes NAME.csv (every trial), NAME.png, NAME.svg and NAME.txt (its caption: what the paper claims, what came
    out, and why they differ). Stop it with Ctrl-C; the same command then continues. At most two processes run at a
    time; all experiments in full take some hours.
    """
    quiet()
    from pgmpy_dp.papers.experiments.runner import reproduce as run

    for name in CATALOGUE if "all" in names else dict.fromkeys(names):
        written = run(name, out, quick)
        lines = [*written[-1].read_text().splitlines(), "Written to " + ", ".join(map(str, written)) + "."]
        emit(as_json, {"experiment": name, "files": [str(path) for path in written]}, lines)
