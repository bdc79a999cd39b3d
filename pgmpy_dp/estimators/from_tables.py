"""Estimators of networks from noisy tables: family by family, by one distribution behind all, or as either fits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from pgmpy.base import DAG
from pgmpy.models import DiscreteMarkovNetwork

from pgmpy_dp.estimators.base import joined
from pgmpy_dp.estimators.network_estimator import NetworkTableEstimator, Structure
from pgmpy_dp.fitting.plans.allocation import (
    Allocation,
    DataDependentAllocation,
    Plan,
    PlannedAllocation,
    allocation_features,
    allocation_frame,
    first_plan,
    resolve_allocation,
    second_plan,
)
from pgmpy_dp.fitting.plans.pairs import with_details
from pgmpy_dp.fitting.plans.planning import plan_tables, tested
from pgmpy_dp.fitting.readings.directed import (
    ITERATIONS,
    fit_releases,
    read_joint,
    read_pairs,
    require_exact,
)
from pgmpy_dp.fitting.readings.posterior_networks import draw_networks, warn_of_slow_mixing
from pgmpy_dp.fitting.readings.undirected import Tying, fit_markov, maximise_likelihood
from pgmpy_dp.inference import JunctionTree, TreeTooLargeError
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.inference.trees.factor_graph import INFERENCE
from pgmpy_dp.observed.consistency import WEIGHTS, intersections
from pgmpy_dp.observed.factors import conditional, families, tabular_cpd
from pgmpy_dp.observed.informed_marginals import ReleasedTables, require_tables
from pgmpy_dp.observed.observed import affordable
from pgmpy_dp.privacy.checks import Constraint, choice, exact_positive, optional, whole
from pgmpy_dp.privacy.subsampling import sampling_fraction
from pgmpy_dp.release import NoisyMarginals
from pgmpy_dp.release.kinds import several
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
        The measured tables and their shares of the budget: see `SizeAllocation`, `UniformAllocation`,
        `PlannedAllocation` and `DataDependentAllocation`. Unless planned, each family that is not contained in another
        has its own table.
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
    states of the child: one pseudo-record per row (Perks 1947), which keeps cells that noise hides positive. The
    objective is concave and solved exactly. N is public or estimated from the release.

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

    def _tables(self, structure: DAG, schema: Schema) -> Plan:
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

    def _plan(self, structure: DAG, public: Any) -> Any:
        if isinstance(resolve_allocation(self.allocation, self.tables), DataDependentAllocation):
            raise ValueError(
                "A data-dependent allocation decides the noise from a first release: it has no plan before that. "
                'Plan allocation="size" for comparison.'
            )
        return super()._plan(structure, public)

    def _measure(self, structure: DAG, source: Any, public: Any) -> Any:
        allocation = resolve_allocation(self.allocation, self.tables)
        if not isinstance(allocation, DataDependentAllocation):
            return super()._measure(structure, source, public)
        # Stage I costs its share, by amplification through sampling. Stage II, which is chosen from stage I's release
        # alone, costs the rest: together they cost epsilon by adaptive composition. The noise scales of stage II reveal
        # information on stage I, so the guarantee of its release covers both.
        schema, scopes = source.schema, families(structure)
        cliques, weights = self._tables(structure, schema)
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

    def _read_network(self, structure: DAG, release: Any) -> None:
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


@dataclass(eq=False, repr=False)
class AutoMLE(NetworkTableEstimator):
    """Default estimator: by inference, with sparse rows, if the release agrees with the network, else as `PrivateMLE`.

    Markov networks are fitted as by `CollectiveEM`; the rest is about Bayesian networks.

    `CollectiveEM` fits one distribution to all noisy tables, which is best if the network is correct. If edges are
    missing, each family's own table, as in `PrivateMLE`, is the better source. The residuals of the network show
    whether this is so, at no cost. By inference, rows are at their posterior means, not most likely, which shrinks
    cells that noise hides (`pgmpy_dp.fitting.readings.directed`): near `PosteriorMean`, in a hundredth of its time.

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
    are averaged, with weight ``squared_residual_ - 1`` for the family's. A correct network has a residual below 1,
    since its parameters absorb a part of the noise. If no junction tree fits in memory, CPDs are estimated by family:
    in tests, the error of loopy belief propagation could be over ten times as large.

    A node with more than 100 states is measured alone, with 30 % of the privacy loss for all such nodes. With
    others it is measured in groups of its states, if noise would drown these or it has more than 500: they follow from
    its own noisy table, or are those of the coarser variable of a declared `Hierarchy`. Given its group, a state is
    taken to be independent of other nodes, which bounds assume.

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

    def _tables(self, structure: Structure, schema: Schema) -> Plan:
        if isinstance(structure, Tying):
            return structure.plan(schema)
        if not isinstance(structure, DAG):
            return with_details(schema, *plan_tables(structure, schema, self.check, self._noise))
        cliques, weights = first_plan(structure, schema, PlannedAllocation(), "joint", self._noise)
        intersections(cliques)
        return with_details(schema, *tested(structure, schema, cliques, weights, self.check, self._noise))

    def _read_network(self, structure: Structure, release: Any) -> None:
        schema = self._schema(structure, release)
        if not isinstance(structure, DAG):
            self.reading_, self.family_weight_, self.squared_residual_ = "inference", 0.0, math.nan
            markov, engine, own = fit_markov(structure, several(release), schema)
            self._warn_unless(markov.finished)
            self._set_parameters(self._factors(engine, markov.potentials, schema, own), schema)
            return
        tables, scopes = require_tables(release, NOT_TABLES), families(structure)
        read = dict(zip(scopes, read_joint(tables, scopes, "inverse_variance"), strict=True))
        self.squared_residual_, self.family_weight_ = math.nan, 1.0
        with suppress(TreeTooLargeError):
            fit = fit_releases([tables], scopes, ITERATIONS, "junction_tree")
            self.squared_residual_ = fit.squared_residual
            self.family_weight_ = weight = min(max(fit.squared_residual - 1.0, 0.0), 1.0)
            if weight < 1.0:
                shrunk = fit.shrunk()
                read = {scope: (1.0 - weight) * shrunk[scope] + weight * read[scope] for scope in scopes}
        self.reading_ = {0.0: "inference", 1.0: "family"}.get(self.family_weight_, "both")
        self.allocation_ = allocation_frame(structure, tables, "joint", None)
        self._set_parameters([tabular_cpd(scope, read[scope], schema.states) for scope in scopes], schema)


@dataclass(eq=False, repr=False)
class CollectiveEM(NetworkTableEstimator):
    """Fit of one distribution, of a Bayesian or Markov network, to all noisy tables and coefficients.

    `PrivateMLE` estimates each family from its own table. Here every measured table or Fourier coefficient, of any
    clique, informs every family, as a noisy observation of marginals of one distribution. The estimator finds the
    network whose marginals best explain all observations under the likelihood of the noise, with a prior that prevents
    over-fitting and needs no tuning. It is derived from EM in collective graphical models (Bernstein et al. 2017),
    where the maximum over noiseless counts, run to convergence, fits the noise.

    Parameters
    ----------
    epsilon, neighbours, delta, state_names, mechanism, check
        See :class:`~pgmpy_dp.AutoMLE`.
    inference : {"auto", "junction_tree", "loopy"}
        "auto" uses a junction tree if its tables fit in memory, otherwise loopy belief propagation, with a warning: it
        is approximate, and so is the partition function 1 of a fitted Markov network. "loopy" measures no pairs beside
        the network's tables, whatever `check` is: they would close loops.
    max_iter : int
        Maximum number of iterations of the last round of optimisation; a warning is issued if they do not suffice.
    prior_scale : float, optional
        Scale of the prior on the log-potentials of a Markov network; by default it is estimated from the release.

    Attributes
    ----------
    release_ : NoisyMarginals, or tuple of releases
        Several if their noise is of several kinds.
    objective_ : float
        Value of the objective, in nats, up to a constant.
    prior_scale_ : float
        For Markov networks, the scale of the prior.
    guarantee_, parameters_, state_names_
        See :class:`~pgmpy_dp.AutoMLE`.

    Notes
    -----
    On a Bayesian network it improves on `PrivateMLE` if the noise is strong or tables overlap. If the noise is weak and
    the records contradict the network's independences, CPDs estimated table by table can be closer to the truth.

    The likelihood is that of Gaussian or Laplace noise, by release. For Laplace noise of scale b and a Markov network,
    |y - n| / b is smoothed within .6 b of zero; for a Bayesian network it is averaged over the uncertainty of n due to
    sampling and noise.

    See `pgmpy_dp.fitting.readings.directed.fit_directed` and `pgmpy_dp.fitting.readings.undirected.fit_undirected`, and
    :func:`~pgmpy_dp.plan_measurements` for what is measured.

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

    _tags: ClassVar[dict[str, Any]] = {"supported_model_types": (DAG, DiscreteMarkovNetwork)}

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "inference": choice(*INFERENCE),
        "max_iter": whole(1),
        "prior_scale": optional(exact_positive),
    }

    _informable: ClassVar[bool] = True
    _ties: ClassVar[bool] = True

    inference: str = "auto"
    max_iter: int = ITERATIONS
    prior_scale: float | None = None

    def _source(self, structure: Structure, data: Any, public: Any) -> Any:
        return self._several(structure, joined(data), public)

    def _tables(self, structure: Structure, schema: Schema) -> Plan:
        if isinstance(structure, Tying):
            return structure.plan(schema)
        check = 0.0 if self.inference == "loopy" else self.check  # the other pairs would close loops
        cliques, weights = plan_tables(structure, schema, check, self._noise)
        if self.inference == "junction_tree" and not isinstance(structure, DiscreteMarkovNetwork):
            scopes = families(structure)
            require_exact(schema, [*scopes, *affordable(schema.cardinalities(), scopes, cliques)])
        return with_details(schema, cliques, weights)

    def _read_network(self, structure: Structure, release: Any) -> None:
        schema, releases = self._schema(structure, release), several(release)
        if isinstance(structure, DAG):
            scopes = families(structure)
            fit = fit_releases(releases, scopes, self.max_iter, self.inference)
            self._warn_unless(fit.finished)
            self.objective_ = fit.objective
            parameters: list[Any] = [tabular_cpd(scope, fit.tables[scope], schema.states) for scope in scopes]
        else:
            options = self.max_iter, self.prior_scale, self.inference
            markov, engine, own = fit_markov(structure, releases, schema, *options)
            self.objective_, self.prior_scale_ = markov.objective, markov.prior_scale
            self._warn_unless(markov.finished)
            parameters = self._factors(engine, markov.potentials, schema, own)
        self._set_parameters(parameters, schema)


_REGULARIZATION = 1e-9


@dataclass(eq=False, repr=False)
class PosteriorMean(NetworkTableEstimator):
    """Network with the least expected divergence from the truth, given one or several releases.

    Networks are drawn from the posterior (`pgmpy_dp.fitting.readings.posterior_networks`), and a network is fitted to
    the mean of their marginals. Of all networks of this structure, it has the least mean KL divergence from the draws.
    It takes seconds, or tens of them with large junction trees, and is closer to the truth than `PrivateMLE` if the
    noise is strong.

    Parameters
    ----------
    epsilon, neighbours, delta, state_names, mechanism, check
        See :class:`~pgmpy_dp.AutoMLE`.
    draws : int
        Number of networks to draw. The mean is of more if errors of the means would add 1 % or more to the expected
        divergence. Rows with next to no records may stay uncertain: compare two numbers of draws.

    Attributes
    ----------
    posterior_ : PosteriorNetworks
        The draws, from which a `PrivateBayesianNetwork` or `PrivateMarkovNetwork` computes its bounds.
    release_ : NoisyMarginals, NoisyCoefficients or tuple of them
    guarantee_, parameters_, state_names_
        See :class:`~pgmpy_dp.AutoMLE`.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> records = pd.DataFrame({"smoke": ["yes", "no"] * 500, "lung": ["yes", "no", "no", "no"] * 250})
    >>> schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
    >>> data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(2.0))
    >>> first, second = (data.measure([("smoke", "lung")], epsilon=1.0) for _ in range(2))
    >>> network = dp.PrivateBayesianNetwork([("smoke", "lung")])
    >>> network = network.fit([first, second], estimator=dp.PosteriorMean())
    >>> bool(0.4 < network.get_cpds("lung").get_value(lung="yes", smoke="yes") < 0.6)
    True
    >>> network.guarantee_.epsilon
    2.0
    """

    _tags: ClassVar[dict[str, Any]] = {"supported_model_types": (DAG, DiscreteMarkovNetwork)}
    _informable: ClassVar[bool] = True

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "draws": whole(20),
    }

    draws: int = 200

    def _source(self, structure: Any, data: Any, public: Any) -> Any:
        return self._several(structure, data, public)

    def _tables(self, structure: Any, schema: Schema) -> Plan:
        cliques, weights = plan_tables(structure, schema, self.check, self._noise)
        undirected = isinstance(structure, DiscreteMarkovNetwork)
        require_exact(schema, [*([] if undirected else families(structure)), *cliques])
        return with_details(schema, cliques, weights)

    def _read_network(self, structure: Any, release: Any) -> None:
        self.posterior_ = draw_networks(structure, several(release), self.draws, mean=True)
        if self.posterior_.poor:
            warn_of_slow_mixing(self.posterior_.poor, self.draws, f"{type(self).__name__}(draws={{}})")
        schema, layout, mean = self.posterior_.schema, self.posterior_.layout, self.posterior_.mean
        if isinstance(structure, DiscreteMarkovNetwork):
            tree = JunctionTree.build(layout.cardinalities, layout.scopes)
            potentials, _ = maximise_likelihood(tree, mean, _REGULARIZATION, 2000, 1e-8)
            parameters: list[Any] = self._factors(tree, potentials, schema)
        else:
            tables = layout.tables(mean).items()
            parameters = [tabular_cpd(scope, conditional(table), schema.states) for scope, table in tables]
        self._set_parameters(parameters, schema)
