"""Sensitivities, mechanisms, the exact ledger and conversions between privacy definitions."""

from pgmpy_dp.privacy.budget import PrivacyBudget, PrivacyLoss
from pgmpy_dp.privacy.ledger import Charge
from pgmpy_dp.privacy.noise import OPENDP_NOISE, NoiseSource, SimulatedNoise
from pgmpy_dp.privacy.subsampling import calibrate, price

__all__ = [
    "OPENDP_NOISE",
    "Charge",
    "NoiseSource",
    "PrivacyBudget",
    "PrivacyLoss",
    "SimulatedNoise",
    "calibrate",
    "price",
]
