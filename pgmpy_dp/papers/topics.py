"""Topics are learned as Foulds, Park, Chaudhuri and Welling (2020) print it, to compare with `PrivateLDA`."""

from __future__ import annotations

from typing import Any

import numpy as np

from pgmpy_dp.data import PrivateDocuments
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.inference.topics.topic_inference import Topics


def printed_topics(
    documents: PrivateDocuments,
    topics: int,
    clip: float,
    delay: float = 1024.0,
    forgetting: float = 0.7,
    **plan: Any,
) -> Vector:
    """Learn topics with the noisy counts of each step cut off at zero before they are averaged.

    lambda <- (1 - rho_t) lambda + rho_t (eta + max(S_t, 0)), where S_t is a step's noisy sum over the sampling rate and
    rho_t = (delay + t)^(-forgetting), t = 1, 2, ...; alpha and eta are one over the number of topics.

    Parameters
    ----------
    documents : PrivateDocuments
    topics : int
    clip : float
        Bound on the norm of a document's expected counts.
    delay, forgetting : float
        tau and kappa: the paper's are 1024 and .7.
    **plan
        As `PrivateDocuments.plan`.

    Returns
    -------
    ndarray of shape (topics, words)
        lambda, the topics' Dirichlet parameters.
    """
    words = len(documents.vocabulary)
    prior = 1.0 / topics
    plan_ = documents.plan(**plan, width=topics * words)
    current = np.random.default_rng(0).gamma(100.0, 0.01, (topics, words))
    alpha = np.full(topics, prior)
    for number in range(plan_.steps):
        expected = Topics(current, alpha).expected_counts
        noisy = plan_.noisy_sum(expected, clip, non_negative=True).reshape(topics, words)
        rate = (delay + number + 1.0) ** -forgetting
        current = (1.0 - rate) * current + rate * (prior + np.maximum(noisy, 0.0) / plan_.sampling_rate)
    return np.asarray(current, dtype=np.float64)
