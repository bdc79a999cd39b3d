"""AutoMLE reads a release by inference as far as the network explains it, else family by family."""

from dataclasses import replace
from itertools import groupby

import numpy as np
import pandas as pd
import pytest
from pgmpy.inference import VariableElimination
from pgmpy.models import DiscreteBayesianNetwork

import pgmpy_dp as dp
from pgmpy_dp.evaluation import kl_divergence
from pgmpy_dp.fitting.readings.directed import ITERATIONS, fit_releases
from pgmpy_dp.observed.factors import conditional, families, tabular_cpd

pytestmark = pytest.mark.full


def without(truth, share, seed):
    """The structure with a share of its edges taken away."""
    edges = list(truth.edges())
    gone = set(np.random.default_rng(seed).permutation(len(edges))[: round(share * len(edges))].tolist())
    network = DiscreteBayesianNetwork([edge for number, edge in enumerate(edges) if number not in gone])
    network.add_nodes_from(truth.nodes())
    return network


@pytest.fixture
def measured(bnlearn, simulate):
    """Function: name, share of missing edges, epsilon and seed to a structure and its fit to records."""

    def measure(name, share, epsilon, seed=0, mechanism="laplace"):
        truth, delta = bnlearn(name), 1e-6 if mechanism == "gaussian" else 0.0
        structure, schema = without(truth, share, seed), dp.Schema.from_model(truth)
        budget, noise = dp.PrivacyBudget(epsilon, delta), dp.SimulatedNoise(seed)
        data = dp.PrivateDataset(simulate(name, 10_000, seed), schema, budget, noise=noise)
        return structure, dp.AutoMLE(epsilon, delta, mechanism=mechanism).fit(structure, data)

    return measure


def tables(fitted):
    return np.concatenate([cpd.values.ravel() for cpd in fitted.parameters_])


def by_inference(structure, release):
    """The shrunken fit by inference, in the order of `tables`."""
    scopes = families(structure)
    fit = fit_releases([release], scopes, ITERATIONS, "junction_tree")
    shrunk = fit.shrunk()
    return np.concatenate([shrunk[scope].ravel() for scope in scopes])


def by_family(structure, release):
    return tables(dp.PrivateMLE().fit(structure, release))


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize(("share", "reading", "same"), [(0.0, "inference", by_inference), (0.4, "family", by_family)])
def test_a_right_network_is_read_by_inference_and_one_without_edges_by_family(
    measured, share, reading, same, mechanism
):
    for name in ("sachs", "alarm"):
        structure, fitted = measured(name, share, 1.0, 1, mechanism)
        release = fitted.release_
        found = dp.AutoMLE().fit(structure, release)
        assert (found.reading_, found.family_weight_) == (reading, float(reading == "family"))
        assert found.release_ is release
        np.testing.assert_array_equal(tables(found), same(structure, release))


def test_between_them_every_probability_is_averaged():
    """Two tables disagree on their common variable, more and more."""
    schema = dp.Schema({variable: [0, 1] for variable in "abc"})
    records = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (4000, 3)), columns=list("abc"))
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(0.1), noise=dp.SimulatedNoise(1))
    release = data.measure([("a", "b"), ("b", "c")], 0.1)
    chain, moved = DiscreteBayesianNetwork([("a", "b"), ("b", "c")]), np.array([[-1, -1], [1, 1]])
    readings = []
    for records in range(0, 400, 20):
        table = release.tables["b", "c"] + records * moved
        shifted = replace(release, tables={("a", "b"): release.tables["a", "b"], ("b", "c"): table})
        found = dp.AutoMLE().fit(chain, shifted)
        weight = np.clip(found.squared_residual_ - 1.0, 0.0, 1.0)
        inference, family = by_inference(chain, shifted), by_family(chain, shifted)
        np.testing.assert_allclose(tables(found), (1.0 - weight) * inference + weight * family, rtol=1e-12)
        readings.append(found.reading_)
    assert [reading for reading, _ in groupby(readings)] == ["inference", "both", "family"]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.4])
def test_it_is_never_much_worse_than_the_better_reading(measured, bnlearn, share):
    """Divergences from the best network of the structure, over several data sets."""
    for name, epsilon, sets in (("asia", 1.0, 12), ("child", 3.0, 4)):
        excess = []
        for seed in range(sets):
            structure, auto = measured(name, share, epsilon, seed)
            best = DiscreteBayesianNetwork(structure.edges())
            best.add_nodes_from(structure.nodes())
            tree = VariableElimination(bnlearn(name))
            for scope in families(structure):
                table = tree.query(list(scope), show_progress=False)
                axes = [table.variables.index(variable) for variable in scope]
                states = {variable: table.state_names[variable] for variable in scope}
                best.add_cpds(tabular_cpd(scope, conditional(table.values.transpose(axes)), states))
            minimum = kl_divergence(bnlearn(name), best)
            for fit in (auto, *(alone().fit(structure, auto.release_) for alone in (dp.CollectiveEM, dp.PrivateMLE))):
                best.add_cpds(*fit.parameters_)
                excess.append(kl_divergence(bnlearn(name), best) - minimum)
        both, inference, family = np.reshape(excess, (-1, 3)).mean(axis=0)
        assert both < 1.1 * min(inference, family)


def test_it_is_free_repeatable_and_the_default(measured):
    structure, fitted = measured("asia", 0.4, 1.0, 4)
    release = fitted.release_
    first, second = (dp.AutoMLE().fit(structure, release) for _ in range(2))
    np.testing.assert_array_equal(tables(first), tables(second))
    assert first.guarantee_ == release.guarantee
    for options in ({}, {"estimator": None}, {"estimator": "auto"}):
        network = dp.PrivateBayesianNetwork()
        network.add_nodes_from(structure.nodes())
        network.add_edges_from(structure.edges())
        network.fit(release, **options)
        assert network.get_cpds() == first.parameters_
    with pytest.raises(ValueError, match="choose one of None, 'auto'"):
        network.fit(release, estimator="best")


def test_a_network_whose_tree_does_not_fit_in_memory_is_read_by_family(measured, monkeypatch):
    structure, fitted = measured("asia", 0.0, 1.0)
    release = fitted.release_
    assert dp.AutoMLE().fit(structure, release).reading_ == "inference"
    monkeypatch.setattr("pgmpy_dp.inference.trees.factor_graph.MAX_TABLE_CELLS", 4)
    found = dp.AutoMLE().fit(structure, release)
    assert (found.reading_, found.family_weight_) == ("family", 1.0)
    assert np.isnan(found.squared_residual_)
    np.testing.assert_array_equal(tables(found), tables(dp.PrivateMLE().fit(structure, release)))


def test_families_that_were_not_measured_are_refused_and_coefficients_too(simulate):
    schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"], "bronc": ["yes", "no"]})
    data = dp.PrivateDataset(simulate("asia", 1000, 1), schema, dp.PrivacyBudget(2.0))
    collider = DiscreteBayesianNetwork([("smoke", "lung"), ("bronc", "lung")])
    with pytest.raises(ValueError, match=r"no table that holds \('lung', .*CollectiveEM"):
        dp.AutoMLE().fit(collider, data.measure([("smoke", "lung"), ("bronc", "lung")], 1.0))
    with pytest.raises(ValueError, match="fit it with CollectiveEM"):
        dp.AutoMLE().fit(collider, data.measure_coefficients([("smoke", "lung", "bronc")], 1.0))


@pytest.mark.parametrize("tied", [(), [[("a", "b"), ("b", "c")]]], ids=["free", "tied"])
def test_markov_networks_are_fitted_as_by_the_collective_estimator(tied):
    schema = dp.Schema({key: [0, 1] for key in "abc"})
    records = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (1000, 3)), columns=list("abc"))
    edges = [("a", "b"), ("b", "c")]
    plan = dp.AutoMLE(1.0).plan(dp.PrivateMarkovNetwork(edges, tied), schema)
    assert plan.noise == dp.CollectiveEM(1.0).plan(dp.PrivateMarkovNetwork(edges, tied), schema).noise
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(2.0, 1e-6), noise=dp.SimulatedNoise(1))
    releases = [data.measure(edges, 0.5), data.measure(edges, 0.5, delta=1e-6, mechanism="gaussian")]
    for given in (releases, releases[0]):
        fits = [
            dp.PrivateMarkovNetwork(edges, tied).fit(given, *estimator)
            for estimator in ((dp.AutoMLE(),), (dp.CollectiveEM(),), ("auto",), ())
        ]
        for fit in fits[1:]:
            for one, other in zip(fit.factors, fits[0].factors, strict=True):
                np.testing.assert_array_equal(one.values, other.values)
    drawn = dp.AutoMLE(1.0, state_names=schema).fit(dp.PrivateMarkovNetwork(edges, tied), records)
    assert drawn.reading_ == "inference"
    assert drawn.guarantee_.epsilon == 1.0
    with pytest.raises(ValueError, match="choose one of None, 'auto'"):
        fits[0].fit(releases[0], "best")
