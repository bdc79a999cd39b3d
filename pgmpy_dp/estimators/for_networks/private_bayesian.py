"""Noisy counts of families give Dirichlet posteriors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from pgmpy.base import DAG
from pgmpy.models import DiscreteBayesianNetwork
from pgmpy.parameter_estimator.base import DiscreteParameterEstimator

from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.data.mechanisms.coefficients import FourierCoefficients
from pgmpy_dp.estimators.parameters import Parameters, check_parameters, refuse_weights
from pgmpy_dp.estimators.results import finish
from pgmpy_dp.estimators.steps import resolve
from pgmpy_dp.fitting.readings.dirichlet import (
    check_prior,
    draw_network,
    posterior_frame,
    posterior_means,
    prior_counts,
)
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.observed.factors import bayesian_network, families
from pgmpy_dp.privacy.checks import Constraint, choice, whole_number
from pgmpy_dp.release import Release
from pgmpy_dp.release.measured_coefficients import MeasuredCoefficients
from pgmpy_dp.schema import Clique, Schema


@dataclass(eq=False, repr=False)
class PrivateBayesianEstimator(Parameters, DiscreteParameterEstimator):
    """Noisy counts update the prior of a Bayesian network's parameters.

    A drop-in for pgmpy's `DiscreteBayesianEstimator`: Dirichlet priors on the rows of the CPDs are updated with noisy
    instead of true counts of the families (Zhang, Rubinstein and Dimitrakakis 2016, Algorithms 1 and 2, for variables
    of any number of states). The posterior is what is released: its means are the CPDs, and networks can be drawn from
    it at no cost.

    Parameters
    ----------
    epsilon : float, optional
        What to spend when `fit` is handed records or a `PrivateDataset`. Leave it out to fit a release.
    release : {"laplace", "fourier"}
        What to measure then. "laplace": a table for each family, each with the same noise, cells clamped between 0
        and the number of records (Algorithm 1). "fourier": the Fourier coefficients of all families, so that the
        released counts agree with each other (Algorithm 2). A release that is handed in is taken for what it is.
    prior_type : {"BDeu", "K2", "dirichlet"}
    equivalent_sample_size : float or mapping of node to float
        For BDeu.
    pseudo_counts : float or mapping of node to array of shape (states, configurations of the parents)
        For "dirichlet". All must be positive.
    state_names : mapping of variable to states, or Schema
        Declared states; needed for raw records.
    increment : "least" or None
        How coefficients become non-negative counts. They still agree where as many records are added, evenly spread, as
        the noisy coefficients need; with None, cells below 0 are set to 0 and no longer agree.
    neighbours : {"add_remove", "replace_one"}, optional
        For raw records; "add_remove" by default. A `PrivateDataset` has its own.

    Attributes
    ----------
    parameters_ : list of TabularCPD
        Posterior means, in the order of the nodes.
    posterior_counts_ : dict of node to DataFrame
        Dirichlet parameters: a row a state, a column a configuration of the parents.
    state_names_, release_, guarantee_

    Notes
    -----
    Sensitivity: with Algorithm 1 a record is counted once in each of the |I| families, so adding one changes the
    counts by |I| in L1 norm and replacing one by 2 |I|, for any numbers of states (Lemma 1); every cell has noise of
    scale |I| / epsilon or 2 |I| / epsilon. For Algorithm 2 see `pgmpy_dp.privacy.fourier`.

    The increment is often many times the number of records: agreement has its price, as the paper says. To get the
    most out of a release of coefficients fit it with `CollectiveEM`.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> records = pd.DataFrame({"smoke": ["yes", "no"] * 500, "lung": ["yes", "no", "no", "no"] * 250})
    >>> schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
    >>> network = DiscreteBayesianNetwork([("smoke", "lung")])
    >>> estimator = dp.papers.PrivateBayesianEstimator(epsilon=1.0, release="fourier", state_names=schema)
    >>> _ = network.fit(records, estimator=estimator)
    >>> estimator.posterior_counts_["lung"].shape
    (2, 2)
    >>> [drawn.check_model() for drawn in estimator.sample_cpds(2, seed=1)]
    [True, True]
    """

    _tags = {"supports_latent_variables": False, "supports_weighted_data": False}  # noqa: RUF012
    _mechanism: ClassVar[type[FourierCoefficients]] = FourierCoefficients

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "release": choice("laplace", "fourier"),
        "increment": choice("least", None),
    }

    epsilon: float | None = None
    release: str = "laplace"
    prior_type: str = "BDeu"
    equivalent_sample_size: float | Mapping[Any, float] = 5
    pseudo_counts: Any = None
    state_names: Mapping[str, Any] | Schema | None = None
    increment: str | None = "least"
    neighbours: str | None = None

    def fit(self, model: DAG, data: Any, sample_weight: None = None) -> PrivateBayesianEstimator:
        """Update the prior of a model's CPDs.

        Parameters
        ----------
        model : pgmpy DAG, DiscreteBayesianNetwork or NaiveBayes
        data : NoisyMarginals, NoisyCoefficients, PrivateDataset or data frame
            A release (free), a data set (charged epsilon), or records (with epsilon and declared states).
        sample_weight : None
            Not supported.

        Returns
        -------
        PrivateBayesianEstimator

        Raises
        ------
        SchemaError
            If states are not declared, the records do not agree with them, or a release lacks a family.
        BudgetExceededError
            If the data set's ledger has less than epsilon left; nothing is charged.
        ValueError
            If an argument is out of range.
        """
        check_parameters(self)
        network = bayesian_network(model, type(self).__name__)
        refuse_weights(type(self).__name__, sample_weight)
        check_prior(self.prior_type, self.equivalent_sample_size, self.pseudo_counts)
        scopes = families(network)
        source = resolve(self, data, list(network.nodes()), network)
        schema = source.schema.select(network.nodes())
        options = (self.prior_type, self.equivalent_sample_size, self.pseudo_counts)
        prior = prior_counts(scopes, schema, *options)
        release = source if isinstance(source, Release) else self._measure(source, scopes)
        counts = self._counts(release, scopes)
        self._posterior = {scope: prior[scope] + counts[scope] for scope in scopes}
        self._schema = schema
        self.posterior_counts_ = {scope[0]: posterior_frame(scope, self._posterior[scope], schema) for scope in scopes}
        cpds = [posterior_means(scope, self._posterior[scope], schema) for scope in scopes]
        finish(self, cpds, release, schema)
        return self

    def sample_cpds(self, n: int, seed: Any = None) -> list[DiscreteBayesianNetwork]:
        """Draw networks from the released posterior: its uncertainty at no cost to privacy.

        Parameters
        ----------
        n : int
        seed : int, optional
            For repeatable draws; no privacy hangs on it.
        """
        if not hasattr(self, "_posterior"):
            raise ValueError("The estimator is not fitted yet: call fit first.")
        number, generator = whole_number("n", n, 0), np.random.default_rng(seed)
        return [draw_network(self._posterior, self._schema, generator) for _ in range(number)]

    def _measure(self, dataset: PrivateDataset, scopes: Sequence[Clique]) -> Release:
        assert self.epsilon is not None
        if self.release == "fourier":
            return dataset.release(self._mechanism(scopes, self.epsilon))
        return dataset.measure(scopes, self.epsilon)

    def _least_increment(self, release: Any) -> float:
        return 0.0

    def _counts(self, release: Release, scopes: Sequence[Clique]) -> dict[Clique, Vector]:
        """Read non-negative counts of every family."""
        if isinstance(release, MeasuredCoefficients):
            if self.increment is None:
                return {scope: np.maximum(release.table(scope), 0.0) for scope in scopes}
            coefficients = release.to_coefficients().non_negative(self._least_increment(release))
            return {scope: np.maximum(coefficients.table(scope), 0.0) for scope in scopes}
        return {scope: np.clip(release.marginal(scope)[0], 0.0, release.total) for scope in scopes}
