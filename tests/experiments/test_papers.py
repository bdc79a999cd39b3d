"""What the papers print, beside what it is compared with."""

from __future__ import annotations

import numpy as np

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
