"""The junction tree against the full joint table."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, kstest

from pgmpy_dp._threads import cores
from pgmpy_dp.inference import FactorGraph, JunctionTree, TreeTooLargeError, build_engine, sample
from pgmpy_dp.inference.tables.table import Layout, Table
from pgmpy_dp.inference.trees import kernel
from pgmpy_dp.inference.trees.junction_tree import sample_counts
from pgmpy_dp.inference.trees.triangulation import (
    RULES,
    Elimination,
    best_order,
    constrained_order,
    junction_tree,
    moral_graph,
    total_cells,
)


def joint_table(tree, potentials):
    """Unnormalised log-probability of every configuration, one axis a variable."""
    names = list(tree.variables)
    cards = tree.layout.cardinalities
    joint = np.zeros([cards[name] for name in names])
    for scope, table in tree.layout.tables(potentials).items():
        axes = [names.index(name) for name in scope]
        expanded = np.transpose(table, np.argsort(axes))
        joint = joint + expanded.reshape([cards[n] if i in axes else 1 for i, n in enumerate(names)])
    return names, joint


def brute_force(tree, potentials):
    names, joint = joint_table(tree, potentials)
    top = joint.max()
    log_partition = top + math.log(np.exp(joint - top).sum())
    probability = np.exp(joint - log_partition)
    marginals = []
    for scope in tree.layout.scopes:
        axes = [names.index(name) for name in scope]
        kept = probability.sum(axis=tuple(i for i in range(len(names)) if i not in axes))
        marginals.append(np.transpose(kept, np.argsort(np.argsort(axes))))
    return log_partition, tree.layout.flatten(marginals)


@st.composite
def models(draw):
    count = draw(st.integers(1, 6))
    cards = {f"v{i}": draw(st.integers(1, 4)) for i in range(count)}
    scope = st.lists(st.sampled_from(sorted(cards)), min_size=1, max_size=min(3, count), unique=True).map(tuple)
    scopes = draw(st.lists(scope, max_size=7, unique_by=lambda s: s))
    return JunctionTree.build(cards, scopes), draw(st.integers(0, 2**32 - 1))


@settings(max_examples=150, deadline=None)
@given(models(), st.sampled_from([0.0, 1.0, 8.0, 1000.0]))
def test_calibration_equals_brute_force(model, scale):
    """Any arity, isolated variables, several components, and potentials far beyond what exp can hold."""
    tree, seed = model
    potentials = np.random.default_rng(seed).normal(size=tree.layout.size) * scale
    result = tree.calibrate(potentials)
    log_partition, marginals = brute_force(tree, potentials)
    assert result.log_partition == pytest.approx(log_partition, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(result.marginals, marginals, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(models())
def test_covariance_product_is_the_derivative_of_the_marginals(model):
    tree, seed = model
    generator = np.random.default_rng(seed)
    potentials, direction = generator.normal(size=(2, tree.layout.size))
    exact = tree.covariance_product(tree.calibrate(potentials), direction)
    step = 1e-5
    ahead, behind = (tree.calibrate(potentials + sign * step * direction).marginals for sign in (1, -1))
    np.testing.assert_allclose(exact, (ahead - behind) / (2 * step), atol=1e-8)


@settings(max_examples=60, deadline=None)
@given(models())
def test_beliefs_agree_on_separators(model):
    tree, seed = model
    result = tree.calibrate(np.random.default_rng(seed).normal(size=tree.layout.size))
    for clique in tree.cliques:
        if clique.parent is None or clique.belief is None:
            continue
        separator = tree.table(result, clique.belief)
        for table in (clique.table, tree.cliques[clique.parent].table):
            outside = tuple(i for i, number in enumerate(table.scope) if number not in clique.belief.scope)
            np.testing.assert_allclose(tree.table(result, table).sum(axis=outside), separator, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(models())
def test_running_intersection_and_cover(model):
    tree, _ = model
    cliques = [set(clique.table.scope) for clique in tree.cliques]
    for scope in tree.layout.scopes:
        assert any({tree.variables.index(name) for name in scope} <= clique for clique in cliques)
    for number in range(len(tree.variables)):
        holding = [i for i, clique in enumerate(cliques) if number in clique]
        heads = [i for i in holding if tree.cliques[i].parent not in holding]
        assert len(heads) == 1
    assert not any(a < b for a in cliques for b in cliques)


def test_zero_potentials_are_zero_probabilities():
    tree = JunctionTree.build({"a": 2, "b": 2, "c": 2}, [("a", "b"), ("b", "c")])
    forbidden = -math.inf
    result = tree.calibrate(np.array([0, forbidden, forbidden, 0, 0, 0, forbidden, 0.0]))
    np.testing.assert_allclose(result.marginals, [2 / 3, 0, 0, 1 / 3, 1 / 3, 1 / 3, 0, 1 / 3])


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_potentials_that_are_no_numbers_are_refused(bad):
    for engine in (JunctionTree.build({"a": 2}, [("a",)]), FactorGraph.build({"a": 2}, [("a",)])):
        with pytest.raises(ValueError, match="NaN or plus infinity"):
            engine.calibrate(np.array([0.0, bad]))


@pytest.mark.parametrize(
    ("cards", "scopes", "match"),
    [
        ({}, [], "at least one variable"),
        ({"a": 2, "b": 0}, [("a",)], "'b' has 0 states"),
        ({"a": -1}, [("a",)], "'a' has -1 states"),
        ({"a": 2}, [()], "is empty"),
        ({"a": 2, "b": 2}, [("a", "b", "a")], "repeats a variable"),
        ({"a": 2}, [("a", "b")], "'b', which has no cardinality"),
    ],
)
@pytest.mark.parametrize("build", [JunctionTree.build, FactorGraph.build])
def test_tables_that_cannot_be_are_refused(build, cards, scopes, match):
    with pytest.raises(ValueError, match=match):
        build(cards, scopes)


def test_potentials_that_forbid_everything_are_refused():
    tree = JunctionTree.build({"a": 2, "b": 2}, [("a",), ("a", "b")])
    with pytest.raises(ValueError, match="partition function is zero"):
        tree.calibrate(np.array([0, -math.inf, -math.inf, -math.inf, 0, 0]))


def test_marginal_of_a_covered_set():
    tree = JunctionTree.build({"a": 2, "b": 3, "c": 2}, [("a", "b"), ("b", "c")], cover=[("c", "a")])
    potentials = np.random.default_rng(5).normal(size=tree.layout.size)
    names, joint = joint_table(tree, potentials)
    probability = np.exp(joint - tree.calibrate(potentials).log_partition)
    assert names == ["a", "b", "c"]
    got = tree.marginal(tree.calibrate(potentials), ("c", "a"))
    np.testing.assert_allclose(got, probability.sum(axis=1).T)
    with pytest.raises(KeyError, match="no clique"):
        JunctionTree.build({"a": 2, "b": 2}, []).marginal(tree.calibrate(potentials), ("a", "b"))


@settings(max_examples=25, deadline=None)
@given(models())
def test_samples_agree_with_marginals(model):
    """Each cell's frequency lies within 6 standard errors; false alarms: below 1e-8 a cell."""
    tree, seed = model
    generator = np.random.default_rng(seed)
    result = tree.calibrate(generator.normal(size=tree.layout.size) * 2)
    count = 20_000
    records = sample(tree, result, count, generator)
    for scope, marginal in tree.layout.tables(result.marginals).items():
        columns = [records[:, tree.variables.index(name)] for name in scope]
        cells = np.ravel_multi_index(columns, marginal.shape)
        frequency = np.bincount(cells, minlength=marginal.size) / count
        spread = np.sqrt(np.maximum(marginal.ravel() * (1 - marginal.ravel()), 0.0) / count)
        assert (np.abs(frequency - marginal.ravel()) <= 6 * spread + 1e-3).all()


def test_sampler_never_draws_what_is_impossible():
    tree = JunctionTree.build({"a": 3, "b": 3}, [("a", "b")])
    potentials = np.where(np.eye(3), 0.0, -math.inf).ravel()
    records = sample(tree, tree.calibrate(potentials), 5000, np.random.default_rng(1))
    assert (records[:, 0] == records[:, 1]).all()
    assert set(records[:, 0]) == {0, 1, 2}


@pytest.mark.parametrize("rule", RULES)
def test_elimination_of_a_cycle_adds_the_fewest_edges(rule):
    steps = Elimination.of(moral_graph(6, [(i, (i + 1) % 6) for i in range(6)]), [2] * 6, rule).steps()
    assert max(len(clique) for _, clique in steps) == 3
    assert sorted(node for node, _ in steps) == list(range(6))


def eliminated_one_by_one(graph, cards, rule, factors, nodes):
    """What the kernel does, with everything counted anew at each step."""
    around = {node: set(np.flatnonzero(row)) for node, row in enumerate(graph)}
    left, steps = set(nodes), []

    def cost(node):
        missing = [cards[a] * cards[b] for a, b in itertools.combinations(around[node], 2) if b not in around[a]]
        cells = cards[node] * math.prod(cards[other] for other in around[node])
        first, second = [(len(missing), cells), (sum(missing), cells), (cells, len(missing))][rule]
        return (first, second, node) if factors is None else ((first + 0.5) * factors[node], second, node)

    while left:
        node = min(left, key=cost)
        left.discard(node)
        steps.append((node, frozenset({node, *around[node]})))
        for other in around[node]:
            around[other] |= around[node]
            around[other] -= {node, other}
        around[node] = set()
    return steps, around


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 12), st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_elimination_is_that_of_a_plain_program(count, seed, changed, some):
    """Its numbers are kept up to date; the cells counted are those of the cliques that no other holds."""
    generator = np.random.default_rng(seed)
    scopes = [generator.choice(count, min(3, count), replace=False).tolist() for _ in range(generator.integers(count))]
    cards, rule = generator.integers(1, 6, size=count).tolist(), RULES[seed % 3]
    factors = np.exp(generator.normal(size=count)).tolist() if changed else None
    nodes = np.flatnonzero(generator.random(count) < 0.5) if some else np.arange(count)
    graph, chosen = moral_graph(count, scopes), np.isin(np.arange(count), nodes)
    expected, left = eliminated_one_by_one(graph, cards, rule, factors, nodes.tolist())
    found = Elimination.of(graph, cards, rule, factors or (), chosen)
    steps = found.steps()
    assert steps == expected
    assert {node: set(np.flatnonzero(row)) for node, row in enumerate(graph)} == left
    if not some:
        cliques = [clique for _, clique in steps]
        maximal = [clique for clique in cliques if not any(clique < other for other in cliques)]
        assert found.cells == total_cells(maximal, cards)


def test_some_nodes_are_eliminated_before_the_others():
    graph = moral_graph(6, [(i, (i + 1) % 6) for i in range(6)])
    steps = constrained_order(graph, [2, 9, 2, 9, 2, 9], [1, 3, 5])
    assert {node for node, _ in steps[:3]} == {1, 3, 5}
    assert {node for node, _ in steps[3:]} == {0, 2, 4}
    assert graph.sum() == 12  # left as it was


def test_search_for_an_order_gains_and_repeats():
    """A network, chosen among random ones, of which the greedy orders make tables twice as large as the search does."""
    generator = np.random.default_rng(1)
    scopes = [generator.choice(30, size=3, replace=False).tolist() for _ in range(24)]
    cards = generator.integers(2, 20, size=30).tolist()
    graph = moral_graph(30, scopes)
    greedy = [Elimination.of(graph.copy(), cards, rule).cells for rule in RULES]
    found = best_order(graph, cards)
    cliques = [clique for _, clique in found]
    maximal = [clique for clique in cliques if not any(clique < other for other in cliques)]
    assert total_cells(maximal, cards) < 0.6 * min(greedy)
    assert found == best_order(graph, cards)


def test_triangulation_weighs_states():
    """A four-cycle has two diagonals; the one between small variables is the cheaper."""
    tree = junction_tree([10, 2, 10, 2], [(0, 1), (1, 2), (2, 3), (3, 0)])
    assert sorted(sorted(clique) for clique in tree) == [[0, 1, 3], [1, 2, 3]]


def test_too_large_a_tree_goes_to_loopy_with_a_warning():
    """A 20 x 20 grid of 10-state variables has a treewidth of 20."""
    cards = {(i, j): 10 for i in range(20) for j in range(20)}
    edges = [((i, j), (i + 1, j)) for i in range(19) for j in range(20)]
    edges += [((i, j), (i, j + 1)) for i in range(20) for j in range(19)]
    with pytest.warns(UserWarning, match="loopy belief propagation"):
        engine = build_engine(cards, edges)
    assert isinstance(engine, FactorGraph)
    with pytest.raises(TreeTooLargeError, match="table cells"):
        build_engine(cards, edges, "junction_tree")
    with pytest.raises(ValueError, match="'exact'"):
        build_engine({"a": 2}, [("a",)], "exact")


@pytest.mark.parametrize("copies", [1, 4, 8, 12])
@pytest.mark.parametrize("drop", [100.0, 250.0])
def test_underflow_that_later_evidence_reverses(copies, drop):
    """A state lost at one end of a chain (exp(-750) is zero) wins when each of many later factors favours it.

    No single message is small: linear arithmetic that looks at messages one by one is silently wrong here.
    """
    names = [f"v{i}" for i in range(copies + 1)]
    links = list(itertools.pairwise(names))
    tree = JunctionTree.build(dict.fromkeys(names, 2), [*links, *((name,) for name in names)])
    stay = np.where(np.eye(2), 0.0, -2000.0)
    potentials = tree.layout.flatten(
        [*([stay] * len(links)), np.array([0.0, -750.0]), *([np.array([-drop, 0.0])] * copies)]
    )
    result = tree.calibrate(potentials)
    odds = copies * drop - 750.0
    expected = 1 / (1 + math.exp(-odds)) if odds > -700 else 0.0
    assert tree.layout.tables(result.marginals)[("v0",)][1] == pytest.approx(expected, abs=1e-12)
    assert result.log_partition == pytest.approx(np.logaddexp(-copies * drop, -750.0))


def test_structural_zeros_do_not_force_the_slow_path():
    """Deterministic tables are common; zeros in them are not underflow."""
    names = [f"v{i}" for i in range(300)]
    scopes = list(itertools.pairwise(names))
    tree = JunctionTree.build(dict.fromkeys(names, 2), scopes)
    table = np.log(np.array([[0.7, 0.3], [1e-5, 1.0]]))
    table[1, 0] = -math.inf
    potentials = tree.layout.flatten([table] * len(scopes))
    buffer = np.empty(tree.buffer_size)
    _, lost = kernel.exponentiate(potentials, tree.layout.offsets, buffer)
    assert not lost
    log_partition, lost = kernel.calibrate(tree.program, tree.maps, buffer, lost)
    assert math.isfinite(log_partition)
    assert not lost


def test_threads_heed_the_usual_variable(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert cores() == 1
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert cores() >= 1


def test_many_children_of_one_variable():
    """A naive Bayes model of 1000 features, whose hub's product of messages does not underflow."""
    names = [f"v{i}" for i in range(1000)]
    tree = JunctionTree.build(dict.fromkeys(names, 2), [(name, "v0") for name in names[1:]])
    potentials = np.random.default_rng(0).normal(size=tree.layout.size)
    buffer = np.empty(tree.buffer_size)
    tables = np.exp(potentials.reshape(-1, 2, 2)).sum(axis=1)
    expected = np.logaddexp.reduce(np.log(tables).sum(axis=0))
    assert tree.calibrate(potentials).log_partition == pytest.approx(expected)
    zeros = np.zeros(tree.layout.size)
    _, lost = kernel.exponentiate(zeros, tree.layout.offsets, buffer)
    log_partition, _ = kernel.calibrate(tree.program, tree.maps, buffer, lost)
    assert log_partition == pytest.approx(1000 * math.log(2))


def test_places_of_scopes_in_any_order_are_those_of_their_tables():
    layout = Layout.of({"a": 2, "b": 3, "c": 2}, [("a", "b"), ("b",), ("c", "a")])
    vector = np.arange(layout.size)
    tables = layout.tables(vector)
    for scopes in ([("c", "a"), ("a", "b")], [("b",)], list(reversed(layout.scopes)), list(layout.scopes)):
        own = np.concatenate([tables[scope].ravel() for scope in scopes])
        np.testing.assert_array_equal(vector[layout.places(scopes)], own)


CARDS = {"a": 2, "b": 3, "c": 2, "d": 2}


def test_drawn_tables_agree_and_are_multinomial():
    """Pearson's statistic of a table of cells is about chi-squared; the test fails by chance once in a million."""
    generator = np.random.default_rng(0)
    tree = JunctionTree.build(CARDS, [("a", "b"), ("b", "c"), ("d",)])
    calibration = tree.calibrate(generator.normal(size=tree.layout.size))
    count, draws = 5000, 2000
    drawn = sample_counts(tree, calibration, count, draws, generator)
    tables = [Table((-1, *clique.table.scope), table) for clique, table in zip(tree.cliques, drawn, strict=True)]
    for clique, table in zip(tree.cliques, tables, strict=True):
        assert (table.values.reshape(draws, -1).sum(axis=1) == count).all()
        expected = count * tree.table(calibration, clique.table)
        pearson = ((table.values - expected) ** 2 / expected).reshape(draws, -1).sum(axis=1)
        assert kstest(pearson, chi2(expected.size - 1).cdf).pvalue > 1e-6
    shared = tree.variables.index("b")
    margins = [table.margin((-1, shared)).values for table in tables if shared in table.variables]
    assert len(margins) == 2
    np.testing.assert_array_equal(*margins)
