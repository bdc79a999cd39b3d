"""Inference in discrete graphical models: knows variables, tables and noise densities, nothing of privacy."""

from pgmpy_dp.inference.closest import ClosestMarginals, closest_marginals
from pgmpy_dp.inference.collective import (
    CollectiveMarginals,
    NonlinearBeliefPropagation,
    gaussian_dual,
    laplace_dual,
)
from pgmpy_dp.inference.engine import build_engine
from pgmpy_dp.inference.factor_graph import FactorGraph
from pgmpy_dp.inference.junction_tree import Calibration, JunctionTree, TreeTooLargeError
from pgmpy_dp.inference.layout import Layout
from pgmpy_dp.inference.mixture import AnswerTooLargeError, Mixture
from pgmpy_dp.inference.mixture_fit import MixtureFit, disagreement, fit_mixture
from pgmpy_dp.inference.mixture_records import draw_records
from pgmpy_dp.inference.noise import GaussianNoise, LaplaceNoise, NormalLaplaceNoise, SmoothedLaplaceNoise
from pgmpy_dp.inference.sampling import sample

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
    "Mixture",
    "MixtureFit",
    "NonlinearBeliefPropagation",
    "NormalLaplaceNoise",
    "SmoothedLaplaceNoise",
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
