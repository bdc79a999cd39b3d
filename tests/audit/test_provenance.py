"""Whatever was learned from records carries what it cost, on every way out: the matrix.

Each row learns something, in every way that there is, and leads to a fitted network; its ledgers have then paid for
nothing else. Each column takes that network somewhere. What is stated at the end is what the ledgers paid, cost by
cost: none is forgotten, none is counted twice.
"""

import copy
import inspect
import json
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import pgmpy_dp as dp
from pgmpy_dp.cli import main
from pgmpy_dp.exports import from_mbi, to_mbi
from pgmpy_dp.models.formats import formats as provenance
from pgmpy_dp.privacy.guarantee import Guarantee, learned, learned_graph
from pgmpy_dp.release import Release

STATES = {"a": ["u", "v"], "b": ["u", "v", "w"], "c": dp.Bins(range(0, 11))}
EDGES = [("a", "b"), ("b", "c")]
FORMATS = ("json", "zip", "bif", "xmlbif", "net", "xdsl", "uai")


def records():
    draw = np.random.default_rng(0)
    a = draw.choice(["u", "v"], 600)
    return pd.DataFrame({"a": a, "b": np.where(draw.random(600) < 0.8, a, "w"), "c": draw.integers(0, 10, 600)})


RECORDS = records()


class Lab:
    """Ledgers of the records, and what they paid."""

    def __init__(self):
        self.budgets = [dp.PrivacyBudget(100.0, 1e-3)]

    def data(self, schema=None, new=False):
        if new:
            self.budgets.append(dp.PrivacyBudget(100.0, 1e-3))
        return dp.PrivateDataset(RECORDS, schema or dp.Schema(STATES), self.budgets[-1])

    @property
    def paid(self):
        return {cost.id for budget in self.budgets for cost in budget.history}


def names(guarantee):
    return {cost.id for cost in guarantee.every}


def fitted(lab, schema, edges=EDGES):
    cliques = [(child, parent) for parent, child in edges]
    return dp.PrivateBayesianNetwork(edges).fit(lab.data(schema).measure(cliques, 1.0))


OPEN = dp.Schema({**STATES, "a": []}, other={"a": "?"})


def discovered(lab):
    return lab.data(OPEN).discover_states("a", 2.0, delta=1e-7)


def found_graph(lab):
    return dp.PrivateStructureSearch(epsilon=2.0, delta=1e-6).fit(lab.data())


def states(lab):
    return fitted(lab, discovered(lab).schema)


def states_by_list(lab):
    return fitted(lab, dp.Schema({**STATES, "a": discovered(lab).states}, other={"a": "?"}))


def bins(lab):
    return fitted(lab, dp.Schema({**STATES, "c": lab.data().quantile_bins("c", 3, 0.5)}))


def merged_states(lab):
    schema = dp.merge_rare_states(lab.data().measure([("b",)], 0.5), "b", "group")
    return fitted(lab, schema, [("a", "group"), ("group", "b"), ("group", "c")])


def a_rule(lab):
    (rule,) = dp.merge_rare_states(lab.data().measure([("b",)], 0.5), "b", "group", deviations=1e-9).rules
    schema = dp.Schema({**STATES, "group": ["u", "v", "w"]}, rules=[rule])
    return fitted(lab, schema, [("a", "group"), ("group", "b"), ("group", "c")])


def agreed(lab):
    declared = dp.Schema({**STATES, "a": ["u", "v"]}, other={"a": "?"})
    return fitted(lab, dp.agree([discovered(lab).schema, declared]))


def search(lab):
    return found_graph(lab).network_


def search_refitted(lab):
    return search(lab).fit(lab.data().measure([("a", "b"), ("b", "c"), ("a", "c")], 0.5))


def search_fitted_to_records(lab):
    return search(lab).fit(lab.data(), dp.AutoMLE(epsilon=0.5))


def search_planned(lab):
    network = search(lab)
    cliques, weights = dp.plan_measurements(network, dp.Schema(STATES))
    return dp.PrivateBayesianNetwork(list(network.edges())).fit(lab.data().measure(cliques, 0.5, weights=weights))


def graph_of_a_search(lab):
    network = dp.PrivateBayesianNetwork(found_graph(lab).causal_graph_.copy())
    return network.fit(lab.data(), dp.AutoMLE(epsilon=0.5))


def changed_graph(lab):
    network = search(lab)
    for edge in list(network.edges()):
        network.remove_edge(*edge)
    network.add_edge("a", "b")
    return network.fit(lab.data(), dp.AutoMLE(epsilon=0.5))


def first_stage(lab):
    network, allocation = dp.PrivateBayesianNetwork(EDGES), dp.papers.DataDependentAllocation()
    return network.fit(lab.data(), dp.PrivateMLE(epsilon=1.0, allocation=allocation))


def by_hand_after_a_release(lab):
    first = lab.data().measure([("a", "b")], 0.5)
    return dp.PrivateBayesianNetwork(EDGES).fit(lab.data().after(first).measure(EDGES, 0.5))


def probe(lab):
    network = dp.PrivateBayesianNetwork([("b", "c")])
    network.add_node("a")
    network.fit(lab.data().measure([("a",), ("b", "c")], 1.0)).measure_misfit(lab.data(), 0.5)
    return network


def reading(lab):
    return dp.PrivateBayesianNetwork(EDGES).fit(lab.data(), dp.AutoMLE(epsilon=0.5))


def several(lab):
    one, two = lab.data().measure([("a", "b")], 0.5), lab.data().measure([("b", "c")], 0.5, delta=1e-6)
    return dp.PrivateBayesianNetwork(EDGES).fit([one, two], dp.PosteriorMean(draws=20))


def attached(lab):
    network = fitted(lab, dp.Schema(STATES))
    network.attach_release(lab.data().measure([("a", "b"), ("b", "c")], 0.25))
    return network


def of_two_holders(lab):
    north = lab.data().measure([("a", "b"), ("b", "c")], 1.0)
    return dp.union({"north": north, "south": lab.data(new=True).measure([("a", "b"), ("b", "c")], 0.5)})


def united(lab):
    return dp.PrivateBayesianNetwork([("site", node) for node in "abc"] + EDGES).fit(of_two_holders(lab))


def pooled(lab):
    union = dp.PartiallyPooledMarginals.of(of_two_holders(lab))
    return dp.PrivateBayesianNetwork([("site", node) for node in "abc"] + EDGES).fit(union)


def mixture(lab):
    schema = discovered(lab).schema
    estimator = dp.PairwiseMixture(epsilon=1.0, delta=1e-6, members=1, components=3)
    return estimator.fit(lab.data(schema)).network_.to_bayesian_network()


LEARNED = (
    states, states_by_list, bins, merged_states, a_rule, agreed, search, search_refitted, search_fitted_to_records,
    search_planned, graph_of_a_search, changed_graph, first_stage, by_hand_after_a_release, probe, reading, several,
    attached, united, pooled, mixture,
)  # fmt: skip


def in_a_file(ending):
    def write(network, folder):
        network.save(folder / f"network.{ending}")
        return dp.load(folder / f"network.{ending}")

    return write


def in_a_page(network, folder):
    """The page states the guarantee in words; the words are those of the network."""
    network.explore(folder / "page.html")
    assert str(network.guarantee_) in (folder / "page.html").read_text().replace("&#39;", "'")
    return network


def in_the_shell(network, folder):
    network.save(folder / "network.json")
    shown = CliRunner().invoke(main, ["show", str(folder / "network.json"), "--json"])
    return Guarantee.from_dict({n: v for n, v in json.loads(shown.stdout)["guarantee"].items() if n != "text"})


WAYS = {
    "as it is": lambda network, folder: network,
    "copy": lambda network, folder: network.copy(),
    "of": lambda network, folder: dp.PrivateBayesianNetwork.of(network),
    "pickle": lambda network, folder: pickle.loads(pickle.dumps(network)),
    "deepcopy": lambda network, folder: copy.deepcopy(network),
    "do": lambda network, folder: network.do([next(iter(network.nodes()))]),
    "Markov": lambda network, folder: dp.PrivateMarkovNetwork.of(network.to_markov_model()),
    "page": in_a_page,
    **{ending: in_a_file(ending) for ending in FORMATS},
}


def taken(way, network, folder):
    """The network at the end of a way."""
    if way == "zip" and not hasattr(network, "release_"):
        pytest.skip("it has no release to carry")
    return WAYS[way](network, folder)


@pytest.fixture(scope="module", params=LEARNED, ids=lambda row: row.__name__)
def row(request):
    """What one way of learning gave, and what was paid for it."""
    lab = Lab()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return request.param.__name__, request.param(lab), lab


pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.mark.parametrize("way", WAYS)
def test_what_is_stated_is_what_was_paid(row, way, tmp_path):
    name, network, lab = row
    found = taken(way, network, tmp_path)
    if name == "first_stage":  # a part of the ledger, which has one entry for both stages
        assert found.guarantee_.epsilon == lab.budgets[0].spent.epsilon == 1.0
    else:
        assert names(found.guarantee_) == lab.paid
    assert found.guarantee_ == network.guarantee_
    assert names(learned_graph(found)) == names(learned_graph(network))
    searched = "search" in name or name == "changed_graph"
    assert (names(learned_graph(found)) != set()) == searched or name == "search_planned"


@pytest.mark.parametrize("way", ["as it is", "copy", "pickle", *FORMATS])
def test_so_does_what_is_measured_next(row, way, tmp_path):
    """Under the states of a network, and on its graph: what found these, and the new cost."""
    name, network, lab = row
    found = taken(way, network, tmp_path)
    schema = dp.Schema.from_model(found)
    assert names(schema.guarantee) == names(dp.Schema.from_model(network).guarantee) <= lab.paid
    assert bool(schema.guarantee.every) == (name in STATED_BY_SCHEMAS)
    planned = learned(dp.plan_measurements(found, schema)[0])
    assert names(planned) == names(schema.guarantee) | names(learned_graph(network))
    variable = "b" if "b" in schema.states and name not in ("merged_states", "a_rule") else "a"
    new = Lab()
    noisy = new.data(dp.Schema({variable: schema.states[variable]})).after(planned).measure([(variable,)], 0.125)
    assert names(noisy.guarantee) == new.paid | names(planned)


STATED_BY_SCHEMAS = ("states", "states_by_list", "bins", "merged_states", "agreed", "mixture")
STATED_BY_GRAPHS = ("search", "search_refitted", "search_fitted_to_records", "graph_of_a_search", "changed_graph")


def test_lists_of_edges_and_plans_keep_it_in_the_shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    RECORDS[["a", "b"]].to_csv("records.csv", index=False)
    dp.Schema({"a": ["u", "v"], "b": ["u", "v", "w"]}).save("schema.json")

    def run(line):
        result = CliRunner().invoke(main, line.split())
        assert result.exit_code == 0, result.output
        return result

    run("ledger create ledger.json --epsilon 20 --delta 1e-3")
    spend = "records.csv --schema schema.json --ledger ledger.json"
    run(f"structure {spend} --epsilon 2 --delta 1e-6 --out edges.txt --model network.bif")
    budget = dp.PrivacyBudget.open("ledger.json")
    (found,) = budget.history
    for model in ("edges.txt", "network.bif"):
        run(f"release {spend} --model {model} --epsilon 0.5 --out release.zip --force")
        release = Release.load("release.zip")
        assert names(release.guarantee) == {found.id, budget.history[-1].id}
        run(f"fit release.zip --model {model} --out fitted.zip --force")
        assert dp.load("fitted.zip").guarantee_.epsilon == 2.5
        run(f"plan --schema schema.json --model {model} --epsilon 0.5 --out tables.json --force")
        run(f"release {spend} --cliques tables.json --epsilon 0.5 --out planned.zip --force")
        assert names(Release.load("planned.zip").guarantee) == {found.id, budget.history[-1].id}
    typed = "\n".join(line for line in (tmp_path / "edges.txt").read_text().splitlines() if not line.startswith("#"))
    (tmp_path / "typed.txt").write_text(typed)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        result = run(f"release {spend} --model typed.txt --epsilon 0.5 --out typed.zip")
    assert "The ledger paid for a graph, whose cost this answer does not include" in result.output


def test_releases_keep_it_in_other_libraries():
    lab = Lab()
    noisy = lab.data(discovered(lab).schema).measure([("a", "b")], 1.0)
    pytest.importorskip("mbi")
    assert from_mbi(to_mbi(noisy), noisy.schema).guarantee == noisy.guarantee


def test_a_path_that_drops_a_cost_and_one_that_counts_it_twice_are_caught(monkeypatch, tmp_path):
    """Planted: a file without what found the states, and a copy whose costs have other names."""
    lab = Lab()
    network = states(lab)
    with monkeypatch.context() as patched:
        stated = provenance.stated
        patched.setattr(provenance, "stated", lambda *given: {n: v for n, v in stated(*given).items() if n != "states"})
        saved = dp.Schema.from_model(in_a_file("bif")(network, tmp_path))
        assert saved.guarantee != dp.Schema.from_model(network).guarantee
    (cost, *_) = network.guarantee_.costs
    twice = network.guarantee_ | Guarantee.of(float(cost.epsilon))
    assert names(twice) != lab.paid
    assert twice.epsilon == network.guarantee_.epsilon + cost.epsilon


# Public functions that return something that may have been learned, and where the matrix or another test takes them.
KNOWN = set(
    """
    Bins.closed Bins.fine DiscoveredStates.interpret DiscoveredStates.states Guarantee.after Guarantee.from_dict
    Guarantee.of Guarantee.own HouseholdMixture.fit HouseholdSchema.joined HouseholdSchema.level
    HouseholdSchema.measured InformedMarginals.interpret InformedMarginals.join
    NetworkEstimator.fit NoisyMarginals.interpret NoisyMarginals.join
    NoisyResiduals.interpret NoisyResiduals.join PairwiseMixture.fit
    PartiallyPooledMarginals.as_measured PartiallyPooledMarginals.of
    PrivateBayesianNetwork.copy PrivateBayesianNetwork.do PrivateBayesianNetwork.fit
    PrivateBayesianNetwork.of PrivateDataset.discover_states PrivateDataset.measure
    PrivateDataset.measure_coefficients PrivateDataset.measure_residuals PrivateDataset.plan
    PrivateDataset.quantile_bins PrivateDataset.sample_map PrivateDataset.sample_posterior
    PrivateDataset.sample_regressions PrivateDataset.schema PrivateHouseholdNetwork.households
    PrivateHouseholdNetwork.load PrivateHouseholdNetwork.persons PrivateLDA.fit PrivateMarkovNetwork.copy
    PrivateMarkovNetwork.fit PrivateMarkovNetwork.of PrivateMixtureNetwork.fitted PrivateMixtureNetwork.load
    PrivateMixtureNetwork.to_bayesian_network PrivateNetwork.load PrivateNetwork.measure_misfit
    PrivateMixtureNetwork.guarantee_ PrivateMixtureNetwork.schema_ PrivateNetwork.guarantee_ PrivateNetwork.release_
    PrivateNetwork.schema_
    PrivateStructureSearch.fit Release.as_measured Release.load Schema.declared
    Schema.from_dict Schema.from_dictionary Schema.from_model Schema.guarantee Schema.join Schema.load Schema.of
    Schema.replace Schema.select
    Schema.with_states
    SupervisedEstimator.fit UnitedMarginals.interpret Wall.after
    Wall.begin Wall.plan agree exact_marginals load merge_rare_states union
    """.split()  # noqa: SIM905
)
SOMETHING_LEARNED = re.compile(
    r"\b(Noisy(Coefficients|Residuals|Sums)|Release|(Posterior|Regression)Draws|DiscoveredStates|(Noisy|United|Informed|PartiallyPooled)Marginals|Schema"
    r"|Bins|Private\w+Network|Learned|Model|Guarantee|Self)\b"
)


def test_every_public_function_that_returns_something_learned_is_in_the_matrix():
    found = set()
    for name in dp.__all__:
        held = getattr(dp, name)
        for member in dir(held) if inspect.isclass(held) else [None]:
            made = held if member is None else inspect.getattr_static(held, member)
            function = next((f for n in ("__func__", "fget", "func") if (f := getattr(made, n, None))), made)
            if (member or "").startswith("_") or not inspect.isfunction(function):
                continue
            returned = str(inspect.signature(function).return_annotation)
            if function.__module__.startswith("pgmpy_dp") and SOMETHING_LEARNED.search(returned):
                found.add(function.__qualname__)
    assert found - KNOWN == set(), "add it to the matrix: it may carry what records told"
    assert KNOWN - {"DiscoveredStates.states"} <= found
