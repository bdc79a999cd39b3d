"""A data-dependent allocation measured: a first release decides on the shares of the second."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import pandas as pd
from pgmpy.base import DAG

from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.fitting.allocation import DataDependentAllocation, features_of, first_plan, second_plan
from pgmpy_dp.fitting.directed import require_exact
from pgmpy_dp.fitting.factors import families
from pgmpy_dp.inference.layout import Vector
from pgmpy_dp.privacy.checks import exact_positive
from pgmpy_dp.privacy.sampling import sampling_fraction
from pgmpy_dp.release import NoisyMarginals


@dataclass(frozen=True)
class TwoStages:
    """What a data-dependent allocation measured, and how it decided.

    Attributes
    ----------
    first, second : NoisyMarginals
    features : pandas.DataFrame
        One row a node: height, out_degree, sensitivity, weight, dbar.
    """

    first: NoisyMarginals
    second: NoisyMarginals
    features: pd.DataFrame


def measure_in_two_stages(
    dataset: PrivateDataset,
    epsilon: float,
    network: DAG,
    allocation: DataDependentAllocation,
    tables: str,
    read: Callable[[NoisyMarginals], list[Vector]],
) -> TwoStages:
    """Charge epsilon as a whole, measure stage I, allocate, measure stage II.

    Stage I costs its share by amplification on the sample, stage II the rest, chosen from stage I alone: together
    they cost epsilon by (adaptive) composition.

    Parameters
    ----------
    dataset : PrivateDataset
    epsilon : float
    network : DAG
    allocation : DataDependentAllocation
    tables : {"joint", "paper"}
    read : callable
        From a release to P(node | parents) of each family, as the estimator reads it.

    Raises
    ------
    BudgetExceededError
        If epsilon is not left for both stages; nothing is charged or drawn.
    ValueError
        If stage I cannot be sampled under the data set's neighbours.
    """
    schema, scopes = dataset.schema, families(network)
    if sampling_fraction(allocation.sampling_rate) < 1 and dataset.neighbours != "add_remove":
        raise ValueError(
            f"Stage I on a sample is priced for records added or removed, and the data has "
            f"neighbours={dataset.neighbours!r}: give allocation=DataDependentAllocation(sampling_rate=1.0)."
        )
    if allocation.sensitivity == "covary" and "sensitivity" in allocation.weights:
        require_exact(schema, scopes)
    whole = exact_positive("epsilon", epsilon)
    beginning: Fraction = whole * exact_positive("stage1_fraction", allocation.stage1_fraction)
    part = dataset.set_aside(whole)
    cliques, weights = first_plan(network, schema, allocation, tables)
    first = part.measure(cliques, beginning, weights=weights, sampling_rate=allocation.sampling_rate)
    features = features_of(network, scopes, first, read(first), allocation)
    cliques, weights = second_plan(schema, scopes, features, tables)
    second = part.measure(cliques, whole - beginning, weights=weights)
    return TwoStages(first, second, features)
