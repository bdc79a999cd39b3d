"""The public names, read by lazy_loader and by type checkers."""

from . import evaluation as evaluation
from . import exports as exports
from . import plotting as plotting
from . import report as report
from .data import PrivateDataset, PrivateDocuments, PrivateFeatures, PrivateHouseholds, exact_marginals
from .errors import BudgetExceededError, LedgerError, ReleaseFormatError, SchemaError
from .estimators import (
    AutoMLE,
    CollectiveEM,
    DataDependentAllocation,
    ExponentialMAP,
    LinearPosteriorSampler,
    MaximumLikelihood,
    NaiveMLE,
    PlannedAllocation,
    PosteriorMean,
    PosteriorSampler,
    PrivateBayesianEstimator,
    PrivateLDA,
    PrivateLogisticRegression,
    PrivateMLE,
    PrivateSGD,
    PrivateSigmoidBeliefNetwork,
    PrivateVB,
    SizeAllocation,
    UniformAllocation,
    laskey_sensitivities,
    merge_rare_states,
    plan_accuracy,
    plan_households,
    plan_measurements,
    plan_pairs,
)
from .evaluation import combine
from .networks import PrivateBayesianNetwork, PrivateMarkovNetwork
from .privacy import PrivacyBudget, SimulatedNoise, calibrate, price
from .records import CsvFile
from .release import (
    Coefficients,
    DiscoveredStates,
    Guarantee,
    NoisyCoefficients,
    NoisyMarginals,
    PosteriorDraws,
    RegressionDraws,
    mutual_consistency,
)
from .schema import Allowed, Bins, Dependency, Forbidden, Hierarchy, HouseholdSchema, Schema
from .structure import NoisyScore, PrivateStructureSearch
from .synthesis import HouseholdMixture, PairwiseMixture, PrivateHouseholdNetwork, PrivateMixtureNetwork

__version__: str

__all__ = [
    "Allowed",
    "AutoMLE",
    "Bins",
    "BudgetExceededError",
    "Coefficients",
    "CollectiveEM",
    "CsvFile",
    "DataDependentAllocation",
    "Dependency",
    "DiscoveredStates",
    "ExponentialMAP",
    "Forbidden",
    "Guarantee",
    "Hierarchy",
    "HouseholdMixture",
    "HouseholdSchema",
    "LedgerError",
    "LinearPosteriorSampler",
    "MaximumLikelihood",
    "NaiveMLE",
    "NoisyCoefficients",
    "NoisyMarginals",
    "NoisyScore",
    "PairwiseMixture",
    "PlannedAllocation",
    "PosteriorDraws",
    "PosteriorMean",
    "PosteriorSampler",
    "PrivacyBudget",
    "PrivateBayesianEstimator",
    "PrivateBayesianNetwork",
    "PrivateDataset",
    "PrivateDocuments",
    "PrivateFeatures",
    "PrivateHouseholdNetwork",
    "PrivateHouseholds",
    "PrivateLDA",
    "PrivateLogisticRegression",
    "PrivateMLE",
    "PrivateMarkovNetwork",
    "PrivateMixtureNetwork",
    "PrivateSGD",
    "PrivateSigmoidBeliefNetwork",
    "PrivateStructureSearch",
    "PrivateVB",
    "RegressionDraws",
    "ReleaseFormatError",
    "Schema",
    "SchemaError",
    "SimulatedNoise",
    "SizeAllocation",
    "UniformAllocation",
    "calibrate",
    "combine",
    "exact_marginals",
    "laskey_sensitivities",
    "merge_rare_states",
    "mutual_consistency",
    "plan_accuracy",
    "plan_households",
    "plan_measurements",
    "plan_pairs",
    "price",
]
