"""Releases of the same records with noise of several kinds are fitted together, each by its own likelihood."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.polynomial.hermite_e import hermegauss
from pgmpy.models import DiscreteBayesianNetwork
from scipy.optimize import minimize
from scipy.special import ndtr

import pgmpy_dp as dp
from pgmpy_dp.evaluation import kl_divergence
from pgmpy_dp.fitting.readings import directed, undirected
from pgmpy_dp.release import Guarantee

STATES = {"a": ["n", "y"], "b": ["p", "q", "r"], "c": ["n", "y"]}
SCHEMA, EDGES, RECORDS = dp.Schema(STATES), [("a", "b"), ("b", "c")], 3000
SIZES = {name: len(states) for name, states in STATES.items()}
AXES = list(STATES)
SCALE = 1.5  # of the prior on log-potentials


def records(count=RECORDS):
    draw = np.random.default_rng(0)
    a = draw.random(count) < 0.3
    b = (draw.random(count) * np.where(a, 3, 1.5)).astype(int)
    c = draw.random(count) < np.array([0.2, 0.5, 0.9])[b]
    columns = zip(STATES.items(), (a.astype(int), b, c.astype(int)), strict=True)
    return pd.DataFrame({name: np.array(states)[codes] for (name, states), codes in columns})


@pytest.fixture(scope="module")
def releases():
    """Tables with Laplace noise and with Gaussian noise: one table in both, and one that lies in no family."""

    def measured(seed, cliques, **how):
        budget = dp.PrivacyBudget(1.0, how.get("delta", 0.0))
        data = dp.PrivateDataset(records(), SCHEMA, budget, neighbours="replace_one", noise=dp.SimulatedNoise(seed))
        return data.measure(cliques, 0.1, **how)

    gaussian = {"mechanism": "gaussian", "delta": 1e-3}
    return [measured(1, [("a", "b"), ("b", "c")]), measured(2, [("b", "a"), ("a", "c")], **gaussian)]


@pytest.fixture(scope="module")
def coefficients():
    budget, noise = dp.PrivacyBudget(1.0), dp.SimulatedNoise(3)
    data = dp.PrivateDataset(records(), SCHEMA, budget, neighbours="replace_one", noise=noise)
    return data.measure_coefficients([("a", "b"), ("b", "c")], 0.1)


def margin(joint, clique):
    kept = [axis for axis, name in enumerate(AXES) if name in clique]
    summed = joint.sum(axis=tuple(axis for axis in range(3) if axis not in kept))
    return np.transpose(summed, [kept.index(AXES.index(name)) for name in clique])


def tables(releases):
    return [
        (release.guarantee.mechanism, clique, table, release.variances[clique])
        for release in releases
        for clique, table in release.tables.items()
    ]


def rows(logits):
    pa, pb, pc = np.exp(logits[:2]), np.exp(logits[2:8]).reshape(3, 2), np.exp(logits[8:]).reshape(2, 3)
    return pa / pa.sum(), pb / pb.sum(axis=0), pc / pc.sum(axis=0)


def test_bayesian_networks_maximise_the_expected_likelihood_of_all_noises(releases, monkeypatch):
    """Against the joint table, means of folded normal variables for Laplace noise, and numerical derivatives."""

    def joint(logits):
        pa, pb, pc = rows(logits)
        return np.einsum("a,ba,cb->abc", pa, pb, pc)

    def sampling(logits):
        counts = [RECORDS * margin(joint(logits), clique) for _, clique, _, _ in tables(releases)]
        return [np.maximum(n - n**2 / RECORDS, 0.25) for n in counts]

    def loss(logits, sampled):
        value = -sum(np.log(row).sum() / len(row) for row in rows(logits))
        for (mechanism, clique, table, variance), extra in zip(tables(releases), sampled, strict=True):
            residual = table - RECORDS * margin(joint(logits), clique)
            if mechanism == "gaussian":
                value += (residual**2 / (variance + extra)).sum() / 2
            else:
                scale = np.sqrt(variance / 2)
                spread = np.sqrt(scale**2 + extra)
                above = residual / spread
                folded = above * (2 * ndtr(above) - 1) + np.sqrt(2 / np.pi) * np.exp(-(above**2) / 2)
                value += (spread * folded).sum() / scale
        return value

    logits = np.zeros(14)
    for _ in range(3):
        logits = minimize(loss, logits, args=(sampling(logits),), method="BFGS").x
    monkeypatch.setattr(directed, "_ROUNDS", 6)
    network = DiscreteBayesianNetwork(EDGES)
    network.fit(releases, estimator=dp.CollectiveEM(max_iter=500))
    for node, expected in zip(AXES, rows(logits), strict=True):
        assert network.get_cpds(node).get_values() == pytest.approx(expected.reshape(SIZES[node], -1), abs=2e-4)


def test_markov_networks_minimise_the_expected_loss_of_all_noises(releases, monkeypatch):
    """Against dense tables: log-normal counts, hyperbolas for Laplace noise, and numerical derivatives."""
    laplace, gaussian = releases
    gaussian = replace(
        gaussian, tables={("b", "a"): gaussian.tables["b", "a"]}, scales={("b", "a"): gaussian.scales["b", "a"]}
    )
    points, weights = hermegauss(7)
    weights = weights / weights.sum()

    def joint(logs):
        masses = np.exp(logs[:6].reshape(2, 3, 1) + logs[6:].reshape(3, 2))
        return masses / masses.sum()

    def bound(point):
        spread = np.exp(point[12:])
        of_table = {("a", "b"): spread[:6].reshape(2, 3), ("b", "c"): spread[6:].reshape(3, 2)}
        of_table["b", "a"] = of_table["a", "b"].T
        mean = point[:12] - spread / 2
        value = ((mean**2 + spread) / SCALE**2 - point[12:]).sum() / 2
        for mechanism, clique, table, variance in tables([laplace, gaussian]):
            counts, v = RECORDS * margin(joint(point[:12]), clique), of_table[clique]
            moved = counts * np.exp(np.sqrt(v) * points[:, None, None] - v / 2)
            if mechanism == "gaussian":
                value += ((table - counts) ** 2 + counts**2 * np.expm1(v)).sum() / (2 * variance)
            else:
                scale = np.sqrt(variance / 2)
                value += (weights[:, None, None] * np.hypot((table - moved) / scale, 0.6)).sum()
        return value

    found = minimize(bound, np.concatenate([np.zeros(12), np.full(12, -5.0)]), method="BFGS", options={"gtol": 1e-4}).x
    monkeypatch.setattr(undirected, "_FREEDOM", 1e12)  # a normal prior, of the scale that is given
    network = dp.PrivateMarkovNetwork(EDGES)
    network.fit([laplace, gaussian], dp.CollectiveEM(prior_scale=SCALE, max_iter=2000))
    fitted = network.query(AXES)
    assert np.transpose(fitted.values, [fitted.variables.index(name) for name in AXES]) == pytest.approx(
        joint(found[:12]), abs=2e-5
    )


@pytest.mark.parametrize("network", [dp.PrivateBayesianNetwork, dp.PrivateMarkovNetwork])
@pytest.mark.parametrize("inference", ["junction_tree", "loopy"])
def test_two_kinds_of_noise_tell_more_than_one(network, inference, releases, coefficients):
    truth = network(EDGES).fit(records(), estimator=dp.NotPrivateMLE(state_names=SCHEMA))
    estimator = dp.CollectiveEM(inference=inference)
    one = kl_divergence(truth, network(EDGES).fit(releases[0], estimator=estimator))
    assert kl_divergence(truth, network(EDGES).fit(releases, estimator=estimator)) < one
    assert kl_divergence(truth, network(EDGES).fit([releases[0], coefficients], estimator=estimator)) < one


def test_guarantees_checks_and_bounds_are_of_all_releases(releases, coefficients):
    held = [*releases, coefficients]
    network = dp.PrivateBayesianNetwork(EDGES).fit(held, estimator=dp.CollectiveEM())
    assert network.release_ == tuple(held)
    assert network.guarantee_.epsilon == pytest.approx(sum(release.guarantee.epsilon for release in held))
    assert network.check_fit().p_value > 0.001
    bounds = network.query(["c"], interval=0.9)
    assert (bounds["lower"] <= bounds["value"]).all()


def test_releases_of_one_kind_are_joined_before(releases):
    laplace, gaussian = releases
    other = Guarantee.of(0.1, neighbours="replace_one", private=False)
    again = replace(laplace, tables={clique: table + 1 for clique, table in laplace.tables.items()}, guarantee=other)
    network = dp.PrivateMarkovNetwork(EDGES).fit([laplace, gaussian, again])
    assert network.release_ == (laplace + again, gaussian)
