"""Conversion of outputs to a structure and numbers, so that audits can compare them.

Outputs are arrays, releases, fitted estimators, networks and plain values, or lists, mappings and data classes of
these.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

_CATEGORY = "category"


@dataclass
class Observer:
    """Reader of outputs, which encodes each text, None or similar value by the same number in every output."""

    categories: dict[tuple[type, Any], int] = field(default_factory=dict)

    def read(self, output: Any) -> tuple[tuple[Any, ...], NDArray[np.float64]]:
        """Return the structure of an output (keys, lengths, types) and its numbers, in a fixed order."""
        found = _Found(self.categories)
        found.walk(output, "")
        return tuple(found.structure), np.array(found.numbers, dtype=np.float64)

    def places(self, output: Any) -> tuple[list[str], list[str]]:
        """Return the places of the entries of an output's structure, and of its numbers."""
        found = _Found(self.categories, named=True)
        found.walk(output, "")
        return found.structure_places, found.number_places

    def category(self, number: float) -> str | None:
        """Return the text or other value that a number encodes."""
        return next((repr(value) for (_, value), code in self.categories.items() if code == number), None)


def is_category(structure: Sequence[Any]) -> NDArray[np.bool_]:
    """Return which numbers of outputs of this structure encode texts or similar values."""
    flags: list[bool] = []
    for entry in structure:
        if entry == _CATEGORY:
            flags.append(True)
        elif isinstance(entry, tuple) and entry and entry[0] == "numbers":
            flags.extend([False] * math.prod(entry[1]))
    return np.array(flags, dtype=bool)


@dataclass
class _Found:
    categories: dict[tuple[type, Any], int]
    named: bool = False
    structure: list[Any] = field(default_factory=list)
    numbers: list[float] = field(default_factory=list)
    structure_places: list[str] = field(default_factory=list)
    number_places: list[str] = field(default_factory=list)

    def walk(self, value: Any, place: str) -> None:
        if value is None or isinstance(value, (str, bytes)):
            self._add_structure(_CATEGORY, place)
            self.numbers.append(self.categories.setdefault((type(value), value), len(self.categories)))
            self.number_places.append(place)
        elif isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            self._add_numbers(value, place)
        elif isinstance(value, (bool, int, float, Fraction, np.generic)):
            self._add_numbers(np.asarray(_as_float(value)), place)
        elif isinstance(value, Mapping):
            self._add_structure(("keys", tuple(value)), place)
            for key, item in value.items():
                self.walk(item, f"{place}[{key!r}]" if self.named else "")
        elif isinstance(value, AbstractSet):
            self._add_structure(("set", tuple(sorted(map(repr, value)))), place)
        elif isinstance(value, BaseException):
            self._add_structure(("raised", type(value).__name__), place)
            self.walk(str(value), f"{place} message")
        elif (parts := _parts(value)) is not None:
            self._add_structure(type(value).__name__, place)
            for name, item in parts:
                self.walk(item, f"{place}.{name}".lstrip(".") if self.named else "")
        elif isinstance(value, Iterable):
            items = list(value)
            self._add_structure(("length", len(items)), place)
            for index, item in enumerate(items):
                self.walk(item, f"{place}[{index}]" if self.named else "")
        else:
            raise TypeError(
                f"An audit cannot read a {type(value).__name__}: let the audited function return numbers, arrays, a "
                "release, a fitted estimator or network, or lists and mappings of these."
            )

    def _add_structure(self, entry: Any, place: str) -> None:
        self.structure.append(entry)
        self.structure_places.append(place)

    def _add_numbers(self, array: NDArray[Any], place: str) -> None:
        values = array.astype(np.float64).ravel()
        absent = np.isnan(values)
        if absent.any():  # events use the places of NaN, not its value
            self._add_structure(("not a number", tuple(np.flatnonzero(absent).tolist())), place)
            values = np.where(absent, 0.0, values)
        self._add_structure(("numbers", array.shape), place)
        self.numbers.extend(values.tolist())
        if self.named:
            spots = [", ".join(map(str, index)) for index in np.ndindex(array.shape)]
            self.number_places.extend(f"{place}[{spot}]" if spot else place or "output" for spot in spots)


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # the integer or fraction exceeds the largest float
        return math.inf if value > 0 else -math.inf


def _parts(value: Any) -> Iterable[tuple[str, Any]] | None:
    """Return the results that an object holds, by name; None if it holds none."""
    if isinstance(value, type):
        return None
    if hasattr(value, "get_params"):  # estimators: data classes of parameters, with results in addition
        return [(name, part) for name, part in vars(value).items() if name[0] != "_"]
    if dataclasses.is_dataclass(value):
        return [(part.name, getattr(value, part.name)) for part in dataclasses.fields(value)]
    if hasattr(value, "to_factor") or (hasattr(value, "variables") and hasattr(value, "get_value")):  # CPDs, factors
        return [(name, getattr(value, name)) for name in ("variables", "state_names", "values")]
    if hasattr(value, "beta") and hasattr(value, "evidence"):  # linear Gaussian CPDs
        return [(name, getattr(value, name)) for name in ("variable", "evidence", "beta", "std")]
    if hasattr(value, "columns") and hasattr(value, "to_numpy"):  # data frames
        return [("columns", list(value.columns)), ("rows", value.to_numpy())]
    results = [(name, part) for name, part in getattr(value, "__dict__", {}).items() if _is_result(name)]
    read = getattr(value, "get_cpds", None) or getattr(value, "get_factors", None)
    if read is not None:
        return [("nodes", list(value.nodes())), ("edges", list(value.edges())), ("factors", read()), *results]
    return results or None


def _is_result(name: str) -> bool:
    return name.endswith("_") and name[0] != "_"
