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
# So far below its bend, an entry is the cell's value.
STRAIGHT = -30.0

_LOG2_E, _LOG_2 = 1.0 / math.log(2.0), math.log(2.0)
# Adding this to a number leaves the number, rounded, in the last bits. The logarithm of 2 is split into a part whose
# products with integers are exact, and a rest.
_ROUNDING = 1.5 * 2.0**52
_HIGH, _LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_FACTORIALS = tuple(1.0 / math.factorial(k) for k in range(14))


@compiled
def exponentials(exponents, out, bits):
    """Write the exponentials of numbers from `MIN` to 0 to another array; the exponents are overwritten.

    exp(x) = 2^n exp(r) for integer n and |r| <= log(2) / 2, with 14 terms of Taylor's series. `bits` is `out`, seen as
    integers.
    """
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
def unbend(point, bends, softened, slopes, bits, curves):
    """Write softplus(z - t) of the cells' entries z, the derivatives of their values, and those of their logarithms.

    A value is t plus the logarithm of the first, or z itself where z - t < `STRAIGHT`, and the first may be too large.
    """
    for k in range(bends.shape[0]):
        softened[k] = max(-abs(point[k] - bends[k]), MIN)
    exponentials(softened, slopes, bits)
    for k in range(bends.shape[0]):
        above, small = point[k] - bends[k], slopes[k]
        soft = max(above, 0.0) + log1p(small)
        risen = (1.0 if above > 0.0 else small) / (1.0 + small)
        slope = risen / soft
        softened[k], slopes[k], curves[k] = soft, slope, 1.0 - risen - slope


# Shares of a step of the three-stage integrator of Blanes, Casas and Sanz-Serna (2014), which among integrators with as
# many gradients has the least energy error for normal densities.
_KICKS = (0.11888010966548, 0.38111989033452, 0.38111989033452, 2 * 0.11888010966548)
_DRIFTS = (0.29619504261126, 0.40760991477748, 0.29619504261126)


@compiled
def trajectory(terms, point, momentum, gradient, step, steps, metric, scratch):
    """Take leapfrog steps, and return the log density; point, momentum and gradient are changed in place.

    Without steps, the gradient is computed at the point. The density is up to a constant, and minus infinity if
    inference underflows. All is one function, since numba compiles what a function calls once more with it.
    """
    (
        program,
        maps,
        offsets,
        cells,
        rows,
        bends,
        prior,
        effects,
        spread,
        places,
        starts,
        columns,
        entries,
        observed,
        scale,
        corner,
        total,
        total_scale,
    ) = terms
    tops, masses, slopes, bits, curves, shares, potentials, sums, totals, residuals, buffer, other, velocity = scratch
    unit, stiff, transposed, easing, along = metric
    size, free, deviations = offsets[-1], cells.shape[0], effects.shape[0]
    directed = rows.shape[0] > 0
    for k in range(free):
        tops[k] = np.exp(bends[k])
    kick = _KICKS[0]
    value = 0.0
    for number in range(max(3 * steps, 1)):
        if steps > 0:
            for k in range(point.shape[0]):
                momentum[k] += kick * step * gradient[k]
                velocity[k] = unit[k] * momentum[k]
            for j in range(stiff.shape[0]):
                along[j] = 0.0
            for k in range(point.shape[0]):
                for j in range(stiff.shape[0]):  # side by side, so that it is vectorised
                    along[j] += transposed[k, j] * velocity[k]
            for j in range(stiff.shape[0]):
                eased = easing[j] * along[j]
                for k in range(point.shape[0]):
                    velocity[k] += eased * stiff[j, k]
            for k in range(point.shape[0]):
                point[k] += _DRIFTS[number % 3] * step * unit[k] * velocity[k]
        kick = _KICKS[number % 3 + 1] if number < 3 * steps - 1 else _KICKS[0]
        # Potentials.
        if directed:
            unbend(point, bends, masses, slopes, bits, curves)
            for row in range(sums.shape[0]):
                sums[row] = 0.0
            for k in range(free):
                if point[k] - bends[k] < STRAIGHT:
                    masses[k] = np.exp(point[k])
                else:
                    masses[k] *= tops[k]
                sums[rows[k]] += masses[k]
            for k in range(free):
                shares[k] = masses[k] / sums[rows[k]]
            for row in range(sums.shape[0]):
                sums[row] = np.log(sums[row])
            for k in range(size):
                buffer[k] = 1.0
            for k in range(free):
                buffer[cells[k]] = shares[k]
            for k in range(deviations):
                buffer[effects[k]] *= np.exp(point[free + k] * spread[k])
            minimum = 1.0
            for table in range(offsets.shape[0] - 1):
                top = 0.0
                for k in range(offsets[table], offsets[table + 1]):
                    top = max(top, buffer[k])
                scaled = 1.0 / top
                for k in range(offsets[table], offsets[table + 1]):
                    buffer[k] *= scaled
                    minimum = min(minimum, buffer[k])
            lost = minimum < kernel.TINY
        else:
            for k in range(size):
                potentials[k] = 0.0
            for k in range(free):
                slopes[k], curves[k], potentials[cells[k]] = 1.0, 0.0, point[k]
            for k in range(deviations):
                potentials[effects[k]] += point[free + k] * spread[k]
            _, lost = kernel.exponentiate(potentials, offsets, buffer)
        partition, lost = kernel.calibrate(program, maps, buffer, lost)
        records = total + total_scale * point[free + deviations]
        if not np.isfinite(partition) or records <= 0.0:
            return -np.inf
        by_total = 0.0
        for k in range(size):
            other[k] = 0.0
        for j in range(observed.shape[0]):
            expected = 0.0
            for e in range(starts[j], starts[j + 1]):
                expected += entries[e] * buffer[size + places[columns[e]]]
            residual = residuals[j] = observed[j] - records * expected
            if corner[j] < 0.0:
                pull = residual / scale[j] ** 2
            else:
                pull = residual / (np.sqrt(residual * residual + corner[j]) * scale[j])
            by_total += pull * expected
            for e in range(starts[j], starts[j + 1]):
                other[places[columns[e]]] += records * pull * entries[e]
        kernel.covariance_product(program, maps, buffer, other)
        if directed:
            for row in range(sums.shape[0]):
                totals[row] = sums[row] / ROW_SUM**2
            for k in range(free):
                gradient[k] = other[size + cells[k]] + prior[k]
                totals[rows[k]] += gradient[k]
            for k in range(free):
                gradient[k] -= shares[k] * totals[rows[k]]
        else:
            for k in range(free):
                gradient[k] = other[size + cells[k]] - prior[k] * point[k]
        for k in range(free):
            gradient[k] = gradient[k] * slopes[k] + curves[k]
        for k in range(deviations):
            gradient[free + k] = other[size + effects[k]] * spread[k] - point[free + k]
        # If the number of records is known, the last coordinate has no effect.
        last = free + deviations
        gradient[last] = by_total * total_scale if total_scale != 0.0 else -point[last]
    if steps > 0:
        for k in range(point.shape[0]):
            momentum[k] += kick * step * gradient[k]
    for j in range(observed.shape[0]):
        if corner[j] < 0.0:
            value -= 0.5 * (residuals[j] / scale[j]) ** 2
        else:
            value -= np.sqrt(residuals[j] * residuals[j] + corner[j]) / scale[j]
    if directed:
        for row in range(sums.shape[0]):
            value -= 0.5 * (sums[row] / ROW_SUM) ** 2
        for k in range(free):
            own = point[k] if point[k] - bends[k] < STRAIGHT else np.log(masses[k])
            value += prior[k] * (own - sums[rows[k]])
    else:
        for k in range(free):
            value -= 0.5 * prior[k] * point[k] ** 2
    stretched = 1.0
    for k in range(free):
        stretched *= slopes[k]
        if stretched < 1e-200 or k == free - 1:
            value += np.log(stretched)
            stretched = 1.0
    for k in range(deviations):
        value -= 0.5 * point[free + k] ** 2
    if total_scale == 0.0:
        value -= 0.5 * point[free + deviations] ** 2
    return value


def scratch_space(terms: Terms, buffer_size: int) -> tuple[Any, ...]:
    """Make work arrays for `trajectory`."""
    count = int(terms.rows.max()) + 1 if terms.rows.size else 0
    free, size = terms.cells.size, int(terms.offsets[-1])
    sizes = (free, free, free, free, free, size, count, count, terms.observed.size, buffer_size, buffer_size)
    tops, masses, slopes, *others = (np.zeros(each) for each in (*sizes, free + terms.effects.size + 1))
    return tops, masses, slopes, slopes.view(np.int64), *others


@compiled
def sweep(concentrations, gammas, totals, logs, parameters, moves, whole, centre, belief, variances, lowest, highest,
          shifts, uniforms, proposed):  # fmt: skip
    """Propose each move, and then one of all bases with their centre, which is returned.

    The logarithm of a cell's concentration is the base of the node's state plus an effect of each parent's state. A row
    of `moves` adds a shift to some parameters, and multiplies the concentrations of a node's states in the rows in
    which a parent has a given state: it has the node's first cell, first row and number of rows; the first of its
    states and the one behind the last; the stride of the parent's states among the rows, their number, and the state;
    the first parameter and the one behind the last; and the place of the variance, the first of which is that of bases,
    about their centre. `whole` are the moves of all bases of a node. `gammas` are log Gamma(concentration), kept from
    sweep to sweep, since they take most of the time; `proposed` is room for as many.
    """
    for number in range(shifts.shape[0]):
        every = number == moves.shape[0]
        shift = shifts[number]
        factor, gain = math.exp(shift), 0.0
        if every:
            gain = -0.5 * shift * (2 * (centre - belief) + shift)
        for position in range(whole.shape[0] if every else 1):
            move = whole[position] if every else number
            cell, row, width = moves[move, 0], moves[move, 1], moves[move, 2]
            if not every:
                mean = centre if moves[move, 10] == 0 else 0.0
                for j in range(moves[move, 8], moves[move, 9]):
                    gain -= shift * (2 * (parameters[j] - mean) + shift) / (2 * variances[moves[move, 10]])
            likelihood = 0.0
            for r in range(width):
                if r // moves[move, 5] % moves[move, 6] != moves[move, 7]:
                    continue
                after = totals[row + r]
                for k in range(moves[move, 3], moves[move, 4]):
                    old = concentrations[cell + k * width + r]
                    new = old * factor
                    if not lowest < new < highest:
                        likelihood = -math.inf
                    after += new - old
                    gamma = proposed[cell + k * width + r] = math.lgamma(new)
                    likelihood += gammas[cell + k * width + r] - gamma + logs[cell + k * width + r] * (new - old)
                likelihood += math.lgamma(after) - math.lgamma(totals[row + r])
            gain += likelihood
        if not math.log(uniforms[number]) < gain:
            continue
        centre += shift if every else 0.0
        for position in range(whole.shape[0] if every else 1):
            move = whole[position] if every else number
            cell, row, width = moves[move, 0], moves[move, 1], moves[move, 2]
            for j in range(moves[move, 8], moves[move, 9]):
                parameters[j] += shift
            for r in range(width):
                if r // moves[move, 5] % moves[move, 6] == moves[move, 7]:
                    for k in range(moves[move, 3], moves[move, 4]):
                        old = concentrations[cell + k * width + r]
                        concentrations[cell + k * width + r] = old * factor
                        gammas[cell + k * width + r] = proposed[cell + k * width + r]
                        totals[row + r] += old * (factor - 1.0)
    return centre
