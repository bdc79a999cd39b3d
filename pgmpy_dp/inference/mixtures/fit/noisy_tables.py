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
    known_total : float, optional
        The number of records, if it is known.
    residuals : bool
        Whether only residuals were measured, what a table says beyond its margins: its noise is normal and independent,
        projected on the tables that sum to 0 along every axis, and so are its counts where they are compared. The table
        of no variables is the number of records.

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
    residuals: bool = False

    @classmethod
    def of(
        cls,
        cardinalities: Mapping[Variable, int],
        tables: Iterable[tuple[Sequence[Variable], ArrayLike, float]],
        known_total: float | None = None,
        residuals: bool = False,
    ) -> NoisyTables:
        """Check, number the variables, and pool tables of the same variables.

        Parameters
        ----------
        cardinalities : mapping of variable to int
        tables : iterable of (variables, counts, standard deviation of the noise)
            Axes in the order of the variables.
        known_total, residuals
            As the parameters of the class. Residuals of all subsets of a table's variables are needed.
        """
        numbers = {variable: number for number, variable in enumerate(cardinalities)}
        sizes = tuple(int(states) for states in cardinalities.values())
        same: dict[tuple[int, ...], list[NoisyTable]] = {}
        for scope, counts, deviation in tables:
            if (
                not (scope or residuals)
                or len(set(scope)) != len(scope)
                or any(variable not in numbers for variable in scope)
            ):
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
        return cls(sizes, tuple(_pool(same[variables]) for variables in sorted(same)), known_total, residuals)

    def compared(self, table: Vector) -> Vector:
        """Return what the noisy tables show of a table: its residuals if only these were measured."""
        return centred(table) if self.residuals else table

    @cached_property
    def total(self) -> float:
        """The number of records, or else the mean of all tables' sums, weighted by precision; at least 1."""
        if self.known_total is not None:
            return max(self.known_total, 1.0)
        sums = [table.sum_to(()) for table in self.tables if not (self.residuals and table.variables)]
        return max(float(_pool(sums).counts), 1.0)

    @cached_property
    def singles(self) -> tuple[Vector, ...]:
        """The shares of every variable's states, from all tables that contain it, projected on the simplex."""
        return tuple(project_to_simplex(table.counts / self.total) for table in self._singles)

    @cached_property
    def single_deviations(self) -> tuple[float, ...]:
        """The standard deviation of the noise in the counts of each variable's states."""
        return tuple(table.deviation for table in self._singles)

    @cached_property
    def _singles(self) -> tuple[NoisyTable, ...]:
        found: list[list[NoisyTable]] = [[] for _ in self.cardinalities]
        for table in self.tables:
            for variable in table.variables if not self.residuals or len(table.variables) == 1 else ():
                found[variable].append(table.sum_to((variable,)))
        pools = (_pool(tables) for tables in found)
        return tuple(self._completed(pool, self.total / pool.counts.size) if self.residuals else pool for pool in pools)

    def _completed(self, table: NoisyTable, beyond: Vector | float) -> NoisyTable:
        """Add what margins say to residuals; the deviation is that of the residuals' noise, which is projected."""
        share = math.prod(1 - 1 / states for states in table.counts.shape)
        return replace(table, counts=centred(table.counts) + beyond, deviation=table.deviation * math.sqrt(share))

    def possible(self, variable: int) -> Vector:
        """Return a variable's shares, all positive: a state that seems to have no record may have one."""
        raised = np.maximum(self.singles[variable], _LEAST)
        shares: Vector = raised / raised.sum()
        return shares

    @cached_property
    def pairs(self) -> Mapping[tuple[int, int], NoisyTable]:
        """The counts of all pairs in some table, from all tables that contain them."""
        if self.residuals:
            return {
                table.variables: self._completed(table, self._from_margins(*table.variables))
                for table in self.tables
                if len(table.variables) == 2
            }
        found: dict[tuple[int, int], list[NoisyTable]] = {}
        for table in self.tables:
            for pair in itertools.combinations(table.variables, 2):
                found.setdefault(pair, []).append(table.sum_to(pair))
        return {pair: _pool(found[pair]) for pair in sorted(found)}

    def _from_margins(self, one: int, other: int) -> Vector:
        """Return the counts of a pair that has these margins and no residuals."""
        rows, columns = self.singles[one][:, None], self.singles[other]
        return self.total * (rows / columns.size + columns / rows.size - 1 / (rows.size * columns.size))

    def thinned(self, share: float, generator: np.random.Generator) -> tuple[NoisyTables, NoisyTables]:
        """Split into two releases of the same counts; see :func:`~pgmpy_dp.inference.tables.table.thinned`."""
        root, one, other = math.sqrt(1 + share**2), [], []
        for table in self.tables:
            halves = thinned(table.counts, table.deviation, share, generator)
            one.append(replace(table, counts=halves[0], deviation=table.deviation * root))
            other.append(replace(table, counts=halves[1], deviation=table.deviation * root / share))
        return replace(self, tables=tuple(one)), replace(self, tables=tuple(other))


def centred(table: Vector) -> Vector:
    """Subtract means along every axis: project on the tables that sum to 0 along each.

    Examples
    --------
    >>> centred(np.array([[4.0, 1.0], [1.0, 4.0]]))
    array([[ 1.5, -1.5],
           [-1.5,  1.5]])
    """
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def _pool(tables: Sequence[NoisyTable]) -> NoisyTable:
    """Return the mean of tables of the same variables, weighted by precision."""
    if len(tables) == 1:
        return tables[0]
    counts, precision = pooled([table.counts for table in tables], [table.deviation**-2 for table in tables])
    return NoisyTable(tables[0].variables, counts, float(precision**-0.5))
