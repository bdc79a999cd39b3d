"""Synthetic records have the network's distribution, pgmpy's conventions, and columns of one type each."""

import numpy as np
import pandas as pd
import pytest
from pgmpy.causal_discovery import HillClimbSearch
from pgmpy.factors.discrete import TabularCPD
from pgmpy.inference import VariableElimination
from pgmpy.models import DiscreteBayesianNetwork

import pgmpy_dp as dp
from experiments.peer_comparisons import example_network
from pgmpy_dp.cli.shared.written import to_csv
from pgmpy_dp.inference import JunctionTree
from pgmpy_dp.inference.trees import conditioning
from pgmpy_dp.models.numbers import shape_of
from pgmpy_dp.models.simulated import WithinBins, converted
from pgmpy_dp.networks.network import simulate
from pgmpy_dp.observed.factors import log_linear


def test_families_of_alarm_have_their_exact_frequencies():
    """752 cells, each within six standard deviations (and ten records, where few are expected): errs once in 1e5."""
    network, count = example_network("alarm"), 100_000
    records = simulate(network, count, seed=1)
    layout, potentials, states = log_linear(network)
    marginals = JunctionTree.build(layout.cardinalities, layout.scopes).calibrate(potentials).marginals
    codes = {v: records[v].map({state: number for number, state in enumerate(states[v])}).to_numpy() for v in records}
    for scope, shape, expected in zip(layout.scopes, layout.shapes, layout.split(marginals), strict=True):
        cells = np.ravel_multi_index([codes[v] for v in scope], shape)
        found = np.bincount(cells, minlength=expected.size) / count
        spread = 6 * np.sqrt(expected.ravel() * (1 - expected.ravel()) / count) + 10 / count
        assert (np.abs(found - expected.ravel()) < spread).all()
        assert not found[expected.ravel() == 0].any()


@pytest.fixture(scope="module")
def network():
    """A chain whose nodes stand in another order, with states of three types, one of them impossible."""
    states = {"c": [0, 1, 2], "b": ["x", "y"], "a": [True, False]}
    made = dp.PrivateBayesianNetwork()
    made.add_nodes_from(states)
    made.add_edges_from([("a", "b"), ("b", "c")])
    made.add_cpds(
        TabularCPD("a", 2, [[0.3], [0.7]], state_names=states),
        TabularCPD("b", 2, [[0.6, 0.2], [0.4, 0.8]], ["a"], [2], state_names=states),
        TabularCPD("c", 3, [[0.5, 0.1], [0.5, 0.9], [0, 0]], ["b"], [2], state_names=states),
    )
    return made


def markov_of(network):
    return dp.PrivateMarkovNetwork.of(network.to_markov_model())


def close_to_exact(records, network, given=None):
    """Every state's frequency is within 6 standard deviations of its exact probability: errs once in 5e8 a state."""
    infer = VariableElimination(network)
    for variable in set(records) - set(given or {}):
        answer = infer.query([variable], evidence=given, show_progress=False)
        for state in answer.state_names[variable]:
            exact = answer.get_value(**{variable: state})
            assert abs((records[variable] == state).mean() - exact) <= 6 * np.sqrt(exact * (1 - exact) / len(records))


@pytest.mark.parametrize("given", [{}, {"c": 1}, {"a": False, "c": 0}])
@pytest.mark.parametrize("kind", [dp.PrivateBayesianNetwork.copy, markov_of])
def test_records_given_evidence_have_the_conditional_distribution(network, kind, given):
    records = kind(network).simulate(20_000, evidence=given, seed=3)
    close_to_exact(records, network, given)
    assert all((records[variable] == state).all() for variable, state in given.items())
    assert records.equals(simulate(kind(network), 20_000, 3, given)[records.columns])


def test_evidence_that_cannot_be_is_refused(network):
    for one in (network, markov_of(network)):
        with pytest.raises(ValueError, match=r"evidence \{'c': 2\} has probability zero"):
            one.simulate(5, evidence={"c": 2})
        with pytest.raises(dp.SchemaError, match="'c' has no state 3; it has 0, 1, 2"):
            one.simulate(5, evidence={"c": 3})
        with pytest.raises(dp.SchemaError, match="'d'"):
            one.simulate(5, evidence={"d": 3})
    for unfitted in (dp.PrivateBayesianNetwork([("a", "b")]), dp.PrivateMarkovNetwork([("a", "b")])):
        with pytest.raises(ValueError, match="not fitted"):
            unfitted.simulate(5)


def test_the_frame_is_as_pgmpys_with_columns_in_node_order(network):
    ours, theirs = network.simulate(10, seed=1), DiscreteBayesianNetwork.simulate(network, seed=1, show_progress=False)
    assert list(ours.columns) == ["c", "b", "a"] == list(markov_of(network).simulate(3, show_progress=False).columns)
    assert ours.shape == theirs.shape
    assert (ours.dtypes == "category").all()
    assert (theirs.dtypes == "category").all()
    assert [ours[v].cat.categories.tolist() for v in ours] == [[0, 1, 2], ["x", "y"], [True, False]]
    assert network.simulate(0).empty
    dp.PrivateDataset(ours, dp.Schema.from_model(network), dp.PrivacyBudget(1.0))


def test_latent_variables_are_shown_on_request(network):
    hidden = network.copy()
    hidden.latents = {"b"}
    assert list(hidden.simulate(5).columns) == ["c", "a"]
    assert list(hidden.copy().simulate(5, include_latents=True).columns) == ["c", "b", "a"]


OPTIONS = {
    "plain": {},
    "evidence": {"evidence": {"b": "x"}},
    "intervention": {"do": {"b": "x"}},
    "no intervention": {"do": None, "missing_prob": None},
    "missing": {"missing_prob": TabularCPD("b*", 2, [[0.5], [0.5]])},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_numpys_global_generator_is_left_alone(network, name):
    np.random.seed(5)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    options = {"show_progress": False, **OPTIONS[name]}
    first, second, other = (network.simulate(200, seed=seed, **options) for seed in (1, 1, 2))
    fresh = [network.simulate(200, **options) for _ in range(2)]
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert first.equals(second)
    assert not first.equals(other)
    assert not fresh[0].equals(fresh[1])
    assert list(first.columns) == ["c", "b", "a"]


def test_pgmpys_own_method_draws_what_is_its_own(network, monkeypatch):
    records = network.simulate(5000, do={"b": "x"}, seed=1, show_progress=False)
    close_to_exact(records[["c"]], network, {"b": "x"})
    close_to_exact(records[["a"]], network)
    with pytest.raises(TypeError, match="evidnce"):
        network.simulate(5, evidnce={"b": "x"})
    monkeypatch.setattr(conditioning, "MAX_TABLE_CELLS", 1)
    close_to_exact(network.simulate(5000, seed=1, show_progress=False), network)
    with pytest.raises(ValueError, match="junction tree"):
        markov_of(network).simulate(5)


@pytest.mark.parametrize("kind", [dp.PrivateBayesianNetwork, dp.PrivateMarkovNetwork])
def test_bins_become_numbers_on_request(kind):
    schema = dp.Schema({"age": dp.Bins([0, 18, 19, 65]), "smoke": ["yes", "no"]}, missing={"age": "unknown"})
    records = pd.DataFrame({"age": [7.0, 18, 40, np.nan] * 250, "smoke": ["no", "no", "yes", "no"] * 250})
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(100.0), noise=dp.SimulatedNoise(0))
    network = kind([("age", "smoke")]).fit(data.measure([("age", "smoke")], 100.0))
    labels = network.simulate(500, seed=1)
    assert set(labels["age"]) == set(schema.states["age"])  # pgmpy's manners
    drawn = network.simulate(500, seed=1, numbers="drawn")
    assert drawn["smoke"].equals(labels["smoke"])
    assert drawn["age"].dtype == "Int64"
    assert (drawn["age"].isna() == (labels["age"] == "unknown")).all()
    again = dp.exact_marginals(drawn.astype({"smoke": str}), schema, [("age", "smoke")])
    wanted = dp.exact_marginals(labels.astype(str), dp.Schema(schema.state_names), [("age", "smoke")])
    assert (again.tables["age", "smoke"] == wanted.tables["age", "smoke"]).all()
    assert len(set(drawn["age"].dropna())) > 30
    assert set(network.simulate(500, seed=1, numbers="midpoint")["age"].dropna()) == {8, 18, 41}
    first, second = network.simulate(500, seed=1, numbers="drawn", data_sets=2)
    assert {str(frame["age"].dtype) for frame in (first, second)} == {"Int64"}
    if kind is dp.PrivateBayesianNetwork:  # pgmpy's own method draws
        done = network.simulate(300, seed=1, numbers="midpoint", do={"smoke": "no"}, show_progress=False)
        assert set(done["age"].dropna()) == {8, 18, 41}


def within_bins(bins):
    """Draws numbers of one variable whose bins are equally probable."""
    chances = (1 / len(bins.labels),) * len(bins.labels)
    return WithinBins({"x": shape_of(bins, chances, 1.0, 1000.0)}, np.random.default_rng(0), {"x": bins.labels})


def test_numbers_have_the_decimals_that_bins_say():
    cuts, places = [0, 0.25, 0.3, 12], np.repeat([0, 1, 2], 2000)
    for decimals, bins in ((1, dp.Bins([0, 0.25, 12], decimals=1)), (2, dp.Bins(cuts, decimals=2))):
        schema = dp.Schema.from_dict(dp.Schema({"x": bins}).to_dict())
        codes = np.minimum(places, len(bins.labels) - 1)
        drawn = converted({"x": (schema, codes)}, "drawn", within_bins(bins))["x"]
        assert (drawn == drawn.round(decimals)).all()
        assert (np.searchsorted(bins.edges, drawn, side="right") - 1 == codes).all()
        possible = {k / 10**decimals for k in range(12 * 10**decimals)}
        assert set(drawn[drawn < 0.3]) == {x for x in possible if x < 0.3}  # one is missing once in e^400 runs
    middle = converted({"x": (schema, places[::2000])}, "midpoint", within_bins(bins))["x"]
    assert list(middle) == [0.12, 0.27, 6.14]
    schema = dp.Schema({"x": dp.Bins([0, 0.5, 2], decimals=0)})
    whole = converted({"x": (schema, places[:3000])}, "midpoint", within_bins(schema.bins["x"]))["x"]
    assert whole.dtype == np.int64
    assert set(whole) == {0, 1}


def test_a_fit_of_records_has_the_columns_in_the_order_of_the_declared_states():
    schema = dp.Schema({"b": ["x", "y"], "a": ["x", "y"], "c": ["x", "y"]})
    records = pd.DataFrame({variable: ["x", "y"] * 50 for variable in "abc"})
    network = dp.PrivateBayesianNetwork([("c", "a"), ("a", "b")])
    network.fit(records, estimator=dp.PrivateMLE(epsilon=1.0, state_names=schema))
    assert list(network.simulate(5, seed=0).columns) == list(network.release_.schema.variables) == ["b", "a", "c"]
    assert [list(frame.columns) for frame in network.simulate(5, seed=0, data_sets=2)] == [["b", "a", "c"]] * 2
    assert list(network.simulate(5, seed=0, do={"a": "x"}, show_progress=False).columns) == ["b", "a", "c"]


SCHEMA = dp.Schema(
    {"visits": [3.0, 1.5, 2.0], "smoke": [True, False], "rooms": [2, 1], "cars": [0, 1], "job": ["b", "a"]},
    missing={"visits": "unknown", "cars": -9, "smoke": "unstated"},
)
ROW = np.arange(1200)
RECORDS = pd.DataFrame({
    "visits": np.choose(ROW % 4, [3.0, 1.5, 2.0, np.nan]),
    "smoke": np.choose(ROW % 3, [True, False, None]),
    "rooms": ROW % 2 + 1,
    "cars": np.where(ROW % 5, ROW % 2, np.nan),
    "job": np.where(ROW % 2, "a", "b"),
})  # fmt: skip


@pytest.fixture(scope="module", params=["network", "mixture"])
def model(request):
    data = dp.PrivateDataset(RECORDS, SCHEMA, dp.PrivacyBudget(50.0, 1e-6), noise=dp.SimulatedNoise(0))
    if request.param == "mixture":
        return dp.PairwiseMixture(epsilon=50.0, delta=1e-6, members=1).fit(data).network_
    network = dp.PrivateBayesianNetwork([("visits", "smoke"), ("rooms", "job")])
    network.add_node("cars")
    return network.fit(data, estimator=dp.PrivateMLE(epsilon=50.0))


def test_states_are_categories_of_one_type_in_their_declared_order(model):
    frame = model.simulate(1000, seed=0)
    assert {v: list(column.cat.categories) for v, column in frame.items()} == {
        "visits": ["3.0", "1.5", "2.0", "unknown"],
        "smoke": ["True", "False", "unstated"],
        "rooms": [2, 1],
        "cars": [0, 1, -9],
        "job": ["b", "a"],
    }
    assert dp.evaluation.compare(RECORDS, frame, SCHEMA)["error"].max() < 0.6
    assert model.log_likelihood(frame) > -5
    pgmpys = DiscreteBayesianNetwork([("visits", "smoke")])
    pgmpys.add_nodes_from(["rooms", "cars", "job"])
    pgmpys.fit(frame)
    assert pgmpys.get_cpds("visits").state_names["visits"] == ["1.5", "2.0", "3.0", "unknown"]
    score = dp.NoisyScore(model)
    search = HillClimbSearch(scoring_method=score, return_type="dag", show_progress=False).fit(score.data)
    edges = {frozenset(edge) for edge in search.causal_graph_.edges()}
    assert frozenset(["rooms", "job"]) in edges  # one follows from the other


def test_numbers_and_booleans_come_back_as_the_records_have_them(model, tmp_path):
    frame = model.simulate(1000, seed=0, numbers="drawn")
    kinds = {"visits": "float64", "smoke": "boolean", "rooms": "int64", "cars": "Int64", "job": "category"}
    assert frame.dtypes.astype(str).to_dict() == kinds
    wanted = RECORDS.astype({"smoke": "boolean"})
    for variable in ("visits", "smoke", "rooms", "cars"):
        assert frame[variable].isna().mean() == pytest.approx(wanted[variable].isna().mean(), abs=0.05)
        assert frame[variable].mean() == pytest.approx(wanted[variable].mean(), abs=0.1)
    to_csv(frame, tmp_path / "drawn.csv", SCHEMA, spreadsheet=False)
    texts = pd.read_csv(tmp_path / "drawn.csv", dtype=str, keep_default_na=False)
    assert set(texts["visits"]) == {"3.0", "1.5", "2.0", ""}
    assert set(texts["smoke"]) == {"True", "False", "unstated"}
    assert set(texts["cars"]) == {"0", "1", "-9"}
    assert dp.exact_marginals(tmp_path / "drawn.csv", SCHEMA, [("smoke", "cars")]).tables["smoke", "cars"].sum() == 1000
