"""The public names, read by lazy_loader and by type checkers."""

from . import evaluation as evaluation
from . import exports as exports
from . import papers as papers
from . import plotting as plotting
from . import report as report
from .data import (
    CheckedRecords,
    LargestError,
    PredictionError,
    PrivateDataset,
    PrivateDocuments,
    PrivateFeatures,
    PrivateHouseholds,
    UniqueMatches,
    exact_marginals,
)
from .errors import BudgetExceededError, LedgerError, ReleaseFormatError, SchemaError
from .estimators import (
    AutoMLE,
    CollectiveEM,
    ExponentialMAP,
    LinearPosteriorSampler,
    NaiveMLE,
    NotPrivateMLE,
    PosteriorMean,
    PosteriorSampler,
    PrivateBayesianEstimator,
    PrivateLDA,
    PrivateLogisticRegression,
    PrivateMLE,
    PrivateSGD,
    PrivateSigmoidBeliefNetwork,
    PrivateVB,
)
from .estimators.for_records.household_mixture import HouseholdMixture
from .estimators.for_records.pairwise_mixture import PairwiseMixture
from .evaluation import combine
from .fitting import (
    DataDependentAllocation,
    PlannedAllocation,
    SizeAllocation,
    UniformAllocation,
    laskey_sensitivities,
    merge_rare_states,
    plan_accuracy,
    plan_households,
    plan_measurements,
    plan_pairs,
)
from .models.mixtures.household_network import PrivateHouseholdNetwork
from .models.mixtures.mixture_network import PrivateMixtureNetwork
from .networks import PrivateBayesianNetwork, PrivateMarkovNetwork
from .networks.elimination import VariableElimination
from .privacy import PrivacyBudget, SimulatedNoise, calibrate, price
from .records import CsvFile
from .release import (
    Coefficients,
    DiscoveredStates,
    Guarantee,
    InformedMarginals,
    NoisyCoefficients,
    NoisyMarginals,
    NoisyResiduals,
    PosteriorDraws,
    PublicTable,
    RegressionDraws,
    mutual_consistency,
)
from .schema import Allowed, Bins, CsvFormat, Dependency, Forbidden, Hierarchy, HouseholdSchema, Schema
from .structure import NoisyScore, PrivateStructureSearch

__version__: str

__all__ = [
    "Allowed",
    "AutoMLE",
    "Bins",
    "BudgetExceededError",
    "CheckedRecords",
    "Coefficients",
    "CollectiveEM",
    "CsvFile",
    "CsvFormat",
    "DataDependentAllocation",
    "Dependency",
    "DiscoveredStates",
    "ExponentialMAP",
    "Forbidden",
    "Guarantee",
    "Hierarchy",
    "HouseholdMixture",
    "HouseholdSchema",
    "InformedMarginals",
    "LargestError",
    "LedgerError",
    "LinearPosteriorSampler",
    "NaiveMLE",
    "NoisyCoefficients",
    "NoisyMarginals",
    "NoisyResiduals",
    "NoisyScore",
    "NotPrivateMLE",
    "PairwiseMixture",
    "PlannedAllocation",
    "PosteriorDraws",
    "PosteriorMean",
    "PosteriorSampler",
    "PredictionError",
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
    "PublicTable",
    "RegressionDraws",
    "ReleaseFormatError",
    "Schema",
    "SchemaError",
    "SimulatedNoise",
    "SizeAllocation",
    "UniformAllocation",
    "UniqueMatches",
    "VariableElimination",
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
