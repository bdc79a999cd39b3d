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

# Steps of the remainders of logarithms: answers are means over many components, so that their error is far smaller.
_STEP, _LARGEST = 2.0**-28, 2**15 - 1

Range = tuple[int, int]


def mixture_content(mixture: Mixture, draws: MixtureDraws | None, packed: Packed, interval: float) -> dict[str, Any]:
    """Return what `mixture.js` needs."""
    count = mixture.weights.size
    if draws is None:
        return _content(mixture, [(0, count)], packed, exactly=True)
    size, each = draws.fit.size, draws.fit.components
    members = [(number * each, (number + 1) * each) for number in range(size)]
    refits = [[(0, each), (each, refit.weights.size)] for refit in draws.refits]
    return _content(mixture, [*members, (size * each, count)], packed, exactly=True) | {
        "errors": {
            "width": float(stats.t.ppf((1 + interval) / 2, len(draws.refits))),
            "noise": [draws.noise[variable] for variable in mixture.variables],
            "members": members,
            "refits": [
                _content(refit, ranges, packed, exactly=False)
                for refit, ranges in zip(draws.refits, refits, strict=True)
            ],
            "records": [
                [packed.add(column, column.dtype) for column in codes[np.lexsort(codes.T[::-1])].T]
                for codes in draws.records
            ],
        }
    }


def _content(mixture: Mixture, ranges: Sequence[Range], packed: Packed, exactly: bool) -> dict[str, Any]:
    """Return weights, tables, and the place of every variable.

    A variable has a block, with its state in every cell, or a coarser variable, with its groups and shares within them.
    """
    places = {v: (number, axis) for number, block in enumerate(mixture.blocks) for axis, v in enumerate(block)}
    variables = []
    for variable, size in mixture.cardinalities.items():
        if variable in mixture.refined:
            finer = mixture.refined[variable]
            own = {"coarser": mixture.variables.index(finer.coarser), "groups": packed.add(finer.groups, np.int32)}
            own["shares"] = packed.add(finer.shares, np.float64)
        else:
            root, groups = mixture.dependent.get(variable, (variable, np.arange(size)))
            number, axis = places[root]
            states = np.indices(mixture.tables[number].shape[1:])[axis].ravel()
            own = {"block": number, "states": packed.add(groups[states], np.int32)}
        variables.append({"size": size, **own})
    return {
        "weights": packed.add(mixture.weights, np.float64),
        "variables": variables,
        "ranges": ranges,
        "tables": [_table(table, ranges, packed, exactly) for table in mixture.tables],
    }


def _table(table: Vector, ranges: Sequence[Range], packed: Packed, exactly: bool) -> dict[str, Any]:
    """Write a block's table by component and cell.

    Components of one fit differ by a factor of each variable's state: the logarithms are those of the first component,
    plus an effect of every state, plus a remainder, the rounding of the fit. Any other table is written as it is.
    """
    cells, shape = table[0].size, table.shape[1:]
    flat = table.reshape(len(table), cells)
    logs = np.log(np.where(flat > 0, flat, 1.0))
    found = [_factors(flat[first:end], logs[first:end], shape) for first, end in ranges]
    if any(effects is None for effects in found):
        return {"cells": cells, "plain": packed.add(flat, np.float64 if exactly else np.float32)}
    base = np.array([np.where(flat[first] > 0, logs[first], -np.inf) for first, _ in ranges])
    effects = np.concatenate([own for own in found if own is not None]).astype(np.float32)
    held: dict[str, Any] = {"cells": cells, "base": packed.add(base, np.float64), "shape": shape}
    held["effects"] = packed.add(effects, np.float32)
    if exactly:
        near = np.concatenate(
            [logs[first] + _spread(effects[first:end].astype(np.float64), shape) for first, end in ranges]
        )
        rest = np.where(flat > 0, np.rint((logs - near) / _STEP), 0)
        if np.abs(rest).max() > _LARGEST:
            return {"cells": cells, "plain": packed.add(flat, np.float64)}
        whole = rest.astype(np.int32) + _LARGEST + 1
        held["rest"] = [packed.add(whole & 255, np.uint8), packed.add(whole >> 8, np.uint8)]
    return held


def _factors(table: Vector, logs: Vector, shape: Sequence[int]) -> Vector | None:
    """Find effects of states on the logarithms' differences from the first component's; None if there are none.

    Returns
    -------
    ndarray of shape (components, states of the first variable + states of the second)
    """
    held = table[0] > 0
    if len(shape) > 2 or not ((table > 0) == held).all():
        return None
    apart = logs - logs[0]
    if len(shape) == 1:
        return np.asarray(apart)
    effects = np.zeros((len(table), sum(shape)))
    known, waiting = np.zeros(sum(shape), dtype=bool), list[int]()
    joined: NDArray[np.intp] = np.argwhere(held.reshape(shape)) + np.array([0, shape[0]])
    for start in range(sum(shape)):
        if not known[start]:
            known[start] = True
            waiting.append(start)
        while waiting:
            state = waiting.pop()
            for one, other in joined[(joined == state).any(axis=1)].tolist():
                if other == state:
                    one, other = other, one
                if not known[other]:
                    cell = min(one, other) * shape[1] + max(one, other) - shape[0]
                    effects[:, other] = apart[:, cell] - effects[:, one]
                    known[other] = True
                    waiting.append(other)
    return effects if np.allclose(np.where(held, _spread(effects, shape), 0.0), apart, atol=1e-4) else None


def _spread(effects: Vector, shape: Sequence[int]) -> Vector:
    """Add the effects of the states of every cell."""
    if len(shape) == 1:
        return effects
    first, second = effects[:, : shape[0]], effects[:, shape[0] :]
    return (first[:, :, None] + second[:, None, :]).reshape(len(effects), -1)
