"""AutoMLE shrinks what noise hides as far as the rows of a CPD are sparse."""

import numpy as np
import pytest
from pgmpy.models import DiscreteBayesianNetwork

import pgmpy_dp as dp
from pgmpy_dp.evaluation import kl_divergence
from pgmpy_dp.fitting.readings.directed import from_two_tables
from pgmpy_dp.networks.network import simulate
from pgmpy_dp.observed.factors import tabular_cpd

STATES = {"a": list(range(8)), "sparse": list(range(6)), "even": list(range(6))}


@pytest.fixture(scope="module")
def planted():
    """A network with a CPD that is a function of the parent, and one whose rows are nearly uniform."""
    generator = np.random.default_rng(0)
    network = DiscreteBayesianNetwork([("a", "sparse"), ("a", "even")])
    function = np.eye(6)[:, generator.integers(0, 6, 8)]
    network.add_cpds(
        tabular_cpd(("a",), np.full(8, 1 / 8), STATES),
        tabular_cpd(("sparse", "a"), 0.9988 * function + 0.0002, STATES),
        tabular_cpd(("even", "a"), generator.dirichlet(np.full(6, 20.0), 8).T, STATES),
    )
    return network


def fitted(network, seed, mechanism, estimator):
    epsilon, delta = (0.3, 1e-6) if mechanism == "gaussian" else (0.1, 0.0)
    records = simulate(network, 4000, seed)
    budget, noise = dp.PrivacyBudget(epsilon, delta), dp.SimulatedNoise(seed)
    data = dp.PrivateDataset(records, dp.Schema.from_model(network), budget, noise=noise)
    release = data.measure([("sparse", "a"), ("even", "a")], epsilon, delta=delta, mechanism=mechanism)
    found = DiscreteBayesianNetwork(network.edges())
    return found.fit(release, estimator=estimator)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_a_sparse_cpd_is_shrunk_and_an_even_one_is_not(planted, mechanism):
    """Over three data sets: one concentration for all CPDs keeps the mass of the one, or ruins the other."""
    mass, divergence = np.zeros(2), np.zeros((2, 2))
    for seed in range(3):
        for number, estimator in enumerate((dp.CollectiveEM(), dp.AutoMLE())):
            found = fitted(planted, seed, mechanism, estimator)
            impossible = planted.get_cpds("sparse").values < 0.002
            mass[number] += found.get_cpds("sparse").values[impossible].sum()
            for node in ("sparse", "even"):
                truth, own = planted.get_cpds(node).values, found.get_cpds(node).values
                divergence[number, int(node == "even")] += (truth * np.log(truth / own)).sum()
    assert mass[1] < 0.5 * mass[0]
    assert divergence[1, 0] < 0.6 * divergence[0, 0]
    assert divergence[1, 1] < 1.02 * divergence[0, 1]


def test_what_a_parents_state_rules_out_is_learned_for_its_rows(monkeypatch):
    """Each state of one parent leaves two of the child's eight possible."""
    states = {"a": list(range(4)), "b": list(range(12)), "child": list(range(8))}
    rows, generator = np.full((8, 4, 12), 1e-4), np.random.default_rng(0)
    for a in states["a"]:
        rows[generator.permutation(8)[:2], a] += generator.dirichlet([3, 3], 12).T
    network = DiscreteBayesianNetwork([("a", "child"), ("b", "child")])
    network.add_cpds(*[tabular_cpd((v,), np.full(len(states[v]), 1 / len(states[v])), states) for v in "ab"])
    network.add_cpds(tabular_cpd(("child", "a", "b"), rows / rows.sum(axis=0), states))

    def divergence(seed):
        schema, noise = dp.Schema.from_model(network), dp.SimulatedNoise(seed)
        data = dp.PrivateDataset(simulate(network, 4000, seed), schema, dp.PrivacyBudget(0.3), noise=noise)
        found = DiscreteBayesianNetwork(network.edges()).fit(data, estimator=dp.AutoMLE(0.3, check=0))
        return kl_divergence(network, found)

    learned = sum(divergence(seed) for seed in range(3))
    monkeypatch.setattr("pgmpy_dp.fitting.readings.directed._VARIANCE_WEIGHT", 1e9)
    fixed = sum(divergence(seed) for seed in range(3))
    assert learned < 0.8 * fixed


def test_probabilities_are_positive_and_sum_to_one_whatever_the_noise(planted):
    for seed in range(4):
        found = fitted(planted, seed, "laplace", dp.AutoMLE())
        for cpd in found.get_cpds():
            assert (cpd.values > 0).all()
            np.testing.assert_allclose(cpd.values.sum(axis=0), 1.0)
        assert np.isfinite(kl_divergence(planted, found))


def test_two_tables_of_a_family_give_its_rows_and_their_weights():
    table = np.array([[30.0, 5.0], [10.0, 5.0]])
    np.testing.assert_allclose(from_two_tables(table, np.array([60.0, -4.0]), 100.0), [[75.0, 0.0], [25.0, 0.0]])
    np.testing.assert_allclose(from_two_tables(table, np.array([-1.0, -4.0]), 100.0), [[37.5, 25.0], [12.5, 25.0]])
