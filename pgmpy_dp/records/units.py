"""Units of privacy: each row belongs to one, and what one unit may contribute is bounded.

A unit with several rows is bounded in one of two ways. Either at most `max_rows` of them are counted, sampled uniformly
without replacement; or all are, and each of K rows weighs 1 / K, as an integer number of parts, of which a unit has
:data:`~pgmpy_dp.privacy.noise.UNIT_WEIGHT`.

Sensitivity. What a unit adds to a table depends on its own rows and its own part of the randomness, and sums to at
most `max_rows`, or to at most UNIT_WEIGHT parts: floor(UNIT_WEIGHT / K) per row, K times. So for the same samples of
the units that neighbours share, their tables differ as :func:`~pgmpy_dp.privacy.noise.table_sensitivity` states.
Sampling mixes such pairs, which does not increase the divergence of the release. Nothing depends on the samples being
secret, since no privacy is claimed from sampling; they come from the operating system's generator all the same.

Rounding down loses less than K / UNIT_WEIGHT of a unit of K rows. A unit of more than UNIT_WEIGHT rows is not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy.checks import whole_number
from pgmpy_dp.privacy.noise import UNIT_WEIGHT, NoiseSource
from pgmpy_dp.records.ids import number_ids
from pgmpy_dp.records.refusals import sealed


@dataclass(frozen=True)
class Unit:
    """Column that identifies the unit of privacy, and a bound on what one unit contributes.

    Attributes
    ----------
    column : str
        Column of the records that says whose a row is.
    max_rows : int or None
        The most rows counted per unit; None to weigh them.
    keys : callable
        Returns a given number of uniform random 64-bit numbers.
    """

    column: str
    max_rows: int | None
    keys: Callable[[int], NDArray[np.uint64]]


def checked_unit(column: Any, max_rows: Any, noise: NoiseSource) -> Unit | None:
    """Check the unit that a caller asks for; None where records are units of their own."""
    if max_rows is not None:
        max_rows = whole_number("max_rows", max_rows, most=2**31 - 1)
    if column is None:
        if max_rows is not None:
            raise ValueError("max_rows bounds the rows of a unit: name the column that identifies units, unit=...")
        return None
    if not isinstance(column, str) or not column or column == "record":
        raise ValueError(f"unit must name a column of the records, and not 'record', got {column!r}.")
    return Unit(column, max_rows, noise.keys)


def require_single_records(unit: Unit | None) -> None:
    """Raise if there are units, for mechanisms whose sensitivity is that of one record."""
    if unit is not None:
        raise ValueError(
            f"This mechanism protects single records, not all rows of one {unit.column}: "
            "use measure(), which does, or leave unit out."
        )


def require_ids(missing: bool, column: str) -> None:
    """Raise if some rows have no unit."""
    if missing:
        raise SchemaError(
            f"The column {column!r} of units has missing values: every row must belong to a unit. Fill or drop them."
        )


def labels_of(ids: Any, unit: Unit) -> NDArray[np.int64]:
    """Number the units of a column of ids, from 0."""
    labels = sealed(lambda: number_ids(unit.column, ids), f"the column {unit.column!r} of units")
    require_ids(bool((labels < 0).any()), unit.column)
    return labels


def ranks_of(labels: NDArray[np.int64], unit: Unit) -> NDArray[np.int64]:
    """Rank each row among those of its unit, from 1, in a uniformly random order."""
    order = np.lexsort((unit.keys(labels.size), labels))
    ordered = labels[order]
    ranks = np.empty(labels.size, dtype=np.int64)
    ranks[order] = np.arange(1, labels.size + 1) - np.searchsorted(ordered, ordered)
    return ranks


def sampled_rows(labels: NDArray[np.int64], unit: Unit) -> NDArray[np.bool_]:
    """Mark at most `max_rows` rows of each unit, sampled uniformly without replacement."""
    chosen: NDArray[np.bool_] = ranks_of(labels, unit) <= (unit.max_rows or 0)
    return chosen


def row_weights(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the weight of each row, in parts of its unit's weight."""
    weights: NDArray[np.int64] = UNIT_WEIGHT // np.bincount(labels)[labels]
    return weights
