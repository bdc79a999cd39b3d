"""A union whose tables are shrunk towards what its parts have in common: partial pooling by empirical Bayes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference.collective.noise_laws import GaussianNoise, LinearObservations, end_to_end
from pgmpy_dp.inference.collective.partial_pooling import (
    Borrowed,
    Effect,
    partially_pooled,
    path,
    record_variance,
    star,
)
from pgmpy_dp.inference.tables.table import Table, Vector, centred
from pgmpy_dp.observed.reading import MeanTables, observe_tables
from pgmpy_dp.observed.united_marginals import UnitedMarginals
from pgmpy_dp.release.kinds import MIN_VARIANCE
from pgmpy_dp.release.marginals import IndependentTables, NoisyMarginals, Variance
from pgmpy_dp.schema import Clique, Schema

# Rounds of iterative proportional fitting; minimum share of a cell in it, relative to equal shares; minimum variance of
# a record in a part, relative to the mean.
_FITTINGS, _MIN_SHARE, _MIN_CHANCE = 20, 1e-3, 0.3


@dataclass(frozen=True, eq=False, repr=False)
class PartiallyPooledMarginals(
    UnitedMarginals, kind="partially_pooled_tables", properties=("variable", "overlap", "parts")
):
    """Union of releases in which each part borrows strength from the others, to the extent that its noise requires.

    Fits use its tables instead of the union's: use it if parts differ, but not in everything. Periods (see `union`)
    shrink towards their neighbours. It costs no privacy. `of` makes it from a union.

    Attributes
    ----------
    tables : mapping of clique to ndarray
        For every clique that some part measured, the estimated counts of each part. A part that did not measure it has
        the common odds ratios, with its own tables of fewer variables.
    variances : mapping of clique to float
        The mean posterior variance of their cells, beyond the sampling of the part's records.

    Notes
    -----
    The shares of a part's table are the sum of interactions, one for each subset A of its variables: a main effect for
    a variable, a two-way interaction for a pair and so on. Every table with the variables A measures the interaction of
    A, and these measurements are averaged by precision. What is expected of it in a part has the part's own tables of
    fewer variables and the odds ratios of the common table, by iterative proportional fitting. The difference from this
    is a common one, or that of the period before, and a normal deviation, whose size has a distribution that includes 0
    and is learned from all interactions (empirical Bayes); see `pgmpy_dp.inference.collective.partial_pooling`.

    A network of each part by itself is fitted to counts of as many records as would leave the sampling error of its
    interactions; ``target="records"`` borrows nothing. Tables are read as independent, though an interaction has one
    error in all of them: its variance is multiplied by their number. A network in which the new variable is not a
    parent of all others is fitted to `tables`, and counts the part's own sampling in full.

    Examples
    --------
    >>> from pgmpy_dp.observed.united_marginals import union
    >>> from pgmpy_dp.release import Guarantee, NoisyMarginals
    >>> from pgmpy_dp.schema import Schema
    >>> schema = Schema({"smoke": ["yes", "no"]})
    >>> parts = {
    ...     site: NoisyMarginals(schema, {("smoke",): np.array(counts)}, {("smoke",): 1.0}, Guarantee.of(1.0))
    ...     for site, counts in {"north": [300, 700], "west": [310, 690], "south": [9, 11]}.items()
    ... }
    >>> both = PartiallyPooledMarginals.of(union(parts))
    >>> (both.tables["site", "smoke"].T / both.tables["site", "smoke"].sum(axis=1)).round(2)[0].tolist()
    [0.3, 0.31, 0.32]
    """

    @classmethod
    def of(cls, union: UnitedMarginals) -> Self:
        """Let the parts of a union borrow strength from each other."""
        return cls(union.parts, union.variable, union.overlap)

    @property
    def as_measured(self) -> UnitedMarginals:
        """The union itself, since borrowed estimates have errors in common."""
        return UnitedMarginals(self.parts, self.variable, self.overlap)

    @property
    def independent(self) -> bool:
        """Errors of cells are treated as independent."""
        return True

    @property
    def law(self) -> str:
        """Distribution of the noise: Gaussian, as which posterior distributions are treated."""
        return "gaussian"

    def _whole(self, clique: Clique) -> bool:
        return True

    def _measured_interactions(self) -> dict[Clique, tuple[Vector, Vector]]:
        """The measured interactions of each part, in shares, and their variances; 0 and infinity if it has none."""
        order, totals = _order(self.schema), self.totals
        sums: dict[Clique, Vector] = {}
        precisions: dict[Clique, Vector] = {}
        for number in range(len(totals)):
            for subset, table, variance in self._margins(number, order):
                margin = table / totals[number]
                weight = margin.size * totals[number] ** 2 / max(variance, 1e-200)
                own = sums.setdefault(subset, np.zeros((len(totals), *margin.shape)))
                own[number] += weight * centred(margin)
                precisions.setdefault(subset, np.zeros(len(totals)))[number] += weight
        results = {}
        for subset, own in sums.items():
            each = precisions[subset].reshape(-1, *[1] * len(subset))
            values = np.divide(own, each, out=np.zeros_like(own), where=each > 0)
            noise = np.divide(1.0, precisions[subset], out=np.full(len(totals), np.inf), where=precisions[subset] > 0)
            results[subset] = values, noise
        return results

    def _margins(self, number: int, order: Mapping[str, int]) -> Iterator[tuple[Clique, Vector, float]]:
        """Yield margins of a part, of which interactions are taken, with the summed variance of independent noise."""
        part = list(self.parts.values())[number]
        if isinstance(part, NoisyMarginals):
            for clique, table in part.tables.items():
                for subset in _subsets(clique, order):
                    margin = Table(clique, table.astype(np.float64)).margin(subset).values
                    yield subset, margin, part.variances[clique] * table.size
            return
        for subset, deviation in self._each[number].deviations.items():
            if subset and order.keys() >= set(subset):
                margin = self._each[number].table(subset)
                yield subset, margin, deviation**2 * margin.size

    @cached_property
    def _interactions(self) -> dict[Clique, Borrowed]:
        """The parts' interactions, as shares, in each subset of measured cliques, given those of fewer variables."""
        totals, measured = self.totals, self._measured_interactions()
        links = (path if self.variable in self.schema.ordered else star)(len(totals))
        common = {
            subset: np.average(values, axis=0, weights=1.0 / (noise + 1.0 / values[0].size / totals))[None]
            for subset, (values, noise) in measured.items()
        }
        effects: dict[Clique, Effect] = {}
        results: dict[Clique, Borrowed] = {}
        # Main effects are computed twice, the second time with the variance of a record at each part's own shares.
        for size in (1, *range(1, max(map(len, measured)) + 1)):
            for subset in (inner for inner in measured if len(inner) == size):
                values, noise = measured[subset]
                if dimensions := math.prod(states - 1 for states in values.shape[1:]):
                    expected: Any = 0.0
                    chance = None
                    if size > 1:
                        expected, chance = self._expected(subset, results, common)
                    elif results:
                        chance = self._chance(results[subset].values)
                    effects[subset] = Effect(values, dimensions, noise, totals, links, expected, chance)
            results = dict(zip(effects, partially_pooled(list(effects.values())), strict=True))
        return results

    def _expected(
        self, subset: Clique, found: Mapping[Clique, Borrowed], common: Mapping[Clique, Vector]
    ) -> tuple[Any, Vector]:
        """Fit the common table to each part's tables of fewer variables, keeping its odds ratios.

        Return the interaction of the fitted table, and the variance of one record if the variables are independent.
        """
        values = {inner: own.values for inner, own in found.items()}
        table = np.repeat(_positive(self._shares(subset, common)), len(self.parts), axis=0)
        tables = [_positive(self._shares(subset[:axis] + subset[axis + 1 :], values)) for axis in range(len(subset))]
        for _, (axis, own) in product(range(_FITTINGS), enumerate(tables, start=1)):
            table *= np.expand_dims(own, axis) / table.sum(axis=axis, keepdims=True)
        return centred(table, 1), np.prod([found[variable,].chance for variable in subset], axis=0)

    def _chance(self, main: Vector) -> Vector:
        """Compute the variance of a record in each part, in a dimension, from its main effects."""
        own = record_variance(main)
        minimum = _MIN_CHANCE * np.average(np.maximum(own, 0.0), weights=self.totals)
        return np.asarray(np.maximum(own, minimum))

    def _shares(self, clique: Clique, effects: Mapping[Clique, Vector]) -> Vector:
        """Sum interactions to shares of the cells of a clique, with a row per part."""
        cells = self.schema.cells(clique)
        shares = np.full((1, *self.schema.shape(clique)), 1.0 / cells)
        for subset in (inner for inner in _subsets(clique, _order(self.schema)) if inner in effects):
            expanded = Table((-1, *subset), effects[subset]).expand((-1, *clique))
            shares = shares + expanded * (self.schema.cells(subset) / cells)
        return np.asarray(shares)

    @cached_property
    def _with_all_errors(self) -> dict[Clique, Borrowed]:
        """The interactions, with the errors that the errors of smaller interactions cause in them.

        In contrasts of mean square 1, the interaction of independent variables is the product of their means m, so that
        an error in the interaction of T, times the product of m over S without T, is an error in that of S.
        """
        results, order = {}, _order(self.schema)
        squares = {s[0]: 1.0 / len(e.values[0]) - e.chance for s, e in self._interactions.items() if len(s) == 1}
        for subset, own in self._interactions.items():
            variance, drawn, chance = np.zeros((3, len(self.parts)))
            for inner in _subsets(subset, order):
                weight = np.prod([squares[v] for v in subset if v not in inner], axis=0)
                effect = self._interactions[inner]
                variance, drawn = variance + weight * effect.variance, drawn + weight * effect.drawn
                chance = chance + weight * effect.chance
            results[subset] = Borrowed(own.values, variance, drawn, chance)
        return results

    def _counts(
        self, records: Vector, effects: Mapping[Clique, Borrowed], repeated: bool = False
    ) -> dict[Clique, tuple[Vector, Vector]]:
        """Compute tables of this number of records of each part, and the variance of their cells beyond sampling.

        If `repeated`, the variance is such that tables taken as independent contain no more information about an
        interaction than one table does.
        """
        order, results = _order(self.schema), {}
        values = {subset: effect.values for subset, effect in effects.items()}
        for clique in self._measured:
            cells, variance = self.schema.cells(clique), np.zeros(len(records))
            for subset in (inner for inner in _subsets(clique, order) if inner in effects):
                times = sum(set(subset) <= set(other) for other in self._measured) if repeated else 1
                freedom = math.prod(self.schema.cardinality(v) - 1 for v in subset) / cells
                error = effects[subset].variance - effects[subset].chance / records
                variance += times * error * self.schema.cells(subset) / cells * freedom
            counts = self._shares(clique, values) * records.reshape(-1, *[1] * len(clique))
            results[self.variable, *clique] = counts, np.maximum(variance * records**2, MIN_VARIANCE)
        return results

    @cached_property
    def _slices(self) -> dict[Clique, tuple[Vector, Vector]]:
        return self._counts(self.totals, self._with_all_errors)

    @property
    def tables(self) -> Mapping[Clique, NDArray[np.float64]]:
        """The estimated tables of counts."""
        return MappingProxyType({clique: table for clique, (table, _) in self._slices.items()})

    @property
    def variances(self) -> Mapping[Clique, float]:
        """The mean variance of the cells of each table."""
        return MappingProxyType({clique: float(each.mean()) for clique, (_, each) in self._slices.items()})

    def cell_variance(self, measured: Clique, clique: Clique) -> Variance:
        table, each = self._slices[measured]
        full = np.broadcast_to(each.reshape(-1, *[1] * (table.ndim - 1)), table.shape)
        return Table(measured, full).margin(clique).values

    @property
    def apart_releases(self) -> Sequence[Any]:
        return self._apart(self._interactions)

    @property
    def drawn_releases(self) -> Sequence[Any]:
        """The tables of `apart_releases` with all their errors, from which models of each part are drawn for bounds."""
        return self._apart(self._with_all_errors, repeated=True)

    def _apart(self, found: Mapping[Clique, Borrowed], repeated: bool = False) -> Sequence[Any]:
        effects, totals = found.values(), self.totals
        one, drawn = sum(e.chance for e in effects), np.asarray(sum(e.drawn for e in effects))
        records = np.divide(one, drawn, out=totals.copy(), where=drawn > 0)
        slices = self._counts(records, found, repeated)
        return [
            MeanTables(
                part.schema.join(self.schema.select(self.schema.variables[1:])),
                {clique[1:]: table[number] for clique, (table, _) in slices.items()},
                {clique[1:]: float(each[number]) for clique, (_, each) in slices.items()},
                float(records[number]),
                part.total_variance * float(records[number] / totals[number]) ** 2,
                self.guarantee,
                self.law,
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

    def observations(self, variables: Sequence[str]) -> LinearObservations:
        """Return observations of these variables' marginals, summed over parts unless the union's variable is asked."""
        if self.variable not in variables and self._of_tables:
            return super().observations(variables)
        seen = observe_tables(self, variables)
        if self.variable not in variables or (self.variable,) in seen.cliques:
            return seen
        totals = GaussianNoise(self.totals, self._total_variances)
        owners = np.append(seen.owners, np.full(len(self.parts), len(seen.cliques)))
        return LinearObservations((*seen.cliques, (self.variable,)), end_to_end([seen.noise, totals]), owners, None)


def _order(schema: Schema) -> Mapping[str, int]:
    return {variable: position for position, variable in enumerate(schema.variables)}


def _subsets(clique: Clique, order: Mapping[str, int]) -> Iterable[Clique]:
    ordered = sorted(clique, key=order.__getitem__)
    return [subset for size in range(1, len(ordered) + 1) for subset in combinations(ordered, size)]


def _positive(shares: Vector) -> Vector:
    """Raise shares that noise made negative, with a row per part."""
    raised = np.maximum(shares, _MIN_SHARE / shares[0].size)
    return np.asarray(raised / raised.sum(axis=tuple(range(1, raised.ndim)), keepdims=True))
