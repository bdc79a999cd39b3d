"""Sharing of a component's coefficients among states: neighbours, or states that were found to be alike."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pgmpy_dp.inference.mixtures.mixture import Mixture
from pgmpy_dp.inference.tables.layout import Variable, Vector

# Share that ordered states keep for themselves (divided by the squared width); share that similar states keep; least
# ratio of probability: components that nearly exclude a state count as making it this much less probable.
_KEPT, _KEPT_ALIKE, _LEAST_RATIO = 0.9, 0.02, 1e-3


def among_neighbours(states: int, width: float) -> Vector:
    """Share coefficients among ordered states, with weights of a normal density of this width.

    Returns
    -------
    ndarray of shape (states, states)
        Matrix that converts coefficients to log-potentials.

    Examples
    --------
    >>> among_neighbours(3, 3.0).round(2)
    array([[0.67, 0.53, 0.45],
           [0.51, 0.64, 0.51],
           [0.45, 0.53, 0.67]])
    """
    place = np.arange(states)
    near = np.exp(-0.5 * ((place[:, None] - place) / width) ** 2)
    near /= np.sqrt((near**2).sum(axis=1, keepdims=True))
    kept = min(_KEPT / width**2, 1.0)
    smoothing: Vector = kept * np.eye(states) + (1 - kept) * near
    return smoothing


def among_alike(mixture: Mixture, variables: Iterable[Variable]) -> dict[Variable, Vector]:
    """Share coefficients among states whose probabilities vary together between components of a mixture.

    Log-potentials that are normal, with the covariance of the components' log-probabilities, are the root of this
    covariance times independent coefficients of equal scale, which the same steps find equally well.

    Parameters
    ----------
    mixture : Mixture
        A fit to the same tables.
    variables : iterable of variables
        Variables in its blocks.

    Returns
    -------
    dict of variable to ndarray of shape (states, states)

    Examples
    --------
    >>> table = [[0.4, 0.4, 0.1, 0.1], [0.1, 0.1, 0.4, 0.4]]
    >>> mixture = Mixture.of({"a": 4, "b": 2}, [("a",), ("b",)], [0.5, 0.5], [table, [[0.9, 0.1], [0.5, 0.5]]])
    >>> among_alike(mixture, ["a"])["a"].round(2)
    array([[ 0.51,  0.49, -0.49, -0.49],
           [ 0.49,  0.51, -0.49, -0.49],
           [-0.49, -0.49,  0.51,  0.49],
           [-0.49, -0.49,  0.49,  0.51]])
    """
    covariances = {}
    for variable in variables:
        (shares,) = mixture.only([variable]).tables
        mean = mixture.weights @ shares
        ratios = np.divide(shares, mean, out=np.ones_like(shares), where=mean > 0)
        logs = np.log(np.maximum(ratios, _LEAST_RATIO))
        logs -= (logs @ mean)[:, None]
        covariances[variable] = (logs.T * mixture.weights) @ logs
    variances = np.concatenate([np.diag(covariance) for covariance in covariances.values()] or [np.zeros(1)])
    if not variances.any():
        return {}
    found = {}
    for variable, covariance in covariances.items():
        values, vectors = np.linalg.eigh(covariance / variances.mean())
        root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        found[variable] = (1 - _KEPT_ALIKE) * root + _KEPT_ALIKE * np.eye(len(values))
    return found
