"""`AutoMLE` reads a release by inference as far as the network explains it, else family by family."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pgmpy.base import DAG
from pgmpy.parameter_estimator.base import DiscreteParameterEstimator

from pgmpy_dp.estimators.for_networks.private_mle import PrivateMLE
from pgmpy_dp.estimators.parameters import Parameters, check_parameters, refuse_weights
from pgmpy_dp.estimators.results import finish
from pgmpy_dp.fitting.readings.directed import ITERATIONS, fit_releases
from pgmpy_dp.inference import TreeTooLargeError
from pgmpy_dp.observed.factors import bayesian_network, families, tabular_cpd
from pgmpy_dp.schema import Schema


@dataclass(eq=False, repr=False)
class AutoMLE(Parameters, DiscreteParameterEstimator):
    """CPDs of a Bayesian network are read by inference where the release agrees with it, else family by family.

    Inference fits one distribution to all noisy tables, as `CollectiveEM`: the best reading of a right network. Where
    edges are missing it distorts families to explain tables that no such network has, and each family's own table,
    which `PrivateMLE` reads, is the better source. The release itself tells which: what the network does not explain of
    it exceeds its noise. Deciding so costs no privacy.

    Parameters
    ----------
    epsilon : float, optional
        What to spend when `fit` is handed records or a `PrivateDataset`, on tables by `PlannedAllocation`. Leave it out
        to fit a release.
    delta : float
        0, or in (0, 1) with ``mechanism="gaussian"``.
    state_names : mapping of variable to states, or Schema
        Declared states; needed for raw records.
    mechanism : {"laplace", "gaussian"}
    neighbours : {"add_remove", "replace_one"}, optional
        For raw records; "add_remove" by default. A `PrivateDataset` has its own.

    Attributes
    ----------
    parameters_ : list of TabularCPD
        One a node, in the order of the model's nodes.
    state_names_ : dict
    release_ : NoisyMarginals
    guarantee_ : Guarantee
    reading_ : {"inference", "family", "both"}
    family_weight_ : float
        Share of the family's own table in every CPD: 0 by inference, 1 by family.
    squared_residual_ : float
        Mean squared residual of the release against the network that inference finds, in units of the variance of noise
        and sampling, without tables that only test the network. NaN where its junction tree does not fit in memory.
    allocation_ : pandas.DataFrame
        As of `PrivateMLE`.

    Notes
    -----
    Up to a squared residual of 1 the reading is by inference, from 2 by family. Between them CPDs are averaged with
    weight ``squared_residual_ - 1`` for the family's; the divergence of the average is no larger than the average of
    the divergences. A right network has less than 1, since its parameters absorb a part of the noise. Where inference
    could only be approximate, because no junction tree fits in memory, the reading is by family: loopy belief
    propagation was up to ten times and more as far off, and never closer by more than a tenth.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> records = pd.DataFrame({"smoke": ["yes", "no"] * 500, "lung": ["yes", "no", "no", "no"] * 250})
    >>> schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
    >>> network = DiscreteBayesianNetwork([("smoke", "lung")])
    >>> estimator = dp.AutoMLE(epsilon=1.0, state_names=schema)
    >>> _ = network.fit(records, estimator=estimator)
    >>> estimator.reading_ in ("inference", "both", "family")  # mostly the first, for the noise is drawn anew
    True
    """

    _tags = {"supports_latent_variables": False, "supports_weighted_data": False}  # noqa: RUF012

    epsilon: float | None = None
    delta: float = 0.0
    state_names: Mapping[str, Any] | Schema | None = None
    mechanism: str = "laplace"
    neighbours: str | None = None

    def fit(self, model: DAG, data: Any, sample_weight: None = None, public: Any = None) -> AutoMLE:
        """Estimate the CPDs of a model.

        Parameters
        ----------
        model : pgmpy DAG or DiscreteBayesianNetwork
        data : NoisyMarginals, list of them, PrivateDataset or data frame
            A release, or several of the same records, which are joined (free), a data set (charged epsilon), or records
            (with epsilon and declared states).
        sample_weight : None
            Not supported.
        public : mapping of clique to table, optional
            Tables that are published elsewhere, exact or as `PublicTable`, at no privacy cost; see `InformedMarginals`.

        Returns
        -------
        AutoMLE

        Raises
        ------
        SchemaError
            If states are not declared, or the records do not agree with them.
        BudgetExceededError
            If the data set's ledger has less than epsilon left; nothing is charged.
        ValueError
            If an argument is out of range, or no table of a release holds a family.
        """
        check_parameters(self)
        network = bayesian_network(model, type(self).__name__)
        refuse_weights(type(self).__name__, sample_weight)
        own = PrivateMLE(
            self.epsilon,
            self.delta,
            self.state_names,
            allocation="planned",
            mechanism=self.mechanism,
            neighbours=self.neighbours,
        ).fit(network, data, public=public)
        release, scopes = own.release_, families(network)
        schema = release.schema.select(list(network.nodes()))
        tables = {scope: cpd.values for scope, cpd in zip(scopes, own.parameters_, strict=True)}
        self.squared_residual_, self.family_weight_ = math.nan, 1.0
        with suppress(TreeTooLargeError):
            fit = fit_releases([release], scopes, ITERATIONS, "junction_tree")
            self.squared_residual_ = fit.squared_residual
            self.family_weight_ = weight = min(max(fit.squared_residual - 1.0, 0.0), 1.0)
            tables = {scope: (1.0 - weight) * fit.tables[scope] + weight * tables[scope] for scope in scopes}
        self.reading_ = {0.0: "inference", 1.0: "family"}.get(self.family_weight_, "both")
        finish(self, [tabular_cpd(scope, tables[scope], schema.states) for scope in scopes], release, schema)
        self.allocation_ = own.allocation_
        return self
