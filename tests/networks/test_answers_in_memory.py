"""Answers without bounds are refused by the size of their tables, before anything is multiplied."""

import itertools

import numpy as np
import pytest
from pgmpy.factors.discrete import DiscreteFactor, TabularCPD

import pgmpy_dp as dp
from pgmpy_dp.inference import TreeTooLargeError

TOO_LARGE = r"the junction tree has [\d,]+ table cells, more than 67,108,864"


STATES = 24  # of each variable: 24**6 cells are too many


def pairwise(edges):
    draw = np.random.default_rng(0)
    network = dp.PrivateMarkovNetwork(edges)
    network.set_factors([DiscreteFactor(edge, [STATES] * 2, draw.uniform(0.1, 0.3, STATES**2)) for edge in edges])
    return network


def grid(size):
    for row, column in itertools.product(range(size), range(size)):
        for after in ((row + 1, column), (row, column + 1)):
            if max(after) < size:
                yield f"{row},{column}", f"{after[0]},{after[1]}"


def test_a_markov_network_refuses_to_answer_as_it_refuses_to_draw():
    """Such a network fits in a small file, and pgmpy's elimination takes minutes and gigabytes."""
    network = pairwise(list(grid(6)))
    for ask in (lambda: network.query(["0,0"]), lambda: network.simulate(1)):
        with pytest.raises(TreeTooLargeError, match=TOO_LARGE):
            ask()


def test_evidence_takes_its_variables_out_of_the_tables():
    network = pairwise(list(itertools.combinations("abcdef", 2)))  # all joined: a table of 24**6 cells
    with pytest.raises(TreeTooLargeError, match=TOO_LARGE):
        network.query(["a"])
    given = {"d": 3, "e": 5, "f": 0}
    answer = network.query(["c", "a"], given)
    factors = {tuple(f.variables): f.values for f in network.get_factors()}
    own = {v: np.prod([factors[v, other][:, state] for other, state in given.items()], axis=0) for v in "abc"}
    three = np.einsum(
        "ab,ac,bc,a,b,c->ca", *(factors[pair] for pair in itertools.combinations("abc", 2)), *own.values()
    )
    assert answer.variables == ["c", "a"]
    assert answer.values == pytest.approx(three / three.sum())


def test_factors_of_any_scale_have_an_answer():
    """The product of a thousand factors is below the least float; the answer is the same without that scale."""
    edges = [(f"s{step}", f"s{step + 1}") for step in range(1000)]
    network, other = dp.PrivateMarkovNetwork(edges), dp.PrivateMarkovNetwork(edges[-2:])
    for one in (network, other):
        one.set_factors([DiscreteFactor(edge, [2, 2], [0.1, 0.2, 0.2, 0.1]) for edge in one.edges()])
    assert network.query(["s1000"], {"s998": 0}).values == pytest.approx(other.query(["s1000"], {"s998": 0}).values)


def test_evidence_of_probability_zero_is_refused_in_each_table():
    edges = [("a", "b"), ("c", "d")]
    network = dp.PrivateMarkovNetwork(edges)
    network.set_factors([DiscreteFactor(edge, [2, 2], [0.5, 0.0, 0.2, 0.3]) for edge in edges])
    assert network.query(["d"], {"a": 0, "b": 0}).values == pytest.approx([0.7, 0.3])
    for given in ({"a": 0, "b": 1}, {"c": 0, "b": 1, "a": 0}):
        with pytest.raises(ValueError, match="has probability zero"):
            network.query(["d"], given)
    with pytest.raises(ValueError, match="has probability zero"):
        dp.PrivateMarkovNetwork.of(network).query(["a"], {"c": 0, "d": 1})


def test_a_bayesian_network_answers_what_needs_few_of_its_variables():
    draw = np.random.default_rng(0)
    network = dp.PrivateBayesianNetwork(list(grid(6)))
    for node in network.nodes():
        parents = network.get_parents(node)
        table = draw.dirichlet(np.ones(STATES), STATES ** len(parents)).T
        network.add_cpds(TabularCPD(node, STATES, table, parents, [STATES] * len(parents)))
    with pytest.raises(TreeTooLargeError, match=TOO_LARGE):
        network.query(["5,5"])
    assert network.query(["0,0"]).values == pytest.approx(network.get_cpds("0,0").values.ravel())
    given = {"4,5": 1, "5,4": 2}  # the parents: nothing else matters
    expected = network.get_cpds("5,5").to_factor().reduce(list(given.items()), inplace=False)
    assert network.query(["5,5"], given).values == pytest.approx(expected.values)
