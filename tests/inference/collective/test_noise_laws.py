"""The dual for noisy sums of counts."""

import numpy as np
import pytest
from scipy import sparse

from pgmpy_dp.inference import FactorGraph, GaussianNoise, JunctionTree, LaplaceNoise, counts_by_dual
from pgmpy_dp.inference.collective.duals import LinearMap
from pgmpy_dp.inference.collective.noise_laws import end_to_end

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


@pytest.fixture
def mixed(chain):
    """The first half of a chain's counts has Gaussian noise, the second Laplace noise."""
    _, _, _, counts, generator = chain
    half, scale = counts.size // 2, 20.0
    noisy = counts + generator.normal(scale=scale, size=counts.size)
    laws = (GaussianNoise, noisy[:half]), (LaplaceNoise, noisy[half:])
    return end_to_end([law.of_scale(part, np.full(half, scale)) for law, part in laws]), half, scale


def test_counts_under_noise_of_two_laws_meet_the_optimality_conditions_of_each(chain, mixed):
    """Multipliers are (y - n) / sigma^2, and 1 / b times the sign of y - n, or less where n meets y."""
    tree, graph, start, _, _ = chain
    noise, half, scale = mixed
    found = counts_by_dual(tree, start, noise, TOTAL, tolerance=1e-9, max_iter=5000)
    multipliers, residual = found.potentials - start, noise.observed - found.counts
    np.testing.assert_allclose(multipliers[:half], residual[:half] / scale**2, atol=1e-5)
    assert (np.abs(multipliers[half:]) <= (1 + 1e-9) / scale).all()
    away = np.abs(residual[half:]) > 0.1
    assert 5 < away.sum() < half
    np.testing.assert_allclose(multipliers[half:][away], np.sign(residual[half:][away]) / scale, atol=1e-9)
    loopy = counts_by_dual(graph, start, noise, TOTAL, tolerance=1e-9, max_iter=5000)
    np.testing.assert_allclose(loopy.counts, found.counts, atol=0.1)


def test_rows_of_noise_of_two_laws_keep_their_own(mixed):
    noise, half, _ = mixed
    rows = np.arange(noise.observed.size) % 3 > 0
    kept = noise.take(rows)
    np.testing.assert_array_equal(kept.observed, noise.observed[rows])
    drawn = kept.draw(4000, np.random.default_rng(0))
    np.testing.assert_allclose(drawn.var(axis=0), kept.variance, rtol=0.25)
    kurtosis = (drawn**4).mean(axis=0) / (drawn**2).mean(axis=0) ** 2
    laplace = np.arange(noise.observed.size)[rows] >= half
    assert kurtosis[~laplace].mean() == pytest.approx(GaussianNoise.kurtosis, rel=0.1)
    assert kurtosis[laplace].mean() == pytest.approx(LaplaceNoise.kurtosis, rel=0.1)
    assert (noise.at_least(1e6).variance == 1e6).all()
