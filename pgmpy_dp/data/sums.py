"""Gaussian sums over random samples of the records: the wall's primitive for methods that iterate."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pgmpy_dp.data.moments import MomentGrid, Moments, NoisyMoments
from pgmpy_dp.data.versions import library_versions
from pgmpy_dp.errors import BudgetExceededError
from pgmpy_dp.privacy.budget import PrivacyBudget
from pgmpy_dp.privacy.charges import Charge, protected
from pgmpy_dp.privacy.checks import checked_delta, decimal_above, exact_positive
from pgmpy_dp.privacy.noise import NoiseSource
from pgmpy_dp.privacy.subsampling import GRID_SHARE, SAMPLINGS, calibrate, grid_delta, price
from pgmpy_dp.release.guarantee import Guarantee

Vector = NDArray[np.float64]
Statistic = Callable[[Any], Any]

# Noise has a standard deviation of at most this many grid steps, and a record's vector at most twice this norm: sums of
# four thousand million records fit 64-bit integers.
_GRID = 2**30
# Rows that a statistic is handed at a time, and numbers that it may return for them.
_MOST_ROWS, _MOST_NUMBERS = 4096, 2**22
_CENTRE_BITS = 20


class NoisySums:
    """A plan that is paid for: at most `steps` Gaussian sums over random samples of the records.

    Made by :meth:`~pgmpy_dp.data.PrivateDataset.plan`; can be neither copied nor pickled. A sum is charged with the
    plan, whether it is asked for or not.

    Attributes
    ----------
    steps, steps_left : int
    noise_multiplier : float
        Standard deviation of the noise over the L2 sensitivity of a sum.
    sampling : {"poisson", "without_replacement"}
    sampling_rate : float
        Probability of a record to be in a sample.
    batch_size : int or None
        Size of a sample where it is fixed.
    guarantee : Guarantee
        Of the whole plan.

    Notes
    -----
    Sensitivity. A record contributes an integer vector of norm at most B, in grid steps of clip_norm / B: its own
    vector is scaled down to clip_norm where it is longer, by a factor rounded down by more than all floating-point
    error there is in its norm, and then cut off towards zero, which lengthens no vector. Integer sums are exact in any
    order. Adding or removing a record (Poisson samples) moves a sum by at most B; replacing one (samples of one size)
    by at most 2 B, or sqrt(2) B where no vector has a negative entry: two such vectors have a non-negative inner
    product. Noise of the discrete Gaussian distribution comes on top, and
    :func:`~pgmpy_dp.privacy.subsampling.grid_delta` accounts for its difference to the continuous one.
    """

    def __init__(
        self,
        rows: Any,
        groups: NDArray[np.integer[Any]] | None,
        noise: NoiseSource,
        guarantee: Guarantee,
        *,
        steps: int,
        noise_multiplier: float,
        sampling_rate: Fraction,
        batch_size: int | None,
    ) -> None:
        self._rows, self._groups, self._noise = rows, groups, noise
        self._size = int(rows.shape[0] if groups is None else groups.shape[0])
        self.batch_size = batch_size
        self._lock, self._process = threading.Lock(), os.getpid()
        self.guarantee = guarantee
        self.steps = self.steps_left = steps
        self._rate = sampling_rate  # as it was priced: a float may be above it
        self.noise_multiplier, self.sampling_rate = noise_multiplier, float(sampling_rate)
        self.sampling = "poisson" if batch_size is None else "without_replacement"

    def noisy_sum(self, statistic: Statistic, clip_norm: float, *, non_negative: bool = False) -> Vector:
        """Sum of one vector a record over a fresh random sample, with noise. Takes one of the plan's steps.

        Parameters
        ----------
        statistic : callable
            From m records, rows of the data set's codes of shape (m, number of variables), to their vectors, shape
            (m, d), an array or a scipy sparse array. Each vector must be a function of its own record and of what is
            public alone, to the last bit: rows come in any number and order, equal records only once. (Products by BLAS
            are not: take :func:`~pgmpy_dp.data.moments.row_products`.)
        clip_norm : float
            Longer vectors are scaled down to this Euclidean norm.
        non_negative : bool
            Replace negative entries by 0. Samples of one size then need less noise, by a factor of sqrt(2).

        Returns
        -------
        ndarray of float64, shape (d,)
            In the statistic's units.

        Raises
        ------
        ValueError
            If no step is left, an argument is out of range, or the statistic's result is of the wrong kind. The
            statistic is tried on a row of zeros first.

        Notes
        -----
        A vector that holds NaN or infinity counts as zero. An error would tell that there is such a record.
        """
        width, clip = checked_sum(statistic, self._rows, clip_norm)
        bound, scale = self._grid(width, 1.0 if self.sampling == "poisson" else math.sqrt(2.0) if non_negative else 2.0)
        rows, weights = self._step()
        total = np.zeros(width, dtype=np.int64)
        part = max(1, min(_MOST_ROWS, _MOST_NUMBERS // width if width < 2**16 else 64))
        for start in range(0, rows.size, part):
            chosen = rows[start : start + part]
            vectors, _ = _checked_vectors(statistic(self._rows[chosen]), chosen.size, width)
            if non_negative:
                vectors = vectors.maximum(0.0) if sparse.issparse(vectors) else np.maximum(vectors, 0.0)
            total += weights[start : start + part] @ _integer_rows(vectors, clip, bound)
        noisy: Vector = self._noise.discrete_gaussian(total, scale).astype(np.float64) * (clip / bound)
        return noisy

    def noisy_tables(
        self,
        cliques: Sequence[Sequence[int]],
        shape: Sequence[int],
        clip_norm: float,
        centre: Vector | None = None,
    ) -> Vector:
        """Sum of clipped clique indicators over a fresh random sample, with noise. Takes one of the plan's steps.

        A record's vector is ``phi - centre``: phi holds, for every clique end to end, 1 in the cell that the record is
        in and 0 elsewhere. As `noisy_sum` of it, but by counting: no vector is made (Bernstein et al. 2017 use this sum
        for private gradients).

        Parameters
        ----------
        cliques : sequence of sequences of int
            Column numbers of the records; a table's last column runs fastest.
        shape : sequence of int
            Number of states of every column.
        clip_norm : float
            The norm of phi itself is the square root of the number of cliques.
        centre : ndarray of float, shape (total number of cells,), optional
            Public, in [-1, 1]; rounded to multiples of 2**-20. Zero by default.

        Returns
        -------
        ndarray of float64, shape (total number of cells,)

        Raises
        ------
        ValueError
            If no step is left or an argument is out of range.

        Notes
        -----
        Sensitivity: a record is in the tables with the integer weight F, the largest for which F ||phi - centre|| is
        within its bound; the norm comes from a look-up,
        ||phi - centre||^2 = sum_C (1 - 2 centre_C(x_C)) + ||centre||^2.
        The weights' sum times the centre is cut to whole grid steps, which moves the difference of two neighbours by
        less than 1 in each cell: sqrt(d) of the bound is kept free for that.
        """
        clip = checked_norm(clip_norm)
        sizes = [math.prod(int(shape[column]) for column in clique) for clique in cliques]
        cells = sum(sizes)
        middle = np.zeros(cells) if centre is None else np.asarray(centre, dtype=np.float64)
        if middle.shape != (cells,) or not (np.abs(middle) <= 1.0).all():
            raise ValueError(f"centre must hold {cells} numbers between -1 and 1, one for each cell.")
        whole = np.rint(middle * 2.0**_CENTRE_BITS)
        middle = whole / 2.0**_CENTRE_BITS
        clip = min(clip, math.sqrt(len(sizes)) + math.sqrt(float(middle @ middle)))  # no vector is longer
        one = 1.0 if self.sampling == "poisson" else math.sqrt(2.0) if centre is None else 2.0
        bound, scale = self._grid(cells, one)
        room = bound - math.sqrt(cells) - 1.0
        if room < bound / 2.0:
            raise ValueError("The tables have too many cells for this plan's noise multiplier.")
        rows, weights = self._step()
        codes = self._rows[rows].astype(np.int64)
        starts = np.cumsum([0, *sizes])[:-1]
        places = np.empty((len(sizes), rows.size), dtype=np.int64)
        for number, clique in enumerate(cliques):
            places[number] = 0
            for column in clique:
                places[number] = places[number] * shape[column] + codes[:, column]
            places[number] += starts[number]
        constant = len(sizes) + float(middle @ middle)
        # The error of each sum is below 2**-52 times its number of terms and the sum of their absolute values.
        slack = (cells + 64) * 2.0**-52 * (constant + 2.0 * len(sizes))
        norms = np.sqrt(np.maximum(constant - 2.0 * middle[places].sum(axis=0), 0.0) + slack)
        factors = np.floor(np.minimum(room * _margin(cells) / np.maximum(norms, clip), 2.0**31)).astype(np.int64)
        factors *= weights
        total = np.zeros(cells, dtype=np.int64)
        for place in places:
            np.add.at(total, place, factors)
        mass = int(factors.sum())
        if mass:
            total -= np.array([(mass * int(m)) >> _CENTRE_BITS for m in whole], dtype=np.int64)
        noisy: Vector = self._noise.discrete_gaussian(total, scale).astype(np.float64) * (clip / bound)
        return noisy

    def noisy_moments(self, moments: Callable[[Any], Moments], bound: float) -> NoisyMoments:
        """Sums of weighted vectors and of their weighted outer products, with noise. Takes one of the plan's steps.

        What regressions with Gaussian latent responses learn from: sum u x and sum w E[x x'], for several weights u in
        [-1, 1] and w in [0, 1] at a time. As `noisy_sum` of both stacked, with less noise where a record is replaced
        (see :class:`~pgmpy_dp.data.moments.MomentGrid` for the sensitivity), and no record's vector is made.

        Parameters
        ----------
        moments : callable
            From m records, rows of the data set, to their :class:`~pgmpy_dp.data.moments.Moments`. As a statistic of
            `noisy_sum`, a function of each record and of what is public alone.
        bound : float
            On the root of the trace of E[x x']; vectors and variances of records beyond it are scaled down. Weights
            beyond their ranges are cut off, and records that hold NaN or infinity count as zero.

        Returns
        -------
        NoisyMoments

        Raises
        ------
        ValueError
            If no step is left, an argument is out of range, or what `moments` returns is of the wrong kind. It is tried
            on a row of zeros first.
        """
        shape = moments(_zero_row(self._rows)).checked(1).shape
        bound = checked_norm(bound, "bound")
        grid = MomentGrid.of(shape, self.noise_multiplier, self.guarantee.neighbours)
        _require_fine(self.guarantee, self.steps, *zip(grid.cells, grid.scales, strict=True))
        rows, weights = self._step()
        part = max(1, min(_MOST_ROWS, _MOST_NUMBERS // max(shape)))
        parts = (
            (moments(self._rows[chosen]).checked(chosen.size, shape), weights[start : start + part])
            for start in range(0, rows.size, part)
            for chosen in [rows[start : start + part]]
        )
        sums = grid.sums(parts, bound)
        drawn = [self._noise.discrete_gaussian(cells, scale) for cells, scale in zip(sums, grid.scales, strict=True)]
        return grid.noisy(drawn, bound)

    def _grid(self, cells: int, sensitivity: float) -> tuple[int, float]:
        bound, scale = _grid(self.noise_multiplier, sensitivity)
        _require_fine(self.guarantee, self.steps, (cells, scale))
        return bound, scale

    def _step(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Take a step: row numbers of a fresh sample, and how many of its records have that row."""
        if os.getpid() != self._process:
            raise ValueError("This plan is a copy in a forked process: take its steps in the process that charged it.")
        with self._lock:
            if self.steps_left <= 0:
                raise ValueError(f"All {self.steps} steps of this plan are taken: plan again, which charges again.")
            self.steps_left -= 1
        if self.batch_size is None:
            mask = self._noise.coins(self._rate, self._size)
        else:
            mask = self._noise.choose(self.batch_size, self._size)
        if self._groups is None:
            rows = np.flatnonzero(mask)
            return rows, np.ones(rows.size, dtype=np.int64)
        counts = np.bincount(self._groups[mask], minlength=self._rows.shape[0]).astype(np.int64)
        rows = np.flatnonzero(counts)
        return rows, counts[rows]

    def __repr__(self) -> str:
        return f"NoisySums({self.steps_left} of {self.steps} steps left, {self.guarantee})"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("A plan can be neither copied nor pickled: its steps are paid for once.")


def charged_plan(
    rows: Any,
    groups: NDArray[np.integer[Any]] | None,
    budget: PrivacyBudget,
    neighbours: str,
    noise: NoiseSource,
    *,
    steps: int,
    delta: float,
    epsilon: float | None,
    noise_multiplier: float | None,
    sampling_rate: float | None,
    batch_size: int | None,
    sampling: str | None,
    accounting: str,
    width: int | tuple[int, int, int] | None = None,
) -> NoisySums:
    """Price a plan, charge it whole and hand it out; see :meth:`~pgmpy_dp.data.PrivateDataset.plan`."""
    size = int(rows.shape[0] if groups is None else groups.shape[0])
    method = next(name for name, relation in SAMPLINGS.items() if relation == neighbours)
    if sampling not in (None, method):
        raise ValueError(f"sampling={sampling!r} does not go with neighbours={neighbours!r}, which takes {method!r}.")
    delta = checked_delta(delta, zero_allowed=False)
    rate, batch = _sample_size(size, method, sampling_rate, batch_size)
    plan: dict[str, Any] = {"steps": steps, "sampling_rate": rate, "sampling": method}
    if epsilon is None and noise_multiplier is None:
        raise ValueError("A plan needs an epsilon, or a noise_multiplier that sets its price.")
    if noise_multiplier is None:
        assert epsilon is not None
        noise_multiplier = calibrate(epsilon, delta, **plan, accounting=accounting)
    # One number for the price and for the noise: that of a float16 prints as another one than it is.
    multiplier = float(exact_positive("noise_multiplier", noise_multiplier))
    cost = price(multiplier, delta, **plan)
    if not 0.0 < cost < math.inf:
        raise ValueError(f"noise_multiplier={noise_multiplier!r} gives no finite epsilon above 0 for this plan.")
    exact = exact_positive("epsilon", decimal_above(Fraction(cost)) if epsilon is None else epsilon)
    if Fraction(cost) > exact:
        raise ValueError(
            f"{steps} steps with noise_multiplier={multiplier:g} cost epsilon={cost:.6g} at delta={delta:g}, more "
            f"than the epsilon={float(exact):g} given: leave one of the two out."
        )
    versions = library_versions(noise.private)
    guarantee = Guarantee(
        decimal_above(exact), delta, None, neighbours, "sampled_gaussian", noise.private, versions=versions
    )
    if isinstance(width, tuple):
        grid = MomentGrid.of(width, multiplier, neighbours)
        _require_fine(guarantee, steps, *zip(grid.cells, grid.scales, strict=True))
    elif width is not None:
        scale = min(_grid(multiplier, one)[1] for one in (1.0, math.sqrt(2.0), 2.0))
        _require_fine(guarantee, steps, (width, scale))
    noise.discrete_gaussian(np.zeros(1, dtype=np.int64), 1.0)  # fails now where OpenDP is missing
    whose = protected(neighbours)
    charge = Charge(f"{steps} noisy sums", "sampled_gaussian", exact, delta=Fraction(str(delta)), protects=whose)
    try:
        budget.charge(charge)
    except BudgetExceededError as error:
        raise BudgetExceededError(f"{error} {_advice(budget, plan, float(exact), multiplier)}") from None
    return NoisySums(
        rows,
        groups,
        noise,
        guarantee,
        steps=steps,
        noise_multiplier=multiplier,
        sampling_rate=rate,
        batch_size=batch,
    )


def _grid(noise_multiplier: float, sensitivity: float) -> tuple[int, float]:
    """Norm bound and noise scale of a sum in grid steps: scale / (sensitivity * bound) >= noise multiplier."""
    bound = int(min(_GRID / (noise_multiplier * sensitivity), 2.0 * _GRID))
    return bound, noise_multiplier * sensitivity * bound * (1.0 + 2.0**-50)


def _require_fine(guarantee: Guarantee, steps: int, *parts: tuple[int, float]) -> None:
    """Refuse numbers of cells, with the scale of their noise, of which the grid costs more than its share of delta."""
    needed = sum(grid_delta(guarantee.epsilon, steps, cells, scale) for cells, scale in parts)
    if needed > guarantee.delta * GRID_SHARE:
        raise ValueError(
            f"A plan of {steps} steps with sums of {sum(cells for cells, _ in parts)} numbers needs a larger delta (or "
            f"smaller epsilon) than {guarantee.delta:g}: noise lives on a grid, and the grid's share of delta is too "
            "small."
        )


def _sample_size(
    size: int, method: str, sampling_rate: float | None, batch_size: int | None
) -> tuple[Fraction, int | None]:
    if (sampling_rate is None) == (batch_size is None):
        raise ValueError("A plan needs a sampling_rate or, where the number of records is public, a batch_size.")
    if method == "poisson":
        if sampling_rate is None:
            raise ValueError(
                'Under "add_remove" the number of records is private and samples have no fixed size: give a '
                "sampling_rate instead of batch_size."
            )
        return exact_positive("sampling_rate", sampling_rate), None
    if batch_size is None:
        batch_size = int(exact_positive("sampling_rate", sampling_rate) * size)
    if isinstance(batch_size, bool) or not isinstance(batch_size, (int, np.integer)) or not 1 <= batch_size <= size:
        raise ValueError(
            f"A sample must hold at least 1 and at most all {size} records, a public number; asked for {batch_size!r}."
        )
    return Fraction(int(batch_size), size), int(batch_size)


def _advice(budget: PrivacyBudget, plan: dict[str, Any], cost: float, multiplier: float) -> str:
    left = budget.remaining
    text = f"The plan's noise multiplier is {multiplier:.4g}, for epsilon={cost:.6g}."
    if left.epsilon > 0.0 and left.delta > 0.0:
        try:
            enough = calibrate(left.epsilon, left.delta, **plan)
        except ValueError:
            return f"{text} No noise makes it fit: plan fewer steps or smaller samples."
        text += f" A noise multiplier of {enough:.6g} fits, with epsilon={left.epsilon!r} and delta={left.delta!r}."
    return text


def checked_sum(statistic: Statistic, rows: Any, clip_norm: float) -> tuple[int, float]:
    """Try a statistic on a row of zeros, which is public; the width of its vectors, and the clip norm.

    Raises
    ------
    ValueError
        If the result or the norm is of the wrong kind.
    """
    clip = checked_norm(clip_norm)
    return _checked_vectors(statistic(_zero_row(rows)), 1, None)[1], clip


def checked_norm(clip_norm: float, name: str = "clip_norm") -> float:
    """Return a norm that records' vectors may be clipped to, or refuse it with a ValueError."""
    clip = float(exact_positive(name, clip_norm))
    if not 2.0**-20 <= clip <= 2.0**300:
        raise ValueError(f"{name} must be between 2**-20 and 2**300, got {clip_norm!r}: scale the statistic.")
    return clip


def _zero_row(rows: Any) -> Any:
    shape = (1, *rows.shape[1:])
    return sparse.csr_array(shape, dtype=rows.dtype) if sparse.issparse(rows) else np.zeros(shape, dtype=rows.dtype)


def _checked_vectors(vectors: Any, count: int, width: int | None) -> tuple[Any, int]:
    """A statistic's result as float64, dense by rows or CSR with each row in order, and its width."""
    kind = getattr(getattr(vectors, "dtype", None), "kind", None)
    if kind not in ("f", "i", "u", "b"):
        raise ValueError(f"The statistic must return an array of numbers, got {type(vectors).__name__}, kind {kind!r}.")
    shape = vectors.shape
    if len(shape) != 2 or shape[0] != count or shape[1] < 1 or (width is not None and shape[1] != width):
        wanted = f"({count}, {'d' if width is None else width})"
        raise ValueError(f"The statistic must return one vector a record, shape {wanted}, got shape {shape}.")
    with np.errstate(all="ignore"):  # a warning would tell of one record
        if sparse.issparse(vectors):
            return canonical_rows(vectors, np.float64), shape[1]
        # By rows: by columns, numpy adds one row's squares in another order than many rows'.
        return np.ascontiguousarray(vectors, dtype=np.float64), shape[1]


def canonical_rows(given: Any, dtype: Any) -> sparse.csr_array:
    """Sparse rows with each column once and in order; repeated entries are added in the order they stand in.

    Each row to the last bit what it would be alone: scipy's own sorts all rows, in no fixed order of equal columns, as
    soon as one of them is out of order.
    """
    entries = given.tocoo()
    count, width = entries.shape
    places, data = entries.row.astype(np.int64) * width + entries.col, entries.data.astype(dtype)
    if not (np.diff(places) > 0).all():
        order = np.argsort(places, kind="stable")
        places, first = np.unique(places[order], return_index=True)
        data = np.add.reduceat(data[order], first)
    ends = np.searchsorted(places, np.arange(count + 1) * width)
    return sparse.csr_array((data, places % width, ends), shape=(count, width))


def _margin(width: int) -> float:
    # A sum of squares is off by a factor of at most 1 + (terms + 2) 2**-53, in any order; products a little more.
    return 1.0 - (width + 64) * 2.0**-52


def _integer_rows(vectors: Any, clip: float, bound: int) -> Any:
    """Rows clipped to norm `clip` = `bound` grid steps, and cut off to whole steps towards zero.

    A row with NaN or infinity, or of a norm beyond floating-point numbers, becomes zero.
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
