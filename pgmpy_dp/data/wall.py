"""What every private source is: a ledger, a promise, and no way out but through it."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from pgmpy_dp.data.sums import NoisySums, charged_plan
from pgmpy_dp.privacy.budget import PrivacyBudget
from pgmpy_dp.privacy.mechanisms import table_sensitivity
from pgmpy_dp.privacy.noise import NoiseSource, checked_noise


class Wall:
    """The part that :class:`~pgmpy_dp.PrivateDataset` shares with private documents and features.

    Raises
    ------
    TypeError, ValueError
        If the budget is no ledger, the neighbour relation or the source of noise unknown.
    """

    _rows: Any  # what a statistic of a plan is handed, one row a record
    _stays: ClassVar[str]  # why copies are refused

    def __init__(self, budget: PrivacyBudget, neighbours: str, noise: NoiseSource) -> None:
        if not isinstance(budget, PrivacyBudget):
            raise TypeError(f"budget must be a PrivacyBudget, got {type(budget).__name__}: write PrivacyBudget(1.0).")
        table_sensitivity(neighbours, "l1")  # refuses other relations
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
        accounting: str = "tight",
        width: int | tuple[int, int, int] | None = None,
    ) -> NoisySums:
        """Charge a plan of Gaussian sums over random samples, and hand it out for a method that iterates.

        Parameters and what is charged as for :meth:`pgmpy_dp.PrivateDataset.plan`.

        Raises
        ------
        BudgetExceededError
            If the charge does not fit; nothing is charged or drawn.
        ValueError
            If an argument is out of range; nothing is charged or drawn.
        """
        return charged_plan(
            self._rows,
            None,
            self._budget,
            self._neighbours,
            self._noise,
            steps=steps,
            delta=delta,
            epsilon=epsilon,
            noise_multiplier=noise_multiplier,
            sampling_rate=sampling_rate,
            batch_size=batch_size,
            sampling=sampling,
            accounting=accounting,
            width=width,
        )

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(self._stays)
