"""Directed networks of Chowdhury, Rekatsinas and Jha (2020): budget allocation, Algorithms 1 and 2 as printed, errors.

Every family has two tables, one over the node and its parents and one over the parents, each with half of the family's
budget, even if families share parents. Common marginals weight the tables by their budgets, equation (17).
`PrivateMLE(tables="paper")` improves on this: it measures equal tables once, uses the least noisy one, and weights by
inverse variances.

The mu score places an error between the bounds of Theorems 4.1 and 4.2 on how errors of CPDs propagate in inference.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from pgmpy.base import DAG
from pgmpy.factors.discrete import TabularCPD

from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.fitting.plans.allocation import (
    SENSITIVITIES,
    constant_sensitivities,
    covarying_sensitivities,
    structure_features,
)
from pgmpy_dp.fitting.plans.allocation import DataDependentAllocation as DataDependentAllocation
from pgmpy_dp.fitting.plans.allocation import PlannedAllocation as PlannedAllocation
from pgmpy_dp.fitting.plans.allocation import SizeAllocation as SizeAllocation
from pgmpy_dp.fitting.plans.allocation import UniformAllocation as UniformAllocation
from pgmpy_dp.fitting.readings.directed import from_two_tables
from pgmpy_dp.inference import JunctionTree
from pgmpy_dp.inference.distribution import ImpossibleEvidenceError
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.inference.trees.conditioning import TreeDistribution
from pgmpy_dp.observed.consistency import make_consistent
from pgmpy_dp.observed.consistency import mutual_consistency as mutual_consistency
from pgmpy_dp.observed.factors import bayesian_network, conditional, families, log_linear, tabular_cpd
from pgmpy_dp.privacy import PrivacyBudget
from pgmpy_dp.privacy.checks import choice
from pgmpy_dp.privacy.noise import NoiseSource
from pgmpy_dp.schema import Clique, Schema

STAGE1_SHARE, SAMPLING_RATE = 0.1, 0.1  # shares of the budget and of the records; the paper's text does not state them
# Fitted probabilities are raised to at least this in divergences, since many are zero.
FLOOR = 1e-6

Evidence = Mapping[str, Any]


def compute_parameters(
    records: pd.DataFrame, schema: Schema, scopes: Sequence[Clique], epsilons: Sequence[float], noise: NoiseSource
) -> tuple[list[Vector], list[Vector]]:
    """Run Algorithm 1, which costs the sum of the epsilons; return all CPDs, and noisy counts of the parents.

    Both tables of family i have Laplace noise of scale 2 / epsilon_i. The table of a family, with negative counts set
    to zero, gives the rows of its CPD, and the table of its parents gives the weights of the rows. The families'
    marginals are made consistent with weights proportional to the epsilons, and determine the CPDs. For a node without
    parents the second table is the number of records, which cancels, but still takes half of the family's budget.
    """
    data = PrivateDataset(records, schema, PrivacyBudget(2 * sum(epsilons)), noise=noise)
    marginals: dict[Clique, Vector] = {}
    parents = []
    for scope, epsilon in zip(scopes, epsilons, strict=True):
        table = data.measure([scope], epsilon / 2).tables[scope].astype(np.float64)
        counts = np.array(float(len(records)))
        if scope[1:]:
            counts = data.measure([scope[1:]], epsilon / 2).tables[scope[1:]].astype(np.float64)
        parents.append(counts)
        marginals[scope] = from_two_tables(table, counts, len(records))
    agreed = make_consistent(marginals, dict(zip(scopes, epsilons, strict=True)))
    return [conditional(np.maximum(agreed[scope], 0.0)) for scope in scopes], parents


def independent(
    network: DAG, records: pd.DataFrame, schema: Schema, epsilon: float, noise: NoiseSource
) -> list[TabularCPD]:
    """Fit D-Ind: Algorithm 1 with the same epsilon for all families."""
    scopes = families(network)
    rows, _ = compute_parameters(records, schema, scopes, [epsilon / len(scopes)] * len(scopes), noise)
    return _cpds(scopes, rows, schema)


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
    for scope, rows, counts in zip(scopes, *result, strict=True):
        height, degree = (int(value) for value in features.loc[scope[0]].to_numpy())
        error = float((np.sqrt(1.0 + rows**2) / np.maximum(counts, 1.0)).mean())  # equation (6)
        costs.append((height + 1) * (degree + 1) * (sensitivity[scope[0]] + 1) * error)
    roots = np.sqrt(costs)
    shares = (epsilon - first) * roots / roots.sum()  # equation (10)
    return _cpds(scopes, compute_parameters(records, schema, scopes, shares.tolist(), noise)[0], schema)


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


def _cpds(scopes: Sequence[Clique], rows: Sequence[Vector], schema: Schema) -> list[TabularCPD]:
    return [tabular_cpd(scope, own, schema.states) for scope, own in zip(scopes, rows, strict=True)]


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
    both, _ = _both(reference, fitted)
    pairs: list[tuple[Vector, ...]] = []
    for one, other in _tables(*both):
        pairs += zip(one.reshape(len(one), -1).T, other.reshape(len(other), -1).T, strict=True)
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
    both, _ = _both(reference, fitted)
    return _errors([tuple(own.marginal(asked) for own in both) for asked in variables])


def conditional_errors(reference: DAG, fitted: DAG, queries: Sequence[tuple[str, Evidence]]) -> QueryErrors:
    """Compute the errors of conditional distributions; each query is a variable and its evidence.

    Examples
    --------
    >>> import pgmpy_dp as dp
    >>> asia = dp.evaluation.bnlearn_network("asia")
    >>> conditional_errors(asia, asia, [("lung", {"smoke": "yes"})]).divergence
    0.0
    """
    both, states = _both(reference, fitted)
    pairs = []
    for asked, given in queries:
        known: tuple[slice | int, ...] = tuple(states[variable].index(state) for variable, state in given.items())
        columns = [own.marginal((asked, *given))[(slice(None), *known)] for own in both]
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
    (one, other), states = _both(reference, fitted)
    agreed = 0
    for asked, given in queries:
        codes = {variable: states[variable].index(state) for variable, state in given.items()}
        answer = one.given(codes).most_probable(asked)
        with suppress(ImpossibleEvidenceError):
            agreed += answer == other.given(codes).most_probable(asked)
    return agreed / len(queries)


def _both(reference: DAG, fitted: DAG) -> tuple[tuple[TreeDistribution, TreeDistribution], Mapping[str, Sequence[Any]]]:
    """Return the distributions of both networks in the layout of the first, and its states."""
    layout, logs, states = log_linear(reference)
    other_layout, other_logs, _ = log_linear(fitted, states)
    tables = {scope[0]: (scope, table) for scope, table in other_layout.tables(other_logs).items()}
    others = []
    for scope in layout.scopes:
        family, table = tables.get(scope[0], ((), logs))
        if set(family) != set(scope):
            raise SchemaError(f"The two networks give {scope[0]!r} different parents.")
        others.append(table.transpose([family.index(variable) for variable in scope]))
    one, other = (TreeDistribution(layout, each, families=True) for each in (logs, layout.flatten(others)))
    return (one, other), states


def _tables(*networks: TreeDistribution) -> Iterator[tuple[Vector, ...]]:
    return zip(*(own.layout.split(np.exp(own.logs)) for own in networks), strict=True)


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
    both, _ = _both(true, fitted)
    layout, cpds = both[0].layout, list(_tables(*both))
    errors = [np.abs(one - other) for one, other in cpds]
    neighbours = Counter(end for node, *parents in layout.scopes for parent in parents for end in (node, parent))
    eta = max(neighbours.values(), default=0) + 1
    kappa = max(map(len, JunctionTree.cliques_of(layout.cardinalities, layout.scopes))) - 1
    states = max(layout.cardinalities.values())
    smallest, largest = float(min(map(np.min, errors))), float(max(map(np.max, errors)))
    smallest_entry = float(min(one.min() for one, _ in cpds))
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

    Examples
    --------
    >>> mu_score(0.5, ErrorBounds(0.25, 1.25, 2, 1, 2, 0.1, 0.1, 0.2))
    0.25
    """
    if not 0 <= error < math.inf:
        raise ValueError(f"error must be at least 0 and finite, got {error!r}.")
    width = bounds.upper - bounds.lower
    return (error - bounds.lower) / width if width > 0 else 0.0
