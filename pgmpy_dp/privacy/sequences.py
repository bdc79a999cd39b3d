"""A fixed sequence of steps that add Gaussian noise or choose privately has a price as one (epsilon, delta) block.

What a step measures or chooses from may depend on all answers before it; how much it costs may not. zCDP bounds the
same sequence more loosely: at (1, 1e-6) it lets a seventh less of rho through.

Why it holds. Let P and Q be the distributions of all answers for two neighbours. Let V_i(a) be the most that
E_P[max(0, 1 - exp(a) Q/P)] can be for the answers from the i-th step on, whatever came before and whatever is asked for
from there on. After the last step it is max(0, 1 - exp(a)), and the first V(epsilon) is the delta of the whole. If L =
log(P/Q) is the loss of step i given what came before, and the steps after it lose what they may, then V_i(a) is at most
the largest E_P[V_{i+1}(a - L)] that a step of its price can have. Write v(x) for V_{i+1}(log x), so that this is the
functional F(P, Q) = E_P[v(x Q/P)] of the step's two distributions, at x = exp(a). As a supremum of means of
max(0, 1 - x R) with R >= 0, v is convex and decreasing. So F is convex in the pair (P, Q), as every f-divergence is,
and no post-processing of an answer raises it. What a step of some price can have at most is then as follows.

- Gaussian noise of standard deviation s on what a neighbour moves by c (in L2 norm) has L normal of mean
  (c / s)**2 / 2 = rho and variance 2 rho. Steps of several such tables, whose rho sum to the same however they are
  divided, have the same L. Where a neighbour moves less, as it may where a record is replaced, the answer is that of
  the full move with more noise added: post-processing.
- A choice by the exponential mechanism has likelihood ratios of a bounded range: L is between some t - e and t, and
  E[exp(-L)] = 1. As v is convex in the ratio, F is largest with all mass at the two ends (Dong, Durfee and Rogers
  2020, Lemma 3.2, for one threshold): P(L = t) = (exp(e) - exp(t)) / (exp(e) - 1), at the worst t in [0, e].
- A step that is skipped, since nothing is asked for, or choices that are left over, have L = 0 and F = v(x). Any step
  has at least that: by Jensen F >= v(x E_P[Q / P]) >= v(x), as the mean is at most 1 and v decreases. So skipping,
  which may depend on answers, costs no more than the step.
- A step that first draws at random from what it reads, independently of all that came before and by the same law for
  both neighbours, has mixtures for P and Q, of pairs that each draw gives. Each pair is of the step's price, and F is
  convex: the mixture has no more than the worst of them. This is the case of lazy records with `max_rows`, whose rows
  are drawn anew for each step (:mod:`pgmpy_dp.records.units` couples the draws of neighbours: units that both have draw
  alike). A step's tables, or its choices one after the other, share its draw, and given it they are as above.
  Where rows are drawn once for all steps, as of records in memory, the answers of one step tell of the draw that the
  next one uses, and mixing step by step would not do. There all of the above holds given the draw, for the whole
  sequence, and E_P[max(0, 1 - exp(epsilon) Q / P)] of all answers is convex in (P, Q) as well.

The recursion is kept on a grid, with every rounding to the safe side: masses between two points of the grid go to both
such that E[exp(-L)] stays (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022), ranges are widened to the grid.

Discrete noise costs what continuous noise of less variance does, see :mod:`pgmpy_dp.privacy.gaussian`: steps are asked
for the rho of the continuous one by :func:`with_discrete_noise`.
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
from pgmpy_dp.privacy.checks import checked_delta, exact_positive, rounded_down
from pgmpy_dp.privacy.gaussian import BLUR, SAFE

# A part of a sequence: its share of rho, and how many choices divide it; 0 for Gaussian noise.
Part = tuple[float, int]

_POINTS = 32  # of the grid in the range of a choice, which is widened by up to two of them
_TAIL = 9.0  # standard deviations of a Gaussian step's loss, beyond which all of it counts as infinite
_REACH = 10.0  # the grid's, in standard deviations of the whole loss
# Outside of these the rho of zCDP is taken: little is to be gained, and sums lose their digits.
_LEAST_DELTA, _MOST_EPSILON = 1e-12, 60.0
_CLOSE = 1e-3  # of epsilon, that the search for rho may leave unspent


def sequence_rho(parts: Sequence[Part], epsilon: float | Fraction, delta: float) -> float:
    """Find a large rho that a sequence may divide among its parts at (epsilon, delta), at least that of zCDP.

    Parameters
    ----------
    parts : sequence of (share, choices)
        In their order. Only the proportions of the shares count.
    epsilon : float or Fraction
    delta : float

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> round(sequence_rho([(1.0, 0), (1.0, 5)], 1.0, 1e-6), 4), round(rho_for(1.0, 1e-6), 4)
    (0.0273, 0.0243)
    """
    delta, target = checked_delta(delta, zero_allowed=False), rounded_down(exact_positive("epsilon", epsilon))
    whole = sum(float(exact_positive("share", share)) for share, _ in parts)
    return _largest(tuple((share / whole, choices) for share, choices in parts), target, delta)


def sequence_epsilon(parts: Sequence[Part], delta: float) -> float:
    """Compute the epsilon of a sequence at a delta, rounded up.

    Parameters
    ----------
    parts : sequence of (rho, choices)
        Gaussian noise of that rho for the continuous noise it stands for, see :func:`with_discrete_noise`, or
        exponential mechanisms that divide that rho, each at its e**2 / 8.
    delta : float
        At least 1e-12.

    Examples
    --------
    >>> round(sequence_epsilon([(0.02, 0)], 1e-6), 3), round(sequence_epsilon([(0.02, 100)], 1e-6), 3)
    (0.835, 0.862)
    """
    ranges = [math.sqrt(8.0 * rho / choices) if choices else math.inf for rho, choices in parts]
    rho = sum(part for part, _ in parts)
    deviation = math.sqrt(2.0 * rho)
    step = min([*ranges, 3.0 * deviation]) / _POINTS
    half = math.ceil((rho + _REACH * deviation) / step)
    grid = step * np.arange(-half, half + 1)
    value = np.maximum(0.0, -np.expm1(grid))
    for (part, choices), width in reversed(list(zip(parts, ranges, strict=True))):
        if choices:
            for _ in range(choices):
                value = _before_choice(value, width, step)
        else:
            value = _before_noise(value, part, step)
    delta = checked_delta(delta, zero_allowed=False) * (1.0 - SAFE)
    above = int(np.argmax(value <= delta))
    if value[above] > delta or value[0] <= delta:  # out of the grid, or no loss at all
        return math.inf if value[above] > delta else 0.0
    # Between two points the value is below its chord in exp(a).
    left, right = math.exp(grid[above - 1]), math.exp(grid[above])
    part_way = (value[above - 1] - delta) / (value[above - 1] - value[above])
    return max(math.log(left + part_way * (right - left)) + SAFE, 0.0)


def with_discrete_noise(rho: float, squared_sensitivity: int) -> float:
    """Lower the rho of one table with Gaussian noise to what its discrete noise may have, as zCDP.

    Let a unit move the cells of a table by whole numbers d, with |d|**2 at most c, the squared sensitivity. On each
    cell, discrete noise of variance s**2 is continuous noise of variance s**2 - b whose sum with the count is replaced
    by an integer; how does not depend on the count (see :mod:`pgmpy_dp.privacy.gaussian`). So the table costs no more
    than the continuous noise does, c / (2 (s**2 - b)) of rho at most, and

        s**2 = c / (2 rho) + b

    is enough, which is that of zCDP at the rho' = c / (2 s**2) that is returned. The integer replaces the number of
    one cell, whatever a unit moves: b does not grow as c does.

    Probabilities are off by a factor of 1 -+ 4.1 exp(-2 pi**2 b) for each cell that a unit moves. It moves at most
    sqrt(2 c) cells, since it adds whole numbers that sum to sqrt(c) at most, or replaces, with c / 2 in place of c,
    some by others. At b = BLUR + log(c) / (4 pi**2) the factors of a table are, together, those of at most two cells
    at b = BLUR: SAFE pays for a unit's cells in five million tables.

    Parameters
    ----------
    rho : float
        Of the continuous noise.
    squared_sensitivity : int
        Of the table, in L2 norm; see :func:`~pgmpy_dp.privacy.mechanisms.table_sensitivity`.

    Examples
    --------
    >>> round(1 / (2 * with_discrete_noise(0.05, 1)), 3), round(9 / (2 * with_discrete_noise(0.05, 9)), 3)
    (12.0, 92.056)
    """
    blur = BLUR + math.log(squared_sensitivity) / (4.0 * math.pi**2)
    return rho / (1.0 + 2.0 * blur * rho / squared_sensitivity) * (1.0 - 1e-12)


@lru_cache(maxsize=64)
def _largest(parts: tuple[Part, ...], target: float, delta: float) -> float:
    low = rho_for(target, delta)
    if delta < _LEAST_DELTA or target > _MOST_EPSILON:
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
    """Find the values before Gaussian noise from those after it."""
    deviation = math.sqrt(2.0 * rho)
    half = math.ceil((rho + _TAIL * deviation) / step)
    loss = step * np.arange(-half, half + 1)

    def masses(mean: float) -> NDArray[np.float64]:
        edges = (loss - mean) / deviation
        low, high = edges[:-1], edges[1:]
        # No tail is the difference of numbers near 1.
        found: NDArray[np.float64] = np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
        return found

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
    """Find the values before a choice from those after it, at the worst place of its range for each."""
    points = math.ceil(width / step) + 1  # any range of this width is inside of one of so many steps, from the grid
    odds = (math.exp(points * step) - np.exp(step * np.arange(points + 1))) / math.expm1(points * step)
    padded = np.concatenate([np.ones(points), value, np.full(points, value[-1])])
    size, worst = len(value), value.copy()
    for place, probability in enumerate(odds):
        high, low = padded[points - place :][:size], padded[2 * points - place :][:size]
        np.maximum(worst, probability * high + (1.0 - probability) * low, out=worst)
    return worst
