import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from pgmpy_dp.inference.tables.table import project_to_simplex, thinned

tables = arrays(np.float64, array_shapes(max_dims=3, max_side=6), elements=st.floats(-1e3, 1e3))


@settings(deadline=None)
@given(tables)
def test_optimality_conditions(values):
    # The projection is the only p on the simplex with p = v - t where p > 0 and v <= t where p = 0, for one t.
    p = project_to_simplex(values)
    assert p.shape == values.shape
    assert (p >= 0).all()
    assert p.sum() == pytest.approx(1.0, abs=1e-12)
    shifts = (values - p)[p > 0]
    assert np.ptp(shifts) <= 1e-9
    assert (values[p == 0] <= shifts.min() + 1e-9).all()


@settings(deadline=None)
@given(tables)
def test_projecting_twice_changes_nothing(values):
    once = project_to_simplex(values)
    np.testing.assert_allclose(project_to_simplex(once), once, atol=1e-14)


def test_extreme_values_keep_their_precision():
    assert project_to_simplex([1e300, -1e300]).tolist() == [1.0, 0.0]
    assert project_to_simplex([-1e308, 1e308]).tolist() == [0.0, 1.0]
    assert project_to_simplex([1e15, 1e15]).tolist() == [0.5, 0.5]
    assert project_to_simplex([-3]).tolist() == [1.0]


@pytest.mark.parametrize("values", [[], [np.nan, 1.0], [np.inf, 0.0]])
def test_wrong_values_are_refused(values):
    with pytest.raises(ValueError, match="finite"):
        project_to_simplex(values)


def test_input_is_left_alone():
    values = np.array([2.0, -1.0])
    project_to_simplex(values)
    assert values.tolist() == [2.0, -1.0]


@pytest.mark.parametrize("law", ["normal", "laplace"])
def test_halves_of_a_thinned_table_have_independent_noise(law):
    """Of cells without records, or uncorrelated if it is Laplace noise; each bound is off by chance once in a million.

    With normal noise of the scale in place of the deviation, the halves of Laplace noise had a correlation of .27.
    """
    noise = getattr(np.random.default_rng(0), law)(scale=30.0, size=(400, 500))
    deviation, kurtosis = (30.0, 3) if law == "normal" else (30.0 * 2**0.5, 6)
    halves = thinned(noise, deviation, 0.5, np.random.default_rng(1))
    for half, factor in zip(halves, (1.25**0.5, 5**0.5), strict=True):
        assert half.std() == pytest.approx(deviation * factor, rel=5 * np.sqrt((kurtosis - 1) / (4 * noise.size)))
    one, other = (half.ravel() for half in halves)
    assert abs(np.corrcoef(one, other)[0, 1]) < 5 / np.sqrt(noise.size)
    assert np.abs((one + 0.25 * other) / 1.25 - noise.ravel()).max() <= 1e-9
