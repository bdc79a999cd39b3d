"""What is rounded is rounded to the side that promises less: in fractions, or to many digits, without a tolerance."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pgmpy_dp.data.mechanisms.regression import root_above, temper, unit_cost
from pgmpy_dp.privacy import calibrate, subsampling
from pgmpy_dp.privacy.accounting import ORDERS, pure_curve, renyi_curve, rho_for, zcdp_limit
from pgmpy_dp.privacy.blocks import block_rho, discrete_gaussian_epsilon
from pgmpy_dp.privacy.checks import decimal_above, decimal_below, exact_positive, rounded_down
from pgmpy_dp.privacy.cost import Pure
from pgmpy_dp.privacy.noise import exponential_scale, gaussian_scale, laplace_scale, selection_scale
from pgmpy_dp.privacy.sequences import _before_choice, _before_noise
from pgmpy_dp.privacy.subsampling import GRID_SHARE, _without_grid, amplified_epsilon, checked_plan, epsilon_on_sample

positive = st.fractions(Fraction(1, 10**12), 10**6)
decimals = st.decimals("1e-9", "1e6", allow_nan=False).map(Fraction)
losses = st.one_of(positive, decimals.filter(bool), st.integers(1, 10**6).map(lambda n: Fraction(n, 3**12)))


def as_decimal(number):
    """What a float prints as."""
    return Fraction(str(number))


def exactly(fraction):
    return mpmath.mpf(fraction.numerator) / fraction.denominator


@given(losses)
@example(Fraction(1, 3))
@example(Fraction(2, 3))
@example(Fraction("0.1"))
@example(Fraction(0.1))
@example(Fraction(2**53 + 1))
def test_floats_are_the_next_on_the_safe_side(exact):
    down = rounded_down(exact)
    assert Fraction(down) <= exact < Fraction(math.nextafter(down, math.inf))
    above, below = decimal_above(exact), decimal_below(exact)
    assert as_decimal(below) <= exact <= as_decimal(above)
    assert as_decimal(math.nextafter(above, 0.0)) < exact < as_decimal(math.nextafter(below, math.inf))


@given(losses)
@example(Fraction(1, 3))
@settings(deadline=None)
def test_the_float_of_a_sampling_rate_is_not_below_it(exact):
    rate = exact / (1 + exact)
    _, _, found, _ = checked_plan(1e-6, 1, rate, "poisson")
    assert rate <= Fraction(found) <= 1
    assert Fraction(math.nextafter(found, 0.0)) < rate
    delta = float(rate)
    assert Fraction(_without_grid(delta)) <= as_decimal(delta) * (1 - Fraction(GRID_SHARE))


@pytest.mark.parametrize("exact", [Fraction(2, 3), Fraction(1, 10), Fraction(2**60 - 1, 2**60)])
def test_noise_is_calibrated_to_a_float_that_is_not_above_epsilon(exact, monkeypatch):
    monkeypatch.setattr(subsampling, "smallest_multiplier", lambda accountant, target, *plan: target)
    target = calibrate(exact, 1e-6, steps=1, sampling_rate=0.5)
    assert Fraction(target) <= exact < Fraction(math.nextafter(target, 1.0))


@pytest.mark.parametrize("epsilon", [1e-120, 1e-9, 1e-3, 0.1, 1.0, 3.7, 20.0, 100.0, 1000.0])
def test_the_renyi_curve_of_a_pure_charge_is_that_of_randomised_response_and_not_below_it(epsilon):
    curve, epsilon = pure_curve(epsilon), max(epsilon, 1e-100)  # which bounds what a smaller one costs
    with mpmath.workdps(60 if epsilon > 1e-20 else 400):
        e = mpmath.mpf(epsilon)
        for order, bound in zip(ORDERS, curve, strict=True):
            a = mpmath.mpf(order)
            exact = mpmath.log(mpmath.cosh((a - 0.5) * e) / mpmath.cosh(e / 2)) / (a - 1)
            assert exact <= bound <= min(exact * (1 + mpmath.mpf("1e-11")), epsilon)


@given(losses)
@example(Fraction(100) + Fraction(1, 3))
@example(Fraction(300) + Fraction(1, 10**9))
@settings(max_examples=40, deadline=None)
def test_the_renyi_curve_of_an_exact_charge_is_not_below_it(epsilon):
    epsilon = epsilon if epsilon < 300 else 300 + epsilon / 10**6
    curve = renyi_curve(Pure(epsilon))
    with mpmath.workdps(400):
        e = exactly(epsilon)
        for place in (0, 200, 383):
            a = mpmath.mpf(ORDERS[place])
            assert curve[place] >= mpmath.log(mpmath.cosh((a - 0.5) * e) / mpmath.cosh(e / 2)) / (a - 1)


@given(st.floats(1e-3, 20.0), st.sampled_from([1e-5, 1e-9]), st.lists(st.integers(1, 99), min_size=1, max_size=30))
@settings(max_examples=25, deadline=None)
def test_parts_of_a_rho_fit_again_in_the_limit(epsilon, delta, shares):
    limit, order = zcdp_limit(epsilon, delta)
    rho = rho_for(epsilon, delta)
    parts = [rho * (share / sum(shares)) for share in shares]
    assert sum(Fraction(part) * Fraction(order) for part in parts) <= Fraction(limit) * Fraction(order)


scales = st.lists(st.floats(0.5, 1e5), min_size=1, max_size=8)


@given(scales, st.sampled_from(["add_remove", "replace_one"]))
@example([3.0], "add_remove")
@example([1.1, 1.3, 7.0], "replace_one")
def test_the_rho_of_a_block_is_not_below_the_sum(own, neighbours):
    changes = 1 if neighbours == "add_remove" else 2
    assert Fraction(block_rho(own, neighbours)) >= sum(changes / (2 * Fraction(scale) ** 2) for scale in own)


@pytest.mark.parametrize("squared", [1e-9, 0.003, 0.2, 5.0, 300.0])
@pytest.mark.parametrize("delta", [0.6, 1e-4, 1e-9])
def test_discrete_noise_on_ten_million_numbers_costs_no_more_than_is_said(squared, delta):
    """Each probability is off by a factor in 1 -+ 3e-17 from what becomes of a continuous one of less variance."""
    minimum = 20.0
    epsilon = discrete_gaussian_epsilon(squared, minimum, delta)
    with mpmath.workdps(60):
        norm = mpmath.sqrt(mpmath.mpf(squared) / (1 - 2 / mpmath.mpf(minimum) ** 2))
        factor = 10**7 * mpmath.log(1 / (1 - mpmath.mpf("3e-17")))
        e = mpmath.mpf(epsilon) - 2 * factor
        continuous = mpmath.ncdf(norm / 2 - e / norm) - mpmath.exp(e) * mpmath.ncdf(-norm / 2 - e / norm)
        assert mpmath.exp(factor) * continuous <= mpmath.mpf(delta)


@given(losses, st.integers(1, 50))
@example(Fraction(1, 3), 1)
@settings(max_examples=60, deadline=None)
def test_scales_of_tables_and_choices_cost_what_is_charged_and_no_more(loss, sensitivity):
    for cost in (
        sensitivity / Fraction(laplace_scale(loss, sensitivity)),
        sensitivity / (2 * Fraction(gaussian_scale(loss, sensitivity)) ** 2),
        2 * sensitivity / Fraction(selection_scale(loss, sensitivity)),
        (2 * sensitivity / Fraction(exponential_scale(loss, sensitivity))) ** 2 / 8,
    ):
        assert loss * (1 - Fraction(1, 10**14)) <= cost <= loss


@given(losses.filter(lambda loss: loss < 100), st.fractions(Fraction(1, 10**6), Fraction(999_999, 10**6)))
@example(Fraction(1, 10**12), Fraction(1, 3))
@example(Fraction(90), Fraction(1, 3))
@settings(max_examples=60, deadline=None)
def test_amplified_losses_are_on_the_safe_side(loss, rate):
    with mpmath.workdps(150):
        e, q = exactly(loss), exactly(rate)
        assert exactly(as_decimal(amplified_epsilon(loss, rate))) >= mpmath.log(1 + q * mpmath.expm1(e))
        spent, exact = exactly(epsilon_on_sample(loss, rate)), mpmath.log(1 + mpmath.expm1(e) / q)
        assert exact * (1 - mpmath.mpf("1.1e-40")) <= spent <= exact


@pytest.mark.parametrize("rho", [0.003, 0.2, 2.0])
def test_the_recursion_of_a_sequence_is_not_below_the_exact_values(rho):
    """One step of noise, at each point of the grid, and one choice from three that a neighbour moves apart."""
    step = 0.02
    grid = step * np.arange(-150, 151)
    last = np.maximum(0.0, -np.expm1(grid))
    noisy, width = _before_noise(last, rho, step), math.sqrt(8.0 * rho)
    chosen = _before_choice(last, width, step)
    with mpmath.workdps(40):
        mu = mpmath.sqrt(2 * mpmath.mpf(rho))
        e = mpmath.mpf(width)
        for place in range(0, 301, 10):
            a = mpmath.mpf(step) * (place - 150)
            exact = mpmath.ncdf(mu / 2 - a / mu) - mpmath.exp(a) * mpmath.ncdf(-mu / 2 - a / mu)
            assert noisy[place] >= exact
            if abs(a) < e:  # (exp(e / 2) - exp(a / 2))**2 / (exp(e) - 1), at the worst place of the range
                assert chosen[place] >= (mpmath.exp(e / 2) - mpmath.exp(a / 2)) ** 2 / mpmath.expm1(e)


@given(losses)
@example(Fraction(2))
@example(Fraction(4))
def test_a_root_is_not_below_itself(value):
    assert root_above(value) ** 2 >= value


@given(losses.filter(lambda loss: loss < 1000), st.integers(0, 6), st.sampled_from(["add_remove", "replace_one"]))
@settings(deadline=None)
def test_a_tempered_regression_costs_no_less_than_its_likelihood_varies(epsilon, parents, neighbours):
    drawn = temper(parents, 1.7, 2.0, 1.0, epsilon, neighbours)
    assert Fraction(drawn.precision) * unit_cost(parents, 1.7, neighbours) <= drawn.cost <= epsilon


@pytest.mark.parametrize("beyond", [Fraction(1, 10**400), Fraction(10**400)])
def test_numbers_that_no_float_holds_are_refused(beyond):
    with pytest.raises(ValueError, match="too small or too large"):
        exact_positive("epsilon", beyond)
    assert exact_positive("epsilon", Fraction(5e-324)) == Fraction(5e-324)  # the least that one does
