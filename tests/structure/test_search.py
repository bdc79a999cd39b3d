"""Edges without support in the tables are removed, and no others; records drawn from a graph."""

import numpy as np
import pytest

import pgmpy_dp as dp
from pgmpy_dp.evaluation import bnlearn_network
from pgmpy_dp.networks.network import simulate
from pgmpy_dp.structure import search
from pgmpy_dp.structure.search import DrawnRecords, Knowledge, Round, Search, Steps, penalty, support, tree_cells

ASIA = bnlearn_network("asia")
SCHEMA = dp.Schema.from_model(ASIA)
NAMES = list(SCHEMA.variables)
RECORDS = simulate(ASIA, 20_000, seed=1)
TRUE = [("smoke", "lung"), ("smoke", "bronc"), ("bronc", "dysp")]
FALSE = [("asia", "smoke"), ("xray", "bronc")]


def searched(edges, required=(), seed=0):
    """A search that measured the families of a graph."""
    numbers = tuple((NAMES.index(parent), NAMES.index(node)) for parent, node in required)
    found = Search(SCHEMA, Knowledge(~np.eye(len(NAMES), dtype=bool), numbers), 3)
    found.parents = [tuple(sorted(NAMES.index(a) for a, b in edges if b == node)) for node in NAMES]
    data = dp.PrivateDataset(RECORDS, SCHEMA, dp.PrivacyBudget(2.0, 1e-6), noise=dp.SimulatedNoise(seed))
    cliques = [(node, *(a for a, b in edges if b == node)) for node in NAMES]
    found.release = data.measure(cliques, 2.0, delta=1e-6, mechanism="gaussian")
    return found


def test_edges_without_support_are_dropped():
    found = searched([*TRUE, *FALSE])
    found.drop_edges()
    assert set(found.named_edges()) == set(TRUE)


def test_required_edges_stay():
    found = searched([*TRUE, *FALSE], required=FALSE[:1])
    found.drop_edges()
    assert set(found.named_edges()) == {*TRUE, FALSE[0]}


@pytest.mark.parametrize(("required", "removed"), [((), FALSE[1]), (FALSE[1:], TRUE[0])])
def test_the_least_informative_edge_goes_where_the_tree_is_too_large(required, removed, monkeypatch):
    edges = [*TRUE, FALSE[1]]
    found = searched(edges, required)
    monkeypatch.setattr(search, "_CELLS", tree_cells(SCHEMA.cardinalities(), found._families()) - 1)
    found._shrink(found.drawn())
    assert set(found.named_edges()) == {*edges} - {removed}


def test_a_climb_adds_no_edge_that_costs_more_than_it_explains():
    """Records are drawn from a fit of the true families: each of its eight edges is strong, or says what others do."""
    found = searched(ASIA.edges())
    found.climb(found.drawn())
    assert {frozenset(edge) for edge in TRUE} <= {frozenset(edge) for edge in found.named_edges()}
    assert len(found.named_edges()) <= 10  # with up to three parents, 18 are possible


def test_support_of_noise_alone_is_about_zero_and_that_of_an_edge_grows_with_records():
    """Over 240 draws of noise it was .64 (standard error .1): a mean of 30 is .9 away once in a thousand times."""
    lung, smoke, asia = (NAMES.index(name) for name in ("lung", "smoke", "asia"))
    of_noise = []
    for seed in range(30):
        found = searched([("asia", "smoke")], seed=seed)
        drawn = found.drawn()
        of_noise.append(support(found.release, drawn, NAMES, smoke, (asia,), asia))
        assert support(found.release, drawn, NAMES, lung, (smoke,), smoke) == -np.inf  # no table holds both
    assert np.mean(of_noise) == pytest.approx(0.64, abs=0.9)
    outputs = searched(TRUE)
    assert support(outputs.release, outputs.drawn(), NAMES, lung, (smoke,), smoke) > 50


def test_a_second_parent_is_judged_given_the_first():
    """Both ends of an edge that another explains are independent given it."""
    generator = np.random.default_rng(0)
    first = generator.integers(0, 2, 50_000)
    codes = np.stack([first, np.where(generator.random(50_000) < 0.9, first, 1 - first), first])
    codes[2] = np.where(generator.random(50_000) < 0.9, first, 1 - first)
    schema = dp.Schema({"a": [0, 1], "b": [0, 1], "c": [0, 1]})
    data = dp.PrivateDataset(codes.T, schema, dp.PrivacyBudget(1.0, 1e-6), noise=dp.SimulatedNoise(0))
    release = data.measure([("c", "a", "b")], 1.0, delta=1e-6, mechanism="gaussian")
    drawn = DrawnRecords(codes, [2, 2, 2])
    assert support(release, drawn, list("abc"), 2, (0, 1), 0) > 1000
    assert support(release, drawn, list("abc"), 2, (0, 1), 1) < 5
    assert support(release, drawn, list("abc"), 2, (1,), 1) > 1000


def test_drawn_records_have_the_networks_marginals():
    tables = {("a",): np.array([0.3, 0.7]), ("b", "a"): np.array([[0.9, 0.2], [0.1, 0.8]])}
    drawn = DrawnRecords.of(tables, ["a", "b"], [2, 2], 100_000, np.random.default_rng(0))
    joint = tables["b", "a"] * tables["a",]
    assert np.abs(drawn.shares((1, 0)) - joint).max() < 0.01
    entropy = -(joint * np.log(tables["b", "a"])).sum()
    assert drawn.log_likelihood(1, (0,)) == pytest.approx(-entropy, abs=0.01)
    assert drawn.parameters(1, (0,)) == 2


def test_steps_choose_as_many_edges_as_a_forest_may_have():
    steps = Steps(1.0, Round(2.0, 3.0), (Round(1.0, 1.0), Round(1.0, 1.0, 1.0)), edges=0.5)
    for variables, forest, some in ((1, 1, 1), (2, 1, 1), (7, 6, 4)):
        listed = dict(steps.listed(variables))
        assert listed["choose a forest"].picks == forest
        assert [step.picks for name, step in listed.items() if name.endswith("choose edges")] == [some, some]
        assert sum(step.share for step in listed.values()) == pytest.approx(1.0)
        assert listed["measure the forest"].share == pytest.approx(3 / 11)
        assert sum("climb" in name for name in listed) == 1


def test_the_price_of_a_parameter_grows_with_the_noise_of_tables():
    """Also of a union of residuals, whose cells have dependent noise: that of their marginals counts."""
    schema, parts = SCHEMA.select(["smoke", "lung", "bronc"]), {}
    for number, site in enumerate(("north", "south")):
        frame = RECORDS[list(schema.variables)].iloc[4000 * number : 4000 * (number + 1)]
        data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(1.0, 1e-6), noise=dp.SimulatedNoise(number))
        scales = {(): 9.0, ("smoke",): 9.0, ("lung",): 9.0, ("smoke", "lung"): 9.0}
        parts[site] = data.measure_residuals(scales, delta=1e-6)
    union = dp.union(parts)
    of_tables = [union.marginal(clique)[1] * union.schema.cells(clique) for clique in union.cliques]
    expected = 0.5 * (np.log(union.total) + np.mean(of_tables) / union.total)
    assert penalty(union, union.variables) == pytest.approx(expected)
