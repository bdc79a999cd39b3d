"""Bayesian and Markov networks of pgmpy that keep their release."""

from pgmpy_dp.models.formats.formats import SUFFIXES as SUFFIXES
from pgmpy_dp.models.formats.formats import save_network as save_network
from pgmpy_dp.networks.bayesian_network import PrivateBayesianNetwork as PrivateBayesianNetwork
from pgmpy_dp.networks.bayesian_network import latent_root_network as latent_root_network
from pgmpy_dp.networks.loading import load as load
from pgmpy_dp.networks.loading import load_network as load_network
from pgmpy_dp.networks.markov_network import PrivateMarkovNetwork as PrivateMarkovNetwork
from pgmpy_dp.networks.network import simulate as simulate
