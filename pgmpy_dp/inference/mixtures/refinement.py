"""Finer variables within coarser ones: shares of states in each group, independent of all else."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference.tables.layout import Variable, Vector
from pgmpy_dp.inference.tables.table import pooled, project_to_simplex

Whole = NDArray[np.intp]
# For each finer variable the coarser one, and its state for every state of the finer one.
Refined = Mapping[Variable, tuple[Variable, Whole]]
# Variables, counts, and the standard deviation of the noise in a cell.
Noisy = tuple[Sequence[Variable], Any, float]


@dataclass(frozen=True)
class Refinement:
    """Probability of every state of a finer variable given its state of the coarser one.

    Parameters
    ----------
    coarser : variable
    groups : ndarray of int
        For every state of the finer variable the state of the coarser one.
    shares : ndarray
        They sum to one in each group.

    Examples
    --------
    >>> places = Refinement("region", np.array([0, 1, 0]), np.array([0.25, 1.0, 0.75]))
    >>> places.spread(np.array([0.4, 0.6]), 0)
    array([0.1, 0.6, 0.3])
    """

    coarser: Variable
    groups: Whole
    shares: Vector

    @classmethod
    def of(cls, coarser: Variable, groups: Whole, counts: Vector, totals: Vector) -> Refinement:
        """Estimate shares from noisy counts of the finer states, and totals of their groups.

        Within a group, counts are projected on those with the group's total. Less than one record is spread evenly, so
        that no state is impossible.
        """
        shares = np.zeros(groups.size)
        for group, total in enumerate(totals):
            states = np.flatnonzero(groups == group)
            if states.size:
                records = max(float(total), 1.0)
                nearest = project_to_simplex(counts[states] / records)
                shares[states] = (nearest * records + 1 / states.size) / (records + 1)
        return cls(coarser, groups, shares)

    @property
    def states(self) -> int:
        """Number of states of the finer variable."""
        return self.groups.size

    def spread(self, table: Vector, axis: int) -> Vector:
        """Replace the axis of the coarser variable by one of the finer variable."""
        shape = [-1 if place == axis else 1 for place in range(table.ndim)]
        return np.take(table, self.groups, axis=axis) * self.shares.reshape(shape)

    def attach(self, table: Vector, axis: int) -> Vector:
        """Append an axis of the finer variable to a table, keeping that of the coarser one."""
        within = (np.arange(table.shape[axis])[:, None] == self.groups) * self.shares
        found: Vector = np.moveaxis(np.moveaxis(table, axis, -1)[..., None] * within, -2, axis)
        return found

    def given(self, likelihood: Vector, groups: int) -> tuple[Vector, Refinement]:
        """Condition on evidence on the finer variable: return the likelihood of every group, and the new shares."""
        joint = self.shares * likelihood
        sums: Vector = np.bincount(self.groups, joint, groups).astype(np.float64)
        within = sums[self.groups]
        shares = np.where(within > 0, joint / np.where(within > 0, within, 1.0), self.shares)
        return sums, replace(self, shares=shares)

    def draw(self, groups: NDArray[Any], generator: np.random.Generator, *, even: bool) -> Whole:
        """Draw a finer state for each record's group: at random, or so that each has its expected number, rounded."""
        order = np.argsort(self.groups, kind="stable")
        sizes = np.bincount(self.groups)
        ends = np.cumsum(sizes)
        sums = np.cumsum(self.shares[order])
        before = np.concatenate([[0.0], sums])[ends - sizes]
        # Sums within group g lie between g and g + 1, so that one search serves all groups.
        steps = sums - before[self.groups[order]] + self.groups[order]
        spots = generator.random(groups.size)
        if even:
            by_group = np.lexsort((spots, groups))
            counts = np.bincount(groups, minlength=sizes.size)
            ranks = np.arange(groups.size) - np.repeat(np.cumsum(counts) - counts, counts)
            start = generator.random(counts.size)
            spots[by_group] = (ranks + np.repeat(start, counts)) / np.repeat(counts, counts)
        places = np.searchsorted(steps, groups + spots, side="right")
        kept = np.clip(places, (ends - sizes)[groups], ends[groups] - 1)
        return order[kept]


def coarse_table(refined: Refined, cardinalities: Mapping[Variable, int], table: Noisy) -> Noisy:
    """Sum the states of finer variables in a noisy table to those of their coarser ones.

    The deviation is that of the noisiest sum.
    """
    names, counts, deviation = table
    for finer in [name for name in names if name in refined]:
        coarser, groups = refined[finer]
        names, counts, deviation = _without((names, counts, deviation), finer, coarser, groups)
        counts = summed_by(np.asarray(counts, dtype=np.float64), names.index(finer), groups, cardinalities[coarser])
        deviation *= math.sqrt(np.bincount(groups).max())
        names = tuple(coarser if name == finer else name for name in names)
    return names, counts, deviation


def summed_by(table: Vector, axis: int, groups: Whole, count: int) -> Vector:
    """Sum an axis of a table by groups."""
    moved = np.moveaxis(table, axis, 0)
    found = np.zeros((count, *moved.shape[1:]))
    np.add.at(found, groups, moved)
    return np.moveaxis(found, 0, axis)


def fine_counts(refined: Refined, tables: Iterable[Noisy]) -> dict[Variable, tuple[Vector, float]]:
    """Return the noisy counts of each finer variable alone, from all tables that contain it, and their deviations."""
    found: dict[Variable, list[tuple[Vector, float]]] = {finer: [] for finer in refined}
    for table in tables:
        for finer in [name for name in table[0] if name in refined]:
            names, counts, deviation = _without(table, finer, *refined[finer])
            array = np.moveaxis(np.asarray(counts, dtype=np.float64), names.index(finer), 0)
            others = array.size // array.shape[0]
            found[finer].append((array.reshape(-1, others).sum(axis=1), deviation * math.sqrt(others)))
    means = {
        finer: pooled([t for t, _ in own], [deviation**-2 for _, deviation in own]) for finer, own in found.items()
    }
    return {finer: (counts, precision**-0.5) for finer, (counts, precision) in means.items()}


def refinements(
    refined: Refined, fine: Mapping[Variable, tuple[Vector, float]], totals: Mapping[Variable, Vector]
) -> dict[Variable, Refinement]:
    """Estimate the refinements of several variables from their noisy counts and their coarser variables' totals."""
    return {
        finer: Refinement.of(coarser, groups, fine[finer][0], totals[coarser])
        for finer, (coarser, groups) in refined.items()
    }


def _without(table: Noisy, finer: Variable, coarser: Variable, groups: Whole) -> Noisy:
    """Drop the axis of the coarser variable beside the finer one: its other states cannot occur."""
    names, counts, deviation = tuple(table[0]), np.asarray(table[1], dtype=np.float64), table[2]
    if coarser in names:
        axes = names.index(finer), names.index(coarser)
        kept = np.moveaxis(counts, axes, (0, 1))[np.arange(groups.size), groups]
        names = tuple(name for name in names if name != coarser)
        counts = np.moveaxis(kept, 0, names.index(finer))
    return names, counts, deviation
