"""The beginning of a saved model names its kind."""

from __future__ import annotations

import os
import re
from pathlib import Path

from pgmpy_dp._kinds import kind_of
from pgmpy_dp.errors import ReleaseFormatError
from pgmpy_dp.release.carrying import MODEL_AT, carries

BAYESIAN, MARKOV = "pgmpy_dp Bayesian network", "pgmpy_dp Markov network"
MIXTURE, HOUSEHOLDS = "pgmpy_dp mixture network", "pgmpy_dp household network"
_READ_BY = {"a schema": "Schema.load", "a ledger": "PrivacyBudget.open", "a release": "release.Release.load"}
_BEGINNING = re.compile(rb'\s*\{\s*"format"\s*:\s*"(pgmpy_dp \w+ network)"')


def format_of(path: str | os.PathLike[str]) -> str | None:
    """Return the format that a JSON file, or a zip file with releases, declares, or None.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    """
    with open(path, "rb") as file:
        file.seek(MODEL_AT if carries(path) else 0)
        found = _BEGINNING.match(file.read(200))
    return found[1].decode() if found else None


def require_format(path: str | os.PathLike[str], *forms: str) -> None:
    """Raise if a file declares the format of another kind of model, or is recognised as no model.

    Raises
    ------
    ReleaseFormatError
    """
    found = format_of(path)
    kind = kind_of(Path(path)) if found is None else None
    if kind in _READ_BY:
        raise ReleaseFormatError(f"{path} holds {kind} and no model: pgmpy_dp.{_READ_BY[kind]} reads it.")
    if found is not None and found not in forms:
        kind = found.removeprefix("pgmpy_dp ")
        raise ReleaseFormatError(f"{path} holds a {kind}: pgmpy_dp.load reads models of every kind.")
