"""Conversion between pgmpy's networks and the tables that files hold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from pgmpy.factors.discrete import DiscreteFactor, TabularCPD
from pgmpy.models import DiscreteBayesianNetwork, DiscreteMarkovNetwork

from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.observed.factors import ordered_table
from pgmpy_dp.schema import Clique, Schema, State


def assembled_bayesian(schema: Schema, cliques: Sequence[Clique], tables: Sequence[Vector]) -> DiscreteBayesianNetwork:
    """Build a network from families, each with the child before its parents, and their tables."""
    network = DiscreteBayesianNetwork()
    network.add_nodes_from(schema.variables)
    network.add_edges_from([(parent, child) for child, *parents in cliques for parent in parents])
    for clique, table in zip(cliques, tables, strict=True):
        states, cards = _states(schema, clique, table), schema.shape(clique)
        network.add_cpds(TabularCPD(clique[0], cards[0], table.reshape(cards[0], -1), clique[1:], cards[1:], states))
    return network


def assembled_families(
    states: Mapping[str, Sequence[State]], rows: Iterable[tuple[str, Sequence[str], Sequence[float]]]
) -> DiscreteBayesianNetwork:
    """Build a network from variables, their parents and their probabilities in the order of `family_rows`."""
    schema, cliques, tables = Schema(states), [], []
    for variable, parents, numbers in rows:
        schema.require([(variable, *parents)])
        cards = schema.shape((*parents, variable))
        if len(numbers) != math.prod(cards):
            raise ValueError(f"{variable!r} has {len(numbers)} probabilities, and needs {math.prod(cards)}")
        cliques.append((variable, *parents))
        tables.append(np.moveaxis(np.array(numbers, dtype=np.float64).reshape(cards), -1, 0))
    if len({child for child, *_ in cliques}) < len(schema.variables) or len(cliques) > len(schema.variables):
        raise ValueError("each variable needs one table of probabilities")
    return assembled_bayesian(schema, cliques, tables)


def family_rows(network: DiscreteBayesianNetwork, schema: Schema) -> Iterator[tuple[str, list[str], list[float]]]:
    """List each variable, its parents and its CPD; its own states vary fastest, then the last parent's."""
    for variable in schema.variables:
        cpd = network.get_cpds(variable)
        table = ordered_table(cpd, schema.states)
        yield variable, cpd.variables[1:], np.moveaxis(table, 0, -1).ravel().tolist()


def assembled_markov(
    schema: Schema, edges: Iterable[tuple[str, str]], cliques: Sequence[Clique], tables: Sequence[Vector]
) -> DiscreteMarkovNetwork:
    """Build a network from edges, cliques and their tables."""
    network = DiscreteMarkovNetwork()
    network.add_nodes_from(schema.variables)
    network.add_edges_from(edges)
    for clique, table in zip(cliques, tables, strict=True):
        states = _states(schema, clique, table)
        network.add_factors(DiscreteFactor(clique, schema.shape(clique), table.ravel(), state_names=states))
    return network


def _states(schema: Schema, clique: Clique, table: Vector) -> dict[str, list[State]]:
    if not (np.isfinite(table).all() and (table >= 0).all()):
        raise ValueError(f"the table of {clique} holds numbers that are negative or not finite")
    return {variable: list(schema.states[variable]) for variable in clique}
