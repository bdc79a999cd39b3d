"""Compiled Hamiltonian trajectories over a junction tree's log-potentials, given noisy sums of its counts."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp._compiled import compiled
from pgmpy_dp.inference.trees import kernel

# Least exponent: exp(-690) is about 1e-300, and its logarithm still known to the last bit.
MIN = -690.0

_LOG2_E, _LOG_2 = 1.0 / math.log(2.0), math.log(2.0)
# Adding this to a number leaves the number, rounded, in the last bits. The logarithm of 2 is split into a part whose
# products with integers are exact, and a rest.
_ROUNDING = 1.5 * 2.0**52
_HIGH, _LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_FACTORIALS = tuple(1.0 / math.factorial(k) for k in range(14))


@compiled
def exponentials(exponents, out):
    """Write the exponentials of numbers from `MIN` to 0 to another array; the exponents are overwritten.

    exp(x) = 2^n exp(r) for integer n and |r| <= log(2) / 2, with 14 terms of Taylor's series.
    """
    bits = out.view(np.int64)
    for k in range(out.shape[0]):
        out[k] = exponents[k] * _LOG2_E + _ROUNDING
    for k in range(out.shape[0]):
        number = out[k] - _ROUNDING
        rest = (exponents[k] - number * _HIGH) - number * _LOW
        series = _FACTORIALS[13]
        for term in (12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2):
            series = series * rest + _FACTORIALS[term]
        exponents[k] = 1.0 + (rest + rest * rest * series)
    for k in range(out.shape[0]):
        bits[k] = (bits[k] << 52) + (1023 << 52)  # the number 2^n
    for k in range(out.shape[0]):
        out[k] *= exponents[k]


@compiled
def log1p(number):
    """Compute log(1 + number) for a number from 0 to 1.

    The approximation, of log((1 + s) / (1 - s)) for |s| < 0.172, is from FreeBSD's e_log.c.
    """
    large = number > 0.41421356237309503
    small = 0.5 * (number - 1.0) if large else number  # 1 + number is 1 + small, or twice that
    s = small / (2.0 + small)
    z = s * s
    tail = 1.818357216161805012e-01 + z * (1.531383769920937332e-01 + z * 1.479819860511658591e-01)
    tail = 2.857142874366239149e-01 + z * (2.222219843214978396e-01 + z * tail)
    tail = z * (6.666666666666735130e-01 + z * (3.999999999940941908e-01 + z * tail))
    half = 0.5 * small * small
    return (_LOG_2 if large else 0.0) + (small - (half - s * (half + tail)))


Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


# Standard deviation of the logarithms of the sums of rows.
ROW_SUM = 0.2


class Terms(NamedTuple):
    """Arrays that define a posterior density; a point has the cells' values, the effects, and the total's shift."""

    program: Integers
    maps: NDArray[np.int32]
    offsets: Integers
    cells: Integers  # places of the cells with a potential in the layout
    # For conditional probabilities, the row of each cell: potentials are the logarithms of normalised rows of
    # exp(value), and those of the rows' sums, on which nothing depends, are normal. Empty for free potentials.
    rows: Integers
    # With entry z of the point and bend t, a cell's value is t + log softplus(z - t), nearly z below the bend: where
    # noise hides the cell's count, the point moves with its logarithm, and above the bend with the count itself.
    bends: Floats
    prior: Floats  # concentrations of Dirichlet rows; for free potentials, precisions of normal distributions
    effects: Integers  # places in the layout of cells whose potentials are standard normal times `spread`
    spread: Floats
    places: Integers
    starts: NDArray[np.int32]
    columns: NDArray[np.int32]
    entries: Floats
    observed: Floats
    scale: Floats
    corner: Floats  # squared radius within which an absolute residual is rounded; -1 marks Gaussian noise
    total: float
    total_scale: float


@compiled
def unbend(point, bends, softened, slopes, curves):
    """Write softplus(z - t) of the cells' entries z, the derivatives of their values, and those of their logarithms.

    A value is t plus the logarithm of the first, or z itself if `is_straight`, where the first may be too large.
    """
    for k in range(bends.shape[0]):
        softened[k] = max(-abs(point[k] - bends[k]), MIN)
    exponentials(softened, slopes)
    for k in range(bends.shape[0]):
        above, small = point[k] - bends[k], slopes[k]
        soft = max(above, 0.0) + log1p(small)
        risen = (1.0 if above > 0.0 else small) / (1.0 + small)
        slope = risen / soft
        softened[k], slopes[k], curves[k] = soft, slope, 1.0 - risen - slope


@compiled
def is_straight(point, bend):
    """Whether an entry is so far below its bend that it is the cell's value."""
    return point - bend < -30.0


@compiled
def _exponentiate_bends(terms, scratch):
    """Write the exponentials of the bends for `_slope`; they do not change along a trajectory."""
    tops = scratch[0]
    for k in range(terms.bends.shape[0]):
        tops[k] = np.exp(terms.bends[k])


@compiled
def _exponentiate(terms, point, tops, masses, slopes, curves, shares, sums, buffer):
    """Write the exponentiated potentials of rows to the head of a buffer, with 1 as the largest of each table.

    It also writes the exponentials of the values, `masses`; the derivatives of the values by the point, and those of
    their logarithms; the normalised rows, and the logarithms of their sums. `tops` are the bends' exponentials.
    """
    free = terms.cells.shape[0]
    unbend(point, terms.bends, masses, slopes, curves)
    sums[:] = 0.0
    for k in range(free):
        if is_straight(point[k], terms.bends[k]):
            masses[k] = np.exp(point[k])
        else:
            masses[k] *= tops[k]
        sums[terms.rows[k]] += masses[k]
    for k in range(free):
        shares[k] = masses[k] / sums[terms.rows[k]]
    for row in range(sums.shape[0]):
        sums[row] = np.log(sums[row])
    head = buffer[: terms.offsets[-1]]
    head[:] = 1.0
    for k in range(free):
        head[terms.cells[k]] = shares[k]
    for k in range(terms.effects.shape[0]):
        head[terms.effects[k]] *= np.exp(point[free + k] * terms.spread[k])
    minimum = 1.0
    for table in range(terms.offsets.shape[0] - 1):
        cells = head[terms.offsets[table] : terms.offsets[table + 1]]
        top = 0.0
        for k in range(cells.shape[0]):
            top = max(top, cells[k])
        scale = 1.0 / top
        for k in range(cells.shape[0]):
            cells[k] *= scale
            minimum = min(minimum, cells[k])
    return minimum < kernel.TINY


@compiled
def _exponentiate_free(terms, point, slopes, curves, potentials, buffer):
    """Write the exponentiated potentials and `masses` of free potentials, which are not bent."""
    free = terms.cells.shape[0]
    slopes[:], curves[:], potentials[:] = 1.0, 0.0, 0.0
    for k in range(free):
        potentials[terms.cells[k]] = point[k]
    for k in range(terms.effects.shape[0]):
        potentials[terms.effects[k]] += point[free + k] * terms.spread[k]
    _, lost = kernel.exponentiate(potentials, terms.offsets, buffer)
    return lost


@compiled
def _slope(terms, point, gradient, scratch):
    """Compute the gradient of the log density, and store what `_value` needs."""
    tops, masses, slopes, curves, shares, potentials, sums, totals, residuals, buffer, other = scratch
    size = terms.offsets[-1]
    free, effects = terms.cells.shape[0], terms.effects.shape[0]
    directed = terms.rows.shape[0] > 0
    if directed:
        lost = _exponentiate(terms, point, tops, masses, slopes, curves, shares, sums, buffer)
    else:
        lost = _exponentiate_free(terms, point, slopes, curves, potentials, buffer)
    partition, lost = kernel.calibrate(terms.program, terms.maps, buffer, lost)
    total = terms.total + terms.total_scale * point[free + effects]
    if not np.isfinite(partition) or total <= 0.0:
        return False
    by_total = 0.0
    for k in range(size):
        other[k] = 0.0
    for j in range(terms.observed.shape[0]):
        expected = 0.0
        for e in range(terms.starts[j], terms.starts[j + 1]):
            expected += terms.entries[e] * buffer[size + terms.places[terms.columns[e]]]
        residual = residuals[j] = terms.observed[j] - total * expected
        if terms.corner[j] < 0.0:
            pull = residual / terms.scale[j] ** 2
        else:
            pull = residual / (np.sqrt(residual * residual + terms.corner[j]) * terms.scale[j])
        by_total += pull * expected
        for e in range(terms.starts[j], terms.starts[j + 1]):
            other[terms.places[terms.columns[e]]] += total * pull * terms.entries[e]
    kernel.covariance_product(terms.program, terms.maps, buffer, other)
    slope = other[size : 2 * size]
    if directed:
        for row in range(sums.shape[0]):
            totals[row] = sums[row] / ROW_SUM**2
        for k in range(free):
            gradient[k] = slope[terms.cells[k]] + terms.prior[k]
            totals[terms.rows[k]] += gradient[k]
        for k in range(free):
            gradient[k] -= shares[k] * totals[terms.rows[k]]
    else:
        for k in range(free):
            gradient[k] = slope[terms.cells[k]] - terms.prior[k] * point[k]
    for k in range(free):
        gradient[k] = gradient[k] * slopes[k] + curves[k]
    for k in range(effects):
        gradient[free + k] = slope[terms.effects[k]] * terms.spread[k] - point[free + k]
    # If the number of records is known, the last coordinate has no effect.
    gradient[free + effects] = by_total * terms.total_scale if terms.total_scale != 0.0 else -point[free + effects]
    return True


@compiled
def _value(terms, point, scratch):
    """Compute the log density up to a constant, after the gradient at the same point."""
    _, masses, slopes, _, _, _, sums, _, residuals, _, _ = scratch
    free, effects = terms.cells.shape[0], terms.effects.shape[0]
    value = 0.0
    for j in range(terms.observed.shape[0]):
        if terms.corner[j] < 0.0:
            value -= 0.5 * (residuals[j] / terms.scale[j]) ** 2
        else:
            value -= np.sqrt(residuals[j] * residuals[j] + terms.corner[j]) / terms.scale[j]
    if terms.rows.shape[0] > 0:
        for row in range(sums.shape[0]):
            value -= 0.5 * (sums[row] / ROW_SUM) ** 2
        for k in range(free):
            own = point[k] if is_straight(point[k], terms.bends[k]) else np.log(masses[k])
            value += terms.prior[k] * (own - sums[terms.rows[k]])
    else:
        for k in range(free):
            value -= 0.5 * terms.prior[k] * point[k] ** 2
    stretched = 1.0
    for k in range(free):
        stretched *= slopes[k]
        if stretched < 1e-200 or k == free - 1:
            value += np.log(stretched)
            stretched = 1.0
    for k in range(effects):
        value -= 0.5 * point[free + k] ** 2
    if terms.total_scale == 0.0:
        value -= 0.5 * point[free + effects] ** 2
    return value


@compiled
def log_posterior(terms, point, gradient, scratch):
    """Compute the log density up to a constant, and its gradient; minus infinity if inference underflows."""
    _exponentiate_bends(terms, scratch)
    return _value(terms, point, scratch) if _slope(terms, point, gradient, scratch) else -np.inf


# Shares of a step of the three-stage integrator of Blanes, Casas and Sanz-Serna (2014), which among integrators with as
# many gradients has the least energy error for normal densities.
_KICKS = (0.11888010966548, 0.38111989033452, 0.38111989033452, 2 * 0.11888010966548)
_DRIFTS = (0.29619504261126, 0.40760991477748, 0.29619504261126)


@compiled
def trajectory(terms, point, momentum, gradient, step, steps, unit, stiff, easing, scratch):
    """Take leapfrog steps; point, momentum and gradient are changed in place.

    The inverse mass matrix is S (1 + U diag(easing) U') S, with S = diag(unit) and U the columns of `stiff`, as rows.
    """
    velocity, along, columns = np.empty_like(point), np.empty_like(easing), stiff.T.copy()
    _exponentiate_bends(terms, scratch)
    kick = _KICKS[0]
    for number in range(3 * steps):
        stage = number % 3
        for k in range(point.shape[0]):
            momentum[k] += kick * step * gradient[k]
            velocity[k] = unit[k] * momentum[k]
        along[:] = 0.0
        for k in range(point.shape[0]):
            for j in range(stiff.shape[0]):  # side by side, so that it is vectorised
                along[j] += columns[k, j] * velocity[k]
        for j in range(stiff.shape[0]):
            eased = easing[j] * along[j]
            for k in range(point.shape[0]):
                velocity[k] += eased * stiff[j, k]
        for k in range(point.shape[0]):
            point[k] += _DRIFTS[stage] * step * unit[k] * velocity[k]
        if not _slope(terms, point, gradient, scratch):
            return -np.inf
        kick = _KICKS[stage + 1] if number < 3 * steps - 1 else _KICKS[0]
    for k in range(point.shape[0]):
        momentum[k] += kick * step * gradient[k]
    return _value(terms, point, scratch)


def scratch_space(terms: Terms, buffer_size: int) -> tuple[Any, ...]:
    """Make work arrays for `log_posterior`."""
    count = int(terms.rows.max()) + 1 if terms.rows.size else 0
    free, size = terms.cells.size, int(terms.offsets[-1])
    return (*(np.zeros(free) for _ in range(5)), np.zeros(size), np.zeros(count), np.zeros(count),
            np.zeros(terms.observed.size), np.zeros(buffer_size), np.zeros(buffer_size))  # fmt: skip


@compiled
def _gain(concentrations, totals, logs, node, begin, end, stride, states, state, factor, lowest, highest):
    """Return the gain in log-likelihood of a node's rows if the concentrations of some states are multiplied."""
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

    The logarithm of a cell's concentration is the base of the node's state plus an effect of each parent's state. A row
    of `nodes` has its first cell, first row, numbers of states and rows, first base, first parent and number of parents
    with effects; one of `parents` the stride of its states among the rows, their number, first effect and variance.
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
        for position in range(node[5], node[5] + node[6]):
            stride, states, own, scale = parents[position]
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
