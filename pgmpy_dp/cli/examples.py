"""`pgmpy-dp demo` shows a release, a fit and queries."""

from __future__ import annotations

from pathlib import Path

import click

from pgmpy_dp.cli.shared.common import Refusing, stage


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
