"""The names of the room, read by lazy_loader and by type checkers."""

from .auto_mle import AutoMLE
from .collective_em import CollectiveEM
from .logistic_regression import PrivateLogisticRegression
from .not_private_mle import NotPrivateMLE
from .posterior_mean import PosteriorMean
from .private_lda import PrivateLDA
from .private_mle import PrivateMLE
from .private_vb import PrivateVB

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
