"""Sensitivity in the sense of Laskey (1995): how strongly the parameters of a node affect its children."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from pgmpy.base import DAG

from pgmpy_dp.inference import JunctionTree
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.observed.factors import bayesian_network, log_linear
from pgmpy_dp.privacy.checks import choice
from pgmpy_dp.schema import Clique

KINDS = ("paper", "covary")

# Least probability: smaller ones are raised to it, so that conditionals given impossible states are limits.
_LEAST = 1e-8


def laskey_sensitivities(network: DAG, kind: str = "covary") -> dict[str, float]:
    """Compute the mean sensitivity of the marginals of each node's children to the node's parameters.

    Parameters
    ----------
    network : DiscreteBayesianNetwork
        With CPDs.
    kind : {"paper", "covary"}
        "paper" differentiates P(y) by one entry of a CPD, with the others fixed (Chowdhury et al., equations 8 and 9).
        Those derivatives are P(u) P(y | x, u), which sum to the number of states of x for any CPDs: their mean is the
        constant 1 / (|u| |y|) of the structure, and is returned as such. "covary" changes the other entries of the row
        in proportion, so that it still sums to 1. The derivative is then
        P(u) (P(y | x, u) - P(y | u)) / (1 - theta[x | u]), and its absolute values are averaged.

    Returns
    -------
    dict of node to float
        Average over children y of the average over states of y, x and parents u; 0 for nodes without children.

    Raises
    ------
    ValueError
        For another kind, or a network without CPDs.

    Examples
    --------
    >>> from pgmpy.factors.discrete import TabularCPD
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> network = DiscreteBayesianNetwork([("smoke", "lung")])
    >>> smoke = TabularCPD("smoke", 2, [[0.3], [0.7]])
    >>> network.add_cpds(smoke, TabularCPD("lung", 2, [[0.4, 0.1], [0.6, 0.9]], ["smoke"], [2]))
    >>> {node: round(value, 3) for node, value in laskey_sensitivities(network).items()}
    {'smoke': 0.3, 'lung': 0.0}
    >>> laskey_sensitivities(network, "paper")
    {'smoke': 0.5, 'lung': 0.0}
    """
    choice(*KINDS)("kind", kind)
    layout, logs, _ = log_linear(bayesian_network(network, "laskey_sensitivities"))
    if kind == "paper":
        return constant_sensitivities(layout.cardinalities, layout.scopes)
    return covarying_sensitivities(layout.cardinalities, layout.scopes, layout.split(np.exp(logs)))


def constant_sensitivities(cardinalities: Mapping[str, int], scopes: Sequence[Clique]) -> dict[str, float]:
    """Average the unconstrained derivatives, from which the CPDs cancel; see `laskey_sensitivities`."""
    means: dict[str, list[float]] = {node: [] for node, *_ in scopes}
    sizes = {node: math.prod(cardinalities[parent] for parent in parents) for node, *parents in scopes}
    for child, *parents in scopes:
        for parent in parents:
            means[parent].append(1.0 / (sizes[parent] * cardinalities[child]))
    return {node: float(np.mean(values)) if values else 0.0 for node, values in means.items()}


def covarying_sensitivities(
    cardinalities: Mapping[str, int], scopes: Sequence[Clique], tables: Sequence[Vector]
) -> dict[str, float]:
    """Average the absolute derivatives with rows kept normalised; see `laskey_sensitivities`.

    With c[x, u] the covariance of the indicators of (x, u) and of y, and c[u] its sum over x, the derivative is
    (c[x, u] / theta[x | u] - c[u]) / (1 - theta[x | u]). A junction tree of the families gives the covariances of one y
    with the cells of all families at once.

    `scopes` are families, the node first; `tables` are P(node | parents), with axes in the order of the family.
    """
    rows = [np.maximum(table, _LEAST) for table in tables]
    rows = [row / row.sum(axis=0) for row in rows]
    tree = JunctionTree.build(cardinalities, scopes)
    calibration = tree.calibrate(np.log(tree.layout.flatten(rows)))
    place = {scope[0]: number for number, scope in enumerate(scopes)}
    means: dict[str, list[float]] = {node: [] for node in place}
    for child, *parents in scopes:
        sums = dict.fromkeys(parents, 0.0)
        for state in range(cardinalities[child]) if parents else ():
            direction = np.zeros(tree.layout.size)
            tree.layout.split(direction)[place[child]][state] = 1.0
            covariance = tree.layout.split(tree.covariance_product(calibration, direction))
            for parent in parents:
                row, cells = rows[place[parent]], covariance[place[parent]]
                rest = 1.0 - row
                slope = np.abs(cells / row - cells.sum(axis=0)) / np.where(rest > 0, rest, 1.0)
                sums[parent] += float(slope.mean()) / cardinalities[child]
        for parent in parents:
            means[parent].append(sums[parent])
    return {node: float(np.mean(values)) if values else 0.0 for node, values in means.items()}
