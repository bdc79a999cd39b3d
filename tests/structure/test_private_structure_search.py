"""A whole search: what it finds, what it charges, and what an expert's knowledge does to it."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from pgmpy.causal_discovery import GES, ExpertKnowledge, HillClimbSearch
from sklearn.base import clone

import pgmpy_dp as dp
from pgmpy_dp.evaluation import bnlearn_network
from pgmpy_dp.inference.tables.table import Table
from pgmpy_dp.networks.network import simulate
from pgmpy_dp.privacy.accounting import zcdp_limit
from pgmpy_dp.structure.private_structure_search import _measured
from pgmpy_dp.structure.search import penalty

ASIA = bnlearn_network("asia")
SCHEMA = dp.Schema.from_model(ASIA)
TRUE = {frozenset(edge) for edge in ASIA.edges()}


@pytest.fixture(scope="module")
def records():
    return simulate(ASIA, 20_000, seed=1)


def dataset(records, epsilon=3.0, delta=1e-6, seed=0, **options):
    budget = dp.PrivacyBudget(epsilon, delta)
    return dp.PrivateDataset(records, SCHEMA, budget, noise=dp.SimulatedNoise(seed), **options)


@pytest.fixture(scope="module")
def found(records):
    data = dataset(records)
    search = dp.PrivateStructureSearch(3.0, 1e-6).fit(data)
    return search, data


def test_most_edges_of_a_small_network_are_found(found):
    search, _ = found
    joined = {frozenset(edge) for edge in search.causal_graph_.edges()}
    assert len(joined & TRUE) >= 6  # of 8; one is seen by 1 % of the records, and one says what another does
    assert set(search.network_.nodes()) == set(SCHEMA.variables)
    assert {frozenset(edge) for edge in search.network_.edges()} == joined
    answer = search.network_.query(["lung"], {"smoke": "yes"})
    assert answer.get_value(lung="yes") == pytest.approx(0.1, abs=0.02)


def test_the_ledger_has_one_entry_of_the_whole_price(found):
    search, data = found
    (charge,) = data.budget.history
    assert (charge.epsilon, float(charge.delta), charge.label) == (3, 1e-6, "search for a graph")
    assert (search.guarantee_.epsilon, search.guarantee_.delta) == (3.0, 1e-6)
    assert search.guarantee_.rho > 1.1 * zcdp_limit(3.0, 1e-6)[0]  # as one block
    assert search.release_.guarantee == search.network_.guarantee_ == search.guarantee_
    measured = sum(1 / (2 * scale**2) for release in search.releases_ for scale in release.scales.values())
    plan = search.plan()
    assert plan["share"].sum() == pytest.approx(1.0)
    chosen = plan[plan["step"].str.contains("choose")]["share"].sum()
    assert (1 - chosen) * 0.94 < measured / search.guarantee_.rho < 1 - chosen


def test_a_graph_is_scored_as_by_pgmpys_searches(found, records):
    search, _ = found
    searched = HillClimbSearch(show_progress=False).fit(records)
    searched.causal_graph_ = search.causal_graph_
    assert search.score(true_graph=ASIA) == searched.score(true_graph=ASIA)
    assert search.score(records, metric="structure_score") == searched.score(records, metric="structure_score")
    for wrong in ({}, {"X": records, "true_graph": ASIA}, {"X": records, "metric": "unheard of"}):
        with pytest.raises(ValueError, match=r"Give X|no metric"):
            search.score(**wrong)


def test_edges_are_described(found):
    search, _ = found
    edges = search.edges_.set_index(["parent", "child"])
    assert set(edges.index) == set(search.network_.edges())
    assert (edges["information"] > 0).all()
    assert edges["cost"].sum() > 0
    assert (edges["residual"] < 10).all()
    strongest = frozenset(edges["information"].idxmax())
    assert strongest in TRUE
    compelled = {tuple(edge) for edge in search.causal_graph_.to_pdag().directed_edges}
    assert set(edges.index[edges["oriented"]]) == compelled


def test_repeated_searches_tell_stable_edges(found, monkeypatch):
    search, _ = found
    monkeypatch.setitem(vars(search.network_), "_check", SimpleNamespace(fails=True))  # no warning could be made of it
    monkeypatch.delitem(vars(search.network_), "_warned", raising=False)
    edges = search.bootstrap(refits=4, seed=1)
    assert edges["found"].between(0, 1).all()
    assert ((edges["verdict"] == "stable") == (edges["found"] >= 0.75)).all()
    stable = edges[edges["verdict"] == "stable"]
    assert len(stable) >= 4
    again = clone(search).fit(dataset(simulate(ASIA, 20_000, seed=1)))
    assert (again.edges_["verdict"] == "not repeated").all()


def test_the_same_answers_give_the_same_graph(records, found):
    again = dp.PrivateStructureSearch(3.0, 1e-6).fit(dataset(records))
    assert list(again.causal_graph_.edges()) == list(found[0].causal_graph_.edges())


def test_pure_epsilon_and_replaced_records(records):
    data = dp.PrivateDataset(records, SCHEMA, dp.PrivacyBudget(10.0), "replace_one", noise=dp.SimulatedNoise(0))
    search = dp.PrivateStructureSearch(10.0, return_type="pdag", max_indegree=2).fit(data)
    (charge,) = data.budget.history
    assert charge.epsilon == 10
    assert search.guarantee_.epsilon == 10.0
    assert search.guarantee_.rho is None
    assert len({frozenset(edge) for edge in search.network_.edges()} & TRUE) >= 5
    assert type(search.causal_graph_).__name__ == "PDAG"
    assert max(len(search.network_.get_parents(node)) for node in search.network_.nodes()) <= 2


def test_knowledge_restricts_the_graph(records):
    expert = ExpertKnowledge(required_edges=[("asia", "xray")], forbidden_edges=[("smoke", "lung"), ("lung", "smoke")])
    search = dp.PrivateStructureSearch(3.0, 1e-6, expert_knowledge=expert).fit(dataset(records))
    edges = set(search.causal_graph_.edges())
    assert ("asia", "xray") in edges
    assert not edges & {("smoke", "lung"), ("lung", "smoke")}


def test_one_variable_has_no_edges():
    frame = pd.DataFrame({"coin": ["heads", "tails"] * 50})
    search = dp.PrivateStructureSearch(1.0, 1e-6, state_names={"coin": ["heads", "tails"]}).fit(frame)
    assert list(search.causal_graph_.nodes()) == ["coin"]
    assert search.edges_.empty
    with pytest.raises(ValueError, match="at least two variables"):
        search.outlook(dp.Schema({"coin": ["heads", "tails"]}), 100)


def test_the_outlook_is_that_of_a_pair_of_the_forest(found):
    search, _ = found
    (typical,), forest = search.outlook(SCHEMA, 20_000).tables, search.releases_[1]
    assert typical.deviation == pytest.approx(forest.scales[forest.cliques[0]])
    assert search.outlook(SCHEMA, 1).tables[0].mean == 0.25
    with pytest.raises(ValueError, match="records"):
        search.outlook(SCHEMA, 0)


def test_what_cannot_be_searched_is_refused_unpaid(records):
    data = dataset(records)
    with pytest.raises(TypeError, match="NoisyScore"):
        dp.PrivateStructureSearch(1.0).fit(data.measure([("smoke",)], 0.1))
    spent = data.budget.history
    for options, message in (
        ({"epsilon": 0.0}, "epsilon"),
        ({"max_indegree": 0}, "max_indegree"),
        ({"return_type": "cpdag"}, "return_type"),
        ({"epsilon": 99.0}, "fit|left|remain"),
        ({"delta": 1e-3}, "delta"),
        ({"neighbours": "replace_one"}, "neighbours"),
    ):
        with pytest.raises(ValueError, match=message):
            dp.PrivateStructureSearch(**({"epsilon": 1.0, "delta": 1e-6} | options)).fit(data)
    assert data.budget.history == spent


def test_pairs_too_large_to_count_are_refused_unpaid():
    wide = dp.Schema(dict.fromkeys(["place", "job"], range(9000)))
    data = dp.PrivateDataset(np.zeros((3, 2), dtype=int), wide, dp.PrivacyBudget(1.0, 1e-6))
    with pytest.raises(dp.SchemaError, match="cells"):
        dp.PrivateStructureSearch(1.0, 1e-6).fit(data)
    assert not data.budget.history


def test_pgmpys_searches_take_the_score(found):
    search, _ = found
    score = dp.NoisyScore(search.network_)
    assert clone(score).source is not None
    for kind in (HillClimbSearch, GES):
        made = kind(scoring_method=score, return_type="dag") if kind is HillClimbSearch else kind(scoring_method=score)
        edges = {frozenset(edge) for edge in made.fit(score.data).causal_graph_.edges()}
        assert len(edges & TRUE) >= 5
    families = {node: tuple(search.network_.get_parents(node)) for node in search.network_.nodes()}
    assert all(np.isfinite(score.local_score(node, parents)) for node, parents in families.items())
    first, second = families["dysp"][:2] if len(families["dysp"]) > 1 else ("bronc", "either")
    assert score.local_score("dysp", (first, second)) == score.local_score("dysp", (second, first))


def test_a_release_is_scored_without_a_graph(records):
    cliques, weights = dp.plan_pairs(SCHEMA)
    noisy = dataset(records, 5.0).measure(cliques, 5.0, delta=1e-6, mechanism="gaussian", weights=weights)
    score = dp.NoisyScore(noisy)
    assert score.local_score("lung", ("smoke",)) > score.local_score("lung", ())
    assert score.local_score("asia", ("smoke",)) < score.local_score("asia", ())
    # Noise makes a parameter dearer than BIC would.
    assert penalty(noisy, SCHEMA.variables) > 0.5 * np.log(noisy.total)
    with pytest.raises(TypeError, match="NoisyScore"):
        dp.NoisyScore(records)
    with pytest.raises(ValueError, match="noisy tables"):
        dp.NoisyScore(ASIA)


def test_a_fitted_network_is_scored_as_it_was_fitted(found):
    with pytest.raises(ValueError, match="pooled says how a union is fitted"):
        dp.NoisyScore(found[0].network_, pooled=True)


def test_residuals_of_an_edge_are_in_units_of_noise_and_sampling():
    share = np.array([[0.5, 0.2], [0.1, 0.2]])
    schema = dp.Schema({"a": ["x", "y"], "b": ["x", "y"]})
    counts = np.rint(1000 * share + [[40, -30], [-20, 10]]).astype(int)
    tables, scales = {("a", "b"): counts}, {("a", "b"): 30.0}
    release = dp.NoisyMarginals(schema, tables, scales, dp.Guarantee.of(1.0))
    residual, cost = _measured(release, ("a", "b"), Table(("a", "b"), share))
    total, variance = release.total, release.variances["a", "b"]
    expected = ((counts - total * share) ** 2 / (variance + total * share * (1 - share))).mean()
    assert residual == pytest.approx(expected)
    assert cost == pytest.approx(1 / 30)
