"""PosteriorSampler and ExponentialMAP as a pgmpy user meets them."""

import numpy as np
import pandas as pd
import pytest
from pgmpy.models import DiscreteBayesianNetwork, NaiveBayes

import pgmpy_dp as dp
from pgmpy_dp import papers
from pgmpy_dp.evaluation import kl_divergence, prediction_accuracy

BOTH = [dp.papers.PosteriorSampler, dp.papers.ExponentialMAP]


@pytest.fixture(scope="module")
def naive():
    """Binary naive Bayes of six features, 1,000 records to learn from and as many to predict."""
    generator = np.random.default_rng(0)
    label = generator.integers(0, 2, 2000)
    shares = generator.random((6, 2))
    features = {f"x{i}": (generator.random(2000) < shares[i, label]).astype(int) for i in range(6)}
    frame = pd.DataFrame({"y": label, **features})
    schema = dp.Schema({v: [0, 1] for v in frame.columns})
    return schema, frame.head(1000), frame.tail(1000)


@pytest.mark.parametrize("estimator", BOTH)
def test_naive_bayes_predicts_nearly_as_well_as_without_privacy(estimator, naive):
    schema, train, test = naive
    exact, model = (NaiveBayes([v for v in train.columns if v != "y"], "y") for _ in range(2))
    best = dp.NotPrivateMLE(state_names=schema).fit(exact, train)
    exact.add_cpds(*best.parameters_)
    fitted = estimator(60.0, prior_type="K2", state_names=schema).fit(model, train)
    model.add_cpds(*fitted.parameters_)
    assert prediction_accuracy(model, test, "y") > prediction_accuracy(exact, test, "y") - 0.05
    released = dp.papers.PrivateBayesianEstimator(5.0, prior_type="K2", state_names=schema).fit(model, train)
    model.add_cpds(*released.parameters_)
    assert prediction_accuracy(model, test, "y") > prediction_accuracy(exact, test, "y") - 0.05


@pytest.mark.parametrize("estimator", BOTH)
def test_drop_in_on_a_bnlearn_network(estimator, bnlearn, simulate):
    truth, records = bnlearn("asia"), simulate("asia", 5000, 1)
    network = DiscreteBayesianNetwork(truth.edges())
    fitted = estimator(200.0, state_names=dp.Schema.from_model(truth))
    network.fit(records, estimator=fitted)
    assert network.check_model()
    assert kl_divergence(truth, network) < 0.1
    assert fitted.state_names_ == {v: list(s) for v, s in dp.Schema.from_model(truth).states.items()}
    assert fitted.guarantee_ == fitted.release_.guarantee
    assert fitted.clone().get_params() == fitted.get_params()


def test_draws_and_their_mean(naive):
    schema, train, _ = naive
    data = dp.PrivateDataset(train, schema, dp.PrivacyBudget(10.0), noise=dp.SimulatedNoise(0))
    network = DiscreteBayesianNetwork([("y", "x0")])
    network.add_node("x1")  # of no edge
    sampler = dp.papers.PosteriorSampler(2.0, draws=3).fit(network, data)
    assert sampler.guarantee_.epsilon == 6.0
    networks = sampler.networks()
    assert all(set(drawn.nodes()) == {"y", "x0", "x1"} and drawn.check_model() for drawn in networks)
    mean = np.mean([drawn.get_cpds("x0").get_values() for drawn in networks], axis=0)
    own = {cpd.variable: cpd for cpd in sampler.parameters_}
    np.testing.assert_allclose(own["x0"].get_values(), mean)
    shared = dp.papers.PosteriorSampler(2.0, draws=3, split=True).fit(network, data)
    assert shared.guarantee_.epsilon == 2.0
    alone = dp.papers.PosteriorSampler(2.0, draws=3, state_names=data.schema).fit(network, naive[1])
    assert alone.guarantee_.epsilon == 6.0  # of records, for which it makes a budget that covers all draws
    assert shared.release_.floors["y",] > sampler.release_.floors["y",]
    assert data.budget.remaining.epsilon == 2.0
    with pytest.raises(dp.BudgetExceededError):
        dp.papers.PosteriorSampler(1.0, draws=3).fit(network, data)


def test_papers_forms_state_what_they_cost(naive):
    schema, train, _ = naive
    data = dp.PrivateDataset(train, schema, dp.PrivacyBudget(100.0), noise=dp.SimulatedNoise(0))
    network = DiscreteBayesianNetwork([("y", "x0")])
    sampler = papers.PrintedPosteriorSampler(4.0).fit(network, data)
    floor = np.exp(-4.0 / 4)
    assert sampler.release_.floors["y",] == pytest.approx(floor)
    assert sampler.guarantee_.epsilon == pytest.approx(2 * np.log((1 - floor) / floor), rel=1e-5)
    chosen = papers.PrintedExponentialMAP(4.0, floor=0.1).fit(network, data)
    assert chosen.release_.power == pytest.approx(4.0 / (2 * 2 * np.log(10)), rel=1e-5)
    assert chosen.guarantee_.epsilon == pytest.approx(chosen.release_.power * 2 * np.log(9), rel=1e-5)
    assert data.budget.spent.epsilon == pytest.approx(sampler.guarantee_.epsilon + chosen.guarantee_.epsilon)
    with pytest.raises(ValueError, match="needs more than epsilon"):
        papers.PrintedPosteriorSampler(2.0).fit(network, data)


def test_much_epsilon_finds_the_maximum(naive):
    schema, train, _ = naive
    network = DiscreteBayesianNetwork([("y", "x0")])
    found = dp.papers.ExponentialMAP(1e4, floor=0.001, prior_type="K2", state_names=schema).fit(network, train)
    share = (train["y"] == 0).mean()
    assert found.release_.power > 100
    assert found.parameters_[0].get_values()[0, 0] == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("estimator", BOTH)
def test_bad_input_is_refused(estimator, naive):
    schema, train, _ = naive
    network = DiscreteBayesianNetwork([("y", "x0")])
    data = dp.PrivateDataset(train, schema, dp.PrivacyBudget(1.0))
    with pytest.raises(ValueError, match="use PrivateBayesianEstimator"):
        estimator(1.0).fit(network, data.measure([("y", "x0")], 0.5))
    with pytest.raises(ValueError, match="prior_type"):
        estimator(1.0, prior_type="flat").fit(network, data)
    if estimator is dp.papers.PosteriorSampler:
        with pytest.raises(ValueError, match="not fitted"):
            estimator(1.0).networks()
