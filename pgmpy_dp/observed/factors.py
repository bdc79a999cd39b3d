"""Networks of pgmpy as flat tables, and back; zeros where rules forbid combinations of states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from pgmpy.base import DAG
from pgmpy.factors.discrete import DiscreteFactor, TabularCPD
from pgmpy.models import DiscreteMarkovNetwork

from pgmpy_dp.errors import MIXTURE, SchemaError
from pgmpy_dp.inference import JunctionTree, Layout, TreeTooLargeError
from pgmpy_dp.inference.tables.table import Table, Vector
from pgmpy_dp.inference.trees.factor_graph import MAX_TABLE_CELLS
from pgmpy_dp.observed.reading import maximal
from pgmpy_dp.schema import Clique, Schema

Network = Any  # a pgmpy DiscreteBayesianNetwork or DiscreteMarkovNetwork; pgmpy is untyped
Mask = NDArray[np.bool_]
States = Mapping[str, Sequence[Any]]


def family(network: DAG, node: str) -> Clique:
    """Return a node and its parents in pgmpy's order: parents sorted, the last varying fastest."""
    return (node, *sorted(network.get_parents(node)))


def families(network: DAG) -> tuple[Clique, ...]:
    """Return all families, in the order of the nodes."""
    return tuple(family(network, node) for node in network.nodes())


def markov_scopes(network: DiscreteMarkovNetwork, measured: Iterable[Clique] = ()) -> tuple[Clique, ...]:
    """Choose the scopes of a Markov network's log-potentials: maximal edges, nodes and measured cliques."""
    order = {node: number for number, node in enumerate(network.nodes())}
    scopes: list[Clique] = [clique for clique in measured if _joined(network, clique)]
    edges = [tuple(sorted(edge, key=order.__getitem__)) for edge in network.edges()]
    scopes += sorted(edges, key=lambda edge: [order[node] for node in edge])
    scopes += [(node,) for node in network.nodes()]
    return maximal(scopes)


def require_joined(network: DiscreteMarkovNetwork, cliques: Iterable[Clique]) -> None:
    """Require that edges join all variables of each of these sets, else raise ValueError."""
    if not all(_joined(network, clique) for clique in cliques):
        raise ValueError("An entry of cliques is not a clique of the network: edges must join all of its variables.")


def _joined(network: DiscreteMarkovNetwork, variables: Clique) -> bool:
    """Return whether the network has these variables, with an edge between any two of them."""
    pairs = combinations(variables, 2)
    return all(network.has_node(v) for v in variables) and all(network.has_edge(*pair) for pair in pairs)


def outside(cliques: Iterable[Clique], scopes: Sequence[Clique]) -> list[Clique]:
    """Return the cliques that no scope contains."""
    return [clique for clique in cliques if not any(set(clique) <= set(scope) for scope in scopes)]


def tabular_cpd(clique: Clique, table: Vector, state_names: States) -> TabularCPD:
    """Create the CPD of a clique's first variable given the others, checked, since pgmpy does not."""
    node, *parents = clique
    if not (np.isfinite(table).all() and (table >= 0).all() and np.allclose(table.sum(axis=0), 1.0, atol=1e-8)):
        raise ValueError(f"the table of {node!r} given {parents} is not a conditional distribution")
    return TabularCPD(
        node,
        len(state_names[node]),
        table.reshape(table.shape[0], -1),
        evidence=parents or None,
        evidence_card=[len(state_names[parent]) for parent in parents] or None,
        state_names={variable: list(state_names[variable]) for variable in clique},
    )


def conditional(joint: Vector) -> Vector:
    """Compute P(first variable | others) from a joint table; uniform where the others' configuration has no mass."""
    mass = joint.sum(axis=0, keepdims=True)
    safe = np.where(mass > 0, mass, 1.0)
    return np.where(mass > 0, joint / safe, 1.0 / joint.shape[0])


def markov_factors(
    layout: Layout, potentials: Vector, log_partition: float, state_names: States
) -> list[DiscreteFactor]:
    """Create factors of equal shares of log Z, so that products of many stay in the floating-point range."""
    tables = layout.split(potentials)
    tops = [float(table.max()) for table in tables]
    share = (sum(tops) - log_partition) / len(tables)
    return [
        DiscreteFactor(
            list(scope),
            list(shape),
            np.exp(table - top + share).ravel(),
            state_names={variable: list(state_names[variable]) for variable in scope},
        )
        for scope, shape, table, top in zip(layout.scopes, layout.shapes, tables, tops, strict=True)
    ]


def ordered_table(factor: DiscreteFactor, states: States) -> Vector:
    """Return the table of a CPD or factor with axes in the given order of states; SchemaError if they differ."""
    own = factor.state_names
    for variable in factor.variables:
        if len(own[variable]) != len(states[variable]) or set(own[variable]) != set(states[variable]):
            raise SchemaError(f"Variable {variable!r} has other states in one table than in another.")
    return in_order(np.asarray(factor.values, dtype=np.float64), factor.variables, own, states)


def in_order(table: Vector, scope: Sequence[str], own: States, wanted: States, first: int = 0) -> Vector:
    """Reorder the states of a table, whose variables begin at axis `first`, from their own order to another."""
    for axis, variable in enumerate(scope, first):
        states = list(own[variable])
        if states != list(wanted[variable]):
            table = np.take(table, [states.index(state) for state in wanted[variable]], axis=axis)
    return table


def log_linear(network: Network, state_names: States | None = None) -> tuple[Layout, Vector, dict[str, list[Any]]]:
    """Return layout, log-potentials and states of a network with CPDs or factors; SchemaError if states differ."""
    own = Schema.from_model(network).states
    for variable in own:
        if state_names is not None and variable not in state_names:
            raise SchemaError(f"Variable {variable!r} is in one of the two networks only.")
    wanted = {variable: list((state_names or own)[variable]) for variable in own}
    factors = network.get_factors() if isinstance(network, DiscreteMarkovNetwork) else network.get_cpds()
    layout = Layout.of(
        {variable: len(states) for variable, states in wanted.items()},
        [tuple(factor.variables) for factor in factors],
    )
    with np.errstate(divide="ignore"):
        return layout, np.log(layout.flatten(ordered_table(factor, wanted) for factor in factors)), wanted


def bayesian_network(model: Any, estimator: str) -> DAG:
    """Require that a model is a Bayesian network with nodes and without latent variables."""
    if not isinstance(model, DAG):
        advice = " Fit it by AutoMLE or CollectiveEM." if isinstance(model, DiscreteMarkovNetwork) else ""
        raise TypeError(f"{estimator} fits a pgmpy DiscreteBayesianNetwork, got {type(model).__name__}.{advice}")
    if getattr(model, "latents", None):
        raise ValueError(
            f"{estimator} does not support latent variables; the model declares {sorted(model.latents)} as latent."
        )
    if not model.nodes():
        raise ValueError("The model has no nodes: add at least one.")
    return model


def markov_network(model: Any, estimator: str) -> DiscreteMarkovNetwork:
    """Require that a model is a Markov network with nodes."""
    if not isinstance(model, DiscreteMarkovNetwork):
        raise TypeError(f"{estimator} fits a PrivateMarkovNetwork, got {type(model).__name__}.")
    if not model.nodes():
        raise ValueError("The model has no nodes: add at least one.")
    return model


def require_rules_fit(network: Network, schema: Schema) -> None:
    """Require that each rule's variables are in one family, or clique of a Markov network; else SchemaError."""
    own = schema.select([node for node in network.nodes() if node in schema.states])
    if not isinstance(network, DiscreteMarkovNetwork):
        family_masks(families(network), own)
        return
    for rule in own.rules:
        apart = [pair for pair in combinations(rule.variables, 2) if not network.has_edge(*pair)]
        if apart:
            raise _not_measured(rule.variables, apart[0])
    if own.rules:
        _require_possible(own)


def _require_possible(schema: Schema) -> None:
    """Require that the rules leave a joint state; not checked if the junction tree of their variables is too large."""
    scopes = maximal([rule.variables for rule in schema.rules])
    with suppress(TreeTooLargeError):
        tree = JunctionTree.build(schema.cardinalities(), scopes, max_cells=MAX_TABLE_CELLS)
        potentials = np.zeros(tree.layout.size)
        potentials[tree.layout.places(scopes)] = forbidden_log_mask(scopes, scope_masks(scopes, schema), schema)
        try:
            tree.calibrate(potentials)
        except ValueError:
            raise SchemaError("The rules contradict each other: no record obeys them all.") from None


def family_masks(scopes: Sequence[Clique], schema: Schema) -> dict[Clique, Mask]:
    """Return masks of the CPD entries that the rules allow to be positive.

    A rule restricts the CPD of the last of its variables in topological order. A configuration of the other variables
    that leaves this variable no state is impossible, which is a rule about the other variables.
    """
    family_of = {scope[0]: scope for scope in scopes}
    graph = nx.DiGraph([(parent, scope[0]) for scope in scopes for parent in scope[1:]])
    graph.add_nodes_from(family_of)
    order = {node: position for position, node in enumerate(nx.topological_sort(graph))}
    waiting: list[tuple[Clique, Mask]] = [(rule.variables, rule.allowed(schema.states)) for rule in schema.rules]
    results = {}
    for node in sorted(order, key=order.__getitem__, reverse=True):
        own = [rule for rule in waiting if node in rule[0]]  # rules of later nodes are already removed
        if not own:
            continue
        waiting = [rule for rule in waiting if node not in rule[0]]
        for variables, _ in own:
            outside = [variable for variable in variables if variable not in family_of[node]]
            if outside:
                raise _not_measured(variables, (outside[0], node))
        together = tuple(v for v in family_of[node] if any(v in variables for variables, _ in own))
        mask = reduce(np.logical_and, [_spread(allowed, variables, together) for variables, allowed in own])
        mask = np.broadcast_to(mask, schema.shape(together))
        some: Mask = np.asarray(mask.any(axis=0, keepdims=True))
        if not some.all():
            if len(together) == 1:
                raise SchemaError(f"The rules leave no state of variable {node!r}.")
            waiting.append((together[1:], some[0]))
        results[family_of[node]] = np.broadcast_to(
            _spread(mask | ~some, together, family_of[node]), schema.shape(family_of[node])
        )
    return results


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
    results: dict[Clique, Mask] = {}
    for rule in schema.rules:
        scope = next((scope for scope in scopes if set(rule.variables) <= set(scope)), None)
        if scope is None:
            raise _not_measured(rule.variables, rule.variables)
        mask = np.broadcast_to(_spread(rule.allowed(schema.states), rule.variables, scope), schema.shape(scope))
        results[scope] = results[scope] & mask if scope in results else mask
    return results


def forbidden_log_mask(scopes: Sequence[Clique], masks: dict[Clique, Mask], schema: Schema) -> Any:
    """Return the log-masks of all tables, concatenated: minus infinity for forbidden cells, else zero."""
    with np.errstate(divide="ignore"):
        parts = [np.log(np.asarray(masks.get(s, np.ones(schema.shape(s))), dtype=np.float64)).ravel() for s in scopes]
    return np.concatenate(parts)


def _spread(table: Mask, variables: Clique, wanted: Clique) -> Mask:
    """Transpose a mask to the wanted variables, with an axis of length 1 for each variable that it lacks."""
    return Table(variables, table).expand(wanted).astype(bool)  # sums are numbers


def _not_measured(variables: Clique, pair: Sequence[str]) -> SchemaError:
    return SchemaError(
        f"The network cannot hold the rule about {', '.join(map(repr, variables))}, which must all be neighbours: add "
        f"an edge between {pair[0]!r} and {pair[-1]!r}, or {MIXTURE}."
    )
