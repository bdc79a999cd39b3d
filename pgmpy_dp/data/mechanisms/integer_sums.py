"""Exact integer sums of the records' clipped vectors and tables, in steps of a grid.

A record's vector is scaled down to the clip norm if it is longer, by a factor that is rounded down by more than the
floating-point error in its norm, and then truncated towards zero, which never lengthens a vector. The result is an
integer vector of norm at most B, in grid steps of clip norm / B. Integer sums are exact in any order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pgmpy_dp.data.matrices import canonical_rows
from pgmpy_dp.privacy.checks import exact_positive

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]
Statistic = Callable[[Any], Any]

_CENTRE_BITS = 20


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
    """Concatenated tables, and a public centre that is subtracted from every record's cell indicators.

    See :meth:`~pgmpy_dp.data.mechanisms.sums.NoisySums.noisy_tables` for the parameters. ValueError unless the centre
    has one number in [-1, 1] for each cell.
    """

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
        places = np.zeros((len(self._cliques), weights.size), dtype=np.int64)
        for number, clique in enumerate(self._cliques):
            for column in clique:
                places[number] = places[number] * self._shape[column] + columns[column]
            places[number] += self._starts[number]
        constant = len(places) + self._square
        # The error of each sum is below 2**-52 times its number of terms times the sum of their absolute values.
        slack = (self.cells + 64) * 2.0**-52 * (constant + 2.0 * len(places))
        norms = np.sqrt(np.maximum(constant - 2.0 * self._middle[places].sum(axis=0), 0.0) + slack)
        factors = np.floor(np.minimum(room * _margin(self.cells) / np.maximum(norms, clip), 2.0**31)).astype(np.int64)
        factors *= weights
        total = np.zeros(self.cells, dtype=np.int64)
        for place in places:
            np.add.at(total, place, factors)
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
