"""Networks with tied parameters: one table for a group of edges or nodes."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import pgmpy_dp as dp
from pgmpy_dp.evaluation import kl_divergence
from pgmpy_dp.fitting.readings.undirected import Tying
from pgmpy_dp.inference.trees.junction_tree import TiedTree

NODES = ["x1", "x2", "x3", "x4", "x5"]
EDGES = list(pairwise(NODES))
STATES = ["a", "b", "c"]
SCHEMA = dp.Schema(dict.fromkeys(NODES, STATES))
POOLED = {("now", "next"): EDGES, ("first",): [("x1",)]}


@pytest.fixture(scope="module")
def days():
    """A homogeneous Markov chain of five steps."""
    generator = np.random.default_rng(0)
    step = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.1, 0.6]]).cumsum(axis=1)
    codes = np.zeros((20_000, 5), dtype=int)
    codes[:, 0] = generator.choice(3, 20_000, p=[0.5, 0.3, 0.2])
    for t in range(1, 5):
        codes[:, t] = (generator.random((20_000, 1)) > step[codes[:, t - 1]]).sum(axis=1)
    return pd.DataFrame(np.array(STATES)[np.minimum(codes, 2)], columns=NODES)


@pytest.fixture(scope="module")
def steps(days):
    parts = [days[[a, b]].set_axis(["now", "next"], axis=1).assign(person=days.index) for a, b in EDGES]
    return pd.concat(parts)


def tied_network(groups=None):
    return dp.PrivateMarkovNetwork(EDGES, tied=[EDGES, [("x1",)]] if groups is None else groups)


def table(network, edge):
    (factor,) = (f for f in network.get_factors() if set(f.variables) == set(edge))
    return factor.values if tuple(factor.variables) == edge else factor.values.T


def test_pooled_marginals_are_the_derivative_of_the_log_partition_function():
    groups = {("p", "q"): [("a", "b"), ("b", "c"), ("d", "c")], ("r",): [("a",)], ("a", "d"): [("a", "d")]}
    tied = TiedTree.build(dict.fromkeys("abcd", 3), groups, dict.fromkeys(("p", "q", "r", "a", "d"), 3), 1e6)
    generator = np.random.default_rng(1)
    theta, direction = generator.normal(size=(2, tied.layout.size))
    found = tied.calibrate(theta)
    ahead, behind = (tied.calibrate(theta + step * direction) for step in (1e-5, -1e-5))
    slope = (ahead.log_partition - behind.log_partition) / 2e-5
    assert slope == pytest.approx((tied.repeats * found.marginals) @ direction, rel=1e-7)
    other = generator.normal(size=tied.layout.size)
    bend = other @ (ahead.marginals - behind.marginals) / 2e-5
    assert tied.covariance_product(found, other) @ direction == pytest.approx(bend, rel=1e-6)


def test_maximum_likelihood_matches_the_mean_of_the_steps(days):
    fitted = tied_network().fit(days, dp.NotPrivateMLE(state_names=SCHEMA))
    first = table(fitted, EDGES[0])
    for edge in EDGES[1:]:
        assert np.allclose(table(fitted, edge) / table(fitted, edge).sum(), first / first.sum())
    counts = dp.exact_marginals(days, SCHEMA, EDGES).tables
    learned = [fitted.query(list(edge)) for edge in EDGES]
    joint = [f.values if f.variables == list(e) else f.values.T for f, e in zip(learned, EDGES, strict=True)]
    assert np.allclose(np.mean(joint, axis=0), np.mean([counts[e] for e in EDGES], axis=0) / len(days), atol=1e-6)
    assert np.allclose(fitted.query(["x1"]).values, days["x1"].value_counts(normalize=True)[STATES], atol=1e-6)


@pytest.mark.parametrize("estimator", [dp.CollectiveEM(), dp.papers.NaiveMLE()])
def test_pooled_tables_lead_to_the_same_network(days, steps, estimator):
    exact = tied_network().fit(days, dp.NotPrivateMLE(state_names=SCHEMA))
    budget, source = dp.PrivacyBudget(200.0), dp.SimulatedNoise(0)
    pairs = dp.Schema({"now": STATES, "next": STATES})
    moves = dp.PrivateDataset(steps, pairs, budget, noise=source, unit="person").measure([("now", "next")], 100.0)
    starts = days[["x1"]].set_axis(["first"], axis=1).assign(person=days.index)
    begun = dp.PrivateDataset(starts, dp.Schema({"first": STATES}), budget, noise=source, unit="person")
    release = moves.join(begun.measure([("first",)], 100.0))
    assert release.guarantee.epsilon == 200.0
    fitted = tied_network(POOLED).fit(release, estimator)
    assert kl_divergence(exact, fitted) < 1e-4
    assert fitted.guarantee_ == release.guarantee


def test_tied_tables_have_the_mean_of_their_cliques_and_its_noise(days):
    noisy = dp.PrivateDataset(days, SCHEMA, dp.PrivacyBudget(1.0)).measure(EDGES, 1.0, weights=[1, 2, 3, 4])
    tied, name = Tying.of(tied_network()), ("tied 0, axis 0", "tied 0, axis 1")
    found = tied.tables(noisy)
    assert found.tables[name] == pytest.approx(np.mean([noisy.tables[edge] for edge in EDGES], axis=0))
    assert found.variances[name] == pytest.approx(sum(noisy.variances[edge] for edge in EDGES) / 4**2)


def test_tied_parameters_need_less_data(days):
    """Half the divergence in the mean of 60 releases; of 20, less than three quarters, by five standard errors."""
    exact = tied_network().fit(days, dp.NotPrivateMLE(state_names=SCHEMA))
    untied, tied = [], []
    for seed in range(20):
        data = dp.PrivateDataset(days, SCHEMA, dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(seed))
        noisy = data.measure(EDGES, 0.01)
        untied.append(kl_divergence(exact, dp.PrivateMarkovNetwork(EDGES).fit(noisy)))
        tied.append(kl_divergence(exact, tied_network().fit(noisy)))
    assert np.mean(tied) < 0.75 * np.mean(untied)


def test_records_are_charged_once_and_measured_in_one_release(days):
    data = dp.PrivateDataset(days, SCHEMA, dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(0))
    estimator = dp.CollectiveEM(epsilon=0.5)
    tied_network().fit(data, estimator)
    assert data.budget.spent.epsilon == 0.5
    assert set(estimator.release_.cliques) == set(EDGES)  # the first node's table is in its edge's


def test_what_cannot_be_tied_is_refused(days):
    for tied, refusal in (
        ([[("x1", "x3")]], "neither an edge nor a node"),
        ([[EDGES[0]], [EDGES[0][::-1]]], "tied twice"),
        ([[EDGES[0], ("x1",)]], "same number of variables"),
        ({("now",): EDGES}, "same number of variables"),
    ):
        with pytest.raises(ValueError, match=refusal):
            dp.PrivateMarkovNetwork(EDGES, tied=tied)
    with pytest.raises(ValueError, match="cliques="):
        tied_network().fit(days, dp.NotPrivateMLE(state_names=SCHEMA, cliques=[("a", "b", "c")]))
    other = dp.Schema({**dict.fromkeys(NODES, STATES), "x5": ["a", "b", "c", "d"]})
    data = dp.PrivateDataset(days, other, dp.PrivacyBudget(1.0, 1e-6), noise=dp.SimulatedNoise(0))
    sgd, loopy = {"delta": 1e-6, "total": 100}, {"inference": "loopy"}
    for estimator, refusal in (
        (dp.CollectiveEM(epsilon=0.5), "tied to one with other states"),
        (dp.papers.NaiveMLE(epsilon=0.5), "tied to one with other states"),
        (dp.papers.PrivateSGD(0.5, **sgd), "tied to one with other states"),
        (dp.papers.PrivateSGD(0.5, **loopy, **sgd), "tie"),
        (dp.CollectiveEM(epsilon=0.5, **loopy), "tie"),
    ):
        with pytest.raises(ValueError, match=refusal):
            tied_network().fit(data, estimator)
    assert data.budget.spent.epsilon == 0


@pytest.mark.parametrize("groups", [None, POOLED])
def test_ties_are_saved(days, tmp_path, groups):
    source = days if groups is None else pd.DataFrame({"now": ["a", "b"], "next": ["b", "c"], "first": ["a", "c"]})
    schema = SCHEMA if groups is None else dp.Schema(dict.fromkeys(["now", "next", "first"], STATES))
    network = tied_network(groups).fit(source, dp.NotPrivateMLE(state_names=schema, regularization=0.01))
    network.save(tmp_path / "chain.json")
    loaded = dp.PrivateMarkovNetwork.load(tmp_path / "chain.json")
    assert loaded.tied == network.tied
    assert kl_divergence(network, loaded) == pytest.approx(0, abs=1e-12)
