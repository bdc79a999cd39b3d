"""Networks hold rules by tables that have zeros where the rules forbid a combination."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import reduce
from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from pgmpy.models import DiscreteMarkovNetwork

from pgmpy_dp.errors import Message, SchemaError
from pgmpy_dp.inference import TreeTooLargeError, build_engine
from pgmpy_dp.observed.factors import Network, families
from pgmpy_dp.release.observations import maximal
from pgmpy_dp.schema import Clique, Schema

Mask = NDArray[np.bool_]


def require_held(network: Network, schema: Schema) -> None:
    """Refuse a network whose structure cannot hold the rules about its variables.

    Raises
    ------
    SchemaError
        If no family, or no clique of a Markov network, has the variables of a rule; the message names them. If the
        rules leave no joint state.
    """
    own = schema.select([node for node in network.nodes() if node in schema.states])
    if not isinstance(network, DiscreteMarkovNetwork):
        family_masks(families(network), own)
        return
    for rule in own.rules:
        apart = [pair for pair in combinations(rule.variables, 2) if not network.has_edge(*pair)]
        if apart:
            raise _not_held(rule.variables, apart[0])
    if own.rules:
        _require_possible(own)


def _require_possible(schema: Schema) -> None:
    """Refuse rules that leave no joint state, as far as a tree of what they are about fits in memory."""
    scopes = maximal([rule.variables for rule in schema.rules])
    with suppress(TreeTooLargeError):
        tree = build_engine(schema.cardinalities(), scopes, "junction_tree")
        potentials = np.zeros(tree.layout.size)
        potentials[tree.layout.places(scopes)] = barred_cells(scopes, scope_masks(scopes, schema), schema)
        try:
            tree.calibrate(potentials)
        except ValueError:
            raise SchemaError("The rules contradict each other: no record obeys them all.") from None


def family_masks(scopes: Sequence[Clique], schema: Schema) -> dict[Clique, Mask]:
    """Say which entries of CPDs may be other than zero, so that all rules hold.

    A rule stands in the CPD of that of its variables which comes last. Where it leaves that variable no state, the
    combination of the others cannot be, which is a rule about them.

    Parameters
    ----------
    scopes : sequence of tuples of str
        Families of a Bayesian network, each node before its parents.
    schema : Schema
        Its rules are about variables of the network alone.

    Returns
    -------
    dict of family to ndarray of bool
        Of families with zeros. Columns of what cannot be are left as they are.
    """
    held = {scope[0]: scope for scope in scopes}
    graph = nx.DiGraph([(parent, scope[0]) for scope in scopes for parent in scope[1:]])
    graph.add_nodes_from(held)
    order = {node: place for place, node in enumerate(nx.topological_sort(graph))}
    waiting: list[tuple[Clique, Mask]] = [(rule.variables, rule.allowed(schema.states)) for rule in schema.rules]
    found = {}
    for node in sorted(order, key=order.__getitem__, reverse=True):
        own = [rule for rule in waiting if node in rule[0]]  # nodes that come later have taken theirs
        if not own:
            continue
        waiting = [rule for rule in waiting if node not in rule[0]]
        for variables, _ in own:
            outside = [variable for variable in variables if variable not in held[node]]
            if outside:
                raise _not_held(variables, (outside[0], node))
        together = tuple(v for v in held[node] if any(v in variables for variables, _ in own))
        mask = reduce(np.logical_and, [_spread(allowed, variables, together) for variables, allowed in own])
        mask = np.broadcast_to(mask, schema.shape(together))
        some: Mask = np.asarray(mask.any(axis=0, keepdims=True))
        if not some.all():
            if len(together) == 1:
                raise SchemaError(f"The rules leave no state of variable {node!r}.")
            waiting.append((together[1:], some[0]))
        found[held[node]] = np.broadcast_to(_spread(mask | ~some, together, held[node]), schema.shape(held[node]))
    return found


def ruled_table(table: Any, mask: Mask | None) -> Any:
    """Put zeros in a CPD's table, and scale its columns to sum to one; without mass, to even shares."""
    if mask is None:
        return table
    kept = np.where(mask, table, 0.0)
    mass = kept.sum(axis=0, keepdims=True)
    even = mask / mask.sum(axis=0, keepdims=True)
    return np.where(mass > 0, kept / np.where(mass > 0, mass, 1.0), even)


def scope_masks(scopes: Sequence[Clique], schema: Schema) -> dict[Clique, Mask]:
    """Say which cells of a Markov network's tables may be other than zero, so that all rules hold."""
    found: dict[Clique, Mask] = {}
    for rule in schema.rules:
        scope = next((scope for scope in scopes if set(rule.variables) <= set(scope)), None)
        if scope is None:
            raise _not_held(rule.variables, rule.variables)
        mask = np.broadcast_to(_spread(rule.allowed(schema.states), rule.variables, scope), schema.shape(scope))
        found[scope] = found[scope] & mask if scope in found else mask
    return found


def barred_cells(scopes: Sequence[Clique], masks: dict[Clique, Mask], schema: Schema) -> Any:
    """Put minus infinity where a mask forbids, and zero elsewhere, for all tables end to end."""
    with np.errstate(divide="ignore"):
        parts = [np.log(np.asarray(masks.get(s, np.ones(schema.shape(s))), dtype=np.float64)).ravel() for s in scopes]
    return np.concatenate(parts)


def _spread(table: Mask, variables: Clique, wanted: Clique) -> Mask:
    """Bring a table's axes to those wanted, with an axis of length 1 for each variable that it does not have."""
    order = [variables.index(variable) for variable in wanted if variable in variables]
    sizes = dict(zip(variables, table.shape, strict=True))
    return table.transpose(order).reshape([sizes.get(variable, 1) for variable in wanted])


def _not_held(variables: Clique, pair: Sequence[str]) -> SchemaError:
    add = f"add an edge between {pair[0]!r} and {pair[-1]!r}, or"
    return SchemaError(
        Message(
            f"The network cannot hold the rule about {', '.join(map(repr, variables))}, which must all be neighbours",
            f"{add} fit PairwiseMixture, which needs no network",
            f"{add} use pgmpy-dp synthesize, which needs no network",
        )
    )
