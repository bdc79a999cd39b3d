"""The wall stamps what it hands out with its cost and all that shaped it; in several answers each cost counts once."""

import copy
import pickle
import warnings
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pgmpy_dp as dp
from pgmpy_dp.data.mechanisms.steps import Choose, Measure, Step, TablesInSteps
from pgmpy_dp.data.mechanisms.tables import CountedTables
from pgmpy_dp.errors import ReleaseFormatError
from pgmpy_dp.privacy.blocks import gaussian_delta
from pgmpy_dp.privacy.guarantee import DECLARED, learned
from pgmpy_dp.release import Guarantee, NoisyMarginals, Release
from pgmpy_dp.release.kinds import check_gaussian, joint_guarantee

RECORDS = pd.DataFrame({"place": ["Ulm"] * 300 + ["Bonn"] * 200, "age": [*range(100)] * 5})
OPEN = dp.Schema({"place": [], "age": dp.Bins(range(0, 101, 10))}, other={"place": "elsewhere"})
PLACES = dp.Schema({"place": ["Bonn", "Kiel", "Ulm"], "age": dp.Bins([0, 50, 100])})


def data_set(schema, budget, **options):
    return dp.PrivateDataset(RECORDS, schema, budget, **options)


@pytest.fixture
def budget():
    return dp.PrivacyBudget(10.0, 1e-3)


@pytest.fixture
def found(budget):
    return data_set(OPEN, budget).discover_states("place", 0.5, delta=1e-7)


def stated(release):
    return release.guarantee.epsilon, release.guarantee.delta


@pytest.mark.parametrize(
    "measure",
    [
        lambda data: data.measure([("place",)], 1.0),
        lambda data: data.measure([("age",)], 1.0, delta=1e-6, mechanism="gaussian"),
        lambda data: data.measure([("age",)], 1.0, delta=1e-6, mechanism="gaussian_block"),
        lambda data: data.measure_coefficients([("age",)], 1.0),
        lambda data: data.sample_posterior([("age",)], {("age",): np.ones(10)}, 1.0),
        lambda data: data.plan(2, epsilon=1.0, delta=1e-6, sampling_rate=0.5),
        lambda data: data.release(TablesInSteps([Step(1.0)], 1.0, 0.0, _one_table, "steps"))[0],
    ],
    ids=["laplace", "gaussian", "block", "coefficients", "posterior", "sums", "steps"],
)
def test_what_is_released_under_discovered_states_states_the_sum(found, measure, budget):
    """Also of other variables: the schema goes out with it."""
    assert stated(found) == (0.5, 1e-7)
    released = measure(data_set(found.schema, dp.PrivacyBudget(10.0, 1e-3)))
    assert released.guarantee.epsilon == pytest.approx(1.5)
    assert released.guarantee.epsilon >= 1.5 - 1e-12
    assert found.guarantee.costs == released.guarantee.earlier
    assert "private partition selection before" in str(released.guarantee)


def _one_table():
    return (yield Measure([("age",)], [1.0]))


def test_bins_know_where_they_are_from(budget):
    data = data_set(OPEN, budget)
    bins = data.quantile_bins("age", 3, 0.25)
    assert bins.found.epsilon == 0.25
    assert pickle.loads(pickle.dumps(bins)).found == bins.found
    schema = dp.Schema({"age": bins, "place": ["Ulm", "Bonn"]})
    assert stated(data_set(schema, budget).measure([("place",)], 1.0)) == (1.25, 0.0)
    assert schema.replace(variables={**schema.declared, "age": dp.Bins([0, 50, 100])}).guarantee == DECLARED
    twice = data_set(schema, budget).quantile_bins("age", 2, 0.5)
    assert sorted(cost.epsilon for cost in twice.found.every) == [0.25, 0.5]


def test_two_findings_sum_and_equal_findings_are_two(found, budget):
    again = data_set(OPEN, budget).discover_states("place", 0.5, delta=1e-7)
    assert again.states == found.states
    one, two = (data_set(each.schema, budget).measure([("place",)], 1.0) for each in (found, again))
    assert stated(one + two) == (3.0, 2e-7)
    bins = data_set(found.schema, budget).quantile_bins("age", 3, 0.25)
    both = found.schema.replace(variables={**found.schema.declared, "age": bins})
    assert stated(data_set(both, budget).measure([("age",)], 1.0)) == (1.75, 1e-7)


def test_releases_that_are_joined_count_what_they_have_in_common_once(found, budget):
    data = data_set(found.schema, budget)
    one, two = data.measure([("place",)], 1.0), data.measure([("age",)], 0.25)
    assert stated(one + two) == (1.75, 1e-7)
    assert stated(one + two + data.measure([("age", "place")], 1.0)) == (2.75, 1e-7)
    network = dp.PrivateBayesianNetwork()
    network.add_nodes_from(["place", "age"])
    assert network.fit([one, two], estimator=dp.PosteriorMean()).guarantee_.epsilon == 1.75


def test_schemas_and_releases_keep_it_in_files(found, budget, tmp_path):
    found.schema.save(tmp_path / "schema.json")
    schema = dp.Schema.load(tmp_path / "schema.json")
    assert schema == found.schema
    assert schema.guarantee == found.schema.guarantee == pickle.loads(pickle.dumps(schema)).guarantee
    bins = data_set(schema, budget).quantile_bins("age", 3, 0.25)
    schema = schema.replace(variables={**schema.declared, "age": bins})
    assert dp.Schema.from_dict(schema.to_dict()).bins["age"].found == bins.found
    noisy = data_set(schema, budget).measure([("place",)], 1.0)
    for release in (found, noisy):
        release.save(tmp_path / "release.zip")
        back = Release.load(tmp_path / "release.zip")
        assert (back, back.guarantee, back.schema.guarantee) == (release, release.guarantee, release.schema.guarantee)
    two = data_set(schema, budget).measure([("age",)], 0.25)
    assert stated(back + two) == (2.0, 1e-7)


def test_a_part_of_a_schema_keeps_what_it_says(found):
    cost = found.schema.guarantee
    assert cost.every == found.guarantee.every
    assert found.schema.select(["age"]).guarantee == DECLARED
    assert found.schema.select(["place"]).guarantee == cost
    assert found.schema.with_states("place", ["Ulm"]).guarantee == cost
    assert dp.Schema({"x": [0, 1]}).join(found.schema).guarantee == cost
    assert dp.Schema({"place": found.states}).guarantee == cost
    assert dp.agree([dp.Schema({"place": ["Ulm", "Kiel"]}), dp.Schema({"place": found.states})]).guarantee == cost
    household = dp.HouseholdSchema(dp.Schema({"home": ["a", "b"]}), found.schema, key="id", max_persons=2)
    assert household.measured.guarantee == cost
    assert learned(dp.plan_pairs(found.schema)[0]) == learned(dp.plan_households(household)) == cost


def test_rules_and_finer_bins_keep_it_too(budget):
    merged = dp.merge_rare_states(data_set(PLACES, budget).measure([("place",)], 0.5), "place", "area")
    (rule,) = merged.rules
    groups = ["Bonn", "Ulm", "Kiel", "rare"]
    by_hand = dp.Schema({"place": ["Bonn", "Kiel", "Ulm"], "area": groups}, rules=[rule])
    assert by_hand.guarantee.epsilon == dp.Schema.from_dict(by_hand.to_dict()).guarantee.epsilon == 0.5
    bins = data_set(OPEN, budget).quantile_bins("age", 3, 0.25)
    assert bins.closed().found == bins.found
    assert bins.fine.found == bins.found


def test_what_is_chosen_by_hand_in_view_of_a_release_names_it(budget):
    data = data_set(dp.Schema({"place": ["Bonn", "Kiel", "Ulm"]}), budget)
    first = data.measure([("place",)], 0.5)
    second = data.after(first).measure([("place",)], 1.0)
    assert (second.guarantee.epsilon, second.guarantee.own.epsilon) == (1.5, 1.0)
    assert (first + second).guarantee.epsilon == 1.5
    assert data.after(first).set_aside(1.0).measure([("place",)], 0.25).guarantee.epsilon == 0.75
    assert data.after(first).plan(2, epsilon=1.0, delta=1e-6, sampling_rate=0.5).guarantee.epsilon == 1.5


def test_the_ledger_reminds_of_what_it_paid_for_and_an_answer_does_not_carry(found, budget):
    with pytest.warns(
        UserWarning, match="The ledger paid for states of place, whose cost this answer does not include"
    ):
        data_set(dp.Schema({"place": ["Bonn", "Ulm"]}), budget).measure([("place",)], 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data_set(found.schema, budget).measure([("place",)], 1.0)
        data_set(OPEN, budget).quantile_bins("age", 3, 0.25)  # a choice itself


def test_an_answer_states_what_its_ledger_has_paid_in_all(found, budget):
    noisy = data_set(found.schema, budget).set_aside(2.0).measure([("place",)], 1.0)
    (own,) = noisy.guarantee.costs
    assert own.ledger_total == (2.5, 1e-7)  # the part is paid for as a whole


@dataclass(frozen=True)
class Forgetful(CountedTables):
    """A mechanism that hands out bare tables."""

    def draw(self, quote, public, exact, noise):
        return super().draw(quote, public, exact, noise).tables


@dataclass(frozen=True)
class Generous(CountedTables):
    """A mechanism that hands out other tables beside those that were paid for."""

    def draw(self, quote, public, exact, noise):
        unpaid = CountedTables(self.cliques, 20.0).quote(public)
        return super().draw(quote, public, exact, noise), super().draw(unpaid, public, exact, noise)


@pytest.mark.parametrize("mechanism", [Forgetful, Generous])
def test_an_answer_states_the_costs_that_were_paid_and_no_others(budget, mechanism):
    with pytest.raises(TypeError, match=f"{mechanism.__name__} hands out an answer that states other costs"):
        data_set(OPEN, budget).release(mechanism([("age",)], 1.0))
    assert budget.spent.epsilon == 1.0


def test_found_for_another_change_nothing_is_released_or_charged(found):
    budget = dp.PrivacyBudget(10.0)
    data = data_set(found.schema, budget, neighbours="replace_one")
    with pytest.raises(ValueError, match="no one promise holds for both"):
        data.measure([("place",)], 1.0)
    assert budget.history == ()


def test_rows_of_units_may_count_otherwise_than_where_states_were_found():
    """All rows of a person differ between neighbours, however many of them count."""
    records, budget = RECORDS.assign(person=[*range(250)] * 2), dp.PrivacyBudget(10.0, 1e-3)
    data = dp.PrivateDataset(records, OPEN, budget, unit="person", max_rows=2)
    schema = data.discover_states("place", 1.0, delta=1e-7).schema
    noisy = dp.PrivateDataset(records, schema, budget, unit="person").measure([("place",)], 1.0)
    assert (*stated(noisy), noisy.guarantee.max_rows) == (2.0, 1e-7, None)


def _chosen():
    ones = np.ones((2, 2))
    chosen = yield Choose({("a", "b"): ones, ("b", "c"): 9 * ones}, lambda _: [("a", "b"), ("b", "c")])
    one = yield Measure(chosen, [1.0])
    two = yield Measure([("a",)], [1.0])
    return one, two


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_every_release_of_a_sequence_promises_the_whole_and_several_promise_it_once(delta, tmp_path):
    data = dp.PrivateDataset(
        np.zeros((9, 3), int), dp.Schema({"a": [0, 1], "b": [0, 1], "c": [0, 1]}), dp.PrivacyBudget(9.0, 1e-3)
    )
    steps = [Step(0.8, 1), Step(0.1), Step(0.1)]
    (one, two), whole = data.release(TablesInSteps(steps, 1.0, delta, _chosen, "steps"))
    assert one.guarantee == two.guarantee == whole
    assert (whole.epsilon, whole.delta) == (1.0, delta)
    assert (one + two).guarantee == whole
    one.save(tmp_path / "one.zip")
    assert stated(NoisyMarginals.load(tmp_path / "one.zip") + two) == (1.0, delta)
    (other, _), _ = data.release(TablesInSteps(steps, 1.0, delta, _chosen, "steps"))
    assert stated(one + two + other) == (2.0, 2 * delta)
    measured = data.measure([("c",)], 0.5, **({"delta": delta, "mechanism": "gaussian"} if delta else {}))
    assert (one + measured + two).guarantee.epsilon == 1.5


def test_a_file_cannot_leave_out_what_found_its_states(found, budget, tmp_path, rewritten):
    path = tmp_path / "release.zip"
    noisy = data_set(found.schema, budget).measure([("place",)], 1.0)
    noisy.save(path)
    rewritten(path, lambda held: held["guarantee"].pop("earlier"))
    with pytest.raises(ReleaseFormatError, match="states something else than its costs"):
        Release.load(path)
    noisy.save(path)
    rewritten(path, lambda held: held.update(guarantee=noisy.guarantee.own.to_dict()))
    assert stated(Release.load(path)) == (1.5, 1e-7)  # the schema states it
    noisy.save(path)
    rewritten(path, lambda held: held.update(guarantee=_cheaper(noisy.guarantee, "0.6").to_dict()))
    with pytest.raises(ReleaseFormatError, match=r"costs epsilon=1, more than the guarantee's 0\.6"):
        Release.load(path)


def _cheaper(guarantee, epsilon):
    costs = frozenset(replace(cost, loss=replace(cost.loss, epsilon=Fraction(epsilon))) for cost in guarantee.costs)
    return replace(guarantee, costs=costs)


GAUSSIAN = {
    "tables": lambda data: data.measure([("a",)], 1.0, delta=1e-6, mechanism="gaussian"),
    "block": lambda data: data.measure([("a",), ("a", "b")], 1.0, delta=1e-6, mechanism="gaussian_block"),
    "residuals": lambda data: data.measure_residuals({(): 5.0, ("a",): 7.0}, delta=1e-6),
}


@pytest.mark.parametrize("kind", GAUSSIAN)
def test_epsilon_and_delta_are_held_against_the_price_of_the_noise(kind, tmp_path, rewritten):
    schema, path = dp.Schema({"a": [0, 1], "b": [0, 1]}), tmp_path / "release.zip"
    data = dp.PrivateDataset(np.zeros((9, 2), int), schema, dp.PrivacyBudget(9.0, 1e-3))
    release = GAUSSIAN[kind](data)
    (cost,) = release.guarantee.costs
    for change in (
        {"epsilon": Fraction(1, 10**6)},
        {"epsilon": cost.epsilon * 85 / 100},
        {"delta": Fraction(1, 10**8)},
    ):
        forged = replace(release.guarantee, costs=frozenset({replace(cost, loss=replace(cost.loss, **change))}))
        with pytest.raises(ValueError, match="Gaussian noise of these scales costs"):
            replace(release, guarantee=forged)
        release.save(path)
        rewritten(path, lambda held, forged=forged: held.update(guarantee=forged.to_dict()))
        with pytest.raises(ReleaseFormatError, match="Gaussian noise of these scales costs"):
            Release.load(path)
    more = replace(release.guarantee, costs=frozenset({replace(cost, loss=replace(cost.loss, epsilon=Fraction(4)))}))
    assert replace(release, guarantee=more).guarantee == more


def test_no_delta_below_the_price_of_the_noise_is_promised():
    rho, epsilon = 0.1, 1.5
    delta = gaussian_delta(2 * rho, epsilon)
    check_gaussian("exact", Guarantee.of(epsilon, delta, rho, "add_remove", "gaussian", True), rho)
    with pytest.raises(ValueError, match="less: Gaussian noise of these scales costs"):
        check_gaussian("less", Guarantee.of(epsilon, delta * (1 - 1e-4), rho, "add_remove", "gaussian", True), rho)


def test_releases_of_two_kinds_of_noise_promise_both(budget):
    """Where the first chose what the second measures: counted once, and named as several."""
    places = data_set(PLACES, budget).measure([("place",)], 0.5)
    merged = dp.merge_rare_states(places, "place", "area")
    pairs = data_set(merged, budget).measure([("area", "age")], 1.0, delta=1e-6, mechanism="gaussian")
    both = joint_guarantee([places, pairs])
    assert (both.epsilon, both.delta, both.rho, both.mechanism) == (1.5, 1e-6, None, "several")
    with pytest.raises(ValueError, match="the same kind of noise"):
        places + pairs


def test_under_states_that_exact_counts_merged_nothing_is_released(budget):
    merged = dp.merge_rare_states(dp.exact_marginals(RECORDS, PLACES, [("place",)]), "place", "area")
    with pytest.raises(ValueError, match="Exact counts are not a release"):
        data_set(merged, budget).measure([("area",)], 1.0)
    assert budget.history == ()


HOMES = dp.HouseholdSchema(dp.Schema({"h": ["x"]}), dp.Schema({"a": ["x", "y"]}), "key", 1)


def household(budget, number=1, **options):
    homes = pd.DataFrame({"key": range(number), "h": "x"})
    return dp.PrivateHouseholds(homes, homes[["key"]].assign(a="x"), HOMES, budget, **options)


def test_what_is_shown_of_households_tells_nothing_of_them(budget):
    assert repr(household(budget, 7)) == repr(household(budget, 4711))
    assert repr(household(budget)).startswith("PrivateHouseholds(1 + 1 variables, key='key', neighbours='add_remove'")
    assert household(budget).household_schema is HOMES
    for options, error in (({"neighbours": "swap"}, ValueError), ({"noise": dp.SimulatedNoise}, TypeError)):
        with pytest.raises(error, match=next(iter(options))):
            household(budget, **options)
    with pytest.raises(TypeError, match="HouseholdSchema"):
        dp.PrivateHouseholds(None, None, dp.Schema({"a": ["x"]}), budget)


KEPT = {
    "records": lambda budget: data_set(OPEN, budget),
    "plan of sums": lambda budget: data_set(OPEN, budget).plan(1, epsilon=1.0, delta=1e-5, sampling_rate=0.5),
    "households": household,
    "documents": lambda budget: dp.PrivateDocuments(np.ones((1, 1), dtype=np.int64), ["word"], budget, 1),
    "features": lambda budget: dp.PrivateFeatures([[1.0]], ["no"], budget=budget, bounds=(0, 1), classes=["no", "yes"]),
    "budget": lambda budget: budget,
}


@pytest.mark.parametrize("kept", KEPT)
def test_what_holds_records_or_a_budget_is_neither_copied_nor_pickled(kept, budget):
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match=r"copied|spent again"):
            duplicate(KEPT[kept](budget))


@pytest.mark.parametrize(
    ("kept", "module"),
    [("households", "records.households"), ("documents", "data.documents"), ("features", "data.features")],
)
def test_more_records_than_sums_hold_are_refused_when_they_are_handed_in(kept, module, budget, monkeypatch):
    """A refusal that came with a plan would tell how many there are; tests/data/test_sums.py has the number itself."""

    def refuse(records):
        raise dp.SchemaError(f"{records} of them")

    monkeypatch.setattr(f"pgmpy_dp.{module}.require_summable", refuse)
    with pytest.raises(dp.SchemaError, match="of them"):
        KEPT[kept](budget)


def rows(**options):
    frame = pd.DataFrame({"a": ["x", "y"], "who": 1, "w": [1.0, 2.0]})
    return lambda budget: dp.PrivateDataset(frame, dp.Schema({"a": ["x", "y"]}), budget, **options)


NOT_ALIKE = {
    "rows of persons": rows(unit="who", max_rows=2),
    "persons of weight one": rows(unit="who"),
    "survey weights": rows(weights="w", largest_weight=2.0),
    "households": household,
}
ALIKE = {
    "sample": lambda data: data.measure([("a",)], 0.5, sampling_rate=0.5),
    "block": lambda data: data.measure([("a",)], 0.5, delta=1e-6, mechanism="gaussian_block"),
    "coefficients": lambda data: data.measure_coefficients([("a",)], 0.5),
    "residuals": lambda data: data.measure_residuals({(): 9.0, ("a",): 9.0}, delta=1e-6),
    "posterior": lambda data: data.sample_posterior([("a",)], {("a",): np.ones(2)}, 0.5),
    "sums": lambda data: data.plan(1, epsilon=0.5, delta=1e-6, sampling_rate=0.5),
}


@pytest.mark.parametrize("mechanism", ALIKE)
@pytest.mark.parametrize("kind", NOT_ALIKE)
def test_what_is_priced_for_single_records_is_refused_unpaid_elsewhere(kind, mechanism, budget):
    with pytest.raises(ValueError, match=r"single records|weight"):
        ALIKE[mechanism](NOT_ALIKE[kind](budget))
    assert budget.history == ()


def test_a_sample_is_refused_unpaid_where_records_are_replaced(budget):
    with pytest.raises(ValueError, match="add or remove a record"):
        ALIKE["sample"](rows(neighbours="replace_one")(budget))
    assert budget.history == ()
