"""Linear regressions drawn from their truncated posteriors.

Sensitivity, and the tempering that meets an epsilon.

A node y with k parents is y = x . theta + noise of precision tau, x = (1, u_1 .. u_k). Values are scaled to their
public bounds, so that |y| <= 1 and |x| <= sqrt(1 + k). The prior N(0, I / b) is truncated to |theta| <= B. There

    -tau R**2 / 2 <= log p(y | x, theta) - log p(0 | 0, theta) <= 0,    R = 1 + sqrt(1 + k) B,

and both bounds are attained, so a record's log-likelihood varies by at most L = tau R**2 / 2. With the likelihood
raised to a power lam, one draw costs 2 lam L where a record is replaced and lam L where one is added or removed, by the
argument of `pgmpy_dp.privacy.posterior`. The nodes' coefficients are drawn independently, and their costs add up.
(Zhang, Rubinstein and Dimitrakakis 2016, appendix D, in words; the formulas are derived here.)

Exact sampling from a Gaussian density restricted to the grid points of a ball.

The probabilities are proportional to exp(-q(s)), q(s) = s' A s / 2 - g' s, on the points s = t / T of a public grid,
t in Z**d with |t| <= T. Points are drawn by rejection, with exact coins computed from exact rational numbers. Whatever
is computed in floating point affects only the running time, never the distribution.

Proposals. For a tilt nu >= 0 let A_nu = A + nu I = U' D U, with U unit upper triangular, and let c be the centre of
the Gaussian exp(-q(s) - nu |s|**2 / 2). From the last coordinate to the first, t_i is the nearest integer to its
conditional centre plus k_i, where the k_i are independent discrete Gaussian variables centred at 0 with scales sigma_i.
The rounding of the centres may be done in any way, since k and t determine each other. A proposal in the ball is
accepted with probability exp(-E),

    E = q(s) - sum_i k_i**2 / (2 sigma_i**2) + constant,

so that accepted points have the probabilities above. The constant must make E >= 0 on the ball. Completing squares,

    q(s) = q_min + sum_i (k_i - f_i)**2 / (2 s_i**2) - nu |s|**2 / 2,    s_i = T / sqrt(D_i),

where rounding gives |f_i| <= F s_i. With sigma_i**2 = s_i**2 (1 + F), each term of the sum is at least
k_i**2 / (2 sigma_i**2) - F / 2, and -nu |s|**2 / 2 is at least -nu / 2.

Acceptance. If a proposal with nu = 0 has E|s|**2 <= 1, then nu = 0, and at least about half of the proposals lie in
the ball. Otherwise nu is such that E|s|**2 = 1. Then nu |s|**2 / 2 has a variance of at most d / 2 + nu, and about one
proposal in sqrt(pi (d + 2 nu)) is accepted. This nu is at most d + |g|.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import mul
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.data.mechanisms.mechanism import PrivateRecords, PublicRecords, Quote
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy.checks import decimal_above, exact_positive, rounded_down
from pgmpy_dp.privacy.coins import exponential_coin
from pgmpy_dp.privacy.cost import Pure
from pgmpy_dp.privacy.guarantee import counted
from pgmpy_dp.privacy.noise import NoiseSource
from pgmpy_dp.privacy.posterior import require_different_nodes, total_epsilon
from pgmpy_dp.records.frames import MAX_RECORDS, STEPS, Integers, moments
from pgmpy_dp.release import RegressionDraws
from pgmpy_dp.schema import Clique, Schema

Floats = NDArray[np.float64]

# Largest number of grid steps, and largest expected number of tries of a draw, for any records.
_MAX_STEPS, MAX_TRIES = 2**49, 1e7


@dataclass(frozen=True)
class Regression:
    """Public parameters of a node's regression; the posterior density is exp(-c sum r**2 / 2 - b |theta|**2 / 2)."""

    parents: int  # k
    bound: float  # B
    precision: float  # c = lam tau, of the tempered likelihood
    prior_precision: float  # b
    power: float  # lam
    cost: Fraction  # of one draw


def temper(
    parents: int,
    bound: float,
    tau: float,
    prior_precision: float,
    epsilon: Fraction,
    neighbours: str,
    stated: Fraction | None = None,
) -> Regression:
    """Find the largest power of the likelihood, at most 1, for which a draw costs at most epsilon.

    If a looser bound than `unit_cost` is `stated`, the power is for that, and the cost is what it is.
    """
    each = unit_cost(parents, bound, neighbours)
    precision = min(tau, rounded_down(epsilon / (each if stated is None else stated)))
    cost = min(Fraction(str(decimal_above(Fraction(precision) * each))), epsilon)
    return Regression(parents, bound, precision, prior_precision, precision / tau, cost)


def unit_cost(parents: int, bound: float, neighbours: str) -> Fraction:
    """Compute the epsilon of one draw at precision 1, rounded up: R**2, or half of it under "add_remove"."""
    span = (1 + largest_mean(parents, bound)) ** 2
    return span / 2 if neighbours == "add_remove" else span


def largest_mean(parents: int, bound: float) -> Fraction:
    """Bound x . theta by sqrt(1 + k) B, rounded up."""
    return Fraction(bound) * root_above(Fraction(1 + parents))


def expected_tries(regression: Regression, records: int) -> float:
    """Bound the expected number of tries of a draw, for the most unlikely data of this number of records.

    The tilt is at most d + |g|, and |g| at most c B n sqrt(1 + k); see the top of this module.
    """
    size = regression.parents + 1
    tilt = size + regression.precision * regression.bound * records * math.sqrt(size)
    return math.sqrt(math.pi * (size + 2 * tilt)) + 2


def grid_steps(regression: Regression, records: int) -> int:
    """Number of grid steps in the radius: a public power of 2, large enough that a step is small in the posterior."""
    size = regression.parents + 1
    bound, precision = regression.bound, regression.precision
    sharpest = bound**2 * (precision * records + regression.prior_precision)
    sharpest += 2 * size + precision * bound * records * math.sqrt(size)
    return int(2 ** math.ceil(12 + math.log2(sharpest) / 2))


def root_above(value: Fraction) -> Fraction:
    """Return the square root of a number, rounded up."""
    return Fraction(math.nextafter(math.sqrt(math.nextafter(float(value), math.inf)), math.inf))


# The regression of each family, and a public bound on the number of records.
_Terms = tuple[Mapping[Clique, Regression], int]


@dataclass(frozen=True)
class PosteriorRegressions:
    """Draw linear regressions from their truncated posterior; see `PrivateDataset.sample_regressions`."""

    families: Iterable[Iterable[str]]
    std: Mapping[str, float]
    coefficient_bound: Mapping[str, float]
    epsilon: float | Fraction
    prior_precision: float = 1.0
    draws: int = 1

    _temper: ClassVar[Callable[..., Regression]] = staticmethod(temper)

    def quote(self, public: PublicRecords) -> Quote[_Terms]:
        """Price all draws; the terms are the regressions, and a public bound on the number of records."""
        each, _ = total_epsilon(self.epsilon, self.draws, split=False)
        public.require_single_records()
        maximum = MAX_RECORDS if public.total is None else public.total
        regressions = self._priced(public, each, maximum)
        cost = self.draws * sum((regression.cost for regression in regressions.values()), Fraction(0))
        paid = public.cost(f"draw {counted(self.draws, 'network')}", "posterior_sampling", Pure(cost))
        return Quote(paid, (regressions, maximum))

    def read(self, quote: Quote[_Terms], records: PrivateRecords) -> Mapping[str, Integers]:
        """Return the numbers on their public grid."""
        return records.numbers

    def draw(
        self, quote: Quote[_Terms], public: PublicRecords, exact: Mapping[str, Integers], noise: NoiseSource
    ) -> RegressionDraws:
        """Draw whole networks by :func:`draw_coefficients`."""
        regressions, maximum = quote.terms
        result = draw_coefficients(exact, public.schema, regressions, self.draws, maximum, noise)
        by_node = {family[0]: regression for family, regression in regressions.items()}
        return RegressionDraws(
            public.schema,
            result,
            {node: float(self.std[node]) for node in by_node},
            {node: regression.bound for node, regression in by_node.items()},
            {node: regression.power for node, regression in by_node.items()},
            quote.guarantee,
        )

    def _priced(self, public: PublicRecords, epsilon: Fraction, records: int) -> dict[Clique, Regression]:
        """Temper the regressions of one draw of a network, for at most `records` records.

        They share epsilon equally, except that those whose untempered posterior costs less leave the rest of their
        share to the others.
        """
        families: list[Clique] = [tuple(family) for family in self.families]
        require_different_nodes(families)
        prior = float(exact_positive("prior_precision", self.prior_precision))
        precisions = {f: _precision(public.schema, f, self.std, self.coefficient_bound) for f in families}

        def regression(family: Clique, share: Fraction) -> Regression:
            bound = float(exact_positive(f"coefficient_bound of {family[0]!r}", self.coefficient_bound[family[0]]))
            return self._temper(len(family) - 1, bound, precisions[family], prior, share, public.neighbours)

        left = epsilon
        results = {}
        for position, family in enumerate(sorted(families, key=lambda family: regression(family, epsilon).cost)):
            share = left / (len(families) - position)
            chosen = results[family] = regression(family, share)
            left -= share if chosen.power < 1 else chosen.cost
            tries = expected_tries(chosen, records)
            if not (tries <= MAX_TRIES and grid_steps(chosen, records) <= _MAX_STEPS):
                raise ValueError(
                    f"Exact draws for {family[0]!r} could take {tries:.1g} tries for up to {records} records, more "
                    f"than {MAX_TRIES:.0g}: choose a smaller epsilon, a smaller coefficient_bound or a larger std."
                )
        return {family: results[family] for family in families}


def _precision(schema: Schema, family: Clique, std: Mapping[str, Any], coefficient_bound: Mapping[str, Any]) -> float:
    """Return the precision of the scaled node given its parents; raise if a number that it needs is missing."""
    for variable in family:
        if variable not in schema.bounds:
            raise SchemaError(f"Variable {variable!r} has no bounds: declare them in the schema.")
    node = family[0]
    for name, values in (("std", std), ("coefficient_bound", coefficient_bound)):
        if node not in values:
            raise ValueError(f"{name} has no number for {node!r}: give one for every node.")
    width = float(exact_positive(f"std of {node!r}", std[node]))
    return float(exact_positive(f"precision of {node!r}", (_scale(schema, node)[1] / width) ** 2))


def draw_coefficients(
    numbers: Mapping[str, Integers],
    schema: Schema,
    regressions: Mapping[Clique, Regression],
    draws: int,
    records: int,
    noise: NoiseSource,
) -> tuple[Mapping[Clique, Floats], ...]:
    """Draw coefficients of every node exactly from their tempered posterior on a public grid, truncated to a ball.

    Values are integer numbers of steps, so the sums in the posterior are exact, and its density at every grid point is
    a rational power of e: see `pgmpy_dp.data.mechanisms.regression`.
    """
    results: list[dict[Clique, Floats]] = [{} for _ in range(draws)]
    for family, regression in regressions.items():
        squares, products = moments(numbers, family[0], family[1:])
        posterior = _posterior(squares, products, regression)
        steps = grid_steps(regression, records)
        middle, half = _scale(schema, family[0])
        centres, halves = np.array([_scale(schema, parent) for parent in family[1:]]).reshape(-1, 2).T
        for network in results:
            point = draw_in_ball(*posterior, steps, noise)
            scaled = regression.bound * np.array(point) / steps
            slopes = scaled[1:] * half / halves  # of the variables themselves
            network[family] = np.append(middle + half * scaled[0] - slopes @ centres, slopes)
    return tuple(results)


def _posterior(
    squares: list[list[int]], products: list[int], regression: Regression
) -> tuple[list[list[Fraction]], list[Fraction]]:
    """Compute the quadratic and linear parts of the negative log-posterior, in units of the ball's radius."""
    bound, weight = Fraction(regression.bound), Fraction(regression.precision) / STEPS**2
    prior = Fraction(regression.prior_precision)
    square = [
        [bound**2 * (weight * entry + (prior if i == j else 0)) for j, entry in enumerate(row)]
        for i, row in enumerate(squares)
    ]
    return square, [bound * weight * entry for entry in products]


def _scale(schema: Schema, variable: str) -> tuple[float, float]:
    low, high = schema.bounds[variable]
    return low + (high - low) / 2, (high - low) / 2


Exact = Sequence[Sequence[Fraction]]


def draw_in_ball(square: Exact, linear: Sequence[Fraction], steps: int, noise: NoiseSource) -> list[int]:
    """Draw one grid point t of the ball |t| <= T."""
    size = len(linear)
    tilt = Fraction(_tilt(square, linear))
    tilted = [[entry + (tilt if i == j else 0) for j, entry in enumerate(row)] for i, row in enumerate(square)]
    diagonal, upper, centre = _factorise(tilted, linear)
    start = [round(steps * c) for c in centre]
    rows = np.array([[float(entry) for entry in row] for row in upper])
    widths = [steps / math.sqrt(float(entry)) for entry in diagonal]
    sharpness = sum(math.sqrt(float(tilted[i][i])) for i in range(size)) / steps  # summed over coordinates, per step
    # F: rounding of a conditional centre, of the centre itself, and of a float sum of terms of at most 2 T.
    off = 0.5 / min(widths) + 0.5 * sharpness + 2.0**-49 * size * steps * sharpness
    scales = [width * math.sqrt(1.0 + off) * (1.0 + 2.0**-40) for width in widths]
    energy, proposed = _energy(square, linear, steps), _proposed(scales)
    lowest = -sum((g * c for g, c in zip(linear, centre, strict=True)), Fraction(0)) / 2
    constant = Fraction(math.ceil((tilt / 2 - lowest + size * Fraction(off) / 2) * 2**20), 2**20)
    batch = 16
    while True:
        moves = np.stack([noise.discrete_gaussian(np.zeros(batch, dtype=np.int64), scale) for scale in scales], axis=1)
        away = np.zeros_like(moves)
        for i in reversed(range(size)):
            away[:, i] = moves[:, i] - np.rint(away[:, i + 1 :] @ rows[i, i + 1 :]).astype(np.int64)
        for move, path in zip(moves.tolist(), away.tolist(), strict=True):
            point = [origin + step for origin, step in zip(start, path, strict=True)]
            if sum(position**2 for position in point) > steps**2:
                continue
            if exponential_coin(energy(point) - proposed(move) + constant, noise.below):
                return point
        batch = min(2 * batch, 2**12)


def _energy(square: Exact, linear: Sequence[Fraction], steps: int) -> Callable[[Sequence[int]], Fraction]:
    """Return a function from t to q(t / T), computed in integers over one common denominator."""
    scale = math.lcm(*(entry.denominator for row in (*square, linear) for entry in row))
    rows = [[int(entry * scale) for entry in row] for row in square]
    ends = [int(2 * steps * entry * scale) for entry in linear]

    def energy(point: Sequence[int]) -> Fraction:
        total = sum(
            position * (sum(map(mul, row, point)) - end) for position, row, end in zip(point, rows, ends, strict=True)
        )
        return Fraction(total, 2 * scale * steps**2)

    return energy


def _proposed(scales: Sequence[float]) -> Callable[[Sequence[int]], Fraction]:
    """Return a function from k to sum_i k_i**2 / (2 sigma_i**2)."""
    weights = [1 / (2 * Fraction(scale) ** 2) for scale in scales]
    common = math.lcm(*(weight.denominator for weight in weights))
    whole = [int(weight * common) for weight in weights]
    return lambda move: Fraction(sum(weight * k**2 for weight, k in zip(whole, move, strict=True)), common)


def _tilt(square: Exact, linear: Sequence[Fraction]) -> float:
    """Find nu by bisection in floating point; E|s|**2 decreases in it."""
    values, vectors = np.linalg.eigh(np.array([[float(entry) for entry in row] for row in square]))
    values = np.maximum(values, values[-1] * 1e-15)
    turned: NDArray[np.float64] = vectors.T @ np.array([float(entry) for entry in linear])

    def excess(tilt: float) -> float:
        return float((1 / (values + tilt) + (turned / (values + tilt)) ** 2).sum()) - 1.0

    if excess(0.0) <= 0:
        return 0.0
    low, high = 0.0, len(linear) + float(np.linalg.norm(turned))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high


def _factorise(
    square: Exact, linear: Sequence[Fraction]
) -> tuple[list[Fraction], list[list[Fraction]], list[Fraction]]:
    """Find D, U and the solution c of A c = g exactly, by fraction-free elimination (Bareiss 1968)."""
    size = len(linear)
    scale = math.lcm(*(entry.denominator for row in (*square, linear) for entry in row))
    work = [[int(entry * scale) for entry in (*row, linear[i])] for i, row in enumerate(square)]
    before = 1
    diagonal, upper = [], []
    for i in range(size):
        pivot = work[i][i]
        diagonal.append(Fraction(pivot, before * scale))
        upper.append([Fraction(work[i][j], pivot) if j >= i else Fraction(0) for j in range(size)])
        for k in range(i + 1, size):
            first = work[k][i]
            work[k] = [(pivot * b - first * a) // before for a, b in zip(work[i], work[k], strict=True)]
        before = pivot
    centre = [Fraction(0)] * size
    for i in reversed(range(size)):
        right = Fraction(work[i][size], work[i][i])
        centre[i] = right - sum((upper[i][j] * centre[j] for j in range(i + 1, size)), Fraction(0))
    return diagonal, upper, centre
