"""Noisy tables of counts, and the number of records and small marginals that they imply together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from pgmpy_dp.inference.mixtures.children import Child, Whole
from pgmpy_dp.inference.tables.table import Variable, Vector, centred, pooled, project_to_simplex, thinned

# For each finer variable the coarser one, and its state for every state of the finer one.
Refined = Mapping[Variable, tuple[Variable, Whole]]
# Variables, counts, and the standard deviation of the noise in a cell.
Noisy = tuple[Sequence[Variable], ArrayLike, float]

_MIN = 1e-6  # least share of a state
_POSITIVE = 0.05  # share of a state, in units of the uniform one, up to which its estimate counts as zero


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
        if variables == self.variables:
            return self
        summed = self.counts.sum(axis=tuple(i for i, v in enumerate(self.variables) if v not in variables))
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
        return max(float(self._margins(0)[()].counts), 1.0)

    def _margins(self, size: int) -> dict[tuple[int, ...], NoisyTable]:
        """Pool the margins of some number of variables; residuals tell of their own variables alone."""
        results: dict[tuple[int, ...], list[NoisyTable]] = {}
        for table in self.tables:
            if not self.residuals or len(table.variables) == size:
                for variables in itertools.combinations(table.variables, size):
                    results.setdefault(variables, []).append(table.sum_to(variables))
        return {variables: _pool(results[variables]) for variables in sorted(results)}

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
        result = self._margins(1).values()
        return tuple(self._completed(own, self.total / own.counts.size) if self.residuals else own for own in result)

    def _completed(self, table: NoisyTable, beyond: Vector | float) -> NoisyTable:
        """Add what margins say to residuals; the deviation is that of the residuals' noise, which is projected."""
        share = math.prod(1 - 1 / states for states in table.counts.shape)
        return replace(table, counts=centred(table.counts) + beyond, deviation=table.deviation * math.sqrt(share))

    def possible(self, variable: int) -> Vector:
        """Return a variable's shares, all positive: a state that seems to have no record may have one."""
        raised = np.maximum(self.singles[variable], _MIN)
        shares: Vector = raised / raised.sum()
        return shares

    @cached_property
    def pairs(self) -> Mapping[tuple[int, int], NoisyTable]:
        """The counts of all pairs in some table, from all tables that contain them."""
        result = self._margins(2)
        if self.residuals:
            result = {pair: self._completed(own, self._from_margins(*pair)) for pair, own in result.items()}
        return result  # type: ignore[return-value]  # of two variables each

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


def coarse_table(refined: Refined, cardinalities: Mapping[Variable, int], table: Noisy) -> Noisy:
    """Sum the states of finer variables in a noisy table to those of their coarser ones.

    The deviation is that of the noisiest sum.
    """
    names, counts, deviation = table
    for finer in [name for name in names if name in refined]:
        coarser, groups = refined[finer]
        names, counts, deviation = _without((names, counts, deviation), finer, coarser, groups)
        axis = names.index(finer)
        summed = np.zeros((cardinalities[coarser], *np.delete(np.shape(counts), axis)))
        np.add.at(summed, groups, np.moveaxis(np.asarray(counts), axis, 0))
        counts = np.moveaxis(summed, 0, axis)
        deviation *= math.sqrt(np.bincount(groups).max())
        names = tuple(coarser if name == finer else name for name in names)
    return names, counts, deviation


def fine_counts(refined: Refined, tables: Iterable[Noisy]) -> dict[Variable, tuple[Vector, float]]:
    """Return the noisy counts of each finer variable alone, from all tables that contain it, and their deviations."""
    results: dict[Variable, list[tuple[Vector, float]]] = {finer: [] for finer in refined}
    for table in tables:
        for finer in [name for name in table[0] if name in refined]:
            names, counts, deviation = _without(table, finer, *refined[finer])
            array = np.moveaxis(np.asarray(counts, dtype=np.float64), names.index(finer), 0)
            others = array.size // array.shape[0]
            results[finer].append((array.reshape(-1, others).sum(axis=1), deviation * math.sqrt(others)))
    means = {
        finer: pooled([t for t, _ in own], [deviation**-2 for _, deviation in own]) for finer, own in results.items()
    }
    return {finer: (counts, precision**-0.5) for finer, (counts, precision) in means.items()}


def children_within(
    refined: Refined, fine: Mapping[Variable, tuple[Vector, float]], totals: Mapping[Variable, Vector]
) -> dict[Variable, Child]:
    """Estimate finer variables given their coarser ones, from noisy counts of finer states and totals of groups.

    Within a group, counts are projected on those with the group's total. Less than one record is spread evenly, so
    that no state is impossible.
    """
    results = {}
    for finer, (coarser, groups) in refined.items():
        counts, shares = fine[finer][0], np.zeros(groups.size)
        for group, total in enumerate(totals[coarser]):
            states = np.flatnonzero(groups == group)
            if states.size:
                records = max(float(total), 1.0)
                nearest = project_to_simplex(counts[states] / records)
                shares[states] = (nearest * records + 1 / states.size) / (records + 1)
        results[finer] = Child.within(coarser, groups, shares, totals[coarser].size)
    return results


def shrunk(shares: Vector, deviation: float) -> tuple[Vector, float]:
    """Shrink noisy shares on the simplex towards the uniform ones; return their degrees of freedom too.

    Stein's estimate of the latter for least squares on the simplex is the number of positive shares less one, which
    noise adds so many variances to the squared distance; times what is left of the distance. With the misfit they give
    Mallows' criterion C_p.

    Examples
    --------
    >>> shares, freedom = shrunk(np.array([0.6, 0.4, 0.0]), 0.2)
    >>> shares.round(2), round(freedom, 2)
    (array([0.55, 0.39, 0.06]), 0.82)
    """
    free = max(int(np.count_nonzero(shares > _POSITIVE / shares.size)) - 1, 0)
    signal = float(((shares - 1 / shares.size) ** 2).sum())
    left = signal / (signal + free * deviation**2) if signal else 0.0
    return 1 / shares.size + left * (shares - 1 / shares.size), float(free * left)


def _pool(tables: Sequence[NoisyTable]) -> NoisyTable:
    """Return the mean of tables of the same variables, weighted by precision."""
    if len(tables) == 1:
        return tables[0]
    counts, precision = pooled([table.counts for table in tables], [table.deviation**-2 for table in tables])
    return NoisyTable(tables[0].variables, counts, float(precision**-0.5))


def _without(table: Noisy, finer: Variable, coarser: Variable, groups: Whole) -> Noisy:
    """Drop the axis of the coarser variable beside the finer one: its other states cannot occur."""
    names, counts, deviation = tuple(table[0]), np.asarray(table[1], dtype=np.float64), table[2]
    if coarser in names:
        axes = names.index(finer), names.index(coarser)
        kept = np.moveaxis(counts, axes, (0, 1))[np.arange(groups.size), groups]
        names = tuple(name for name in names if name != coarser)
        counts = np.moveaxis(kept, 0, names.index(finer))
    return names, counts, deviation
