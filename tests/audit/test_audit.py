"""Audits: every mechanism and every whole fit stays below its claim, and planted bugs are caught.

What fits say for certain, test_analyst_half.py sees without trials; their audits are slow.

Noise is OpenDP's. A correct mechanism is refuted with probability at most FALSE_ALARM in each audit, and there are
about fifty in the default run and a hundred and thirty in the slow one. An audit misses a planted bug with probability
below 1e-4; one that does is repeated with twice the trials, so that a run does not fail by chance.
"""

import itertools
import re
from dataclasses import dataclass
from functools import partial
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from pgmpy.models import DiscreteBayesianNetwork
from trials import Bottomless, Noise

import pgmpy_dp as dp
from pgmpy_dp.data.mechanisms.partition_selection import PartitionSelection
from pgmpy_dp.evaluation import audit
from pgmpy_dp.evaluation.auditing import Observer
from pgmpy_dp.privacy import OPENDP_NOISE, SimulatedNoise

pytestmark = pytest.mark.full

FALSE_ALARM = 1e-6
CONFIDENCE = 1 - FALSE_ALARM
DELTA = 0.1  # of the mechanisms and fits that have one


def audited(mechanism, epsilon, times, trials):
    """An audit of a claim of epsilon, with some times the noise, or for draws an epsilon that is so much larger."""
    spent, noise = (epsilon / times, 1.0) if mechanism.draws else (epsilon, times)
    pair = mechanism.pair(noise)
    return audit(lambda data: mechanism.call(data, spent), pair, epsilon, mechanism.delta, trials, CONFIDENCE)


def test_a_mechanism_keeps_its_claim(mechanism):
    """Few trials see what is certain."""
    kept = audited(mechanism, 0.5, 1.0, 80)
    assert not kept.refuted, kept


def test_the_audit_of_a_mechanism_is_not_blind(mechanism):
    """It sees noise far too small: most often in half as many trials as find it every time."""
    if mechanism.relation == "add_remove" and mechanism.name != "sample":
        pytest.skip("both relations in the slow audit; test_costs.py has the exact costs of both")
    tried = dict.fromkeys([max(80, mechanism.quick // 2), mechanism.quick, 2 * mechanism.quick])
    assert any((broken := audited(mechanism, 0.5, 1 / 80, trials)).refuted for trials in tried), broken


@pytest.mark.slow
def test_a_mechanism_keeps_its_claim_and_a_little_less_noise_is_caught(mechanism):
    kept = audited(mechanism, 2.0, 1.0, mechanism.trials)
    assert not kept.refuted, kept
    broken = audited(mechanism, 2.0, mechanism.times, mechanism.trials)
    print(f"{mechanism.name}, {mechanism.relation}: {kept.epsilon_lower:.3f} and {broken.epsilon_lower:.3f} of 2")
    assert broken.refuted, broken


# Whole fits: the estimator with its release and its record of guarantee, and the network.


def test_an_audit_reads_all_results_of_a_fit(fit):
    """An audit that reads parameters alone would refute nothing."""
    if fit.relation == "replace_one":
        pytest.skip("the names of results are the same")
    estimator, network = fit(fit.pair()[0], 0.5)
    for fitted in filter(None, (estimator, network)):
        read = {re.split(r"[.\[]", place)[0] for places in Observer().places(fitted) for place in places}
        results = {name for name in vars(fitted) if name.endswith("_") and not name.startswith("_")}
        results |= {name for name in ("guarantee_",) if hasattr(fitted, name)}  # ours compute it from the fit
        assert results <= read
        assert fitted is not estimator or "guarantee_" in results
        assert "posterior" not in vars(vars(fitted).get("_fit", fitted))  # no draws are made for an audit


def test_so_few_trials_see_what_is_certain():
    """Were it not so, mechanisms would keep their claims whatever they do."""
    for delta in (0.0, DELTA):
        assert audit(lambda count: count, (7, 8), 0.5, delta, 80, CONFIDENCE).refuted


@pytest.mark.slow
def test_a_fit_keeps_its_claim_and_far_too_little_noise_is_caught(fit):
    """A hundredth of the noise: samples hide who is in them, and two steps of a fit show little."""
    kept = audit(lambda data: fit(data, 1.0), fit.pair(), 1.0, fit.delta, 600, CONFIDENCE)
    assert not kept.refuted, kept
    spent, times = (60.0, 1.0) if fit.draws else (1.0, 0.01)
    broken = audit(lambda data: fit(data, spent), fit.pair(times), 1.0, fit.delta, 600, CONFIDENCE)
    print(f"{fit.name}, {fit.relation}: {kept.epsilon_lower:.3f} and {broken.epsilon_lower:.3f} of 1")
    assert broken.refuted, broken


# Bugs in code about the mechanisms. Each gives a function that publishes something and claims epsilon = 2, two
# neighbours, and trials; they are handed a source of OpenDP's noise at some times its scale.

SCHEMA = dp.Schema({"v": ["x", "y"], "w": ["x", "y"]})
SHORT = pd.DataFrame({"v": ["x"] * 4 + ["y"] * 4, "w": ["x", "y"] * 4})
NEIGHBOURS = {
    "add_remove": (SHORT, pd.concat([SHORT, pd.DataFrame({"v": ["x"], "w": ["x"]})])),
    "replace_one": tuple(pd.concat([SHORT, pd.DataFrame({"v": [s], "w": [s]})]) for s in "xy"),
}
ONE, TWO = [("v", "w")], [("v",), ("w",)]


def datasets(neighbours="add_remove", noise=OPENDP_NOISE, pair=None):
    """Two neighbouring data sets with a budget for any number of trials."""
    return tuple(
        dp.PrivateDataset(records, SCHEMA, Bottomless(1.0), neighbours, noise)
        for records in pair or NEIGHBOURS[neighbours]
    )


def too_little_noise(noise):
    return lambda data: data.measure(ONE, 2.0).tables, datasets(noise=noise(0.7)), 4000


def sensitivity_halved(noise):
    return lambda data: data.measure(ONE, 2.0).tables, datasets("replace_one", noise(0.5)), 1000


def of_their_number(noise):
    """Data sets by their numbers of records, which the code about the mechanism sees."""
    return {len(r): data for r, data in zip(NEIGHBOURS["add_remove"], datasets(noise=noise()), strict=True)}


def number_of_records_leaked(noise):
    def scaled_to_the_true_total(records):
        table = dataset[len(records)].measure(ONE, 2.0).tables["v", "w"]
        return table * (len(records) / max(table.sum(), 1))

    dataset = of_their_number(noise)
    return scaled_to_the_true_total, NEIGHBOURS["add_remove"], 600


def number_of_records_leaked_by_the_last_cell(noise):
    def adjusted(records):
        table = dataset[len(records)].measure(ONE, 2.0).tables["v", "w"].copy()
        table[1, 1] += len(records) - table.sum()
        return table

    dataset = of_their_number(noise)
    return adjusted, NEIGHBOURS["add_remove"], 600


def states_read_from_the_records(noise):
    source = noise()

    def fit(records):
        states = {v: sorted(set(records[v])) for v in ("v", "w")}
        data = dp.PrivateDataset(records, dp.Schema(states), dp.PrivacyBudget(2.0), noise=source)
        return data.measure(TWO, 2.0)

    return fit, (SHORT, pd.concat([SHORT, pd.DataFrame({"v": ["z"], "w": ["x"]})])), 300


@dataclass(frozen=True)
class EveryValue(PartitionSelection):
    """It keeps values as if its threshold were one record, whatever it states: the list is read off the records."""

    def draw(self, quote, public, exact, noise):
        _, threshold = quote.terms
        return super().draw(quote, public, {value: rows + threshold - 1 for value, rows in exact.items()}, noise)


def values_below_the_threshold_leaked(noise, relation):
    unknown = dp.Schema({"v": []}, other={"v": "other"})
    common = [SHORT, pd.DataFrame({"v": ["y"]})] if relation == "replace_one" else [SHORT]
    pair = tuple(
        dp.PrivateDataset(records, unknown, dp.PrivacyBudget(1e9, 0.9), relation, noise())
        for records in (pd.concat(common), pd.concat([SHORT, pd.DataFrame({"v": ["z"]})]))
    )
    return lambda data: data.release(EveryValue("v", 2.0, 1e-6)), pair, 600


def error_depends_on_the_records(noise):
    def refuses(records):
        if len(records) > 8:
            raise ValueError("too many records")
        return len(records) * 0

    return refuses, NEIGHBOURS["add_remove"], 300


def first_stage_not_charged(noise):
    """Shares of the budget follow a first look, and show it."""

    def two_stages(data):
        first = data.measure(ONE, 6.0).tables["v", "w"]
        weights = [1.0, 1.0 + abs(int(first[0, 0]))]
        noisy = data.measure(TWO, 2.0, weights=weights)
        return noisy.tables, [2.0 / scale for scale in noisy.scales.values()]

    return two_stages, datasets(noise=noise()), 600


def seed_reused_in_every_release(noise):
    return lambda records: datasets(noise=Seeded(7), pair=[records])[0].measure(ONE, 2.0), NEIGHBOURS["add_remove"], 300


def seed_reused_in_both_tables(noise):
    seeds = itertools.count()

    def release(data):
        seed = next(seeds)
        tables = []
        for clique in TWO:
            data._noise = Seeded(seed)
            tables.append(data.measure([clique], 1.0).tables[clique])
        return tables

    return release, datasets(pair=(SHORT, pd.concat([SHORT, pd.DataFrame({"v": ["x"], "w": ["y"]})]))), 600


def persons(noise, max_rows):
    """Data sets with three more rows of one person, or none."""
    for whose in ([], ["q"] * 3):
        records = SHORT.iloc[:3].assign(who="p")
        records = pd.concat([records, pd.DataFrame({"v": "x", "w": "y", "who": whose})])
        yield dp.PrivateDataset(records, SCHEMA, Bottomless(1.0), noise=noise(), unit="who", max_rows=max_rows)


def rows_of_a_person_without_a_bound(noise):
    """Three rows of a person counted, noise for one."""

    def release(data):
        data._unit = None
        return data.measure(ONE, 2.0)

    return release, tuple(persons(noise, 3)), 600


def weights_of_a_person_that_do_not_sum_to_one(noise):
    """Each row of full weight."""
    with mock.patch("pgmpy_dp.records.memory.row_weights", lambda labels: np.full(labels.size, 2**20)):
        return lambda data: data.measure(ONE, 2.0), tuple(persons(noise, None)), 600


class Seeded(SimulatedNoise):
    private = True

    def __init__(self, seed=7):
        super().__init__(seed)


BUGS = [
    pytest.param(too_little_noise, marks=pytest.mark.slow),  # half of it, below, is seen in a quarter of the trials
    sensitivity_halved,
    number_of_records_leaked,
    number_of_records_leaked_by_the_last_cell,
    states_read_from_the_records,
    partial(values_below_the_threshold_leaked, relation="add_remove"),
    partial(values_below_the_threshold_leaked, relation="replace_one"),
    rows_of_a_person_without_a_bound,
    weights_of_a_person_that_do_not_sum_to_one,
    error_depends_on_the_records,
    first_stage_not_charged,
    seed_reused_in_every_release,
    seed_reused_in_both_tables,
]


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_are_caught(bug):
    function, pair, trials = bug(Noise)
    tried = (trials, 2 * trials)
    assert any(
        (result := audit(function, pair, 2.0, trials=number, confidence=CONFIDENCE)).refuted for number in tried
    ), result


# The same in code about a whole fit: what is published are the fitted estimator and network.


def fitted(data, **options):
    network, estimator = DiscreteBayesianNetwork([("v", "w")]), dp.PrivateMLE(2.0, **options)
    network.fit(data, estimator=estimator)
    return estimator, network


def fit_with_too_little_noise(noise):
    return fitted, datasets(noise=noise(0.7)), 6000


def fit_with_sensitivity_halved(noise):
    return fitted, datasets("replace_one", noise(0.5)), 1500


def fit_that_leaks_the_number_of_records(noise):
    def fit(records):
        estimator, network = fitted(dataset[len(records)])
        estimator.size_ = len(records)
        return estimator, network

    dataset = of_their_number(noise)
    return fit, NEIGHBOURS["add_remove"], 300


def fit_whose_states_are_read_from_the_records(noise):
    def fit(records):
        return fitted(records, state_names={v: sorted(set(records[v])) for v in ("v", "w")})

    return fit, (SHORT, pd.concat([SHORT, pd.DataFrame({"v": ["z"], "w": ["x"]})])), 300


def fit_with_one_seed(noise):
    return lambda records: fitted(datasets(noise=Seeded(7), pair=[records])[0]), NEIGHBOURS["add_remove"], 300


FIT_BUGS = [
    fit_with_too_little_noise,
    fit_with_sensitivity_halved,
    fit_that_leaks_the_number_of_records,
    fit_whose_states_are_read_from_the_records,
    fit_with_one_seed,
]


@pytest.mark.slow
@pytest.mark.parametrize("bug", FIT_BUGS)
def test_planted_bugs_in_whole_fits_are_caught(bug):
    function, pair, trials = bug(Noise)
    result = audit(function, pair, 2.0, trials=trials, confidence=CONFIDENCE)
    print(f"{bug.__name__}: {result}")
    assert result.refuted, result


@pytest.mark.slow
def test_an_uncharged_first_stage_of_a_fit_is_caught():
    """Two thirds of epsilon go to the first stage, and only the second is claimed."""

    def fit(data):
        allocation = dp.papers.DataDependentAllocation(stage1_fraction=2 / 3, sampling_rate=1.0)
        estimator = dp.PrivateMLE(6.0, allocation=allocation, consistency=None)
        estimator.fit(DiscreteBayesianNetwork([("v", "w")]), data)
        return estimator.stage1_release_.tables, estimator.release_.tables

    result = audit(fit, datasets(noise=Noise()), 2.0, trials=800, confidence=CONFIDENCE)
    assert result.refuted, result
