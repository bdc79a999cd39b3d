"""A mixture of noisy pairs: what it measures, charges and refuses, and that it finds what pairs can show."""

import itertools

import numpy as np
import pandas as pd
import pytest

import pgmpy_dp as dp
from pgmpy_dp.evaluation import compare
from pgmpy_dp.fitting.plans.pairs import (
    clear_triples,
    favouring,
    plan_prediction,
    plan_residuals,
    residual_cost,
    residuals_pay,
)
from pgmpy_dp.inference.tables.table import project_to_simplex
from pgmpy_dp.privacy.cost import Approx

SCHEMA = dp.Schema({"a": ["x", "y"], "b": ["x", "y", "z"], "c": dp.Bins([0, 1, 2, 5, 10]), "d": [1, 2, 3]})
SMALL = {"components": 8, "members": 2}


class Quick(dp.PairwiseMixture):
    """It measures alike; a quarter of the steps makes no difference to means over releases."""

    _steps = 100


def records(count=4000, seed=0):
    """Pairs of all strengths: b follows a, c follows b, d is alone."""
    draw = np.random.default_rng(seed)
    a = draw.random(count) < 0.4
    b = np.where(draw.random(count) < 0.8, a.astype(int), draw.integers(3, size=count))
    c = np.where(b == 2, 7.5, b + draw.random(count))
    return pd.DataFrame(
        {"a": np.where(a, "y", "x"), "b": np.array(["x", "y", "z"])[b], "c": c, "d": 1 + draw.integers(3, size=count)}
    )


@pytest.fixture(scope="module")
def frame():
    return records()


@pytest.fixture(scope="module")
def fitted(frame):
    return dp.PairwiseMixture(5.0, 1e-6, SCHEMA, **SMALL).fit(frame)


def test_pairs_are_planned_with_their_shares():
    cliques, weights = dp.plan_pairs(SCHEMA, target="a")
    assert cliques == (("a",), ("b",), ("c",), ("d",), *itertools.combinations("abcd", 2), ("c in detail",))
    whole = sum(weights[:-1])
    assert whole == pytest.approx(1.0)
    assert sum(weights[:4]) == pytest.approx(0.1)
    assert weights[-1] / sum(weights) == pytest.approx(0.03)
    shares = dict(zip(cliques, weights, strict=True))
    assert shares["a", "b"] / shares["b", "d"] == pytest.approx(5 * (6 / 9) ** 0.25)
    assert dp.plan_pairs(dp.Schema({"a": ["x", "y"]})) == ((("a",),), [1.0])
    with pytest.raises(dp.SchemaError, match="'e'"):
        dp.plan_pairs(SCHEMA, target="e")


def test_a_target_is_planned_with_two_others_of_few_states():
    states = {"a": range(2), "b": range(3), "many": range(100), "coarse": range(2), "y": range(2)}
    rule = dp.Dependency("many", "coarse", {state: state % 2 for state in range(100)})
    cliques, weights = plan_prediction(dp.Schema(states, rules=[rule]), "y")
    assert cliques[-4:] == (("a", "b", "y"), ("a", "many", "y"), ("a", "coarse", "y"), ("b", "coarse", "y"))
    assert sum(weights) == pytest.approx(1.0)
    assert sum(weights[-4:]) == pytest.approx(0.45)
    assert plan_prediction(dp.Schema({"a": ["x", "y"], "b": [0, 1]}), "b")[0] == (("a",), ("b",), ("a", "b"))


def share_of_singles(noise):
    parts = {clique: deviation**-2 for clique, deviation in noise.items()}
    return sum(part for clique, part in parts.items() if len(clique) == 1) / sum(parts.values())


@pytest.mark.parametrize("stages", [1, 2])
def test_most_is_spent_on_single_variables_where_noise_drowns_pairs(stages):
    def planned(guess):
        return dp.PairwiseMixture(0.05, 1e-9, SCHEMA, stages=stages, records=guess).plan().noise

    outputs = dp.PairwiseMixture(0.05, 1e-9, SCHEMA, records=300, **SMALL)
    assert outputs.fit(records(300)).release_.noise(("a",))[1] == pytest.approx(outputs.plan().noise[("a",)], rel=1e-3)
    assert share_of_singles(planned(300)) == pytest.approx(0.97, abs=0.02)
    share = 0.13 if stages == 2 else 0.22  # with the finer histograms; tables of residuals have noise of their margins
    assert share_of_singles(planned(None)) == pytest.approx(share, abs=0.03)
    with pytest.raises(ValueError, match="records must be"):
        dp.PairwiseMixture(0.05, 1e-9, SCHEMA, records=0).plan()


@pytest.mark.parametrize("delta", [0.0, 1e-9])
@pytest.mark.parametrize(("epsilon", "spent"), [(0.03, True), (3.0, False)])
def test_single_variables_tell_untold_whether_noise_drowns_pairs(epsilon, spent, delta):
    """Whether most is spent on them follows from the release's own number of records, as planned for that number."""
    data = dp.PrivateDataset(records(1000), SCHEMA, dp.PrivacyBudget(9.0, delta), noise=dp.SimulatedNoise(0))
    estimator = dp.PairwiseMixture(epsilon, delta, **SMALL)
    release = estimator.fit(data).release_
    noise = {clique: release.noise(clique)[1] for clique in (*release.cliques, *release.details)}
    assert (share_of_singles(noise) > 0.8) == spent
    foreseen = estimator.plan(SCHEMA, records=release.total).noise
    assert noise == pytest.approx({clique: foreseen[clique] for clique in noise}, rel=1e-2)
    assert len(data.budget.history) == 1


@pytest.mark.parametrize(("follows", "minimum"), [(False, 0.6), (True, 0.0)])
def test_where_noise_might_drown_pairs_a_taste_of_them_decides(follows, minimum):
    """Ten variables, of which two are or are not copies of another: if they are, the rest is spent on pairs."""
    codes = np.random.default_rng(0).integers(4, size=(1500, 10))
    codes[:, 1:3] = codes[:, :1] if follows else codes[:, 1:3]
    frame = pd.DataFrame({f"v{i}": codes[:, i] for i in range(10)})
    schema = dp.Schema({name: range(4) for name in frame})
    data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(9.0, 1e-9), noise=dp.SimulatedNoise(0))
    release = dp.PairwiseMixture(0.85, 1e-9, **SMALL).fit(data).release_
    found = share_of_singles({clique: release.noise(clique)[1] for clique in release.cliques})
    assert minimum < found < minimum + 0.3


@pytest.mark.parametrize(("common", "spent"), [(0.9, False), (0.125, True)])
def test_noise_drowns_pairs_of_even_variables_and_not_of_those_with_a_common_state(common, spent):
    """Of as many records: counts where most of them are, are much above the mean of all cells."""
    codes = np.random.default_rng(0).choice(8, size=(3000, 8), p=[common, *[(1 - common) / 7] * 7])
    frame = pd.DataFrame({f"v{i}": codes[:, i] for i in range(8)})
    data = dp.PrivateDataset(
        frame, dp.Schema({name: range(8) for name in frame}), dp.PrivacyBudget(9.0, 1e-9), noise=dp.SimulatedNoise(0)
    )
    release = dp.PairwiseMixture(0.3, 1e-9, **SMALL).fit(data).release_
    found = share_of_singles({clique: release.noise(clique)[1] for clique in release.cliques})
    assert (found > 0.8) == spent
    assert (found < 0.2) != spent


def test_what_pairs_do_not_say_is_no_farther_than_from_single_variables():
    """Of independent columns, beside what all is spent on: means over 30 and 80 draws of noise, whose ratio has a
    standard deviation of .025. With a half of the privacy loss for pairs it would be 1.4."""
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({f"v{i}": draw.choice(6, 2000, p=[0.3, 0.3, 0.2, 0.1, 0.1, 0.0]) for i in range(8)})
    schema = dp.Schema({name: range(6) for name in frame})
    pairs = list(itertools.combinations(schema.variables, 2))
    exact = {pair: table / 2000 for pair, table in dp.exact_marginals(frame, schema, pairs).tables.items()}
    data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(20.0, 1e-6), noise=dp.SimulatedNoise(0))

    def error(found):
        return np.mean([np.abs(found(pair) - table).sum() for pair, table in exact.items()])

    def alone():
        release = data.measure([(v,) for v in schema.variables], 0.1, delta=1e-9)
        shares = {v: project_to_simplex(release.tables[v,] / release.total) for v in schema.variables}
        return error(lambda pair: np.outer(*map(shares.__getitem__, pair)))

    mixture = Quick(0.1, 1e-9, **SMALL)
    found = np.mean([error(mixture.fit(data).network_.marginal) for _ in range(30)])
    assert found < 1.1 * np.mean([alone() for _ in range(80)])


@pytest.mark.parametrize("stages", [1, 2])
def test_what_two_variables_tell_of_a_target_together_is_learned(stages):
    """Pairs say nothing of an exclusive or."""
    generator = np.random.default_rng(0)
    a, b, other = generator.integers(2, size=(3, 4000))
    y = (a ^ b) ^ (generator.random(4000) < 0.1)
    frame = pd.DataFrame({"a": a, "b": b, "other": other, "y": y})
    schema = dp.Schema({variable: [0, 1] for variable in frame})

    def outputs(target):
        data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(2.0, 1e-6), noise=dp.SimulatedNoise(0))
        network = dp.PairwiseMixture(2.0, 1e-6, target=target, stages=stages, **SMALL).fit(data).network_
        return network.query(["y"], {"a": 0, "b": 1}).get_value(y=1)

    assert outputs("y") > 0.8
    assert outputs(None) < 0.65


def test_pairs_of_records_come_back(frame, fitted):
    exact = dp.exact_marginals(frame, SCHEMA, itertools.combinations("abcd", 2))
    for pair, table in exact.tables.items():
        assert np.abs(fitted.network_.marginal(pair) - table / table.sum()).sum() / 2 < 0.02, pair
    assert fitted.network_.total_ == fitted.release_.total == pytest.approx(4000, rel=0.01)


def test_a_release_is_fitted_for_nothing_and_alike(fitted):
    again = dp.PairwiseMixture(**SMALL).fit(fitted.release_)
    assert (again.network_.marginal(["a", "b", "c"]) == fitted.network_.marginal(["a", "b", "c"])).all()
    with pytest.raises(ValueError, match="already paid for"):
        dp.PairwiseMixture(1.0).fit(fitted.release_)
    with pytest.raises(ValueError, match="leave out stages, target and records"):
        dp.PairwiseMixture(stages=2).fit(fitted.release_)


def test_residuals_of_few_states_bring_pairs_closer():
    """Of twelve switches, the residuals of a pair cost a quarter of its table."""
    draw = np.random.default_rng(0)
    rows = [draw.integers(2, size=4000)]
    for _ in range(11):
        rows.append(np.where(draw.random(4000) < 0.8, rows[-1], draw.integers(2, size=4000)))
    frame = pd.DataFrame({f"v{i}": row for i, row in enumerate(rows)})
    schema = dp.Schema({variable: [0, 1] for variable in frame})

    def error(seed, **how):
        data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(0.5, 1e-6), noise=dp.SimulatedNoise(seed))
        estimator = Quick(0.5, 1e-6, members=4, **how).fit(data)
        assert estimator.guarantee_.epsilon == 0.5
        found = compare(frame, estimator.network_, schema)["error"]
        return found[[len(scope) == 2 for scope in found.index]].mean(), estimator

    closer, estimators = zip(*(error(seed) for seed in range(6)), strict=True)
    assert all(isinstance(estimator.release_, dp.NoisyResiduals) for estimator in estimators)
    with pytest.warns(DeprecationWarning, match="leave it out"):
        assert np.mean(closer) < 0.9 * np.mean([error(seed, measure="tables")[0] for seed in range(6)])


def test_a_mixture_of_residuals_is_saved_with_its_bounds_and_checked(tmp_path):
    frame = records()
    data = dp.PrivateDataset(frame, SCHEMA, dp.PrivacyBudget(2.0, 1e-6), noise=dp.SimulatedNoise(0))
    network = dp.PairwiseMixture(2.0, 1e-6, **SMALL).fit(data).network_
    assert isinstance(network.release_, dp.NoisyResiduals)
    assert network.release_.details.keys() == {("c in detail",)}
    assert network.expectation(["c"])["value"]["c"] == pytest.approx(np.floor(frame["c"]).mean(), rel=0.05)
    bounds = network.query(["b"], {"a": "y"}, interval=0.99)
    truth = frame.loc[frame["a"] == "y", "b"].value_counts(normalize=True)[bounds.index]
    assert ((bounds["lower"] < truth) & (truth < bounds["upper"])).all()
    assert not network.check_fit().fails
    network.save(tmp_path / "network.zip")
    again = dp.load(tmp_path / "network.zip")
    pd.testing.assert_frame_equal(again.query(["b"], {"a": "y"}, interval=0.99), bounds)


@pytest.mark.filterwarnings("ignore:measure=:DeprecationWarning")
def test_a_stage_of_residuals_is_followed_by_residuals():
    """Each stage judges again whether noise drowns pairs, which it nearly does here."""
    schema = dp.Schema({"a": ["u", "v", "?"], "b": ["u", "v", "w"], "c": dp.Bins(range(11))})
    draw = np.random.default_rng(0)
    a = draw.choice(["u", "v"], 600)
    frame = pd.DataFrame({"a": a, "b": np.where(draw.random(600) < 0.8, a, "w"), "c": draw.integers(0, 10, 600)})
    for seed in range(12):
        data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(1.0, 1e-6), noise=dp.SimulatedNoise(seed))
        release = Quick(1.0, 1e-6, members=1, components=2).fit(data).release_
        assert isinstance(release, dp.NoisyResiduals)


def test_variables_of_one_state_have_no_residuals():
    schema = dp.Schema({"a": ["x"], "b": ["x"]})
    data = dp.PrivateDataset(pd.DataFrame({"a": ["x"] * 50, "b": ["x"] * 50}), schema, dp.PrivacyBudget(1.0, 1e-6))
    release = dp.PairwiseMixture(epsilon=1.0, delta=1e-6, members=1).fit(data).release_
    assert isinstance(release, dp.NoisyMarginals)


@pytest.mark.parametrize(("variables", "pays"), [(200, True), (201, False)])
def test_residuals_of_very_many_pairs_are_not_planned(variables, pays):
    schema = dp.Schema({f"v{number}": ["yes", "no"] for number in range(variables)} | {"constant": ["always"]})
    assert residuals_pay(schema) == pays


def test_residuals_are_planned_where_states_are_few_and_nothing_needs_tables():
    few, many = (dp.Schema({name: range(states) for name in "abc"}) for states in (2, 9))
    one = dp.Schema({name: [0, 1] for name in "abcdef"} | {"g": range(101)})

    def residuals(schema, records=None, **options):
        estimator = dp.PairwiseMixture(**{"epsilon": 1.0, "delta": 1e-6, **options})
        return estimator.plan(schema, records).mechanism.measures_residuals(records)

    assert [residuals(schema) for schema in (few, many, one)] == [True, False, False]
    assert [residuals(few, records) for records in (10_000, 10)] == [True, False]  # noise drowns the pairs of ten
    rule = dp.Dependency("a", "b", {0: 0, 1: 1})
    others = {"Laplace noise": {"delta": 0.0}, "stages=2": {"stages": 2}, "a target": {"target": "a"}}
    for reason, options in others.items():
        with pytest.raises(ValueError, match=f"not measured with {reason}"):
            residuals(few, measure="residuals", **options)
        assert not residuals(few, **options)
    with pytest.raises(ValueError, match="dependencies and hierarchies"):
        residuals(dp.Schema(few.states, rules=[rule]), measure="residuals")
    frame = pd.DataFrame({name: [0, 1] * 50 for name in "abc"})
    for change in ({"unit": "c"}, {"weights": "c", "largest_weight": 1.0}):
        data = dp.PrivateDataset(frame, few.select(["a", "b"]), dp.PrivacyBudget(1.0, 1e-6), **change)
        with pytest.raises(ValueError, match="units or weights"):
            dp.PairwiseMixture(1.0, 1e-6, measure="residuals").fit(data)
    ruled = dp.PrivateDataset(
        pd.DataFrame({"a": [0, 1], "b": [0, 1]}),
        dp.Schema({"a": [0, 1], "b": [0, 1]}, rules=[rule]),
        dp.PrivacyBudget(9.0, 1e-6),
    )
    with pytest.raises(ValueError, match="under dependencies"):
        dp.PairwiseMixture().fit(ruled.measure_residuals({(): 9.0, ("a",): 9.0, ("b",): 9.0}, delta=1e-6))
    thousand = pd.concat([frame] * 10, ignore_index=True)
    informed = dp.PairwiseMixture(1.0, 1e-6, few, **SMALL).fit(thousand, public={"a": [0.5, 0.5]})
    assert isinstance(informed.release_.noisy, dp.NoisyResiduals)


def test_residuals_are_planned_with_their_shares():
    triples = {("a", "b", "d"): 0.3}
    for neighbours, total in (("add_remove", 0.005), ("replace_one", 0.0)):
        scales = plan_residuals(SCHEMA, 0.2, neighbours, triples)  # beside tables of single variables
        paid = {clique: residual_cost(SCHEMA, clique) / scale**2 for clique, scale in scales.items()}
        detail = paid.pop(("c in detail",))
        by_size = [sum(part for clique, part in paid.items() if len(clique) == size) for size in range(4)]
        assert by_size == pytest.approx([total, 0.7 * 0.2, 0.7 * 0.8, 0.3])
        assert detail == pytest.approx(0.03 / 0.97)
    assert scales["a", "b"] / scales["b", "d"] == pytest.approx((6 / 9) ** -0.125)
    assert residual_cost(SCHEMA, ("a", "b")) == pytest.approx(1 / 2 * 2 / 3)


@pytest.mark.filterwarnings("ignore:measure=:DeprecationWarning")
@pytest.mark.parametrize("measure", ["tables", "auto"])
def test_triples_are_measured_where_their_noise_would_be_small(measure):
    """Of three switches of which each pair is independent, only the triple tells the parity."""
    generator = np.random.default_rng(0)
    a, b, d = generator.integers(2, size=(3, 4000))
    frame = pd.DataFrame({"a": a, "b": b, "c": a ^ b, "d": d})
    schema = dp.Schema({variable: [0, 1] for variable in frame})

    def measured(guess):
        data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(1.0, 1e-6), noise=dp.SimulatedNoise(0))
        return dp.PairwiseMixture(1.0, 1e-6, records=guess, measure=measure, **SMALL).fit(data)

    outputs, few = measured(4000), measured(100)
    assert max(map(len, few.release_.cliques)) == 2
    assert sum(len(clique) == 3 for clique in outputs.release_.cliques) == 4
    assert outputs.network_.query(["c"], {"a": 1, "b": 1}).get_value(c=0) > 0.8


def test_triples_that_are_too_large_are_left_out_and_few_are_not_worth_it():
    """The noise of the largest chosen is below the bound, and that of one more would not be."""
    schema = dp.Schema({name: range(states) for name, states in zip("abcdef", (2, 2, 3, 3, 6, 9), strict=True)})
    sizes = sorted(schema.cells(triple) for triple in itertools.combinations("abcdef", 3))

    def noise(count):  # of the largest of the smallest triples, beside its mean cell
        shares = 0.3 * np.sqrt(sizes[:count]) / np.sqrt(sizes[:count]).sum()
        return 5.0 * shares[-1] ** -0.5 * sizes[count - 1]

    for count in (4, 9, 19):
        found = clear_triples(schema, (noise(count) + 1e-9) / 0.3, 5.0)
        assert sorted(map(schema.cells, found)) == sizes[:count]
        assert sum(found.values()) == pytest.approx(0.3)
    assert clear_triples(schema, noise(3) / 0.3, 5.0) == {}
    rule = dp.Dependency("f", "e", {state: state % 6 for state in range(9)})
    held = clear_triples(dp.Schema(schema.states, rules=[rule]), 1e9, 5.0)
    assert not any({"e", "f"} <= set(triple) for triple in held)


def test_rows_of_a_person_count_together(frame):
    persons = frame.assign(person=np.arange(len(frame)) // 2)
    for rows in (1, 2, None):
        budget = dp.PrivacyBudget(5.0, 1e-6)
        data = dp.PrivateDataset(persons, SCHEMA, budget, unit="person", max_rows=rows)
        assert dp.PairwiseMixture(5.0, 1e-6, **SMALL).fit(data).guarantee_.unit == "person"
        assert isinstance(budget.history[0].loss, Approx)  # one block


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"epsilon": 1.0, "delta": 1e-6, "stages": 3}, "stages"),
        ({"epsilon": 1.0, "delta": 1e-6, "components": 0}, "components"),
        ({"epsilon": 1.0, "delta": 1e-6, "target": "e"}, "'e'"),
        ({"epsilon": 1.0, "mechanism": "laplace", "stages": 2}, "Two stages"),
        ({"epsilon": 1.0, "delta": 1e-6, "mechanism": "gauss"}, "mechanism"),
        ({}, "epsilon"),
    ],
)
def test_what_cannot_be_is_refused_unpaid(frame, options, said):
    budget = dp.PrivacyBudget(1.0, 1e-6)
    with pytest.raises(ValueError, match=said):
        dp.PairwiseMixture(**options).fit(dp.PrivateDataset(frame, SCHEMA, budget))
    assert not budget.history


def test_wanted_pairs_get_more_of_the_same_whole():
    shares = {("a",): 0.1, ("a", "b"): 0.3, ("a", "c"): 0.3, ("b", "c"): 0.3}
    found = favouring(shares, {("a", "b"): 1.0, ("a", "c"): 3.0, ("b", "c"): 2.0})
    assert list(found) == list(shares)
    assert found["a",] == 0.1
    assert sum(found.values()) == pytest.approx(1.0)
    assert found["a", "b"] < found["b", "c"] < found["a", "c"]
