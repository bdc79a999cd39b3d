"""The names of the room, read by lazy_loader and by type checkers."""

from .bayesian_network import PrivateBayesianNetwork
from .formats import SUFFIXES, save_network
from .loading import load_network
from .markov_network import PrivateMarkovNetwork
from .simulation import simulate

__all__ = ["SUFFIXES", "PrivateBayesianNetwork", "PrivateMarkovNetwork", "load_network", "save_network", "simulate"]
