"""Starting point of a mixture's components: blocks of strongly dependent variables, and the blocks' tables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import reduce
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, xlogy

from pgmpy_dp.inference.mixtures.fit.noisy_tables import NoisyTable, NoisyTables
from pgmpy_dp.inference.mixtures.fit.shape import Shape
from pgmpy_dp.inference.tables.layout import Vector

# Grid of ratios between a cell's expected count and that under independence. The distribution of ratios over the cells
# of all pairs is estimated first, and serves as a prior for that over the cells of one pair.
_RATIOS = np.concatenate([[0.0], np.geomspace(0.02, 300.0, 40)])
_CELLS, _STRENGTH = 4_000, 10.0
# Conditions for two variables to join a block: least mutual information in nats, least distance of their table from
# independence in standard deviations, and most cells of a block of two variables and of more.
_INFORMATION, _SIGNIFICANCE, _LARGEST, _LARGEST_OF_MORE = 0.03, 4.0, 900, 128
# Expected number of records of a pair below which its cells are left out of a block; this excludes what cannot occur.
_RARE = 0.3
_SWEEPS = 30  # of iterative proportional fitting


def start_from(
    tables: NoisyTables, dependent: Mapping[int, tuple[int, NDArray[np.intp]]] = MappingProxyType({})
) -> tuple[Shape, Vector]:
    """Find blocks, and logs of base tables towards which components are regularised.

    Variables are joined to blocks, those of the pair with most mutual information first, as long as blocks stay small.
    Variables in `dependent` follow from others and are in no block; see `Shape`.

    Returns
    -------
    shape : Shape
    log_base : ndarray of shape (cells,)
    """
    denoised = {pair: counts for pair, counts in denoise_pairs(tables).items() if not dependent.keys() & pair}
    information = {pair: _information(counts) for pair, counts in denoised.items()}
    bases: dict[tuple[int, ...], tuple[Vector, NDArray[np.bool_]]] = {
        (variable,): _base(tables, (variable,), denoised)
        for variable in range(len(tables.cardinalities))
        if variable not in dependent
    }
    informative = [pair for pair in information if information[pair] > _INFORMATION]
    for one, other in sorted(informative, key=lambda pair: -information[pair]):
        parts = [block for block in bases if one in block or other in block]
        joined = tuple(sorted(itertools.chain(*parts)))
        most = _LARGEST if len(joined) == 2 else _LARGEST_OF_MORE
        small = math.prod(tables.cardinalities[variable] for variable in joined) <= most
        if len(parts) == 2 and small:
            counts, kept = _base(tables, joined, denoised)
            if counts[kept].sum() > counts.sum() / 2:  # pairs that contradict each other would leave nothing
                bases = {block: own for block, own in bases.items() if block not in parts} | {joined: (counts, kept)}
    blocks = tuple(sorted(bases, key=lambda block: (-len(block), block)))
    logs = [np.log(counts[kept] / counts[kept].sum()) for counts, kept in map(bases.__getitem__, blocks)]
    cells = tuple(np.argwhere(bases[block][1]) for block in blocks)
    return Shape(tables.cardinalities, blocks, cells, dependent), np.concatenate(logs)


def _base(
    tables: NoisyTables, block: tuple[int, ...], denoised: Mapping[tuple[int, int], Vector]
) -> tuple[Vector, NDArray[np.bool_]]:
    """Estimate the counts of a block, and which of its cells occur.

    They have the entropy's maximum given its pairs' denoised counts. Cells that a pair excludes do not occur: of three
    variables that determine each other no combination is left that two of them rule out.
    """
    counts = tables.total * reduce(np.multiply.outer, [tables.possible(variable) for variable in block])
    kept = np.ones(counts.shape, dtype=bool)
    pairs = {}
    for places in itertools.combinations(range(len(block)), 2):
        pair = denoised.get((block[places[0]], block[places[1]]))
        if pair is not None:
            others = tuple(place for place in range(len(block)) if place not in places)
            kept &= np.expand_dims(pair > min(_RARE, pair.max() / 2), others)
            pairs[others] = np.expand_dims(pair, others)
    for _ in range(_SWEEPS):
        for others, pair in pairs.items():
            now = counts.sum(axis=others, keepdims=True)
            counts = counts * np.divide(pair, now, out=np.zeros_like(now), where=now > 0)
    return counts, kept


def chance_of_independence(tables: NoisyTables) -> float:
    """Bound the probability that some pair is as far from independence if all are independent and noise is normal."""
    least = 1.0
    for pair, table in tables.pairs.items():
        shares = [tables.singles[variable] for variable in pair]
        one, other = (tables.single_deviations[variable] for variable in pair)
        variance = table.deviation**2 + (one * shares[1][None]) ** 2 + (other * shares[0][:, None]) ** 2
        squares = float(((table.counts - _independent(tables, pair)) ** 2 / variance).sum())
        least = min(least, float(chdtrc(table.counts.size, squares)))
    return least * len(tables.pairs)


def denoise_pairs(tables: NoisyTables) -> dict[tuple[int, int], Vector]:
    """Estimate the counts of the pairs that may form blocks, by non-parametric empirical Bayes."""
    candidates = {
        pair: (table, _independent(tables, pair))
        for pair, table in tables.pairs.items()
        if table.counts.size <= _LARGEST
    }
    if not candidates:
        return {}
    found = {}
    for pair, counts in zip(candidates, denoised_ratios(list(candidates.values())), strict=True):
        if counts is not None and counts.any():  # a table far below zero may have no records in any cell
            found[pair] = counts
    return found


def denoised_ratios(tables: Sequence[tuple[NoisyTable, Vector]]) -> list[Vector | None]:
    """Estimate the ratios of cells to their expectations, by non-parametric empirical Bayes.

    Parameters
    ----------
    tables : sequence of (NoisyTable, ndarray)
        Each with the expectations of its cells.

    Returns
    -------
    list of ndarray or None
        Denoised counts; None if noise alone may explain the difference from the expectation.
    """
    everywhere = np.concatenate([
        np.stack([table.counts.ravel(), expected.ravel(), np.full(expected.size, table.deviation)])
        for table, expected in tables
    ], axis=1)  # fmt: skip
    every = -(-everywhere.shape[1] // _CELLS)  # equally spaced cells represent all
    prior = np.full(_RATIOS.size, 1 / _RATIOS.size)
    prior = _mixing(_likelihoods(*everywhere[:, ::every]), prior, 60)
    found: list[Vector | None] = []
    for table, expected in tables:
        if _significance(table, expected) > _SIGNIFICANCE:
            deviation = np.full(expected.size, table.deviation)
            likelihoods = _likelihoods(table.counts.ravel(), expected.ravel(), deviation)
            joint = likelihoods * _mixing(likelihoods, prior, 40)
            ratios = joint @ _RATIOS / joint.sum(axis=1)
            found.append(expected * ratios.reshape(expected.shape))
        else:
            found.append(None)
    return found


def _independent(tables: NoisyTables, pair: tuple[int, int]) -> Vector:
    """Return the expected counts of a pair if its variables are independent."""
    return np.asarray(tables.total * np.outer(*(tables.singles[variable] for variable in pair)))


def _squares(table: NoisyTable, expected: Vector) -> float:
    """Return the sum of squared residuals of the counts, in units of the noise variance."""
    return float((((table.counts - expected) / table.deviation) ** 2).sum())


def _likelihoods(counts: Vector, expected: Vector, deviation: Vector) -> Vector:
    """Compute the likelihood of every cell (row) and ratio (column), up to a factor per row."""
    logs = -0.5 * ((counts[:, None] - expected[:, None] * _RATIOS) / deviation[:, None]) ** 2
    likelihoods: Vector = np.exp(logs - logs.max(axis=1, keepdims=True))
    return likelihoods


def _mixing(likelihoods: Vector, prior: Vector, iterations: int) -> Vector:
    """Estimate the distribution of the ratios by EM, with a prior that counts as a few cells."""
    found = prior
    for _ in range(iterations):
        counts = found * ((1 / (likelihoods @ found)) @ likelihoods) + _STRENGTH * prior
        found = counts / counts.sum()
    return found


def _significance(table: NoisyTable, expected: Vector) -> float:
    """Return the distance of the table from independence, in standard deviations due to noise alone."""
    return (_squares(table, expected) - expected.size) / float(np.sqrt(2 * expected.size))


def _information(counts: Vector) -> float:
    """Compute the mutual information of the two variables of a table, in nats."""
    joint = counts / counts.sum()
    product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    return float((xlogy(joint, joint) - xlogy(joint, product)).sum())
