"""Costs, sensitivities, mechanisms, the exact ledger and conversions between privacy definitions."""

from pgmpy_dp.privacy.budget import PrivacyBudget, PrivacyLoss
from pgmpy_dp.privacy.cost import Approx, Cost, Protects, Pure, Zcdp
from pgmpy_dp.privacy.noise import OPENDP_NOISE, NoiseSource, SimulatedNoise
from pgmpy_dp.privacy.subsampling import calibrate, price

__all__ = [
    "OPENDP_NOISE",
    "Approx",
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
