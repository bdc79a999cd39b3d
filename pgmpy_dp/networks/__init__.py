"""Bayesian and Markov networks of pgmpy that keep their release."""

from pgmpy_dp.models.formats.formats import SUFFIXES, save_network
from pgmpy_dp.networks.bayesian_network import PrivateBayesianNetwork
from pgmpy_dp.networks.from_mixture import latent_root_network
from pgmpy_dp.networks.loading import load, load_network
from pgmpy_dp.networks.markov_network import PrivateMarkovNetwork
from pgmpy_dp.networks.network import simulate

__all__ = [
    "SUFFIXES",
    "PrivateBayesianNetwork",
    "PrivateMarkovNetwork",
    "latent_root_network",
    "load",
    "load_network",
    "save_network",
    "simulate",
]
