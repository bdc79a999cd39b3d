"""CPD rows drawn from truncated Dirichlet posteriors, or near their modes.

Sensitivity: :mod:`pgmpy_dp.privacy.posterior` derives the cost of a draw from how much one record changes the
log-likelihood of a row whose probabilities are bounded below.

Exact draws of points of a simplex, on a public grid that resolves rare states as well as common ones.

The states are split into two halves, in their order, and each half again. A point is given by a share v for every
split: of the mass that is split, the first half gets v. Shares are on the grid v_i = sin(pi (2 i + 1) / (4 T))**2,
i < T, whose steps are proportional to sqrt(v (1 - v)), as standard errors of shares are, so that small shares have
small steps. The base measure is the uniform one on the simplex: the weight of a point is the volume of its cell, which
is the product over splits of the cell's width in v and of the mass of each half that is split further (the Jacobian).
The masses s_k of the states have this weight times

    prod_k (1 + g s_k) ** e_k.

Draws from this distribution are exact. From the first split down, the split of a mass m is drawn with the weights of
its shares times the sum F of the weights of all further splits of the two halves. F is not known for every mass, but
bounded as a function of x = log m. The second derivative of log(1 + g exp(x)) is between 0 and 1/4, so that
log F(x) + A x**2 / 8 is convex, where A is the sum of -e_k over the negative e_k: products preserve this, and so do
sums of functions that are log-convex. So between two masses at which F was computed, the straight line plus A / 8 times
the product of the distances to both is nowhere below log F. Draws by these bounds are accepted by an exact coin, with
the product over splits of the sum of the weights divided by its bound. Masses are added until the bounds are tight, so
that most draws are accepted.

Logarithms of sums are floats, each off by some units in its last place. The exponents below splits of the same level
add up to no more than those above, so the log-probability of a draw is off by some such units for each level of splits,
of the exponents and of the volumes: within what `pgmpy_dp.privacy.posterior` reserves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.data.mechanisms.mechanism import PrivateRecords, PublicRecords, Quote
from pgmpy_dp.privacy.checks import exact_positive
from pgmpy_dp.privacy.coins import Below, Categorical, exponential_coin
from pgmpy_dp.privacy.cost import Pure
from pgmpy_dp.privacy.guarantee import counted
from pgmpy_dp.privacy.noise import NoiseSource
from pgmpy_dp.privacy.posterior import floor_of, require_different_nodes, tempering, total_epsilon, truncation
from pgmpy_dp.records.memory import Counts, require_countable
from pgmpy_dp.release import PosteriorDraws
from pgmpy_dp.schema import Clique

Floats = NDArray[np.float64]

# Number of points on the public grid of a share between two states, or two groups of states.
STEPS_OF_TWO_STATES = 8192
STEPS = 2048

# Largest prior count: above it log-weights lose digits that the reserve for floating point relies on.
_LARGEST_PRIOR = 1e8

_FIRST_KNOTS = 9
# Gap in log F between the bound and the value at the middle of an interval, above which the interval is halved.
_CLOSE = 0.2


# The range of each family's rows, the power of the likelihood, and the number of draws.
_Terms = tuple[Mapping[Clique, float], float, int]


@dataclass(frozen=True)
class _DrawnRows:
    """Base class of the mechanisms below, which differ in the price of a draw."""

    families: Iterable[Iterable[str]]
    prior: Mapping[Clique, Any]
    epsilon: float | Fraction
    draws: int = 1
    mechanism: ClassVar[str]

    def _priced(self, states: list[int], epsilon: Fraction, neighbours: str) -> tuple[list[float], float, Fraction]:
        """Return the ranges of the nodes' rows, the power of the likelihood, and the cost of one draw."""
        raise NotImplementedError

    def quote(self, public: PublicRecords) -> Quote[_Terms]:
        """Price all draws; the terms are the ranges of the rows, the power of the likelihood, and their number."""
        each, _ = total_epsilon(self.epsilon, self.draws, split=False)
        public.require_single_records()
        schema, families = public.schema, public.schema.require(self.families)
        require_different_nodes(families)
        if not isinstance(self.prior, Mapping):
            raise TypeError(f"The prior maps each family to positive numbers, got {type(self.prior).__name__}.")
        for family in families:
            require_countable(schema, family)
            table = np.asarray(self.prior.get(family))
            if table.dtype.kind not in "fiu" or table.shape != schema.shape(family):
                raise ValueError(f"The prior of {family} must be numbers of shape {schema.shape(family)}.")
            if not ((table > 0).all() and (table <= _LARGEST_PRIOR).all()):
                raise ValueError(
                    f"The prior of {family} must be positive, and at most {_LARGEST_PRIOR:g} in each cell."
                )
        states = [schema.cardinality(family[0]) for family in families]
        ranges, power, cost = self._priced(states, each, public.neighbours)
        paid = public.cost(f"draw {counted(self.draws, 'network')}", self.mechanism, Pure(cost * self.draws))
        return Quote(paid, (dict(zip(families, ranges, strict=True)), power, self.draws))

    def read(self, quote: Quote[_Terms], records: PrivateRecords) -> Mapping[Clique, Counts]:
        """Count the families."""
        return records.counts(quote.terms[0])

    def draw(
        self, quote: Quote[_Terms], public: PublicRecords, exact: Mapping[Clique, Counts], noise: NoiseSource
    ) -> PosteriorDraws:
        """Draw whole networks by :func:`draw_rows`."""
        ranges, power, draws = quote.terms
        result = draw_rows(exact, self.prior, ranges, power, draws, noise.below)
        floors = {family: floor_of(ranges[family], public.schema.cardinality(family[0])) for family in exact}
        return PosteriorDraws(public.schema, tuple(result), floors, power, quote.guarantee)


@dataclass(frozen=True)
class PosteriorRows(_DrawnRows):
    """Draw from the truncated posterior; see :meth:`pgmpy_dp.PrivateDataset.sample_posterior`."""

    mechanism: ClassVar[str] = "posterior_sampling"

    def _priced(self, states: list[int], epsilon: Fraction, neighbours: str) -> tuple[list[float], float, Fraction]:
        return truncation(states, epsilon, neighbours), 1.0, epsilon


@dataclass(frozen=True)
class LikelyRows(_DrawnRows):
    """Draw by the exponential mechanism with the likelihood as score; see `PrivateDataset.sample_map`."""

    mechanism: ClassVar[str] = "exponential"
    floor: float = 0.01

    def _priced(self, states: list[int], epsilon: Fraction, neighbours: str) -> tuple[list[float], float, Fraction]:
        floor = float(exact_positive("floor", self.floor))
        return *tempering(states, floor, epsilon, neighbours), epsilon


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
    small where probabilities are; `pgmpy_dp.data.mechanisms.posterior` defines the grid and draws its points.
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


@dataclass(frozen=True)
class _Grid:
    """Logarithms of both halves' shares, of shape (2, T), and of the cells' widths; and the growth g."""

    logs: Floats
    widths: Floats
    growth: float


@dataclass(frozen=True)
class _Part:
    """Some states, and a bound on the total weight of all ways to divide a mass among them."""

    halves: tuple[_Part, ...]  # none for a single state
    first: int
    bound: tuple[Floats, Floats, float, float]  # knots, their values, bend and exponent


class SimplexPoints:
    """Points of a simplex on the grid of T steps, with exponents e_k >= -1 and growth g; see the top of this module."""

    def __init__(self, exponents: Floats, growth: float, steps: int) -> None:
        self._grid = _grid(steps, growth)
        self._states = len(exponents)
        middle = self._states // 2
        parts = _bounded(exponents[:middle], 0, 1, self._grid), _bounded(exponents[middle:], middle, 1, self._grid)
        self._whole = _Part(parts, 0, _NOTHING)
        self._first = Categorical(_weights(self._whole, 0.0, self._grid))

    def draw(self, below: Below) -> Floats:
        """Draw the masses of all states; they sum to one up to rounding."""
        while True:
            masses, refusal = np.empty(self._states), 0.0
            waiting = [(self._whole, 0.0)]
            while waiting:
                part, log_mass = waiting.pop()
                if not part.halves:
                    masses[part.first] = np.exp(log_mass)
                    continue
                if part is self._whole:
                    way = self._first.draw(below)
                else:
                    split = Categorical(_weights(part, log_mass, self._grid))
                    way = split.draw(below)
                    refusal += max(_bound_at(part, log_mass) - (log_mass + split.log_total), 0.0)
                waiting += zip(part.halves, log_mass + self._grid.logs[:, way], strict=True)
            if exponential_coin(refusal, below):
                return masses


_NOTHING = (np.zeros(0), np.zeros(0), 0.0, 0.0)


def _grid(steps: int, growth: float) -> _Grid:
    angles = np.pi * (2 * np.arange(steps) + 1) / (4 * steps)
    widths = np.sin(2 * angles) * np.sin(np.pi / (2 * steps))  # a difference of squares without cancellation
    return _Grid(2 * np.log([np.sin(angles), np.cos(angles)]), np.log(widths), growth)


def _bounded(exponents: Floats, first: int, depth: int, grid: _Grid) -> _Part:
    """Bound the total weights of some states, `depth` splits below the whole, from the single states up."""
    from pgmpy_dp.data.split_sums import split_sums  # brings numba, which is slow to import

    if len(exponents) == 1:
        return _Part((), first, (*_NOTHING[:3], float(exponents[0])))
    middle = len(exponents) // 2
    halves = (
        _bounded(exponents[:middle], first, depth + 1, grid),
        _bounded(exponents[middle:], first + middle, depth + 1, grid),
    )

    def log_sums(masses: Floats) -> Floats:
        sums: Floats = masses + split_sums(
            masses, grid.logs, grid.widths, grid.growth, halves[0].bound, halves[1].bound
        )
        return sums

    bend = float(np.maximum(-exponents, 0.0).sum()) / 4
    knots = np.linspace(1.001 * depth * grid.logs.min(), 0.0, _FIRST_KNOTS)
    values = log_sums(knots)
    low, high = knots[:-1], knots[1:]
    while low.size:
        middles = (low + high) / 2
        sums = log_sums(middles)
        straight = np.interp(middles, knots, values) + bend / 2 * (middles - low) * (high - middles)
        further = straight - sums > _CLOSE
        positions = np.searchsorted(knots, middles)
        knots, values = np.insert(knots, positions, middles), np.insert(values, positions, sums)
        low = np.concatenate([low[further], middles[further]])
        middles = middles[further]
        high = np.concatenate([middles, high[further]])
    return _Part(halves, first, (knots, values, bend, 0.0))


def _weights(part: _Part, log_mass: float, grid: _Grid) -> Floats:
    """Compute the log-weights of all splits of a mass."""
    from pgmpy_dp.data.split_sums import split_weights

    one, other = part.halves
    result: Floats = split_weights(log_mass, grid.logs, grid.widths, grid.growth, one.bound, other.bound)
    return result


def _bound_at(part: _Part, log_mass: float) -> float:
    """Return the logarithm of the bound on the total weight of a mass."""
    knots, values, bend, _ = part.bound
    after = int(np.clip(np.searchsorted(knots, log_mass), 1, knots.size - 1))
    low, high = knots[after - 1], knots[after]
    straight = np.interp(log_mass, knots, values)
    return float(straight + bend / 2 * (log_mass - low) * (high - log_mass))
