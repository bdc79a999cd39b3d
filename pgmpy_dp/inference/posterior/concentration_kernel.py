"""Compiled Metropolis steps for the concentrations of Dirichlet rows."""

from __future__ import annotations

import math

from pgmpy_dp._compiled import compiled


@compiled
def _likelihood(logs, first, last, begin, end, shift, rows, sums):
    """Return the gain in log-likelihood of a node's rows if some log concentrations rise by `shift`.

    The node's concentrations run from `first` to `last`, those that rise from `begin` to `end`. `sums` are the sums of
    the logarithms of its `rows` rows.
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
    """Propose a move of each concentration, of each node's together, and of all together with their centre.

    Parameters
    ----------
    logs : ndarray
        Logarithms of all nodes' concentrations; changed in place.
    starts : ndarray of int
        Start of each node's concentrations, followed by their number.
    rows : ndarray of int
        Number of rows of each node.
    sums : ndarray
        For each concentration, the sum of the logarithms of its rows' probabilities.
    centre, variance : float
        Parameters of the normal distribution of the logarithms.
    belief : float
        Prior mean of the centre; its prior standard deviation is 1.
    lowest, highest : float
        Range of the logarithms.
    shifts, uniforms : ndarray of shape (logs.size + starts.size,)
        Proposed change and uniform number of each move.
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
