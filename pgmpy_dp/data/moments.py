"""Weighted first and second moments of vectors as exact integer sums, for conditionally Gaussian models."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

# Bits: a vector's bound is 2**15 steps, a second weight is at most 2**15, a first one at most 2**20. The sum of 256
# records' terms is then at most 2**53, up to which floats add integers exactly, in any order.
_VECTOR, _SECOND, _FIRST, _ROWS = 15, 15, 20, 256
_MOST_NUMBERS = 2**22
# Bits: sums are cut to a grid on which noise has at most 2**34 steps and a record 2**31: 2**31 records fit 64 bits.
_NOISE_BITS, _RECORD_BITS = 34, 31


def row_products(rows: Vector, matrix: Vector) -> Vector:
    """Compute ``rows @ matrix`` such that each row is, to the last bit, the same as if it were alone.

    BLAS chooses its method by the number of rows: one record more or less could change the last digits of others, and
    with them the integers that these contribute, for which the sensitivity does not allow.
    """
    products: Vector = np.einsum("nd,de->ne", np.ascontiguousarray(rows), matrix)
    return products


@dataclass(frozen=True)
class Moments:
    """For each of m records a vector x of d independent parts, with k weights for x and l weights for x x'.

    Attributes
    ----------
    means : ndarray of float, shape (m, d)
        Expected x.
    variances : ndarray of float, shape (m, d), or None
        Of the parts of x; None where they are known exactly.
    first : ndarray of float, shape (m, k)
        Weights of x, in [-1, 1].
    second : ndarray of float, shape (m, l)
        Weights of x x', in [0, 1].
    """

    means: Any
    variances: Any
    first: Any
    second: Any

    def checked(self, count: int, like: tuple[int, int, int] | None = None) -> Moments:
        """Convert the parts to float64 arrays; ValueError if one is not an array of numbers of its shape."""
        parts = {"means": self.means, "first": self.first, "second": self.second}
        if self.variances is not None:
            parts["variances"] = self.variances
        for name, part in parts.items():
            if not isinstance(part, np.ndarray) or part.dtype.kind not in "fiub":
                raise ValueError(f"Moments: {name} must be an array of numbers, got {type(part).__name__}.")
            if part.ndim != 2 or part.shape[0] != count or part.shape[1] < 1:
                raise ValueError(f"Moments: {name} must have one row per record, shape ({count}, k), got {part.shape}.")
        # Row order: for a single row, numpy would add the numbers of column-ordered arrays in another order.
        with np.errstate(all="ignore"):  # a warning would reveal something about a record
            found = Moments(
                *(p if p is None else np.ascontiguousarray(p, dtype=np.float64) for p in vars(self).values())
            )
        if (like is not None and found.shape != like) or parts.get("variances", self.means).shape != self.means.shape:
            raise ValueError("Moments: the number of columns must be the same for all records, and for all of x.")
        return found

    @property
    def shape(self) -> tuple[int, int, int]:
        """The dimensions d, k and l."""
        return self.means.shape[1], self.first.shape[1], self.second.shape[1]


@dataclass(frozen=True)
class NoisyMoments:
    """Sums of moments over a sample, with Gaussian noise.

    Attributes
    ----------
    first : ndarray of float64, shape (k, d)
        Sums of weight times x.
    second : ndarray of float64, shape (l, d, d)
        Sums of weight times the expectation of x x'. Symmetric; noise may make it indefinite.
    first_deviation : float
        Standard deviation of the noise on each entry of `first`.
    second_deviation : float
        The same for the diagonals of `second`; off the diagonals it is 1 / sqrt(2) of this.
    """

    first: Vector
    second: Vector
    first_deviation: float
    second_deviation: float


@dataclass(frozen=True)
class MomentGrid:
    """Grid on which moments are summed as integers, and the noise that hides a record in them.

    Attributes
    ----------
    shape : tuple of int
        d, k and l, see :class:`Moments`.
    shifts : tuple of int
        Binary digits that are cut off the first and the second sums.
    scales : tuple of float
        Noise of the first sums and, for the second sums, of diagonals and of other entries, in steps of their grids.

    Notes
    -----
    Sensitivity. In units of their bounds, a record has a vector x and a matrix M = E[x x'] with |x| <= 1 and trace
    M <= 1, so that the Frobenius norm |M| <= 1. It adds u x, |u| <= 1, to each of k first sums and w M, 0 <= w <= 1, to
    each of l second sums. Let the noise have standard deviation s on first sums and s / mu on second sums, where
    mu**2 = 2 k / l. Entries of a symmetric matrix off the diagonal are drawn once, with 1 / sqrt(2) of that, so that
    the norm of a change in units of its noise is a Frobenius norm. The sums then change by at most sensitivity / s
    units:

    - adding or removing a record: the squared sensitivity is k + l mu**2 = 3 k;
    - replacing a record: |u x - v y|**2 <= 2 + 2 c with c = |x.y|, and |w M - w' M'|**2 is convex in each weight and so
      largest at 0 or 1: it is at most max(1, 2 - 2 c**2), since the inner product of M and M' is at least c**2. The
      maximum of k (2 + 2 c) + 2 k max(1, 2 - 2 c**2) is at c = 1/4: 6.25 k. (VIPS releases both sums with noise of
      their own sensitivities, which this replaces.)

    Integers. Vectors, variances and weights are rounded to grids, after vectors are shortened by what rounding may add
    to them; the bounds are then checked on the integers. Sums are exact. Cutting off digits changes the difference of
    two neighbours by less than 1 step in each cell, for which the noise scales allow.
    """

    shape: tuple[int, int, int]
    shifts: tuple[int, int]
    scales: tuple[float, float, float]

    @classmethod
    def of(cls, shape: tuple[int, int, int], noise_multiplier: float, neighbours: str) -> MomentGrid:
        """Make the grid for a noise multiplier; ValueError if its cells and noise do not fit 64-bit integers."""
        d, k, lots = shape
        ratio = math.sqrt(2.0 * k / lots)
        sensitivity = math.sqrt((3.0 if neighbours == "add_remove" else 6.25) * k)
        shifts, bounds, cells = [], [], []
        for bits, share, count in (
            (_FIRST + _VECTOR, 1.0, k * d),
            (_SECOND + 2 * _VECTOR, ratio, lots * d * (d + 1)),  # off-diagonal cells count twice
        ):
            noise = math.ceil(math.log2(noise_multiplier * sensitivity / share))
            shift = max(0, bits - _RECORD_BITS, bits - _NOISE_BITS + noise)
            shifts.append(shift)
            bounds.append(2.0 ** (bits - shift) / share)
            cells.append(count)
        slack = math.sqrt(sum(count / bound**2 for count, bound in zip(cells, bounds, strict=True))) / sensitivity
        if not slack < 0.5 or d > 2**_VECTOR:
            raise ValueError("The moments have too many cells for this plan's noise multiplier.")
        scale = [noise_multiplier * sensitivity * bound * (1.0 + slack) * (1.0 + 2.0**-40) for bound in bounds]
        return cls(shape, (shifts[0], shifts[1]), (scale[0], scale[1], scale[1] / math.sqrt(2.0)))

    @property
    def cells(self) -> tuple[int, int, int]:
        """Numbers of cells drawn with each of the scales."""
        d, k, lots = self.shape
        return k * d, lots * d, lots * (d * (d - 1) // 2)

    def sums(self, parts: Iterable[tuple[Moments, NDArray[np.int64]]], bound: float) -> list[NDArray[np.int64]]:
        """Sum checked moments as integers, each record as many times as its count.

        `bound` limits the root of the trace of E[x x']; records beyond it are scaled down.

        Returns
        -------
        list of ndarray of int64
            First sums, diagonals of the second sums, and their other entries, all flat.
        """
        d, k, lots = self.shape
        one, other = np.triu_indices(d)
        part = max(1, min(_ROWS, _MOST_NUMBERS // one.size))
        totals = [_Total((k, d), self.shifts[0]), _Total((lots, one.size), self.shifts[1])]
        for moments, counts in parts:
            means, variances, first, second = _integers(moments, bound)
            rows = np.repeat(np.arange(counts.size), counts)
            for start in range(0, rows.size, part):
                chosen = rows[start : start + part]
                x = means[chosen]
                products = x[:, one] * x[:, other]
                if variances is not None:
                    products[:, one == other] += variances[chosen]
                totals[0].add(first[chosen].T @ x)
                totals[1].add(second[chosen].T @ products)
        linear, packed = (total.high for total in totals)
        return [linear.ravel(), packed[:, one == other].ravel(), packed[:, one != other].ravel()]

    def noisy(self, drawn: list[NDArray[np.int64]], bound: float) -> NoisyMoments:
        """Convert sums with their noise to the units of the moments."""
        d, k, lots = self.shape
        step = bound / _room(d)
        unit, square = 2.0 ** (self.shifts[0] - _FIRST) * step, 2.0 ** (self.shifts[1] - _SECOND) * step**2
        second = np.zeros((lots, d, d))
        second[:, np.arange(d), np.arange(d)] = drawn[1].reshape(lots, d) * square
        one, other = np.triu_indices(d, 1)
        second[:, one, other] = second[:, other, one] = drawn[2].reshape(lots, one.size) * square
        first: Vector = drawn[0].reshape(k, d) * np.float64(unit)
        return NoisyMoments(first, second, self.scales[0] * unit, self.scales[1] * square)


class _Total:
    """Sum of integers beyond 64 bits, without its last digits."""

    def __init__(self, shape: tuple[int, int], shift: int) -> None:
        self.high, self.low = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        self.shift = shift

    def add(self, part: Vector) -> None:
        self.low += part.astype(np.int64)
        self.high += self.low >> self.shift
        self.low &= (1 << self.shift) - 1


def _room(d: int) -> float:
    """Grid steps in a vector of the largest norm: rounding lengthens it by up to sqrt(d) / 2."""
    return 2.0**_VECTOR - math.sqrt(d) - 1.0


def _integers(moments: Moments, bound: float) -> tuple[Vector, Vector | None, Vector, Vector]:
    """Round to integers (as floats) that satisfy the bounds; records that are not finite become zero."""
    means, variances, first, second = moments.means, moments.variances, moments.first, moments.second
    with np.errstate(over="ignore", invalid="ignore"):
        trace = (means**2).sum(axis=1)
        if variances is not None:
            variances = np.maximum(variances, 0.0)
            trace = trace + variances.sum(axis=1)
        usable = np.isfinite(trace + first.sum(axis=1) + second.sum(axis=1))
        factor = np.where(usable, _room(means.shape[1]) / np.maximum(np.sqrt(trace), bound), 0.0)[:, None]
        means = np.where(usable[:, None], np.rint(means * factor), 0.0)
        first = np.where(usable[:, None], np.rint(np.clip(first, -1.0, 1.0) * 2.0**_FIRST), 0.0)
        second = np.where(usable[:, None], np.rint(np.clip(second, 0.0, 1.0) * 2.0**_SECOND), 0.0)
        whole = (means**2).sum(axis=1)
        if variances is not None:
            variances = np.where(usable[:, None], np.floor(variances * factor**2), 0.0)
            whole += variances.sum(axis=1)
    beyond = whole > 4.0**_VECTOR  # should not occur, but the sensitivity depends on it
    means[beyond], first[beyond], second[beyond] = 0.0, 0.0, 0.0
    if variances is not None:
        variances[beyond] = 0.0
    return means, variances, first, second
