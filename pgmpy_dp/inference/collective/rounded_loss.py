"""Compiled expectation of a rounded absolute loss, if counts are known up to a log-normal factor."""

from __future__ import annotations

import numpy as np

from pgmpy_dp._compiled import compiled


@compiled
def expected_rounded_loss(observed, scale, corner, counts, spread, points, weights):
    """Sum E[sqrt((y - n f)^2 + corner) / scale] over the cells, f = exp(sqrt(v) t - v / 2), t standard normal."""
    cells = observed.shape[0]
    root, centre, up = np.sqrt(spread), np.exp(-spread / 2), np.empty(cells)
    loss, first, second = np.zeros(cells), np.zeros(cells), np.zeros(cells)
    for j in range(points.shape[0]):
        for k in range(cells):
            up[k] = np.exp(points[j] * root[k])
        for sign in (1.0, -1.0):
            for k in range(cells):  # separate from the exponentials, so that it is vectorised
                factor = centre[k] * up[k]
                residual = observed[k] - counts[k] * factor
                rounded = np.sqrt(residual * residual + corner[k])
                slope = weights[j] * factor * residual / rounded
                loss[k] += weights[j] * rounded
                first[k] += slope
                second[k] += sign * points[j] * slope
                up[k] = 1.0 / up[k]
    value = 0.0
    for k in range(cells):
        value += loss[k] / scale[k]
        second[k] = counts[k] * (first[k] - second[k] / max(root[k], 1e-12)) / (2 * scale[k])
        first[k] /= -scale[k]
    return value, first, second
