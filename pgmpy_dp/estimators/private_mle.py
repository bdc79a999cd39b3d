"""`PrivateMLE` estimates CPDs from noisy tables of families."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from pgmpy.base import DAG

from pgmpy_dp.data.mechanisms.tables import CountedTables
from pgmpy_dp.estimators.network_estimator import NetworkTableEstimator
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
from pgmpy_dp.fitting.plans.planning import tested
from pgmpy_dp.fitting.readings.directed import ITERATIONS, fit_releases, read_joint, read_pairs, require_exact
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.observed.consistency import WEIGHTS, intersections
from pgmpy_dp.observed.factors import families, tabular_cpd
from pgmpy_dp.observed.informed_marginals import ReleasedTables, require_tables
from pgmpy_dp.privacy.checks import Constraint, choice, exact_positive
from pgmpy_dp.privacy.subsampling import sampling_fraction
from pgmpy_dp.release import NoisyMarginals
from pgmpy_dp.schema import Clique, Schema

NOT_TABLES = (
    "A family is read from a table whose cells have independent noise, and coefficients do not: "
    "fit it with CollectiveEM or PrivateBayesianEstimator."
)


@dataclass(eq=False, repr=False)
class PrivateMLE(NetworkTableEstimator):
    """Estimate of each CPD of a Bayesian network from the noisy table of its own family, without inference.

    A drop-in replacement for pgmpy's `DiscreteMLE`. It measures tables that contain all families, and estimates the
    counts of each family from its table and noise. It is fast, and a missing edge does not distort other families.
    `CollectiveEM` is more accurate if the network is correct and the noise is strong, and `AutoMLE` chooses between the
    two.

    Parameters
    ----------
    epsilon, neighbours, delta, state_names, mechanism, check
        See :class:`~pgmpy_dp.AutoMLE`.
    allocation : {"size", "uniform", "planned", "data_dependent"} or an allocation object
        The measured tables and their shares of the budget. Each family that is not contained in another has its own
        table. Shares depend on the square root of the number of cells (`SizeAllocation`, the default), are equal
        (`UniformAllocation`), or are determined from a first, noisier release (`DataDependentAllocation`, for Laplace
        noise). "planned" merges families into common tables where that lowers the noise (`PlannedAllocation`).
    tables : {"joint", "paper"}
        "joint" measures one table per family, and the pairs of `check` unless the allocation is data-dependent.
        "paper" measures two, the family's and its parents', with half of the share each, and combines them as in
        Chowdhury et al. (2020), for comparison.
    consistency : {"mutual", "inference", None}
        "mutual" first makes overlapping tables consistent (`mutual_consistency`), then estimates each family
        separately. "inference" fits one network to all tables, as `CollectiveEM`, which is better if the noise is
        strong or the network is correct. None uses the tables unchanged.
    consistency_weights : {"inverse_variance", "epsilon"}
        Weights of the tables for "mutual".

    Attributes
    ----------
    stage1_release_ : NoisyMarginals or None
        The first release of a data-dependent allocation.
    guarantee_ : Guarantee
        The joint guarantee of both stages.
    allocation_ : pandas.DataFrame
        One row per node: `table`, the measured clique from which its family is estimated; `cells` of the family;
        `height` (the longest path to a leaf) and `out_degree`; for a data-dependent allocation the `sensitivity`, the
        `weight` W_i and `dbar`, the mean error of its parameters times the epsilon; the `epsilon` of its tables (not
        for Gaussian noise), and their `share` of the budget. Families with a common table repeat its values.
    release_, parameters_, state_names_
        See :class:`~pgmpy_dp.AutoMLE`.

    Notes
    -----
    With ``tables="joint"`` and without inference, the CPD of a family is estimated from its table as follows. Given a
    table y with noise of scale b, the estimated counts n maximise

        sum_i E[log p(y_i | n_i')] + (1 / r) sum_i log n_i    subject to    sum_i n_i = N,

    where n_i' is normal with mean n_i and the variance of sampling, plus b^2 for Laplace noise, and r is the number of
    states of the child: one pseudo-record per row (Perks 1947). The objective is concave and solved exactly. N is
    public or estimated from the release. If noise hides a cell, the pseudo-record keeps it positive; otherwise its
    effect is negligible.

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

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "consistency": choice(None, "mutual", "inference"),
        "consistency_weights": choice(*WEIGHTS),
    }

    _informable: ClassVar[bool] = True

    allocation: str | Allocation = "size"
    tables: str = "joint"
    consistency: str | None = "mutual"
    consistency_weights: str = "inverse_variance"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        allocation = resolve_allocation(self.allocation, self.tables)
        if isinstance(allocation, DataDependentAllocation) and (self._noise != "laplace" or self.delta != 0):
            raise ValueError(
                "The two stages of a DataDependentAllocation share a pure epsilon: Laplace noise, and no delta; got "
                f"mechanism={self.mechanism!r}, delta={self.delta!r}. Change them, or the allocation."
            )

    def _source(self, structure: DAG, data: Any, public: Any) -> Any:
        if public is not None and self.consistency_weights == "epsilon":
            raise ValueError("Public tables have no epsilon as a weight: leave consistency_weights out.")
        self.stage1_release_: NoisyMarginals | None = None
        return super()._source(structure, data, public)

    def _first_tables(self, structure: DAG, schema: Schema) -> Plan:
        """Choose the tables of the first stage, and check that they can be made consistent."""
        allocation = resolve_allocation(self.allocation, self.tables)
        cliques, weights = first_plan(structure, schema, allocation, self.tables, self._noise)
        if self.tables == "joint" and not isinstance(allocation, DataDependentAllocation):
            cliques, weights = tested(structure, schema, cliques, weights, self.check, self._noise)
        if self.consistency == "inference":
            require_exact(schema, [*families(structure), *cliques])
        elif self.consistency == "mutual":
            intersections(cliques if self.tables == "joint" else families(structure))
        return cliques, weights

    def _plan(self, structure: DAG, public: Any) -> CountedTables:
        if isinstance(resolve_allocation(self.allocation, self.tables), DataDependentAllocation):
            raise ValueError(
                "A data-dependent allocation decides the noise from a first release: it has no plan before that. "
                'Plan allocation="size" for comparison.'
            )
        return self._noisy_tables(*self._first_tables(structure, public.schema))

    def _measure(self, structure: DAG, source: Any, public: Any) -> Any:
        allocation = resolve_allocation(self.allocation, self.tables)
        if not isinstance(allocation, DataDependentAllocation):
            return super()._measure(structure, source, public)
        # Stage I costs its share, by amplification through sampling. Stage II, which is chosen from stage I's release
        # alone, costs the rest: together they cost epsilon by adaptive composition. The noise scales of stage II reveal
        # information on stage I, so the guarantee of its release covers both.
        schema, scopes = source.schema, families(structure)
        cliques, weights = self._first_tables(structure, schema)
        if sampling_fraction(allocation.sampling_rate) < 1 and source.neighbours != "add_remove":
            raise ValueError(
                f"Stage I on a sample is priced for records added or removed, and the data has "
                f"neighbours={source.neighbours!r}: give the allocation a sampling_rate of 1."
            )
        if allocation.sensitivity == "covary" and "sensitivity" in allocation.weights:
            require_exact(schema, scopes)
        whole = exact_positive("epsilon", self.epsilon)
        beginning: Fraction = whole * exact_positive("stage1_fraction", allocation.stage1_fraction)
        part = source.set_aside(whole)
        first = part.measure(cliques, beginning, weights=weights, sampling_rate=allocation.sampling_rate)
        features = allocation_features(structure, scopes, first, self._rows(first, scopes), allocation)
        cliques, weights = second_plan(schema, scopes, features, self.tables)
        second = part.after(first).measure(cliques, whole - beginning, weights=weights)
        self.stage1_release_, self._features = first, features
        return self._paid(second, public)

    def _read(self, structure: DAG, release: Any) -> None:
        tables, scopes = require_tables(release, NOT_TABLES), families(structure)
        rows = self._rows(tables, scopes)
        self.allocation_ = allocation_frame(structure, tables, self.tables, self.__dict__.pop("_features", None))
        schema = self._schema(structure, release)
        cpds = [tabular_cpd(scope, table, schema.states) for scope, table in zip(scopes, rows, strict=True)]
        self._set_parameters(cpds, schema)

    def _rows(self, release: ReleasedTables, scopes: Sequence[Clique]) -> list[Vector]:
        """Estimate P(node | parents) of each family."""
        if self.consistency == "inference":
            fit = fit_releases([release], scopes, ITERATIONS, "junction_tree")
            return [fit.tables[scope] for scope in scopes]
        agreement = self.consistency_weights if self.consistency == "mutual" else None
        return (read_joint if self.tables == "joint" else read_pairs)(release, scopes, agreement)
