"""Audits of privacy claims, and what the papers' experiments share: networks, baselines, divergences."""

from pgmpy_dp.evaluation.audit import AuditResult, audit
from pgmpy_dp.evaluation.bounds import ErrorBounds, inference_error_bounds, mu_score
from pgmpy_dp.evaluation.divergence import kl_divergence
from pgmpy_dp.evaluation.protocol import (
    erdos_renyi,
    random_marginals_fit,
    random_markov_network,
    third_order_chain,
)

__all__ = [
    "AuditResult",
    "ErrorBounds",
    "audit",
    "erdos_renyi",
    "inference_error_bounds",
    "kl_divergence",
    "mu_score",
    "random_marginals_fit",
    "random_markov_network",
    "third_order_chain",
]
