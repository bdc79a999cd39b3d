"""What the papers print, beside what it is compared with."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pgmpy.models import DiscreteBayesianNetwork

import pgmpy_dp as dp
from pgmpy_dp.experiments import papers
from pgmpy_dp.inference import FactorGraph, JunctionTree, LaplaceNoise, laplace_dual

TOTAL = 5000.0


def test_published_em_is_proximal_steps_towards_the_noisy_tables_on_both_engines():
    """With the exact dual for the E-step the path is the same, and the L1 loss only falls."""
    generator = np.random.default_rng(0)
    cards, edges = dict.fromkeys(range(4), 3), [(i, i + 1) for i in range(3)]
    tree, graph = JunctionTree.build(cards, edges), FactorGraph.build(cards, edges)
    truth = generator.normal(size=tree.layout.size)
    scale = np.full(truth.size, 40.0)
    observed = TOTAL * tree.calibrate(truth).marginals + generator.laplace(scale=40.0, size=truth.size)
    noise, start = LaplaceNoise(observed, scale), np.zeros_like(truth)
    exact, losses = start, []
    for engine in (tree, graph):
        path = list(papers.published_em(engine, start, noise, TOTAL, 12, inner=300))
        assert len(path) == 13
        losses = [np.abs(observed - TOTAL * tree.calibrate(step).marginals).sum() for step in path]
        assert (np.diff(losses) < 1e-3 * losses[0]).all()
        exact = start
        for step in path[1:]:
            exact = laplace_dual(tree, exact, observed, scale, TOTAL).potentials
            apart = tree.calibrate(step).marginals - tree.calibrate(exact).marginals
            assert np.abs(apart).max() < 1e-3
    assert losses[-1] < 0.6 * losses[0]


def test_published_em_as_an_estimator_keeps_every_iteration_by_either_e_step_and_engine():
    edges, states = [("a", "b"), ("b", "c"), ("c", "a")], {v: [0, 1, 2] for v in "abc"}
    records = pd.DataFrame(np.random.default_rng(1).integers(0, 3, (2000, 3)), columns=list("abc"))
    records["b"] = (records["a"] + (records["b"] == 0)) % 3
    data = dp.PrivateDataset(records, dp.Schema(states), dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(0))
    noisy = data.measure(edges, 1.0)

    def fitted(**options):
        estimator = papers.PublishedEM(iterations=6, inner=600, **options)
        network = dp.PrivateMarkovNetwork(edges).fit(noisy, estimator)
        return estimator, network.query(["a", "b"]).values

    first, own = fitted()
    assert len(first.path_) == 7
    table = noisy.tables["a", "b"] / noisy.total
    start = dp.PrivateMarkovNetwork(edges).fit(noisy, dp.NaiveMLE()).query(["a", "b"]).values
    assert np.abs(own - table).sum() < np.abs(start - table).sum()
    for options, apart in (({"e_step": "dual"}, 2e-3), ({"inference": "loopy"}, 1e-2), ({"total": noisy.total}, 1e-9)):
        assert np.abs(fitted(**options)[1] - own).max() < apart, options
    assert np.abs(fitted(total=1500.0)[1] - own).max() > 1e-4
    gaussian = dp.PrivateDataset(records, dp.Schema(states), dp.PrivacyBudget(1.0, 1e-6), noise=dp.SimulatedNoise(0))
    released = gaussian.measure(edges, 1.0, delta=1e-6, mechanism="gaussian")
    with pytest.raises(ValueError, match="Laplace noise on the tables"):
        dp.PrivateMarkovNetwork(edges).fit(released, papers.PublishedEM())


class NoNoise(dp.SimulatedNoise):
    """Counts stay as they are, and the scales of all noise that was asked for are kept."""

    def __init__(self):
        super().__init__(0)
        self.scales = []

    def discrete_laplace(self, counts, scale):
        self.scales.append(scale)
        return counts


def test_the_printed_algorithm_measures_two_tables_a_family_and_reads_the_records_rows():
    network = DiscreteBayesianNetwork([("a", "c"), ("b", "c"), ("a", "d"), ("b", "d")])
    records = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (400, 4)), columns=list("abcd"))
    schema, noise = dp.Schema({node: [0, 1] for node in "abcd"}), NoNoise()
    cpds = papers.independent(network, records, schema, 2.0, noise)
    assert noise.scales == [4.0] * 6  # c and d each have a table of (a, b) of their own; a quarter of epsilon, halved
    exact = dp.NotPrivateMLE(state_names=schema).fit(network, records).parameters_
    for own, expected in zip(cpds, exact, strict=True):
        np.testing.assert_allclose(own.values, expected.values)
    noise = NoNoise()
    papers.data_dependent(network, records, schema, 2.0, noise)
    # Those of a, (c, a, b), (a, b), b, (d, a, b), (a, b):
    first, second = np.array(noise.scales[:6]), np.array(noise.scales[6:])
    assert np.log1p(0.1 * np.expm1((2 / first[[0, 1, 3, 4]]).sum())) == pytest.approx(0.2)
    assert (2 / second[[0, 1, 3, 4]]).sum() == pytest.approx(1.8)
    assert second[0] < second[1]  # a, with children, has more of the budget than c, a leaf
