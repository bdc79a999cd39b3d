"""One distribution behind all noisy tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pgmpy.base import DAG
from pgmpy.models import DiscreteMarkovNetwork
from pgmpy.parameter_estimator.base import DiscreteParameterEstimator

from pgmpy_dp.estimators.directed import fit_directed
from pgmpy_dp.estimators.fitting import finish_bayesian, finish_markov, markov_network, refuse_weights
from pgmpy_dp.estimators.measuring import Measurement
from pgmpy_dp.estimators.networks import bayesian_network, families, markov_scopes, tabular_cpd
from pgmpy_dp.estimators.planning import merged_cliques, shares
from pgmpy_dp.estimators.undirected import fit_undirected
from pgmpy_dp.inference import JunctionTree, build_engine
from pgmpy_dp.release import NoisyMarginals
from pgmpy_dp.schema import Clique, Schema


class CollectiveEM(DiscreteParameterEstimator):
    """XX"""

    _tags = {  # noqa: RUF012
        "supported_model_types": (DAG, DiscreteMarkovNetwork),
        "supports_latent_variables": False,
        "supports_weighted_data": False,
    }

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float = 0.0,
        state_names: Mapping[str, Any] | Schema | None = None,
        inference: str = "auto",
        max_iter: int = 200,
        prior_scale: float | None = None,
        mechanism: str = "laplace",
        neighbours: str = "add_remove",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.inference = inference
        self.max_iter = max_iter
        self.prior_scale = prior_scale
        self.mechanism = mechanism
        self.neighbours = neighbours
        super().__init__(state_names=state_names)

    def fit(
        self, model: DAG | DiscreteMarkovNetwork, data: Any, sample_weight: None = None
    ) -> CollectiveEM:
        refuse_weights(type(self).__name__, sample_weight)
        if isinstance(model, DiscreteMarkovNetwork):
            return self._fit_markov(markov_network(model, type(self).__name__, sample_weight), data)
        return self._fit_bayesian(bayesian_network(model, type(self).__name__), data)

    def _measurement(self) -> Measurement:
        return Measurement(self.epsilon, self.delta, self.mechanism, self.neighbours, self.state_names)

    def _fit_bayesian(self, network: DAG, data: Any) -> CollectiveEM:
        scopes = families(network)

        def plan(schema: Schema) -> tuple[Sequence[Clique], Sequence[float]]:
            tables = merged_cliques(schema, scopes)
            return tables, shares(schema, tables)

        nodes = list(network.nodes())
        release = self._measurement().take(data, nodes, plan)
        schema, measured = _informing(release, nodes)
        cards = {variable: schema.cardinality(variable) for variable in schema.variables}
        tree = JunctionTree.build(cards, dict.fromkeys([*scopes, *measured]))
        fit = fit_directed(tree, scopes, measured, release, self.max_iter)
        self.objective_, self.n_iter_ = fit.objective, fit.iterations
        cpds = [tabular_cpd(scope, fit.tables[scope], schema.states) for scope in scopes]
        finish_bayesian(self, cpds, release, schema)
        return self

    def _fit_markov(self, network: DiscreteMarkovNetwork, data: Any) -> CollectiveEM:
        nodes = list(network.nodes())

        def plan(schema: Schema) -> tuple[Sequence[Clique], Sequence[float]]:
            tables = markov_scopes(network)
            return tables, shares(schema, tables)

        release = self._measurement().take(data, nodes, plan)
        schema, measured = _informing(release, nodes)
        scopes = markov_scopes(network, measured)
        cards = {variable: schema.cardinality(variable) for variable in schema.variables}
        engine = build_engine(cards, dict.fromkeys([*scopes, *measured]), self.inference)
        fit = fit_undirected(engine, scopes, measured, release, self.max_iter, self.prior_scale)
        finish_markov(self, engine, fit.potentials, release, schema)
        return self


def _informing(release: NoisyMarginals, variables: Sequence[str]) -> tuple[Schema, list[Clique]]:
    """The model's part of the schema, and the measured cliques that lie within its variables.

    Raises
    ------
    ValueError
        If a variable is in none of them.
    """
    known = set(variables)
    measured = [clique for clique in release.cliques if known.issuperset(clique)]
    seen = {variable for clique in measured for variable in clique}
    unseen = [variable for variable in variables if variable not in seen]
    if unseen:
        raise ValueError(
            f"The release says nothing of {', '.join(map(repr, unseen))}: no measured clique with only variables of the "
            f"model holds them. It holds {', '.join(map(str, release.cliques))}."
        )
    return release.schema.select(variables), measured
