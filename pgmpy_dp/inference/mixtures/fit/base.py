"""Starting point of a mixture's components: blocks of strongly dependent variables, their tables, and their layout."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, xlogy

from pgmpy_dp.inference.mixtures.fit.noisy_tables import NoisyTables
from pgmpy_dp.inference.mixtures.mixture import Mixture
from pgmpy_dp.inference.tables.table import Variable, Vector

Matrix = NDArray[Any]  # float32 in fits, float64 where tests compare gradients
Whole = NDArray[np.intp]


@dataclass(frozen=True)
class Shape:
    """Places of the states of variables and of the cells of blocks in flat vectors.

    Parameters
    ----------
    cardinalities : tuple of int
    blocks : tuple of tuples of int
        Each variable that follows from no other is in exactly one.
    cells : tuple of ndarrays of shape (cells of the block, variables of the block)
        States of the cells in a block's tables.
    dependent : mapping of int to (int, ndarray)
        Variables that follow from another one, their root, with the state for each state of the root.
    """

    cardinalities: tuple[int, ...]
    blocks: tuple[tuple[int, ...], ...]
    cells: tuple[Whole, ...]
    dependent: Mapping[int, tuple[int, Whole]] = field(default_factory=dict)

    @cached_property
    def states(self) -> Whole:
        """Start of every variable's states, followed by their number."""
        return np.cumsum([0, *self.cardinalities])

    @cached_property
    def starts(self) -> Whole:
        """Start of every block's cells, followed by their number."""
        return np.cumsum([0, *(len(cells) for cells in self.cells)])

    @cached_property
    def members(self) -> NDArray[np.int32]:
        """Places of every cell's states, by variable of its block; -1 beyond the last one."""
        result = np.full((self.starts[-1], max(map(len, self.blocks))), -1, np.int32)
        for number, block in enumerate(self.blocks):
            result[self.of_block(number), : len(block)] = self.states[list(block)] + self.cells[number]
        return result

    @cached_property
    def places(self) -> tuple[tuple[int, int], ...]:
        """Block of every variable, and its place within it; for one that follows from another, those of the root."""
        results = {
            v: (number, position) for number, block in enumerate(self.blocks) for position, v in enumerate(block)
        }
        results |= {variable: results[root] for variable, (root, _) in self.dependent.items()}
        return tuple(results[variable] for variable in range(len(self.cardinalities)))

    def codes(self, number: int, variables: Sequence[int] = ()) -> Whole:
        """Return the places of a block's cells in the full table of some of its variables, of all by default."""
        block = self.blocks[number]
        axes = [block.index(variable) for variable in variables or block]
        shape = [self.cardinalities[block[axis]] for axis in axes]
        codes: Whole = np.ravel_multi_index(tuple(self.cells[number][:, axes].T), shape)
        return codes

    def of_variable(self, variable: int) -> slice:
        return slice(int(self.states[variable]), int(self.states[variable + 1]))

    @cached_property
    def following(self) -> tuple[Whole, Whole]:
        """Places of states that others follow from, and of those that follow; a state is in the latter repeatedly."""
        nothing, followers = np.empty(0, np.intp), self.dependent.items()
        return (
            np.concatenate([nothing, *(self.states[root] + np.arange(len(own)) for _, (root, own) in followers)]),
            np.concatenate([nothing, *(self.states[variable] + own for variable, (_, own) in followers)]),
        )

    def of_block(self, number: int) -> slice:
        return slice(int(self.starts[number]), int(self.starts[number + 1]))


class Targets(NamedTuple):
    """Tables of one shape that the mixture's marginals should equal.

    Attributes
    ----------
    variables : ndarray of int, shape (tables, axes)
    shares : ndarray of shape (tables, states, ...)
        The tables' cells, as shares of the records; or their residuals.
    precisions : ndarray of shape (tables,)
        One over the variance of each cell.
    """

    variables: Whole
    shares: Matrix
    precisions: Matrix


# Grid of ratios between a cell's expected count and that under independence. The distribution of ratios over the cells
# of all pairs is estimated first, and serves as a prior for that over the cells of one pair.
_RATIOS = np.concatenate([[0.0], np.geomspace(0.02, 300.0, 40)])
_CELLS, _STRENGTH = 4_000, 10.0
# Conditions for two variables to join a block: minimum mutual information in nats, minimum distance of their table from
# independence in standard deviations, and maximum number of cells of a block of two variables and of more.
_INFORMATION, _SIGNIFICANCE, _LARGEST, _LARGEST_OF_MORE = 0.03, 4.0, 900, 128
# Among more pairs than this, many are as far from independence by chance: a pair must be farther than any would be with
# this probability. Blocks that arise from noise do not make mixtures more accurate, and their cells take most of the
# time of a fit.
_MANY_PAIRS, _CHANCE = 1_000, 0.01
# Expected number of records of a pair below which its cells are left out of a block; this excludes cells that cannot
# occur.
_RARE = 0.3
_SWEEPS = 30  # of iterative proportional fitting


def start_from(
    tables: NoisyTables, dependent: Mapping[int, tuple[int, NDArray[np.intp]]] = MappingProxyType({})
) -> tuple[Shape, Vector]:
    """Find blocks, and logs of base tables towards which components are regularised.

    Variables are joined to blocks, those of the pair with most mutual information first, as long as blocks stay small.
    Variables in `dependent` follow from others and are in no block; see `Shape`.
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
        maximum = _LARGEST if len(joined) == 2 else _LARGEST_OF_MORE
        small = math.prod(tables.cardinalities[variable] for variable in joined) <= maximum
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
    """Estimate the counts of a block, and which of its cells occur."""
    counts = tables.total * reduce(np.multiply.outer, [tables.possible(variable) for variable in block])
    kept = np.ones(counts.shape, dtype=bool)
    pairs = {}
    for positions in itertools.combinations(range(len(block)), 2):
        pair = denoised.get((block[positions[0]], block[positions[1]]))
        if pair is not None:
            others = tuple(position for position in range(len(block)) if position not in positions)
            kept &= np.expand_dims(pair > min(_RARE, pair.max() / 2), others)
            pairs[others] = np.expand_dims(pair, others)
    for _ in range(_SWEEPS):
        for others, pair in pairs.items():
            now = counts.sum(axis=others, keepdims=True)
            counts = counts * np.divide(pair, now, out=np.zeros_like(now), where=now > 0)
    return counts, kept


def chance_of_independence(tables: NoisyTables) -> float:
    """Bound the p-value of the pair farthest from independence, if all pairs are independent and noise is normal."""
    pairs, smallest = tables.pairs, 1.0
    if pairs is None:
        return 0.0
    deviations = np.array(tables.single_deviations)
    for alike in pairs.alike:
        one, other = alike.variables.T
        rows, columns = tables.shares_of(one)[:, :, None], tables.shares_of(other)[:, None]
        noise, of_rows, of_columns = (
            own[:, None, None] for own in (pairs.deviations[alike.numbers], deviations[one], deviations[other])
        )
        variance = noise**2 + (of_rows * columns) ** 2 + (of_columns * rows) ** 2
        squares = ((pairs.counts[alike.cells] - tables.independent(alike)) ** 2 / variance).sum(axis=(1, 2))
        smallest = min(smallest, float(chdtrc(rows.shape[1] * columns.shape[2], squares).min()))
    return smallest * len(pairs.deviations)


def denoise_pairs(tables: NoisyTables) -> dict[tuple[int, int], Vector]:
    """Estimate the counts of the pairs that may form blocks, by non-parametric empirical Bayes."""
    pairs = tables.pairs
    if pairs is None:
        return {}
    few = tuple(alike for alike in pairs.alike if math.prod(alike.cells.shape[1:]) <= _LARGEST)
    if not few:
        return {}
    expected = np.zeros_like(pairs.counts)
    for alike in few:
        expected[alike.cells] = tables.independent(alike)
    results = denoised_ratios(replace(pairs, alike=few), expected)
    # A table far below zero may have no records in any cell.
    return {(pair[0], pair[1]): counts for pair, counts in results.items() if counts.any()}


def denoised_ratios(tables: NoisyTables, expected: Vector) -> dict[tuple[int, ...], Vector]:
    """Estimate the ratios of cells to their expectations, by non-parametric empirical Bayes."""
    everywhere = np.sort(np.concatenate([alike.cells.ravel() for alike in tables.alike]))
    some = everywhere[:: -(-everywhere.size // _CELLS)]  # equally spaced cells represent all
    prior = np.full(_RATIOS.size, 1 / _RATIOS.size)
    deviations = tables.of_cells(tables.deviations)
    prior = _mixing(_likelihoods(tables.counts[some], expected[some], deviations[some]), prior, 60)
    results: dict[int, tuple[tuple[int, ...], Vector]] = {}
    for numbers, variables, cells in tables.alike:
        errors = ((tables.counts[cells] - expected[cells]) / deviations[cells]).reshape(len(cells), -1)
        size = errors.shape[1]
        squares = (errors**2).sum(axis=1)
        significant = (squares - size) / math.sqrt(2 * size) > _SIGNIFICANCE
        if len(tables.deviations) > _MANY_PAIRS:
            significant &= chdtrc(size, squares) * len(tables.deviations) < _CHANCE
        for position in np.flatnonzero(significant):
            own = cells[position]
            likelihoods = _likelihoods(*(values[own.ravel()] for values in (tables.counts, expected, deviations)))
            joint = likelihoods * _mixing(likelihoods, prior, 40)
            ratios = joint @ _RATIOS / joint.sum(axis=1)
            results[int(numbers[position])] = (
                tuple(variables[position].tolist()),
                expected[own] * ratios.reshape(own.shape),
            )
    return {variables: counts for _, (variables, counts) in sorted(results.items())}


def _likelihoods(counts: Vector, expected: Vector, deviation: Vector) -> Vector:
    """Compute the likelihood of every cell (row) and ratio (column), up to a factor per row."""
    logs = -0.5 * ((counts[:, None] - expected[:, None] * _RATIOS) / deviation[:, None]) ** 2
    likelihoods: Vector = np.exp(logs - logs.max(axis=1, keepdims=True))
    return likelihoods


def _mixing(likelihoods: Vector, prior: Vector, iterations: int) -> Vector:
    """Estimate the distribution of the ratios by EM, with a prior that counts as a few cells."""
    result = prior
    for _ in range(iterations):
        counts = result * ((1 / (likelihoods @ result)) @ likelihoods) + _STRENGTH * prior
        result = counts / counts.sum()
    return result


def _information(counts: Vector) -> float:
    """Compute the mutual information of the two variables of a table, in nats."""
    joint = counts / counts.sum()
    product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    return float((xlogy(joint, joint) - xlogy(joint, product)).sum())


# Share of its coefficient that an ordered state keeps (divided by the squared width); share that a similar state keeps;
# and the minimum ratio of probability, for components that nearly exclude a state.
_KEPT, _KEPT_ALIKE, _MIN_RATIO = 0.9, 0.02, 1e-3


def among_neighbours(states: int, width: float) -> Vector:
    """Share coefficients among ordered states, with weights of a normal density of this width."""
    position = np.arange(states)
    near = np.exp(-0.5 * ((position[:, None] - position) / width) ** 2)
    near /= np.sqrt((near**2).sum(axis=1, keepdims=True))
    kept = min(_KEPT / width**2, 1.0)
    smoothing: Vector = kept * np.eye(states) + (1 - kept) * near
    return smoothing


def among_alike(mixture: Mixture, variables: Iterable[Variable]) -> dict[Variable, Vector]:
    """Share coefficients among states whose probabilities vary together between components of a mixture.

    Log-potentials that are normal, with the covariance of the components' log-probabilities, are the root of this
    covariance times independent coefficients of equal scale, which the same steps find equally well.
    """
    covariances = {}
    for variable in variables:
        (shares,) = mixture.only([variable]).tables
        mean = mixture.weights @ shares
        ratios = np.divide(shares, mean, out=np.ones_like(shares), where=mean > 0)
        logs = np.log(np.maximum(ratios, _MIN_RATIO))
        logs -= (logs @ mean)[:, None]
        covariances[variable] = (logs.T * mixture.weights) @ logs
    variances = np.concatenate([np.diag(covariance) for covariance in covariances.values()] or [np.zeros(1)])
    if not variances.any():
        return {}
    results = {}
    for variable, covariance in covariances.items():
        values, vectors = np.linalg.eigh(covariance / variances.mean())
        root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        results[variable] = (1 - _KEPT_ALIKE) * root + _KEPT_ALIKE * np.eye(len(values))
    return results
