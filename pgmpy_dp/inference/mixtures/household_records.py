"""Persons drawn from a mixture given their household, and then exchanged between households.

The mixture is over a household, the number of its persons, and one of them. Given the household, persons are drawn
independently. How two persons of a household are related is introduced afterwards, by exchanging persons between
households, which leaves all tables of single persons unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference.mixtures.balanced_records import even_out
from pgmpy_dp.inference.mixtures.fit.base import denoised_ratios
from pgmpy_dp.inference.mixtures.fit.noisy_tables import NoisyTables
from pgmpy_dp.inference.mixtures.mixture import Mixture, cells_at
from pgmpy_dp.inference.tables.table import Variable, Vector

Codes = NDArray[np.int32]
Places = NDArray[np.int64]
# Variable of one person, variable of another, their table (of a household's pairs in both orders, with a total weight
# of 1), and the standard deviation of its noise.
Together = tuple[Variable, Variable, Vector, float]

_PATTERNS = 2_000  # distinct households whose components are computed at a time
_GOLDEN = (5**0.5 - 1) / 2
# Exchanges tried per person, their maximum work, and the share of accepted exchanges below which they end.
_SWEEPS, _MAX_WORK, _SETTLED = 60, 6_000_000_000, 0.003
# Price of a person's link to the household relative to pairs of persons, and share of pairs treated as independent.
_LINKS, _BLURRED = 10.0, 0.05


def draw_persons(
    mixture: Mixture,
    level: Sequence[Variable],
    size: Variable,
    together: Sequence[Together],
    households: Codes,
    generator: np.random.Generator,
) -> tuple[Places, Codes]:
    """Draw the persons of households, whose columns are those of `level`, and the household of each."""
    sizes = households[:, list(level).index(size)] + 1
    owners = np.repeat(np.arange(len(households)), sizes)
    roots = mixture.roots
    records = np.empty((owners.size, len(roots.variables)), dtype=np.int32)
    for position, variable in enumerate(roots.variables):
        if variable in level:
            records[:, position] = households[owners, list(level).index(variable)]
    own = [position for position, variable in enumerate(roots.variables) if variable not in level]
    fixed = [position for position, variable in enumerate(roots.variables) if variable in level]
    patterns, pattern = np.unique(records[:, fixed], axis=0, return_inverse=True)
    pattern = pattern.ravel()
    component = _components(roots, fixed, patterns, pattern, owners, generator)
    _draw_values(roots, records, own, component, generator)
    moved = [block for block in roots.blocks if not set(block) & set(level)]
    order = np.argsort(component, kind="stable")
    starts = np.searchsorted(component[order], np.arange(roots.weights.size + 1))
    persons = mixture.given({size: np.arange(1.0, roots.cardinalities[size] + 1)})
    ordered = records[order]
    even_out(persons.roots, ordered, starts, moved, generator)
    records[order] = ordered
    _change_places(persons.roots, records, own, fixed, owners, pattern, together, generator)
    names = [position for position, variable in enumerate(mixture.variables) if variable not in level]
    codes = dict(zip(roots.variables, records.T, strict=True))
    return owners, mixture.completed(codes, generator, even=True)[:, names].astype(np.int32)


def _components(
    mixture: Mixture, fixed: list[int], patterns: Codes, pattern: Places, owners: Places, generator: np.random.Generator
) -> Places:
    """Draw each person's component given the household, evenly over persons of households with equal values."""
    column = {mixture.variables[position]: number for number, position in enumerate(fixed)}
    factors = []
    for block, table in zip(mixture.blocks, mixture.tables, strict=True):
        given = [variable for variable in block if variable in column]
        if given:
            others = tuple(axis + 1 for axis, variable in enumerate(block) if variable not in column)
            with np.errstate(divide="ignore"):
                factors.append((given, np.moveaxis(np.log(table.sum(axis=others)), 0, -1)))
    rank = np.arange(owners.size) - np.searchsorted(owners, owners)
    order = np.lexsort((generator.random(owners.size), pattern, rank))
    share = np.empty(owners.size)
    share[order] = (np.arange(owners.size) * _GOLDEN + generator.random()) % 1.0
    result = np.empty(owners.size, dtype=np.int64)
    by_pattern = np.argsort(pattern, kind="stable")
    with np.errstate(divide="ignore"):
        start = np.log(mixture.weights)
    for begin in range(0, len(patterns), _PATTERNS):
        part = patterns[begin : begin + _PATTERNS]
        logs = np.tile(start, (len(part), 1))
        for given, log in factors:
            logs += log[tuple(part[:, column[variable]] for variable in given)]
        chances = np.exp(logs - logs.max(axis=1, keepdims=True))
        low, high = np.searchsorted(pattern[by_pattern], [begin, begin + len(part)])
        rows = by_pattern[low:high]
        result[rows] = cells_at(chances, pattern[rows] - begin, share[rows])
    return result


def _draw_values(
    mixture: Mixture, records: Codes, own: list[int], component: Places, generator: np.random.Generator
) -> None:
    """Draw persons' values block by block, evenly within a component and given values of the block."""
    position = {variable: number for number, variable in enumerate(mixture.variables)}
    for block, table in zip(mixture.blocks, mixture.tables, strict=True):
        drawn = [axis for axis, variable in enumerate(block) if position[variable] in own]
        given = [axis for axis in range(len(block)) if axis not in drawn]
        if not drawn:
            continue
        ordered = np.transpose(table, [0, *(axis + 1 for axis in given), *(axis + 1 for axis in drawn)])
        shape, fixed = [table.shape[axis + 1] for axis in drawn], [table.shape[axis + 1] for axis in given]
        rows = component.copy()
        for axis, states in zip(given, fixed, strict=True):
            rows = rows * states + records[:, position[block[axis]]]
        order = np.lexsort((generator.random(rows.size), rows))
        begins = np.searchsorted(rows[order], rows[order])
        sizes = np.searchsorted(rows[order], rows[order], side="right") - begins
        share = np.empty(rows.size)
        share[order] = (np.arange(rows.size) - begins + generator.random(rows.size)) / sizes
        used, row = np.unique(rows, return_inverse=True)
        cells = cells_at(ordered.reshape(-1, int(np.prod(shape)))[used], row.ravel(), share)
        for axis, values in zip(drawn, np.unravel_index(cells, shape), strict=True):
            records[:, position[block[axis]]] = values


def _change_places(
    mixture: Mixture,
    records: Codes,
    own: list[int],
    fixed: list[int],
    owners: Places,
    pattern: Places,
    together: Sequence[Together],
    generator: np.random.Generator,
) -> None:
    """Exchange persons until pairs of persons match the tables, as far as their noise allows."""
    from pgmpy_dp.inference.mixtures import record_kernel as kernel

    starts = np.searchsorted(owners, np.arange(owners[-1] + 2)) if owners.size else np.zeros(1, dtype=np.int64)
    sizes = np.diff(starts)
    if not together or sizes.max(initial=0) < 2:
        return
    states = [mixture.cardinalities[variable] for variable in mixture.variables]
    persons, offsets = _placed(records, own, states)
    homes, _ = _placed(records[starts[:-1]], fixed, states)
    weights = 1.0 / np.maximum(sizes * (sizes - 1), 1)
    now_together = _pairs(persons, owners, weights, offsets[-1])
    expected = _expected(now_together, [mixture.variables[position] for position in own], offsets, together)
    numbers = sum(states[position] for position in fixed)
    links = np.zeros((numbers, offsets[-1]))  # drawn evenly, and to be preserved
    shares = np.zeros_like(links)
    for column in range(homes.shape[1]):
        for row in range(persons.shape[1]):
            np.add.at(shares, (homes[owners, column], persons[:, row]), 1.0)
    alike = np.argsort(pattern, kind="stable")
    first = np.searchsorted(pattern[alike], pattern)
    size = np.searchsorted(pattern[alike], pattern, side="right") - first
    work = 4 * persons.shape[1] ** 2 * float(sizes.mean()) * owners.size
    sweeps = int(min(_SWEEPS, max(_MAX_WORK / work, 1.0)))
    excess, price = now_together - expected, 1.0 / (expected + 1.0)
    for _ in range(sweeps):
        made = kernel.exchange_persons(
            persons, owners, starts, homes, weights, alike, first, size,
            excess, price, links, _LINKS / (shares + 1.0), owners.size, generator,
        )  # fmt: skip
        if made < _SETTLED * owners.size:
            break
    records[:, own] = persons - offsets[:-1].astype(np.int32)


def _expected(now_together: Vector, names: Sequence[Variable], offsets: Places, together: Sequence[Together]) -> Vector:
    """Return expected pairs of persons: the deviation of the tables from `now_together`, as far as it exceeds noise."""
    positions, tables, before = [], [], []
    sizes: dict[tuple[int, int], int] = {}  # each table has two variables of its own
    for number, (one, other, counts, deviation) in enumerate(together):
        a, b = names.index(one), names.index(other)
        rows, columns = slice(*offsets[a : a + 2]), slice(*offsets[b : b + 2])
        now = now_together[rows, columns]
        alone = np.outer(now.sum(axis=1), now.sum(axis=0)) / max(float(now.sum()), 1.0)
        # Cells that happen to be empty among the drawn pairs need not be.
        before.append(((1 - _BLURRED) * now + _BLURRED * alone).ravel())
        sizes |= {(number, axis): states for axis, states in enumerate(now.shape)}
        tables.append((((number, 0), (number, 1)), counts, deviation))
        positions.append((rows, columns))
    expected = now_together.copy()
    for (variable, _), denoised in denoised_ratios(NoisyTables.of(sizes, tables), np.concatenate(before)).items():
        rows, columns = positions[variable // 2]
        expected[rows, columns] = (denoised + denoised.T) / 2 if rows == columns else denoised
        expected[columns, rows] = expected[rows, columns].T
    return expected


def _placed(records: Codes, columns: list[int], states: list[int]) -> tuple[Codes, Places]:
    """Convert states to places among the states of all these columns."""
    offsets = np.cumsum([0, *(states[column] for column in columns)])
    return np.ascontiguousarray(records[:, columns] + offsets[:-1].astype(np.int32)), offsets


def _pairs(persons: Codes, owners: Places, weights: Vector, states: int) -> Vector:
    """Sum the weights of ordered pairs of persons of a household, by a state of each."""
    import scipy.sparse as sparse

    rows = np.repeat(np.arange(len(persons)), persons.shape[1])
    ones = sparse.csr_array((np.ones(rows.size), (rows, persons.ravel())), shape=(len(persons), states))
    whose = sparse.csr_array((np.ones(owners.size), (owners, np.arange(owners.size))))
    whole = whose @ ones
    both = whole.T @ (whole * weights[:, None]) - ones.T @ (ones * weights[owners][:, None])
    result: Any = both.toarray()
    return np.asarray(result, dtype=np.float64)
