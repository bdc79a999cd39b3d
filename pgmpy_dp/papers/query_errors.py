"""Errors of a fitted Bayesian network as Chowdhury, Rekatsinas and Jha (2020) measure and bound them.

Their mu score places an error between the bounds of Theorems 4.1 and 4.2 on how errors of CPDs propagate in inference.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from pgmpy.base import DAG

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.inference import JunctionTree, Layout, Maximisation
from pgmpy_dp.inference.tables.table import Table, Vector
from pgmpy_dp.inference.trees.factor_graph import MAX_TABLE_CELLS
from pgmpy_dp.observed.factors import log_linear
from pgmpy_dp.schema import Clique

# Fitted probabilities are raised to at least this in divergences, since many are zero.
FLOOR = 1e-6

Evidence = Mapping[str, Any]


@dataclass(frozen=True)
class QueryErrors:
    """Errors of a set of distributions."""

    l1: float  # sum of absolute differences, averaged over the distributions
    divergence: float
    distances: tuple[float, ...]  # the L1 error of each distribution


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
    """Compute the errors of the joint distributions of sets of variables.

    Examples
    --------
    >>> import pgmpy_dp as dp
    >>> asia = dp.evaluation.bnlearn_network("asia")
    >>> marginal_errors(asia, asia, [["smoke", "lung"]]).l1
    0.0
    """
    layout, logs, _ = _both(reference, fitted)
    return _errors([_joints(layout, logs, tuple(asked)) for asked in variables])


def conditional_errors(reference: DAG, fitted: DAG, queries: Sequence[tuple[str, Evidence]]) -> QueryErrors:
    """Compute the errors of conditional distributions; each query is a variable and its evidence.

    Examples
    --------
    >>> import pgmpy_dp as dp
    >>> asia = dp.evaluation.bnlearn_network("asia")
    >>> conditional_errors(asia, asia, [("lung", {"smoke": "yes"})]).divergence
    0.0
    """
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

    Examples
    --------
    >>> import pgmpy_dp as dp
    >>> asia = dp.evaluation.bnlearn_network("asia")
    >>> map_agreement(asia, asia, [(["lung", "bronc"], {"smoke": "yes"})])
    1.0
    """
    layout, logs, states = _both(reference, fitted)
    agreed = 0
    for asked, given in queries:
        codes = {variable: states[variable].index(state) for variable, state in given.items()}
        plan = _plan(tuple(layout.cardinalities.items()), layout.scopes, tuple(asked), tuple(codes.items()))
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
        family, table = tables.get(scope[0], ((), logs))
        if set(family) != set(scope):
            raise SchemaError(f"The two networks give {scope[0]!r} different parents.")
        others.append(table.transpose([family.index(variable) for variable in scope]))
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


@dataclass(frozen=True)
class ErrorBounds:
    """Bounds on the L1 error of one sum-product step of variable elimination, and the quantities behind them."""

    lower: float
    upper: float
    neighbourhood: int  # eta: one plus the largest number of neighbours of a node
    treewidth: int  # kappa: width of the elimination order found, at least the treewidth of the moral graph
    states: int  # d: the largest number of states
    smallest_error: float
    largest_error: float
    smallest_entry: float  # smallest entry of the true CPDs


def inference_error_bounds(true: DAG, fitted: DAG, paper: bool = False) -> ErrorBounds:
    """Bound the L1 error of a sum-product step by the errors of the CPDs.

    Parameters
    ----------
    true, fitted : DiscreteBayesianNetwork
        Networks of the same structure, with CPDs. The bounds depend on the true network: use them for evaluation and
        do not release them.
    paper : bool
        Whether to return the upper bound as printed: 2 eta d^kappa times the largest error, proved here only for
        d <= 2.

    Returns
    -------
    ErrorBounds

    Raises
    ------
    SchemaError
        If the nodes, states or parents of the two networks differ.

    Notes
    -----
    A step multiplies the factors that contain one variable, at most eta, and sums it out; the result has at most kappa
    variables (in an order of that width).

    Upper: entries are in [0, 1], so the error of a product is at most the sum of its factors' errors, i.e. eta times
    the largest. Summing over the d states of the variable and the d^kappa cells of the result gives
    eta d^(kappa + 1) times the largest error.

    Lower: sqrt(eta - 1) * smallest error * smallest entry^(eta - 2) is, by propagation of errors, the typical error of
    one cell if eta - 1 factors have independent errors. It does not bound a realised error, since errors can cancel.

    The paper's formulas are reconstructed because they are illegible in the available copy.

    Examples
    --------
    >>> from pgmpy.factors.discrete import TabularCPD
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> networks = []
    >>> for share in (0.5, 0.6):
    ...     network = DiscreteBayesianNetwork([("a", "b")])
    ...     network.add_cpds(TabularCPD("a", 2, [[share], [1 - share]]))
    ...     network.add_cpds(TabularCPD("b", 2, [[share, 0.2], [1 - share, 0.8]], ["a"], [2]))
    ...     networks.append(network)
    >>> bounds = inference_error_bounds(*networks)
    >>> bounds.neighbourhood, bounds.treewidth, round(bounds.upper, 6)
    (2, 1, 0.8)
    """
    layout, logs, names = log_linear(true)
    other_layout, other_logs, _ = log_linear(fitted, names)
    others = {scope[0]: (scope, np.exp(table)) for scope, table in other_layout.tables(other_logs).items()}
    entries, errors = [], []
    neighbours: Counter[str] = Counter()
    for (node, *parents), logarithms in layout.tables(logs).items():
        scope, table = others.get(node, ((), logarithms))
        if set(scope) != {node, *parents}:
            raise SchemaError(f"The two networks give {node!r} different parents: the bounds compare CPDs.")
        entries.append(np.exp(logarithms).ravel())
        errors.append(np.abs(entries[-1] - Table(scope, table).margin((node, *parents)).values.ravel()))
        neighbours.update([node] * len(parents) + parents)
    eta = max(neighbours.values(), default=0) + 1
    kappa = max(map(len, JunctionTree.cliques_of(layout.cardinalities, layout.scopes))) - 1
    states = max(layout.cardinalities.values())
    smallest, largest = float(min(map(np.min, errors))), float(max(map(np.max, errors)))
    smallest_entry = float(min(map(np.min, entries)))
    lower = math.sqrt(eta - 1) * smallest * smallest_entry ** (eta - 2) if eta > 1 else 0.0
    upper = (2 * eta * states**kappa if paper else eta * states ** (kappa + 1)) * largest
    return ErrorBounds(lower, upper, eta, kappa, states, smallest, largest, smallest_entry)


def mu_score(error: float, bounds: ErrorBounds) -> float:
    """Locate an error between the bounds: 0 at the lower, 1 at the upper bound.

    The bounds hold for one step of variable elimination. A query of several steps accumulates their errors and may
    exceed the upper bound: on a chain of 40 nodes its score can exceed 5. The score is negative below the lower bound,
    which bounds only a typical error, and 0 if the bounds are equal.

    Parameters
    ----------
    error : float
        L1 error of the result of a step or a query, at least 0.
    bounds : ErrorBounds

    Raises
    ------
    ValueError
        If the error is negative or not finite.

    Examples
    --------
    >>> mu_score(0.5, ErrorBounds(0.25, 1.25, 2, 1, 2, 0.1, 0.1, 0.2))
    0.25
    """
    if not 0 <= error < math.inf:
        raise ValueError(f"error must be at least 0 and finite, got {error!r}.")
    width = bounds.upper - bounds.lower
    return (error - bounds.lower) / width if width > 0 else 0.0
