"""Errors of a fitted Bayesian network, as Chowdhury, Rekatsinas and Jha (2020) measure them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from pgmpy.base import DAG

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.inference import JunctionTree, Layout, Maximisation
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.inference.trees.factor_graph import MAX_TABLE_CELLS
from pgmpy_dp.observed.factors import log_linear
from pgmpy_dp.schema import Clique

# Fitted probabilities are raised to at least this in divergences, since many are zero.
FLOOR = 1e-6

Evidence = Mapping[str, Any]


@dataclass(frozen=True)
class QueryErrors:
    """Errors of a set of distributions.

    Attributes
    ----------
    l1 : float
        Sum of absolute differences, averaged over the distributions.
    divergence : float
        KL(reference || fitted) in nats, averaged over the distributions, with fitted probabilities of at least 1e-6.
    distances : tuple of float
        The L1 error of each distribution.
    """

    l1: float
    divergence: float
    distances: tuple[float, ...]


def parameter_errors(reference: DAG, fitted: DAG) -> QueryErrors:
    """Compute the errors of all rows of all CPDs.

    Parameters
    ----------
    reference, fitted : DiscreteBayesianNetwork
        Networks of the same structure.

    Examples
    --------
    >>> from pgmpy.factors.discrete import TabularCPD
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> one, other = DiscreteBayesianNetwork(), DiscreteBayesianNetwork()
    >>> for network, share in ((one, 0.5), (other, 0.25)):
    ...     network.add_node("a")
    ...     network.add_cpds(TabularCPD("a", 2, [[share], [1 - share]]))
    >>> round(parameter_errors(one, other).l1, 6)
    0.5
    """
    layout, tables, _ = _both(reference, fitted)
    pairs = []
    for one, other in zip(*(layout.split(np.exp(logs)) for logs in tables), strict=True):
        pairs += list(zip(one.reshape(len(one), -1).T, other.reshape(len(other), -1).T, strict=True))
    return _errors(pairs)


def marginal_errors(reference: DAG, fitted: DAG, variables: Sequence[Sequence[str]]) -> QueryErrors:
    """Compute the errors of the joint distributions of sets of variables."""
    layout, logs, _ = _both(reference, fitted)
    return _errors([_joints(layout, logs, tuple(asked)) for asked in variables])


def conditional_errors(reference: DAG, fitted: DAG, queries: Sequence[tuple[str, Evidence]]) -> QueryErrors:
    """Compute the errors of conditional distributions; each query is a variable and its evidence."""
    layout, logs, states = _both(reference, fitted)
    pairs = []
    for asked, given in queries:
        known: tuple[slice | int, ...] = tuple(states[variable].index(state) for variable, state in given.items())
        columns = [joint[(slice(None), *known)] for joint in _joints(layout, logs, (asked, *given))]
        pairs.append(tuple(column / max(column.sum(), 1e-300) for column in columns))
    return _errors(pairs)


def map_agreement(reference: DAG, fitted: DAG, queries: Sequence[tuple[Sequence[str], Evidence]]) -> float:
    """Compute the share of MAP queries that both networks answer alike.

    Each query is the variables whose most probable states are asked for, and evidence. The evidence must have positive
    probability in the reference. If its probability is zero in the fitted network, the two do not agree.
    """
    layout, logs, states = _both(reference, fitted)
    agreed = 0
    for asked, given in queries:
        places = {variable: states[variable].index(state) for variable, state in given.items()}
        plan = _plan(tuple(layout.cardinalities.items()), layout.scopes, tuple(asked), tuple(places.items()))
        answer = plan.most_probable(logs[0])
        with suppress(ValueError):
            agreed += answer == plan.most_probable(logs[1])
    return agreed / len(queries)


def _both(reference: DAG, fitted: DAG) -> tuple[Layout, tuple[Vector, Vector], Mapping[str, Sequence[Any]]]:
    """Return the logarithms of both networks' CPDs in the layout of the first."""
    layout, logs, states = log_linear(reference)
    other_layout, other_logs, _ = log_linear(fitted, states)
    tables = {scope[0]: (scope, table) for scope, table in other_layout.tables(other_logs).items()}
    others = []
    for scope in layout.scopes:
        held, table = tables.get(scope[0], ((), logs))
        if set(held) != set(scope):
            raise SchemaError(f"The two networks give {scope[0]!r} different parents.")
        others.append(table.transpose([held.index(variable) for variable in scope]))
    return layout, (logs, layout.flatten(others)), states


def _joints(layout: Layout, logs: tuple[Vector, Vector], scope: Clique) -> tuple[Vector, ...]:
    """Compute the joint distribution of a set of variables in both networks."""
    tree = _tree(tuple(layout.cardinalities.items()), layout.scopes, scope)
    return tuple(tree.marginal(tree.calibrate(each), scope) for each in logs)


@lru_cache(maxsize=64)
def _tree(cardinalities: tuple[tuple[Any, int], ...], scopes: tuple[Any, ...], scope: Clique) -> JunctionTree:
    """Compile a junction tree for one set of variables, since a tree for all sets would be large."""
    return JunctionTree.build(dict(cardinalities), scopes, [scope], MAX_TABLE_CELLS)


@lru_cache(maxsize=64)
def _plan(
    cardinalities: tuple[tuple[Any, int], ...],
    scopes: tuple[Any, ...],
    asked: Clique,
    given: tuple[tuple[Any, int], ...],
) -> Maximisation:
    return Maximisation.plan(Layout.of(dict(cardinalities), scopes), asked, dict(given))


def _errors(pairs: Sequence[tuple[Vector, ...]]) -> QueryErrors:
    distances = tuple(float(np.abs(p - q).sum()) for p, q in pairs)
    divergences = [float((p[p > 0] * np.log(p[p > 0] / np.maximum(q[p > 0], FLOOR))).sum()) for p, q in pairs]
    return QueryErrors(float(np.mean(distances)), float(np.mean(divergences)), distances)
