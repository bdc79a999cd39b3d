"""The public names, read by lazy_loader and by type checkers."""

from .data import PrivateDataset, exact_marginals
from .errors import BudgetExceededError, LedgerError, ReleaseFormatError, SchemaError
from .estimators import (
    CollectiveEM,
    MaximumLikelihood,
    NaiveMLE,
    PrivateBayesianEstimator,
    PrivateMLE,
    PrivateSGD,
    PrivateVB,
    plan_measurements,
)
from .models import PrivateMarkovNetwork
from .privacy import PrivacyBudget, SimulatedNoise, calibrate, price
from .release import Coefficients, Guarantee, NoisyCoefficients, NoisyMarginals
from .schema import Bins, Schema

__version__: str

__all__ = [
    "Bins",
    "BudgetExceededError",
    "Coefficients",
    "CollectiveEM",
    "Guarantee",
    "LedgerError",
    "MaximumLikelihood",
    "NaiveMLE",
    "NoisyCoefficients",
    "NoisyMarginals",
    "PrivacyBudget",
    "PrivateBayesianEstimator",
    "PrivateDataset",
    "PrivateMLE",
    "PrivateMarkovNetwork",
    "PrivateSGD",
    "PrivateVB",
    "ReleaseFormatError",
    "Schema",
    "SchemaError",
    "SimulatedNoise",
    "calibrate",
    "exact_marginals",
    "plan_measurements",
    "price",
]
