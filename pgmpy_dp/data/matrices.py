"""Checks and conversions of matrices with one row per record."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


def is_masked(values: Any) -> bool:
    """Whether numpy, making an array of these values, would drop a mask and so show the masked values."""
    rows = values if isinstance(values, (list, tuple)) else [values]
    return any(isinstance(row, np.ma.MaskedArray) for row in rows)


def number_matrix(given: Any) -> NDArray[Any] | None:
    """Convert to an array of numbers with a row per record and at least one column; None if that is impossible.

    numpy's messages about values are suppressed: they would reveal the number of rows, the length of a text, or that a
    value is masked.
    """
    if is_masked(given):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values = np.asarray(given)
    except MemoryError:
        raise
    except Exception:
        return None
    return values if values.ndim == 2 and values.shape[1] > 0 and values.dtype.kind in "iufb" else None


def floats(values: NDArray[Any]) -> NDArray[np.float64]:
    """Convert numbers to float64; those too large become infinite, without a warning that would reveal them."""
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(np.float64)


def canonical_rows(given: Any, dtype: Any) -> sparse.csr_array:
    """Sort each sparse row by column, and add repeated entries in the order in which they stand.

    Each row is, to the last bit, the same as if it were alone. scipy's own function sorts all rows as soon as one of
    them is out of order, with no fixed order of equal columns.
    """
    entries = given.tocoo()
    count, width = entries.shape
    places, data = entries.row.astype(np.int64) * width + entries.col, entries.data.astype(dtype)
    if not (np.diff(places) > 0).all():
        order = np.argsort(places, kind="stable")
        places, first = np.unique(places[order], return_index=True)
        data = np.add.reduceat(data[order], first)
    ends = np.searchsorted(places, np.arange(count + 1) * width)
    return sparse.csr_array((data, places % width, ends), shape=(count, width))
