"""Estimates from synthetic data sets: the rules by hand, and what the data sets are drawn from."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student

import pgmpy_dp as dp

STATES = {"a": ["x", "y"], "b": ["x", "y", "z"]}


def test_the_rules_by_hand():
    estimates, variances = np.array([1.0, 2.0, 3.0, 6.0]), np.array([0.5, 0.7, 0.6, 0.2])
    row = dp.combine(estimates, variances, n=100, n_synthetic=300, interval=0.9, null=2.5).loc[0]
    between, within = 5 / 4 * 14 / 3, 0.5
    freedom = 3 * (1 - within / between) ** 2
    assert row["estimate"] == 3.0
    assert row["standard_error"] == pytest.approx(np.sqrt(between - within))
    assert row["degrees_of_freedom"] == pytest.approx(freedom)
    half = student.ppf(0.95, freedom) * np.sqrt(between - within)
    assert (row["lower"], row["upper"]) == pytest.approx((3 - half, 3 + half))
    assert row["p_value"] == pytest.approx(2 * student.sf(0.5 / np.sqrt(between - within), freedom))


def test_variances_that_are_not_positive_become_those_of_the_records():
    row = dp.combine([1.0, 1.0, 1.0], [0.2, 0.4, 0.3], n=100, n_synthetic=300).loc[0]
    assert row["standard_error"] == pytest.approx(np.sqrt(0.3 * 3))
    assert row["degrees_of_freedom"] == 2.0


def test_intervals_hold_what_they_promise():
    """Data sets of a normal posterior: 2,000 intervals of 90 % miss in 10 % of cases, within 2.5 %."""
    generator = np.random.default_rng(0)
    n, synthetic, noise, sets = 200, 800, 0.05, 15
    deviation = np.sqrt(1 / n + noise**2)
    released = generator.normal(0.0, deviation, 2000)  # of the mean 0, from n records and with privacy noise
    posterior = generator.normal(released, deviation, (sets, 2000))
    means = generator.normal(posterior, synthetic**-0.5)
    found = dp.combine(means, np.full_like(means, 1 / synthetic), n=n, n_synthetic=synthetic, interval=0.9)
    assert np.mean((found["lower"] < 0) & (found["upper"] > 0)) == pytest.approx(0.9, abs=0.025)
    assert np.mean(found["p_value"] < 0.1) == pytest.approx(0.1, abs=0.025)
    naive = np.abs(means[0]) < 1.645 * synthetic**-0.5
    assert naive.mean() < 0.5


def test_names_are_kept_and_frames_taken():
    estimates = [pd.Series({"age": 1.0 + k, "sex": 2.0 * k}) for k in range(3)]
    found = dp.combine(estimates, [abs(part) / 100 for part in estimates], n=10, n_synthetic=10)
    assert list(found.index) == ["age", "sex"]
    frame = pd.DataFrame(estimates)
    pd.testing.assert_frame_equal(found, dp.combine(frame, frame / 100, n=10, n_synthetic=10))


@pytest.mark.parametrize(
    ("estimates", "variances", "options"),
    [
        ([1.0], [1.0], {}),
        ([1.0, 2.0], [1.0], {}),
        ([1.0, np.nan], [1.0, 1.0], {}),
        ([1.0, 2.0], [1.0, -1.0], {}),
        ([[1.0, 2.0], [1.0]], [[1.0, 2.0], [1.0]], {}),
        ([1.0, 2.0], [1.0, 1.0], {"n": 0}),
        ([1.0, 2.0], [1.0, 1.0], {"interval": 95}),
    ],
)
def test_what_cannot_be_combined_is_refused(estimates, variances, options):
    with pytest.raises(ValueError, match=r"must|Give"):
        dp.combine(estimates, variances, **({"n": 10, "n_synthetic": 10} | options))


@pytest.mark.parametrize("uneven", [[[1.0, 2.0], [1.0]], [[[1.0]], [[2.0]]]])
def test_data_sets_of_unlike_quantities_are_refused(uneven):
    with pytest.raises(ValueError, match="estimates must hold the same quantities for each data set"):
        dp.combine(uneven, [1.0, 1.0], n=10, n_synthetic=10)


@pytest.fixture(scope="module")
def network():
    codes = np.random.default_rng(0).integers(0, [2, 3], (300, 2))
    frame = pd.DataFrame({v: np.array(STATES[v])[codes[:, i]] for i, v in enumerate("ab")})
    noise = dp.SimulatedNoise(0)
    data = dp.PrivateDataset(frame, dp.Schema(STATES), dp.PrivacyBudget(0.1), noise=noise)
    fitted = dp.PrivateBayesianNetwork([("a", "b")]).fit(data.measure([("a", "b")], epsilon=0.1))
    fitted.sample_draws(40)
    return fitted


def test_each_data_set_comes_from_another_draw(network):
    sets = network.simulate(20_000, data_sets=5, seed=1)
    layout, draws = network.draws_.layout, network.draws_.population
    place = layout.scopes.index(("a",))
    chosen = np.exp(draws[[0, 10, 20, 29, 39], layout.offsets[place]])  # evenly spread
    assert [(frame["a"] == "x").mean() for frame in sets] == pytest.approx(chosen, abs=0.015)
    assert np.ptp(chosen) > 0.05
    assert all(list(frame.columns) == ["a", "b"] and len(frame) == 20_000 for frame in sets)
    again = network.simulate(20_000, data_sets=5, seed=1)
    assert all(one.equals(other) for one, other in zip(sets, again, strict=True))
    assert not sets[0].equals(sets[1])


def test_data_sets_given_evidence(network):
    for frame in network.simulate(50, data_sets=2, seed=0, evidence={"a": "y"}):
        assert (frame["a"] == "y").all()


def test_data_sets_need_as_many_draws(network):
    with pytest.raises(ValueError, match=r"40 draws for 41 data sets.*sample_draws"):
        network.simulate(5, data_sets=41)
    with pytest.raises(ValueError, match="data_sets"):
        network.simulate(5, data_sets=0)
    with pytest.raises(ValueError, match="take no do"):
        network.simulate(5, data_sets=2, do={"a": "x"})
    with pytest.raises(ValueError, match="no release"):
        network.do(["b"]).simulate(5, data_sets=2)
