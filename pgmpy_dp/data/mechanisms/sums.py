"""Gaussian sums over random samples of the records, for iterative methods.

Sensitivity. A record contributes an integer vector of norm at most B, in grid steps of clip_norm / B: see
:mod:`pgmpy_dp.data.mechanisms.integer_sums`. Adding or removing a record (Poisson samples) changes a sum by at most B;
replacing one (samples of fixed size) by at most 2 B, or sqrt(2) B if all entries are non-negative, since two such
vectors have a non-negative inner product. First and second moments are covered by
:class:`~pgmpy_dp.data.mechanisms.integer_sums.MomentGrid`.

Price. Every sum gets noise of the discrete Gaussian distribution, whose standard deviation is the noise multiplier
times the sensitivity. :func:`~pgmpy_dp.privacy.price` gives the cost of all steps under continuous noise, and
:func:`~pgmpy_dp.privacy.subsampling.grid_delta` accounts for the difference.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from pgmpy_dp.data.mechanisms.integer_sums import (
    CentredTables,
    Integers,
    MomentGrid,
    Moments,
    NoisyMoments,
    Statistic,
    Vector,
    checked_norm,
    checked_sum,
    vector_sum,
    zero_row,
)
from pgmpy_dp.data.mechanisms.mechanism import PrivateRecords, Public, Quote, Rows
from pgmpy_dp.privacy.budget import PrivacyLoss
from pgmpy_dp.privacy.checks import checked_delta, decimal_above, exact_positive
from pgmpy_dp.privacy.cost import Approx
from pgmpy_dp.privacy.noise import NoiseSource
from pgmpy_dp.privacy.subsampling import GRID_SHARE, SAMPLINGS, calibrate, grid_delta, price
from pgmpy_dp.release import Guarantee

# Grid steps: noise has a standard deviation of at most this, and a record's vector a norm of at most twice this. Sums
# over 2**32 records then fit 64-bit integers.
_GRID = 2**30
# Number of rows passed to a statistic at a time, and of numbers that it may return for them.
_MAX_ROWS, _MAX_NUMBERS = 4096, 2**22


@dataclass(frozen=True)
class _Priced:
    epsilon: float  # of the plan itself; its guarantee may include the cost of finding the states
    delta: float
    steps: int
    noise_multiplier: float
    sampling_rate: Fraction  # the exact rate that was priced; a float may be above it
    batch_size: int | None

    def require_fine(self, *parts: tuple[int, float]) -> None:
        """Raise if these numbers of cells with their noise scales need more than the grid's share of delta."""
        needed = sum(grid_delta(self.epsilon, self.steps, cells, scale) for cells, scale in parts)
        if needed > self.delta * GRID_SHARE:
            raise ValueError(
                f"A plan of {self.steps} steps with sums of {sum(cells for cells, _ in parts)} numbers needs a larger "
                f"delta (or smaller epsilon) than {self.delta:g}: noise lives on a grid, and the grid's share of delta "
                "is too small."
            )


@dataclass(frozen=True)
class SampledSums:
    """A plan of sums; see :meth:`pgmpy_dp.PrivateDataset.plan` for the parameters."""

    steps: int
    delta: float
    epsilon: float | Fraction | None = None
    noise_multiplier: float | None = None
    sampling_rate: float | Fraction | None = None
    batch_size: int | None = None
    sampling: str | None = None
    width: int | tuple[int, int, int] | None = None
    variables: tuple[str, ...] | None = None

    def quote(self, public: Public) -> Quote[_Priced]:
        """Price the whole plan; the terms are its noise multiplier and its sampling."""
        public.require_single_records()
        delta = checked_delta(self.delta, zero_allowed=False)
        rate, batch = self._sample(public)
        plan = self._plan(public)
        multiplier = self.noise_multiplier
        if multiplier is None:
            if self.epsilon is None:
                raise ValueError("A plan needs an epsilon, or a noise_multiplier that determines its price.")
            multiplier = calibrate(self.epsilon, delta, **plan)
        # One float for both price and noise: a float16 prints as another number than it is.
        multiplier = float(exact_positive("noise_multiplier", multiplier))
        cost = price(multiplier, delta, **plan)
        if not 0.0 < cost < math.inf:
            raise ValueError(f"noise_multiplier={multiplier!r} gives no finite epsilon above 0 for this plan.")
        epsilon = exact_positive("epsilon", decimal_above(Fraction(cost)) if self.epsilon is None else self.epsilon)
        if Fraction(cost) > epsilon:
            raise ValueError(
                f"{self.steps} steps with noise_multiplier={multiplier:g} cost epsilon={cost:.6g} at delta={delta:g}, "
                f"more than the given epsilon={float(epsilon):g}: leave out one of the two."
            )
        priced = _Priced(decimal_above(epsilon), delta, self.steps, multiplier, rate, batch)
        if isinstance(self.width, tuple):
            grid = MomentGrid.of(self.width, multiplier, public.neighbours)
            priced.require_fine(*zip(grid.cells, grid.scales, strict=True))
        elif self.width is not None:
            scale = min(_grid(multiplier, one)[1] for one in (1.0, math.sqrt(2.0), 2.0))
            priced.require_fine((self.width, scale))
        label = f"{self.steps} noisy sums"
        return Quote(public.cost(label, "sampled_gaussian", Approx(epsilon, Fraction(str(delta)))), priced)

    def read(self, quote: Quote[_Priced], records: PrivateRecords | Rows) -> Rows:
        """Return the rows for the statistics."""
        return records.rows(self.variables)

    def draw(self, quote: Quote[_Priced], public: Public, exact: Rows, noise: NoiseSource) -> NoisySums:
        """Return the sums, which are drawn step by step."""
        return NoisySums(exact, noise, quote.guarantee, quote.terms)

    def advice(self, public: Public, left: PrivacyLoss) -> str:
        """Advise a caller whose budget has less left than the plan costs."""
        priced = self.quote(public).terms
        text = f"The plan's noise multiplier is {priced.noise_multiplier:.4g}, for epsilon={priced.epsilon:.6g}."
        if left.epsilon > 0.0 and left.delta > 0.0:
            try:
                enough = calibrate(left.epsilon, left.delta, **self._plan(public))
            except ValueError:
                return f"{text} No noise makes it fit: plan fewer steps or smaller samples."
            text += f" A noise multiplier of {enough:.6g} fits, with epsilon={left.epsilon!r} and delta={left.delta!r}."
        return text

    def _plan(self, public: Public) -> dict[str, Any]:
        """Return the plan as arguments of `price` and `calibrate`."""
        return {"steps": self.steps, "sampling_rate": self._sample(public)[0], "sampling": _method(public)}

    def _sample(self, public: Public) -> tuple[Fraction, int | None]:
        """Return the exact sampling rate, and the size of samples where it is fixed."""
        if self.sampling not in (None, method := _method(public)):
            raise ValueError(
                f"sampling={self.sampling!r} does not match neighbours={public.neighbours!r}, which needs {method!r}."
            )
        rate, batch, total = self.sampling_rate, self.batch_size, public.total
        if (rate is None) == (batch is None):
            raise ValueError("A plan needs a sampling_rate or, where the number of records is public, a batch_size.")
        if total is None:
            if rate is None:
                raise ValueError(
                    'Under "add_remove" the number of records is private and samples have no fixed size: give a '
                    "sampling_rate instead of batch_size."
                )
            return exact_positive("sampling_rate", rate), None
        if batch is None:
            batch = int(exact_positive("sampling_rate", rate) * total)
        if isinstance(batch, bool) or not isinstance(batch, (int, np.integer)) or not 1 <= batch <= total:
            raise ValueError(
                f"A sample must hold at least 1 and at most all {total} records, a public number; got {batch!r}."
            )
        return Fraction(int(batch), total), int(batch)


class NoisySums:
    """A paid plan: at most `steps` Gaussian sums over random samples of the records.

    Made by :meth:`~pgmpy_dp.data.PrivateDataset.plan`; it can be neither copied nor pickled. Sums are charged with the
    plan, whether they are used or not.

    Attributes
    ----------
    steps, steps_left : int
    noise_multiplier : float
        Standard deviation of the noise divided by the L2 sensitivity of a sum.
    sampling : {"poisson", "without_replacement"}
    sampling_rate : float
        Probability that a record is in a sample.
    batch_size : int or None
        Size of a sample if it is fixed.
    guarantee : Guarantee
        Guarantee of the whole plan.
    """

    def __init__(self, rows: Rows, noise: NoiseSource, guarantee: Guarantee, priced: _Priced) -> None:
        self._rows, self._groups, self._size, self._noise = rows.values, rows.groups, rows.size, noise
        self._lock, self._process = threading.Lock(), os.getpid()
        self.guarantee, self._priced = guarantee, priced
        self.steps = self.steps_left = priced.steps
        self._rate, self.batch_size = priced.sampling_rate, priced.batch_size
        self.noise_multiplier, self.sampling_rate = priced.noise_multiplier, float(priced.sampling_rate)
        self.sampling = "poisson" if self.batch_size is None else "without_replacement"

    def noisy_sum(self, statistic: Statistic, clip_norm: float, *, non_negative: bool = False) -> Vector:
        """Sum one vector per record over a fresh random sample, with noise. Uses one step of the plan.

        Parameters
        ----------
        statistic : callable
            Function of m records, as rows of codes of shape (m, number of variables), that returns their vectors as an
            array or scipy sparse array of shape (m, d). To the last bit, each vector must depend only on its own record
            and on public values: rows come in any number and order, and equal records only once. (Products by BLAS
            violate this: use :func:`~pgmpy_dp.data.mechanisms.integer_sums.row_products`.)
        clip_norm : float
            Longer vectors are scaled down to this Euclidean norm.
        non_negative : bool
            Replace negative entries by 0. Samples of fixed size then need less noise, by a factor of sqrt(2).

        Returns
        -------
        ndarray of float64, shape (d,)
            In the units of the statistic.

        Raises
        ------
        ValueError
            If no step is left, an argument is out of range, or the statistic's result is of the wrong kind. The
            statistic is tried on a row of zeros first.

        Notes
        -----
        A vector that contains NaN or infinity counts as zero: an error would reveal that there is such a record.
        """
        width, clip = checked_sum(statistic, self._rows, clip_norm)
        bound, scale = self._grid(width, math.sqrt(2.0) if non_negative else 2.0)
        parts = self._parts(max(1, min(_MAX_ROWS, _MAX_NUMBERS // width if width < 2**16 else 64)))
        total = vector_sum(statistic, parts, width, clip, bound, non_negative=non_negative)
        return self._noisy(total, scale, clip / bound)

    def noisy_tables(
        self,
        cliques: Sequence[Sequence[int]],
        shape: Sequence[int],
        clip_norm: float,
        centre: Vector | None = None,
    ) -> Vector:
        """Sum clipped clique indicators over a fresh random sample, with noise. Uses one step of the plan.

        A record's vector is ``phi - centre``, where phi concatenates all cliques' tables with 1 in the record's cell
        and 0 elsewhere, and the public centre is in [-1, 1], rounded to multiples of 2**-20. This equals `noisy_sum` of
        these vectors, but counts instead of building them (Bernstein et al. 2017 use this sum for private gradients).
        """
        clip = checked_norm("clip_norm", clip_norm)
        tables = CentredTables(cliques, shape, centre)
        clip = min(clip, tables.longest)  # the norm of the longest vector
        bound, scale = self._grid(tables.cells, math.sqrt(2.0) if centre is None else 2.0)
        room = tables.room(bound)
        rows, weights = self._step()
        return self._noisy(tables.sum(self._rows[rows], weights, clip, room), scale, clip / bound)

    def noisy_moments(self, moments: Callable[[Any], Moments], bound: float) -> NoisyMoments:
        """Sum weighted vectors and their weighted outer products, with noise. Uses one step of the plan.

        These are the statistics of regressions with Gaussian latent responses: sum u x and sum w E[x x'], for several
        weights u in [-1, 1] and w in [0, 1] at a time. This equals `noisy_sum` of both stacked, but with less noise
        where a record is replaced (`MomentGrid` derives the sensitivity), and without building a vector per record.

        Like a statistic of `noisy_sum`, `moments` must depend only on each record and on public values, and is tried on
        a row of zeros first. `bound` limits the root of the trace of E[x x']: vectors and variances of records
        beyond it are scaled down, weights are clipped, and records that contain NaN or infinity count as zero.
        """
        shape = moments(zero_row(self._rows)).checked(1).shape
        bound = checked_norm("bound", bound)
        grid = MomentGrid.of(shape, self.noise_multiplier, self.guarantee.neighbours)
        self._priced.require_fine(*zip(grid.cells, grid.scales, strict=True))
        sample = self._parts(max(1, min(_MAX_ROWS, _MAX_NUMBERS // max(shape))))
        parts = ((moments(rows).checked(weights.size, shape), weights) for rows, weights in sample)
        sums = grid.sums(parts, bound)
        drawn = [self._noise.discrete_gaussian(cells, scale) for cells, scale in zip(sums, grid.scales, strict=True)]
        return grid.noisy(drawn, bound)

    def _grid(self, cells: int, replacing: float) -> tuple[int, float]:
        """Return a record's bound and the noise scale; a replaced record changes a sum by `replacing` bounds."""
        bound, scale = _grid(self.noise_multiplier, 1.0 if self.sampling == "poisson" else replacing)
        self._priced.require_fine((cells, scale))
        return bound, scale

    def _noisy(self, total: Integers, scale: float, step: float) -> Vector:
        """Add noise to a sum, and return it in the units of the statistic."""
        noisy: Vector = self._noise.discrete_gaussian(total, scale).astype(np.float64) * step
        return noisy

    def _parts(self, maximum: int) -> Iterator[tuple[Any, Integers]]:
        """Use a step: yield its sample's rows, at most `maximum` at a time, and how many of its records have each."""
        rows, weights = self._step()
        for start in range(0, rows.size, maximum):
            yield self._rows[rows[start : start + maximum]], weights[start : start + maximum]

    def _step(self) -> tuple[Integers, Integers]:
        """Use a step: draw the row numbers of a fresh sample, and the number of its records with each row."""
        if os.getpid() != self._process:
            raise ValueError("This plan is a copy in a forked process: take its steps in the process that charged it.")
        with self._lock:
            if self.steps_left <= 0:
                raise ValueError(f"All {self.steps} steps of this plan are used: plan again, which charges again.")
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


def _method(public: Public) -> str:
    """Return the kind of sampling, which follows from the neighbour relation."""
    return next(name for name, relation in SAMPLINGS.items() if relation == public.neighbours)


def _grid(noise_multiplier: float, sensitivity: float) -> tuple[int, float]:
    """Return the norm bound and noise scale of a sum in grid steps: scale / (sensitivity * bound) >= multiplier."""
    bound = int(min(_GRID / (noise_multiplier * sensitivity), 2.0 * _GRID))
    return bound, noise_multiplier * sensitivity * bound * (1.0 + 2.0**-50)
