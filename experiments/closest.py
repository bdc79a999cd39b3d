"""Least-squares fit of a junction tree's distribution to noisy counts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.inference.trees.junction_tree import JunctionTree


@dataclass(frozen=True)
class ClosestMarginals:
    """Marginals of the fitted distribution.

    Attributes
    ----------
    potentials, marginals : ndarrays of shape (layout.size,)
        Log-potentials, and their marginals.
    losses : ndarray of shape (iterations,)
        Least loss up to and including each calibration.
    converged : bool
        Whether the tolerance was reached.
    """

    potentials: Vector
    marginals: Vector
    losses: Vector
    converged: bool


def closest_marginals(
    tree: JunctionTree,
    observed: Vector,
    scale: Vector,
    total: float,
    tolerance: float = 3e-4,
    max_iter: int = 10_000,
) -> ClosestMarginals:
    """Minimise sum((N mu - observed)^2 / scale^2) / 2 over the marginals mu of the tree's distributions.

    This is the objective of McKenna, Sheldon and Miklau (2019), "Graphical-model based estimation and inference for
    differential privacy". It is convex in mu, and is minimised here by their mirror descent with acceleration and
    restarts. It fits the noise as well, without a prior; the estimators of this library fit releases better.

    Parameters
    ----------
    tree : JunctionTree
    observed, scale : ndarrays of shape (tree.layout.size,)
        Noisy counts and the standard deviation of their noise, in records; infinite if not observed.
    total : float
        N, in records.
    tolerance : float
        Stop when neither a hundred calibrations nor the last fifth of all gained more than this share of the loss.
    max_iter : int
        Most calibrations.

    Raises
    ------
    ValueError
        If an argument has another shape, is not a number, or is out of range.

    Examples
    --------
    >>> tree = JunctionTree.build({"a": 2, "b": 2, "c": 2}, [("a", "b"), ("b", "c")])
    >>> observed = np.array([40.0, 10.0, 20.0, 34.0, 35.0, 23.0, 29.0, 9.0])
    >>> fit = closest_marginals(tree, observed, np.full(8, 5.0), total=100.0)
    >>> tree.layout.tables(100 * fit.marginals)[("a", "b")].round(1)
    array([[39.5,  8.5],
           [19.5, 32.5]])
    """
    from experiments.descent import descend  # imports numba, only needed for a fit

    size = tree.layout.size
    observed, scale = np.asarray(observed, dtype=np.float64), np.asarray(scale, dtype=np.float64)
    if observed.shape != (size,) or scale.shape != (size,):
        raise ValueError(f"observed and scale have shapes {observed.shape} and {scale.shape}, not ({size},)")
    if not (np.isfinite(observed).all() and (scale > 0).all() and 0 < total < np.inf):
        raise ValueError("observed counts must be finite, scales and total positive")
    if max_iter < 1 or not tolerance >= 0:
        raise ValueError(f"max_iter is {max_iter} and tolerance {tolerance}; they must be at least 1 and 0")
    weight = (total / scale) ** 2
    offsets = tree.layout.offsets
    tops = [weight[start:stop].max() for start, stop in pairwise(offsets)]
    potentials, losses = np.zeros(size), np.empty(max_iter)
    start = tree.calibrate(potentials)
    count, converged = descend(
        tree.program, tree.maps, offsets, np.empty(tree.buffer_size), potentials, start.marginals, start.log_partition,
        observed / total, weight, max(sum(tops) / 2, 1e-300), max_iter, tolerance, losses,
    )  # fmt: skip
    return ClosestMarginals(potentials, tree.calibrate(potentials).marginals, losses[:count], bool(converged))
