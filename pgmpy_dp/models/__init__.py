"""Networks that are fitted from releases."""

from pgmpy_dp.models.bayesian import PrivateBayesianNetwork
from pgmpy_dp.models.markov import PrivateMarkovNetwork

__all__ = ["PrivateBayesianNetwork", "PrivateMarkovNetwork"]
