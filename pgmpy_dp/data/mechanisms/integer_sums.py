"""Exact integer sums of the records' clipped vectors, tables and moments, in steps of a grid.

A record's vector is scaled down to the clip norm if it is longer, by a factor that is rounded down by more than the
floating-point error in its norm, and then truncated towards zero, which never lengthens a vector. The result is an
integer vector of norm at most B, in grid steps of clip norm / B. Integer sums are exact in any order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pgmpy_dp.privacy.checks import exact_positive

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]
Statistic = Callable[[Any], Any]

_CENTRE_BITS = 20

# Bits of integers: a vector has a norm of at most 2**15 steps, a weight of a second moment is at most 2**15, and one of
# a first moment at most 2**20. The sum of 256 records' terms is then at most 2**53, up to which floats add integers
# exactly, in any order.
_VECTOR, _SECOND, _FIRST, _ROWS = 15, 15, 20, 256
_MAX_NUMBERS = 2**22
# Bits: sums are cut to a grid on which noise has at most 2**34 steps and a record 2**31: 2**31 records fit 64 bits.
_NOISE_BITS, _RECORD_BITS = 34, 31


def vector_sum(
    statistic: Statistic, parts: Any, width: int, clip: float, bound: int, *, non_negative: bool
) -> Integers:
    """Sum the vectors of parts of a sample; each part has some rows, and the number of records with each row."""
    total = np.zeros(width, dtype=np.int64)
    for rows, weights in parts:
        vectors, _ = checked_vectors(statistic(rows), weights.size, width)
        if non_negative:
            vectors = vectors.maximum(0.0) if sparse.issparse(vectors) else np.maximum(vectors, 0.0)
        total += weights @ integer_rows(vectors, clip, bound)
    return total


class CentredTables:
    """Concatenated tables, and a public centre that is subtracted from every record's cell indicators."""

    def __init__(self, cliques: Sequence[Sequence[int]], shape: Sequence[int], centre: Vector | None) -> None:
        self._cliques, self._shape = cliques, shape
        sizes = [math.prod(int(shape[column]) for column in clique) for clique in cliques]
        self._starts, self.cells = np.cumsum([0, *sizes])[:-1], sum(sizes)
        middle = np.zeros(self.cells) if centre is None else np.asarray(centre, dtype=np.float64)
        if middle.shape != (self.cells,) or not (np.abs(middle) <= 1.0).all():
            raise ValueError(f"centre must hold {self.cells} numbers from -1 to 1, one for each cell.")
        self._whole = np.rint(middle * 2.0**_CENTRE_BITS)
        self._middle = self._whole / 2.0**_CENTRE_BITS
        self._square = float(self._middle @ self._middle)
        self.longest = math.sqrt(len(sizes)) + math.sqrt(self._square)

    def room(self, bound: int) -> float:
        """Return the part of a record's bound for its indicators (see `sum`); ValueError if it is too small."""
        room = bound - math.sqrt(self.cells) - 1.0
        if room < bound / 2.0:
            raise ValueError("The tables have too many cells for this plan's noise multiplier.")
        return room

    def sum(self, codes: NDArray[Any], weights: Integers, clip: float, room: float) -> Integers:
        """Sum the records' clipped indicators.

        A record is counted with the integer weight F, the largest for which F ||phi - centre|| is within the room. The
        norm is looked up: ||phi - centre||^2 = sum_C (1 - 2 centre_C(x_C)) + ||centre||^2. The sum of the weights times
        the centre is truncated to whole grid steps, which changes the difference of two neighbours by less than 1 in
        each cell; the room leaves sqrt(cells) of the bound free for this.
        """
        columns = np.ascontiguousarray(codes.T, dtype=np.int64)  # each column is read for several cliques
        positions = np.zeros((len(self._cliques), weights.size), dtype=np.int64)
        for number, clique in enumerate(self._cliques):
            for column in clique:
                positions[number] = positions[number] * self._shape[column] + columns[column]
            positions[number] += self._starts[number]
        constant = len(positions) + self._square
        # The error of each sum is below 2**-52 times its number of terms times the sum of their absolute values.
        slack = (self.cells + 64) * 2.0**-52 * (constant + 2.0 * len(positions))
        norms = np.sqrt(np.maximum(constant - 2.0 * self._middle[positions].sum(axis=0), 0.0) + slack)
        factors = np.floor(np.minimum(room * _margin(self.cells) / np.maximum(norms, clip), 2.0**31)).astype(np.int64)
        factors *= weights
        total = np.zeros(self.cells, dtype=np.int64)
        for position in positions:
            np.add.at(total, position, factors)
        mass = int(factors.sum())
        if mass:
            total -= np.array([(mass * int(m)) >> _CENTRE_BITS for m in self._whole], dtype=np.int64)
        return total


def checked_sum(statistic: Statistic, rows: Any, clip_norm: float) -> tuple[int, float]:
    """Try a statistic on a row of zeros, which is public; return the width of its vectors and the clip norm."""
    clip = checked_norm("clip_norm", clip_norm)
    return checked_vectors(statistic(zero_row(rows)), 1, None)[1], clip


def checked_norm(name: str, value: Any) -> float:
    """Return a norm to which records' vectors may be clipped; ValueError if it is out of range."""
    clip = float(exact_positive(name, value))
    if not 2.0**-20 <= clip <= 2.0**300:
        raise ValueError(f"{name} must be between 2**-20 and 2**300, got {value!r}: scale the statistic.")
    return clip


def zero_row(rows: Any) -> Any:
    """Return one row of zeros, of the type and width of these rows."""
    shape = (1, *rows.shape[1:])
    return sparse.csr_array(shape, dtype=rows.dtype) if sparse.issparse(rows) else np.zeros(shape, dtype=rows.dtype)


def checked_vectors(vectors: Any, count: int, width: int | None) -> tuple[Any, int]:
    """Return a statistic's result as float64, dense by rows or CSR with sorted rows, and its width."""
    kind = getattr(getattr(vectors, "dtype", None), "kind", None)
    if kind not in ("f", "i", "u", "b"):
        raise ValueError(f"The statistic must return an array of numbers, got {type(vectors).__name__}, kind {kind!r}.")
    shape = vectors.shape
    if len(shape) != 2 or shape[0] != count or shape[1] < 1 or (width is not None and shape[1] != width):
        wanted = f"({count}, {'d' if width is None else width})"
        raise ValueError(f"The statistic must return one vector per record, shape {wanted}, got shape {shape}.")
    with np.errstate(all="ignore"):  # a warning would reveal something about a record
        if sparse.issparse(vectors):
            return canonical_rows(vectors, np.float64), shape[1]
        # Row order: for a single row, numpy would add the squares of column-ordered arrays in another order.
        return np.ascontiguousarray(vectors, dtype=np.float64), shape[1]


def integer_rows(vectors: Any, clip: float, bound: int) -> Any:
    """Clip rows to norm `clip` = `bound` grid steps, and truncate them to whole steps towards zero.

    A row with NaN or infinity, or with a norm that overflows, becomes zero.
    """
    width = vectors.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        if sparse.issparse(vectors):  # adds one by one
            numbers = np.repeat(np.arange(vectors.shape[0]), np.diff(vectors.indptr))
            norms = np.sqrt(np.bincount(numbers, vectors.data**2, vectors.shape[0]))
        else:
            norms = np.sqrt((vectors**2).sum(axis=1))
        usable = np.isfinite(norms)
        factors = np.where(usable, bound * _margin(width) / np.maximum(norms, clip), 0.0)
        if not sparse.issparse(vectors):
            scaled = vectors * factors[:, None]
            scaled[~usable] = 0.0
            return scaled.astype(np.int64)
        per_entry = factors[numbers]
        entries = np.where(per_entry > 0.0, vectors.data * per_entry, 0.0)
    return sparse.csr_array((entries.astype(np.int64), vectors.indices, vectors.indptr), shape=vectors.shape)


def _margin(width: int) -> float:
    # A sum of squares has a relative error of at most (terms + 2) 2**-53, in any order; products a little more.
    return 1.0 - (width + 64) * 2.0**-52


def row_products(rows: Vector, matrix: Vector) -> Vector:
    """Compute ``rows @ matrix`` such that each row is, to the last bit, the same as if it were alone.

    BLAS chooses its method by the number of rows: one record more or less could change the last digits of others, and
    with them the integers that these contribute, for which the sensitivity does not allow.
    """
    products: Vector = np.einsum("nd,de->ne", np.ascontiguousarray(rows), matrix)
    return products


@dataclass(frozen=True)
class Moments:
    """For each of m records: a random vector x with d independent entries, k weights of x, and l weights of x x'."""

    means: Any  # of x, of shape (m, d)
    variances: Any  # of its entries, or None if x is known exactly
    first: Any  # weights of x in [-1, 1], of shape (m, k)
    second: Any  # weights of x x' in [0, 1], of shape (m, l)

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
            result = Moments(
                *(p if p is None else np.ascontiguousarray(p, dtype=np.float64) for p in vars(self).values())
            )
        if (like is not None and result.shape != like) or parts.get("variances", self.means).shape != self.means.shape:
            raise ValueError("Moments: the number of columns must be the same for all records, and for all of x.")
        return result

    @property
    def shape(self) -> tuple[int, int, int]:
        """The dimensions d, k and l."""
        return self.means.shape[1], self.first.shape[1], self.second.shape[1]


@dataclass(frozen=True)
class NoisyMoments:
    """Sums of moments over a sample, with Gaussian noise."""

    first: Vector  # of shape (k, d)
    second: Vector  # of shape (l, d, d); symmetric, but noise may make it indefinite
    first_deviation: float
    second_deviation: float  # on the diagonal; 1 / sqrt(2) of it elsewhere


@dataclass(frozen=True)
class MomentGrid:
    """Grid on which moments are summed as integers, and the noise that hides a record in them.

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

    shape: tuple[int, int, int]  # d, k and l
    shifts: tuple[int, int]  # binary digits that are cut off first and second sums
    scales: tuple[float, float, float]  # of noise on first sums, and on diagonals and other entries of second ones

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
        """
        d, k, lots = self.shape
        one, other = np.triu_indices(d)
        part = max(1, min(_ROWS, _MAX_NUMBERS // one.size))
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


def canonical_rows(given: Any, dtype: Any) -> sparse.csr_array:
    """Sort each sparse row by column, and add repeated entries in the order in which they stand.

    Each row is, to the last bit, the same as if it were alone. scipy's own function sorts all rows as soon as one of
    them is out of order, with no fixed order of equal columns.
    """
    entries = given.tocoo()
    count, width = entries.shape
    positions, data = entries.row.astype(np.int64) * width + entries.col, entries.data.astype(dtype)
    if not (np.diff(positions) > 0).all():
        order = np.argsort(positions, kind="stable")
        positions, first = np.unique(positions[order], return_index=True)
        data = np.add.reduceat(data[order], first)
    ends = np.searchsorted(positions, np.arange(count + 1) * width)
    return sparse.csr_array((data, positions % width, ends), shape=(count, width))
