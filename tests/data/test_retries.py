"""Trying until it is good enough: the price whatever the number of tries, exact odds, and what a try can reach."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
import threading
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pgmpy_dp as dp
from pgmpy_dp.data.mechanisms.retries import _delta_of_one
from pgmpy_dp.privacy import Charge, PrivacyBudget

SCHEMA = dp.Schema({"a": ["x", "y"]})
FRAME = pd.DataFrame({"a": ["x"] * 300 + ["y"] * 700})


def dataset(budget=None, **options):
    return dp.PrivateDataset(FRAME, SCHEMA, budget or PrivacyBudget(1.0), **options)


def outcome(one_try, stop):
    """The exact odds of what comes out of tries: results, and None, from those of one try."""
    failed = one_try[None]
    whole = 1 - (1 - stop) * failed
    return {result: (stop if result is None else 1.0) * odds / whole for result, odds in one_try.items()}


def test_odds_are_those_of_the_algorithm():
    generator = np.random.default_rng(0)
    one_try, trials = {"good": 0.1, "fair": 0.2, None: 0.7}, 2000
    data = dataset(PrivacyBudget(1e6), noise=dp.SimulatedNoise(0))

    def attempt(part):
        return generator.choice(np.array(list(one_try), dtype=object), p=list(one_try.values()))

    found = [data.retry(attempt, 1.0, stop=0.2) for _ in range(trials)]
    for result, odds in outcome(one_try, 0.2).items():
        share = np.mean([each == result for each in found])
        assert abs(share - odds) < 5 * math.sqrt(odds * (1 - odds) / trials)


@pytest.mark.parametrize(("epsilon", "delta", "stop"), [(1.0, 0.0, 0.01), (1.0, 1e-3, 0.05), (3.0, 0.05, 0.5)])
def test_no_pair_of_tries_costs_more_than_is_charged(epsilon, delta, stop):
    """Over a grid of tries that are as unlike as the price of one allows: exact odds, for every set of outcomes."""
    one, least = epsilon / 2, _delta_of_one(Fraction(str(epsilon)) / 2, delta, Fraction(str(stop)))
    worst = -1.0
    shares = [0.0, 0.001, 0.01, 0.1, 0.3, 0.6]
    for first, second in itertools.product(shares, repeat=2):
        if first + second > 1:
            continue
        # one outcome is as much rarer as it may be, the other as much more frequent, under the neighbour
        rarer = max((first - least) * math.exp(-one), 0.0)
        more = second * math.exp(one) + least
        pair = {"a": first, "b": second, None: 1 - first - second}, {"a": rarer, "b": more, None: 1 - rarer - more}
        if pair[1][None] < 0 or not _within(*pair, one, least) or not _within(*pair[::-1], one, least):
            continue
        for left, right in (pair, pair[::-1]):
            here, there = outcome(left, stop), outcome(right, stop)
            excess = sum(max(here[each] - math.exp(epsilon) * there[each], 0.0) for each in here)
            assert excess <= delta + 1e-12
            if min(there.values()) > 0 and not delta:
                worst = max(worst, max(math.log(here[each] / there[each]) for each in here if here[each] > 0))
    assert delta or worst > 0.7 * epsilon  # and nearly all of it can be needed: half would be too little


def _within(left, right, epsilon, delta):
    return sum(max(left[each] - math.exp(epsilon) * right[each], 0.0) for each in left) <= delta + 1e-12


def test_the_price_is_that_of_opendp():
    combinators = pytest.importorskip("opendp.combinators")
    import opendp.domains as domains
    import opendp.measurements as measurements
    import opendp.measures as measures
    import opendp.metrics as metrics
    from opendp.mod import enable_features

    enable_features("contrib", "honest-but-curious")
    scored = measurements.make_user_measurement(
        domains.atom_domain(T="f64", nan=False),
        metrics.absolute_distance(T="f64"),
        measures.max_divergence(),
        lambda value: (value, "a candidate"),
        lambda distance: 0.5 * distance,
        TO="(f64, ExtrinsicObject)",
    )
    theirs = combinators.make_select_private_candidate(scored, stop_probability=0.05, threshold=1.0).map(1.0)
    budgets = []
    dataset().retry(lambda part: budgets.append(part.budget.epsilon) or True, theirs)
    assert budgets == [0.5]


@pytest.mark.parametrize("tries", [1, 2, 40])
def test_the_ledger_has_one_charge_whatever_the_number_of_tries(tries):
    data, seen = dataset(PrivacyBudget(2.0, 1e-3)), []

    def attempt(part):
        begun = part.set_aside(0.3)
        begun.measure([("a",)], 0.1)
        noisy = part.measure([("a",)], part.budget.remaining.epsilon)
        seen.append((part, begun))
        return noisy if len(seen) >= tries else None

    found = data.retry(attempt, 1.0, delta=1e-4, stop=1e-9)
    (charge,) = data.budget.history
    assert (charge.epsilon, float(charge.delta), len(seen)) == (1.0, 1e-4, tries)
    assert (found.guarantee.epsilon, found.guarantee.delta, found.guarantee.accepted) == (1.0, 1e-4, True)
    for part, begun in seen:  # closed, and with it all that was set aside
        for late in (part, begun, part.set_aside(1e-3)):
            with pytest.raises(dp.BudgetExceededError, match="closed"):
                late.measure([("a",)], 1e-3)


def test_a_try_cannot_spend_more_than_half():
    data = dataset()
    with pytest.raises(dp.BudgetExceededError):
        data.retry(lambda part: part.measure([("a",)], 0.51), 1.0)
    assert data.budget.remaining.epsilon == 0.0  # what fails after the charge stays charged


def test_the_grid_of_sums_in_a_try_is_paid_by_the_delta_of_that_try():
    def planned(data):
        return data.plan(1, epsilon=0.5, delta=data.budget.delta, sampling_rate=1.0, width=10**10)

    alone = dataset(PrivacyBudget(0.5, 2e-7))
    with pytest.raises(ValueError, match="larger delta"):
        planned(alone)
    deltas = []
    with pytest.raises(ValueError, match="larger delta"):
        dataset(PrivacyBudget(1.0, 1e-5)).retry(
            lambda part: deltas.append(part.budget.delta) or planned(part), 1.0, delta=1e-5
        )
    assert deltas[0] < 2e-7


def test_guarantees_of_files_and_of_fits_state_the_whole(tmp_path):
    budget = PrivacyBudget(4.0, 1e-3)
    data = dataset(budget)

    def attempt(part):
        return dp.PairwiseMixture(part.budget.epsilon, part.budget.delta, members=1, components=2).fit(part)

    estimator = data.retry(attempt, 2.0, delta=1e-4)
    assert estimator.network_.guarantee_.epsilon == 2.0
    assert "accepted among tries" in str(estimator.guarantee_)
    estimator.release_.save(tmp_path / "release.zip")
    assert dp.NoisyMarginals.load(tmp_path / "release.zip") == estimator.release_


def test_warnings_of_failures_are_kept_back():
    calls = itertools.count()

    def attempt(part):
        number = next(calls)
        warnings.warn(f"try {number}", stacklevel=1)
        return "found" if number == 3 else None

    with pytest.warns(UserWarning, match="try") as said:
        assert dataset().retry(attempt, 1.0, stop=1e-9) == "found"
    assert [str(each.message) for each in said] == ["try 3"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dataset().retry(lambda part: None, 1.0, stop=1.0) is None


def test_a_failure_ends_with_the_probability_that_was_asked_for():
    data = dataset(PrivacyBudget(1e6), noise=dp.SimulatedNoise(1))
    calls = []
    for _ in range(500):
        data.retry(calls.append, 1.0, stop=0.25)
    assert 4 - 0.8 < len(calls) / 500 < 4 + 0.8


@pytest.mark.parametrize("wrong", [{"stop": 0.0}, {"stop": 1.1}, {"delta": -1.0}, {"epsilon": 0.0}, {"delta": 1e-3}])
def test_what_is_out_of_range_is_refused_unpaid(wrong):
    data = dataset()
    with pytest.raises(ValueError, match=next(iter(wrong))):
        data.retry(lambda part: True, **{"epsilon": 0.5, **wrong})
    assert data.budget.history == ()


PERSONS = FRAME.assign(person=range(len(FRAME)))
DIFFERENT = {"relation": ("add_remove", {"neighbours": "replace_one"}), "unit": ("add_remove", {"unit": "person"})}


@pytest.mark.parametrize("difference", DIFFERENT)
def test_a_try_takes_charges_for_the_same_neighbours_alone(difference):
    """Else a record replaced would cost what was paid for one added, or a person what was paid for a record."""
    own, other = DIFFERENT[difference]
    data = dp.PrivateDataset(PERSONS, SCHEMA, PrivacyBudget(2.0), own)

    def attempt(part):
        another = dp.PrivateDataset(PERSONS, SCHEMA, part.budget, **other)
        for use in (another, another.set_aside(0.25)):
            with pytest.raises(ValueError, match="do not add up"):
                use.measure([("a",)], 0.25)
            assert part.budget.history == ()
        with pytest.raises(ValueError, match="do not add up"):
            another.retry(lambda inner: True, 0.25)
        same = dp.PrivateDataset(PERSONS, SCHEMA, part.budget, own)
        return same.measure([("a",)], 0.25)

    assert data.retry(attempt, 1.0) is not None


def features(budget):
    X, y = np.arange(40.0)[:, np.newaxis] % 7, ["x", "y"] * 20
    return dp.PrivateFeatures(X, y, bounds=([0], [7]), classes=["x", "y"], budget=budget)


RELEASES = {  # from the data set of a try to the guarantee of what is released on its ledger in another way
    "another data set": lambda part: dataset(part.budget).measure([("a",)], 0.1).guarantee,
    "a part": lambda part: part.set_aside(0.1).measure([("a",)], 0.1).guarantee,
    "a part of the ledger": lambda part: dataset(part.budget.set_aside(0.1)).measure([("a",)], 0.1).guarantee,
    "features": lambda part: features(part.budget).plan(1, epsilon=0.1, delta=1e-7, sampling_rate=0.5).guarantee,
    "a try within": lambda part: dataset(part.budget).retry(lambda inner: inner.measure([("a",)], 0.1), 0.3).guarantee,
    "another within": lambda part: part.retry(lambda i: dataset(i.budget).measure([("a",)], 0.1), 0.3).guarantee,
}


@pytest.mark.parametrize("way", RELEASES)
def test_whatever_is_released_on_the_ledger_of_a_try_promises_what_holds_for_all(way):
    data = dataset(PrivacyBudget(4.0, 0.01))
    guarantee = data.retry(RELEASES[way], 4.0, delta=0.01)
    assert (guarantee.epsilon, guarantee.delta, guarantee.accepted) == (4.0, 0.01, True)
    assert not dataset(PrivacyBudget(1.0)).measure([("a",)], 0.1).guarantee.accepted


def in_another_thread(call):
    """What the call raised."""
    raised = []

    def run():
        try:
            call()
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    raise raised[0]


OUTSIDE = {  # from the data set whose ledger pays for the tries, and a part of it, to a charge beside the try's ledger
    "the same": lambda data, part, plan: data.measure([("a",)], 0.01),
    "too much": lambda data, part, plan: data.measure([("a",)], 100.0),
    "a part that was charged": lambda data, part, plan: part.measure([("a",)], 0.01),
    "a new part": lambda data, part, plan: data.set_aside(0.01).measure([("a",)], 0.01),
    "by hand": lambda data, part, plan: data.budget.charge(Charge("by hand", "laplace", epsilon=0.01)),
    "tries": lambda data, part, plan: data.retry(lambda inner: True, 0.01),
    "a thread": lambda data, part, plan: in_another_thread(lambda: data.measure([("a",)], 0.01)),
    "a plan": lambda data, part, plan: plan.noisy_sum(lambda codes: codes == 0, 1.0),
    "the file again": lambda data, part, plan: dataset(PrivacyBudget.open(data.budget.path)).measure([("a",)], 0.01),
}


@pytest.mark.parametrize("filed", [False, True])
@pytest.mark.parametrize("way", OUTSIDE)
@pytest.mark.parametrize("who", ["whole", "part"])
def test_the_ledger_that_pays_for_tries_takes_no_other_charge_meanwhile(way, who, filed, tmp_path):
    """An entry for each try would tell their number, and so would the budget's end."""
    if way == "the file again" and not filed:
        return
    path = tmp_path / "ledger.json"
    budget = PrivacyBudget.open(path, 4.0, 1e-3) if filed else PrivacyBudget(4.0, 1e-3)
    data = dataset(budget)
    plan = data.plan(50, epsilon=0.5, delta=1e-4, sampling_rate=0.5)
    part = data.set_aside(1.5)
    part.measure([("a",)], 0.01)
    told, calls = [], itertools.count()

    def attempt(of_try):
        try:
            OUTSIDE[way](data, part, plan)
        except dp.BudgetExceededError as error:
            told.append(str(error))
        return "found" if next(calls) == 3 else None

    before = len(budget.history), part.budget.history
    paying = data if who == "whole" else part
    assert paying.retry(attempt, 1.0, stop=1e-9) == "found"
    assert len(told) == 4
    assert len(set(told)) == 1  # and so the refusal tells no number either
    assert "tries of `retry`" in told[0]
    assert (len(budget.history), len(part.budget.history)) == (
        before[0] + (who == "whole"),
        len(before[1]) + (who == "part"),
    )
    assert plan.steps_left == 50
    data.measure([("a",)], 0.01)  # and when the tries are over, the ledger is as before
    assert plan.noisy_sum(lambda codes: codes == 0, 1.0).size == 1


def test_a_try_pays_for_tries_within_it_and_is_kept_from_them():
    data = dataset(PrivacyBudget(4.0))

    def attempt(part):
        def inner(within):
            for outer in (data, part):
                with pytest.raises(dp.BudgetExceededError, match="tries of `retry`"):
                    outer.measure([("a",)], 0.01)
            return within.measure([("a",)], 0.4)

        found = part.retry(inner, 0.8)
        part.measure([("a",)], 0.01)  # its own ledger is free again
        return found

    assert data.retry(attempt, 2.0).guarantee.epsilon == 2.0
    data.measure([("a",)], 0.01)


def test_the_ledger_is_free_again_after_an_attempt_that_raised():
    data = dataset(PrivacyBudget(2.0))
    for _ in range(2):
        with pytest.raises(KeyError):
            data.retry(lambda part: {}["missing"], 0.5)
    data.measure([("a",)], 1.0)


def test_other_ledgers_are_free_while_tries_are_made():
    other = dataset(PrivacyBudget(1.0))

    def attempt(part):
        return other.retry(lambda its: its.measure([("a",)], 0.5), 1.0)

    assert dataset(PrivacyBudget(1.0)).retry(attempt, 1.0) is not None


def test_a_plan_of_one_try_answers_in_no_other():
    plans = []

    def attempt(part):
        plans.append(part.plan(5, epsilon=0.3, delta=part.budget.delta, sampling_rate=0.5))
        for late in plans[:-1]:
            with pytest.raises(dp.BudgetExceededError, match="closed"):
                late.noisy_sum(lambda codes: codes == 0, 1.0)
        plans[-1].noisy_sum(lambda codes: codes == 0, 1.0)
        return "found" if len(plans) == 3 else None

    assert dataset(PrivacyBudget(1.0, 1e-3)).retry(attempt, 1.0, delta=1e-3, stop=1e-9) == "found"
    assert [plan.steps_left for plan in plans] == [4, 4, 4]


def test_a_network_is_not_measured_further_within_a_try():
    """It would keep the tables that failed tries release."""
    schema = dp.Schema({"a": ["x", "y"], "b": ["x", "y"]})
    data = dp.PrivateDataset(FRAME.assign(b=FRAME["a"]), schema, PrivacyBudget(4.0))
    network = dp.PrivateBayesianNetwork()
    network.add_nodes_from(["a", "b"])
    network.fit(data.measure([("a",), ("b",)], 1.0))
    release, promised = network.release_, network.guarantee_

    def attempt(part):
        with pytest.raises(ValueError, match="failed tries"):
            network.measure_misfit(part, 0.5)
        return part.budget.history

    assert data.retry(attempt, 1.0) == ()
    assert (network.release_, network.guarantee_) == (release, promised)
    assert network.measure_misfit(data, 1.0).cliques == (("a", "b"),)


FORKED = """
import os
import numpy as np
import pgmpy_dp as dp

data = dp.PrivateDataset(np.zeros((50, 1), dtype=int), dp.Schema({"v": ["x", "y"]}), dp.PrivacyBudget(3.0))
parent = os.getpid()

def told(ends):
    forked = []

    def attempt(part):
        if not forked:
            forked.append(os.fork())
            if ends == "raise" and not forked[0]:
                raise KeyError("a result too")
            return "found" if ends == "return" else None
        return "found"

    try:
        line = f"{ends} {data.retry(attempt, 1.0, stop=1e-9)}"
    except BaseException as error:
        line = f"{ends} {type(error).__name__} {'forked copy' in str(error)}"
    os.write(1, f"{line}\\n".encode())
    if not forked[0]:
        os._exit(0)
    os.waitpid(forked[0], 0)

for ends in ("return", "fail", "raise"):
    told(ends)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_fork_within_an_attempt_gives_one_result():
    command = [sys.executable, "-W", "ignore", "-c", FORKED]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    both = "found", "BudgetExceededError True"
    assert sorted(lines) == sorted(f"{ends} {told}" for ends in ("return", "fail", "raise") for told in both)
