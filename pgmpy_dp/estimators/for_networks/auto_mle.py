"""`AutoMLE` fits a release by inference if the network explains it, otherwise family by family."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from pgmpy.base import DAG
from pgmpy.factors.discrete import TabularCPD

from pgmpy_dp.estimators.for_networks.network_estimator import NetworkTableEstimator
from pgmpy_dp.estimators.for_networks.private_mle import NOT_TABLES
from pgmpy_dp.fitting.plans.allocation import Plan, PlannedAllocation, allocation_frame, first_plan
from pgmpy_dp.fitting.plans.planning import tested, with_details
from pgmpy_dp.fitting.readings.directed import ITERATIONS, fit_releases, read_joint
from pgmpy_dp.fitting.readings.shrinking import shrunk_tables
from pgmpy_dp.inference import TreeTooLargeError
from pgmpy_dp.observed.factors import families, tabular_cpd
from pgmpy_dp.release.consistency import intersections
from pgmpy_dp.release.informed_marginals import require_tables
from pgmpy_dp.schema import Schema


@dataclass(eq=False, repr=False)
class AutoMLE(NetworkTableEstimator):
    """Default estimator: by inference, with sparse rows, if the release agrees with the network, else as `PrivateMLE`.

    `CollectiveEM` fits one distribution to all noisy tables, which is best if the network is correct. If edges are
    missing, it distorts families to explain tables that the network cannot represent, and each family's own table, as
    in `PrivateMLE`, is the better source. The release shows whether this is so: the residuals of the network then
    exceed the noise. This decision costs no privacy.

    By inference, rows are at their posterior means, not most likely: cells that noise does not tell from zero are
    shrunk as far as the other rows of their CPD are sparse, which the release shows too (an empirical Bayes estimate;
    see `pgmpy_dp.fitting.readings.shrinking`). This is near `PosteriorMean`, in a hundredth of its time.

    Attributes
    ----------
    reading_ : {"inference", "family", "both"}
    family_weight_ : float
        Weight of the family's own table in every CPD: 0 for inference, 1 for family.
    squared_residual_ : float
        Mean squared residual of the release under the network fitted by inference, in units of the variance of noise
        and sampling, without tables that only test the network. NaN if its junction tree does not fit in memory.
    allocation_ : pandas.DataFrame
        See `PrivateMLE`.

    Notes
    -----
    CPDs are estimated by inference for a squared residual of at most 1, and by family for at least 2. In between they
    are averaged, with weight ``squared_residual_ - 1`` for the family's; the divergence of the average is not larger
    than the average of the divergences. A correct network has a residual below 1, since its parameters absorb a part of
    the noise. If no junction tree fits in memory, so that inference could only be approximate, CPDs are estimated by
    family: in tests, the error of loopy belief propagation could be over ten times as large, and was never smaller by
    more than a tenth.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> records = pd.DataFrame({"smoke": ["yes", "no"] * 500, "lung": ["yes", "no", "no", "no"] * 250})
    >>> schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
    >>> network = DiscreteBayesianNetwork([("smoke", "lung")])
    >>> estimator = dp.AutoMLE(epsilon=1.0, state_names=schema)
    >>> _ = network.fit(records, estimator=estimator)
    >>> estimator.reading_ in ("inference", "both", "family")
    True
    """

    _informable: ClassVar[bool] = True

    def _tables(self, structure: DAG, schema: Schema) -> Plan:
        cliques, weights = first_plan(structure, schema, PlannedAllocation(), "joint", self._noise)
        intersections(cliques)
        return with_details(schema, *tested(structure, schema, cliques, weights, self.check, self._noise))

    def _read(self, structure: DAG, release: Any) -> list[TabularCPD]:
        tables, scopes = require_tables(release, NOT_TABLES), families(structure)
        read = dict(zip(scopes, read_joint(tables, scopes, "inverse_variance"), strict=True))
        self.squared_residual_, self.family_weight_ = math.nan, 1.0
        with suppress(TreeTooLargeError):
            fit = fit_releases([tables], scopes, ITERATIONS, "junction_tree")
            self.squared_residual_ = fit.squared_residual
            self.family_weight_ = weight = min(max(fit.squared_residual - 1.0, 0.0), 1.0)
            if weight < 1.0:
                shrunk = shrunk_tables([tables], scopes, fit.tables)
                read = {scope: (1.0 - weight) * shrunk[scope] + weight * read[scope] for scope in scopes}
        self.reading_ = {0.0: "inference", 1.0: "family"}.get(self.family_weight_, "both")
        self.allocation_ = allocation_frame(structure, tables, "joint", None)
        states = release.schema.states
        return [tabular_cpd(scope, read[scope], states) for scope in scopes]
