"""Fit of one Bayesian network to all noisy tables, for `CollectiveEM`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference import Calibration, FactorGraph, JunctionTree, Layout, TreeTooLargeError, build_engine
from pgmpy_dp.inference.collective.duals import LinearMap
from pgmpy_dp.inference.collective.noise_laws import GaussianNoise, LaplaceNoise, SampledNoise, end_to_end
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
    """Fitted CPDs, and how well they explain the observations.

    The squared residual is in units of the variance of noise and sampling: below 1 if the network is right, NaN for
    loopy propagation, whose own errors are larger.
    """

    tables: Mapping[Clique, Vector]
    objective: float  # the penalised expected log-likelihood in nats, up to a constant
    squared_residual: float  # the mean over the observations of families
    finished: bool  # False if the last round ran out of iterations while it still improved


class Problem:
    """Minus the penalised log-likelihood of the observations, as a function of the logits of all rows."""

    def __init__(self, tree: JunctionTree, families: Layout, observed: Observed) -> None:
        self.tree, self.rows, self.observed, self.total = tree, Rows(families), observed, observed.total
        self.pseudo = _pseudo_counts(families)
        self.free = tree.layout.places(families.scopes)
        self.seen = LinearMap(tree.layout.places(observed.cliques))

    def calibrate(self, log_rows: Vector) -> Calibration:
        potentials = np.zeros(self.tree.layout.size)
        potentials[self.free] = log_rows
        return self.tree.calibrate(potentials)

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

    Maximises over the rows theta of all CPDs

        sum over observations of E[log p(y | s)] + sum over rows of (1 / r) sum_x log theta[x | u],

    where s is normal about N A mu(theta) with the variance of sampling (plus b^2 for Laplace noise of scale b), which
    is updated between rounds; y are the noisy counts or coefficients, A is the identity or the coefficients' contrasts,
    and mu(theta) are the network's own marginals, with their exact derivatives from the junction tree, whose layout
    holds all families and observed cliques.
    """
    layout = Layout.of(tree.layout.cardinalities, families)
    problem = Problem(tree, layout, observed)
    starts = [_start(observed, family) for family in families]
    family_variance = layout.per_cell([table.variance for table in starts])
    start = np.maximum(layout.flatten(table.observed for table in starts), 0.0) + 0.5 * np.sqrt(family_variance / 2)
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
    return DirectedFit(layout.tables(np.exp(log_rows)), -value, residual, solution.finished)


def fit_directed_loopily(
    graph: FactorGraph, families: Sequence[Clique], observed: Observed, max_iter: int
) -> DirectedFit:
    """Fit by loopy belief propagation, for networks whose junction tree does not fit in memory; see `fit_directed`.

    If rows were fitted until the loopy marginals explain the observations, they would compensate for the errors of
    loopy propagation, which do not occur when CPDs are used. So this is EM in the collective graphical model (Bernstein
    et al. 2017, Algorithm 2), whose M-step does not propagate: from the rows that best explain each family's own table,
    it finds the most probable counts behind all observations by the dual of the E-step, then rows proportional to the
    families' counts and one pseudo-record per row. There is one round: further ones would fit the noise.
    """
    layout = Layout.of(graph.layout.cardinalities, families)
    rows, pseudo = Rows(layout), _pseudo_counts(layout)
    free = graph.layout.places(families)
    starts = [_start(observed, family) for family in families]
    explained = explain_tables(starts, [1.0 / shape[0] for shape in layout.shapes], observed.total)
    potentials = np.zeros(graph.layout.size)
    potentials[free] = rows.normalise(np.log(layout.flatten(explained)))
    step = observed.explain(graph, potentials, max_iter)
    counts = np.maximum(step.counts[free], 0.0) + pseudo
    return DirectedFit(layout.tables(counts / rows.sums(counts)), -step.gap, math.nan, True)


def fit_releases(releases: Sequence[Release], scopes: Sequence[Clique], max_iter: int, inference: str) -> DirectedFit:
    """Find the network behind all observations of the families' variables in releases of the same records.

    Tables that only test the network are left out if the junction tree would become too large with them. If all
    families have the variable of a union, its parts are fitted one by one, which is the same in smaller trees.
    """
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
    within = {scope: tuple(v for v in scope if v != union.variable) for scope in scopes if len(scope) > 1}
    fits = [fit_releases([part], list(within.values()), max_iter, inference) for part in union.apart_releases]
    tables = {
        scope: np.stack([fit.tables[rest] for fit in fits], scope.index(union.variable))
        for scope, rest in within.items()
    }
    return DirectedFit(
        {scope: tables.get(scope, union.totals / union.totals.sum()) for scope in scopes},
        sum(fit.objective for fit in fits),
        float(np.mean([fit.squared_residual for fit in fits])),
        all(fit.finished for fit in fits),
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


def _pseudo_counts(families: Layout) -> Vector:
    """Divide one record per row equally among its cells."""
    return families.per_cell([1.0 / shape[0] for shape in families.shapes])


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
    totals: list[float] = []
    pseudo: list[float] = []
    for scope, noise, stratum in zip(scopes, noises, strata, strict=True):
        axis, sums = stratum or (0, [release.total])
        cells = np.broadcast_arrays(noise.observed, noise.variance)
        pieces = [np.moveaxis(each, axis, 0) if stratum else each[None] for each in cells]
        noisy += [type(noise)(*piece) for piece in zip(*pieces, strict=True)]
        totals += sums
        pseudo += [1.0 / release.schema.cardinality(scope[0])] * len(sums)
    explained = iter(explain_tables(noisy, pseudo, np.array(totals)))
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
        rows = conditional(np.maximum(release.marginal(scope)[0], 0.0))
        mass = np.ones(())
        if parents := scope[1:]:
            counts = np.maximum(release.marginal(parents)[0], 0.0)
            mass = counts / counts.sum() if counts.any() else np.full_like(counts, 1.0 / counts.size)
        marginals[scope] = release.total * mass * rows
    if agreement is not None:
        by_table = consistency_weights(release, agreement)
        weights = {scope: by_table[release.clique_containing(scope)] for scope in scopes}
        marginals = make_consistent(marginals, weights)
    return [conditional(np.maximum(table, 0.0)) for table in marginals.values()]


def explain_tables(
    tables: Sequence[LaplaceNoise | GaussianNoise], pseudo: Sequence[float], total: float | Vector
) -> list[Vector]:
    """Find the counts of each table that maximise its penalised expected log-likelihood; see `PrivateMLE`.

    Cells of a table with equal noisy counts and noise have equal solutions, so each is solved for once: a large table
    costs little more than sorting it. `pseudo` are pseudo-counts per cell, `total` the sums of the tables' counts.
    """
    cells = [np.broadcast_arrays(noise.observed, noise.variance) for noise in tables]
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
    parts = np.split(counts, offsets[1:-1])
    return [
        part[inverse].reshape(noise.observed.shape)
        for part, (_, inverse, _), noise in zip(parts, distinct, tables, strict=True)
    ]


def _constrained_maximum(
    offsets: NDArray[np.int64], copies: Vector, noise: SampledNoise, start: Vector, pseudo: Vector, total: Vector
) -> Vector:
    """Maximise log p + pseudo . log n with the sum of every table fixed, by safeguarded Newton on the multipliers.

    For a multiplier l the stationary count solves pseudo / n + gradient(n) = l, whose left side decreases in n; the sum
    of the counts, each taken `copies` times, decreases in l.
    """
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
