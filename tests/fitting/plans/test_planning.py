"""What is measured, and the solver of the table fit."""

from itertools import combinations, pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import pgmpy_dp as dp
from pgmpy_dp.fitting.plans.planning import _GROWTH, _grown, merged_cliques, shares
from pgmpy_dp.fitting.readings.directed import explain_tables
from pgmpy_dp.inference import GaussianNoise, LaplaceNoise, Layout, SmoothedLaplaceNoise
from pgmpy_dp.observed.factors import families, maximal


@pytest.mark.parametrize("name", ["asia", "child", "alarm", "insurance"])
def test_merged_cliques_cover_all_families_at_less_noise(name, bnlearn):
    network = bnlearn(name)
    schema, scopes = dp.Schema.from_model(network), families(network)
    merged = merged_cliques(schema, scopes)
    assert all(any(set(scope) <= set(clique) for clique in merged) for scope in scopes)
    assert sum(shares(schema, merged)) < sum(shares(schema, maximal(scopes)))
    assert merged == merged_cliques(schema, scopes)


def test_merging_is_confined_when_the_junction_tree_would_grow():
    """Unions around a long cycle of large variables would blow up the tree; families are covered all the same."""
    names = [f"v{i}" for i in range(8)]
    schema = dp.Schema(dict.fromkeys(names, range(12)))
    scopes = [(a, b) for a, b in zip(names, names[1:] + names[:1], strict=True)]
    assert set(merged_cliques(schema, scopes)) == set(scopes)


def test_square_root_shares_minimise_the_expected_absolute_noise():
    """Total expected |noise| is about sum of cells / share; perturbed shares only raise it."""
    schema = dp.Schema({"a": range(2), "b": range(5), "c": range(9)})
    cliques = [("a",), ("a", "b"), ("b", "c")]
    cells = np.array([schema.cells(clique) for clique in cliques])

    def noise(weights):
        return (cells / (weights / weights.sum())).sum()

    best = np.array(shares(schema, cliques))
    for change in np.random.default_rng(0).normal(scale=0.1, size=(50, 3)):
        assert noise(best) <= noise(best * np.exp(change)) + 1e-9


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([LaplaceNoise, GaussianNoise]), st.floats(0.5, 500.0))
def test_table_fit_meets_its_optimality_conditions(seed, law, scale):
    """Sums are right and no mass can be moved between two cells of a table to advantage."""
    generator = np.random.default_rng(seed)
    layout = Layout.of({"a": 3, "b": 4}, [("a", "b"), ("b",)])
    total = 1000.0
    truth = np.concatenate([generator.dirichlet(np.ones(12) * 0.3), generator.dirichlet(np.ones(4))]) * total
    observed = np.round(truth + generator.laplace(scale=scale, size=16))
    noisy = layout.split(observed)
    found = explain_tables([law(table, 2 * scale**2) for table in noisy], [1 / 3, 1 / 4], total)
    for table, seen in zip(found, noisy, strict=True):
        assert table.shape == seen.shape
        assert (table > 0).all()
        assert (np.diff(table.ravel()[np.argsort(seen, axis=None)]) >= -1e-6).all()
        assert table.sum() == pytest.approx(total, rel=1e-6)


def test_table_fit_is_the_constrained_optimum():
    """Against a general optimiser, on the objective whose sampling variance the last round used."""
    generator = np.random.default_rng(1)
    observed, scale, total = np.array([400.0, 250.0, -30.0, 12.0, 300.0]), 25.0, 950.0
    pseudo = np.full(5, 0.2)
    (counts,) = explain_tables([LaplaceNoise(observed, 2 * scale**2)], [0.2], total)
    noise = SmoothedLaplaceNoise(
        observed, np.full(5, scale), np.sqrt(scale**2 + np.maximum(counts * (1 - counts / total), 0.25))
    )

    def loss(logits):
        values = total * np.exp(logits - np.logaddexp.reduce(logits))
        return -noise.log_density(values) - pseudo @ np.log(values)

    best = minimize(loss, np.log(counts) + generator.normal(size=5) * 0.1, method="Nelder-Mead",
                    options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 20000, "maxfev": 20000})  # fmt: skip
    np.testing.assert_allclose(total * np.exp(best.x - np.logaddexp.reduce(best.x)), counts, rtol=0.02, atol=0.2)


def test_hundreds_of_children_of_one_parent_are_planned():
    names = [f"v{i}" for i in range(400)]
    tables = merged_cliques(dp.Schema(dict.fromkeys(names, range(2))), [("v0",), *((name, "v0") for name in names[1:])])
    assert all(any({name, "v0"} <= set(table) for table in tables) for name in names)


def test_a_million_cells_are_fitted():
    generator = np.random.default_rng(0)
    counts = generator.multinomial(10**6, generator.dirichlet(np.full(2**20, 0.1)))
    observed = np.round(counts + generator.laplace(scale=30.0, size=counts.size)).reshape((2,) * 20)
    (table,) = explain_tables([LaplaceNoise(observed, 1800.0)], [0.5], 1e6)
    assert table.shape == observed.shape
    assert table.sum() == pytest.approx(1e6)


@pytest.mark.parametrize("name", ["asia", "sachs", "alarm"])
def test_a_share_of_the_budget_tests_the_network(name, bnlearn):
    """The share goes to tables outside the families; of few variables, every pair can be compared."""
    network = bnlearn(name)
    schema = dp.Schema.from_model(network)
    plain, own = dp.plan_measurements(network, schema, check=0)
    cliques, weights = dp.plan_measurements(network, schema, check=0.2, mechanism="gaussian")
    assert cliques[: len(plain)] == plain
    assert sum(weights[len(plain) :]) == pytest.approx(0.2 * sum(weights))
    np.testing.assert_allclose(weights[: len(plain)], own)
    added = {frozenset(pair) for clique in cliques[len(plain) :] for pair in combinations(clique, 2)}
    assert added - {frozenset(pair) for clique in plain for pair in combinations(clique, 2)}
    joined = {frozenset(pair) for scope in families(network) for pair in combinations(scope, 2)}
    if name == "asia":
        held = added | {frozenset(pair) for clique in plain for pair in combinations(clique, 2)}
        assert len(held) == 8 * 7 // 2
    else:  # what tests the network says nothing of a family, and is not larger than need be
        assert not added & joined
        noise = sum(schema.cells(clique) ** 0.5 for clique in cliques[len(plain) :])
        assert noise < 0.75 * sum(schema.cells(tuple(pair)) ** 0.5 for pair in added)
    for wrong in (-0.1, 1.0, True):
        with pytest.raises(ValueError, match="check must be"):
            dp.plan_measurements(network, schema, check=wrong)
    with pytest.raises(ValueError, match="mechanism is 'normal'; choose one of 'laplace', "):
        dp.plan_measurements(network, schema, mechanism="normal")
    with pytest.raises(TypeError, match="a network and a schema, in this order, got Schema and "):
        dp.plan_measurements(schema, network)


@pytest.mark.parametrize("name", ["asia", "child", "alarm", "insurance"])
def test_pairs_are_measured_by_default_and_laplace_noise_does_not_drown_them(name, bnlearn):
    """A table of c cells has Laplace noise in proportion to 1 / its share, and Gaussian noise to the root of that."""
    network = bnlearn(name)
    schema = dp.Schema.from_model(network)
    _, own = dp.plan_measurements(network, schema, check=0)
    joined = {frozenset(pair) for scope in families(network) for pair in combinations(scope, 2)}
    found = {}
    for mechanism, power in (("laplace", 1.0), ("gaussian", 0.5), ("gaussian_block", 0.5)):
        cliques, weights = dp.plan_measurements(network, schema, mechanism=mechanism)
        assert sum(weights[len(own) :]) == pytest.approx(0.15 * sum(weights))
        noise = np.array(weights) ** -power * np.array([schema.cells(clique) for clique in cliques]) ** (power / 2)
        outside = {frozenset(pair) for clique in cliques[len(own) :] for pair in combinations(clique, 2)} - joined
        assert len(outside) >= 3
        assert noise[len(own) :].max() <= 6.0 * noise[: len(own)].min() or len(cliques) - len(own) <= 3
        found[mechanism] = cliques[len(own) :]
    assert (
        found["laplace"]
        == found["gaussian"][: len(found["laplace"])]
        == found["gaussian_block"][: len(found["laplace"])]
    )
    assert (len(found["laplace"]) < len(found["gaussian"])) == (name != "insurance")  # its families are large


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(2, 5), min_size=6, max_size=6), st.lists(st.integers(0, 2), min_size=15, max_size=15))
def test_a_grown_table_stands_for_the_most_pairs_for_its_size(sizes, kinds):
    """Each pair of variables is left, joined by an edge, or neither. No other variable raises the ratio."""
    schema = dp.Schema(dict(zip("abcdef", map(range, sizes), strict=True)))
    left, neighbours = nx.Graph(), nx.Graph()
    for graph, wanted in ((left, 1), (neighbours, 2)):
        graph.add_nodes_from("abcdef")
        pairs = combinations("abcdef", 2)
        graph.add_edges_from(pair for pair, kind in zip(pairs, [1, *kinds[1:]], strict=True) if kind == wanted)

    def ratio(table):
        return left.subgraph(table).size() / schema.cells(tuple(table)) ** 0.5

    found, table = _grown(("a", "b"), left, neighbours, schema)
    assert found == pytest.approx(ratio(table))
    assert neighbours.subgraph(table).size() == 0
    for more in set("abcdef") - set(table):
        larger = (*table, more)
        covered = sum(map(schema.cells, left.subgraph(larger).edges()))
        allowed = left.subgraph(larger).degree(more) > 0 and neighbours.subgraph(larger).size() == 0
        assert not allowed or schema.cells(larger) > _GROWTH * covered or ratio(larger) <= found + 1e-8


def test_what_nothing_joins_is_measured_together():
    """A variable without edges may belong anywhere: its pairs come first."""
    names = [f"v{i}" for i in range(30)]
    schema = dp.Schema(dict.fromkeys(names, range(2)))
    network = dp.PrivateBayesianNetwork(list(pairwise(names[:-1])))
    network.add_node("v29")
    cliques, _ = dp.plan_measurements(network, schema, check=0.1, mechanism="gaussian")
    assert {v for clique in cliques if "v29" in clique for v in clique} == set(names)


def test_no_pair_tests_what_a_hierarchy_declares():
    """Beyond its coarser variable, if the network has that too, the finer one says nothing of others."""
    groups = {place: f"area {place // 50}" for place in range(200)}
    states = {"place": list(groups), "area": sorted(set(groups.values())), "a": [0, 1], "b": [0, 1]}
    schema = dp.Schema(states, rules=[dp.Hierarchy("place", "area", groups, column=False)])
    network = dp.PrivateBayesianNetwork([("area", "place"), ("area", "a"), ("a", "b")])
    pairs = {frozenset(pair) for clique in dp.plan_measurements(network, schema)[0] for pair in combinations(clique, 2)}
    assert frozenset({"area", "b"}) in pairs
    assert not pairs & {frozenset({"place", "a"}), frozenset({"place", "b"})}
    network = dp.PrivateBayesianNetwork([("place", "a"), ("a", "b")])  # without it, it is a variable like any other
    pairs = {frozenset(pair) for clique in dp.plan_measurements(network, schema)[0] for pair in combinations(clique, 2)}
    assert frozenset({"place", "b"}) in pairs
