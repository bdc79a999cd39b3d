"""Sources of noise: OpenDP for privacy, numpy for simulation studies."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.privacy.mechanisms import (
    Counts,
    add_discrete_gaussian,
    add_discrete_laplace,
    checked_counts,
    checked_scale,
)
from pgmpy_dp.privacy.sampling import fixed_sample, poisson_sample, random_integer, random_keys
from pgmpy_dp.privacy.selection import exponential_least, noisy_least


class NoiseSource(Protocol):
    """Source of noise for counting tables, and of coins for sampling records."""

    @property
    def private(self) -> bool:
        """Whether the noise gives privacy."""

    def discrete_laplace(self, counts: Counts, scale: float) -> Counts:
        """Add discrete Laplace noise to one-dimensional int64 counts."""

    def discrete_gaussian(self, counts: Counts, scale: float) -> Counts:
        """Add discrete Gaussian noise to one-dimensional int64 counts."""

    def coins(self, rate: Fraction, size: int) -> NDArray[np.bool_]:
        """Draw independent coins that are true with probability `rate`."""

    def choose(self, chosen: int, size: int) -> NDArray[np.bool_]:
        """Draw a uniformly random subset of size `chosen` out of `size`, as a mask."""

    def keys(self, size: int) -> NDArray[np.uint64]:
        """Draw independent uniform 64-bit numbers, used to sample the rows of a unit."""

    def least(self, scores: Counts, scale: float) -> int:
        """Draw the position of a low score by permute-and-flip."""

    def exponential_least(self, scores: Counts, scale: float) -> int:
        """Draw the position of a low score by the exponential mechanism."""

    def below(self, bound: int) -> int:
        """Draw a uniform integer in [0, bound)."""


class OpenDPNoise:
    """Private noise, drawn by OpenDP; its one instance is :data:`OPENDP_NOISE`."""

    private = True

    def discrete_laplace(self, counts: Counts, scale: float) -> Counts:
        """See :func:`add_discrete_laplace`."""
        return add_discrete_laplace(counts, scale)

    def discrete_gaussian(self, counts: Counts, scale: float) -> Counts:
        """See :func:`add_discrete_gaussian`."""
        return add_discrete_gaussian(counts, scale)

    def coins(self, rate: Fraction, size: int) -> NDArray[np.bool_]:
        """See :func:`~pgmpy_dp.privacy.sampling.poisson_sample`."""
        return poisson_sample(rate, size)

    def choose(self, chosen: int, size: int) -> NDArray[np.bool_]:
        """See :func:`~pgmpy_dp.privacy.sampling.fixed_sample`."""
        return fixed_sample(chosen, size)

    def keys(self, size: int) -> NDArray[np.uint64]:
        """See :func:`~pgmpy_dp.privacy.sampling.random_keys`."""
        return random_keys(size)

    def least(self, scores: Counts, scale: float) -> int:
        """See :func:`~pgmpy_dp.privacy.selection.noisy_least`."""
        return noisy_least(scores, scale)

    def exponential_least(self, scores: Counts, scale: float) -> int:
        """See :func:`~pgmpy_dp.privacy.selection.exponential_least`."""
        return exponential_least(scores, scale)

    def below(self, bound: int) -> int:
        """See :func:`~pgmpy_dp.privacy.sampling.random_integer`."""
        return random_integer(bound)

    def __repr__(self) -> str:
        return "OPENDP_NOISE"


OPENDP_NOISE = OpenDPNoise()


def checked_noise(noise: Any) -> NoiseSource:
    """Return `noise`; TypeError unless it is a source of noise."""
    if isinstance(noise, type) or not isinstance(getattr(noise, "private", None), bool):
        given = getattr(noise, "__name__", type(noise).__name__)
        raise TypeError(f"noise must be OPENDP_NOISE or a SimulatedNoise(seed), got {given}.")
    source: NoiseSource = noise
    return source


class SimulatedNoise:
    """Noise of the same distributions drawn by numpy: repeatable and NOT private, for simulation studies.

    Parameters
    ----------
    seed : int, sequence of int, numpy.random.SeedSequence or numpy.random.Generator
        As for numpy.random.default_rng.

    Examples
    --------
    >>> counts = np.array([10, 20])
    >>> first = SimulatedNoise(1).discrete_laplace(counts, 3.0)
    >>> bool((first == SimulatedNoise(1).discrete_laplace(counts, 3.0)).all())
    True
    """

    private = False

    def __init__(self, seed: Any) -> None:
        self._generator = np.random.default_rng(seed)

    def discrete_laplace(self, counts: Counts, scale: float) -> Counts:
        """Add the difference of two geometric variables to every count."""
        return checked_counts(counts) + self._laplace_noise(counts.size, checked_scale(scale))

    def discrete_gaussian(self, counts: Counts, scale: float) -> Counts:
        """Add noise by rejection from the discrete Laplace (Canonne, Kamath and Steinke 2020)."""
        counts, sigma = checked_counts(counts), checked_scale(scale)
        envelope = math.floor(sigma) + 1.0
        noise = np.empty(counts.size, dtype=np.int64)
        open_cells = np.arange(counts.size)
        while open_cells.size:
            drawn = self._laplace_noise(open_cells.size, envelope)
            with np.errstate(over="ignore"):
                log_odds = -0.5 * ((np.abs(drawn) - sigma**2 / envelope) / sigma) ** 2
            accepted = self._generator.exponential(size=drawn.size) > -log_odds
            noise[open_cells[accepted]] = drawn[accepted]
            open_cells = open_cells[~accepted]
        return counts + noise

    def coins(self, rate: Fraction, size: int) -> NDArray[np.bool_]:
        """Compare uniform numbers to the rate."""
        coins: NDArray[np.bool_] = self._generator.random(size) < float(rate)
        return coins

    def choose(self, chosen: int, size: int) -> NDArray[np.bool_]:
        """Use the first positions of a random permutation."""
        won: NDArray[np.bool_] = self._generator.permutation(size) < chosen
        return won

    def keys(self, size: int) -> NDArray[np.uint64]:
        """Draw from the generator."""
        return self._generator.integers(2**64, size=size, dtype=np.uint64)

    def least(self, scores: Counts, scale: float) -> int:
        """Add exponential noise, which is permute-and-flip (Ding et al. 2021)."""
        return int(np.argmin(scores - self._generator.exponential(scale, size=scores.size)))

    def exponential_least(self, scores: Counts, scale: float) -> int:
        """Add Gumbel noise, which is the exponential mechanism."""
        return int(np.argmin(scores - self._generator.gumbel(0.0, scale, size=scores.size)))

    def below(self, bound: int) -> int:
        """Draw as many bits as the bound has until they are below it."""
        bits = bound.bit_length()
        while True:
            drawn = int.from_bytes(self._generator.bytes((bits + 7) // 8)) >> (-bits % 8)
            if drawn < bound:
                return drawn

    def _laplace_noise(self, size: int, scale: float) -> Counts:
        stop = -math.expm1(-1.0 / scale)
        first, second = self._generator.geometric(stop, size=(2, size))
        noise: Counts = first - second
        return noise

    def __repr__(self) -> str:
        return "SimulatedNoise(not private)"
