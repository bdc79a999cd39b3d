"""The public names, read by lazy_loader and by type checkers."""

from .data import PrivateDataset, exact_marginals
from .errors import BudgetExceededError, LedgerError, ReleaseFormatError, SchemaError
from .estimators import CollectiveEM, MaximumLikelihood, NaiveMLE, PrivateMLE, plan_measurements
from .models import PrivateMarkovNetwork
from .privacy import PrivacyBudget, SimulatedNoise
from .release import Guarantee, NoisyMarginals
from .schema import Bins, Schema

__version__: str

__all__ = [
    "Bins",
    "BudgetExceededError",
    "CollectiveEM",
    "Guarantee",
    "LedgerError",
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
