"""The candidate with the lowest score is chosen privately."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.privacy.checks import exact_positive, rounded_down


def selection_scale(epsilon: Fraction | float, sensitivity: int) -> float:
    """Find the smallest scale at which :func:`noisy_least` costs at most epsilon.

    Permute-and-flip at scale s is (2 sensitivity / s)-differentially private if no neighbour changes any score by more
    than `sensitivity` (McKenna and Sheldon 2020, Theorem 1, with s = 2 sensitivity / epsilon).

    Parameters
    ----------
    epsilon : Fraction or float
        A float is taken as the decimal it prints as.
    sensitivity : int
        Of each score.

    Raises
    ------
    ValueError
        If an argument is out of range.
    ImportError
        If OpenDP is not installed.

    Examples
    --------
    >>> selection_scale(0.5, 3)
    12.0
    """
    target = rounded_down(exact_positive("epsilon", epsilon))
    scale = 2.0 * sensitivity / target
    for _ in range(64):
        if _permute_and_flip(scale).map(sensitivity) <= target:
            return scale
        scale = math.nextafter(scale, math.inf)
    raise ValueError(f"No scale near {scale!r} meets epsilon={target!r}: choose a larger epsilon.")


def noisy_least(scores: NDArray[np.int64], scale: float) -> int:
    """Draw the position of a low score by OpenDP's permute-and-flip.

    This equals adding exponential noise of that scale to the negated scores and taking the largest (Ding, Kifer,
    Steinke, Wang, Xiao and Zhang 2021), but on exact integers.

    Parameters
    ----------
    scores : ndarray of int64, shape (n_candidates,)
    scale : float
        Positive; see :func:`selection_scale`.

    Raises
    ------
    ValueError
        If scores or scale are of the wrong kind.
    """
    if not isinstance(scores, np.ndarray) or scores.dtype != np.int64 or scores.ndim != 1 or scores.size == 0:
        raise ValueError("scores must be a one-dimensional array of int64, not empty.")
    return int(_permute_and_flip(float(exact_positive("scale", scale)))(np.array(scores, order="C")))


def _permute_and_flip(scale: float) -> Any:
    try:
        import opendp.domains as domains
        import opendp.measurements as measurements
        import opendp.measures as measures
        import opendp.metrics as metrics
        from opendp.mod import enable_features
    except ImportError as error:
        raise ImportError(
            "Private choices are drawn by OpenDP, which is not installed: run `pip install opendp`."
        ) from error
    enable_features("contrib")
    vectors, distance = domains.vector_domain(domains.atom_domain(T="i64")), metrics.linf_distance(T="i64")
    return measurements.make_noisy_max(vectors, distance, measures.max_divergence(), scale=scale, negate=True)
