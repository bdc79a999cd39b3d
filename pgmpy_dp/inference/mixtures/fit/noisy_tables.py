"""Noisy tables of counts, and the number of records and small marginals that they imply together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from pgmpy_dp.inference.tables.layout import Variable, Vector
from pgmpy_dp.inference.tables.table import Table, pooled, project_to_simplex, thinned

_LEAST = 1e-6  # least share of a state


@dataclass(frozen=True)
class NoisyTable:
    """Counts of a few variables, with independent noise of mean zero on every cell.

    Parameters
    ----------
    variables : tuple of int
        Indices of the table's variables, ascending.
    counts : ndarray
    deviation : float
        Standard deviation of the noise.
    """

    variables: tuple[int, ...]
    counts: Vector
    deviation: float

    def sum_to(self, variables: tuple[int, ...]) -> NoisyTable:
        """Sum the table to some of its variables; the deviation is that of the sums."""
        summed = Table(self.variables, self.counts).margin(variables).values
        return NoisyTable(variables, summed, self.deviation * math.sqrt(self.counts.size / max(summed.size, 1)))


@dataclass(frozen=True)
class NoisyTables:
    """Tables of one release over numbered variables, one per set of variables.

    Parameters
    ----------
    cardinalities : tuple of int
    tables : tuple of NoisyTable

    Examples
    --------
    >>> pairs = NoisyTables.of({"a": 2, "b": 2}, [(("b", "a"), [[3, 0], [1, 6]], 1.0), (("a",), [4, 5], 1.0)])
    >>> pairs.tables[1].counts
    array([[3., 1.],
           [0., 6.]])
    >>> round(pairs.total, 2)
    9.33
    """

    cardinalities: tuple[int, ...]
    tables: tuple[NoisyTable, ...]
    known_total: float | None = None

    @classmethod
    def of(
        cls,
        cardinalities: Mapping[Variable, int],
        tables: Iterable[tuple[Sequence[Variable], ArrayLike, float]],
        known_total: float | None = None,
    ) -> NoisyTables:
        """Check, number the variables, and pool tables of the same variables.

        Parameters
        ----------
        cardinalities : mapping of variable to int
        tables : iterable of (variables, counts, standard deviation of the noise)
            Axes in the order of the variables.
        known_total : float, optional
            The number of records, if it is known.
        """
        numbers = {variable: number for number, variable in enumerate(cardinalities)}
        sizes = tuple(int(states) for states in cardinalities.values())
        same: dict[tuple[int, ...], list[NoisyTable]] = {}
        for scope, counts, deviation in tables:
            if not scope or len(set(scope)) != len(scope) or any(variable not in numbers for variable in scope):
                raise ValueError(f"table {scope!r} is empty, repeats a variable, or names one without a cardinality")
            array = np.asarray(counts, dtype=np.float64)
            shape = tuple(sizes[numbers[variable]] for variable in scope)
            if array.shape != shape:
                raise ValueError(f"the table of {scope!r} has shape {array.shape}, not {shape}")
            if not (np.isfinite(array).all() and 0 < deviation < math.inf):
                raise ValueError(f"the table of {scope!r} needs finite counts and a positive standard deviation")
            order = sorted(range(len(scope)), key=lambda axis: numbers[scope[axis]])
            table = NoisyTable(tuple(numbers[scope[axis]] for axis in order), array.transpose(order), float(deviation))
            same.setdefault(table.variables, []).append(table)
        seen = {number for variables in same for number in variables}
        missing = [variable for variable, number in numbers.items() if number not in seen]
        if not numbers or missing:
            raise ValueError(f"variable {missing[0]!r} is in no table" if missing else "a mixture needs variables")
        return cls(sizes, tuple(_pool(same[variables]) for variables in sorted(same)), known_total)

    @cached_property
    def total(self) -> float:
        """The number of records, or else the mean of all tables' sums, weighted by precision; at least 1."""
        if self.known_total is not None:
            return max(self.known_total, 1.0)
        return max(float(_pool([table.sum_to(()) for table in self.tables]).counts), 1.0)

    @cached_property
    def singles(self) -> tuple[Vector, ...]:
        """The shares of every variable's states, from all tables that contain it, projected on the simplex."""
        found: list[list[NoisyTable]] = [[] for _ in self.cardinalities]
        for table in self.tables:
            for variable in table.variables:
                found[variable].append(table.sum_to((variable,)))
        return tuple(project_to_simplex(_pool(tables).counts / self.total) for tables in found)

    def possible(self, variable: int) -> Vector:
        """Return a variable's shares, all positive: a state that seems to have no record may have one."""
        raised = np.maximum(self.singles[variable], _LEAST)
        shares: Vector = raised / raised.sum()
        return shares

    @cached_property
    def pairs(self) -> Mapping[tuple[int, int], NoisyTable]:
        """The counts of all pairs in some table, from all tables that contain them."""
        found: dict[tuple[int, int], list[NoisyTable]] = {}
        for table in self.tables:
            for pair in itertools.combinations(table.variables, 2):
                found.setdefault(pair, []).append(table.sum_to(pair))
        return {pair: _pool(found[pair]) for pair in sorted(found)}

    def thinned(self, share: float, generator: np.random.Generator) -> tuple[NoisyTables, NoisyTables]:
        """Split into two releases of the same counts; see :func:`~pgmpy_dp.inference.tables.table.thinned`."""
        root, one, other = math.sqrt(1 + share**2), [], []
        for table in self.tables:
            halves = thinned(table.counts, table.deviation, share, generator)
            one.append(replace(table, counts=halves[0], deviation=table.deviation * root))
            other.append(replace(table, counts=halves[1], deviation=table.deviation * root / share))
        return replace(self, tables=tuple(one)), replace(self, tables=tuple(other))


def _pool(tables: Sequence[NoisyTable]) -> NoisyTable:
    """Return the mean of tables of the same variables, weighted by precision."""
    if len(tables) == 1:
        return tables[0]
    counts, precision = pooled([table.counts for table in tables], [table.deviation**-2 for table in tables])
    return NoisyTable(tables[0].variables, counts, float(precision**-0.5))
