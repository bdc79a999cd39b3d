"""Rules of the schema in Bayesian and Markov networks: CPDs and factors, answers, bounds and records."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from pgmpy.models import DiscreteBayesianNetwork

import pgmpy_dp as dp
from pgmpy_dp.observed.factors import families, family_masks, ruled_table

PLACES = {"Ulm": "south", "Kiel": "north", "Bonn": "north"}
STATES = {"place": list(PLACES), "region": ["north", "south"], "boat": ["no", "yes"], "sea": ["no", "yes"]}
RULES = [
    dp.Dependency("place", "region", PLACES),
    dp.Forbidden({"region": "south", "boat": "yes"}),
    dp.Forbidden({"region": "north", "boat": "no", "sea": "yes"}),
]
SCHEMA = dp.Schema(STATES, rules=RULES)
EDGES = [("place", "region"), ("region", "boat"), ("region", "sea"), ("boat", "sea")]


def records(count=3000, seed=0):
    draw = np.random.default_rng(seed)
    frame = pd.DataFrame({v: draw.choice(states, 3 * count) for v, states in STATES.items()})
    frame["region"] = frame["place"].map(PLACES)
    return frame[~broken(frame)].iloc[:count].reset_index(drop=True)


def broken(frame):
    return (
        (frame["place"].map(PLACES) != frame["region"])
        | ((frame["region"] == "south") & (frame["boat"] == "yes"))
        | ((frame["region"] == "north") & (frame["boat"] == "no") & (frame["sea"] == "yes"))
    )


@pytest.fixture(scope="module")
def release():
    data = dp.PrivateDataset(records(), SCHEMA, dp.PrivacyBudget(2.0))
    return data.measure([("place", "region"), ("region", "boat", "sea")], 2.0)


def networks():
    for estimator in (dp.PrivateMLE(), dp.CollectiveEM(), dp.PosteriorMean(draws=20), "auto"):
        yield dp.PrivateBayesianNetwork(EDGES), estimator
    for estimator in (dp.CollectiveEM(), dp.papers.NaiveMLE()):
        yield dp.PrivateMarkovNetwork(EDGES), estimator


@pytest.mark.parametrize("number", range(6))
def test_no_fit_gives_what_is_forbidden_a_probability(release, number):
    network, estimator = next(itertools.islice(networks(), number, None))
    network.fit(release, estimator=estimator)
    assert not broken(network.simulate(5000, seed=0)).any()
    assert network.query(["boat"], {"place": "Ulm"}).get_value(boat="yes") == 0.0
    assert abs(network.query(["place"]).get_value(place="Ulm") - (records()["place"] == "Ulm").mean()) < 0.05


def test_noise_in_cells_that_rules_forbid_moves_nothing():
    """With a public number of records, since a private one is estimated from all cells."""
    relation, noise = "replace_one", dp.SimulatedNoise(0)
    data = dp.PrivateDataset(records(), SCHEMA, dp.PrivacyBudget(2.0), neighbours=relation, noise=noise)
    noisy = data.measure([("place", "region"), ("region", "boat", "sea")], 2.0)
    moved = {clique: table + 60 * ~SCHEMA.possible(clique) for clique, table in noisy.tables.items()}
    other = dp.NoisyMarginals(SCHEMA, moved, noisy.scales, noisy.guarantee, noisy.public_total)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such noise contradicts the rules
        one, two = (dp.PrivateBayesianNetwork(EDGES).fit(each, estimator=dp.CollectiveEM()) for each in (noisy, other))
    for asked in noisy.tables:
        np.testing.assert_allclose(one.marginal(asked), two.marginal(asked), atol=1e-6)


@pytest.mark.parametrize(
    ("estimator", "sets", "factor"), [(dp.PrivateMLE(), 1, 1.6), (dp.CollectiveEM(), 6, 1.15), (dp.AutoMLE(), 6, 1.0)]
)
def test_a_finer_variable_is_hardly_farther_off_than_its_noisy_counts(estimator, sets, factor):
    """Of its table with the coarser one 19 of 20 cells cannot occur: with their noise factors were 1.9, 2.1 and 3.3."""
    groups, errors = {place: f"area {place // 10}" for place in range(200)}, np.zeros(2)
    states = {"place": list(groups), "area": list(dict.fromkeys(groups.values()))}
    schema = dp.Schema(states, rules=[dp.Hierarchy("place", "area", groups)])
    possible = schema.possible(("place", "area"))
    for seed in range(sets):
        places = np.random.default_rng(seed).geometric(0.02, 8000).clip(1, 200) - 1
        frame = pd.DataFrame({"place": places, "area": [groups[place] for place in places]})
        data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(seed))
        release = data.measure([("place", "area")], 0.15)
        counts = np.maximum(np.where(possible, release.tables["place", "area"], 0).sum(axis=1), 0)
        network = dp.PrivateBayesianNetwork([("area", "place")]).fit(release, estimator=estimator)
        truth = np.bincount(places, minlength=200) / 8000
        errors += [np.abs(own - truth).sum() for own in (counts / counts.sum(), network.marginal(["place"]))]
    assert errors[1] < factor * errors[0]


@pytest.fixture(params=[dp.PrivateBayesianNetwork, dp.PrivateMarkovNetwork])
def drawn(request, release):
    network = request.param(EDGES).fit(release, estimator=dp.CollectiveEM())
    network.sample_draws(draws=20)
    return network


def test_bounds_and_records_of_draws_hold_rules(drawn):
    bounds = drawn.query(["boat", "region"], interval=0.9, target="records")
    assert (bounds.loc[("yes", "south")] == 0.0).all()
    assert not any(broken(frame).any() for frame in drawn.simulate(1000, data_sets=3, seed=0))


def test_evidence_that_rules_exclude_is_refused_wherever_the_question_is(drawn):
    elimination, evidence = dp.VariableElimination(drawn), {"place": "Ulm", "boat": "yes"}
    for ask in (
        lambda: drawn.query(["sea"], evidence),
        lambda: drawn.query(["sea"], evidence, interval=0.9),
        lambda: elimination.query(["sea"], evidence, show_progress=False),
        lambda: elimination.map_query(["sea"], evidence, show_progress=False),
        lambda: elimination.max_marginal(["sea"], evidence, show_progress=False),
        lambda: drawn.map_query(["sea"], evidence),
        lambda: drawn.simulate(3, evidence=evidence),
        lambda: drawn.predict(pd.DataFrame([evidence])),
    ):  # pgmpy answers where the answer itself does not depend on the evidence
        with pytest.raises(ValueError, match=r"'place': 'Ulm'.*'boat': 'yes'.*probability zero"):
            ask()


def test_a_structure_that_cannot_hold_a_rule_is_refused_before_the_charge():
    budget = dp.PrivacyBudget(1.0)
    data = dp.PrivateDataset(records(), SCHEMA, budget)
    apart = [("place", "region"), ("region", "sea"), ("boat", "sea")]
    for network in (DiscreteBayesianNetwork(apart), dp.PrivateMarkovNetwork(apart)):
        with pytest.raises(dp.SchemaError, match="rule about 'region', 'boat'"):
            network.fit(data, estimator=dp.CollectiveEM(epsilon=1.0))
    assert budget.spent.epsilon == 0


def test_rules_that_leave_a_node_no_state_are_rules_about_its_parents():
    states = {"a": [0, 1], "b": [0, 1], "c": [0, 1]}
    rules = [dp.Forbidden({"a": 1, "c": 0}), dp.Forbidden({"b": 1, "c": 1})]
    network = DiscreteBayesianNetwork([("a", "c"), ("b", "c"), ("a", "b")])
    scopes = families(network)
    masks = family_masks(scopes, dp.Schema(states, rules=rules))
    generator, joint = np.random.default_rng(0), np.ones((2, 2, 2))
    for scope in scopes:
        table = generator.dirichlet(np.ones(2), [2] * (len(scope) - 1))
        table = ruled_table(np.moveaxis(table, -1, 0), masks.get(scope))
        np.testing.assert_allclose(table.sum(axis=0), 1.0)
        letters = "".join(scope)
        joint = np.einsum(f"abc,{letters}->abc", joint, table)
    assert joint.sum() == pytest.approx(1.0)
    forbidden = np.array([[[bool((a and not c) or (b and c)) for c in (0, 1)] for b in (0, 1)] for a in (0, 1)])
    assert ((joint == 0) == forbidden).all()


def test_several_rules_may_be_about_the_same_variables():
    states = {"a": [0, 1, 2], "b": [0, 1]}
    rules = [dp.Forbidden({"a": 0, "b": 1}), dp.Forbidden({"a": 2, "b": 0})]
    masks = family_masks([("a",), ("b", "a")], dp.Schema(states, rules=rules))
    assert masks[("b", "a")].tolist() == [[True, True, False], [False, True, True]]
    assert ("a",) not in masks


def test_rules_that_no_record_obeys_are_refused_before_the_charge():
    """Of three variables with two states no two can be alike: each pair of them by itself can."""
    variables, edges = ["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")]
    rules = [dp.Forbidden({one: state, other: state}) for one, other in edges for state in (0, 1)]
    schema, budget = dp.Schema({v: [0, 1] for v in variables}, rules=rules), dp.PrivacyBudget(1.0)
    data = dp.PrivateDataset(pd.DataFrame({v: [0, 1] for v in variables}), schema, budget)
    for network in (DiscreteBayesianNetwork(edges), dp.PrivateMarkovNetwork(edges)):
        with pytest.raises(dp.SchemaError, match=r"no state of variable|contradict each other"):
            dp.CollectiveEM(epsilon=1.0).fit(network, data)
    assert budget.spent.epsilon == 0


def test_every_release_of_a_list_is_held_against_the_rules():
    """The first has no place for what the second contradicts."""
    schema = dp.Schema({"a": ["x", "y"], "b": ["x", "y"]}, rules=[dp.Forbidden({"a": ["x"], "b": ["y"]})])
    data = dp.PrivateDataset({("a", "b"): [[400, 300], [100, 200]]}, schema, dp.PrivacyBudget(4.0))
    releases = [data.measure([("a",)], 1.0), data.measure([("a", "b")], 1.0)]
    with pytest.warns(UserWarning, match="contradicts a rule"):
        dp.PosteriorMean(draws=20).fit(dp.PrivateBayesianNetwork([("a", "b")]), releases)
