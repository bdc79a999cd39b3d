"""Distributions of variables whose states follow groups of states: given the group, shares do not depend on others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference.distribution import Codes, GivenOthers, Positions
from pgmpy_dp.inference.mixtures.children import Child
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.inference.trees.conditioning import TreeDistribution


@dataclass(frozen=True, eq=False)
class Within:
    """A variable's states within the groups that a coarser variable has of them."""

    coarser: str
    groups: NDArray[np.intp]  # the group of each state
    shares: Vector  # of each state in its group; they sum to one in a group. Or several such rows

    def spread(self, table: Vector, axis: int) -> Vector:
        """Divide probabilities of groups, along an axis of a table, among their states.

        Several rows of shares are for as many tables, along the first axis.
        """
        rows = self.shares.shape[:-1]
        others = [other for other in range(len(rows), table.ndim) if other != axis]
        return np.take(table, self.groups, axis=axis) * np.expand_dims(self.shares, others)

    @property
    def largest(self) -> Vector:
        """The largest share in each group."""
        result = np.zeros(int(self.groups.max()) + 1)
        np.maximum.at(result, self.groups, self.shares)
        return result


@dataclass(frozen=True, eq=False)
class GroupedDistribution:
    """A `Distribution` over states, by that of a network over groups of states."""

    coarse: TreeDistribution
    within: Mapping[str, Within]  # by variable
    evidence: Positions = field(default_factory=dict)

    def given(self, evidence: Positions) -> Self:
        return replace(self, coarse=self.coarse.given(self.grouped(evidence)), evidence={**self.evidence, **evidence})

    def marginal(self, scope: Sequence[str]) -> Vector:
        return self.spread(scope, self.coarse.marginal(self.names(scope)))

    def singles(self, scope: Sequence[str]) -> list[Vector]:
        return self._singles(scope, self.coarse.singles(self.names(scope)))

    def most_probable(self, scope: Sequence[str]) -> tuple[int, ...]:
        return self._finest(scope, self._weighted(scope).most_probable(self.names(scope)))

    def singles_of(self, scope: Sequence[str], rows: Iterable[Positions]) -> Iterator[list[Vector]]:
        coarse = self.coarse.singles_of(self.names(scope), map(self.grouped, rows))
        return (self._singles(scope, singles) for singles in coarse)

    def most_probable_of(self, scope: Sequence[str], rows: Iterable[Positions]) -> Iterator[tuple[int, ...]]:
        coarse = self._weighted(scope).most_probable_of(self.names(scope), map(self.grouped, rows))
        return (self._finest(scope, states) for states in coarse)

    def sample(
        self, count: int, generator: np.random.Generator, predicting: str | None = None
    ) -> tuple[Codes, GivenOthers]:
        codes, others = self.coarse.sample(count, generator, predicting and self.names([predicting])[0])
        return self.refined(codes, others, generator)

    def log_probability(self, codes: Codes) -> Vector:
        result = self.coarse.log_probability(self._groups_of(codes))
        with np.errstate(divide="ignore"):
            for variable, within in self.within.items():
                if variable in codes:
                    result = result + np.log(within.shares)[codes[variable]]
        return result

    def names(self, scope: Iterable[str]) -> list[str]:
        """Replace variables by those of their groups."""
        return [self.within[variable].coarser if variable in self.within else variable for variable in scope]

    def grouped(self, states: Positions) -> dict[str, int]:
        """Replace states by their groups."""
        positions = [
            int(self.within[variable].groups[position]) if variable in self.within else position
            for variable, position in states.items()
        ]
        return dict(zip(self.names(states), positions, strict=True))

    def spread(self, scope: Sequence[str], table: Vector) -> Vector:
        """Turn a table over groups into one of the states of these variables."""
        for axis, variable in enumerate(scope):
            if variable in self.within:
                table = self.within[variable].spread(table, axis)
        return table

    def refined(self, codes: Codes, others: GivenOthers, generator: np.random.Generator) -> tuple[Codes, GivenOthers]:
        """Draw states within the groups of records, except those that are given."""
        result = dict(codes)
        for variable, within in self.within.items():
            groups = result.pop(within.coarser)
            if variable in self.evidence:
                result[variable] = np.full(groups.size, self.evidence[variable])
            else:
                child = Child.within(within.coarser, within.groups, within.shares, int(within.groups.max()) + 1)
                result[variable] = child.draw(groups, generator, even=False)
        return result, partial(self._given_others, others)

    def _groups_of(self, codes: Codes) -> dict[str, NDArray[np.integer]]:
        groups = [
            self.within[variable].groups[own] if variable in self.within else own for variable, own in codes.items()
        ]
        return dict(zip(self.names(codes), groups, strict=True))

    def _given_others(self, others: GivenOthers, variable: str, records: NDArray[np.integer]) -> Vector:
        table = others(self.names([variable])[0], records)
        return self.within[variable].spread(table, 1) if variable in self.within else table

    def _singles(self, scope: Sequence[str], singles: Iterable[Vector]) -> list[Vector]:
        return [self.spread([variable], single) for variable, single in zip(scope, singles, strict=True)]

    def _weighted(self, scope: Sequence[str]) -> TreeDistribution:
        """Return the coarse distribution with groups weighted by the largest share of a state in them."""
        weights = {self.within[v].coarser: np.log(self.within[v].largest) for v in scope if v in self.within}
        if not weights:
            return self.coarse
        layout, tables = self.coarse.layout, []
        for own, table in zip(layout.scopes, layout.split(self.coarse.logs), strict=True):
            for axis, name in enumerate(own):
                if name in weights and (axis == 0 or not self.coarse.families):
                    table = table + np.expand_dims(weights.pop(name), [o for o in range(table.ndim) if o != axis])
            tables.append(table)
        return TreeDistribution(layout, layout.flatten(tables), self.coarse.families, self.coarse.evidence)

    def _finest(self, scope: Sequence[str], states: Sequence[int]) -> tuple[int, ...]:
        """Replace groups by the state with the largest share in them; ties go to the first."""
        result = []
        for variable, state in zip(scope, states, strict=True):
            if variable in self.within:
                within = self.within[variable]
                state = int(np.where(within.groups == state, within.shares, -1.0).argmax())
            result.append(state)
        return tuple(result)
