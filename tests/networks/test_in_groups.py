"""Networks whose nodes have many states: measured in groups without being told, answered state by state."""

import numpy as np
import pandas as pd
import pytest
from pgmpy.inference import VariableElimination
from pgmpy.models import DiscreteBayesianNetwork

import pgmpy_dp as dp
from pgmpy_dp.networks.fitted_in_groups import FittedInGroups
from pgmpy_dp.schema import Hierarchy

# Codes of 150 and 120 states in runs of 15 and 12, which depend on each other by their runs alone.
EDGES = [("sex", "code"), ("code", "drug"), ("drug", "risk")]
RUNS = {"code": np.arange(150) // 15, "drug": np.arange(120) // 12}
SCHEMA = dp.Schema(
    {"sex": ["f", "m"], "code": [f"c{i}" for i in range(150)], "drug": list(range(120)), "risk": ["low", "high"]}
)
COUNT = 20_000


def law(generator, node, parents):
    """P(node | run of its parent), with one share of each state in its run."""
    runs = RUNS.get(node, np.arange(SCHEMA.cardinality(node)))
    weights = generator.random(runs.size) + 0.2
    of_runs = generator.dirichlet(np.ones(runs.max() + 1), parents)
    return of_runs[:, runs] * (weights / np.bincount(runs, weights)[runs])


@pytest.fixture(scope="module")
def laws():
    generator = np.random.default_rng(5)
    return {"code": law(generator, "code", 2), "drug": law(generator, "drug", 10), "risk": law(generator, "risk", 10)}


def records(laws, seed):
    generator = np.random.default_rng([seed, 1])

    def drawn(table, rows):
        return (generator.random((COUNT, 1)) > np.cumsum(table, axis=1)[rows]).sum(axis=1).clip(0, table.shape[1] - 1)

    codes = {"sex": generator.integers(0, 2, COUNT)}
    codes["code"] = drawn(laws["code"], codes["sex"])
    codes["drug"] = drawn(laws["drug"], RUNS["code"][codes["code"]])
    codes["risk"] = drawn(laws["risk"], RUNS["drug"][codes["drug"]])
    return pd.DataFrame({v: np.array(SCHEMA.states[v])[own] for v, own in codes.items()})


def fitted(frame, seed=0, estimator=None, network=None):
    data = dp.PrivateDataset(frame, SCHEMA, dp.PrivacyBudget(1.0, 1e-9), noise=dp.SimulatedNoise(seed))
    network = dp.PrivateBayesianNetwork(EDGES) if network is None else network
    return network.fit(data, estimator=estimator or dp.AutoMLE(1.0, delta=1e-9))


@pytest.fixture(scope="module")
def network(laws):
    return fitted(records(laws, 0))


def test_the_network_is_as_it_was_and_its_price_that_of_one_fit(network):
    assert sorted(network.edges()) == sorted(EDGES)
    assert network.check_model()
    assert [cpd.values.shape for cpd in map(network.get_cpds, ("code", "drug", "risk"))] == [
        (150, 2),
        (120, 150),
        (2, 120),
    ]
    assert network.guarantee_.epsilon == 1.0
    assert set(network.groups_) == {"code", "drug"}
    assert all(8 <= number <= 100 for number in network.groups_.values())
    joined = {v for clique in network.release_.cliques if len(clique) > 1 for v in clique}
    assert joined == {"sex", "code in groups", "drug in groups", "risk"}


def test_the_plan_is_public_and_of_groups():
    plan = dp.AutoMLE(1.0, delta=1e-9, state_names=SCHEMA).plan(dp.PrivateBayesianNetwork(EDGES), records=COUNT)
    assert plan.guarantee.epsilon == 1.0
    assert max(map(plan.schema.cells, plan.noise)) < 100**2
    assert {("code",), ("drug",)} <= set(plan.noise)


@pytest.mark.parametrize("check", [0.0, 0.15])
def test_an_isolated_node_is_in_groups_where_it_is_measured_with_others(laws, check):
    network = dp.PrivateBayesianNetwork([("sex", "drug")])
    network.add_nodes_from(["code", "risk"])
    frame = records(laws, 0)
    fitted(frame, estimator=dp.AutoMLE(1.0, delta=1e-9, check=check), network=network)
    joined = {v for clique in network.release_.cliques if len(clique) > 1 for v in clique}
    assert joined == ({"sex", "code in groups", "drug in groups", "risk"} if check else {"sex", "drug"})
    assert set(network.groups_ or {}) == ({"code", "drug"} if check else set())
    assert network.get_cpds("code").values.shape == (150,)
    shares = np.bincount(frame["code"].str[1:].astype(int), minlength=150) / COUNT
    assert abs(network.marginal(["code"]) - shares).sum() / 2 < 0.07
    bounded = network.query(["code"], {"sex": "f"}, interval=0.9)
    np.testing.assert_allclose(bounded["value"], network.query(["code"], {"sex": "f"}).values)


@pytest.mark.parametrize("kind", [dp.AutoMLE, dp.PrivateMLE, dp.CollectiveEM])
def test_estimators_are_nearer_to_the_truth_than_independent_columns(laws, kind):
    frame = records(laws, 0)
    network = fitted(frame, estimator=kind(1.0, delta=1e-9))
    joint = network.marginal(["code", "drug"])
    runs = np.zeros((10, 10))
    np.add.at(runs, (RUNS["code"][:, None], RUNS["drug"][None]), joint)
    truth = np.zeros((10, 10))
    codes = frame["code"].str[1:].astype(int).to_numpy()
    np.add.at(truth, (RUNS["code"][codes], RUNS["drug"][frame["drug"].astype(int).to_numpy()]), 1 / COUNT)
    alone = np.outer(truth.sum(axis=1), truth.sum(axis=0))
    assert abs(runs - truth).sum() < 0.5 * abs(alone - truth).sum()
    shares = np.bincount(codes, minlength=150) / COUNT
    assert abs(network.marginal(["code"]) - shares).sum() / 2 < 0.07


QUESTIONS = [(["risk"], {"code": "c40"}), (["code"], {"risk": "high"}), (["code", "risk"], {}), (["sex"], {"drug": 7})]


@pytest.mark.parametrize(("asked", "given"), QUESTIONS)
def test_every_door_has_the_same_value(network, asked, given):
    value = network.query(asked, given)
    bounded = network.query(asked, given, interval=0.9)
    np.testing.assert_allclose(bounded["value"], value.values.ravel(), atol=1e-12)
    assert (bounded["lower"] <= bounded["value"]).all()
    assert (bounded["value"] <= bounded["upper"]).all()
    assert not network.check_fit().fails  # else answers would not be those of the CPDs
    by_pgmpy = VariableElimination(network).query(asked, given, show_progress=False)
    assert by_pgmpy == value


def test_bounds_say_what_they_assume(network):
    assert "measured" in network.query(["risk"], {"code": "c40"}, interval=0.9).attrs["note"]
    assert "note" not in network.query(["code"], interval=0.9).attrs
    assert "note" not in network.query(["risk"], {"sex": "f"}, interval=0.9).attrs


@pytest.mark.parametrize("suffix", [".zip", ".bif"])
def test_a_file_keeps_all_that_answers_need(network, tmp_path, suffix):
    path = tmp_path / f"network{suffix}"
    network.save(path)
    again = dp.load(path)
    if suffix == ".bif":
        again.attach_release(network.release_)
    assert isinstance(again._fitted, FittedInGroups)
    for asked, given in QUESTIONS:
        own, theirs = (model.query(asked, given, interval=0.9) for model in (network, again))
        theirs = theirs.reindex(own.index)
        np.testing.assert_allclose(own, theirs, atol=1e-6 if suffix == ".zip" else 0.02)


def test_networks_of_pgmpy_are_fitted_too(laws):
    data = dp.PrivateDataset(records(laws, 0), SCHEMA, dp.PrivacyBudget(1.0, 1e-9), noise=dp.SimulatedNoise(0))
    plain = DiscreteBayesianNetwork(EDGES)
    plain.fit(data, estimator=dp.AutoMLE(1.0, delta=1e-9))
    assert plain.get_cpds("drug").values.shape == (120, 150)
    assert plain.check_model()


def test_records_are_of_states_and_data_sets_too(network):
    made = network.simulate(2000, seed=1, evidence={"drug": 7})
    assert set(made) == set(SCHEMA.variables)
    assert set(made["drug"].astype(int)) == {7}
    assert set(made["code"]) <= set(SCHEMA.states["code"])
    one, other = network.simulate(500, data_sets=2, seed=1, evidence={"code": "c40"})
    assert set(one["code"]) == set(other["code"]) == {"c40"}
    completed = network.predict(pd.DataFrame({"risk": ["high", "low"], "sex": ["f", "f"]}))
    assert completed["code"].isin(SCHEMA.states["code"]).all()
    assert np.isfinite(network.log_likelihood(made))


def test_most_probable_states_are_those_of_the_answer(network):
    answer = network.query(["code"], {"risk": "high"})
    best = answer.state_names["code"][int(answer.values.argmax())]
    assert network.map_query(["code"], {"risk": "high"}) == {"code": best}
    states, _ = network.map_probability(["code", "drug"], {"risk": "high"})
    joint = network.query(["code", "drug"], {"risk": "high"})
    assert joint.get_value(**states) == pytest.approx(joint.values.max(), rel=1e-9)


def test_draws_are_of_the_network_over_groups(network):
    again = network.copy()
    before = again.query(["risk"], {"code": "c40"}, interval=0.9)
    again.sample_draws(20, seed=3)
    assert len(again.draws_.totals) == 20
    after = again.query(["risk"], {"code": "c40"}, interval=0.9)
    assert before["value"].equals(after["value"])
    assert not before["upper"].equals(after["upper"])
    page = again.explore().html
    assert '"c40"' in page
    assert "code in groups" not in page
    with pytest.raises(ValueError, match="ask query"):
        again.cpd_interval("drug")
    assert len(again.cpd_interval("sex")) == 2
    with pytest.raises(ValueError, match="larger check"):
        again.measure_misfit(None, 0.1)


def test_a_change_of_parameters_is_answered_by_these(network):
    other = network.copy()
    cpd = other.get_cpds("risk").copy()
    cpd.values[:] = 0.5
    with pytest.warns(UserWarning, match="no guarantee"):
        other.add_cpds(cpd)
    assert other.query(["risk"], {"code": "c40"}).values.tolist() == pytest.approx([0.5, 0.5])


def test_a_declared_hierarchy_is_measured_in_place_of_groups(laws):
    frame = records(laws, 0)
    frame["chapter"] = "ch" + (frame["code"].str[1:].astype(int) // 15).astype(str)
    merged = {f"c{i}": f"ch{i // 15}" for i in range(150)}
    schema = SCHEMA.replace(
        variables={**SCHEMA.declared, "chapter": sorted(set(merged.values()))},
        rules=[Hierarchy("code", "chapter", merged)],
    )
    data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(1.0, 1e-9), noise=dp.SimulatedNoise(0))
    network = dp.PrivateBayesianNetwork(EDGES).fit(data, estimator=dp.AutoMLE(1.0, delta=1e-9))
    assert network.get_cpds("code").values.shape == (150, 2)
    assert {v for clique in network.release_.cliques if len(clique) > 1 for v in clique} >= {"chapter", "sex"}
    assert ("code",) in network.release_.cliques
    assert isinstance(network._fitted, FittedInGroups)


@pytest.mark.parametrize("estimator", [dp.CollectiveEM, dp.AutoMLE])
def test_markov_networks_group_nodes_too(laws, estimator, tmp_path):
    network = fitted(records(laws, 0), estimator=estimator(1.0, delta=1e-9), network=dp.PrivateMarkovNetwork(EDGES))
    assert set(network.groups_) == {"code", "drug"}
    assert set(network.nodes()) == set(SCHEMA.variables)
    assert network.get_partition_function() == pytest.approx(1.0)
    network.save(tmp_path / "network.zip")
    network.save(tmp_path / "network.uai")
    again, other = (dp.load(tmp_path / f"network.{suffix}") for suffix in ("zip", "uai"))
    other.attach_release(network.release_)
    for asked, given in QUESTIONS:
        value, bounded = network.query(asked, given), network.query(asked, given, interval=0.9)
        np.testing.assert_allclose(bounded["value"], value.values.ravel(), atol=1e-12)
        np.testing.assert_allclose(again.query(asked, given, interval=0.9), bounded, atol=1e-9)
        np.testing.assert_allclose(other.query(asked, given, interval=0.9)["value"], bounded["value"], atol=1e-6)
        assert not network.check_fit().fails
        by_pgmpy = VariableElimination(network).query(asked, given, show_progress=False)
        assert by_pgmpy.normalize(inplace=False) == value
    assert set(network.simulate(100, seed=0)["code"]) <= set(SCHEMA.states["code"])
    assert isinstance(network.map_query(["code", "risk"], {"sex": "f"})["code"], str)


def test_bounds_do_not_depend_on_earlier_questions(network):
    one, other = network.copy(), network.copy()
    for model in (one, other):
        model.sample_draws(20, seed=1)
    other.query(["drug"], interval=0.9)
    pd.testing.assert_frame_equal(one.query(["code"], interval=0.9), other.query(["code"], interval=0.9))


def test_bounds_of_too_many_states_are_refused_before_they_are_computed(network, monkeypatch):
    again = network.copy()
    monkeypatch.setattr("pgmpy_dp.networks.fitted_in_groups._MAX_CELLS", 10**6)
    monkeypatch.setattr(type(again._fitted.inner), "bounded", None)
    with pytest.raises(ValueError, match="fewer variables"):
        again.query(["sex", "code", "drug", "risk"], interval=0.9)


def test_unions_of_releases_with_the_same_groups_are_fitted(laws, network):
    other = dp.PrivateDataset(
        records(laws, 1), network.release_.schema, dp.PrivacyBudget(1.0, 1e-9), noise=dp.SimulatedNoise(1)
    )
    second = dp.AutoMLE(1.0, delta=1e-9).fit(dp.PrivateBayesianNetwork(EDGES), other).release_
    union = dp.union({"north": network.release_, "south": second}, variable="site")
    both = dp.PrivateBayesianNetwork(EDGES).fit(union, estimator=dp.AutoMLE())
    assert both.groups_ == network.groups_
    assert both.query(["risk"], {"code": "c40"}).values.sum() == pytest.approx(1.0)


@pytest.mark.full
def test_bounds_hold_where_groups_do(laws):
    """Of 96 answers with 90 % bounds, at most 76 are covered by chance in 2 of 10^4 runs if they are independent."""
    joint = np.einsum(
        "s,sc,cd,dr->scdr", [0.5, 0.5], laws["code"], laws["drug"][RUNS["code"]], laws["risk"][RUNS["drug"]]
    )
    risk = np.einsum("scdr->cr", joint)
    shares, covered = joint.sum(axis=(0, 2, 3)), []
    for seed in range(12):
        network = fitted(records(laws, seed), seed)
        answer = network.query(["code"], interval=0.9)
        held = (answer["lower"] <= shares) & (shares <= answer["upper"])
        covered += held.to_numpy()[np.argsort(-shares)[:4]].tolist()
        for code in np.argsort(-shares)[:4]:
            bounds = network.query(["risk"], {"code": f"c{code}"}, interval=0.9).iloc[0]
            covered.append(bounds["lower"] <= risk[code, 0] / risk[code].sum() <= bounds["upper"])
    assert np.mean(covered) >= 0.8
