"""Exact price of a fixed sequence of Gaussian and selection steps, as one (epsilon, delta) block.

What a step measures or chooses from may depend on all answers before it; its price may not. zCDP bounds the same
sequence more loosely: at (1, 1e-6) it admits a seventh less rho.

Proof. Let P and Q be the distributions of all answers for two neighbours. Let V_i(a) be the largest value of
E_P[max(0, 1 - exp(a) Q/P)] over the answers from the i-th step on, whatever came before and whatever is asked from then
on; the sequence is (epsilon, V_1(epsilon))-differentially private. After the last step, V(a) = max(0, 1 - exp(a)). If
L = log(P/Q) is the loss of step i given what came before, and the later steps lose at most what they may, then V_i(a)
is at most the largest E_P[V_{i+1}(a - L)] over steps of this price. Write v(x) for V_{i+1}(log x); this is then the
functional F(P, Q) = E_P[v(x Q/P)] of the step's two distributions, at x = exp(a). As a supremum of means of
max(0, 1 - x R) with R >= 0, v is convex and decreasing. So F is convex in the pair (P, Q), as every f-divergence is,
and post-processing an answer never raises it. The largest F for a step of a given price is as follows.

- Gaussian noise of standard deviation s on values that a neighbour changes by c in L2 norm: L is normal with mean
  (c / s)**2 / 2 = rho and variance 2 rho. A step of several such tables has the same L for any division of the same
  total rho. Where a neighbour changes less, as can happen where a record is replaced, the answer is that of the full
  change with more noise added: post-processing.
- A choice by the exponential mechanism has likelihood ratios of a bounded range: L is between some t - e and t, and
  E[exp(-L)] = 1. As v is convex in the ratio, F is largest with all mass at the two ends (Dong, Durfee and Rogers
  2020, Lemma 3.2, for one threshold): P(L = t) = (exp(e) - exp(t)) / (exp(e) - 1), at the worst t in [0, e].
- A step that is skipped because nothing is asked, or choices that are not used, have L = 0 and F = v(x). Every step
  has at least this: by Jensen F >= v(x E_P[Q / P]) >= v(x), as the mean is at most 1 and v decreases. So skipping,
  which may depend on answers, costs no more than the step.
- A step may first sample at random from what it reads, independently of all that came before and by the same law for
  both neighbours. Its P and Q are then mixtures over the sample of pairs of the step's price, and as F is convex, the
  mixture has at most the F of the worst pair. This is the case of lazy records with `max_rows`, whose rows are sampled
  anew for each step (:mod:`pgmpy_dp.records.units` couples the samples of neighbours: units in both sample alike). All
  tables or successive choices of a step share its sample, and given the sample they are as above. Where rows are
  sampled once for all steps, as for records in memory, the answers to one step contain information about the sample
  that the next step uses, so that mixing step by step would be wrong. Then all of the above holds for the whole
  sequence given the sample, and E_P[max(0, 1 - exp(epsilon) Q / P)] of all answers is convex in (P, Q) as well.

The recursion is computed on a grid, with every rounding to the safe side: mass between two grid points is divided
between them such that E[exp(-L)] is preserved (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022), and ranges are
widened to the grid.

Discrete noise costs as much as continuous noise of smaller variance, see :mod:`pgmpy_dp.privacy.blocks`: steps are
priced by the rho of that continuous noise, which :func:`with_discrete_noise` converts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from pgmpy_dp.privacy.accounting import rho_for
from pgmpy_dp.privacy.blocks import BLUR, SAFE
from pgmpy_dp.privacy.checks import checked_delta, exact_positive, rounded_down

# One part of a sequence: its share of rho, and the number of choices that divide it (0 for Gaussian noise).
Part = tuple[float, int]

_POINTS = 32  # grid points in the range of a choice, which is widened by up to two of them
_TAIL = 9.0  # standard deviations of a Gaussian step's loss, beyond which the loss counts as infinite
_REACH = 10.0  # reach of the grid, in standard deviations of the whole loss
# Outside of these limits the rho of zCDP is used: there is little to gain, and sums lose their digits.
_MIN_DELTA, _MAX_EPSILON = 1e-12, 60.0
_CLOSE = 1e-3  # share of epsilon that the search for rho may leave unspent


def sequence_rho(parts: Sequence[Part], epsilon: float | Fraction, delta: float) -> float:
    """Find a rho, at least that of zCDP, that a sequence may divide among its parts at (epsilon, delta)."""
    delta, target = checked_delta(delta, zero_allowed=False), rounded_down(exact_positive("epsilon", epsilon))
    whole = sum(float(exact_positive("share", share)) for share, _ in parts)
    return _largest(tuple((share / whole, choices) for share, choices in parts), target, delta)


def sequence_epsilon(parts: Sequence[Part], delta: float) -> float:
    """Compute the epsilon of a sequence at a given delta, rounded up."""
    ranges = [math.sqrt(8.0 * rho / choices) if choices else math.inf for rho, choices in parts]
    rho = sum(part for part, _ in parts)
    deviation = math.sqrt(2.0 * rho)
    step = min([*ranges, 3.0 * deviation]) / _POINTS
    half = math.ceil((rho + _REACH * deviation) / step)
    grid = step * np.arange(-half, half + 1)
    value = np.maximum(0.0, -np.expm1(grid))
    for (part, choices), width in reversed(list(zip(parts, ranges, strict=True))):
        for _ in range(choices):
            value = _before_choice(value, width, step)
        if not choices:
            value = _before_noise(value, part, step)
    delta = checked_delta(delta, zero_allowed=False) * (1.0 - SAFE)
    above = int(np.argmax(value <= delta))
    if value[above] > delta or value[0] <= delta:  # outside of the grid, or no loss at all
        return math.inf if value[above] > delta else 0.0
    # Between two grid points the value is below its chord in exp(a).
    left, right = math.exp(grid[above - 1]), math.exp(grid[above])
    part_way = (value[above - 1] - delta) / (value[above - 1] - value[above])
    return max(math.log(left + part_way * (right - left)) + SAFE, 0.0)


def with_discrete_noise(rho: float, squared_sensitivity: int) -> float:
    """Convert the rho of a table with continuous Gaussian noise to the rho of zCDP that its discrete noise may have.

    Let a unit change the cells of a table by integers d, with |d|**2 at most c, the squared sensitivity. On each cell,
    discrete noise of variance s**2 is continuous noise of variance s**2 - b followed by replacing the sum by an
    integer, in a way that does not depend on the count (see :mod:`pgmpy_dp.privacy.blocks`). So the table costs no
    more than the continuous noise, whose rho is at most c / (2 (s**2 - b)), and

        s**2 = c / (2 rho) + b

    suffices. As zCDP, this is the rho' = c / (2 s**2) that is returned. Each integer replaces the number of one cell,
    however much a unit changes it: b does not grow with c.

    Probabilities are off by a factor of 1 -+ 4.1 exp(-2 pi**2 b) for each cell that a unit changes. It changes at most
    sqrt(2 c) cells, since it adds integers that sum to at most sqrt(c), or replaces some by others, with c / 2 in
    place of c. At b = BLUR + log(c) / (4 pi**2) the factors of a table together are at most those of two cells at
    b = BLUR: SAFE covers a unit's cells in five million tables.
    """
    blur = BLUR + math.log(squared_sensitivity) / (4.0 * math.pi**2)
    return rho / (1.0 + 2.0 * blur * rho / squared_sensitivity) * (1.0 - 1e-12)


@lru_cache(maxsize=64)
def _largest(parts: tuple[Part, ...], target: float, delta: float) -> float:
    low = rho_for(target, delta)
    if delta < _MIN_DELTA or target > _MAX_EPSILON:
        return low
    tried, steepness = 1.13 * low, 0.55
    for _ in range(8):
        price = sequence_epsilon([(share * tried, choices) for share, choices in parts], delta)
        if price <= target:
            low = max(low, tried)
            if price > target * (1.0 - _CLOSE):
                break
        tried *= (target * (1.0 - _CLOSE / 3.0) / max(price, target / 4.0)) ** (1.0 / steepness)
    return low


def _before_noise(value: NDArray[np.float64], rho: float, step: float) -> NDArray[np.float64]:
    """Compute the values V before a step of Gaussian noise from those after it."""
    deviation = math.sqrt(2.0 * rho)
    half = math.ceil((rho + _TAIL * deviation) / step)
    loss = step * np.arange(-half, half + 1)

    def masses(mean: float) -> NDArray[np.float64]:
        edges = (loss - mean) / deviation
        low, high = edges[:-1], edges[1:]
        # Computed so that no tail is the difference of numbers near 1.
        result: NDArray[np.float64] = np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
        return result

    here, there = masses(rho), masses(-rho)  # under P and Q
    low, high = np.exp(-loss[:-1]), np.exp(-loss[1:])
    lower = np.clip((there - here * high) / (low - high), 0.0, here)
    mass = np.zeros(len(loss))
    mass[:-1] += lower
    mass[1:] += here - lower
    mass[0] += ndtr((loss[0] - rho) / deviation)
    padded = np.concatenate([np.ones(half), value, np.full(half, value[-1])])
    infinite = float(ndtr((rho - loss[-1]) / deviation))
    before = (np.convolve(padded, mass, mode="valid") + infinite) * (1.0 + 1e-12)
    return np.minimum(before, 1.0)


def _before_choice(value: NDArray[np.float64], width: float, step: float) -> NDArray[np.float64]:
    """Compute the values V before a choice from those after it, each at the worst place of its range."""
    points = math.ceil(width / step) + 1  # steps that hold any range of this width, from a grid point
    odds = (math.exp(points * step) - np.exp(step * np.arange(points + 1))) / math.expm1(points * step)
    padded = np.concatenate([np.ones(points), value, np.full(points, value[-1])])
    size, worst = len(value), value.copy()
    for position, probability in enumerate(odds):
        high, low = padded[points - position :][:size], padded[2 * points - position :][:size]
        np.maximum(worst, probability * high + (1.0 - probability) * low, out=worst)
    return worst
