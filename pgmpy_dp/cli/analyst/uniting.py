"""`pgmpy-dp union` makes one release of several releases of different records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pgmpy_dp.cli.owner.releases import describe, described_lines
from pgmpy_dp.cli.shared.common import Command, Result, stage
from pgmpy_dp.cli.shared.files import FileOf, out_option

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
    help="The releases are of periods, and their files are called by numbers, such as 202401.zip, or by dates written "
    "alike, such as 2024-01.zip. They are put in order, and --partial fits borrow strength between adjacent ones.",
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
                f"{path.name} is not called by a period, or not as the others are. Call all files by numbers, such as "
                "202401.zip, or by dates, such as 2024-01.zip; or leave out --periods if they are not of periods."
            )
    return names
