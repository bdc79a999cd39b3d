"""`pgmpy-dp union` makes one release of several releases of different records."""

from __future__ import annotations

from pathlib import Path

import click

from pgmpy_dp.cli.owner.releases import describe, described_lines
from pgmpy_dp.cli.shared.common import Command, emit, stages
from pgmpy_dp.cli.shared.files import FileOf, out_option
from pgmpy_dp.cli.shared.options import force_option, json_option


@click.command(cls=Command)
@click.argument("releases", type=FileOf("a release"), nargs=-1, required=True)
@click.option("--as", "variable", default="site", show_default=True, help="Name of the variable that tells them apart.")
@click.option(
    "--overlap",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="The most releases that may count rows of one unit, such as a patient of several hospitals.",
)
@out_option("--out", kind="a release", endings=(".zip",), required=True, help="Release file to write, .zip.")
@force_option
@json_option
def union(releases: tuple[Path, ...], variable: str, overlap: int, out: Path, as_json: bool) -> None:
    """Unite RELEASES of different records, which their holders may not pool. This costs no privacy.

    Each release is named after its file. No holder needs another's records or release.

    \b
      pgmpy-dp union north.zip south.zip --as site --out all.zip
      pgmpy-dp fit all.zip --model edges.txt --out fitted.zip
      pgmpy-dp query fitted.zip --target lung --evidence site=north
    """
    import pgmpy_dp as dp
    from pgmpy_dp.release import Release

    names = [path.stem for path in releases]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise click.ClickException(f"Two files are called {twice!r}, which names their releases: rename one of them.")
    with stages(2) as begin:
        begin("Reading the releases")
        parts = {name: Release.load(path) for name, path in zip(names, releases, strict=True)}
        begin("Writing the union")
        united = dp.union(parts, variable, overlap)  # type: ignore[arg-type]  # it refuses other kinds
        united.save(out)
    held = describe(united)
    emit(as_json, held | {"file": str(out)}, [*described_lines(united, held), "", f"Written to {out}."])
