"""Posterior density of log-potentials given noisy sums of counts, and its curvature.

Exact inference on a junction tree gives its value and gradient, both compiled: see
`pgmpy_dp.inference.posterior.trajectories`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from pgmpy_dp._threads import one_thread
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.inference.trees.junction_tree import JunctionTree

# Mean curvature of a rounded absolute loss, in units of one over the squared scale.
_CURVATURE = 0.7

_STIFF, _ROUNDS = 20, 3  # number of directions with their own stiffness, and rounds of the search for them
_PROBES = 128  # random combinations that estimate a diagonal
_FLOOR = 0.3


@dataclass(frozen=True)
class Metric:
    """Inverse mass matrix S (1 + U (1 / L - 1) U') S, with S = diag(unit), U the rows of `stiff`, L = `stiffness`."""

    unit: Vector
    stiff: Vector
    stiffness: Vector

    @cached_property
    def compiled(self) -> tuple[Vector, ...]:
        """What `trajectories.trajectory` reads, and room for the momentum along stiff directions."""
        columns, easing = np.ascontiguousarray(self.stiff.T), 1 / self.stiffness - 1
        return self.unit, self.stiff, columns, easing, np.empty_like(easing)

    def momentum(self, generator: np.random.Generator) -> Vector:
        normal = generator.standard_normal(self.unit.size)
        drawn: Vector = (normal + self.stiff.T @ ((np.sqrt(self.stiffness) - 1) * (self.stiff @ normal))) / self.unit
        return drawn

    def kinetic(self, momentum: Vector) -> float:
        scaled = self.unit * momentum
        if not np.isfinite(scaled).all() or np.abs(scaled).max() > 1e100:
            return math.inf
        along = self.stiff @ scaled
        return 0.5 * float(scaled @ scaled + (1 / self.stiffness - 1) @ along**2)


class LogPosterior:
    """Posterior density, as a Python function."""

    def __init__(self, tree: JunctionTree, terms: Any) -> None:
        from pgmpy_dp.inference.posterior import trajectories

        self.tree, self.terms, self._compiled = tree, terms, trajectories
        self.scratch = trajectories.scratch_space(terms, tree.buffer_size)
        self.free, self.effects = terms.cells.size, terms.effects.size
        self.size = self.free + self.effects + 1
        self._resting = Metric(np.ones(self.size), np.empty((0, self.size)), np.empty(0))
        shape = (terms.observed.size, terms.places.size)
        self._precision = np.where(terms.corner < 0, 1.0, _CURVATURE) / terms.scale**2
        self._sums = sparse.csr_array((terms.entries, terms.columns, terms.starts), shape=shape)

    def __call__(self, point: Vector) -> tuple[float, Vector]:
        gradient = np.empty(self.size)
        value = self.trajectory(point, gradient, gradient, 0.0, 0, self._resting)
        return (value, gradient) if math.isfinite(value) else (-math.inf, np.zeros(self.size))

    def values(self, point: Vector) -> tuple[Vector, Vector]:
        """Return the cells' values and their derivatives by the point."""
        values, slopes, _ = self._unbent(point)
        return values, slopes

    def _unbent(self, point: Vector) -> tuple[Vector, Vector, Vector]:
        """Return values, derivatives, and the derivatives of the derivatives' logarithms."""
        softened, slopes, curves = np.empty((3, self.free))
        own, bends = point[: self.free], self.terms.bends
        self._compiled.unbend(own, bends, softened, slopes, slopes.view(np.int64), curves)
        straight = own - bends < self._compiled.STRAIGHT
        return np.where(straight, own, bends + np.log(softened)), slopes, curves

    def potentials(self, point: Vector) -> Vector:
        """Compute the log-potentials of the whole layout."""
        potentials, (values, _) = np.zeros(self.tree.layout.size), self.values(point)
        if self.terms.rows.size:
            values = values - np.log(np.bincount(self.terms.rows, np.exp(values)))[self.terms.rows]
        potentials[self.terms.cells] = values
        potentials[self.terms.effects] += point[self.free : -1] * self.terms.spread
        return potentials

    def row_differences(self, point: Vector) -> Vector:
        """Compute for every cell of rows a quantity with posterior mean zero that is correlated with its share.

        The derivative of the log density by a value, c + g - s C - (row sum's), times anything that does not depend on
        the row has mean zero (Stein's identity; Mira, Solgi and Imparato 2013). Here c are concentrations, C their sum,
        s shares and g the likelihood's derivatives. So (c + g) / C - s has mean zero too, and where g is small the mean
        of the share is that of c / C, which varies far less.
        """
        terms = self.terms
        _, gradient = self(point)
        values, slopes, curves = self._unbent(point)
        masses = np.exp(values)
        sums, totals = np.bincount(terms.rows, masses), np.bincount(terms.rows, terms.prior)[terms.rows]
        shares, spread = masses / sums[terms.rows], np.log(sums)[terms.rows] / self._compiled.ROW_SUM**2
        by_value = (gradient[: self.free] - curves) / slopes
        differences: Vector = (by_value + shares * spread) / totals
        return differences

    def total(self, point: Vector) -> float:
        """Compute the number of records."""
        return float(self.terms.total + self.terms.total_scale * point[-1])

    def trajectory(
        self, point: Vector, momentum: Vector, gradient: Vector, step: float, steps: int, metric: Metric
    ) -> float:
        """Move all three vectors along a trajectory, and return the log density at its end."""
        run = self._compiled.trajectory
        return float(run(self.terms, point, momentum, gradient, step, steps, metric.compiled, self.scratch))

    def bent(self, point: Vector, curvature: Vector) -> Vector:
        """Set bends of the cells' coordinates where, by the curvature at a point, noise begins to hide their counts.

        No cell may be bent at the point; it is returned in the new coordinates.
        """
        precise = np.sqrt(np.maximum(curvature[: self.free], 1e-300))
        self.terms = self.terms._replace(bends=point[: self.free] - np.log(precise))
        moved = point.copy()
        moved[: self.free] = bend(point[: self.free], self.terms.bends)
        return moved

    def row_counts(self, point: Vector) -> Vector:
        """Compute the expected number of records of each row."""
        marginals = self.tree.calibrate(self.potentials(point)).marginals[self.terms.cells]
        return np.asarray(self.total(point) * np.bincount(self.terms.rows, marginals))

    def precision_of_rows(self, point: Vector, curvature: Vector) -> Vector:
        """Return approximate precisions (one over a variance) of the counts of the cells of each row.

        No cell may be bent at the point.
        """
        rows, shares = self.terms.rows, self._row_shares(self.values(point)[0])
        # Derivative of a cell's count by its coordinate; the curvature is its square times the precision.
        moved = self.row_counts(point)[rows] * shares * (1 - shares)
        curvatures = np.bincount(rows, curvature[: self.free])
        precision: Vector = curvatures / np.maximum(np.bincount(rows, moved**2), 1e-300)
        return precision

    def curvature(self, point: Vector) -> Vector:
        """Return the diagonal of the observations' Gauss-Newton Hessian, approximately if it is large."""
        jacobian, adjoint = self._derivatives(point)
        diagonal = np.zeros(self.size)
        if self.size <= _PROBES:
            for k, axis in enumerate(np.eye(self.size)):
                diagonal[k] = self._precision @ jacobian(axis) ** 2
            return diagonal
        # Squares of combinations with random signs have the diagonal as their mean, here to within 1 / 8.
        generator, weights = np.random.default_rng(0), np.sqrt(self._precision)
        for _ in range(_PROBES):
            diagonal += adjoint(weights * generator.choice([-1.0, 1.0], weights.size)) ** 2 / _PROBES
        return diagonal

    def _prior_curvature(self, point: Vector) -> Vector:
        """Return the approximate curvature of the prior."""
        terms, own = self.terms, np.ones(self.size)
        values, slopes = self.values(point)
        if terms.rows.size:
            shares = self._row_shares(values)
            totals = np.bincount(terms.rows, terms.prior)[terms.rows]
            own[: self.free] = shares**2 / self._compiled.ROW_SUM**2 + totals * shares * (1 - shares)
        else:
            own[: self.free] = terms.prior
        own[: self.free] *= slopes**2
        own[-1] = terms.total_scale == 0
        return own

    def unit(self, point: Vector) -> Vector:
        """Estimate the scale of each coordinate at a point."""
        unit: Vector = 1 / np.sqrt(self.curvature(point) + self._prior_curvature(point) + _FLOOR)
        return unit

    def metric(self, point: Vector) -> Metric:
        """Return a mass matrix from the Gauss-Newton Hessian at a point."""
        jacobian, adjoint = self._derivatives(point)
        own, unit, precision = self._prior_curvature(point), self.unit(point), self._precision

        def product(vector: Vector) -> Vector:
            scaled = unit * vector
            curved: Vector = unit * (adjoint(precision * jacobian(scaled)) + own * scaled)
            return curved

        values, vectors = _largest(product, self.size)
        kept = values > 1.0
        return Metric(unit, np.ascontiguousarray(vectors.T[kept]), values[kept])

    def _row_shares(self, values: Vector) -> Vector:
        masses = np.exp(values)
        shares: Vector = masses / np.bincount(self.terms.rows, masses)[self.terms.rows]
        return shares

    def _derivatives(self, point: Vector) -> tuple[Callable[[Vector], Vector], Callable[[Vector], Vector]]:
        """Return functions for the directional derivatives of the expected sums, and their transpose."""
        terms, tree, free = self.terms, self.tree, self.free
        calibration, total = tree.calibrate(self.potentials(point)), self.total(point)
        shares = self._sums @ calibration.marginals[terms.places]
        values, slopes = self.values(point)
        rows = self._row_shares(values) if terms.rows.size else np.zeros(free)

        def centred(values: Vector, weights: Vector) -> Vector:
            """Return the weighted sum of values in each row, which is to be subtracted."""
            return np.bincount(terms.rows, weights * values)[terms.rows] if terms.rows.size else np.zeros(free)

        def jacobian(vector: Vector) -> Vector:
            direction = np.zeros(tree.layout.size)
            moved = slopes * vector[:free]
            direction[terms.cells] = moved - centred(moved, rows)
            direction[terms.effects] += vector[free:-1] * terms.spread
            marginals = tree.covariance_product(calibration, direction)[terms.places]
            result: Vector = total * (self._sums @ marginals) + terms.total_scale * vector[-1] * shares
            return result

        def adjoint(values: Vector) -> Vector:
            direction = np.zeros(tree.layout.size)
            np.add.at(direction, terms.places, total * (self._sums.T @ values))
            slope = tree.covariance_product(calibration, direction)
            own = slope[terms.cells]
            by_cell = own - rows * centred(own, np.ones(free)) if terms.rows.size else own
            by_total = terms.total_scale * float(values @ shares)
            return np.concatenate([slopes * by_cell, slope[terms.effects] * terms.spread, [by_total]])

        return jacobian, adjoint


def bend(values: Vector, bends: Vector) -> Vector:
    """Return the point's entries for cells with these values: the inverse of `trajectories.unbend`."""
    softened = np.exp(values - bends)
    shifted: Vector = bends + softened + np.log(-np.expm1(-np.maximum(softened, 1e-13)))
    return np.where(softened < 1e-13, values, shifted)


def _largest(product: Callable[[Vector], Vector], size: int) -> tuple[Vector, Vector]:
    """Return the largest eigenvalues of a symmetric matrix, approximately, by its products with vectors."""
    basis = np.random.default_rng(0).standard_normal((size, min(size, 2 * _STIFF)))
    with one_thread():
        for _ in range(_ROUNDS):
            basis, _ = np.linalg.qr(np.stack([product(column) for column in basis.T], axis=1))
        values, vectors = np.linalg.eigh(basis.T @ np.stack([product(column) for column in basis.T], axis=1))
        return values[-_STIFF:], basis @ vectors[:, -_STIFF:]
