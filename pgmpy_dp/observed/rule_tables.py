"""Rules in networks: tables with zeros where a rule forbids a combination of states."""

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

from pgmpy_dp.errors import MIXTURE, SchemaError
from pgmpy_dp.inference import TreeTooLargeError, build_engine
from pgmpy_dp.inference.tables.table import Table
from pgmpy_dp.observed.factors import Network, families
from pgmpy_dp.observed.reading import maximal
from pgmpy_dp.schema import Clique, Schema

Mask = NDArray[np.bool_]


def require_held(network: Network, schema: Schema) -> None:
    """Require that families, or cliques of a Markov network, hold each rule's variables; else SchemaError."""
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
    """Require that the rules leave a joint state; not checked if the junction tree of their variables is too large."""
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
    """Return masks of the CPD entries that the rules allow to be positive.

    A rule restricts the CPD of the last of its variables in topological order. A configuration of the other variables
    that leaves this variable no state is impossible, which is a rule about the other variables.

    Parameters
    ----------
    scopes : sequence of tuples of str
        Families of a Bayesian network, each node before its parents.
    schema : Schema
        Its rules are about variables of the network only.

    Returns
    -------
    dict of family to ndarray of bool
        The families with zeros. Columns of impossible parent configurations are all True.
    """
    held = {scope[0]: scope for scope in scopes}
    graph = nx.DiGraph([(parent, scope[0]) for scope in scopes for parent in scope[1:]])
    graph.add_nodes_from(held)
    order = {node: place for place, node in enumerate(nx.topological_sort(graph))}
    waiting: list[tuple[Clique, Mask]] = [(rule.variables, rule.allowed(schema.states)) for rule in schema.rules]
    found = {}
    for node in sorted(order, key=order.__getitem__, reverse=True):
        own = [rule for rule in waiting if node in rule[0]]  # rules of later nodes are already removed
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
    """Set forbidden entries of a CPD to zero and normalise its columns; columns without mass become uniform."""
    if mask is None:
        return table
    kept = np.where(mask, table, 0.0)
    mass = kept.sum(axis=0, keepdims=True)
    even = mask / mask.sum(axis=0, keepdims=True)
    return np.where(mass > 0, kept / np.where(mass > 0, mass, 1.0), even)


def scope_masks(scopes: Sequence[Clique], schema: Schema) -> dict[Clique, Mask]:
    """Return masks of the cells of a Markov network's tables that the rules allow to be positive."""
    found: dict[Clique, Mask] = {}
    for rule in schema.rules:
        scope = next((scope for scope in scopes if set(rule.variables) <= set(scope)), None)
        if scope is None:
            raise _not_held(rule.variables, rule.variables)
        mask = np.broadcast_to(_spread(rule.allowed(schema.states), rule.variables, scope), schema.shape(scope))
        found[scope] = found[scope] & mask if scope in found else mask
    return found


def barred_cells(scopes: Sequence[Clique], masks: dict[Clique, Mask], schema: Schema) -> Any:
    """Return the logarithms of the masks of all tables, concatenated: minus infinity where forbidden, else zero."""
    with np.errstate(divide="ignore"):
        parts = [np.log(np.asarray(masks.get(s, np.ones(schema.shape(s))), dtype=np.float64)).ravel() for s in scopes]
    return np.concatenate(parts)


def _spread(table: Mask, variables: Clique, wanted: Clique) -> Mask:
    """Transpose a mask to the wanted variables, with an axis of length 1 for each variable that it lacks."""
    return Table(variables, table).expand(wanted).astype(bool)  # sums are numbers


def _not_held(variables: Clique, pair: Sequence[str]) -> SchemaError:
    return SchemaError(
        f"The network cannot hold the rule about {', '.join(map(repr, variables))}, which must all be neighbours: add "
        f"an edge between {pair[0]!r} and {pair[-1]!r}, or {MIXTURE}."
    )
