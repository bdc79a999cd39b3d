"""Draws from a private posterior: what the samplers release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.release.guarantee import Guarantee
from pgmpy_dp.schema import Clique, Schema


class _Draws:
    draws: tuple[Mapping[Clique, NDArray[np.float64]], ...]
    guarantee: Guarantee

    def mean(self) -> Mapping[Clique, NDArray[np.float64]]:
        """The draws' mean, family by family."""
        means = {family: np.mean([draw[family] for draw in self.draws], axis=0) for family in self.draws[0]}
        return MappingProxyType(means)

    def __repr__(self) -> str:
        number = len(self.draws)
        return f"{type(self).__name__}: {number} draw{'' if number == 1 else 's'} of a network\n  {self.guarantee}"


@dataclass(frozen=True, eq=False, repr=False)
class PosteriorDraws(_Draws):
    """CPDs drawn from a truncated posterior: a release.

    Attributes
    ----------
    schema : Schema
    draws : tuple of mappings of family to ndarray
        P(node | parents) of every family of a network, axes in family order; one mapping a draw.
    floors : mapping of family to float
        The smallest probability that a draw could have.
    power : float
        Power to which the likelihood was raised.
    guarantee : Guarantee
        What holds for all draws together.
    """

    schema: Schema
    draws: tuple[Mapping[Clique, NDArray[np.float64]], ...]
    floors: Mapping[Clique, float]
    power: float
    guarantee: Guarantee


@dataclass(frozen=True, eq=False, repr=False)
class RegressionDraws(_Draws):
    """Linear regressions of a network's nodes on their parents, drawn from a truncated posterior: a release.

    Attributes
    ----------
    schema : Schema
        With the variables' bounds.
    draws : tuple of mappings of family to ndarray
        Intercept and one slope a parent, in the variables' own units, of every family; one mapping a draw.
    std : mapping of node to float
        Standard deviations about the regressions: not drawn but given.
    coefficient_bound : mapping of node to float
        Largest norm of the coefficients of values scaled to [-1, 1].
    powers : mapping of node to float
        Power to which the likelihood was raised.
    guarantee : Guarantee
        What holds for all draws together.
    """

    schema: Schema
    draws: tuple[Mapping[Clique, NDArray[np.float64]], ...]
    std: Mapping[str, float]
    coefficient_bound: Mapping[str, float]
    powers: Mapping[str, float]
    guarantee: Guarantee
