"""Base class of estimators with pgmpy's interface, whose CPDs or factors obey the schema's rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self, TypeAlias

from pgmpy.base import DAG
from pgmpy.factors.discrete import DiscreteFactor, TabularCPD
from pgmpy.models import DiscreteMarkovNetwork
from pgmpy.parameter_estimator.base import DiscreteParameterEstimator
from sklearn.exceptions import ConvergenceWarning

from pgmpy_dp.data.mechanisms.mechanism import PublicRecords
from pgmpy_dp.data.mechanisms.steps import Measure
from pgmpy_dp.errors import warn
from pgmpy_dp.estimators.base import Estimator, Plan, TableEstimator, informed, refuse_rules, refuse_weights
from pgmpy_dp.fitting.plans.groups import IN_GROUPS, many_states, numbers_in_families, with_groups
from pgmpy_dp.fitting.plans.planning import CHECK
from pgmpy_dp.fitting.readings.grouped_networks import GroupedNodes, declared_coarser, relabelled
from pgmpy_dp.fitting.readings.undirected import Tying
from pgmpy_dp.inference import Layout
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.inference.trees.junction_tree import TiedTree
from pgmpy_dp.observed.factors import (
    bayesian_network,
    families,
    family_masks,
    forbidden_log_mask,
    markov_factors,
    markov_network,
    markov_scopes,
    require_rules_fit,
    ruled_table,
    scope_masks,
    tabular_cpd,
)
from pgmpy_dp.observed.informed_marginals import ReleasedTables
from pgmpy_dp.observed.observed import agreed_schema
from pgmpy_dp.privacy.checks import number
from pgmpy_dp.release import Release
from pgmpy_dp.release.kinds import joint_guarantee, refuse_repeated, several
from pgmpy_dp.schema import Clique, Schema

Structure: TypeAlias = DAG | DiscreteMarkovNetwork | Tying
"""A network, or the groups of a Markov network whose cliques share parameters."""


class NetworkEstimator(Estimator, DiscreteParameterEstimator):  # type: ignore[misc]
    """Base class of estimators of networks, with pgmpy's interface."""

    _tags: ClassVar[dict[str, Any]] = {"supports_latent_variables": False, "supports_weighted_data": False}
    _ties: ClassVar[bool] = False  # whether it fits groups of cliques that share parameters

    def fit(self, model: Any, data: Any, sample_weight: None = None, public: Any = None) -> Self:
        """Fit the parameters of a network.

        Parameters
        ----------
        model : DiscreteBayesianNetwork, DAG or DiscreteMarkovNetwork
            A network of a kind that the estimator supports.
        data : release, list of releases, PrivateDataset or data frame
            A release, or several of the same records (free), a data set (its ledger is charged), or records (with
            epsilon and declared states). Some estimators require records; see the class.
        sample_weight : None
            Not supported: the noise is scaled to unweighted records.
        public : mapping of clique to table, optional
            See `PrivateBayesianNetwork.fit`. Only for estimators that can use it.

        Raises
        ------
        SchemaError
            If states are not declared, or the records do not agree with them.
        BudgetExceededError
            If the data set's ledger has too little left; nothing is charged.
        TypeError, ValueError
            If an argument is of the wrong kind or out of range, or a release lacks a variable. Nothing is charged if
            the error can be detected beforehand.
        """
        refuse_weights(self, sample_weight)
        return self._run(model, data, public)

    def _structure(self, model: Any) -> Any:
        kinds, name = self.get_tag("supported_model_types"), type(self).__name__
        if DAG in kinds and not (DiscreteMarkovNetwork in kinds and isinstance(model, DiscreteMarkovNetwork)):
            return bayesian_network(model, name)
        network = markov_network(model, name)
        tying = Tying.of(network) if self._ties else None
        if tying is not None and getattr(self, "inference", "auto") == "loopy":
            raise ValueError(f"{name} fits tied parameters on a junction tree only: leave inference='auto'.")
        return network if tying is None else tying

    def _variables(self, structure: Any, data: Any = None) -> Sequence[str]:
        return structure.variables if isinstance(structure, Tying) else list(structure.nodes())

    def _several(self, structure: Any, data: Any, public: Any) -> Any:
        """Return several releases without joining them, or else the source; public tables join the first of tables."""
        if not isinstance(data, (list, tuple)) or len(data) < 2 or not all(isinstance(part, Release) for part in data):
            return super()._source(structure, data, public)
        refuse_repeated(data)
        for release in data:
            self._check_release(release, [node for node in self._variables(structure) if node in release.schema.states])
        self._check_rules(structure, agreed_schema(data, self._variables(structure)))
        joint_guarantee(data)  # refuses guarantees that differ, before the fit
        position = next((number for number, release in enumerate(data) if isinstance(release, ReleasedTables)), 0)
        return tuple(informed(release, public if number == position else None) for number, release in enumerate(data))

    def _check_rules(self, structure: Any, schema: Schema) -> None:
        if isinstance(structure, Tying):
            refuse_rules(self, schema, structure.variables)
        else:
            require_rules_fit(structure, schema)

    def _schema(self, structure: Any, release: Any) -> Schema:
        """Return the schema of the network's nodes."""
        schema = agreed_schema(several(release), self._variables(structure))
        return structure.node_schema(schema) if isinstance(structure, Tying) else schema

    def _set_parameters(self, parameters: Any, schema: Schema) -> None:
        """Set the CPDs, by the schema's rules, or the factors."""
        if schema.rules and isinstance(parameters[0], TabularCPD):
            tables = {tuple(cpd.variables): cpd.values for cpd in parameters}
            masks = family_masks(list(tables), schema)
            ruled = {scope: ruled_table(table, masks.get(scope)) for scope, table in tables.items()}
            parameters = [tabular_cpd(scope, table, schema.states) for scope, table in ruled.items()]
        self.parameters_, self.state_names_, self._is_fitted = parameters, schema.state_names, True

    def _factors(
        self, engine: Any, potentials: Vector, schema: Schema, scopes: Sequence[Clique] | None = None
    ) -> list[DiscreteFactor]:
        """Build factors with partition function 1 of all tables, or of scopes outside which potentials are zero."""
        if isinstance(engine, TiedTree):
            engine, potentials = engine.tree, engine.expand(potentials)
        scopes = engine.layout.scopes if scopes is None else scopes
        positions = engine.layout.places(scopes)
        if schema.rules:
            potentials = potentials.copy()
            potentials[positions] += forbidden_log_mask(scopes, scope_masks(scopes, schema), schema)
        calibration = engine.calibrate(potentials)
        self._warn_unless(calibration.converged, "Loopy belief propagation")
        layout = Layout.of(engine.layout.cardinalities, scopes)
        return markov_factors(layout, potentials[positions], calibration.log_partition, schema.states)

    def _warn_unless(self, converged: bool, what: str = "The fit") -> None:
        """Warn that a fit did not converge: it is private, but may be inaccurate."""
        if not converged:
            advice = "" if hasattr(self, "max_iter") else "fit CollectiveEM, "
            warn(
                f"{what} of {type(self).__name__} did not converge, so the network may be far from the release: "
                f"{advice}raise max_iter, or use inference='junction_tree' where it fits in memory.",
                ConvergenceWarning,
            )


class PrivateNetworkEstimator(NetworkEstimator):
    """Base class of estimators of networks whose fit costs privacy."""

    def plan(self, model: Any, schema: Schema | PublicRecords | None = None, records: float | None = None) -> Plan:
        """Return what `fit` would measure, and its noise; this needs no records and charges nothing.

        Parameters
        ----------
        model : DiscreteBayesianNetwork, DAG or DiscreteMarkovNetwork
        schema : Schema or PublicRecords, optional
            The schema of the records, or all that is public of them; by default the estimator's `state_names`.
        records : float, optional
            A public guess of the number of records, for `Plan.outlook`.

        Examples
        --------
        >>> import pgmpy_dp as dp
        >>> schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
        >>> network = dp.PrivateBayesianNetwork([("smoke", "lung")])
        >>> plan = dp.AutoMLE(epsilon=1.0).plan(network, schema)
        >>> plan.guarantee.mechanism, {clique: round(noise, 2) for clique, noise in plan.noise.items()}
        ('laplace', {('lung', 'smoke'): 1.36})
        """
        return self._planned(model, schema, records)  # type: ignore[attr-defined]


# Share of the privacy loss for the single tables of nodes with many states, from which their groups and the shares of
# states in these follow.
_SINGLES = 0.3


@dataclass(eq=False, repr=False)
class NetworkTableEstimator(PrivateNetworkEstimator, TableEstimator):
    """Base class of estimators that measure the tables of a network, in groups of states where nodes have many.

    A subclass defines `_tables`, what to measure for a structure and in which shares, and `_read_network`.
    """

    _: KW_ONLY
    check: float = CHECK

    def _check_parameters(self) -> None:
        super()._check_parameters()
        number(maximum=0.9)("check", self.check)

    def _tables(self, structure: Any, schema: Schema) -> tuple[Sequence[Clique], Sequence[float]]:
        raise NotImplementedError

    def _read_network(self, structure: Any, release: Any) -> None:
        raise NotImplementedError

    def _plan(self, structure: Any, public: Any) -> Any:
        """Plan the tables of the network, or first the single tables of nodes that may need groups of states."""
        schema = public.schema
        if isinstance(structure, Tying):
            return self._noisy_tables(*self._tables(structure, schema))
        alone = [node for node in structure.nodes() if not structure.degree(node)]
        kept = alone if not self.check or len(structure) < 2 else []  # in no table with others
        coarser = declared_coarser(structure, schema, set(structure.nodes()).difference(kept))
        over_declared = relabelled(structure, coarser)
        scopes = families(over_declared) if isinstance(structure, DAG) else markov_scopes(over_declared)
        joined = [clique for clique in scopes if len(clique) > 1]
        if not kept:  # pairs that test the network join isolated nodes with any other
            largest = sorted(over_declared.nodes(), key=schema.cardinality)[-2:]
            joined += [(node, largest[node != largest[1]]) for node in alone if node not in coarser]
        large = many_states(schema, [node for clique in joined for node in clique])
        singles: dict[Clique, float] = {(node,): 1.0 for node in structure.nodes() if node in large or node in coarser}
        if not singles:
            return self._noisy_tables(*self._tables(structure, schema))

        def rest(units: float | None, release: Any) -> Measure:
            numbers = numbers_in_families(schema, joined, self._noise_of(public.neighbours), units)
            grouped = with_groups(schema, numbers, release)
            names = {node: node + IN_GROUPS for node in numbers}
            return Measure(*self._tables(relabelled(over_declared, names), grouped), grouped)

        stages = [(_SINGLES, lambda *_: Measure.of(singles)), (1.0 - _SINGLES, rest)]
        return self._staged(stages, public, "measure the tables of a network")

    def _read(self, structure: Any, release: Any) -> None:
        releases = several(release)
        nodes = None if isinstance(structure, Tying) else GroupedNodes.of(structure, releases)
        if nodes is None:
            self._read_network(structure, release)
            return
        self._read_network(nodes.network(structure), release)
        parameters = nodes.spread(structure, self.parameters_, nodes.within(releases, self.parameters_))
        self._set_parameters(parameters, self._schema(structure, release))
