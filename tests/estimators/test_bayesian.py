"""PrivateMLE, CollectiveEM and AutoMLE on Bayesian networks, as a pgmpy user meets them."""

import numpy as np
import pytest
from pgmpy.inference import VariableElimination
from pgmpy.models import DiscreteBayesianNetwork
from pgmpy.parameter_estimator import DiscreteMLE

import pgmpy_dp as dp
from pgmpy_dp.evaluation import kl_divergence

ESTIMATORS = [dp.PrivateMLE, dp.CollectiveEM, dp.AutoMLE]
DRAWING = [dp.papers.PrivateBayesianEstimator, dp.papers.PosteriorSampler, dp.papers.ExponentialMAP]


def blank(network):
    """The structure of a network, without its CPDs."""
    structure = DiscreteBayesianNetwork(network.edges())
    structure.add_nodes_from(network.nodes())
    return structure


@pytest.fixture
def small(smokers):
    """Schema, records and structure of three variables."""
    return *smokers, [("smoke", "lung"), ("site", "lung")]


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("name", ["asia", "sachs", "child", "alarm"])
def test_drop_in_on_bnlearn_networks(name, estimator, bnlearn, simulate):
    """Fit with raw records, then pgmpy's own elimination, MAP, simulate and predict."""
    truth, records = bnlearn(name), simulate(name, 5000, 1)
    schema = dp.Schema.from_model(truth)
    network = blank(truth).fit(records, estimator=estimator(epsilon=2.0, state_names=schema))
    assert network.check_model()
    assert kl_divergence(truth, network) < {"asia": 0.05, "sachs": 0.2, "child": 0.5, "alarm": 1.5}[name]
    inference = VariableElimination(network)
    last = list(network.nodes())[-1]
    first = next(iter(network.nodes()))
    evidence = {first: schema.states[first][0]}
    assert inference.query([last], evidence=evidence, show_progress=False).values.sum() == pytest.approx(1.0)
    assert inference.map_query([last], evidence=evidence, show_progress=False)[last] in schema.states[last]
    assert set(network.simulate(50, seed=1, show_progress=False).columns) == set(network.nodes())
    predicted = network.predict(records.drop(columns=[last]).head(3), n_jobs=1)
    assert set(predicted[last]) <= set(schema.states[last])


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_approaches_the_noiseless_fit_as_epsilon_grows(estimator, small):
    schema, records, edges = small
    private = DiscreteBayesianNetwork(edges).fit(records, estimator=estimator(epsilon=1e5, state_names=schema))
    exact = DiscreteBayesianNetwork(edges).fit(records, estimator=DiscreteMLE(state_names=schema.state_names))
    for node in exact.nodes():
        np.testing.assert_allclose(private.get_cpds(node).get_values(), exact.get_cpds(node).get_values(), atol=0.01)


def test_the_three_kinds_of_data(small):
    schema, records, edges = small
    budget = dp.PrivacyBudget(1.0)
    data = dp.PrivateDataset(records, schema, budget)
    DiscreteBayesianNetwork(edges).fit(data, estimator=dp.PrivateMLE(epsilon=0.5))
    assert budget.remaining.epsilon == 0.5
    noisy = data.measure([("lung", "site", "smoke")], epsilon=0.5)
    assert budget.remaining.epsilon == 0
    for estimator in (dp.PrivateMLE(), dp.CollectiveEM()):
        network = DiscreteBayesianNetwork(edges).fit(noisy, estimator=estimator)
        assert estimator.release_ is noisy
        assert estimator.guarantee_.epsilon == 0.5
        assert network.get_cpds("lung").state_names == {v: list(schema.states[v]) for v in ("lung", "site", "smoke")}
    with pytest.raises(dp.BudgetExceededError):
        DiscreteBayesianNetwork(edges).fit(data, estimator=dp.PrivateMLE(epsilon=0.1))
    with pytest.raises(ValueError, match="already paid"):
        DiscreteBayesianNetwork(edges).fit(noisy, estimator=dp.PrivateMLE(epsilon=0.1))


def test_every_noise_and_neighbour_relation(small):
    schema, records, edges = small
    exact = DiscreteBayesianNetwork(edges).fit(records, estimator=dp.NotPrivateMLE(state_names=schema))
    for neighbours in ("add_remove", "replace_one"):
        for mechanism, delta in (("laplace", 0.0), ("gaussian", 1e-6)):
            for estimator in ESTIMATORS:
                fitted = estimator(
                    epsilon=5.0, delta=delta, state_names=schema, mechanism=mechanism, neighbours=neighbours
                )
                network = DiscreteBayesianNetwork(edges).fit(records, estimator=fitted)
                assert fitted.guarantee_.neighbours == neighbours
                assert fitted.guarantee_.mechanism == mechanism
                assert kl_divergence(exact, network) < 0.05


def test_collective_fit_uses_any_measured_cliques(small):
    """A family that was not measured follows from the tables that were; PrivateMLE says what is missing."""
    schema, records, edges = small
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(100.0), noise=dp.SimulatedNoise(1))
    noisy = data.measure([("smoke", "lung"), ("site",)], epsilon=50.0)
    network = DiscreteBayesianNetwork(edges).fit(noisy, estimator=dp.CollectiveEM())
    answer = VariableElimination(network).query(["lung"], evidence={"smoke": "yes"}, show_progress=False)
    share = (records[records["smoke"] == "yes"]["lung"] == "yes").mean()
    assert answer.get_value(lung="yes") == pytest.approx(share, abs=0.01)
    with pytest.raises(ValueError, match=r"no table that holds \('lung', 'site', 'smoke'\).*CollectiveEM"):
        DiscreteBayesianNetwork(edges).fit(noisy, estimator=dp.PrivateMLE())
    with pytest.raises(ValueError, match="says nothing of 'site'"):
        DiscreteBayesianNetwork(edges).fit(data.measure([("smoke", "lung")], 1.0), estimator=dp.CollectiveEM())


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_single_node_disconnected_and_dag(estimator, small):
    schema, records, _ = small
    alone = DiscreteBayesianNetwork()
    alone.add_node("site")
    alone.fit(records, estimator=estimator(epsilon=1.0, state_names=schema))
    assert alone.get_cpds("site").get_values().sum() == pytest.approx(1.0)
    apart = DiscreteBayesianNetwork([("smoke", "lung")])
    apart.add_node("site")
    apart.fit(records, estimator=estimator(epsilon=1.0, state_names=schema))
    assert apart.check_model()


@pytest.mark.parametrize("estimator", [*ESTIMATORS, *DRAWING])
def test_bad_input_is_refused_before_anything_is_charged(estimator, small):
    schema, records, edges = small
    network, given = DiscreteBayesianNetwork(edges), {"epsilon": 1.0, "state_names": schema}
    latent = DiscreteBayesianNetwork(edges, latents={"site"})
    some = schema.select(["smoke", "lung"]).state_names
    for fitted, frame, change, more, error, named in (
        (network, records, {"state_names": None}, {}, dp.SchemaError, "declared"),
        (network, records, {"state_names": some}, {}, dp.SchemaError, "'site'"),
        (network, records.drop(columns="site"), {}, {}, dp.SchemaError, "'site'"),
        (network, records, {}, {"sample_weight": [1.0] * 4000}, ValueError, "sample_weight"),
        (latent, records, {}, {}, ValueError, "latent"),
        (network, records, {"epsilon": None}, {}, ValueError, "costs privacy"),
        *(
            (network, records, {"epsilon": wrong}, {}, ValueError, "epsilon")
            for wrong in (0, -1.0, float("nan"), float("inf"), True, "1")
        ),
    ):
        with pytest.raises(error, match=named):
            fitted.fit(frame, estimator=estimator(**given | change), **more)
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(1.0))
    with pytest.raises(dp.SchemaError, match="'other'"):
        DiscreteBayesianNetwork([("smoke", "other")]).fit(data, estimator=estimator(epsilon=1.0))
    assert data.budget.history == ()


def test_exact_counts_are_no_release(small):
    schema, records, edges = small
    counts = dp.exact_marginals(records, schema, [("lung", "site", "smoke")])
    for estimator in ESTIMATORS:
        with pytest.raises(ValueError, match="exact counts"):
            DiscreteBayesianNetwork(edges).fit(counts, estimator=estimator())
    for estimator in (dp.CollectiveEM, dp.papers.NaiveMLE):
        with pytest.raises(ValueError, match="exact counts"):
            dp.PrivateMarkovNetwork(edges).fit(counts, estimator=estimator())


def test_fits_do_not_depend_on_the_order_of_nodes_or_edges(small):
    schema, records, edges = small
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(3))
    noisy = data.measure([("lung", "site", "smoke")], epsilon=1.0)
    one = DiscreteBayesianNetwork(edges).fit(noisy, estimator=dp.CollectiveEM())
    other = DiscreteBayesianNetwork(edges[::-1]).fit(noisy, estimator=dp.CollectiveEM())
    for node in one.nodes():
        np.testing.assert_allclose(one.get_cpds(node).get_values(), other.get_cpds(node).get_values(), atol=1e-6)


def test_a_network_whose_tables_do_not_fit_is_fitted_loopily_and_says_so(small, monkeypatch):
    """The family's factor graph is a tree, on which loopy propagation is exact."""
    schema, records, edges = small
    monkeypatch.setattr("pgmpy_dp.inference.trees.factor_graph.MAX_TABLE_CELLS", 4)
    monkeypatch.setattr("pgmpy_dp.fitting.readings.directed.MAX_TABLE_CELLS", 4)
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(20.0), noise=dp.SimulatedNoise(0))
    network = DiscreteBayesianNetwork(edges)
    with pytest.raises(ValueError, match="table cells"):
        network.fit(data, estimator=dp.CollectiveEM(epsilon=1.0, inference="junction_tree"))
    assert data.budget.spent.epsilon == 0
    with pytest.warns(UserWarning, match="loopy belief propagation"):
        network.fit(data, estimator=dp.CollectiveEM(epsilon=10.0))
    assert network.check_model()
    share = (records.smoke == "yes").mean()
    assert network.get_cpds("smoke").get_value(smoke="yes") == pytest.approx(share, abs=0.01)
    lungs = records[(records.smoke == "yes") & (records.site == 2)].lung
    row = network.get_cpds("lung").get_value(lung="yes", smoke="yes", site=2)
    assert row == pytest.approx((lungs == "yes").mean(), abs=0.03)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_loopy_fits_of_overlapping_tables(small, mechanism):
    """A second, precise table of two variables informs the family's rows."""
    schema, records, edges = small
    structure, exact = DiscreteBayesianNetwork(edges), DiscreteBayesianNetwork(edges)
    exact.fit(records, estimator=DiscreteMLE())
    delta = 0.0 if mechanism == "laplace" else 1e-6
    budget = dp.PrivacyBudget(100.0, delta)
    data = dp.PrivateDataset(records, schema, budget, noise=dp.SimulatedNoise(3))
    cliques = [("lung", "site", "smoke"), ("smoke",), ("site",), ("smoke", "lung")]
    noisy = data.measure(cliques, 2.0, weights=[1.0, 1.0, 1.0, 20.0], mechanism=mechanism, delta=delta)
    structure.fit(noisy, estimator=dp.CollectiveEM(inference="loopy"))
    assert kl_divergence(exact, structure) < 0.02
