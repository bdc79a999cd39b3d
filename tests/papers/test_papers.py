"""What the papers print, beside what it is compared with."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from pgmpy.models import DiscreteBayesianNetwork
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from sklearn.exceptions import ConvergenceWarning

import pgmpy_dp as dp
from pgmpy_dp import papers
from pgmpy_dp.inference import FactorGraph, JunctionTree, LaplaceNoise, laplace_dual

TOTAL = 5000.0


@pytest.mark.filterwarnings("ignore:.*E-steps of the published EM:sklearn.exceptions.ConvergenceWarning")
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
        path = list(papers.published_em(engine, start, noise, TOTAL, 12, "propagation", inner=300))
        assert len(path) == 13
        losses = [np.abs(observed - TOTAL * tree.calibrate(step).marginals).sum() for step in path]
        assert (np.diff(losses) < 1e-3 * losses[0]).all()
        exact = start
        for step in path[1:]:
            exact = laplace_dual(tree, exact, observed, scale, TOTAL).potentials
            apart = tree.calibrate(step).marginals - tree.calibrate(exact).marginals
            assert np.abs(apart).max() < 1e-3
    assert losses[-1] < 0.6 * losses[0]


@pytest.mark.filterwarnings("ignore:.*E-steps of the published EM:sklearn.exceptions.ConvergenceWarning")
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
    for options, apart in (
        ({"e_step": "propagation"}, 2e-3),
        ({"inference": "loopy"}, 1e-2),
        ({"total": noisy.total}, 1e-9),
    ):
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


ITERATIONS, CHAIN = 6, ["x1", "x2", "x3", "x4"]
STEPS = [("x1", "x2"), ("x2", "x3"), ("x3", "x4")]
# Ties, and the groups of cliques that share a table. Their names are measured, or in the second the edges.
TIES = {
    "named": ({("now", "next"): STEPS, ("first",): [("x1",)]}, [STEPS, [("x1",)]]),
    "edges": ([STEPS], [STEPS]),
    "unequal": (
        {("now", "next"): [STEPS[0], STEPS[2]], ("of", "to"): [STEPS[1]], ("any",): [(v,) for v in CHAIN[:3]]},
        [[STEPS[0], STEPS[2]], [STEPS[1]], [(v,) for v in CHAIN[:3]]],
    ),
}


def dense_em(groups, observed, scale, total, start, iterations):
    """Run Algorithm 2 on the joint table of a chain of 2-state variables: start and iterations, as joint distributions.

    With S the sums of a group's indicators and M their means, the E-step maximises

        total (S' theta . q + entropy of q) - sum |y - total M q| / b

    over joint distributions q; its dual is solved, and must have no gap. The M-step fits theta to S q.
    """
    cells = np.indices((2,) * len(CHAIN)).reshape(len(CHAIN), -1)
    sums, means = [], []
    for group in groups:
        codes = [np.ravel_multi_index(cells[[CHAIN.index(v) for v in clique]], (2,) * len(clique)) for clique in group]
        summed = sum(np.eye(2 ** len(group[0]))[code] for code in codes).T
        sums, means = [*sums, *summed], [*means, *(summed / len(group))]
    sums, means, theta = np.array(sums), np.array(means), start
    path = [softmax(theta @ sums)]
    for _ in range(iterations):
        base = theta @ sums

        def dual(multipliers, base=base):
            logs = base + multipliers @ means
            slope = total * means @ softmax(logs) - observed
            return total * logsumexp(logs) - multipliers @ observed, slope

        bounds = [(-1 / b, 1 / b) for b in scale]
        options = {"ftol": 1e-15, "gtol": 1e-6}
        found = minimize(dual, 0 * observed, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        joint = softmax(base + found.x @ means)
        value = (
            total * (base @ joint - joint @ np.log(joint)) - (np.abs(observed - total * means @ joint) / scale).sum()
        )
        assert value == pytest.approx(found.fun, abs=1e-2)

        def loss(theta, joint=joint):
            logs = theta @ sums
            return logsumexp(logs) - theta @ sums @ joint, sums @ (softmax(logs) - joint)

        theta = minimize(loss, theta, jac=True, method="BFGS", options={"gtol": 1e-6}).x
        path.append(softmax(theta @ sums))
    return path


@pytest.mark.parametrize("e_step", ["dual", "propagation"])
@pytest.mark.parametrize("name", TIES)
def test_published_em_with_tied_parameters_is_that_of_a_dense_implementation(name, e_step):
    ties, groups = TIES[name]
    generator = np.random.default_rng(3)
    columns = CHAIN if name == "edges" else [v for clique in ties for v in clique]
    records = pd.DataFrame(generator.random((300, len(columns))) < np.linspace(0.2, 0.7, len(columns)), columns=columns)
    records[columns[1]] |= records[columns[0]]
    schema = dp.Schema({v: [False, True] for v in columns})
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(1))
    noisy = data.measure(STEPS if name == "edges" else list(ties), 1.0)
    estimator = papers.PublishedEM(iterations=ITERATIONS, regularization=0.05, e_step=e_step, inner=1000)
    network = dp.PrivateMarkovNetwork(STEPS, tied=ties)
    if e_step == "dual":
        fitted = network.fit(noisy, estimator)
    else:
        with pytest.warns(ConvergenceWarning, match=r"E-steps .* did not reach their tolerance in 1000 .* gap up to 0"):
            fitted = network.fit(noisy, estimator)
    cliques = [STEPS] if name == "edges" else [[name] for name in ties]
    tables = [np.mean([noisy.tables[clique] for clique in group], axis=0).ravel() for group in cliques]
    deviations = [math.sqrt(sum(noisy.variances[clique] for clique in group) / 2) / len(group) for group in cliques]
    scale = np.repeat(deviations, [table.size for table in tables])
    start = estimator.path_[0]
    path = dense_em(groups, np.concatenate(tables), scale, noisy.total, start, ITERATIONS)
    own = fitted.query(CHAIN)
    own = np.transpose(own.values, [list(own.variables).index(v) for v in CHAIN]).ravel()
    np.testing.assert_allclose(own, path[-1], atol=1e-4 if e_step == "dual" else 2e-3)
    assert np.abs(path[-1] - path[0]).max() > 0.02
