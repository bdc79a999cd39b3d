"""Fits of one Bayesian network to all noisy tables, most likely or at posterior means, and of each family to its own.

The most likely network keeps a share of the noise in every cell that noise makes indistinguishable from zero. Shrunk
rows are at their posterior means, for Dirichlet concentrations learned from the release: such cells are shrunk as far
as the other rows of their CPD are sparse; see `pgmpy_dp.inference.posterior.noisy_rows` for a row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pgmpy_dp.inference import Calibration, FactorGraph, JunctionTree, Layout, TreeTooLargeError, build_engine
from pgmpy_dp.inference.collective.duals import LinearMap
from pgmpy_dp.inference.collective.noise_laws import GaussianNoise, LaplaceNoise, SampledNoise, end_to_end
from pgmpy_dp.inference.posterior.noisy_rows import NoisyRows
from pgmpy_dp.inference.tables.optimisation import minimise
from pgmpy_dp.inference.tables.table import Rows, Vector
from pgmpy_dp.inference.trees.factor_graph import MAX_TABLE_CELLS
from pgmpy_dp.observed.consistency import consistency_weights, make_consistent, mutual_consistency
from pgmpy_dp.observed.factors import conditional
from pgmpy_dp.observed.informed_marginals import ReleasedTables
from pgmpy_dp.observed.observed import Observed, informative_tables, observed_of, sampling_variance, tree_cells
from pgmpy_dp.observed.reading import first_containing, law_of, with_noise
from pgmpy_dp.observed.united_marginals import UnitedMarginals
from pgmpy_dp.release import Release
from pgmpy_dp.release.kinds import MIN_VARIANCE
from pgmpy_dp.schema import Clique, Schema

# Default number of iterations of the last round. Bayesian networks end after tens, Markov networks after hundreds.
ITERATIONS = 1000
_ROUNDS, _TOLERANCE = 2, 1e-9


@dataclass(frozen=True)
class DirectedFit:
    """Fitted CPDs, and how well they explain the observations."""

    tables: Mapping[Clique, Vector]
    objective: float  # the penalised expected log-likelihood in nats, up to a constant
    squared_residual: float  # the mean over the observations of families
    finished: bool  # False if the last round ran out of iterations while it still improved
    shrunk: Callable[[], Mapping[Clique, Vector]]  # computes the posterior means of all rows; see `_Shrinking`


class Problem:
    """Minus the penalised log-likelihood of the observations, as a function of the logits of all rows."""

    def __init__(self, tree: JunctionTree, families: Layout, observed: Observed) -> None:
        self.tree, self.families, self.observed, self.total = tree, families, observed, observed.total
        # Noise in cells that rules forbid is no evidence of records there: they have no parameters.
        self.allowed = np.concatenate([allowed_cells(observed.schema, scope).ravel() for scope in families.scopes])
        self.rows = Rows(families, self.allowed)
        places = tree.layout.places(families.scopes)
        self.free, self._forbidden = places[self.allowed], places[~self.allowed]
        self.pseudo = self.rows.even()
        self.seen = LinearMap(tree.layout.places(observed.cliques))

    def calibrate(self, log_rows: Vector) -> Calibration:
        potentials = np.zeros(self.tree.layout.size)
        potentials[self.free], potentials[self._forbidden] = log_rows, -np.inf
        return self.tree.calibrate(potentials)

    def tables(self, values: Vector) -> dict[Clique, Vector]:
        """Return the families' tables with these values in allowed cells, and zero in others."""
        every = np.zeros(self.families.size)
        every[self.allowed] = values
        return self.families.tables(every)

    def observe(self, marginals: Vector) -> None:
        """Set the sampling variance to that at these marginals."""
        counts, seen = self.total * self.seen.apply(marginals), self.observed
        sampling = sampling_variance(seen.expected(counts), self.total, seen.expected_squares(counts))
        self.noise = seen.noise.sampled(sampling, seen.contrasts)

    def __call__(self, logits: Vector) -> tuple[float, Vector]:
        log_rows = self.rows.normalise(logits)
        calibration = self.calibrate(log_rows)
        expected = self.observed.expected(self.total * self.seen.apply(calibration.marginals))
        value = self.noise.log_density(expected) + float(self.pseudo @ log_rows)
        by_count = self.total * self.observed.to_counts(self.noise.gradient(expected))
        direction = self.seen.adjoint(by_count, self.tree.layout.size)
        slope = self.tree.covariance_product(calibration, direction)[self.free] + self.pseudo
        return -value, -(slope - np.exp(log_rows) * self.rows.sums(slope))

    def steepness(self, log_rows: Vector, marginals: Vector, family_variance: Vector) -> Vector:
        """Approximate the Hessian's diagonal in the logits: each cell has the precision of its own family's table."""
        rows, counts = np.exp(log_rows), self.total * marginals[self.free]
        curvature = (counts * (1 - rows)) ** 2 / (family_variance + counts)
        return curvature + rows * (1 - rows) + 0.1 * self.pseudo + 1e-3


def fit_directed(tree: JunctionTree, families: Sequence[Clique], observed: Observed, max_iter: int) -> DirectedFit:
    """Find the network that best explains all observations, in two rounds of at most `max_iter` iterations each.

    Maximises, over the rows theta of all CPDs, the sum over observations of E[log p(y | s)] and one pseudo-record per
    row, where s is normal about N A mu(theta) with the variance of sampling (plus b^2 for Laplace noise of scale b),
    which is updated between rounds; mu(theta) are the network's own marginals, with their exact derivatives.
    """
    layout = Layout.of(tree.layout.cardinalities, families)
    problem = Problem(tree, layout, observed)
    starts = [_start(observed, family) for family in families]
    family_variance = layout.per_cell([table.variance for table in starts])[problem.allowed]
    noisy = layout.flatten(table.observed for table in starts)[problem.allowed]
    start = np.maximum(noisy, 0.0) + 0.5 * np.sqrt(family_variance / 2)
    logits, value = np.log(start), np.inf
    for _ in range(_ROUNDS):
        log_rows = problem.rows.normalise(logits)
        marginals = problem.calibrate(log_rows).marginals
        problem.observe(marginals)
        scale = 1.0 / np.sqrt(problem.steepness(log_rows, marginals, family_variance))
        solution = minimise(problem, logits, max_iter, gain=1e-8, memory=10, scale=scale)
        logits, value = solution.point, solution.value
    log_rows = problem.rows.normalise(logits)
    informative = observed.only(informative_tables(observed.cliques, families))
    shares = problem.calibrate(log_rows).marginals[tree.layout.places(informative.cliques)]
    expected = informative.expected(observed.total * shares)
    squares = informative.expected_squares(observed.total * shares)
    sampling = np.maximum(squares - expected**2 / observed.total, 0.0)
    spread = np.maximum(informative.noise.variance, MIN_VARIANCE) + sampling
    residual = float(((informative.noise.observed - expected) ** 2 / spread).mean())
    rows = np.exp(log_rows)
    return DirectedFit(
        problem.tables(rows), -value, residual, solution.finished, lambda: problem.tables(_Shrinking(problem).run(rows))
    )


def fit_directed_loopily(
    graph: FactorGraph, families: Sequence[Clique], observed: Observed, max_iter: int
) -> DirectedFit:
    """Fit by one round of EM in the collective graphical model (Bernstein et al. 2017, Algorithm 2).

    Rows that explain loopy marginals would compensate for their errors, which do not occur when CPDs are used. So rows
    are proportional to the most probable counts behind all observations given the rows that explain each family's own
    table.
    """
    layout = Layout.of(graph.layout.cardinalities, families)
    rows, free = Rows(layout), graph.layout.places(families)
    starts = [_start(observed, family) for family in families]
    explained = explain_tables(starts, [1.0 / shape[0] for shape in layout.shapes], observed.total)
    potentials = np.zeros(graph.layout.size)
    potentials[free] = rows.normalise(np.log(layout.flatten(explained)))
    step = observed.explain(graph, potentials, max_iter)
    counts = np.maximum(step.counts[free], 0.0) + rows.even()
    tables = layout.tables(counts / rows.sums(counts))
    return DirectedFit(tables, -step.gap, math.nan, True, lambda: tables)  # its counts are posterior means


def fit_releases(releases: Sequence[Release], scopes: Sequence[Clique], max_iter: int, inference: str) -> DirectedFit:
    """Find the network behind all observations of the families' variables in releases of the same records."""
    if (union := united(releases, scopes)) is not None:
        return _fit_apart(union, scopes, max_iter, inference)
    seen = observed_of(releases, [scope[0] for scope in scopes], lambda _: scopes)
    engine = build_engine(seen.schema.cardinalities(), dict.fromkeys([*scopes, *seen.cliques]), inference)
    if isinstance(engine, FactorGraph):
        return fit_directed_loopily(engine, scopes, seen, max_iter)
    return fit_directed(engine, scopes, seen, max_iter)


def united(releases: Sequence[Release], scopes: Sequence[Clique]) -> UnitedMarginals | None:
    """Return the union whose variable is the parent of all others, if all its parts measured these."""
    union = releases[0] if len(releases) == 1 else None
    if not isinstance(union, UnitedMarginals) or not all(union.variable in scope for scope in scopes):
        return None
    others = {scope[0] for scope in scopes} - {union.variable}
    root = any(scope == (union.variable,) for scope in scopes)
    return union if root and others and all(others <= set(p.variables) for p in union.apart_releases) else None


def _fit_apart(union: UnitedMarginals, scopes: Sequence[Clique], max_iter: int, inference: str) -> DirectedFit:
    """Fit each part of a union by itself, and put the CPDs side by side."""
    within = {scope: tuple(v for v in scope if v != union.variable) for scope in scopes}
    rests = [rest for rest in within.values() if rest]
    fits = [fit_releases([part], rests, max_iter, inference) for part in union.apart_releases]

    def side_by_side(each: Sequence[Mapping[Clique, Vector]]) -> dict[Clique, Vector]:
        whole = union.totals / union.totals.sum()
        stacked = {s: np.stack([own[r] for own in each], s.index(union.variable)) for s, r in within.items() if r}
        return {scope: stacked.get(scope, whole) for scope in scopes}

    return DirectedFit(
        side_by_side([fit.tables for fit in fits]),
        sum(fit.objective for fit in fits),
        float(np.mean([fit.squared_residual for fit in fits])),
        all(fit.finished for fit in fits),
        lambda: side_by_side([fit.shrunk() for fit in fits]),
    )


def require_exact(schema: Schema, scopes: Sequence[Clique]) -> None:
    """Raise TreeTooLargeError, before anything is charged, if the tables' junction tree does not fit in memory."""
    cards = {variable: schema.cardinality(variable) for scope in scopes for variable in scope}
    size = tree_cells(cards, scopes)
    if size > MAX_TABLE_CELLS:
        raise TreeTooLargeError(
            f"The junction tree of the network has {size:,} table cells, more than {MAX_TABLE_CELLS:,}: "
            "use PrivateMLE(consistency=None), which needs none."
        )


def allowed_cells(schema: Schema, scope: Clique) -> NDArray[np.bool_]:
    """Return which cells of a family rules about it allow; all states where they leave none, as these do not occur."""
    possible: NDArray[np.bool_] = schema.possible(scope)
    return possible | ~possible.any(axis=0)


def _start(seen: Observed, family: Clique) -> LaplaceNoise | GaussianNoise:
    """Return the family's own noisy table; if it was not measured, a flat one whose noise is as large as itself."""
    release = first_containing(seen.releases, family)
    if release is not None:
        return law_of(release)(*release.marginal(family))
    shape = seen.schema.shape(family)
    return law_of(seen.releases[0])(np.full(shape, seen.total / np.prod(shape)), seen.total**2)


def read_joint(release: ReleasedTables, scopes: Sequence[Clique], agreement: str | None) -> list[Vector]:
    """Estimate P(node | parents) of each family from the least noisy table that contains it, by `explain_tables`."""
    tables = release.tables if agreement is None else mutual_consistency(release, agreement)
    noises = [with_noise(release, scope, tables) for scope in scopes]
    strata = [release.strata(scope) for scope in scopes]
    noisy: list[Any] = []
    allowed: list[NDArray[np.bool_]] = []
    totals: list[float] = []
    pseudo: list[float] = []
    for scope, noise, stratum in zip(scopes, noises, strata, strict=True):
        axis, sums = stratum or (0, [release.total])
        cells = np.broadcast_arrays(noise.observed, noise.variance, allowed_cells(release.schema, scope))
        pieces = [np.moveaxis(each, axis, 0) if stratum else each[None] for each in cells]
        noisy += [type(noise)(*piece) for piece in zip(*pieces[:2], strict=True)]
        allowed += [*pieces[2]]
        totals += sums
        pseudo += [1.0 / release.schema.cardinality(scope[0])] * len(sums)
    explained = iter(explain_tables(noisy, pseudo, np.array(totals), allowed))
    result = []
    for stratum in strata:
        axis, sums = stratum or (0, [release.total])
        table = np.stack([next(explained) for _ in sums], axis)
        result.append(conditional(table if stratum else table[0]))
    return result


def read_pairs(release: ReleasedTables, scopes: Sequence[Clique], agreement: str | None) -> list[Vector]:
    """Estimate P(node | parents) from a family's own table and its parents' (Chowdhury et al. 2020, Algorithm 1)."""
    marginals: dict[Clique, Vector] = {}
    for scope in scopes:
        table = release.marginal(scope)[0]
        parents = release.marginal(scope[1:])[0] if scope[1:] else np.array(release.total)
        marginals[scope] = from_two_tables(table, parents, release.total)
    if agreement is not None:
        by_table = consistency_weights(release, agreement)
        weights = {scope: by_table[release.clique_containing(scope)] for scope in scopes}
        marginals = make_consistent(marginals, weights)
    return [conditional(np.maximum(table, 0.0)) for table in marginals.values()]


def from_two_tables(table: Vector, parents: Vector, total: float) -> Vector:
    """Combine the rows of a family's noisy table with the weights that its parents' table gives them."""
    counts = np.maximum(parents, 0.0)
    mass = counts / counts.sum() if counts.any() else np.full_like(counts, 1.0 / counts.size)
    return np.asarray(total * mass * conditional(np.maximum(table, 0.0)))


def explain_tables(
    tables: Sequence[LaplaceNoise | GaussianNoise],
    pseudo: Sequence[float],
    total: float | Vector,
    allowed: Sequence[NDArray[np.bool_] | bool] | None = None,
) -> list[Vector]:
    """Find the most likely counts of each table, see `PrivateMLE`, with none in cells that are not allowed.

    Equal noisy cells are solved for once.
    """
    every = [
        np.broadcast_arrays(noise.observed, noise.variance, kept)
        for noise, kept in zip(tables, allowed or [True] * len(tables), strict=True)
    ]
    cells = [(observed[kept], variance[kept]) for observed, variance, kept in every]
    distinct = [np.unique(y + 1j * variance, return_inverse=True, return_counts=True) for y, variance in cells]
    sizes = [values.size for values, _, _ in distinct]
    offsets = np.cumsum([0, *sizes])
    copies = np.concatenate([part[2] for part in distinct]).astype(np.float64)
    noises = zip(tables, distinct, strict=True)
    seen = end_to_end([type(noise)(part[0].real, part[0].imag) for noise, part in noises])
    prior = np.repeat(np.asarray(pseudo, dtype=np.float64), sizes)
    totals = np.broadcast_to(np.asarray(total, dtype=np.float64), len(tables))
    counts = np.maximum(seen.observed, prior * np.sqrt(seen.variance))
    for _ in range(_ROUNDS):
        noise = seen.sampled(sampling_variance(counts, np.repeat(totals, sizes)))
        counts = _constrained_maximum(offsets, copies, noise, counts, prior, totals)
    results = [np.zeros(kept.shape) for *_, kept in every]
    parts = np.split(counts, offsets[1:-1])
    for table, (*_, kept), part, (_, inverse, _) in zip(results, every, parts, distinct, strict=True):
        table[kept] = part[inverse]
    return results


def _constrained_maximum(
    offsets: NDArray[np.int64], copies: Vector, noise: SampledNoise, start: Vector, pseudo: Vector, total: Vector
) -> Vector:
    """Maximise log p + pseudo . log n with every table's sum fixed, by safeguarded Newton on the multipliers."""
    tables = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    steep = np.abs(noise.gradient(np.zeros_like(start))) + pseudo / np.maximum(start, 1e-300)

    def sums(values: Vector) -> Vector:
        return np.add.reduceat(copies * values, offsets[:-1])

    high = np.maximum.reduceat(steep, offsets[:-1]) + sums(pseudo) / total
    low = -np.maximum.reduceat(np.abs(noise.gradient(total[tables])), offsets[:-1])
    multiplier = np.zeros(offsets.size - 1)
    logs = np.log(np.maximum(start, 1e-12))
    for _ in range(100):
        logs = _stationary(noise, logs, pseudo, multiplier[tables])
        counts = np.exp(logs)
        excess = sums(counts) - total
        if (np.abs(excess) <= _TOLERANCE * total).all():
            break
        low, high = np.where(excess > 0, multiplier, low), np.where(excess < 0, multiplier, high)
        slope = sums(1.0 / (pseudo / counts**2 + noise.curvature(counts)))
        newton = multiplier + excess / slope
        multiplier = np.where((newton > low) & (newton < high), newton, (low + high) / 2)
    return counts * (total / sums(counts))[tables]  # the iteration may stop short if a release contradicts its total


def _stationary(noise: SampledNoise, logs: Vector, pseudo: Vector, multiplier: Vector) -> Vector:
    """Solve pseudo / n + gradient(n) = multiplier for log n, cell by cell, by safeguarded Newton."""
    low, high = np.full_like(logs, -60.0), np.full_like(logs, 60.0)
    for _ in range(120):
        counts = np.exp(logs)
        value = pseudo / counts + noise.gradient(counts) - multiplier
        low, high = np.where(value > 0, logs, low), np.where(value > 0, high, logs)
        slope = pseudo / counts + noise.curvature(counts) * counts
        newton = logs + value / np.maximum(slope, 1e-300)
        # At the root to the last digit the step is zero and ends at the bracket's end: it must not be halved again.
        moved = np.where((newton >= low) & (newton <= high), newton, (low + high) / 2)
        if (np.abs(moved - logs) <= 1e-12).all():
            return moved
        logs = moved
    return logs


# Prior of the logarithms of concentrations: mean and precision of the centre of bases, and the value of variances and
# the number of parameters that it is worth. Chosen on hepar2, hailfinder, sachs and win95pts.
_CONCENTRATION, _CENTRE_PRECISION = 0.5, 16.0
_VARIANCE, _VARIANCE_WEIGHT = 0.15, 2.0
_RANGE = 0.02, 10.0
_SHRINKING_ROUNDS, _LEARNING, _FITTING = 6, 8, 40  # rounds; maximum iterations in each for concentrations and for rows
_MIN_SHARE = 1e-12
_MIN_CURVATURE = 0.1


class _Shrinking:
    """Posterior means of all rows of a Bayesian network, found in rounds from positive rows near the solution.

    In each round rows have their means given all other rows, and then maximise the likelihood of all tables with the
    penalty sum_k (a_k log phi_k + t_k n_k) that would have these means as its maximum, if nothing else moved.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem, families, observed = problem, problem.families, problem.observed
        self.noise = observed.noise.at_least(MIN_VARIANCE)
        self.rows, self.total = self.problem.rows, observed.total
        self.law: tuple[Vector, Vector] = self.noise.hyperbolic()
        self.scale, self.corner = self.law[0], self.law[1]
        self.variance_of_cells: Vector = self.noise.variance
        allowed = self.problem.allowed
        seen, contained = _containing(families, observed.layout)
        kept = allowed[contained]
        self.seen, self.contained = seen[kept], (np.cumsum(allowed) - 1)[contained[kept]]
        design, self.owners = _design(families)
        self.design = design[allowed]
        self.logs = np.where(self.owners == 0, math.log(_CONCENTRATION), 0.0)
        self.variances = np.full(int(self.owners.max()) + 1, _VARIANCE)

    def run(self, shares: Vector) -> Vector:
        logs = np.log(shares)
        for _ in range(_SHRINKING_ROUNDS):
            logs, counts, concentrations = self._round(logs)
        posterior = counts + concentrations  # of the population of which the records are a sample
        return posterior / self.rows.sums(posterior)

    def _round(self, logs: Vector) -> tuple[Vector, Vector, Vector]:
        """Return the rows' logarithms after a round, the counts of its means, and the concentrations."""
        rows, problem = self.rows, self.problem
        logs = np.maximum(rows.normalise(logs), math.log(_MIN_SHARE))
        calibration = problem.calibrate(logs)
        # The variance of sampling at these marginals is added to that of the noise.
        expected = problem.observed.expected(self.total * problem.seen.apply(calibration.marginals))
        self.variance_of_cells = self.noise.variance + np.maximum(expected - expected**2 / self.total, 0.0)
        wider, (scale, corner) = self.variance_of_cells / self.noise.variance, self.law
        self.scale, self.corner = scale * np.sqrt(wider), np.where(corner >= 0, corner * wider, corner)
        totals = np.maximum(self.total * rows.totals(calibration.marginals[problem.free]), 1e-9)
        counts = totals[rows.numbers] * np.exp(logs)
        own, variance, scale, corner = self._family_counts(calibration, counts)
        slopes = self._slope(calibration) / counts - _pull(own - counts, scale, corner)
        slopes -= rows.sums(np.exp(logs) * slopes)
        noisy = NoisyRows(rows.numbers, own, scale, corner, totals, slopes)
        concentrations = self._learn(noisy, counts)
        means, spread, bends, tilts = noisy.means(concentrations, counts, variance)
        share = (totals / noisy.totals)[rows.numbers]
        means, spread = share * means, share**2 * spread
        # The penalty's slope and curvature are what those of the likelihood lack.
        weights = means**2 * np.maximum(1 / spread - 1 / variance - bends, _MIN_CURVATURE / spread)
        penalty = -tilts - _pull(own - means, scale, corner) - weights / means
        stiff = weights + counts**2 / np.maximum(variance, 1.0)
        unit = 1 / np.sqrt(stiff * (1 - np.exp(logs)) ** 2 + np.exp(logs) * (1 - np.exp(logs)) + 1e-3)
        base, _ = self._likelihood(calibration)

        def objective(point: Vector) -> tuple[float, Vector]:
            moved = rows.normalise(point)
            there = problem.calibrate(moved)
            likelihood, slope = self._likelihood(there)
            contained = totals[rows.numbers] * np.exp(moved)
            value = likelihood - base + float(weights @ (moved - logs) + penalty @ (contained - counts))
            slope = slope + weights + penalty * contained
            return -value, -(slope - np.exp(moved) * rows.sums(slope))

        result = minimise(objective, logs, _FITTING, gain=1e-6, memory=10, scale=unit)
        fitted = rows.normalise(result.point)
        return fitted, totals[rows.numbers] * np.exp(fitted), concentrations

    def _likelihood(self, calibration: Calibration) -> tuple[float, Vector]:
        """Return the log-likelihood of all observations and its derivative by the logarithms of the families' cells."""
        residual = self._residual(calibration)
        laplace = self.corner >= 0
        value = np.where(laplace, -np.sqrt(residual**2 + np.abs(self.corner)) / self.scale, 0.0)
        value -= np.where(laplace, 0.0, 0.5 * (residual / self.scale) ** 2)
        return float(value.sum()), self._slope(calibration)

    def _residual(self, calibration: Calibration) -> Vector:
        expected = self.total * self.problem.seen.apply(calibration.marginals)
        return self.problem.observed.noise.observed - self.problem.observed.expected(expected)

    def _slope(self, calibration: Calibration) -> Vector:
        problem = self.problem
        pull = _pull(self._residual(calibration), self.scale, self.corner)
        direction = problem.seen.adjoint(self.total * problem.observed.to_counts(pull), problem.tree.layout.size)
        return problem.tree.covariance_product(calibration, direction)[problem.free]

    def _family_counts(self, calibration: Calibration, counts: Vector) -> tuple[Vector, Vector, Vector, Vector]:
        """Estimate each family's counts from tables that contain them: values, variances, and the law of the noise."""
        noise, seen, families = self.noise, self.seen, self.contained
        cells = self.total * calibration.marginals[self.problem.tree.layout.places(self.problem.observed.cliques)]
        share = np.minimum((cells[seen] + _MIN_SHARE) / (counts[families] + _MIN_SHARE), 1.0)
        precision = share**2 / self.variance_of_cells[seen]
        # A family that no table contains is taken from the fit, with the squared total as its variance.
        known = np.bincount(families, precision, counts.size) + self.total**-2
        weighted = np.bincount(families, share * noise.observed[seen] / self.variance_of_cells[seen], counts.size)
        own, variance = (
            (weighted + counts * self.total**-2) / known,
            np.maximum(1 / known, MIN_VARIANCE),
        )
        largest = np.bincount(families, precision**2 * (self.corner[seen] >= 0), counts.size) / known**2
        scale, corner = LaplaceNoise(own, variance).hyperbolic()
        laplace = largest > 0.5
        return own, variance, np.where(laplace, scale, np.sqrt(variance)), np.where(laplace, corner, -1.0)

    def _learn(self, noisy: NoisyRows, counts: Vector) -> Vector:
        """Move the concentrations towards their posterior mode, and return those of all cells.

        Variances are then those at which the squares of parameters match the number that the rows determine (MacKay
        1992): where noise hides a parameter, its variance keeps its prior value.
        """
        lowest, highest = np.log(_RANGE)

        def concentrations(logs: Vector) -> Vector:
            cells: Vector = np.exp(np.clip(self.design @ logs, lowest, highest))
            return cells

        def objective(logs: Vector) -> tuple[float, Vector]:
            cells = concentrations(logs)
            value, gradient = noisy.evidence(cells, counts)
            off, away = self._centred(logs)
            pull = off / self.variances[self.owners]
            away += 0.5 * float(pull @ off)
            return away - value, pull - self.design.T @ (gradient * cells)

        self.logs = minimise(objective, self.logs, _LEARNING).point
        cells = concentrations(self.logs)
        known = self.design.T @ noisy.information(cells, counts)
        determined = np.bincount(self.owners, known / (known + 1 / self.variances[self.owners]))
        squares = np.bincount(self.owners, self._centred(self.logs)[0] ** 2)
        self.variances = (squares + _VARIANCE_WEIGHT * _VARIANCE) / (determined + _VARIANCE_WEIGHT)
        return cells

    def _centred(self, logs: Vector) -> tuple[Vector, float]:
        """Subtract from bases their most likely centre, and return minus the log prior density of the centre."""
        bases, believed = self.owners == 0, math.log(_CONCENTRATION)
        precision = bases.sum() / self.variances[0]
        far = float((logs[bases] - believed).mean()) * precision / (precision + _CENTRE_PRECISION)
        return logs - np.where(bases, believed + far, 0.0), 0.5 * _CENTRE_PRECISION * far**2


def _pull(residual: Vector, scale: Vector, corner: Vector) -> Vector:
    """Return the derivative of the noise's log density by the count: see `hyperbolic`."""
    hyperbolic = np.sqrt(residual**2 + np.abs(corner))
    return np.where(corner >= 0, residual / (hyperbolic * scale), residual / scale**2)


def _containing(families: Layout, tables: Layout) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pair the cells of tables with the cells of families that they contain."""
    seen, contained = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for scope, first in zip(families.scopes, families.offsets, strict=False):
        for table, shape, start in zip(tables.scopes, tables.shapes, tables.offsets, strict=False):
            if set(scope) <= set(table):
                states = np.indices(shape).reshape(len(shape), -1)
                indices = [states[table.index(variable)] for variable in scope]
                contained.append(first + np.ravel_multi_index(indices, families.shapes[families.scopes.index(scope)]))
                seen.append(start + np.arange(states.shape[1]))
    return np.concatenate(seen), np.concatenate(contained)


def _design(families: Layout) -> tuple[sparse.csr_array, NDArray[np.int64]]:
    """Return the matrix from bases and effects, as in `Concentrations`, to logarithms of the cells' concentrations.

    Beside it stands the number of each parameter's variance: 0 for bases, and one for each parent's state.
    """
    bases = sum(shape[0] for shape in families.shapes)
    cells, columns, owners = [], [], [np.zeros(bases, np.int64)]
    first, effect, variance = 0, bases, 1
    for shape, start in zip(families.shapes, families.offsets, strict=False):
        states = np.indices(shape).reshape(len(shape), -1)
        numbers = start + np.arange(states.shape[1])
        cells.append(numbers)
        columns.append(first + states[0])
        first += shape[0]
        for parent in range(1, len(shape)) if len(shape) > 2 else ():
            cells.append(numbers)
            columns.append(effect + states[parent] * shape[0] + states[0])
            owners.append(np.repeat(np.arange(variance, variance + shape[parent]), shape[0]))
            effect += shape[parent] * shape[0]
            variance += shape[parent]
    entries = (np.concatenate(cells), np.concatenate(columns))
    return sparse.csr_array((np.ones(entries[0].size), entries), shape=(families.size, effect)), np.concatenate(owners)
