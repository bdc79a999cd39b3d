"""Least squares between noisy counts and the marginals of a distribution, against non-negative least squares."""

import itertools

import numpy as np
import pytest
from scipy.optimize import nnls

from experiments.closest import closest_marginals
from pgmpy_dp.inference import JunctionTree

CARDS = {"a": 2, "b": 3, "c": 2, "d": 3}
SCOPES = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("b",)]


def tree_and_indicators():
    """A tree, and the matrix from all 36 joint probabilities to its marginals."""
    tree = JunctionTree.build(CARDS, SCOPES)
    states = list(itertools.product(*(range(card) for card in CARDS.values())))
    place = dict(zip(CARDS, range(4), strict=True))
    matrix = np.zeros((tree.layout.size, len(states)))
    for scope, start, shape in zip(tree.layout.scopes, tree.layout.offsets, tree.layout.shapes, strict=False):
        for column, state in enumerate(states):
            matrix[start + np.ravel_multi_index([state[place[v]] for v in scope], shape), column] = 1.0
    return tree, matrix


@pytest.mark.parametrize("noise", [0.5, 20.0, 300.0])
def test_least_squares_over_all_joint_distributions(noise):
    """The largest noise puts the optimum on the border, where potentials run to minus infinity."""
    tree, matrix = tree_and_indicators()
    generator = np.random.default_rng(3)
    total, scale = 200.0, generator.uniform(0.5, 2.0, tree.layout.size) * noise
    scale[5] = np.inf
    observed = total * matrix @ generator.dirichlet(np.ones(36)) + generator.normal(size=scale.size) * noise
    rows = np.concatenate([total * matrix / scale[:, None], np.full((1, 36), 1e5)])
    joint, _ = nnls(rows, np.concatenate([observed / scale, [1e5]]))
    minimum = (((total * matrix @ joint - observed) / scale) ** 2).sum() / 2
    fit = closest_marginals(tree, observed, scale, total)
    loss = (((total * fit.marginals - observed) / scale) ** 2).sum() / 2
    assert fit.converged
    assert loss == pytest.approx(minimum, rel=1e-3)
    assert loss == pytest.approx(fit.losses[-1], rel=1e-9)
    assert (np.diff(fit.losses) <= 0).all()
    np.testing.assert_allclose(tree.calibrate(fit.potentials).marginals, fit.marginals)


def test_marginals_stay_proper_when_potentials_are_thousands_apart():
    tree, _ = tree_and_indicators()
    observed = np.random.default_rng(0).normal(size=tree.layout.size) * 1e6
    fit = closest_marginals(tree, observed, np.full(observed.size, 0.1), 100.0, tolerance=0.0, max_iter=300)
    assert np.abs(fit.potentials).max() > 1e4
    assert all(table.sum() == pytest.approx(1.0) for table in tree.layout.split(fit.marginals))


@pytest.mark.parametrize(
    ("change", "problem"),
    [({"observed": np.ones(3)}, "shape"), ({"scale": np.zeros(27)}, "positive"), ({"total": np.nan}, "positive"),
     ({"observed": np.full(27, np.nan)}, "finite"), ({"max_iter": 0}, "max_iter")],
)  # fmt: skip
def test_bad_arguments_are_refused(change, problem):
    tree, _ = tree_and_indicators()
    with pytest.raises(ValueError, match=problem):
        closest_marginals(tree, **{"observed": np.ones(27), "scale": np.ones(27), "total": 10.0} | change)
