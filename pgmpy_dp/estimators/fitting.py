"""What every estimator does before and after the fit itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pgmpy.factors.discrete import TabularCPD
from pgmpy.models import DiscreteMarkovNetwork

from pgmpy_dp.estimators.networks import markov_factors, table_places
from pgmpy_dp.inference import GaussianNoise, Layout, SmoothedLaplaceNoise
from pgmpy_dp.inference.collective import CollectiveMarginals, Engine
from pgmpy_dp.inference.layout import Vector
from pgmpy_dp.inference.linear import LinearMap, linear_gaussian_dual, linear_laplace_dual
from pgmpy_dp.release import Release
from pgmpy_dp.release.observations import LEAST_VARIANCE, Observations
from pgmpy_dp.schema import Clique, Schema


def refuse_weights(estimator: str, sample_weight: Any) -> None:
    """Weighted records have another sensitivity than counted ones."""
    if sample_weight is not None:
        raise ValueError(f"{estimator} does not support sample_weight: the noise is scaled to unweighted records.")


def markov_network(model: Any, estimator: str) -> DiscreteMarkovNetwork:
    """The model if it is a Markov network with nodes.

    Raises
    ------
    TypeError, ValueError
    """
    if not isinstance(model, DiscreteMarkovNetwork):
        raise TypeError(f"{estimator} fits a PrivateMarkovNetwork, got {type(model).__name__}.")
    if not model.nodes():
        raise ValueError("The model has no nodes: add at least one.")
    return model


def observation_noise(
    mechanism: str, observed: Vector, variance: Vector, counts: Vector, total: float, squares: Vector | None = None
) -> SmoothedLaplaceNoise | GaussianNoise:
    """The noise of a release about expected values: that of the mechanism, and the sampling of the records.

    Parameters
    ----------
    mechanism : str
        "laplace" or "gaussian".
    observed, variance : ndarrays
        Noisy counts, or other sums over records, and the variance of their noise.
    counts : ndarray
        Expected values, where to take the sampling variance; at least that of a quarter of a record.
    total : float
    squares : ndarray, optional
        Expected sums of squares over records; those of counts are the counts themselves.
    """
    sampling = np.maximum((counts if squares is None else squares) - counts**2 / total, 0.25)
    if mechanism == "gaussian":
        return GaussianNoise(observed, np.sqrt(variance + sampling))
    scale = np.sqrt(variance / 2.0)
    return SmoothedLaplaceNoise(observed, scale, np.sqrt(scale**2 + sampling))


def explain(seen: Observations, engine: Engine, potentials: Vector, total: float, max_iter: int) -> CollectiveMarginals:
    """The most probable counts behind observations, in a model with these log-potentials: the E-step by its dual."""
    scale = np.sqrt(np.maximum(seen.variance, LEAST_VARIANCE) / (1 if seen.gaussian else 2))
    dual = linear_gaussian_dual if seen.gaussian else linear_laplace_dual
    function = LinearMap(table_places(engine.layout, seen.cliques), seen.matrix)
    return dual(engine, potentials, function, seen.observed, scale, total, max_iter)


def finish_markov(
    estimator: Any,
    engine: Engine,
    potentials: Vector,
    scopes: Sequence[Clique],
    release: Release,
    schema: Schema,
) -> None:
    """Set the fitted attributes of an estimator of a Markov network.

    Factors are made for `scopes`; other tables of the engine's layout must have potentials of zero. pgmpy refuses
    factors whose variables are no clique of the graph, and measured tables need not be.
    """
    log_partition = engine.calibrate(potentials).log_partition
    layout = Layout.of(engine.layout.cardinalities, scopes)
    own = potentials[table_places(engine.layout, scopes)]
    _finish(estimator, markov_factors(layout, own, log_partition, schema.states), release, schema)


def finish_bayesian(estimator: Any, cpds: list[TabularCPD], release: Release, schema: Schema) -> None:
    """Set the fitted attributes of an estimator of a Bayesian network."""
    _finish(estimator, cpds, release, schema)


def _finish(estimator: Any, parameters: list[Any], release: Release, schema: Schema) -> None:
    estimator.parameters_ = parameters
    estimator.state_names_ = schema.state_names
    estimator.release_ = release
    estimator.guarantee_ = release.guarantee
    estimator._is_fitted = True
