"""CPD rows drawn from truncated Dirichlet posteriors, or near their modes.

Sensitivity: :mod:`pgmpy_dp.privacy.posterior` derives the cost of a draw from how much one record changes the
log-likelihood of a row whose probabilities are bounded below.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.data.mechanisms.mechanism import Held, PublicTable, Quote
from pgmpy_dp.data.simplex import SimplexPoints
from pgmpy_dp.privacy.checks import exact_positive
from pgmpy_dp.privacy.coins import Below
from pgmpy_dp.privacy.cost import Pure
from pgmpy_dp.privacy.guarantee import counted
from pgmpy_dp.privacy.noise import NoiseSource
from pgmpy_dp.privacy.posterior import floor_of, require_different_nodes, tempering, total_epsilon, truncation
from pgmpy_dp.records.memory import Counts, require_countable
from pgmpy_dp.release import PosteriorDraws
from pgmpy_dp.schema import Clique, Schema

Floats = NDArray[np.float64]

# Number of points on the public grid of a share between two states, or two groups of states.
STEPS_OF_TWO_STATES = 8192
STEPS = 2048

# Largest prior count: above it log-weights lose digits that the reserve for floating point relies on.
_LARGEST_PRIOR = 1e8


@dataclass(frozen=True)
class _Rows:
    """Parameters of the draw: a range for each family, and the power of the likelihood."""

    ranges: Mapping[Clique, float]
    power: float
    draws: int


def _quote(public: PublicTable, mechanism: str, rows: _Rows, each: Fraction) -> Quote:
    cost = each * rows.draws
    return Quote(public.cost(f"draw {counted(rows.draws, 'network')}", mechanism, Pure(cost)), rows)


class _DrawnRows:
    """Reading and drawing, common to the mechanisms below."""

    prior: Mapping[Clique, Any]

    def read(self, quote: Quote, held: Held) -> dict[Clique, Counts]:
        """Count the families."""
        return held.records.counts(tuple(quote.terms.ranges))

    def draw(
        self, quote: Quote, public: PublicTable, exact: dict[Clique, Counts], noise: NoiseSource
    ) -> PosteriorDraws:
        """Draw whole networks by :func:`draw_rows`."""
        rows = quote.terms
        found = draw_rows(exact, self.prior, rows.ranges, rows.power, rows.draws, noise.below)
        floors = {family: floor_of(rows.ranges[family], public.schema.cardinality(family[0])) for family in exact}
        return PosteriorDraws(public.schema, tuple(found), floors, rows.power, quote.guarantee)


@dataclass(frozen=True)
class PosteriorRows(_DrawnRows):
    """Draw from the truncated posterior; see :meth:`pgmpy_dp.PrivateDataset.sample_posterior`."""

    families: Iterable[Iterable[str]]
    prior: Mapping[Clique, Any]
    epsilon: float | Fraction
    draws: int = 1

    def quote(self, public: PublicTable) -> Quote:
        """Price all draws; the terms are the ranges of the rows."""
        each, _ = total_epsilon(self.epsilon, self.draws, split=False)
        public.require_single_records()
        families, states = _checked_families(public.schema, self.families, self.prior)
        ranges, cost = self._truncation(states, each, public.neighbours)
        rows = _Rows(dict(zip(families, ranges, strict=True)), 1.0, self.draws)
        return _quote(public, "posterior_sampling", rows, cost)

    def _truncation(self, states: list[int], epsilon: Fraction, neighbours: str) -> tuple[list[float], Fraction]:
        """Return the ranges of the nodes' rows, and the cost of one draw."""
        return truncation(states, epsilon, neighbours), epsilon


@dataclass(frozen=True)
class LikelyRows(_DrawnRows):
    """Draw by the exponential mechanism with the likelihood as score; see `PrivateDataset.sample_map`."""

    families: Iterable[Iterable[str]]
    prior: Mapping[Clique, Any]
    epsilon: float | Fraction
    floor: float = 0.01

    def quote(self, public: PublicTable) -> Quote:
        """Price the draw; the terms are the ranges of the rows and the power of the likelihood."""
        epsilon, least = exact_positive("epsilon", self.epsilon), float(exact_positive("floor", self.floor))
        public.require_single_records()
        families, states = _checked_families(public.schema, self.families, self.prior)
        ranges, power, cost = self._tempering(states, least, epsilon, public.neighbours)
        rows = _Rows(dict(zip(families, ranges, strict=True)), power, 1)
        return _quote(public, "exponential", rows, cost)

    def _tempering(
        self, states: list[int], floor: float, epsilon: Fraction, neighbours: str
    ) -> tuple[list[float], float, Fraction]:
        """Return the ranges of the nodes' rows, the power of the likelihood, and the cost of the draw."""
        return *tempering(states, floor, epsilon, neighbours), epsilon


def _checked_families(
    schema: Schema, families: Iterable[Iterable[str]], prior: Mapping[Clique, Any]
) -> tuple[tuple[Clique, ...], list[int]]:
    """Check a network's families and their prior; return the families and the number of states of each node."""
    checked = schema.require(families)
    require_different_nodes(checked)
    if not isinstance(prior, Mapping):
        raise TypeError(f"The prior maps each family to positive numbers, got {type(prior).__name__}.")
    for family in checked:
        require_countable(schema, family)
        table = np.asarray(prior.get(family))
        if table.dtype.kind not in "fiu" or table.shape != schema.shape(family):
            raise ValueError(f"The prior of {family} must be numbers of shape {schema.shape(family)}.")
        if not ((table > 0).all() and (table <= _LARGEST_PRIOR).all()):
            raise ValueError(f"The prior of {family} must be positive, and at most {_LARGEST_PRIOR:g} in each cell.")
    return checked, [schema.cardinality(family[0]) for family in checked]


def draw_rows(
    counts: Mapping[Clique, NDArray[np.int64]],
    prior: Mapping[Clique, Floats],
    ranges: Mapping[Clique, float],
    power: float,
    draws: int,
    below: Below,
) -> list[dict[Clique, Floats]]:
    """Draw networks of rows exactly from their truncated, tempered posterior.

    Every row theta of every family is drawn independently, with probabilities proportional to

        prod_k theta_k ** (power * n_k + alpha_k - 1)

    times the volume of a cell, over the points of a public grid, theta_k = w + (1 - r w) s_k with s in the simplex.
    This is the Dirichlet posterior with the likelihood raised to a power, truncated to theta_k >= w. Draws are
    truncated, not clipped: no draw is moved. A grid is used because the floating-point numbers that a draw from a
    continuum can take depend on the records. On a public grid the argument of `pgmpy_dp.privacy.posterior` holds
    exactly, where the prior is its density at the points times the cells' volumes, which are public too. Steps are
    small where probabilities are; `pgmpy_dp.data.simplex` defines the grid and draws its points.

    Parameters
    ----------
    counts, prior : mappings of family to ndarray
        Axes in family order: the node's states first.
    ranges : mapping of family to float
        R = log((1 - (r - 1) w) / w) of each family, see `pgmpy_dp.privacy.posterior`.
    power : float
    draws : int
    below : callable
        Draws uniform integers.
    """
    networks: list[dict[Clique, Floats]] = [{} for _ in range(draws)]
    for family, table in counts.items():
        states = table.shape[0]
        flat = power * table.reshape(states, -1) + (
            np.asarray(prior[family], dtype=np.float64).reshape(states, -1) - 1.0
        )
        drawn = _draw_family(flat, ranges[family], draws, below)
        for network, rows in zip(networks, drawn, strict=True):
            network[family] = rows.reshape(table.shape)
    return networks


def _draw_family(exponents: Floats, span: float, draws: int, below: Below) -> list[Floats]:
    states, rows = exponents.shape
    if states == 1:
        return [np.ones((1, rows)) for _ in range(draws)]
    growth, floor = math.expm1(span), floor_of(span, states)
    shares = np.empty((draws, states, rows))
    for row in range(rows):
        points = SimplexPoints(exponents[:, row], growth, STEPS_OF_TWO_STATES if states == 2 else STEPS)
        for draw in range(draws):
            shares[draw, :, row] = points.draw(below)
    theta = floor * (1.0 + growth * shares)
    return list(theta / theta.sum(axis=1, keepdims=True))  # sums are 1 up to rounding
