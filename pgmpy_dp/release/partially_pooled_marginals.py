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
from pgmpy_dp.inference.collective.partial_pooling import Borrowed, Effect, partially_pooled, path, star
from pgmpy_dp.inference.tables.table import Table, Vector
from pgmpy_dp.privacy.guarantee import Guarantee
from pgmpy_dp.release.observations import LEAST_VARIANCE, IndependentTables, Variance
from pgmpy_dp.release.united_marginals import UnitedMarginals
from pgmpy_dp.schema import Clique, Schema


@dataclass(frozen=True, eq=False, repr=False)
class PartiallyPooledMarginals(
    UnitedMarginals, kind="partially_pooled_tables", properties=("variable", "overlap", "parts")
):
    """Union of releases in which each part borrows from the others to the extent that its noise requires.

    Fits use its tables instead of the union's, so that the parameters of a small or noisy part shrink towards the
    common ones: use it if parts differ, but not in everything. Parts that are named by at least three ascending numbers
    or dates are periods, each of which shrinks towards its neighbours. It costs no privacy. Its parameters are those of
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
    A, and these measurements are averaged by precision. An interaction differs from a common one, or that of a period
    from that of the one before, by a normal deviation, whose size has a distribution that includes 0 and is learned
    from all interactions (empirical Bayes); see `pgmpy_dp.inference.collective.partial_pooling`. So parts are alike
    where nothing tells them apart, the interaction of two variables may be common though each variable is not, one part
    may be unlike all others, a period may begin with a jump, and a part with many records keeps its own.

    A network of each part by itself is fitted to counts of as many records as would leave the sampling error of its
    interactions: its own, and more the more it borrows. Networks are drawn for bounds and for `PosteriorMean` from the
    same counts, so that bounds hold for the population that a part's records come from, and may be narrower than the
    sampling of these records alone. The records' own answers, ``target="records"``, borrow nothing. Tables are read as
    independent, though an interaction has one error in all of them, so that bounds are too narrow where noise is much
    larger than sampling. A network in which the new variable is not a parent of all others is fitted to `tables`, and
    counts the part's own sampling in full.

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
    [0.3, 0.31, 0.32]
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
    def _interactions(self) -> dict[Clique, Borrowed]:
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
        links = (path if self.variable in self.schema.ordered else star)(len(totals))
        found = {}
        for subset, own in sums.items():
            shape, precision = self.schema.shape(subset), precisions[subset]
            held = precision > 0
            values = np.zeros((len(totals), *shape))
            for number in np.flatnonzero(held).tolist():
                values[number] = own[number] / precision[number] / totals[number]
            noise = np.full(len(totals), np.inf)
            noise[held] = 1.0 / precision[held] / totals[held] ** 2
            if dimensions := math.prod(states - 1 for states in shape):
                found[subset] = Effect(values, dimensions, noise, totals, links)
        return dict(zip(found, partially_pooled(list(found.values())), strict=True))

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
                freedom = math.prod(self.schema.cardinality(v) - 1 for v in subset) / cells
                variance += (effect.variance - effect.chance / records) * part * freedom
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
        one, drawn = sum(e.chance for e in effects), np.asarray(sum(e.drawn for e in effects))
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
