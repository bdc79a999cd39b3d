"""Renyi curves and their conversion."""

import math
import warnings

import numpy as np
import pytest
from dp_accounting import get_epsilon_gaussian
from dp_accounting.rdp import compute_epsilon

from pgmpy_dp.privacy.accounting import (
    ORDERS,
    epsilon_from_renyi,
    pure_curve,
    renyi_curve,
    rho_for,
    zcdp_curve,
    zcdp_limit,
)
from pgmpy_dp.privacy.cost import Pure, Zcdp

PLANS = [(1.0, 1e-6), (0.01, 1e-9), (0.1, 1e-5), (0.5, 1e-12), (5.0, 1e-6), (50.0, 1e-3), (1e-4, 1e-9), (1.0, 0.1)]


@pytest.mark.parametrize(
    ("epsilon", "delta", "rho"),
    [(1.0, 1e-6, 0.0243489), (0.01, 1e-9, 2.0952776e-06), (0.1, 1e-5, 0.000432925), (10.0, 1e-5, 1.7826305)],
)
def test_golden_rho(epsilon, delta, rho):
    assert rho_for(epsilon, delta) == pytest.approx(rho, rel=1e-5)


@pytest.mark.parametrize(("epsilon", "delta"), PLANS)
def test_rho_is_the_largest_within_epsilon(epsilon, delta):
    rho = rho_for(epsilon, delta)
    assert 0 < epsilon_from_renyi(zcdp_curve(rho), delta) <= epsilon
    assert epsilon_from_renyi(zcdp_curve(rho * (1 + 1e-9)), delta) > epsilon
    largest, order = zcdp_limit(epsilon, delta)
    assert rho < largest
    assert order in ORDERS


@pytest.mark.parametrize(("epsilon", "delta"), PLANS)
def test_rho_is_no_looser_than_the_classical_bound(epsilon, delta):
    rho, log = rho_for(epsilon, delta), math.log(1 / delta)
    ours = epsilon_from_renyi(zcdp_curve(rho), delta)
    assert ours <= rho + 2 * math.sqrt(rho * log)  # Bun and Steinke 2016, Proposition 1.3
    dense = 1.0 + np.geomspace(0.011, 1e8, 20_000)
    best, _ = compute_epsilon(dense, rho * dense, delta)
    assert best <= ours <= best * 1.001


@pytest.mark.parametrize(("epsilon", "delta"), PLANS[:-1])
def test_rho_is_sound_and_not_far_from_the_exact_gaussian(epsilon, delta):
    sigma = (0.5 / rho_for(epsilon, delta)) ** 0.5
    exact = get_epsilon_gaussian(sigma, delta)
    assert exact <= epsilon <= 1.35 * exact


def test_the_largest_epsilon_has_a_rho_without_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert 1e307 < rho_for(1.7e308, 1e-6) < 1.7e308


@pytest.mark.parametrize("epsilon", [0.05, 0.7, 3.0])
def test_curves_bound_the_divergence_of_the_discrete_distributions(epsilon):
    support = np.arange(-2000, 2001)
    pairs = [
        (-np.abs(support) * epsilon, -np.abs(support - 1) * epsilon, pure_curve(epsilon)),
        (-epsilon * support**2.0, -epsilon * (support - 1.0) ** 2, zcdp_curve(epsilon)),
    ]
    for p, q, curve in pairs:
        log_p, log_q = p - np.logaddexp.reduce(p), q - np.logaddexp.reduce(q)
        for i, order in enumerate(ORDERS):
            if 1.1 < order < 100:
                divergence = np.logaddexp.reduce(order * log_p + (1 - order) * log_q) / (order - 1)
                assert divergence <= curve[i] * (1 + 1e-9)


def test_charges_have_their_curves():
    assert renyi_curve(Zcdp(0.5)) == pytest.approx(0.5 * np.asarray(ORDERS))
    assert (renyi_curve(Pure(0.5)) >= pure_curve(0.5)).all()
    assert renyi_curve(Pure(0.5)) == pytest.approx(pure_curve(0.5), rel=1e-12)


@pytest.mark.parametrize("bad", [float("nan"), -1.0])
def test_a_curve_that_is_none_is_refused(bad):
    curve = zcdp_curve(0.1)
    curve[3] = bad
    with pytest.raises(ValueError, match="curve"):
        epsilon_from_renyi(curve, 1e-6)
    with pytest.raises(ValueError, match="curve"):
        epsilon_from_renyi(curve[:5], 1e-6)


@pytest.mark.parametrize("epsilon", [0, -1.0, float("nan"), float("inf"), True, "1", None])
def test_bad_epsilons_are_refused(epsilon):
    rho_for(1.0, 1e-6)  # True equals the 1.0 of a cache
    for function in (lambda: rho_for(epsilon, 1e-6), lambda: pure_curve(epsilon), lambda: zcdp_curve(epsilon)):
        with pytest.raises(ValueError, match=r"epsilon|rho"):
            function()


@pytest.mark.parametrize("delta", [0, 1, -1e-9, 2.0, float("nan"), float("inf"), True, "1e-6", None, 10**400])
def test_bad_deltas_are_refused(delta):
    with pytest.raises(ValueError, match="delta"):
        rho_for(1.0, delta)
    with pytest.raises(ValueError, match="delta"):
        epsilon_from_renyi(zcdp_curve(0.1), delta)


def test_epsilon_out_of_reach_says_so():
    with pytest.raises(ValueError, match="too small"):
        rho_for(1e-9, 1e-300)
