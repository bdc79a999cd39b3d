"""Discrete noise on counting tables, calibrated to a guarantee.

Only this module draws private noise. It uses OpenDP's exact integer samplers; numpy never draws it, and it has no
seed. The coins of private samples come from the operating system (`sampling`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp._threads import cores
from pgmpy_dp.privacy.checks import exact_positive, rounded_down

Counts = NDArray[np.int64]
Neighbours = Literal["add_remove", "replace_one"]

# A unit's weight is divided into this many parts: a power of two, so that weighted counts are exact floats.
UNIT_WEIGHT = 2**20

# Largest scale, in records: beyond it noise could leave the 64-bit integers, where OpenDP saturates and the stated
# variance would be wrong.
MAX_SCALE = 2.0**50

# Relative amount by which delta is lowered before a threshold is chosen; far more than floats round.
_ROUNDING = 1e-9

# Cells drawn by one thread at a time, about 0.1 s of work.
_PART = 8192


def table_sensitivity(neighbours: str, norm: Literal["l1", "squared_l2"], rows: int = 1) -> int:
    """Return the sensitivity of one counting table, in rows.

    A unit (a record, or a person with several) adds to the cells non-negative integers that sum to at most `rows`, and
    does not affect what other units add. Adding or removing the unit changes the table by this vector: the L1 norm of
    the change is at most `rows` and its squared L2 norm at most `rows`**2, both reached when one cell gets everything.
    Replacing the unit subtracts one such vector a and adds another, b: the L1 norm is at most 2 `rows`, and the
    squared L2 norm |a|**2 + |b|**2 - 2 a.b at most 2 `rows`**2, since a.b >= 0; both are reached by two cells.

    Parameters
    ----------
    neighbours : {"add_remove", "replace_one"}
    norm : {"l1", "squared_l2"}
    rows : int
        The largest sum that one unit adds to the table.

    Examples
    --------
    >>> table_sensitivity("replace_one", "l1")
    2
    >>> table_sensitivity("replace_one", "squared_l2", rows=3)
    18
    """
    if norm not in ("l1", "squared_l2"):
        raise ValueError(f'norm must be "l1" or "squared_l2", got {norm!r}.')
    if neighbours not in ("add_remove", "replace_one"):
        raise ValueError(f'neighbours must be "add_remove" or "replace_one", got {neighbours!r}.')
    units = 1 if neighbours == "add_remove" else 2
    return units * (rows if norm == "l1" else rows**2)


def laplace_scale(epsilon: Fraction | float, sensitivity: int) -> float:
    """Find the smallest scale at which OpenDP's discrete Laplace noise on one table costs at most epsilon.

    Noise of scale b on every cell has probabilities proportional to exp(-|k| / b), so a change of the table by d in L1
    norm changes the probability of any output by a factor of at most exp(d / b): epsilon = sensitivity / b. Tables of
    the same records with independent noise compose: a record changes each table by at most its sensitivity, so k tables
    with epsilons e_1 .. e_k together cost the sum of these.

    Parameters
    ----------
    epsilon : Fraction or float
        This table's share; a float is read as its printed decimal.
    sensitivity : int
        L1 sensitivity of the table, from :func:`table_sensitivity`.

    Returns
    -------
    float
        Scale b in records.

    Raises ValueError if an argument is out of range, or the noise would not fit 64-bit integers; ImportError if OpenDP
    is not installed.

    Examples
    --------
    >>> laplace_scale(0.5, 1)
    2.0
    """
    return _laplace_scale(exact_positive("epsilon", epsilon), sensitivity)


@lru_cache(maxsize=256)
def _laplace_scale(target: Fraction, sensitivity: int) -> float:
    return _smallest_scale(
        sensitivity / float(target),
        rounded_down(target),
        lambda scale: _laplace(scale).map(sensitivity),
        "epsilon",
    )


def least_threshold(scale: float, delta: float, rows: int) -> int:
    """Find the least threshold at which the new values of a unit are released with probability at most delta.

    Examples
    --------
    >>> least_threshold(scale=1.0, delta=1e-6, rows=1)
    15
    """

    def tail(values: int) -> int:
        """Find the least m with t(m) at most delta for this number of values together."""
        logarithm = math.log(values) - math.log(delta) - math.log1p(math.exp(-1.0 / scale)) + _ROUNDING
        return max(math.ceil(scale * logarithm), 0)

    return max(1 + tail(rows), rows + tail(1))


def gaussian_scale(rho: Fraction | float, squared_sensitivity: int) -> float:
    """Find the smallest scale at which OpenDP's discrete Gaussian noise on one table costs at most rho of zCDP.

    Noise of parameter sigma on every cell has probabilities proportional to exp(-k**2 / (2 sigma**2)); a change of the
    table by d in L2 norm costs d**2 / (2 sigma**2) of zCDP (Canonne, Kamath and Steinke 2020). For k tables with
    different sigma_i, divide each table by its sigma_i: a record then changes all of them together by at most
    sum_i s / sigma_i**2 in squared L2 norm, where s is the squared sensitivity of one table (1 or 2). So
    rho = sum_i s / (2 sigma_i**2), the sum of the tables' shares.

    Parameters
    ----------
    rho : Fraction or float
        This table's share; a float is read as its printed decimal.
    squared_sensitivity : int
        Squared L2 sensitivity of the table, from :func:`table_sensitivity`.

    Returns
    -------
    float
        Scale sigma in records.

    Raises ValueError if an argument is out of range, or the noise would not fit 64-bit integers; ImportError if OpenDP
    is not installed.

    Examples
    --------
    >>> gaussian_scale(0.125, 1)
    2.0
    """
    return _gaussian_scale(exact_positive("rho", rho), squared_sensitivity)


@lru_cache(maxsize=256)
def _gaussian_scale(target: Fraction, squared_sensitivity: int) -> float:
    distance = math.sqrt(squared_sensitivity)
    if Fraction(distance) ** 2 < squared_sensitivity:
        distance = math.nextafter(distance, math.inf)
    start = math.sqrt(squared_sensitivity / 2.0) / math.sqrt(float(target))
    return _smallest_scale(start, rounded_down(target), lambda scale: _gaussian(scale).map(distance), "rho")


def add_discrete_laplace(counts: Counts, scale: float) -> Counts:
    """Add independent discrete Laplace noise to one-dimensional int64 counts, by OpenDP; see :func:`laplace_scale`.

    Returns a new array. Raises ValueError for counts or scales of the wrong kind, ImportError without OpenDP.
    """
    return _invoke(_laplace, counts, scale)


def add_discrete_gaussian(counts: Counts, scale: float) -> Counts:
    """Add independent discrete Gaussian noise by OpenDP to every count; see :func:`add_discrete_laplace`."""
    return _invoke(_gaussian, counts, scale)


def laplace_variance(scale: float) -> float:
    """Compute the exact variance of the discrete Laplace distribution of the given scale.

    It is 2 q / (1 - q)**2 with q = exp(-1 / scale), where probabilities are proportional to q**|k|; at least 1e-100, so
    that dividing by it is safe.

    Examples
    --------
    >>> round(laplace_variance(2.0), 4)
    7.8354
    """
    half = 0.5 / checked_scale(scale)
    return max(0.5 / math.sinh(half) ** 2, 1e-100) if half < 200.0 else 1e-100


def gaussian_variance(scale: float) -> float:
    """Compute the exact variance of the discrete Gaussian distribution with parameter sigma = scale.

    It is close to sigma**2 for sigma of at least 1 and smaller below (Canonne, Kamath and Steinke 2020); at least
    1e-100, so that dividing by it is safe.

    Examples
    --------
    >>> round(gaussian_variance(0.5), 4), gaussian_variance(10.0)
    (0.215, 100.0)
    """
    sigma = checked_scale(scale)
    if sigma > 3.0:  # the difference is below exp(-2 pi**2 sigma**2) times a low power of sigma
        return sigma**2
    k = np.arange(1.0, 41.0)
    with np.errstate(over="ignore"):
        weights = np.exp(-0.5 * (k / sigma) ** 2)
    return max(float((k**2 * weights).sum() / (0.5 + weights.sum())), 1e-100)


def _opendp() -> Any:
    try:
        # Not opendp.prelude: it takes seconds and hundreds of megabytes.
        import opendp.domains as domains
        import opendp.measurements as measurements
        import opendp.metrics as metrics
        from opendp.mod import enable_features
    except ImportError as error:
        raise ImportError(
            "Private noise comes from OpenDP, which is not installed: run `pip install opendp`. "
            "There is no substitute; SimulatedNoise is for simulation studies and is not private."
        ) from error
    enable_features("contrib")
    return domains.vector_domain(domains.atom_domain(T="i64")), metrics, measurements


def _laplace(scale: float) -> Any:
    domain, metrics, measurements = _opendp()
    return measurements.make_laplace(domain, metrics.l1_distance(T="i64"), scale=scale)


def _gaussian(scale: float) -> Any:
    domain, metrics, measurements = _opendp()
    return measurements.make_gaussian(domain, metrics.l2_distance(T="f64"), scale=scale)


def _smallest_scale(start: float, target: float, cost: Callable[[float], float], name: str) -> float:
    """Go up float by float from just below the ideal scale until OpenDP's bound meets the target."""
    if not 0.0 < start <= MAX_SCALE:
        raise ValueError(
            f"{name}={target!r} for one table needs noise of scale {start:.3g} records, "
            "outside the range of 64-bit counts: choose a larger privacy loss, or more even weights."
        )
    scale = start
    for _ in range(4):
        scale = math.nextafter(scale, 0.0)
    for _ in range(64):
        if scale > 0.0 and cost(scale) <= target:
            return scale
        scale = math.nextafter(scale, math.inf)
    raise ValueError(f"No noise scale near {start!r} meets {name}={target!r}: choose a larger {name}.")


def _invoke(make: Callable[[float], Any], counts: Counts, scale: float) -> Counts:
    # OpenDP returns the data without noise at scale 0: check first. It needs a writable, contiguous array.
    counts, scale = checked_counts(counts), checked_scale(scale)
    if counts.size == 0:
        return counts.copy()

    def draw(part: Counts) -> Counts:
        return np.array(make(scale)(np.array(part, order="C")), dtype=np.int64)

    if counts.size <= _PART:  # starting a thread takes longer than a small table
        return draw(counts)
    # Cells are independent and OpenDP releases Python's lock, so parts can be drawn in parallel.
    parts = np.array_split(counts, min(cores(), -(-counts.size // _PART)))
    with ThreadPoolExecutor(len(parts)) as pool:
        return np.concatenate(list(pool.map(draw, parts)))


def checked_scale(scale: float) -> float:
    value = float(exact_positive("scale", scale))
    if value > MAX_SCALE:
        raise ValueError(f"scale must be at most 2**50 records, got {scale!r}.")
    return value


def checked_counts(counts: Any) -> Counts:
    if not isinstance(counts, np.ndarray) or counts.dtype != np.int64 or counts.ndim != 1:
        raise ValueError("counts must be a one-dimensional array of int64.")
    return counts
