"""Points of a simplex are drawn exactly, on a public grid that resolves rare states as well as common ones.

The states are split in two halves, in their order, and the halves again. A point is given by a share v for every split,
out of the grid v_i = sin(pi (2 i + 1) / (4 T))**2, i < T: of the mass that is split, the first half has so much. Steps
of the grid are as sqrt(v (1 - v)), as standard errors of shares are, so that small shares have small steps. The base
measure is the uniform one of the simplex: a point has the volume of its cell for its weight, the product over splits of
the cell's width in v and of the mass of each half that is split further, the Jacobian. Masses s_k of the states have
that weight times

    prod_k (1 + g s_k) ** e_k.

Of this distribution, which has nothing of the algorithm in it, draws are exact. From the first split down, a split of
the mass m is drawn by the weights of its shares times the summed weights F of all that is below the two halves. F is
not known for every mass; instead it is bounded, as a function of x = log m. The second derivative of
log(1 + g exp(x)) lies between 0 and 1/4, so that log F(x) + A x**2 / 8 is convex, A being the sum of -e_k over the
negative e_k: products keep that, and sums of functions do that are convex in logarithms. Between two masses for which F
was computed, a straight line, plus A / 8 times the product of the distances to both, is therefore nowhere below log F.
Draws by these bounds are accepted by an exact coin, with the product over splits of what the weights sum to over the
bound. Masses are added until bounds are close, so that most draws are.

Logarithms of sums are floats, each off by some units in its last place. The exponents below splits side by side add up
to no more than those above, so that a draw's log-probability is off by some such units for each level of splits, of
the exponents and of the volumes: within what `pgmpy_dp.privacy.posterior` reserves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.privacy.random_bits import Below, Categorical, exponential_coin

Floats = NDArray[np.float64]

_FIRST_KNOTS = 9
# Intervals are halved where the bound in their middle is further off, in logarithms.
_CLOSE = 0.2


@dataclass(frozen=True)
class _Grid:
    """Logarithms of both halves' shares, of shape (2, T), and of the cells' widths; and g."""

    logs: Floats
    widths: Floats
    growth: float


@dataclass(frozen=True)
class _Part:
    """Some states, and a bound of the summed weight of all ways to share a mass among them.

    Attributes
    ----------
    halves : tuple of _Part
        Empty for a single state.
    first : int
        The first state.
    bound : tuple
        Knots, values there, bend and exponent, as `split_sums` takes them.
    """

    halves: tuple[_Part, ...]
    first: int
    bound: tuple[Floats, Floats, float, float]


class SimplexPoints:
    """Points of a simplex have these weights on the grid; see the top of this file.

    Parameters
    ----------
    exponents : ndarray of shape (states,)
        e_k, at least -1, of two states or more.
    growth : float
        g.
    steps : int
        T.
    """

    def __init__(self, exponents: Floats, growth: float, steps: int) -> None:
        self._grid = _grid(steps, growth)
        self._states = len(exponents)
        middle = self._states // 2
        parts = _bounded(exponents[:middle], 0, 1, self._grid), _bounded(exponents[middle:], middle, 1, self._grid)
        self._whole = _Part(parts, 0, _NOTHING)
        self._first = Categorical(_weights(self._whole, 0.0, self._grid)[None])

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
                    way = self._first.draw(0, below)
                else:
                    split = Categorical(_weights(part, log_mass, self._grid)[None])
                    way = split.draw(0, below)
                    refusal += max(_bound_at(part, log_mass) - (log_mass + split.log_total(0)), 0.0)
                waiting += zip(part.halves, log_mass + self._grid.logs[:, way], strict=True)
            if exponential_coin(refusal, below):
                return masses


_NOTHING = (np.zeros(0), np.zeros(0), 0.0, 0.0)


def _grid(steps: int, growth: float) -> _Grid:
    angles = np.pi * (2 * np.arange(steps) + 1) / (4 * steps)
    widths = np.sin(2 * angles) * np.sin(np.pi / (2 * steps))  # by the formula for a difference of squares
    return _Grid(2 * np.log([np.sin(angles), np.cos(angles)]), np.log(widths), growth)


def _bounded(exponents: Floats, first: int, depth: int, grid: _Grid) -> _Part:
    """Bound the summed weights of some states, so many splits below the whole, from the single states up."""
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
        places = np.searchsorted(knots, middles)
        knots, values = np.insert(knots, places, middles), np.insert(values, places, sums)
        low = np.concatenate([low[further], middles[further]])
        middles = middles[further]
        high = np.concatenate([middles, high[further]])
    return _Part(halves, first, (knots, values, bend, 0.0))


def _weights(part: _Part, log_mass: float, grid: _Grid) -> Floats:
    """Compute the log-weights of all splits of a mass."""
    from pgmpy_dp.data.split_sums import split_weights

    one, other = part.halves
    found: Floats = split_weights(log_mass, grid.logs, grid.widths, grid.growth, one.bound, other.bound)
    return found


def _bound_at(part: _Part, log_mass: float) -> float:
    """Bound the summed weight of a mass, in logarithms."""
    knots, values, bend, _ = part.bound
    after = int(np.clip(np.searchsorted(knots, log_mass), 1, knots.size - 1))
    low, high = knots[after - 1], knots[after]
    straight = np.interp(log_mass, knots, values)
    return float(straight + bend / 2 * (log_mass - low) * (high - log_mass))
