"""The names of the room, read by lazy_loader and by type checkers."""

from .accounting import calibrate, price, printed_epsilon
from .allocation import compute_parameters, data_dependent, independent
from .collective import PublishedEM, laplace_noise, published_em
from .posteriors import (
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
from .topics import printed_topics

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
