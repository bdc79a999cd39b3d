"""The names of the room, read by lazy_loader and by type checkers."""

from .for_arrays.logistic_regression import PrivateLogisticRegression
from .for_arrays.private_lda import PrivateLDA
from .for_networks.auto_mle import AutoMLE
from .for_networks.collective_em import CollectiveEM
from .for_networks.not_private_mle import NotPrivateMLE
from .for_networks.posterior_mean import PosteriorMean
from .for_networks.private_mle import PrivateMLE
from .for_networks.private_vb import PrivateVB

__all__ = [
    "AutoMLE",
    "CollectiveEM",
    "NotPrivateMLE",
    "PosteriorMean",
    "PrivateLDA",
    "PrivateLogisticRegression",
    "PrivateMLE",
    "PrivateVB",
]
