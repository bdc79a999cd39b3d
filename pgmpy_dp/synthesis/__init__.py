"""Records without a network: a mixture fitted to noisy pairs, and records drawn from it."""

from pgmpy_dp.synthesis.household_mixture import HouseholdMixture
from pgmpy_dp.synthesis.household_network import PrivateHouseholdNetwork
from pgmpy_dp.synthesis.mixture_network import PrivateMixtureNetwork
from pgmpy_dp.synthesis.pairwise_mixture import PairwiseMixture

__all__ = ["HouseholdMixture", "PairwiseMixture", "PrivateHouseholdNetwork", "PrivateMixtureNetwork"]
