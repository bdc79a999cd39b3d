"""Maximum likelihood without privacy, as a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from pgmpy.base import DAG
from pgmpy.models import DiscreteMarkovNetwork

from pgmpy_dp.data import exact_marginals
from pgmpy_dp.estimators.base import declared
from pgmpy_dp.estimators.network_estimator import NetworkEstimator, Structure
from pgmpy_dp.fitting.readings.undirected import Tying, maximise_likelihood
from pgmpy_dp.inference import build_engine
from pgmpy_dp.inference.tables.table import Table
from pgmpy_dp.inference.trees.factor_graph import INFERENCE
from pgmpy_dp.observed.factors import conditional, families, markov_scopes, require_joined, tabular_cpd
from pgmpy_dp.privacy.checks import Constraint, choice, exact_positive, number, whole
from pgmpy_dp.schema import Clique, Schema


@dataclass(eq=False, repr=False)
class NotPrivateMLE(NetworkEstimator):
    """NOT PRIVATE: maximum likelihood for exact counts, for Markov and Bayesian networks.

    It is a baseline for private fits. Its `guarantee_` states that there is no privacy.

    Parameters
    ----------
    state_names : mapping or Schema
        Declared states, as in the private estimators.
    regularization : float
        For Markov networks, the weight per record of the squared norm of the log-potentials, which would otherwise
        diverge to minus infinity for zero counts.
    cliques : sequence of tuples of str
        For Markov networks, cliques of the graph with log-potentials in addition to the edges. For instance, pairs
        alone cannot represent that a variable is the exclusive or of two others.
    inference : {"auto", "junction_tree", "loopy"}
        For Markov networks.
    max_iter : int
    tolerance : float

    Attributes
    ----------
    guarantee_, parameters_, state_names_
        See :class:`~pgmpy_dp.AutoMLE`.

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

    _tags: ClassVar[dict[str, Any]] = {"supported_model_types": (DAG, DiscreteMarkovNetwork)}
    _ties: ClassVar[bool] = True
    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "regularization": number(minimum=0.0),
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

    def _structure(self, model: Any) -> Structure:
        structure: Structure = super()._structure(model)
        if self.cliques and not isinstance(structure, DiscreteMarkovNetwork):
            raise ValueError("cliques= are for Markov networks without tied parameters: leave them out.")
        require_joined(structure, self.cliques)
        return structure

    def _source(self, structure: Structure, data: Any, public: Any) -> Any:
        """Count the records exactly."""
        schema = declared(self.state_names, self._variables(structure))
        if isinstance(structure, Tying):
            cliques: Sequence[Clique] = structure.plan(schema)[0]
        elif isinstance(structure, DiscreteMarkovNetwork):
            cliques = markov_scopes(structure, self.cliques)
        else:
            cliques = list({frozenset(scope): scope for scope in families(structure)}.values())
        return exact_marginals(data, schema, cliques)

    def _read(self, structure: Structure, release: Any) -> None:
        schema = self._schema(structure, release)
        if isinstance(structure, DAG):
            counted = {
                frozenset(clique): Table(clique, table.astype(np.float64)) for clique, table in release.tables.items()
            }
            tables = {scope: counted[frozenset(scope)].margin(scope).values for scope in families(structure)}
            cpds = [tabular_cpd(scope, conditional(table), schema.states) for scope, table in tables.items()]
            self._set_parameters(cpds, schema)
            return
        if isinstance(structure, Tying):
            engine: Any = structure.engine(release.schema)
            release = structure.tables(release)
        else:
            engine = build_engine(schema.cardinalities(), markov_scopes(structure, self.cliques), self.inference)
        marginals = engine.layout.flatten(release.tables[scope] / release.total for scope in engine.layout.scopes)
        fitted, converged = maximise_likelihood(engine, marginals, self.regularization, self.max_iter, self.tolerance)
        self._warn_unless(converged)
        self._set_parameters(self._factors(engine, fitted, schema), schema)

    def _run(self, model: Any, data: Any, public: Any = None) -> Self:
        super()._run(model, data, public)
        del self.release_  # exact counts are not released
        return self
