"""A file says itself which kind of network it holds."""

from __future__ import annotations

import os

from pgmpy.models import DiscreteMarkovNetwork

from pgmpy_dp.models.formats.formats import read_network
from pgmpy_dp.networks.bayesian_network import PrivateBayesianNetwork
from pgmpy_dp.networks.markov_network import PrivateMarkovNetwork


def load_network(path: str | os.PathLike[str]) -> PrivateBayesianNetwork | PrivateMarkovNetwork:
    """Read a network that `save_network`, a network's own `save` or another program wrote.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ReleaseFormatError
        If the file is not of the format its name says.
    ValueError
        If the end of its name says no known format.
    """
    with read_network(path) as (network, releases):
        markov = isinstance(network, DiscreteMarkovNetwork)
        found = PrivateMarkovNetwork.of(network) if markov else PrivateBayesianNetwork.of(network)
        return found._carrying(releases)
