"""The ledger under attack: threads, processes and forked copies spend no more than there is, failures stay charged,
and losses of different kinds are not added up."""

import itertools
import subprocess
import sys
import threading
from fractions import Fraction

import numpy as np
import pytest

import pgmpy_dp as dp
from pgmpy_dp.privacy import OPENDP_NOISE, Approx, Cost, PrivacyBudget, Pure


class Failing:
    """Noise that fails when it is first drawn, and coins before it."""

    private = True

    def __init__(self, error):
        self.error = error

    def fail(self, *_):
        raise self.error

    discrete_laplace = discrete_gaussian = permute_and_flip = exponential_mechanism = below = coins = choose = fail
    keys = staticmethod(OPENDP_NOISE.keys)


def test_a_failure_after_the_charge_stays_charged(mechanism):
    budget = PrivacyBudget(2.0, mechanism.delta)
    noise = Failing(MemoryError)
    if mechanism.name.startswith("sums"):
        noise.discrete_gaussian = lambda counts, scale: counts if len(budget.history) == 0 else noise.fail()
    with pytest.raises(MemoryError):
        mechanism.call(mechanism.data(mechanism.neighbours[1], noise, budget), 0.5)
    (charge,) = budget.history
    changes = "added or removed" if mechanism.relation == "add_remove" else "replaced by another"
    assert str(charge.protects) == f"one {'person' if 'unit' in mechanism.unit else 'record'} {changes}"
    if mechanism.name == "residuals":  # asked for by scales, whose price is rounded up from just below
        assert Fraction("0.4999") < charge.epsilon <= Fraction("0.5")
    elif charge.rho is None:
        assert charge.epsilon == Fraction("0.5")
    else:
        assert budget.spent.epsilon == pytest.approx(0.5, rel=1e-6)


def test_what_is_refused_neither_draws_nor_charges(mechanism):
    noise, budget = Failing(AssertionError("drawn without a charge")), PrivacyBudget(2.0, mechanism.delta)
    if mechanism.name.startswith("sums"):
        budget.charge(Cost("all of delta", "sampled_gaussian", Approx(0.1, mechanism.delta)))
        noise.discrete_gaussian = lambda counts, scale: counts if counts.tolist() == [0] else noise.fail()
    history = budget.history
    data = mechanism.data(mechanism.neighbours[1], noise, budget)
    with pytest.raises(dp.BudgetExceededError):
        mechanism.call(data, 2.5)
    assert budget.history == history
    for nonsense in (0.0, -1.0, float("nan"), float("inf"), True, "1", None, 1j):
        with pytest.raises((ValueError, TypeError)):
            mechanism.call(data, nonsense)
    assert budget.history == history


def test_ten_tenths_fit_in_one(mechanism):
    if mechanism.delta:
        pytest.skip("a delta does not add up to tenths")
    data = mechanism.data(mechanism.neighbours[1], budget=PrivacyBudget(1.0))
    for _ in range(10):
        mechanism.call(data, 0.1)
    assert data.budget.remaining.epsilon == 0.0
    with pytest.raises(dp.BudgetExceededError, match="Nothing is left"):
        mechanism.call(data, 1e-6)


def run(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_threads_that_mix_mechanisms_spend_what_there_is(monkeypatch):
    """Whole methods race, with their own ledgers for parts among them; the switch interval makes races likely."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        schema = dp.Schema({"v": ["x", "y"], "n": dp.Bins([0, 1, 2, 3])})
        budget = PrivacyBudget(1.0)
        data = dp.PrivateDataset(np.zeros((5, 2), dtype=int), schema, budget)
        ways = [
            lambda: data.measure([("v",)], 0.1),
            lambda: data.quantile_bins("n", 2, 0.1),
            lambda: data.sample_map([("v",)], {("v",): np.ones(2)}, 0.1),
            lambda: in_parts(data.set_aside(0.1)),
        ]
        done = []

        def spend(way):
            for _ in range(6):
                try:
                    way()
                    done.append(way)
                except dp.BudgetExceededError:
                    return

        run([threading.Thread(target=spend, args=(way,)) for way in ways * 2])
    finally:
        sys.setswitchinterval(interval)
    assert len(done) == 10
    assert budget.remaining.epsilon == 0.0
    assert len(budget.history) == 10


def in_parts(part):
    part.measure([("v",)], 0.04)
    part.measure([("n",)], 0.06)


def test_one_part_in_many_threads_is_charged_once():
    schema = dp.Schema({"v": ["x", "y"]})
    budget = PrivacyBudget(1.0)
    part = dp.PrivateDataset(np.zeros((5, 1), dtype=int), schema, budget).set_aside(0.4)
    done, refused = [], []

    def spend():
        try:
            done.append(part.measure([("v",)], 0.1))
        except dp.BudgetExceededError:
            refused.append(True)

    run([threading.Thread(target=spend) for _ in range(9)])
    assert (len(done), len(refused)) == (4, 5)
    assert [charge.epsilon for charge in budget.history] == [Fraction("0.4")]


PROCESS = """
import sys
import numpy as np
import pgmpy_dp as dp
schema = dp.Schema({"v": ["x", "y"], "n": dp.Bins([0, 1, 2, 3])})
data = dp.PrivateDataset(np.zeros((5, 2), dtype=int), schema, dp.PrivacyBudget.open(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
done = 0
for turn in range(6):
    try:
        if turn % 2:
            data.measure([("v",)], 0.1)
        else:
            part = data.set_aside(0.1)
            part.measure([("v",)], 0.05)
            part.quantile_bins("n", 2, 0.05)
        done += 1
    except dp.BudgetExceededError:
        pass
print(done)
"""


def test_processes_that_measure_spend_what_there_is(tmp_path, started_together):
    path = tmp_path / "ledger.json"
    PrivacyBudget.open(path, epsilon=1.0)
    assert sum(map(int, started_together(PROCESS, path))) == 10
    assert PrivacyBudget.open(path).remaining.epsilon == 0.0
    assert len(PrivacyBudget.open(path).history) == 10


FORKED = """
import os, sys
import numpy as np
import pgmpy_dp as dp
from pgmpy_dp.privacy import OPENDP_NOISE

schema = dp.Schema({"v": ["x", "y"]})
data = dp.PrivateDataset(np.zeros((50, 1), dtype=int), schema, dp.PrivacyBudget(1.0, 0.1))
shared = dp.PrivateDataset(np.zeros((50, 1), dtype=int), schema, dp.PrivacyBudget.open(sys.argv[1], 1.0))
plan = data.plan(2, epsilon=0.5, delta=0.05, sampling_rate=1.0)
part = dp.PrivateDataset(np.zeros((50, 1), dtype=int), schema, dp.PrivacyBudget(1.0)).set_aside(0.5)
part.measure([("v",)], 0.1)
OPENDP_NOISE.discrete_laplace(np.zeros(4, np.int64), 1e9)  # the generator has begun

def told(call):
    try:
        call()
        return "drawn"
    except ValueError as error:
        return "refused" if "forked" in str(error) else str(error)

def report():
    noise = OPENDP_NOISE.discrete_laplace(np.zeros(2, np.int64), 1e9).tolist()
    keys = OPENDP_NOISE.keys(2).tolist()
    print(told(lambda: data.measure([("v",)], 0.1)), told(lambda: part.measure([("v",)], 0.1)),
          told(lambda: plan.noisy_sum(lambda codes: codes == 0, 1.0)), told(lambda: shared.measure([("v",)], 0.4)),
          *noise, *keys, flush=True)

for _ in range(2):
    child = os.fork()
    if child == 0:
        report()
        os._exit(0)
    os.waitpid(child, 0)
report()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_forked_copies_spend_nothing_and_repeat_no_noise(tmp_path):
    """A fork copies a ledger in memory: without a check, every child could spend all of it again."""
    command = [sys.executable, "-W", "ignore", "-c", FORKED, str(tmp_path / "ledger.json")]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    first, second, parent = (line.split() for line in lines)
    assert first[:4] == second[:4] == ["refused", "refused", "refused", "drawn"]  # a ledger file is for all of them
    assert parent[:3] == ["drawn", "drawn", "drawn"]
    assert parent[3] != "drawn"
    drawn = [number for line in (first, second, parent) for number in line[-4:]]
    assert len(set(drawn)) == len(drawn)


def test_losses_for_different_neighbours_are_not_added_up(tmp_path):
    """What costs epsilon for a record added may cost any epsilon for one replaced, or for a person."""
    added, replaced = "one record added or removed", "one record replaced by another"
    for budget in (PrivacyBudget(1.0), PrivacyBudget.open(tmp_path / "ledger.json", 1.0)):
        budget.charge(Cost("by hand", "laplace", Pure(0.1)))
        budget.charge(Cost("table", "laplace", Pure(0.1), added))
        for use in (budget, budget.set_aside(0.2)):
            with pytest.raises(ValueError, match="do not add up"):
                use.charge(Cost("table", "laplace", Pure(0.1), replaced))
        budget.set_aside(0.2).charge(Cost("table", "laplace", Pure(0.1), added))
        assert [charge.protects and str(charge.protects) for charge in budget.history] == [None, added, added]
    again = PrivacyBudget.open(tmp_path / "ledger.json")
    assert again.history == budget.history
    with pytest.raises(ValueError, match="do not add up"):
        again.charge(Cost("table", "laplace", Pure(0.1), replaced))


ADDED = Cost("table", "laplace", Pure(0.1), "one record added or removed")
REPLACED = Cost("table", "laplace", Pure(0.1), "one record replaced by another")
BY_HAND = Cost("by hand", "laplace", Pure(0.1))


@pytest.mark.parametrize("nested", [False, True])
def test_parts_add_up_what_the_whole_does(nested):
    """A first charge that says nothing lets none of another relation into a part: as if all were charged to one."""
    orders = list(itertools.permutations([ADDED, REPLACED, BY_HAND]))
    for places, charges in itertools.product(itertools.product(["whole", "part", "other"], repeat=3), orders):
        budget = PrivacyBudget(3.0)
        ledgers = {"whole": budget, "part": budget.set_aside(1.0), "other": budget.set_aside(1.0)}
        if nested:
            ledgers["part"] = ledgers["part"].set_aside(0.5)
        entered = []
        for place, charge in zip(places, charges, strict=True):
            before = budget.history
            try:
                ledgers[place].charge(charge)
                entered.append(charge)
            except ValueError:
                assert budget.history == before
        assert BY_HAND in entered
        assert not {ADDED, REPLACED} <= set(entered)
        stated = {charge.protects for charge in entered} - {None}
        assert {charge.protects for charge in budget.history} - {None} == stated  # so that a file tells it too
