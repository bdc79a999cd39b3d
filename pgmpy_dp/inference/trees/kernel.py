"""Compiled message passing over a flat buffer.

A junction tree is compiled to a *program*: a list of instructions, each of which works on one *big* table and one
*small* table whose variables are among the big one's. Three interpreters run the same program: in linear space (fast),
in log space (for potentials so far apart that linear messages underflow), and for the covariance product (derivatives
of marginals). They are compiled once and cached; nothing is compiled per network.

A big table is processed in blocks of consecutive cells, over which the small table's cell moves by a constant stride
(0 if the block's variables are not in the small table); `maps` holds where in the small table each block starts.
"""

from __future__ import annotations

import numpy as np

from pgmpy_dp._compiled import called, compiled

# Columns of an instruction.
OPERATION, BIG, CELLS, SMALL, BLOCK, STRIDE, MAP, SMALL_CELLS, BELIEF = range(9)

# Operations.
ASSIGN = 0  # big = small, spread over the block
MULTIPLY = 1  # big *= small
SUM_UP = 2  # small = sum of big (a message towards the root)
SUM_DOWN = 3  # small = sum of big (the belief of a separator)
SUM_OUT = 4  # small = sum of big (a requested marginal)
FILL = 5  # big = 1
NORMALISE = 6  # big /= max(big), a message (in log space, divided by its sum)
NORMALISE_ROOT = 7  # big /= sum(big), a root's belief
DIVIDE = 8  # small = big / small, with 0 / 0 = 0: the ratio of a belief and an old message

# A product of probabilities below TINY may have lost digits, or everything, to underflow.
TINY = 1e-290
# Lost cells stay negligible as long as the kept cells have not shrunk, in all messages since, by more than this factor.
REACH = 1e-250


@called
def _multiply(buffer, big, cells, small, block, stride, maps, start):
    if block == 1:
        for k in range(cells):
            buffer[big + k] *= buffer[small + maps[start + k]]
        return
    for outer in range(cells // block):
        at = small + maps[start + outer]
        to = big + outer * block
        cell = buffer[to : to + block]  # views index from zero, so the inner loop needs no wrap-around test
        if stride == 0:
            value = buffer[at]
            for k in range(block):
                cell[k] *= value
        elif stride == 1:
            factor = buffer[at : at + block]
            for k in range(block):
                cell[k] *= factor[k]
        else:
            for k in range(block):
                cell[k] *= buffer[at + k * stride]


@called
def _assign(buffer, big, cells, small, block, stride, maps, start):
    if block == 1:
        for k in range(cells):
            buffer[big + k] = buffer[small + maps[start + k]]
        return
    for outer in range(cells // block):
        at = small + maps[start + outer]
        to = big + outer * block
        cell = buffer[to : to + block]
        if stride == 0:
            value = buffer[at]
            for k in range(block):
                cell[k] = value
        elif stride == 1:
            factor = buffer[at : at + block]
            for k in range(block):
                cell[k] = factor[k]
        else:
            for k in range(block):
                cell[k] = buffer[at + k * stride]


@called
def _add(buffer, big, cells, small, block, stride, maps, start):
    for outer in range(cells // block):
        at = small + maps[start + outer]
        to = big + outer * block
        cell = buffer[to : to + block]
        if stride == 0:
            value = buffer[at]
            for k in range(block):
                cell[k] += value
        elif stride == 1:
            term = buffer[at : at + block]
            for k in range(block):
                cell[k] += term[k]
        else:
            for k in range(block):
                cell[k] += buffer[at + k * stride]


@called
def _sum(buffer, big, cells, small, small_cells, block, stride, maps, start):
    for k in range(small_cells):
        buffer[small + k] = 0.0
    if block == 1:
        for k in range(cells):
            buffer[small + maps[start + k]] += buffer[big + k]
        return
    for outer in range(cells // block):
        to = small + maps[start + outer]
        at = big + outer * block
        cell = buffer[at : at + block]
        if stride == 0:
            total = 0.0
            for k in range(block):
                total += cell[k]
            buffer[to] += total
        elif stride == 1:
            summed = buffer[to : to + block]
            for k in range(block):
                summed[k] += cell[k]
        else:
            for k in range(block):
                buffer[to + k * stride] += cell[k]


@called
def _log_smallest(buffer, start, cells):
    """Return the logarithm of the smallest non-zero cell; 0 if all are zero."""
    minimum = 1.0
    for k in range(cells):
        value = buffer[start + k]
        if value > 0.0:
            minimum = min(minimum, value)
    return np.log(minimum)


@compiled
def calibrate(program, maps, buffer, lost):
    """Run a program in linear space on a buffer whose potentials are already exponentiated.

    No factor and no message has a cell above 1, so on the way to the root a product's smallest cell is bounded below by
    the product of the smallest cells of its parts. Once that bound falls below TINY a cell may be lost. It can still
    matter later if the kept cells shrink relative to it: their normalisers since then, and the number of cells summed
    into one, multiply to exp(reach). `lost` states whether the potentials lost a cell.
    """
    log_partition, minimum, reach = 0.0, 0.0, 0.0
    collecting = True
    for row in range(program.shape[0]):
        operation = program[row, OPERATION]
        big, cells, small = program[row, BIG], program[row, CELLS], program[row, SMALL]
        block, stride, start = program[row, BLOCK], program[row, STRIDE], program[row, MAP]
        small_cells = program[row, SMALL_CELLS]
        if operation == MULTIPLY:
            if collecting:
                minimum += _log_smallest(buffer, small, small_cells)
            _multiply(buffer, big, cells, small, block, stride, maps, start)
        elif operation == ASSIGN:
            minimum = _log_smallest(buffer, small, small_cells)
            _assign(buffer, big, cells, small, block, stride, maps, start)
        elif operation <= SUM_OUT:
            if operation == SUM_UP:
                lost = lost or minimum < np.log(TINY)
                reach -= np.log(cells / small_cells) if lost else 0.0
            else:
                collecting = False
            _sum(buffer, big, cells, small, small_cells, block, stride, maps, start)
        elif operation == FILL:
            minimum = 0.0
            for k in range(cells):
                buffer[big + k] = 1.0
        elif operation == DIVIDE:
            new, old = buffer[big : big + cells], buffer[small : small + cells]
            for k in range(cells):
                old[k] = new[k] / old[k] if old[k] > 0.0 else 0.0
        else:
            table = buffer[big : big + cells]
            total = 0.0
            if operation == NORMALISE:
                # With 1 as the largest cell of every message, products of hundreds of them stay in range.
                for k in range(cells):
                    total = max(total, table[k])
            else:
                for k in range(cells):
                    total += table[k]
            if not total > TINY:
                return np.nan, lost
            log_partition += np.log(total)
            lost = lost or minimum < np.log(TINY)
            if lost:
                reach += min(np.log(total), 0.0)
                if reach < np.log(REACH):
                    return np.nan, lost
            scale = 1.0 / total
            for k in range(cells):
                table[k] *= scale
    return log_partition, lost


@compiled
def exponentiate(potentials, offsets, buffer):
    """Write exp(potential - its table's maximum) to the head of a buffer."""
    shift, lost = 0.0, False
    for table in range(offsets.shape[0] - 1):
        top = -np.inf
        for k in range(offsets[table], offsets[table + 1]):
            top = max(top, potentials[k])
        if not abs(top) < np.inf:
            return np.nan, True
        shift += top
        for k in range(offsets[table], offsets[table + 1]):
            below = potentials[k] - top
            lost = lost or -np.inf < below < np.log(TINY)
            buffer[k] = np.exp(below)
    return shift, lost


@called
def _condition(buffer, big, cells, small, small_cells, scratch, block, stride, maps, start):
    """Set small = log sum of exp(big), and big = exp(big - small), its shares of that sum (0 if the sum is 0)."""
    for k in range(small_cells):
        buffer[scratch + k] = -np.inf
        buffer[small + k] = 0.0
    for outer in range(cells // block):
        top = scratch + maps[start + outer]
        at = big + outer * block
        for k in range(block):
            buffer[top + k * stride] = max(buffer[top + k * stride], buffer[at + k])
    for k in range(small_cells):
        if buffer[scratch + k] == -np.inf:
            buffer[scratch + k] = 0.0
    for outer in range(cells // block):
        to = maps[start + outer]
        at = big + outer * block
        for k in range(block):
            below = buffer[at + k] - buffer[scratch + to + k * stride]
            value = np.exp(below) if below > -700.0 else 0.0
            buffer[at + k] = value
            buffer[small + to + k * stride] += value
    for k in range(small_cells):
        total, top = buffer[small + k], buffer[scratch + k]
        buffer[small + k] = top + np.log(total)
        buffer[scratch + k] = 1.0 / total if total > 0.0 else 0.0
    _multiply(buffer, big, cells, scratch, block, stride, maps, start)


@compiled
def calibrate_log(program, maps, buffer):
    """Calibrate like `calibrate`, on a buffer of log-potentials: slower, but for any range.

    On the way to the root, tables are logarithms. A clique's table is then replaced by its conditional distribution
    given the separator, so that the way back needs only the separator's belief: both are probabilities, and only those
    below 1e-300 underflow.
    """
    log_partition, collecting = 0.0, True
    for row in range(program.shape[0]):
        operation = program[row, OPERATION]
        big, cells, small = program[row, BIG], program[row, CELLS], program[row, SMALL]
        block, stride, start = program[row, BLOCK], program[row, STRIDE], program[row, MAP]
        small_cells = program[row, SMALL_CELLS]
        if operation == MULTIPLY and collecting:
            _add(buffer, big, cells, small, block, stride, maps, start)
        elif operation == MULTIPLY:
            _multiply(buffer, big, cells, small, block, stride, maps, start)
        elif operation == ASSIGN:
            _assign(buffer, big, cells, small, block, stride, maps, start)
        elif operation == SUM_UP:
            _condition(buffer, big, cells, small, small_cells, program[row, BELIEF], block, stride, maps, start)
        elif operation <= SUM_OUT:
            collecting = False
            _sum(buffer, big, cells, small, small_cells, block, stride, maps, start)
        elif operation == FILL:
            for k in range(cells):
                buffer[big + k] = 0.0
        elif operation == DIVIDE:
            for k in range(cells):
                buffer[small + k] = buffer[big + k]
        else:
            top, total = -np.inf, 0.0
            for k in range(cells):
                top = max(top, buffer[big + k])
            if not abs(top) < np.inf:
                return np.nan
            log_partition += top
            for k in range(cells):
                buffer[big + k] -= top
            if operation == NORMALISE_ROOT:
                for k in range(cells):
                    value = np.exp(buffer[big + k])
                    buffer[big + k] = value
                    total += value
                log_partition += np.log(total)
                for k in range(cells):
                    buffer[big + k] /= total
    return log_partition


@called
def _expect(buffer, beliefs, big, cells, small, small_cells, belief, block, stride, maps, start):
    """Set small = sum over big of belief * value, divided by the separator's belief if it has one (belief >= 0)."""
    for k in range(small_cells):
        buffer[small + k] = 0.0
    for outer in range(cells // block):
        to = small + maps[start + outer]
        at = big + outer * block
        cell, mass = buffer[at : at + block], beliefs[at : at + block]
        if stride == 0:
            total = 0.0
            for k in range(block):
                total += mass[k] * cell[k]
            buffer[to] += total
        elif stride == 1:
            summed = buffer[to : to + block]
            for k in range(block):
                summed[k] += mass[k] * cell[k]
        else:
            for k in range(block):
                buffer[to + k * stride] += mass[k] * cell[k]
    if belief >= 0:
        for k in range(small_cells):
            known = beliefs[belief + k]
            buffer[small + k] = buffer[small + k] / known if known > 0.0 else 0.0


@compiled
def covariance_product(program, maps, beliefs, buffer):
    """Run a calibrated program on a direction: the head of `buffer` holds g, its marginals become Cov(phi) g.

    Conditional expectations of g . phi take the place of messages: products of calibration become sums, and sums become
    averages under the beliefs.
    """
    for row in range(program.shape[0]):
        operation = program[row, OPERATION]
        big, cells, small = program[row, BIG], program[row, CELLS], program[row, SMALL]
        block, stride, start = program[row, BLOCK], program[row, STRIDE], program[row, MAP]
        if operation == MULTIPLY:
            _add(buffer, big, cells, small, block, stride, maps, start)
        elif operation == ASSIGN:
            _assign(buffer, big, cells, small, block, stride, maps, start)
        elif operation <= SUM_OUT:
            _expect(
                buffer, beliefs, big, cells, small, program[row, SMALL_CELLS], program[row, BELIEF],
                block, stride, maps, start,
            )  # fmt: skip
        elif operation == FILL:
            for k in range(cells):
                buffer[big + k] = 0.0
        elif operation == DIVIDE:
            for k in range(cells):
                buffer[small + k] = buffer[big + k] - buffer[small + k]
        elif operation == NORMALISE_ROOT:
            mean = 0.0
            for k in range(cells):
                mean += beliefs[big + k] * buffer[big + k]
            for k in range(cells):
                buffer[big + k] -= mean


@compiled
def draw_residual(cumulative, rows, uniforms, out):
    """For every record find the first cell of its row of cumulative sums that exceeds its uniform number."""
    width = cumulative.shape[1]
    for record in range(rows.shape[0]):
        row = rows[record]
        target = uniforms[record] * cumulative[row, width - 1]
        low, high = 0, width - 1
        while low < high:
            middle = (low + high) // 2
            if cumulative[row, middle] > target:
                high = middle
            else:
                low = middle + 1
        out[record] = low


# Replaces log 0, since minus infinity would turn differences into NaN.
LOG_ZERO = -1e30


@called
def _normalise_log(values):
    """Shift so that the exponentials sum to 1."""
    top = LOG_ZERO
    for k in range(values.shape[0]):
        top = max(top, values[k])
    total = 0.0
    for k in range(values.shape[0]):
        total += np.exp(values[k] - top)
    total = top + np.log(total)
    for k in range(values.shape[0]):
        values[k] = max(values[k] - total, LOG_ZERO)
    return total


@compiled
def loopy_sweep(offsets, first_edge, cards, strides, starts, neighbours, first_neighbour, potentials, damping,
                messages, incoming, belief):  # fmt: skip
    """Process all factors in turn, in log space: compute beliefs, then damped messages to their variables.

    `first_edge[f]` is the first edge (factor, variable) of factor f; for an edge, `cards` and `strides` describe its
    axis, `starts` its message, and `neighbours[first_neighbour[e]:first_neighbour[e + 1]]` the edges of its variable.
    """
    largest = 0.0
    for factor in range(offsets.shape[0] - 1):
        begin, end = offsets[factor], offsets[factor + 1]
        table = belief[begin:end]
        for k in range(end - begin):
            table[k] = max(potentials[begin + k], LOG_ZERO)
        for edge in range(first_edge[factor], first_edge[factor + 1]):
            into = incoming[starts[edge] : starts[edge] + cards[edge]]
            into[:] = 0.0
            for j in range(first_neighbour[edge], first_neighbour[edge + 1]):
                other = neighbours[j]
                if other != edge:
                    for s in range(cards[edge]):
                        into[s] += messages[starts[other] + s]
            _normalise_log(into)
            for k in range(end - begin):
                table[k] += into[(k // strides[edge]) % cards[edge]]
        if _normalise_log(table) < LOG_ZERO / 2:
            return np.nan
        for edge in range(first_edge[factor], first_edge[factor + 1]):
            states = cards[edge]
            top = np.full(states, LOG_ZERO)
            for k in range(end - begin):
                s = (k // strides[edge]) % states
                top[s] = max(top[s], table[k])
            out = np.zeros(states)
            for k in range(end - begin):
                s = (k // strides[edge]) % states
                out[s] += np.exp(table[k] - top[s])
            for s in range(states):
                out[s] = top[s] + np.log(out[s]) - incoming[starts[edge] + s]
            _normalise_log(out)
            for s in range(states):
                at = starts[edge] + s
                largest = max(largest, abs(np.exp(out[s]) - np.exp(messages[at])))
                messages[at] = (1.0 - damping) * out[s] + damping * messages[at]
    return largest
