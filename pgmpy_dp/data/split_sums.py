"""Compiled sums of the weights of all ways to split a mass on a grid."""

from __future__ import annotations

import numpy as np

from pgmpy_dp._compiled import compiled


@compiled
def split_weights(log_mass, logs, widths, growth, left, right):
    """Compute the log-weights of all ways to split a mass.

    A part is (knots, values, bend, exponent): the logarithm of a function of the log-mass x. Between knots it is

        values, interpolated linearly, + bend (x - previous knot) (next knot - x) / 2,

    and without knots exponent * log(1 + growth * mass).
    """
    result = widths.copy()
    for side in range(2):
        knots, values, bend, exponent = left if side == 0 else right
        if knots.size == 0:
            scale = growth * np.exp(log_mass)
            for way in range(result.size):
                result[way] += exponent * np.log1p(scale * np.exp(logs[side, way]))
            continue
        after = min(max(np.searchsorted(knots, log_mass + logs[side, 0]), 1), knots.size - 1)
        for way in range(result.size):
            x = log_mass + logs[side, way]
            while after < knots.size - 1 and knots[after] < x:
                after += 1
            while after > 1 and knots[after - 1] >= x:
                after -= 1
            low, high = knots[after - 1], knots[after]
            line = values[after - 1] + (x - low) / (high - low) * (values[after] - values[after - 1])
            result[way] += line + 0.5 * bend * (x - low) * (high - x)
    return result


@compiled
def split_sums(log_masses, logs, widths, growth, left, right):
    """Compute the logarithm of the total weight of all splits of each mass, of shape (masses,)."""
    sums = np.empty(log_masses.size)
    for position in range(log_masses.size):
        weights = split_weights(log_masses[position], logs, widths, growth, left, right)
        top = weights.max()
        sums[position] = top + np.log(np.exp(weights - top).sum())
    return sums
