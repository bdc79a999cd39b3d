"""The compiled expected loss against numerical integration and finite differences."""

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.integrate import quad
from scipy.stats import norm

from pgmpy_dp.inference.collective.expected_losses import _POINTS, _WEIGHTS
from pgmpy_dp.inference.collective.rounded_loss import expected_rounded_loss

OBSERVED, SCALE, CORNER = np.array([3.0, -2.0, 40.0]), np.array([2.0, 5.0, 1.0]), np.array([1.5, 9.0, 0.4])
COUNTS, SPREAD = np.array([4.0, 1.0, 25.0]), np.array([0.3, 0.05, 0.01])


def test_matches_the_integral():
    def integrand(t, k):
        factor = np.exp(np.sqrt(SPREAD[k]) * t - SPREAD[k] / 2)
        return norm.pdf(t) * np.sqrt((OBSERVED[k] - COUNTS[k] * factor) ** 2 + CORNER[k]) / SCALE[k]

    expected = sum(quad(integrand, -9, 9, args=(k,), epsabs=1e-10)[0] for k in range(3))
    points, weights = (half[20:] for half in hermegauss(40))
    value, _, _ = expected_rounded_loss(OBSERVED, SCALE, CORNER, COUNTS, SPREAD, points, weights / np.sqrt(2 * np.pi))
    assert value == pytest.approx(expected, rel=1e-5)
    assert expected_rounded_loss(OBSERVED, SCALE, CORNER, COUNTS, SPREAD, _POINTS, _WEIGHTS)[0] == pytest.approx(
        expected, rel=1e-2
    )


@pytest.mark.parametrize("moved", ["counts", "spread"])
def test_derivatives_match_finite_differences(moved):
    def value(step):
        counts, spread = (COUNTS + step, SPREAD) if moved == "counts" else (COUNTS, SPREAD + step)
        return expected_rounded_loss(OBSERVED, SCALE, CORNER, counts, spread, _POINTS, _WEIGHTS)

    _, by_count, by_spread = value(np.zeros(3))
    for k in range(3):
        step = np.eye(3)[k] * 1e-6
        difference = (value(step)[0] - value(-step)[0]) / 2e-6
        assert (by_count if moved == "counts" else by_spread)[k] == pytest.approx(difference, rel=1e-5)
