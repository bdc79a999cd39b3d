"""A mixture network's answers against its joint distribution, pgmpy's inference, and its records."""

import itertools
import json
import warnings

import numpy as np
import pandas as pd
import pytest
from pgmpy.inference import BeliefPropagation, VariableElimination

import pgmpy_dp as dp
from pgmpy_dp.inference import Mixture
from pgmpy_dp.models.formats.formats import save_network
from pgmpy_dp.networks import load_network
from pgmpy_dp.release import Guarantee

SCHEMA = dp.Schema(
    {"a": ["x", "y"], "b": dp.Bins([0, 1, 4, 10]), "c": [1, 2], "d": ["n", "m", "o"]}, missing={"b": "none"}
)
GUARANTEE = Guarantee.of(1.0, 1e-6, 0.02, "add_remove", "gaussian", True)


def made(schema=SCHEMA, total=1000.0, seed=0):
    """A mixture of five components with one block of two variables."""
    draw = np.random.default_rng(seed)
    blocks = [("a",), ("d", "b"), ("c",)]
    tables = []
    for block in blocks:
        flat = draw.dirichlet(np.full(schema.cells(block), 0.5), size=5)
        tables.append(flat.reshape(5, *schema.shape(block)))
    mixture = Mixture.of(schema.cardinalities(), blocks, draw.dirichlet(np.ones(5)), tables)
    return dp.PrivateMixtureNetwork(schema, mixture, total, GUARANTEE)


NETWORK = made()


def test_pgmpy_finds_the_same(tmp_path):
    network = NETWORK.to_bayesian_network()
    assert network.latents == {"component"}
    exact = NETWORK.query(["b", "d"], {"a": "y"})
    found = VariableElimination(network).query(["b", "d"], evidence={"a": "y"}, show_progress=False)
    assert np.allclose(found.values, exact.values) or np.allclose(found.values.T, exact.values)
    save_network(network, tmp_path / "mixture.bif")
    assert sorted(load_network(tmp_path / "mixture.bif").nodes()) == ["a", "b", "c", "component", "d"]


def test_records_are_as_near_as_whole_ones_can_be():
    frame = NETWORK.simulate(5000, seed=3)
    assert list(frame) == list("abcd")
    states = dp.Schema(dict(SCHEMA.states))
    counts = dp.exact_marginals(frame.astype({"b": str}), states, itertools.combinations("abcd", 2))
    for pair, table in counts.tables.items():
        assert np.abs(table - 5000 * NETWORK.marginal(pair)).sum() / 2 / 5000 < 0.005, pair  # .012 if independent
    assert NETWORK.simulate(seed=3).equals(NETWORK.simulate(1000, seed=3))
    assert not NETWORK.simulate(50, seed=3).equals(NETWORK.simulate(50, seed=4))
    assert set(NETWORK.simulate(200, evidence={"a": "y"}, seed=0)["a"]) == {"y"}
    assert len(NETWORK.simulate(0)) == len(NETWORK.simulate(0, predicting="b")) == 0


def test_records_for_a_target_keep_its_triples():
    def distance(frame):
        states = dp.Schema(dict(SCHEMA.states))
        triples = [("a", "b", "c"), ("a", "b", "d"), ("b", "c", "d")]
        counts = dp.exact_marginals(frame.astype({"b": str}), states, triples)
        return sum(np.abs(table - 5000 * NETWORK.marginal(scope)).sum() for scope, table in counts.tables.items())

    frame = NETWORK.simulate(5000, seed=3, predicting="b")
    assert frame.equals(NETWORK.simulate(5000, seed=3, predicting="b"))
    assert distance(frame) < 0.8 * distance(NETWORK.simulate(5000, seed=3))
    with pytest.raises(dp.SchemaError, match="'e'"):
        NETWORK.simulate(10, predicting="e")


def test_numbers_beyond_whole_floats_are_no_whole_numbers():
    """They would not fit 64 bits."""
    network = made(dp.Schema({**dict(SCHEMA.states), "b": dp.Bins([0, 1e19, 2e19, 3e19, 4e19])}))
    for numbers in ("drawn", "midpoint"):
        drawn = network.simulate(500, seed=0, numbers=numbers)["b"]
        assert drawn.between(0, 4e19).all()
        assert drawn.max() > 3e19


@pytest.mark.parametrize(
    "change",
    [
        *({"format": "another"}, {"version": "2"}, {"schema": {}}, {"guarantee": {"epsilon": 1.0}}, {"fit": {}}),
        *({"weights": weights} for weights in ([0.5, 0.5], [float(10**9)] * 5, ["0.2"] * 5, [True, *[False] * 4])),
        *({"total": total} for total in (-1, "100", True, 1e308)),
        *({"blocks": blocks} for blocks in ([], 7, [{"variables": ["a"], "probabilities": [1.0]}])),
        {"fit": {"size": 3, "penalty": 0.01, "width": 0.0, "steps": 400}},  # five components are no three members
        {"fit": {"size": 1, "penalty": 0.01, "width": 0.0, "steps": 400, "alike": 1}},
    ],
    ids=str,
)
def test_damaged_files_are_refused_by_name(tmp_path, change):
    path = tmp_path / "mixture.json"
    NETWORK.save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(dp.ReleaseFormatError, match=r"mixture\.json: not a sound mixture network"):
        dp.PrivateMixtureNetwork.load(path)


def test_a_file_of_a_newer_version_is_not_called_damaged(tmp_path):
    records = pd.DataFrame({"a": ["x", "y"] * 50, "c": [1, 2] * 50})
    pair = dp.PrivateMarkovNetwork([("a", "c")]).fit(
        records, estimator=dp.CollectiveEM(epsilon=1.0, state_names=SCHEMA)
    )
    for network in (NETWORK, pair):
        path = tmp_path / "network.json"
        network.save(path)
        path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 2}))
        with pytest.raises(dp.ReleaseFormatError, match=r"network\.json: written by a newer pgmpy_dp .* upgrade it"):
            type(network).load(path)


def test_what_was_not_measured_together_is_said_at_the_fit_and_of_answers():
    schema = dp.Schema({v: ["x", "y"] for v in "abc"})
    records = pd.DataFrame({v: ["x", "y"] * 100 for v in "abc"})
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(9.0), noise=dp.SimulatedNoise(0))
    release = data.measure([("a", "b"), ("c",)], 1.0)
    with pytest.warns(UserWarning, match="no table of 'a' with 'c', and misses 2 pairs in all") as outputs:
        network = dp.PairwiseMixture(members=3).fit(release).network_
    assert "measure the tables of plan_pairs(schema)" in str(outputs[0].message)
    with pytest.warns(UserWarning, match="no table of 'c' with 'b'"):
        network.query(["c"], {"b": "x"}, interval=0.9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        network.query(["a"], {"b": "x"}, interval=0.9)
        dp.PairwiseMixture(members=3).fit(data.measure(dp.plan_pairs(schema)[0], 1.0))


def test_numbers_of_states_are_checked():
    with pytest.raises(dp.SchemaError, match="It has no state 'z'"):
        NETWORK.expectation({"a": {"x": 1, "z": 0}})
    with pytest.raises(ValueError, match="must be finite"):
        NETWORK.expectation({"c": {1: 1.0, 2: float("nan")}})
    with pytest.raises(dp.SchemaError, match="number for each of its states"):
        NETWORK.expectation(["c"])
    with pytest.raises(dp.SchemaError, match="not over the variables"):
        dp.PrivateMixtureNetwork(dp.Schema({"a": ["x", "y"]}), NETWORK.mixture_, 10.0, GUARANTEE)


def test_predictions_sum_the_component_out():
    """Of three components the most probable one says "no", and the two others together "yes"."""
    sick = np.array([[0.9, 0.1], [0.1, 0.9], [0.1, 0.9]])
    other = np.array([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]])
    mixture = Mixture.of({"lung": 2, "bronc": 2}, [("lung",), ("bronc",)], [0.4, 0.3, 0.3], [sick, other])
    schema = dp.Schema({"lung": ["no", "yes"], "bronc": ["no", "yes"]})
    private = dp.PrivateMixtureNetwork(schema, mixture, 100, GUARANTEE)
    network = private.to_bayesian_network()
    rows = pd.DataFrame({"bronc": ["no", "yes"]})
    expected = rows.assign(lung=["yes", "yes"])
    pd.testing.assert_frame_equal(private.predict(rows), expected)
    pd.testing.assert_frame_equal(network.predict(rows), expected)
    pd.testing.assert_frame_equal(network.copy().predict(rows, algo=BeliefPropagation), expected)
    shares = network.predict_probability(rows)
    assert sorted(shares) == ["lung_no", "lung_yes"]
    assert shares["lung_yes"].to_numpy() == pytest.approx(0.58)
    assert network.predict(rows, stochastic=True, seed=0).columns.tolist() == ["bronc", "lung"]
    assert network.guarantee_ == private.guarantee_
