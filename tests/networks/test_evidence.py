"""Evidence may be what a cell of the records would be: a number in a bin, or a text that says that it is missing."""

import numpy as np
import pandas as pd
import pytest
from pgmpy.factors.discrete import TabularCPD
from pgmpy.inference import ApproxInference, BeliefPropagation, CausalInference, VariableElimination
from pgmpy.sampling import GibbsSampling

import pgmpy_dp as dp
from pgmpy_dp.models.questions import checked_evidence
from pgmpy_dp.records.frames import encode

SCHEMA = dp.Schema(
    {"age": dp.Bins([0, 18, 40, 65]), "job": ["none", "clerk", "guard"], "smoke": ["yes", "no"], "cars": [0, 1]},
    missing={"age": "unknown", "job": "unstated"},
    other={"age": "beyond"},
    missing_values={"job": ["?"], "age": ["-9"]},
)
EDGES = [("smoke", "age"), ("job", "smoke"), ("cars", "job")]


def test_evidence_is_one_state_each_and_missing_where_that_is_declared():
    for several in (["yes", "no"], ("yes",), {"yes"}, np.array(["yes"]), pd.Series(["yes"])):
        with pytest.raises(dp.SchemaError, match="'smoke' several"):
            checked_evidence(SCHEMA, {"smoke": several})
    for missing in (None, float("nan"), np.datetime64("NaT"), pd.NA, ""):
        with pytest.raises(dp.SchemaError, match=r"'smoke' has no state for missing values, such as .* 'yes', 'no'"):
            checked_evidence(SCHEMA, {"smoke": missing})
        assert checked_evidence(SCHEMA, {"age": missing, "job": missing}) == {"age": "unknown", "job": "unstated"}


@pytest.fixture(scope="module")
def release():
    draw = np.random.default_rng(0)
    records = pd.DataFrame({
        "age": draw.uniform(0, 65, 4000),
        "job": draw.choice(["none", "clerk", "guard", "?"], 4000),
        "smoke": draw.choice(["yes", "no"], 4000),
        "cars": draw.integers(0, 2, 4000),
    })  # fmt: skip
    data = dp.PrivateDataset(records, SCHEMA, dp.PrivacyBudget(50.0), noise=dp.SimulatedNoise(0))
    return data.measure(EDGES, 50.0)


def test_numbers_are_in_the_bins_that_records_are_read_into():
    for number in [-1, 0, 17.99, 18, 39, 40, 64.5, 65, 65.1, float("inf"), np.int8(18), -0.0]:
        (place,) = encode(pd.DataFrame({"age": [number]}), SCHEMA, ["age"])["age"]
        label = SCHEMA.states["age"][place]
        if label == "beyond":
            with pytest.raises(
                dp.SchemaError, match=r"'age' has no state .*; it has '0_to_18', '18_to_40', '40_to_65', "
            ):
                checked_evidence(SCHEMA, {"age": number})
        else:
            assert checked_evidence(SCHEMA, {"age": number}) == {"age": label}


@pytest.mark.parametrize(
    ("given", "read"),
    [
        *(({"age": state}, {"age": state}) for state in ("beyond", "unknown", "0_to_18")),
        ({"age": "39.5", "cars": "1"}, {"age": "18_to_40", "cars": 1}),
        ({"age": "-9"}, {"age": "unknown"}),
        ({"age": True}, "'age' has no state"),
        ({"age": "forty"}, "'age' has no state"),
        ({"smoke": "?"}, r"'smoke' has no state '\?'; it has 'yes', 'no'\.$"),
        ({"job": "clark"}, r"Did you mean 'clerk'\?"),
    ],
    ids=repr,
)
def test_texts_are_read_as_in_files(given, read):
    if isinstance(read, dict):
        assert checked_evidence(SCHEMA, given) == read
        return
    with pytest.raises(dp.SchemaError, match=read):
        checked_evidence(SCHEMA, given)


def test_without_a_release_there_are_no_bins(release, tmp_path):
    dp.PrivateBayesianNetwork(EDGES).fit(release).save(tmp_path / "network.bif")
    bare = dp.PrivateBayesianNetwork.load(tmp_path / "network.bif")
    with pytest.raises(dp.SchemaError, match="'age' has no state 40"):
        bare.query(["smoke"], {"age": 40})
    bare.attach_release(release)
    assert bare.query(["smoke"], {"age": 40}).values.sum() == pytest.approx(1)


@pytest.fixture(scope="module")
def pgmpys(release):
    """Networks with pgmpy's methods."""
    bayesian, markov = (kind(EDGES).fit(release) for kind in (dp.PrivateBayesianNetwork, dp.PrivateMarkovNetwork))
    mixture = dp.PairwiseMixture(members=1).fit(release).network_.to_bayesian_network()
    return {"bayesian": bayesian, "markov": markov, "mixture": mixture}


DIRECTED = pytest.mark.parametrize("kind", ["bayesian", "mixture"])


@DIRECTED
def test_inherited_methods_read_numbers_as_query_does(pgmpys, kind):
    """The numbers 1 and 2 are positions of the second and third bin to pgmpy, and lie in the first."""
    network = pgmpys[kind]
    rows = pd.DataFrame({"age": [1, 40, 2], "job": ["?", "clerk", "clerk"]}, index=[7, 3, 3])
    meant = rows.assign(age=["0_to_18", "40_to_65", "0_to_18"], job=["unstated", "clerk", "clerk"])
    found, named = network.predict(rows), network.predict(meant)
    columns = ["smoke", "cars"]
    pd.testing.assert_frame_equal(found[columns], named[columns])
    assert found["age"].tolist() == [40, 2, 1]  # given columns come back as they were, in pgmpy's order of rows
    pd.testing.assert_frame_equal(
        network.predict_probability(rows).sort_index(axis=1), network.predict_probability(meant).sort_index(axis=1)
    )
    assert network.get_state_probability({"age": 2, "cars": "1"}) == pytest.approx(
        network.query(["age", "cars"]).get_value(age="0_to_18", cars=1)
    )
    for given, states in (
        ({"do": {"age": 2}}, ["0_to_18"] * 3),
        ({"partial_samples": pd.DataFrame({"age": [2, 40, 1]})}, ["0_to_18", "40_to_65", "0_to_18"]),
    ):
        drawn = network.simulate(3, seed=0, show_progress=False, **given)
        assert drawn["age"].tolist() == states
        assert set(drawn["smoke"]) <= {"yes", "no"}
    if kind == "bayesian":
        cut = network.do(["smoke"])  # a changed network has no release, and its bins are public still
        assert cut.query(["job"], {"age": 2}).values == pytest.approx(cut.query(["job"], {"age": "0_to_18"}).values)
        ask = {"n_samples": 200, "seed": 0, "show_progress": False}
        one, other = (ApproxInference(network).query(["smoke"], evidence={"age": age}, **ask) for age in (2, "0_to_18"))
        assert one == other


def test_partial_samples_reach_the_children_of_their_variables(pgmpys):
    network = pgmpys["bayesian"]
    jobs = ["guard", "none"] * 4000
    drawn = network.simulate(8000, partial_samples=pd.DataFrame({"job": jobs}), seed=0, show_progress=False)
    assert drawn["job"].tolist() == jobs
    for job in ("guard", "none"):  # .03 is five standard errors of 4,000 draws
        share = (drawn["smoke"][drawn["job"] == job] == "yes").mean()
        conditional = network.get_cpds("smoke").get_value(smoke="yes", job=job)
        assert share == pytest.approx(conditional, abs=0.04)
    with pytest.raises(dp.SchemaError, match="'job' is in partial_samples and in evidence or do"):
        network.simulate(2, partial_samples=pd.DataFrame({"job": ["none"] * 2}), do={"job": "none"})
    with pytest.raises(ValueError, match="partial_samples has 2 records for 3: leave n_samples out"):
        network.simulate(3, partial_samples=pd.DataFrame({"job": ["none"] * 2}), do={"smoke": "yes"})
    with pytest.raises(dp.SchemaError, match="partial_samples has missing values"):
        network.simulate(2, partial_samples=pd.DataFrame({"age": [40, np.nan], "job": ["?", "clerk"]}))


@pytest.mark.parametrize("kind", ["bayesian", "markov", "mixture"])
def test_pgmpys_inference_refuses_positions(pgmpys, kind):
    network, quiet = pgmpys[kind], {"show_progress": False}
    calls = [
        (VariableElimination, "query", {"elimination_order": "MinFill"}),
        (VariableElimination, "max_marginal", {}),
    ]
    calls += [(by, call, {}) for by in (VariableElimination, BeliefPropagation) for call in ("query", "map_query")]
    for variable, position in (("age", 2), ("job", 1)):
        for model in (network, network.copy()):
            for algorithm, call, options in calls:
                with pytest.raises(KeyError, match=f"state: {position} is an unknown for variable: {variable}"):
                    getattr(algorithm(model), call)(["smoke"], {variable: position}, **options, **quiet)
    named = {"age": "0_to_18", "job": "clerk"}
    for algorithm in (VariableElimination, BeliefPropagation):
        assert algorithm(network).map_query(["smoke"], named, **quiet) == network.map_query(["smoke"], named)


def test_no_position_reaches_pgmpys_causal_inference_and_markov_models(pgmpys):
    network = pgmpys["bayesian"]
    for do, given in (({"job": 1}, {}), ({"smoke": "yes"}, {"job": 1})):
        with pytest.raises(KeyError, match="state: 1 is an unknown for variable: job"):
            CausalInference(network).query(["age"], do=do, evidence=given, show_progress=False)
    with pytest.raises(KeyError, match="state: 1 is an unknown for variable: job"):
        VariableElimination(network.to_markov_model()).map_query(["smoke"], {"job": 1}, show_progress=False)
    virtual = [TabularCPD("smoke", 2, [[0.9], [0.1]])]  # whose states are 0 and 1
    with pytest.raises(ValueError, match="state names of smoke"):
        VariableElimination(network).query(["age"], virtual_evidence=virtual, show_progress=False)


@pytest.mark.parametrize("kind", ["bayesian", "markov"])
def test_pgmpys_gibbs_sampler_still_numbers_states(pgmpys, kind):
    network = pgmpys[kind]
    kernel = GibbsSampling(network).transition_models["cars"]
    order = [v for v in network.nodes() if v != "cars"]
    states = {"age": "18_to_40", "smoke": "no", "job": "clerk"}
    place = tuple(SCHEMA.states[v].index(states[v]) for v in order)
    assert kernel[place] == pytest.approx(network.query(["cars"], states).values)


def test_a_table_that_is_changed_outside_changes_in_the_network(pgmpys):
    network = pgmpys["bayesian"].copy()
    table = TabularCPD("cars", 2, [[0.2], [0.8]])
    lone = dp.PrivateBayesianNetwork()
    lone.add_node("cars")
    lone.add_cpds(table)
    table.values = np.array([0.5, 0.5])
    assert lone.query(["cars"]).values.tolist() == [0.5, 0.5]
    assert type(table) is TabularCPD
    network.get_cpds("job").values[:] = 0.25
    assert not np.all(pgmpys["bayesian"].get_cpds("job").values == 0.25)


def test_a_new_fit_is_read_by_what_it_was_fitted_to(release):
    """Bins of another schema may have the same labels."""
    network = dp.PrivateBayesianNetwork([("smoke", "age")]).fit(release)
    labels, smokers = list(SCHEMA.states["age"]), ["yes", "no"]
    other = dp.Schema({"age": labels, "smoke": smokers})
    frame = pd.DataFrame({"age": labels * 2, "smoke": smokers * len(labels)})
    assert network.query(["smoke"], {"age": 40}).values.sum() == pytest.approx(1)
    network.fit(frame, estimator=dp.NotPrivateMLE(state_names=other))
    with pytest.raises(dp.SchemaError, match="'age' has no state 40"):
        network.query(["smoke"], {"age": 40})
