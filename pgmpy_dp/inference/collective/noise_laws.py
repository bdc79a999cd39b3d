"""Distributions of additive noise on a vector of counts, or of linear functions of counts.

A noise object holds the observations and the noise of each row. It provides everything that depends on the
distribution: densities and derivatives, the dual of the count problem, simulated draws, tails. One vector may have rows
with different distributions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference.tables.table import Layout, Scope, Table, Variable, Vector

# Number of scales within which the hyperbolic density in place of a Laplace density is rounded.
_ROUNDING = 1.0


@dataclass(frozen=True, eq=False)
class _OneLaw:
    """Independent noise per row, of mean zero and this variance in counts squared."""

    observed: Vector
    variance: Any

    unit: ClassVar[float]  # variance of noise of scale 1
    kurtosis: ClassVar[float]

    @classmethod
    def of_scale(cls, observed: Vector, scale: Vector) -> Self:
        """Return noise of this scale."""
        return cls(observed, cls.unit * np.square(scale))

    @cached_property
    def scale(self) -> Vector:
        """The distribution's own parameter: b of Laplace noise, sigma of Gaussian noise."""
        return np.sqrt(self.variance / self.unit)

    def take(self, rows: NDArray[Any]) -> Self:
        """Keep some rows, given by a mask or by indices, in their order."""
        return replace(self, observed=self.observed[rows], variance=self.variance[rows])

    def at_least(self, variance: float) -> Self:
        """Raise smaller variances to this one."""
        return replace(self, variance=np.maximum(self.variance, variance))


class LaplaceNoise(_OneLaw):
    """Laplace noise of scale b, whose variance is 2 b^2."""

    unit = 2.0
    kurtosis = 6.0

    def log_density(self, counts: Vector) -> float:
        """Sum log p(observed | counts) over the rows, in nats."""
        return float(-(np.abs(self.observed - counts) / self.scale + np.log(2 * self.scale)).sum())

    def gradient(self, counts: Vector) -> Vector:
        """Compute the subgradient sign(observed - counts) / scale, 0 where they are equal."""
        return np.sign(self.observed - counts) / self.scale

    def loss(self, counts: Vector) -> float:
        """Compute sum(|y - n| / scale)."""
        return float((np.abs(self.observed - counts) / self.scale).sum())

    def gap(self, counts: Vector, multipliers: Vector) -> float:
        """Compute sum(|y - n| / scale - l (y - n)) for multipliers |l| <= 1 / scale: zero only at subgradients."""
        residual = self.observed - counts
        return float((np.abs(residual) / self.scale - multipliers * residual).sum())

    @property
    def conjugate(self) -> tuple[Vector, Vector]:
        """Return q and c of the loss's convex conjugate, q l^2 / 2 for multipliers |l| <= c."""
        return np.zeros_like(self.scale), 1.0 / self.scale

    def sampled(self, sampling: Vector, contrasts: Any = False) -> SmoothedLaplaceNoise:
        """Add sampling of this variance to the noise: both are then relative to expected counts.

        An observation of a contrast also keeps the weight that its noise gives it, so `contrasts` makes no difference.
        """
        return SmoothedLaplaceNoise(self.observed, self.scale, np.sqrt(self.scale**2 + sampling))

    def hyperbolic(self) -> tuple[Vector, Vector]:
        """Return scale and squared corner of a hyperbolic density with the same variance.

        exp(-sqrt(r^2 + (c s)^2) / s) has the variance c s^2 K_2(c) / K_1(c), with modified Bessel functions K.
        """
        from scipy.special import kn  # slow to import, and measuring does not need it

        fitted = self.scale * math.sqrt(2.0 / (_ROUNDING * float(kn(2, _ROUNDING) / kn(1, _ROUNDING))))
        return fitted, (_ROUNDING * fitted) ** 2

    def draw(self, draws: int, generator: np.random.Generator) -> Vector:
        """Simulate the noise; shape (draws, rows)."""
        drawn: Vector = generator.laplace(scale=math.sqrt(0.5), size=(draws, self.observed.size))
        drawn *= np.sqrt(self.variance)
        return drawn

    @staticmethod
    def maximum(level: float) -> float:
        """Return the number of standard deviations that noise exceeds, on one side, with probability `level`.

        Examples
        --------
        >>> round(LaplaceNoise.maximum(0.025), 2), round(GaussianNoise.maximum(0.025), 2)
        (2.12, 1.96)
        """
        return math.log(0.5 / level) / math.sqrt(2)


class GaussianNoise(_OneLaw):
    """Gaussian noise; its scale is the standard deviation."""

    unit = 1.0
    kurtosis = 3.0

    def log_density(self, counts: Vector) -> float:
        """Sum log p(observed | counts) over the rows, in nats."""
        residual = (self.observed - counts) / self.scale
        return float(-(residual**2 / 2 + np.log(self.scale) + np.log(2 * np.pi) / 2).sum())

    def gradient(self, counts: Vector) -> Vector:
        """Compute (observed - counts) / scale^2."""
        return (self.observed - counts) / self.scale**2

    def loss(self, counts: Vector) -> float:
        """Compute sum((y - n)^2 / scale^2) / 2."""
        return float(((self.observed - counts) ** 2 / self.scale**2).sum() / 2)

    def gap(self, counts: Vector, multipliers: Vector) -> float:
        """Compute sum((y - n - scale^2 l)^2 / scale^2) / 2 for multipliers l: zero only at the gradient."""
        square = self.scale**2
        return float(((self.observed - counts - square * multipliers) ** 2 / square).sum() / 2)

    def curvature(self, counts: Vector) -> Vector:
        """Compute minus the derivative of the gradient: 1 / scale^2."""
        return np.broadcast_to(1.0 / self.scale**2, counts.shape)

    @property
    def conjugate(self) -> tuple[Vector, Vector]:
        """Return q and c of the loss's convex conjugate, q l^2 / 2 for multipliers |l| <= c."""
        return self.scale**2, np.full_like(self.scale, np.inf)

    def sampled(self, sampling: Vector, contrasts: Any = False) -> GaussianNoise:
        """Add sampling of this variance to the noise of counts: both are then relative to expected counts.

        It is not added where `contrasts` is true. Contrasts of a table vary together: their own variances, taken for
        independent, would hide that a cell is empty.
        """
        return GaussianNoise(self.observed, self.variance + np.where(contrasts, 0.0, sampling))

    def hyperbolic(self) -> tuple[Vector, Vector]:
        """Return the scale, and corners of -1, which denote a Gaussian density."""
        return self.scale, np.full_like(self.scale, -1.0)

    def draw(self, draws: int, generator: np.random.Generator) -> Vector:
        """Simulate the noise; shape (draws, rows)."""
        drawn = generator.standard_normal((draws, self.observed.size))
        drawn *= np.sqrt(self.variance)
        return drawn

    @staticmethod
    def maximum(level: float) -> float:
        """Return the number of standard deviations that noise exceeds; see `LaplaceNoise.maximum`."""
        from scipy.special import ndtri

        return float(-ndtri(level))


@dataclass(frozen=True, eq=False)
class SmoothedLaplaceNoise:
    """Expected log density of Laplace noise if the noiseless count is Normal(counts, spread^2).

    It is quadratic in the residual within the spread and linear beyond: a residual of many scales pulls no harder than
    one of a few. It is concave in the counts.
    """

    observed: Vector
    scale: Vector
    spread: Vector  # positive

    def log_density(self, counts: Vector) -> float:
        """Sum E[log p(observed | n)] over the rows, in nats, without the constant -log(2 scale)."""
        from scipy.special import erf

        residual = self.observed - counts
        standard = residual / (np.sqrt(2.0) * self.spread)
        expected = residual * erf(standard) + np.sqrt(2.0 / np.pi) * self.spread * np.exp(-(standard**2))
        return float(-(expected / self.scale).sum())

    def gradient(self, counts: Vector) -> Vector:
        """Compute erf(residual / (sqrt(2) spread)) / scale."""
        from scipy.special import erf

        return erf((self.observed - counts) / (np.sqrt(2.0) * self.spread)) / self.scale

    def curvature(self, counts: Vector) -> Vector:
        """Compute minus the derivative of the gradient: sqrt(2 / pi) exp(-r^2 / (2 spread^2)) / (spread scale)."""
        standard = (self.observed - counts) / self.spread
        return np.sqrt(2.0 / np.pi) * np.exp(-(standard**2) / 2) / (self.spread * self.scale)


@dataclass(frozen=True, eq=False)
class ByRows:
    """Delegates different rows to different objects, and has the attributes and methods that these share.

    Arrays among the arguments of a method have an entry per row. Of the parts' answers, numbers are added, arrays
    combined along their last axis in the order of all rows, tuples entry by entry, and objects delegated to in turn.
    """

    parts: tuple[Any, ...]
    rows: tuple[NDArray[np.int64], ...]  # ascending indices of the rows of each part; together they are all rows

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        shared = [getattr(part, name) for part in self.parts]
        if not callable(shared[0]):
            return self._combined(shared)

        def method(*given: Any) -> Any:
            answers = []
            for own, rows in zip(shared, self.rows, strict=True):
                answers.append(own(*(each[rows] if isinstance(each, np.ndarray) else each for each in given)))
            return self._combined(answers)

        return method

    def _combined(self, answers: Sequence[Any]) -> Any:
        if isinstance(answers[0], tuple):
            return tuple(map(self._combined, zip(*answers, strict=True)))
        if isinstance(answers[0], float):
            return sum(answers)
        if not isinstance(answers[0], np.ndarray):
            return replace(self, parts=tuple(answers))
        result = np.empty((*answers[0].shape[:-1], sum(rows.size for rows in self.rows)))
        for own, rows in zip(answers, self.rows, strict=True):
            result[..., rows] = own
        return result

    def take(self, rows: NDArray[Any]) -> ByRows:
        """Keep some rows, given by a mask or by indices, in their order."""
        kept = np.arange(sum(own.size for own in self.rows))[rows]
        inside = [np.isin(kept, own) for own in self.rows]
        positions = [np.searchsorted(own, kept[within]) for own, within in zip(self.rows, inside, strict=True)]
        parts = tuple(part.take(position) for part, position in zip(self.parts, positions, strict=True))
        return ByRows(parts, tuple(map(np.flatnonzero, inside)))


Law = type[LaplaceNoise] | type[GaussianNoise]
Noise = LaplaceNoise | GaussianNoise | ByRows
SampledNoise = SmoothedLaplaceNoise | GaussianNoise | ByRows


def end_to_end(noises: Sequence[Any]) -> Noise:
    """Concatenate noise on several vectors; distributions are kept."""
    ends = np.cumsum([0, *(noise.observed.size for noise in noises)])
    laws: dict[Law, list[tuple[Any, NDArray[np.int64]]]] = {}
    for noise, start in zip(noises, ends, strict=False):
        several = isinstance(noise, ByRows)
        own = zip(noise.parts, noise.rows, strict=True) if several else [(noise, np.arange(noise.observed.size))]
        for part, rows in own:
            laws.setdefault(type(part), []).append((part, rows + start))
    parts = tuple(
        law(*(np.concatenate([getattr(part, name) for part, _ in own]) for name in ("observed", "variance")))
        for law, own in laws.items()
    )
    if len(parts) == 1:
        return parts[0]
    return ByRows(parts, tuple(np.concatenate([rows for _, rows in own]) for own in laws.values()))


@dataclass(frozen=True, eq=False)
class LinearObservations:
    """Observations y = A n + noise, where n are the counts of some tables.

    For noisy tables A is the identity. For noisy coefficients each row of A is a product of contrasts: noise is
    independent only on A n, and would be correlated on the counts themselves.
    """

    cliques: tuple[Scope, ...]  # the tables whose concatenated counts are n. Tables of several releases may repeat
    noise: Noise  # y and the distribution of its noise, in records
    owners: NDArray[np.int64]
    matrix: Any  # A

    @cached_property
    def _squares(self) -> Any:
        return None if self.matrix is None else self.matrix.multiply(self.matrix).tocsr()

    @cached_property
    def sums(self) -> Any:
        """A as a sparse array, even if it is the identity."""
        from scipy import sparse

        return sparse.csr_array(sparse.eye_array(self.owners.size)) if self.matrix is None else self.matrix

    @cached_property
    def contrasts(self) -> NDArray[np.bool_]:
        """Whether each observation combines several counts."""
        if self.matrix is None:
            return np.zeros(self.owners.size, dtype=bool)
        return np.diff(self.matrix.tocsr().indptr) > 1

    def expected(self, counts: Vector) -> Vector:
        """Compute A n."""
        return counts if self.matrix is None else self.matrix @ counts

    def to_counts(self, values: Vector) -> Vector:
        """Compute A' v: derivatives by the counts from derivatives by the observations."""
        return values if self.matrix is None else self.matrix.T @ values

    def expected_squares(self, values: Vector) -> Vector:
        """Multiply A, with its entries squared, by values of the counts' shape."""
        return values if self._squares is None else self._squares @ values

    def squares_to_counts(self, values: Vector) -> Vector:
        """Apply the transpose of `expected_squares`."""
        return values if self._squares is None else self._squares.T @ values

    @property
    def of_tables(self) -> Self:
        """The observations without those of numbers of records."""
        rows = self.owners >= 0
        if rows.all():
            return self
        matrix = None if self.matrix is None else self.matrix[np.flatnonzero(rows)]
        return replace(self, noise=self.noise.take(rows), owners=self.owners[rows], matrix=matrix)

    def ordered(self, cliques: tuple[Scope, ...], cardinalities: Mapping[Variable, int]) -> Self:
        """Reorder the axes of each table as in another name of it."""
        if cliques == self.cliques:
            return self
        layout = Layout.of(cardinalities, self.cliques)
        old = zip(self.cliques, layout.split(np.arange(layout.size, dtype=np.float64)), cliques, strict=True)
        moved = [Table(clique, numbers).margin(name).values.ravel() for clique, numbers, name in old]
        cells = np.concatenate(moved).astype(np.int64)
        if self.matrix is None:
            return replace(self, cliques=cliques, noise=self.noise.take(cells))
        return replace(self, cliques=cliques, matrix=self.matrix[:, cells])

    def only(self, cliques: Sequence[Scope]) -> Self:
        """Keep the observations of some tables; coefficients are all kept, since those of one table inform others."""
        if self.matrix is not None or set(self.cliques) <= set(cliques):
            return self
        kept = [number for number, clique in enumerate(self.cliques) if clique in cliques]
        rows = np.isin(self.owners, kept)
        return replace(
            self,
            cliques=tuple(self.cliques[number] for number in kept),
            noise=self.noise.take(rows),
            owners=np.searchsorted(kept, self.owners[rows]),
        )
