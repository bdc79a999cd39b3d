"""Compiled passes of the fit of a mixture: from log-potentials to tables of components, and gradients back.

The cells of all blocks lie one under the other, one row a cell and one column a component, so that inner loops run
over components on vector registers; `starts` says where each block's cells begin. A cell belongs to a state of its
block's first and, if the block is a pair, of its second variable: `first` and `second` are the places of these states
among the states of all variables, which lie one under the other too (`second` is -1 in blocks of one variable).
"""

from __future__ import annotations

import numpy as np

from pgmpy_dp._compiled import compiled


@compiled
def potentials_of_cells(potentials, base, starts, first, second, logs):
    """Log of every component's unnormalised tables, the largest of each block being 0."""
    components = logs.shape[1]
    top = np.empty(components, logs.dtype)
    for block in range(starts.shape[0] - 1):
        top[:] = -np.inf
        for s in range(starts[block], starts[block + 1]):
            log, one, height = logs[s], potentials[first[s]], base[s]
            if second[s] < 0:
                for k in range(components):
                    log[k] = height + one[k]
            else:
                other = potentials[second[s]]
                for k in range(components):
                    log[k] = height + one[k] + other[k]
            for k in range(components):
                top[k] = log[k] if log[k] > top[k] else top[k]
        for s in range(starts[block], starts[block + 1]):
            log = logs[s]
            for k in range(components):
                log[k] -= top[k]


@compiled
def normalise(base, starts, first, second, logs, tables, states):
    """Scale the exponentials in `tables` to sum to one a block, and sum them by the variables' states.

    The logs become those of tables / exp(base).
    """
    components = logs.shape[1]
    total, shift = np.empty(components, logs.dtype), np.empty(components, logs.dtype)
    states[:] = 0.0
    for block in range(starts.shape[0] - 1):
        total[:] = 0.0
        for s in range(starts[block], starts[block + 1]):
            table = tables[s]
            for k in range(components):
                total[k] += table[k]
        for k in range(components):
            shift[k] = np.log(total[k])
            total[k] = 1 / total[k]
        for s in range(starts[block], starts[block + 1]):
            table, log, one, height = tables[s], logs[s], states[first[s]], base[s]
            for k in range(components):
                table[k] *= total[k]
                log[k] -= height + shift[k]
                one[k] += table[k]
            if second[s] >= 0:
                other = states[second[s]]
                for k in range(components):
                    other[k] += table[k]


@compiled
def gradient_of_potentials(
    weights, tables, logs, penalty, by_state, by_cell, starts, first, second, by_potential, by_base, divergences
):
    """Chain rule through the normalisation.

    Parameters
    ----------
    weights : ndarray of shape (components,)
    tables, logs : ndarrays of shape (cells, components)
        As `normalise` leaves them.
    penalty : float
        What a nat of divergence from the base costs.
    by_state : ndarray of shape (states, components)
        Derivatives of the loss by a component's probabilities of states, without the component's weight.
    by_cell : ndarray of shape (cells, components or 1)
        The same by probabilities of cells; a single column stands for all components.
    by_potential : ndarray of shape (states, components)
        Here the derivatives by potentials go.
    by_base : ndarray of shape (cells,)
        Here those by the base go, its own normalisation and the penalty's direct dependence on it left out.
    divergences : ndarray of shape (components,)
        Here the Kullback-Leibler divergences from exp(base) go.
    """
    components, several = tables.shape[1], by_cell.shape[1] > 1
    mean = np.empty(components, tables.dtype)
    by_potential[:] = 0.0
    divergences[:] = 0.0
    slopes = np.empty((np.diff(starts).max(), components), tables.dtype)
    for block in range(starts.shape[0] - 1):
        mean[:] = 0.0
        for s in range(starts[block], starts[block + 1]):
            slope, log, table, one = slopes[s - starts[block]], logs[s], tables[s], by_state[first[s]]
            for k in range(components):
                slope[k] = penalty * log[k] + one[k]
                divergences[k] += table[k] * log[k]
            if several:
                own = by_cell[s]
                for k in range(components):
                    slope[k] += own[k]
            else:
                same = by_cell[s, 0]
                for k in range(components):
                    slope[k] += same
            if second[s] >= 0:
                other = by_state[second[s]]
                for k in range(components):
                    slope[k] += other[k]
            for k in range(components):
                mean[k] += table[k] * slope[k]
        for s in range(starts[block], starts[block + 1]):
            slope, table, one = slopes[s - starts[block]], tables[s], by_potential[first[s]]
            total = mean[0] * 0
            for k in range(components):
                slope[k] = weights[k] * table[k] * (slope[k] - mean[k])
                one[k] += slope[k]
                total += slope[k]
            by_base[s] = total
            if second[s] >= 0:
                other = by_potential[second[s]]
                for k in range(components):
                    other[k] += slope[k]


@compiled
def adam_step(point, gradient, mean, square, step, first_decay, second_decay, first_bias, second_bias):
    """One step of Adam in place; all arrays are flat."""
    for i in range(point.shape[0]):
        mean[i] += (np.float32(1.0) - first_decay) * (gradient[i] - mean[i])
        square[i] += (np.float32(1.0) - second_decay) * (gradient[i] * gradient[i] - square[i])
        point[i] -= step * (mean[i] / first_bias) / (np.sqrt(square[i] / second_bias) + np.float32(1e-12))
