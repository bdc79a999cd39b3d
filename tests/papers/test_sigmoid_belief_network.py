"""Private sigmoid belief networks: the E-step by brute force, recovery, the ledger, refusals."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import expit, log_expit, logsumexp

import pgmpy_dp as dp
from pgmpy_dp.estimators.logistic_regression import Gaussian
from pgmpy_dp.papers.sigmoid_belief_network import Layer, _Horseshoe

HIDDEN = np.array([[3.0, 3, -3, -3, 0, 0, 0, 0, 3, 0], [0.0, 0, 0, 0, 4, 4, -4, -4, 0, 3]])
OFFSETS, INTERCEPT = np.array([0.3, -0.4]), np.array([-1.5, -1, 2, 1, -2, -2, 2, 1.5, -1, -1])


def configurations(size):
    return np.array(list(itertools.product([0, 1], repeat=size)))


def log_likelihood(weights, intercept, offsets, records):
    """Mean over records, by all configurations of the hidden variables."""
    h = configurations(len(offsets))
    prior = h @ log_expit(offsets) + (1 - h) @ log_expit(-offsets)
    psi = h @ weights + intercept
    return logsumexp(prior + records @ log_expit(psi).T + (1 - records) @ log_expit(-psi).T, axis=1).mean()


def records(count, seed):
    rng = np.random.default_rng(seed)
    h = rng.random((count, 2)) < expit(OFFSETS)
    return (rng.random((count, 10)) < expit(h @ HIDDEN + INTERCEPT)).astype(np.int64)


def private(X, epsilon=1.0, delta=1e-6, neighbours="add_remove", noise=None):
    schema = dp.Schema({f"v{number}": ["no", "yes"] for number in range(X.shape[1])})
    budget = dp.PrivacyBudget(epsilon, delta)
    return dp.PrivateDataset(X, schema, budget, neighbours, noise or dp.SimulatedNoise(1))


def layer(hidden=3, observed=4, seed=1):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(observed, hidden + 1, hidden + 1)) * 0.5
    return Layer(
        Gaussian(rng.normal(size=(observed, hidden + 1)), root @ root.transpose(0, 2, 1)), rng.normal(size=hidden)
    )


def test_moments_by_brute_force():
    """Expectations over all hidden configurations; bounds that no record exceeds."""
    found, codes = layer(), configurations(4)
    h, squares = found.infer(codes.astype(float))
    moments = found.moments(codes.astype(np.uint8))
    all_h = np.column_stack([configurations(3), np.ones(8)])
    chance = np.prod(np.where(all_h[None, :, :3] == 1, h[:, None], 1 - h[:, None]), axis=2)
    second = found.weights.second
    assert squares == pytest.approx(np.einsum("nh,hk,jkl,hl->nj", chance, all_h, second, all_h))
    outer = moments.means[:, :, None] * moments.means[:, None, :] + moments.variances[:, :, None] * np.eye(4)
    assert outer == pytest.approx(np.einsum("nh,hk,hl->nkl", chance, all_h, all_h))
    assert (np.trace(outer, axis1=1, axis2=2) <= 1 + 3).all()
    assert (moments.first == np.column_stack([2 * codes - 1, np.ones(16)])).all()
    xi = np.sqrt(squares)
    assert moments.second == pytest.approx(np.tanh(xi / 2) * 2 / xi)


def test_mean_field_is_a_local_optimum():
    """Of the bound in the probabilities of one record's hidden variables, by finite differences."""
    found, codes = layer(), configurations(4)[[5, 9]].astype(float)
    h, _ = found.infer(codes)

    def bound(h):
        full, xi = np.column_stack([h, np.ones(len(h))]), np.sqrt(found._squares(h))
        observed = log_expit(xi) - xi / 2 + (codes - 0.5) * (full @ found.weights.mean.T)
        own = h * (log_expit(found.offsets) - np.log(h)) + (1 - h) * (log_expit(-found.offsets) - np.log(1 - h))
        return observed.sum(axis=1) + own.sum(axis=1)

    for k in range(3):
        for step in (0.02, -0.02):
            moved = h.copy()
            moved[:, k] += step
            assert (bound(moved) < bound(h)).all()


def test_the_score_is_a_lower_bound():
    X = records(500, 1)
    model = dp.papers.PrivateSigmoidBeliefNetwork(2, 5.0, 1e-4, steps=10).fit(private(records(3000, 2), 5.0, 1e-4))
    exact = log_likelihood(model.components_, model.intercept_, model.hidden_intercept_, X)
    assert exact - 1.0 < model.score(X) < exact


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_a_network_is_recovered(neighbours):
    """Most of what hidden variables tell beyond independent ones, in exact held-out log-likelihood."""
    train, test = records(20_000, 1), records(5000, 2)
    truth = log_likelihood(HIDDEN, INTERCEPT, OFFSETS, test)
    rate = test.mean(axis=0)
    independent = float((rate * np.log(rate) + (1 - rate) * np.log(1 - rate)).sum())
    model = dp.papers.PrivateSigmoidBeliefNetwork(2, 1.0, 1e-6).fit(private(train, neighbours=neighbours))
    found = log_likelihood(model.components_, model.intercept_, model.hidden_intercept_, test)
    assert found > truth - 0.2 * (truth - independent)
    h = model.transform(test)
    assert (model.inverse_transform(h) > 0.5).astype(int).tolist() != [[0] * 10] * 5000
    drawn = model.sample(5000, random_state=3)
    assert np.cov(drawn.T) == pytest.approx(np.cov(test.T), abs=0.07)
    assert drawn.mean(axis=0) == pytest.approx(test.mean(axis=0), abs=0.07)
    assert (model.components_.shape, model.intercept_.shape, model.hidden_intercept_.shape) == ((2, 10), (10,), (2,))


def test_the_horseshoe_is_its_integral():
    """E[1 / z] of a generalised inverse Gaussian variable, and shrinkage of what is small."""
    prior = _Horseshoe(2, 2)
    squares = np.array([[0.5, 2.0], [1e-3, 9.0]])
    prior.update(squares)
    for at, square in np.ndenumerate(squares):
        mass = quad(lambda z, b=square: math.exp(-z - b / (2 * z)) / z, 0, np.inf)[0]
        inverse = quad(lambda z, b=square: math.exp(-z - b / (2 * z)) / z**2, 0, np.inf)[0]
        assert prior.precision[at] == pytest.approx(inverse / mass, rel=1e-5)
    assert (prior.precision[:, 2] == 1.0).all()
    # The rates are x ~ Gamma(1/2 + 1/2, E[z] + column): their mean is one over the sum.
    means = [quad(lambda z, b=b: math.exp(-z - b / (2 * z)), 0, np.inf)[0] for b in squares.ravel()]
    masses = [quad(lambda z, b=b: math.exp(-z - b / (2 * z)) / z, 0, np.inf)[0] for b in squares.ravel()]
    expected = 1 / (np.divide(means, masses).reshape(2, 2) + 1)
    np.testing.assert_allclose(prior._rate, expected, rtol=1e-5)


def test_noise_alone_gives_finite_weights():
    model = dp.papers.PrivateSigmoidBeliefNetwork(3, 0.1, 1e-6, steps=10).fit(private(records(20, 1), 0.1))
    assert np.isfinite(model.components_).all()
    assert np.isfinite(model.score(records(5, 1)))


@pytest.mark.parametrize(("columns", "names"), [(["a", "b"], ["a", "b"]), ([0, 1], None), (["a", 1], None)])
def test_features_have_the_names_of_columns_where_all_are_texts(columns, names):
    model = dp.papers.PrivateSigmoidBeliefNetwork(1, 0.1, 1e-6, steps=1)
    found = getattr(model.fit(pd.DataFrame(records(20, 1)[:, :2], columns=columns)), "feature_names_in_", None)
    assert (found if found is None else list(found)) == names


def test_records_that_are_not_binary_are_refused():
    model = dp.papers.PrivateSigmoidBeliefNetwork(2, 1.0, 1e-6)
    X = records(50, 1)
    for wrong, error in ((X + 1, dp.SchemaError), (X + 0.5, dp.SchemaError), (X[0], TypeError)):
        with pytest.raises(error):
            model.fit(wrong)
    data = dp.PrivateDataset(pd.DataFrame({"a": [0, 2]}), dp.Schema({"a": [0, 1, 2]}), dp.PrivacyBudget(1.0, 1e-6))
    with pytest.raises(dp.SchemaError, match="'a' does not have two states"):
        model.fit(data)
    assert data.budget.history == ()
