"""Poisson sampling: the coins, the lemma against brute force, and the wall's use of it.

Statistical tests raise a false alarm with probability below 1e-8 each.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.errors import BudgetExceededError
from pgmpy_dp.privacy import OPENDP_NOISE, PrivacyBudget, SimulatedNoise
from pgmpy_dp.privacy.accounting import zcdp_limit
from pgmpy_dp.privacy.coins import poisson_sample
from pgmpy_dp.privacy.sampling import amplified_epsilon, epsilon_on_sample, sampling_fraction
from pgmpy_dp.release import Guarantee, NoisyMarginals
from pgmpy_dp.schema import Schema

SCHEMA = Schema({"a": ["x", "y"], "b": [0, 1]})
STATES = list(itertools.product((0, 1), (0, 1)))


def test_golden_values():
    """spec/data_dependent.md, test vectors."""
    assert amplified_epsilon(1.0, 0.1) == pytest.approx(0.158565, abs=5e-7)
    assert amplified_epsilon(2.0, 0.3) == pytest.approx(1.070459, abs=5e-7)
    assert float(epsilon_on_sample(0.1, 0.1)) == pytest.approx(0.718673, abs=5e-7)


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-290, 1e290), st.floats(1e-290, 1.0))
def test_inverse_and_order(epsilon, rate):
    inside = epsilon_on_sample(epsilon, rate)
    assert inside >= Fraction(str(epsilon)) * (1 - Fraction(1, 10**30))
    outside = amplified_epsilon(inside, rate)
    assert outside <= epsilon * (1 + 1e-15)
    assert outside >= epsilon * (1 - 1e-15)


def test_the_lemma_is_tight_for_randomised_response():
    """One record or none, sampled at rate q; answered by a fair coin, or with odds exp(epsilon) for "yes"."""
    epsilon, rate = 1.3, 0.2
    yes_without = 1 / (math.exp(epsilon) + 1)  # the two answers' odds: exp(epsilon) apart in every outcome
    yes_with = (1 - rate) * yes_without + rate * (1 - yes_without)
    assert math.log(yes_with / yes_without) == pytest.approx(amplified_epsilon(epsilon, rate), rel=1e-12)


def answers(records, scale, rate):
    """Log-probabilities of all noisy tables of (a, b) on a grid, the sample summed over exactly."""
    grid = np.arange(-6, 9)
    mixture = {}
    for kept in itertools.product((False, True), repeat=len(records)):
        counts = tuple(sum(k for k, r in zip(kept, records, strict=True) if r == state) for state in STATES)
        weight = math.prod(rate if k else 1 - rate for k in kept)
        mixture[counts] = mixture.get(counts, 0.0) + weight
    total = np.zeros((grid.size,) * 4)
    for counts, weight in mixture.items():
        cells = [np.tanh(0.5 / scale) * np.exp(-np.abs(grid - count) / scale) for count in counts]
        total += weight * np.einsum("i,j,k,l->ijkl", *cells)
    return np.log(total)


def worst_ratio(neighbours, scale, rate):
    """Greatest privacy loss over all pairs of neighbouring data sets of up to three records."""
    memory = {}

    def of(records):
        key = tuple(sorted(records))
        if key not in memory:
            memory[key] = answers(key, scale, rate)
        return memory[key]

    worst = 0.0
    for size in range(3):
        for rest in itertools.combinations_with_replacement(STATES, size):
            for record in STATES:
                others = [rest] if neighbours == "add_remove" else [(*rest, other) for other in STATES]
                worst = max(worst, *(np.abs(of((*rest, record)) - of(other)).max() for other in others))
    return worst


@pytest.mark.parametrize(("epsilon", "rate"), [(0.3, 0.1), (1.0, 0.5), (1.0, 1.0)])
def test_a_measurement_on_a_sample_costs_its_epsilon(epsilon, rate):
    """Brute force over all neighbours and answers, with the scale that `measure` used; no more noise than needed."""
    data = PrivateDataset(pd.DataFrame({"a": ["x"], "b": [0]}), SCHEMA, PrivacyBudget(epsilon))
    scale = data.measure([("a", "b")], epsilon, sampling_rate=rate).scales["a", "b"]
    assert epsilon * 0.999 < worst_ratio("add_remove", scale, rate) <= epsilon * (1 + 1e-9)
    # Why a sample is refused where a record is replaced: the loss is larger.
    assert worst_ratio("replace_one", scale, rate) > epsilon * 1.2
    if rate == 1:
        data = PrivateDataset(pd.DataFrame({"a": ["x"], "b": [0]}), SCHEMA, PrivacyBudget(epsilon), "replace_one")
        scale = data.measure([("a", "b")], epsilon).scales["a", "b"]
        assert epsilon * 0.999 < worst_ratio("replace_one", scale, 1.0) <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1, 3), Fraction(999, 1000)])
@pytest.mark.parametrize("source", [OPENDP_NOISE, SimulatedNoise(3)], ids=["opendp", "simulated"])
def test_coins_are_independent_with_the_exact_rate(source, rate):
    coins = source.coins(rate, 200_000)
    assert coins.dtype == bool
    assert stats.binomtest(int(coins.sum()), coins.size, float(rate)).pvalue > 1e-8
    both = int((coins[:-1] & coins[1:]).sum())
    assert abs(both / (coins.size - 1) - float(rate) ** 2) < 6 * math.sqrt(2 / coins.size)
    assert stats.binomtest(int(coins.sum()), coins.size, float(rate) * 0.94).pvalue < 1e-3  # a rate 6 % off shows


def test_a_tie_in_the_first_64_digits_is_decided_exactly(monkeypatch):
    """1/3 in binary is 0.0101...: words equal to its first digits leave a third to decide."""
    first = (1 << 64) // 3
    monkeypatch.setattr(
        "pgmpy_dp.privacy.coins.os.urandom", lambda n: np.full(n // 8, first, dtype=np.uint64).tobytes()
    )
    asked = []

    def below(n):
        asked.append(n)
        return len(asked) % 3

    monkeypatch.setattr("pgmpy_dp.privacy.coins.secrets.randbelow", below)
    coins = poisson_sample(Fraction(1, 3), 3000)
    assert set(asked) == {3}
    assert coins.mean() == pytest.approx(1 / 3)


@pytest.mark.parametrize("rate", [0, -0.1, 1.0000001, float("nan"), float("inf"), True, "0.1", None])
def test_rates_out_of_range_are_refused_before_the_charge(rate):
    with pytest.raises(ValueError, match="sampling_rate"):
        sampling_fraction(rate)
    data = PrivateDataset(pd.DataFrame({"a": ["x"], "b": [0]}), SCHEMA, PrivacyBudget(1.0))
    with pytest.raises(ValueError, match="sampling_rate"):
        data.measure([("a",)], 0.5, sampling_rate=rate)
    assert data.budget.history == ()


def test_measure_on_a_sample(tmp_path):
    records = pd.DataFrame({"a": ["x", "y"] * 5000, "b": [0, 0] * 5000})
    data = PrivateDataset(records, SCHEMA, PrivacyBudget(2e5))
    noisy = data.measure([("a", "b"), ("b",)], 1e5, weights=[3, 1], sampling_rate=0.1)
    assert data.budget.spent.epsilon == 1e5
    # Without noise to speak of: one sample for all tables, of random size, which nothing else tells.
    size = noisy.tables["b",].sum()
    assert noisy.tables["a", "b"].sum() == size
    assert 1000 - 8 * 30 < size < 1000 + 8 * 30
    assert noisy.guarantee.sampling_rate == 0.1
    assert noisy.guarantee.epsilon == 1e5
    assert "on a Poisson sample of rate 0.1" in str(noisy.guarantee)
    noisy.save(tmp_path / "sample.zip")
    assert NoisyMarginals.load(tmp_path / "sample.zip") == noisy
    small = data.measure([("a",)], 0.1, sampling_rate=0.1)
    assert small.scales["a",] == pytest.approx(1 / 0.718673, rel=1e-6)
    nearly_all = data.measure([("a",)], 0.1, sampling_rate=Fraction(10**20 - 1, 10**20))
    assert nearly_all.guarantee.sampling_rate == 1.0
    assert nearly_all.scales["a",] == pytest.approx(10.0)


def test_sampling_is_refused_where_the_lemma_does_not_hold():
    records = pd.DataFrame({"a": ["x"], "b": [0]})
    data = PrivateDataset(records, SCHEMA, PrivacyBudget(1.0), neighbours="replace_one")
    with pytest.raises(ValueError, match=r"add or remove a record.*leave sampling_rate at 1"):
        data.measure([("a",)], 0.5, sampling_rate=0.5)
    gaussian = PrivateDataset(records, SCHEMA, PrivacyBudget(1.0, 1e-6))
    with pytest.raises(ValueError, match=r"gaussian.*leave sampling_rate at 1"):
        gaussian.measure([("a",)], 0.5, delta=1e-6, mechanism="gaussian", sampling_rate=0.5)
    assert data.budget.history == gaussian.budget.history == ()


def test_a_guarantee_on_a_sample_is_checked_against_the_noise():
    """At rate 0.1, epsilon 0.1 allows noise of 1 / 0.7187 and no less."""
    guarantee = Guarantee.of(0.1, 0.0, None, "add_remove", "laplace", True, sampling_rate=0.1)
    table = {("a",): np.array([1, 2])}
    NoisyMarginals(SCHEMA, table, {("a",): 1 / 0.71867}, guarantee)
    with pytest.raises(ValueError, match=r"costs epsilon=0\.1"):
        NoisyMarginals(SCHEMA, table, {("a",): 1 / 0.7188}, guarantee)
    with pytest.raises(ValueError, match="costs epsilon"):
        NoisyMarginals(SCHEMA, table, {("a",): 1e-5}, guarantee)
    for neighbours, mechanism, rho in (("replace_one", "laplace", None), ("add_remove", "gaussian", 0.1)):
        with pytest.raises(ValueError, match="sampling_rate"):
            Guarantee.of(0.1, 1e-6, rho, neighbours, mechanism, True, sampling_rate=0.1)
    for rate in (0.0, 1.1, float("nan"), "0.1", None):
        with pytest.raises(ValueError, match="sampling_rate"):
            Guarantee.of(0.1, 0.0, None, "add_remove", "laplace", True, sampling_rate=rate)
    assert Guarantee.from_dict(guarantee.to_dict()) == guarantee
    assert "sampling_rate" not in Guarantee.of(0.1, 0.0, None, "add_remove", "laplace", True).to_dict()  # as it was


def test_a_part_is_charged_as_a_whole_with_its_first_step_or_refused():
    data = PrivateDataset(pd.DataFrame({"a": ["x"], "b": [0]}), SCHEMA, PrivacyBudget(1.0))
    part = data.set_aside(Fraction(1, 3))
    with pytest.raises(ValueError, match="Unknown variable"):
        part.measure([("c",)], 0.1)
    assert data.budget.history == ()
    part.measure([("a",)], Fraction(1, 4))
    assert [charge.epsilon for charge in data.budget.history] == [Fraction(1, 3)]
    part.measure([("a",)], Fraction(1, 12))
    assert len(data.budget.history) == 1
    with pytest.raises(BudgetExceededError):
        part.measure([("a",)], 1e-6)
    large = data.set_aside(0.7)
    with pytest.raises(BudgetExceededError, match=r"epsilon=0\.7\) does not fit"):
        large.measure([("a",)], 1e-6)
    assert large.budget.history == ()
    assert data.budget.spent.epsilon == pytest.approx(1 / 3)
    mixed = PrivateDataset(pd.DataFrame({"a": ["x"], "b": [0]}), SCHEMA, PrivacyBudget(1.0, 1e-6))
    with pytest.raises(ValueError, match="needs a delta"):
        mixed.set_aside(0.5).measure([("a",)], 0.1, delta=1e-6, mechanism="gaussian")
    assert mixed.budget.history == ()


def test_a_part_with_a_delta_is_charged_as_one_rho():
    data = PrivateDataset(pd.DataFrame({"a": ["x"], "b": [0]}), SCHEMA, PrivacyBudget(1.0, 1e-6))
    part = data.set_aside(0.5, 1e-7)
    with pytest.raises(ValueError, match="set aside for zCDP charges only"):
        part.measure([("a",)], 0.1)
    assert data.budget.history == ()
    for _ in range(2):
        part.measure([("a",)], 0.2, delta=1e-7, mechanism="gaussian")
    assert [charge.rho for charge in data.budget.history] == [zcdp_limit(0.5, 1e-7)[0]]
    with pytest.raises(BudgetExceededError):
        part.measure([("a",)], 0.5, delta=1e-7, mechanism="gaussian")
    assert len(data.budget.history) == 1
