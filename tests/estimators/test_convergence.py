"""A fit that did not converge says so, and one that did says nothing."""

import warnings

import numpy as np
import pandas as pd
import pytest
from pgmpy.models import DiscreteBayesianNetwork
from sklearn.exceptions import ConvergenceWarning

import pgmpy_dp as dp
from experiments.protocol import third_order_chain
from pgmpy_dp.evaluation import random_markov_network


@pytest.fixture(scope="module")
def chain():
    truth = random_markov_network(third_order_chain(6), 3, seed=0)
    records = truth.simulate(20_000, seed=0)
    data = dp.PrivateDataset(records, truth.schema_, dp.PrivacyBudget(10), noise=dp.SimulatedNoise(0))
    return truth, records, data.measure([tuple(edge) for edge in truth.edges()], 1.0)


@pytest.mark.parametrize("kind", [dp.papers.NaiveMLE, dp.CollectiveEM, dp.NotPrivateMLE])
def test_too_few_iterations_are_told(chain, kind):
    truth, records, noisy = chain
    options, data = ({"state_names": truth.schema_}, records) if kind is dp.NotPrivateMLE else ({}, noisy)
    network = dp.PrivateMarkovNetwork(truth.edges())
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        network.fit(data, kind(**options))
    with pytest.warns(ConvergenceWarning, match=f"fit of {kind.__name__} did not converge.*max_iter"):
        network.fit(data, kind(max_iter=1, **options))


def test_a_warning_points_at_the_line_that_called_fit_also_through_pgmpy():
    records, schema = pd.DataFrame({"a": [0, 1] * 500, "b": [0, 1] * 500}), dp.Schema({"a": [0, 1], "b": [0, 1]})
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(1), noise=dp.SimulatedNoise(0))
    noisy = data.measure([("a", "b")], 1.0)
    for kind in (dp.PrivateBayesianNetwork, DiscreteBayesianNetwork):
        with pytest.warns(ConvergenceWarning) as caught:
            kind([("a", "b")]).fit(noisy, estimator=dp.CollectiveEM(max_iter=1))
        assert {warning.filename for warning in caught if warning.category is ConvergenceWarning} == {__file__}


def test_loopy_propagation_that_does_not_converge_is_told(chain, monkeypatch):
    truth, _, noisy = chain
    from pgmpy_dp.inference import FactorGraph

    build = FactorGraph.build
    monkeypatch.setattr(FactorGraph, "build", lambda cards, scopes: build(cards, scopes, max_iter=2))
    with pytest.warns(ConvergenceWarning, match="Loopy belief propagation of NaiveMLE did not converge"):
        dp.PrivateMarkovNetwork(truth.edges()).fit(noisy, dp.papers.NaiveMLE(inference="loopy", max_iter=20))


def test_a_fit_that_is_cut_short_is_told_and_by_default_it_is_not_cut_short(chain):
    """At 60 iterations a cell is off by 0.008, which the last steps show: they still gain."""
    truth, records, _ = chain
    data = dp.PrivateDataset(records[:10_000], truth.schema_, dp.PrivacyBudget(1), noise=dp.SimulatedNoise(0))
    noisy, network = data.measure([tuple(edge) for edge in truth.edges()], 0.1), dp.PrivateMarkovNetwork(truth.edges())
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        fits = [network.fit(noisy, dp.CollectiveEM(**options)).copy() for options in ({}, {"max_iter": 20_000})]
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        fits.append(network.fit(noisy, dp.CollectiveEM(max_iter=60)).copy())
    default, optimum, early = (
        np.concatenate([fit.query(edge).values.ravel() for edge in truth.edges()]) for fit in fits
    )
    assert np.abs(default - optimum).max() < 2e-4
    assert np.abs(early - optimum).max() > 2e-3
