"""Differentially private graphical models for pgmpy."""

from importlib.metadata import PackageNotFoundError, version

from pgmpy_dp.data import PrivateDataset, exact_marginals
from pgmpy_dp.errors import BudgetExceededError, ReleaseFormatError, SchemaError
from pgmpy_dp.estimators import CollectiveEM, MaximumLikelihood, NaiveMLE, PrivateMLE, plan_measurements
from pgmpy_dp.models import PrivateMarkovNetwork
from pgmpy_dp.privacy import PrivacyBudget, SimulatedNoise
from pgmpy_dp.release import Guarantee, NoisyMarginals
from pgmpy_dp.schema import Bins, Schema

try:
    __version__ = version("pgmpy-dp")
except PackageNotFoundError:
    __version__ = "unknown"

__all__ = [
    "Bins",
    "BudgetExceededError",
    "CollectiveEM",
    "Guarantee",
    "MaximumLikelihood",
    "NaiveMLE",
    "NoisyMarginals",
    "PrivacyBudget",
    "PrivateDataset",
    "PrivateMLE",
    "PrivateMarkovNetwork",
    "ReleaseFormatError",
    "Schema",
    "SchemaError",
    "SimulatedNoise",
    "exact_marginals",
    "plan_measurements",
]
