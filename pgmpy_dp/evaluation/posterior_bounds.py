"""Bounds on the utility of private posteriors (Zhang, Rubinstein and Dimitrakakis 2016), and the bounded quantities.

Proofs are sketched in the docstrings. Constants attributed to the paper are reconstructed, since its formulas are
illegible in the copy that this was written from; the refined expectation of Theorem 1 could not be, and is left out.

Bounds need no records, except `posterior_divergence`, the mass in `exponential_map_failure` and the ratio in
`stochastic_lipschitz_bound`, which are for studies in which the records are known.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, gammaln, logsumexp, polygamma

from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.privacy.checks import exact_positive
from pgmpy_dp.release import NoisyCoefficients
from pgmpy_dp.release.coefficients import noise_scales
from pgmpy_dp.schema import Clique

_W = 1.2564312086261697  # solves exp(w) = 1 + 2 w
_KAPPA = 2.0 * _W / math.expm1(-_W) ** 2


def count_error_bound(counts: int, scale: float, failure_probability: float) -> float:
    """Bound the absolute discrete Laplace noise of all counts, except with the failure probability (Proposition 1).

    By the union bound it is the least k for which `counts` times P(|noise| > k) = 2 q**(k + 1) / (1 + q), with
    q = exp(-1 / scale), is at most the failure probability. The paper's scale * log(counts /
    failure_probability) is for continuous noise; discrete noise can exceed it with a larger probability (0.0728 instead
    of 0.0499). Clamping moves no count farther from the truth.

    Parameters
    ----------
    counts : int
        Number of noisy cells: 2 m in the paper, with m rows of binary variables.
    scale : float
        2 |I| / epsilon under "replace_one", |I| / epsilon under "add_remove".
    failure_probability : float

    Examples
    --------
    >>> round(count_error_bound(66, 34.0, 0.1), 1)
    221.0
    """
    q = math.exp(-1.0 / float(exact_positive("scale", scale)))
    enough = _probability(failure_probability) / counts * (1.0 + q) / 2.0  # of q**(k + 1)
    least = max(math.ceil(scale * -math.log(enough)) - 1, 0)
    # Rounding may have put it one off.
    return float(least if q ** (least + 1) <= enough else least + 1)


def posterior_divergence(
    exact: Mapping[Any, ArrayLike] | Sequence[ArrayLike], private: Mapping[Any, ArrayLike] | Sequence[ArrayLike]
) -> float:
    """Sum the KL divergence of a private posterior from the exact one over the rows of all nodes, in nats.

    Parameters
    ----------
    exact, private : mappings of node to array, or sequences of arrays
        Dirichlet parameters: one row a state, one column a configuration of the parents. `posterior_counts_` of
        `PrivateBayesianEstimator` is one.

    Examples
    --------
    >>> round(posterior_divergence([[[3.0], [2.0]]], [[[2.0], [2.0]]]), 6)
    0.109814
    """
    pairs: Iterable[tuple[ArrayLike, ArrayLike]]
    if isinstance(exact, Mapping):
        assert isinstance(private, Mapping)
        pairs = [(exact[node], private[node]) for node in exact]
    else:
        assert not isinstance(private, Mapping)
        pairs = zip(exact, private, strict=True)
    total = 0.0
    for one, other in pairs:
        a, b = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
        inner = gammaln(b) - gammaln(a) + (a - b) * (digamma(a) - digamma(a.sum(axis=0)))
        total += float(inner.sum() + (gammaln(a.sum(axis=0)) - gammaln(b.sum(axis=0))).sum())
    return total


@dataclass(frozen=True)
class DivergenceBound:
    """Theorem 1 bounds the divergence, with the paper's constants and with those that can be proved.

    Attributes
    ----------
    expectation : float
        Bound of the expected divergence: the lesser of the paper's, which grows with the number of records, and
        scale**2 times the sum of trigamma(alpha), which does not.
    deviation : float
        What the divergence exceeds its expectation by with the failure probability at most, by McDiarmid's inequality
        and the range n log((alpha + n) (beta + n)) of each row's term.
    paper_expectation, paper_deviation : float
        The same from the paper's constants, recalled and not checked against the print: n log((alpha + n) (beta + n))
        and (2 n + 1) log((alpha + n + 1) (beta + n + 1)).
    """

    expectation: float
    deviation: float
    paper_expectation: float
    paper_deviation: float

    @property
    def bound(self) -> float:
        """Return the bound that holds with one minus the failure probability."""
        return self.expectation + self.deviation


def divergence_bound(
    prior: Iterable[ArrayLike], total: float, scale: float, failure_probability: float
) -> DivergenceBound:
    """Bound `posterior_divergence` of Algorithm 1 by Theorem 1, before any record is seen.

    Parameters
    ----------
    prior : iterable of arrays
        Dirichlet parameters, all at least 1: one row a state, one column a configuration of the parents.
    total : float
        Number of records n.
    scale : float
        Noise scale of every count.
    failure_probability : float

    Raises
    ------
    ValueError
        If a parameter is below 1, where the ranges no longer hold: 17.9 against 17.05 at 0.5 and n = 5.

    Notes
    -----
    The divergence of two Dirichlet distributions is a Bregman divergence whose Hessian is at most diag(trigamma), so it
    is at most sum_k x_k**2 trigamma(alpha_k) / 2 for noise x, and E x_k**2 <= 2 scale**2. A row of r states is r - 1
    beta variables by stick-breaking, the k-th of parameters alpha_k and the sum of those after it, which counts raise
    by at most m = (r - k) n: its range is that of beta variables with m for n. That m log((alpha + m) (beta + m))
    bounds the divergence of beta variables is checked numerically, not proved.

    Examples
    --------
    >>> found = divergence_bound([[[1.0], [1.0]]], total=1000, scale=2.0, failure_probability=0.1)
    >>> round(found.expectation, 3), found.expectation < found.paper_expectation
    (13.159, True)
    """
    n, b = float(exact_positive("total", total)), float(exact_positive("scale", scale))
    failure = _probability(failure_probability)
    curvature, terms, paper_terms = 0.0, [], []
    for table in prior:
        alpha = np.asarray(table, dtype=np.float64)
        if not (np.isfinite(alpha).all() and (alpha >= 1).all()):
            raise ValueError("The prior counts must be at least 1: below that the ranges of Theorem 1 do not hold.")
        curvature += float(polygamma(1, alpha).sum())
        rows: Vector = np.zeros(alpha.shape[1:])
        paper_rows: Vector = np.zeros(alpha.shape[1:])
        for k in range(alpha.shape[0] - 1):
            m, one, rest = (alpha.shape[0] - 1 - k) * n, alpha[k], alpha[k + 1 :].sum(axis=0)
            rows = rows + m * np.log((one + m) * (rest + m))
            paper_rows = paper_rows + (2 * m + 1) * np.log((one + m + 1) * (rest + m + 1))
        terms.append(rows.ravel())
        paper_terms.append(paper_rows.ravel())
    ranges, paper_ranges = np.concatenate(terms), np.concatenate(paper_terms)
    spread = math.log(1 / failure) / 2
    return DivergenceBound(
        min(float(ranges.sum()), b**2 * curvature),
        math.sqrt(spread * float((ranges**2).sum())),
        float(ranges.sum()),
        math.sqrt(spread * float((paper_ranges**2).sum())),
    )


def fourier_marginal_bound(
    noisy: NoisyCoefficients, clique: Clique, failure_probability: float, increment: float = 0.0
) -> float:
    """Bound a noisy marginal's L1 error for all cliques at once, except with the failure probability (Theorem 3).

    No coefficient's noise exceeds `count_error_bound` of M counts, M being their number; each adds at most that, spread
    over the table, and a clique of c cells has c coefficients. The increment adds itself. For two states everywhere and
    the paper's scale it is, but for the rounding to whole numbers, (4 |N_I| / epsilon) (2**|parents| log(|N_I| / p) +
    t |N_I|).

    Parameters
    ----------
    noisy : NoisyCoefficients
    clique : tuple of str
        Within a measured one.
    failure_probability : float
    increment : float
        Records added to make the tables non-negative.
    """
    size = sum(values.size for values in noisy.values.values()) + (0 if noisy.public_total is None else 1)
    scales = {float(s) for subset in noisy.values for s in noise_scales(noisy.schema, subset, noisy.scale).ravel()}
    largest = max(noisy.scale / s * count_error_bound(size, s, failure_probability) for s in scales)
    return noisy.schema.cells(clique) * largest + increment


def exponential_map_failure(power: float, slack: float, mass: float) -> float:
    """Bound the probability that `ExponentialMAP` is over 2 * slack nats below the best log-likelihood (Lemma 4).

    It is exp(-power * slack) / mass: below OPT - 2 slack the density is at most exp(power (OPT - 2 slack)) of the
    prior's, and the normalising constant at least exp(power (OPT - slack)) mass. The paper has epsilon for the power.

    Parameters
    ----------
    power : float
        `release_.power`.
    slack : float
        In nats.
    mass : float
        Prior probability, within the truncation, of a log-likelihood above OPT - slack. It depends on the records.

    Examples
    --------
    >>> round(exponential_map_failure(power=0.5, slack=20.0, mass=0.01), 5)
    0.00454
    """
    for name, value in (("power", power), ("slack", slack), ("mass", mass)):
        exact_positive(name, value)
    return min(1.0, math.exp(-power * slack) / mass)


@dataclass(frozen=True)
class StochasticLipschitz:
    """A prior puts its mass where likelihoods are smooth (Assumption 2 of Dimitrakakis et al.).

    The mass of parameters whose log-likelihood differs between data sets x and y by at most L rho(x, y) is at least
    1 - exp(-rate (L - offset)), for every L.

    Attributes
    ----------
    rate, offset : float
        c, positive, and L0, not negative.
    """

    rate: float
    offset: float

    def __post_init__(self) -> None:
        exact_positive("rate", self.rate)
        if not 0.0 <= self.offset < math.inf:
            raise ValueError(f"offset must be a number of at least 0, got {self.offset!r}.")


def joint_stochastic_lipschitz(nodes: Iterable[StochasticLipschitz]) -> StochasticLipschitz:
    """Find how smooth a network is from how smooth its nodes are, distances being summed over nodes (Lemma 3).

    Where every node has the constant L, so has the network. By the union bound the others have at most the mass
    sum_i exp(-c_i (L - L0_i)), for L of at least every L0_i no more than exp(-c (L - L0)) with c the least rate and
    exp(c L0) = sum_i exp(c L0_i): the number of nodes where no node has an offset, as in the paper.

    Raises
    ------
    ValueError
        If there are no nodes.

    Examples
    --------
    >>> joint = joint_stochastic_lipschitz([StochasticLipschitz(2.0, 0.0), StochasticLipschitz(3.0, 0.0)])
    >>> joint.rate, round(joint.offset, 4)
    (2.0, 0.3466)
    """
    held = list(nodes)
    if not held:
        raise ValueError("A network has at least one node.")
    rate = min(node.rate for node in held)
    return StochasticLipschitz(rate, float(logsumexp([rate * node.offset for node in held])) / rate)


def stochastic_lipschitz_bound(
    smooth: StochasticLipschitz, likelihood_ratio: float, distance: float, delta: float = 0.5
) -> float:
    """Bound by how much the posteriors of two data sets differ on any event (Theorem 4 (2)): sqrt(M distance / 2).

    A draw from the posterior is (0, this)-differentially private for data sets that are so far apart. M bounds the
    divergence for each unit of the distance; its shape is recalled, not printed, and its constants derived anew: w
    solves exp(w) = 1 + 2 w, and kappa = 2 w / (1 - exp(-w))**2. Samplers here do not rest on it: they truncate.

    Parameters
    ----------
    smooth : StochasticLipschitz
        Of the network; see `joint_stochastic_lipschitz`.
    likelihood_ratio : float
        C, the largest ratio of the maximum likelihood of a data set to its marginal likelihood; at least 1.
    distance : float
        rho(x, y), at most (1 - delta) times the rate.
    delta : float
        Between 0 and 1; any.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> round(stochastic_lipschitz_bound(StochasticLipschitz(4.0, 0.5), likelihood_ratio=2.0, distance=1.0), 3)
    2.146
    """
    share = _fraction("delta", delta)
    ratio, apart = (
        float(exact_positive("likelihood_ratio", likelihood_ratio)),
        float(exact_positive("distance", distance)),
    )
    if ratio < 1.0:
        raise ValueError(f"likelihood_ratio must be at least 1, got {likelihood_ratio!r}.")
    if apart > (1.0 - share) * smooth.rate:
        raise ValueError(
            f"The theorem holds for distances of at most (1 - delta) * rate = {(1.0 - share) * smooth.rate:g}, got "
            f"{distance!r}."
        )
    offset = smooth.offset
    peeled = math.exp(-offset * share) / (math.exp(-_W * (1.0 - share)) - math.exp(-_W))
    rise = (
        _KAPPA / smooth.rate
        + offset * (1.0 / -math.expm1(-_W) + 1.0)
        + math.log(ratio)
        + math.log(peeled + math.exp(offset * (1.0 - share)))
    ) * ratio
    return math.sqrt(rise * apart / 2.0)


def _probability(value: float) -> float:
    return _fraction("failure_probability", value)


def _fraction(name: str, value: float) -> float:
    if not 0 < value < 1:
        raise ValueError(f"{name} must be between 0 and 1, got {value!r}.")
    return value
