"""Private variational Bayes: the E-step by brute force, recovery, the ledger, refusals."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from pgmpy.models import DiscreteBayesianNetwork

import pgmpy_dp as dp
from pgmpy_dp import papers
from pgmpy_dp.estimators.private_vb import Completion

CARDS = {"a": 2, "z": 3, "b": 2, "y": 2, "c": 3, "d": 2}
FAMILIES = [("a",), ("z", "a"), ("b", "y", "z"), ("y", "z"), ("c", "y"), ("d", "a")]
OBSERVED = ["d", "a", "b", "c"]

NAMES = ["x0", "x1", "x2", "x3"]
STATES = {**{name: ["no", "yes"] for name in NAMES}, "class": ["one", "two"]}


def network():
    return DiscreteBayesianNetwork([("class", name) for name in NAMES], latents={"class"})


def latent_class_records(count, seed):
    rng = np.random.default_rng(seed)
    classes = rng.random(count) < 0.35
    yes = np.where(classes[:, None], [0.9, 0.8, 0.15, 0.7], [0.2, 0.1, 0.85, 0.3])
    return pd.DataFrame(np.where(rng.random((count, 4)) < yes, "yes", "no"), columns=NAMES)


def private(records, neighbours="add_remove", noise=None, epsilon=1.0, delta=1e-6):
    schema = dp.Schema({name: STATES[name] for name in NAMES})
    noise = dp.SimulatedNoise(1) if noise is None else noise
    return dp.PrivateDataset(records, schema, dp.PrivacyBudget(epsilon, delta), neighbours, noise)


def log_likelihood(estimator, records):
    """Mean over records, by the network's own joint distribution."""
    tables = {cpd.variable: cpd for cpd in estimator.parameters_}
    prior = tables["class"].values
    rows = np.stack([np.take(tables[n].values, [STATES[n].index(v) for v in records[n]], axis=0) for n in NAMES])
    return float(np.log(rows.prod(axis=0) @ prior).mean())


def test_expected_statistics_by_brute_force():
    """Two latent variables, one below an observed one; families with two, one and no latent variables."""
    rng = np.random.default_rng(3)
    completion = Completion(CARDS, FAMILIES, OBSERVED)
    log_rows = rng.normal(size=completion.layout.size)
    tables = completion.layout.tables(log_rows)
    records = np.array(list(itertools.product(*(range(CARDS[v]) for v in OBSERVED))))
    found = completion.expected(records, log_rows).toarray()
    for number, record in enumerate(records):
        expected, mass = {family: np.zeros(table.shape) for family, table in tables.items()}, 0.0
        for z, y in itertools.product(range(3), range(2)):
            state = {**dict(zip(OBSERVED, record, strict=True)), "z": z, "y": y}
            cells = {family: tuple(state[v] for v in family) for family in FAMILIES}
            weight = math.exp(sum(tables[family][cell] for family, cell in cells.items()))
            mass += weight
            for family, cell in cells.items():
                expected[family][cell] += weight
        brute = np.concatenate([expected[family].ravel() for family in FAMILIES]) / mass
        assert found[number] == pytest.approx(brute, abs=1e-12)
    assert (found >= 0).all()
    assert (np.linalg.norm(found, axis=1) <= math.sqrt(len(FAMILIES))).all()


def test_complete_records_count_as_they_are():
    completion = Completion({"a": 2, "b": 3}, [("a",), ("b", "a")], ["b", "a"])
    assert completion.expected(np.array([[2, 1]]), np.zeros(8)).toarray().tolist() == [[0, 1, 0, 0, 0, 0, 0, 1]]


def test_a_latent_class_model_is_recovered():
    """Within 1 % of the log-likelihood of the true distribution; a fit of one class is 7 % off."""
    train, test = latent_class_records(20_000, 1), latent_class_records(20_000, 2)
    model = network()
    estimator = dp.PrivateVB(epsilon=1.0, delta=1e-6, state_names=STATES, steps=40)
    model.fit(private(train), estimator=estimator)
    assert model.check_model()
    yes = np.array([[0.9, 0.8, 0.15, 0.7], [0.2, 0.1, 0.85, 0.3]])
    is_yes = (test == "yes").to_numpy()
    per_class = np.where(is_yes[:, None], yes, 1 - yes).prod(axis=2)
    truth = float(np.log(per_class @ [0.35, 0.65]).mean())
    assert log_likelihood(estimator, test) > 1.01 * truth
    rate = is_yes.mean(axis=0)
    independent = float((rate * np.log(rate) + (1 - rate) * np.log(1 - rate)).sum())
    assert independent < 1.07 * truth
    assert estimator.state_names_["class"] == ["one", "two"]
    assert all((table > 0).all() for table in estimator.concentrations_.values())


def test_raw_records_with_declared_states():
    estimator = dp.PrivateVB(epsilon=1.0, delta=1e-6, state_names=dp.Schema(STATES), steps=3)
    network().fit(latent_class_records(200, 1), estimator=estimator)
    assert estimator.guarantee_.private
    assert "delta = 1e-06" in str(estimator.guarantee_)


def test_comparison_accountings_cost_more_noise():
    noise = {}
    for accounting in ("tight", "moments", "strong", "naive"):
        found = papers.calibrate(1.0, 1e-6, steps=10, sampling_rate=0.2, accounting=accounting)
        estimator = dp.PrivateVB(1.0, 1e-6, state_names=STATES, steps=10, noise_multiplier=found)
        noise[accounting] = estimator.fit(network(), private(latent_class_records(50, 1))).noise_multiplier_
    assert noise["tight"] < noise["moments"] < noise["strong"]
    assert noise["tight"] < noise["naive"]


def test_other_bad_input():
    data = private(latent_class_records(100, 1))
    with pytest.raises(ValueError, match="sample_weight"):
        dp.PrivateVB(1.0, 1e-6, state_names=STATES).fit(network(), data, sample_weight=np.ones(100))
    with pytest.raises(TypeError, match="not a release"):
        dp.PrivateVB(1.0, 1e-6, state_names=STATES).fit(network(), data.measure([("x0",)], epsilon=0.1))
    with pytest.raises(TypeError, match="DiscreteBayesianNetwork"):
        dp.PrivateVB(1.0, 1e-6, state_names=STATES).fit(dp.PrivateMarkovNetwork([("x0", "x1")]), data)
