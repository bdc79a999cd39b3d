"""Compiled accelerated mirror descent in the geometry of a junction tree's distribution."""

from __future__ import annotations

import numpy as np

from pgmpy_dp._compiled import compiled
from pgmpy_dp.inference.trees.kernel import calibrate, calibrate_log, exponentiate


@compiled
def _marginals(program, maps, offsets, buffer, potentials, marginals):
    """Calibrate into `marginals`, and return the log-partition function."""
    size = potentials.shape[0]
    shift, lost = exponentiate(potentials, offsets, buffer)
    log_partition, lost = calibrate(program, maps, buffer, lost)
    log_partition += shift
    if not np.isfinite(log_partition):
        buffer[:size] = potentials
        log_partition = calibrate_log(program, maps, buffer)
    marginals[:] = buffer[size : 2 * size]
    return log_partition


@compiled
def _loss(target, weight, marginals):
    value = 0.0
    for k in range(target.shape[0]):
        value += weight[k] * (marginals[k] - target[k]) ** 2
    return value / 2


@compiled
def descend(
    program, maps, offsets, buffer, potentials, here, log_partition,
    target, weight, steepest, max_iter, tolerance, losses,
):  # fmt: skip
    """Minimise sum(weight (mu - target)^2) / 2 over the marginals mu of a junction tree.

    This is Tseng's accelerated method with the entropy of the tree's distribution as prox function: `here` is a
    distribution of the model, `mean` the average of all visited, and the step from `between` the two is as long as the
    curvature of the last step allows. If the mean gets worse, the momentum has overshot and is reset from `here`.

    Parameters
    ----------
    program, maps, offsets, buffer
        Of a junction tree.
    potentials : ndarray
        Starting point; overwritten by the potentials of the best distribution visited.
    here : ndarray of the size of the potentials
        Their marginals; overwritten.
    log_partition : float
        Logarithm of their partition function.
    target, weight : ndarrays of the size of the potentials
    steepest : float
        Upper bound on the curvature: by Pinsker's inequality, half the sum over tables of their largest weight.
    max_iter : int
        Most calibrations.
    tolerance : float
        Stop when the best mean has lost less than this share of its loss in the last fifth of all steps (at least a
        hundred), and the best distribution is as close to it.
    losses : ndarray of shape (max_iter,)
        Filled with the least loss up to each calibration.

    Returns
    -------
    int, bool
        Number of calibrations, and whether the tolerance was reached.
    """
    size = potentials.shape[0]
    mean, found = here.copy(), potentials.copy()
    # Rows of one array would have strides of their own: `_marginals` would be compiled for slower loops.
    there, between, moved = np.empty(size), np.empty(size), np.empty(size)
    loss_mean = loss_found = best = _loss(target, weight, mean)
    steepness, momentum, checked, best_checked = steepest / 16, 1.0, 0, np.inf
    for number in range(max_iter):
        share = 2.0 / (momentum + 1.0)
        for k in range(size):
            between[k] = (1.0 - share) * mean[k] + share * here[k]
            moved[k] = potentials[k] - weight[k] * (between[k] - target[k]) / (steepness * share)
        log_there = _marginals(program, maps, offsets, buffer, moved, there)
        # A step may not be longer than its divergence allows: the Bregman form of a Lipschitz gradient.
        square, divergence = 0.0, log_partition - log_there
        for k in range(size):
            square += weight[k] * (there[k] - here[k]) ** 2
            divergence += (moved[k] - potentials[k]) * there[k]
        losses[number] = loss_found
        if not square / 2 <= steepness * divergence and steepness < steepest:
            steepness = min(2.0 * steepness, steepest)
            continue
        steepness /= 1.05
        potentials[:], here[:], log_partition = moved, there, log_there
        loss = _loss(target, weight, here)
        if loss < loss_found:
            loss_found = losses[number] = loss
            found[:] = potentials
        for k in range(size):
            between[k] = (1.0 - share) * mean[k] + share * here[k]
        fresh = _loss(target, weight, between)
        if fresh > loss_mean and momentum > 2.0:
            momentum, loss_mean = 1.0, loss
            mean[:] = here
            continue
        momentum += 1.0
        mean[:], loss_mean = between, fresh
        best = min(best, loss_mean)
        if number - checked >= max(100, number // 4):
            if best_checked - best <= tolerance * best and loss_found - best <= tolerance * best:
                potentials[:] = found
                return number + 1, True
            checked, best_checked = number, best
    potentials[:] = found
    return max_iter, False
