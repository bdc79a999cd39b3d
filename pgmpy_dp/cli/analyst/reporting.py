"""`pgmpy-dp report` shows a release on one page."""

from __future__ import annotations

from datetime import date as calendar
from functools import reduce
from pathlib import Path
from typing import Any

import click

from pgmpy_dp._files import require_page
from pgmpy_dp.cli.analyst.fitted import carried, loaded_network, released_and_fitted
from pgmpy_dp.cli.shared.common import Command, Result, marked, mostly_noise, note, noted, one_line, stage
from pgmpy_dp.cli.shared.files import file_argument, file_option, out_option


@click.command(cls=Command, stages=2)
@file_argument("network", "a network")
@file_option("--release", kinds=("a release",), help="Release of a network that does not carry it, for bounds.")
@out_option("--out", kind=None, required=True, help="Page to write, .html.")
@click.option("--title", help="Heading of the page.")
def explore(network: Path, release: Path | None, out: Path, title: str | None) -> Result:
    """Write an HTML page that answers queries about NETWORK in a browser. This costs no privacy.

    The page works offline and fetches nothing. A click on a state shows all other variables given it, with bounds
    if the network carries its release. It depends only on the release and may be published with it.

    \b
      pgmpy-dp explore fitted.zip --out explore.html
      pgmpy-dp explore fitted.bif --release release.zip --out explore.html
    """
    from pgmpy_dp.release import Release

    require_page(out)
    stage("Reading the network")
    loaded = loaded_network(network)
    if release is not None:
        loaded.attach_release(Release.load(release))
    stage("Drawing bounds, writing the page")
    loaded.explore(out, title=title)
    if not carried(loaded):
        note("The network carries no release, from which bounds are drawn: the page has none.")
    notes = noted()
    result = {"file": str(out), "bytes": out.stat().st_size, "bounds": bool(carried(loaded)), "notes": notes}
    lines = [f"Written to {out} ({out.stat().st_size / 1e6:.1f} MB).", *map(marked, notes)]
    return result, lines


@click.command(cls=Command, stages=2)
@file_argument("release", "a release", "a network")
@file_option(
    "--model", kinds=("a network",), help="Network fitted to the release, or the model that synthesize wrote with it."
)
@out_option("--out", kind=None, required=True, help="Page to write, .html.")
@click.option("--title", default="Privacy report", show_default=True, help="Heading of the page.")
@click.option("--date", help="Date below the title; today by default.")
def report(release: Path, model: Path | None, out: Path, title: str, date: str | None) -> Result:
    """Write one self-contained HTML page about RELEASE.

    It shows the released tables and their cost, the guarantee in plain words, the network with its noise, marginals
    with noise bars, and a warning where noise hides most cells; for a model of synthesize, the tables it does not fit.
    It follows from the release alone and may be published with it.

    \b
      pgmpy-dp report release.zip --model fitted.bif --out report.html
      pgmpy-dp report pairs.zip --model mixture.json --out report.html
      pgmpy-dp report fitted.zip --out report.html
    """
    from pgmpy_dp.models.mixtures.mixture_network import PrivateMixtureNetwork
    from pgmpy_dp.report import write_report
    from pgmpy_dp.report.tables import table_fits

    require_page(out)
    stage("Reading the release")
    releases, network = released_and_fitted("report", release, model)
    for each in releases:
        if not each.cliques:
            raise click.ClickException(
                f"{release} holds {each.kind.replace('_', ' ')}; the page shows tables. Look at it with "
                "pgmpy-dp inspect."
            )
    try:
        noisy: Any = reduce(lambda one, other: one + other, releases)
    except (TypeError, ValueError) as error:
        raise click.ClickException(
            f"{release} carries releases that cannot be joined ({one_line(error)}): pgmpy-dp report RELEASE "
            f"--model {release}."
        ) from error
    stage("Drawing the page")
    drowned = write_report(noisy, out, network, title=title, date=date or calendar.today().isoformat())
    names = [list(clique) for clique in drowned]
    lines = [f"Written to {out}."]
    lines += mostly_noise(noisy)
    if names:
        lines.append(f"Noise hides most cells of {len(names)} of {len(noisy.tables)} tables; they are marked.")
    result = {"file": str(out), "mostly_hidden": names}
    if isinstance(network, PrivateMixtureNetwork):
        beyond = [list(fit.variables) for fit in table_fits(noisy, network) if fit.level != "clear"]
        lines.append(f"The model is beyond the noise of {len(beyond)} of {len(noisy.tables)} tables.")
        result["not_met"] = beyond
    return result, lines
