"""`pgmpy-dp report` shows a release on one page."""

from __future__ import annotations

from pathlib import Path

import click

from pgmpy_dp.cli.common import Command, emit, file_argument, file_option, json_option, quiet, stages


@click.command(cls=Command)
@file_argument("release")
@file_option("--model", help="Fitted network to draw and to compare with.")
@file_option("--out", exists=False, required=True, help="Page to write, .html.")
@json_option
def report(release: Path, model: Path | None, out: Path, as_json: bool) -> None:
    """Write one self-contained HTML page about RELEASE.

    It shows what was released and what it cost, the guarantee in plain words, the network with its noise, marginals
    with noise bars, and a warning where noise exceeds signal. It follows from the release alone and may be published
    with it.
    """
    quiet()
    from pgmpy_dp.networks import load_network
    from pgmpy_dp.release import NoisyMarginals, Release
    from pgmpy_dp.report import write_report

    with stages(2) as begin:
        begin("Reading the release")
        noisy = Release.load(release)
        if not isinstance(noisy, NoisyMarginals):
            raise click.ClickException(
                f"{release} holds {noisy.kind.replace('_', ' ')}; the page shows tables. Look at it with "
                "pgmpy-dp inspect."
            )
        network = None if model is None else load_network(model)
        begin("Drawing the page")
        drowned = write_report(noisy, out, network)
    names = [list(clique) for clique in drowned]
    lines = [f"Written to {out}."]
    if names:
        lines.append(f"Noise exceeds signal in {len(names)} of {len(noisy.tables)} tables; they are marked.")
    emit(as_json, {"file": str(out), "noise_exceeds_signal": names}, lines)
