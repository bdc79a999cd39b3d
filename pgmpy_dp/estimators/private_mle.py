"""Conditional probabilities from noisy family tables, each read on its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pgmpy.base import DAG
from pgmpy.parameter_estimator.base import DiscreteParameterEstimator

from pgmpy_dp.estimators.fitting import finish_bayesian, observation_noise, refuse_weights
from pgmpy_dp.estimators.measuring import Measurement, measured_table
from pgmpy_dp.estimators.networks import bayesian_network, conditional, families, maximal, tabular_cpd
from pgmpy_dp.estimators.planning import ALLOCATIONS, shares
from pgmpy_dp.inference import GaussianNoise, SmoothedLaplaceNoise
from pgmpy_dp.inference.layout import Vector
from pgmpy_dp.release import NoisyCoefficients
from pgmpy_dp.schema import Schema

_ROUNDS = 2
_TOLERANCE = 1e-9


class PrivateMLE(DiscreteParameterEstimator):
    """CPDs of a Bayesian network from noisy tables of its families.

    A drop-in for pgmpy's `DiscreteMLE`: one table of noisy counts for each family (families inside others follow from
    those), and from each table the counts that explain it best, given how noisy it is. Quick, and without inference
    over the network; `CollectiveEM` fits one distribution to all tables, which tells where noise is strong.

    Parameters
    ----------
    epsilon : float, optional
        What to spend when `fit` is handed records or a `PrivateDataset`. Leave it out to fit a release.
    delta : float
        0, or in (0, 1) with ``mechanism="gaussian"``.
    state_names : mapping of variable to states, or Schema
        Declared states; needed for raw records. Undeclared states are an error: reading them off the records would
        leak.
    allocation : {"size", "uniform"}
        How the tables share the budget: by the square root of their numbers of cells, or equally.
    mechanism : {"laplace", "gaussian"}
    neighbours : {"add_remove", "replace_one"}, optional
        For raw records; "add_remove" by default. A `PrivateDataset` has its own.

    Attributes
    ----------
    parameters_ : list of TabularCPD
        One a node, in the order of the model's nodes.
    state_names_ : dict
    release_ : NoisyMarginals
        What was measured, or the release that was handed in.
    guarantee_ : Guarantee

    Notes
    -----
    Of a table y with noise of scale b, the counts n maximise

        sum_i E[log p(y_i | n_i')] + (1 / r) sum_i log n_i    subject to    sum_i n_i = N,

    n_i' being normal about n_i with the variance of sampling, and for Laplace noise b^2 beside it, and r the number of
    states of the child: one pseudo-record a row (Perks 1947). The objective is concave and solved exactly. N is public
    or estimated from the release. Where noise hides a cell the pseudo-record keeps it positive; elsewhere it vanishes
    beside the data.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> records = pd.DataFrame({"smoke": ["yes", "no"] * 500, "lung": ["yes", "no", "no", "no"] * 250})
    >>> schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
    >>> network = DiscreteBayesianNetwork([("smoke", "lung")])
    >>> estimator = dp.PrivateMLE(epsilon=1.0, state_names=schema)
    >>> _ = network.fit(records, estimator=estimator)
    >>> bool(0.4 < network.get_cpds("lung").get_value(lung="yes", smoke="yes") < 0.6)
    True
    >>> print(estimator.guarantee_)
    differentially private with epsilon = 1.0, for one record added or removed (discrete Laplace noise)
    """

    _tags = {"supports_latent_variables": False, "supports_weighted_data": False}  # noqa: RUF012

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float = 0.0,
        state_names: Mapping[str, Any] | Schema | None = None,
        allocation: str = "size",
        mechanism: str = "laplace",
        neighbours: str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.allocation = allocation
        self.mechanism = mechanism
        self.neighbours = neighbours
        super().__init__(state_names=state_names)

    def fit(self, model: DAG, data: Any, sample_weight: None = None) -> PrivateMLE:
        """Estimate the CPDs of a model.

        Parameters
        ----------
        model : pgmpy DAG or DiscreteBayesianNetwork
        data : NoisyMarginals, PrivateDataset or data frame
            A release (free), a data set (charged epsilon), or records (with epsilon and declared states).
        sample_weight : None
            Not supported.

        Returns
        -------
        PrivateMLE

        Raises
        ------
        SchemaError
            If states are not declared, or the records do not agree with them.
        BudgetExceededError
            If the data set's ledger has less than epsilon left; nothing is charged.
        ValueError
            If an argument is out of range, or a release lacks a family.
        """
        network = bayesian_network(model, type(self).__name__)
        refuse_weights(type(self).__name__, sample_weight)
        if self.allocation not in ALLOCATIONS:
            raise ValueError(f"allocation is {self.allocation!r}; choose one of {', '.join(ALLOCATIONS)}.")
        if isinstance(data, NoisyCoefficients):
            raise ValueError(
                "PrivateMLE takes the noise of a table's cells for independent, and that of a release of coefficients "
                "is not: fit it with CollectiveEM or PrivateBayesianEstimator."
            )
        scopes = families(network)
        tables = maximal(scopes)
        measurement = Measurement(self.epsilon, self.delta, self.mechanism, self.neighbours, self.state_names)
        release = measurement.take(
            data, list(network.nodes()), lambda schema: (tables, shares(schema, tables, self.allocation))
        )
        schema = release.schema.select(network.nodes())
        observed = [measured_table(release, scope) for scope in scopes]
        mechanism = release.guarantee.mechanism
        fitted = explain_tables(observed, [1.0 / schema.cardinality(s[0]) for s in scopes], release.total, mechanism)
        cpds = [
            tabular_cpd(scope, conditional(table), schema.states) for scope, table in zip(scopes, fitted, strict=True)
        ]
        finish_bayesian(self, cpds, release, schema)
        return self


def explain_tables(
    observed: Sequence[tuple[Vector, float]], pseudo: Sequence[float], total: float, mechanism: str
) -> list[Vector]:
    """The counts of each table that maximise its penalised expected log-likelihood; see `PrivateMLE`.

    Cells of a table with equal noisy counts have equal solutions: each is solved for once, so that a large table costs
    little more than its sort.

    Parameters
    ----------
    observed : sequence of (ndarray, float)
        Noisy counts of each table and the variance of their noise.
    pseudo : sequence of float
        Pseudo-count of a cell of each table.
    total : float
        What every table's counts sum to.
    mechanism : str
        "laplace" or "gaussian".

    Returns
    -------
    list of ndarray
        Positive counts, in the shapes of the tables.
    """
    distinct = [np.unique(table, return_inverse=True, return_counts=True) for table, _ in observed]
    sizes = [values.size for values, _, _ in distinct]
    offsets = np.cumsum([0, *sizes])
    values, copies = (np.concatenate([part[i] for part in distinct]).astype(np.float64) for i in (0, 2))
    variance = np.repeat([spread for _, spread in observed], sizes)
    prior = np.repeat(np.asarray(pseudo, dtype=np.float64), sizes)
    counts = np.maximum(values, prior * np.sqrt(variance))
    for _ in range(_ROUNDS):
        noise = observation_noise(mechanism, values, variance, counts, total)
        counts = _constrained_maximum(offsets, copies, noise, counts, prior, total)
    parts = np.split(counts, offsets[1:-1])
    return [
        part[inverse].reshape(table.shape)
        for part, (_, inverse, _), (table, _) in zip(parts, distinct, observed, strict=True)
    ]


def _constrained_maximum(
    offsets: NDArray[np.int64],
    copies: Vector,
    noise: SmoothedLaplaceNoise | GaussianNoise,
    start: Vector,
    pseudo: Vector,
    total: float,
) -> Vector:
    """Maximise log p + pseudo . log n with the sum of every table fixed, by safeguarded Newton on the multipliers.

    For a multiplier l the stationary count solves pseudo / n + gradient(n) = l, of which the left side falls in n; the
    sum of the counts, each taken `copies` times, falls in l.
    """
    tables = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    steep = np.abs(noise.gradient(np.zeros_like(start))) + pseudo / np.maximum(start, 1e-300)

    def sums(values: Vector) -> Vector:
        return np.add.reduceat(copies * values, offsets[:-1])

    high = np.maximum.reduceat(steep, offsets[:-1]) + sums(pseudo) / total
    low = -np.maximum.reduceat(np.abs(noise.gradient(np.full_like(start, total))), offsets[:-1])
    multiplier = np.zeros(offsets.size - 1)
    logs = np.log(np.maximum(start, 1e-12))
    for _ in range(100):
        logs = _stationary(noise, logs, pseudo, multiplier[tables])
        counts = np.exp(logs)
        excess = sums(counts) - total
        if (np.abs(excess) <= _TOLERANCE * total).all():
            break
        low, high = np.where(excess > 0, multiplier, low), np.where(excess < 0, multiplier, high)
        slope = sums(1.0 / (pseudo / counts**2 + noise.curvature(counts)))
        newton = multiplier + excess / slope
        multiplier = np.where((newton > low) & (newton < high), newton, (low + high) / 2)
    return counts * (total / sums(counts))[tables]  # a release that contradicts its own total may stop short of it


def _stationary(
    noise: SmoothedLaplaceNoise | GaussianNoise, logs: Vector, pseudo: Vector, multiplier: Vector
) -> Vector:
    """Roots in log n of pseudo / n + gradient(n) = multiplier, cell by cell, by safeguarded Newton."""
    low, high = np.full_like(logs, -60.0), np.full_like(logs, 60.0)
    for _ in range(120):
        counts = np.exp(logs)
        value = pseudo / counts + noise.gradient(counts) - multiplier
        low, high = np.where(value > 0, logs, low), np.where(value > 0, high, logs)
        slope = pseudo / counts + noise.curvature(counts) * counts
        newton = logs + value / np.maximum(slope, 1e-300)
        moved = np.where((newton > low) & (newton < high), newton, (low + high) / 2)
        if (np.abs(moved - logs) <= 1e-12).all():
            return moved
        logs = moved
    return logs
