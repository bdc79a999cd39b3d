"""Compiled Metropolis steps for the concentrations of Dirichlet rows."""

from __future__ import annotations

import math

from pgmpy_dp._compiled import compiled


@compiled
def _gain(concentrations, totals, logs, node, begin, end, stride, states, state, factor, lowest, highest):
    """Return the gain in log-likelihood of a node's rows if the concentrations of some states are multiplied.

    Those from `begin` to `end`, in the rows where a parent has `state`: the rows r with r // stride % states == state.
    """
    cell, row, width = node[0], node[1], node[3]
    gain = 0.0
    for r in range(width):
        if r // stride % states != state:
            continue
        after = totals[row + r]
        for k in range(begin, end):
            old = concentrations[cell + k * width + r]
            new = old * factor
            if not lowest < new < highest:
                return -math.inf
            after += new - old
            gain += math.lgamma(old) - math.lgamma(new) + logs[cell + k * width + r] * (new - old)
        gain += math.lgamma(after) - math.lgamma(totals[row + r])
    return gain


@compiled
def _multiply(concentrations, totals, node, begin, end, stride, states, state, factor):
    cell, row, width = node[0], node[1], node[3]
    for r in range(width):
        if r // stride % states == state:
            for k in range(begin, end):
                old = concentrations[cell + k * width + r]
                concentrations[cell + k * width + r] = old * factor
                totals[row + r] += old * (factor - 1.0)


@compiled
def sweep(
    concentrations, totals, logs, bases, effects, nodes, parents, centre, variance, variances, belief, lowest, highest,
    shifts, uniforms,
):  # fmt: skip
    """Propose a move of each base and effect, of each node's bases together, and of all bases with their centre.

    The logarithm of a cell's concentration is the base of the node's state plus an effect of each parent's state.

    Parameters
    ----------
    concentrations : ndarray of shape (cells,)
    totals : ndarray of shape (rows,)
        Their sums over each row.
    logs : ndarray of shape (cells,)
        Logarithms of the rows' probabilities.
    bases, effects : ndarrays
        Changed in place, with concentrations and totals.
    nodes : ndarray of int, shape (nodes, 7)
        First cell, first row, number of states, of rows, first base, first parent and number of parents with effects.
    parents : ndarray of int, shape (parents, 4)
        Stride of the parent's states among the rows, their number, first effect and first variance.
    centre, variance : float
        Parameters of the normal distribution of the bases.
    variances : ndarray
        Variance of the effects of each parent's state; their mean is 0.
    belief : float
        Prior mean of the centre; its prior standard deviation is 1.
    lowest, highest : float
        Range of the concentrations.
    shifts, uniforms : ndarray of shape (bases.size + nodes.shape[0] + effects.size + 1,)
        Proposed change and uniform number of each move.
    """
    number = 0
    for node in nodes:
        count, first = node[2], node[4]
        for k in range(count + 1):
            begin, end = (k, k + 1) if k < count else (0, count)
            shift = shifts[number]
            factor, gain = math.exp(shift), 0.0
            for j in range(first + begin, first + end):
                gain -= shift * (2 * (bases[j] - centre) + shift) / (2 * variance)
            gain += _gain(concentrations, totals, logs, node, begin, end, 1, 1, 0, factor, lowest, highest)
            if math.log(uniforms[number]) < gain:
                bases[first + begin : first + end] += shift
                _multiply(concentrations, totals, node, begin, end, 1, 1, 0, factor)
            number += 1
        for place in range(node[5], node[5] + node[6]):
            stride, states, own, scale = parents[place]
            for state in range(states):
                for k in range(count):
                    shift, j = shifts[number], own + state * count + k
                    factor = math.exp(shift)
                    gain = -shift * (2 * effects[j] + shift) / (2 * variances[scale + state])
                    gain += _gain(
                        concentrations, totals, logs, node, k, k + 1, stride, states, state, factor, lowest, highest
                    )
                    if math.log(uniforms[number]) < gain:
                        effects[j] += shift
                        _multiply(concentrations, totals, node, k, k + 1, stride, states, state, factor)
                    number += 1
    shift = shifts[number]
    factor, gain = math.exp(shift), -0.5 * shift * (2 * (centre - belief) + shift)
    for node in nodes:
        gain += _gain(concentrations, totals, logs, node, 0, node[2], 1, 1, 0, factor, lowest, highest)
    if math.log(uniforms[number]) < gain:
        bases += shift
        centre += shift
        for node in nodes:
            _multiply(concentrations, totals, node, 0, node[2], 1, 1, 0, factor)
    return centre
