"""A union whose tables are shrunk towards what its parts have in common: partial pooling by empirical Bayes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference.collective.linear_observations import LinearObservations
from pgmpy_dp.inference.collective.noise_laws import GaussianNoise, Law, end_to_end
from pgmpy_dp.inference.tables.table import Table, Vector
from pgmpy_dp.privacy.guarantee import Guarantee
from pgmpy_dp.release.observations import LEAST_VARIANCE, IndependentTables, Variance
from pgmpy_dp.release.united_marginals import UnitedMarginals
from pgmpy_dp.schema import Clique, Schema

# Standard deviations of a part from the others that are averaged over, in units of the mean share of a cell, and their
# prior before the union is seen: half at 0, half even in the logarithm. It weighs as much as one interaction.
_GRID = np.concatenate([[0.0], np.geomspace(1e-3, 3.0, 40)])
_PRIOR = np.concatenate([[0.5], np.full(40, 0.5 / 40)])
# Rounds of EM, and the number of interactions that the distribution of all parts weighs as in that of one part.
_ROUNDS, _COMMON = 20, 3.0


@dataclass(frozen=True, eq=False, repr=False)
class PartiallyPooledMarginals(
    UnitedMarginals, kind="partially_pooled_tables", properties=("variable", "overlap", "parts")
):
    """Union of releases in which each part borrows from the others to the extent that its noise requires.

    Fits use its tables instead of the union's, so that the parameters of a small or noisy part shrink towards the
    common ones: use it if parts differ, but not in everything. It costs no privacy. Its parameters are those of
    `UnitedMarginals`; `of` makes it from such a union.

    Attributes
    ----------
    tables : mapping of clique to ndarray
        For every clique that some part measured, the estimated counts of each part. A part that did not measure it has
        the common interactions, with its own tables of fewer variables.
    variances : mapping of clique to float
        The mean posterior variance of their cells, beyond the sampling of the part's records.

    Notes
    -----
    The shares of a part's table are the sum of interactions, one for each subset A of its variables: a main effect for
    a variable, a two-way interaction for a pair and so on. Every table with the variables A measures the interaction of
    A, and these measurements are averaged by precision. In part s let c_s be the interaction, in d dimensions, with
    variance w_s of noise and sampling in each. The model is

        c_s ~ Normal(m, (t_s^2 + w_s) I),    m flat,

    and t_s, relative to the mean share of a cell, has a distribution on a grid that includes 0. That of each part is
    estimated from all its interactions, and drawn to that of all parts, by EM. A part's own interaction has the mean
    m' + (t_s^2 + v) / (t_s^2 + v + w_s) (c_s - m') over t_s, where m' and its variance v come from the other parts
    alone, each with the mean of 1 / (t^2 + w). So parts are alike where nothing tells them apart, the interaction of
    two variables may be common though each variable is not, one part may be unlike all others, and a part with many
    records keeps its own.

    A network of each part by itself is fitted to counts of as many records as would leave the sampling error of its
    interactions: its own, and more the more it borrows. Bounds are computed from the posterior variances, and count the
    sampling of the part's own records in full; where parts differ a little, 90 % bounds hold in about 86 % of cases.

    Examples
    --------
    >>> from pgmpy_dp.release import Guarantee, NoisyMarginals, union
    >>> from pgmpy_dp.schema import Schema
    >>> schema, promise = Schema({"smoke": ["yes", "no"]}), Guarantee(1.0, 0.0, None, "add_remove", "laplace", True)
    >>> parts = {
    ...     site: NoisyMarginals(schema, {("smoke",): np.array(counts)}, {("smoke",): 1.0}, promise)
    ...     for site, counts in {"north": [300, 700], "west": [310, 690], "south": [9, 11]}.items()
    ... }
    >>> both = PartiallyPooledMarginals.of(union(parts))
    >>> (both.tables["site", "smoke"].T / both.tables["site", "smoke"].sum(axis=1)).round(2)[0].tolist()
    [0.31, 0.31, 0.31]
    """

    @classmethod
    def of(cls, union: UnitedMarginals) -> Self:
        """Let the parts of a union borrow from each other."""
        return cls(union.parts, union.variable, union.overlap)

    @property
    def as_measured(self) -> UnitedMarginals:
        """The union itself: what a part borrowed has errors in common with others."""
        return UnitedMarginals(self.parts, self.variable, self.overlap)

    @property
    def law(self) -> Law:
        """Posterior distributions are treated as Gaussian noise."""
        return GaussianNoise

    def _whole(self, clique: Clique) -> bool:
        return True

    @cached_property
    def _interactions(self) -> dict[Clique, _Shrunk]:
        """The parts' interactions in shares, for each subset of measured cliques."""
        order, totals = _order(self.schema), self.totals
        sums: dict[Clique, list[Any]] = {}
        precisions: dict[Clique, Vector] = {}
        for number, part in enumerate(self.parts.values()):
            for clique, table in part.tables.items():
                for subset in _subsets(clique, order):
                    margin = Table(clique, table.astype(np.float64)).margin(subset).values
                    weight = margin.size / max(part.variances[clique] * table.size, 1e-200)
                    sums.setdefault(subset, [0.0] * len(totals))
                    sums[subset][number] = sums[subset][number] + weight * _interaction(margin)
                    precisions.setdefault(subset, np.zeros(len(totals)))[number] += weight
        found = {}
        for subset, own in sums.items():
            shape, precision = self.schema.shape(subset), precisions[subset]
            held = precision > 0
            values = np.zeros((len(totals), *shape))
            for number in np.flatnonzero(held).tolist():
                values[number] = own[number] / precision[number] / totals[number]
            noise = np.full(len(totals), np.inf)
            noise[held] = 1.0 / precision[held] / totals[held] ** 2
            if math.prod(states - 1 for states in shape):
                found[subset] = _Effect(values, noise, totals)
        prior = np.tile(_PRIOR, (len(totals), 1))
        for _ in range(_ROUNDS):
            each = np.stack([effect.step(prior) for effect in found.values()])  # shape (interactions, parts, grid)
            common = (each.sum(axis=(0, 1)) + _PRIOR) / (each.sum() + 1.0)
            prior = (each.sum(axis=0) + _COMMON * common) / (each.sum(axis=(0, 2)) + _COMMON)[:, None]
        return {subset: effect.shrunk(prior) for subset, effect in found.items()}

    def _counts(self, records: Vector) -> dict[Clique, tuple[Vector, Vector]]:
        """Compute tables of so many records of each part, and the variance of their cells beyond sampling."""
        order, found = _order(self.schema), {}
        for clique in self._measured:
            cells = self.schema.cells(clique)
            shares = np.full((len(records), *self.schema.shape(clique)), 1.0 / cells)
            variance = np.zeros(len(records))
            for subset in (held for held in _subsets(clique, order) if held in self._interactions):
                effect, part = self._interactions[subset], self.schema.cells(subset) / cells
                shares += Table((-1, *subset), effect.values).expand((-1, *clique)) * part
                variance += (effect.variance - effect.chance / records) * part**2
            counts = shares * records.reshape(-1, *[1] * len(clique))
            found[self.variable, *clique] = counts, np.maximum(variance * records**2, LEAST_VARIANCE)
        return found

    @cached_property
    def _slices(self) -> dict[Clique, tuple[Vector, Vector]]:
        return self._counts(self.totals)

    @property
    def tables(self) -> Mapping[Clique, NDArray[np.float64]]:  # type: ignore[override]
        """The estimated tables of counts."""
        return MappingProxyType({clique: table for clique, (table, _) in self._slices.items()})

    @property
    def variances(self) -> Mapping[Clique, float]:  # type: ignore[override]
        """The mean variance of the cells of each table."""
        return MappingProxyType({clique: float(each.mean()) for clique, (_, each) in self._slices.items()})

    def _cell_variance(self, measured: Clique, clique: Clique) -> Variance:
        table, each = self._slices[measured]
        full = np.broadcast_to(each.reshape(-1, *[1] * (table.ndim - 1)), table.shape)
        return Table(measured, full).margin(clique).values

    @property
    def apart_releases(self) -> Sequence[Any]:
        """The tables that models of each part by itself are fitted to."""
        effects, totals = self._interactions.values(), self.totals
        one, drawn = sum(effect.chance for effect in effects), np.asarray(sum(effect.drawn for effect in effects))
        records = np.divide(one, drawn, out=totals.copy(), where=drawn > 0)
        slices = self._counts(records)
        return [
            _PooledPart(
                part.schema.join(self.schema.select(self.schema.variables[1:])),
                {clique[1:]: table[number] for clique, (table, _) in slices.items()},
                {clique[1:]: float(each[number]) for clique, (_, each) in slices.items()},
                float(records[number]),
                part.total_variance * float(records[number] / totals[number]) ** 2,
                self.guarantee,
            )
            for number, part in enumerate(self.parts.values())
        ]

    def noise(self, clique: Clique) -> tuple[float, float]:
        """Return the standard deviation of the error in a cell of a table, twice; of finer histograms, as the union."""
        if clique in self.details:
            return super().noise(clique)
        deviation = self.variances[clique] ** 0.5
        return deviation, deviation

    def marginal(
        self, clique: Clique, tables: Mapping[Clique, NDArray[np.float64]] | None = None
    ) -> tuple[Vector, float]:
        """Return the least noisy table of a clique, and the mean variance of its cells."""
        return IndependentTables.marginal(self, clique, tables)

    def observe(self, variables: Sequence[str]) -> LinearObservations:
        """Return observations of the marginals of these variables; without the union's, the sums over its parts."""
        if self.variable not in variables:
            return super().observe(variables)
        seen = IndependentTables.observe(self, variables)
        if (self.variable,) in seen.cliques:
            return seen
        totals = self.law(self.totals, self._total_variances)
        owners = np.append(seen.owners, np.full(len(self.parts), len(seen.cliques)))
        return LinearObservations((*seen.cliques, (self.variable,)), end_to_end([seen.noise, totals]), owners, None)


@dataclass(frozen=True, eq=False)
class _PooledPart(IndependentTables):
    """The tables of one part, read like a release."""

    schema: Schema
    tables: Mapping[Clique, NDArray[np.float64]]
    variances: Mapping[Clique, float]
    total: float
    total_variance: float
    guarantee: Guarantee
    law: ClassVar[Law] = GaussianNoise  # type: ignore[misc]
    chosen_among: ClassVar[Mapping[Clique, int]] = MappingProxyType({})

    @property
    def variables(self) -> tuple[str, ...]:
        """All variables, since every part has a table of each."""
        return self.schema.variables


@dataclass(frozen=True)
class _Shrunk:
    """An interaction in each part: its posterior mean, and the posterior variance of a cell.

    Of that variance `drawn` is due to the sampling of records; it is `chance` for a single record.
    """

    values: Vector
    variance: Vector
    drawn: Vector
    chance: float


def _order(schema: Schema) -> Mapping[str, int]:
    return {variable: place for place, variable in enumerate(schema.variables)}


def _subsets(clique: Clique, order: Mapping[str, int]) -> Iterable[Clique]:
    ordered = sorted(clique, key=order.__getitem__)
    return [subset for size in range(1, len(ordered) + 1) for subset in combinations(ordered, size)]


def _interaction(table: Vector) -> Vector:
    """Remove the lower-order effects from a table: every mean along an axis becomes 0."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


class _Effect:
    """An interaction in each part, in shares, and the precision with which each estimates the common one."""

    def __init__(self, values: Vector, noise: Vector, totals: Vector) -> None:
        """Take values of shape (parts, ...) and their noise variance in each dimension, infinite if not measured."""
        self.shape, self.values, self.held = values.shape, values.reshape(len(values), -1), np.isfinite(noise)
        self.cells, self.dimensions = values[0].size, math.prod(states - 1 for states in values.shape[1:])
        common = np.average(self.values[self.held], axis=0, weights=totals[self.held])
        # Mean variance of one record in a dimension.
        self.chance = max(1.0 / self.cells - float(common @ common) / self.dimensions, 0.0)
        self.sampling = self.chance / totals
        self.error = np.where(self.held, noise, 1.0) + self.sampling
        self.squares = (_GRID / self.cells) ** 2
        self.precision = np.where(self.held, 1.0 / self.error, 0.0)

    def _others(self) -> tuple[Vector, Vector]:
        """Return the mean of the other parts and its variance, for each part; infinite if no other measured it."""
        rest = np.maximum(self.precision.sum() - self.precision, 0.0)
        alone = rest <= 1e-12 * self.precision.sum()
        sums = self.precision @ self.values - self.precision[:, None] * self.values
        return sums / np.where(alone, 1.0, rest)[:, None], np.where(alone, np.inf, 1.0 / np.where(alone, 1.0, rest))

    def _weights(self, prior: Vector) -> Vector:
        """Compute the posterior of each part's standard deviation, of shape (parts, grid)."""
        means, spread = self._others()
        told = self.held & np.isfinite(spread)
        variance = self.squares + (self.error + np.where(told, spread, 0.0))[:, None]
        distance = ((self.values - means) ** 2).sum(axis=1)[:, None]
        logs = np.where(told[:, None], -(self.dimensions * np.log(variance) + distance / variance) / 2, 0.0)
        weights = prior * np.exp(logs - logs.max(axis=1, keepdims=True))
        found: Vector = weights / weights.sum(axis=1, keepdims=True)
        return found

    def step(self, prior: Vector) -> Vector:
        """Update the precisions, and return the posterior; 0 for parts without a measurement."""
        weights = self._weights(prior)
        self.precision = np.where(self.held, (weights / (self.squares + self.error[:, None])).sum(axis=1), 0.0)
        return weights * self.held[:, None]

    def shrunk(self, prior: Vector) -> _Shrunk:
        """Compute the posterior in each part."""
        weights, (means, spread) = self._weights(prior), self._others()
        alone = ~np.isfinite(spread)
        own = self.squares + np.where(alone, 0.0, spread)[:, None]  # variance before the part's own measurement
        kept = np.where(self.held[:, None], np.where(alone[:, None], 1.0, own / (own + self.error[:, None])), 0.0)
        mean = (weights * kept).sum(axis=1)
        apart = ((self.values - means) ** 2).sum(axis=1) / self.dimensions
        left = np.where(self.held[:, None], kept * self.error[:, None], own)
        between = (weights * kept**2).sum(axis=1) - mean**2
        variance = (weights * left).sum(axis=1) + between * apart
        parts = self.precision**2 * self.sampling
        others = (parts.sum() - parts) * np.where(alone, 0.0, spread) ** 2  # in the mean of the other parts
        drawn = mean**2 * self.sampling + (1.0 - mean) ** 2 * others
        cell = self.dimensions / self.cells  # dimensions for each cell
        values = (means + mean[:, None] * (self.values - means)).reshape(self.shape)
        return _Shrunk(values, variance * cell, drawn * cell, self.chance * cell)
