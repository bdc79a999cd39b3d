"""Propagation of CPD errors in inference: Theorems 4.1 and 4.2 and the mu score of Chowdhury et al. (2020)."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
from pgmpy.base import DAG

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.inference import JunctionTree
from pgmpy_dp.inference.tables.table import Table
from pgmpy_dp.observed.factors import log_linear


@dataclass(frozen=True)
class ErrorBounds:
    """Bounds on the L1 error of one sum-product step of variable elimination, and the quantities behind them.

    Attributes
    ----------
    lower, upper : float
        Bounds on the L1 error.
    neighbourhood : int
        eta: one plus the largest number of neighbours of a node.
    treewidth : int
        kappa: width of the elimination order found, at least the treewidth of the moral graph.
    states : int
        d: the largest number of states.
    smallest_error, largest_error : float
        Smallest and largest absolute error of an entry of a CPD.
    smallest_entry : float
        Smallest entry of the true CPDs.
    """

    lower: float
    upper: float
    neighbourhood: int
    treewidth: int
    states: int
    smallest_error: float
    largest_error: float
    smallest_entry: float


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
    least = float(min(map(np.min, entries)))
    lower = math.sqrt(eta - 1) * smallest * least ** (eta - 2) if eta > 1 else 0.0
    upper = (2 * eta * states**kappa if paper else eta * states ** (kappa + 1)) * largest
    return ErrorBounds(lower, upper, eta, kappa, states, smallest, largest, least)


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
