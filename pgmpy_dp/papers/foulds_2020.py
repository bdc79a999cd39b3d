"""Variational Bayes of Foulds, Park, Chaudhuri and Welling (2020) as printed: privacy accounting and topic models."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy.special import gammaln, logsumexp

from pgmpy_dp.data import PrivateDocuments
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.inference.topics import Topics
from pgmpy_dp.privacy.checks import choice, exact_positive, rounded_down
from pgmpy_dp.privacy.subsampling import (
    MAX_MULTIPLIER,
    RENYI_ORDERS,
    Accountant,
    amplified_epsilon,
    checked_multiplier,
    checked_plan,
    renyi_accountant,
    sampled_gaussian,
    smallest_multiplier,
    tight,
)
from pgmpy_dp.release import Guarantee


def price(
    noise_multiplier: float,
    delta: float,
    *,
    steps: int,
    sampling_rate: float,
    sampling: str = "poisson",
    accounting: str,
) -> float:
    """Compute the epsilon of a plan by one of several accounting methods.

    Parameters
    ----------
    noise_multiplier, delta, steps, sampling_rate, sampling
        As for :func:`pgmpy_dp.price`.
    accounting : {"tight", "moments", "theorem 9", "strong", "naive", "paper"}
        Accounting method; all but "paper" are sound.

        - "tight": :func:`pgmpy_dp.price`.
        - "moments": the moments accountant, with Renyi bounds at integer orders and their plain conversion.
        - "theorem 9": the same with the looser bound printed by Foulds et al. (2020), for samples of fixed size only.
        - "strong", "naive": strong and basic composition of analytically calibrated Gaussian steps.
        - "paper": strong composition of classically calibrated Gaussian steps, whose proof needs an epsilon below 1 for
          each step.

    Returns
    -------
    float
        Infinity if the accounting gives no bound.

    Examples
    --------
    >>> plan = {"steps": 20, "sampling_rate": 0.05, "sampling": "without_replacement", "accounting": "moments"}
    >>> round(price(1.24, 1e-4, **plan), 2), round(price(1.24 / 2**0.5, 1e-4, **plan), 2)
    (2.38, 4.23)
    >>> plan["accounting"] = "theorem 9"
    >>> round(price(1.24, 1e-4, **plan), 2), round(price(2.0, 1e-4, **plan), 3)
    (2.38, 1.359)
    """
    plan = checked_plan(delta, steps, sampling_rate, sampling)
    return _accountant(accounting)(checked_multiplier(noise_multiplier), *plan)


def calibrate(
    epsilon: float,
    delta: float,
    *,
    steps: int,
    sampling_rate: float,
    sampling: str = "poisson",
    accounting: str,
) -> float:
    """Find the least noise multiplier for which a plan costs at most epsilon and delta.

    Estimators take it as `noise_multiplier`. Arguments are as for :func:`price`.

    Examples
    --------
    >>> noise = calibrate(1.0, 1e-6, steps=100, sampling_rate=0.05, accounting="moments")
    >>> round(noise, 1)
    3.0
    """
    target = rounded_down(exact_positive("epsilon", epsilon))
    return smallest_multiplier(_accountant(accounting), target, *checked_plan(delta, steps, sampling_rate, sampling))


def printed_epsilon(guarantee: Guarantee, noise_multiplier: float, *, steps: int, sampling_rate: float) -> float | None:
    """Compute the epsilon that Foulds et al. (2020) would state for a topic model, NOT the valid one in `guarantee`.

    They use the norm of one document as the sensitivity to its replacement, which is sqrt(2) times larger, and Theorem
    9 of Wang, Balle and Kasiviswanathan (2019). Under "add_remove" they do not state an epsilon, and the result is
    None.
    """
    if guarantee.neighbours == "add_remove":
        return None
    return price(
        min(noise_multiplier * math.sqrt(2.0), MAX_MULTIPLIER),
        guarantee.delta,
        steps=steps,
        sampling_rate=sampling_rate,
        sampling="without_replacement",
        accounting="theorem 9",
    )


def printed_topics(
    documents: PrivateDocuments,
    topics: int,
    clip: float,
    delay: float = 1024.0,
    forgetting: float = 0.7,
    **plan: Any,
) -> Vector:
    """Learn topics, with the noisy counts of each step clamped at zero before averaging, as Dirichlet parameters.

    lambda <- (1 - rho_t) lambda + rho_t (eta + max(S_t, 0)), where S_t is the noisy sum of step t divided by the
    sampling rate, and rho_t = (delay + t)^(-forgetting), t = 1, 2, ...; alpha and eta are one over the number of
    topics. `clip` bounds the norm of a document's expected counts, and `plan` is as for `PrivateDocuments.plan`.
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


@lru_cache(maxsize=1024)
def moments(sigma: float, delta: float, steps: int, rate: float, sampling: str) -> float:
    """Compute epsilon = min over orders a of bound(a) + log(1/delta) / (a - 1) from Renyi bounds (Mironov 2017)."""
    best = math.inf
    # dp-accounting has a sharper conversion; for one order and a tiny delta it is the Renyi bound plus known terms.
    tiny = 1e-300
    for order in RENYI_ORDERS:
        accountant = renyi_accountant(sampling, (order,))
        accountant.compose(sampled_gaussian(sigma, rate, sampling), steps)
        sharper = float(accountant.get_epsilon(tiny))
        bound = sharper - math.log1p(-1.0 / order) + math.log(tiny * order) / (order - 1.0)
        best = min(best, max(bound, 0.0) + math.log(1.0 / delta) / (order - 1.0))
    return best


def theorem_9(sigma: float, delta: float, steps: int, rate: float, sampling: str) -> float:
    """Compute epsilon by Theorem 9 of Wang, Balle and Kasiviswanathan (2019) for Gaussian noise, at orders 2 to 256."""
    if sampling != "without_replacement":
        return math.inf
    orders = np.arange(2, 257)
    logs = gammaln(orders + 1)[:, None] - gammaln(orders + 1) - gammaln(np.maximum(orders[:, None] - orders, 0) + 1)
    # Term j of order a: 2 rate^j (a choose j) exp((j - 1) j / (2 sigma^2)); the constant of term 2 can be smaller.
    terms = logs + orders * math.log(rate) + (orders - 1) * orders / (2 * sigma**2) + math.log(2.0)
    with np.errstate(over="ignore"):
        terms[:, 0] += min(0.0, math.log(2.0 * -math.expm1(-1 / sigma**2)))
    terms = np.where(orders <= orders[:, None], terms, -np.inf)
    bounds = np.minimum(logsumexp(np.c_[np.zeros(orders.size), terms], axis=1) / (orders - 1), orders / (2 * sigma**2))
    return float((steps * bounds + math.log(1 / delta) / (orders - 1)).min())


def naive(sigma: float, delta: float, steps: int, rate: float, sampling: str) -> float:
    """Compute epsilon by basic composition of analytically calibrated steps."""
    return steps * _amplified(analytic(sigma, delta / (steps * rate)), rate)


def strong(
    sigma: float, delta: float, steps: int, rate: float, sampling: str, one: Callable[[float, float], float]
) -> float:
    """Compute epsilon by strong composition of steps, calibrated one by one."""
    # A hundredth of delta is spent on the steps, as in the paper's experiments.
    amplified = _amplified(one(sigma, delta / (100.0 * steps * rate)), rate)
    if amplified > 700.0:
        return math.inf
    spread = math.sqrt(2.0 * steps * math.log(1.0 / (0.99 * delta)))
    return spread * amplified + steps * amplified * math.expm1(amplified)


def analytic(sigma: float, delta: float) -> float:
    """Compute the epsilon of one Gaussian sum over all records (Balle and Wang 2018)."""
    from dp_accounting import get_epsilon_gaussian

    return float(get_epsilon_gaussian(sigma, delta)) if delta < 1.0 else 0.0


ACCOUNTANTS: dict[str, Accountant] = {
    "tight": tight,
    "moments": moments,
    "theorem 9": theorem_9,
    "strong": partial(strong, one=analytic),
    "naive": naive,
    "paper": partial(strong, one=lambda sigma, delta: math.sqrt(2.0 * math.log(1.25 / delta)) / sigma),
}


def _amplified(epsilon: float, rate: float) -> float:
    """Compute the epsilon of a step on a random sample (Balle, Barthe and Gaboardi 2018, Theorems 8 and 9)."""
    return amplified_epsilon(epsilon, rate) if epsilon > 0.0 else 0.0


def _accountant(accounting: str) -> Accountant:
    choice(*ACCOUNTANTS)("accounting", accounting)
    return ACCOUNTANTS[accounting]
