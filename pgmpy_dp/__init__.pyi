"""The public names, read by lazy_loader and by type checkers."""

from . import evaluation as evaluation
from . import exports as exports
from . import networks as networks
from . import papers as papers
from . import plotting as plotting
from . import report as report
from .data import PrivateDataset, PrivateDocuments, PrivateFeatures, PrivateHouseholds, exact_marginals
from .errors import BudgetExceededError, LedgerError, ReleaseFormatError, SchemaError
from .estimators import (
    AutoMLE,
    CollectiveEM,
    NotPrivateMLE,
    PosteriorMean,
    PrivateLDA,
    PrivateLogisticRegression,
    PrivateMLE,
    PrivateVB,
)
from .estimators.for_records.household_mixture import HouseholdMixture
from .estimators.for_records.pairwise_mixture import PairwiseMixture
from .evaluation import combine
from .explorer import explore
from .fitting import merge_rare_states, plan_accuracy, plan_households, plan_measurements, plan_pairs
from .models.mixtures.household_network import PrivateHouseholdNetwork
from .models.mixtures.mixture_network import PrivateMixtureNetwork
from .networks import PrivateBayesianNetwork, PrivateMarkovNetwork, load
from .networks.elimination import VariableElimination
from .observed.informed_marginals import InformedMarginals, PublicTable
from .observed.partially_pooled_marginals import PartiallyPooledMarginals
from .observed.united_marginals import UnitedMarginals, union
from .papers.bernstein_2017 import CGMEM, NLBP
from .privacy import PrivacyBudget, SimulatedNoise, calibrate, price
from .records import CsvFile
from .release import DiscoveredStates, Guarantee, NoisyMarginals, NoisyResiduals
from .schema import Allowed, Bins, CsvFormat, DateBins, Dependency, Forbidden, Hierarchy, HouseholdSchema, Schema, agree
from .structure import NoisyScore, PrivateStructureSearch

__version__: str

__all__ = [
    "CGMEM",
    "NLBP",
    "Allowed",
    "AutoMLE",
    "Bins",
    "BudgetExceededError",
    "CollectiveEM",
    "CsvFile",
    "CsvFormat",
    "DateBins",
    "Dependency",
    "DiscoveredStates",
    "Forbidden",
    "Guarantee",
    "Hierarchy",
    "HouseholdMixture",
    "HouseholdSchema",
    "InformedMarginals",
    "LedgerError",
    "NoisyMarginals",
    "NoisyResiduals",
    "NoisyScore",
    "NotPrivateMLE",
    "PairwiseMixture",
    "PartiallyPooledMarginals",
    "PosteriorMean",
    "PrivacyBudget",
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
    "PrivateStructureSearch",
    "PrivateVB",
    "PublicTable",
    "ReleaseFormatError",
    "Schema",
    "SchemaError",
    "SimulatedNoise",
    "UnitedMarginals",
    "VariableElimination",
    "agree",
    "calibrate",
    "combine",
    "exact_marginals",
    "explore",
    "load",
    "merge_rare_states",
    "plan_accuracy",
    "plan_households",
    "plan_measurements",
    "plan_pairs",
    "price",
    "union",
]
