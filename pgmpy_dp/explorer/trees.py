"""A network for the page: the junction tree's program, and tables of the network and of its draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.errors import Message
from pgmpy_dp.explorer.packed import Packed
from pgmpy_dp.inference import JunctionTree, Layout, TreeTooLargeError
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.inference.trees.kernel import OPERATION, SMALL, SUM_OUT
from pgmpy_dp.models.trees import deviations
from pgmpy_dp.models.trees.answers import Drawn, TreeAnswers
from pgmpy_dp.models.trees.deviations import Deviations
from pgmpy_dp.release.observations import maximal
from pgmpy_dp.schema import Clique, Schema

# Most cells of a tree times the networks that are calibrated for an answer: above, a click takes more than a second.
_MOST_WORK = 60_000_000
_MOST_CELLS = 4_000_000


def tree_content(answers: TreeAnswers, drawn: Drawn | None, packed: Packed) -> dict[str, Any]:
    """Return what `tree.js` and `deviations.js` need.

    Raises
    ------
    TreeTooLargeError
        If the tables are too large for a page.
    """
    schema, networks = answers.schema, 1 if drawn is None else len(drawn.posterior.totals)
    alone = [(variable,) for variable in schema.variables]
    wide = maximal([*answers.layout.scopes, *(drawn.posterior.layout.scopes if drawn else ())])
    scopes = [*alone, *(scope for scope in wide if len(scope) > 1)]
    try:
        tree = JunctionTree.build(schema.cardinalities(), scopes, max_cells=min(_MOST_CELLS, _MOST_WORK / networks))
    except TreeTooLargeError as error:
        raise TreeTooLargeError(
            Message(
                f"The network is too large for a page: {error}",
                "fit PairwiseMixture, which answers without a tree, or draw fewer networks by sample_draws",
                "fit --estimator mixture, which answers without a tree",
            )
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
        "own": packed.add(_placed(layout, answers.layout, answers.logs[None], schema, schema), np.float64),
    }
    if drawn is not None:
        posterior = drawn.posterior
        for target in ("population", "records"):
            logs = _placed(layout, posterior.layout, posterior.draws(target), posterior.schema, schema)
            content[target] = packed.add(logs, np.float32)
        content["totals"] = packed.add(posterior.totals, np.float64)
        each = dict.fromkeys(drawn.deviations.values())  # one for both targets, or the population's and the records'
        content["deviations"] = [_deviations(own, schema, packed) for own in each]
    correcting = answers.correcting()
    content["corrections"] = [] if correcting is None else _corrections(correcting, schema, packed)
    return content


def _placed(layout: Layout, own: Layout, logs: Vector, states: Schema, schema: Schema) -> Vector:
    """Add tables of log-potentials to those of another layout; rows are its cells, and columns networks.

    `states` is the schema of the tables, in whose order their states are, `schema` that of the layout.
    """
    found = np.zeros((layout.size, len(logs)))
    for place, scope in enumerate(own.scopes):
        table = np.moveaxis(logs[:, own.offsets[place] : own.offsets[place + 1]].reshape(-1, *own.shapes[place]), 0, -1)
        table = _in_order(table, scope, states, schema)
        holder = min(
            (number for number, wider in enumerate(layout.scopes) if set(scope) <= set(wider)),
            key=lambda number: int(layout.offsets[number + 1] - layout.offsets[number]),
        )
        wider = layout.scopes[holder]
        table = table.transpose(*sorted(range(len(scope)), key=lambda axis: wider.index(scope[axis])), len(scope))
        shape = [size if variable in scope else 1 for variable, size in zip(wider, layout.shapes[holder], strict=True)]
        cells = found[layout.offsets[holder] : layout.offsets[holder + 1]].reshape(*layout.shapes[holder], len(logs))
        cells += table.reshape(*shape, len(logs))
    return found


def _in_order(table: Vector, scope: Sequence[str], states: Schema, schema: Schema) -> Vector:
    """Put the states of every axis in the schema's order."""
    for axis, variable in enumerate(scope):
        own = states.states[variable]
        if own != schema.states[variable]:
            table = np.take(table, [own.index(state) for state in schema.states[variable]], axis=axis)
    return table


def _deviations(held: Deviations, schema: Schema, packed: Packed) -> dict[str, Any]:
    numbers, states = {variable: number for number, variable in enumerate(schema.variables)}, held.schema

    def effect(scope: Clique) -> dict[str, Any]:
        found = held.effect(scope)

        def table(values: Vector) -> Any:
            return packed.add(_turned(values, scope, states, schema), np.float32)

        return {
            "scope": sorted(numbers[variable] for variable in scope),
            "expected": table(found.expected),
            "ratio": table(found.ratio),
            "freedom": table(found.freedom),
            "variance": float((found.noise * found.expected**2).flat[0]),
            "weights": held.weights(scope).tolist(),
        }

    return {
        "ranks": [states.variables.index(variable) for variable in schema.variables],
        "streams": [_words(deviations.random_numbers(seed)) for seed in (0, 1)],
        "scales": deviations.SCALES.tolist(),
        "factors": deviations.FACTORS.tolist(),
        "shares": deviations.SHARES.tolist(),
        "higher": deviations.HIGHER,
        "inside": held.inside.new.tolist(),
        "outside": None if held.outside is None else held.outside.tolist(),
        "told": held.told,
        "families": [[numbers[variable] for variable in scope] for scope in held.scopes],
        "effects": [effect(scope) for scope in held.measured()],
    }


def _corrections(held: Deviations, schema: Schema, packed: Packed) -> list[dict[str, Any]]:
    """Return by what factors measured tables move the network's answers."""
    return [
        {
            "scope": sorted(map(schema.variables.index, scope)),
            "factors": packed.add(_turned(held.centre(scope), scope, held.schema, schema), np.float64),
        }
        for scope in held.measured()
    ]


def _turned(table: Vector, scope: Clique, states: Schema, schema: Schema) -> Vector:
    """Put the axes of a table in the schema's order, and their states."""
    order = sorted(range(len(scope)), key=lambda axis: schema.variables.index(scope[axis]))
    return _in_order(table, scope, states, schema).transpose(order)


def _words(generator: np.random.Generator) -> list[str]:
    """Return the state of the generator: numbers of 64 bits, which are texts because JavaScript would round them."""
    state: NDArray[np.uint64] = generator.bit_generator.state["state"]["state"]
    return [str(word) for word in state.tolist()]
