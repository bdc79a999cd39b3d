"""What every private source checks about its ledger and its promise."""

from __future__ import annotations

from typing import Any

from pgmpy_dp.privacy.budget import PrivacyBudget
from pgmpy_dp.privacy.mechanisms import table_sensitivity
from pgmpy_dp.privacy.noise import checked_noise


def checked_wall(budget: Any, neighbours: Any, noise: Any) -> None:
    """Refuse what is no ledger, no neighbour relation or no source of noise.

    Raises
    ------
    TypeError, ValueError
    """
    if not isinstance(budget, PrivacyBudget):
        raise TypeError(f"budget must be a PrivacyBudget, got {type(budget).__name__}: write PrivacyBudget(1.0).")
    table_sensitivity(neighbours, "l1")  # refuses other relations
    checked_noise(noise)
