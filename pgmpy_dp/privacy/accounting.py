"""Renyi differential privacy, as curves at fixed orders that dp-accounting converts to (epsilon, delta).

A Renyi curve is an array with one bound for each order in :data:`ORDERS`. The curves of mechanisms that run one
after another add up.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.privacy.checks import checked_delta, exact_positive, rounded_down
from pgmpy_dp.privacy.cost import Pure, Zcdp

# Orders minus one, in geometric steps of 6 %; a finer grid would lower epsilon by less than 0.05 %. The lowest order
# is just above the smallest that the conversion uses (1.01), the highest serves epsilons down to about 1e-6.
ORDERS: tuple[float, ...] = tuple(float(x) for x in 1.0 + np.geomspace(0.02, 1e8, 384))


def pure_curve(epsilon: float) -> NDArray[np.float64]:
    """Bound every epsilon-differentially private mechanism by a Renyi curve.

    Any such mechanism is a post-processing of one binary randomised response with the same epsilon (Kairouz, Oh
    and Viswanath 2015), whose divergence of order a is ``log(cosh((a - 1/2) e) / cosh(e / 2)) / (a - 1)``.
    It is below ``e`` and below ``a e**2 / 2``.
    """
    exact_positive("epsilon", epsilon)
    epsilon = max(float(epsilon), 1e-100)  # a larger epsilon is a valid bound, and its square does not underflow
    orders = np.asarray(ORDERS)
    # cosh(x) / cosh(y) = 1 + 2 sinh((x+y)/2) sinh((x-y)/2) / cosh(y), in logarithms: no cancellation for
    # small epsilon (dp-accounting's own formula loses all digits below 1e-8) and no overflow for large.
    with np.errstate(over="ignore"):
        excess = (
            (orders - 1.0) * epsilon
            + np.log(-np.expm1(-orders * epsilon))
            + np.log(-np.expm1(-(orders - 1.0) * epsilon))
            - math.log1p(math.exp(-epsilon))
        )
    curve: NDArray[np.float64] = np.logaddexp(0.0, excess) / (orders - 1.0)
    # Rounding errors are far below 1e-12; the bound itself never exceeds epsilon.
    return np.minimum(curve * (1.0 + 1e-12), epsilon)


def zcdp_curve(rho: float) -> NDArray[np.float64]:
    """Return the Renyi curve of a rho-zCDP mechanism: rho times the order (Bun and Steinke 2016, Definition 1.1)."""
    exact_positive("rho", rho)
    with np.errstate(over="ignore"):  # infinity means no bound at that order
        return rho * np.asarray(ORDERS)


def renyi_curve(loss: Pure | Zcdp) -> NDArray[np.float64]:
    """Return the Renyi curve of a loss, of shape (len(ORDERS),)."""
    if isinstance(loss, Zcdp):
        return zcdp_curve(loss.rho)
    # Take the float above the exact epsilon, so that the curve bounds it.
    return pure_curve(math.nextafter(rounded_down(loss.epsilon), math.inf))


def epsilon_from_renyi(curve: NDArray[np.float64], delta: float) -> float:
    """Convert a Renyi curve to the smallest epsilon at the given delta, over all orders.

    The conversion is dp-accounting's (Canonne, Kamath and Steinke 2020, Proposition 12). Taking the best order is
    sound for a plan that is fixed in advance. The ledger accepts charges that depend on earlier answers, so it
    fixes its order beforehand.
    """
    return _convert(curve, delta)[0]


def rho_for(epsilon: float | Fraction, delta: float) -> float:
    """Return the largest rho for which rho-zCDP implies (epsilon, delta) by :func:`epsilon_from_renyi`.

    The result is rounded down by one part in 1e12, so that shares of it always fit within the whole.
    """
    return _limit_of(epsilon, delta)[0] * (1.0 - 1e-12)


def zcdp_limit(epsilon: float | Fraction, delta: float) -> tuple[float, float]:
    """Return the rho that a ledger may spend in all for (epsilon, delta), and the order that proves it.

    It is rounded down by less than `rho_for`, so that shares of that fit within it after rounding.
    """
    rho, order = _limit_of(epsilon, delta)
    return rho * (1.0 - 5e-13), order


def _limit_of(epsilon: float | Fraction, delta: float) -> tuple[float, float]:
    return _limit(rounded_down(exact_positive("epsilon", epsilon)), checked_delta(delta, zero_allowed=False))


@lru_cache(maxsize=256)
def _limit(target: float, delta: float) -> tuple[float, float]:
    low = high = 1.0
    while _convert(zcdp_curve(low), delta)[0] > target:
        high, low = low, low / 2.0
        if low < 1e-290:
            raise ValueError(
                f"epsilon={target!r} is too small for delta={delta!r} in Renyi accounting: "
                "raise one of them, or use the Laplace mechanism."
            )
    while high < 8e307 and _convert(zcdp_curve(high), delta)[0] <= target:
        low, high = high, high * 2.0
    while (middle := math.sqrt(low) * math.sqrt(high)) and high > low * (1.0 + 1e-14) and low < middle < high:
        if _convert(zcdp_curve(middle), delta)[0] <= target:
            low = middle
        else:
            high = middle
    return low, _convert(zcdp_curve(low), delta)[1]


def _convert(curve: NDArray[np.float64], delta: float) -> tuple[float, float]:
    from dp_accounting.rdp import compute_epsilon  # the import takes a second

    curve = np.asarray(curve, dtype=np.float64)
    delta = checked_delta(delta, zero_allowed=False)
    # dp-accounting reports epsilon 0 for NaN: check before calling.
    if curve.shape != (len(ORDERS),) or not (curve >= 0.0).all():
        raise ValueError(f"A Renyi curve holds {len(ORDERS)} non-negative numbers, one for each order.")
    epsilon, order = compute_epsilon(ORDERS, curve.tolist(), delta)
    return float(epsilon), float(order)
