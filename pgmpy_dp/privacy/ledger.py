"""Ledgers of costs: in memory for one process, or in a file shared by processes.

The file is JSON: the totals, a random name, and the history of charges, with fractions as exact text. It is replaced as
a whole, and only once the new one is on disk, so a crash leaves the ledger as it was either before or after a charge. A
charge holds a lock (``ledger.json.lock`` beside the file) while it reads the file, replays the charges of other
processes, checks that it fits, and writes: processes cannot overspend together, and memory and file cannot disagree.

What the file reveals
    Each charge carries the SHA-256 of itself and of the hash before it; the first hash covers the totals and the random
    name, and the last is repeated at the end of the file. Changed totals, charges that were changed, repeated,
    reordered or removed, mixed ledgers and half-written files are refused. An open budget also refuses a file that
    lost a charge it has seen.

What it cannot reveal
    The hashes are not a signature: whoever may write the file can recompute them, and can restore an old copy while no
    budget is open. No file can prevent that by itself. The owner of the records is trusted here, as in all of the
    owner's half: protect the file like the records, and never restore it from a backup after a release. To prove later
    that nothing was removed, note the last hash ("head") after each release where it cannot be changed: a ledger that
    still contains that hash contains all charges up to it.

The lock is advisory. On network drives it is only as reliable as the drive's own locks; prefer a local disk.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from pgmpy_dp._files import parse_json, path_of, replacing, unfinished
from pgmpy_dp.errors import BudgetExceededError, LedgerError
from pgmpy_dp.privacy.checks import checked_delta, exact_from_text, exact_positive, exact_text
from pgmpy_dp.privacy.cost import Cost

FORMAT = "pgmpy_dp ledger"
VERSION = 1
LOCK_SECONDS = 60.0


@dataclass(frozen=True)
class _Content:
    """Content of a ledger file."""

    name: str
    epsilon: Fraction
    delta: float
    charges: tuple[Cost, ...] = ()

    @property
    def start(self) -> dict[str, Any]:
        """What the file begins with: the name and the totals."""
        totals = {"epsilon": exact_text("epsilon", self.epsilon), "delta": self.delta}
        return {"format": FORMAT, "version": VERSION, "name": self.name} | totals

    def hashes(self) -> list[str]:
        """Return the hash of the totals and the name, followed by one hash per charge."""
        chain = [_hash("", self.start)]
        for charge in self.charges:
            chain.append(_hash(chain[-1], charge.to_dict()))
        return chain


class MemoryLedger:
    """Ledger of one process, in memory. A forked copy can be read, but refuses charges."""

    path: Path | None = None

    def __init__(self, name: str | None = None) -> None:
        self.name = secrets.token_hex(16) if name is None else name
        self._charges: tuple[Cost, ...] = ()
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def head(self) -> str | None:
        """The last hash of the file; None in memory."""
        return None

    def charges(self) -> tuple[Cost, ...]:
        """Return all charges to date."""
        return self._charges

    @contextmanager
    def locked(self) -> Iterator[tuple[Cost, ...]]:
        """Keep other threads out while the context is open; yields the charges."""
        with self._lock:
            if os.getpid() != self._process:
                raise BudgetExceededError(
                    "This budget is a copy in a forked process, and each copy could be spent again. Nothing was "
                    "charged. Charge it in the process that made it, or share a ledger "
                    "file, which PrivacyBudget.open makes."
                )
            yield self._charges

    def append(self, charge: Cost) -> None:
        """Enter a charge while the ledger is locked."""
        self._charges = (*self._charges, charge)


class FileLedger(MemoryLedger):
    """Ledger in a file, shared by all processes that open it; see the top of this module."""

    def __init__(self, path: Path, content: _Content) -> None:
        super().__init__(content.name)
        self.path: Path = path
        self.content = content  # as it was last read or written

    @classmethod
    def open(cls, path: str | os.PathLike[str], epsilon: float | None, delta: float | None) -> FileLedger:
        """Open or make a ledger file; see :meth:`PrivacyBudget.open`."""
        position = path_of(path).resolve()  # two links to one ledger must share its lock
        if epsilon is None and not position.exists():
            raise FileNotFoundError(f"{path}: this ledger does not exist. Give a total epsilon to make it.")
        wanted = None if epsilon is None else exact_positive("epsilon", epsilon)
        total_delta = None if delta is None else checked_delta(delta, zero_allowed=True)
        if wanted is not None and not position.exists():
            fresh = _Content(secrets.token_hex(16), wanted, total_delta or 0.0)
            with _locked(position):
                if not position.exists():
                    _write(position, fresh)
        content = _read(position)
        for name, asked, stored in (("epsilon", wanted, content.epsilon), ("delta", total_delta, content.delta)):
            if asked is not None and asked != stored:
                raise LedgerError(
                    f"{path}: this ledger has a total {name} of {float(stored)!r}, not {float(asked)!r}. A total is "
                    f"fixed when the ledger is made: leave {name} out, or give the same."
                )
        return cls(position, content)

    @property
    def head(self) -> str:
        """Return the last hash of the file."""
        with self._lock:
            return self._read_again().hashes()[-1]

    def charges(self) -> tuple[Cost, ...]:
        """Return the charges of all processes to date."""
        with self._lock:
            return self._read_again().charges

    @contextmanager
    def locked(self) -> Iterator[tuple[Cost, ...]]:
        """Keep other threads and processes out while the context is open; yields the charges."""
        with self._lock, _locked(self.path):
            yield self._read_again().charges

    def append(self, charge: Cost) -> None:
        """Write a charge to disk while the ledger is locked."""
        content = replace(self.content, charges=(*self.content.charges, charge))
        _write(self.path, content)
        self.content = content

    def _read_again(self) -> _Content:
        """Read the file, which must still contain everything that was seen in it."""
        content = _read(self.path)
        seen = len(self.content.charges)
        if replace(content, charges=content.charges[:seen]) != self.content:
            raise LedgerError(
                f"{self.path}: the ledger has lost charges, or is another ledger. It was restored or replaced "
                "while in use: restore the newest copy, which holds all charges."
            )
        self.content = content
        return content


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    from filelock import FileLock, Timeout  # imports asyncio, which budgets in memory do not need

    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent}: this folder does not exist; make it first.")
    lock = FileLock(path.with_name(f"{path.name}.lock"), timeout=LOCK_SECONDS)
    try:
        lock.acquire()
    except Timeout:
        raise LedgerError(
            f"{path}: another process has held the ledger for {LOCK_SECONDS:.0f} seconds; nothing was charged. "
            "If that process hangs, end it and try again."
        ) from None
    try:
        yield
    finally:
        lock.release()


def _read(path: Path) -> _Content:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise LedgerError(
            f"{path}: the ledger is missing. Restore it; a new one would forget what was spent."
        ) from None
    if path.stat().st_nlink > 1:
        raise LedgerError(
            f"{path}: the ledger has a second name (a hard link), which would act as a second budget: remove one."
        )
    try:
        stored = parse_json(raw)
        if stored["format"] != FORMAT or not isinstance(stored["version"], int) or stored["version"] < VERSION:
            raise ValueError("it has another format or version.")
        if stored["version"] > VERSION:
            raise LedgerError(f"{path}: the ledger was written by a newer pgmpy_dp: upgrade it. Nothing was charged.")
        epsilon = exact_positive("epsilon", exact_from_text("epsilon", stored["epsilon"]))
        delta, entries = checked_delta(stored["delta"], zero_allowed=True), stored["charges"]
        charges = tuple(Cost.from_dict(entry["charge"]) for entry in entries)
        content = _Content(stored["name"], epsilon, delta, charges)
        head, *hashes = content.hashes()
        if hashes != [entry["hash"] for entry in entries] or stored["head"] != [head, *hashes][-1]:
            raise ValueError("its hashes do not match its contents: it was altered, or lost charges.")
    except LedgerError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
        raise LedgerError(
            f"{path}: not a valid ledger ({error}) Restore the newest copy, which holds all charges."
        ) from error
    return content


def _write(path: Path, content: _Content) -> None:
    """Replace the file, under its lock."""
    hashes = content.hashes()
    entries = [
        {"charge": charge.to_dict(), "hash": link} for charge, link in zip(content.charges, hashes[1:], strict=True)
    ]
    whole = content.start | {"charges": entries, "head": hashes[-1]}
    text = json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False)
    for left in path.parent.glob(unfinished(path)):  # left by a process that was killed while it held the lock
        left.unlink(missing_ok=True)
    mode = path.stat().st_mode if path.exists() else None
    with replacing(path) as handle:
        if mode is not None and hasattr(os, "fchmod"):
            os.fchmod(handle.fileno(), stat.S_IMODE(mode))
        handle.write(text.encode() + b"\n")


def _hash(before: str, entry: dict[str, Any]) -> str:
    canonical = json.dumps([before, entry], sort_keys=True, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
