"""Kinds of files are recognised by their endings, or by the outermost names of their content."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from pgmpy_dp._files import path_of
from pgmpy_dp.errors import ReleaseFormatError

BAYESIAN, MARKOV = "pgmpy_dp Bayesian network", "pgmpy_dp Markov network"
MIXTURE, HOUSEHOLDS = "pgmpy_dp mixture network", "pgmpy_dp household network"

_ENDINGS = {
    ".csv": "records", ".parquet": "records", ".pq": "records", ".bif": "a network", ".xmlbif": "a network",
    ".xml": "a network", ".xdsl": "a network", ".net": "a network", ".uai": "a network",
    ".txt": "a list of edges", ".edges": "a list of edges",
}  # fmt: skip
_FORMATS = {
    "pgmpy_dp ledger": "a ledger",
    BAYESIAN: "a network",
    MARKOV: "a network",
    MIXTURE: "a network",
    HOUSEHOLDS: "a model of households",
}
_READ_BY = {"a schema": "Schema.load", "a ledger": "PrivacyBudget.open", "a release": "release.Release.load"}
_BEGINNING = re.compile(rb'\s*\{\s*"format"\s*:\s*"(pgmpy_dp \w+ network)"')


def endings_of(kind: str) -> tuple[str, ...]:
    """List the endings by which files of a kind are recognised."""
    return tuple(ending for ending, own in _ENDINGS.items() if own == kind)


def kind_of(path: Path) -> str | None:
    """Recognise a file by its ending, or where that is ambiguous, by the outermost names of its content."""
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
    if ending == ".csv":
        from pgmpy_dp.schema.dictionary import DICTIONARY_COLUMNS

        with path.open("rb") as file:
            header = file.readline(500).decode("utf-8-sig", errors="replace")
        names = {name.strip().strip('"') for name in header.split(",")}
        if names == {"rule", "combination"}:
            return "rules"
        if "variable" in names and {"states", "edges"} & names and names <= set(DICTIONARY_COLUMNS):
            return "a data dictionary"
    return _kind_of_json(path) if ending == ".json" else _ENDINGS.get(ending)


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


def format_of(path: str | os.PathLike[str]) -> str | None:
    """Return the format that a JSON file, or a zip file with releases, declares, or None."""
    from pgmpy_dp.release.carrying import MODEL_AT, carries

    with path_of(path).open("rb") as file:
        file.seek(MODEL_AT if carries(path) else 0)
        result = _BEGINNING.match(file.read(200))
    return result[1].decode() if result else None


def require_format(path: str | os.PathLike[str], *forms: str) -> None:
    """Raise if a file declares the format of another kind of model, or is recognised as no model."""
    result = format_of(path)
    kind = kind_of(path_of(path)) if result is None else None
    if kind in _READ_BY:
        raise ReleaseFormatError(f"{path} holds {kind} and no model: pgmpy_dp.{_READ_BY[kind]} reads it.")
    if result is not None and result not in forms:
        kind = result.removeprefix("pgmpy_dp ")
        raise ReleaseFormatError(f"{path} holds a {kind}: pgmpy_dp.load reads models of every kind.")
