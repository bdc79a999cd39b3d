"""The names of the room, read by lazy_loader and by type checkers."""

from .closest import ClosestMarginals, closest_marginals
from .collective import CollectiveMarginals, NonlinearBeliefPropagation
from .duals import gaussian_dual, laplace_dual
from .engine import build_engine
from .factor_graph import FactorGraph
from .junction_tree import Calibration, JunctionTree, TreeTooLargeError
from .layout import Layout
from .maximising import Maximisation
from .mixture import AnswerTooLargeError, Mixture
from .mixture_fit import MixtureFit, disagreement, fit_mixture
from .mixture_records import draw_records
from .noise import GaussianNoise, LaplaceNoise, NormalLaplaceNoise, SmoothedLaplaceNoise
from .sampling import sample
from .table import Table

__all__ = [
    "AnswerTooLargeError",
    "Calibration",
    "ClosestMarginals",
    "CollectiveMarginals",
    "FactorGraph",
    "GaussianNoise",
    "JunctionTree",
    "LaplaceNoise",
    "Layout",
    "Maximisation",
    "Mixture",
    "MixtureFit",
    "NonlinearBeliefPropagation",
    "NormalLaplaceNoise",
    "SmoothedLaplaceNoise",
    "Table",
    "TreeTooLargeError",
    "build_engine",
    "closest_marginals",
    "disagreement",
    "draw_records",
    "fit_mixture",
    "gaussian_dual",
    "laplace_dual",
    "sample",
]
