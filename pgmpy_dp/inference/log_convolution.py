"""Non-negative sequences given by their logarithms are convolved by compiled code."""

from __future__ import annotations

import numpy as np

from pgmpy_dp._compiled import compiled


@compiled
def log_convolution(first, second):
    """Compute the log of sum_(s <= t) exp(first[s] + second[t - s]), for every row.

    Sums of weights that lie within the range of floats are taken as they are. Elsewhere each sum is scaled by its
    largest term, and terms below exp(-45) times that one are left out: relative errors stay below 1e-14, and no sum
    vanishes.

    Parameters
    ----------
    first, second : ndarrays of shape (rows, length)
        Finite.

    Returns
    -------
    ndarray of shape (rows, length)
    """
    rows, length = first.shape
    result = np.empty((rows, length))
    for row in range(rows):
        one, other = first[row], second[row]
        top, rest = one.max(), other.max()
        if one.min() - top + other.min() - rest > -600.0:
            left, right, sums = np.exp(one - top), np.exp(other - rest), np.zeros(length)
            for s in range(length):
                weight = left[s]
                for t in range(length - s):
                    sums[s + t] += weight * right[t]
            for t in range(length):
                result[row, t] = np.log(sums[t]) + top + rest
            continue
        for t in range(length):
            largest = one[0] + other[t]
            for s in range(1, t + 1):
                largest = max(largest, one[s] + other[t - s])
            total = 0.0
            for s in range(t + 1):
                term = one[s] + other[t - s] - largest
                if term > -45.0:
                    total += np.exp(term)
            result[row, t] = largest + np.log(total)
    return result
