"""Records without a network: a mixture fitted to noisy pairs, and records drawn from it."""

from pgmpy_dp.synthesis.mixture_network import PrivateMixtureNetwork
from pgmpy_dp.synthesis.pairwise_mixture import PairwiseMixture

__all__ = ["PairwiseMixture", "PrivateMixtureNetwork"]
