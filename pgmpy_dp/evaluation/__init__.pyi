"""The names of the room, read by lazy_loader and by type checkers."""

from .auditing import AuditResult, audit
from .comparison import compare, kl_divergence
from .example_networks import bnlearn_network, random_markov_network
from .prediction import compare_prediction, mean_squared_error, prediction_accuracy
from .synthetic_inference import combine

__all__ = [
    "AuditResult",
    "audit",
    "bnlearn_network",
    "combine",
    "compare",
    "compare_prediction",
    "kl_divergence",
    "mean_squared_error",
    "prediction_accuracy",
    "random_markov_network",
]
