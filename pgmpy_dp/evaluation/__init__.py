"""Audits of privacy claims, and what the papers' experiments share: networks, baselines, divergences."""

from pgmpy_dp.evaluation.audit import AuditResult, audit
from pgmpy_dp.evaluation.bounds import ErrorBounds, inference_error_bounds, mu_score
from pgmpy_dp.evaluation.divergence import kl_divergence
from pgmpy_dp.evaluation.posterior_bounds import (
    DivergenceBound,
    count_error_bound,
    divergence_bound,
    exponential_map_failure,
    fourier_marginal_bound,
    posterior_divergence,
)
from pgmpy_dp.evaluation.prediction import mean_squared_error, prediction_accuracy
from pgmpy_dp.evaluation.protocol import (
    bnlearn_network,
    erdos_renyi,
    random_marginals_fit,
    random_markov_network,
    third_order_chain,
)
from pgmpy_dp.evaluation.tuning import NotPrivateSearch, not_private_grid_search

__all__ = [
    "AuditResult",
    "DivergenceBound",
    "ErrorBounds",
    "NotPrivateSearch",
    "audit",
    "bnlearn_network",
    "count_error_bound",
    "divergence_bound",
    "erdos_renyi",
    "exponential_map_failure",
    "fourier_marginal_bound",
    "inference_error_bounds",
    "kl_divergence",
    "mean_squared_error",
    "mu_score",
    "not_private_grid_search",
    "posterior_divergence",
    "prediction_accuracy",
    "random_marginals_fit",
    "random_markov_network",
    "third_order_chain",
]
