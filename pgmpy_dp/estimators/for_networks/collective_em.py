"""`CollectiveEM` fits one distribution to all noisy tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pgmpy.base import DAG
from pgmpy.models import DiscreteMarkovNetwork
from pgmpy.parameter_estimator.base import DiscreteParameterEstimator

from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.estimators.parameters import Parameters, check_parameters, refuse_weights
from pgmpy_dp.estimators.results import finish, finish_markov, finish_tied, warn_unless
from pgmpy_dp.estimators.steps import joined, measure, refuse_rules, resolve_all
from pgmpy_dp.fitting.plans.planning import plan_measurements
from pgmpy_dp.fitting.plans.tying import Tying
from pgmpy_dp.fitting.readings.directed import ITERATIONS, fit_releases, require_exact
from pgmpy_dp.fitting.readings.undirected import fit_undirected
from pgmpy_dp.inference import build_engine
from pgmpy_dp.inference.trees.engine import INFERENCE
from pgmpy_dp.observed.factors import bayesian_network, families, markov_network, markov_scopes, tabular_cpd
from pgmpy_dp.observed.observations import Observations, agreed_schema, observed_of
from pgmpy_dp.observed.rule_tables import barred_cells, scope_masks
from pgmpy_dp.observed.testing_tables import affordable
from pgmpy_dp.privacy.checks import Constraint, choice, exact_positive, number, optional, whole
from pgmpy_dp.release import Release
from pgmpy_dp.schema import Clique, Schema

Plan = tuple[Sequence[Clique], Sequence[float]]  # what to measure, and its shares of the budget


@dataclass(eq=False, repr=False)
class CollectiveEM(Parameters, DiscreteParameterEstimator):
    """One distribution is fitted to all noisy tables or coefficients, for Markov and Bayesian networks.

    Every measured table or Fourier coefficient, of whatever cliques, is a noisy observation of marginals of one
    distribution. The estimator
    finds the network whose own marginals explain all of them best under the likelihood of the noise, kept from
    over-fitting by a prior that needs no tuning. It grew out of EM in collective graphical models (Bernstein et al.
    2017): there the maximum over noiseless counts, run to convergence, fits the noise.

    Parameters
    ----------
    epsilon : float, optional
        What to spend when `fit` is handed records or a `PrivateDataset`; the estimator then decides what to measure.
        Leave it out to fit a release.
    delta : float
        0, or in (0, 1) with ``mechanism="gaussian"``.
    state_names : mapping of variable to states, or Schema
        Declared states; needed for raw records.
    inference : {"auto", "junction_tree", "loopy"}
        "auto" takes a junction tree where its tables fit in memory, else loopy belief propagation, with a warning: it
        is approximate, and so is the partition function 1 of a Markov network that it fits.
    max_iter : int
        Most iterations of the last round of optimisation.
    prior_scale : float, optional
        Scale of the prior on the log-potentials of a Markov network; learned from the release by default.
    mechanism : {"laplace", "gaussian"}
    neighbours : {"add_remove", "replace_one"}, optional
        For raw records; "add_remove" by default. A `PrivateDataset` has its own.
    check : float
        This share of epsilon goes to tables of variables that the network does not join, so that `check_fit` can tell
        whether edges are missing; see `plan_measurements`.

    Attributes
    ----------
    parameters_ : list of TabularCPD or DiscreteFactor
        CPDs in the order of the nodes, or factors with partition function 1.
    state_names_ : dict
    release_ : NoisyMarginals, or tuple of releases
        Several where their noise is of several kinds.
    guarantee_ : Guarantee
    objective_ : float
        What was optimised, in nats, up to a constant.
    prior_scale_ : float
        For Markov networks, the scale in use.

    Notes
    -----
    On a Bayesian network it gains over `PrivateMLE` where the noise is strong or tables overlap. Where noise is weak
    and the records contradict the network's independences, CPDs read table by table can be the closer ones.

    The likelihood is that of Gaussian or Laplace noise. Of Laplace noise of scale b, the corner of |y - n| / b is
    rounded off within .6 b for a Markov network, so that quasi-Newton steps see a curvature; for a Bayesian network it
    is averaged over what sampling and the noise leave open of n. Releases with noise of different kinds each have their
    own likelihood.

    Bayesian networks: see `pgmpy_dp.fitting.readings.directed.fit_directed`. Markov networks: see
    `pgmpy_dp.fitting.readings.undirected.fit_undirected`. Of records, the tables measured are for a Markov network its
    edges and isolated nodes, for a Bayesian network its families, merged where that lowers the total noise
    (`pgmpy_dp.fitting.plans.planning`).

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> records = pd.DataFrame({"smoke": ["yes", "no"] * 500, "lung": ["yes", "no", "no", "no"] * 250})
    >>> schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
    >>> network = DiscreteBayesianNetwork([("smoke", "lung")])
    >>> _ = network.fit(records, estimator=dp.CollectiveEM(epsilon=1.0, state_names=schema))
    >>> bool(0.4 < network.get_cpds("lung").get_value(lung="yes", smoke="yes") < 0.6)
    True
    """

    _tags = {  # noqa: RUF012
        "supported_model_types": (DAG, DiscreteMarkovNetwork),
        "supports_latent_variables": False,
        "supports_weighted_data": False,
    }

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "inference": choice(*INFERENCE),
        "max_iter": whole(1),
        "prior_scale": optional(exact_positive),
        "check": number(most=0.9),
    }

    epsilon: float | None = None
    delta: float = 0.0
    state_names: Mapping[str, Any] | Schema | None = None
    inference: str = "auto"
    max_iter: int = ITERATIONS
    prior_scale: float | None = None
    mechanism: str = "laplace"
    neighbours: str | None = None
    check: float = 0.0

    def fit(
        self, model: DAG | DiscreteMarkovNetwork, data: Any, sample_weight: None = None, public: Any = None
    ) -> CollectiveEM:
        """Fit a network.

        Parameters
        ----------
        model : DiscreteBayesianNetwork, DAG or PrivateMarkovNetwork
        data : NoisyMarginals, NoisyCoefficients, NoisyResiduals, list of them, PrivateDataset or data frame
            A release, or several of the same records (free), a data set (charged epsilon), or records (with epsilon and
            declared states). Tables with noise of one kind are joined; releases of several kinds keep their own noise.
        sample_weight : None
            Not supported.
        public : mapping of clique to table, optional
            Tables that are published elsewhere, exact or as `PublicTable`, at no privacy cost; see `InformedMarginals`.

        Returns
        -------
        CollectiveEM

        Raises
        ------
        SchemaError
            If states are not declared, or the records do not agree with them.
        BudgetExceededError
            If the data set's ledger has less than epsilon left; nothing is charged.
        ValueError
            If an argument is out of range, or a release says nothing of a variable.
        """
        check_parameters(self)
        refuse_weights(type(self).__name__, sample_weight)
        if isinstance(model, DiscreteMarkovNetwork):
            return self._fit_markov(markov_network(model, type(self).__name__), data, public)
        return self._fit_bayesian(bayesian_network(model, type(self).__name__), data, public)

    def _fit_bayesian(self, network: DAG, data: Any, public: Any) -> CollectiveEM:
        scopes = families(network)
        nodes = list(network.nodes())
        releases = self._releases(data, nodes, public, lambda schema: self._plan(network, schema), network)
        schema = agreed_schema(releases, nodes)
        fit = fit_releases(releases, scopes, self.max_iter, self.inference)
        warn_unless(fit.finished, self)
        self.objective_ = fit.objective
        cpds = [tabular_cpd(scope, fit.tables[scope], schema.states) for scope in scopes]
        finish(self, cpds, releases, schema)
        return self

    def _fit_markov(self, network: DiscreteMarkovNetwork, data: Any, public: Any) -> CollectiveEM:
        tying = Tying.of(network)
        if tying is not None:
            return self._fit_tied(tying, data, public)
        nodes = list(network.nodes())

        def plan(schema: Schema) -> Plan:
            return plan_measurements(network, schema, self.check, self.mechanism)

        releases = self._releases(data, nodes, public, plan, network)
        schema = agreed_schema(releases, nodes)

        def scopes_of(cliques: Sequence[Clique]) -> Sequence[Clique]:
            return markov_scopes(network, dict.fromkeys([*cliques, *(rule.variables for rule in schema.rules)]))

        seen = observed_of(releases, nodes, scopes_of)
        scopes = scopes_of(seen.cliques)
        engine = build_engine(schema.cardinalities(), dict.fromkeys([*scopes, *seen.cliques]), self.inference)
        barred = barred_cells(scopes, scope_masks(scopes, schema), schema)
        fit = fit_undirected(engine, scopes, seen, self.max_iter, self.prior_scale, barred)
        warn_unless(fit.finished, self)
        self.objective_, self.prior_scale_ = fit.objective, fit.prior_scale
        finish_markov(self, engine, fit.potentials, scopes, releases, schema)
        return self

    def _fit_tied(self, tying: Tying, data: Any, public: Any) -> CollectiveEM:
        if self.inference == "loopy":
            raise ValueError("CollectiveEM fits tied parameters on a junction tree only: leave inference='auto'.")

        def plan(schema: Schema) -> Plan:
            refuse_rules(self, schema, tying.variables)
            return tying.plan(schema)

        releases = self._releases(data, tying.variables, public, plan)
        schema = agreed_schema(releases, tying.variables)
        refuse_rules(self, schema, tying.variables)
        nodes, tables = tying.node_schema(schema), [tying.tables(release) for release in releases]
        names = list(dict.fromkeys(v for name in tying.groups for v in name))
        engine, seen = tying.engine(nodes, tables[0].schema.select(names)), Observations.of(tables, names)
        fit = fit_undirected(engine, engine.layout.scopes, seen, self.max_iter, self.prior_scale)
        warn_unless(fit.finished, self)
        self.objective_, self.prior_scale_ = fit.objective, fit.prior_scale
        finish_tied(self, engine, fit.potentials, releases, nodes)
        return self

    def _releases(
        self, data: Any, variables: Sequence[str], public: Any, plan: Callable[[Schema], Plan], network: Any = None
    ) -> tuple[Release, ...]:
        source = resolve_all(self, joined(data), variables, network, public)
        if isinstance(source, PrivateDataset):
            return (measure(self, source, *plan(source.schema), public),)
        return source

    def _plan(self, network: DAG, schema: Schema) -> Plan:
        """Plan the tables; a tree that is asked for and will not fit is refused here, before the charge."""
        cliques, weights = plan_measurements(network, schema, self.check, self.mechanism)
        if self.inference == "junction_tree":
            scopes = families(network)
            require_exact(schema, [*scopes, *affordable(schema.cardinalities(), scopes, cliques)])
        return cliques, weights
