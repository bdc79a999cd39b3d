"""Finer histograms of binned numbers, which are measured beside their bins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.schema.bins import Bins
from pgmpy_dp.schema.states import State

IN_DETAIL = " in detail"
"""How the name of a number's finer histogram ends."""


@dataclass(frozen=True)
class Detail:
    """A finer histogram of a binned number.

    Attributes
    ----------
    variable : str
    bins : Bins
        The finer bins.
    places : ndarray of int, shape (cells,)
        The position of each cell's state among the variable's: the finer bins', and then those of the states that stand
        for missing and undeclared values.
    """

    variable: str
    bins: Bins
    places: NDArray[np.intp]


def details_of(
    bins: Mapping[str, Bins], states: Mapping[str, tuple[State, ...]], roles: Iterable[Mapping[str, Any]]
) -> dict[str, Detail]:
    """List the finer histograms of all binned numbers that have finer bins."""
    found, roles = {}, list(roles)
    for variable, own in bins.items():
        if own.fine is None:
            continue
        if (name := variable + IN_DETAIL) in states:
            raise SchemaError(
                f"The name {name!r} is that of the finer histogram of {variable!r}: "
                f"rename the variable, or declare Bins(..., detail=0) for {variable!r}."
            )
        owners = np.searchsorted(own.edges, own.fine.edges[:-1], side="right") - 1
        others = [states[variable].index(role[variable]) for role in roles if variable in role]
        found[name] = Detail(variable, own.fine, np.append(owners, sorted(set(others))).astype(np.intp))
    return found
