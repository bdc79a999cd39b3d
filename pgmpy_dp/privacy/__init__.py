"""Costs, sensitivities, mechanisms, the exact ledger and conversions between privacy definitions."""

import warnings
from fractions import Fraction

from pgmpy_dp.privacy.budget import PrivacyBudget, PrivacyLoss
from pgmpy_dp.privacy.cost import Approx, Cost, Protects, Pure, Zcdp
from pgmpy_dp.privacy.noise import OPENDP_NOISE, NoiseSource, SimulatedNoise
from pgmpy_dp.privacy.subsampling import calibrate, price

__all__ = [
    "OPENDP_NOISE",
    "Approx",
    "Charge",
    "Cost",
    "NoiseSource",
    "PrivacyBudget",
    "PrivacyLoss",
    "Protects",
    "Pure",
    "SimulatedNoise",
    "Zcdp",
    "calibrate",
    "price",
]


def Charge(
    label: str,
    mechanism: str,
    epsilon: float | Fraction | None = None,
    rho: float | None = None,
    delta: float | Fraction | None = None,
    protects: str | None = None,
) -> Cost:
    """Make a `Cost`, which replaces this name of version 0.3 and goes with the next."""
    warnings.warn("pgmpy_dp.privacy.Charge is pgmpy_dp.privacy.Cost now.", DeprecationWarning, stacklevel=2)
    amounts = {"epsilon": epsilon, "rho": rho, "delta": delta or None, "protects": protects}
    return Cost.from_dict(
        {"label": label, "mechanism": mechanism, **{n: v for n, v in amounts.items() if v is not None}}
    )
