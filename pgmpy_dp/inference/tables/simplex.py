"""Tables are projected on the probability simplex in Euclidean distance."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def project_to_simplex(values: ArrayLike) -> NDArray[np.float64]:
    """Find the nearest probability table, in Euclidean distance, to a table of any shape.

    Parameters
    ----------
    values : array_like
        Finite numbers, such as a noisy table divided by the number of records. All cells together form one
        simplex.

    Returns
    -------
    ndarray of float64
        Same shape; non-negative, and sums to 1 up to rounding. Cells are often exactly zero.

    Raises
    ------
    ValueError
        If there is no cell or a value is not finite.

    Notes
    -----
    Duchi, Shalev-Shwartz, Singer and Chandra 2008, Figure 1; O(d log d) for d cells.

    Examples
    --------
    >>> project_to_simplex([0.9, 0.4, -0.2]).round(3).tolist()
    [0.75, 0.25, 0.0]
    """
    table = np.asarray(values, dtype=np.float64)
    if table.size == 0 or not np.isfinite(table).all():
        raise ValueError("project_to_simplex: values must be a non-empty table of finite numbers.")
    # The projection does not change under a shift. With the largest value at 0 every cell of the support lies
    # above -1, so the sums below lose no precision however large the values are.
    with np.errstate(over="ignore"):
        shifted = table - table.max()
    candidates = np.sort(shifted[shifted > -1.0])[::-1]
    thresholds = (np.cumsum(candidates) - 1.0) / np.arange(1, candidates.size + 1)
    support = np.flatnonzero(candidates > thresholds)[-1]
    projected: NDArray[np.float64] = np.maximum(shifted - thresholds[support], 0.0)
    return projected
