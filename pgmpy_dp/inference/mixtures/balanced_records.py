"""Records drawn from a mixture so evenly that their tables are as close to its own as possible."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp._threads import one_thread
from pgmpy_dp.inference.mixtures.mixture import Mixture
from pgmpy_dp.inference.tables.table import Scope, Variable, Vector

# Exchanges tried per record and block (the first sweep achieves most; a try takes time proportional to the number of
# variables); maximum work in all, and in a single sweep, which leaves out some blocks of wider records.
_SWEEPS, _WORK, _MAX_WORK = 12, 1_000_000_000, 2_000_000_000
# Maximum number of states whose pairs are in memory at a time; values of blocks with more are combined at random only.
_MAX_STATES = 4_000
_CODED = 2_000  # records coded at a time: integers in float32 stay exact


def draw_records(
    mixture: Mixture, count: int, generator: np.random.Generator, target: Variable | None = None
) -> NDArray[np.int32]:
    """Draw records whose tables differ from the mixture's by far less than those of independent records.

    Every component has its expected number of records, rounded, and so has every cell of its blocks. Values of
    different blocks are first combined at random within a component; values are then exchanged between records of a
    component if that brings the counts of pairs of states closer to the mixture's.

    Parameters
    ----------
    mixture : Mixture
    count : int
        Number of records.
    generator : numpy.random.Generator
    target : Variable, optional
        Triples of states that include one of this variable are then brought close to the mixture's as well, unless the
        variables have very many states.

    Returns
    -------
    ndarray of shape (count, number of variables)
        State indices; columns in the order of `mixture.variables`, records in random order.

    Examples
    --------
    >>> coin = Mixture.of({"a": 2, "b": 2}, [("a",), ("b",)], [1.0], [[[0.5, 0.5]], [[0.25, 0.75]]])
    >>> codes = draw_records(coin, 80, np.random.default_rng(0))
    >>> np.bincount(2 * codes[:, 0] + codes[:, 1]).tolist()
    [10, 30, 10, 30]
    """
    return draw_with_components(mixture, count, generator, target)[0]


def draw_with_components(
    mixture: Mixture, count: int, generator: np.random.Generator, target: Variable | None = None
) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    """Draw records as `draw_records` does, and return the component of each as well."""
    from pgmpy_dp.inference.mixtures import record_kernel as kernel

    if count < 0:
        raise ValueError(f"cannot draw {count} records")
    if mixture.children:
        roots, components = draw_with_components(mixture.roots, count, generator, mixture.root(target))
        codes = dict(zip(mixture.roots.variables, roots.T, strict=True))
        return mixture.completed(codes, generator, even=True).astype(np.int32), components
    ends = np.rint(np.cumsum(mixture.weights) * count - generator.random() + 0.5).astype(np.int64).clip(0, count)
    ends[-1] = count
    totals = np.diff(ends, prepend=0)
    position = {variable: number for number, variable in enumerate(mixture.variables)}
    records = np.empty((count, len(position)), dtype=np.int32)
    for block, table in zip(mixture.blocks, mixture.tables, strict=True):
        flat = np.ascontiguousarray(table.reshape(totals.size, -1))
        carry = np.asarray(generator.random(flat.shape[1]))
        counts = np.empty(flat.shape, dtype=np.int64)
        kernel.even_counts(totals, flat, carry - carry.mean(), counts, np.empty(carry.size))
        cells = np.repeat(np.tile(np.arange(flat.shape[1]), totals.size), counts.ravel())
        # Random order within each component.
        cells = cells[np.argsort(np.repeat(np.arange(totals.size), totals) + generator.random(count))]
        for variable, values in zip(block, np.unravel_index(cells, table.shape[1:]), strict=True):
            records[:, position[variable]] = values
    starts = np.concatenate([[0], ends])
    even_out(mixture, records, starts, mixture.blocks, generator)
    if target is not None and _tabulated(mixture, target):
        even_out(mixture, records, starts, mixture.blocks, generator, target)
    order = generator.permutation(count)
    return records[order], np.repeat(np.arange(totals.size), totals)[order]


def even_out(
    mixture: Mixture,
    records: NDArray[np.int32],
    starts: NDArray[np.int64],
    blocks: Sequence[Scope],
    generator: np.random.Generator,
    target: Variable | None = None,
) -> None:
    """Exchange values of some blocks between records of a component, so that pairs come close to the mixture's."""
    from pgmpy_dp.inference.mixtures import record_kernel as kernel

    kept = _of_few_states(mixture)
    if len(kept) < len(mixture.blocks):
        some = mixture.only([variable for block in kept for variable in block])
        columns = [mixture.variables.index(variable) for variable in some.variables]
        if columns:
            part = np.ascontiguousarray(records[:, columns])
            even_out(some, part, starts, [block for block in blocks if block in kept], generator, target)
            records[:, columns] = part
        return
    position = {variable: number for number, variable in enumerate(mixture.variables)}
    states = np.cumsum([0, *(mixture.cardinalities[variable] for variable in mixture.variables)])
    strata, parts = np.zeros(len(records), dtype=np.int64), [(1.0, mixture)]
    if target is not None:
        chances = mixture.marginal((target,))
        present = np.flatnonzero(chances)
        strata = np.searchsorted(present, records[:, position[target]])
        parts = [(float(chances[state]), mixture.given({target: int(state)})) for state in present]
    records += states[:-1].astype(np.int32)
    moved = [block for block in blocks if target not in block]
    numbers = np.full((len(moved), max(map(len, moved), default=1)), -1, dtype=np.int64)
    owners = np.arange(len(moved), len(moved) + len(position))
    for number, block in enumerate(moved):
        numbers[number, : len(block)] = [position[variable] for variable in block]
        owners[numbers[number, : len(block)]] = number
    with one_thread():
        expected = np.stack([len(records) * share * pair_shares(part) for share, part in parts])
        counts = [pair_counts(records[strata == stratum], int(states[-1])) for stratum in range(len(parts))]
    excess = np.stack(counts) - expected
    price = 1.0 / (np.maximum(expected, 0.0) + 1.0)
    work = max(records.size * len(mixture.blocks), 1)
    sweeps, share = min(max(_WORK // work, 1), _SWEEPS), min(_MAX_WORK / work, 1.0)
    kernel.swap_within_components(records, strata, starts, numbers, owners, excess, price, sweeps, share, generator)
    records -= states[:-1].astype(np.int32)


def _of_few_states(mixture: Mixture) -> list[Scope]:
    """Drop the blocks with most states until the table of all pairs of states is small."""
    sizes = {block: sum(mixture.cardinalities[variable] for variable in block) for block in mixture.blocks}
    kept = sorted(mixture.blocks, key=sizes.__getitem__)
    while sum(sizes[block] for block in kept) > _MAX_STATES:
        kept.pop()
    return kept


def _tabulated(mixture: Mixture, target: Variable) -> bool:
    """Whether triples with a target are few enough to be counted."""
    kept = _of_few_states(mixture)
    states = sum(mixture.cardinalities[variable] for block in kept for variable in block)
    return any(target in block for block in kept) and mixture.cardinalities[target] * states**2 <= _MAX_STATES**2


def pair_shares(mixture: Mixture) -> Vector:
    """Return the probabilities of pairs of states, and on the diagonal those of single states."""
    ends = np.cumsum([0, *mixture.cardinalities.values()])
    span = {v: slice(begin, end) for v, begin, end in zip(mixture.variables, ends[:-1], ends[1:], strict=True)}
    states = np.empty((mixture.weights.size, int(ends[-1])))
    for block, table in zip(mixture.blocks, mixture.tables, strict=True):
        for axis, variable in enumerate(block, 1):
            states[:, span[variable]] = table.sum(axis=tuple(k for k in range(1, table.ndim) if k != axis))
    shares: Vector = (states * mixture.weights[:, None]).T @ states
    for variable, other in itertools.chain.from_iterable(itertools.product(own, repeat=2) for own in mixture.blocks):
        same = variable == other
        pair = np.diag(mixture.marginal((variable,))) if same else mixture.marginal((variable, other))
        shares[span[variable], span[other]] = pair
    return shares


def pair_counts(records: NDArray[np.integer], states: int) -> Vector:
    """Count the records with both of two states, for all pairs; `records` holds places among all states."""
    result = np.zeros((states, states))
    for begin in range(0, len(records), _CODED):
        part = records[begin : begin + _CODED]
        coded = np.zeros((len(part), states), dtype=np.float32)
        np.put_along_axis(coded, part.astype(np.int64), 1.0, axis=1)
        result += coded.T @ coded
    return result
