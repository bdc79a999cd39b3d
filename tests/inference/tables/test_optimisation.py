"""Where a minimisation stopped, and whether it might have gone on."""

import numpy as np
import pytest

from pgmpy_dp.inference.tables.optimisation import minimise


def valley(point):
    """A long one, whose least value is 0 at ones."""
    first, second = point
    slope = [2 * (first - 1) - 400 * first * (second - first**2), 200 * (second - first**2)]
    return float((first - 1) ** 2 + 100 * (second - first**2) ** 2), np.array(slope)


@pytest.mark.parametrize(("iterations", "finished"), [(1, False), (10, False), (200, True)])
def test_a_minimum_is_finished_if_iterations_did_not_run_out_while_they_gained(iterations, finished):
    found = minimise(valley, np.array([-1.2, 1.0]), iterations)
    assert found.finished == finished
    assert found.value == valley(found.point)[0]
    assert found.slope == pytest.approx(np.abs(valley(found.point)[1]).max())
    assert found.iterations == iterations or found.iterations < iterations == 200


def test_iterations_that_ran_out_without_a_gain_are_finished():
    found = minimise(lambda point: (1e6 + valley(point)[0] / 1e3, valley(point)[1] / 1e3), np.array([-1.2, 1.0]), 12)
    assert found.iterations == 12
    assert found.finished


def test_units_and_bounds_are_kept():
    scaled = minimise(
        lambda point: (float(point @ point), 2 * point), np.array([3.0, 4.0]), 50, scale=np.array([9.0, 0.1])
    )
    np.testing.assert_allclose(scaled.point, 0.0, atol=1e-5)
    bounded = minimise(valley, np.zeros(2), 100, bounds=np.array([[0.0, 0.5], [0.0, 1.0]]))
    np.testing.assert_allclose(bounded.point, [0.5, 0.25], atol=1e-5)
