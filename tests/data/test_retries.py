"""Trying until it is good enough: the price whatever the number of tries, exact odds, and what a try can reach."""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pgmpy_dp as dp
from pgmpy_dp.data.mechanisms.retries import _delta_of_one
from pgmpy_dp.privacy import PrivacyBudget

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
