"""The wall: every private source has a ledger and a neighbour relation, and answers leave only through them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, NoReturn, Self, TypeVar

import numpy as np

from pgmpy_dp.data.mechanisms.mechanism import Mechanism, PrivateRecords, Public, Quote, Rows, quoted
from pgmpy_dp.data.mechanisms.sums import NoisySums, SampledSums
from pgmpy_dp.errors import BudgetExceededError, SchemaError, warn
from pgmpy_dp.privacy.budget import PrivacyBudget
from pgmpy_dp.privacy.guarantee import DECLARED, learned
from pgmpy_dp.privacy.noise import NoiseSource, checked_noise, table_sensitivity

Answer = TypeVar("Answer")


@contextmanager
def _saying(what: str) -> Iterator[None]:
    """Add to an error of reading records what was charged, which the reader does not know."""
    try:
        yield
    except (SchemaError, BudgetExceededError) as error:
        error.args = (f"{error} {what}",)
        raise


class Wall:
    """Base class of private data: records, documents and features behind a ledger."""

    _rows: Any  # passed to a statistic by plans, where variables have no names
    _stays: ClassVar[str]  # message when a copy is refused
    _earlier = DECLARED  # guarantee of what was learned before, which all answers include

    def __init__(self, budget: PrivacyBudget, neighbours: str, noise: NoiseSource) -> None:
        if not isinstance(budget, PrivacyBudget):
            raise TypeError(f"budget must be a PrivacyBudget, got {type(budget).__name__}: write PrivacyBudget(1.0).")
        table_sensitivity(neighbours, "l1")  # raises for other relations
        checked_noise(noise)
        self._budget, self._neighbours, self._noise = budget, neighbours, noise

    @property
    def budget(self) -> PrivacyBudget:
        """The ledger."""
        return self._budget

    @property
    def neighbours(self) -> str:
        """The neighbour relation, "add_remove" or "replace_one"."""
        return self._neighbours

    def after(self, *learned_before: Any) -> Self:
        """Return the same records, whose answers include the cost of what was learned before.

        A release states its cost, and that of everything that determined its tables: schemas, plans and networks state
        theirs. If tables are chosen by hand in view of an earlier release, name that release here.

        Parameters
        ----------
        *learned_before
            Releases, networks, plans, schemas or guarantees.

        Examples
        --------
        >>> import pandas, pgmpy_dp as dp
        >>> records = pandas.DataFrame({"smoke": ["yes", "no"] * 50, "lung": ["yes", "no"] * 50})
        >>> schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
        >>> data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(1.0))
        >>> first = data.measure([("smoke",)], epsilon=0.25)
        >>> data.after(first).measure([("smoke", "lung")], epsilon=0.5).guarantee.epsilon
        0.75
        """
        return self._with(_earlier=learned(self._earlier, *learned_before))

    def _with(self, **changes: Any) -> Self:
        """Return the same records with other attributes."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__ | changes)
        return other

    def release(self, mechanism: Mechanism[Any, Any, Answer]) -> Answer:
        """Ask a mechanism for its price, charge it, and let it draw: the only way out.

        The answer states its cost, and that of everything that was learned from records before and shaped it: by the
        mechanism's fields, by the schema, and by `after`.

        Parameters
        ----------
        mechanism : Mechanism
            Public parameters, such as :class:`~pgmpy_dp.data.mechanisms.tables.CountedTables`. Methods such as
            `measure` and `plan` each make one.

        Raises BudgetExceededError if the charge does not fit; nothing is charged or drawn.

        Warns
        -----
        UserWarning
            If the ledger paid for states, bins or a graph whose cost the answer does not include.
        """
        public = self._public
        quote = quoted(mechanism, public, self._earlier)
        with _saying("No charge was added for this answer; earlier ones stay."):
            exact = mechanism.read(quote, self._read_from)
        paid = self._budget.charge(quote.cost)
        quote = replace(quote, cost=paid)
        self._warn_of_choices(quote)
        with _saying(f"The charge {paid.label!r} stays."):
            answer = mechanism.draw(quote, public, exact, self._noise)
        if learned(answer).every != quote.guarantee.every:
            raise TypeError(f"{type(mechanism).__name__} hands out an answer that states other costs than were paid.")
        return answer

    def _warn_of_choices(self, quote: Quote[Any]) -> None:
        """Warn of what the ledger paid for and the answer does not include: a list typed by hand cannot be traced."""
        carried = {cost.id for cost in quote.guarantee.every}
        missing = [cost.chooses for cost in self._budget.choices if cost.id not in carried]
        if missing and not quote.cost.chooses:
            warn(
                f"The ledger paid for {' and '.join(dict.fromkeys(missing))}, whose cost this answer does not include. "
                "If its states or tables follow from that, its guarantee is too small: measure with the schema, plan "
                "or network as it was returned or saved."
            )

    def plan(
        self,
        steps: int,
        *,
        delta: float,
        epsilon: float | None = None,
        noise_multiplier: float | None = None,
        sampling_rate: float | None = None,
        batch_size: int | None = None,
        sampling: str | None = None,
        width: int | tuple[int, int, int] | None = None,
    ) -> NoisySums:
        """Charge a plan of Gaussian sums over random samples; see :meth:`pgmpy_dp.PrivateDataset.plan`.

        Raises BudgetExceededError, ValueError if the charge does not fit, or an argument is out of range; nothing is
        charged or drawn.
        """
        return self.begin(
            SampledSums(steps, delta, epsilon, noise_multiplier, sampling_rate, batch_size, sampling, width)
        )

    def begin(self, sums: SampledSums) -> NoisySums:
        """Charge and return a plan of sums; a refusal names the noise multiplier that would fit."""
        self._noise.discrete_gaussian(np.zeros(1, dtype=np.int64), 1.0)  # raises here where OpenDP is missing
        try:
            return self.release(sums)
        except BudgetExceededError as error:
            raise BudgetExceededError(f"{error} {sums.advice(self._public, self._budget.remaining)}") from None

    @property
    def copy(self) -> NoReturn:
        """Raise with advice: pgmpy's own estimators copy the frame that they read, and reach here with private data."""
        raise AttributeError(
            "Private records are not a data frame, which pgmpy's own estimators need: name an estimator of pgmpy_dp, "
            "as in network.fit(data, estimator=dp.AutoMLE(epsilon=1.0))."
        )

    @property
    def _public(self) -> Public:
        total = int(self._rows.shape[0]) if self._neighbours == "replace_one" else None
        return Public(self._neighbours, None, total, self._budget.delta, self._noise.private)

    @property
    def _read_from(self) -> PrivateRecords | Rows:
        return Rows(self._rows)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(self._stays)


def require_public(records: Any, kind: str = "records") -> None:
    """Refuse private records in a method that answers for each record."""
    if isinstance(records, Wall):
        raise TypeError(f"This is for public {kind}: the guarantee does not cover results for private ones.")
