"""Naive maximum likelihood, which treats noisy marginals as exact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from pgmpy.models import DiscreteMarkovNetwork

from pgmpy_dp.data.mechanisms.tables import CountedTables
from pgmpy_dp.estimators.base import TableEstimator
from pgmpy_dp.estimators.network_estimator import PrivateNetworkEstimator, Structure, tied_or
from pgmpy_dp.fitting.readings.undirected import Tying, maximise_likelihood, noise_regularization
from pgmpy_dp.inference import build_engine
from pgmpy_dp.inference.collective.duals import Engine
from pgmpy_dp.inference.tables.table import Vector, project_to_simplex
from pgmpy_dp.inference.trees.factor_graph import INFERENCE
from pgmpy_dp.observed.factors import markov_scopes
from pgmpy_dp.privacy.checks import Constraint, choice, exact_positive, number, optional, whole


@dataclass(eq=False, repr=False)
class NaiveMLE(PrivateNetworkEstimator, TableEstimator):
    """Maximum likelihood as if noisy marginals were exact: the baseline of Bernstein et al. (2017).

    Each noisy table is divided by the (estimated) number of records and, by default, projected onto the probability
    simplex. Then theta . mu - A(theta) - regularization |theta|^2 is maximised.

    Parameters
    ----------
    epsilon : float, optional
        Privacy loss of the measurement, for records or a `PrivateDataset`. Leave it out to fit a release.
    neighbours : {"add_remove", "replace_one"}, optional
        For raw records; "add_remove" by default. A private data set has its own.
    delta : float
        0 for Laplace noise, in (0, 1) for Gaussian noise.
    state_names : mapping of variable to states, or Schema
        Declared states; needed for raw records.
    mechanism : {"auto", "laplace", "gaussian"}
        Kind of noise. "auto" is Gaussian if and only if delta > 0, charged as one block if units have one row.
    regularization : float, optional
        Weight of the squared norm of the log-potentials, per record; by default a third of the noise scale divided by
        the number of records. The paper does not say how it chose the weight.
    projection : bool
        Project each noisy marginal onto the simplex (Duchi et al. 2008). Without it the objective may have no maximum;
        the paper shows the effect.
    inference : {"auto", "junction_tree", "loopy"}
    max_iter : int
        Largest number of iterations.
    tolerance : float
        Largest gradient component at which to stop.

    Attributes
    ----------
    guarantee_ : Guarantee
        The guarantee for the records behind the fit.
    release_ : NoisyMarginals
        The release that was measured or given.
    parameters_ : list of TabularCPD or DiscreteFactor
        CPDs in the order of the model's nodes, or factors with partition function 1.
    state_names_ : dict of variable to list

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

    _tags: ClassVar[dict[str, Any]] = {"supported_model_types": (DiscreteMarkovNetwork,)}

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "regularization": optional(number(minimum=0.0)),
        "inference": choice(*INFERENCE),
        "max_iter": whole(1),
        "tolerance": exact_positive,
    }

    _: KW_ONLY
    regularization: float | None = None
    projection: bool = True
    inference: str = "auto"
    max_iter: int = 1000
    tolerance: float = 1e-6

    def _structure(self, model: Any) -> Structure:
        return tied_or(super()._structure(model), self)

    def _plan(self, structure: Structure, public: Any) -> CountedTables:
        if isinstance(structure, Tying):
            return self._noisy_tables(*structure.plan(public.schema))
        scopes = markov_scopes(structure, [rule.variables for rule in public.schema.rules])
        return self._noisy_tables(scopes, [1.0] * len(scopes))

    def _read(self, structure: Structure, release: Any) -> None:
        schema = self._schema(structure, release)
        if isinstance(structure, Tying):
            engine: Any = structure.engine(schema, structure.name_schema(release.schema))
            release = structure.tables(release)
        else:
            scopes = markov_scopes(structure, [*release.cliques, *(rule.variables for rule in schema.rules)])
            engine = build_engine(schema.cardinalities(), scopes, self.inference)
        self._set_parameters(self._factors(engine, self._maximise(engine, release), schema), schema)

    def _maximise(self, engine: Engine, release: Any) -> Vector:
        own = [release.marginal(scope) for scope in engine.layout.scopes]
        marginals = engine.layout.flatten(self._marginal(table, release.total) for table, _ in own)
        weight = self.regularization
        if weight is None:
            weight = noise_regularization([variance for _, variance in own], release.total)
        fit = maximise_likelihood(engine, marginals, weight, self.max_iter, self.tolerance)
        self._warn_unless(fit.converged)
        return fit.potentials

    def _marginal(self, table: Vector, total: float) -> Vector:
        return project_to_simplex(table / total) if self.projection else table / total
