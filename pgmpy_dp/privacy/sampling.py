"""Amplification by Poisson sampling."""

from __future__ import annotations

import decimal
from fractions import Fraction

from pgmpy_dp.privacy.checks import decimal_above, exact_positive

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

    Parameters
    ----------
    epsilon : float or Fraction
        Positive.
    sampling_rate : float or Fraction
        q, greater than 0 and at most 1.

    Returns
    -------
    float
        log(1 + q (exp(epsilon) - 1)), rounded up.

    Notes
    -----
    Chowdhury, Rekatsinas and Jha, Lemma 2.1; Li, Qardaji and Su 2012.

    Examples
    --------
    >>> round(amplified_epsilon(1.0, 0.1), 6), round(amplified_epsilon(2.0, 0.3), 6)
    (0.158565, 1.070459)
    """
    exact, rate = exact_positive("epsilon", epsilon), sampling_fraction(sampling_rate)
    return decimal_above(exact if rate == 1 else _scaled(exact, rate) * (1 + _MARGIN))


def epsilon_on_sample(epsilon: float | Fraction, sampling_rate: float | Fraction) -> Fraction:
    """Find the epsilon on a Poisson sample for a privacy loss of `epsilon`; inverse of :func:`amplified_epsilon`.

    Returns
    -------
    Fraction
        log(1 + (exp(epsilon) - 1) / q), rounded down.

    Examples
    --------
    >>> round(float(epsilon_on_sample(0.1, 0.1)), 6)
    0.718673
    """
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
