"""Files say what they are: one in the place of another is named, with the place where it belongs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from pgmpy_dp.cli.common import shown

# What takes files of a kind, as a refusal says it.
_BELONGS = {
    "records": "records are the DATA of release, probe, structure, bins, states and synthesize, and the tables of "
    "households",
    "a schema": "--schema takes it",
    "a data dictionary": "pgmpy-dp schema makes a schema of it",
    "a ledger": "--ledger takes it",
    "a release": "it is the RELEASE of inspect, fit, check and report",
    "a network": "query and sample take it, and --model of release, fit, check, probe and report",
    "a model of households": "PrivateHouseholdNetwork.load reads it in Python",
    "a list of edges": "--model of plan, release and fit takes it",
    "a list of tables": "--cliques of release takes it",
    "a plan for an accuracy": "--plan of release takes it",
}
DICTIONARY_COLUMNS = ("variable", "type", "states", "edges", "labels", "decimals", "missing", "other", "missing_values")
_ENDINGS = {
    ".csv": "records", ".parquet": "records", ".pq": "records", ".bif": "a network", ".xmlbif": "a network",
    ".xml": "a network", ".uai": "a network", ".txt": "a list of edges", ".edges": "a list of edges",
}  # fmt: skip
_FORMATS = {
    "pgmpy_dp ledger": "a ledger",
    "pgmpy_dp Bayesian network": "a network",
    "pgmpy_dp Markov network": "a network",
    "pgmpy_dp mixture network": "a network",
    "pgmpy_dp household network": "a model of households",
}


def kind_of(path: Path) -> str | None:
    """Tell what a file is by its ending, or where that says too little, by the outermost names of its content."""
    if path.is_dir():
        return "records"
    ending = path.suffix.lower()
    if ending == ".zip":
        with path.open("rb") as file:  # records may be large
            zipped = file.read(2) == b"PK"
        if not zipped:
            return None
        from pgmpy_dp.release.carrying import carries

        if carries(path):
            return "a network"
        return "records" if path.name.lower().endswith(".csv.zip") else "a release"
    if ending == ".csv" and _is_dictionary(path):
        return "a data dictionary"
    return _kind_of_json(path) if ending == ".json" else _ENDINGS.get(ending)


def _is_dictionary(path: Path) -> bool:
    """Say whether a file begins as a data dictionary in CSV does."""
    with path.open("rb") as file:
        names = file.readline(500).decode("utf-8-sig", errors="replace").split(",")
    found = {name.strip().strip('"') for name in names}
    return "variable" in found and bool({"states", "edges"} & found) and found <= set(DICTIONARY_COLUMNS)


def _kind_of_json(path: Path) -> str | None:
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    if isinstance(content, list):
        return "a list of tables"
    if not isinstance(content, dict):
        return None
    if isinstance(content.get("format"), str):
        return _FORMATS.get(content["format"])
    if isinstance(content.get("fields"), list):
        return "a schema"
    if isinstance(content.get("cliques"), list):
        return "a list of tables"
    if isinstance(content.get("residuals"), list):
        return "a plan for an accuracy"
    return "a data dictionary" if all(isinstance(entry, list | dict) for entry in content.values()) else None


STRUCTURES = ("a network", "a list of edges")


class FileOf(click.Path):
    """A parameter takes a file; where it is to be of some kinds, one that is plainly of another is refused by name."""

    def __init__(self, *kinds: str, folder: bool = False, exists: bool = True) -> None:
        super().__init__(exists=exists, dir_okay=folder, path_type=Path)
        self.kinds = kinds

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(str(super().convert(value, param, ctx)))
        found = kind_of(path) if self.kinds and path.exists() else None
        if found is None or found in self.kinds:
            return path
        place = "" if param is None or param.param_type_name == "argument" else f" for {param.opts[0]}"
        raise click.ClickException(
            shown(f"{path}: not {' or '.join(self.kinds)}{place}, but {found}: {_BELONGS[found]}.")
        )


def file_argument(name: str, *kinds: str) -> Callable[[Any], Any]:
    """Take a file that exists, of one of these kinds."""
    return click.argument(name, type=FileOf(*kinds))


def file_option(
    *names: str, kinds: tuple[str, ...] = (), help: str, exists: bool = True, required: bool = False, **more: Any
) -> Callable[[Any], Any]:
    """Take a file to read, of these kinds, or with ``exists=False`` one to write."""
    return click.option(*names, type=FileOf(*kinds, exists=exists), required=required, help=help, **more)


records_argument = click.argument("data", type=FileOf("records", folder=True))
"""The records: a file, or a folder of Parquet files."""
