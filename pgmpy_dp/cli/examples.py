"""`pgmpy-dp demo` shows a release, a fit and queries."""

from __future__ import annotations

from pathlib import Path

import click

from pgmpy_dp.cli.shared.common import Refusing


@click.command(cls=Refusing)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("pgmpy-dp-demo"),
    show_default=True,
    help="Folder for the release, the fitted models and the plots; made if it is missing.",
)
@click.option("--epsilon", type=float, default=1.0, show_default=True, help="Privacy loss.")
def demo(out: Path, epsilon: float) -> None:
    """Release, fit and query the RAND Health Insurance Experiment.

    Noisy marginals of 20,190 person-years are released under differential privacy, a Bayesian and a Markov network are
    fitted to them, and their answers are printed beside the non-private ones.
    """
    from pgmpy_dp.demo import run

    run(out, epsilon)
