"""The command line: `pgmpy-dp`."""

from __future__ import annotations

import warnings
from pathlib import Path

import click

from pgmpy_dp import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="pgmpy-dp")
def main() -> None:
    """Differentially private graphical models for pgmpy."""


@main.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("pgmpy-dp-demo"),
    show_default=True,
    help="Folder for the release, the fitted models and the plots; made if it is missing.",
)
@click.option("--epsilon", type=float, default=1.0, show_default=True, help="Privacy loss of the release.")
def demo(out: Path, epsilon: float) -> None:
    """Release, fit and query the RAND Health Insurance Experiment (20,190 person-years).

    Takes the records from private to published: noisy marginals under differential privacy, a Bayesian and a Markov
    network fitted from them, and answers beside the non-private ones.
    """
    # pgmpy warns of its own deprecated modules as it imports them; nobody at the command line can help that.
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"pgmpy\.")
    from pgmpy_dp.demo import run

    try:
        run(out, epsilon)
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from error
