"""The names of the room, read by lazy_loader and by type checkers."""

from .bernstein_2017 import CGMEM, NLBP, cgm_em, entropy, log_density, log_weight, tables_noise
from .chowdhury_2020 import (
    DataDependentAllocation,
    PlannedAllocation,
    SizeAllocation,
    UniformAllocation,
    compute_parameters,
    data_dependent,
    independent,
    laskey_sensitivities,
    mutual_consistency,
)
from .foulds_2020 import calibrate, price, printed_epsilon, printed_topics
from .linear_regression import PrivateLinearRegression
from .naive_mle import NaiveMLE
from .posterior_sampling import ExponentialMAP, PosteriorSampler
from .private_bayesian import PrivateBayesianEstimator
from .private_sgd import PrivateSGD
from .regression_sampling import LinearPosteriorSampler
from .sigmoid_belief_network import PrivateSigmoidBeliefNetwork
from .zhang_2016 import (
    Coefficients,
    NoisyCoefficients,
    PosteriorDraws,
    PrintedBayesianEstimator,
    PrintedCoefficients,
    PrintedExponentialMAP,
    PrintedLikelyRows,
    PrintedLinearSampler,
    PrintedPosteriorSampler,
    PrintedRegressions,
    PrintedRows,
    RegressionDraws,
    printed_increment,
    printed_sensitivity,
)

__all__ = [
    "CGMEM",
    "NLBP",
    "Coefficients",
    "DataDependentAllocation",
    "ExponentialMAP",
    "LinearPosteriorSampler",
    "NaiveMLE",
    "NoisyCoefficients",
    "PlannedAllocation",
    "PosteriorDraws",
    "PosteriorSampler",
    "PrintedBayesianEstimator",
    "PrintedCoefficients",
    "PrintedExponentialMAP",
    "PrintedLikelyRows",
    "PrintedLinearSampler",
    "PrintedPosteriorSampler",
    "PrintedRegressions",
    "PrintedRows",
    "PrivateBayesianEstimator",
    "PrivateLinearRegression",
    "PrivateSGD",
    "PrivateSigmoidBeliefNetwork",
    "RegressionDraws",
    "SizeAllocation",
    "UniformAllocation",
    "calibrate",
    "cgm_em",
    "compute_parameters",
    "data_dependent",
    "entropy",
    "independent",
    "laskey_sensitivities",
    "log_density",
    "log_weight",
    "mutual_consistency",
    "price",
    "printed_epsilon",
    "printed_increment",
    "printed_sensitivity",
    "printed_topics",
    "tables_noise",
]
