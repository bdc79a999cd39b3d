"""Rows of CPDs at their posterior means, with Dirichlet concentrations learned from the release, without a chain.

The most likely network keeps a share of the noise in every cell that noise makes indistinguishable from zero. Here such
cells are shrunk as far as the other rows of their CPD are sparse: see `pgmpy_dp.inference.posterior.noisy_rows` for a
row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pgmpy_dp.fitting.readings.directed import Problem, united
from pgmpy_dp.inference import Calibration, JunctionTree, Layout, build_engine
from pgmpy_dp.inference.collective.noise_laws import LaplaceNoise
from pgmpy_dp.inference.posterior.noisy_rows import NoisyRows
from pgmpy_dp.inference.tables.optimisation import minimise
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.observed.observed import Observed, observed_of
from pgmpy_dp.release import Release
from pgmpy_dp.release.kinds import MIN_VARIANCE
from pgmpy_dp.schema import Clique

# Prior of the logarithms of concentrations: their centre, with standard deviation 1, the minimum variance of bases
# about it (which is learned, but the mode ignores each one's spread), the variance of effects, and the range.
_CONCENTRATION, _BASES, _EFFECTS = 0.5, 0.25, 0.15
_RANGE = 0.02, 10.0
_ROUNDS, _LEARNING, _FITTING = 6, 8, 40  # rounds; maximum iterations in each for concentrations and for rows
_MIN_SHARE = 1e-12
_MIN_CURVATURE = 0.1


def shrunk_tables(
    releases: Sequence[Release], scopes: Sequence[Clique], tables: Mapping[Clique, Vector]
) -> dict[Clique, Vector]:
    """Find the posterior means of all rows of a Bayesian network, from positive tables near the solution.

    In each round the rows' totals and the slopes by each count come from the junction tree; concentrations are moved
    towards their posterior mode; every row has its means. Rows then maximise the likelihood of all tables with the
    penalty sum_k (a_k log phi_k + t_k n_k) that would have these means as its maximum, if nothing else moved. At a
    fixed point the means are those of every row given all other rows.
    """
    if (union := united(releases, scopes)) is not None:
        axes = {scope: scope.index(union.variable) for scope in scopes if len(scope) > 1}
        own = {scope: tuple(v for v in scope if v != union.variable) for scope in axes}
        parts = []
        for number, part in enumerate(union.apart_releases):
            contained = {own[scope]: np.take(tables[scope], number, axis) for scope, axis in axes.items()}
            parts.append(shrunk_tables([part], list(own.values()), contained))
        results = {scope: np.stack([part[own[scope]] for part in parts], axis) for scope, axis in axes.items()}
        return {scope: results.get(scope, tables[scope]) for scope in scopes}
    observed = observed_of(releases, [scope[0] for scope in scopes], lambda _: scopes)
    tree = build_engine(observed.schema.cardinalities(), dict.fromkeys([*scopes, *observed.cliques]), "junction_tree")
    assert isinstance(tree, JunctionTree)
    layout = Layout.of(tree.layout.cardinalities, scopes)
    return layout.tables(_Shrinking(tree, layout, observed).run(layout.flatten(tables[scope] for scope in scopes)))


class _Shrinking:
    """The rounds of `shrunk_tables`."""

    def __init__(self, tree: JunctionTree, families: Layout, observed: Observed) -> None:
        self.problem = Problem(tree, families, observed)
        self.noise = observed.noise.at_least(MIN_VARIANCE)
        self.rows, self.total = self.problem.rows, observed.total
        self.law: tuple[Vector, Vector] = self.noise.hyperbolic()
        self.scale, self.corner = self.law[0], self.law[1]
        self.variance_of_cells: Vector = self.noise.variance
        self.seen, self.contained = _containing(families, observed.layout)
        self.design, self.bases = _design(families)
        self.logs = np.zeros(self.design.shape[1])
        self.logs[: self.bases] = self.centre = math.log(_CONCENTRATION)
        self.variance = _BASES

    def run(self, shares: Vector) -> Vector:
        logs = np.log(shares)
        for _ in range(_ROUNDS):
            logs, counts, concentrations = self._round(logs)
        posterior = counts + concentrations  # of the population of which the records are a sample
        return posterior / self.rows.sums(posterior)

    def _round(self, logs: Vector) -> tuple[Vector, Vector, Vector]:
        """Return the rows' logarithms after a round, the counts of its means, and the concentrations."""
        rows, problem = self.rows, self.problem
        logs = np.maximum(rows.normalise(logs), math.log(_MIN_SHARE))
        calibration = problem.calibrate(logs)
        self._observe(calibration)
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

    def _observe(self, calibration: Calibration) -> None:
        """Add the variance of sampling at these marginals to that of the noise."""
        expected = self.problem.observed.expected(self.total * self.problem.seen.apply(calibration.marginals))
        self.variance_of_cells = self.noise.variance + np.maximum(expected - expected**2 / self.total, 0.0)
        wider = self.variance_of_cells / self.noise.variance
        scale, corner = self.law
        self.scale, self.corner = scale * np.sqrt(wider), np.where(corner >= 0, corner * wider, corner)

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
        """Estimate each family's counts from the tables that contain them: values, variances, and the noise's law.

        Given the distribution of the other variables, the sum of a table's cells weighted by their shares has the least
        variance. The sum of several cells of comparable weight has nearly Gaussian noise.
        """
        noise, seen, families = self.noise, self.seen, self.contained
        cells = self.total * calibration.marginals[self.problem.tree.layout.places(self.problem.observed.cliques)]
        share = np.minimum((cells[seen] + _MIN_SHARE) / (counts[families] + _MIN_SHARE), 1.0)
        precision = share**2 / self.variance_of_cells[seen]
        # A family that no table contains is taken from the fit, with the variance of the total squared.
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
        """Move the concentrations towards their posterior mode, and return those of all cells."""
        bases, lowest, highest = self.bases, *np.log(_RANGE)

        def objective(logs: Vector) -> tuple[float, Vector]:
            concentrations = np.exp(np.clip(self.design @ logs, lowest, highest))
            value, gradient = noisy.evidence(concentrations, counts)
            off = np.concatenate([(logs[:bases] - self.centre) / self.variance, logs[bases:] / _EFFECTS])
            away = float(off[:bases] @ (logs[:bases] - self.centre) + off[bases:] @ logs[bases:])
            return 0.5 * away - value, off - self.design.T @ (gradient * concentrations)

        self.logs = minimise(objective, self.logs, _LEARNING).point
        learned_bases, expected = self.logs[:bases], math.log(_CONCENTRATION)
        self.centre = (float(learned_bases.sum()) / self.variance + expected) / (bases / self.variance + 1.0)
        self.variance = max(float(((learned_bases - self.centre) ** 2).mean()), _BASES)
        return np.exp(np.clip(self.design @ self.logs, lowest, highest))


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


def _design(families: Layout) -> tuple[sparse.csr_array, int]:
    """Return the matrix from bases and effects, as in `Concentrations`, to logarithms of the cells' concentrations."""
    bases = sum(shape[0] for shape in families.shapes)
    cells, columns = [], []
    first, effect = 0, bases
    for shape, start in zip(families.shapes, families.offsets, strict=False):
        states = np.indices(shape).reshape(len(shape), -1)
        numbers = start + np.arange(states.shape[1])
        cells.append(numbers)
        columns.append(first + states[0])
        first += shape[0]
        for parent in range(1, len(shape)) if len(shape) > 2 else ():
            cells.append(numbers)
            columns.append(effect + states[parent] * shape[0] + states[0])
            effect += shape[parent] * shape[0]
    entries = (np.concatenate(cells), np.concatenate(columns))
    return sparse.csr_array((np.ones(entries[0].size), entries), shape=(families.size, effect)), bases
