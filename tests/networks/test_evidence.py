"""Evidence may be what a cell of the records would be: a number in a bin, or a text that says that it is missing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import pgmpy_dp as dp
from pgmpy_dp.networks.questions import checked_evidence
from pgmpy_dp.records.frames import encode

SCHEMA = dp.Schema(
    {"age": dp.Bins([0, 18, 40, 65]), "job": ["none", "clerk", "guard"], "smoke": ["yes", "no"], "cars": [0, 1]},
    missing={"age": "unknown", "job": "unstated"},
    other={"age": "beyond"},
    missing_values={"job": ["?"], "age": ["-9"]},
)
EDGES = [("smoke", "age"), ("job", "smoke"), ("cars", "job")]
MEANT = [
    ({"age": 40}, {"age": "40_to_65"}),
    ({"job": "?", "age": np.float64(17.5)}, {"job": "unstated", "age": "0_to_18"}),
]


@pytest.fixture(scope="module")
def release():
    draw = np.random.default_rng(0)
    records = pd.DataFrame({
        "age": draw.uniform(0, 65, 4000),
        "job": draw.choice(["none", "clerk", "guard", "?"], 4000),
        "smoke": draw.choice(["yes", "no"], 4000),
        "cars": draw.integers(0, 2, 4000),
    })  # fmt: skip
    data = dp.PrivateDataset(records, SCHEMA, dp.PrivacyBudget(50.0), noise=dp.SimulatedNoise(0))
    return data.measure(EDGES, 50.0)


@pytest.fixture(scope="module", params=["bayesian", "markov", "mixture"])
def network(request, release):
    if request.param == "mixture":
        network = dp.PairwiseMixture(members=1).fit(release).network_
        network.sample_draws(4)
        return network
    made = {"bayesian": dp.PrivateBayesianNetwork, "markov": dp.PrivateMarkovNetwork}[request.param](EDGES).fit(release)
    made.sample_posterior(draws=20)
    return made


def test_numbers_are_in_the_bins_that_records_are_read_into():
    for number in [-1, 0, 17.99, 18, 39, 40, 64.5, 65, 65.1, float("inf"), np.int8(18), -0.0]:
        (place,) = encode(pd.DataFrame({"age": [number]}), SCHEMA, ["age"])["age"]
        label = SCHEMA.states["age"][place]
        if label == "beyond":
            with pytest.raises(
                dp.SchemaError, match=r"'age' has no state .*; it has '0_to_18', '18_to_40', '40_to_65', "
            ):
                checked_evidence(SCHEMA, {"age": number})
        else:
            assert checked_evidence(SCHEMA, {"age": number}) == {"age": label}


@pytest.mark.parametrize("given", ["beyond", "unknown", "0_to_18"])
def test_what_is_a_state_means_itself(given):
    assert checked_evidence(SCHEMA, {"age": given}) == {"age": given}


@pytest.mark.parametrize("given", [None, float("nan"), True, "", "forty", [40]], ids=repr)
def test_what_is_no_value_is_refused(given):
    with pytest.raises(dp.SchemaError, match="'age' has no state"):
        checked_evidence(SCHEMA, {"age": given})


def test_texts_are_read_as_in_files():
    assert checked_evidence(SCHEMA, {"age": "39.5", "cars": "1"}) == {"age": "18_to_40", "cars": 1}
    assert checked_evidence(SCHEMA, {"age": "-9"}) == {"age": "unknown"}
    with pytest.raises(dp.SchemaError, match=r"'smoke' has no state '\?'; it has 'yes', 'no'\.$"):
        checked_evidence(SCHEMA, {"smoke": "?"})
    with pytest.raises(dp.SchemaError, match=r"Did you mean 'clerk'\?"):
        checked_evidence(SCHEMA, {"job": "clark"})


@pytest.mark.parametrize(("given", "meant"), MEANT)
def test_every_answer_takes_them(network, given, meant):
    assert (network.query(["smoke"], given).values == network.query(["smoke"], meant).values).all()
    assert network.map_query(["smoke", "cars"], given) == network.map_query(["smoke", "cars"], meant)
    for ask in (
        lambda evidence: network.query(["smoke"], evidence, interval=0.9),
        lambda evidence: network.expectation({"cars": {0: 0, 1: 1}}, evidence),
        lambda evidence: network.simulate(50, evidence=evidence, seed=0),
    ):
        pd.testing.assert_frame_equal(ask(given), ask(meant))
    if not isinstance(network, dp.PrivateMixtureNetwork):
        assert network.map_probability(["smoke"], given) == network.map_probability(["smoke"], meant)
        one, other = (network.simulate(20, evidence=each, seed=0, data_sets=2) for each in (given, meant))
        assert all(mine.equals(its) for mine, its in zip(one, other, strict=True))


def test_predictions_and_pgmpys_own_records(release):
    markov, bayesian = (kind(EDGES).fit(release) for kind in (dp.PrivateMarkovNetwork, dp.PrivateBayesianNetwork))
    rows = pd.DataFrame({"age": [40, 3], "job": ["?", "clerk"]})
    named = pd.DataFrame({"age": ["40_to_65", "0_to_18"], "job": ["unstated", "clerk"]})
    pd.testing.assert_frame_equal(markov.predict(rows), markov.predict(named))
    drawn = bayesian.simulate(20, evidence={"age": 40}, do={"job": "none"}, seed=0, show_progress=False)
    assert set(drawn["age"]) == {"40_to_65"}


def test_without_a_release_there_are_no_bins(release, tmp_path):
    dp.PrivateBayesianNetwork(EDGES).fit(release).save(tmp_path / "network.bif")
    bare = dp.PrivateBayesianNetwork.load(tmp_path / "network.bif")
    with pytest.raises(dp.SchemaError, match="'age' has no state 40"):
        bare.query(["smoke"], {"age": 40})
    bare.attach_release(release)
    assert bare.query(["smoke"], {"age": 40}).values.sum() == pytest.approx(1)
