"""The ledger file: one budget for many processes."""

import json
import os
import signal
import stat
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import filelock
import pandas as pd
import pytest

from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.errors import BudgetExceededError, LedgerError
from pgmpy_dp.privacy import ledger
from pgmpy_dp.privacy.accounting import rho_for
from pgmpy_dp.privacy.budget import PrivacyBudget, _Account
from pgmpy_dp.privacy.cost import Approx, Cost, Protects, Pure, Zcdp
from pgmpy_dp.schema import Schema


def asked(budget):
    """What was charged, without what the ledger adds."""
    return tuple(replace(cost, id="", holder=None, ledger_total=None) for cost in budget.history)


def pure(epsilon, label="table"):
    return Cost(label, "laplace", Pure(epsilon))


def zcdp(rho):
    return Cost("table", "gaussian", Zcdp(rho))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.json"


def test_the_next_process_goes_on_where_the_last_one_ended(path):
    first = PrivacyBudget.open(path, epsilon=1.0)
    for _ in range(7):
        first.charge(pure(0.1))
    second = PrivacyBudget.open(path)
    assert second.history == first.history
    assert second.remaining.epsilon == 0.3
    second.charge(pure(0.3))
    with pytest.raises(BudgetExceededError, match="Nothing is left"):
        first.charge(pure(0.1))
    assert first.spent == second.spent
    assert len(first.history) == 8


def test_a_gaussian_ledger_replays_to_the_same_account(path):
    charges = [pure(0.25), zcdp(rho_for(0.4, 1e-6)), pure(Fraction(1, 7)), zcdp(1e-4)]
    memory, filed = PrivacyBudget(1.0, 1e-6), PrivacyBudget.open(path, epsilon=1.0, delta=1e-6)
    for charge in charges:
        memory.charge(charge)
        filed.charge(charge)
    read = PrivacyBudget.open(path)
    assert read.history == filed.history
    assert asked(read) == asked(memory) == tuple(charges)
    assert (read.spent, read.remaining) == (filed.spent, filed.remaining) == (memory.spent, memory.remaining)


def test_without_the_lock_processes_do_overspend(path, monkeypatch):
    """Two that read before either writes."""
    one, two = PrivacyBudget.open(path, epsilon=1.0), PrivacyBudget.open(path)
    for budget in (one, two):
        monkeypatch.setattr(budget._ledger, "locked", lambda: nullcontext(()))
    one.charge(pure(1.0))
    two.charge(pure(1.0))
    assert len(PrivacyBudget.open(path).history) == 1


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.parametrize("moment", ["os.fsync", "type(budget._ledger).append"])
def test_a_killed_charge_leaves_the_ledger_whole_and_unlocked(path, moment):
    PrivacyBudget.open(path, epsilon=1.0).charge(pure(0.5))
    script = (
        "import os, signal, sys\n"
        "from pgmpy_dp.privacy import Cost, PrivacyBudget, Pure\n"
        "budget = PrivacyBudget.open(sys.argv[1])\n"
        f"{moment} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "budget.charge(Cost('table', 'laplace', Pure(0.25)))\n"
    )
    killed = subprocess.run([sys.executable, "-W", "ignore", "-c", script, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    budget = PrivacyBudget.open(path)
    assert asked(budget) == (pure(0.5),)
    others = [path.with_name(f".{path.name}.of another.{16 * 'a'}.tmp"), path.with_name(f".{path.name}.tmp")]
    for other in others:
        other.touch()
    budget.charge(pure(0.5))
    assert set(path.parent.iterdir()) == {path, path.with_name(f"{path.name}.lock"), *others}


def test_the_charge_is_on_disk_before_noise_is_drawn(path):
    class Noise:
        private = True

        def discrete_laplace(self, counts, scale):
            assert len(json.loads(path.read_bytes())["charges"]) == 1
            raise MemoryError

    records = pd.DataFrame({"smoke": ["yes", "no"]})
    budget = PrivacyBudget.open(path, epsilon=1.0)
    data = PrivateDataset(records, Schema({"smoke": ["yes", "no"]}), budget, noise=Noise())
    with pytest.raises(MemoryError):
        data.measure([("smoke",)], epsilon=0.5)
    assert PrivacyBudget.open(path).remaining.epsilon == 0.5  # a failure after the charge stays charged


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_ledger_that_cannot_be_written_refuses_the_charge(path, monkeypatch, failing):
    budget = PrivacyBudget.open(path, epsilon=1.0)

    def fail(*_):
        raise OSError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(os, failing, fail)
        with pytest.raises(OSError, match="disk full"):
            budget.charge(pure(1.0))
    assert budget.history == ()
    assert {item.name for item in path.parent.iterdir()} <= {path.name, f"{path.name}.lock"}
    budget.charge(pure(1.0))


def altered(path, change):
    stored = json.loads(path.read_bytes())
    change(stored)
    path.write_text(json.dumps(stored))


EDITS = [{"epsilon": "2"}, {"delta": 0.5}, {"name": "0" * 32}, {"version": 2}, {"version": 0}, {"version": "1"}]
EDITS += [{"format": "pgmpy_dp release"}, {"charges": {}}, {"epsilon": "0"}, {"epsilon": "1/0"}]
CHANGES = [
    *(lambda s, edit=edit: s.update(edit) for edit in EDITS),
    *(lambda s, edit=edit: s["charges"][1]["charge"].update(edit) for edit in ({"label": "other"}, {"rho": 1.0})),
    lambda s: s["charges"][1]["charge"].update(epsilon="1/1000"),
    lambda s: s["charges"][1].update(hash="0" * 64),
    lambda s: s["charges"].__setitem__(0, None),
    lambda s: s["charges"].append(s["charges"][-1]),
    *(lambda s: s.pop("head"), lambda s: s["charges"].pop(), lambda s: s["charges"].pop(0)),
    *(lambda s: s["charges"].clear(), lambda s: s["charges"].reverse()),
]


@pytest.mark.parametrize("change", CHANGES)
def test_edited_ledgers_are_refused(path, change):
    budget = PrivacyBudget.open(path, epsilon=1.0)
    for part in (0.1, 0.2, 0.3):
        budget.charge(pure(part))
    altered(path, change)
    with pytest.raises(LedgerError, match=r"ledger\.json"):
        PrivacyBudget.open(path)
    with pytest.raises(LedgerError):
        budget.charge(pure(0.1))


def test_a_ledger_of_a_newer_version_is_not_to_be_replaced(path):
    PrivacyBudget.open(path, epsilon=1.0)
    altered(path, lambda stored: stored.update(version=2))
    with pytest.raises(LedgerError, match="written by a newer pgmpy_dp: upgrade it") as refusal:
        PrivacyBudget.open(path)
    assert "Restore" not in str(refusal.value)


HUGE = ["1e999999999", "-1e999999999", "1e-999999999", "9" * 10_000, "9" * 10**6, "1/" + "9" * 10**6]


@pytest.mark.parametrize("text", [*HUGE, "0.5", " 1/2", "1_0", "-1/2", "1/0", "½", "nan"])
def test_amounts_are_plain_fractions(path, text):
    """Python's Fraction would make a number of a billion digits of the first."""
    with pytest.raises(ValueError):
        Cost.from_dict({"label": "table", "mechanism": "laplace", "epsilon": text})
    budget = PrivacyBudget.open(path, epsilon=1.0)
    budget.charge(pure(0.5))
    for place in (lambda stored: stored, lambda stored: stored["charges"][0]["charge"]):
        before = path.read_bytes()
        altered(path, lambda stored, place=place: place(stored).update(epsilon=text))
        with pytest.raises(LedgerError):
            PrivacyBudget.open(path)
        path.write_bytes(before)


def test_an_amount_that_could_not_be_read_again_is_not_charged(path):
    budget = PrivacyBudget.open(path, epsilon=1.0)
    with pytest.raises(ValueError, match="thousands of digits"):
        budget.charge(pure(Fraction(10**2000 + 1, 10**2001)))
    budget.charge(pure(Fraction(10**1200 + 1, 10**1201)))
    assert PrivacyBudget.open(path).history == budget.history
    assert len(budget.history) == 1


def test_half_written_and_foreign_files_are_refused(path):
    PrivacyBudget.open(path, epsilon=1.0).charge(pure(0.5))
    content = path.read_bytes()
    for wrong in (content[:-20], b"", b"[]", b"null", b"\xff", b'{"a": NaN}', b"[" * 10**5, content + content):
        path.write_bytes(wrong)
        with pytest.raises(LedgerError, match="not a valid ledger"):
            PrivacyBudget.open(path, epsilon=1.0)
        assert path.read_bytes() == wrong


def test_an_overspent_ledger_with_fresh_hashes_is_refused(path):
    PrivacyBudget.open(path, epsilon=1.0)
    content = ledger._read(path)
    ledger._write(path, ledger.replace(content, charges=(pure(0.6), pure(0.6))))
    with pytest.raises(LedgerError, match="more than the total"):
        PrivacyBudget.open(path)


def test_a_ledger_put_back_while_open_is_refused(path):
    budget = PrivacyBudget.open(path, epsilon=1.0)
    old = path.read_bytes()
    budget.charge(pure(0.5))
    path.write_bytes(old)
    for use in (lambda: budget.charge(pure(0.5)), lambda: budget.spent, lambda: budget.history):
        with pytest.raises(LedgerError, match="has lost charges"):
            use()
    path.unlink()
    with pytest.raises(LedgerError, match="the ledger is missing"):
        budget.charge(pure(0.5))
    PrivacyBudget.open(path, epsilon=1.0)
    with pytest.raises(LedgerError, match="another ledger"):
        budget.charge(pure(0.5))


def test_a_noted_head_proves_what_came_before(path):
    budget = PrivacyBudget.open(path, epsilon=1.0)
    budget.charge(pure(0.5))
    noted = budget.head
    budget.charge(pure(0.25))
    stored = json.loads(path.read_bytes())
    assert [entry["hash"] for entry in stored["charges"]] == [noted, budget.head]


def test_totals_are_fixed_when_the_ledger_is_made(path):
    with pytest.raises(FileNotFoundError, match="this ledger does not exist"):
        PrivacyBudget.open(path)
    PrivacyBudget.open(path, epsilon=0.1, delta=1e-6)
    assert PrivacyBudget.open(path, epsilon=0.1).delta == 1e-6
    with pytest.raises(LedgerError, match=r"total epsilon of 0\.1, not 0\.2"):
        PrivacyBudget.open(path, epsilon=0.2)
    with pytest.raises(LedgerError, match="total delta"):
        PrivacyBudget.open(path, epsilon=0.1, delta=0)
    with pytest.raises(ValueError, match="epsilon"):
        PrivacyBudget.open(path.with_name("other.json"), epsilon=float("nan"))
    with pytest.raises(FileNotFoundError, match="this folder does not exist"):
        PrivacyBudget.open(path.parent / "none" / "ledger.json", epsilon=1.0)


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX links and permissions")
def test_two_names_are_one_budget_or_refused(path, tmp_path):
    budget = PrivacyBudget.open(path, epsilon=1.0)
    path.chmod(0o600)
    (tmp_path / "link.json").symlink_to(path)
    PrivacyBudget.open(tmp_path / "link.json").charge(pure(0.75))
    assert budget.remaining.epsilon == 0.25
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (tmp_path / "hard.json").hardlink_to(path)
    with pytest.raises(LedgerError, match="hard link"):
        budget.charge(pure(0.1))


def test_a_lock_that_is_held_is_named(path, monkeypatch):
    budget = PrivacyBudget.open(path, epsilon=1.0)
    monkeypatch.setattr(ledger, "LOCK_SECONDS", 0.1)
    with ledger._locked(path), pytest.raises(LedgerError, match="another process"):
        budget.charge(pure(0.5))
    assert budget.history == ()


def test_a_ledger_of_version_1_stays_readable_and_is_written_as_it_was(path, monkeypatch):
    """Written by an earlier version: a change of the hashes or of the text would call it altered."""
    golden = (Path(__file__).parent / "golden" / "ledger-1.json").read_bytes()
    path.write_bytes(golden)
    budget = PrivacyBudget.open(path, epsilon=1.5, delta=1e-6)
    person = Protects("add_remove", "person_id")
    assert budget.history == (
        Cost("by hand", "laplace", Pure(Fraction(1, 7))),
        Cost("measure 2 tables", "laplace", Pure(0.1), person),
        Cost("20 noisy sums — straße", "sampled_gaussian", Approx(0.25, 1e-7), person),
        Cost("measure 3 tables", "gaussian", Zcdp(0.0012345678901234567), person),
    )
    assert budget.head == "1dead92f4ada9e393fb017168851f251f45e8b2d2fb446af3b08edca970fccc5"
    ledger._write(path, ledger._read(path))
    assert path.read_bytes() == golden
    monkeypatch.setattr("pgmpy_dp.privacy.budget.token_hex", lambda size: "0" * 2 * size)
    paid = budget.charge(pure(0.01))
    assert (paid.id, paid.holder) == ("0" * 32, json.loads(golden)["name"])
    assert paid.ledger_total == (budget.spent.epsilon, budget.spent.delta)
    assert budget.head == "933d843ac25151deb5cc43a80dc5b4a2f165714f2fbc42be58fcadebb04dab98"
    assert PrivacyBudget.open(path).history[-1] == paid


def test_charges_are_checked_and_entered_while_the_ledger_is_locked(path, monkeypatch):
    """Of threads and of processes: without the lock, two could read before either writes."""
    seen = []

    def watched(method):
        def watch(self, *args):
            held = budget._ledger._lock.locked()
            if budget.path is not None:
                with pytest.raises(filelock.Timeout):
                    filelock.FileLock(f"{path}.lock", timeout=0).acquire()
            seen.append(held)
            return method(self, *args)

        return watch

    for budget in (PrivacyBudget(1.0), PrivacyBudget.open(path, epsilon=1.0)):
        with monkeypatch.context() as patched:
            patched.setattr(_Account, "with_cost", watched(_Account.with_cost))
            patched.setattr(type(budget._ledger), "append", watched(type(budget._ledger).append))
            budget.charge(pure(0.5))
        with pytest.raises(BudgetExceededError):
            budget.charge(pure(0.6))
        assert not budget._ledger._lock.locked()
    assert seen == [True] * 4


def test_who_makes_a_ledger_second_opens_that_of_the_first(path, monkeypatch):
    """Both saw no file; the first makes and charges it before the second has the lock."""
    locked, first = ledger._locked, []

    @contextmanager
    def late(place):
        if not first:
            first.append(None)  # the first has the lock as it is
            PrivacyBudget.open(path, epsilon=1.0).charge(pure(0.75))
        with locked(place):
            yield

    monkeypatch.setattr(ledger, "_locked", late)
    assert asked(PrivacyBudget.open(path, epsilon=1.0)) == (pure(0.75),)


def test_a_ledger_that_was_replaced_by_one_as_long_is_refused(path):
    budget = PrivacyBudget.open(path, epsilon=1.0)
    budget.charge(pure(0.5))
    content = ledger._read(path)
    for other in (
        ledger.replace(content, charges=(pure(0.01),)),
        ledger.replace(content, charges=(pure(0.01), pure(0.01))),
        ledger.replace(content, name="0" * 32),
        ledger.replace(content, epsilon=Fraction(2)),
        ledger.replace(content, delta=0.5),
    ):
        ledger._write(path, other)  # sound in itself
        for use in (lambda: budget.charge(pure(0.1)), lambda: budget.history, lambda: budget.head):
            with pytest.raises(LedgerError, match="another ledger"):
                use()
        assert ledger._read(path) == other
    ledger._write(path, content)
    budget.charge(pure(0.5))
