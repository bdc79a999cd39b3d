"""The grid search that says it is not private."""

import numpy as np
import pandas as pd
import pytest
from pgmpy.models import DiscreteBayesianNetwork

import pgmpy_dp as dp
from experiments.tuning import not_private_grid_search

STATES = {"a": [0, 1], "b": [0, 1]}
EDGES = [("a", "b")]


def records(seed):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, 3000)
    return pd.DataFrame({"a": a, "b": np.where(rng.random(3000) < 0.8, a, 1 - a)})


def test_settings_are_ranked_and_the_record_says_what_they_are():
    """A gradient clipped to nothing learns nothing."""
    train, test = records(1), records(2)
    sgd = dp.papers.PrivateSGD(1.0, 1e-6, STATES, steps=20, sampling_rate=1.0, total=3000)
    model = dp.PrivateMarkovNetwork(EDGES)
    grid = {"clip_norm": [1e-3, 1.0], "learning_rate": [0.1, 1.0]}
    search = not_private_grid_search(sgd, grid, model, train, lambda network: network.log_likelihood(test))
    assert search.best == {"clip_norm": 1.0, "learning_rate": 1.0}
    assert search.private is False
    assert str(search).startswith("NOT PRIVATE: best of 4 settings")
    assert search.scores["score"].is_monotonic_decreasing
    assert list(search.scores.columns) == ["clip_norm", "learning_rate", "score"]
    assert (sgd.clip_norm, sgd.learning_rate) == (None, 1.0)
    assert not model.factors


def test_bayesian_networks_are_searched_as_well():
    vb = dp.PrivateVB(1.0, 1e-6, STATES, sampling_rate=1.0)

    def score(network):
        return network.get_cpds("b").values[0, 0]

    search = not_private_grid_search(vb, {"steps": [5]}, DiscreteBayesianNetwork(EDGES), records(1), score)
    assert search.best == {"steps": 5}
    assert type(search.best["steps"]) is int
    assert search.scores["score"][0] == pytest.approx(0.8, abs=0.1)


def test_data_behind_a_ledger_is_refused():
    data = dp.PrivateDataset(records(1), dp.Schema(STATES), dp.PrivacyBudget(1.0, 1e-6))
    with pytest.raises(TypeError, match="not private"):
        not_private_grid_search(dp.papers.PrivateSGD(), {}, dp.PrivateMarkovNetwork(EDGES), data, lambda network: 0.0)
    assert data.budget.history == ()
    with pytest.raises(ValueError, match="momentum"):
        not_private_grid_search(
            dp.papers.PrivateSGD(), {"momentum": [1]}, dp.PrivateMarkovNetwork(EDGES), records(1), lambda network: 0.0
        )
