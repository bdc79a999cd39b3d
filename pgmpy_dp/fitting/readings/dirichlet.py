"""Dirichlet priors, posteriors and draws of the rows of a Bayesian network."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from pgmpy.factors.discrete import TabularCPD
from pgmpy.models import DiscreteBayesianNetwork

from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.observed.factors import tabular_cpd
from pgmpy_dp.privacy.checks import shown
from pgmpy_dp.schema import Clique, Schema

PRIORS = ("BDeu", "K2", "dirichlet")


def check_prior(prior_type: Any, equivalent_sample_size: Any, pseudo_counts: Any) -> None:
    """Check the parameters of a prior before the budget is charged; shapes are checked once the states are known."""
    if not isinstance(prior_type, str) or prior_type.lower() not in [name.lower() for name in PRIORS]:
        raise ValueError(f"prior_type is {prior_type!r}; choose one of {', '.join(PRIORS)}.")
    if prior_type.lower() == "dirichlet":
        if pseudo_counts is None:
            raise ValueError('prior_type="dirichlet" needs pseudo_counts: a number, or a table for each node.')
    elif pseudo_counts is not None:
        raise ValueError(f'pseudo_counts go with prior_type="dirichlet", not {prior_type!r}.')


def prior_counts(
    scopes: Sequence[Clique], schema: Schema, prior_type: str, equivalent_sample_size: Any, pseudo_counts: Any
) -> dict[Clique, Vector]:
    """Compute the Dirichlet parameters of every family, as in pgmpy's `DiscreteBayesianEstimator`.

    Parameters
    ----------
    scopes : sequence of tuples of str
        Families: the node, then its parents in pgmpy's order.
    schema : Schema
    prior_type : {"BDeu", "K2", "dirichlet"}
        `equivalent_sample_size` spread over the family's cells; 1 everywhere; or `pseudo_counts`.
    equivalent_sample_size : float or mapping of node to float
    pseudo_counts : float or mapping of node to array of shape (states, configurations of the parents)

    Raises ValueError if a parameter is missing, has another shape, or is not positive.
    """
    check_prior(prior_type, equivalent_sample_size, pseudo_counts)
    found = {}
    for scope in scopes:
        node, shape = scope[0], schema.shape(scope)
        flat: tuple[int, int] = (shape[0], math.prod(shape[1:]))
        if prior_type.lower() == "k2":
            counts: Any = 1.0
        elif prior_type.lower() == "bdeu":
            counts = _of_node(equivalent_sample_size, node, "equivalent_sample_size")
            if not isinstance(counts, Real):
                raise ValueError(f"equivalent_sample_size of {node!r} must be a number, got {shown(counts)}.")
            counts = float(counts) / math.prod(shape)
        else:
            counts = _of_node(pseudo_counts, node, "pseudo_counts")
        try:
            table = np.asarray(counts, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"The pseudo_counts of {node!r} must be numbers.") from None
        if table.shape not in ((), flat):
            raise ValueError(f"The pseudo_counts of {node!r} must be of shape {flat}, got {table.shape}.")
        if not (np.isfinite(table).all() and (table > 0).all()):
            raise ValueError(
                f"The prior counts of {node!r} must be positive and finite: Dirichlet priors have no zeros."
            )
        found[scope] = np.broadcast_to(table, flat).reshape(shape).copy()
    return found


def _of_node(values: Any, node: str, name: str) -> Any:
    if not isinstance(values, Mapping):
        return values
    if node not in values:
        raise ValueError(f"{name} has no entry for {node!r}: give one for every node.")
    return values[node]


def posterior_frame(scope: Clique, counts: Vector, schema: Schema) -> pd.DataFrame:
    """Return Dirichlet parameters as a frame, with a row per state and a column per configuration of the parents."""
    node, *parents = scope
    index = pd.Index(list(schema.states[node]), name=node)
    values = counts.reshape(counts.shape[0], -1)
    if not parents:
        return pd.DataFrame(values, index=index, columns=[node])
    columns = pd.MultiIndex.from_product([list(schema.states[parent]) for parent in parents], names=parents)
    return pd.DataFrame(values, index=index, columns=columns)


def posterior_means(scope: Clique, counts: Vector, schema: Schema) -> TabularCPD:
    """Return the CPD whose rows are the means of the Dirichlet distributions."""
    return tabular_cpd(scope, counts / counts.sum(axis=0, keepdims=True), schema.states)


def draw_network(
    counts: Mapping[Clique, Vector], schema: Schema, generator: np.random.Generator
) -> DiscreteBayesianNetwork:
    """Draw the rows of a network from Dirichlet distributions, independently."""
    cpds = []
    for scope, table in counts.items():
        # In logarithms, since gamma variables of small shape underflow, which would give rows of zeros.
        logs = np.log(generator.gamma(table + 1.0)) + np.log(generator.random(table.shape)) / table
        rows = np.exp(logs - logs.max(axis=0, keepdims=True))
        cpds.append(tabular_cpd(scope, rows / rows.sum(axis=0, keepdims=True), schema.states))
    return network_of(cpds)


def network_of(cpds: Sequence[TabularCPD]) -> DiscreteBayesianNetwork:
    """Make the Bayesian network of some CPDs."""
    network = DiscreteBayesianNetwork()
    network.add_nodes_from([cpd.variable for cpd in cpds])
    network.add_edges_from([(parent, cpd.variable) for cpd in cpds for parent in cpd.variables[1:]])
    network.add_cpds(*cpds)
    return network
