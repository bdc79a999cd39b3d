"""The price of discrete Gaussian noise on many integers: by quadrature of the continuous one, and by exact sums."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgmpy_dp.privacy.blocks import LEAST_SCALE, discrete_gaussian_epsilon


def exact_delta(epsilon, changes, scales):
    """The hockey-stick divergence of integers with discrete Gaussian noise that a neighbour moves by `changes`."""
    probability, loss = np.ones(1), np.zeros(1)
    for change, scale in zip(changes, scales, strict=True):
        k = np.arange(-math.ceil(9 * scale), math.ceil(9 * scale) + 1)
        p = np.exp(-(k**2) / (2 * scale**2))
        ratio = ((k - float(change)) ** 2 - k**2) / (2 * scale**2)  # log p(k) - log p(k - change)
        probability = np.outer(probability, p / p.sum()).ravel()
        loss = np.add.outer(loss, ratio).ravel()
    return float((probability * -np.expm1(np.minimum(epsilon - loss, 0.0))).sum())


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-60, 60), st.floats(LEAST_SCALE, 30.0)), min_size=1, max_size=2),
    st.sampled_from([1e-1, 1e-3, 1e-6]),
)
def test_discrete_noise_costs_no_more_than_is_charged(moved, delta):
    changes, scales = zip(*moved, strict=True)
    squared = sum((change / scale) ** 2 for change, scale in moved)
    if squared == 0:
        return
    epsilon = discrete_gaussian_epsilon(squared, min(scales), delta)
    assert exact_delta(epsilon, changes, scales) <= delta
    if epsilon > 1e-6:  # and not much more than it must: where that is little, delta hardly moves with it
        assert exact_delta(epsilon * 0.985, changes, scales) > 0.999 * delta


@pytest.mark.parametrize("delta", [1e-2, 1e-9, 1e-30])
@pytest.mark.parametrize("norm", [1e-4, 0.1, 1.0, 30.0])
def test_the_price_of_continuous_noise_is_exact(norm, delta):
    """In fifty digits: Phi(m / 2 - e / m) - exp(e) Phi(-m / 2 - e / m)."""
    epsilon = discrete_gaussian_epsilon(norm**2, 2.0**50, delta)
    with mpmath.workdps(50):

        def lost(e):
            return mpmath.ncdf(norm / 2 - e / norm) - mpmath.exp(e) * mpmath.ncdf(-norm / 2 - e / norm)

        assert lost(mpmath.mpf(epsilon)) <= delta
        if epsilon > 1e-6:
            assert lost(mpmath.mpf(epsilon) - 3e-9 * (1 + epsilon)) > delta


def test_an_independent_accountant_agrees():
    from dp_accounting.pld import privacy_loss_distribution

    accounted = privacy_loss_distribution.from_gaussian_mechanism(5.0, value_discretization_interval=1e-4)
    found = discrete_gaussian_epsilon(0.04, 2.0**30, 1e-6)
    assert found <= accounted.get_epsilon_for_delta(1e-6) <= found * 1.001


def test_what_is_out_of_range_is_refused():
    for arguments in (
        (0.0, 100.0, 1e-6),
        (math.nan, 100.0, 1e-6),
        (1.0, 15.9, 1e-6),
        (1.0, math.nan, 1e-6),
        (1.0, 100.0, 0),
    ):
        with pytest.raises(ValueError, match=r"squared|least_scale|delta"):
            discrete_gaussian_epsilon(*arguments)
