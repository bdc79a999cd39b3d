"""Naive maximum likelihood takes noisy marginals for true ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pgmpy.models import DiscreteMarkovNetwork
from pgmpy.parameter_estimator.base import DiscreteParameterEstimator

from pgmpy_dp.estimators.parameters import Parameters, check_parameters, refuse_weights
from pgmpy_dp.estimators.results import finish_markov, finish_tied, warn_unless
from pgmpy_dp.estimators.steps import measure, refuse_rules, resolve
from pgmpy_dp.fitting.plans.tying import Tying
from pgmpy_dp.fitting.readings.moment_matching import maximise_likelihood, noise_regularization
from pgmpy_dp.inference import build_engine
from pgmpy_dp.inference.collective.counts_behind import Engine
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.inference.tables.table import project_to_simplex
from pgmpy_dp.inference.trees.engine import INFERENCE
from pgmpy_dp.observed.factors import markov_network, markov_scopes
from pgmpy_dp.privacy.checks import Constraint, choice, exact_positive, number, optional, whole
from pgmpy_dp.release import Release
from pgmpy_dp.schema import Schema


@dataclass(eq=False, repr=False)
class NaiveMLE(Parameters, DiscreteParameterEstimator):
    """The likelihood is maximised as if noisy marginals were true ones: the baseline of Bernstein et al. (2017).

    Each noisy table is divided by the (estimated) number of records and, by default, projected on the probability
    simplex; then theta . mu - A(theta) - regularization |theta|^2 is maximised.

    Parameters
    ----------
    regularization : float, optional
        Weight of the squared norm of the log-potentials, per record; by default a third of the noise scale over the
        number of records. The paper does not say how it chose it.
    projection : bool
        Project each noisy marginal on the simplex (Duchi et al. 2008). Without it the objective may have no maximum;
        the paper shows the effect.
    epsilon, delta, mechanism, neighbours, state_names
        How to measure when `fit` is handed records or a `PrivateDataset`; see `CollectiveEM`.
    inference : {"auto", "junction_tree", "loopy"}
    max_iter : int
    tolerance : float
        Largest component of the gradient at which to stop.

    Attributes
    ----------
    parameters_ : list of DiscreteFactor
        Factors with partition function 1.
    state_names_, release_, guarantee_
        States, the release that was fitted, and its guarantee.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> schema = dp.Schema({"a": ["x", "y"], "b": ["x", "y"]})
    >>> records = pd.DataFrame({"a": ["x", "x", "y", "y"] * 25, "b": ["x", "x", "y", "x"] * 25})
    >>> data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(1.0))
    >>> model = dp.PrivateMarkovNetwork([("a", "b")]).fit(data, estimator=dp.papers.NaiveMLE(epsilon=1.0))
    >>> model.query(["a"]).values.sum().round(6)
    np.float64(1.0)
    """

    _tags = {"supported_model_types": (DiscreteMarkovNetwork,), "supports_weighted_data": False}  # noqa: RUF012

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "regularization": optional(number(least=0.0)),
        "inference": choice(*INFERENCE),
        "max_iter": whole(1),
        "tolerance": exact_positive,
    }

    regularization: float | None = None
    projection: bool = True
    epsilon: float | None = None
    delta: float = 0.0
    mechanism: str = "laplace"
    neighbours: str | None = None
    state_names: Mapping[str, Any] | Schema | None = None
    inference: str = "auto"
    max_iter: int = 1000
    tolerance: float = 1e-6

    def fit(self, model: DiscreteMarkovNetwork, data: Any, sample_weight: None = None) -> NaiveMLE:
        """Fit a Markov network; `data` is a release, a `PrivateDataset` or records.

        Raises
        ------
        SchemaError, ValueError, BudgetExceededError
            As `CollectiveEM.fit`; also if an edge of the model was not measured.
        """
        check_parameters(self)
        refuse_weights(type(self).__name__, sample_weight)
        network = markov_network(model, type(self).__name__)
        tying = Tying.of(network)
        if tying is not None:
            return self._fit_tied(tying, data)
        release = resolve(self, data, list(network.nodes()), network)
        if not isinstance(release, Release):
            scopes = markov_scopes(network, [rule.variables for rule in release.schema.rules])
            release = measure(self, release, scopes, [1.0] * len(scopes))
        schema = release.schema.select(network.nodes())
        scopes = markov_scopes(network, [*release.cliques, *(rule.variables for rule in schema.rules)])
        engine = build_engine(schema.cardinalities(), scopes, self.inference)
        potentials = self._maximise(engine, release)
        finish_markov(self, engine, potentials, scopes, release, schema)
        return self

    def _fit_tied(self, tying: Tying, data: Any) -> NaiveMLE:
        if self.inference == "loopy":
            raise ValueError("NaiveMLE fits tied parameters on a junction tree only: leave inference='auto'.")
        release = resolve(self, data, tying.variables)
        refuse_rules(self, release.schema, tying.variables)
        if not isinstance(release, Release):
            release = measure(self, release, *tying.plan(release.schema))
        nodes, tables = tying.node_schema(release.schema), tying.tables(release)
        engine = tying.engine(nodes, tying.name_schema(release.schema))
        finish_tied(self, engine, self._maximise(engine, tables), release, nodes)
        return self

    def _maximise(self, engine: Engine, release: Any) -> Vector:
        own = [release.marginal(scope) for scope in engine.layout.scopes]
        marginals = engine.layout.flatten(self._marginal(table, release.total) for table, _ in own)
        weight = self.regularization
        if weight is None:
            weight = noise_regularization([variance for _, variance in own], release.total)
        fit = maximise_likelihood(engine, marginals, weight, self.max_iter, self.tolerance)
        warn_unless(fit.converged, self)
        return fit.potentials

    def _marginal(self, table: Vector, total: float) -> Vector:
        return project_to_simplex(table / total) if self.projection else table / total
