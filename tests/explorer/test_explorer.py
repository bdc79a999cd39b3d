"""The page that answers: in a real browser it gives what `query` gives, and hostile names do nothing."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import pgmpy_dp as dp
from pgmpy_dp.evaluation import bnlearn_network
from pgmpy_dp.models.simulation import simulate

# Draws are on the page in single precision.
EXACT, BOUNDS = 1e-9, 2e-6


def records_of(count, seed):
    """Records of four variables: a number in bins, one that follows from another, and one that a rule restricts."""
    draw = np.random.default_rng(seed)
    age = draw.integers(0, 80, count)
    married = np.where((age >= 18) & (draw.random(count) < 0.6), "yes", "no")
    health = np.array(["good", "fair", "poor"])[np.clip(draw.poisson(age / 50), 0, 2)]
    return pd.DataFrame(
        {"age": age, "married": married, "health": health, "well": np.where(health == "poor", "no", "yes")}
    )


SCHEMA = dp.Schema(
    {
        "age": dp.Bins([0, 18, 40, 60, 80]),
        "married": ["no", "yes"],
        "health": ["good", "fair", "poor"],
        "well": ["no", "yes"],
    },
    rules=[
        dp.Forbidden({"age": "0_to_18", "married": "yes"}),
        dp.Dependency("health", "well", {"good": "yes", "fair": "yes", "poor": "no"}),
    ],
)


def network(edges, records, schema, cliques=None, seed=1, epsilon=2.0):
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(epsilon), noise=dp.SimulatedNoise(seed))
    network = dp.PrivateBayesianNetwork(edges)
    planned, weights = dp.plan_measurements(network, schema)
    network.fit(data.measure(cliques or planned, epsilon, weights=None if cliques else weights))
    network.sample_draws(draws=40)
    return network


@pytest.fixture(scope="module")
def models():
    asia = bnlearn_network("asia")
    found = {"asia": network(asia.edges(), simulate(asia, 3000, 0), dp.Schema.from_model(asia))}
    edges = [("age", "married"), ("age", "health"), ("health", "well")]
    pairs = [("age", "married"), ("age", "health"), ("health", "well"), ("age", "well"), ("married", "health")]
    found["rules"] = network(edges, records_of(2000, 0), SCHEMA, [*pairs, ("married", "well")])
    draw, names = np.random.default_rng(2), ["a", "b", "c", "d"]
    grid = pd.DataFrame({name: draw.choice(["x", "y", "z"], 1500, p=[0.5, 0.3, 0.2]) for name in names})
    schema = dp.Schema({name: ["x", "y", "z"] for name in names})
    edges = [("a", "b"), ("b", "d"), ("d", "c"), ("c", "a")]
    data = dp.PrivateDataset(grid, schema, dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(2))
    found["grid"] = dp.PrivateMarkovNetwork(edges).fit(data.measure(edges, 1.0), estimator=dp.CollectiveEM())
    found["grid"].sample_draws(draws=40)
    data = dp.PrivateDataset(records_of(2000, 1), SCHEMA, dp.PrivacyBudget(2.0, 1e-6), noise=dp.SimulatedNoise(3))
    estimator = dp.PairwiseMixture(epsilon=2.0, delta=1e-6, state_names=SCHEMA, members=4, components=8)
    found["mixture"] = estimator.fit(data).network_
    found["mixture"].sample_draws(draws=4)
    return found


@pytest.fixture
def opened(browser, tmp_path):
    """Function: a model to what calls a function of JavaScript on its page."""

    def open_page(model, hash=""):
        model.explore(tmp_path / "page.html")
        browser.get("about:blank")
        browser.get_log("browser")
        browser.get((tmp_path / "page.html").as_uri() + hash)
        browser.execute_async_script("const [done] = arguments; explorer.ready.then(() => done(), done)")
        return lambda script, *arguments: browser.execute_script(script, *arguments)

    return open_page


def questions(model, count, seed=0):
    """Random questions whose evidence the model's own records have: the variables asked for, and states of others."""
    draw, schema = np.random.default_rng(seed), model._fitted()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawn = model.simulate(count, seed=seed)
    for row in drawn.to_dict("records"):
        given = draw.permutation(schema.variables)[: draw.integers(0, min(len(schema.variables), 5))].tolist()
        yield [v for v in schema.variables if v not in given][:6], {v: row[v] for v in given}


def agrees(call, model, count):
    """Compare every question's exact answer, and its bounds for the population and for the records."""
    ways = [{"interval": None}, {"interval": 0.9}, {"interval": 0.9, "target": "records"}]
    asked = [(*question, way) for question in questions(model, count) for way in ways]
    page = call("return arguments[0].map((question) => explorer.query(...question))", asked)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for (variables, given, way), found in zip(asked, page, strict=True):
            for variable in variables:
                states = list(model._fitted().states[variable])
                answer = model.query([variable], given, **way)
                if way["interval"] is None:
                    expected, columns = answer.values[:, None], ["value"]
                else:
                    expected, columns = answer.to_numpy(), list(answer)
                got = np.array([[found[variable][str(state)][column] for column in columns] for state in states])
                assert np.abs(got - expected).max() < (EXACT if way["interval"] is None else BOUNDS), (given, variable)


@pytest.mark.parametrize("name", ["asia", "rules", "grid", "mixture"])
def test_answers_agree_with_python(name, models, opened):
    agrees(opened(models[name]), models[name], 20)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["asia", "alarm", "insurance", "rules", "grid", "mixture"])
def test_many_answers_agree_with_python(name, models, opened):
    if name not in models:
        known = bnlearn_network(name)
        models[name] = network(known.edges(), simulate(known, 20_000, 0), dp.Schema.from_model(known))
    agrees(opened(models[name]), models[name], 200)
