"""`python -m experiments`: the command line. Processes of trials import it, so it loads no numerical library."""

from __future__ import annotations

from pathlib import Path

import click

from experiments.catalogue import CATALOGUE
from pgmpy_dp.cli.shared.common import Refusing, emit


class _Listing(Refusing):
    """A command whose help ends with the experiments."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Names"):
            formatter.write_dl([(name, title) for name, (_, title) in CATALOGUE.items()])


@click.command(cls=_Listing, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("names", metavar="NAME...", type=click.Choice([*CATALOGUE, "all"]), nargs=-1, required=True)
@click.option("--quick", is_flag=True, help="Few and small trials: at most 40 seconds each on two cores.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("pgmpy-dp-experiments"),
    show_default=True,
    help="Folder for the tables and figures; made if it is missing.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def main(names: tuple[str, ...], quick: bool, out: Path, as_json: bool) -> None:
    """Run experiments of the papers, with simulated noise and fixed seeds.

    Each writes NAME.csv (every trial), NAME.png, NAME.svg and NAME.txt (a caption: the paper's claim, our result, and
    why they differ). Stop it with Ctrl-C; the same command then continues. At most two processes run at a time; all
    experiments in full take some hours.
    """
    from experiments.runner import reproduce

    for name in CATALOGUE if "all" in names else dict.fromkeys(names):
        written = reproduce(name, out, quick)
        lines = [*written[-1].read_text().splitlines(), "Written to " + ", ".join(map(str, written)) + "."]
        emit(as_json, {"experiment": name, "files": [str(path) for path in written]}, lines)


if __name__ == "__main__":
    main(prog_name="python -m experiments")
