"""Variables of many states are measured over groups of these, which the noisy single tables decide on."""

import itertools
import re

import numpy as np
import pandas as pd
import polars
import pytest
from click.testing import CliRunner

import pgmpy_dp as dp
from pgmpy_dp.cli import main
from pgmpy_dp.data.mechanisms.mechanism import PublicRecords
from pgmpy_dp.fitting.plans.groups import numbers_in_families, numbers_of_groups, with_groups
from pgmpy_dp.fitting.plans.outlook import hidden_by_noise
from pgmpy_dp.records import open_records

PLACES = [f"p{number:03}" for number in range(300)]
SCHEMA = dp.Schema({"place": PLACES, "age": list(range(120)), "a": ["x", "y"], "b": ["u", "v", "w"]})
COUNT = 8000


def frame(count=COUNT, seed=0):
    """A column depends on the first digit of places and the age, and another on it; few places have many records."""
    draw = np.random.default_rng(seed)
    place = draw.permutation(300)[np.minimum(draw.pareto(0.9, count) * 6, 299).astype(int)]
    age = np.clip(draw.normal(40 + 15 * (place >= 150), 15, count), 0, 119).astype(int)
    a = draw.random(count) < 0.15 + 0.4 * (place >= 150) + 0.3 * (age > 50)
    b = np.where(draw.random(count) < 0.5, 2 * a, draw.integers(3, size=count))
    columns = {"place": np.array(PLACES)[place], "age": age, "a": np.where(a, "x", "y"), "b": np.array(list("uvw"))[b]}
    return pd.DataFrame(columns)


@pytest.fixture(scope="module")
def estimator():
    data = dp.PrivateDataset(frame(), SCHEMA, dp.PrivacyBudget(1.0, 1e-9), noise=dp.SimulatedNoise(0))
    return dp.PairwiseMixture(1.0, 1e-9, components=20, members=4).fit(data)


def shares(of, variable):
    return of[variable].value_counts(normalize=True).reindex(SCHEMA.states[variable], fill_value=0.0).to_numpy()


def test_names_of_groups_differ_although_states_of_two_types_read_alike():
    states = [1, 2, "1", "2", "1 to 2"]
    shares = np.array([300.0, 300.0, 300.0, 300.0, 900.0])
    frame = pd.DataFrame({"code": np.repeat(np.array(states, object), shares.astype(int))})
    data = dp.PrivateDataset(frame, dp.Schema({"code": states}), dp.PrivacyBudget(1e3), noise=dp.SimulatedNoise(0))
    grouped = with_groups(data.schema, {"code": 3}, data.measure([("code",)], 1e3))
    assert grouped.states["code in groups"] == ("1 to 2 (other)", "1 to 2 (other) (other)", "1 to 2")


def test_pairs_are_of_groups_and_every_state_is_measured_alone(estimator):
    network, release = estimator.network_, estimator.release_
    groups = {variable: f"{variable} in groups" for variable in ("place", "age")}
    assert set(network.groups_) == set(groups)
    assert all(8 <= number <= 40 for number in network.groups_.values())
    in_pairs = [*groups.values(), "a", "b"]
    pairs = {frozenset(pair) for pair in itertools.combinations(in_pairs, 2)}
    assert {frozenset(clique) for clique in release.cliques if len(clique) == 2} == pairs
    assert {("place",), ("age",)} <= set(release.cliques)
    assert [rule.found.every for rule in network.schema_.rules] == [release.guarantee.every] * 2
    assert len(release.guarantee.every) == 1
    assert release.guarantee.epsilon == 1.0


def test_single_states_are_nearer_than_their_noisy_tables_and_groups_show_dependence(estimator):
    network, release, records = estimator.network_, estimator.release_, frame()
    for variable in ("place", "age"):
        noisy, truth = release.tables[variable,], shares(records, variable)
        assert abs(network.marginal([variable]) - truth).sum() < 0.8 * abs(noisy / noisy.sum() - truth).sum()
    halves = pd.crosstab(records["place"] >= "p150", records["a"], normalize=True).to_numpy()
    joint = network.marginal(["place", "a"])
    found = np.stack([joint[:150].sum(axis=0), joint[150:].sum(axis=0)])
    independent = np.outer(halves.sum(axis=1), halves.sum(axis=0))
    assert abs(found - halves).sum() < 0.3 * abs(independent - halves).sum()


@pytest.mark.full
def test_bounds_cover_shares_of_states_and_pairs_of_groups(estimator):
    network, covered = estimator.network_, []
    groups = {rule.finer: dict(rule.states) for rule in network.schema_.rules}
    records = frame().assign(**{f"{v} in groups": lambda own, v=v: own[v].map(groups[v]) for v in groups})
    for asked in (["place"], ["age"], ["place in groups", "a"], ["age in groups", "b"]):
        bounded = network.query(asked, interval=0.9)
        truth = records.value_counts(asked, normalize=True).reindex(bounded.index.to_flat_index(), fill_value=0.0)
        truth = truth.to_numpy() if len(asked) == 2 else shares(records, asked[0])
        covered.append(((bounded["lower"] - 1e-9 <= truth) & (truth <= bounded["upper"] + 1e-9)).mean())
    assert min(covered) > 0.85


@pytest.mark.full
def test_records_predictions_files_and_page_are_of_the_states(estimator, tmp_path):
    network = estimator.network_
    synthetic = network.simulate(4000, seed=0)
    assert list(synthetic) == list(SCHEMA.variables)
    assert abs(shares(synthetic, "place") - network.marginal(["place"])).max() < 1e-3
    known = frame(20, seed=1).drop(columns="place")
    assert set(network.predict(known)["place"]) <= set(PLACES)
    assert list(network.predict(known)) == ["age", "a", "b", "place"]
    group = dict(network.schema_.rules[0].states)["p007"]
    answer = network.query(["a"], {"place": "p007"}).values
    np.testing.assert_allclose(answer, network.query(["a"], {"place in groups": group}).values)
    for name in ("model.zip", "model.json"):
        network.save(tmp_path / name)
        again = dp.load(tmp_path / name)
        assert again.groups_ == network.groups_
        assert list(again.simulate(10, seed=0)) == list(SCHEMA.variables)
        np.testing.assert_allclose(again.query(["a"], {"place": "p007"}).values, answer)
    page = network.explore().html
    assert f"place has 300 states in {network.groups_['place']} groups" in page
    assert "place in groups" in page


@pytest.mark.full
def test_the_command_says_what_was_grouped(tmp_path):
    frame(2000).to_csv(tmp_path / "records.csv", index=False)
    SCHEMA.save(tmp_path / "schema.json")
    asked = [str(tmp_path / "records.csv"), "--schema", str(tmp_path / "schema.json"), "--epsilon", "1"]
    asked += ["--delta", "1e-9", "--no-ledger", "--out", str(tmp_path / "synthetic.csv")]
    done = CliRunner().invoke(main, ["synthesize", *asked])
    assert done.exit_code == 0, done.output
    assert re.search(r"Pairs with 'place' are of \d+ groups of its states\.", done.output)
    assert list(pd.read_csv(tmp_path / "synthetic.csv")) == list(SCHEMA.variables)


def noise(share):
    return 5.0 / share**0.5


def test_how_many_groups_follows_from_public_numbers():
    wide = dp.Schema({"f": list(range(400)), "a": list("xy"), "b": list("xyz")})
    numbers = [numbers_of_groups(wide, noise, units).get("f") for units in (100, 4000, 10_000, 1_000_000)]
    assert numbers[:1] + numbers[-1:] == [8, None]
    assert numbers[1] < numbers[2] < 200
    assert numbers_of_groups(dp.Schema({"f": list(range(100)), "a": list("xy")}), noise, 100.0) == {}
    assert numbers_of_groups(dp.Schema({"f": list(range(400))}), noise, 100.0) == {}
    ruled = wide.replace(rules=[dp.Forbidden({"f": 0, "a": "x"})])
    assert numbers_of_groups(ruled, noise, 100.0) == {}
    with pytest.raises(dp.SchemaError, match="'f in groups' is that of groups of 'f'"):
        numbers_of_groups(wide.replace(variables={**wide.declared, "f in groups": ["x"]}), noise, None)


@pytest.mark.parametrize(
    ("states", "groups"),
    [
        (list(range(13)), ["0 to 4", 5, "6 to 11", 12]),
        (list("mlkjihgfedcba"), ["m to k", "j to b", "h", "a"]),
    ],
)
def test_frequent_states_are_alone_and_ordered_ones_stay_in_order(states, groups):
    counts = np.array([400, 50, 50, 50, 50, 5000, 100, 100, 50, 50, 50, 50, 30])
    schema = dp.Schema({"f": states, "a": ["x"]}, missing={"f": states[-1]})
    release = dp.NoisyMarginals(schema, {("f",): counts}, {("f",): 1.0}, dp.Guarantee.of(1.0))
    grouped = with_groups(schema, {"f": 4}, release)
    assert list(grouped.states["f in groups"]) == groups
    assert ("f in groups" in grouped.ordered) == ("f" in grouped.ordered) == (states[0] == 0)
    assert grouped.rules[0].found.every == release.guarantee.every


@pytest.mark.parametrize("number", [8, 60, 100])
def test_groups_are_at_most_as_many_as_chosen(number):
    """Else a table whose size was checked before the charge could be refused after it."""
    for seed in range(20):
        generator = np.random.default_rng(seed)
        counts = generator.multinomial(20_000, generator.dirichlet(np.full(200, 0.1)))  # frequent states split the rest
        schema = dp.Schema({"f": list(range(200)), "a": ["x"]})
        release = dp.NoisyMarginals(schema, {("f",): counts}, {("f",): 1.0}, dp.Guarantee.of(1.0))
        grouped = with_groups(schema, {"f": number}, release)
        assert number // 2 < grouped.cardinality("f in groups") <= number


@pytest.mark.parametrize(
    "states",
    [
        ["a to b", "a", "b", "c", "d"],  # a state that is named as a group of others would be
        [*range(6), *map(str, range(6))],
        ["x to y", "z", "x", "y to z"],
    ],
)
def test_groups_have_names_of_their_own(states):
    """Else the schema would be refused, after the first stage was paid for."""
    schema = dp.Schema({"f": states, "a": ["x"]})
    alike = len(states) in (4, 12)
    counts = np.full(len(states), 100) if alike else np.array([10_000, 50, 50, 50, 50])
    release = dp.NoisyMarginals(schema, {("f",): counts}, {("f",): 1.0}, dp.Guarantee.of(1.0))
    grouped = with_groups(schema, {"f": len(states) // 2 if alike else 3}, release)
    names = grouped.states["f in groups"]
    assert len(set(names)) == len(names) == grouped.structure.refined["f"][1].max() + 1
    assert any(str(name).endswith("(other)") for name in names)


def test_states_of_a_table_that_is_too_large_are_grouped_however_many_records():
    schema = dp.Schema({name: list(range(450)) for name in "abcd"})
    noise = (1.0).__rmul__
    assert numbers_in_families(schema, [("a", "b", "c"), ("c", "d")], noise, None) == dict.fromkeys("abc", 100)
    assert numbers_in_families(schema, [("a", "b"), ("c", "d")], noise, None) == {}


def test_noise_in_tables_of_groups_is_no_reason_to_group():
    schema = dp.Schema({"f": list(range(1000)), "a": ["x", "y"]})
    grouped = with_groups(schema, {"f": 120}, None)
    for each, name in ((grouped, "f in groups"), (schema, "f")):
        clique = name, "a"
        assert each.cardinality(name) > 100
        tables = {clique: np.zeros(each.shape(clique), dtype=np.int64)}
        (reason,) = hidden_by_noise([dp.NoisyMarginals(each, tables, {clique: 9.0}, dp.Guarantee.of(1.0))])
        assert ("measure such variables in groups" in reason) == (name == "f")


@pytest.mark.parametrize("source", ["frame", "lazy", "counts"])
def test_a_record_is_in_one_cell_of_a_table_of_groups(source):
    """By brute force: whatever the groups, neighbours' tables of them differ by one record in one cell."""
    schema = dp.Schema({"f": list("pqrs"), "g": list("xyz"), "a": list("uv")})
    cliques = [("f in groups",), ("f in groups", "g in groups"), ("a", "g in groups"), ("f",)]
    rows = frame_of(itertools.product("pqrs", "xyz", "uv"))
    draw = np.random.default_rng(0)
    for _ in range(5):
        grouped = schema
        for name in ("f", "g"):
            merged = {state: f"group {draw.integers(2)}" for state in schema.states[name]}
            declared = {**grouped.declared, f"{name} in groups": sorted(set(merged.values()))}
            rule = dp.Hierarchy(name, f"{name} in groups", merged, column=False)
            grouped = grouped.replace(variables=declared, rules=[*grouped.rules, rule])
        base = rows.sample(9, random_state=0)
        without = counted(source, base, schema, grouped, cliques)
        for place in range(len(rows)):
            record = rows.iloc[[place]]
            tables = counted(source, pd.concat([base, record]), schema, grouped, cliques)
            for clique in cliques:
                moved = tables[clique] - without[clique]
                cell = tuple(
                    grouped.states[v].index(dict(grouped.rules["fg".index(v[0])].states)[record[v[0]].item()])
                    if v.endswith("groups") else grouped.states[v].index(record[v].item())
                    for v in clique
                )  # fmt: skip
                assert moved[cell] == abs(moved).sum() == 1


def frame_of(rows):
    return pd.DataFrame(list(rows), columns=["f", "g", "a"])


def counted(source, records, schema, grouped, cliques):
    if source == "lazy":
        records = polars.from_pandas(records).lazy()
    if source == "counts":
        records = {("f", "g", "a"): dp.exact_marginals(records, schema, [("f", "g", "a")]).tables["f", "g", "a"]}
    return open_records(records, schema, schema.variables).under(grouped).counts(cliques)


def test_a_plan_foresees_the_groups():
    plan = dp.PairwiseMixture(1.0, 1e-9).plan(SCHEMA, records=8000)
    assert 8 <= plan.schema.cardinality("place in groups") <= 40
    assert ("place in groups", "age in groups") in plan.noise
    assert plan.outlook.error is not None
    too_large = dp.Schema({"f": list(range(20_000)), "g": list(range(20_000)), "a": ["x", "y"]})
    dp.PairwiseMixture(1.0, 1e-9).plan(PublicRecords.of(too_large, 1e-9))  # pairs of states could not be counted
