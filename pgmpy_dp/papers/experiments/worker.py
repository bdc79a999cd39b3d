"""Trials run in a process of their own, with one thread and no progress bars of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from pgmpy_dp.papers.experiments import CATALOGUE


def start() -> None:
    """Set what libraries read when they are imported."""
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", NUMBA_NUM_THREADS="1", TQDM_DISABLE="1")


def load(name: str) -> Any:
    """Load the experiment of a name in the catalogue."""
    module, _, attribute = CATALOGUE[name][0].partition(":")
    return getattr(import_module(f"pgmpy_dp.papers.experiments.{module}"), attribute)


def run_trial(name: str, trial: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Run one trial, in whatever process."""
    try:
        rows: list[dict[str, Any]] = load(name).run(**trial)
    except ValueError as error:
        raise ValueError(f"{name}, trial {dict(trial)}: {error}") from error
    return rows
