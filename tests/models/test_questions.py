"""Predictions of every model are exact, and have pgmpy's manners on all of them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pgmpy.factors.discrete import DiscreteFactor, TabularCPD
from pgmpy.models import DiscreteBayesianNetwork

import pgmpy_dp as dp
from pgmpy_dp.inference.mixtures.mixture import Mixture
from pgmpy_dp.models.questions import checked_evidence, checked_records
from pgmpy_dp.release import Guarantee

STATES = {"a": ["x", "y"], "b": [0, 1, 2], "c": ["u", "v"], "d": ["lo", "mid", "hi"]}
NAMES, SHAPE = list(STATES), [len(states) for states in STATES.values()]
GUARANTEE = Guarantee.of(1.0, 0.0, None, "add_remove", "laplace", True)
KINDS = ["bayesian", "markov", "mixture", "latent"]


def made(kind, seed):
    draw = np.random.default_rng(seed)
    if kind == "markov":
        edges = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
        network = dp.PrivateMarkovNetwork()
        network.add_nodes_from(NAMES)
        network.add_edges_from(edges)
        factors = []
        for edge in edges:
            cards = [len(STATES[v]) for v in edge]
            factors.append(DiscreteFactor(edge, cards, draw.random(np.prod(cards)), {v: STATES[v] for v in edge}))
        network.set_factors(factors)
        return network
    if kind == "bayesian":
        network = dp.PrivateBayesianNetwork()
        network.add_nodes_from(NAMES)
        network.add_edges_from([("a", "b"), ("b", "d"), ("a", "c"), ("c", "d")])
        for node in NAMES:
            clique = [node, *network.get_parents(node)]
            cards = [len(STATES[v]) for v in clique]
            table = draw.dirichlet(np.ones(cards[0]), int(np.prod(cards[1:]))).T
            network.add_cpds(TabularCPD(node, cards[0], table, clique[1:], cards[1:], {v: STATES[v] for v in clique}))
        return network
    tables = [draw.dirichlet(np.full(size, 0.5), 4) for size in SHAPE]
    schema, blocks = dp.Schema(STATES), [(v,) for v in NAMES]
    mixture = Mixture.of(schema.cardinalities(), blocks, draw.dirichlet(np.ones(4)), tables)
    network = dp.PrivateMixtureNetwork(schema, mixture, 100, GUARANTEE)
    return network.to_bayesian_network() if kind == "latent" else network


def joint(network):
    return np.asarray(network.query(NAMES).values).reshape(SHAPE)


def records(seed, size=12):
    """Rows of the variables but `d`, in another order, some cells of which are missing."""
    draw = np.random.default_rng(seed)
    frame = pd.DataFrame({v: draw.choice(np.array(STATES[v], dtype=object), size) for v in "cab"})
    return frame.mask(draw.random(frame.shape) < 0.3)


def given_row(table, row):
    """Joint table of all variables given what a row has."""
    index = [STATES[v].index(row[v]) if pd.notna(row.get(v, np.nan)) else slice(None) for v in NAMES]
    left = np.zeros(SHAPE)
    left[tuple(index)] = table[tuple(index)]
    return left / left.sum()


@settings(max_examples=12, deadline=None)
@given(st.sampled_from(KINDS), st.integers(0, 2**32))
def test_predictions_are_exact(kind, seed):
    network, rows = made(kind, seed), records(seed)
    table, found, shares = joint(network), network.predict(rows), network.predict_probability(rows)
    assert list(found) == ["c", "a", "b", "d"]
    wanted = {v for v in NAMES if v == "d" or rows[v].isna().any()}
    assert list(shares) == [f"{v}_{state}" for v in found if v in wanted for state in STATES[v]]
    for place, row in enumerate(rows.to_dict("records")):
        exact = given_row(table, row)
        best = np.unravel_index(exact.argmax(), SHAPE)
        assert [found.iloc[place][v] for v in NAMES] == [STATES[v][i] for v, i in zip(NAMES, best, strict=True)]
        for axis, variable in enumerate(NAMES):
            if variable in wanted:
                own = exact.sum(axis=tuple(i for i in range(4) if i != axis))
                assert shares.iloc[place][[f"{variable}_{s}" for s in STATES[variable]]].tolist() == pytest.approx(own)


@pytest.mark.parametrize("kind", KINDS)
def test_stochastic_predictions_have_the_joint_distribution_of_each_row(kind):
    network = made(kind, 3)
    rows = pd.DataFrame({"a": ["x"] * 6000 + [None] * 6000, "b": [1] * 12000})
    found = network.predict(rows, stochastic=True, seed=0)
    pd.testing.assert_frame_equal(found, network.predict(rows, stochastic=True, seed=0))
    for part, row in ((found[:6000], {"a": "x", "b": 1}), (found[6000:], {"b": 1})):
        exact, counts = given_row(joint(network), row), np.zeros(SHAPE)
        codes = tuple(part[v].map(STATES[v].index) for v in NAMES)
        np.add.at(counts, codes, 1)
        assert np.abs(counts / 6000 - exact).max() < 0.035  # five standard errors of the largest cell


def test_answers_are_those_of_pgmpy():
    network, rows = made("bayesian", 1), records(1).dropna().reset_index(drop=True)
    theirs = DiscreteBayesianNetwork.predict(network, rows, n_jobs=1)
    pd.testing.assert_frame_equal(network.predict(rows), theirs, check_dtype=False)
    theirs = DiscreteBayesianNetwork.predict_probability(network, rows)
    pd.testing.assert_frame_equal(network.predict_probability(rows), theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_given_comes_back_as_it_was_and_rows_by_their_index(kind):
    network = made(kind, 0)
    rows = pd.DataFrame({"b": ["1", 2, None], "c": pd.Categorical(["u", "v", "u"])}, index=[9, 2, 5])
    found = network.predict(rows)
    assert found.index.tolist() == [2, 5, 9]
    assert found["b"].tolist() == [2, network.map_query(["b", "a", "d"], {"c": "u"})["b"], "1"]
    assert found["c"].dtype == rows["c"].dtype
    assert network.predict_probability(rows).index.tolist() == [9, 2, 5]
    assert network.predict(rows[:0]).columns.tolist() == ["b", "c", "a", "d"]
    assert network.predict(rows[[]])["a"].nunique() == 1


CELLS = ["18_to_65", "x", "?", "unknown", "40", "", 0, 1, 18, 65, 70, 1.5, 3.0, True, False]


@pytest.mark.parametrize("kind", [object, "category"])
@pytest.mark.parametrize("states", [dp.Bins([0, 18, 65]), ["x", "y"], [1, 0, 3], [False, True], ["40", 18]])
def test_cells_of_a_column_are_read_as_evidence(states, kind):
    schema = dp.Schema({"v": states}, missing={"v": "unknown"}, missing_values=["?"])
    sound = []
    for cell in CELLS:
        column = pd.DataFrame({"v": pd.Series([None, cell], dtype=object).astype(kind)})
        try:
            state = checked_evidence(schema, {"v": cell})["v"]
        except dp.SchemaError:
            with pytest.raises(dp.SchemaError, match=rf"'v' has no state {cell!r}; it has"):
                checked_records(schema, column)
            continue
        assert checked_records(schema, column)["v"].tolist() == [-1, schema.states["v"].index(state)]
        sound.append((cell, schema.states["v"].index(state)))
    column = pd.DataFrame({"v": pd.Series([cell for cell, _ in sound], dtype=object)})
    assert checked_records(schema, column)["v"].tolist() == [place for _, place in sound]


@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_predicted_is_refused(kind):
    network = made(kind, 0)
    whole = pd.DataFrame({v: states[:2] for v, states in STATES.items()})
    for ask in (network.predict, network.predict_probability):
        with pytest.raises(ValueError, match="nothing to predict"):
            ask(whole)
        with pytest.raises(dp.SchemaError, match="'a' has no state 'z'"):
            ask(pd.DataFrame({"a": ["z"]}))
        with pytest.raises(dp.SchemaError, match="nobody"):
            ask(pd.DataFrame({"nobody": ["z"]}))
        with pytest.raises(dp.SchemaError, match="'a' occurs twice"):
            ask(whole[["a", "a"]])
        with pytest.raises(TypeError, match="DataFrame"):
            ask({"a": ["x"]})
    with pytest.raises(TypeError, match="n_sample"):
        network.predict(whole[["a"]], n_sample=3)


def test_rows_of_probability_zero_are_named():
    network = dp.PrivateBayesianNetwork([("a", "b"), ("c", "d")])
    pair = ["yes", "no"]
    for child, parent in (("b", "a"), ("d", "c")):
        network.add_cpds(TabularCPD(parent, 2, [[0.5], [0.5]], state_names={parent: pair}))
        network.add_cpds(TabularCPD(child, 2, np.eye(2), [parent], [2], {child: pair, parent: pair}))
    rows = pd.DataFrame({"a": ["yes", "yes"], "b": ["yes", "no"], "c": ["no", "no"]})
    for model in (network, dp.PrivateMarkovNetwork.of(network.to_markov_model())):
        assert model.predict(rows[:1])["d"].tolist() == ["no"]
        for ask in (model.predict, model.predict_probability):
            with pytest.raises(ValueError, match=r"\{'a': 'yes', 'b': 'no', 'c': 'no'\} has probability zero"):
                ask(rows)


def test_levels_of_households_predict():
    homes = pd.DataFrame({"id": range(200), "tenure": ["owned", "rented"] * 100})
    people = pd.DataFrame({"id": [*range(200), *range(0, 200, 2)], "age": ["adult"] * 200 + ["child"] * 100})
    tenure, age = dp.Schema({"tenure": ["owned", "rented"]}), dp.Schema({"age": ["child", "adult"]})
    schema = dp.HouseholdSchema(tenure, age, key="id", max_persons=2)
    data = dp.PrivateHouseholds(homes, people, schema, dp.PrivacyBudget(9.0, 0.1), noise=dp.SimulatedNoise(0))
    network = dp.HouseholdMixture(9.0, 0.1, components=2, members=1).fit(data).network_
    assert network.households.predict(pd.DataFrame({"tenure": ["owned", "rented"]}))["size"].tolist() == [2, 1]
    for level in (network, network.persons):
        found = level.predict(pd.DataFrame({"age": ["child"]}))
        assert found["size"].tolist() == [level.map_query(["tenure", "size"], {"age": "child"})["size"]]
    shares = network.persons.predict_probability(pd.DataFrame({"age": ["child"]}))
    assert shares["tenure_owned"][0] == pytest.approx(
        network.persons.query(["tenure"], {"age": "child"}).get_value(tenure="owned")
    )
