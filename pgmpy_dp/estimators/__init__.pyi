"""The names of the room, read by lazy_loader and by type checkers."""

from .for_arrays.logistic_regression import PrivateLogisticRegression
from .for_arrays.private_lda import PrivateLDA
from .for_arrays.sigmoid_belief_network import PrivateSigmoidBeliefNetwork
from .for_networks.auto_mle import AutoMLE
from .for_networks.collective_em import CollectiveEM
from .for_networks.naive_mle import NaiveMLE
from .for_networks.not_private_mle import NotPrivateMLE
from .for_networks.posterior_mean import PosteriorMean
from .for_networks.posterior_sampling import ExponentialMAP, PosteriorSampler
from .for_networks.private_bayesian import PrivateBayesianEstimator
from .for_networks.private_mle import PrivateMLE
from .for_networks.private_sgd import PrivateSGD
from .for_networks.private_vb import PrivateVB
from .for_networks.regression_sampling import LinearPosteriorSampler

__all__ = [
    "AutoMLE",
    "CollectiveEM",
    "ExponentialMAP",
    "LinearPosteriorSampler",
    "NaiveMLE",
    "NotPrivateMLE",
    "PosteriorMean",
    "PosteriorSampler",
    "PrivateBayesianEstimator",
    "PrivateLDA",
    "PrivateLogisticRegression",
    "PrivateMLE",
    "PrivateSGD",
    "PrivateSigmoidBeliefNetwork",
    "PrivateVB",
]
