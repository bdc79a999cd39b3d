"""Plans of Gaussian sums over random samples are priced here, and the noise that a cost needs is found.

A plan is a fixed number of steps. Each draws a fresh random sample of the records and adds Gaussian noise to a sum
over the sample. The noise multiplier is always the standard deviation of the noise over the L2 sensitivity of one
step's sum, under the neighbour relation that goes with the sampling:

- "poisson": every record is in a sample with the same probability, independently; neighbours "add_remove".
- "without_replacement": samples of one size; neighbours "replace_one".

dp-accounting computes all costs. Under REPLACE_ONE its Renyi accountant reads a noise multiplier as ours, its
privacy-loss accountant as the deviation over the norm of one record; only this file calls them, and never the second
way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

from pgmpy_dp.privacy.checks import checked_delta, choice, exact_positive, rounded_down, whole_number

SAMPLINGS = {"poisson": "add_remove", "without_replacement": "replace_one"}
"""The neighbour relation of each way to sample."""

# An accountant computes what a plan costs from noise multiplier, delta, steps, sampling rate and sampling.
Accountant = Callable[[float, float, int, float, str], float]

# This share of delta pays for noise on a grid in place of continuous noise, see `grid_delta`.
GRID_SHARE = 2.0**-10

# No higher noise multiplier is considered: grids of 2**30 steps a deviation hold no finer sums.
MAX_MULTIPLIER = 2.0**20

# At these integer Renyi orders the bounds for samples without replacement are evaluated exactly (in a time of order
# squared, and from 257 on more loosely).
RENYI_ORDERS = (*range(2, 25), *range(26, 41, 2), 44, 48, 56, 64, 80, 96, 128, 512, 2048)


def price(
    noise_multiplier: float,
    delta: float,
    *,
    steps: int,
    sampling_rate: float,
    sampling: str = "poisson",
) -> float:
    """Find the epsilon of a plan at the given delta, before it starts.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the L2 sensitivity of one step's sum.
    delta : float
        In (0, 1). One part in 1024 of it pays for the grid that noise lives on; see :func:`grid_delta`.
    steps : int
    sampling_rate : float
        Probability of a record to be in one step's sample, in (0, 1].
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
    Privacy-loss distributions give the price of Poisson samples, the Renyi bound of Wang, Balle and Kasiviswanathan
    (2019) that of samples of one size.

    Examples
    --------
    >>> round(price(1.24, 1e-4, steps=20, sampling_rate=0.05), 2)
    0.93
    """
    return price_by(tight, noise_multiplier, delta, steps, sampling_rate, sampling)


def calibrate(
    epsilon: float | Fraction,
    delta: float,
    *,
    steps: int,
    sampling_rate: float,
    sampling: str = "poisson",
) -> float:
    """Find the least noise multiplier for which a plan costs at most epsilon and delta, to a part in ten thousand.

    Parameters
    ----------
    epsilon : float
        Positive, finite.
    delta, steps, sampling_rate, sampling
        As :func:`price`.

    Returns
    -------
    float
        Rounded to the safe side: :func:`price` of it is at most epsilon.

    Raises
    ------
    ValueError
        If an argument is out of range, or no noise multiplier up to 2**20 is enough.

    Examples
    --------
    >>> noise = calibrate(1.0, 1e-6, steps=100, sampling_rate=0.05)
    >>> round(noise, 1), price(noise, 1e-6, steps=100, sampling_rate=0.05) <= 1.0
    (2.4, True)
    """
    return calibrate_by(tight, epsilon, delta, steps, sampling_rate, sampling)


def price_by(
    accountant: Accountant, noise_multiplier: float, delta: float, steps: int, sampling_rate: float, sampling: str
) -> float:
    """Price a plan as :func:`price`, by an accountant of one's own."""
    sigma = rounded_down(exact_positive("noise_multiplier", noise_multiplier))
    delta = checked_delta(delta, zero_allowed=False)
    rate = _checked_plan(steps, sampling_rate, sampling)
    if sigma > MAX_MULTIPLIER:
        raise ValueError(f"noise_multiplier must be at most 2**20, got {noise_multiplier!r}.")
    return accountant(sigma, _without_grid(delta), int(steps), rate, sampling)


def calibrate_by(
    accountant: Accountant, epsilon: float | Fraction, delta: float, steps: int, sampling_rate: float, sampling: str
) -> float:
    """Find the noise as :func:`calibrate`, by an accountant of one's own."""
    target = rounded_down(exact_positive("epsilon", epsilon))
    delta = checked_delta(delta, zero_allowed=False)
    rate = _checked_plan(steps, sampling_rate, sampling)
    return _calibrate(accountant, target, _without_grid(delta), int(steps), rate, sampling)


def _checked_plan(steps: Any, sampling_rate: Any, sampling: Any) -> float:
    """Check the public numbers of a plan; return the sampling rate as a float that is not below it."""
    whole_number("steps", steps, most=2**31 - 1)
    exact = exact_positive("sampling_rate", sampling_rate)
    if exact > 1:
        raise ValueError(f"sampling_rate must be at most 1, got {sampling_rate!r}.")
    choice(*SAMPLINGS)("sampling", sampling)
    rate = rounded_down(exact)
    return rate if rate == exact else min(math.nextafter(rate, 1.0), 1.0)


def grid_delta(epsilon: float, steps: int, cells: int, deviation: float) -> float:
    """Bound what plans with discrete Gaussian noise add to the delta of the continuous ones.

    Let all sums be integers, and the noise of every cell a discrete Gaussian variable of parameter sigma, the
    `deviation`. Were it a continuous normal variable rounded to the nearest integer, rounding after adding would give
    the same, so that every price of continuous noise would hold. The two noises differ by at most

        eta = 1/2 sum_k |p(k) - q(k)| <= 1 / (24 sigma**2)

    in total variation for sigma >= 1: the integral of the density over a cell is its midpoint value but for a 24th of
    the second derivative, of which the absolute integral is 0.97 / sigma**2 in all, and the normalising sum differs
    from 1 by less than exp(-19 sigma**2) (both are tested). A coupling of all cells of all steps fails with probability
    at most steps * cells * eta, under each of two neighbours: (1 + exp(epsilon)) times that joins delta.
    """
    return (1.0 + math.exp(min(epsilon, 700.0))) * steps * cells / (24.0 * deviation**2)


def _without_grid(delta: float) -> float:
    """Take the grid's share off delta, which is charged as the decimal it prints as; rounded down."""
    return rounded_down(Fraction(str(delta)) * (1 - Fraction(GRID_SHARE)))


def sampled_gaussian(sigma: float, rate: float, sampling: str) -> Any:
    """Describe one step as an event of dp-accounting."""
    from dp_accounting import dp_event

    gaussian = dp_event.GaussianDpEvent(sigma)
    if rate == 1.0:
        return gaussian
    if sampling == "poisson":
        return dp_event.PoissonSampledDpEvent(rate, gaussian)
    # The event takes two sizes, of which only the quotient matters.
    return dp_event.SampledWithoutReplacementDpEvent(1.0, rate, gaussian)


@lru_cache(maxsize=1024)
def tight(sigma: float, delta: float, steps: int, rate: float, sampling: str) -> float:
    """Compute `price` without the grid's share of delta."""
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.privacy_accountant import NeighboringRelation

    if rate < 1.0 and sampling == "without_replacement":
        accountant = renyi_accountant(sampling)
    else:
        # Over all records, a Gaussian sum is one pair of normal distributions at distance 1 / sigma in any relation.
        accountant = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE, _interval(sigma, steps, rate))
    accountant.compose(sampled_gaussian(sigma, rate, sampling), steps)
    return float(accountant.get_epsilon(delta))


def _interval(sigma: float, steps: int, rate: float) -> float:
    """Choose the interval at which losses are discretised (always to the safe side): the coarser the larger they are.

    A step's loss is split between the two grid points around it, which adds about interval**2 / 6 to its variance: at a
    hundredth of its standard deviation less than one part in 1e5 of epsilon, at any number of steps.
    """
    variance = min(math.expm1(min(1.0 / sigma**2, 50.0)) * rate**2, 0.5 * rate / sigma**2)  # of a step, about
    return max(1e-4 * min(max(steps * variance / 2.0, 1.0), 1000.0), math.sqrt(variance) / 100.0)


def renyi_accountant(sampling: str, orders: tuple[int, ...] = RENYI_ORDERS) -> Any:
    """Return dp-accounting's Renyi accountant for the neighbour relation of a way to sample."""
    from dp_accounting.privacy_accountant import NeighboringRelation
    from dp_accounting.rdp import RdpAccountant

    relation = "ADD_OR_REMOVE_ONE" if sampling == "poisson" else "REPLACE_ONE"
    return RdpAccountant(list(orders), NeighboringRelation[relation])


@lru_cache(maxsize=256)
def _calibrate(accountant: Accountant, target: float, delta: float, steps: int, rate: float, sampling: str) -> float:
    def cost(sigma: float) -> float:
        # Price at the number that `price` takes it for: discretised losses may jump from one float to the next.
        sigma = rounded_down(exact_positive("noise_multiplier", sigma))
        return accountant(sigma, delta, steps, rate, sampling)

    low = high = _first_guess(target, delta, steps, rate)
    while cost(high) > target:
        low, high = high, high * 1.25
        if high > MAX_MULTIPLIER:
            raise ValueError(
                f"No noise multiplier up to 2**20 brings {steps} steps at sampling rate {rate:g} to "
                f"epsilon={target:g}, delta={delta:g}: plan fewer steps, or raise epsilon or delta."
            )
    while cost(low) <= target:
        low, high = low / 1.25, low
        if low < 1e-2:  # no noise to speak of is enough
            return high
    return _bracketed(cost, target, low, high)


def _first_guess(target: float, delta: float, steps: int, rate: float) -> float:
    """Guess by the central limit: steps of rate / sigma add up like one Gaussian."""
    from dp_accounting import get_sigma_gaussian

    whole = float(get_sigma_gaussian(target, delta))
    return min(max(rate * math.sqrt(steps) * whole, 0.5), MAX_MULTIPLIER / 2.0)


def _bracketed(cost: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Shrink cost(low) > target >= cost(high) on logarithmic axes, by secants kept within the bracket."""
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
