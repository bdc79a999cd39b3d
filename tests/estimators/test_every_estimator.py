"""One face for every estimator: what epsilon and delta mean, copies, and refusals before anything is charged."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from pgmpy.models import DiscreteBayesianNetwork, LinearGaussianBayesianNetwork
from sklearn.base import clone

import pgmpy_dp as dp
from pgmpy_dp.privacy.guarantee import Guarantee, learned

SCHEMA = dp.Schema({"a": ["x", "y"], "b": ["x", "y"]})
RECORDS = pd.DataFrame({"a": ["x", "y"] * 200, "b": ["x", "y", "y", "y"] * 100})
HOMES = dp.HouseholdSchema(SCHEMA.select(["a"]), SCHEMA.select(["b"]), key="id", max_persons=2)
BAYESIAN, MARKOV = DiscreteBayesianNetwork([("a", "b")]), dp.PrivateMarkovNetwork([("a", "b")])
GAUSSIAN = LinearGaussianBayesianNetwork([("u", "v")])
LINEAR = {"coefficient_bound": 1.0, "std": 1.0}
SMALL, STEPS = {"components": 2, "members": 1}, {"steps": 2, "sampling_rate": 1.0}


def discrete(budget):
    return dp.PrivateDataset(RECORDS, SCHEMA, budget)


def numbers(budget):
    frame = pd.DataFrame({"u": np.linspace(0, 1, 100), "v": np.linspace(1, 0, 100)})
    return dp.PrivateDataset(frame, dp.Schema(bounds={"u": (0, 1), "v": (0, 1)}), budget)


def features(budget):
    kept = {"bounds": (0, 1), "classes": ["x", "y"], "budget": budget}
    return dp.PrivateFeatures(np.linspace(0, 1, 400)[:, None], RECORDS["a"], **kept)


def targets(budget):
    values = np.linspace(0, 1, 400)
    return dp.PrivateFeatures(values[:, None], values, bounds=(0, 1), target_bounds=(0, 1), budget=budget)


def documents(budget):
    return dp.PrivateDocuments(np.eye(4, dtype=int)[np.arange(400) % 4], list("abcd"), budget, 10)


def households(budget):
    homes = RECORDS[["a"]].assign(id=np.arange(400))
    return dp.PrivateHouseholds(homes, RECORDS[["b"]].assign(id=np.arange(400)), HOMES, budget)


# Class, network if it has one, private source, and what keeps the test short.
CASES = [
    (dp.AutoMLE, BAYESIAN, discrete, {}),
    (dp.PrivateMLE, BAYESIAN, discrete, {}),
    (dp.CollectiveEM, BAYESIAN, discrete, {}),
    (dp.CollectiveEM, MARKOV, discrete, {"max_iter": 10}),
    (dp.PosteriorMean, BAYESIAN, discrete, {"draws": 20}),
    (dp.papers.NaiveMLE, MARKOV, discrete, {}),
    (dp.papers.PrivateBayesianEstimator, BAYESIAN, discrete, {}),
    (dp.papers.PosteriorSampler, BAYESIAN, discrete, {}),
    (dp.papers.ExponentialMAP, BAYESIAN, discrete, {}),
    (dp.papers.LinearPosteriorSampler, GAUSSIAN, numbers, LINEAR),
    (dp.papers.PrivateSGD, MARKOV, discrete, {"statistic": "features", **STEPS}),
    (dp.PrivateVB, BAYESIAN, discrete, STEPS),
    (dp.PrivateLDA, None, documents, {"n_components": 2, **STEPS}),
    (dp.PrivateLogisticRegression, None, features, STEPS),
    (dp.papers.PrivateLinearRegression, None, targets, STEPS),
    (dp.papers.PrivateSigmoidBeliefNetwork, None, discrete, {"n_components": 1, **STEPS}),
    (dp.PairwiseMixture, None, discrete, SMALL),
    (dp.HouseholdMixture, None, households, SMALL),
    (dp.PrivateStructureSearch, None, discrete, {}),
]
NAMES = [f"{number}-{kind.__name__}" for number, (kind, *_) in enumerate(CASES)]
EVERY = pytest.mark.parametrize(("kind", "network", "source", "options"), CASES, ids=NAMES)


def fit(estimator, network, data):
    return estimator.fit(*(() if network is None else (network.copy(),)), data)


def takes(kind, name):
    return name in inspect.signature(kind).parameters


@EVERY
@pytest.mark.parametrize("delta", [0.0, 1e-3])
@pytest.mark.filterwarnings("ignore")
def test_noise_is_gaussian_exactly_where_there_is_a_delta(kind, network, source, options, delta):
    if delta and not takes(kind, "delta"):
        pytest.skip("draws from a posterior have no delta")
    data = source(dp.PrivacyBudget(4.0, delta))
    estimator = kind(epsilon=4.0, **({"delta": delta} if delta else {}), **options)
    if not delta and "noise_multiplier" in inspect.signature(kind).parameters:
        with pytest.raises(ValueError, match="needs a delta"):
            fit(estimator, network, data)
        assert data.budget.history == ()
        return
    assert fit(estimator, network, data) is estimator
    guarantee = estimator.guarantee_
    assert (guarantee.epsilon, guarantee.delta) == (4.0, delta) if takes(kind, "delta") else guarantee.epsilon <= 4.0
    if takes(kind, "mechanism"):
        assert guarantee.mechanism == ("gaussian" if delta else "laplace")


@EVERY
def test_copies_and_representations(kind, network, source, options):
    estimator = kind(epsilon=0.5, **options)
    copy = clone(estimator)
    assert copy is not estimator
    assert copy.get_params() == estimator.get_params()
    assert repr(copy) == repr(estimator)
    assert f"{kind.__name__}(" in repr(estimator)
    assert "epsilon=0.5" in repr(estimator)
    with pytest.raises(TypeError, match="gamma"):
        kind(epsilon=0.5, gamma=1)
    documented = re.findall(r"^(\w+(?:, \w+)*) : ", inspect.getdoc(kind).partition("Attributes\n---")[0], re.MULTILINE)
    assert sorted(name for names in documented for name in names.split(", ")) == sorted(copy.get_params())


@EVERY
def test_a_refusal_charges_nothing(kind, network, source, options):
    data = source(dp.PrivacyBudget(4.0, 1e-3))
    delta = {"delta": 1e-3} if takes(kind, "delta") else {}
    dear = 5.0 if kind is not dp.papers.LinearPosteriorSampler else 0.0  # which charges less where less is enough
    for wrong in ({"epsilon": -1.0}, {"epsilon": dear}, {"epsilon": 1.0, "neighbours": "replace_one"}):
        with pytest.raises(ValueError):  # each names its own argument, elsewhere tested
            fit(kind(**options, **{**delta, **wrong}), network, data)
        assert data.budget.history == ()


@EVERY
def test_a_release_is_paid_for(kind, network, source, options):
    budget = dp.PrivacyBudget(4.0, 1e-3)
    release = discrete(budget).measure([("a", "b"), ("a",), ("b",)], 1.0)
    before = budget.history
    with pytest.raises((ValueError, TypeError)):
        fit(kind(epsilon=1.0, **({"delta": 1e-3} if takes(kind, "delta") else {}), **options), network, release)
    assert budget.history == before


@EVERY
def test_a_plan_is_what_is_charged(kind, network, source, options):
    if not hasattr(kind, "plan") or kind is dp.PrivateStructureSearch:
        pytest.skip("has no plan without records")
    options = {**options, "epsilon": 1.0, **({"delta": 1e-3} if takes(kind, "delta") else {})}
    data = source(dp.PrivacyBudget(1.0, 1e-3))
    if kind is dp.HouseholdMixture:
        plan = kind(schema=HOMES, **options).plan()
    else:
        plan = kind(**options).plan(*(() if network is None else (network.copy(),)), data.schema)
    assert plan.guarantee.delta == options.get("delta", 0.0)
    released = data.release(plan.mechanism)
    (paid,) = data.budget.history
    assert replace(paid, id="", holder=None, ledger_total=None) == plan.quote.cost
    assert learned(released).every == {paid}
    assert str(Guarantee({paid})) == str(plan.guarantee)
    if takes(kind, "mechanism"):  # what several stages measured is pooled, and rounded
        noise = {clique: variance**0.5 for clique, variance in released.variances.items()}
        assert replace(plan, records=released.total).noise == pytest.approx(noise, rel=0.01)


@pytest.mark.parametrize("declared", [SCHEMA, SCHEMA.state_names], ids=["schema", "states"])
def test_a_plan_is_for_the_declared_states(declared):
    for kind, *network in ((dp.AutoMLE, BAYESIAN), (dp.PairwiseMixture,)):
        planned = kind(1.0, state_names=declared).plan(*network)
        assert planned.noise == kind(1.0).plan(*network, schema=SCHEMA).noise
        with pytest.raises(dp.SchemaError, match="States must be declared"):
            kind(1.0).plan(*network)
        with pytest.raises(dp.SchemaError, match="state_names differ"):
            kind(1.0, state_names=declared).plan(*network, dp.Schema({"a": ["x", "z"], "b": ["x", "y"]}))
    with pytest.raises(dp.SchemaError, match="not in the schema: 'b'"):
        dp.AutoMLE(1.0).plan(BAYESIAN, SCHEMA.select(["a"]))


def test_a_plan_of_households_takes_their_schema():
    assert dp.HouseholdMixture(1.0).plan(HOMES).quote == dp.HouseholdMixture(1.0, schema=HOMES).plan().quote
    with pytest.raises(dp.SchemaError, match="leave it out"):
        dp.HouseholdMixture(1.0, schema=HOMES).plan(dp.HouseholdSchema(HOMES.households, HOMES.persons, "id", 3))


def test_a_plan_with_latent_variables_is_for_what_records_have():
    network, states = DiscreteBayesianNetwork([("z", "a")], latents={"z"}), {"a": ["x", "y"], "z": [0, 1]}
    kept = {"delta": 1e-3, **STEPS}
    planned = dp.PrivateVB(1.0, state_names=states, **kept).plan(network)
    assert planned.quote == dp.PrivateVB(1.0, state_names={"z": [0, 1]}, **kept).plan(network, SCHEMA).quote
    with pytest.raises(dp.SchemaError, match="Latent variable 'z'"):
        dp.PrivateVB(1.0, state_names={"a": ["x", "y"]}, **kept).plan(network)


def test_what_is_not_private_has_no_plan():
    assert not hasattr(dp.NotPrivateMLE, "plan")


@pytest.mark.parametrize(
    ("estimator", "planned"),
    [
        (dp.papers.PrivateBayesianEstimator(1.0, mechanism="fourier"), []),
        (dp.papers.PosteriorSampler(1.0), []),
        (dp.PrivateVB(1.0, delta=1e-3, **STEPS), []),
        (dp.PairwiseMixture(1.0, delta=1e-3, stages=2), [("a",), ("b",), ("a", "b")]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_noise_of_a_plan_is_that_of_tables_that_are_known(estimator, planned):
    plan = estimator.plan(*(() if planned else (BAYESIAN,)), schema=SCHEMA)
    assert list(plan.noise) == planned
    assert repr(plan).startswith(f"Plan({plan.quote.cost.label}: differentially private")


def test_a_plan_refuses_what_a_fit_refuses():
    ruled = dp.Schema(SCHEMA.state_names, rules=[dp.Forbidden({"a": "x", "b": "x"})])
    with pytest.raises(dp.SchemaError, match="cannot hold the schema's rules"):
        dp.PrivateVB(1.0, delta=1e-3, **STEPS).plan(BAYESIAN, ruled)
    with pytest.raises(ValueError, match=r"give the estimator an epsilon and states, AutoMLE with epsilon=1.0"):
        dp.AutoMLE().plan(BAYESIAN, SCHEMA)
    with pytest.raises(ValueError, match="has no plan before that"):
        dp.PrivateMLE(1.0, allocation="data_dependent").plan(BAYESIAN, SCHEMA)
