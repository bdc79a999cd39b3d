"""Privacy cost of a draw from the truncated posterior of linear regressions, and the tempering that meets an epsilon.

A node y with k parents is y = x . theta + noise of precision tau, x = (1, u_1 .. u_k). Values are scaled to their
public bounds, so that |y| <= 1 and |x| <= sqrt(1 + k). The prior N(0, I / b) is truncated to |theta| <= B. There

    -tau R**2 / 2 <= log p(y | x, theta) - log p(0 | 0, theta) <= 0,    R = 1 + sqrt(1 + k) B,

and both bounds are attained, so a record's log-likelihood varies by at most L = tau R**2 / 2. With the likelihood
raised to a power lam, one draw costs 2 lam L where a record is replaced and lam L where one is added or removed, by the
argument of `pgmpy_dp.privacy.posterior`. The nodes' coefficients are drawn independently, and their costs add up.
(Zhang, Rubinstein and Dimitrakakis 2016, appendix D, in words; the formulas are derived here.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from pgmpy_dp.privacy.checks import decimal_above, rounded_down

# Largest expected number of tries of a draw, for any records.
MOST_TRIES = 1e7


@dataclass(frozen=True)
class Regression:
    """Public parameters of a node's regression; the posterior density is exp(-c sum r**2 / 2 - b |theta|**2 / 2).

    Attributes
    ----------
    parents : int
        k.
    bound : float
        B.
    precision : float
        c = lam tau, of the tempered likelihood.
    prior_precision : float
        b.
    power : float
        lam.
    cost : Fraction
        Epsilon of one draw.
    """

    parents: int
    bound: float
    precision: float
    prior_precision: float
    power: float
    cost: Fraction


def temper(
    parents: int, bound: float, tau: float, prior_precision: float, epsilon: Fraction, neighbours: str
) -> Regression:
    """Find the largest power of the likelihood, at most 1, for which a draw costs at most epsilon.

    Examples
    --------
    >>> round(temper(0, 1.0, 1.0, 1.0, Fraction(2), "replace_one").power, 9)
    0.5
    >>> round(float(temper(0, 1.0, 1.0, 1.0, Fraction(100), "replace_one").cost), 9)
    4.0
    """
    precision = min(tau, rounded_down(epsilon / unit_cost(parents, bound, neighbours)))
    return tempered(parents, bound, tau, prior_precision, epsilon, neighbours, precision)


def tempered(
    parents: int,
    bound: float,
    tau: float,
    prior_precision: float,
    epsilon: Fraction,
    neighbours: str,
    precision: float,
) -> Regression:
    """Make a regression with a given precision of the tempered likelihood; its cost is capped at epsilon."""
    cost = Fraction(str(decimal_above(Fraction(precision) * unit_cost(parents, bound, neighbours))))
    return Regression(parents, bound, precision, prior_precision, precision / tau, min(cost, epsilon))


def unit_cost(parents: int, bound: float, neighbours: str) -> Fraction:
    """Compute the epsilon of one draw at precision 1, rounded up: R**2, or half of it under "add_remove"."""
    span = (1 + largest_mean(parents, bound)) ** 2
    return span / 2 if neighbours == "add_remove" else span


def largest_mean(parents: int, bound: float) -> Fraction:
    """Bound x . theta by sqrt(1 + k) B, rounded up."""
    return Fraction(bound) * root_above(Fraction(1 + parents))


def expected_tries(regression: Regression, records: int) -> float:
    """Bound the expected number of tries of a draw, for the most unlikely data of this number of records.

    See `pgmpy_dp.privacy.ball`: the tilt is at most d + |g|, and |g| at most c B n sqrt(1 + k).
    """
    size = regression.parents + 1
    tilt = size + regression.precision * regression.bound * records * math.sqrt(size)
    return math.sqrt(math.pi * (size + 2 * tilt)) + 2


def grid_steps(regression: Regression, records: int) -> int:
    """Number of grid steps in the radius: a public power of 2, so large that the posterior is wide beside a step."""
    size = regression.parents + 1
    bound, precision = regression.bound, regression.precision
    sharpest = bound**2 * (precision * records + regression.prior_precision)
    sharpest += 2 * size + precision * bound * records * math.sqrt(size)
    return int(2 ** math.ceil(12 + math.log2(sharpest) / 2))


def root_above(value: Fraction) -> Fraction:
    """Return the square root of a number, rounded up."""
    return Fraction(math.nextafter(math.sqrt(math.nextafter(float(value), math.inf)), math.inf))
