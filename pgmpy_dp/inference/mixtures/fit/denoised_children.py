"""Denoised shares of a finer variable's states within the groups that a coarser one has of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pgmpy_dp.inference.mixtures.children import Child, Whole
from pgmpy_dp.inference.mixtures.fit.base import denoised_ratios
from pgmpy_dp.inference.mixtures.fit.noisy_tables import NoisyTables, Refined
from pgmpy_dp.inference.tables.table import Variable, Vector

_CLEAR = 10.0  # counts of more deviations are taken as they are


def denoised_within(
    refined: Refined, fine: Mapping[Variable, tuple[Vector, float]], totals: Mapping[Variable, Vector]
) -> dict[Variable, Child]:
    """Estimate finer variables given their coarser ones, more accurately than :func:`.noisy_tables.children_within`.

    Counts that stand out from the noise are taken as they are. Others are denoised by empirical Bayes, by the
    distribution of their ratios to the mean of such states in their group. Less than one record is spread evenly, so
    that no state is impossible.
    """
    children = {}
    for finer, (coarser, groups) in refined.items():
        total, (counts, deviation) = totals[coarser], fine[finer]
        records = _denoised(counts, deviation, groups, total)
        sums, sizes = (np.bincount(groups, weights, total.size) for weights in (records, None))
        shares = records * (np.maximum(total, 1.0) / np.maximum(sums, 1e-12))[groups] + 1.0 / sizes[groups]
        shares /= np.bincount(groups, shares, total.size)[groups]
        children[finer] = Child.within(coarser, groups, shares, total.size)
    return children


def _denoised(counts: Vector, deviation: float, groups: Whole, totals: Vector) -> Vector:
    """Estimate the numbers of records in finer states, in proportion to each other within groups."""
    clear = counts > _CLEAR * deviation
    rest = np.maximum(totals - np.bincount(groups, np.where(clear, counts, 0.0), totals.size), 1.0)
    expected = (rest / np.maximum(np.bincount(groups, ~clear, totals.size), 1.0))[groups]
    records: Vector = np.where(clear, counts, expected)
    if not clear.all():
        tables = NoisyTables.of({"finer": int((~clear).sum())}, [(("finer",), counts[~clear], deviation)])
        records[~clear] = denoised_ratios(tables, expected[~clear]).get((0,), expected[~clear])
    return records
