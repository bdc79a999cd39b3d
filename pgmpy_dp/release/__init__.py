"""Releases: what left the wall, with its guarantee, and the file format."""

from __future__ import annotations

from pgmpy_dp.privacy.guarantee import Guarantee
from pgmpy_dp.release.coefficients import Coefficients
from pgmpy_dp.release.discovered import DiscoveredStates
from pgmpy_dp.release.draws import PosteriorDraws, RegressionDraws
from pgmpy_dp.release.kinds import Release
from pgmpy_dp.release.marginals import NoisyMarginals
from pgmpy_dp.release.noisy_coefficients import NoisyCoefficients
from pgmpy_dp.release.noisy_residuals import NoisyResiduals

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
