"""Mixture and household networks are saved as strict JSON, alone or with the release."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from pgmpy_dp._files import parse_json, replacing, require_known
from pgmpy_dp.errors import ReleaseFormatError
from pgmpy_dp.fitting.readings.mixture_fits import MixtureRelease, rules_of
from pgmpy_dp.inference.mixtures.boxes import Rules
from pgmpy_dp.inference.mixtures.fit.ensemble import MixtureFit
from pgmpy_dp.inference.mixtures.mixture import Child, Mixture
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.models.formats.saved import HOUSEHOLDS, require_format
from pgmpy_dp.privacy.checks import checked_number, whole_number
from pgmpy_dp.release import Release
from pgmpy_dp.release.carrying import SUFFIX, carries, read_carrying, write_carrying
from pgmpy_dp.schema import Schema

_VERSION = 1
# Settings with which a mixture was fitted.
_SETTINGS = ("size", "penalty", "width", "steps", "covering", "alike")


def write_model(
    path: str | os.PathLike[str], form: str, network: Any, own: Mapping[str, Any], release: MixtureRelease | None = None
) -> None:
    """Write a network's schema, guarantee, total, mixture and `own` entries; a .zip file carries the release.

    Raises
    ------
    ValueError
        If the name ends in neither .json nor .zip, or in .zip and there is no release.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in (".json", SUFFIX):
        level = "persons." if form == HOUSEHOLDS else ""
        raise ValueError(
            f"{path}: a mixture is saved as .json or {SUFFIX}: "
            f"{level}to_bayesian_network().save(...) writes it as a network in other formats."
        )
    content = {
        "format": form,
        "version": _VERSION,
        "schema": network.schema_.to_dict(),
        "guarantee": network.guarantee_.to_dict(),
        "total": network.total_,
        **own,
        **mixture_content(network.mixture_),
    }
    text = json.dumps(content, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    if suffix == SUFFIX:
        write_carrying(path, text, release)
        return
    with replacing(Path(path)) as handle:
        handle.write(text)


@contextmanager
def reading_model(path: str | os.PathLike[str], form: str, what: str) -> Iterator[tuple[Any, tuple[Release, ...]]]:
    """Yield what `write_model` wrote; errors in it are raised as a ReleaseFormatError that names the file."""
    require_format(path, form)
    content, releases = read_carrying(path) if carries(path) else (Path(path).read_bytes(), ())
    try:
        stored = parse_json(content)
        if stored["format"] != form:
            raise ValueError(f"it is not a {what}")
        require_known(stored["version"], _VERSION)
        yield stored, releases
    except ReleaseFormatError as error:
        raise ReleaseFormatError(f"{path}: {error}") from None
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
        reason = str(error).rstrip(".") or type(error).__name__
        raise ReleaseFormatError(f"{path}: not a sound {what} ({reason}). Save it anew.") from error


def mixture_content(mixture: Mixture) -> dict[str, Any]:
    """Return the JSON content of a mixture."""
    content: dict[str, Any] = {
        "weights": mixture.weights.tolist(),
        "blocks": [
            {"variables": list(block), "probabilities": table.ravel().tolist()}
            for block, table in zip(mixture.blocks, mixture.tables, strict=True)
        ],
    }
    refined = {v: child.shares.tocsc().data.tolist() for v, child in mixture.children.items() if not child.certain}
    return content | ({"refined": refined} if refined else {})


def mixture_of(schema: Schema, stored: Any) -> Mixture:
    """Build a mixture from its `mixture_content`."""
    blocks = [schema.require([block["variables"]])[0] for block in stored["blocks"]]
    tables = [
        numbers_of(block["probabilities"]).reshape(-1, *schema.shape(names))
        for names, block in zip(blocks, stored["blocks"], strict=True)
    ]
    sizes, rules, children = schema.cardinalities(), rules_of(schema), dict[str, Child]()
    for variable, (root, states) in rules.dependent.items():
        children[variable] = Child.function(root, states, sizes[variable])
    for finer, (coarser, groups) in rules.refined.items():
        certain = len(np.unique(groups)) == len(groups)  # and not written
        shares = np.ones(len(groups)) if certain else numbers_of(stored["refined"][finer])
        children[finer] = Child.within(coarser, groups, shares, sizes[coarser])
    return Mixture.of(sizes, blocks, numbers_of(stored["weights"]), tables, children)


def total_of(stored: Any) -> float:
    """Read the number of records."""
    total = checked_number("total", stored["total"])
    if not 0.0 < total < 2.0**63:
        raise ValueError("its number of records is not positive, or too large")
    return total


def settings_content(fit: MixtureFit) -> dict[str, Any]:
    """Return the JSON content of the settings with which a mixture was fitted."""
    return {name: getattr(fit, name) for name in _SETTINGS}


def fit_of(mixture: Mixture, rules: Rules, total: float, stored: Any) -> MixtureFit:
    """Build a fit from its `settings_content`."""
    stored = {"covering": 1, "alike": False} | stored  # files of earlier versions lack these settings
    size, steps, covering = (whole_number(name, stored[name], 1) for name in ("size", "steps", "covering"))
    penalty, width = (checked_number(name, stored[name]) for name in ("penalty", "width"))
    sound = min(penalty, width) >= 0 and isinstance(stored["alike"], bool)
    if not sound or (mixture.weights.size - covering) % size or covering >= mixture.weights.size:
        raise ValueError("its settings of the fit are invalid")
    return MixtureFit(mixture, total, size, penalty, width, steps, covering, rules, stored["alike"])


def numbers_of(values: Any) -> Vector:
    """Convert a list of numbers from a file; texts and booleans are refused."""
    found = np.array(values)
    if found.dtype.kind not in "iuf":
        raise ValueError("it has other values where numbers are expected")
    return found.astype(np.float64)
