"""Here is what papers do otherwise, to compare with: their accountants, and their mechanisms as printed."""

from pgmpy_dp.experiments.papers.accounting import calibrate, price, printed_epsilon
from pgmpy_dp.experiments.papers.allocation import compute_parameters, data_dependent, independent
from pgmpy_dp.experiments.papers.collective import PublishedEM, laplace_noise, published_em
from pgmpy_dp.experiments.papers.posteriors import (
    PrintedBayesianEstimator,
    PrintedCoefficients,
    PrintedExponentialMAP,
    PrintedLikelyRows,
    PrintedLinearSampler,
    PrintedPosteriorSampler,
    PrintedRegressions,
    PrintedRows,
    printed_increment,
    printed_sensitivity,
)
from pgmpy_dp.experiments.papers.topics import printed_topics

__all__ = [
    "PrintedBayesianEstimator",
    "PrintedCoefficients",
    "PrintedExponentialMAP",
    "PrintedLikelyRows",
    "PrintedLinearSampler",
    "PrintedPosteriorSampler",
    "PrintedRegressions",
    "PrintedRows",
    "PublishedEM",
    "calibrate",
    "compute_parameters",
    "data_dependent",
    "independent",
    "laplace_noise",
    "price",
    "printed_epsilon",
    "printed_increment",
    "printed_sensitivity",
    "printed_topics",
    "published_em",
]
