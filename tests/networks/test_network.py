"""The pairs that are farthest from a network are chosen and measured: missing edges show, and right networks pass."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import pgmpy_dp as dp
from pgmpy_dp.evaluation import bnlearn_network
from pgmpy_dp.fitting.checks.fit_checks import check_network
from pgmpy_dp.inference.trees.conditioning import Conditioning
from pgmpy_dp.observed.factors import log_linear
from pgmpy_dp.privacy.guarantee import Guarantee

STATES = ["x", "y", "z"]
NODES = [f"v{number}" for number in range(12)]


def chain(count, seed=0, beside=0.0):
    """Each variable repeats the one before half the time; with a share of the records, the last repeats the first."""
    generator = np.random.default_rng(seed)
    codes = generator.choice(3, (count, len(NODES)), p=[0.5, 0.3, 0.2])
    for place in range(1, len(NODES)):
        codes[:, place] = np.where(generator.random(count) < 0.5, codes[:, place - 1], codes[:, place])
    codes[:, -1] = np.where(generator.random(count) < beside, codes[:, 0], codes[:, -1])
    return pd.DataFrame(np.array(STATES)[codes], columns=NODES)


def data_set(frame, budget=2.0, neighbours="add_remove", seed=0):
    schema = dp.Schema(dict.fromkeys(NODES, STATES))
    return dp.PrivateDataset(frame, schema, dp.PrivacyBudget(budget), neighbours, dp.SimulatedNoise(seed))


CHAIN = tuple(itertools.pairwise(NODES))


def fitted(data, edges=CHAIN, epsilon=1.0):
    network = dp.PrivateBayesianNetwork(edges)
    network.add_nodes_from(NODES)
    cliques, weights = dp.plan_measurements(network, data.schema, check=0)
    return network.fit(data.measure(cliques, epsilon, weights=weights), estimator=dp.PrivateMLE())


def test_the_missing_edge_is_found_and_answers_follow_it(tmp_path):
    """Of 55 pairs it is chosen first, whatever the noise: it is more than a hundred times its scale farther off."""
    frame = chain(5000, seed=1, beside=0.4)
    data = data_set(frame, seed=1)
    network = fitted(data)
    assert not network.check_fit().fails
    measured = network.measure_misfit(data, epsilon=0.5, pairs=2)
    assert measured.cliques[0] == (NODES[0], NODES[-1])
    assert measured.chosen_among == dict.fromkeys(measured.cliques, 55)
    assert data.budget.remaining.epsilon == 0.5
    assert network.guarantee_.epsilon == measured.guarantee.epsilon == 1.5  # the release said what is far from it
    assert network.check_fit().fails
    assert network.check_fit().of_pairs[0].variables == (NODES[0], NODES[-1])
    held = frame.loc[frame[NODES[0]] == "z", NODES[-1]].value_counts(normalize=True)
    found = network.query([NODES[-1]], {NODES[0]: "z"}, interval=0.9, target="records")
    assert (found["value"] - held.reindex(STATES)).abs().max() < 0.05
    network.save(tmp_path / "fitted.zip")
    again = dp.PrivateBayesianNetwork.load(tmp_path / "fitted.zip")
    assert again.release_ == network.release_
    assert again.check_fit().p_value == network.check_fit().p_value


def test_a_promise_that_counts_more_than_the_release_is_kept():
    """Such as that of a method whose first stage chose what the release is of."""
    data = data_set(chain(500))
    network = fitted(data)
    first = Guarantee.of(2.0)
    network.guarantee_ = network.guarantee_.after(first)
    assert network.guarantee_.epsilon == 3.0
    measured = network.measure_misfit(data, 0.5)
    assert network.guarantee_.epsilon == 3.5
    assert network.guarantee_.every == network.release_[0].guarantee.every | measured.guarantee.every | first.every


@pytest.mark.parametrize("delta", [pytest.param(0.0, marks=pytest.mark.slow), 1e-6])
def test_right_networks_pass_though_the_farthest_pair_was_chosen(delta):
    """Little noise, so that the farthest of 66 pairs of independent variables is far off by chance alone.

    At 5 %, more than 7 of 40 right networks fail with a probability of less than 1 in 1,000. Without the number of
    candidates, nearly all do.
    """
    generator, often, naive = np.random.default_rng(0), [], []
    for seed in range(40):
        frame = pd.DataFrame(generator.choice(STATES, (2000, len(NODES))), columns=NODES)
        schema = dp.Schema(dict.fromkeys(NODES, STATES))
        data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(40.0, 1e-5), noise=dp.SimulatedNoise(seed))
        network = fitted(data, (), epsilon=20.0)
        measured = network.measure_misfit(data, epsilon=10.0, delta=delta)
        often.append(network.check_fit().p_value < 0.05)
        bare = replace(measured, chosen_among={})
        naive.append(check_network(network, [network.release_[0], bare], seed=seed).p_value < 0.05)
    assert sum(often) <= 7
    assert sum(naive) > 20


@pytest.mark.parametrize("name", ["asia", "cancer"])
def test_tables_of_pairs_are_those_of_variable_elimination(name):
    from pgmpy.inference import VariableElimination

    network = bnlearn_network(name)
    schema = dp.Schema.from_model(network)
    layout, logs, _ = log_linear(network, schema.states)
    pairs = list(itertools.combinations(schema.variables, 2))
    exact = VariableElimination(network)
    for pair, table in Conditioning(layout).pairs(logs, pairs).items():
        answer = exact.query(list(pair), show_progress=False)
        wanted = np.array(
            [
                [answer.get_value(**dict(zip(pair, states, strict=True))) for states in row]
                for row in ([(a, b) for b in schema.states[pair[1]]] for a in schema.states[pair[0]])
            ]
        )
        np.testing.assert_allclose(table, wanted, atol=1e-12)


def test_nothing_is_charged_for_what_is_refused():
    frame = chain(500)
    data, other = data_set(frame), data_set(frame, neighbours="replace_one")
    network, budget = fitted(data), dp.PrivacyBudget(2.0)
    persons = dp.PrivateDataset(frame.assign(person=range(500)), data.schema, budget, unit="person", max_rows=1)
    few = dp.PrivateDataset(frame[NODES[:3]], data.schema.select(NODES[:3]), dp.PrivacyBudget(2.0))
    whole = dp.PrivateBayesianNetwork([("v0", "v1")]).fit(data.measure([("v0", "v1")], 0.5))
    unfitted = dp.PrivateBayesianNetwork([("v0", "v1")])
    for model, source, options, error, refusal in (
        (network, frame, {}, TypeError, "must be a PrivateDataset"),
        (network, other, {}, ValueError, "another change of the records"),
        (network, persons, {}, ValueError, "another change of the records"),
        (network, few, {}, dp.SchemaError, "'v3' has other states in the data set"),
        (whole, data, {}, ValueError, "joins all pairs"),
        (network, data, {"pairs": 0}, ValueError, "pairs must be a whole number"),
        (unfitted, data, {}, ValueError, "not fitted"),
        (network, data, {"epsilon": 5.0}, dp.BudgetExceededError, "does not fit"),
    ):
        with pytest.raises(error, match=refusal):
            model.measure_misfit(source, **{"epsilon": 0.5} | options)
    assert data.budget.remaining.epsilon == 0.5
    assert [each.budget.remaining.epsilon for each in (persons, other, few)] == [2.0] * 3


def test_markov_networks_are_probed_too():
    data = data_set(chain(5000, beside=0.4))
    network = dp.PrivateMarkovNetwork(list(CHAIN))
    network.fit(data.measure(list(CHAIN), 1.0))
    assert network.measure_misfit(data, 0.5, pairs=1).cliques == ((NODES[0], NODES[-1]),)
    assert network.check_fit().fails
