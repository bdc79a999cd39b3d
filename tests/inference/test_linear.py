"""The dual for noisy sums of counts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from pgmpy_dp.inference import FactorGraph, GaussianNoise, JunctionTree, LaplaceNoise, counts_by_dual
from pgmpy_dp.inference.collective.duals import LinearMap

TOTAL = 5000.0
LAWS = [LaplaceNoise, GaussianNoise]


@pytest.fixture(scope="module")
def chain():
    generator = np.random.default_rng(0)
    cards, edges = dict.fromkeys(range(5), 3), [(i, i + 1) for i in range(4)]
    tree = JunctionTree.build(cards, edges)
    start, truth = generator.normal(size=(2, tree.layout.size))
    counts = TOTAL * tree.calibrate(truth).marginals
    return tree, FactorGraph.build(cards, edges), start, counts, generator


@pytest.mark.parametrize("law", LAWS)
def test_the_identity_is_the_plain_dual(chain, law):
    tree, _, start, counts, generator = chain
    observed, scale = counts + generator.laplace(scale=20, size=counts.size), np.full(counts.size, 20.0)
    expected = counts_by_dual(tree, start, law.of_scale(observed, scale), TOTAL)
    for matrix in (None, sparse.eye_array(counts.size, format="csr")):
        function = LinearMap(np.arange(counts.size), matrix)
        found = counts_by_dual(tree, start, law.of_scale(observed, scale), TOTAL, function=function)
        assert found.converged
        np.testing.assert_allclose(found.counts, expected.counts, atol=0.02)


@pytest.mark.parametrize("law", LAWS)
def test_sums_close_the_gap_on_both_engines(chain, law):
    tree, graph, start, counts, generator = chain
    matrix = sparse.csr_array(generator.choice([-1.0, 0.0, 1.0], size=(8, 18)))
    places, scale = np.arange(9, 27), np.full(8, 15.0)
    function = LinearMap(places, matrix)
    observed = function.apply(counts) + generator.normal(scale=15.0, size=8)
    exact = counts_by_dual(tree, start, law.of_scale(observed, scale), TOTAL, function=function)
    assert exact.converged
    assert (exact.potentials[:9] == start[:9]).all()
    np.testing.assert_allclose(exact.counts, TOTAL * tree.calibrate(exact.potentials).marginals)
    loopy = counts_by_dual(graph, start, law.of_scale(observed, scale), TOTAL, function=function)
    np.testing.assert_allclose(loopy.counts, exact.counts, atol=0.1)
