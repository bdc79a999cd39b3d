"""The Kullback-Leibler divergence between networks."""

from __future__ import annotations

import numpy as np

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.inference import JunctionTree
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.inference.trees.factor_graph import MAX_TABLE_CELLS
from pgmpy_dp.observed.factors import Network, log_linear


def kl_divergence(true: Network, fitted: Network) -> float:
    """Compute the Kullback-Leibler divergence KL(true || fitted) of the joint distributions, in nats, exactly.

    Parameters
    ----------
    true, fitted : DiscreteBayesianNetwork or DiscreteMarkovNetwork
        Over the same variables and states; the structures may differ.

    Returns
    -------
    float
        Infinite if the fitted network gives probability 0 to a joint state with positive true probability.

    Raises
    ------
    SchemaError
        If variables or states differ.
    TreeTooLargeError
        If a junction tree would not fit in memory.

    Notes
    -----
    The divergence is E_p[log p] - E_p[log q]. Both logarithms are sums over tables, so the clique marginals of p
    suffice. They are computed in one junction tree of p that also covers the scopes of q.

    Examples
    --------
    >>> from pgmpy.factors.discrete import TabularCPD
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> networks = []
    >>> for share in (0.5, 0.25):
    ...     network = DiscreteBayesianNetwork()
    ...     network.add_node("a")
    ...     network.add_cpds(TabularCPD("a", 2, [[share], [1 - share]]))
    ...     networks.append(network)
    >>> round(kl_divergence(*networks), 6)
    0.143841
    """
    p_layout, p_logs, states = log_linear(true)
    q_layout, q_logs, _ = log_linear(fitted, states)
    for variable in states:
        if variable not in q_layout.cardinalities:
            raise SchemaError(f"Variable {variable!r} is in one of the two networks only.")
    tree = JunctionTree.build(p_layout.cardinalities, p_layout.scopes, q_layout.scopes, MAX_TABLE_CELLS)
    calibration = tree.calibrate(p_logs)
    q_tree = JunctionTree.build(q_layout.cardinalities, q_layout.scopes, max_cells=MAX_TABLE_CELLS)
    q_partition = q_tree.calibrate(q_logs).log_partition
    q_marginals = q_layout.flatten(tree.marginal(calibration, scope) for scope in q_layout.scopes)
    own = _expectation(calibration.marginals, p_logs) - calibration.log_partition
    return own - (_expectation(q_marginals, q_logs) - q_partition)


def _expectation(probabilities: Vector, values: Vector) -> float:
    held = probabilities > 0
    return float(np.sum(probabilities[held] * values[held]))
