"""Columns of many states: a public hierarchy, or rare states merged; answers and records have the fine states again."""

import pickle

import numpy as np
import pandas as pd
import pytest
from pgmpy.inference import VariableElimination
from writers import every_form

import pgmpy_dp as dp
from pgmpy_dp.inference.mixtures.fit.denoised_children import denoised_within
from pgmpy_dp.inference.mixtures.fit.noisy_tables import children_within, coarse_table, fine_counts
from pgmpy_dp.records import open_records
from pgmpy_dp.release.kinds import Release

GROUPS = {f"p{number}": f"r{number % 4}" for number in range(40)}
STATES = {"place": list(GROUPS), "region": ["r0", "r1", "r2", "r3"], "a": ["x", "y"], "b": ["u", "v", "w"]}
SCHEMA = dp.Schema(STATES, rules=[dp.Hierarchy("place", "region", GROUPS)])


def records(count=6000):
    """Places of very different sizes; a depends on the region, b on a."""
    draw = np.random.default_rng(1)
    place = draw.choice(list(GROUPS), count, p=draw.dirichlet(np.full(40, 0.5)))
    a = draw.random(count) < np.array([0.1, 0.4, 0.6, 0.9])[[int(GROUPS[one][1]) for one in place]]
    b = np.where(draw.random(count) < 0.5, a * 2, draw.integers(3, size=count))
    return pd.DataFrame({"place": place, "a": np.where(a, "x", "y"), "b": np.array(["u", "v", "w"])[b]})


@pytest.fixture(scope="module")
def estimator():
    data = dp.PrivateDataset(records(), SCHEMA, dp.PrivacyBudget(4.0, 1e-6), noise=dp.SimulatedNoise(0))
    return dp.PairwiseMixture(4.0, 1e-6, components=10, members=2).fit(data)


def test_shares_are_those_of_counts_without_negative_ones():
    groups = np.array([0, 0, 0, 1, 1])
    shares = children_within(
        {"f": ("r", groups)}, {"f": (np.array([60.0, 45.0, -30.0, -5.0, -7.0]), 1.0)}, {"r": np.array([99.0, 1.0, 0.0])}
    )["f"].shares.sum(axis=0)
    np.testing.assert_allclose(shares[:3], [(57 + 1 / 3) / 100, (42 + 1 / 3) / 100, 1 / 300])
    assert shares[3:].sum() == pytest.approx(1)
    assert (shares > 0).all()


def test_denoised_shares_are_nearer_and_clear_counts_stay():
    groups, truth = np.repeat([0, 1], [3, 60]), np.append([600.0, 300.0, 0.0], np.repeat([30.0, 2.0], 30))
    counts = truth + np.append([0.0, 0.0, -3.0], 4.0 * np.random.default_rng(0).standard_normal(60))
    noisy, denoised = (
        within({"f": ("r", groups)}, {"f": (counts, 4.0)}, {"r": np.array([900.0, 960.0])})["f"].shares.sum(axis=0)
        for within in (children_within, denoised_within)
    )
    np.testing.assert_allclose(denoised[:3], [2 / 3, 1 / 3, 0.0], atol=0.005)
    assert abs(denoised - truth / 960)[3:].sum() < 0.8 * abs(noisy - truth / 960)[3:].sum()
    assert (denoised > 0).all()


def test_tables_of_finer_variables_are_read_either_way():
    """Of a table beside the coarser variable only what can be is read; others are summed."""
    refined, sizes = {"f": ("b", np.array([0, 2, 2, 1]))}, {"a": 2, "b": 3}
    beside = np.arange(12.0).reshape(4, 3)
    assert fine_counts(refined, [(("f", "b"), beside, 2.0)])["f"][0].tolist() == [0, 5, 8, 10]
    pair = np.arange(8.0).reshape(2, 4)
    names, counts, deviation = coarse_table(refined, sizes, (("a", "f"), pair, 2.0))
    assert (names, deviation) == (("a", "b"), pytest.approx(2 * 2**0.5))
    assert counts.tolist() == [[0, 3, 3], [4, 7, 11]]
    counts, deviation = fine_counts(refined, [(("a", "f"), pair, 1.0), (("f",), pair.sum(axis=0), 1.0)])["f"]
    assert counts.tolist() == pytest.approx(pair.sum(axis=0))
    assert deviation == pytest.approx((2 / 3) ** 0.5)


def test_the_finer_variable_is_measured_once(estimator):
    assert set(estimator.release_.cliques) == {
        ("region",), ("a",), ("b",), ("place",), ("region", "a"), ("region", "b"), ("a", "b"),
    }  # fmt: skip


def test_answers_and_records_have_fine_states(estimator, tmp_path):
    network, frame = estimator.network_, records()
    truth = frame["place"].value_counts(normalize=True).reindex(STATES["place"], fill_value=0).to_numpy()
    assert abs(network.marginal(["place"]) - truth).sum() < 0.03
    in_two = frame.groupby(frame["place"])["a"].apply(lambda own: (own == "x").mean())
    for place in frame["place"].value_counts().index[:5]:
        answer = network.query(["a"], {"place": place}, interval=0.9)
        assert abs(answer.loc["x", "value"] - in_two[place]) < 0.15
        assert answer.loc["x", "lower"] <= answer.loc["x", "value"] <= answer.loc["x", "upper"]
    bounded = network.query(["place"], interval=0.9)
    assert (bounded["lower"].to_numpy() - 1e-9 <= truth).mean() > 0.8
    assert (bounded["upper"].to_numpy() + 1e-9 >= truth).mean() > 0.8
    synthetic = network.simulate(20_000, seed=0)
    assert list(synthetic) == list(STATES)
    assert (synthetic["place"].astype(str).map(GROUPS) == synthetic["region"].astype(str)).all()
    shares = synthetic["place"].value_counts(normalize=True).reindex(STATES["place"]).to_numpy()
    assert abs(shares - network.marginal(["place"])).max() < 1e-3
    given = network.simulate(500, evidence={"place": "p3"}, seed=0, predicting="place")
    assert set(given["place"]) == {"p3"}
    assert set(given["region"]) == {"r3"}
    network.save(tmp_path / "model.json")
    again = dp.PrivateMixtureNetwork.load(tmp_path / "model.json")
    np.testing.assert_allclose(again.marginal(["place", "b"]), network.marginal(["place", "b"]))
    elimination = VariableElimination(network.to_bayesian_network())
    own = elimination.query(["place"], evidence={"a": "y"}, show_progress=False).values
    np.testing.assert_allclose(own, network.query(["place"], {"a": "y"}).values, atol=1e-9)


@pytest.mark.parametrize("unit", [{}, {"unit": "who", "max_rows": 3}, {"unit": "who"}])
def test_every_source_gives_the_coarser_state_of_each_record(tmp_path, unit):
    frame = records(300).assign(who=np.arange(300) // 2)
    given = frame.assign(region=frame["place"].map(GROUPS))
    plain = dp.Schema(STATES)
    wrong = frame.assign(region="r0")  # a column of that name is not read
    for source in (wrong, *every_form(frame, tmp_path).values()):
        tables = []
        for records_, schema in ((source, SCHEMA), (given, plain)):
            data = dp.PrivateDataset(records_, schema, dp.PrivacyBudget(400.0), noise=dp.SimulatedNoise(0), **unit)
            tables.append(data._records.counts([("region", "a"), ("region",), ("place", "region")]))
        for clique, table in tables[0].items():
            np.testing.assert_array_equal(table, tables[1][clique])
    assert open_records(frame, SCHEMA, ["region"]).codes["region"].dtype == np.uint8


@pytest.mark.parametrize("kind", ["bayesian", "markov"])
def test_networks_hold_hierarchies_where_their_variables_are_neighbours(kind):
    edges = [("region", "place"), ("region", "a"), ("a", "b")]
    data = dp.PrivateDataset(records(), SCHEMA, dp.PrivacyBudget(4.0))
    if kind == "markov":
        network = dp.PrivateMarkovNetwork(edges).fit(data, estimator=dp.CollectiveEM(epsilon=4.0))
    else:
        network = dp.PrivateBayesianNetwork(edges).fit(data, estimator=dp.PrivateMLE(4.0))
    synthetic = network.simulate(2000, seed=0)
    assert (synthetic["place"].astype(str).map(GROUPS) == synthetic["region"].astype(str)).all()


def test_stand_ins_lead_to_their_like():
    schema = dp.Schema(
        {"place": ["p"], "region": ["r"], "a": ["x"]},
        missing={"place": "unknown", "region": "unknown"},
        other={"place": "abroad", "region": "abroad"},
        rules=[dp.Hierarchy("place", "region", {"p": "r"})],
    )
    frame = pd.DataFrame({"place": ["p", None, "q", "p"], "a": "x"})
    assert open_records(frame, schema, ["region"]).codes["region"].tolist() == [0, 1, 2, 0]


def test_files_keep_hierarchies(tmp_path, estimator):
    SCHEMA.save(tmp_path / "schema.json")
    estimator.release_.save(tmp_path / "release.zip")
    for again in (
        dp.Schema.load(tmp_path / "schema.json"), pickle.loads(pickle.dumps(SCHEMA)), SCHEMA.join(SCHEMA),
        Release.load(tmp_path / "release.zip").schema,
    ):  # fmt: skip
        assert again == SCHEMA
        assert type(again.rules[0]) is dp.Hierarchy
    assert dp.Schema(STATES, rules=[dp.Dependency("place", "region", GROUPS)]) != SCHEMA


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([dp.Forbidden({"place": "p0", "a": "x"})], "state the rule about 'region'"),
        ([dp.Hierarchy("region", "a", dict.fromkeys(["r0", "r1", "r2", "r3"], "x"))], "state the rule about"),
        ([dp.Hierarchy("b", "region", dict.fromkeys("uvw", "r0"))], "the coarser variable of two hierarchies"),
        ([dp.Hierarchy("place", "a", dict.fromkeys(GROUPS, "x"))], "state the rule about 'region'"),
    ],
)
def test_what_hierarchies_cannot_hold_is_refused(rules, message):
    with pytest.raises(dp.SchemaError, match=message):
        dp.Schema(STATES, rules=[*SCHEMA.rules, *rules])
    with pytest.raises(dp.SchemaError, match="'place' is the finer variable of a Hierarchy"):
        dp.HouseholdSchema(SCHEMA, dp.Schema({"c": ["x", "y"]}), key="id", max_persons=3)


def test_a_coarser_state_of_no_finer_one_never_occurs():
    states = {**STATES, "region": [*STATES["region"], "nowhere"]}
    schema = dp.Schema(states, rules=[dp.Hierarchy("place", "region", GROUPS)])
    network = dp.PairwiseMixture(4.0, 1e-6, schema, components=5, members=1).fit(records(500)).network_
    assert network.marginal(["region"])[-1] == 0


def test_rare_states_are_merged_and_come_back():
    frame, plain = records(), dp.Schema({v: own for v, own in STATES.items() if v != "region"})
    budget, simulated = dp.PrivacyBudget(4.0, 1e-6), dp.SimulatedNoise(0)
    places = dp.PrivateDataset(frame, plain, budget, noise=simulated).measure([("place",)], 0.05)
    schema = dp.merge_rare_states(places, "place", "area")
    noisy, area = places.tables["place",], dict(schema.rules[0].states)
    rare = noisy < 3 * places.noise(("place",))[1]
    assert 0 < rare.sum() < 40
    assert [area[state] for state in STATES["place"]] == [
        "rare" if is_rare else state for state, is_rare in zip(STATES["place"], rare, strict=True)
    ]
    pairs = [clique for clique in dp.plan_pairs(schema)[0] if "place" not in clique]
    second = dp.PrivateDataset(frame, schema, budget, noise=simulated).measure(pairs, 3.0)
    network = dp.PairwiseMixture(components=10, members=2).fit([places, second]).network_
    truth = frame["place"].value_counts(normalize=True).reindex(STATES["place"], fill_value=0).to_numpy()
    assert abs(network.marginal(["place"]) - truth).sum() < abs(noisy / noisy.sum() - truth).sum()
    assert (network.marginal(["place"]) > 0).all()
    assert np.isin(network.simulate(6000, seed=0)["place"], np.array(STATES["place"])[rare]).any()
    with pytest.raises(dp.SchemaError, match="give the coarser variable another name"):
        dp.merge_rare_states(places, "place", "a")
    with pytest.raises(dp.SchemaError, match="equal"):
        dp.merge_rare_states(places, "place", "area", rest=schema.states["area"][0])


def test_two_stages_measure_the_finer_variable_alone():
    estimator = dp.PairwiseMixture(4.0, 1e-6, SCHEMA, components=5, members=2, stages=2).fit(records(1000))
    assert [clique for clique in estimator.release_.cliques if "place" in clique] == [("place",)]
    assert estimator.network_.simulate(100, seed=0)["place"].notna().all()
