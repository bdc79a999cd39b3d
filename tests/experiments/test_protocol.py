"""The graphs of the papers' experiments."""

import networkx as nx
import pytest

from experiments.protocol import erdos_renyi, third_order_chain


def test_random_graphs_are_connected_and_repeat_by_seed():
    for seed in range(20):
        graph = nx.Graph(erdos_renyi(8, 0.2, seed))
        assert set(graph) == {f"x{number}" for number in range(8)}
        assert nx.is_connected(graph)
    assert erdos_renyi(seed=3) == erdos_renyi(seed=3) != erdos_renyi(seed=4)


@pytest.mark.parametrize("probability", [0, -0.1, 1.1, float("nan")])
def test_a_graph_that_could_never_be_connected_is_refused(probability):
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        erdos_renyi(probability=probability)


def test_a_third_order_chain_links_all_variables_at_most_three_apart():
    linked = {frozenset(edge) for edge in third_order_chain(6)}
    assert linked == {frozenset({f"x{i}", f"x{j}"}) for i in range(6) for j in range(6) if 1 <= j - i <= 3}
