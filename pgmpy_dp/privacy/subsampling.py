"""Prices of plans of Gaussian sums over random samples, and calibration of their noise.

A plan is a fixed number of steps. Each draws a fresh random sample of the records and adds Gaussian noise to a sum
over the sample. The noise multiplier is always the standard deviation of the noise divided by the L2 sensitivity of one
step's sum, under the neighbour relation that belongs to the sampling:

- "poisson": each record enters a sample independently with the same probability; neighbours "add_remove".
- "without_replacement": samples of one fixed size; neighbours "replace_one".

All costs are computed by dp-accounting. Under REPLACE_ONE its Renyi accountant defines the noise multiplier as we do,
while its privacy-loss accountant divides the deviation by the norm of one record. Only this module calls them, and it
never uses the latter under REPLACE_ONE.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

from pgmpy_dp.privacy.checks import checked_delta, choice, decimal_above, exact_positive, rounded_down, whole_number

SAMPLINGS = {"poisson": "add_remove", "without_replacement": "replace_one"}
"""Neighbour relation that belongs to each kind of sampling."""

# Computes the cost of a plan from noise multiplier, delta, steps, sampling rate and sampling.
Accountant = Callable[[float, float, int, float, str], float]

# Share of delta reserved for drawing noise on a grid instead of continuous noise; see `grid_delta`.
GRID_SHARE = 2.0**-10

# Largest noise multiplier considered: grids of 2**30 steps per deviation do not resolve finer sums.
MAX_MULTIPLIER = 2.0**20

# Integer Renyi orders at which the bounds for samples without replacement are evaluated (exactly, in time quadratic in
# the order, and more loosely from 257 on).
RENYI_ORDERS = (*range(2, 25), *range(26, 41, 2), 44, 48, 56, 64, 80, 96, 128, 512, 2048)


def price(
    noise_multiplier: float,
    delta: float,
    *,
    steps: int,
    sampling_rate: float,
    sampling: str = "poisson",
) -> float:
    """Compute the epsilon of a plan at a given delta, before it starts.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise divided by the L2 sensitivity of one step's sum.
    delta : float
        In (0, 1). One part in 1024 of it is reserved for the grid of the noise; see :func:`grid_delta`.
    steps : int
    sampling_rate : float
        Probability that a record is in the sample of a step, in (0, 1].
    sampling : {"poisson", "without_replacement"}

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Poisson samples are priced by privacy-loss distributions, samples of fixed size by the Renyi bound of Wang, Balle
    and Kasiviswanathan (2019).

    Examples
    --------
    >>> round(price(1.24, 1e-4, steps=20, sampling_rate=0.05), 2)
    0.93
    """
    return tight(checked_multiplier(noise_multiplier), *checked_plan(delta, steps, sampling_rate, sampling))


def calibrate(
    epsilon: float | Fraction,
    delta: float,
    *,
    steps: int,
    sampling_rate: float,
    sampling: str = "poisson",
) -> float:
    """Find the least noise multiplier for which a plan costs at most (epsilon, delta), to within 0.01 %.

    Parameters
    ----------
    epsilon : float
        Positive, finite.
    delta, steps, sampling_rate, sampling
        As for :func:`price`.

    Returns
    -------
    float
        Rounded to the safe side: its :func:`price` is at most epsilon.

    Raises
    ------
    ValueError
        If an argument is out of range, or no noise multiplier up to 2**20 suffices.

    Examples
    --------
    >>> noise = calibrate(1.0, 1e-6, steps=100, sampling_rate=0.05)
    >>> round(noise, 1), price(noise, 1e-6, steps=100, sampling_rate=0.05) <= 1.0
    (2.4, True)
    """
    target = rounded_down(exact_positive("epsilon", epsilon))
    return smallest_multiplier(tight, target, *checked_plan(delta, steps, sampling_rate, sampling))


def checked_multiplier(noise_multiplier: Any) -> float:
    """Check a noise multiplier; return a float that is not above it."""
    sigma = rounded_down(exact_positive("noise_multiplier", noise_multiplier))
    if sigma > MAX_MULTIPLIER:
        raise ValueError(f"noise_multiplier must be at most 2**20, got {noise_multiplier!r}.")
    return sigma


def checked_plan(delta: Any, steps: Any, sampling_rate: Any, sampling: Any) -> tuple[float, int, float, str]:
    """Check the public numbers of a plan, as accountants take them."""
    delta = checked_delta(delta, zero_allowed=False)
    whole_number("steps", steps, maximum=2**31 - 1)
    exact = sampling_fraction(sampling_rate)
    choice(*SAMPLINGS)("sampling", sampling)
    rate = rounded_down(exact)
    return _without_grid(delta), int(steps), rate if rate == exact else min(math.nextafter(rate, 1.0), 1.0), sampling


def grid_delta(epsilon: float, steps: int, cells: int, deviation: float) -> float:
    """Bound what discrete in place of continuous Gaussian noise adds to the delta of a plan.

    Let all sums be integers, and the noise of every cell a discrete Gaussian variable of parameter sigma, the
    `deviation`. For a continuous normal variable rounded to the nearest integer, rounding the noise is the same as
    rounding the sum after adding it, so every price of continuous noise would hold. The two distributions differ by at
    most

        eta = 1/2 sum_k |p(k) - q(k)| <= 1 / (24 sigma**2)

    in total variation for sigma >= 1: the integral of the density over a cell differs from its midpoint value by a 24th
    of the second derivative, whose absolute integral is 0.97 / sigma**2, and the normalising sum differs from 1 by less
    than exp(-19 sigma**2) (both are tested). A coupling of all cells of all steps fails with probability at most
    steps * cells * eta, under each of two neighbours: (1 + exp(epsilon)) times that is added to delta.
    """
    return (1.0 + math.exp(min(epsilon, 700.0))) * steps * cells / (24.0 * deviation**2)


def _without_grid(delta: float) -> float:
    """Subtract the grid's share from delta, which is charged as its printed decimal; rounded down."""
    return rounded_down(Fraction(str(delta)) * (1 - Fraction(GRID_SHARE)))


def sampled_gaussian(sigma: float, rate: float, sampling: str) -> Any:
    """Return one step as an event of dp-accounting."""
    from dp_accounting import dp_event

    gaussian = dp_event.GaussianDpEvent(sigma)
    if rate == 1.0:
        return gaussian
    if sampling == "poisson":
        return dp_event.PoissonSampledDpEvent(rate, gaussian)
    # The event takes two sizes, of which only the ratio matters.
    return dp_event.SampledWithoutReplacementDpEvent(1.0, rate, gaussian)


@lru_cache(maxsize=1024)
def tight(sigma: float, delta: float, steps: int, rate: float, sampling: str) -> float:
    """Compute `price`; delta excludes the grid's share."""
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.privacy_accountant import NeighboringRelation

    if rate < 1.0 and sampling == "without_replacement":
        accountant = renyi_accountant(sampling)
    else:
        # On all records, a Gaussian sum is a pair of normal distributions at distance 1 / sigma under either relation.
        accountant = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE, _interval(sigma, steps, rate))
    accountant.compose(sampled_gaussian(sigma, rate, sampling), steps)
    return float(accountant.get_epsilon(delta))


def _interval(sigma: float, steps: int, rate: float) -> float:
    """Choose the width of the loss grid (discretised to the safe side): the larger the losses, the coarser.

    A step's loss is split between the two grid points around it, which adds about interval**2 / 6 to its variance: at 1
    % of its standard deviation this is less than one part in 1e5 of epsilon, at any number of steps.
    """
    variance = min(math.expm1(min(1.0 / sigma**2, 50.0)) * rate**2, 0.5 * rate / sigma**2)  # of one step, roughly
    return max(1e-4 * min(max(steps * variance / 2.0, 1.0), 1000.0), math.sqrt(variance) / 100.0)


def renyi_accountant(sampling: str, orders: tuple[int, ...] = RENYI_ORDERS) -> Any:
    """Return dp-accounting's Renyi accountant for the neighbour relation of a kind of sampling."""
    from dp_accounting.privacy_accountant import NeighboringRelation
    from dp_accounting.rdp import RdpAccountant

    relation = "ADD_OR_REMOVE_ONE" if sampling == "poisson" else "REPLACE_ONE"
    return RdpAccountant(list(orders), NeighboringRelation[relation])


@lru_cache(maxsize=256)
def smallest_multiplier(
    accountant: Accountant, target: float, delta: float, steps: int, rate: float, sampling: str
) -> float:
    """Find the least noise multiplier at which a plan costs at most a target, by an accountant, to within 0.01 %."""

    def cost(sigma: float) -> float:
        # Price the float that `price` would use: discretised losses may jump from one float to the next.
        sigma = rounded_down(exact_positive("noise_multiplier", sigma))
        return accountant(sigma, delta, steps, rate, sampling)

    from dp_accounting import get_sigma_gaussian

    # By the central limit theorem, steps of rate / sigma add up like one Gaussian.
    guess = rate * math.sqrt(steps) * float(get_sigma_gaussian(target, delta))
    low = high = min(max(guess, 0.5), MAX_MULTIPLIER / 2.0)
    while cost(high) > target:
        low, high = high, high * 1.25
        if high > MAX_MULTIPLIER:
            raise ValueError(
                f"No noise multiplier up to 2**20 brings {steps} steps at sampling rate {rate:g} to "
                f"epsilon={target:g}, delta={delta:g}: plan fewer steps, or raise epsilon or delta."
            )
    while cost(low) <= target:
        low, high = low / 1.25, low
        if low < 1e-2:  # practically no noise is enough
            return high
    return _bracketed(cost, target, low, high)


def _bracketed(cost: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Shrink the bracket cost(low) > target >= cost(high) on logarithmic axes, by safeguarded secants."""
    for step in range(60):
        at_low, at_high = cost(low), cost(high)
        if high <= low * (1.0 + 1e-4) or at_high >= target * (1.0 - 1e-4):
            break
        share = 0.5
        if step % 3 < 2 and at_high > 0.0 and math.isfinite(at_low):
            share = math.log(at_low / target) / math.log(at_low / at_high)
            share = min(max(share + (0.01 if step % 3 == 0 else -0.01), 0.02), 0.98)
        middle = low * (high / low) ** share
        if cost(middle) <= target:
            high = middle
        else:
            low = middle
    return high


_DIGITS = 60
# Relative margin by which results are moved to the safe side; the errors of the arithmetic are far smaller.
_MARGIN = Fraction(1, 10**40)
# Epsilon above which exp(epsilon) - 1 equals exp(epsilon) to all digits.
_LARGE = 10**6


def sampling_fraction(rate: object) -> Fraction:
    """Return a sampling rate as the exact fraction of its decimal text; ValueError unless in (0, 1]."""
    exact = exact_positive("sampling_rate", rate)
    if exact > 1:
        raise ValueError(f"sampling_rate must be greater than 0 and at most 1, got {rate!r}.")
    return exact


def amplified_epsilon(epsilon: float | Fraction, sampling_rate: float | Fraction) -> float:
    """Compute the privacy loss of an epsilon-differentially private mechanism on a Poisson sample of the records.

    Each record enters the sample independently with probability q, the sampling rate. Let neighbours differ in one
    record added or removed. With probability 1 - q that record is left out and both data sets have the same samples;
    otherwise the samples are neighbours. So if a is the probability of an answer from the smaller data set, that from
    the larger one is (1 - q) a + q b, with b between exp(-epsilon) a and exp(epsilon) a. Their ratio is at most

        1 + q (exp(epsilon) - 1),

    and the inverse ratio at most 1 / (1 - q (1 - exp(-epsilon))), which is not larger. The first is attained by
    randomised response. This argument does not cover neighbours that replace a record, or samples that are known.

    Chowdhury, Rekatsinas and Jha, Lemma 2.1; Li, Qardaji and Su 2012.
    """
    exact, rate = exact_positive("epsilon", epsilon), sampling_fraction(sampling_rate)
    return decimal_above(exact if rate == 1 else _scaled(exact, rate) * (1 + _MARGIN))


def epsilon_on_sample(epsilon: float | Fraction, sampling_rate: float | Fraction) -> Fraction:
    """Find the epsilon on a Poisson sample for a privacy loss of `epsilon`; inverse of :func:`amplified_epsilon`."""
    exact, rate = exact_positive("epsilon", epsilon), sampling_fraction(sampling_rate)
    return exact if rate == 1 else _scaled(exact, 1 / rate) * (1 - _MARGIN)


def _scaled(epsilon: Fraction, factor: Fraction) -> Fraction:
    """Compute log(1 + factor (exp(epsilon) - 1)) to more digits than `_MARGIN` needs."""
    small = min(epsilon, Fraction(1)) * min(factor, Fraction(1))
    lost = len(str(small.denominator)) - len(str(small.numerator)) + 1  # digits lost to cancellation for small epsilon
    with decimal.localcontext(
        prec=_DIGITS + max(lost, 0), Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, rounding=decimal.ROUND_HALF_EVEN
    ):
        by = decimal.Decimal(factor.numerator) / decimal.Decimal(factor.denominator)
        loss = decimal.Decimal(epsilon.numerator) / decimal.Decimal(epsilon.denominator)
        result = loss + by.ln() if epsilon > _LARGE else (1 + by * (loss.exp() - 1)).ln()
        return Fraction(result)
