"""The kind of each file is recognised, so that a file in the wrong place is refused with a hint at the right one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from pgmpy_dp._names import printable
from pgmpy_dp.models.formats.file_kinds import endings_of, kind_of

# Which options take files of a kind, for refusals.
_BELONGS = {
    "records": "records are the DATA of release, probe, structure, bins, states and synthesize, and the tables of "
    "households",
    "a schema": "--schema takes it",
    "a data dictionary": "pgmpy-dp schema makes a schema of it",
    "rules": "--rules of schema takes it",
    "a ledger": "--ledger takes it",
    "a release": "it is the RELEASE of inspect, union, fit, check and report",
    "a network": "query and sample take it, and --model of release, fit, check, probe and report",
    "a model of households": "PrivateHouseholdNetwork.load reads it in Python",
    "a list of edges": "--model of plan, release and fit takes it",
    "a list of tables": "--cliques of release takes it",
    "a plan for an accuracy": "--plan of release takes it",
}
STRUCTURES = ("a network", "a list of edges")


class FileOf(click.Path):
    """Type of a parameter that takes a file of some kinds; a file recognised as another kind is refused.

    Files to write have `endings`; an empty tuple allows any ending. `require_writable` checks them.
    """

    def __init__(
        self, *kinds: str, folder: bool = False, exists: bool = True, endings: tuple[str, ...] | None = None
    ) -> None:
        super().__init__(exists=exists, dir_okay=folder, path_type=Path)
        self.kinds, self.endings = kinds, endings

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(str(super().convert(value, param, ctx)))
        result = None if self.endings is not None else self.other_kind(path)
        if result is None:
            return path
        position = "" if param is None or param.param_type_name == "argument" else f" for {param.opts[0]}"
        raise click.ClickException(
            printable(f"{path}: not {' or '.join(self.kinds)}{position}, but {result}: {_BELONGS[result]}.")
        )

    def other_kind(self, path: Path) -> str | None:
        """Return the kind of an existing file, if it is recognised as another than these."""
        result = kind_of(path) if path.exists() else None
        return None if result in self.kinds else result


def require_writable(parameters: Sequence[click.Parameter], values: Mapping[str, Any], force: bool) -> None:
    """Refuse results that cannot be written before anything is read or charged, since a charge would be lost.

    A command does not write to a file that it reads, nor two results to one file. With ``--force`` it overwrites files
    of the kind that it writes only, so that a ledger, or another file that was paid for, is not lost.
    """
    read: list[tuple[str, Path]] = []
    written: list[tuple[str, Path, FileOf]] = []
    for parameter in parameters:
        name, given = parameter.human_readable_name, values.get(parameter.name or "")
        if isinstance(parameter.type, FileOf) and given is not None:
            option = name if parameter.param_type_name == "argument" else parameter.opts[0]
            paths = given if isinstance(given, tuple) else (given,)
            if parameter.type.endings is None:
                read += [(option, path) for path in paths]
            else:
                written += [(option, path, parameter.type) for path in paths]
    for number, (option, path, _) in enumerate(written):
        for other, taken in [*read, *(each[:2] for each in written[:number])]:
            if _one_file(path, taken):
                raise click.ClickException(
                    f"{path}: named for {option} and for {other}: choose another name for the result."
                )
    for option, path, kind in written:
        if kind.endings and path.suffix.lower() not in kind.endings:
            raise click.ClickException(f"{path}: such files end in {' or '.join(kind.endings)}: choose another name.")
        result = kind.other_kind(path)
        if result is not None:
            raise click.ClickException(f"{path} is {result}, which {option} would overwrite: choose another name.")
        if path.exists() and not force:
            raise click.ClickException(f"{path} exists already: choose another name, or add --force to overwrite it.")
        if not os.access(path.parent, os.W_OK):
            raise click.ClickException(f"{path.parent}: no folder that can be written to; make it first.")


def _one_file(written: Path, other: Path) -> bool:
    """Return whether two paths are one file, or the first would be among the records of a folder."""
    if written.exists() and other.exists() and written.samefile(other):
        return True
    first, second = (Path(os.path.realpath(path)) for path in (written, other))
    among = other.is_dir() and first.is_relative_to(second) and first.suffix.lower() in endings_of("records")
    return first == second or among


def file_argument(name: str, *kinds: str) -> Callable[[Any], Any]:
    """Add an argument: an existing file of one of these kinds."""
    return click.argument(name, type=FileOf(*kinds))


def file_option(
    *names: str, kinds: tuple[str, ...] = (), help: str, exists: bool = True, required: bool = False, **more: Any
) -> Callable[[Any], Any]:
    """Add an option: a file to read, of these kinds."""
    return click.option(*names, type=FileOf(*kinds, exists=exists), required=required, help=help, **more)


def out_option(*names: str, kind: str | None, endings: tuple[str, ...] = (), **more: Any) -> Callable[[Any], Any]:
    """Add an option: a file to write, of this kind and with one of these endings (any if empty)."""
    kinds = () if kind is None else (kind,)
    return click.option(*names, type=FileOf(*kinds, exists=False, endings=endings), **more)


records_argument = click.argument("data", type=FileOf("records", folder=True))
"""The records: a file, or a folder of Parquet files."""
