"""The names of the room, read by lazy_loader and by type checkers."""

from .accounting import calibrate, price, printed_epsilon
from .allocation import compute_parameters, data_dependent, independent
from .cgm_em import CGMEM, cgm_em, tables_noise
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
    "CGMEM",
    "PrintedBayesianEstimator",
    "PrintedCoefficients",
    "PrintedExponentialMAP",
    "PrintedLikelyRows",
    "PrintedLinearSampler",
    "PrintedPosteriorSampler",
    "PrintedRegressions",
    "PrintedRows",
    "calibrate",
    "cgm_em",
    "compute_parameters",
    "data_dependent",
    "independent",
    "price",
    "printed_epsilon",
    "printed_increment",
    "printed_sensitivity",
    "printed_topics",
    "tables_noise",
]
