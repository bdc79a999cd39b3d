"""The price of a block of Gaussian tables against the exact sum over all outcomes."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from pgmpy_dp.privacy.accounting import epsilon_from_renyi, rho_for, zcdp_curve
from pgmpy_dp.privacy.blocks import (
    MIN_SCALE,
    block_price,
    block_rho,
    block_scales,
    discrete_gaussian_epsilon,
    gaussian_delta,
)

CHANGES = {"add_remove": 1, "replace_one": 2}


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0.6, 4.0), min_size=1, max_size=3), st.sampled_from([1e-1, 1e-3, 1e-6]))
def test_the_price_is_exact(scales, delta):
    epsilon = block_price(scales, delta, "add_remove")
    assert exact_delta(epsilon, [1] * len(scales), scales) <= delta
    smaller = epsilon * (1 - 1e-3) - 1e-6  # the tails that are cut take a share of delta
    assert smaller <= 0.0 or exact_delta(smaller, [1] * len(scales), scales) > delta  # and no larger than it must be


def test_replacing_a_record_costs_what_two_counts_do():
    epsilon = block_price([2.0, 3.0], 1e-4, "replace_one")
    assert epsilon == block_price([2.0, 2.0, 3.0, 3.0], 1e-4, "add_remove")
    assert (
        exact_delta(epsilon, [1] * 4, [2.0, 2.0, 3.0, 3.0])
        <= 1e-4
        < exact_delta(epsilon * 0.999, [1] * 4, [2.0, 2.0, 3.0, 3.0])
    )


@pytest.mark.parametrize("neighbours", CHANGES)
def test_rounding_over_thousands_of_tables_is_paid_for(neighbours):
    """So many counts cost what one does with continuous noise: the roundings of their Fourier transforms add up."""
    scales = block_scales([1.0] * 2000, 5.0, 1e-12, neighbours)
    epsilon, scale = block_price(scales, 1e-12, neighbours), scales[0] / math.sqrt(2000 * CHANGES[neighbours])
    exact = norm.cdf(0.5 / scale - epsilon * scale) - math.exp(epsilon) * norm.cdf(-0.5 / scale - epsilon * scale)
    assert 0.5e-12 < exact <= 1e-12


@pytest.mark.parametrize("neighbours", CHANGES)
def test_scales_are_the_least_that_cost_epsilon(neighbours):
    relative = [1.0, 1.5, 1.5, 4.0]
    scales = block_scales(relative, 0.7, 1e-6, neighbours)
    assert block_price(scales, 1e-6, neighbours) <= 0.7 < block_price([0.999 * s for s in scales], 1e-6, neighbours)
    for (one, r), (other, q) in itertools.combinations(zip(scales, relative, strict=True), 2):
        assert abs(math.log(one / other) - math.log(r / q)) <= math.log(1.1) + 1e-12
    rho = block_rho(scales, neighbours)
    assert rho == pytest.approx(CHANGES[neighbours] * sum(1 / (2 * s**2) for s in scales))
    assert epsilon_from_renyi(zcdp_curve(rho), 1e-6) > 0.7  # zCDP proves less of the same noise


@pytest.mark.parametrize(("epsilon", "delta", "less"), [(1.0, 1e-9, 0.052), (1.0, 1e-6, 0.073), (0.1, 1e-9, 0.058)])
def test_a_block_has_less_noise_than_zcdp_by_what_the_docstring_says(epsilon, delta, less):
    scales = block_scales([1.0] * 105, epsilon, delta, "add_remove")
    by_rho = math.sqrt(105 / (2 * rho_for(epsilon, delta)))
    assert by_rho / scales[0] - 1 == pytest.approx(less, abs=0.001)


@pytest.mark.parametrize(
    ("price", "refusal"),
    [
        (lambda: block_scales([1.0], 1.0, 1e-13, "add_remove"), "1e-12"),
        (lambda: block_scales([1.0], 1e-6, 1e-9, "add_remove"), "too large for the price of a block"),
        (lambda: block_scales([1.0], 50.0, 1e-9, "add_remove"), "too large for the price of a block"),
        (lambda: block_scales([1.0], 1e300, 1e-9, "add_remove"), "too large for the price of a block"),
        (lambda: block_price([2.0, 2.0**18], 1e-6, "add_remove"), "too large for the price of a block"),
        (lambda: block_price([100.0] * 10_000, 1e-12, "replace_one"), "too small to price 20000 tables"),
        (lambda: block_scales([1.0, math.nan], 1.0, 1e-9, "add_remove"), "relative scale"),
        (lambda: block_scales([1.0], 1.0, 1e-9, "other"), "neighbours"),
        (lambda: discrete_gaussian_epsilon(0.0, 100.0, 1e-6), "squared"),
        (lambda: discrete_gaussian_epsilon(math.nan, 100.0, 1e-6), "squared"),
        (lambda: discrete_gaussian_epsilon(1.0, 15.9, 1e-6), "min_scale"),
        (lambda: discrete_gaussian_epsilon(1.0, math.nan, 1e-6), "min_scale"),
        (lambda: discrete_gaussian_epsilon(1.0, 100.0, 0), "delta"),
    ],
)
def test_what_cannot_be_priced_is_refused(price, refusal):
    with pytest.raises(ValueError, match=refusal):
        price()


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
    st.lists(st.tuples(st.integers(-60, 60), st.floats(MIN_SCALE, 30.0)), min_size=1, max_size=2),
    st.sampled_from([1e-1, 1e-3, 1e-6]),
)
def test_discrete_noise_costs_no_more_than_is_charged(moved, delta):
    changes, scales = zip(*moved, strict=True)
    squared = sum((change / scale) ** 2 for change, scale in moved)
    if squared == 0:
        return
    epsilon = discrete_gaussian_epsilon(squared, min(scales), delta)
    assert exact_delta(epsilon, changes, scales) <= delta
    if epsilon > 1e-6:  # and not much more than it must: what is priced is a variance that is less by 2
        less = math.sqrt(1.0 - 3.0 / min(scales) ** 2)
        assert exact_delta(epsilon, changes, [less * scale for scale in scales]) > delta


@pytest.mark.parametrize("delta", [1e-2, 1e-9, 1e-30])
@pytest.mark.parametrize("norm", [1e-4, 0.1, 1.0, 30.0])
def test_the_price_of_continuous_noise_is_exact(norm, delta):
    """In fifty digits: Phi(m / 2 - e / m) - exp(e) Phi(-m / 2 - e / m)."""
    epsilon = discrete_gaussian_epsilon(norm**2, 2.0**50, delta)
    with mpmath.workdps(50):

        def lost(e):
            return mpmath.ncdf(norm / 2 - e / norm) - mpmath.exp(e) * mpmath.ncdf(-norm / 2 - e / norm)

        assert lost(mpmath.mpf(epsilon)) <= delta
        assert gaussian_delta(norm**2, epsilon) == pytest.approx(float(lost(mpmath.mpf(epsilon))), rel=1e-6)
        if epsilon > 1e-6:
            assert lost(mpmath.mpf(epsilon) - 3e-9 * (1 + epsilon)) > delta


def test_an_independent_accountant_agrees():
    from dp_accounting.pld import privacy_loss_distribution

    accounted = privacy_loss_distribution.from_gaussian_mechanism(5.0, value_discretization_interval=1e-4)
    found = discrete_gaussian_epsilon(0.04, 2.0**30, 1e-6)
    assert found <= accounted.get_epsilon_for_delta(1e-6) <= found * 1.001
