"""Weights of splits, against interpolation by numpy."""

import numpy as np
from scipy.special import logsumexp

from pgmpy_dp.data.split_sums import split_sums, split_weights

KNOTS, VALUES, BEND = np.array([-4.0, -2.5, -1.0, 0.5]), np.array([3.0, 0.5, 1.0, -2.0]), 0.3
SHARES = np.array([0.02, 0.4, 0.75, 0.2, 0.99])  # up and down again: knots are found from where the last one was


def interpolated(x):
    after = np.clip(np.searchsorted(KNOTS, x), 1, KNOTS.size - 1)
    low, high = KNOTS[after - 1], KNOTS[after]
    slope = (VALUES[after] - VALUES[after - 1]) / (high - low)  # which goes on beyond the last knots
    return VALUES[after - 1] + (x - low) * slope + BEND * (x - low) * (high - x) / 2


def test_parts_are_interpolated_or_powers():
    left, right = (KNOTS, VALUES, BEND, 0.0), (np.zeros(0), np.zeros(0), 0.0, -1.7)
    logs, widths, masses = np.log([SHARES, 1 - SHARES]), np.linspace(-1.0, 1.0, 5), np.array([-1.2, 0.3, 1.4])
    for parts, numbers in (((left, right), (0, 1)), ((right, left), (1, 0)), ((left, left), (0, 0))):
        sums = []
        for mass in masses:
            laws = [interpolated, lambda x: -1.7 * np.log1p(2.5 * np.exp(x))]
            expected = widths + sum(laws[number](mass + logs[side]) for side, number in enumerate(numbers))
            np.testing.assert_allclose(split_weights(mass, logs, widths, 2.5, *parts), expected, rtol=1e-12)
            sums.append(logsumexp(expected))
        np.testing.assert_allclose(split_sums(masses, logs, widths, 2.5, *parts), sums, rtol=1e-12)
