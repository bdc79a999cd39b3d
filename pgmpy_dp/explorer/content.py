"""Content of a model for the page's scripts: tables of the model, and of the draws for its bounds."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import stats

from pgmpy_dp.inference import JunctionTree, Layout, TreeTooLargeError
from pgmpy_dp.inference.mixtures.mixture import Mixture
from pgmpy_dp.inference.mixtures.refits import MixtureDraws
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.models import deviations
from pgmpy_dp.models.deviations import Deviations
from pgmpy_dp.models.numbers import Shape
from pgmpy_dp.networks.fitted_in_groups import FittedInGroups
from pgmpy_dp.networks.fitted_network import FittedNetwork
from pgmpy_dp.observed.factors import in_order
from pgmpy_dp.observed.reading import maximal
from pgmpy_dp.schema import Clique, Schema

_NAMES = {"f8": "Float64Array", "f4": "Float32Array", "i4": "Int32Array", "i2": "Int16Array", "u2": "Uint16Array"}
_NAMES |= {"u1": "Uint8Array"}
_ALIGNED = 8  # bytes: where typed arrays of any kind may start


@dataclass
class Packed:
    """Arrays one after the other, little-endian."""

    parts: list[bytes] = field(default_factory=list)
    size: int = 0

    def add(self, values: ArrayLike, dtype: DTypeLike) -> dict[str, Any]:
        """Append an array, flat; return what the page reads as this array: its type, place in bytes and length."""
        array = np.ascontiguousarray(values, np.dtype(dtype).newbyteorder("<")).ravel()
        position = {"packed": [_NAMES[array.dtype.str[1:]], self.size, array.size]}
        content = array.tobytes() + bytes(-array.nbytes % _ALIGNED)
        self.parts.append(content)
        self.size += len(content)
        return position

    def text(self) -> str:
        """Write all arrays, deflated, in base 64."""
        return base64.b64encode(zlib.compress(b"".join(self.parts), 9)).decode()


def shape_content(shape: Shape, packed: Packed) -> dict[str, Any]:
    """Return what `questions.js` needs: the density by cells, its draws, and its dependence on other variables."""
    density, knots = shape.density, np.flatnonzero(~shape.spikes)
    centres = shape.centres[0]
    offsets = shape.places - centres[density.owners]
    return {
        "knots": knots.tolist(),
        "centres": packed.add(centres[knots], np.float64),
        "logs": packed.add(np.log(np.maximum(shape.chances[knots], 1e-12)), np.float64),
        "most": shape.max_tilt.tolist(),
        "owners": packed.add(density.owners, np.int32),
        "offsets": packed.add(offsets, np.float64),
        "middles": packed.add(shape.middles, np.float64),
        "ends": [packed.add(ends, np.float64) for ends in shape.ends],
        "rows": [packed.add(density.shares, np.float64), *(packed.add(row, np.float32) for row in density.drawn)],
        "guess": shape.unidentified,
    }


# Step of the remainders of logarithms, which are written in 16 bits, and their maximum in steps: answers are means over
# many components, so that their errors are smaller.
_STEP, _MAX_STEPS = 2.0**-30, 2**15 - 1
_MAX_RUNS = 64  # maximum number of runs of components that differ by factors


def mixture_content(mixture: Mixture, draws: MixtureDraws | None, packed: Packed, interval: float) -> dict[str, Any]:
    """Return what `mixtures.js` needs."""
    content = _content(mixture, packed, exactly=True)
    if draws is not None:
        each = draws.fit.components
        content["errors"] = {
            "width": float(stats.t.ppf((1 + interval) / 2, len(draws.refits))),
            "noise": [draws.noise[variable] for variable in mixture.variables],
            "missing": draws.missing,
            "members": [(number * each, (number + 1) * each) for number in range(draws.fit.size)],
            "refits": [_content(refit, packed, exactly=False) for refit in draws.refits],
            "records": [
                [packed.add(column, column.dtype) for column in codes[np.lexsort(codes.T[::-1])].T]
                for codes in draws.records
            ],
        }
    return content


def _content(mixture: Mixture, packed: Packed, exactly: bool) -> dict[str, Any]:
    """Return weights, tables, and the position of every variable."""
    positions = {v: (number, axis) for number, block in enumerate(mixture.blocks) for axis, v in enumerate(block)}
    variables = []
    for variable, states in mixture.cardinalities.items():
        coarse, groups, shares = variable, np.arange(states), np.ones(states)
        if variable in mixture.children and not mixture.children[variable].certain:
            within = mixture.children[variable]
            coarse, groups, shares = within.parent, within.shares.tocsc().indices, within.shares.tocsc().data
        size = mixture.cardinalities[coarse]
        following = mixture.children[coarse].shares.indices if coarse in mixture.children else np.arange(size)
        number, axis = positions[mixture.root(coarse)]
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
    """Write a block's table by component and cell."""
    cells, shape = table[0].size, table.shape[1:]
    flat = table.reshape(len(table), cells)
    logs = np.log(np.where(flat > 0, flat, 1.0))
    starts, results = [0], [_factors(flat, logs, shape)]
    while (end := starts[-1] + len(results[-1])) < len(table) and len(starts) < _MAX_RUNS:
        starts.append(end)
        results.append(_factors(flat[end:], logs[end:], shape))
    if end < len(table):
        return {"cells": cells, "plain": packed.add(flat, np.float64 if exactly else np.float32)}
    effects = np.concatenate(results)
    base = np.where(flat[starts] > 0, logs[starts], -np.inf)
    packing: dict[str, Any] = {"cells": cells, "shape": shape, "starts": starts, "base": packed.add(base, np.float64)}
    packing["effects"] = packed.add(effects, np.float32)
    if exactly:
        near = np.repeat(logs[starts], list(map(len, results)), axis=0) + _spread(effects, shape)
        rest = np.where(flat > 0, np.rint((logs - near) / _STEP), 0).astype(np.int32) + _MAX_STEPS
        packing["rest"] = [packed.add(rest & 255, np.uint8), packed.add(rest >> 8, np.uint8)]
    return packing


def _factors(table: Vector, logs: Vector, shape: Sequence[int]) -> Vector:
    """Find the effects of states by which components' logarithms differ from those of the first component."""
    possible = table[0] > 0
    apart = np.where(possible, logs - logs[0], 0.0)
    effects = apart
    if len(shape) > 1:
        states = np.zeros((len(possible), sum(shape)))
        np.put_along_axis(states, _places(shape).T, 1.0, axis=1)
        effects = apart @ states @ np.linalg.pinv(states[possible].T @ states[possible], rcond=1e-10, hermitian=True)
    effects = effects.astype(np.float32).astype(np.float64)
    near = np.abs(np.where(possible, _spread(effects, shape), 0.0) - apart) < _MAX_STEPS * _STEP
    fits = ((table > 0) == possible).all(axis=1) & near.all(axis=1)
    return np.asarray(effects[: len(fits) if fits.all() else fits.argmin()])


def _spread(effects: Vector, shape: Sequence[int]) -> Vector:
    """Add the effects of the states of every cell."""
    return np.asarray(effects[:, _places(shape)].sum(axis=1))


def _places(shape: Sequence[int]) -> NDArray[np.intp]:
    """Number the states of all variables; return those of every cell, of shape (variables, cells)."""
    starts = np.cumsum([0, *shape[:-1]])
    return np.asarray(np.indices(shape).reshape(len(shape), -1) + starts[:, None])


# Most cells of a tree times the networks that are calibrated for an answer: above, a click takes more than a second.
_MAX_WORK = 60_000_000
_MAX_CELLS = 4_000_000


def tree_content(fitted: FittedNetwork, bounded: bool, packed: Packed) -> dict[str, Any]:
    """Return what `trees.js` needs."""
    from pgmpy_dp.inference.trees.kernel import OPERATION, SMALL, SUM_OUT  # numba takes 0.2 s to import

    schema, tree_of, posterior = fitted.schema, fitted.tree, fitted.posterior if bounded else None
    networks = 1 if posterior is None else len(posterior.totals)
    alone = [(variable,) for variable in schema.variables]
    wide = maximal([*tree_of.layout.scopes, *(posterior.layout.scopes if posterior else ())])
    scopes = [*alone, *(scope for scope in wide if len(scope) > 1)]
    try:
        tree = JunctionTree.build(schema.cardinalities(), scopes, max_cells=min(_MAX_CELLS, _MAX_WORK / networks))
    except TreeTooLargeError as error:
        raise TreeTooLargeError(
            f"The network is too large for a page: {error}: "
            "fit PairwiseMixture, which answers without a tree, or draw fewer networks by sample_draws."
        ) from error
    layout, cells = tree.layout, sum(schema.cardinalities().values())
    joined: nx.Graph = nx.empty_graph(len(schema.variables))
    for scope in scopes:
        nx.add_path(joined, map(schema.variables.index, scope))
    rows = tree.program
    marginals = (rows[:, SMALL] >= layout.size) & (rows[:, SMALL] < layout.size + cells)
    content: dict[str, Any] = {
        "cards": list(schema.cardinalities().values()),
        "components": [min(component) for component in nx.connected_components(joined)],
        "program": packed.add(rows[(rows[:, OPERATION] != SUM_OUT) | marginals], np.int32),
        "maps": packed.add(tree.maps, np.int32),
        "size": layout.size,
        "buffer": tree.buffer_size,
        "own": packed.add(_placed(layout, tree_of.layout, tree_of.logs[None], schema, schema), np.float64),
    }
    if posterior is not None:
        for target in ("population", "records"):
            logs = _placed(layout, posterior.layout, posterior.draws(target), posterior.schema, schema)
            content[target] = packed.add(logs, np.float32)
        content["totals"] = packed.add(posterior.totals, np.float64)
        each = dict.fromkeys(fitted.uncertainty.deviations.values())  # one for both targets, or one for each
        content["deviations"] = [_deviations(own, schema, packed) for own in each]
    content["corrections"] = []
    if fitted.is_wide:  # its test of fit and its corrections are those of the part that a question needs
        return content
    fitted.warn_of_misfit(bounds=True)
    if allowed := fitted.correction:
        content["corrections"] = [
            {
                "scope": sorted(map(schema.variables.index, scope)),
                "factors": packed.add(_turned(allowed.centre(scope), scope, allowed.schema, schema), np.float64),
            }
            for scope in allowed.measured()
        ]
    return content


def groups_content(fitted: FittedInGroups, bounded: bool, packed: Packed) -> dict[str, Any]:
    """Return what `groups.js` needs."""
    names, coarse = fitted.schema.variables, fitted.inner.schema.variables
    within: list[dict[str, Any] | None] = [None] * len(names)
    for number, variable in enumerate(names):
        if variable in fitted.within:
            own = fitted.within[variable]
            drawn = [fitted.drawn_shares(variable, target).T for target in ("population", "records") if bounded]
            within[number] = {
                "groups": packed.add(own.groups, np.int32),
                "shares": packed.add(own.shares, np.float64),
                "drawn": [packed.add(shares, np.float32) for shares in drawn],
            }
    return {"places": [coarse.index(name) for name in fitted.distribution.names(names)], "within": within}


def _placed(layout: Layout, own: Layout, logs: Vector, states: Schema, schema: Schema) -> Vector:
    """Add tables of log-potentials to those of another layout, with a row per cell and a column per network."""
    result = np.zeros((layout.size, len(logs)))
    for position, scope in enumerate(own.scopes):
        table = np.moveaxis(
            logs[:, own.offsets[position] : own.offsets[position + 1]].reshape(-1, *own.shapes[position]), 0, -1
        )
        table = in_order(table, scope, states.states, schema.states)
        holder = min(
            (number for number, wider in enumerate(layout.scopes) if set(scope) <= set(wider)),
            key=lambda number: int(layout.offsets[number + 1] - layout.offsets[number]),
        )
        wider = layout.scopes[holder]
        table = table.transpose(*sorted(range(len(scope)), key=lambda axis: wider.index(scope[axis])), len(scope))
        shape = [size if variable in scope else 1 for variable, size in zip(wider, layout.shapes[holder], strict=True)]
        cells = result[layout.offsets[holder] : layout.offsets[holder + 1]].reshape(*layout.shapes[holder], len(logs))
        cells += table.reshape(*shape, len(logs))
    return result


def _deviations(allowed: Deviations, schema: Schema, packed: Packed) -> dict[str, Any]:
    numbers, states = {variable: number for number, variable in enumerate(schema.variables)}, allowed.schema

    def effect(scope: Clique) -> dict[str, Any]:
        result = allowed.effect(scope)

        def table(values: Vector) -> Any:
            return packed.add(_turned(values, scope, states, schema), np.float32)

        return {
            "scope": sorted(numbers[variable] for variable in scope),
            "expected": table(result.expected),
            "ratio": table(result.ratio),
            "freedom": table(result.freedom),
            "variance": float((result.noise * result.expected**2).flat[0]),
            "weights": allowed.weights(scope).tolist(),
        }

    return {
        "ranks": [states.variables.index(variable) for variable in schema.variables],
        "streams": [  # the generators' states: numbers of 64 bits, which JavaScript would round
            [str(word) for word in deviations.random_numbers(seed).bit_generator.state["state"]["state"].tolist()]
            for seed in (0, 1)
        ],
        "scales": deviations.SCALES.tolist(),
        "factors": deviations.FACTORS.tolist(),
        "shares": deviations.SHARES.tolist(),
        "higher": deviations.HIGHER,
        "inside": allowed.inside.new.tolist(),
        "outside": None if allowed.outside is None else allowed.outside.tolist(),
        "informative": allowed.informative,
        "families": [[numbers[variable] for variable in scope] for scope in allowed.scopes],
        "effects": [effect(scope) for scope in allowed.measured()],
    }


def _turned(table: Vector, scope: Clique, states: Schema, schema: Schema) -> Vector:
    """Reorder the axes of a table and their states as in the schema."""
    order = sorted(range(len(scope)), key=lambda axis: schema.variables.index(scope[axis]))
    return in_order(table, scope, states.states, schema.states).transpose(order)
