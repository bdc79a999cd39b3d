"""Private gradient ascent for Markov networks."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from noises import NoNoise

import pgmpy_dp as dp
from pgmpy_dp.inference import JunctionTree

STATES = {"a": [0, 1], "b": [0, 1, 2], "c": [0, 1], "d": [0, 1]}
EDGES = [("a", "b"), ("b", "c")]


def network():
    model = dp.PrivateMarkovNetwork(EDGES)
    model.add_node("d")
    return model


def records(count, seed):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, count)
    b = np.where(rng.random(count) < 0.7, 2 * a, rng.integers(0, 3, count))
    c = np.where(rng.random(count) < 0.8, (b == 1).astype(int), rng.integers(0, 2, count))
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": (rng.random(count) < 0.2).astype(int)})


def private(frame, neighbours="add_remove", noise=None, states=STATES):
    noise = dp.SimulatedNoise(1) if noise is None else noise
    return dp.PrivateDataset(frame, dp.Schema(states), dp.PrivacyBudget(1.0, 1e-6), neighbours, noise)


@pytest.mark.parametrize("statistic", ["gradient", "features"])
def test_without_noise_or_clipping_it_climbs_to_the_maximum_likelihood(statistic):
    frame = records(2000, 1)
    options = {"statistic": statistic, "total": 2000, "clip_norm": 10.0, "sampling_rate": 1.0, "learning_rate": 1.5}
    estimator = dp.papers.PrivateSGD(1.0, 1e-6, steps=300, **options)
    model = network().fit(private(frame, noise=NoNoise(1)), estimator)
    best = network().fit(frame, dp.NotPrivateMLE(state_names=STATES))
    for edge in EDGES:
        assert model.query(edge).values == pytest.approx(best.query(edge).values, abs=2e-3)


def test_tables_of_three_tell_an_exclusive_or():
    a, b = np.random.default_rng(0).integers(0, 2, (2, 2000))
    frame, edges = pd.DataFrame({"a": a, "b": b, "c": a ^ b}), [("a", "b"), ("b", "c"), ("a", "c")]
    data = private(frame, noise=NoNoise(1), states={name: [0, 1] for name in "abc"})
    options = {"total": 2000, "sampling_rate": 1.0, "clip_norm": 10.0, "cliques": [("a", "b", "c")]}
    exact = dp.NotPrivateMLE(state_names=data.schema, cliques=[("a", "b", "c")])
    for source, estimator in ((data, dp.papers.PrivateSGD(1.0, 1e-6, steps=300, **options)), (frame, exact)):
        model = dp.PrivateMarkovNetwork(edges).fit(source, estimator)
        assert model.query(["c"], {"a": 1, "b": 1}).get_value(c=0) > 0.97
        with pytest.raises(ValueError, match="not a clique of the network"):
            dp.PrivateMarkovNetwork(edges[:2]).fit(source, estimator)


def test_tied_pairs_climb_to_the_maximum_likelihood_of_the_tied_chain():
    chain = np.zeros((3000, 4), dtype=int)
    generator = np.random.default_rng(0)
    for step in range(1, 4):
        chain[:, step] = np.where(generator.random(3000) < 0.8, chain[:, step - 1], generator.integers(0, 2, 3000))
    frame, edges = pd.DataFrame(chain, columns=list("abcd")), [("a", "b"), ("b", "c"), ("c", "d")]
    data = private(frame, noise=NoNoise(1), states={node: [0, 1] for node in "abcd"})
    sgd = dp.papers.PrivateSGD(1.0, 1e-6, steps=300, total=3000, sampling_rate=1.0, clip_norm=10.0)
    model = dp.PrivateMarkovNetwork(edges, tied=[edges]).fit(data, sgd)
    best = dp.PrivateMarkovNetwork(edges, tied=[edges]).fit(frame, dp.NotPrivateMLE(state_names=data.schema))
    for options in ({"cliques": [("a", "b")]}, {"inference": "loopy"}):
        with pytest.raises(ValueError, match="tied parameters on a junction tree, and of the tied cliques"):
            dp.PrivateMarkovNetwork(edges, tied=[edges]).fit(data, dp.papers.PrivateSGD(1.0, 1e-6, **options))
    for edge in edges:
        assert model.query(list(edge)).values == pytest.approx(best.query(list(edge)).values, abs=5e-3)
    tables = [factor.values for factor in model.get_factors() if len(factor.variables) == 2]
    for table in tables[1:]:
        assert table / table[0, 0] == pytest.approx(tables[0] / tables[0][0, 0])


def test_marginals_that_round_to_more_than_one_do_not_end_a_paid_run(monkeypatch):
    estimator = dp.papers.PrivateSGD(1.0, 1e-6, steps=2, total=2000)

    def rounded(tree, potentials, calibrate=JunctionTree.calibrate):
        calibration = calibrate(tree, potentials)
        return dataclasses.replace(calibration, marginals=np.maximum(calibration.marginals, np.nextafter(1.0, 2.0)))

    monkeypatch.setattr(JunctionTree, "calibrate", rounded)
    network().fit(private(records(2000, 1)), estimator)
    assert estimator.n_steps_ == 2


@pytest.mark.parametrize("statistic", ["gradient", "features"])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_a_private_fit_is_close(statistic, neighbours):
    """At epsilon 1 from 50,000 records, well within the distance of the start (0.26) from the best."""
    frame, test = records(50_000, 1), records(50_000, 2)
    size = {"batch_size": 5000} if neighbours == "replace_one" else {"total": 50_000}
    data = private(frame, neighbours)
    estimator = dp.papers.PrivateSGD(1.0, 1e-6, steps=200, statistic=statistic, **size)
    model = network().fit(data, estimator)
    best = network().fit(frame, dp.NotPrivateMLE(state_names=STATES))
    assert model.log_likelihood(test) > best.log_likelihood(test) - 0.02
    (charge,) = data.budget.history
    assert (float(charge.epsilon), float(charge.delta)) == (1.0, 1e-6)
    assert model.guarantee_ == estimator.guarantee_
    assert estimator.n_steps_ == 200
