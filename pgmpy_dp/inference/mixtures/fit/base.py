"""Starting point of a mixture's components: blocks of strongly dependent variables, and the blocks' tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from pgmpy_dp.inference.mixtures.fit.noisy_tables import NoisyTable, NoisyTables
from pgmpy_dp.inference.mixtures.fit.shape import Shape
from pgmpy_dp.inference.tables.layout import Vector

# Grid of ratios between a cell's expected count and that under independence. The distribution of ratios over the cells
# of all pairs is estimated first, and serves as a prior for that over the cells of one pair.
_RATIOS = np.concatenate([[0.0], np.geomspace(0.02, 300.0, 40)])
_CELLS, _STRENGTH = 4_000, 10.0
# Conditions for two variables to form a block: least mutual information in nats, least distance of their table from
# independence in standard deviations, and most cells.
_INFORMATION, _SIGNIFICANCE, _LARGEST = 0.03, 4.0, 900
# Expected number of records below which cells are left out of a block; this excludes what cannot occur.
_RARE = 0.3


def start_from(
    tables: NoisyTables, dependent: Mapping[int, tuple[int, NDArray[np.intp]]] = MappingProxyType({})
) -> tuple[Shape, Vector]:
    """Find blocks, and logs of base tables towards which components are regularised.

    Pairs of variables are matched so that their mutual information is largest; each is a block, and so is every
    remaining variable. Variables in `dependent` follow from others and are in no block; see `Shape`.

    Returns
    -------
    shape : Shape
    log_base : ndarray of shape (cells,)
    """
    denoised = denoise_pairs(tables)
    graph = nx.Graph()
    for pair, counts in denoised.items():
        information = _information(counts)
        if information > _INFORMATION and not dependent.keys() & pair:
            graph.add_edge(*pair, weight=information)
    matched = sorted(tuple(sorted(edge)) for edge in nx.max_weight_matching(graph))
    blocked = {variable for pair in matched for variable in pair}
    alone = sorted(set(range(len(tables.cardinalities))) - blocked - dependent.keys())
    cells, logs = [], []
    for pair in matched:
        counts = denoised[pair]
        kept = np.argwhere(counts > min(_RARE, counts.max() / 2))
        cells.append(kept)
        logs.append(np.log(counts[tuple(kept.T)] / counts[tuple(kept.T)].sum()))
    for variable in alone:
        cells.append(np.arange(tables.cardinalities[variable])[:, None])
        logs.append(np.log(tables.possible(variable)))
    blocks = (*matched, *((variable,) for variable in alone))
    return Shape(tables.cardinalities, blocks, tuple(cells), dependent), np.concatenate(logs)


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
