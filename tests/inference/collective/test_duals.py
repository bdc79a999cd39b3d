"""Counts behind noisy counts: the dual, belief propagation, and the noise densities."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from pgmpy_dp.inference import NLBP, FactorGraph, GaussianNoise, JunctionTree, LaplaceNoise, counts_by_dual
from pgmpy_dp.inference.collective.noise_laws import end_to_end
from pgmpy_dp.inference.trees.junction_tree import TiedTree

TOTAL = 5000.0


@pytest.fixture(scope="module")
def chain():
    """A chain of six 4-state variables with Laplace noise of scale 20 on its pair counts."""
    generator = np.random.default_rng(0)
    cards, edges = dict.fromkeys(range(6), 4), [(i, i + 1) for i in range(5)]
    tree = JunctionTree.build(cards, edges)
    truth, start = generator.normal(size=(2, tree.layout.size))
    observed = TOTAL * tree.calibrate(truth).marginals + generator.laplace(scale=20, size=truth.size)
    return tree, FactorGraph.build(cards, edges), start, observed, np.full(truth.size, 20.0)


def test_dual_closes_the_gap_and_stays_in_its_box(chain):
    tree, _, start, observed, scale = chain
    result = counts_by_dual(tree, start, LaplaceNoise.of_scale(observed, scale), TOTAL)
    assert result.converged
    assert -1e-9 < result.gap < 1e-4  # of two values about 1e3: it may be negative by their rounding
    assert (np.abs(result.potentials - start) <= 1 / scale + 1e-12).all()
    np.testing.assert_allclose(result.counts, TOTAL * tree.calibrate(result.potentials).marginals)


def test_belief_propagation_reaches_the_dual_on_both_engines(chain):
    tree, graph, start, observed, scale = chain
    exact = counts_by_dual(tree, start, LaplaceNoise.of_scale(observed, scale), TOTAL)
    for engine in (tree, graph):
        run = NLBP(engine, max_iter=2000, tolerance=1e-6).run(start, LaplaceNoise.of_scale(observed, scale), TOTAL)
        np.testing.assert_allclose(run.counts, exact.counts, atol=0.05)


def test_constant_steps_chatter_with_raw_laplace_gradients(chain):
    """The fault of the plain algorithm that the default step size mends."""
    tree, _, start, observed, scale = chain
    noise = LaplaceNoise.of_scale(observed, scale)
    run = NLBP(tree, step=lambda k: 0.5, max_iter=500).run(start, noise, TOTAL)
    assert not run.converged
    assert run.gap > 10 * NLBP(tree, max_iter=500).run(start, noise, TOTAL).gap


@pytest.mark.parametrize("scale", [0.05, 5.0, 200.0])
@pytest.mark.parametrize("step", [1e-4, 0.5, None])
def test_belief_propagation_returns_counts_of_its_potentials_and_stops_by_the_gap_alone(chain, scale, step):
    tree, _, start, observed, _ = chain
    steps = {} if step is None else {"step": lambda k: step}
    noise = LaplaceNoise.of_scale(observed, np.full(start.size, scale))
    run = NLBP(tree, **steps).run(start, noise, TOTAL)
    np.testing.assert_array_equal(run.counts, TOTAL * tree.calibrate(run.potentials).marginals)
    assert run.converged == (run.gap <= 1e-5 * start.size)
    assert not (run.converged and step == 1e-4)
    best = counts_by_dual(tree, start, LaplaceNoise.of_scale(observed, noise.scale), TOTAL)
    value, highest = (_objective(tree, start, observed, noise.scale, each) for each in (run, best))
    assert highest - value <= run.gap + 1e-6 * abs(highest)


def _objective(tree, start, observed, scale, found):
    """theta . n + H(n) - |y - n| / b, whose entropy is that of the potentials."""
    entropy = TOTAL * tree.calibrate(found.potentials).log_partition - found.potentials @ found.counts
    return float(start @ found.counts + entropy - (np.abs(observed - found.counts) / scale).sum())


@pytest.mark.parametrize("scale", [0.05, 0.005])
def test_the_dual_closes_the_gap_where_noise_is_a_hundred_thousandth_of_the_records_and_less(chain, scale):
    """L-BFGS-B alone stops at losses of hundreds to ten thousands here."""
    tree, _, start, _, _ = chain
    generator = np.random.default_rng(2)
    true = TOTAL * tree.calibrate(generator.normal(size=start.size)).marginals
    observed, scales = true + generator.laplace(scale=scale, size=start.size), np.full(start.size, scale)
    found = counts_by_dual(tree, start, LaplaceNoise.of_scale(observed, scales), TOTAL)
    assert found.converged
    assert np.abs(observed - found.counts).sum() <= np.abs(observed - true).sum()


def test_gaussian_noise_converges_to_its_fixed_point(chain):
    tree, _, start, observed, scale = chain
    noise = GaussianNoise.of_scale(observed, 10 * scale)
    run = NLBP(tree, step=lambda k: 0.1, tolerance=1e-10).run(start, noise, TOTAL)
    assert run.converged
    fixed = TOTAL * tree.calibrate(start + noise.gradient(run.counts)).marginals
    np.testing.assert_allclose(run.counts, fixed, atol=1e-4)
    dual = counts_by_dual(tree, start, GaussianNoise.of_scale(observed, 10 * scale), TOTAL)
    assert dual.converged
    np.testing.assert_allclose(dual.counts, run.counts, atol=0.01)


@pytest.mark.parametrize("law", [LaplaceNoise, GaussianNoise])
def test_cells_that_were_not_observed_keep_their_potentials(chain, law):
    tree, _, start, observed, scale = chain
    unseen = np.arange(start.size) % 3 == 0
    noise = law.of_scale(np.where(unseen, 0.0, observed), np.where(unseen, np.inf, scale))
    result = counts_by_dual(tree, start, noise, TOTAL)
    assert (result.potentials[unseen] == start[unseen]).all()
    assert result.converged


VALUES, SCALES = np.array([3.0, -1.0, 40.0]), np.array([1.0, 2.0, 5.0])
LAPLACE, GAUSSIAN = LaplaceNoise.of_scale(VALUES, SCALES), GaussianNoise.of_scale(VALUES, SCALES)
MIXED = end_to_end([LAPLACE.take(np.arange(2)), GAUSSIAN.take(np.array([2]))])
SPREAD = np.array([3.0, 0.5, 20.0])


@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN, MIXED, LAPLACE.sampled(SPREAD), MIXED.sampled(SPREAD)])
def test_gradients_and_losses_are_those_of_the_density(noise):
    counts, step = np.array([1.0, 1.0, 1.0]), 1e-6
    for cell in range(3):
        above, below = (counts + sign * np.eye(3)[cell] * step for sign in (1, -1))
        slope = (noise.log_density(above) - noise.log_density(below)) / (2 * step)
        assert noise.gradient(counts)[cell] == pytest.approx(slope, abs=1e-6)
        if noise not in (LAPLACE, MIXED):
            bend = (noise.gradient(below) - noise.gradient(above))[cell] / (2 * step)
            assert noise.curvature(counts)[cell] == pytest.approx(bend, abs=1e-6)
    if noise in (LAPLACE, GAUSSIAN, MIXED):
        fallen = noise.log_density(noise.observed) - noise.log_density(counts)
        assert noise.loss(counts) == pytest.approx(fallen)


def test_the_m_step_of_em_is_free(chain):
    """argmax theta . n - N A(theta) at n = N mu(theta + l) is theta + l itself: the same distribution to 1e-9 in KL."""
    tree, _, start, observed, scale = chain
    step = counts_by_dual(tree, start, LaplaceNoise.of_scale(observed, scale), TOTAL)
    target = step.counts / TOTAL

    def loss(theta):
        result = tree.calibrate(theta)
        return result.log_partition - theta @ target, result.marginals - target

    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"gtol": 1e-12, "ftol": 0.0, "maxiter": 5000}).x
    difference = step.potentials - found
    kl = difference @ target - tree.calibrate(step.potentials).log_partition + tree.calibrate(found).log_partition
    assert abs(kl) < 1e-9


def test_a_potential_moves_at_most_one_over_b_an_iteration(chain):
    """Why plain EM from zero needs many iterations, and why their number regularises it."""
    tree, _, _, observed, scale = chain
    theta = np.zeros(tree.layout.size)
    for iteration in range(1, 4):
        theta = counts_by_dual(tree, theta, LaplaceNoise.of_scale(observed, scale), TOTAL).potentials
        assert np.abs(theta).max() <= iteration / scale[0] + 1e-12


@pytest.mark.parametrize("scale", [3.0, 30.0])
def test_newtons_method_finds_what_the_first_method_finds(chain, scale):
    """After one iteration of L-BFGS-B Newton's method has all of the way to go, in steps that are few."""
    tree, _, start, observed, _ = chain
    scales = np.full(start.size, scale)
    best = counts_by_dual(tree, start, LaplaceNoise.of_scale(observed, scales), TOTAL, tolerance=1e-9, max_iter=5000)
    found = counts_by_dual(tree, start, LaplaceNoise.of_scale(observed, scales), TOTAL, tolerance=1e-9, max_iter=1)
    assert best.converged
    assert found.converged
    assert 5 < found.iterations < 60
    np.testing.assert_allclose(found.counts, best.counts, atol=1e-3)
    assert (np.abs(found.potentials - start) <= 1 / scales + 1e-12).all()


@pytest.fixture(scope="module")
def tied():
    """Four 2-state variables in a chain, whose three edges share a table, as the first two variables do."""
    groups = {("now", "next"): [(0, 1), (1, 2), (3, 2)], ("one",): [(0,), (1,)]}
    tree = TiedTree.build(dict.fromkeys(range(4), 2), groups, dict.fromkeys(("now", "next", "one"), 2), 1e6)
    cells = np.indices((2,) * 4).reshape(4, -1)
    pairs = [np.eye(4)[2 * cells[a] + cells[b]].T for a, b in groups["now", "next"]]
    means = np.vstack([np.mean(pairs, axis=0), np.mean([np.eye(2)[cells[a]].T for a in (0, 1)], axis=0)])
    return tree, means, np.repeat([3.0, 2.0], [4, 2])


@pytest.mark.parametrize(("kind", "max_iter"), [("laplace", 500), ("laplace", 1), ("gaussian", 500)])
def test_counts_of_tied_cliques_maximise_the_objective_over_joint_tables(tied, kind, max_iter):
    """theta . S q + H(q) - loss(y - N M q) is largest, S being sums over tied cliques and M their means.

    Its value bounds that of any q from below, the dual's value from above; where they meet, both are the maximum.
    """
    tree, means, repeats = tied
    generator = np.random.default_rng(4)
    start, scale = generator.normal(size=6), np.linspace(5.0, 30.0, 6)
    observed = TOTAL * means @ softmax(start * repeats @ means + 0.2 * generator.normal(size=16)) + generator.laplace(
        scale=scale
    )
    noise = {"laplace": LaplaceNoise, "gaussian": GaussianNoise}[kind].of_scale(observed, scale)
    found = counts_by_dual(tree, start, noise, TOTAL, max_iter=max_iter)
    assert found.converged
    multipliers = (found.potentials - start) * repeats
    logs = found.potentials * repeats @ means
    joint = softmax(logs)
    np.testing.assert_allclose(found.counts, TOTAL * means @ joint)
    residual = (observed - TOTAL * means @ joint) / scale
    loss, conjugate = np.abs(residual).sum(), 0.0
    if kind == "gaussian":
        loss, conjugate = (residual**2).sum() / 2, ((scale * multipliers) ** 2).sum() / 2
    else:
        assert (np.abs(multipliers) <= (1 + 1e-12) / scale).all()
        assert (np.abs(multipliers) < 0.9 / scale).any()
    below = TOTAL * (start * repeats @ means @ joint - joint @ np.log(joint)) - loss
    above = TOTAL * logsumexp(logs) - multipliers @ observed + conjugate
    assert below == pytest.approx(above, abs=2e-3)
    run = NLBP(tree, step=lambda k: 0.1 if kind == "gaussian" else 2 / (k + 2), max_iter=4000)
    np.testing.assert_allclose(run.run(start, noise, TOTAL).counts, found.counts, atol=5.0)
