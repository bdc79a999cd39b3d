"""`dp.VariableElimination` gives conditional distributions on every model, where pgmpy's does not normalise."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pgmpy.factors.discrete import DiscreteFactor, TabularCPD
from pgmpy.inference import BeliefPropagation
from pgmpy.inference import VariableElimination as Elimination
from pgmpy.models import DiscreteMarkovNetwork

import pgmpy_dp as dp

QUIET = {"show_progress": False}
STATES = {variable: [f"{variable}{number}" for number in range(3)] for variable in "abcd"}
CIRCLE = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]


def random_network(kind, seed):
    draw = np.random.default_rng(seed)
    if kind == "markov":
        network = dp.PrivateMarkovNetwork(CIRCLE)
        factors = [DiscreteFactor(e, [3, 3], draw.random(9), {v: STATES[v] for v in e}) for e in network.edges()]
        network.set_factors(factors)
        return network
    network = dp.PrivateBayesianNetwork([("a", "b"), ("b", "d"), ("a", "c"), ("c", "d")])
    for node in network.nodes():
        parents = network.get_parents(node)
        table = draw.dirichlet(np.ones(3), 3 ** len(parents)).T
        states = {v: STATES[v] for v in (node, *parents)}
        network.add_cpds(TabularCPD(node, 3, table, parents, [3] * len(parents), states))
    return network


def joint(network):
    """Table of all variables, in alphabetical order, by multiplication."""
    table = np.ones((3,) * 4)
    for factor in network.get_cpds() if hasattr(network, "get_cpds") else network.get_factors():
        axes = ["abcd".index(v) for v in factor.variables]
        table = table * np.einsum(factor.values, axes, sorted(axes)).reshape([3 if i in axes else 1 for i in range(4)])
    return table


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(["bayesian", "markov"]), st.integers(0, 2**32), st.sampled_from(["greedy", "MinFill", None]))
def test_answers_are_conditional_distributions(kind, seed, order):
    network = random_network(kind, seed)
    elimination, given_a = dp.VariableElimination(network), joint(network)[1]
    given_a = given_a / given_a.sum()
    answer = elimination.query(["b", "d"], {"a": "a1"}, elimination_order=order, **QUIET)
    for b, d in product(range(3), range(3)):
        assert answer.get_value(b=f"b{b}", d=f"d{d}") == pytest.approx(given_a[b, :, d].sum())
    single = elimination.query(["b", "d"], {"a": "a1"}, elimination_order=order, joint=False, **QUIET)
    assert single["d"].values == pytest.approx(given_a.sum(axis=(0, 1)))
    best = [f"{v}{place}" for v, place in zip("bcd", np.unravel_index(given_a.argmax(), (3, 3, 3)), strict=True)]
    assert elimination.map_query(None, {"a": "a1"}, None, order, **QUIET) == dict(zip("bcd", best, strict=True))
    assert elimination.max_marginal(None, {"a": "a1"}, **QUIET) == pytest.approx(given_a.max())


@pytest.mark.parametrize("kind", ["bayesian", "markov"])
def test_virtual_evidence_counts_in_the_states_own_order(kind):
    network = random_network(kind, 5)
    weights = np.array([0.2, 0.9, 0.4])
    virtual = [TabularCPD("d", 3, weights[::-1, None], state_names={"d": STATES["d"][::-1]})]
    expected = (joint(network)[0] * weights).sum(axis=(1, 2))
    elimination = dp.VariableElimination(network)
    for _ in range(2):  # the network stays as it was
        found = elimination.query(["b"], {"a": "a0"}, virtual, **QUIET)
        assert found.values == pytest.approx(expected / expected.sum())
    assert list(elimination.model.nodes()) == list(network.nodes())
    state = elimination.map_query(["b"], {"a": "a0"}, virtual, **QUIET)
    assert state == {"b": f"b{expected.argmax()}"}
    with pytest.raises(dp.SchemaError, match="'d'"):
        elimination.query(["b"], {}, [TabularCPD("d", 3, weights[:, None])], **QUIET)


@pytest.fixture(scope="module")
def fitted():
    draw = np.random.default_rng(0)
    age = draw.uniform(0, 65, 3000)
    records = pd.DataFrame({"age": age, "smoke": np.where(draw.random(3000) < age / 90, "yes", "no")})
    schema = dp.Schema({"age": dp.Bins([0, 18, 40, 65]), "smoke": ["yes", "no"]})
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(50.0), noise=dp.SimulatedNoise(0))
    release = data.measure([("age", "smoke")], 50.0)
    return {
        "bayesian": dp.PrivateBayesianNetwork([("age", "smoke")]).fit(release),
        "markov": dp.PrivateMarkovNetwork([("age", "smoke")]).fit(release),
        "mixture": dp.PairwiseMixture(members=1).fit(release).network_,
    }


@pytest.mark.parametrize("kind", ["bayesian", "markov", "mixture"])
def test_evidence_is_read_as_query_reads_it(fitted, kind):
    model = fitted[kind]
    elimination = dp.VariableElimination(model)
    expected = model.query(["smoke"], {"age": "40_to_65"})
    for age in (50, "40_to_65", "64"):
        assert elimination.query(["smoke"], {"age": age}, **QUIET).values == pytest.approx(expected.values)
        assert elimination.map_query(None, {"age": age}, **QUIET) == model.map_query(["smoke"], {"age": age})
    for wrong in ({"smoke": 1}, {"age": 66}, {"age": "old"}):
        with pytest.raises(dp.SchemaError, match="has no state"):
            elimination.query(["age" if "smoke" in wrong else "smoke"], wrong, **QUIET)
    with pytest.raises(dp.SchemaError, match="both asked for and given"):
        elimination.query(["age"], {"age": 50}, **QUIET)
    network = model.to_bayesian_network() if kind == "mixture" else model
    found = BeliefPropagation(network).query(["smoke"], {"age": "40_to_65"}, **QUIET)
    assert found.values == pytest.approx(expected.values)


def test_impossible_evidence_is_refused():
    network = DiscreteMarkovNetwork([("a", "b")])
    network.add_factors(DiscreteFactor(["a", "b"], [2, 2], [0.5, 0.5, 0.0, 0.0]))
    for ask in ("query", "map_query", "max_marginal"):
        with pytest.raises(ValueError, match="probability zero"):
            getattr(dp.VariableElimination(network), ask)(["b"], {"a": 1}, **QUIET)
    with pytest.raises(TypeError, match="got str"):
        dp.VariableElimination("network")


def test_pgmpys_own_does_not_normalise_on_markov_networks():
    """Once this fails, the sentence in docs/guides/analyst.md can go."""
    network = random_network("markov", 1)
    assert Elimination(network).query(["b"], {"a": "a0"}, **QUIET).values.sum() != pytest.approx(1.0)
