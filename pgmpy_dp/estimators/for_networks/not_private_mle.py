"""Maximum likelihood without privacy is there to compare with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from pgmpy.base import DAG
from pgmpy.models import DiscreteMarkovNetwork
from pgmpy.parameter_estimator.base import DiscreteParameterEstimator

from pgmpy_dp.data import exact_marginals
from pgmpy_dp.estimators.parameters import Parameters, check_parameters, refuse_weights
from pgmpy_dp.estimators.results import finish, finish_markov, finish_tied, warn_unless
from pgmpy_dp.estimators.steps import declared
from pgmpy_dp.fitting.plans.tying import Tying
from pgmpy_dp.fitting.readings.moment_matching import maximise_likelihood
from pgmpy_dp.inference import build_engine
from pgmpy_dp.inference.collective.counts_behind import Engine
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.inference.tables.table import Table
from pgmpy_dp.inference.trees.engine import INFERENCE
from pgmpy_dp.observed.factors import (
    bayesian_network,
    conditional,
    families,
    markov_network,
    markov_scopes,
    require_joined,
    tabular_cpd,
)
from pgmpy_dp.privacy.checks import Constraint, choice, exact_positive, number, whole
from pgmpy_dp.schema import Clique, Schema


@dataclass(eq=False, repr=False)
class NotPrivateMLE(Parameters, DiscreteParameterEstimator):
    """NOT PRIVATE: the likelihood of exact counts is maximised, for Markov and Bayesian networks.

    The baseline that private fits are compared with. Its `guarantee_` says that nothing is promised.

    Parameters
    ----------
    state_names : mapping or Schema
        Declared states, as for the private estimators.
    regularization : float
        For Markov networks, weight of the squared norm of the log-potentials per record: counts of zero would send
        them to minus infinity.
    cliques : sequence of tuples of str
        For Markov networks, variables, all joined by edges, whose tables carry log-potentials as well as those of the
        edges: pairs alone cannot say that one variable is the exclusive or of two others.
    inference : {"auto", "junction_tree", "loopy"}
        For Markov networks.
    max_iter : int
    tolerance : float

    Attributes
    ----------
    parameters_ : list of TabularCPD or DiscreteFactor
    state_names_, guarantee_

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> records = pd.DataFrame({"smoke": ["yes", "no"] * 50, "lung": ["yes", "no", "no", "no"] * 25})
    >>> states = {"smoke": ["yes", "no"], "lung": ["yes", "no"]}
    >>> network = DiscreteBayesianNetwork([("smoke", "lung")])
    >>> network = network.fit(records, estimator=dp.NotPrivateMLE(state_names=states))
    >>> float(network.get_cpds("lung").get_value(lung="yes", smoke="yes"))
    0.5
    """

    _tags = {  # noqa: RUF012
        "supported_model_types": (DAG, DiscreteMarkovNetwork),
        "supports_weighted_data": False,
    }

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "regularization": number(least=0.0),
        "inference": choice(*INFERENCE),
        "max_iter": whole(1),
        "tolerance": exact_positive,
    }

    state_names: Mapping[str, Any] | Schema | None = None
    regularization: float = 1e-9
    cliques: Sequence[Clique] = ()
    inference: str = "auto"
    max_iter: int = 2000
    tolerance: float = 1e-8

    def fit(self, model: DAG | DiscreteMarkovNetwork, data: Any, sample_weight: None = None) -> NotPrivateMLE:
        """Fit the records of a data frame exactly.

        Raises
        ------
        SchemaError
            If states are not declared or the records do not agree with them.
        ValueError
            If cliques are given for a Bayesian network, or one with tied parameters.
        """
        check_parameters(self)
        name = type(self).__name__
        refuse_weights(name, sample_weight)
        tying = Tying.of(markov_network(model, name)) if isinstance(model, DiscreteMarkovNetwork) else None
        schema = declared(self.state_names, list(model.nodes()) if tying is None else tying.variables)
        if self.cliques and (tying is not None or not isinstance(model, DiscreteMarkovNetwork)):
            raise ValueError("cliques= are for Markov networks without tied parameters: leave them out.")
        if tying is not None:
            counts = exact_marginals(data, schema, tying.plan(schema)[0])
            nodes, tables = tying.node_schema(schema), tying.tables(counts)
            tied = tying.engine(nodes, tying.name_schema(schema))
            marginals = tied.layout.flatten(tables.tables[name] / counts.total for name in tied.layout.scopes)
            potentials = self._maximise(tied, marginals)
            finish_tied(self, tied, potentials, counts, nodes)
        elif isinstance(model, DiscreteMarkovNetwork):
            require_joined(model, self.cliques)
            scopes = markov_scopes(markov_network(model, name), self.cliques)
            counts = exact_marginals(data, schema, scopes)
            engine = build_engine(schema.cardinalities(), scopes, self.inference)
            marginals = engine.layout.flatten(counts.tables[scope] / counts.total for scope in scopes)
            potentials = self._maximise(engine, marginals)
            finish_markov(self, engine, potentials, scopes, counts, schema)
        else:
            scopes = families(bayesian_network(model, name))
            distinct = {frozenset(scope): scope for scope in scopes}
            counts = exact_marginals(data, schema, distinct.values())
            cpds = []
            for scope in scopes:
                held = distinct[frozenset(scope)]
                table = Table(held, counts.tables[held]).margin(scope).values
                cpds.append(tabular_cpd(scope, conditional(table.astype(np.float64)), schema.states))
            finish(self, cpds, counts, schema)
        del self.release_  # exact counts stay behind the wall
        return self

    def _maximise(self, engine: Engine, marginals: Vector) -> Vector:
        fit = maximise_likelihood(engine, marginals, self.regularization, self.max_iter, self.tolerance)
        warn_unless(fit.converged, self)
        return fit.potentials
