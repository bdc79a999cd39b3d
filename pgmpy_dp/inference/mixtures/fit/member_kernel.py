"""Compiled passes of a mixture's fit: from coefficients to components' tables, and back for gradients.

The cells of all blocks are stacked, with one row per cell and one column per component, so that inner loops over
components are vectorised; `starts` holds where each block's cells begin. A cell belongs to a state of each variable of
its block: `members` holds the places of these states among the stacked states of all variables, by cell and variable,
-1 beyond the block's last variable. Some variables follow from others: `finer` are the places of states that others
follow from, and `coarser` those of the states that follow.

Each pass is one call, without Python's lock: members are fitted in several threads, which would wait for each other at
every call.
"""

from __future__ import annotations

import numpy as np

from pgmpy_dp._compiled import called, compiled


@called
def smooth(matrix, rows, widths, smoothing, result):
    """Write a matrix in which the rows of some variables are multiplied by square matrices.

    Row `rows[i]` is the first of `widths[i]`, whose matrix is the next in the flat `smoothing`.
    """
    for row in range(matrix.shape[0]):
        own, values = result[row], matrix[row]
        for k in range(own.shape[0]):
            own[k] = values[k]
    place = 0
    for i in range(rows.shape[0]):
        for row in range(rows[i], rows[i] + widths[i]):
            own = result[row]
            for k in range(own.shape[0]):
                own[k] = 0.0
            for other in range(rows[i], rows[i] + widths[i]):
                factor, values = smoothing[place], matrix[other]
                for k in range(own.shape[0]):
                    own[k] += factor * values[k]
                place += 1


@called
def add_rows(matrix, rows, others):
    """Add other rows of a matrix to rows of it, one by one."""
    for i in range(rows.shape[0]):
        own, other = matrix[rows[i]], matrix[others[i]]
        for k in range(own.shape[0]):
            own[k] += other[k]


@compiled
def logs_of_cells(
    coefficients, smoothing, finer, coarser, base, forbidden, starts, members, logs, potentials, top
):  # fmt: skip
    """Compute the log of every component's unnormalised tables, with 0 as the largest of each block.

    `forbidden` is far below zero for cells outside of a component's box and zero elsewhere; it has no rows if there are
    no rules. There is room for log-potentials of states, and for a number of each component in `top`.
    """
    smooth(coefficients, smoothing.rows, smoothing.widths, smoothing.matrices, potentials)
    add_rows(potentials, finer, coarser)  # groups of states move together, in addition to each state
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
def normalise(base, starts, members, finer, coarser, logs, tables, states, total, shift):
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
            total[k] = 1 / total[k]
        for s in range(starts[block], starts[block + 1]):
            table, log, height = tables[s], logs[s], base[s]
            for k in range(components):
                table[k] *= total[k]
                log[k] -= height + shift[k]
            for place in range(members.shape[1]):
                if members[s, place] >= 0:
                    own = states[members[s, place]]
                    for k in range(components):
                        own[k] += table[k]
    add_rows(states, coarser, finer)


@compiled
def centre_states(states, starts, mean):
    """Subtract the mean of every variable's states, which begin at `starts`, in each component; `mean` is room."""
    components = states.shape[1]
    for variable in range(starts.shape[0] - 1):
        begin, end = starts[variable], starts[variable + 1]
        for k in range(components):
            mean[k] = 0.0
        for i in range(begin, end):
            for k in range(components):
                mean[k] += states[i, k]
        for k in range(components):
            mean[k] /= end - begin
        for i in range(begin, end):
            for k in range(components):
                states[i, k] -= mean[k]


@compiled
def compare_singles(states, alone, singles, by_weight, by_state):
    """Add derivatives of half the weighted squared distance of single states from their shares, which is returned.

    `singles` has two rows, the weights and the shares.
    """
    loss = 0.0
    for i in range(states.shape[0]):
        residual = alone[i] - singles[1, i]
        own, by, slope = states[i], by_state[i], singles[0, i] * residual
        loss += slope * residual / 2
        for k in range(own.shape[0]):
            by_weight[k] += slope * own[k]
            by[k] += slope
    return loss


@compiled
def compare_pairs(states, rooted, strip, factor, by_weight, by_state, losses):
    """Add `factor` times the derivatives of half the weighted squared distance of pairs from shares, which is returned.

    The pairs are those of all states with the strip's. Their marginals are products of `rooted`, components times the
    roots of their weights. For `losses` see `compare`.
    """
    end = strip.first + strip.weight.shape[1]
    products = np.dot(rooted, rooted[strip.first : end].T)
    loss = compare(strip.weight, strip.shares, products, losses)
    slopes = np.dot(products, states[strip.first : end])
    for i in range(slopes.shape[0]):
        own, by, slope = states[i], by_state[i], slopes[i]
        for k in range(own.shape[0]):
            slope[k] *= factor
            by[k] += slope[k]
            by_weight[k] += own[k] * slope[k] / 2
    return loss


@compiled
def compare(weight, shares, products, losses):
    """Convert marginals in place to derivatives of half their weighted squared distance, which is returned.

    Each pair of states is there twice. There is room for a number of each column in `losses`, which begin as zeros.
    """
    loss = 0.0
    for i in range(weight.shape[0]):
        product, price, share = products[i], weight[i], shares[i]
        for j in range(weight.shape[1]):
            residual = product[j] - share[j]
            product[j] = price[j] * residual
            losses[j] += product[j] * residual
    for j in range(weight.shape[1]):
        loss += losses[j] / 4
    return loss


@compiled
def compare_within(cells, within, marginals, totals, by_base):
    """Add derivatives of half the weighted squared distance of blocks' tables from shares, which is returned.

    `cells` are the probabilities of the blocks' cells, by whose base the derivatives are. The tables' marginals become
    derivatives; they, and the room for `totals` along an axis, begin as zeros.
    """
    loss = 0.0
    for i in range(within.rows.shape[0]):
        marginals[within.rows[i]] += cells[within.cells[i]]
    for axis in range(within.sums.shape[0]):
        sums, factors = within.sums[axis], within.factors[axis]
        for i in range(sums.shape[0]):
            totals[sums[i]] += marginals[i]
        for i in range(sums.shape[0]):
            marginals[i] -= factors[i] * totals[sums[i]]
        for i in range(sums.shape[0]):
            totals[i] = 0.0
    for i in range(marginals.shape[0]):
        residual = marginals[i] - within.shares[i]
        marginals[i] = within.weight[i] * residual
        loss += marginals[i] * residual / 2
    for i in range(within.rows.shape[0]):
        by_base[within.cells[i]] += marginals[within.rows[i]]
    return loss


@compiled
def gradient_of_coefficients(
    weights, tables, logs, penalty, smoothing, finer, coarser, starts, members, by_weight, by_state, by_cell, by_base,
    by_potential, by_coefficient, mean, divergence,
):  # fmt: skip
    """Apply the chain rule through the normalisation, from derivatives by probabilities to those by coefficients.

    Derivatives by probabilities of cells and states are overwritten, those by the base's probabilities become those by
    its logarithms, and `by_weight` gets the price of the divergence from exp(base), `penalty` for each nat. Their mean
    divergence is returned. `by_potential` begins as zeros; `mean` and `divergence` are room.
    """
    add_rows(by_state, finer, coarser)
    total = 0.0
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
            total += weights[k] * divergence[k]
            by_weight[k] += penalty * divergence[k]
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
    add_rows(by_potential, coarser, finer)
    smooth(by_potential, smoothing.rows, smoothing.widths, smoothing.transposed, by_coefficient)
    return total


@compiled
def adam_step(points, gradients, means, squares, steps, first_decay, second_decay, first_bias, second_bias):
    """Take one step of Adam in place; arrays are flat, and each has its own length of step."""
    first, second, tiny = np.float32(1.0) - first_decay, np.float32(1.0) - second_decay, np.float32(1e-12)
    for number in range(len(points)):
        point, gradient, mean, square = points[number], gradients[number], means[number], squares[number]
        step = steps[number] / first_bias
        for i in range(point.shape[0]):
            slope, own, spread = gradient[i], mean[i], square[i]
            own += first * (slope - own)
            spread += second * (slope * slope - spread)
            mean[i], square[i] = own, spread
            point[i] -= step * own / (np.sqrt(spread / second_bias) + tiny)
