"""Private linear regression: the dense conjugate posterior, the norm of a record, coverage, the ledger, refusals."""

import math

import numpy as np
import pandas as pd
import pytest
from noises import NoNoise
from scipy import stats

import pgmpy_dp as dp
from pgmpy_dp.estimators.logistic_regression import Design
from pgmpy_dp.papers.linear_regression import _NormalGamma

LOW, HIGH = np.array([0.0, -1.0, 10.0]), np.array([4.0, 1.0, 30.0])
TARGET, TRUTH = (-5.0, 15.0), np.array([0.8, -1.5, 0.1, 2.0])


def records(count, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(LOW, HIGH, (count, 3))
    return X, np.clip(X @ TRUTH[:3] + TRUTH[3] + rng.normal(0.0, 1.0, count), *TARGET)


def features(X, y, epsilon=1.0, delta=1e-6, seed=1, **options):
    options = {"bounds": (LOW, HIGH), "target_bounds": TARGET, "noise": dp.SimulatedNoise(seed), **options}
    return dp.PrivateFeatures(X, y, budget=dp.PrivacyBudget(epsilon, delta), **options)


def dense(X, y, precision=1.0, shape=2.0, rate=0.01):
    """Mean and covariance of coefficients, and residual variance, under the normal-Gamma prior."""
    x = np.column_stack([2 * (X - LOW) / (HIGH - LOW) - 1, np.ones(len(y))])
    t = (2 * y - sum(TARGET)) / (TARGET[1] - TARGET[0])
    P = precision * np.eye(4) + x.T @ x
    m = np.linalg.solve(P, x.T @ t)
    variance = (rate + (t @ t - m @ P @ m) / 2) / (shape + len(y) / 2 - 1)
    return m, variance * np.linalg.inv(P), variance


@pytest.mark.parametrize("plan", [{}, {"steps": 3}])
def test_without_noise_it_is_the_conjugate_posterior(plan):
    X, y = records(500, 1)
    data = features(X, y, 12.0, 1e-3, noise=NoNoise(1))
    model = dp.papers.PrivateLinearRegression(12.0, 1e-3, **plan).fit(data)
    mean, covariance, variance = dense(X, y)
    half, other = (HIGH - LOW) / 2, (TARGET[1] - TARGET[0]) / 2
    np.testing.assert_allclose(model.coef_, other * mean[:3] / half, atol=1e-6)
    centre = (model.predict([(LOW + HIGH) / 2])[0] - sum(TARGET) / 2) / other
    assert centre == pytest.approx(mean[3], abs=1e-6)
    assert model.residual_std_ == pytest.approx(other * math.sqrt(variance), rel=1e-5)
    noise = (5.0 * model.noise_multiplier_) ** 2 / model.n_steps_  # of norm 5 at most: 3 features, 1 and the target
    spread = noise / 2 * ((1 + mean @ mean) * np.eye(4) + np.outer(mean, mean))
    covariance = covariance + covariance @ spread @ covariance / variance**2
    np.testing.assert_allclose(
        model.covariance_[:3, :3], other**2 * covariance[:3, :3] / np.outer(half, half), rtol=1e-5, atol=1e-9
    )


@pytest.mark.parametrize("clip", [None, 0.7])
def test_no_record_has_a_longer_statistic_than_is_paid_for(clip):
    model = _NormalGamma(Design.of((LOW, HIGH), clip), 5.0, 10.0, 1.0, 0.01)
    corners = np.array(np.meshgrid(*zip(LOW, HIGH, strict=True), TARGET)).reshape(4, -1).T
    inner = np.random.default_rng(0).uniform([*LOW, TARGET[0]], [*HIGH, TARGET[1]], (2000, 4))
    norms = np.linalg.norm(model.products(np.vstack([corners, inner])), axis=1)
    assert norms.max() == pytest.approx(model.bound, rel=1e-12)  # attained, so that a smaller bound would be wrong
    assert norms.max() <= model.bound * (1 + 1e-15)


@pytest.mark.parametrize(
    "size", [{}, {"neighbours": "replace_one"}, {"sampling_rate": 0.5, "steps": 2}], ids=["all", "replaced", "samples"]
)
def test_intervals_hold_with_noise(size):
    """120 fits of 4 coefficients; 90 % intervals hold 85 to 95 %, or 80 % at least: by chance fails once in 1e4."""
    options, relation = {k: v for k, v in size.items() if k != "neighbours"}, size.get("neighbours", "add_remove")
    inside, narrow = 0, 0
    for seed in range(120):
        data = features(*records(400, seed), 2.0, 1e-5, seed, neighbours=relation)
        model = dp.papers.PrivateLinearRegression(2.0, 1e-5, **options).fit(data)
        errors = np.append(model.coef_, model.intercept_) - TRUTH
        wide = stats.norm.ppf(0.95) * np.sqrt(np.diag(model.covariance_))
        inside += (np.abs(errors) <= wide).sum()
        narrow += (np.abs(errors) <= wide / 2.0).sum()
    assert inside / 480 >= 0.84
    assert narrow / 480 < 0.75  # planted: half the width


def test_it_predicts_and_names_what_it_reads():
    X, y = records(40_000, 1)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    data = features(frame, y)
    model = dp.papers.PrivateLinearRegression(1.0, 1e-6).fit(data)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    partly = dp.papers.PrivateLinearRegression(1.0, 1e-6).fit(features(frame.set_axis(["a", 1, 2], axis=1), y))
    assert not hasattr(partly, "feature_names_in_")  # as in scikit-learn, where all names must be texts
    assert (data.budget.spent.epsilon, model.guarantee_.epsilon, model.n_steps_) == (1.0, 1.0, 1)
    test, truth = records(2000, 2)
    test = pd.DataFrame(test, columns=["a", "b", "c"])
    mean, std = model.predict(test, return_std=True)
    inside = np.abs(truth - mean) < stats.norm.ppf(0.95) * std
    assert 0.86 < inside.mean() < 0.94  # the residual variance is noisy as well
    assert model.score(test, truth) > 0.5
    with pytest.raises(TypeError, match="public"):
        model.predict(data)


def test_what_is_not_declared_is_refused():
    X, y = records(50, 1)
    with pytest.raises(ValueError, match=r"give target_bounds=\(lowest, highest\)"):
        dp.papers.PrivateLinearRegression(1.0, 1e-6, bounds=(0, 30)).fit(X, y)
    classes = features(X, np.arange(50) % 2, classes=[0, 1], target_bounds=None)
    with pytest.raises(TypeError, match="needs PrivateFeatures with target_bounds"):
        dp.papers.PrivateLinearRegression(1.0, 1e-6).fit(classes)
    numbers = features(X, y)
    with pytest.raises(TypeError, match="needs PrivateFeatures with classes"):
        dp.PrivateLogisticRegression(1.0, 1e-6).fit(numbers)
    with pytest.raises(ValueError, match="its own target_bounds"):
        dp.papers.PrivateLinearRegression(1.0, 1e-6, target_bounds=TARGET).fit(numbers)
    assert classes.budget.history == numbers.budget.history == ()
