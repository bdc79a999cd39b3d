"""Releases: what left the wall, with its guarantee, and the file format."""

from __future__ import annotations

from pgmpy_dp.privacy.guarantee import Guarantee
from pgmpy_dp.release.coefficients import NoisyCoefficients, NoisyResiduals
from pgmpy_dp.release.contrasts import Coefficients
from pgmpy_dp.release.draws import PosteriorDraws, RegressionDraws
from pgmpy_dp.release.kinds import DiscoveredStates, Release
from pgmpy_dp.release.marginals import NoisyMarginals

__all__ = [
    "Coefficients",
    "DiscoveredStates",
    "Guarantee",
    "NoisyCoefficients",
    "NoisyMarginals",
    "NoisyResiduals",
    "PosteriorDraws",
    "RegressionDraws",
    "Release",
]
