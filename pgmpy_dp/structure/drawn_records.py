"""Records drawn from a fitted graph, as a substitute for its marginals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pgmpy_dp._threads import one_thread
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.observed.informed_marginals import ReleasedTables
from pgmpy_dp.observed.reading import observe
from pgmpy_dp.schema import Clique, Schema
from pgmpy_dp.structure.climbing import Parents

_AT_ONCE = 4096


def positions(records: pd.DataFrame, schema: Schema) -> NDArray[np.int64]:
    """Return the state indices of records drawn from a network, with one column per variable."""
    columns = [pd.Categorical(records[v], categories=list(schema.states[v])).codes for v in schema.variables]
    return np.stack(columns, axis=1).astype(np.int64)


def penalty(release: ReleasedTables, variables: Sequence[str]) -> float:
    """Return the price of a parameter in nats of all records: half the log of their number, plus a term for noise.

    The former is the price of BIC. As for the latter, a table of K cells whose noise has variance v raises the
    likelihood of N records by about v K / (2 N) for every parameter that is read from it, if its cells are alike.
    """
    total, seen = release.total, observe(release, variables)
    noise = np.bincount(seen.owners, seen.noise.variance) / total  # summed over the cells of each table
    return 0.5 * (math.log(max(total, 2.0)) + float(noise.mean()))


@dataclass
class DrawnRecords:
    """Records whose tables can be counted for any variables.

    Attributes
    ----------
    codes : ndarray of int, shape (variables, records)
    cardinalities : sequence of int
    """

    codes: NDArray[np.int64]
    cardinalities: Sequence[int]
    _kept: dict[Parents, Vector] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        tables: Mapping[Clique, Vector],
        variables: Sequence[str],
        cardinalities: Sequence[int],
        count: int,
        generator: np.random.Generator,
    ) -> DrawnRecords:
        """Draw records from parents to children; the variables are in the order of the graph's families."""
        place = {variable: number for number, variable in enumerate(variables)}
        codes = np.zeros((len(variables), count), dtype=np.int64)
        left, done = dict(tables), set[str]()
        while left:
            for family in [family for family in left if done.issuperset(family[1:])]:
                table = left.pop(family)
                heights = (table.cumsum(axis=0) / table.sum(axis=0)).reshape(len(table), -1)
                row = np.zeros(count, dtype=np.int64)
                for parent, states in zip(family[1:], table.shape[1:], strict=True):
                    row = row * states + codes[place[parent]]
                place_in_row, node = generator.random(count), codes[place[family[0]]]
                for height in heights[:-1]:
                    node += height[row] < place_in_row
                done.add(family[0])
        return cls(codes, cardinalities)

    def shares(self, scope: Sequence[int]) -> Vector:
        """Return the share of records in each cell, with axes in the order of the scope."""
        ordered = tuple(sorted(scope))
        if len(ordered) == 2:
            (first, second), starts = ordered, self._starts
            table = self._pairs[starts[first] : starts[first + 1], starts[second] : starts[second + 1]]
            return table if tuple(scope) == ordered else table.T
        if ordered not in self._kept:
            shape = [self.cardinalities[variable] for variable in ordered]
            cell = self.codes[ordered[0]]
            for variable, states in zip(ordered[1:], shape[1:], strict=True):
                cell = cell * states + self.codes[variable]
            counts = np.bincount(cell, minlength=int(np.prod(shape)))
            self._kept[ordered] = counts.reshape(shape) / self.codes.shape[1]
        return self._kept[ordered].transpose([ordered.index(variable) for variable in scope])

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """Index of the first state of each variable among all states."""
        return np.concatenate([[0], np.cumsum(self.cardinalities)])

    @cached_property
    def _pairs(self) -> Vector:
        """Counts of all pairs of states, computed in blocks of records."""
        counts = np.zeros((self._starts[-1], self._starts[-1]))
        for start in range(0, self.codes.shape[1], _AT_ONCE):
            cells = self.codes[:, start : start + _AT_ONCE] + self._starts[:-1, None]
            marks = np.zeros((cells.shape[1], len(counts)), dtype=np.float32)
            marks[np.arange(len(marks)), cells] = 1.0
            with one_thread():
                counts += marks.T @ marks
        shares: Vector = counts / self.codes.shape[1]
        return shares

    def log_likelihood(self, node: int, parents: Parents) -> float:
        """Return the mean over records of log P(node | parents), in nats, at the shares themselves."""
        joint = self.shares((node, *parents))
        given = joint.sum(axis=0, keepdims=True)
        return float((joint * np.log(np.where(joint > 0, joint, 1.0) / np.where(joint > 0, given, 1.0))).sum())

    def parameters(self, node: int, parents: Parents) -> int:
        """Return the number of free parameters of P(node | parents)."""
        return (self.cardinalities[node] - 1) * math.prod(self.cardinalities[parent] for parent in parents)
