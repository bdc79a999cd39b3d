"""Networks that pgmpy ships, and networks and baselines of the synthetic experiments of Bernstein et al. (2017)."""

from __future__ import annotations

import gzip
import importlib.resources
import math

import networkx as nx
import numpy as np
from pgmpy.models import DiscreteBayesianNetwork

from pgmpy_dp.estimators.naive import maximise_likelihood
from pgmpy_dp.estimators.networks import markov_factors, markov_scopes
from pgmpy_dp.inference import JunctionTree
from pgmpy_dp.networks import PrivateMarkovNetwork
from pgmpy_dp.networks.bif import from_bif
from pgmpy_dp.release import Guarantee
from pgmpy_dp.schema import Schema

Edges = list[tuple[str, str]]

_SIMULATED = Guarantee(math.inf, 0.0, None, "add_remove", "none", private=False)


def bnlearn_network(name: str) -> DiscreteBayesianNetwork:
    """A network of the bnlearn repository, such as "alarm", from the files that pgmpy ships.

    Examples
    --------
    >>> len(bnlearn_network("asia"))
    8
    """
    packed = importlib.resources.files("pgmpy").joinpath(f"utils/example_models/{name}.bif.gz")
    return from_bif(gzip.decompress(packed.read_bytes()))


def third_order_chain(nodes: int = 10) -> Edges:
    """Edges between nodes at most three steps apart.

    Examples
    --------
    >>> len(third_order_chain(10))
    24
    """
    return [(f"x{i}", f"x{j}") for i in range(nodes) for j in range(i + 1, min(nodes, i + 4))]


def erdos_renyi(nodes: int = 10, probability: float = 0.3, seed: int = 0) -> Edges:
    """Edges of a connected Erdos-Renyi graph: drawn again until it is connected.

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


def random_markov_network(edges: Edges, states: int, seed: int) -> PrivateMarkovNetwork:
    """A pairwise network whose edge tables are drawn from a flat Dirichlet distribution.

    Parameters
    ----------
    edges : list of pairs of str
    states : int
        States of every variable, named 0, 1, ...
    seed : int

    Returns
    -------
    PrivateMarkovNetwork
        Made up, so its guarantee promises nothing.
    """
    generator = np.random.default_rng(seed)
    network = PrivateMarkovNetwork(edges)
    schema = Schema({node: range(states) for node in network.nodes()})
    tree = JunctionTree.build(dict.fromkeys(network.nodes(), states), markov_scopes(network))
    tables = [generator.dirichlet(np.ones(math.prod(shape))).reshape(shape) for shape in tree.layout.shapes]
    _set_factors(network, tree, np.log(tree.layout.flatten(tables)), schema)
    return network


def random_marginals_fit(edges: Edges, schema: Schema, seed: int) -> PrivateMarkovNetwork:
    """The random baseline: marginals drawn from a flat Dirichlet distribution, then maximum likelihood.

    The paper does not state its distribution; the weak regularisation (1e-4 a record) that makes the maximum exist
    dominates the result.
    """
    generator = np.random.default_rng(seed)
    network = PrivateMarkovNetwork(edges)
    tree = JunctionTree.build({v: schema.cardinality(v) for v in schema.variables}, markov_scopes(network))
    tables = [generator.dirichlet(np.ones(math.prod(shape))).reshape(shape) for shape in tree.layout.shapes]
    potentials = maximise_likelihood(tree, tree.layout.flatten(tables), 1e-4, 1000, 1e-6)
    _set_factors(network, tree, potentials, schema)
    return network


def _set_factors(network: PrivateMarkovNetwork, tree: JunctionTree, potentials: np.ndarray, schema: Schema) -> None:
    log_partition = tree.calibrate(potentials).log_partition
    network.set_factors(markov_factors(tree.layout, potentials, log_partition, schema.states), _SIMULATED)
