"""The names of the room, read by lazy_loader and by type checkers."""

from .bayesian_network import PrivateBayesianNetwork
from .loading import load_network
from .markov_network import PrivateMarkovNetwork

__all__ = ["PrivateBayesianNetwork", "PrivateMarkovNetwork", "load_network"]
