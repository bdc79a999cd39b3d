"""The names of the room, read by lazy_loader and by type checkers."""

from .collective.duals import NLBP, CollectiveMarginals, counts_by_dual
from .collective.noise_laws import GaussianNoise, LaplaceNoise, SmoothedLaplaceNoise
from .mixtures.balanced_records import draw_records
from .mixtures.fit.ensemble import MixtureFit, disagreement, fit_mixture
from .mixtures.mixture import AnswerTooLargeError, Mixture
from .tables.table import Layout, Table
from .trees.conditioning import Maximisation
from .trees.factor_graph import FactorGraph, build_engine
from .trees.junction_tree import Calibration, JunctionTree, TreeTooLargeError, sample

__all__ = [
    "NLBP",
    "AnswerTooLargeError",
    "Calibration",
    "CollectiveMarginals",
    "FactorGraph",
    "GaussianNoise",
    "JunctionTree",
    "LaplaceNoise",
    "Layout",
    "Maximisation",
    "Mixture",
    "MixtureFit",
    "SmoothedLaplaceNoise",
    "Table",
    "TreeTooLargeError",
    "build_engine",
    "counts_by_dual",
    "disagreement",
    "draw_records",
    "fit_mixture",
    "sample",
]
