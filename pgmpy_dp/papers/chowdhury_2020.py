"""Directed networks of Chowdhury, Rekatsinas and Jha (2020): budget allocation, and Algorithms 1 and 2 as printed.

Every family has two tables, one over the node and its parents and one over the parents, each with half of the family's
budget, even if families share parents. Common marginals weight the tables by their budgets, equation (17).
`PrivateMLE(tables="paper")` improves on this: it measures equal tables once, uses the least noisy one, and weights by
inverse variances.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd
from pgmpy.base import DAG
from pgmpy.factors.discrete import TabularCPD

from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.fitting.plans.allocation import (
    SENSITIVITIES,
    DataDependentAllocation,
    PlannedAllocation,
    SizeAllocation,
    UniformAllocation,
    constant_sensitivities,
    covarying_sensitivities,
    structure_features,
)
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.observed.consistency import make_consistent, mutual_consistency
from pgmpy_dp.observed.factors import bayesian_network, conditional, families, log_linear, tabular_cpd
from pgmpy_dp.privacy import PrivacyBudget
from pgmpy_dp.privacy.checks import choice
from pgmpy_dp.privacy.noise import NoiseSource
from pgmpy_dp.schema import Clique, Schema

__all__ = [
    "DataDependentAllocation",
    "PlannedAllocation",
    "SizeAllocation",
    "UniformAllocation",
    "compute_parameters",
    "data_dependent",
    "independent",
    "laskey_sensitivities",
    "mutual_consistency",
]

STAGE1_SHARE, SAMPLING_RATE = 0.1, 0.1  # shares of the budget and of the records; the paper's text does not state them


@dataclass(frozen=True)
class PrintedParameters:
    """Result of Algorithm 1: CPD rows of all families, and the noisy counts of their parents' configurations."""

    rows: Sequence[Vector]
    parents: Sequence[Vector]


def compute_parameters(
    records: pd.DataFrame, schema: Schema, scopes: Sequence[Clique], epsilons: Sequence[float], noise: NoiseSource
) -> PrintedParameters:
    """Run Algorithm 1, which costs the sum of the epsilons.

    Both tables of family i have Laplace noise of scale 2 / epsilon_i.

    The table of a family, with negative counts set to zero, gives the rows of its CPD, and the table of its parents
    gives the weights of the rows. The families' marginals are made consistent with weights proportional to the
    epsilons, and determine the CPDs. For a node without parents the second table is the number of records, which
    cancels, but still takes half of the family's budget.

    Parameters
    ----------
    records, schema
    scopes : sequence of tuples of str
        Families, the node first.
    epsilons : sequence of float
        Budget of each family.
    noise : SimulatedNoise
    """
    data = PrivateDataset(records, schema, PrivacyBudget(2 * sum(epsilons)), noise=noise)
    marginals: dict[Clique, Vector] = {}
    parents = []
    for scope, epsilon in zip(scopes, epsilons, strict=True):
        rows = conditional(np.maximum(data.measure([scope], epsilon / 2).tables[scope], 0.0))
        counts = np.array(float(len(records)))
        if scope[1:]:
            counts = np.maximum(data.measure([scope[1:]], epsilon / 2).tables[scope[1:]], 0.0).astype(np.float64)
        parents.append(counts)
        mass = counts / counts.sum() if counts.any() else np.full_like(counts, 1.0 / counts.size)
        marginals[scope] = len(records) * mass * rows
    agreed = make_consistent(marginals, dict(zip(scopes, epsilons, strict=True)))
    return PrintedParameters([conditional(np.maximum(agreed[scope], 0.0)) for scope in scopes], parents)


def independent(
    network: DAG, records: pd.DataFrame, schema: Schema, epsilon: float, noise: NoiseSource
) -> list[TabularCPD]:
    """Fit D-Ind: Algorithm 1 with the same epsilon for all families."""
    scopes = families(network)
    result = compute_parameters(records, schema, scopes, [epsilon / len(scopes)] * len(scopes), noise)
    return _cpds(scopes, result, schema)


def data_dependent(
    network: DAG, records: pd.DataFrame, schema: Schema, epsilon: float, noise: NoiseSource
) -> list[TabularCPD]:
    """Fit by Algorithm 2: equal epsilons on a Poisson sample first, then budgets proportional to sqrt(W_i dbar_i).

    A stage that costs epsilon on all records costs log(1 + beta (exp(epsilon) - 1)) on a sample of rate beta.
    """
    scopes = families(network)
    first = STAGE1_SHARE * epsilon
    sample = records[noise.coins(Fraction(str(SAMPLING_RATE)), len(records))]
    amplified = math.log1p(math.expm1(first) / SAMPLING_RATE)
    result = compute_parameters(sample, schema, scopes, [amplified / len(scopes)] * len(scopes), noise)
    features = structure_features(network)
    sensitivity = constant_sensitivities(schema.cardinalities(), scopes)
    costs = []
    for scope, rows, counts in zip(scopes, result.rows, result.parents, strict=True):
        height, degree = (int(value) for value in features.loc[scope[0]].to_numpy())
        error = float((np.sqrt(1.0 + rows**2) / np.maximum(counts, 1.0)).mean())  # equation (6)
        costs.append((height + 1) * (degree + 1) * (sensitivity[scope[0]] + 1) * error)
    roots = np.sqrt(costs)
    shares = (epsilon - first) * roots / roots.sum()  # equation (10)
    return _cpds(scopes, compute_parameters(records, schema, scopes, shares.tolist(), noise), schema)


def laskey_sensitivities(network: DAG, kind: str = "covary") -> dict[str, float]:
    """Compute the mean sensitivity of the marginals of each node's children to the node's parameters.

    Parameters
    ----------
    network : DiscreteBayesianNetwork
        With CPDs.
    kind : {"paper", "covary"}
        "paper" differentiates P(y) by one entry of a CPD, with the others fixed (Chowdhury et al., equations 8 and 9).
        These derivatives are P(u) P(y | x, u), which sum to the number of states of x for any CPDs. Their mean is
        1 / (|u| |y|), which depends only on the structure and is returned directly. "covary" changes the other entries
        of the row in proportion, so that it still sums to 1. The derivative is then
        P(u) (P(y | x, u) - P(y | u)) / (1 - theta[x | u]), and its absolute values are averaged.

    Returns
    -------
    dict of node to float
        Average over children y of the average over states of y, x and parents u; 0 for nodes without children.

    Raises
    ------
    ValueError
        If `kind` is unknown, or the network has no CPDs.

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
    choice(*SENSITIVITIES)("kind", kind)
    layout, logs, _ = log_linear(bayesian_network(network, "laskey_sensitivities"))
    if kind == "paper":
        return constant_sensitivities(layout.cardinalities, layout.scopes)
    return covarying_sensitivities(layout.cardinalities, layout.scopes, layout.split(np.exp(logs)))


def _cpds(scopes: Sequence[Clique], found: PrintedParameters, schema: Schema) -> list[TabularCPD]:
    return [tabular_cpd(scope, rows, schema.states) for scope, rows in zip(scopes, found.rows, strict=True)]
