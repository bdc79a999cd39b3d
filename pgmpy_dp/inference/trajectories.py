"""Compiled Hamiltonian trajectories run over a junction tree's log-potentials, given noisy sums of its counts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp._compiled import compiled
from pgmpy_dp.inference import kernel

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Terms(NamedTuple):
    """Arrays state a posterior density; the point is made of the cells' values, the effects, and the total's shift.

    Attributes
    ----------
    program, maps, offsets : ndarrays
        Of the junction tree and its layout.
    cells : ndarray of int
        Where in the layout the cells with a potential stand.
    rows : ndarray of int
        For conditional probabilities, the row of each cell: the potentials are the logarithms of the normalised rows
        of exp(point), which are Dirichlet if exp(point) is Gamma(prior). Empty for free potentials.
    prior : ndarray
        Shapes of the Gamma distributions; for free potentials, precisions of normal ones.
    effects : ndarray of int
        Where in the layout cells stand whose potentials are standard normal times `spread`.
    spread : ndarray
    places, starts, columns, entries : ndarrays
        The observed sums A n: where the counts n stand in the layout, and A in compressed rows.
    observed, scale : ndarrays
        The noisy sums, and the noise's b or sigma.
    corner : ndarray
        Squared radius within which an absolute residual is rounded off; -1 marks Gaussian noise.
    total, total_scale : float
        Records, and by how many the last coordinate moves them; 0 if their number is known.
    """

    program: Integers
    maps: NDArray[np.int32]
    offsets: Integers
    cells: Integers
    rows: Integers
    prior: Floats
    effects: Integers
    spread: Floats
    places: Integers
    starts: NDArray[np.int32]
    columns: NDArray[np.int32]
    entries: Floats
    observed: Floats
    scale: Floats
    corner: Floats
    total: float
    total_scale: float


@compiled
def potentials_at(terms, point, potentials, rows, tops):
    """Write the log-potentials of a point; `rows` and `tops` are scratch space of one entry a row."""
    free = terms.cells.shape[0]
    potentials[:] = 0.0
    if terms.rows.shape[0] > 0:
        tops[:] = -np.inf
        rows[:] = 0.0
        for k in range(free):
            tops[terms.rows[k]] = max(tops[terms.rows[k]], point[k])
        for k in range(free):
            rows[terms.rows[k]] += np.exp(point[k] - tops[terms.rows[k]])
        for row in range(rows.shape[0]):
            rows[row] = np.log(rows[row]) + tops[row]
        for k in range(free):
            potentials[terms.cells[k]] = point[k] - rows[terms.rows[k]]
    else:
        for k in range(free):
            potentials[terms.cells[k]] = point[k]
    for k in range(terms.effects.shape[0]):
        potentials[terms.effects[k]] += point[free + k] * terms.spread[k]


@compiled
def log_posterior(terms, point, gradient, potentials, buffer, other, rows, tops):
    """Compute the log density up to a constant, and its gradient; minus infinity where inference underflows."""
    size = terms.offsets[-1]
    free, effects = terms.cells.shape[0], terms.effects.shape[0]
    potentials_at(terms, point, potentials, rows, tops)
    shift, lost = kernel.exponentiate(potentials, terms.offsets, buffer)
    partition, lost, _ = kernel.calibrate(terms.program, terms.maps, buffer, lost, 0.0)
    if not np.isfinite(partition + shift):
        return -np.inf
    total = terms.total + terms.total_scale * point[free + effects]
    if total <= 0.0:
        return -np.inf
    value, by_total = 0.0, 0.0
    for k in range(size):
        other[k] = 0.0
    for j in range(terms.observed.shape[0]):
        expected = 0.0
        for e in range(terms.starts[j], terms.starts[j + 1]):
            expected += terms.entries[e] * buffer[size + terms.places[terms.columns[e]]]
        residual = terms.observed[j] - total * expected
        if terms.corner[j] < 0.0:
            pull = residual / terms.scale[j] ** 2
            value -= 0.5 * residual * pull
        else:
            rounded = np.sqrt(residual * residual + terms.corner[j])
            pull = residual / (rounded * terms.scale[j])
            value -= rounded / terms.scale[j]
        by_total += pull * expected
        for e in range(terms.starts[j], terms.starts[j + 1]):
            other[terms.places[terms.columns[e]]] += total * pull * terms.entries[e]
    kernel.covariance_product(terms.program, terms.maps, buffer, other)
    slope = other[size : 2 * size]
    if terms.rows.shape[0] > 0:
        tops[:] = 0.0  # sums of the slopes in each row
        for k in range(free):
            tops[terms.rows[k]] += slope[terms.cells[k]]
        for k in range(free):
            mass, share = np.exp(point[k]), np.exp(potentials[terms.cells[k]])
            value += terms.prior[k] * point[k] - mass
            gradient[k] = slope[terms.cells[k]] - share * tops[terms.rows[k]] + terms.prior[k] - mass
    else:
        for k in range(free):
            pull = terms.prior[k] * point[k]
            value -= 0.5 * pull * point[k]
            gradient[k] = slope[terms.cells[k]] - pull
    for k in range(effects):
        value -= 0.5 * point[free + k] ** 2
        gradient[free + k] = slope[terms.effects[k]] * terms.spread[k] - point[free + k]
    gradient[free + effects] = by_total * terms.total_scale
    if terms.total_scale == 0.0:  # this coordinate moves nothing
        value -= 0.5 * point[free + effects] ** 2
        gradient[free + effects] = -point[free + effects]
    return value


@compiled
def trajectory(terms, point, momentum, gradient, value, step, steps, unit, stiff, easing, scratch):
    """Take leapfrog steps; point, momentum and gradient are changed in place.

    The inverse mass is S (1 + U diag(easing) U') S for S = diag(unit) and U the columns of `stiff`, stored as rows.

    Returns
    -------
    value : float
        Log density at the end; minus infinity if the trajectory left the region where it can be computed.
    """
    potentials, buffer, other, rows, tops = scratch
    velocity = np.empty_like(point)
    for _ in range(steps):
        for k in range(point.shape[0]):
            momentum[k] += 0.5 * step * gradient[k]
            velocity[k] = unit[k] * momentum[k]
        for j in range(stiff.shape[0]):
            along = 0.0
            for k in range(point.shape[0]):
                along += stiff[j, k] * unit[k] * momentum[k]
            along *= easing[j]
            for k in range(point.shape[0]):
                velocity[k] += along * stiff[j, k]
        for k in range(point.shape[0]):
            point[k] += step * unit[k] * velocity[k]
        value = log_posterior(terms, point, gradient, potentials, buffer, other, rows, tops)
        if not np.isfinite(value):
            return -np.inf
        for k in range(point.shape[0]):
            momentum[k] += 0.5 * step * gradient[k]
    return value


def scratch_space(terms: Terms, buffer_size: int) -> tuple[Any, ...]:
    """Make work arrays for `log_posterior`."""
    count = int(terms.rows.max()) + 1 if terms.rows.size else 0
    size = int(terms.offsets[-1])
    return np.zeros(size), np.zeros(buffer_size), np.zeros(buffer_size), np.zeros(count), np.zeros(count)
