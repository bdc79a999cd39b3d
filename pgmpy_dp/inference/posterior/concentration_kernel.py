"""Compiled Metropolis steps draw the concentrations of Dirichlet rows."""

from __future__ import annotations

import math

from pgmpy_dp._compiled import compiled


@compiled
def _likelihood(logs, first, last, begin, end, shift, rows, sums):
    """Compute what a node's rows gain if the logs of its concentrations from `begin` to `end` rise by `shift`.

    The node's own run from `first` to `last`; it has so many `rows`, whose logarithms sum to `sums`.
    """
    total, moved, gain = 0.0, 0.0, 0.0
    for k in range(first, last):
        old = math.exp(logs[k])
        new = old * math.exp(shift) if begin <= k < end else old
        total += old
        moved += new
        if begin <= k < end:
            gain += rows * (math.lgamma(old) - math.lgamma(new)) + sums[k] * (new - old)
    return gain + rows * (math.lgamma(moved) - math.lgamma(total))


@compiled
def sweep(logs, starts, rows, sums, centre, variance, belief, lowest, highest, shifts, uniforms):
    """Move each concentration, those of each node together, and all together with their centre.

    Parameters
    ----------
    logs : ndarray
        Logarithms of all nodes' concentrations; changed in place.
    starts : ndarray of int
        Where each node's begin, and their number as last entry.
    rows : ndarray of int
        Rows of each node.
    sums : ndarray
        For each concentration, the sum of the logarithms of its rows' probabilities.
    centre, variance : float
        Of the logarithms' normal distribution.
    belief : float
        The centre's own mean; its standard deviation is 1.
    lowest, highest : float
        What the logarithms may be.
    shifts, uniforms : ndarray of shape (logs.size + starts.size,)
        How far each move is to go, and its random number.

    Returns
    -------
    centre : float
    """
    number = 0
    for node in range(rows.shape[0]):
        first, last = starts[node], starts[node + 1]
        for k in range(first, last + 1):
            begin, end = (k, k + 1) if k < last else (first, last)
            shift, gain, inside = shifts[number], 0.0, True
            for j in range(begin, end):
                apart = logs[j] - centre
                gain -= shift * (2 * apart + shift) / (2 * variance)
                inside = inside and lowest < logs[j] + shift < highest
            if inside:
                gain += _likelihood(logs, first, last, begin, end, shift, rows[node], sums)
                if math.log(uniforms[number]) < gain:
                    logs[begin:end] += shift
            number += 1
    shift = shifts[number]
    apart = centre - belief
    gain, inside = -0.5 * shift * (2 * apart + shift), True
    for node in range(rows.shape[0]):
        first, last = starts[node], starts[node + 1]
        gain += _likelihood(logs, first, last, first, last, shift, rows[node], sums)
        for k in range(first, last):
            inside = inside and lowest < logs[k] + shift < highest
    if inside and math.log(uniforms[number]) < gain:
        logs += shift
        centre += shift
    return centre
