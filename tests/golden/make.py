"""Write the golden files of releases and models beside this script, with what is in them.

A file once written is never written again: what a version wrote, all later ones must read. New kinds get new names.
"""

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from pgmpy.models import LinearGaussianBayesianNetwork

import pgmpy_dp as dp

HERE = Path(__file__).parent
STATES = {"a": ["u", "v"], "b": [0, 1, 2], "c": dp.Bins([0, 1, 5, 9])}
SCHEMA = dp.Schema(STATES, missing={"a": "?"}, other={"b": 9}, bounds={"x": (-1, 2), "y": 3})
CHANCE = np.random.default_rng(0)
RECORDS = pd.DataFrame({"a": CHANCE.choice(["u", "v"], 400), "b": CHANCE.integers(0, 3, 400)})
RECORDS = RECORDS.assign(c=2 * RECORDS["b"] + CHANCE.integers(0, 4, 400), person=np.arange(400) // 2)
RECORDS = RECORDS.assign(x=CHANCE.uniform(-1, 2, 400), y=CHANCE.normal(size=400))

# Written a second time, as NAME_costs, when costs got names.
WITH_COSTS = ("tables_found.zip", "discovered_states.zip", "united_tables.zip", "bayesian.zip", "mixture.zip")


def data_set(schema=SCHEMA, **options):
    return dp.PrivateDataset(RECORDS, schema, dp.PrivacyBudget(50.0, 1e-3), noise=dp.SimulatedNoise(1), **options)


def releases():
    data, pairs = data_set(), [("a", "b"), ("b", "c")]
    laplace = data.measure(pairs, 1.0)
    yield "tables_laplace", laplace
    yield "tables_sampled", data.measure([("a",)], 0.5, sampling_rate=0.5)
    yield "tables_gaussian", data_set().measure(pairs, 1.0, delta=1e-6, mechanism="gaussian")
    yield "tables_gaussian_block", data.measure(pairs, 1.0, delta=1e-6, mechanism="gaussian_block")
    yield "tables_replaced", data_set(neighbours="replace_one").measure(pairs, 1.0)
    yield "tables_rows", data_set(unit="person", max_rows=2).measure(pairs, 1.0)
    yield "tables_weighted", data_set(unit="person").measure(pairs, 1.0)
    yield "informed_tables", dp.InformedMarginals(laplace, {"a": [3, 4, 1]})
    gaussian = data_set().measure([("b", "a"), ("a", "c")], 2.0, delta=1e-6)
    united = dp.union({"north": laplace, 2: gaussian}, "place", overlap=2)
    yield "united_tables", united
    yield "partially_pooled_tables", dp.PartiallyPooledMarginals.of(united)
    yield "coefficients", data.measure_coefficients(pairs, 1.0)
    yield "residuals", data.measure_residuals({(): 9.0, ("a",): 7.0, ("b",): 8.0, ("a", "b"): 5.0}, delta=1e-6)
    network = dp.PrivateBayesianNetwork([("b", "a")])
    yield "posterior_draws", dp.papers.PosteriorSampler(epsilon=2.0, draws=2).fit(network, data).release_
    linear, numbers = LinearGaussianBayesianNetwork([("x", "y")]), {"std": {"x": 1.0, "y": 1.0}}
    sampler = dp.papers.LinearPosteriorSampler(epsilon=2.0, coefficient_bound={"x": 2.0, "y": 2.0}, **numbers)
    yield "regression_draws", sampler.fit(linear, data).release_
    misfit = dp.PrivateBayesianNetwork()
    misfit.add_nodes_from("abc")
    yield "tables_chosen", misfit.fit(laplace).measure_misfit(data, 1.0, pairs=1)


def shared_releases():
    found = data_set(dp.Schema({**STATES, "b": []}, other={"b": 9})).discover_states("b", 1.0, delta=1e-6)
    yield "discovered_states", found
    bins = data_set().quantile_bins("c", 2, 0.5)
    schema = found.schema.replace(variables={**found.schema.declared, "c": bins})
    yield "tables_found", data_set(schema).measure([("b", "c")], 1.0)


def models(release):
    yield "bayesian.zip", dp.PrivateBayesianNetwork([("b", "a"), ("b", "c")]).fit(release)
    yield "bayesian.json", dp.PrivateBayesianNetwork([("b", "a"), ("b", "c")]).fit(release)
    yield "markov.zip", dp.PrivateMarkovNetwork([("b", "a"), ("b", "c")]).fit(release)
    yield "mixture.zip", dp.PairwiseMixture(members=1, components=4).fit(release).network_
    homes, people = dp.Schema({"home": ["big", "small"]}), dp.Schema({"a": ["u", "v"]})
    households = dp.HouseholdSchema(homes, people, key="person", max_persons=2)
    frame = pd.DataFrame({"person": np.arange(200), "home": CHANCE.choice(["big", "small"], 200)})
    mixture = dp.HouseholdMixture(epsilon=5.0, delta=1e-6, schema=households, members=1, components=4)
    private = dp.PrivateHouseholds(frame, RECORDS, households, dp.PrivacyBudget(5.0, 1e-6), noise=dp.SimulatedNoise(2))
    yield "households.json", mixture.fit(private).network_


def held(release):
    """What a release says, as JSON."""
    return {
        "kind": type(release).__name__,
        "schema": release.schema.to_dict(),
        "guarantee": release.guarantee.to_dict(),
        "public_total": release.public_total,
        "cliques": [list(clique) for clique in release.cliques],
        "chosen_among": [[list(clique), among] for clique, among in release.chosen_among.items()],
        "numbers": [values.tolist() for values, _ in release.measurements()],
        "variances": [None if each is None else each.tolist() for _, each in release.measurements()],
    }


def answered(network):
    """What a model answers, and promises."""
    outputs = {"guarantee": network.guarantee_.to_dict()}
    if isinstance(network, dp.PrivateHouseholdNetwork):
        levels = {"households": (network.households, ["home", "size"]), "persons": (network.persons, ["home", "a"])}
        return outputs | {name: each.query(asked).values.tolist() for name, (each, asked) in levels.items()}
    answer = network.query(["a", "c"], {"b": 1})
    return outputs | {"variables": list(answer.variables), "answer": answer.values.tolist()}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    known = HERE / "expected.json"
    expected = json.loads(known.read_text()) if known.exists() else {}
    made = [(f"{name}.zip", each) for kinds in (releases, shared_releases) for name, each in kinds()]
    tables = data_set().measure([("a", "b"), ("b", "c"), ("a", "c")], 4.0)
    made += models(tables)
    made += [(name.replace(".", "_costs."), each) for name, each in made if name in WITH_COSTS]
    for name, each in made:
        if name not in expected:
            each.save(HERE / name)
            expected[name] = (held if hasattr(each, "measurements") else answered)(each)
    known.write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n")
