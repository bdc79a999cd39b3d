"""The names of the room, read by lazy_loader and by type checkers."""

from .auditing import AuditResult, audit
from .comparison import compare
from .divergence import kl_divergence
from .example_networks import bnlearn_network, random_markov_network
from .inference_error import ErrorBounds, inference_error_bounds, mu_score
from .posterior_bounds import (
    DivergenceBound,
    StochasticLipschitz,
    count_error_bound,
    divergence_bound,
    exponential_map_failure,
    fourier_marginal_bound,
    joint_stochastic_lipschitz,
    posterior_divergence,
    stochastic_lipschitz_bound,
)
from .prediction import compare_prediction, mean_squared_error, prediction_accuracy
from .query_errors import (
    QueryErrors,
    conditional_errors,
    map_agreement,
    marginal_errors,
    parameter_errors,
)
from .synthetic_inference import combine
from .tuning import NotPrivateSearch, not_private_grid_search

__all__ = [
    "AuditResult",
    "DivergenceBound",
    "ErrorBounds",
    "NotPrivateSearch",
    "QueryErrors",
    "StochasticLipschitz",
    "audit",
    "bnlearn_network",
    "combine",
    "compare",
    "compare_prediction",
    "conditional_errors",
    "count_error_bound",
    "divergence_bound",
    "exponential_map_failure",
    "fourier_marginal_bound",
    "inference_error_bounds",
    "joint_stochastic_lipschitz",
    "kl_divergence",
    "map_agreement",
    "marginal_errors",
    "mean_squared_error",
    "mu_score",
    "not_private_grid_search",
    "parameter_errors",
    "posterior_divergence",
    "prediction_accuracy",
    "random_markov_network",
    "stochastic_lipschitz_bound",
]
