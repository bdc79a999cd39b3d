"""Two noisy tables of the same counts are pooled into one with less noise."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Rounding to whole numbers adds a twelfth to the variance of a cell.
_ROUNDING = 1.0 / 12.0


def pooled(
    first: NDArray[Any], second: NDArray[Any], scales: tuple[float, float], mechanism: str = "gaussian", parts: int = 1
) -> tuple[NDArray[Any], float]:
    """Average two tables by their precision.

    Parameters
    ----------
    first, second : ndarrays
        Of one shape.
    scales : pair of float
        Of their noise.
    mechanism : {"laplace", "gaussian"}
        The pooled noise is taken for noise of this kind, of the mean's variance. Of Gaussian noise it is.
    parts : int
        Counts are whole multiples of one by this number, and so is the mean: it is rounded.

    Returns
    -------
    table, scale

    Examples
    --------
    >>> table, scale = pooled(np.array([10, 20]), np.array([14, 26]), (4.0, 4.0))
    >>> table.tolist(), round(scale, 3)
    ([12, 23], 2.843)
    """
    precisions = scales[0] ** -2.0, scales[1] ** -2.0
    mean = np.rint((precisions[0] * first + precisions[1] * second) / sum(precisions) * parts)
    rounding = (
        _ROUNDING / parts**2 / (2.0 if mechanism == "laplace" else 1.0)
    )  # whose variance is twice its scale's square
    return (mean / parts if parts > 1 else mean.astype(np.int64)), float((1.0 / sum(precisions) + rounding) ** 0.5)
