"""Guarantees follow the parameters of a network, and bounds the network that was fitted, whatever method changes it."""

import copy
import inspect
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from pgmpy.factors.discrete import DiscreteFactor, TabularCPD
from pgmpy.inference import BeliefPropagation

import pgmpy_dp as dp

STATES = {variable: ["x", "y"] for variable in "abc"}
EDGES = [("a", "b"), ("b", "c")]


@pytest.fixture(scope="module")
def release():
    codes = np.random.default_rng(0).integers(0, 2, (300, 3))
    frame = pd.DataFrame(np.array(["x", "y"])[codes], columns=list(STATES))
    # With private noise a right network fails its test of fit once in a hundred runs.
    data = dp.PrivateDataset(frame, dp.Schema(STATES), dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(0))
    return data.measure(EDGES, epsilon=1.0)


@pytest.fixture(scope="module")
def bayesian(release):
    return dp.PrivateBayesianNetwork(EDGES).fit(release)


@pytest.fixture(scope="module")
def markov(release):
    return dp.PrivateMarkovNetwork(EDGES).fit(release)


def cpd():
    return TabularCPD("a", 2, [[0.1], [0.9]], state_names={"a": ["x", "y"]})


def factor(variables):
    return DiscreteFactor(
        list(variables), [2] * len(variables), np.ones(2 ** len(variables)), {v: STATES[v] for v in variables}
    )


# What becomes of a fitted network's guarantee and release. Structure is public, and taking a table away or summing it
# up leaves what follows from the release; foreign tables do not follow. Every change takes the release away.
BOTH, GUARANTEE, NEITHER = (True, True), (True, False), (False, False)
GRAPH = {
    "add_edge": (lambda n: n.add_edge("a", "c"), GUARANTEE),
    "add_edges_from": (lambda n: n.add_edges_from([("a", "c")]), GUARANTEE),
    "add_node": (lambda n: n.add_node("d"), GUARANTEE),
    "add_nodes_from": (lambda n: n.add_nodes_from(["a", "d"]), GUARANTEE),
    "add_weighted_edges_from": (lambda n: n.add_weighted_edges_from([("a", "c", 1.0)]), GUARANTEE),
    "clear": (lambda n: n.clear(), GUARANTEE),
    "clear_edges": (lambda n: n.clear_edges(), GUARANTEE),
    "remove_edge": (lambda n: n.remove_edge("a", "b"), GUARANTEE),
    "remove_edges_from": (lambda n: n.remove_edges_from([("a", "b")]), GUARANTEE),
    "remove_node": (lambda n: n.remove_node("a"), GUARANTEE),
    "remove_nodes_from": (lambda n: n.remove_nodes_from(["a"]), GUARANTEE),
    "update": (lambda n: n.update(edges=[("a", "c")]), GUARANTEE),
}
DECIDED = {
    dp.PrivateBayesianNetwork: {
        **GRAPH,
        "add_cpds": (lambda n: n.add_cpds(cpd()), NEITHER),
        "do": (lambda n: n.do(["b"], inplace=True), GUARANTEE),
        "fit": (lambda n: n.fit(n.release_), BOTH),
        "fit_update": (None, BOTH),
        "get_random_cpds": (lambda n: n.get_random_cpds(2, inplace=True), NEITHER),
        "remove_cpds": (lambda n: n.remove_cpds("a"), GUARANTEE),
        "with_role": (lambda n: n.with_role("exposures", ["a"], inplace=True), BOTH),
        "without_role": (lambda n: n.without_role("exposures", inplace=True), BOTH),
    },
    dp.PrivateMarkovNetwork: {
        **GRAPH,
        "add_factors": (lambda n: n.add_factors(factor("a")), NEITHER),
        "fit": (lambda n: n.fit(n.release_), BOTH),
        "remove_factors": (lambda n: n.remove_factors(n.get_factors()[0]), GUARANTEE),
        "set_factors": (lambda n: n.set_factors([factor("ab"), factor("bc")]), NEITHER),
        "triangulate": (lambda n: n.triangulate(inplace=True), BOTH),
    },
}
CASES = [(kind, name) for kind, methods in DECIDED.items() for name in methods]


@pytest.mark.parametrize("kind", DECIDED)
def test_every_method_that_changes_a_network_is_decided(kind):
    def changes(name):
        method = getattr(kind, name)
        return inspect.isfunction(method) and (
            name.startswith(("add_", "remove_", "set_", "clear", "update", "fit"))
            or "inplace" in inspect.signature(method).parameters
        )

    assert {name for name in dir(kind) if changes(name)} == set(DECIDED[kind])


@pytest.mark.parametrize(("kind", "name"), CASES, ids=[f"{kind.__name__}.{name}" for kind, name in CASES])
def test_guarantee_and_release_after_a_change(kind, name, bayesian, markov):
    """A warning says so where the guarantee goes, and nothing is said elsewhere; copies agree."""
    change, outcome = DECIDED[kind][name]
    network = (bayesian if kind is dp.PrivateBayesianNetwork else markov).copy()
    if change is None:  # refused, as tests/audit/test_public_records.py has it
        return
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        change(network)
    assert [w.category for w in said if "no guarantee any more" in str(w.message)] == [UserWarning] * (not outcome[0])
    copies = [network.copy()] if network.nodes() else []  # pgmpy leaves CPDs of nodes that it cleared
    for same in (network, *copies, copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
        assert (hasattr(same, "guarantee_"), hasattr(same, "release_")) == outcome
    if not outcome[1]:
        with pytest.raises(ValueError, match=r"changed since|not fitted"):
            network.sample_draws()


@pytest.mark.parametrize("kind", ["bayesian", "markov"])
def test_tables_changed_in_place_have_no_guarantee(kind, request):
    network = request.getfixturevalue(kind).copy()
    (network.get_cpds() if kind == "bayesian" else network.get_factors())[0].values[:] = 0.5
    with pytest.warns(UserWarning, match="no guarantee any more"):
        assert not hasattr(network, "guarantee_")
    assert not hasattr(network, "release_")


def test_the_fitted_parameters_put_back_keep_everything(bayesian):
    network = bayesian.copy()
    network.sample_draws(20)
    kept = network.get_cpds("a").copy()
    network.remove_cpds("a")
    network.add_cpds(kept)
    assert network.guarantee_ == bayesian.guarantee_
    assert network.release_ == bayesian.release_


def test_no_bounds_are_those_of_another_network(bayesian):
    """Draws of the fitted network are no draws of what intervention leaves of it."""
    network = bayesian.copy()
    network.sample_draws(20)
    cut = network.do(["c"])
    assert cut.guarantee_ == network.guarantee_
    with pytest.raises(ValueError, match="changed since"):
        cut.query(["c"], interval=0.9)
    assert len(network.query(["c"], interval=0.9)) == 2
    network.remove_cpds("a")
    with pytest.raises(ValueError, match="not fitted"):
        _ = network.draws_


@pytest.mark.filterwarnings("error::UserWarning")
def test_simulation_under_intervention_leaves_the_promise_alone(bayesian):
    network = bayesian.copy()
    network.simulate(5, seed=0, virtual_evidence=[cpd()])
    assert network.guarantee_ == bayesian.guarantee_


def test_a_fit_that_fails_leaves_the_earlier_one(bayesian, release):
    network = bayesian.copy()
    with pytest.raises(ValueError, match="already paid"):
        network.fit(release, estimator=dp.PrivateMLE(epsilon=1.0))
    assert network.guarantee_ == bayesian.guarantee_
    assert network.release_ == bayesian.release_


@pytest.mark.parametrize("kind", [dp.PrivateBayesianNetwork, dp.PrivateMarkovNetwork])
def test_a_text_is_no_edge(kind):
    for text in ("ab", "age-sex", "a -> b"):
        with pytest.raises(dp.SchemaError, match=r"pair of names, such as \('age', 'sex'\), got the text"):
            kind([("a", "b"), text])
        with pytest.raises(dp.SchemaError, match="pair of names"):
            kind().add_edges_from(iter([text]))
    assert set(kind(iter(EDGES)).edges()) == set(EDGES)


def fit_by_pgmpy(kind):
    from pgmpy.parameter_estimator import DiscreteMLE

    network = kind([("a", "b")])
    with pytest.warns(UserWarning, match="NOT PRIVATE: DiscreteMLE gives no privacy guarantee") as caught:
        network.fit(pd.DataFrame({"a": ["x", "y"] * 5, "b": ["u", "v", "v", "v", "u"] * 2}), estimator=DiscreteMLE())
    assert len([each for each in caught if "NOT PRIVATE" in str(each.message)]) == 1
    return network


@pytest.mark.parametrize("end", ["json", "bif", "xmlbif"])
def test_parameters_that_promise_nothing_say_so_wherever_they_are_shown(end, tmp_path):
    network = fit_by_pgmpy(dp.PrivateBayesianNetwork)
    assert (network.guarantee_.mechanism, network.guarantee_.private) == ("none", False)
    for shown in (repr(network), network._repr_html_(), repr(network.copy()), repr(network.do(["b"]))):
        assert "NOT PRIVATE: exact counts" in shown
    path = tmp_path / f"network.{end}"
    network.save(path)
    assert "NOT PRIVATE: exact counts" in path.read_text()
    back = dp.PrivateBayesianNetwork.load(path)
    assert back.get_cpds("b") == network.get_cpds("b")
    assert "NOT PRIVATE: exact counts" in repr(back)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once; and what promises nothing loses nothing
        network.add_cpds(network.get_cpds("a").copy())
        network.get_cpds("a").values = np.array([0.5, 0.5])
        assert not network.guarantee_.private


def test_a_fit_that_says_so_by_its_name_does_not_warn():
    records, states = pd.DataFrame({"a": ["x", "y"] * 5, "b": ["u", "v"] * 5}), {"a": ["x", "y"], "b": ["u", "v"]}
    for kind in (dp.PrivateBayesianNetwork, dp.PrivateMarkovNetwork):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            network = kind([("a", "b")]).fit(records, estimator=dp.NotPrivateMLE(state_names=states))
        assert "NOT PRIVATE: exact counts" in repr(network)
        assert "no guarantee: it is not fitted" in repr(kind([("a", "b")]))


@pytest.mark.parametrize(
    ("kind", "change", "named"),
    [
        ("bayesian", lambda n: n.add_edge("a", "c"), r"a CPD of 'c' given \['b'\], whose parents are \['a', 'b'\]"),
        ("bayesian", lambda n: n.remove_edge("a", "b"), r"a CPD of 'b' given \['a'\], whose parents are \[\]"),
        ("bayesian", lambda n: n.remove_cpds("a"), "no CPD of 'a'"),
        ("bayesian", lambda n: n.add_node("d"), "no CPD of 'd'"),
        ("markov", lambda n: n.remove_edge("a", "b"), r"a factor of \('a', 'b'\), and no edge"),
    ],
)
def test_a_changed_network_refuses_to_answer_and_names_the_table(kind, change, named, request):
    """It answered by tables that are not those of its structure."""
    network = request.getfixturevalue(kind).copy()
    change(network)
    assert network.guarantee_ == request.getfixturevalue(kind).guarantee_
    for ask in (
        lambda: network.query(["b"]),
        lambda: network.simulate(3),
        lambda: network.predict(pd.DataFrame({"a": ["x"]})),
        lambda: network.map_query(),
    ):
        with pytest.raises(ValueError, match=named):
            ask()


@pytest.mark.parametrize("kind", [dp.PrivateBayesianNetwork, dp.PrivateMarkovNetwork])
@pytest.mark.parametrize("edges", [[("a", "b")], []])
def test_pgmpys_belief_propagation_answers_on_several_components(kind, edges, release):
    """pgmpy builds no junction tree of such a network: "No sepset found"."""
    network = kind(edges)
    network.add_nodes_from("abc")
    network.fit(release)
    for evidence in ({"b": "x"}, {"c": "y"}):
        answer = BeliefPropagation(network).query(["a"], evidence, show_progress=False)
        np.testing.assert_allclose(answer.values, network.query(["a"], evidence).values, atol=1e-9)
