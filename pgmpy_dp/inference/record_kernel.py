"""Records are drawn evenly by compiled passes."""

from __future__ import annotations

import numpy as np

from pgmpy_dp._compiled import compiled


@compiled
def even_counts(totals, table, carry, counts):
    """Give every component's cells whole numbers of records.

    A component's cells get their expected numbers, rounded up or down, so that they sum to the component's total; those
    are rounded up that have fallen behind most in the components so far.

    Parameters
    ----------
    totals : ndarray of int64, shape (components,)
    table : ndarray of shape (components, cells)
        Probabilities.
    carry : ndarray of shape (cells,)
        How far the cells lie behind at the start; changed in place.
    counts : ndarray of int64, shape (components, cells)
        Here the numbers go.
    """
    cells = table.shape[1]
    behind = np.empty(cells)
    for k in range(totals.shape[0]):
        left = totals[k]
        for s in range(cells):
            expected = totals[k] * table[k, s]
            counts[k, s] = int(np.floor(expected + 1e-9))
            rest = expected - counts[k, s]
            carry[s] += rest
            left -= counts[k, s]
            behind[s] = carry[s] if rest > 1e-9 else -np.inf
        for _ in range(left):
            most = np.argmax(behind)
            counts[k, most] += 1
            carry[most] -= 1.0
            behind[most] = -np.inf


@compiled
def _gain(one, other, moved, first, second, excess, price, variables):
    """Compute the change of the cost if two records exchanged their values of one variable (of those in its block)."""
    a, b = one[moved], other[moved]
    gain = 0.0
    if a != b:
        row_a, row_b, price_a, price_b = excess[a], excess[b], price[a], price[b]
        for v in range(variables):
            c, e = one[v], other[v]
            if c != e and v != first and v != second:
                gain += (
                    price_a[c] * (1 - 2 * row_a[c]) + price_b[c] * (1 + 2 * row_b[c])
                    + price_b[e] * (1 - 2 * row_b[e]) + price_a[e] * (1 + 2 * row_a[e])
                )  # fmt: skip
    return gain


@compiled
def _exchange(one, other, moved, first, second, excess, variables):
    """Count what `_gain` foresaw."""
    a, b = one[moved], other[moved]
    if a != b:
        for v in range(variables):
            c, e = one[v], other[v]
            if c != e and v != first and v != second:
                excess[a, c] -= 1
                excess[b, c] += 1
                excess[b, e] -= 1
                excess[a, e] += 1
                excess[c, a] -= 1
                excess[c, b] += 1
                excess[e, b] -= 1
                excess[e, a] += 1


@compiled
def swap_within_components(records, starts, first, second, excess, price, sweeps, generator):
    """Exchange two records' values of a block wherever that brings the counts of pairs nearer to their expectations.

    Both records belong to one component, so every component's counts within single blocks stay as they are.

    Parameters
    ----------
    records : ndarray of int32, shape (records, variables)
        Places of the records' states among the states of all variables; sorted by component; changed in place.
    starts : ndarray of int64, shape (components + 1,)
        Where each component's records begin.
    first, second : ndarrays of int64, shape (blocks,)
        Variables of the blocks, `second` being -1 where there is one only.
    excess, price : ndarrays of shape (states, states)
        Records less expected records of each pair of states, above and below the diagonal alike, and what the square of
        that costs; `excess` is changed in place.
    sweeps : int
        Exchanges tried for each record and block.
    generator : numpy.random.Generator

    Returns
    -------
    int
        Exchanges made.
    """
    made, variables = 0, records.shape[1]
    for _ in range(sweeps):
        for k in range(starts.shape[0] - 1):
            begin, size = starts[k], starts[k + 1] - starts[k]
            if size < 2:
                continue
            for i in range(begin, starts[k + 1]):
                one = records[i]
                for block in range(first.shape[0]):
                    other = records[begin + int(generator.random() * size)]
                    gain = _gain(one, other, first[block], first[block], second[block], excess, price, variables)
                    if second[block] >= 0:
                        gain += _gain(one, other, second[block], first[block], second[block], excess, price, variables)
                    if gain < -1e-6:
                        _exchange(one, other, first[block], first[block], second[block], excess, variables)
                        if second[block] >= 0:
                            _exchange(one, other, second[block], first[block], second[block], excess, variables)
                            one[second[block]], other[second[block]] = other[second[block]], one[second[block]]
                        one[first[block]], other[first[block]] = other[first[block]], one[first[block]]
                        made += 1
    return made
