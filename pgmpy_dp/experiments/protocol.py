"""The synthetic experiments of Bernstein et al. (2017) have these graphs and this random baseline."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np

from pgmpy_dp.evaluation.example_networks import set_potentials
from pgmpy_dp.fitting.factors import markov_scopes
from pgmpy_dp.fitting.moment_matching import maximise_likelihood
from pgmpy_dp.inference import JunctionTree
from pgmpy_dp.networks import PrivateMarkovNetwork
from pgmpy_dp.schema import Schema

Edges = list[tuple[str, str]]


def third_order_chain(nodes: int = 10) -> Edges:
    """Join nodes at most three steps apart.

    Examples
    --------
    >>> len(third_order_chain(10))
    24
    """
    return [(f"x{i}", f"x{j}") for i in range(nodes) for j in range(i + 1, min(nodes, i + 4))]


def erdos_renyi(nodes: int = 10, probability: float = 0.3, seed: int = 0) -> Edges:
    """Draw an Erdos-Renyi graph again and again until it is connected, and give its edges.

    The paper does not state the edge probability.

    Raises
    ------
    ValueError
        If the probability is not above 0 and at most 1: no graph would be connected.
    """
    if not 0 < probability <= 1:
        raise ValueError(f"probability is {probability!r}; it must be above 0 and at most 1.")
    generator = np.random.default_rng(seed)
    while True:
        graph = nx.gnp_random_graph(nodes, probability, seed=int(generator.integers(2**31)))
        if nx.is_connected(graph):
            return [(f"x{i}", f"x{j}") for i, j in sorted(graph.edges())]


def random_marginals_fit(edges: Edges, schema: Schema, seed: int) -> PrivateMarkovNetwork:
    """Fit the random baseline: marginals drawn from a flat Dirichlet distribution, by maximum likelihood.

    The paper does not state its distribution; the weak regularisation (1e-4 a record) that makes the maximum exist
    dominates the result.
    """
    generator = np.random.default_rng(seed)
    network = PrivateMarkovNetwork(edges)
    tree = JunctionTree.build(schema.cardinalities(), markov_scopes(network))
    tables = [generator.dirichlet(np.ones(math.prod(shape))).reshape(shape) for shape in tree.layout.shapes]
    potentials = maximise_likelihood(tree, tree.layout.flatten(tables), 1e-4, 1000, 1e-6).potentials
    set_potentials(network, tree, potentials, schema)
    return network
