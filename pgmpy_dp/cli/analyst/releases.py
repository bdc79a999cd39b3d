"""`pgmpy-dp union` makes one release of several of different records, and `report` shows a release on one page."""

from __future__ import annotations

from datetime import date as calendar
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgmpy_dp._files import require_page
from pgmpy_dp.cli.analyst.fitted import released_and_fitted
from pgmpy_dp.cli.owner.releases import describe, described_lines
from pgmpy_dp.cli.shared.common import Command, Result, hidden_by_noise, one_line, stage
from pgmpy_dp.cli.shared.files import FileOf, file_argument, file_option, out_option

if TYPE_CHECKING:
    from pgmpy_dp.schema.states import State


@click.command(cls=Command, stages=2)
@click.argument("releases", type=FileOf("a release"), nargs=-1, required=True)
@click.option("--as", "variable", default="site", show_default=True, help="Variable whose states are the releases.")
@click.option(
    "--overlap",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Maximum number of releases with rows of one unit, such as a patient of several hospitals.",
)
@click.option(
    "--periods",
    is_flag=True,
    help="The releases are of periods, and their files are named by numbers, such as 202401.zip, or by dates in one "
    "form, such as 2024-01.zip. They are put in order, and --partial fits borrow strength between adjacent ones.",
)
@out_option("--out", kind="a release", endings=(".zip",), required=True, help="Release file to write, .zip.")
def union(releases: tuple[Path, ...], variable: str, overlap: int, periods: bool, out: Path) -> Result:
    """Unite RELEASES of different records, which their holders may not pool. This costs no privacy.

    Each release is named after its file. No holder needs another's records or release.

    \b
      pgmpy-dp union north.zip south.zip --as site --out all.zip
      pgmpy-dp fit all.zip --model edges.txt --out fitted.zip
      pgmpy-dp query fitted.zip --target lung --evidence site=north
      pgmpy-dp union 2024-*.zip --as month --periods --out year.zip
    """
    import pgmpy_dp as dp
    from pgmpy_dp.release import Release

    names: list[State] = _periods(releases) if periods else [path.stem for path in releases]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise click.ClickException(f"Two files are called {twice!r}, which names their releases: rename one of them.")
    stage("Reading the releases")
    parts = {name: Release.load(path) for name, path in zip(names, releases, strict=True)}
    parts = dict(sorted(parts.items())) if periods else parts  # type: ignore[type-var]  # all numbers or all texts
    stage("Writing the union")
    united = dp.union(parts, variable, overlap)  # type: ignore[arg-type]  # it refuses other kinds
    united.save(out)
    result = describe(united)
    return result | {"file": str(out)}, [*described_lines(united, result), "", f"Written to {out}."]


def _periods(releases: tuple[Path, ...]) -> list[State]:
    """Read the names of files as numbers or dates, which are all written alike."""
    from pgmpy_dp.schema.states import written

    names: list[State] = [int(path.stem) if path.stem.isdecimal() else path.stem for path in releases]
    kinds = [written(name) for name in names]
    common = max(kinds, key=kinds.count)
    for path, kind in zip(releases, kinds, strict=True):
        if kind is None or kind != common:
            raise click.ClickException(
                f"{path.name} is not named after a period, or not in the form of the others. Name all files by "
                "numbers, such as 202401.zip, or by dates, such as 2024-01.zip; or leave out --periods if there are "
                "no periods."
            )
    return names


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
    from pgmpy_dp.models.mixture_network import PrivateMixtureNetwork
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
    lines += hidden_by_noise(noisy)
    if names:
        lines.append(f"Noise hides most cells of {len(names)} of {len(noisy.tables)} tables; they are marked.")
    result = {"file": str(out), "mostly_hidden": names}
    if isinstance(network, PrivateMixtureNetwork):
        beyond = [list(fit.variables) for fit in table_fits(noisy, network) if fit.level != "clear"]
        lines.append(f"The model is beyond the noise of {len(beyond)} of {len(noisy.tables)} tables.")
        result["not_met"] = beyond
    return result, lines
