"""Hamiltonian Monte Carlo for the posterior of log-potentials given noisy sums of counts.

The mass matrix combines a diagonal with the few stiffest directions of the Gauss-Newton Hessian.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri_exp, rel_entr

from pgmpy_dp._progress import progress
from pgmpy_dp.inference.posterior.log_posterior import LogPosterior, bend
from pgmpy_dp.inference.tables.optimisation import minimise
from pgmpy_dp.inference.tables.table import Rows, Vector, row_maxima

# Range of Dirichlet concentrations; prior mean of the centre of their logarithms (with standard deviation 1), prior
# value of variances and its weight; widths of the proposed moves.
_RANGE = 0.02, 10.0
_CONCENTRATION, _VARIANCE, _VARIANCE_WEIGHT = 0.5, 0.1, 2.0
_WIDTHS = (0.1, 0.4)
# Degrees of freedom of the Student t prior of log-potentials, prior value of its squared scale, and its weight.
_FREEDOM, _FIRST_SCALE, _FIRST_WEIGHT = 3.0, 0.3, 10.0


class Concentrations:
    """Dirichlet priors of all rows, whose concentrations are drawn as well.

    Rows of one CPD learn from each other which states are rare, and rows of all CPDs how even rows are. The logarithm
    of a cell's concentration is a base for the node's state, plus an effect of each parent's state where a node has
    several parents: rows in which a parent has the same state then learn more from each other than from other rows.
    Bases are normal, with a centre and a variance that are drawn too; effects are normal about 0, with a variance for
    each parent's state, so that a rare state may differ from all others.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._bases = sum(shape[0] for shape in rows.shapes)
        moves, whole = list[tuple[int, ...]](), list[int]()
        owners = [np.zeros(self._bases, np.int64)]  # the variance of each parameter, the first of which is the bases'
        cells = numbers = base = 0
        effect, variance = self._bases, 1
        for count, *others in rows.shapes:
            width = stride = math.prod(others)
            here = cells, numbers, width
            moves += [(*here, k, k + 1, 1, 1, 0, base + k, base + k + 1, 0) for k in range(count)]
            whole.append(len(moves))
            moves.append((*here, 0, count, 1, 1, 0, base, base + count, 0))
            for states in others if len(others) > 1 else []:
                stride //= states
                for state in range(states):
                    for k in range(count):
                        moves.append((*here, k, k + 1, stride, states, state, effect, effect + 1, variance))
                        effect += 1
                    owners.append(np.full(count, variance))
                    variance += 1
            cells, numbers, base = cells + count * width, numbers + width, base + count
        self._moves, self._whole = np.array(moves, dtype=np.int64), np.array(whole, dtype=np.int64)
        self._owners = np.concatenate(owners)
        self._centre = math.log(_CONCENTRATION)
        self._parameters = np.where(self._owners == 0, self._centre, 0.0)
        self._variances = np.where(np.arange(variance) == 0, 1.0, _VARIANCE)
        self.first = np.full(cells, _CONCENTRATION)
        self._concentrations = self.first.copy()
        self._gammas = np.array([math.lgamma(_CONCENTRATION)] * cells)

    def renew(self, values: Vector, generator: np.random.Generator) -> Vector:
        """Draw the concentrations of all cells given the rows, which are exp(values) normalised."""
        from pgmpy_dp.inference.posterior.trajectories import sweep  # imports numba, only needed for draws

        logs, believed = self._rows.normalise(values), math.log(_CONCENTRATION)
        totals = self._rows.totals(self._concentrations)
        for width in _WIDTHS:
            shifts = width * generator.standard_normal(len(self._moves) + 1)
            self._centre = sweep(
                self._concentrations, self._gammas, totals, logs, self._parameters, self._moves, self._whole,
                self._centre, believed, self._variances, *_RANGE, shifts, generator.random(shifts.size),
                np.empty_like(logs),
            )  # fmt: skip
        bases, effects = np.split(self._parameters, [self._bases])
        square = float(((bases - self._centre) ** 2).sum()) + _VARIANCE_WEIGHT * _VARIANCE
        self._variances[0] = square / 2 / generator.gamma((bases.size + _VARIANCE_WEIGHT) / 2)
        if effects.size:
            owners = self._owners[self._bases :] - 1
            squares = np.bincount(owners, effects**2) + _VARIANCE_WEIGHT * _VARIANCE
            shapes = (np.bincount(owners) + _VARIANCE_WEIGHT) / 2
            self._variances[1:] = squares / 2 / generator.gamma(shapes)
        precision = bases.size / self._variances[0] + 1.0
        mean = (float(bases.sum()) / self._variances[0] + believed) / precision
        self._centre = mean + generator.standard_normal() / math.sqrt(precision)
        return self._concentrations.copy()


class Scale:
    """Student t prior as a scale mixture of normal ones, with a scale that is drawn as well."""

    def __init__(self, cells: int) -> None:
        self.first = np.full(cells, 1 / _FIRST_SCALE)
        self._square = _FIRST_SCALE

    def renew(self, values: Vector, generator: np.random.Generator) -> Vector:
        """Draw the precisions of all log-potentials given their values."""
        weight = generator.gamma((_FREEDOM + 1) / 2, 2 / (_FREEDOM + values**2 / self._square))
        shape = (values.size + _FIRST_WEIGHT) / 2
        rate = (float(weight @ values**2) + _FIRST_WEIGHT * _FIRST_SCALE) / 2
        self._square = rate / generator.gamma(shape)
        precision: Vector = weight / self._square
        return precision


def log_gamma(shape: Vector, generator: np.random.Generator) -> Vector:
    """Draw logarithms of Gamma variables, which underflow themselves if their shape is small."""
    logs: Vector = np.log(generator.gamma(shape + 1.0)) + np.log1p(-generator.random(shape.size)) / shape
    return logs


# A cell is in its tail if its count is below this share of what the noise hides.
TAIL = 0.1
# A row is hidden if its records stand out of the noise by fewer than this number of variances.
_HIDDEN = 8.0
# Largest probability of redrawing it: near 1, small changes by its ancestors' draws would matter much.
_LARGEST = 0.5
# Rows are redrawn together; their number is adapted, at this rate, to this share of accepted draws.
_REDRAWN_ACCEPTANCE, _ADAPTION = 0.3, 0.1
_TIMES = 2  # redraws after every trajectory


class State(NamedTuple):
    """A point of a chain, the log density there, and its gradient."""

    point: Vector
    value: float
    gradient: Vector


class HiddenRows:
    """Rows of CPDs with so few records that noise hides them: a posterior may then have a mode at every state."""

    def __init__(self, precision: Vector) -> None:
        self._precision, self._share = precision, 1.0

    def signal(self, density: LogPosterior, point: Vector) -> Vector:
        """Return by how many variances of the noise, approximately, the records of each row stand out of it."""
        signal: Vector = self._precision * density.row_counts(point) ** 2
        return signal

    def _chances(self, signal: Vector) -> Vector:
        chances = np.minimum(self._share / np.sqrt(np.maximum(signal, 1e-12)), _LARGEST)
        return np.where(signal < _HIDDEN, chances, 0.0)

    def redraw(self, density: LogPosterior, state: State, generator: np.random.Generator, *, learning: bool) -> State:
        """Redraw some hidden rows from their prior, twice; all or none are accepted, by the likelihood.

        A row may have records only at times, and is hidden at the others: which rows are redrawn depends on the state.
        The draw changes the records of descendants and so the probability of this choice: the acceptance includes the
        ratio of both probabilities (Green 1995). The sums of rows, on which nothing depends, are kept.
        """
        terms, signal = density.terms, self.signal(density, state.point)
        for _ in range(_TIMES):
            chances = self._chances(signal)
            chosen = generator.random(signal.size) < chances
            cells = np.flatnonzero(chosen[terms.rows])
            if not cells.size:
                continue
            values, slopes = density.values(state.point)
            _, own = np.unique(terms.rows[cells], return_inverse=True)
            prior = terms.prior[cells]
            drawn = log_gamma(prior, generator)
            moved = state.point.copy()
            moved[cells] = bend(drawn + _log_sums(values[cells], own) - _log_sums(drawn, own), terms.bends[cells])
            reached, gradient = density(moved)
            accepted, signal_then = 0.0, signal
            if math.isfinite(reached):
                again, risen = density.values(moved)
                proposed = float(prior @ (again - values)[cells] + np.log(risen[cells] / slopes[cells]).sum())
                signal_then = self.signal(density, moved)
                back = _log_chance(chosen, self._chances(signal_then)) - _log_chance(chosen, chances)
                accepted = math.exp(min(reached - state.value - proposed + back, 0.0))
            if learning:
                self._share *= math.exp(_ADAPTION * (accepted - _REDRAWN_ACCEPTANCE))
            if generator.random() < accepted:
                state, signal = State(moved, reached, gradient), signal_then
        return state


def _log_chance(chosen: NDArray[np.bool_], chances: Vector) -> float:
    """Return the log-probability of choosing exactly these rows."""
    return float(np.log(np.maximum(np.where(chosen, chances, 1 - chances), 1e-300)).sum())


def _log_sums(logs: Vector, rows: NDArray[np.int64]) -> Vector:
    """Return the logarithm of the sum of exp(logs) in each cell's row."""
    tops = row_maxima(logs, rows)
    sums: Vector = (tops + np.log(np.bincount(rows, np.exp(logs - tops[rows]))))[rows]
    return sums


def redraw_tails(density: LogPosterior, point: Vector, edges: Vector, generator: np.random.Generator) -> State:
    """Redraw all cells that are in their tails from the prior there; all or none are accepted.

    A cell that may hold no records can move far down nearly freely, and trajectories take long to return from there.
    `edges` are the beginnings of the cells' tails.
    """
    terms, size = density.terms, density.free
    if terms.rows.size:  # the largest cell of a row is in no tail
        values, _ = density.values(point)
        edges = np.minimum(edges, row_maxima(values, terms.rows)[terms.rows] + math.log(TAIL))
    prior = terms.prior
    tail = np.flatnonzero(point[:size] < edges)
    edges, prior, old = edges[tail], prior[tail], point[tail]
    logs = np.log1p(-generator.random(tail.size))
    if terms.rows.size:  # the density of a small share is nearly a power
        new = edges + logs / prior
        proposed = float(prior @ (new - old))
    else:
        new = ndtri_exp(logs + log_ndtr(edges * np.sqrt(prior))) / np.sqrt(prior)
        proposed = 0.5 * float(prior @ (old**2 - new**2))
    moved = point.copy()
    moved[tail] = new
    value, gradient = density(point)
    reached, slope = density(moved)
    if math.log1p(-generator.random()) < reached - value - proposed:
        return State(moved, reached, slope)
    return State(point, value, gradient)


_MODE_ITERATIONS = 100
_STEPS = 6
_ACCEPTANCE = 0.65
_WARM_UP, _THINNING = 200, 2
# A chain is extended while a mean has at least this standard error and fewer than this share of effective draws, or, if
# only the mean network counts, while errors of means add this share to the divergence of draws from it; a larger share
# is warned of.
_WANTED = (0.025, 0.5)
_ADDED, _TOLERATED = 0.01, 0.05

Renew = Callable[[Vector, np.random.Generator], Vector]
# Describe what draws leave too uncertain, by a stricter standard unless the chain is as long as it may become.
Judge = Callable[[LogPosterior, Vector, bool], str]


def each_mean(density: LogPosterior, points: Vector, whole: bool) -> str:
    """Describe the most uncertain mean of a probability."""
    poor = uncertain(_shares(density, points), *(UNCERTAIN if whole else _WANTED))
    return poor and f"the mean of one probability {poor}"


def mean_network(density: LogPosterior, points: Vector, whole: bool) -> str:
    """Describe how much errors of means add to the expected divergence of draws from the network of means.

    A cell adds the mean of w p log(p / m) to it, where p are its draws, m is their mean and w the probability of its
    row. The mean of n effective draws is off by a deviation of a draw over sqrt(n), and adds one nth of this.
    """
    shares = _shares(density, points)
    _, effective = mixing(shares)
    divergence = rel_entr(shares, shares.mean(axis=0)).mean(axis=0)
    if density.terms.rows.size:
        counts = np.mean([density.row_counts(point) for point in points[:: max(len(points) // 20, 1)]], axis=0)
        divergence *= counts[density.terms.rows]
    added = float((divergence / effective).sum() / max(divergence.sum(), 1e-300))
    enough = added < (_TOLERATED if whole else _ADDED)
    return "" if enough else f"errors of its means add {added:.0%} to the divergence"


def _shares(density: LogPosterior, points: Vector) -> Vector:
    """Compute the probabilities of cells at each point; for rows these are conditional ones."""
    logs = np.array([density.potentials(point) for point in points])
    if density.terms.rows.size:
        return np.asarray(np.exp(logs[:, density.terms.cells]))
    return np.array([density.tree.calibrate(each).marginals[density.terms.cells] for each in logs])


def sample_posterior(
    density: LogPosterior,
    start: Vector,
    draws: int,
    renew: Renew,
    generator: np.random.Generator,
    warm_up: int = _WARM_UP,
    thinning: int = _THINNING,
    longest: int = 2,
    judge: Judge = each_mean,
) -> tuple[Vector, Vector, str]:
    """Draw from the posterior by a Markov chain that starts near the mode.

    While the points are too uncertain for the judge, the chain is extended, up to `longest` times its length. Returns
    the points, the priors, and a description of what is still too uncertain.
    """
    chain = itertools.islice(_chain(density, start, renew, generator, warm_up), thinning - 1, None, thinning)
    results: list[tuple[Vector, Vector]] = []
    # The progress bar is for the longest chain, since the final length is not known in advance.
    with progress("Drawing", "draw", longest * draws) as bar:
        while True:
            for each in itertools.islice(chain, len(results) or draws):
                results.append(each)
                bar.update()
            points, priors = (np.array(parts) for parts in zip(*results, strict=True))
            whole = len(results) >= longest * draws
            poor = judge(density, points, whole)
            if whole or not poor:
                return points, priors, poor


def _chain(
    density: LogPosterior, start: Vector, renew: Renew, generator: np.random.Generator, warm_up: int
) -> Iterator[tuple[Vector, Vector]]:
    """Yield the chain's points, and the prior's parameters, after the warm-up."""

    def downhill(point: Vector) -> tuple[float, Vector]:
        value, gradient = density(point)
        return -value, -gradient

    mode = minimise(downhill, start, _MODE_ITERATIONS, gain=1e-8, memory=10, scale=density.unit(start)).point
    directed = density.terms.rows.size > 0
    point, hidden = mode, None
    if directed:
        curvature = density.curvature(mode)
        hidden = HiddenRows(density.precision_of_rows(mode, curvature))
        point = density.bent(mode, curvature)
    metric = density.metric(point)
    value, gradient = density(point)
    begins = density.terms.bends if directed else mode[: density.free] + np.log(metric.unit[: density.free])
    tails = begins + math.log(TAIL)
    adaptation = _StepSize(0.5)
    for number in itertools.count():
        step = adaptation.current if number < warm_up else adaptation.settled
        momentum = metric.momentum(generator)
        end, slope, before = point.copy(), gradient.copy(), value - metric.kinetic(momentum)
        steps = int(generator.integers(_STEPS // 2, 3 * _STEPS // 2 + 1))
        reached = density.trajectory(end, momentum, slope, step, steps, metric)
        change = reached - metric.kinetic(momentum) - before if math.isfinite(reached) else -math.inf
        accepted = math.exp(min(change, 0.0)) if not math.isnan(change) else 0.0
        if generator.random() < accepted:
            point = end
        if number < warm_up:
            adaptation.learn(accepted)
        density.terms = density.terms._replace(prior=renew(density.values(point)[0], generator))
        state = redraw_tails(density, point, tails, generator)
        if hidden is not None and number >= warm_up / 3:
            state = hidden.redraw(density, state, generator, learning=number < warm_up)
        point, value, gradient = state
        if number >= warm_up:
            yield point, density.terms.prior


class _StepSize:
    """Step size, adapted by dual averaging (Hoffman and Gelman 2014, section 3.2)."""

    def __init__(self, start: float) -> None:
        self.centre, self.current, self.settled = math.log(2 * start), start, start
        self.number, self.excess, self.mean = 0, 0.0, math.log(start)

    def learn(self, accepted: float) -> None:
        self.number += 1
        share = 1 / (self.number + 10)
        self.excess = (1 - share) * self.excess + share * (_ACCEPTANCE - accepted)
        logarithm = self.centre - math.sqrt(self.number) / 0.05 * self.excess
        logarithm = min(max(logarithm, -8.0), 1.1)
        weight = self.number**-0.75
        self.mean = weight * logarithm + (1 - weight) * self.mean
        self.current, self.settled = math.exp(logarithm), math.exp(self.mean)


# A mean is uncertain if it has at least this standard error and fewer than this share of effective draws.
UNCERTAIN = (0.05, 0.25)


def mixing(draws: Vector) -> tuple[Vector, Vector]:
    """Compare the halves of one chain, and sum its autocorrelations (Vehtari and others 2021, without ranks)."""
    size = len(draws) // 2
    halves = np.stack([draws[:size], draws[size : 2 * size]])
    centred = halves - halves.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, 2 * size, axis=1)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, :size].mean(axis=0) / size
    within = covariance[0] * size / (size - 1)
    pooled = covariance[0] + halves.mean(axis=1).var(axis=0, ddof=1)
    moving = within > 1e-300
    within, pooled = np.where(moving, within, 1.0), np.where(moving, pooled, 1.0)
    correlation = 1 - (within - covariance) / pooled
    correlation[0] = 1.0
    pairs = correlation[0 : size - 1 : 2] + correlation[1:size:2]
    pairs = np.minimum.accumulate(np.where(np.logical_and.accumulate(pairs > 0, axis=0), pairs, 0.0), axis=0)
    worth = 2 * size / np.maximum(2 * pairs.sum(axis=0) - 1, 0.5)
    return np.where(moving, np.sqrt(pooled / within), 1.0), np.where(moving, worth, float(len(draws)))


def uncertain(shares: Vector, error: float, effective_share: float) -> str:
    """Describe the probability with the most uncertain mean; empty if all are known well enough."""
    r_hat, effective = mixing(shares)
    errors = np.where(effective < effective_share * len(shares), shares.std(axis=0) / np.sqrt(effective), 0.0)
    worst = int(errors.argmax())
    if errors[worst] < error:
        return ""
    return (
        f"has a standard error of {errors[worst]:.2f} (R-hat {r_hat[worst]:.2f}, "
        f"{effective[worst]:.0f} effective draws)"
    )
