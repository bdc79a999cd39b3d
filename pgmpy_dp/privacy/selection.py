"""Private choice of a candidate with a low score."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.privacy.checks import exact_positive, rounded_down

_Rule = Literal["permute-and-flip", "exponential"]


def selection_scale(epsilon: Fraction | float, sensitivity: int) -> float:
    """Find the smallest scale at which :func:`noisy_least` costs at most epsilon.

    Permute-and-flip at scale s is (2 sensitivity / s)-differentially private if no neighbour changes any score by more
    than `sensitivity` (McKenna and Sheldon 2020, Theorem 1, with s = 2 sensitivity / epsilon).

    Parameters
    ----------
    epsilon : Fraction or float
        A float is read as its printed decimal.
    sensitivity : int
        Sensitivity of each score.

    Examples
    --------
    >>> selection_scale(0.5, 3)
    12.0
    """
    target = rounded_down(exact_positive("epsilon", epsilon))
    return _smallest_scale("permute-and-flip", 2.0 * sensitivity / target, sensitivity, target)


def exponential_scale(rho: Fraction | float, sensitivity: int) -> float:
    """Find the smallest scale at which :func:`exponential_least` costs at most rho of zCDP.

    If no neighbour changes any score by more than `sensitivity`, the log-odds of any two candidates under the
    exponential mechanism at scale s change by at most e = 2 sensitivity / s: the mechanism is e-bounded range, and so
    (e**2 / 8)-zCDP (Cesar and Rogers 2021). Accounted as pure epsilon, it would cost e, and so e**2 / 2 of zCDP. If a
    record changed all scores in the same direction, e would be half as large; this does not hold for ours.

    Parameters
    ----------
    rho : Fraction or float
    sensitivity : int
        Sensitivity of each score.

    References
    ----------
    Dong, Durfee and Rogers (2020). Optimal differential privacy composition for exponential mechanisms. ICML.
    Cesar and Rogers (2021). Bounding, concentrating, and truncating: unifying privacy loss composition for data
    analytics. ALT.

    Examples
    --------
    >>> exponential_scale(0.125, 3)
    6.0
    """
    target = rounded_down(exact_positive("rho", rho))
    return _smallest_scale("exponential", sensitivity / math.sqrt(2.0 * target), sensitivity, target)


def noisy_least(scores: NDArray[np.int64], scale: float) -> int:
    """Draw the position of a low score by OpenDP's permute-and-flip.

    This equals adding exponential noise of this scale to the negated scores and taking the largest (Ding, Kifer,
    Steinke, Wang, Xiao and Zhang 2021), but on exact integers.

    Parameters
    ----------
    scores : ndarray of int64, shape (n_candidates,)
    scale : float
        Positive; see :func:`selection_scale`.
    """
    return _drawn("permute-and-flip", scores, scale)


def exponential_least(scores: NDArray[np.int64], scale: float) -> int:
    """Draw a position with odds exp(-score / scale) by OpenDP's exponential mechanism.

    This equals adding Gumbel noise of this scale to the negated scores and taking the largest, except that OpenDP
    computes only as many digits of the noise as the comparison needs, so no floating-point number is drawn.

    Parameters
    ----------
    scores : ndarray of int64, shape (n_candidates,)
    scale : float
        Positive; see :func:`exponential_scale`.
    """
    return _drawn("exponential", scores, scale)


def _drawn(rule: _Rule, scores: NDArray[np.int64], scale: float) -> int:
    if not isinstance(scores, np.ndarray) or scores.dtype != np.int64 or scores.ndim != 1 or scores.size == 0:
        raise ValueError("scores must be a one-dimensional array of int64, not empty.")
    return int(_selection(rule, float(exact_positive("scale", scale)))(np.array(scores, order="C")))


@lru_cache(maxsize=256)
def _smallest_scale(rule: _Rule, scale: float, sensitivity: int, target: float) -> float:
    """Go up from a scale, float by float, until OpenDP's own price is within the target."""
    for _ in range(64):
        if _selection(rule, scale).map(sensitivity) <= target:
            return scale
        scale = math.nextafter(scale, math.inf)
    raise ValueError(f"No scale near {scale!r} meets a loss of {target!r}: choose a larger one.")


@lru_cache(maxsize=256)
def _selection(rule: _Rule, scale: float) -> Any:
    """Make OpenDP's noisy maximum: under max divergence permute-and-flip, under zCDP the exponential mechanism."""
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
    exponential = rule == "exponential"
    measure = measures.zero_concentrated_divergence() if exponential else measures.max_divergence()
    return measurements.make_noisy_max(vectors, distance, measure, scale=scale, negate=True)
