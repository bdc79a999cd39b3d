"""Networks that are fitted from releases answer with bounds, simulate records, and go into files."""

from pgmpy_dp.networks.bayesian_network import PrivateBayesianNetwork
from pgmpy_dp.networks.formats import SUFFIXES, save_network
from pgmpy_dp.networks.loading import load_network
from pgmpy_dp.networks.markov_network import PrivateMarkovNetwork
from pgmpy_dp.networks.simulation import simulate

__all__ = ["SUFFIXES", "PrivateBayesianNetwork", "PrivateMarkovNetwork", "load_network", "save_network", "simulate"]
