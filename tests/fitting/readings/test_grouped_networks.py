"""Nodes in groups of states: which are, and CPDs of all states from those over groups and back."""

import numpy as np
import pytest
from pgmpy.base import DAG

import pgmpy_dp as dp
from pgmpy_dp.fitting.plans.groups import numbers_in_families
from pgmpy_dp.fitting.readings.grouped_networks import GroupedNodes, declared_coarser
from pgmpy_dp.inference.grouped import Within
from pgmpy_dp.observed.factors import family, tabular_cpd
from pgmpy_dp.schema import Hierarchy

STATES = [f"s{i}" for i in range(6)]
MERGED = dict(zip(STATES, ["low", "low", "high", "high", "low", "top"], strict=True))
SCHEMA = dp.Schema(
    {"x": STATES, "y": ["p", "q"], "z": [0, 1, 2], "area": ["low", "high", "top"]},
    rules=[Hierarchy("x", "area", MERGED)],
)
EDGES = [("y", "x"), ("x", "z"), ("y", "z")]


def measured(cliques):
    tables = {clique: np.ones(SCHEMA.shape(clique), dtype=np.int64) for clique in cliques}
    return dp.NoisyMarginals(SCHEMA, tables, dict.fromkeys(tables, 20.0), dp.Guarantee.of(1.0))


@pytest.mark.parametrize(
    ("edges", "cliques", "grouped"),
    [
        (EDGES, [("x",), ("area", "y"), ("area", "z", "y")], True),
        (EDGES, [("x", "y"), ("area", "z", "y")], False),  # its own states are in a table with another node
        (EDGES, [("x",), ("y", "z")], False),  # its groups are not
        ([*EDGES, ("area", "x")], [("x",), ("area", "y")], False),  # the groups are a node
        ([("y", "z")], [("x",), ("area", "y")], True),  # a pair that tests the network, which has no edge there
    ],
)
def test_nodes_are_grouped_if_their_groups_were_measured_with_others_and_they_were_not(edges, cliques, grouped):
    network = DAG(edges)
    network.add_node("x")
    nodes = GroupedNodes.of(network, [measured(cliques)])
    assert (nodes is not None) == grouped
    if nodes is not None:
        assert nodes.names(["x", "y"]) == ["area", "y"]
        assert list(nodes.network(network).edges()) == [tuple(nodes.names(edge)) for edge in network.edges()]
        assert "area" in nodes.network(network)


@pytest.fixture
def cpds():
    """A network, its nodes in groups, CPDs over groups, and shares."""
    network = dp.PrivateBayesianNetwork(EDGES)
    nodes = GroupedNodes.of(network, [measured([("x",), ("area", "z", "y")])])
    generator = np.random.default_rng(0)
    coarse = []
    for node in network.nodes():
        scope = tuple(nodes.names(family(network, node)))
        sizes = [SCHEMA.cardinality(name) for name in scope]
        table = np.moveaxis(generator.dirichlet(np.ones(sizes[0]), sizes[1:]), -1, 0)
        coarse.append(tabular_cpd(scope, table, SCHEMA.states))
    _, groups = nodes.groups["x"]
    shares = generator.random(groups.size)
    return network, nodes, coarse, {"x": Within("area", groups, shares / np.bincount(groups, shares)[groups])}


def test_cpds_of_states_follow_those_of_groups(cpds):
    network, nodes, coarse, within = cpds
    fine = {cpd.variable: cpd for cpd in nodes.spread(network, coarse, within)}
    by_name = {cpd.variable: cpd for cpd in coarse}
    for x, area in MERGED.items():
        share = within["x"].shares[STATES.index(x)]
        for y in ("p", "q"):
            expected = by_name["area"].get_value(area=area, y=y) * share
            assert fine["x"].get_value(x=x, y=y) == pytest.approx(expected, rel=1e-12)
            assert fine["z"].get_value(z=1, x=x, y=y) == by_name["z"].get_value(z=1, area=area, y=y)


def test_what_lies_behind_cpds_is_recovered_from_them_in_any_order_of_states(cpds):
    network, nodes, coarse, within = cpds
    network.add_cpds(*nodes.spread(network, coarse, within))
    turned = nodes.in_order({"x": STATES[::-1]})
    for own, order in ((nodes, STATES), (turned, STATES[::-1])):
        found, shares = own.recovered(network)
        tables = {cpd.variable: cpd for cpd in found}
        for cpd in coarse:
            assert tables[cpd.variable].variables == cpd.variables
            np.testing.assert_allclose(tables[cpd.variable].values, cpd.values, atol=1e-12)
        by_state = dict(zip(order, shares["x"].shares, strict=True))
        np.testing.assert_allclose([by_state[state] for state in STATES], within["x"].shares, atol=1e-12)


@pytest.mark.parametrize("node", ["x", "z"])
def test_other_cpds_are_not_taken_for_grouped_ones(cpds, node):
    network, nodes, coarse, within = cpds
    network.add_cpds(*nodes.spread(network, coarse, within))
    cpd = network.get_cpds(node).copy()
    cpd.values[:, 0] = np.roll(cpd.values[:, 0], 1, axis=0)  # for one state of the first parent
    network.add_cpds(cpd)
    assert nodes.recovered(network) is None


def test_declared_hierarchies_stand_for_nodes_of_many_states_alone():
    many = [f"t{i}" for i in range(101)]
    merged = {state: "even" if i % 2 == 0 else "odd" for i, state in enumerate(many)}
    schema = SCHEMA.replace(
        variables={**SCHEMA.declared, "t": many, "kind": ["even", "odd"]},
        rules=(*SCHEMA.rules, Hierarchy("t", "kind", merged)),
    )
    network = DAG([("x", "t"), ("y", "t")])
    assert declared_coarser(network, schema, network.nodes()) == {"t": "kind"}
    assert declared_coarser(network, schema, ["x", "y"]) == {}
    network = DAG([("kind", "t"), ("y", "t")])
    assert declared_coarser(network, schema, network.nodes()) == {}


def test_groups_are_more_with_less_noise_and_fewer_with_more_others():
    schema = dp.Schema({"f": list(range(400)), "g": list(range(300)), "a": list(range(20)), "b": [0, 1]})

    def numbers(families, units):
        return numbers_in_families(schema, families, lambda share: 10.0 / share**0.5, units)

    by_units = [numbers([("f", "a")], units).get("f") for units in (100, 40_000, 100_000, 10**8)]
    assert by_units[0] == 8
    assert 8 < by_units[1] < by_units[2] <= 100
    assert by_units[3] is None  # as it is
    assert numbers([("f", "a")], 4_000)["f"] < numbers([("f", "b")], 4_000)["f"]
    assert set(numbers([("f", "g"), ("g", "b")], 40_000)) == {"f", "g"}
    assert numbers([("f",), ("a", "b")], 100) == {}  # none is with others
    assert numbers([("f", "a")], None) == {}  # before the number of records is known
