"""A mixture for the page: its tables, and those of the refits that its bounds come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from pgmpy_dp.explorer.packed import Packed
from pgmpy_dp.inference.mixtures.mixture import Mixture
from pgmpy_dp.inference.mixtures.refits import MixtureDraws
from pgmpy_dp.inference.tables.layout import Vector

# Remainders of logarithms in steps that have 16 bits: answers are means over many components, whose errors are smaller.
_STEP, _MOST_STEPS = 2.0**-30, 2**15 - 1
_MOST_RUNS = 64  # of components that differ by factors


def mixture_content(mixture: Mixture, draws: MixtureDraws | None, packed: Packed, interval: float) -> dict[str, Any]:
    """Return what `mixture.js` and `refits.js` need."""
    content = _content(mixture, packed, exactly=True)
    if draws is not None:
        each = draws.fit.components
        content["errors"] = {
            "width": float(stats.t.ppf((1 + interval) / 2, len(draws.refits))),
            "noise": [draws.noise[variable] for variable in mixture.variables],
            "members": [(number * each, (number + 1) * each) for number in range(draws.fit.size)],
            "refits": [_content(refit, packed, exactly=False) for refit in draws.refits],
            "records": [
                [packed.add(column, column.dtype) for column in codes[np.lexsort(codes.T[::-1])].T]
                for codes in draws.records
            ],
        }
    return content


def _content(mixture: Mixture, packed: Packed, exactly: bool) -> dict[str, Any]:
    """Return weights, tables, and the place of every variable.

    A variable's states are in groups, of which each has one, unless the variable refines a coarser one: they are then
    that one's states, and have shares within them. Every cell of the variable's block is in a group too.
    """
    places = {v: (number, axis) for number, block in enumerate(mixture.blocks) for axis, v in enumerate(block)}
    variables = []
    for variable, states in mixture.cardinalities.items():
        finer = mixture.refined.get(variable)
        coarse, groups, shares = variable, np.arange(states), np.ones(states)
        if finer is not None:
            coarse, groups, shares = finer.coarser, finer.groups, finer.shares
        size = mixture.cardinalities[coarse]
        root, following = mixture.dependent.get(coarse, (coarse, np.arange(size)))
        number, axis = places[root]
        cells = np.indices(mixture.tables[number].shape[1:])[axis].ravel()
        variables.append(
            {
                "block": number,
                "size": size,
                "cellGroups": packed.add(following[cells], np.int32),
                "groups": packed.add(groups, np.int32),
                "shares": packed.add(shares, np.float64),
            }
        )
    tables = [_table(table, packed, exactly) for table in mixture.tables]
    return {"weights": packed.add(mixture.weights, np.float64), "variables": variables, "tables": tables}


def _table(table: Vector, packed: Packed, exactly: bool) -> dict[str, Any]:
    """Write a block's table by component and cell.

    Components of one fit follow one another, and differ by a factor of each variable's state: the logarithms are those
    of the first of them, plus an effect of every state, plus a remainder, the rounding of the fit. Any other table is
    written as it is.
    """
    cells, shape = table[0].size, table.shape[1:]
    flat = table.reshape(len(table), cells)
    logs = np.log(np.where(flat > 0, flat, 1.0))
    starts, found = [0], [_factors(flat, logs, shape)]
    while (end := starts[-1] + len(found[-1])) < len(table) and len(starts) < _MOST_RUNS:
        starts.append(end)
        found.append(_factors(flat[end:], logs[end:], shape))
    if end < len(table):
        return {"cells": cells, "plain": packed.add(flat, np.float64 if exactly else np.float32)}
    effects = np.concatenate(found)
    base = np.where(flat[starts] > 0, logs[starts], -np.inf)
    held: dict[str, Any] = {"cells": cells, "shape": shape, "starts": starts, "base": packed.add(base, np.float64)}
    held["effects"] = packed.add(effects, np.float32)
    if exactly:
        near = np.repeat(logs[starts], list(map(len, found)), axis=0) + _spread(effects, shape)
        rest = np.where(flat > 0, np.rint((logs - near) / _STEP), 0).astype(np.int32) + _MOST_STEPS
        held["rest"] = [packed.add(rest & 255, np.uint8), packed.add(rest >> 8, np.uint8)]
    return held


def _factors(table: Vector, logs: Vector, shape: Sequence[int]) -> Vector:
    """Find effects of states on the logarithms' differences from the first component's.

    Returns
    -------
    ndarray of shape (components, states of all variables of the block)
        In single precision, of the first components, up to one that has no such effects.
    """
    held = table[0] > 0
    apart = np.where(held, logs - logs[0], 0.0)
    effects = apart
    if len(shape) > 1:
        states = np.zeros((len(held), sum(shape)))
        np.put_along_axis(states, _places(shape).T, 1.0, axis=1)
        effects = apart @ states @ np.linalg.pinv(states[held].T @ states[held], rcond=1e-10, hermitian=True)
    effects = effects.astype(np.float32).astype(np.float64)
    near = np.abs(np.where(held, _spread(effects, shape), 0.0) - apart) < _MOST_STEPS * _STEP
    fits = ((table > 0) == held).all(axis=1) & near.all(axis=1)
    return np.asarray(effects[: len(fits) if fits.all() else fits.argmin()])


def _spread(effects: Vector, shape: Sequence[int]) -> Vector:
    """Add the effects of the states of every cell."""
    return np.asarray(effects[:, _places(shape)].sum(axis=1))


def _places(shape: Sequence[int]) -> NDArray[np.intp]:
    """Number the states of all variables; return those of every cell, of shape (variables, cells)."""
    starts = np.cumsum([0, *shape[:-1]])
    return np.asarray(np.indices(shape).reshape(len(shape), -1) + starts[:, None])
