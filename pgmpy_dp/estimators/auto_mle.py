"""`AutoMLE` fits a release by inference if the network explains it, otherwise family by family."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from pgmpy.base import DAG
from pgmpy.models import DiscreteMarkovNetwork

from pgmpy_dp.data.mechanisms.tables import CountedTables
from pgmpy_dp.estimators.base import joined
from pgmpy_dp.estimators.network_estimator import NetworkTableEstimator, Structure
from pgmpy_dp.estimators.private_mle import NOT_TABLES
from pgmpy_dp.fitting.plans.allocation import PlannedAllocation, allocation_frame, first_plan
from pgmpy_dp.fitting.plans.pairs import with_details
from pgmpy_dp.fitting.plans.planning import plan_tables, tested
from pgmpy_dp.fitting.readings.directed import ITERATIONS, fit_releases, read_joint
from pgmpy_dp.fitting.readings.shrinking import shrunk_tables
from pgmpy_dp.fitting.readings.undirected import Tying, fit_markov
from pgmpy_dp.inference import TreeTooLargeError
from pgmpy_dp.observed.consistency import intersections
from pgmpy_dp.observed.factors import families, tabular_cpd
from pgmpy_dp.observed.informed_marginals import require_tables
from pgmpy_dp.release.kinds import several


@dataclass(eq=False, repr=False)
class AutoMLE(NetworkTableEstimator):
    """Default estimator: by inference, with sparse rows, if the release agrees with the network, else as `PrivateMLE`.

    Markov networks are fitted as by `CollectiveEM`; the rest is about Bayesian networks.

    `CollectiveEM` fits one distribution to all noisy tables, which is best if the network is correct. If edges are
    missing, it distorts families to explain tables that the network cannot represent, and each family's own table, as
    in `PrivateMLE`, is the better source. The release shows whether this is so: the residuals of the network then
    exceed the noise. This decision costs no privacy.

    By inference, rows are at their posterior means, not most likely: cells that noise makes indistinguishable from zero
    are shrunk as far as the other rows of their CPD are sparse, which the release shows too (an empirical Bayes
    estimate; see `pgmpy_dp.fitting.readings.shrinking`). This is near `PosteriorMean`, in a hundredth of its time.

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
    check : float
        Share of epsilon for pairs of variables that the network does not join, as for `plan_measurements`: they show
        missing edges, so that `check_fit` and bounds are honest. With 0, bounds assume that the network is right.

    Attributes
    ----------
    reading_ : {"inference", "family", "both"}
    family_weight_ : float
        Weight of the family's own table in every CPD: 0 for inference, 1 for family.
    squared_residual_ : float
        Mean squared residual of the release under the network fitted by inference, in units of the variance of noise
        and sampling, without tables that only test the network. NaN if its junction tree does not fit in memory, and
        for Markov networks.
    allocation_ : pandas.DataFrame
        See `PrivateMLE`; for Bayesian networks.
    guarantee_ : Guarantee
        The guarantee for the records behind the fit.
    release_ : NoisyMarginals
        The release that was measured or given.
    parameters_ : list of TabularCPD or DiscreteFactor
        CPDs in the order of the model's nodes, or factors with partition function 1.
    state_names_ : dict of variable to list

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

    _tags: ClassVar[dict[str, Any]] = {"supported_model_types": (DAG, DiscreteMarkovNetwork)}
    _informable: ClassVar[bool] = True
    _ties: ClassVar[bool] = True

    def _source(self, structure: Structure, data: Any, public: Any) -> Any:
        if isinstance(structure, DAG):
            return super()._source(structure, data, public)
        return self._several(structure, joined(data), public)

    def _plan(self, structure: Structure, public: Any) -> CountedTables:
        schema = public.schema
        if isinstance(structure, Tying):
            return self._noisy_tables(*structure.plan(schema))
        if not isinstance(structure, DAG):
            return self._noisy_tables(*with_details(schema, *plan_tables(structure, schema, self.check, self._noise)))
        cliques, weights = first_plan(structure, schema, PlannedAllocation(), "joint", self._noise)
        intersections(cliques)
        tables = tested(structure, schema, cliques, weights, self.check, self._noise)
        return self._noisy_tables(*with_details(schema, *tables))

    def _read(self, structure: Structure, release: Any) -> None:
        schema = self._schema(structure, release)
        if not isinstance(structure, DAG):
            self.reading_, self.family_weight_, self.squared_residual_ = "inference", 0.0, math.nan
            markov = fit_markov(structure, several(release), schema)
            self._set_parameters(self._fitted_factors(markov, schema), schema)
            return
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
        self._set_parameters([tabular_cpd(scope, read[scope], schema.states) for scope in scopes], schema)
