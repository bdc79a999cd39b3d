"""Wide networks are tested and drawn in parts, and refused by the size of their tables before they are multiplied."""

import itertools

import numpy as np
import pandas as pd
import pytest
from pgmpy.factors.discrete import DiscreteFactor, TabularCPD

import pgmpy_dp as dp
from pgmpy_dp.inference import TreeTooLargeError
from pgmpy_dp.networks import fitted_network

EDGES = [("a", "b"), ("b", "c"), ("b", "d"), ("d", "e"), ("f", "g")]
SCHEMA = dp.Schema({variable: ["no", "yes"] for variable in "abcdefg"})
QUESTIONS = [(["b"], {"a": "yes"}), (["d"], {"c": "no"}), (["g"], {}), (["a", "b"], {})]


@pytest.fixture(scope="module")
def release():
    generator = np.random.default_rng(0)
    bits = {"a": generator.random(3000) < 0.4, "f": generator.random(3000) < 0.3}
    for parent, child in EDGES:
        bits[child] = np.where(generator.random(3000) < 0.7, bits[parent], generator.random(3000) < 0.5)
    frame = pd.DataFrame({v: np.where(bits[v], "yes", "no") for v in "abcdefg"})
    data = dp.PrivateDataset(frame, SCHEMA, dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(0))
    return data.measure(*dp.plan_measurements(dp.PrivateBayesianNetwork(EDGES), SCHEMA)[:1], epsilon=1.0)


@pytest.fixture
def wide(release, monkeypatch):
    """A network of 24 cells, where 8 are many, and what is drawn and tested of it."""
    done = {"draw_networks": [], "check_network": []}

    def counted(own, calls):
        def call(network, *arguments, **options):
            calls.append("".join(sorted(network.nodes())))
            return own(network, *arguments, **options)

        return call

    for name, calls in done.items():
        monkeypatch.setattr(fitted_network, name, counted(getattr(fitted_network, name), calls))
    monkeypatch.setattr(fitted_network, "WIDE", 8)
    return dp.PrivateBayesianNetwork(EDGES).fit(release), done


def test_a_question_draws_and_tests_the_families_that_it_needs_once(wide):
    network, done = wide
    for _ in range(2):
        network.query(["b"], {"a": "yes"}, interval=0.9)
        network.expectation({"b": {"no": 0.0, "yes": 1.0}}, {"a": "no"}, interval=0.5)
        network.query(["b"])
        network.cpd_interval("b")
    assert done == {"draw_networks": ["ab"], "check_network": ["ab"]}
    network.map_probability(["g"])
    assert done["draw_networks"] == ["ab", "fg"]
    assert network.fit_checked_


def test_answers_do_not_depend_on_what_was_asked_before(wide, release):
    network, _ = wide
    again = dp.PrivateBayesianNetwork(EDGES).fit(release)
    found = {str(question): network.query(*question, interval=0.9) for question in QUESTIONS}
    for question in reversed(QUESTIONS):
        plain = again.query(*question)
        bounded = again.query(*question, interval=0.9)
        pd.testing.assert_frame_equal(bounded, found[str(question)])
        np.testing.assert_allclose(plain.values.ravel(), bounded["value"])


def test_bounds_are_about_those_of_the_whole(wide, release, monkeypatch):
    """Children tell of their parents' shares, so that the part's bounds may be wider, hardly narrower."""
    network, done = wide
    parts = [network.query(*question, interval=0.9) for question in QUESTIONS]
    monkeypatch.setattr(fitted_network, "WIDE", 100)
    whole = dp.PrivateBayesianNetwork(EDGES).fit(release)
    for question, part in zip(QUESTIONS, parts, strict=True):
        full = whole.query(*question, interval=0.9)
        np.testing.assert_allclose(part["value"], full["value"])
        ratio = (part["upper"] - part["lower"]).sum() / (full["upper"] - full["lower"]).sum()
        assert 0.8 < ratio < 1.4
    assert done["draw_networks"][-1] == "abcdefg"


def test_parts_of_an_estimators_own_draws(wide, release):
    network, done = wide
    network.fit(release, estimator=dp.PosteriorMean(draws=50))
    bounded = network.query(["d"], {"c": "no"}, interval=0.9)
    assert not done["draw_networks"]
    part = network._fitted.part(["d", "c"]).posterior
    assert part.schema.variables == ("a", "b", "c", "d")
    own = network.draws_.layout.tables(network.draws_.population[7])
    for scope, table in part.layout.tables(part.population[7]).items():
        np.testing.assert_array_equal(table, own[scope])
    assert (bounded["lower"] < bounded["upper"]).all()


def test_a_page_without_bounds_draws_no_networks(wide, tmp_path):
    network, done = wide
    before = {name: len(each) for name, each in done.items()}
    with pytest.warns(UserWarning, match="question by question"):
        network.explore(tmp_path / "page.html")
    assert {name: len(each) for name, each in done.items()} == before
    assert "This page has no bounds." in (tmp_path / "page.html").read_text()


TOO_LARGE = r"the junction tree has [\d,]+ table cells, more than 67,108,864"


STATES = 24  # of each variable: 24**6 cells are too many


def pairwise(edges):
    draw = np.random.default_rng(0)
    network = dp.PrivateMarkovNetwork(edges)
    network.set_factors([DiscreteFactor(edge, [STATES] * 2, draw.uniform(0.1, 0.3, STATES**2)) for edge in edges])
    return network


def grid(size):
    for row, column in itertools.product(range(size), range(size)):
        for after in ((row + 1, column), (row, column + 1)):
            if max(after) < size:
                yield f"{row},{column}", f"{after[0]},{after[1]}"


def test_a_markov_network_refuses_to_answer_as_it_refuses_to_draw():
    """Such a network fits in a small file, and pgmpy's elimination takes minutes and gigabytes."""
    network = pairwise(list(grid(6)))
    for ask in (lambda: network.query(["0,0"]), lambda: network.simulate(1)):
        with pytest.raises(TreeTooLargeError, match=TOO_LARGE):
            ask()


def test_evidence_takes_its_variables_out_of_the_tables():
    network = pairwise(list(itertools.combinations("abcdef", 2)))  # all joined: a table of 24**6 cells
    with pytest.raises(TreeTooLargeError, match=TOO_LARGE):
        network.query(["a"])
    given = {"d": 3, "e": 5, "f": 0}
    answer = network.query(["c", "a"], given)
    factors = {tuple(f.variables): f.values for f in network.get_factors()}
    own = {v: np.prod([factors[v, other][:, state] for other, state in given.items()], axis=0) for v in "abc"}
    three = np.einsum(
        "ab,ac,bc,a,b,c->ca", *(factors[pair] for pair in itertools.combinations("abc", 2)), *own.values()
    )
    assert answer.variables == ["c", "a"]
    assert answer.values == pytest.approx(three / three.sum())


def test_factors_of_any_scale_have_an_answer():
    """The product of a thousand factors is below the least float; the answer is the same without that scale."""
    edges = [(f"s{step}", f"s{step + 1}") for step in range(1000)]
    network, other = dp.PrivateMarkovNetwork(edges), dp.PrivateMarkovNetwork(edges[-2:])
    for one in (network, other):
        one.set_factors([DiscreteFactor(edge, [2, 2], [0.1, 0.2, 0.2, 0.1]) for edge in one.edges()])
    assert network.query(["s1000"], {"s998": 0}).values == pytest.approx(other.query(["s1000"], {"s998": 0}).values)


def test_evidence_of_probability_zero_is_refused_in_each_table():
    edges = [("a", "b"), ("c", "d")]
    network = dp.PrivateMarkovNetwork(edges)
    network.set_factors([DiscreteFactor(edge, [2, 2], [0.5, 0.0, 0.2, 0.3]) for edge in edges])
    assert network.query(["d"], {"a": 0, "b": 0}).values == pytest.approx([0.7, 0.3])
    for given in ({"a": 0, "b": 1}, {"c": 0, "b": 1, "a": 0}):
        with pytest.raises(ValueError, match="has probability zero"):
            network.query(["d"], given)
    with pytest.raises(ValueError, match="has probability zero"):
        dp.PrivateMarkovNetwork.of(network).query(["a"], {"c": 0, "d": 1})


def test_a_bayesian_network_answers_what_needs_few_of_its_variables():
    draw = np.random.default_rng(0)
    network = dp.PrivateBayesianNetwork(list(grid(6)))
    for node in network.nodes():
        parents = network.get_parents(node)
        table = draw.dirichlet(np.ones(STATES), STATES ** len(parents)).T
        network.add_cpds(TabularCPD(node, STATES, table, parents, [STATES] * len(parents)))
    with pytest.raises(TreeTooLargeError, match=TOO_LARGE):
        network.query(["5,5"])
    assert network.query(["0,0"]).values == pytest.approx(network.get_cpds("0,0").values.ravel())
    given = {"4,5": 1, "5,4": 2}  # the parents: nothing else matters
    expected = network.get_cpds("5,5").to_factor().reduce(list(given.items()), inplace=False)
    assert network.query(["5,5"], given).values == pytest.approx(expected.values)
