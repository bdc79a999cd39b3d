"""Densities within bins, estimated from the noisy counts of all bins of one number.

The log-density is an integrated Wiener process: a spline whose second or third derivative is white noise. It is smooth
on one of two scales about the densest bin: linear, where a straight line is an exponential tail and a parabola a normal
one, or logarithmic (asinh), where a straight line is a power law. Its prior falls outwards like a power law, so that a
tail whose count is lost in noise stays light. Scale, order and smoothness are weighted by their evidence (the Laplace
approximation of the probability of the counts), and the densities are averaged geometrically, so that an improbable
heavy tail does not decide the mean.

A finer histogram refines the density. Its shares are those of the density, of which some are multiplied by log-normal
factors with mean 1; how many, and by how much, is weighted by the evidence. A rare one may be anything. So a cell whose
count noise explains keeps the density, and the empty cells of a wide bin stay empty, but a heap of records stands out.
A cell that lies farther out than the mean of its tail holds more than the density only if it stands out from the noise
in all cells: no tail follows what noise alone explains.

A part of a bin may be in its first cell besides what the density has there. How large a part is weighted by the
evidence of the bin, and how many bins have one by that of all; it counts in the estimate if some is nearly certain.
What stands out in the first cell from the rest of a bin is at its edge: declared edges are round, and so are numbers
that people state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import log_ndtr

from pgmpy_dp.inference.collective.noise_laws import LaplaceNoise, Law
from pgmpy_dp.inference.tables.table import Vector

DRAWS = 32
# Cells of a bin, of all bins together, and bins that are fitted one by one; if there are more, neighbours are joined.
_CELLS, _ALL_CELLS, _MAX_BINS = 16, 320, 48
# Priors of the log-density: the index of its power-law tails, standard deviations of its level and slope, and of its
# curvature in the third order. Units of the scale: half the densest bin's width (log), half the finite range (linear).
_INDEX, _LEVEL, _SLOPE, _CURVATURE = 1.5, 2.0, 2.0, 1.0
_WHITE_NOISE = 10.0 ** np.arange(-3.0, 3.1, 1.5)  # variances of the derivative, all equally probable
_REACH = 4.0  # the linear scale is linear to about this multiple of the range, and logarithmic beyond
# An outer bin whose far end is this multiple of its near end's distance from the centre is a tail. The density falls
# outwards there on the log scale and, beyond the second multiple, like a power law with at least this index, below
# which the mean would be that of the far end.
_TAIL, _FAR, _MIN_INDEX, _PRECISION = 3.0, 4.0, 1.0, 1e3
# Maximum number of Newton steps, the gain at which they end, and the longest and shortest steps.
_STEPS, _CLOSE, _LONGEST, _SHORTEST = 40, 1e-3, 5.0, 1e-4
_MIN = 1e-300
# Step and start (in records) of the grid of log-shares of a finer histogram. The shares are those of the density times
# log-normal factors of these standard deviations, in these shares of cells; or, rarely, anything.
_STEP, _MIN_COUNT = 0.04, 0.01
_SPREADS, _CHANGED, _SPIKE = (0.1, 0.3, 0.8, 1.5, 2.5), (0.03, 0.2, 1.0), 1e-3
# Probability that noise alone exceeds the threshold for cells that stand out in a tail, in any cell of a finer
# histogram; and the threshold for a heap at the edge of a bin, in one cell.
_TAIL_LEVEL, _HEAP_LEVEL = 1e-4, 1e-2
# Shares of a bin that may be in such a heap, where 0 is as probable as all others together; and the number of rounds
# that estimate how many bins have one.
_HEAPED, _ROUNDS = (0.0, 0.1, 0.3, 0.6, 0.9, 1.0), 30
EDGE = 1e-6  # width of a heap at an edge, relative to its cell, if numbers may have any decimals


@dataclass(frozen=True)
class Density:
    """A piecewise constant density on cells within bins."""

    bounds: Vector
    owners: NDArray[np.intp]  # the bin of each cell
    shares: Vector  # probability of each cell given its bin
    minimum: Vector
    maximum: Vector
    draw: Callable[[], Vector]  # returns `DRAWS` draws of the shares from the posterior, the same in each call

    @cached_property
    def drawn(self) -> Vector:
        """Draws of the shares, of shape (draws, cells)."""
        return self.draw()

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """Where each bin's cells begin, and where the last bin's end."""
        return np.searchsorted(self.owners, np.arange(self.owners[-1] + 2))


@dataclass(frozen=True)
class FineHistogram:
    """A noisy histogram whose cells divide the bins."""

    edges: Vector
    shares: Vector  # noisy shares of the records
    noise: float  # standard deviation of the noise in a share
    law: Law  # the distribution of the noise
    records: float

    def clear(self, expected: Vector | float) -> NDArray[np.bool_]:
        """Find the cells whose excess over the expected share is larger than noise explains in any cell."""
        return self.shares - expected > self.law.maximum(_TAIL_LEVEL / self.shares.size) * self.noise

    def likelihood(self, means: Vector) -> Vector:
        """Compute the log-likelihood of shares, of shape (cells, shares), with noise and sampling."""
        residuals, sampling = self.shares[:, None] - means, np.maximum(means, 1 / self.records) / self.records
        if self.law is not LaplaceNoise or self.noise == 0:
            variances = self.noise**2 + sampling
            return np.asarray(-(residuals**2) / variances / 2 - np.log(variances) / 2)
        # The sum of Laplace noise of scale 1 and normal sampling, in these units.
        scale = self.noise / LaplaceNoise.unit**0.5
        far, spread = residuals / scale, np.sqrt(sampling) / scale
        sides = [side * far + log_ndtr(-side * far / spread - spread) for side in (-1.0, 1.0)]
        return np.asarray(spread**2 / 2 + np.logaddexp(*sides))


@dataclass(frozen=True)
class _Scale:
    """A prior of the log-density on a scale: its mean, and its covariance without white noise and per unit of it."""

    widths: Vector
    mean: Vector
    base: Vector
    rough: Vector


@dataclass(frozen=True)
class _Problem:
    """The posterior of a log-density on one scale."""

    scale: _Scale
    minimum: Vector  # the log-density less this falls outwards in tails
    sums: Vector  # indicators of the cells of each observed bin
    shares: Vector
    variances: Vector
    falling: NDArray[np.intp]  # cells of tails, without the last of them
    outwards: Vector  # 1 where the next cell lies outwards, and -1 where it lies inwards

    def solve(self, covariance: Vector, start: Vector) -> tuple[float, Vector]:
        """Find the mode by Newton's method, and return the loss there and the mode."""
        logs, weights = start, np.zeros(start.size)  # after a step, logs = mean + covariance @ weights
        loss = self._loss(self.scale.mean)
        for step in range(_STEPS):
            chances, rises = self._expected(logs)
            active = np.flatnonzero(rises > 0)
            linear = self._derivatives(chances, active)
            left = np.append(self.shares - self.sums @ chances, -rises[active])
            factor = self._factor(covariance, linear)
            towards = linear.T @ cho_solve(factor, left + linear @ (logs - self.scale.mean), check_finite=False)
            far = float(np.abs(covariance @ (towards - weights)).max())
            rate = min(1.0, _LONGEST / max(far, _MIN)) if step else 1.0
            while True:
                tried = weights + rate * (towards - weights)
                moved = self.scale.mean + covariance @ tried
                reached = self._loss(moved) + float(tried @ (moved - self.scale.mean)) / 2
                if reached <= loss or rate < _SHORTEST or not step:
                    break
                rate /= 2
            if reached > loss:
                if step:
                    break
                logs = self.scale.mean  # the first step led away from the starting point
                continue
            gain, weights, logs, loss = loss - reached, tried, moved, reached
            if gain < _CLOSE:
                break
        return loss, logs

    def evidence(self, covariance: Vector, logs: Vector, loss: float) -> float:
        """Compute the log-probability of the data by the Laplace approximation at the mode."""
        none = np.empty(0, dtype=np.intp)
        factor, _ = self._factor(covariance, self._derivatives(self._expected(logs)[0], none))
        return float(np.log(self.variances).sum() / 2 - np.log(np.diag(factor)).sum()) - loss

    def drawn(self, covariance: Vector, logs: Vector, count: int, generator: np.random.Generator) -> Vector:
        """Draw from the posterior by optimising with a drawn prior mean and drawn data (Bardsley et al. 2014)."""
        jitter = 1e-10 * float(np.trace(covariance)) / len(covariance)
        root = np.linalg.cholesky(covariance + jitter * np.eye(len(covariance)))
        result = np.empty((count, len(root)))
        for number in range(count):
            mean = self.scale.mean + root @ generator.standard_normal(len(root))
            shares = self.shares + np.sqrt(self.variances) * generator.standard_normal(self.shares.size)
            again = replace(self, scale=replace(self.scale, mean=mean), shares=shares)
            result[number] = again.solve(covariance, logs)[1]
        for cells in (self.falling[self.outwards > 0], self.falling[self.outwards < 0][::-1] + 1):
            if cells.size:
                tail = np.append(cells, 2 * cells[-1] - cells[-2] if cells.size > 1 else cells[-1])
                result[:, tail] = (
                    np.minimum.accumulate(result[:, tail] - self.minimum[tail], axis=1) + self.minimum[tail]
                )
        return result

    def _expected(self, logs: Vector) -> tuple[Vector, Vector]:
        """Return the cells' probabilities, and the rise of the density where it should fall."""
        chances = np.exp(logs.clip(-700.0, 50.0)) * self.scale.widths
        return chances, self.outwards * np.diff(logs - self.minimum)[self.falling]

    def _loss(self, logs: Vector) -> float:
        chances, rises = self._expected(logs)
        squares = (self.shares - self.sums @ chances) ** 2 / self.variances
        return float(squares.sum() + _PRECISION * (np.maximum(rises, 0.0) ** 2).sum()) / 2

    def _derivatives(self, chances: Vector, active: NDArray[np.intp]) -> Vector:
        slopes = np.zeros((active.size, chances.size))
        rows = np.arange(active.size)
        slopes[rows, self.falling[active] + 1] = self.outwards[active]
        slopes[rows, self.falling[active]] = -self.outwards[active]
        return np.concatenate([self.sums * chances, slopes])

    def _factor(self, covariance: Vector, linear: Vector) -> tuple[Vector, bool]:
        """Factorise the covariance of the data, of which the first are shares and the others bound slopes by zero."""
        inner = linear @ (covariance @ linear.T)
        spread = np.append(self.variances, np.full(len(linear) - self.shares.size, 1 / _PRECISION))
        inner[np.diag_indices_from(inner)] += spread + 1e-12 * np.trace(inner) / len(inner)
        return cho_factor(inner, lower=True, check_finite=False)


def fit_density(
    edges: Vector,
    shares: Vector,
    variances: Vector,
    informative: NDArray[np.bool_],
    *,
    whole: bool,
    fine: FineHistogram | None = None,
) -> Density:
    """Fit a density to the noisy shares of bins."""
    size = len(shares)
    if size == 1 or not informative.any():
        flat = Density(edges, np.arange(size), np.ones(size), edges[:-1], edges[1:], lambda: np.ones((DRAWS, size)))
        return flat if fine is None else _refined(flat, np.zeros(size), shares, fine, whole)
    joined = _joined(size)
    outer = edges[np.append(joined, size)]
    merged = [np.add.reduceat(values, joined) for values in (shares, variances)]
    known = np.add.reduceat(informative, joined) > 0
    bounds, logs, draw, tails = _fit(outer, merged[0], merged[1], known, whole)
    finer = np.union1d(bounds, edges)
    cells = np.searchsorted(bounds, finer[:-1], side="right") - 1
    owners = np.searchsorted(edges, finer[:-1], side="right") - 1
    starts = np.flatnonzero(np.diff(owners, prepend=-1))

    def within(logs: Vector) -> Vector:
        result: Vector = logs[..., cells] + np.log(np.diff(finer))
        result = np.exp(result - np.maximum.reduceat(result, starts, axis=-1)[..., owners])
        return np.asarray(result / np.add.reduceat(result, starts, axis=-1)[..., owners])

    tails = tails[cells]
    minimum = np.where(tails < 0, finer[:-1], edges[owners])
    maximum = np.where(tails > 0, finer[1:], edges[owners + 1])
    density = Density(finer, owners, within(logs), minimum, maximum, lambda: within(draw()))
    return density if fine is None else _refined(density, tails, shares, fine, whole)


def _joined(size: int) -> NDArray[np.intp]:
    """Return the first bins of groups of neighbours that are fitted together; the four outermost stay alone."""
    if size <= _MAX_BINS:
        return np.arange(size)
    inner = np.linspace(4, size - 4, _MAX_BINS - 7).round().astype(np.intp)
    return np.concatenate([np.arange(4), inner, np.arange(size - 3, size)])


def _fit(
    edges: Vector, shares: Vector, variances: Vector, informative: NDArray[np.bool_], whole: bool
) -> tuple[Vector, Vector, Callable[[], Vector], Vector]:
    """Return bounds of cells, their log-densities, a function that draws these, and 1 or -1 for the cells of a tail."""
    size, width = len(shares), np.diff(edges)
    densities = np.where(informative, np.maximum(shares, np.sqrt(variances) / 2) / width, 0.0)
    top = int(densities.argmax())
    centre, unit = edges[top] + width[top] / 2, width[top] / 2
    bounds, owners = _cells(edges, centre, unit, whole)
    position = (bounds - centre) / unit
    logarithmic = np.arcsinh(position)
    # A wide outer bin's density falls outwards.
    tails, reach = np.zeros(owners.size), np.abs(edges - centre)
    if reach[-1] > _TAIL * reach[-2] and top < size - 1:
        tails[owners == size - 1] = 1.0
    if reach[0] > _TAIL * reach[1] and top > 0:
        tails[owners == 0] = -1.0
    outwards = np.where(tails[:-1] == tails[1:], tails[:-1], 0.0)
    falling, middles = np.flatnonzero(outwards), (logarithmic[1:] + logarithmic[:-1]) / 2
    begins = np.arcsinh(_FAR * reach[np.where(middles < 0, 1, -2)] / unit)
    far = np.maximum(np.abs(middles) - begins, 0.0)
    rows = np.flatnonzero(informative)
    sums = (owners == rows[:, None]).astype(np.float64)
    level = max(shares[top], np.sqrt(variances[top]))
    results = []
    for scale in _scales(edges, centre, unit, position, level / np.bincount(owners, np.diff(logarithmic))[top]):
        shift = np.log(np.diff(logarithmic) / scale.widths)
        minimum = shift - _MIN_INDEX * far
        problem = _Problem(scale, minimum, sums, shares[rows], variances[rows], falling, outwards[falling])
        logs = scale.mean
        for noise in _WHITE_NOISE:
            covariance = scale.base + noise * scale.rough
            loss, logs = problem.solve(covariance, logs)
            results.append((problem.evidence(covariance, logs, loss), problem, covariance, logs, shift))
    evidence = np.array([each[0] for each in results])
    weights = np.exp(evidence - evidence.max())
    weights /= weights.sum()
    outer = np.log(np.diff(bounds) / np.diff(logarithmic))
    mean = np.zeros(owners.size)
    for weight, (_, _, _, logs, shift) in zip(weights, results, strict=True):
        mean += weight * (logs - shift)

    def draw() -> Vector:
        generator, drawn = np.random.default_rng(0), np.empty((DRAWS, owners.size))
        ends = np.round(np.cumsum(weights) * DRAWS).astype(int)
        for begin, end, (_, problem, covariance, logs, shift) in zip([0, *ends], ends, results, strict=False):
            if begin < end:
                drawn[begin:end] = problem.drawn(covariance, logs, end - begin, generator) - shift
        return np.asarray(drawn - outer)

    return bounds, mean - outer, draw, tails


def _cells(edges: Vector, centre: float, unit: float, whole: bool) -> tuple[Vector, NDArray[np.intp]]:
    """Cut bins into cells of equal width on the log scale."""
    count = int(np.clip(_ALL_CELLS // (len(edges) - 1), 4, _CELLS))
    ends = np.arcsinh((edges - centre) / unit)
    inner = ends[:-1, None] + np.diff(ends)[:, None] * np.arange(1, count) / count
    cut = (centre + unit * np.sinh(inner)).clip(edges[:-1, None], edges[1:, None])
    bounds = np.union1d(np.rint(cut) if whole else cut, edges)
    return bounds, np.searchsorted(edges, bounds[:-1], side="right") - 1


def _scales(edges: Vector, centre: float, unit: float, place: Vector, level: float) -> list[_Scale]:
    """Return the priors on both scales, of second and third order."""
    finite = max(edges[-2] - centre, centre - edges[1], unit) / unit
    reach, scales = _REACH * finite, []
    for order in (2, 3):
        for ends, outwards, length in (
            (np.arcsinh(place), np.arcsinh(place), 1.0),
            (reach * np.arcsinh(place / reach), np.arcsinh(place / reach), finite / 2),
        ):
            widths = np.diff(ends)
            middles = (ends[1:] + ends[:-1]) / 2 / length
            base = _LEVEL**2 + _SLOPE**2 * np.outer(middles, middles)
            if order == 3:
                base = base + _CURVATURE**2 * np.outer(middles**2, middles**2) / 4
            falling = _INDEX * np.abs(outwards[1:] + outwards[:-1]) / 2
            scales.append(_Scale(widths, np.log(level) - falling, base, _integrated(middles, order)))
    return scales


def _integrated(places: Vector, order: int) -> Vector:
    """Return the covariance of white noise integrated twice or three times, to both sides of 0."""
    ends = np.abs(places)
    low, high = np.minimum.outer(ends, ends), np.maximum.outer(ends, ends)
    if order == 2:
        result = low**2 * (3 * high - low) / 6
    else:
        result = low**3 * (10 * high**2 - 5 * high * low + low**2) / 120
    return np.where(np.multiply.outer(places, places) > 0, result, 0.0)


def _refined(density: Density, tails: Vector, chances: Vector, fine: FineHistogram, whole: bool) -> Density:
    """Refine a density by a finer histogram; in `tails`, cells have 1 or -1 where it falls upwards or downwards."""
    edges, size = fine.edges, fine.shares.size
    begins = np.isin(edges[:-1], density.bounds[density.starts[:-1]])
    heaps = edges[:-1][begins] + (1.0 if whole else EDGE * np.diff(edges)[begins])
    bounds = np.union1d(np.union1d(density.bounds, edges), heaps)
    before = np.searchsorted(density.bounds, bounds[:-1], side="right") - 1
    cells, owners = np.searchsorted(edges, bounds[:-1], side="right") - 1, density.owners[before]
    starts, bins = np.flatnonzero(np.diff(owners, prepend=-1)), owners[np.searchsorted(cells, np.arange(size))]
    parts = np.diff(bounds) / np.diff(density.bounds)[before]
    even = np.diff(bounds) / np.diff(edges)[cells]
    at_edge = np.isin(bounds[:-1], edges[:-1][begins])
    means = np.bincount(density.owners, density.shares * (density.bounds[1:] + density.bounds[:-1]) / 2)
    outwards = tails[np.searchsorted(density.bounds, edges[:-1], side="right") - 1]
    far = outwards * ((edges[1:] + edges[:-1]) / 2 - means[bins]) > 0

    def measured_shares(
        expected: Vector, heaped: float | Vector, generator: np.random.Generator | None
    ) -> tuple[Vector, Vector]:
        maximum = np.where(far & ~fine.clear(expected), expected, np.inf)
        mixed = (1.0 - heaped) * expected + heaped * np.where(begins, chances[bins], 0.0)
        return _measured_shares(mixed, maximum, fine, generator)

    def expectation(own: Vector) -> tuple[Vector, Vector]:
        pieces: Vector = own[before] * parts * chances[owners]
        return pieces, np.bincount(cells, pieces, size).astype(np.float64)

    first = expectation(density.shares)[1]
    evidence = [np.bincount(bins, measured_shares(first, heaped, None)[0]) for heaped in _HEAPED]
    heaps_of = _weighed(np.array(evidence))
    shown = heaps_of[0] < _HEAP_LEVEL

    def refined(own: Vector, generator: np.random.Generator | None = None) -> Vector:
        pieces, expected = expectation(own)
        if generator is None:
            used = np.where(shown, heaps_of, np.eye(len(_HEAPED), 1))
            measured = np.zeros(size)
            for position in np.flatnonzero(used.any(axis=1)):
                measured += used[position, bins] * measured_shares(expected, _HEAPED[position], None)[1]
        else:
            chosen = (np.cumsum(heaps_of, axis=0) < generator.random(shown.size)).sum(axis=0)
            measured = measured_shares(
                expected, np.array(_HEAPED)[np.minimum(chosen, len(_HEAPED) - 1)][bins], generator
            )[1]
        result: Vector = (
            np.where(expected[cells] > 0, pieces / np.maximum(expected[cells], _MIN), even) * measured[cells]
        )
        # Expected share of the first cell of a bin if it is as full as the others, and its excess.
        others = [np.bincount(bins, np.where(begins, 0.0, shares)) for shares in (measured, expected)]
        level = expected * (others[0] / np.maximum(others[1], _MIN))[bins]
        stands_out = fine.shares - level > fine.law.maximum(_HEAP_LEVEL) * fine.noise
        heaped = begins & (others[1][bins] > 0) & (stands_out | shown[bins])
        heap = np.where(heaped, np.maximum(measured - level, 0.0), 0.0)
        result = result * (1.0 - heap / np.maximum(measured, _MIN))[cells] + at_edge * heap[cells]
        sums = np.add.reduceat(result, starts)[owners]
        return np.asarray(np.where(sums > _MIN, result / np.maximum(sums, _MIN), own[before] * parts))

    def draw() -> Vector:
        generator = np.random.default_rng(0)
        return np.array([refined(own, generator) for own in density.drawn])

    known = ~(far & ~fine.clear(0.0))[cells]
    minimum = np.where(known | (tails[before] > 0), edges[cells], bounds[:-1])
    maximum = np.where(known | (tails[before] < 0), edges[cells + 1], bounds[1:])
    return Density(bounds, owners, refined(density.shares), minimum, maximum, draw)


def _weighed(evidence: Vector) -> Vector:
    """Return the probabilities of the shares of bins that are heaped, of shape (shares, bins)."""
    prior = np.where(np.array(_HEAPED) > 0, 0.5 / (len(_HEAPED) - 1), 0.5)
    likelihoods, weights = np.exp(evidence - evidence.max(axis=0)), prior
    for _ in range(_ROUNDS):
        result = likelihoods * weights[:, None]
        result /= result.sum(axis=0)
        weights = (result.sum(axis=1) + prior) / (result.shape[1] + 1.0)
    return np.asarray(result)


def _measured_shares(
    expected: Vector, maximum: Vector, fine: FineHistogram, generator: np.random.Generator | None
) -> tuple[Vector, Vector]:
    """Return the evidence, and the mean or a draw of each share given its noisy one, at most `maximum`."""
    logs = np.arange(np.log(_MIN_COUNT / fine.records), _STEP, _STEP)
    shape = (expected.size, logs.size)
    means = np.hstack([np.maximum(expected, _MIN)[:, None], np.broadcast_to(np.exp(logs), shape)])
    likely = fine.likelihood(means)
    top = likely.max(axis=1, keepdims=True)
    likely = np.exp(likely - top)
    positions = logs - np.log(means[:, :1])
    spike = np.append(0.0, np.full(logs.size, 1 / logs.size))
    # Under each prior, the probability of each share jointly with the noisy one; the first is the expected share.
    joints = []
    for spread in _SPREADS:
        bells = np.exp(-((positions / spread + spread / 2) ** 2) / 2) * (_STEP / spread / (2 * np.pi) ** 0.5)
        for part in _CHANGED:
            prior = np.hstack([np.maximum(1 - part * bells.sum(axis=1, keepdims=True), 0.0), part * bells])
            joints.append(((1 - _SPIKE) * prior + _SPIKE * spike) * likely)
    totals = np.maximum([joint.sum(axis=1) for joint in joints], _MIN)
    evidence = np.log(totals).sum(axis=1)
    weights = np.exp(evidence - evidence.max())
    whole = np.log(weights @ totals / weights.sum()) + top[:, 0]
    given = sum(weight * joint / total[:, None] for weight, joint, total in zip(weights, joints, totals, strict=True))
    given = np.asarray(given) / weights.sum()
    if generator is None:
        return whole, np.asarray((given * np.minimum(means, maximum[:, None])).sum(axis=1))
    chosen = (np.cumsum(given, axis=1) < generator.random((len(given), 1))).sum(axis=1)
    drawn = np.take_along_axis(means, np.minimum(chosen, logs.size)[:, None], axis=1)[:, 0]
    return whole, np.asarray(np.minimum(drawn, maximum))
