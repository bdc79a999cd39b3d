"""A ledger in a file: one privacy budget for all processes that open it, now and later.

The file is JSON: the totals, a random name, and the history of charges, fractions as exact text. It is replaced
as a whole, and only once the new one is on disk, so a crash leaves the ledger before a charge or after it. A
charge holds a lock (``ledger.json.lock`` beside it, of no other use) while it reads the file, replays the
charges of other processes, checks that it fits, and writes: processes cannot overspend together, and memory and
file cannot disagree.

What the file shows
    Each charge carries the SHA-256 of itself and of the hash before it; the first builds on the totals and the
    random name, and the last stands at the end of the file. Changed totals, changed, repeated, reordered or
    missing charges, mixed ledgers and half-written files are refused. A budget that is open also refuses a file
    that lost a charge it has seen.

What it cannot show
    The hashes are no signature: whoever may write the file can compute new ones, and can put a whole old copy
    back while no budget is open. No file can show that by itself. The owner of the records is trusted here, as
    everywhere behind the wall: protect the file as the records are protected, and never restore it from a backup
    after a release. To be able to prove it later, note the last hash ("head") after each release where it cannot
    be changed: a ledger that still holds that hash holds all charges up to it.

The lock is advisory. On network drives it is as good as the drive's own locks; prefer a local disk.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from pgmpy_dp._files import parse_json, replacing
from pgmpy_dp.errors import LedgerError
from pgmpy_dp.privacy.budget import Charge, PrivacyBudget, PrivacyLoss
from pgmpy_dp.privacy.checks import checked_delta, exact_from_text, exact_positive, exact_text

FORMAT = "pgmpy_dp ledger"
VERSION = 1
LOCK_SECONDS = 60.0


@dataclass(frozen=True)
class _Content:
    """What a ledger file holds."""

    name: str
    epsilon: Fraction
    delta: float
    charges: tuple[Charge, ...] = ()

    def hashes(self) -> list[str]:
        """That of the totals and the name, then one for each charge."""
        start = {"format": FORMAT, "version": VERSION, "name": self.name}
        chain = [_hash("", start | {"epsilon": exact_text("epsilon", self.epsilon), "delta": self.delta})]
        for charge in self.charges:
            chain.append(_hash(chain[-1], charge.to_dict()))
        return chain


class LedgerBudget(PrivacyBudget):
    """A budget whose ledger is a file; made by :meth:`PrivacyBudget.open`."""

    def __init__(self, path: Path, content: _Content) -> None:
        super().__init__(content.epsilon, content.delta)  # type: ignore[arg-type]
        self._path = path
        self._content = _Content(content.name, content.epsilon, content.delta)
        self._catch_up(content)

    @property
    def path(self) -> Path:
        """The ledger file."""
        return self._path

    @property
    def head(self) -> str:
        """The last hash of the file."""
        self._read_again()
        return self._content.hashes()[-1]

    @property
    def history(self) -> tuple[Charge, ...]:
        """The charges of all processes so far, in order."""
        self._read_again()
        return super().history

    @property
    def spent(self) -> PrivacyLoss:
        """What the charges of all processes so far come to; see :attr:`PrivacyBudget.spent`."""
        self._read_again()
        return super().spent

    @property
    def remaining(self) -> PrivacyLoss:
        """What one more charge may ask for at this moment; see :attr:`PrivacyBudget.remaining`."""
        self._read_again()
        return super().remaining

    def _read_again(self) -> None:
        with self._lock:
            self._catch_up(_read(self._path))

    @contextmanager
    def _held(self) -> Iterator[None]:
        with _locked(self._path):
            self._catch_up(_read(self._path))
            yield

    def _record(self, charge: Charge) -> None:
        content = replace(self._content, charges=(*self._content.charges, charge))
        _write(self._path, content)
        self._content = content

    def _catch_up(self, content: _Content) -> None:
        """Replay what the file has beyond this object's history, which it must contain."""
        seen = len(self._content.charges)
        if replace(content, charges=content.charges[:seen]) != self._content:
            raise LedgerError(
                f"{self._path}: charges that were in the ledger are gone, or it is another ledger. It was put back or "
                "replaced while in use: restore the newest copy, which holds all charges."
            )
        for charge in content.charges[len(self._history) :]:
            account = self._account.with_charge(charge)
            if account is None:
                raise LedgerError(f"{self._path}: the charges come to more than the total; the ledger was altered.")
            self._account = account
            self._history.append(charge)
        self._content = content


def open_ledger(path: str | os.PathLike[str], epsilon: float | None, delta: float | None) -> LedgerBudget:
    """See :meth:`PrivacyBudget.open`."""
    place = Path(path).resolve()  # two links to one ledger must share its lock
    if epsilon is None:
        if not place.exists():
            raise FileNotFoundError(f"{path}: there is no such ledger. Make one by giving its total epsilon.")
        wanted = None
    else:
        wanted = exact_positive("epsilon", epsilon)
    total_delta = None if delta is None else checked_delta(delta, zero_allowed=True)
    if wanted is not None and not place.exists():
        fresh = _Content(secrets.token_hex(16), wanted, total_delta or 0.0)
        with _locked(place):
            if not place.exists():
                _write(place, fresh)
    content = _read(place)
    for name, asked, held in (("epsilon", wanted, content.epsilon), ("delta", total_delta, content.delta)):
        if asked is not None and asked != held:
            raise LedgerError(
                f"{path}: this ledger has a total {name} of {float(held)!r}, not {float(asked)!r}. A total is fixed "
                f"when the ledger is made: leave {name} out, or give the same."
            )
    return LedgerBudget(place, content)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent}: there is no such folder; make it first.")
    lock = FileLock(path.with_name(f"{path.name}.lock"), timeout=LOCK_SECONDS)
    try:
        lock.acquire()
    except Timeout:
        raise LedgerError(
            f"{path}: another process has held the ledger for {LOCK_SECONDS:.0f} seconds; nothing was charged. "
            "Look for one that hangs, end it, and try again."
        ) from None
    try:
        yield
    finally:
        lock.release()


def _read(path: Path) -> _Content:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise LedgerError(f"{path}: the ledger is gone. Restore it; a new one would forget what was spent.") from None
    if path.stat().st_nlink > 1:
        raise LedgerError(
            f"{path}: the ledger has a second name (a hard link), under which it would be a second budget: remove one."
        )
    try:
        stored = parse_json(raw)
        if stored["format"] != FORMAT or stored["version"] != VERSION:
            raise ValueError("it has another format or version.")
        epsilon, delta = (
            exact_from_text("epsilon", stored["epsilon"]),
            checked_delta(stored["delta"], zero_allowed=True),
        )
        entries = stored["charges"]
        charges = tuple(Charge.from_dict(entry["charge"]) for entry in entries)
        content = _Content(stored["name"], exact_positive("epsilon", epsilon), delta, charges)
        head, *hashes = content.hashes()
        if hashes != [entry["hash"] for entry in entries] or stored["head"] != [head, *hashes][-1]:
            raise ValueError("its hashes do not fit its contents; it was altered, or lost charges.")
    except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
        raise LedgerError(
            f"{path}: not a sound ledger ({error}) Restore the newest copy, which holds all charges."
        ) from error
    return content


def _write(path: Path, content: _Content) -> None:
    hashes = content.hashes()
    entries = [
        {"charge": charge.to_dict(), "hash": link} for charge, link in zip(content.charges, hashes[1:], strict=True)
    ]
    start = {"format": FORMAT, "version": VERSION, "name": content.name}
    totals = {"epsilon": exact_text("epsilon", content.epsilon), "delta": content.delta}
    text = json.dumps(
        start | totals | {"charges": entries, "head": hashes[-1]}, indent=1, ensure_ascii=False, allow_nan=False
    )
    mode = path.stat().st_mode if path.exists() else None
    with replacing(path) as handle:
        if mode is not None and hasattr(os, "fchmod"):
            os.fchmod(handle.fileno(), stat.S_IMODE(mode))
        handle.write(text.encode() + b"\n")


def _hash(before: str, entry: dict[str, Any]) -> str:
    canonical = json.dumps([before, entry], sort_keys=True, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
