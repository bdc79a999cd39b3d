"""How the families of a Bayesian network share a privacy budget.

Shares are uniform, by table size, planned, or chosen in two stages that look at the data (Chowdhury, Rekatsinas and Jha
2020).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import networkx as nx
import numpy as np
import pandas as pd
from pgmpy.base import DAG

from pgmpy_dp.fitting.plans.planning import plan_tables, shares
from pgmpy_dp.inference import JunctionTree
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.observed.factors import families
from pgmpy_dp.observed.informed_marginals import ReleasedTables
from pgmpy_dp.observed.reading import maximal
from pgmpy_dp.privacy.checks import choice, exact_positive, number, shown
from pgmpy_dp.privacy.subsampling import sampling_fraction
from pgmpy_dp.release import NoisyMarginals
from pgmpy_dp.schema import Clique, Schema

SENSITIVITIES = ("paper", "covary")  # kinds, in the sense of Laskey (1995)
# Minimum probability: smaller ones are raised to it, so that conditionals given impossible states are defined.
_MIN = 1e-8

FEATURES = ("height", "out_degree", "sensitivity")

# Gaussian noise in a table of c cells with share r of rho is proportional to c / sqrt(r): its sum is least for r ~
# c^(2/3).
_GAUSSIAN_POWER = 2 / 3

Plan = tuple[Sequence[Clique], Sequence[float]]


@dataclass(frozen=True)
class UniformAllocation:
    """Equal shares for all tables: the baseline of Chowdhury et al. (D-Ind).

    Examples
    --------
    >>> import pgmpy_dp as dp
    >>> dp.PrivateMLE(epsilon=1.0, allocation=dp.papers.UniformAllocation())
    PrivateMLE(epsilon=1.0, allocation=<UniformAllocation>)
    """


@dataclass(frozen=True)
class SizeAllocation:
    """Shares proportional to a power of the number of cells.

    Attributes
    ----------
    power : float
        The total expected absolute noise is least at 1/2 for Laplace noise, and at 2/3 for Gaussian noise.

    Examples
    --------
    >>> SizeAllocation(0.25)
    SizeAllocation(power=0.25)
    """

    power: float = 0.5

    def __post_init__(self) -> None:
        number(minimum=-8.0, maximum=8.0)("power", self.power)


@dataclass(frozen=True)
class PlannedAllocation:
    """Merge families into common tables where that lowers the noise, by `plan_measurements`.

    Fewer, larger tables can lower the Laplace noise of all families. This usually helps, and always if the network is
    fitted by inference; but sums of Laplace noise are less informative than Laplace noise of equal variance, and on
    ALARM at small epsilon single families, read one by one, do better. Merging does not lower Gaussian noise: families
    are then measured as by `SizeAllocation(2 / 3)`.

    Examples
    --------
    >>> import pgmpy_dp as dp
    >>> dp.PrivateMLE(epsilon=1.0, allocation=dp.papers.PlannedAllocation())
    PrivateMLE(epsilon=1.0, allocation=<PlannedAllocation>)
    """


@dataclass(frozen=True)
class DataDependentAllocation:
    """Decide on the shares of a second release by a first, cheap one (Chowdhury et al., Algorithm 2).

    Stage I measures all tables equally, on a Poisson sample. It gives the mean error of each family's parameters per
    unit of budget (equations 4 and 6), and a weight W_i = (h_i + 1) (o_i + 1) (S_i + 1) from the node's height, its
    out-degree and the mean sensitivity of its children's marginals (7). The sum of W_i dbar_i / epsilon_i is least for
    epsilon_i proportional to sqrt(W_i dbar_i) (10), with which stage II measures. Only stage II is fitted.

    Attributes
    ----------
    stage1_fraction : float
        Share of the budget for stage I, between 0 and 1.
    sampling_rate : float
        Sampling rate of stage I; 1 measures all records. A lower rate never makes stage I more accurate (see
        `PrivateDataset.measure`), and is available for "add_remove" only.
    weights : tuple of {"height", "out_degree", "sensitivity"}
        Factors of W_i; for an empty tuple W_i = 1.
    sensitivity : {"paper", "covary"}
        See :func:`~pgmpy_dp.papers.laskey_sensitivities`: "paper" is a constant of the structure, "covary" depends on
        the data.

    Examples
    --------
    >>> DataDependentAllocation(sampling_rate=1.0, weights=())
    DataDependentAllocation(stage1_fraction=0.1, sampling_rate=1.0, weights=(), sensitivity='paper')
    """

    stage1_fraction: float = 0.1
    sampling_rate: float = 0.1
    weights: tuple[str, ...] = FEATURES
    sensitivity: Literal["paper", "covary"] = "paper"

    def __post_init__(self) -> None:
        if exact_positive("stage1_fraction", self.stage1_fraction) >= 1:
            raise ValueError(f"stage1_fraction must be greater than 0 and less than 1, got {self.stage1_fraction!r}.")
        sampling_fraction(self.sampling_rate)
        given = [self.weights] if isinstance(self.weights, str) else list(self.weights)
        if not set(given) <= set(FEATURES) or len(set(given)) < len(given):
            raise ValueError(f"weights is {self.weights!r}; choose from {', '.join(map(repr, FEATURES))}, each once.")
        choice(*SENSITIVITIES)("sensitivity", self.sensitivity)
        object.__setattr__(self, "weights", tuple(given))


Allocation = UniformAllocation | SizeAllocation | PlannedAllocation | DataDependentAllocation

_NAMED: dict[str, Allocation] = {
    "planned": PlannedAllocation(),
    "size": SizeAllocation(),
    "uniform": UniformAllocation(),
    "data_dependent": DataDependentAllocation(),
}


def resolve_allocation(allocation: Any, tables: str) -> Allocation:
    """Return the allocation that a name or an object stands for; ValueError if there is none for these tables."""
    choice("joint", "paper")("tables", tables)
    resolved = _NAMED.get(allocation) if isinstance(allocation, str) else allocation
    if not isinstance(resolved, Allocation):
        kinds = "UniformAllocation, SizeAllocation, PlannedAllocation or DataDependentAllocation"
        named = ", ".join(map(repr, _NAMED))
        raise ValueError(f"allocation is {shown(allocation)}; choose one of {named}, or give a {kinds} object.")
    if tables == "paper" and isinstance(resolved, PlannedAllocation):
        raise ValueError(
            "tables='paper' measures two tables a family, allocation='planned' merges families into common tables: "
            "choose allocation='uniform', 'size' or 'data_dependent'."
        )
    return resolved


def first_plan(network: DAG, schema: Schema, allocation: Allocation, tables: str, mechanism: str = "laplace") -> Plan:
    """Choose the tables to measure and their shares; for a data-dependent allocation, those of stage I."""
    if isinstance(allocation, PlannedAllocation) and mechanism == "laplace":
        return plan_tables(network, schema, check=0)
    scopes = _measured(families(network), tables)
    if isinstance(allocation, PlannedAllocation):
        power = _GAUSSIAN_POWER
    else:
        power = allocation.power if isinstance(allocation, SizeAllocation) else 0.0
    return _tables(dict(zip(scopes, shares(schema, scopes, power), strict=True)), tables)


def _measured(scopes: Sequence[Clique], tables: str) -> Sequence[Clique]:
    """Return the families that are measured: all of them, or only the families that no other contains."""
    return scopes if tables == "paper" else maximal(scopes)


def _tables(wanted: Mapping[Clique, float], tables: str) -> Plan:
    """List the tables of families with given shares, of which "paper" gives half to the parents' table."""
    if tables == "joint":
        return list(wanted), list(wanted.values())
    cliques: dict[frozenset[str], Clique] = {}
    weights: dict[frozenset[str], float] = {}
    for scope, share in wanted.items():
        parents = scope[1:]
        for clique in (scope, parents) if parents else (scope, scope):
            key = frozenset(clique)
            cliques.setdefault(key, clique)
            weights[key] = weights.get(key, 0.0) + share / 2
    return list(cliques.values()), list(weights.values())


def second_plan(schema: Schema, scopes: Sequence[Clique], features: pd.DataFrame, tables: str) -> Plan:
    """Choose the tables of stage II and their shares, by the features of stage I."""
    costs = dict(zip(scopes, features["weight"] * features["dbar"], strict=True))
    return _tables(_shares(schema, scopes, costs, tables), tables)


def _shares(
    schema: Schema, scopes: Sequence[Clique], costs: Mapping[Clique, float], tables: str
) -> dict[Clique, float]:
    """Return the roots of the costs of tables, as in equation (10), with those of the families that they contain."""
    served = dict.fromkeys(_measured(scopes, tables), 0.0)
    for scope in scopes:
        table = min((table for table in served if set(scope) <= set(table)), key=schema.cells)
        served[table] += costs[scope] * math.sqrt(schema.cells(table) / schema.cells(scope))
    return {table: math.sqrt(cost) for table, cost in served.items()}


def allocation_features(
    network: DAG,
    scopes: Sequence[Clique],
    first: NoisyMarginals,
    rows: Sequence[Vector],
    allocation: DataDependentAllocation,
) -> pd.DataFrame:
    """Compute the factors of equation (7), and dbar."""
    schema = first.schema
    cards = schema.select([scope[0] for scope in scopes]).cardinalities()
    if allocation.sensitivity == "covary" and "sensitivity" in allocation.weights:
        sensitivity = covarying_sensitivities(cards, scopes, rows)
    else:
        sensitivity = constant_sensitivities(cards, scopes)
    features = structure_features(network).assign(sensitivity=[sensitivity[scope[0]] for scope in scopes])
    features["weight"] = (features[list(allocation.weights)] + 1).prod(axis=1)
    errors = []
    for scope, own in zip(scopes, rows, strict=True):
        counts = first.marginal(scope[1:])[0] if scope[1:] else np.array(first.total)
        # Equation (6). Equation (4), the error of theta = C[x, u] / C[u], is this times the noise: C[x, u] cancels.
        errors.append(float((np.sqrt(1.0 + own**2) / np.maximum(counts, 1.0)).mean()))
    features["dbar"] = np.array(errors) * first.guarantee.sampling_rate
    return features


def structure_features(network: DAG) -> pd.DataFrame:
    """Compute the height (longest path to a leaf) and out-degree of every node, in the order of the nodes."""
    height: dict[str, int] = {}
    for node in reversed(list(nx.topological_sort(network))):
        height[node] = max((height[child] + 1 for child in network.successors(node)), default=0)
    nodes = list(network.nodes())
    return pd.DataFrame(
        {"height": [height[node] for node in nodes], "out_degree": [network.out_degree(node) for node in nodes]},
        index=pd.Index(nodes, name="node"),
    )


def allocation_frame(network: DAG, release: ReleasedTables, tables: str, features: pd.DataFrame | None) -> pd.DataFrame:
    """Return the families' shares of a release's budget; see `PrivateMLE.allocation_`."""
    if features is None:
        features = structure_features(network).assign(sensitivity=np.nan, weight=np.nan, dbar=np.nan)
    scopes = families(network)
    laplace = release.guarantee.mechanism == "laplace"
    spent = {clique: (1 / scale if laplace else 1 / scale**2) for clique, scale in release.scales.items()}
    unit = (1 if release.guarantee.neighbours == "add_remove" else 2) if laplace else np.nan
    sources = [release.clique_containing(scope) for scope in scopes]
    paid = []
    for scope, clique in zip(scopes, sources, strict=True):
        used = {clique} if tables == "joint" or not scope[1:] else {clique, release.clique_containing(scope[1:])}
        paid.append(sum(spent.get(table, 0.0) for table in used))
    frame = features.copy()
    frame.insert(0, "table", sources)
    frame.insert(1, "cells", [release.schema.cells(scope) for scope in scopes])
    frame["epsilon"] = np.array(paid) * unit
    frame["share"] = np.array(paid) / sum(spent.values())
    return frame


def constant_sensitivities(cardinalities: Mapping[str, int], scopes: Sequence[Clique]) -> dict[str, float]:
    """Average the unconstrained derivatives, from which the CPDs cancel; see `pgmpy_dp.papers.laskey_sensitivities`."""
    means: dict[str, list[float]] = {node: [] for node, *_ in scopes}
    sizes = {node: math.prod(cardinalities[parent] for parent in parents) for node, *parents in scopes}
    for child, *parents in scopes:
        for parent in parents:
            means[parent].append(1.0 / (sizes[parent] * cardinalities[child]))
    return {node: float(np.mean(values)) if values else 0.0 for node, values in means.items()}


def covarying_sensitivities(
    cardinalities: Mapping[str, int], scopes: Sequence[Clique], tables: Sequence[Vector]
) -> dict[str, float]:
    """Average |c[x, u] / theta[x | u] - c[u]| / (1 - theta[x | u]), where c are covariances with the indicator of y."""
    rows = [np.maximum(table, _MIN) for table in tables]
    rows = [row / row.sum(axis=0) for row in rows]
    tree = JunctionTree.build(cardinalities, scopes)
    calibration = tree.calibrate(np.log(tree.layout.flatten(rows)))
    position = {scope[0]: number for number, scope in enumerate(scopes)}
    means: dict[str, list[float]] = {node: [] for node in position}
    for child, *parents in scopes:
        sums = dict.fromkeys(parents, 0.0)
        for state in range(cardinalities[child]) if parents else ():
            direction = np.zeros(tree.layout.size)
            tree.layout.split(direction)[position[child]][state] = 1.0
            covariance = tree.layout.split(tree.covariance_product(calibration, direction))
            for parent in parents:
                row, cells = rows[position[parent]], covariance[position[parent]]
                rest = 1.0 - row
                slope = np.abs(cells / row - cells.sum(axis=0)) / np.where(rest > 0, rest, 1.0)
                sums[parent] += float(slope.mean()) / cardinalities[child]
        for parent in parents:
            means[parent].append(sums[parent])
    return {node: float(np.mean(values)) if values else 0.0 for node, values in means.items()}
