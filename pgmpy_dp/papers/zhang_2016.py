"""Private Bayesian inference of Zhang, Rubinstein and Dimitrakakis (2016): calibration as printed, bounds of utility.

The printed calibrations use a coarser bound, so their epsilon is at least the actual cost of a release. The actual cost
is charged and stated in the guarantee.

The docstrings of the bounds sketch the proofs. Constants attributed to the paper are reconstructed, because its
formulas are illegible in the available copy. The refined expectation of Theorem 1 could not be reconstructed and is
left out. The bounds do not depend on the records, with three exceptions for studies with known records:
`posterior_divergence`, the mass in `exponential_map_failure`, and the ratio in `stochastic_lipschitz_bound`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, gammaln, logsumexp, polygamma

from pgmpy_dp.data.mechanisms import regression
from pgmpy_dp.data.mechanisms.contrasts import FourierCoefficients
from pgmpy_dp.data.mechanisms.posterior import LikelyRows, PosteriorRows
from pgmpy_dp.data.mechanisms.regression import PosteriorRegressions, Regression, largest_mean, root_above
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.papers.private_bayesian import (
    ExponentialMAP,
    LinearPosteriorSampler,
    PosteriorSampler,
    PrivateBayesianEstimator,
)
from pgmpy_dp.privacy import posterior
from pgmpy_dp.privacy.checks import decimal_above, exact_positive
from pgmpy_dp.privacy.posterior import RESERVE, WIDEST, draw_cost, range_of
from pgmpy_dp.release import Coefficients as Coefficients
from pgmpy_dp.release import NoisyCoefficients as NoisyCoefficients
from pgmpy_dp.release import PosteriorDraws as PosteriorDraws
from pgmpy_dp.release import RegressionDraws as RegressionDraws
from pgmpy_dp.release.contrasts import contrasts, downward_closure, fourier_sensitivity, noise_scales
from pgmpy_dp.schema import Clique, Schema


def truncation(states: Sequence[int], epsilon: Fraction, neighbours: str) -> list[float]:
    """Find the ranges of the nodes' rows for the printed smallest probability, exp(-epsilon / (2 |I|))."""
    posterior.truncation(states, epsilon, neighbours)  # refuses an epsilon too small for floating-point numbers
    target = float(epsilon)
    floor, maximum = math.exp(-target / (2 * len(states))), max(states)
    if floor * maximum >= 1:
        minimum = math.nextafter(2 * len(states) * math.log(maximum), math.inf)
        raise ValueError(
            f"epsilon={target!r} truncates probabilities at {floor:.4g}, but {maximum} states leave at most "
            f"1 / {maximum}: the paper's form needs more than epsilon={minimum!r} here. PosteriorSampler has no such "
            "limit."
        )
    return [min(range_of(floor, r), WIDEST) for r in states]


def tempering(states: Sequence[int], floor: float, epsilon: Fraction) -> tuple[list[float], float]:
    """Find the ranges of the nodes' rows and the printed power epsilon / (2 |I| log(1 / w)) for both relations."""
    ranges, _ = posterior.tempering(states, floor, epsilon, "replace_one")
    bound = -len(states) * math.log(floor)
    return ranges, float(epsilon) / (2 * bound) * (1 - 2 * RESERVE)


def temper(
    parents: int, bound: float, tau: float, prior_precision: float, epsilon: Fraction, neighbours: str
) -> Regression:
    """Temper as the library does, with the printed Lipschitz constant L' in the record."""
    mean = largest_mean(parents, bound)
    stated = 2 * (1 + mean) * root_above(1 + mean**2)
    return regression.temper(parents, bound, tau, prior_precision, epsilon, neighbours, stated)


def printed_sensitivity(subsets: Sequence[Clique], cardinalities: Mapping[str, int]) -> float:
    """Return twice the sensitivity to adding a record, in any basis: 2 |N_I| for binary variables."""
    return 2 * math.fsum(math.prod(contrasts(cardinalities[v]).spread for v in subset) for subset in subsets)


def printed_increment(release: NoisyCoefficients, failure_probability: float = 0.1) -> float:
    """Compute the printed increment, which makes the full table non-negative except with the failure probability p.

    It does not depend on the noisy values. With probability at least 1 - p, none of the m coefficients has noise above
    b log(m / p) for noise of scale b. A cell of the full table is the sum of the coefficients, weighted by products of
    contrasts of at most A_i. For binary variables and the printed scale the increment is 4 t |N_I|**2 / epsilon with t
    = log(|N_I| / p) / 2 (Corollary 3, recalled because the formula is illegible in the available copy; it agrees with
    Theorem 3).
    """
    _fraction("failure_probability", failure_probability)
    closure = downward_closure(release.schema, release.cliques)
    cards = {v: release.schema.cardinality(v) for clique in release.cliques for v in clique}
    size = sum(math.prod(cards[v] - 1 for v in subset) for subset in closure)
    largest = release.scale * math.log(size / failure_probability)
    return fourier_sensitivity(release.schema, closure, "add_remove") * largest


@dataclass(frozen=True)
class PrintedRows(PosteriorRows):
    """Draw rows from the posterior with the printed :func:`truncation`."""

    def _priced(self, states: list[int], epsilon: Fraction, neighbours: str) -> tuple[list[float], float, Fraction]:
        ranges = truncation(states, epsilon, neighbours)
        return ranges, 1.0, Fraction(str(draw_cost(ranges, 1.0, neighbours)))


@dataclass(frozen=True)
class PrintedLikelyRows(LikelyRows):
    """Draw rows by the exponential mechanism with the printed :func:`tempering`."""

    def _priced(self, states: list[int], epsilon: Fraction, neighbours: str) -> tuple[list[float], float, Fraction]:
        ranges, power = tempering(states, float(exact_positive("floor", self.floor)), epsilon)
        return ranges, power, Fraction(str(draw_cost(ranges, power, neighbours)))


@dataclass(frozen=True)
class PrintedRegressions(PosteriorRegressions):
    """Draw linear regressions with the printed :func:`temper`."""

    _temper: ClassVar[Callable[..., Regression]] = staticmethod(temper)


@dataclass(frozen=True)
class PrintedCoefficients(FourierCoefficients):
    """Measure Fourier coefficients with noise for the :func:`printed_sensitivity`."""

    def _price(
        self, schema: Schema, closure: Sequence[Clique], sensitivity: float, epsilon: Fraction
    ) -> tuple[Fraction, float]:
        cardinalities = {v: schema.cardinality(v) for subset in closure for v in subset}
        scale = printed_sensitivity(closure, cardinalities) / float(epsilon) * (1 + 1e-9)
        return min(epsilon, Fraction(str(decimal_above(Fraction(sensitivity) / Fraction(scale))))), scale


class PrintedPosteriorSampler(PosteriorSampler):
    """`PosteriorSampler` with the printed truncation."""

    _mechanism = PrintedRows


class PrintedExponentialMAP(ExponentialMAP):
    """`ExponentialMAP` with the printed tempering."""

    _mechanism = PrintedLikelyRows


class PrintedLinearSampler(LinearPosteriorSampler):
    """`LinearPosteriorSampler` with the printed tempering."""

    _mechanism = PrintedRegressions


class PrintedBayesianEstimator(PrivateBayesianEstimator):
    """`PrivateBayesianEstimator` with the printed sensitivity, and the printed increment unless more is needed."""

    _coefficients = PrintedCoefficients

    def _counts(self, release: Any, scopes: Sequence[Clique]) -> dict[Clique, Vector]:
        if self.increment is None or not isinstance(release, NoisyCoefficients):
            return super()._counts(release, scopes)
        coefficients = release.to_coefficients().non_negative(printed_increment(release))
        return {scope: np.maximum(coefficients.table(scope), 0.0) for scope in scopes}


_W = 1.2564312086261697  # w, the positive solution of exp(w) = 1 + 2 w
_KAPPA = 2.0 * _W / math.expm1(-_W) ** 2


def count_error_bound(counts: int, scale: float, failure_probability: float) -> float:
    """Bound the largest discrete Laplace noise of all counts with probability 1 - failure_probability (Proposition 1).

    For q = exp(-1 / scale), one count's noise exceeds k in absolute value with probability 2 q**(k + 1) / (1 + q). By
    the union bound, the least k for which `counts` times this is at most the failure probability bounds all noise. The
    paper's bound, scale * log(counts / failure_probability), is for continuous noise; discrete noise can exceed it with
    a larger probability (0.0728 instead of 0.0499). Clamping does not move a count farther from the truth.

    Parameters
    ----------
    counts : int
        Number of noisy cells: 2 m in the paper, for m CPD rows of binary variables.
    scale : float
        Noise scale: 2 |I| / epsilon under "replace_one", |I| / epsilon under "add_remove".
    failure_probability : float

    Examples
    --------
    >>> round(count_error_bound(66, 34.0, 0.1), 1)
    221.0
    """
    q = math.exp(-1.0 / float(exact_positive("scale", scale)))
    failure = _fraction("failure_probability", failure_probability)
    enough = failure / counts * (1.0 + q) / 2.0  # largest q**(k + 1) allowed
    bound = max(math.ceil(scale * -math.log(enough)) - 1, 0)
    # Floating-point rounding can make `bound` too small by one.
    return float(bound if q ** (bound + 1) <= enough else bound + 1)


def posterior_divergence(
    exact: Mapping[Any, ArrayLike] | Sequence[ArrayLike], private: Mapping[Any, ArrayLike] | Sequence[ArrayLike]
) -> float:
    """Sum KL(exact || private) of two Dirichlet posteriors over the CPD rows of all nodes, in nats.

    Parameters
    ----------
    exact, private : mappings of node to array, or sequences of arrays
        Dirichlet parameters, with one row per state and one column per configuration of the parents, such as
        `posterior_counts_` of `PrivateBayesianEstimator`.

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
    """Bounds on the divergence by Theorem 1, with the paper's constants and with refined ones."""

    expectation: float
    deviation: float
    paper_expectation: float
    paper_deviation: float

    @property
    def bound(self) -> float:
        """Return the bound that holds with probability at least one minus the failure probability."""
        return self.expectation + self.deviation


def divergence_bound(
    prior: Iterable[ArrayLike], total: float, scale: float, failure_probability: float
) -> DivergenceBound:
    """Bound `posterior_divergence` of Algorithm 1 by Theorem 1, without using the records.

    Parameters
    ----------
    prior : iterable of arrays
        Dirichlet parameters, all at least 1, with one row per state and one column per configuration of the parents.
    total : float
        Number of records n.
    scale : float
        Noise scale of every count.
    failure_probability : float

    Raises
    ------
    ValueError
        If a parameter is below 1. The ranges do not hold there: for parameters 0.5 and n = 5 the divergence reaches
        17.9, but the range is 17.05.

    Notes
    -----
    The divergence of two Dirichlet distributions is a Bregman divergence whose Hessian is at most diag(trigamma). For
    noise x it is therefore at most sum_k x_k**2 trigamma(alpha_k) / 2, and E x_k**2 <= 2 scale**2.

    Stick-breaking turns a row of r states into r - 1 beta variables. The k-th has the parameters alpha_k and the sum of
    the later ones, which the counts raise by at most m = (r - k) n. Its range is that of a beta variable with m in
    place of n. The bound m log((alpha + m) (beta + m)) on the divergence of beta variables is checked numerically, not
    proved.

    Examples
    --------
    >>> found = divergence_bound([[[1.0], [1.0]]], total=1000, scale=2.0, failure_probability=0.1)
    >>> round(found.expectation, 3), found.expectation < found.paper_expectation
    (13.159, True)
    """
    n, b = float(exact_positive("total", total)), float(exact_positive("scale", scale))
    failure = _fraction("failure_probability", failure_probability)
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
    """Bound the L1 error of a noisy marginal (Theorem 3).

    The bounds for all cliques hold together with probability at least 1 - p, for the failure probability p. With this
    probability, no coefficient's noise exceeds `count_error_bound` for the number of coefficients. Each coefficient
    contributes at most its noise to the L1 error, and a clique of c cells has c coefficients. The increment is added.
    For binary variables and the paper's scale the bound is (4 |N_I| / epsilon) (2**|parents| log(|N_I| / p) + t |N_I|),
    up to the rounding to whole numbers.

    Parameters
    ----------
    noisy : NoisyCoefficients
    clique : tuple of str
        Subset of a measured clique.
    failure_probability : float
    increment : float
        Number of records added to make the tables non-negative.

    Examples
    --------
    >>> import pgmpy_dp as dp
    >>> budget = dp.PrivacyBudget(1.0)
    >>> data = dp.PrivateDataset({("a", "b"): [[30, 10], [20, 40]]}, dp.Schema({"a": [0, 1], "b": [0, 1]}), budget)
    >>> noisy = data.measure_coefficients([("a", "b")], epsilon=1.0)
    >>> fourier_marginal_bound(noisy, ("a", "b"), failure_probability=0.1)
    60.0
    """
    size = sum(values.size for values in noisy.values.values()) + (0 if noisy.public_total is None else 1)
    scales = {float(s) for subset in noisy.values for s in noise_scales(noisy.schema, subset, noisy.scale).ravel()}
    largest = max(noisy.scale / s * count_error_bound(size, s, failure_probability) for s in scales)
    return noisy.schema.cells(clique) * largest + increment


def exponential_map_failure(power: float, slack: float, mass: float) -> float:
    """Bound the probability that `ExponentialMAP` is over 2 * slack nats below the best log-likelihood (Lemma 4).

    The bound is exp(-power * slack) / mass. Where the log-likelihood is below OPT - 2 slack, the unnormalised density
    is at most exp(power (OPT - 2 slack)) times the prior's, and the normalising constant is at least
    exp(power (OPT - slack)) mass. The paper writes epsilon for the power.

    Parameters
    ----------
    power : float
        Power of the likelihood, `release_.power`.
    slack : float
        Difference in log-likelihood, in nats.
    mass : float
        Prior probability, within the truncation, of a log-likelihood above OPT - slack; depends on the records.

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
    """Concentration of a prior on parameters with smooth likelihoods (Assumption 2 of Dimitrakakis et al.).

    For every L, the parameters whose log-likelihood differs by at most L rho(x, y) between all data sets x and y have a
    prior mass of at least 1 - exp(-rate (L - offset)).

    Attributes
    ----------
    rate : float
        c, positive.
    offset : float
        L0, non-negative.

    Examples
    --------
    >>> StochasticLipschitz(rate=2.0, offset=0.5)
    StochasticLipschitz(rate=2.0, offset=0.5)
    """

    rate: float
    offset: float

    def __post_init__(self) -> None:
        exact_positive("rate", self.rate)
        if not 0.0 <= self.offset < math.inf:
            raise ValueError(f"offset must be a number of at least 0, got {self.offset!r}.")


def joint_stochastic_lipschitz(nodes: Iterable[StochasticLipschitz]) -> StochasticLipschitz:
    """Combine the smoothness of the nodes into the smoothness of the network (Lemma 3).

    Distances are summed over nodes. Where every node has the Lipschitz constant L, so does the network. By the union
    bound, all other parameters have a mass of at most sum_i exp(-c_i (L - L0_i)). If L is at least every L0_i, this is
    at most exp(-c (L - L0)), where c is the least rate and exp(c L0) = sum_i exp(c L0_i). The sum is the number of
    nodes if all offsets are 0, as in the paper.

    Examples
    --------
    >>> joint = joint_stochastic_lipschitz([StochasticLipschitz(2.0, 0.0), StochasticLipschitz(3.0, 0.0)])
    >>> joint.rate, round(joint.offset, 4)
    (2.0, 0.3466)
    """
    smooth = list(nodes)
    if not smooth:
        raise ValueError("A network has at least one node.")
    rate = min(node.rate for node in smooth)
    return StochasticLipschitz(rate, float(logsumexp([rate * node.offset for node in smooth])) / rate)


def stochastic_lipschitz_bound(
    smooth: StochasticLipschitz, likelihood_ratio: float, distance: float, delta: float = 0.5
) -> float:
    """Bound the difference between the posteriors of two data sets on any event (Theorem 4 (2)).

    The bound is sqrt(M distance / 2), where M bounds the KL divergence per unit of distance. A draw from the posterior
    is (0, bound)-differentially private for data sets at this distance. The form of M is recalled and not checked
    against the print; its constants are derived anew: w solves exp(w) = 1 + 2 w, and
    kappa = 2 w / (1 - exp(-w))**2. The samplers of this package truncate the posterior and do not rely on this bound.

    Parameters
    ----------
    smooth : StochasticLipschitz
        Smoothness of the network; see `joint_stochastic_lipschitz`.
    likelihood_ratio : float
        C, the largest ratio of the maximum likelihood of a data set to its marginal likelihood; at least 1.
    distance : float
        rho(x, y), at most (1 - delta) times the rate.
    delta : float
        Any number between 0 and 1.

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


def _fraction(name: str, value: float) -> float:
    if not 0 < value < 1:
        raise ValueError(f"{name} must be between 0 and 1, got {value!r}.")
    return value
