"""The names of the room, read by lazy_loader and by type checkers."""

from .closest import ClosestMarginals, closest_marginals
from .collective import (
    CollectiveMarginals,
    NonlinearBeliefPropagation,
    gaussian_dual,
    laplace_dual,
)
from .engine import build_engine
from .factor_graph import FactorGraph
from .junction_tree import Calibration, JunctionTree, TreeTooLargeError
from .layout import Layout
from .noise import GaussianNoise, LaplaceNoise, NormalLaplaceNoise, SmoothedLaplaceNoise
from .sampling import sample
from .table import Table

__all__ = [
    "Calibration",
    "ClosestMarginals",
    "CollectiveMarginals",
    "FactorGraph",
    "GaussianNoise",
    "JunctionTree",
    "LaplaceNoise",
    "Layout",
    "NonlinearBeliefPropagation",
    "NormalLaplaceNoise",
    "SmoothedLaplaceNoise",
    "Table",
    "TreeTooLargeError",
    "build_engine",
    "closest_marginals",
    "gaussian_dual",
    "laplace_dual",
    "sample",
]
