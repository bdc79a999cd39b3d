"""LinearPosteriorSampler as a pgmpy user meets it."""

import math

import numpy as np
import pandas as pd
import pytest
from pgmpy.models import DiscreteBayesianNetwork, LinearGaussianBayesianNetwork
from pgmpy.parameter_estimator import LinearGaussianMLE

import pgmpy_dp as dp
from pgmpy_dp import papers
from pgmpy_dp.evaluation import mean_squared_error

EDGES = [("age", "pressure"), ("weight", "pressure")]
BOUNDS = {"age": (0, 100), "weight": (40, 140), "pressure": (60, 220)}
STD = {"age": 25.0, "weight": 15.0, "pressure": 10.0}


def people(rows, seed):
    generator = np.random.default_rng(seed)
    age, weight = generator.uniform(20, 80, rows), generator.normal(80, 12, rows)
    pressure = 50 + 0.7 * age + 0.4 * weight + generator.normal(0, 10, rows)
    return pd.DataFrame({"age": age, "weight": weight, "pressure": pressure})


def sampler(epsilon, **options):
    return dp.papers.LinearPosteriorSampler(epsilon, BOUNDS, 2.0, STD, **options)


def network():
    return LinearGaussianBayesianNetwork(EDGES)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_drop_in_on_a_network(neighbours):
    """Coefficients within more than six of their standard deviations (5.2, 0.04 and 0.062 under replace_one)."""
    train, test = people(20_000, 0), people(2000, 1)
    exact, model = network().fit(train, estimator=LinearGaussianMLE()), network()
    fitted = sampler(30.0, neighbours=neighbours)
    model.fit(train, estimator=fitted)
    assert model.check_model()
    drawn, wanted = (np.array(one.get_cpds("pressure").beta) for one in (model, exact))
    assert (np.abs(drawn - wanted) < [35.0, 0.27, 0.42]).all()
    assert mean_squared_error(model, test, "pressure") < 1.2 * mean_squared_error(exact, test, "pressure")
    assert len(model.simulate(10, seed=0)) == 10
    assert fitted.guarantee_ == fitted.release_.guarantee
    assert fitted.guarantee_.neighbours == neighbours
    assert fitted.guarantee_.epsilon <= 30.0
    assert fitted.clone().get_params() == fitted.get_params()


def test_untempered_draws_follow_the_truncated_posterior():
    """A mean of 400 draws, within five of its standard errors of the closed form; the wrong prior is seen."""
    records = people(30, 2)
    bounds = {"age": (0, 100)}
    model = LinearGaussianBayesianNetwork()
    model.add_node("age")
    data = dp.PrivateDataset(records, dp.Schema(bounds=bounds), dp.PrivacyBudget(1e6), noise=dp.SimulatedNoise(3))
    fitted = dp.papers.LinearPosteriorSampler(1e3, None, 1.0, 25.0, prior_precision=20.0, draws=400).fit(model, data)
    assert fitted.release_.powers == {"age": 1.0}
    drawn = np.array([draw["age",][0] for draw in fitted.release_.draws])
    tau = (50 / 25.0) ** 2
    scaled = (records["age"] - 50) / 50

    def closed(prior):
        width = 1 / math.sqrt(tau * len(records) + prior)
        return 50 + 50 * tau * scaled.sum() * width**2, 50 * width

    mean, width = closed(20.0)
    assert abs(drawn.mean() - mean) < 5 * width / 20
    assert abs(drawn.std() / width - 1) < 0.2
    assert abs(drawn.mean() - closed(1000.0)[0]) > 5 * width / 20
    cpd = fitted.parameters_[0]
    assert cpd.beta[0] == pytest.approx(drawn.mean())
    assert [one.get_cpds("age").beta[0] for one in fitted.networks()] == pytest.approx(drawn)


def test_the_ledger_is_charged_what_the_draws_cost():
    data = dp.PrivateDataset(people(100, 0), dp.Schema(bounds=BOUNDS), dp.PrivacyBudget(10.0))
    plain = dp.papers.LinearPosteriorSampler(2.0, None, 2.0, STD, draws=3).fit(network(), data)
    assert plain.guarantee_.epsilon == pytest.approx(6.0)
    assert [set(one.edges()) for one in plain.networks()] == [set(EDGES)] * 3
    assert data.budget.spent.epsilon == plain.guarantee_.epsilon
    split = dp.papers.LinearPosteriorSampler(2.0, None, 2.0, STD, draws=2, split=True).fit(network(), data)
    assert split.guarantee_.epsilon == pytest.approx(2.0)
    printed = papers.PrintedLinearSampler(1.0, None, 2.0, STD).fit(network(), data)
    assert 0.2 < printed.guarantee_.epsilon < 0.36  # one record added or removed; printed for one replaced
    before = data.budget.spent.epsilon
    with pytest.raises(dp.BudgetExceededError):
        dp.papers.LinearPosteriorSampler(2.0, None, 2.0, STD, draws=3).fit(network(), data)
    assert data.budget.spent.epsilon == before
    wide = dp.papers.LinearPosteriorSampler(1.5, None, 1e-3, dict.fromkeys(STD, 1e3)).fit(network(), data)
    assert wide.release_.powers == dict.fromkeys(STD, 1.0)
    assert data.budget.spent.epsilon == before + wide.guarantee_.epsilon < before + 0.1


def test_what_a_node_cannot_use_goes_to_the_others():
    data = dp.PrivateDataset(people(100, 0), dp.Schema(bounds=BOUNDS), dp.PrivacyBudget(10.0))
    fitted = dp.papers.LinearPosteriorSampler(1.0, None, 1.0, STD | {"age": 1e4, "weight": 1e4}).fit(network(), data)
    assert fitted.release_.powers["age"] == 1.0
    assert fitted.guarantee_.epsilon == pytest.approx(1.0, abs=1e-3)


def test_bad_input_is_refused_before_the_charge():
    records, model = people(50, 0), network()
    data = dp.PrivateDataset(records, dp.Schema(bounds=BOUNDS), dp.PrivacyBudget(1e9))

    def refused(match, kind=ValueError, data=data, model=model, **options):
        given = {"epsilon": 1.0, "bounds": None, "coefficient_bound": 1.0, "std": 1.0} | options
        with pytest.raises(kind, match=match):
            dp.papers.LinearPosteriorSampler(**given).fit(model, data)

    for wrong in (0, -1.0, math.nan, math.inf, "1", True):
        refused("epsilon", epsilon=wrong)
        refused("coefficient_bound", coefficient_bound=wrong)
        refused("std", std=wrong)
        refused("std of 'age'", std=STD | {"age": wrong})
        refused("prior_precision", prior_precision=wrong)
        refused("bounds", kind=dp.SchemaError, data=records, bounds=BOUNDS | {"age": wrong})
    for name in ("coefficient_bound", "std"):
        refused(f"{name} is missing", **{name: None})
        refused(f"{name} has no number for 'weight'", **{name: {"age": 1.0, "pressure": 1.0}})
    refused("declared, not read off", kind=dp.SchemaError, data=records)
    refused("'weight' has no bounds", kind=dp.SchemaError, data=records, bounds={"age": 1.0, "pressure": 1.0})
    refused("leave bounds out", kind=dp.SchemaError, bounds=BOUNDS | {"age": 1.0})
    refused("leave it out", neighbours="replace_one")
    refused("draws", draws=0)
    refused("fits a LinearGaussianBayesianNetwork", kind=TypeError, model=DiscreteBayesianNetwork(EDGES))
    refused("more than 1e", epsilon=1e8, coefficient_bound=100.0, std=1e-3)
    unbounded = dp.PrivateDataset(records, dp.Schema(bounds={"age": 1.0}), dp.PrivacyBudget(1.0))
    refused("has no bounds", kind=dp.SchemaError, data=unbounded)
    with pytest.raises(ValueError, match="sample_weight"):
        sampler(1.0).fit(model, records, sample_weight=[1.0] * 50)
    with pytest.raises(ValueError, match="not fitted"):
        sampler(1.0).networks()
    assert data.budget.spent.epsilon == 0
    owned = dp.PrivateDataset(records.assign(id=1), dp.Schema(bounds=BOUNDS), dp.PrivacyBudget(1.0), unit="id")
    refused("protects single records", data=owned)


def test_whether_draws_take_too_long_is_decided_without_the_records():
    """Records that agree with the ball and records that do not are refused alike, whatever their number."""
    outputs = []
    for records in (people(10, 0), people(3, 1) * 0, people(500, 2) * -50):
        with pytest.raises(ValueError, match="could take") as refusal:
            dp.papers.LinearPosteriorSampler(1e8, BOUNDS, 100.0, 1e-3).fit(network(), records)
        outputs.append(str(refusal.value))
    assert len(set(outputs)) == 1
