"""Exact price of Gaussian noise: on a vector, and on several tables released together as one (epsilon, delta) block.

A vector. Let neighbours differ by d_j in number j, which gets independent normal noise of standard deviation s_j.
Dividing each number by s_j gives a vector with unit noise that changes by the root of sum (d_j / s_j)**2 in L2 norm:
the analytic Gaussian mechanism (Balle and Wang 2018).

Discrete noise. Add continuous noise of variance s**2 - 2 to a count, then replace the result x by an integer k with
odds exp(-(k - x)**2 / 4). The sum of these odds over k is the same for all x up to a relative 2 exp(-4 pi**2)
(Peikert 2010, Theorem 3.1). So the result has, up to a factor of 1 -+ 3e-17 on every probability, the distribution of
discrete Gaussian noise of variance s**2. Discrete noise thus costs as much as that continuous noise, and reserving
1e-9 of epsilon and of delta covers the factors of up to ten million numbers that differ between neighbours.

A block. A record lies in one cell of each table. Adding or removing it changes one cell of each table by 1; replacing
it changes at most two. So the privacy loss of the release is at most a sum of losses of single counts, one (or two)
for each table, each with discrete Gaussian noise. dp-accounting composes their distributions, with discretisation
that only overstates the loss. zCDP, by which ledgers compose Gaussian measurements, bounds the same sum more loosely:
it needs 5.2 % more noise at (1, 1e-9) and 7.3 % more at (1, 1e-6).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache

from scipy.special import log_ndtr

from pgmpy_dp.privacy.checks import checked_delta, exact_positive, number, rounded_down
from pgmpy_dp.privacy.noise import table_sensitivity

BLUR = 2.0  # variance of the integers about the numbers that they replace
SAFE = 1e-9  # share of epsilon and of delta reserved for discrete noise and rounded sums

# Least scale: with at least this, discrete noise costs at most 1 % more than continuous noise.
MIN_SCALE = 16.0
# Ratio between successive noise scales, so that few distinct distributions are composed. Every table is within 5 %
# of its best scale, which costs the release less than 0.1 % in total noise.
_STEP = 1.1
# Smallest delta: below it, the rounding errors of Fourier transforms are not negligible, even for a single table.
_MIN_DELTA = 1e-12
# Largest noise scale, in records: a loss distribution has as many points as its noise has likely values.
_MAX_SCALE = 2.0**17
# Tail mass at which dp-accounting truncates the noise. Our noise is not truncated; delta pays for the difference.
_CUT_OFF = 1e-30
_CUT_OFF_SHARE = 2.0**-20  # of delta
# Delta reserved for each count against rounding in Fourier transforms, which was measured to lower delta by up to a
# sixth of this with 100 to 20,000 counts.
_ROUNDING = 1e-16
# Largest epsilon: above it, the truncated tail costs more than any delta.
_MAX_EPSILON = 60.0
# Width of the loss grid as a share of epsilon; discretisation costs about one part in 100,000 of epsilon.
_INTERVAL = 2e-4


def discrete_gaussian_epsilon(squared: float, min_scale: float, delta: float) -> float:
    """Compute the epsilon of independent discrete Gaussian noise on integers at a given delta, rounded up.

    `squared` is at least the sum over the integers of (change / scale)**2, for any two neighbours; the smallest scale
    is at least 16.
    """
    delta = checked_delta(delta, zero_allowed=False)
    number(minimum=MIN_SCALE)("min_scale", min_scale)
    return _epsilon(float(exact_positive("squared", squared)) / (1.0 - BLUR / min_scale**2), delta)


def gaussian_delta(squared: float, epsilon: float) -> float:
    """Compute the least delta of continuous Gaussian noise at a given epsilon (Balle and Wang 2018, Theorem 8).

    `squared` is the sum of (change / scale)**2 over the numbers.
    """
    mean = math.sqrt(squared)
    above, below = (float(log_ndtr(sign * mean / 2.0 - epsilon / mean)) for sign in (1.0, -1.0))
    return math.exp(above) * -math.expm1(min(epsilon + below - above, 0.0))


@lru_cache(maxsize=256)
def _epsilon(squared: float, delta: float) -> float:
    from dp_accounting import get_epsilon_gaussian  # the import takes a second

    return float(get_epsilon_gaussian(squared**-0.5, delta * (1.0 - SAFE))) * (1.0 + SAFE) + SAFE


def block_scales(relative: Sequence[float], epsilon: float | Fraction, delta: float, neighbours: str) -> list[float]:
    """Find scales, proportional to `relative` up to rounding, with which tables together cost (epsilon, delta)."""
    target = rounded_down(exact_positive("epsilon", epsilon))
    delta = _checked(delta)
    if target > _MAX_EPSILON:
        raise _too_large(target)
    numbers = {
        one: round(math.log(float(exact_positive("relative scale", one))) / math.log(_STEP)) for one in {*relative}
    }
    lowest = min(numbers.values(), default=0)
    levels = Counter(numbers[one] - lowest for one in relative)
    minimum = _min_scale(tuple(sorted(levels.items())), target, delta, neighbours)
    return [minimum * _STEP ** (numbers[one] - lowest) for one in relative]


def block_price(scales: Sequence[float], delta: float, neighbours: str) -> float:
    """Compute the epsilon, at a given delta, of tables with discrete Gaussian noise of these scales."""
    delta, counts = _checked(delta), Counter(float(exact_positive("scale", scale)) for scale in scales)
    return _price(tuple(sorted(counts.items())), delta, neighbours)


def block_rho(scales: Sequence[float], neighbours: str) -> float:
    """Compute the rho of zCDP for the same tables, rounded up."""
    one = table_sensitivity(neighbours, "squared_l2")
    counts = Counter(scales).items()
    exact = sum((Fraction(one * count) / (2 * Fraction(scale) ** 2) for scale, count in counts), Fraction(0))
    return math.nextafter(float(exact), math.inf)


def table_deviation(epsilon: float, delta: float, neighbours: str) -> float:
    """Return the standard deviation of continuous Gaussian noise in a single table of this price."""
    from dp_accounting import get_sigma_gaussian  # the import takes a second

    return float(get_sigma_gaussian(epsilon, delta)) * math.sqrt(float(table_sensitivity(neighbours, "squared_l2")))


def smallest_scale(price: Callable[[float], float], start: float, epsilon: float, delta: float) -> float:
    """Find nearly the smallest scale whose price is at most epsilon, starting from one that is slightly too small."""
    scale = start
    for _ in range(64):
        paid = price(scale)
        if paid <= epsilon:
            return scale
        scale *= 1.0 + max(1.2 * (min(paid / epsilon, 1.5) - 1.0), 1e-6)
    raise ValueError(f"No noise brings these tables to epsilon={epsilon!r} at delta={delta!r}: raise one of them.")


def _checked(delta: float) -> float:
    delta = rounded_down(exact_positive("delta", checked_delta(delta, zero_allowed=False)))
    if delta < _MIN_DELTA:
        problem = f"delta={delta!r} is below {_MIN_DELTA:g}, the smallest for which a block can be priced"
        raise _refused(problem, "take a larger delta")
    return delta


@lru_cache(maxsize=64)
def _min_scale(levels: tuple[tuple[int, int], ...], target: float, delta: float, neighbours: str) -> float:
    """Find the scale of level 0, where `levels` counts the tables of each level."""
    # Start from continuous noise: tables of these scales are then one Gaussian mechanism, slightly cheaper.
    whole = sum(count * _STEP ** (-2 * number) for number, count in levels)
    start = table_deviation(target, delta, neighbours) * math.sqrt(whole)
    return smallest_scale(
        lambda scale: _price(tuple((scale * _STEP**number, count) for number, count in levels), delta, neighbours),
        start,
        target,
        delta,
    )


@lru_cache(maxsize=256)
def _price(counts: tuple[tuple[float, int], ...], delta: float, neighbours: str) -> float:
    """Compute `block_price` from pairs (scale, number of tables)."""
    from dp_accounting import get_epsilon_gaussian
    from dp_accounting.pld import privacy_loss_distribution

    if max(scale for scale, _ in counts) > _MAX_SCALE:
        largest = max(scale for scale, _ in counts)
        problem = f"The noise of a table would be of scale {largest:.3g}, too large for the price of a block"
        raise _refused(problem, "raise epsilon")
    changes = int(table_sensitivity(neighbours, "squared_l2"))
    tables = changes * sum(count for _, count in counts)
    rounding = tables * _ROUNDING
    if rounding > delta / 2:
        raise _refused(f"delta={delta!r} is too small to price {tables} tables", "take a larger delta")
    whole = math.sqrt(1.0 / sum(changes * count / scale**2 for scale, count in counts))
    interval = _INTERVAL * min(max(float(get_epsilon_gaussian(whole, delta)), 1e-6), 100.0)
    total = None
    for scale, count in counts:
        one = privacy_loss_distribution.from_discrete_gaussian_mechanism(
            scale, value_discretization_interval=interval, use_connect_dots=True
        )
        several = one.self_compose(count * changes)
        total = several if total is None else total.compose(several)
    assert total is not None
    epsilon = float(total.get_epsilon_for_delta(delta * (1.0 - _CUT_OFF_SHARE) - rounding))
    if not (1.0 + math.exp(min(epsilon, 700.0))) * tables * _CUT_OFF <= delta * _CUT_OFF_SHARE:
        raise _too_large(epsilon)
    return epsilon


def _too_large(epsilon: float) -> ValueError:
    return _refused(f"epsilon={epsilon:.3g} is too large for the price of a block", "lower it")


def _refused(problem: str, change: str) -> ValueError:
    return ValueError(f'{problem}: {change}, or use mechanism="gaussian".')
