"""Posterior means of the rows of CPDs given their noisy counts, and how likely their Dirichlet concentrations are.

A row of M records has the counts n = M phi, and phi is Dirichlet with concentrations c, whose sum is C. Given noisy
counts with densities exp(l_k(n_k)), and a slope g_k by each count from all else that is known of it, the posterior is

    p(n) ~ prod_k n_k^(c_k - 1) exp(l_k(n_k) + g_k n_k)    where sum_k n_k = M.

**Means.** The sum is kept on average: each count has a density of its own, tilted by a factor exp(s n_k) that is common
to the row, and s is such that the means add up to M. The others lose as much as one count gains, against their own
noise of variance v_j: so each density has a further factor, exp(-b_k (n_k - m_k)^2 / 2) about its own mean m_k with

    b_k = sum_{j != k} phi_j^2 / v_j / (1 - phi_k)^2.

For two Gaussian counts this is exact. Where noise hides a count, its mean is about c_k times the noise's scale: the
smaller the concentration the nearer to zero, and the mode of the density, which grows with the root of c_k, is not.

**Concentrations.** Without the factors b_k the integral over counts with sum M is a saddle point's, exp(sum_k log Z_k -
s M) times the density at M of the sum of tilted counts. That of a Gamma variable with their mean M and variance V is
taken, with shape A = M^2 / V: it is exact where nothing is known of a row. Up to terms without c

    log p(y | c) = log Gamma(C) - C log M - s M + sum_k (log Z_k - log Gamma(c_k)) + A log A - A - log Gamma(A).

Rows with fewer records than the noise of a few cells have two modes or more, which this approximation ignores: they
contain almost no information about c, and are left out.

**Information.** A row that is known exactly has c_k^2 (psi'(c_k) - psi'(C)) of it about log c_k, psi' the trigamma
function. What the noise hides of it is c_k^2 Var(log n_k | y) (Orchard and Woodbury 1972), with the variance about the
tilted density.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference.tables.table import Vector

# A row's total is at least this share of its noise's scale: below, its mean is that of the prior.
_MIN_TOTAL = 0.02
# Minimum number of records, in standard deviations of a cell's noise, of rows that inform concentrations.
_INFORMATIVE = 2.5
# Largest curvature by the other counts of a row, in units of one over the noise's variance.
_STIFFEST = 4.0
_MIN_SPREAD = 1e-9  # variance of a row's sum, relative to its square
_ROUNDS = 6  # until the means, about which the tilt is centred, settle


class NoisyRows:
    """Noisy counts of rows whose numbers of records are known."""

    def __init__(
        self, rows: NDArray[np.int64], observed: Vector, scale: Vector, corner: Vector, totals: Vector, slopes: Vector
    ) -> None:
        from pgmpy_dp.inference.posterior import row_kernel  # imports numba

        self._rows, self._order = rows, np.argsort(rows, kind="stable")
        self._starts = np.searchsorted(rows[self._order], np.arange(totals.size + 1))
        self._cells, self._solve = (observed, scale, corner), row_kernel.solve_rows
        largest = np.zeros(totals.size)
        np.maximum.at(largest, rows, scale)
        self.totals: Vector = np.maximum(totals, _MIN_TOTAL * largest)
        self._shifts = np.zeros(totals.size)
        self._slopes = slopes
        self._informative = self.totals > _INFORMATIVE * np.sqrt(self._sums(scale**2) / self._sums(np.ones_like(scale)))
        self._grid = row_kernel.grid(float((np.maximum(observed, self.totals[rows]) / scale).max()))
        self._room = np.empty(8 + self._grid[0].size)

    def _sums(self, values: Vector) -> Vector:
        sums: Vector = np.bincount(self._rows, values, self._starts.size - 1).astype(np.float64)
        return sums

    def _moments(self, concentrations: Vector, bend: Vector, centre: Vector, shifts: Vector) -> Vector:
        """Solve for the rows' shifts, changed in place, and return the moments of `row_kernel`, shape (8, cells)."""
        order = self._order
        ordered = [each[order] for each in (*self._cells, bend, centre, concentrations, self._slopes)]
        result, moments = np.empty((2, 8, order.size))
        self._solve(self._starts, *ordered, self.totals, shifts, *self._grid, result, self._room)
        moments[:, order] = result
        return moments

    def evidence(self, concentrations: Vector, near: Vector) -> tuple[float, Vector]:
        """Return the log-likelihood of concentrations, shape (cells,), and its gradient."""
        from scipy.special import digamma, gammaln

        level = np.zeros_like(near)
        moments = self._moments(concentrations, level, near, self._shifts)
        log_mass, _, variance, mean_log, joint, square, cube, _ = moments
        whole, totals = self._sums(concentrations), self.totals
        spread = np.maximum(self._sums(variance), _MIN_SPREAD * totals**2)
        shape = totals**2 / spread
        value = gammaln(whole) - whole * np.log(totals) - self._shifts * totals
        value += shape * np.log(shape) - shape - gammaln(shape) + self._sums(log_mass - gammaln(concentrations))
        # The spread changes with the concentration, and with the shift that keeps the mean.
        widened = square - (self._sums(cube) / spread)[self._rows] * joint
        by_spread = (shape * (np.log(shape) - digamma(shape)) / spread)[self._rows]
        gradient = (digamma(whole) - np.log(totals))[self._rows] - digamma(concentrations) + mean_log
        gradient -= by_spread * widened
        return float(value[self._informative].sum()), np.where(self._informative[self._rows], gradient, 0.0)

    def information(self, concentrations: Vector, near: Vector) -> Vector:
        """Return the expected information of each cell about the logarithm of its concentration; see the module."""
        from scipy.special import polygamma

        *_, left = self._moments(concentrations, np.zeros_like(near), near, self._shifts)
        known = polygamma(1, concentrations) - polygamma(1, self._sums(concentrations))[self._rows] - left
        return np.where(self._informative[self._rows], concentrations**2 * np.maximum(known, 0.0), 0.0)

    def means(self, concentrations: Vector, start: Vector, variance: Vector) -> tuple[Vector, Vector, Vector, Vector]:
        """Find the means and variances of all counts, curvatures by the other counts of the row, and slopes there."""
        shifts, totals = self._shifts.copy(), self.totals[self._rows]
        _, means, *_ = self._moments(concentrations, np.zeros_like(start), start, shifts)
        for _ in range(_ROUNDS):
            shares = np.clip(means / totals, 1e-12, 1.0)
            resistance = shares**2 / variance
            others = np.maximum(self._sums(resistance)[self._rows] - resistance, 0.0)
            bends = np.minimum(others / np.maximum(1.0 - shares, 1e-3) ** 2, _STIFFEST / variance)
            _, means, spread, *_ = self._moments(concentrations, bends, means, shifts)
        return means, spread, bends, self._slopes + shifts[self._rows]
