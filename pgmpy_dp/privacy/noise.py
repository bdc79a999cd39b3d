"""Noise: how much of it a loss buys, and where it comes from.

Private noise is drawn by OpenDP's exact integer samplers alone; numpy never draws it, and it has no seed. The coins of
private samples come from the operating system (`coins`). Simulation studies draw the same distributions by numpy.

What a loss buys. Each scale below is the smallest float at which OpenDP's own price is within the loss.

- Discrete Laplace noise of scale b on every cell has probabilities proportional to exp(-|k| / b), so a change of the
  table by d in L1 norm changes the probability of any output by a factor of at most exp(d / b): epsilon = d / b. Tables
  of the same records with independent noise compose: a record changes each table by at most its sensitivity, so k
  tables with epsilons e_1 .. e_k together cost the sum of these.
- Discrete Gaussian noise of parameter sigma on every cell has probabilities proportional to exp(-k**2 / (2 sigma**2));
  a change of the table by d in L2 norm costs d**2 / (2 sigma**2) of zCDP (Canonne, Kamath and Steinke 2020). For k
  tables with different sigma_i, divide each table by its sigma_i: a record then changes all of them together by at most
  sum_i s / sigma_i**2 in squared L2 norm, where s is the squared sensitivity of one table. So rho = sum_i s / (2
  sigma_i**2), the sum of the tables' shares.
- Permute-and-flip at scale s is (2 d / s)-differentially private if no neighbour changes any score by more than d
  (McKenna and Sheldon 2020, Theorem 1, with s = 2 d / epsilon). It equals adding exponential noise of scale s to the
  negated scores and taking the largest (Ding, Kifer, Steinke, Wang, Xiao and Zhang 2021), but on exact integers.
- The exponential mechanism at scale s draws a candidate with odds exp(-score / s). If no neighbour changes any score by
  more than d, the log-odds of any two candidates change by at most e = 2 d / s: the mechanism is e-bounded range (Dong,
  Durfee and Rogers 2020), and so (e**2 / 8)-zCDP (Cesar and Rogers 2021). Accounted as pure epsilon, it would cost e,
  and so e**2 / 2 of zCDP. If a record changed all scores in the same direction, e would be half as large; this does not
  hold for ours. It equals adding Gumbel noise of scale s, of which OpenDP computes only as many digits as the
  comparison needs, so no floating-point number is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import lru_cache, partialmethod
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp._progress import progress
from pgmpy_dp._threads import cores
from pgmpy_dp.privacy.checks import exact_positive, rounded_down
from pgmpy_dp.privacy.coins import fixed_sample, poisson_sample, random_integer, random_keys

Counts = NDArray[np.int64]

# A unit's weight is divided into this many parts: a power of two, so that weighted counts are exact floats.
UNIT_WEIGHT = 2**20

# Largest scale, in records: noise of a larger one could exceed 64-bit integers, where OpenDP saturates and the stated
# variance is wrong.
MAX_SCALE = 2.0**50

# Relative amount by which delta is lowered before a threshold is chosen; far more than floats round.
_ROUNDING = 1e-9

# Cells drawn by one thread at a time, about 0.1 s of work.
_PART = 8192

_Kind = Literal["laplace", "gaussian", "permute_and_flip", "exponential"]


def table_sensitivity(neighbours: str, norm: Literal["l1", "squared_l2"], rows: int = 1) -> int:
    """Return the sensitivity of one counting table, in rows.

    A unit (a record, or a person with several) adds to the cells non-negative integers that sum to at most `rows`, and
    does not affect what other units add. Adding or removing the unit changes the table by this vector: the L1 norm of
    the change is at most `rows` and its squared L2 norm at most `rows`**2, both reached when one cell gets everything.
    Replacing the unit subtracts one such vector a and adds another, b: the L1 norm is at most 2 `rows`, and the
    squared L2 norm |a|**2 + |b|**2 - 2 a.b at most 2 `rows`**2, since a.b >= 0; both are reached by two cells.
    """
    if norm not in ("l1", "squared_l2"):
        raise ValueError(f'norm must be "l1" or "squared_l2", got {norm!r}.')
    if neighbours not in ("add_remove", "replace_one"):
        raise ValueError(f'neighbours must be "add_remove" or "replace_one", got {neighbours!r}.')
    units = 1 if neighbours == "add_remove" else 2
    return units * (rows if norm == "l1" else rows**2)


def laplace_scale(epsilon: Fraction | float, sensitivity: int) -> float:
    """Find the scale b, in records, at which discrete Laplace noise on one table costs at most epsilon."""
    target = exact_positive("epsilon", epsilon)
    return _smallest_scale("laplace", sensitivity / float(target), sensitivity, rounded_down(target))


def smallest_threshold(scale: float, delta: float, rows: int) -> int:
    """Find the least threshold at which the new values of a unit are released with probability at most delta."""

    def tail(values: int) -> int:
        """Find the least m with t(m) at most delta for this number of values together."""
        logarithm = math.log(values) - math.log(delta) - math.log1p(math.exp(-1.0 / scale)) + _ROUNDING
        return max(math.ceil(scale * logarithm), 0)

    return max(1 + tail(rows), rows + tail(1))


def gaussian_scale(rho: Fraction | float, squared_sensitivity: int) -> float:
    """Find the scale sigma, in records, at which discrete Gaussian noise on one table costs at most rho of zCDP."""
    target, distance = exact_positive("rho", rho), math.sqrt(squared_sensitivity)
    if Fraction(distance) ** 2 < squared_sensitivity:
        distance = math.nextafter(distance, math.inf)
    start = math.sqrt(squared_sensitivity / 2.0) / math.sqrt(float(target))
    return _smallest_scale("gaussian", start, distance, rounded_down(target))


def selection_scale(epsilon: Fraction | float, sensitivity: int) -> float:
    """Find the scale at which permute-and-flip costs at most epsilon, for scores of this sensitivity."""
    target = rounded_down(exact_positive("epsilon", epsilon))
    return _smallest_scale("permute_and_flip", 2.0 * sensitivity / target, sensitivity, target)


def exponential_scale(rho: Fraction | float, sensitivity: int) -> float:
    """Find the scale at which the exponential mechanism costs at most rho of zCDP, for scores of this sensitivity."""
    target = rounded_down(exact_positive("rho", rho))
    return _smallest_scale("exponential", sensitivity / math.sqrt(2.0 * target), sensitivity, target)


def laplace_variance(scale: float) -> float:
    """Compute the exact variance of the discrete Laplace distribution of the given scale.

    It is 2 q / (1 - q)**2 with q = exp(-1 / scale), where probabilities are proportional to q**|k|; at least 1e-100, so
    that dividing by it is safe.
    """
    half = 0.5 / checked_scale(scale)
    return max(0.5 / math.sinh(half) ** 2, 1e-100) if half < 200.0 else 1e-100


def gaussian_variance(scale: float) -> float:
    """Compute the exact variance of the discrete Gaussian distribution with parameter sigma = scale.

    It is close to sigma**2 for sigma of at least 1 and smaller below (Canonne, Kamath and Steinke 2020); at least
    1e-100, so that dividing by it is safe.
    """
    sigma = checked_scale(scale)
    if sigma > 3.0:  # the difference is below exp(-2 pi**2 sigma**2) times a low power of sigma
        return sigma**2
    k = np.arange(1.0, 41.0)
    with np.errstate(over="ignore"):
        weights = np.exp(-0.5 * (k / sigma) ** 2)
    return max(float((k**2 * weights).sum() / (0.5 + weights.sum())), 1e-100)


@lru_cache(maxsize=256)
def _measurement(kind: _Kind, scale: float) -> Any:
    """Make OpenDP's measurement; its noisy maximum under max divergence is permute-and-flip, else exponential."""
    try:
        # Not opendp.prelude: it takes seconds and hundreds of megabytes.
        import opendp.domains as domains
        import opendp.measurements as measurements
        import opendp.measures as measures
        import opendp.metrics as metrics
        from opendp.mod import enable_features
    except ImportError as error:
        raise ImportError(
            "Private noise comes from OpenDP, which is not installed: run `pip install opendp`. "
            "There is no substitute; SimulatedNoise is for simulation studies and is not private."
        ) from error
    enable_features("contrib")
    vectors = domains.vector_domain(domains.atom_domain(T="i64"))
    if kind == "laplace":
        return measurements.make_laplace(vectors, metrics.l1_distance(T="i64"), scale=scale)
    if kind == "gaussian":
        return measurements.make_gaussian(vectors, metrics.l2_distance(T="f64"), scale=scale)
    measure = measures.zero_concentrated_divergence() if kind == "exponential" else measures.max_divergence()
    distance = metrics.linf_distance(T="i64")
    return measurements.make_noisy_max(vectors, distance, measure, scale=scale, negate=True)


@lru_cache(maxsize=512)
def _smallest_scale(kind: _Kind, start: float, distance: float, target: float) -> float:
    """Go up float by float from just below the ideal scale until OpenDP's own price meets the target."""
    counted = kind in ("laplace", "gaussian")
    if counted and not 0.0 < start <= MAX_SCALE:
        name = "epsilon" if kind == "laplace" else "rho"
        raise ValueError(
            f"{name}={target!r} for one table needs noise of scale {start:.3g} records, "
            "outside the range of 64-bit counts: choose a larger privacy loss, or more even weights."
        )
    scale = start
    for _ in range(4 if counted else 0):
        scale = math.nextafter(scale, 0.0)
    for _ in range(68):
        if scale > 0.0 and _measurement(kind, scale).map(distance) <= target:
            return scale
        scale = math.nextafter(scale, math.inf)
    raise ValueError(f"No noise scale near {start!r} meets a loss of {target!r}: choose a larger one.")


def added(counts: Counts, scales: NDArray[np.float64], add: Callable[[Counts, float], Counts]) -> Counts:
    """Add independent noise to every count at its own scale, with one call of `add` per scale."""
    noisy, order = np.empty_like(counts), np.argsort(scales, kind="stable")
    for same in np.split(order, np.flatnonzero(np.diff(scales[order])) + 1) if counts.size else ():
        noisy[same] = add(counts[same], float(scales[same[0]]))
    return noisy


def checked_scale(scale: float) -> float:
    value = float(exact_positive("scale", scale))
    if value > MAX_SCALE:
        raise ValueError(f"scale must be at most 2**50 records, got {scale!r}.")
    return value


def checked_counts(counts: Any) -> Counts:
    if not isinstance(counts, np.ndarray) or counts.dtype != np.int64 or counts.ndim != 1:
        raise ValueError("counts must be a one-dimensional array of int64.")
    return counts


class NoiseSource(Protocol):
    """Source of noise for counting tables, and of coins for sampling records."""

    @property
    def private(self) -> bool:
        """Whether the noise gives privacy."""

    def discrete_laplace(self, counts: Counts, scale: float) -> Counts:
        """Add discrete Laplace noise to one-dimensional int64 counts."""

    def discrete_gaussian(self, counts: Counts, scale: float) -> Counts:
        """Add discrete Gaussian noise to one-dimensional int64 counts."""

    def coins(self, rate: Fraction, size: int) -> NDArray[np.bool_]:
        """Draw independent coins that are true with probability `rate`."""

    def choose(self, chosen: int, size: int) -> NDArray[np.bool_]:
        """Draw a uniformly random subset of size `chosen` out of `size`, as a mask."""

    def keys(self, size: int) -> NDArray[np.uint64]:
        """Draw independent uniform 64-bit numbers, used to sample the rows of a unit."""

    def permute_and_flip(self, scores: Counts, scale: float) -> int:
        """Draw the position of a low score by permute-and-flip."""

    def exponential_mechanism(self, scores: Counts, scale: float) -> int:
        """Draw the position of a low score by the exponential mechanism."""

    def below(self, bound: int) -> int:
        """Draw a uniform integer in [0, bound)."""


class OpenDPNoise:
    """Private noise, drawn by OpenDP; its one instance is :data:`OPENDP_NOISE`.

    Counts or scales of the wrong kind raise ValueError, and a missing OpenDP raises ImportError.
    """

    private = True
    coins = staticmethod(poisson_sample)
    choose = staticmethod(fixed_sample)
    keys = staticmethod(random_keys)
    below = staticmethod(random_integer)

    def _added(self, kind: _Kind, counts: Counts, scale: float) -> Counts:
        # OpenDP returns the data without noise at scale 0: check first. It needs a writable, contiguous array.
        counts, scale = checked_counts(counts), checked_scale(scale)
        if counts.size == 0:
            return counts.copy()

        def draw(part: Counts) -> Counts:
            return np.array(_measurement(kind, scale)(np.array(part, order="C")), dtype=np.int64)

        if counts.size <= _PART:  # starting a thread takes longer than a small table
            return draw(counts)
        # Cells are independent and OpenDP releases Python's lock, so parts can be drawn in parallel.
        parts, noisy = np.array_split(counts, -(-counts.size // _PART)), list[Counts]()
        with ThreadPoolExecutor(cores()) as pool, progress("Drawing noise", "cell", counts.size, scaled=True) as bar:
            for part in pool.map(draw, parts):
                noisy.append(part)
                bar.update(part.size)
        return np.concatenate(noisy)

    def _chosen(self, kind: _Kind, scores: Counts, scale: float) -> int:
        if not isinstance(scores, np.ndarray) or scores.dtype != np.int64 or scores.ndim != 1 or scores.size == 0:
            raise ValueError("scores must be a one-dimensional array of int64, not empty.")
        return int(_measurement(kind, float(exact_positive("scale", scale)))(np.array(scores, order="C")))

    discrete_laplace = partialmethod(_added, "laplace")
    discrete_gaussian = partialmethod(_added, "gaussian")
    permute_and_flip = partialmethod(_chosen, "permute_and_flip")
    exponential_mechanism = partialmethod(_chosen, "exponential")

    def __repr__(self) -> str:
        return "OPENDP_NOISE"


OPENDP_NOISE = OpenDPNoise()


def checked_noise(noise: Any) -> NoiseSource:
    """Return `noise`; TypeError unless it is a source of noise."""
    if isinstance(noise, type) or not isinstance(getattr(noise, "private", None), bool):
        given = getattr(noise, "__name__", type(noise).__name__)
        raise TypeError(f"noise must be OPENDP_NOISE or a SimulatedNoise(seed), got {given}.")
    source: NoiseSource = noise
    return source


class SimulatedNoise:
    """Noise of the same distributions drawn by numpy: repeatable and NOT private, for simulation studies.

    Parameters
    ----------
    seed : int, sequence of int, numpy.random.SeedSequence or numpy.random.Generator
        As for numpy.random.default_rng.

    Examples
    --------
    >>> counts = np.array([10, 20])
    >>> first = SimulatedNoise(1).discrete_laplace(counts, 3.0)
    >>> bool((first == SimulatedNoise(1).discrete_laplace(counts, 3.0)).all())
    True
    """

    private = False

    def __init__(self, seed: Any) -> None:
        self._generator = np.random.default_rng(seed)

    def discrete_laplace(self, counts: Counts, scale: float) -> Counts:
        """Add the difference of two geometric variables to every count."""
        return checked_counts(counts) + self._laplace_noise(counts.size, checked_scale(scale))

    def discrete_gaussian(self, counts: Counts, scale: float) -> Counts:
        """Add noise by rejection from the discrete Laplace (Canonne, Kamath and Steinke 2020)."""
        counts, sigma = checked_counts(counts), checked_scale(scale)
        envelope = math.floor(sigma) + 1.0
        noise = np.empty(counts.size, dtype=np.int64)
        open_cells = np.arange(counts.size)
        while open_cells.size:
            drawn = self._laplace_noise(open_cells.size, envelope)
            with np.errstate(over="ignore"):
                log_odds = -0.5 * ((np.abs(drawn) - sigma**2 / envelope) / sigma) ** 2
            accepted = self._generator.exponential(size=drawn.size) > -log_odds
            noise[open_cells[accepted]] = drawn[accepted]
            open_cells = open_cells[~accepted]
        return counts + noise

    def coins(self, rate: Fraction, size: int) -> NDArray[np.bool_]:
        """Compare uniform numbers to the rate."""
        coins: NDArray[np.bool_] = self._generator.random(size) < float(rate)
        return coins

    def choose(self, chosen: int, size: int) -> NDArray[np.bool_]:
        """Use the first positions of a random permutation."""
        won: NDArray[np.bool_] = self._generator.permutation(size) < chosen
        return won

    def keys(self, size: int) -> NDArray[np.uint64]:
        """Draw from the generator."""
        return self._generator.integers(2**64, size=size, dtype=np.uint64)

    def permute_and_flip(self, scores: Counts, scale: float) -> int:
        """Add exponential noise, which is permute-and-flip (Ding et al. 2021)."""
        return int(np.argmin(scores - self._generator.exponential(scale, size=scores.size)))

    def exponential_mechanism(self, scores: Counts, scale: float) -> int:
        """Add Gumbel noise, which is the exponential mechanism."""
        return int(np.argmin(scores - self._generator.gumbel(0.0, scale, size=scores.size)))

    def below(self, bound: int) -> int:
        """Draw integers of as many bits as the bound until one is below it."""
        bits = bound.bit_length()
        while True:
            drawn = int.from_bytes(self._generator.bytes((bits + 7) // 8)) >> (-bits % 8)
            if drawn < bound:
                return drawn

    def _laplace_noise(self, size: int, scale: float) -> Counts:
        stop = -math.expm1(-1.0 / scale)
        first, second = self._generator.geometric(stop, size=(2, size))
        noise: Counts = first - second
        return noise

    def __repr__(self) -> str:
        return "SimulatedNoise(not private)"
