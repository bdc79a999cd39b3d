"""Compiled moments of counts behind noise whose rows have given sums."""

from __future__ import annotations

import math

import numpy as np

from pgmpy_dp._compiled import called, compiled
from pgmpy_dp.inference.tables.table import Vector

# Counts are integrated over z, where a count is softplus(z) in units of its noise's scale: about exp(z) where noise
# hides it, and linear above.
STEP, LOWEST = 0.25, -14.0
_WINDOW = 12.0  # half width, about the observation and the centre, in units of scale
_LINEAR = 8.0  # windows that begin below this extend down to `LOWEST`


@called
def _moments(observed, corner, bend, centre, concentration, tilt, nodes, logs, weights, found):
    """Write the moments of n^(c - 1) exp(l(n) + t n - b (n - m)^2 / 2), all in units of the noise's scale.

    They are log Z, mean, variance, the mean of log n, the covariance of n and log n, that of (n - mean)^2 and log n,
    the third central moment of n, and the variance of log n.
    """
    low, high = (observed, centre) if observed < centre else (centre, observed)
    low = LOWEST if low - _WINDOW < _LINEAR else low - _WINDOW
    high = (high if high > 0.0 else 0.0) + _WINDOW
    first, last = int((low - LOWEST) / STEP), int((high - LOWEST) / STEP) + 1
    last = last if last < nodes.shape[0] else nodes.shape[0]
    top = -math.inf
    for j in range(first, last):
        residual = observed - nodes[j]
        exponent = tilt * nodes[j] - 0.5 * bend * (nodes[j] - centre) ** 2
        exponent += (concentration - 1.0) * logs[j] + weights[j]
        if corner < 0.0:
            exponent -= 0.5 * residual * residual
        else:
            exponent -= math.sqrt(residual * residual + corner)
        found[8 + j - first] = exponent
        top = exponent if exponent > top else top
    below = -math.inf
    if first == 0:  # below the lowest node all but the power of n is constant
        below = found[8] - weights[0] + logs[0] - math.log(concentration)
        top = below if below > top else top
    under, depth = math.exp(below - top), logs[first] - 1.0 / concentration
    mass, sum_n, sum_log = under, 0.0, under * depth
    for j in range(first, last):
        share = found[8 + j - first] = math.exp(found[8 + j - first] - top)
        mass += share
        sum_n += share * nodes[j]
        sum_log += share * logs[j]
    average, average_log = sum_n / mass, sum_log / mass
    variance = under * average * average
    joint, square, cube = (
        -under * average * (depth - average_log),
        variance * (depth - average_log),
        -variance * average,
    )
    # Below the lowest node log n is that node's less an exponential variable of mean 1 / c.
    spread_log = under * ((depth - average_log) ** 2 + 1.0 / concentration**2)
    for j in range(first, last):
        share, off, off_log = found[8 + j - first], nodes[j] - average, logs[j] - average_log
        variance += share * off * off
        joint += share * off * off_log
        square += share * off * off * off_log
        cube += share * off * off * off
        spread_log += share * off_log * off_log
    found[0], found[1], found[2] = top + math.log(mass), average, variance / mass
    found[3], found[4], found[5], found[6] = average_log, joint / mass, square / mass, cube / mass
    found[7] = spread_log / mass


@compiled
def solve_rows(
    starts, observed, scale, corner, bend, centre, concentrations, tilts, totals, shifts, nodes, logs, weights, out,
    result,
):  # fmt: skip
    """Find the common tilt of each row at which its means sum to its total, and write the moments of all cells.

    Cells of a row are side by side, from `starts[r]` to `starts[r + 1]`; all is in records, `shifts` (the start, then
    the solution) per record. `out` has shape (8, cells): see `_moments`, whose `result` has room for the nodes too.
    """
    for r in range(totals.shape[0]):
        lower, upper, shift = -math.inf, math.inf, shifts[r]
        for _ in range(60):
            total = spread = 0.0
            for k in range(starts[r], starts[r + 1]):
                s = scale[k]
                _moments(
                    observed[k] / s, corner[k] / (s * s), bend[k] * s * s, centre[k] / s, concentrations[k],
                    (tilts[k] + shift) * s, nodes, logs, weights, result,
                )  # fmt: skip
                out[0, k] = result[0] + concentrations[k] * math.log(s)
                out[1, k], out[2, k] = result[1] * s, result[2] * s * s
                out[3, k], out[4, k] = result[3] + math.log(s), result[4] * s
                out[5, k], out[6, k], out[7, k] = result[5] * s * s, result[6] * s * s * s, result[7]
                total += out[1, k]
                spread += out[2, k]
            excess = math.log(totals[r] / total)
            if abs(excess) < 1e-6:
                break
            if excess > 0.0:
                lower = shift
            else:
                upper = shift
            # Newton's step for the logarithm of the sum, which is less curved than the sum where noise hides all.
            moved = shift + excess * total / (spread if spread > 1e-300 else 1e-300)
            if not lower < moved < upper:
                moved = 0.5 * (lower + upper)
            if not abs(moved) < math.inf:
                break
            shift = moved
        shifts[r] = shift


def grid(highest: float) -> tuple[Vector, Vector, Vector]:
    """Return nodes from 0 to a number of scales, their logarithms, and the logarithms of their weights."""
    z = np.arange(LOWEST, max(highest, 0.0) + _WINDOW + 2 * STEP, STEP)
    nodes = np.logaddexp(0.0, z)
    return nodes, np.log(nodes), -np.logaddexp(0.0, -z) + math.log(STEP)
