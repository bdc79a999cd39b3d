"""The names of the room, read by lazy_loader and by type checkers."""

from .auto_mle import AutoMLE as AutoMLE
from .collective_em import CollectiveEM as CollectiveEM
from .logistic_regression import PrivateLogisticRegression as PrivateLogisticRegression
from .not_private_mle import NotPrivateMLE as NotPrivateMLE
from .posterior_mean import PosteriorMean as PosteriorMean
from .private_lda import PrivateLDA as PrivateLDA
from .private_mle import PrivateMLE as PrivateMLE
from .private_vb import PrivateVB as PrivateVB
