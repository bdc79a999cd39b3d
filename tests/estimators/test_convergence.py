"""A fit that did not converge says so, and one that did says nothing."""

from __future__ import annotations

import warnings

import pytest
from sklearn.exceptions import ConvergenceWarning

import pgmpy_dp as dp
from pgmpy_dp.evaluation import random_markov_network
from pgmpy_dp.papers.experiments.protocol import third_order_chain


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


def test_loopy_propagation_that_does_not_converge_is_told(chain, monkeypatch):
    truth, _, noisy = chain
    from pgmpy_dp.inference import FactorGraph

    build = FactorGraph.build
    monkeypatch.setattr(FactorGraph, "build", lambda cards, scopes: build(cards, scopes, max_iter=2))
    with pytest.warns(ConvergenceWarning, match="Loopy belief propagation of NaiveMLE did not converge"):
        dp.PrivateMarkovNetwork(truth.edges()).fit(noisy, dp.papers.NaiveMLE(inference="loopy", max_iter=20))
