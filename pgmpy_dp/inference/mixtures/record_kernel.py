"""Compiled passes for drawing records evenly."""

from __future__ import annotations

import numpy as np

from pgmpy_dp._compiled import compiled


@compiled
def even_counts(totals, table, carry, counts):
    """Assign integer numbers of records to every component's cells.

    A component's cells get their expected numbers, rounded up or down so that they sum to the component's total; those
    are rounded up that lag most behind their expectation in the components processed before.

    Parameters
    ----------
    totals : ndarray of int64, shape (components,)
    table : ndarray of shape (components, cells)
        Probabilities.
    carry : ndarray of shape (cells,)
        Initial lag of the cells; changed in place.
    counts : ndarray of int64, shape (components, cells)
        Output: the numbers.
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
def _gain(records, i, j, s, t, moved, owners, excess, price):
    """Return the change of the cost if two records exchanged their values of one variable, with those of its block.

    The records are in strata s and t. Within one stratum nothing changes where they agree.
    """
    a, b = records[i, moved], records[j, moved]
    gain = 0.0
    if a != b:
        for v in range(records.shape[1]):
            c, e = records[i, v], records[j, v]
            if (c != e or s != t) and owners[v] != owners[moved]:
                gain += (
                    price[s, a, c] * (1 - 2 * excess[s, a, c]) + price[s, b, c] * (1 + 2 * excess[s, b, c])
                    + price[t, b, e] * (1 - 2 * excess[t, b, e]) + price[t, a, e] * (1 + 2 * excess[t, a, e])
                )  # fmt: skip
        if s != t:
            gain += _gain_within(s, t, a, a, b, b, excess, price)
    return gain


@compiled
def _gain_within(s, t, a, c, b, e, excess, price):
    """Do the same for a pair of states: a and c move together from stratum s to t, and b and e back."""
    gain = 0.0
    if a != b or c != e:
        gain += price[s, a, c] * (1 - 2 * excess[s, a, c]) + price[s, b, e] * (1 + 2 * excess[s, b, e])
        gain += price[t, b, e] * (1 - 2 * excess[t, b, e]) + price[t, a, c] * (1 + 2 * excess[t, a, c])
    return gain


@compiled
def _exchange(records, i, j, s, t, moved, owners, excess):
    """Update the counts for an exchange that `_gain` evaluated."""
    a, b = records[i, moved], records[j, moved]
    if a != b:
        for v in range(records.shape[1]):
            c, e = records[i, v], records[j, v]
            if (c != e or s != t) and owners[v] != owners[moved]:
                _replace(excess, s, a, c, b, c)
                _replace(excess, t, b, e, a, e)
        if s != t:
            _replace(excess, s, a, a, b, b)
            _replace(excess, t, b, b, a, a)


@compiled
def _replace(excess, s, a, c, b, e):
    """Update counts for a record with states b and e instead of a and c; a single state is a pair with itself."""
    excess[s, a, c] -= 1
    excess[s, b, e] += 1
    if a != c:
        excess[s, c, a] -= 1
        excess[s, e, b] += 1


@compiled
def swap_within_components(records, strata, starts, blocks, owners, excess, price, sweeps, generator):
    """Exchange two records' values of a block wherever that brings counts of pairs closer to their expectations.

    Both records belong to one component, so every component's counts within single blocks do not change.

    Parameters
    ----------
    records : ndarray of int32, shape (records, variables)
        Places of the records' states among the states of all variables; sorted by component; changed in place.
    strata : ndarray of int64, shape (records,)
        Pairs are counted separately in each stratum.
    starts : ndarray of int64, shape (components + 1,)
        Where each component's records begin.
    blocks : ndarray of int64, shape (blocks, most variables of a block)
        Variables of the blocks that move, -1 beyond a block's last one.
    owners : ndarray of int64, shape (variables,)
        The block of every variable; those in no block that moves have numbers of their own.
    excess, price : ndarrays of shape (strata, states, states)
        Records minus expected records of each pair of states, both above and below the diagonal, and the price of the
        square of that; `excess` is changed in place. The diagonal counts single states.
    sweeps : int
        Exchanges tried per record and block.
    generator : numpy.random.Generator

    Returns
    -------
    int
        Number of exchanges.
    """
    made = 0
    for _ in range(sweeps):
        for k in range(starts.shape[0] - 1):
            begin, size = starts[k], starts[k + 1] - starts[k]
            if size < 2:
                continue
            for i in range(begin, starts[k + 1]):
                for block in blocks:
                    j = begin + int(generator.random() * size)
                    s, t = strata[i], strata[j]
                    gain = 0.0
                    for place, p in enumerate(block):
                        if p >= 0:
                            gain += _gain(records, i, j, s, t, p, owners, excess, price)
                            for q in block[:place] if s != t else block[:0]:
                                a, c, b, e = records[i, q], records[i, p], records[j, q], records[j, p]
                                gain += _gain_within(s, t, a, c, b, e, excess, price)
                    if gain < -1e-6:
                        for place, p in enumerate(block):
                            if p >= 0:
                                _exchange(records, i, j, s, t, p, owners, excess)
                                for q in block[:place] if s != t else block[:0]:
                                    _replace(excess, s, records[i, q], records[i, p], records[j, q], records[j, p])
                                    _replace(excess, t, records[j, q], records[j, p], records[i, q], records[i, p])
                        for p in block:
                            if p >= 0:
                                records[i, p], records[j, p] = records[j, p], records[i, p]
                        made += 1
    return made
