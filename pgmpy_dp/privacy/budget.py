"""Privacy budgets: which charges fit, under exact arithmetic, in a ledger in memory or in a file."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from secrets import token_hex
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp._notebooks import bar, table
from pgmpy_dp.errors import BudgetExceededError, LedgerError
from pgmpy_dp.privacy import accounting
from pgmpy_dp.privacy.checks import checked_delta, decimal_above, decimal_below, exact_positive, rounded_down
from pgmpy_dp.privacy.cost import Approx, Cost, Pure, Zcdp
from pgmpy_dp.privacy.ledger import FileLedger, MemoryLedger

# `remaining` reports this share of the exact rest, so that a charge of all of it fits after rounding.
_ONE_MINUS = 1.0 - 1e-9


@dataclass(frozen=True)
class PrivacyLoss:
    """A privacy loss of (epsilon, delta)."""

    epsilon: float
    delta: float


class PrivacyBudget:
    """Limit on the privacy loss of one collection of records, with the exact ledger of what was spent.

    Charges are checked and entered under a lock, so threads cannot overspend together. A refused charge leaves the
    ledger unchanged. A budget can be neither copied nor pickled, and only the process that made it can charge it,
    since each copy could be spent again; :meth:`open` makes one that processes share.

    Parameters
    ----------
    epsilon : float
        Positive, finite. Read as the exact decimal that it prints as, so ten times 0.1 fits in 1.
    delta : float
        In [0, 1). A budget with delta 0 is pure and accepts only pure charges.

    Raises
    ------
    ValueError
        If epsilon or delta is out of range.

    Notes
    -----
    The guarantee holds also when each charge is chosen after seeing the answers to those before it.

    With delta = 0, pure epsilons add.

    With delta > 0, epsilons and deltas add until the first zCDP charge. Let E and D be their sums at that point. The
    first zCDP charge fixes the Renyi order: the order that admits the most zCDP within (epsilon - E, delta - D). From
    then on, bounds at this order add: order times rho for zCDP, the bound of randomised response for pure charges.
    A block that states a rho, as tables, residuals and steps with Gaussian noise do, satisfies this zCDP as well and is
    then counted by it. Other blocks are refused, since the filter uses all of the remaining delta.

    This is sound. From the first zCDP charge on, the interaction is governed by a Renyi filter of one fixed order
    (Feldman and Zrnic 2021), which guarantees (epsilon - E, delta - D) whatever came before. For the charges before
    it, argue by induction from the last to the first: if what follows every answer y of an (e, d) mechanism is
    (e', d'), then for neighbours P and Q and any event S

        P(S) <= sum_y P(y) min(1, exp(e') Q(S | y)) + d' <= exp(e + e') Q(S) + d + d',

    where the second step is the definition of (e, d) applied to a function with values in [0, 1]. Each charge may thus
    depend on the answers before it. Picking the best order afterwards would admit more, but the order would then
    depend on the answers, which no single filter covers. Letting a later block lower the filter's delta would make the
    filter's stopping rule depend on the answers, which its proof does not cover either.

    Steps of a plan, and charges of a part that was set aside, may be interleaved with other charges: the mechanisms
    are then composed concurrently. With fixed parameters this costs no more than sequential composition, for pure
    epsilon (Vadhan and Wang 2021), for (epsilon, delta) (Lyu 2022; Vadhan and Zhang 2023) and for Renyi divergence of
    one order (Lyu 2022). With parameters chosen by earlier answers, every filter that is valid for sequential
    composition stays valid if it counts (epsilon, delta) or Renyi divergence of one fixed order (Haney et al. 2023).
    The ledger is two such filters. The outer filter adds epsilons and deltas (Rogers et al. 2016); it treats all
    charges from the first zCDP charge on as one more interactive mechanism, of (epsilon - E, delta - D). The inner
    filter is that mechanism, and its order is fixed when it begins. A pure interactive mechanism is a post-processing
    of a non-interactive one (Vadhan and Zhang 2023), so the bound of randomised response applies to it as well. The
    conversion at the best order in `spent` is not an odometer: it bounds plans that are fixed in advance, and the
    guarantee for adaptive ones is the total.

    Consequences: a plan of zCDP charges alone loses nothing; pure charges and blocks are cheapest before the first zCDP
    charge, and blocks without a rho fit only there.

    References
    ----------
    Rogers, Roth, Ullman and Vadhan (2016). Privacy odometers and filters: pay-as-you-go composition. NeurIPS.
    Feldman and Zrnic (2021). Individual privacy accounting via a Renyi filter. NeurIPS.
    Vadhan and Wang (2021). Concurrent composition of differential privacy. TCC.
    Lyu (2022). Composition theorems for interactive differential privacy. NeurIPS.
    Vadhan and Zhang (2023). Concurrent composition theorems for differential privacy. STOC.
    Haney, Shoemate, Tian, Vadhan, Vyrros, Xu and Zhang (2023). Concurrent composition for interactive differential
    privacy with adaptive privacy-loss parameters. CCS.

    Examples
    --------
    >>> budget = PrivacyBudget(1.0)
    >>> for _ in range(10):
    ...     _ = budget.charge(Cost("a table", "laplace", Pure(0.1)))
    >>> budget.spent
    PrivacyLoss(epsilon=1.0, delta=0.0)
    """

    def __init__(self, epsilon: float | Fraction, delta: float = 0.0) -> None:
        account = _Account(exact_positive("epsilon", epsilon), checked_delta(delta, zero_allowed=True))
        self._replayed = (0, account)  # number of charges counted and their account; replaced as one
        self._ledger = MemoryLedger()
        self._part: tuple[PrivacyBudget, Cost] | None = None  # of which budget this is a part, and its one entry there

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], epsilon: float | None = None, delta: float | None = None
    ) -> PrivacyBudget:
        """Open a budget whose ledger is a file, shared by all processes that open it and kept between them.

        Every charge re-reads the file under a lock, and is on disk before `charge` returns. See
        :mod:`pgmpy_dp.privacy.ledger` for the format, and for what tampering the file can reveal.

        Parameters
        ----------
        path : path
            An existing ledger file, or a new one if `epsilon` is given.
        epsilon, delta : float, optional
            Totals of a new ledger (delta defaults to 0); for an existing one they must agree with its totals.

        Raises
        ------
        FileNotFoundError
            If the file does not exist and no epsilon is given, or its folder is missing.
        LedgerError
            If the file is not a valid ledger, was altered, or has other totals.

        Examples
        --------
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> budget = PrivacyBudget.open(f"{folder.name}/ledger.json", epsilon=1.0)
        >>> _ = budget.charge(Cost("a table", "laplace", Pure(0.25)))
        >>> PrivacyBudget.open(f"{folder.name}/ledger.json").remaining.epsilon
        0.75
        >>> folder.cleanup()
        """
        ledger = FileLedger.open(path, epsilon, delta)
        budget = cls(ledger.content.epsilon, ledger.content.delta)
        budget._ledger = ledger
        budget._replay(ledger.charges())
        return budget

    @property
    def epsilon(self) -> float:
        """Return the total epsilon."""
        return decimal_above(self._replayed[1].epsilon)

    @property
    def delta(self) -> float:
        """Return the total delta."""
        return self._replayed[1].delta

    @property
    def protects(self) -> str | None:
        """The difference between neighbours that all charges of this ledger refer to; None until one states it."""
        return next(iter(self._stated(self._ledger.charges())), None)

    @property
    def path(self) -> Path | None:
        """Path of the ledger file; None for a ledger in memory."""
        return self._ledger.path

    @property
    def head(self) -> str | None:
        """Last hash of the ledger file; None for a ledger in memory."""
        return self._ledger.head

    @property
    def history(self) -> tuple[Cost, ...]:
        """All charges in order, including those of other processes that share the ledger."""
        history = self._ledger.charges()
        self._replay(history)
        return history

    @property
    def spent(self) -> PrivacyLoss:
        """Privacy loss of the charges as a plan fixed in advance; never more than the total."""
        return self._replay(self._ledger.charges()).spent()

    @property
    def remaining(self) -> PrivacyLoss:
        """The largest further charge that fits.

        Before the first zCDP charge, this is the total minus the charges. After it, this is the largest epsilon of one
        more Gaussian measurement at the delta given here. Losses do not add under Renyi accounting, so `spent` and
        `remaining` may then sum to more than the total.
        """
        return self._replay(self._ledger.charges()).remaining()

    @property
    def spent_in_all(self) -> PrivacyLoss:
        """What was spent here, or by the budget that this one is a part of."""
        return self.spent if self._part is None else self._part[0].spent_in_all

    @property
    def choices(self) -> tuple[Cost, ...]:
        """Costs of choices that shape later answers, paid here or by the budget that this one is a part of."""
        own = tuple(cost for cost in self._ledger.charges() if cost.chooses)
        whole = None if self._part is None else self._part[0]
        return own if whole is None else (*whole.choices, *own)

    def charge(self, cost: Cost) -> Cost:
        """Enter a cost if it fits, and return it with its name and holder. Call this before the mechanism draws.

        Raises
        ------
        BudgetExceededError
            If the cost does not fit. The ledger is unchanged and accepts a smaller one.
        ValueError
            If the cost needs a delta and the budget has none, or if it protects something else than earlier ones.
        """
        if not isinstance(cost, Cost) or cost.loss is None or cost.id:
            raise ValueError(f"A ledger takes a Cost with a loss that was not paid before, got {type(cost).__name__}.")
        if not isinstance(cost.loss, Pure) and not self.delta:
            raise ValueError(
                f"The {cost.mechanism} mechanism needs a delta, and this budget has none: "
                "make it PrivacyBudget(epsilon, delta=1e-6), or use the Laplace mechanism."
            )
        with self._ledger.locked() as history:
            account = self._replay(history)
            stated = self._stated(history) if cost.protects is not None else []
            for protects in stated:
                if protects != str(cost.protects):
                    raise ValueError(
                        f"This charge protects {cost.protects}, and this budget's charges protect {protects}: they do "
                        "not add up. Nothing was charged. Keep to one relation of neighbours and one unit, or state a "
                        "budget for each."
                    )
            after = account.with_cost(cost)
            if after is None:
                raise BudgetExceededError(_refusal(cost, account))
            self._charge_whole(cost, history)
            total = after.spent() if self._part is None else self.spent_in_all
            in_all = total.epsilon, total.delta
            paid = replace(cost, id=token_hex(16), holder=self._ledger.name, ledger_total=in_all)
            self._ledger.append(paid)
            self._replayed = len(history) + 1, after
        return paid

    def set_aside(self, epsilon: float | Fraction, delta: float = 0.0) -> PrivacyBudget:
        """Reserve a part for a method of several steps, so that it starts only if all of them can be paid for.

        The first charge to the part enters its total here, in one entry; what the part does not spend stays charged.

        Parameters
        ----------
        epsilon : float or Fraction
            The total of the new ledger. Whether it fits is decided at its first charge.
        delta : float
            With delta 0, the part accepts pure charges only and its entry here is epsilon. Otherwise it accepts zCDP
            charges only, and its entry here is the largest rho that implies (epsilon, delta).

        Returns
        -------
        PrivacyBudget

        Notes
        -----
        The charges to the part sum to at most its one entry here, in epsilon or in rho. They cost no more than that
        entry under Renyi accounting either: a bound that holds for every mechanism of that epsilon, or of that rho,
        covers all of them together.

        Examples
        --------
        >>> budget = PrivacyBudget(1.0)
        >>> part = budget.set_aside(0.5)
        >>> _ = part.charge(Cost("first step", "laplace", Pure(0.1)))
        >>> budget.remaining.epsilon, part.remaining.epsilon
        (0.5, 0.4)
        """
        part = PrivacyBudget(epsilon, delta)
        loss = Zcdp(accounting.zcdp_limit(epsilon, delta)[0]) if delta else Pure(exact_positive("epsilon", epsilon))
        part._ledger = MemoryLedger(self._ledger.name)
        part._part = self, Cost("several steps", "several", loss)
        return part

    def _charge_whole(self, cost: Cost, history: tuple[Cost, ...]) -> None:
        """Enter a part in its whole before its own first entry, and refuse charges that the entry does not cover."""
        if self._part is None:
            return
        whole, entry = self._part
        if type(cost.loss) is not type(entry.loss):
            kind = "pure" if isinstance(entry.loss, Pure) else "zCDP"
            raise ValueError(f"This part was set aside for {kind} charges only, and got a charge of {cost.mechanism}.")
        if not history:
            whole.charge(replace(entry, mechanism=cost.mechanism, protects=cost.protects))
        elif cost.protects is not None and whole.protects is None:
            raise ValueError(
                f"This charge protects {cost.protects}, and earlier charges of this part do not state what they "
                "protect, so they cannot be added. Nothing was charged. Begin with a charge that states it."
            )

    def _stated(self, history: tuple[Cost, ...]) -> list[str]:
        """List what the budget that this is a part of, and the charges, state to protect."""
        own = None if self._part is None else self._part[0].protects
        return [str(protects) for protects in (own, *(charge.protects for charge in history)) if protects is not None]

    def _replay(self, history: tuple[Cost, ...]) -> _Account:
        """Add the charges that were not counted before to the account."""
        counted, account = self._replayed
        for charge in history[counted:]:
            after = account.with_cost(charge)
            if after is None:
                raise LedgerError(f"{self.path}: the charges come to more than the total; the ledger was altered.")
            account = after
        self._replayed = max(counted, len(history)), account
        return account

    def __repr__(self) -> str:
        total = f"epsilon={self.epsilon!r}, delta={self.delta!r}"
        return f"PrivacyBudget({total}, spent epsilon={self.spent.epsilon:.6g})"

    def _repr_html_(self) -> str:
        spent, remaining = self.spent, self.remaining
        share = bar(0.0, spent.epsilon, spent.epsilon, self.epsilon)
        rows: list[tuple[object, ...]] = [
            ("total", f"{self.epsilon:g}", f"{self.delta:g}", ""),
            ("spent", f"{spent.epsilon:.6g}", f"{spent.delta:.6g}", share),
            ("remaining", f"{remaining.epsilon:.6g}", f"{remaining.delta:.6g}", ""),
        ]
        return table("Privacy budget", ["", "epsilon", "delta", ""], rows)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("A PrivacyBudget can be neither copied nor pickled: each copy could be spent again.")


@dataclass(frozen=True, eq=False)
class _Account:
    """Sums over a history; the notes of :class:`PrivacyBudget` state the rule."""

    epsilon: Fraction
    delta: float
    pure: Fraction = Fraction(0)  # sum of the epsilons before the first zCDP charge
    taken: Fraction = Fraction(0)  # sum of their deltas
    order: float | None = None  # fixed at the first zCDP charge
    limit: Fraction = Fraction(0)  # at this order, for all charges from the first zCDP charge on
    used: Fraction = Fraction(0)  # of the limit
    curve: NDArray[np.float64] | None = None  # the sum of those charges at all orders, for reports

    def with_cost(self, cost: Cost) -> _Account | None:
        """Return the account after a cost, or None if it does not fit."""
        loss = cost.loss
        if self.order is not None and isinstance(loss, Approx) and loss.rho is not None:
            loss = Zcdp(loss.rho)
        if self.order is None and isinstance(loss, (Pure, Approx)):
            after = replace(self, pure=self.pure + loss.epsilon, taken=self.taken + loss.delta)
            return after if after.pure <= self.epsilon and after.taken <= Fraction(str(self.delta)) else None
        account = self if self.order is not None else self._with_order()
        if account is None or account.order is None or not isinstance(loss, (Pure, Zcdp)):
            return None
        curve = accounting.renyi_curve(loss)
        if isinstance(loss, Zcdp):
            used = account.used + Fraction(loss.rho) * Fraction(account.order)
        else:
            used = account.used + Fraction(float(curve[accounting.ORDERS.index(account.order)]))
        if used > account.limit:
            return None
        return replace(account, used=used, curve=curve if account.curve is None else account.curve + curve)

    def _with_order(self) -> _Account | None:
        left = rounded_down(self.epsilon - self.pure)
        if left <= 0.0 or self.delta_left <= 0.0:
            return None
        try:
            rho, order = accounting.zcdp_limit(left, self.delta_left)
        except ValueError:  # too little is left for this delta: no zCDP charge fits
            return None
        return replace(self, order=order, limit=Fraction(rho) * Fraction(order))

    @property
    def delta_left(self) -> float:
        """The delta that blocks have left, for other blocks or for the Renyi filter."""
        return decimal_below(Fraction(str(self.delta)) - self.taken)

    def spent(self) -> PrivacyLoss:
        if self.curve is None:
            return PrivacyLoss(decimal_above(self.pure), decimal_above(self.taken))
        epsilon = decimal_above(self.pure) + accounting.epsilon_from_renyi(self.curve, self.delta_left)
        return PrivacyLoss(min(epsilon, decimal_above(self.epsilon)), self.delta)

    def remaining(self) -> PrivacyLoss:
        if self.order is None:
            return PrivacyLoss(decimal_below(self.epsilon - self.pure), self.delta_left)
        rho = rounded_down((self.limit - self.used) / Fraction(self.order)) * _ONE_MINUS
        if rho <= 0.0:
            return PrivacyLoss(0.0, self.delta_left)
        epsilon = accounting.epsilon_from_renyi(accounting.zcdp_curve(rho), self.delta_left)
        return PrivacyLoss(epsilon * _ONE_MINUS, self.delta_left)


def _refusal(cost: Cost, account: _Account) -> str:
    spent, remaining = account.spent().epsilon, account.remaining().epsilon
    at_delta = f" at delta={account.delta:g}" if account.delta else ""
    block = isinstance(cost.loss, Approx)
    if remaining <= 0.0:
        advice = "Nothing is left: work from the releases already made."
    elif isinstance(cost.loss, Approx) and cost.loss.rho is None and account.order is not None:
        advice = (
            "The Gaussian measurements before took all of delta: charge (epsilon, delta) blocks first, or give them a "
            "budget of their own."
        )
    elif account.order is None:
        at_most = f"epsilon={remaining!r}" + (f", delta={account.delta_left!r}" if block else "")
        advice = f"Ask for at most {at_most}."
    else:  # a pure charge's bound at any order is at most its epsilon
        pure = float(account.limit - account.used) * _ONE_MINUS
        advice = (
            f"Ask for at most epsilon={remaining!r}, delta={account.delta!r} by the Gaussian mechanism, "
            f"or for epsilon={pure!r} by a pure one."
        )
    return (
        f"This charge ({cost.mechanism}, {cost.loss}) does not fit in the privacy budget of "
        f"epsilon={float(account.epsilon):g}{at_delta}: spent epsilon={spent:g}, "
        f"remaining epsilon={remaining:g}. Nothing was charged. {advice}"
    )
