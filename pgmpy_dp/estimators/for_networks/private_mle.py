"""`PrivateMLE` reads CPDs off noisy tables of families."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import pandas as pd
from pgmpy.base import DAG
from pgmpy.parameter_estimator.base import DiscreteParameterEstimator

from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.errors import Message
from pgmpy_dp.estimators.parameters import Parameters, check_parameters, refuse_weights
from pgmpy_dp.estimators.results import finish
from pgmpy_dp.estimators.steps import informed, measure, resolve
from pgmpy_dp.fitting.plans.allocation import (
    Allocation,
    DataDependentAllocation,
    Plan,
    allocation_features,
    allocation_frame,
    first_plan,
    resolve_allocation,
    second_plan,
)
from pgmpy_dp.fitting.readings.directed import ITERATIONS, fit_releases, require_exact
from pgmpy_dp.fitting.readings.family_tables import read_joint, read_pairs
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.observed.factors import bayesian_network, families, tabular_cpd
from pgmpy_dp.privacy.checks import Constraint, choice, exact_positive
from pgmpy_dp.privacy.sampling import sampling_fraction
from pgmpy_dp.release import NoisyMarginals, Release
from pgmpy_dp.release.composition import sharing
from pgmpy_dp.release.consistency import WEIGHTS, intersections
from pgmpy_dp.release.informed_marginals import ReleasedTables, require_tables
from pgmpy_dp.schema import Clique, Schema


@dataclass(eq=False, repr=False)
class PrivateMLE(Parameters, DiscreteParameterEstimator):
    """CPDs of a Bayesian network are read off noisy tables of its families.

    A drop-in for pgmpy's `DiscreteMLE`: tables of noisy counts that hold all families, and of each family the counts
    that explain its table best, given how noisy it is. Quick, and without inference over the network unless asked for;
    `CollectiveEM` fits one distribution to all tables, which tells where noise is strong.

    Parameters
    ----------
    epsilon : float, optional
        What to spend when `fit` is handed records or a `PrivateDataset`. Leave it out to fit a release.
    delta : float
        0, or in (0, 1) with ``mechanism="gaussian"``.
    state_names : mapping of variable to states, or Schema
        Declared states; needed for raw records. Undeclared states are an error: reading them off the records would
        leak.
    allocation : {"size", "uniform", "planned", "data_dependent"} or an allocation object
        What is measured and how it shares the budget. Each family that lies in no other has its table, with a share by
        the square root of its cells (`SizeAllocation`, the default), an equal one (`UniformAllocation`), or one decided
        from a first, noisier release (`DataDependentAllocation`, for Laplace noise). "planned" merges families into
        common tables where that lowers the noise (`PlannedAllocation`).
    tables : {"joint", "paper"}
        "joint" measures one table a family. "paper" measures two, the family's and its parents', with half of the
        share each, and reads them as Chowdhury et al. (2020) do; it is there to compare with.
    consistency : {"mutual", "inference", None}
        "mutual" first makes the tables agree where they overlap (`mutual_consistency`), then reads each family on its
        own. "inference" finds the one network that explains all tables, as `CollectiveEM`: better where noise is strong
        or the network is right. None reads the tables as they are.
    consistency_weights : {"inverse_variance", "epsilon"}
        Of "mutual".
    mechanism : {"laplace", "gaussian"}
    neighbours : {"add_remove", "replace_one"}, optional
        For raw records; "add_remove" by default. A `PrivateDataset` has its own.

    Attributes
    ----------
    parameters_ : list of TabularCPD
        One a node, in the order of the model's nodes.
    state_names_ : dict
    release_ : NoisyMarginals
        What was measured and fitted, or the release that was handed in.
    stage1_release_ : NoisyMarginals or None
        What a data-dependent allocation measured first.
    guarantee_ : Guarantee
        Of both stages together.
    allocation_ : pandas.DataFrame
        One row a node: `table`, the measured clique that its family is read from; `cells` of the family; `height` (the
        longest path to a leaf) and `out_degree`; of a data-dependent allocation the `sensitivity`, the `weight` W_i and
        `dbar`, the mean error of its parameters times the epsilon; the `epsilon` that its tables had (not for Gaussian
        noise), and their `share` of the budget. Families read from one table repeat it.

    Notes
    -----
    With ``tables="joint"`` and without inference, the CPD of a family is read off its table as follows. Of a table y
    with noise of scale b, the counts n maximise

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

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "consistency": choice(None, "mutual", "inference"),
        "consistency_weights": choice(*WEIGHTS),
    }

    epsilon: float | None = None
    delta: float = 0.0
    state_names: Mapping[str, Any] | Schema | None = None
    allocation: str | Allocation = "size"
    tables: str = "joint"
    consistency: str | None = "mutual"
    consistency_weights: str = "inverse_variance"
    mechanism: str = "laplace"
    neighbours: str | None = None

    def fit(self, model: DAG, data: Any, sample_weight: None = None, public: Any = None) -> PrivateMLE:
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
        check_parameters(self)
        network = bayesian_network(model, type(self).__name__)
        refuse_weights(type(self).__name__, sample_weight)
        allocation = self._checked_options()
        scopes, nodes = families(network), list(network.nodes())
        first, features = None, None
        if public is not None and self.consistency_weights == "epsilon":
            raise ValueError("Public tables cost no epsilon to weigh them by: leave consistency_weights out.")
        source = resolve(self, data, nodes, network, public)
        if isinstance(source, Release):
            release = source
        else:
            plan = self._plan(network, source.schema, allocation)
            if isinstance(allocation, DataDependentAllocation):
                first, features, release = self._measure_in_two_stages(source, network, allocation, plan)
            else:
                release = measure(self, source, *plan)
            release = informed(release, public)
        tables = require_tables(
            release,
            Message(
                "A family is read from a table whose cells have independent noise, and coefficients do not",
                "fit it with CollectiveEM or PrivateBayesianEstimator",
                "fit it by --estimator collective-em or private-bayesian",
            ),
        )
        schema = release.schema.select(nodes)
        rows = self._read(tables, scopes)
        cpds = [tabular_cpd(scope, table, schema.states) for scope, table in zip(scopes, rows, strict=True)]
        finish(self, cpds, release, schema)
        self.allocation_ = allocation_frame(network, tables, self.tables, features)
        self.stage1_release_ = first
        return self

    def _checked_options(self) -> Allocation:
        """Find the allocation, and refuse what would fail only after the budget is charged."""
        allocation = resolve_allocation(self.allocation, self.tables)
        if isinstance(allocation, DataDependentAllocation) and (self.mechanism != "laplace" or self.delta != 0):
            raise ValueError(
                "The two stages of a DataDependentAllocation share a pure epsilon, by mechanism='laplace' without a "
                f"delta; got mechanism={self.mechanism!r}, delta={self.delta!r}. Change them, or the allocation."
            )
        return allocation

    def _plan(self, network: DAG, schema: Schema, allocation: Allocation) -> Plan:
        """Choose what to measure first, and see whether it can be made consistent."""
        cliques, weights = first_plan(network, schema, allocation, self.tables, self.mechanism)
        if self.consistency == "inference":
            require_exact(schema, [*families(network), *cliques])
        elif self.consistency == "mutual":
            intersections(cliques if self.tables == "joint" else families(network))
        return cliques, weights

    def _measure_in_two_stages(
        self, dataset: PrivateDataset, network: DAG, allocation: DataDependentAllocation, plan: Plan
    ) -> tuple[NoisyMarginals, pd.DataFrame, NoisyMarginals]:
        """Charge epsilon as a whole, measure stage I, allocate by its features, measure stage II.

        Stage I costs its share by amplification on the sample, stage II the rest, chosen from stage I alone: together
        they cost epsilon by (adaptive) composition. Scales of stage II tell of stage I: its release promises both.
        """
        schema, scopes = dataset.schema, families(network)
        if sampling_fraction(allocation.sampling_rate) < 1 and dataset.neighbours != "add_remove":
            raise ValueError(
                f"Stage I on a sample is priced for records added or removed, and the data has "
                f"neighbours={dataset.neighbours!r}: give the allocation a sampling_rate of 1."
            )
        if allocation.sensitivity == "covary" and "sensitivity" in allocation.weights:
            require_exact(schema, scopes)
        whole = exact_positive("epsilon", self.epsilon)
        beginning: Fraction = whole * exact_positive("stage1_fraction", allocation.stage1_fraction)
        part = dataset.set_aside(whole)
        cliques, weights = plan
        first = part.measure(cliques, beginning, weights=weights, sampling_rate=allocation.sampling_rate)
        features = allocation_features(network, scopes, first, self._read(first, scopes), allocation)
        cliques, weights = second_plan(schema, scopes, features, self.tables)
        second = part.measure(cliques, whole - beginning, weights=weights)
        return first, features, replace(second, guarantee=sharing(second.guarantee, first.payments))

    def _read(self, release: ReleasedTables, scopes: Sequence[Clique]) -> list[Vector]:
        """Read P(node | parents) of each family."""
        if self.consistency == "inference":
            fit = fit_releases([release], scopes, ITERATIONS, "junction_tree")
            return [fit.tables[scope] for scope in scopes]
        agreement = self.consistency_weights if self.consistency == "mutual" else None
        return (read_joint if self.tables == "joint" else read_pairs)(release, scopes, agreement)
