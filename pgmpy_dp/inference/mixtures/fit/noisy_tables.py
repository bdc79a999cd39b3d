"""Noisy tables of counts, and the number of records and small marginals that they imply together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pgmpy_dp.inference.mixtures.children import Child, Whole
from pgmpy_dp.inference.tables.table import Variable, Vector, centred, grouped, pooled, project_to_simplex, thinned

# For each finer variable the coarser one, and its state for every state of the finer one.
Refined = Mapping[Variable, tuple[Variable, Whole]]
# Variables, counts, and the standard deviation of the noise in a cell.
Noisy = tuple[Sequence[Variable], ArrayLike, float]

_MIN = 1e-6  # least share of a state
_POSITIVE = 0.05  # share of a state, in units of the uniform one, up to which its estimate counts as zero


class NoisyTable(NamedTuple):
    """Counts of a few variables, with independent noise of mean zero on every cell.

    Attributes
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


class Alike(NamedTuple):
    """Tables of one shape among others.

    Attributes
    ----------
    numbers : ndarray of int, shape (tables,)
        Their numbers among all tables, ascending.
    variables : ndarray of int, shape (tables, axes)
        Their variables, ascending.
    cells : ndarray of int, shape (tables, states, ...)
        Where their cells are among those of all tables.
    """

    numbers: Whole
    variables: Whole
    cells: Whole

    def gathered(self, together: Vector, starts: Whole) -> Vector:
        """Stack tables of one or two variables from that of all pairs of states, where variables begin at `starts`."""
        one, other = (
            starts[self.variables[:, axis], None] + np.arange(self.cells.shape[axis + 1])
            for axis in (0, self.variables.shape[1] - 1)
        )
        return together[one, one] if self.variables.shape[1] == 1 else together[one[:, :, None], other[:, None]]


@dataclass(frozen=True)
class NoisyTables:
    """Tables of one release over numbered variables, one per set of variables.

    Parameters
    ----------
    cardinalities : tuple of int
    alike : tuple of Alike
        The tables by shape. Their numbers follow the lexicographic order of their variables.
    counts : ndarray of shape (cells of all tables,)
        The tables' counts, one table after the other.
    deviations : ndarray of shape (tables,)
        Standard deviation of the noise in each table.
    known_total : float, optional
        The number of records, if it is known.
    residuals : bool
        Whether only residuals were measured, the part of a table that its margins do not determine: its noise is normal
        and independent, projected on the tables that sum to 0 along every axis, and so are its counts where they are
        compared. The table of no variables is the number of records.

    Examples
    --------
    >>> pairs = NoisyTables.of({"a": 2, "b": 2}, [(("b", "a"), [[3, 0], [1, 6]], 1.0), (("a",), [4, 5], 1.0)])
    >>> list(pairs)[1].counts
    array([[3., 1.],
           [0., 6.]])
    >>> round(pairs.total, 2)
    9.33
    """

    cardinalities: tuple[int, ...]
    alike: tuple[Alike, ...]
    counts: Vector
    deviations: Vector
    known_total: float | None = None
    residuals: bool = False

    @classmethod
    def of(
        cls,
        cardinalities: Mapping[Variable, int],
        tables: Iterable[Noisy],
        known_total: float | None = None,
        residuals: bool = False,
    ) -> NoisyTables:
        """Check, number the variables, and pool tables of the same variables."""
        numbers = {variable: number for number, variable in enumerate(cardinalities)}
        sizes = tuple(int(states) for states in cardinalities.values())
        by_shape: dict[tuple[int, ...], list[tuple[list[int], Vector, float]]] = {}
        for scope, counts, deviation in tables:
            positions = [numbers.get(variable, -1) for variable in scope]
            if not (positions or residuals) or -1 in positions or len(set(positions)) != len(positions):
                raise ValueError(f"table {scope!r} is empty, repeats a variable, or names one without a cardinality")
            array, shape = np.asarray(counts, dtype=np.float64), tuple(sizes[place] for place in positions)
            if array.shape != shape:
                raise ValueError(f"the table of {scope!r} has shape {array.shape}, not {shape}")
            if not 0 < deviation < math.inf:
                raise ValueError(f"the table of {scope!r} needs finite counts and a positive standard deviation")
            if positions != sorted(positions):
                order = sorted(range(len(positions)), key=positions.__getitem__)
                positions, array = [positions[axis] for axis in order], array.transpose(order)
            by_shape.setdefault(array.shape, []).append((positions, array, deviation))
        stacks = []
        for shape, same in by_shape.items():
            scopes, arrays, deviations = zip(*same, strict=True)
            stack = _Stack(
                np.array(scopes, np.intp).reshape(len(same), len(shape)),
                np.stack(arrays),
                np.array(deviations, np.float64),
            )
            if not np.isfinite(stack.counts).all():
                bad = next(own for own, array in zip(scopes, arrays, strict=True) if not np.isfinite(array).all())
                names = tuple(variable for variable, number in numbers.items() if number in bad)
                raise ValueError(f"the table of {names!r} needs finite counts and a positive standard deviation")
            stacks.append(stack.pooled(len(sizes)))
        seen = set(np.concatenate([stack.variables.ravel() for stack in stacks]).tolist()) if stacks else set()
        missing = [variable for variable, number in numbers.items() if number not in seen]
        if not numbers or missing:
            raise ValueError(f"variable {missing[0]!r} is in no table" if missing else "a mixture needs variables")
        return cls._numbered(sizes, stacks, known_total, residuals)

    @classmethod
    def _numbered(
        cls, cardinalities: tuple[int, ...], stacks: Sequence[_Stack], known_total: float | None, residuals: bool
    ) -> NoisyTables:
        """Number tables of several shapes by the lexicographic order of their variables."""
        count, length = sum(len(stack.counts) for stack in stacks), max(stack.variables.shape[1] for stack in stacks)
        padded, sizes = np.full((count, length + 1), -1), np.empty(count, np.intp)
        parts, start = [], 0
        for stack in stacks:
            parts.append(slice(start, start + len(stack.counts)))
            padded[parts[-1], : stack.variables.shape[1]] = stack.variables
            sizes[parts[-1]] = stack.counts[0].size
            start = parts[-1].stop
        order = np.lexsort(padded.T[::-1])
        positions, starts = np.empty(count, np.intp), np.empty(count, np.intp)
        positions[order], starts[order] = np.arange(count), np.cumsum(sizes[order]) - sizes[order]
        counts, deviations, alike = np.empty(int(sizes.sum())), np.empty(count), []
        for stack, part in zip(stacks, parts, strict=True):
            sorted_ = np.argsort(positions[part])
            cells = starts[part][sorted_, None] + np.arange(stack.counts[0].size)
            counts[cells] = stack.counts.reshape(len(cells), -1)[sorted_]
            deviations[positions[part]] = stack.deviations
            cells = cells.reshape(stack.counts.shape)
            alike.append(Alike(positions[part][sorted_], stack.variables[sorted_], cells))
        return cls(cardinalities, tuple(alike), counts, deviations, known_total, residuals)

    def __iter__(self) -> Iterator[NoisyTable]:
        tables: list[Any] = [None] * len(self.deviations)
        for numbers, variables, cells in self.alike:
            for number, own, table in zip(numbers.tolist(), variables.tolist(), self.counts[cells], strict=True):
                tables[number] = NoisyTable(tuple(own), table, float(self.deviations[number]))
        return iter(tables)

    def compared(self, tables: Vector, first: int = 0) -> Vector:
        """Return the measured part of tables, whose axes start at `first`: residuals if only these were measured."""
        return centred(tables, first) if self.residuals else tables

    @cached_property
    def total(self) -> float:
        """The number of records, or else the mean of all tables' sums, weighted by precision; at least 1."""
        if self.known_total is not None:
            return max(self.known_total, 1.0)
        return max(float(self._margins(0).counts[0]), 1.0)

    def _margins(self, size: int) -> NoisyTables:
        """Pool the margins of some number of variables; residuals are informative about their own variables alone."""
        by_shape: dict[tuple[int, ...], list[tuple[Whole, _Stack]]] = {}
        for numbers, variables, cells in self.alike:
            axes = range(variables.shape[1])
            if len(axes) < size or (self.residuals and len(axes) != size):
                continue
            counts, deviations = self.counts[cells], self.deviations[numbers]
            for kept in itertools.combinations(axes, size):
                summed = counts.sum(axis=tuple(axis + 1 for axis in axes if axis not in kept))
                added = np.sqrt(counts[0].size / max(summed[0].size, 1))
                stack = _Stack(variables[:, kept], summed, deviations * added)
                by_shape.setdefault(summed.shape[1:], []).append((numbers, stack))
        stacks = []
        for results in by_shape.values():
            order = np.argsort(np.concatenate([numbers for numbers, _ in results]), kind="stable")
            whole = _Stack(*(np.concatenate(parts)[order] for parts in zip(*(own for _, own in results), strict=True)))
            stacks.append(whole.pooled(len(self.cardinalities)))
        return self._numbered(self.cardinalities, stacks, self.known_total, self.residuals)

    @cached_property
    def singles(self) -> tuple[Vector, ...]:
        """The shares of every variable's states, from all tables that contain it, projected on the simplex."""
        return tuple(project_to_simplex(table.counts / self.total) for table in self._singles)

    @cached_property
    def single_deviations(self) -> tuple[float, ...]:
        """The standard deviation of the noise in the counts of each variable's states."""
        return tuple(self._singles.deviations.tolist())

    @cached_property
    def _singles(self) -> NoisyTables:
        results = self._margins(1)
        return results._completed(lambda alike: self.total / alike.cells.shape[1]) if self.residuals else results

    def _completed(self, beyond: Callable[[Alike], Any]) -> NoisyTables:
        """Add the margins to residuals; the deviation is that of the residuals' noise, which is projected."""
        counts, deviations = self.counts.copy(), self.deviations.copy()
        for alike in self.alike:
            counts[alike.cells] = centred(self.counts[alike.cells], 1) + beyond(alike)
            share = math.prod(1 - 1 / states for states in alike.cells.shape[1:])
            deviations[alike.numbers] *= math.sqrt(share)
        return replace(self, counts=counts, deviations=deviations)

    def possible(self, variable: int) -> Vector:
        """Return a variable's shares, all positive: a state that seems to have no record may have one."""
        raised = np.maximum(self.singles[variable], _MIN)
        shares: Vector = raised / raised.sum()
        return shares

    @cached_property
    def pairs(self) -> NoisyTables | None:
        """The counts of all pairs in some table, from all tables that contain them; None if there are none."""
        if all(alike.variables.shape[1] < 2 for alike in self.alike):
            return None
        results = self._margins(2)
        return results._completed(self._from_margins) if self.residuals else results

    def shares_of(self, variables: Whole) -> Vector:
        """Stack the shares of the states of several variables, which have as many each."""
        return np.stack([self.singles[variable] for variable in variables.tolist()])

    def independent(self, pairs: Alike) -> Vector:
        """Return the expected counts of pairs if their variables are independent."""
        rows, columns = (self.shares_of(variables) for variables in pairs.variables.T)
        counts: Vector = self.total * (rows[:, :, None] * columns[:, None])
        return counts

    def _from_margins(self, pairs: Alike) -> Vector:
        """Return the counts of pairs that have the margins of single variables and no residuals."""
        rows, columns = (self.shares_of(variables) for variables in pairs.variables.T)
        states, others = rows.shape[1], columns.shape[1]
        counts: Vector = self.total * (rows[:, :, None] / others + columns[:, None] / states - 1 / (states * others))
        return counts

    def thinned(self, share: float, generator: np.random.Generator) -> tuple[NoisyTables, NoisyTables]:
        """Split into two releases of the same counts; see :func:`~pgmpy_dp.inference.tables.table.thinned`."""
        one, other = thinned(self.counts, self.of_cells(self.deviations), share, generator)
        root = math.sqrt(1 + share**2)
        return (
            replace(self, counts=one, deviations=self.deviations * root),
            replace(self, counts=other, deviations=self.deviations * root / share),
        )

    def of_cells(self, numbers: Vector) -> Vector:
        """Repeat a number of each table for every cell of it."""
        results = np.empty_like(self.counts)
        for alike in self.alike:
            results[alike.cells.reshape(len(alike.numbers), -1)] = numbers[alike.numbers, None]
        return results


class _Stack(NamedTuple):
    """Noisy tables of one shape: the variables, counts and deviation of each."""

    variables: Whole
    counts: Vector
    deviations: Vector

    def pooled(self, variables: int) -> _Stack:
        """Average the tables of each set in `variables`, weighted by precision."""
        names = np.zeros(len(self.counts), np.intp)
        for column in self.variables.T:
            names = np.unique(names * variables + column, return_inverse=True)[1]
        _, first, positions, times = np.unique(names, return_index=True, return_inverse=True, return_counts=True)
        if len(times) == len(names):
            return self
        weights = self.deviations**-2
        precisions, size = np.bincount(positions, weights), self.counts[0].size
        cells = positions[:, None] * size + np.arange(size)
        weighted = self.counts.reshape(len(names), size) * weights[:, None]
        sums = np.bincount(cells.ravel(), weighted.ravel()).reshape(len(times), *self.counts.shape[1:])
        shape = (-1,) + (1,) * (self.counts.ndim - 1)
        once, several = (times == 1).reshape(shape), precisions.reshape(shape)
        deviations = np.where(times == 1, self.deviations[first], precisions**-0.5)
        return _Stack(self.variables[first], np.where(once, self.counts[first], sums / several), deviations)


def coarse_table(refined: Refined, cardinalities: Mapping[Variable, int], table: Noisy) -> Noisy:
    """Sum the states of finer variables in a noisy table to those of their coarser ones.

    The deviation is that of the noisiest sum.
    """
    names, counts, deviation = table
    for finer in [name for name in names if name in refined]:
        coarser, groups = refined[finer]
        names, counts, deviation = _without((names, counts, deviation), finer, coarser, groups)
        counts = grouped(np.asarray(counts, dtype=np.float64), names.index(finer), groups, cardinalities[coarser])
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

    For least squares on the simplex, Stein's estimate of the degrees of freedom is the number of positive shares minus
    one, times the share of the distance that is left. With the misfit they give Mallows' criterion C_p.
    """
    free = max(int(np.count_nonzero(shares > _POSITIVE / shares.size)) - 1, 0)
    signal = float(((shares - 1 / shares.size) ** 2).sum())
    left = signal / (signal + free * deviation**2) if signal else 0.0
    return np.maximum(1 / shares.size + left * (shares - 1 / shares.size), 0.0), float(free * left)  # 0 up to rounding


def _without(table: Noisy, finer: Variable, coarser: Variable, groups: Whole) -> Noisy:
    """Drop the coarser variable's axis from a table with the finer one, given which its other states cannot occur."""
    names, counts, deviation = tuple(table[0]), np.asarray(table[1], dtype=np.float64), table[2]
    if coarser in names:
        axes = names.index(finer), names.index(coarser)
        kept = np.moveaxis(counts, axes, (0, 1))[np.arange(groups.size), groups]
        names = tuple(name for name in names if name != coarser)
        counts = np.moveaxis(kept, 0, names.index(finer))
    return names, counts, deviation
