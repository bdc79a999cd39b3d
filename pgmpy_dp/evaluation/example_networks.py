"""Example networks with public distributions, from pgmpy's files or random."""

from __future__ import annotations

import gzip
import importlib.resources
import math

import numpy as np
from numpy.typing import NDArray
from pgmpy.models import DiscreteBayesianNetwork

from pgmpy_dp.inference import JunctionTree
from pgmpy_dp.models.formats.other_formats import from_bif
from pgmpy_dp.networks import PrivateMarkovNetwork
from pgmpy_dp.networks.network import NO_GUARANTEE
from pgmpy_dp.observed.factors import markov_factors, markov_scopes
from pgmpy_dp.schema import Schema


def bnlearn_network(name: str) -> DiscreteBayesianNetwork:
    """Read a network of the bnlearn repository, such as "alarm", from the files that pgmpy ships.

    Examples
    --------
    >>> len(bnlearn_network("asia"))
    8
    """
    packed = importlib.resources.files("pgmpy").joinpath(f"utils/example_models/{name}.bif.gz")
    return from_bif(gzip.decompress(packed.read_bytes()))


def random_markov_network(edges: list[tuple[str, str]], states: int, seed: int) -> PrivateMarkovNetwork:
    """Create a pairwise network with edge tables drawn from a flat Dirichlet distribution.

    Parameters
    ----------
    edges : list of pairs of str
    states : int
        Number of states of every variable, named 0, 1, ...
    seed : int

    Returns
    -------
    PrivateMarkovNetwork
        Its guarantee is empty because it is not fitted to records.
    """
    generator = np.random.default_rng(seed)
    network = PrivateMarkovNetwork(edges)
    schema = Schema({node: range(states) for node in network.nodes()})
    tree = JunctionTree.build(dict.fromkeys(network.nodes(), states), markov_scopes(network))
    tables = [generator.dirichlet(np.ones(math.prod(shape))).reshape(shape) for shape in tree.layout.shapes]
    set_potentials(network, tree, np.log(tree.layout.flatten(tables)), schema)
    return network


def set_potentials(
    network: PrivateMarkovNetwork, tree: JunctionTree, potentials: NDArray[np.float64], schema: Schema
) -> None:
    """Give a network the distribution of these log-potentials, with an empty guarantee."""
    log_partition = tree.calibrate(potentials).log_partition
    network.set_factors(markov_factors(tree.layout, potentials, log_partition, schema.states), NO_GUARANTEE)
