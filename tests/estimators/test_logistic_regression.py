"""Private logistic regression: the limit of no noise, coverage, several classes, the ledger, refusals."""

import math

import numpy as np
import pytest
from noises import NoNoise
from scipy import stats
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import pgmpy_dp as dp
from pgmpy_dp.data.mechanisms.integer_sums import NoisyMoments
from pgmpy_dp.estimators.logistic_regression import Averages, Gaussian, expected_weight

LOW, HIGH = np.array([0.0, -1.0, 10.0]), np.array([4.0, 1.0, 30.0])
TRUTH, OFFSET = np.array([0.8, -1.5, 0.1]), -3.0


def records(count, seed, truth=TRUTH, offset=OFFSET):
    rng = np.random.default_rng(seed)
    X = rng.uniform(LOW, HIGH, (count, 3))
    return X, (rng.random(count) < expit(X @ truth + offset)).astype(int)


def features(X, y, epsilon=1.0, delta=1e-6, seed=1, **options):
    options = {"bounds": (LOW, HIGH), "classes": [0, 1], "noise": dp.SimulatedNoise(seed), **options}
    return dp.PrivateFeatures(X, y, budget=dp.PrivacyBudget(epsilon, delta), **options)


def variational_bayes(X, y, steps):
    """Plain batch variational Bayes with Polya-Gamma variables, E[alpha] from Gamma(1, 1); inverse of the Fisher
    information of the posterior."""
    x = np.column_stack([2 * (X - LOW) / (HIGH - LOW) - 1, np.ones(len(y))])
    weights, alpha = np.full(len(y), 0.25), 1.0
    for _ in range(steps):
        covariance = np.linalg.inv(alpha * np.eye(4) + (x * weights[:, None]).T @ x)
        mean = covariance @ x.T @ (y - 0.5)
        second = covariance + np.outer(mean, mean)
        xi = np.sqrt(((x @ second) * x).sum(axis=1))
        weights, alpha = np.tanh(xi / 2) / (2 * xi), (1 + 2) / (1 + np.trace(second) / 2)
    p = expit(x @ mean)
    return mean, np.linalg.inv(alpha * np.eye(4) + (x * (p * (1 - p))[:, None]).T @ x)


def test_without_noise_it_is_variational_bayes():
    X, y = records(20_000, 1)
    data = features(X, y, 12.0, 1e-3, noise=NoNoise(1))
    model = dp.PrivateLogisticRegression(12.0, 1e-3, steps=40, forgetting=1e-3).fit(data)
    mean, covariance = variational_bayes(X, y, 60)
    half = (HIGH - LOW) / 2
    assert model.coef_[0] == pytest.approx(mean[:3] / half, rel=2e-3)
    assert model.intercept_[0] == pytest.approx(mean[3] - (mean[:3] / half) @ (LOW + half), rel=2e-3)
    # What noise would hide is part of the covariance: at this epsilon not much.
    own = covariance[:3, :3] / half / half[:, None]
    assert model.covariance_[0, :3, :3] == pytest.approx(own, rel=0.1, abs=0.1 * np.abs(own).max())


def test_a_huge_epsilon_gives_what_scikit_learn_gives():
    X, y = records(50_000, 2)
    model = dp.PrivateLogisticRegression(15.0, 1e-3, steps=30, forgetting=0.3).fit(features(X, y, 15.0, 1e-3))
    reference = LogisticRegression(C=1e6).fit(X, y)
    deviations = np.sqrt(np.diag(model.covariance_[0]))
    assert (np.abs(model.coef_ - reference.coef_)[0] < 0.5 * deviations[:3]).all()
    assert model.predict_proba(X[:100]) == pytest.approx(reference.predict_proba(X[:100]), abs=0.01)
    assert (model.classes_ == reference.classes_).all()


@pytest.mark.full
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_posterior_covariance_covers_the_truth(neighbours):
    """Mahalanobis distances of 24 fits are chi-squared of 4 degrees: their sum, two-sided, false alarm below 1e-6.

    Much of the spread at this epsilon is noise: without it the covariance is too small, which the test finds.
    """
    total, without = 0.0, 0.0
    true = np.append(TRUTH, OFFSET)
    for seed in range(24):
        X, y = records(4000, 100 + seed)
        data = features(X, y, 0.7, 1e-5, seed, neighbours=neighbours)
        model = dp.PrivateLogisticRegression(0.7, 1e-5).fit(data)
        error = np.append(model.coef_, model.intercept_) - true
        total += error @ np.linalg.solve(model.covariance_[0], error)
        x = np.column_stack([X, np.ones(len(y))])
        p = expit(x @ true)
        without += error @ (x * (p * (1 - p))[:, None]).T @ x @ error
    cut = 5e-7
    assert stats.chi2.ppf(cut, 96) < total < stats.chi2.isf(cut, 96)
    assert without > stats.chi2.isf(cut, 96)


@pytest.mark.full
def test_several_classes():
    """Against the chain of regressions that the records were drawn from, and its best accuracy."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (60_000, 2))
    rows, offsets = np.array([[3.0, 0.0], [0.0, 4.0], [-3.0, 3.0]]), np.array([0.5, -1.0, -1.0])
    own = expit(X @ rows.T + offsets)
    after = np.cumprod((1 - own)[:, ::-1], axis=1)[:, ::-1]
    truth = np.column_stack([after[:, 0], own * np.column_stack([after[:, 1:], np.ones(len(X))])])
    drawn = (rng.random(len(X))[:, None] > np.cumsum(truth, axis=1)).sum(axis=1)
    names = np.array(["z", "b", "c", "a"])
    X, held, y, expected = X[:40_000], X[40_000:], names[drawn[:40_000]], names[drawn[40_000:]]
    data = features(X, y, bounds=(-1, 1), classes=names.tolist())
    model = dp.PrivateLogisticRegression(1.0, 1e-6).fit(data)
    assert model.classes_.tolist() == names.tolist()
    assert (model.coef_.shape, model.intercept_.shape, model.covariance_.shape) == ((3, 2), (3,), (3, 3, 3))
    found = model.predict_proba(held)
    assert found.sum(axis=1) == pytest.approx(1.0)
    assert found == pytest.approx(truth[40_000:], abs=0.15)
    best = (names[truth[40_000:].argmax(axis=1)] == expected).mean()
    assert best - 0.01 < model.score(held, expected) <= best + 0.01


def test_noise_alone_gives_the_prior():
    """With next to no records, coefficients go to zero and deviations to those of the prior."""
    model = dp.PrivateLogisticRegression(0.1, 1e-6).fit(features(*records(20, 1), 0.1))
    assert (np.abs(model.coef_[0] * (HIGH - LOW) / 2) < 0.5).all()
    assert np.isfinite(model.covariance_).all()
    assert (np.linalg.eigvalsh(model.covariance_[0]) > 0).all()


def test_the_variance_of_what_noise_is_left():
    """Of averages over steps, by the weights of the steps written out."""
    averages, deviations = Averages(0.5), [3.0, 1.0, 2.0]
    weights, even = np.zeros(3), np.full(3, 1 / 3)
    for step, deviation in enumerate(deviations):
        rate = (2.0 + step) ** -0.7 if step else 1.0
        weights *= 1 - rate
        weights[step] = rate
        noisy = NoisyMoments(np.eye(2), np.ones((1, 2, 2)), deviation, deviation)
        averages.add(noisy, 1 / (1 + step), rate)
    assert averages.first.variance == pytest.approx(((even * deviations) ** 2).sum())
    assert averages.weighted.variance == pytest.approx(((weights * deviations) ** 2).sum() / 4)
    assert averages.weighted.shares == pytest.approx((weights**2).sum())
    assert averages.first.mean == pytest.approx(np.eye(2))


def test_noise_of_a_symmetric_matrix():
    """Covariance of E theta by simulation, ten standard errors; and E[w] at zero."""
    rng = np.random.default_rng(1)
    theta = np.array([[2.0, -1.0, 0.5]])
    noise = rng.normal(size=(200_000, 3, 3))
    noise = (np.triu(noise, 1) + np.triu(noise, 1).transpose(0, 2, 1)) / math.sqrt(2) + noise * np.eye(3)
    found = np.cov((noise @ theta[0]).T)
    averages = Averages(1.0)
    averages.first.mean, averages.weighted.mean, averages.weighted.variance = np.zeros((1, 3)), np.eye(3)[None], 1.0
    posterior = averages.posterior(Gaussian(theta, np.zeros((1, 3, 3))), np.zeros((1, 3)))
    assert posterior.covariance[0] - np.eye(3) == pytest.approx(found, abs=0.1)  # J^-1 (J + V) J^-1 less J^-1
    assert expected_weight(np.array([0.0, 1e-20, 4.0])) == pytest.approx([0.25, 0.25, math.tanh(1) / 4])


def test_other_bad_input():
    X, y = records(100, 1)
    options = {"epsilon": 1.0, "delta": 1e-6}
    with pytest.raises(ValueError, match="Classes must be declared"):
        dp.PrivateLogisticRegression(**options, bounds=(LOW, HIGH)).fit(X, y)
    with pytest.raises(ValueError, match="bounds must be a pair"):
        dp.PrivateLogisticRegression(**options, classes=[0, 1]).fit(X, y)
    with pytest.raises(ValueError, match="its own y"):
        dp.PrivateLogisticRegression(**options).fit(features(X, y), y)
