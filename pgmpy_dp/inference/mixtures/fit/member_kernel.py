"""Compiled passes of a mixture's fit: from log-potentials to components' tables, and back for gradients.

The cells of all blocks are stacked, with one row per cell and one column per component, so that inner loops over
components are vectorised; `starts` holds where each block's cells begin. A cell belongs to a state of each variable of
its block: `members` holds the places of these states among the stacked states of all variables, by cell and variable,
-1 beyond the block's last variable.
"""

from __future__ import annotations

import numpy as np

from pgmpy_dp._compiled import compiled


@compiled
def potentials_of_cells(potentials, base, forbidden, starts, members, logs, top):
    """Compute the log of every component's unnormalised tables, with 0 as the largest of each block.

    `forbidden` is far below zero for cells outside of a component's box and zero elsewhere; it has no rows if there are
    no rules. There is room for a number of each component in `top`.
    """
    components = logs.shape[1]
    for block in range(starts.shape[0] - 1):
        for k in range(components):
            top[k] = -np.inf
        for s in range(starts[block], starts[block + 1]):
            log, own, height = logs[s], potentials[members[s, 0]], base[s]
            for k in range(components):
                log[k] = height + own[k]
            if forbidden.shape[0] > 0:
                for k in range(components):
                    log[k] += forbidden[s, k]
            for place in range(1, members.shape[1]):
                if members[s, place] >= 0:
                    own = potentials[members[s, place]]
                    for k in range(components):
                        log[k] += own[k]
            for k in range(components):
                top[k] = log[k] if log[k] > top[k] else top[k]
        for s in range(starts[block], starts[block + 1]):
            log = logs[s]
            for k in range(components):
                log[k] -= top[k]


@compiled
def normalise(base, starts, members, logs, tables, states, total, shift):
    """Normalise the exponentials in `tables` in each block, and sum them by the variables' states.

    The logs become those of tables / exp(base). `states` begin as zeros; `total` and `shift` are room.
    """
    components = logs.shape[1]
    for block in range(starts.shape[0] - 1):
        for k in range(components):
            total[k] = 0.0
        for s in range(starts[block], starts[block + 1]):
            table = tables[s]
            for k in range(components):
                total[k] += table[k]
        for k in range(components):
            shift[k] = np.log(total[k])
        for s in range(starts[block], starts[block + 1]):
            table, log, height = tables[s], logs[s], base[s]
            for k in range(components):
                table[k] /= total[k]
                log[k] -= height + shift[k]
            for place in range(members.shape[1]):
                if members[s, place] >= 0:
                    own = states[members[s, place]]
                    for k in range(components):
                        own[k] += table[k]


@compiled
def centre_states(alone, starts):
    """Subtract the mean of every variable's states, which begin at `starts`, from the marginals of single states."""
    for variable in range(starts.shape[0] - 1):
        single = 0.0
        for i in range(starts[variable], starts[variable + 1]):
            single += alone[i]
        for i in range(starts[variable], starts[variable + 1]):
            alone[i] -= single / (starts[variable + 1] - starts[variable])


@compiled
def centre(products, starts, others):
    """Subtract the means of rows and columns from the marginals of pairs, in place; `others` are those of columns."""
    mean = np.empty(products.shape[1], products.dtype)
    for variable in range(starts.shape[0] - 1):
        begin, end = starts[variable], starts[variable + 1]
        mean[:] = 0.0
        for i in range(begin, end):
            for j in range(mean.shape[0]):
                mean[j] += products[i, j]
        states = end - begin
        for other in range(others.shape[0] - 1):  # rows less their means have columns less their means
            total = 0.0
            for j in range(others[other], others[other + 1]):
                mean[j] /= states
                total += mean[j]
            total /= others[other + 1] - others[other]
            for j in range(others[other], others[other + 1]):
                mean[j] -= total
        for i in range(begin, end):
            product = products[i]
            for other in range(others.shape[0] - 1):
                total = 0.0
                for j in range(others[other], others[other + 1]):
                    total += product[j]
                total /= others[other + 1] - others[other]
                for j in range(others[other], others[other + 1]):
                    product[j] -= mean[j] + total


@compiled
def weigh_residuals(weight, shares, products, alone, first, losses):
    """Convert marginals in place to derivatives of half their weighted squared distance, which is returned.

    Columns are some of the states, the first of which is the `first` of all; single states are those that are both.
    There is room for a number of each in `losses`, which begin as zeros.
    """
    loss = 0.0
    for i in range(weight.shape[0]):
        same = i - first
        alike = 0 <= same < weight.shape[1]
        product, price, share = products[i], weight[i], shares[i]
        if alike:
            product[same] = alone[i]
        for j in range(weight.shape[1]):
            residual = product[j] - share[j]
            product[j] = price[j] * residual
            losses[j] += product[j] * residual
        if alike:
            loss += product[same] * (alone[i] - share[same]) / 4  # single states are counted once
            product[same] = 0
    for j in range(weight.shape[1]):
        loss += losses[j] / 4
    return loss


@compiled
def gradient_of_potentials(
    weights, tables, logs, penalty, by_state, by_cell, by_base, starts, members, by_potential, divergences, mean,
    divergence,
):  # fmt: skip
    """Apply the chain rule through the normalisation, from derivatives by probabilities to those by potentials.

    `by_cell`, those by probabilities of cells, is overwritten, and `by_base` with those by the base's logarithms;
    `divergences` become those from exp(base), each nat of which has the price `penalty`. These and `by_potential` begin
    as zeros; `mean` and `divergence` are room.
    """
    components = tables.shape[1]
    for block in range(starts.shape[0] - 1):
        for k in range(components):
            mean[k] = divergence[k] = 0.0
        for s in range(starts[block], starts[block + 1]):
            slope, log, table = by_cell[s], logs[s], tables[s]
            for place in range(members.shape[1]):
                if members[s, place] >= 0:
                    own = by_state[members[s, place]]
                    for k in range(components):
                        slope[k] += own[k]
            height = by_base[s]
            for k in range(components):
                slope[k] += height
                mean[k] += table[k] * slope[k]
            for k in range(components):
                divergence[k] += table[k] * log[k]
        for k in range(components):
            divergences[k] += divergence[k]
        for s in range(starts[block], starts[block + 1]):
            slope, log, table = by_cell[s], logs[s], tables[s]
            for k in range(components):
                slope[k] = weights[k] * table[k] * (slope[k] - mean[k])
            by_base[s] = 0
            one = two = three = four = by_base[s]  # side by side, since each addition waits for the one before
            for k in range(components % 4):
                by_base[s] += slope[k]
            for k in range(components % 4, components, 4):
                one, two, three, four = one + slope[k], two + slope[k + 1], three + slope[k + 2], four + slope[k + 3]
            by_base[s] += (one + two) + (three + four)
            for k in range(components):
                slope[k] += penalty * weights[k] * table[k] * (log[k] - divergence[k])
            for place in range(members.shape[1]):
                if members[s, place] >= 0:
                    own = by_potential[members[s, place]]
                    for k in range(components):
                        own[k] += slope[k]


@compiled
def adam_step(point, gradient, mean, square, step, first_decay, second_decay, first_bias, second_bias):
    """Take one step of Adam in place; all arrays are flat."""
    for i in range(point.shape[0]):
        mean[i] += (np.float32(1.0) - first_decay) * (gradient[i] - mean[i])
        square[i] += (np.float32(1.0) - second_decay) * (gradient[i] * gradient[i] - square[i])
        point[i] -= step * (mean[i] / first_bias) / (np.sqrt(square[i] / second_bias) + np.float32(1e-12))
