"""Releases: noisy tables with the guarantee that holds for them, their file format, their projections."""

from __future__ import annotations

from pgmpy_dp.release.marginals import Guarantee, NoisyMarginals
from pgmpy_dp.release.simplex import project_to_simplex

__all__ = ["Guarantee", "NoisyMarginals", "project_to_simplex"]
