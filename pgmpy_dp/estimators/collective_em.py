"""`CollectiveEM` fits one distribution to all noisy tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pgmpy.base import DAG
from pgmpy.models import DiscreteMarkovNetwork

from pgmpy_dp.data.mechanisms.tables import CountedTables
from pgmpy_dp.estimators.base import joined
from pgmpy_dp.estimators.network_estimator import NetworkTableEstimator, Structure
from pgmpy_dp.fitting.plans.pairs import with_details
from pgmpy_dp.fitting.plans.planning import plan_tables
from pgmpy_dp.fitting.readings.directed import ITERATIONS, fit_releases, require_exact
from pgmpy_dp.fitting.readings.undirected import Tying, fit_markov
from pgmpy_dp.inference.trees.factor_graph import INFERENCE
from pgmpy_dp.observed.factors import families, tabular_cpd
from pgmpy_dp.observed.observed import affordable
from pgmpy_dp.privacy.checks import Constraint, choice, exact_positive, optional, whole
from pgmpy_dp.release.kinds import several


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

    The likelihood is that of Gaussian or Laplace noise. For Laplace noise of scale b and a Markov network, |y - n| / b
    is smoothed within .6 b of zero, so that it has a curvature for quasi-Newton steps; for a Bayesian network it is
    averaged over the uncertainty of n due to sampling and noise. Releases with different kinds of noise each have their
    own likelihood.

    Bayesian networks: see `pgmpy_dp.fitting.readings.directed.fit_directed`. Markov networks: see
    `pgmpy_dp.fitting.readings.undirected.fit_undirected`. Given records, the measured tables are the edges and isolated
    nodes of a Markov network, or the families of a Bayesian network, merged where that lowers the total noise
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

    def _plan(self, structure: Structure, public: Any) -> CountedTables:
        schema = public.schema
        if isinstance(structure, Tying):
            return self._noisy_tables(*structure.plan(schema))
        check = 0.0 if self.inference == "loopy" else self.check  # the other pairs would close loops
        cliques, weights = plan_tables(structure, schema, check, self._noise)
        if self.inference == "junction_tree" and not isinstance(structure, DiscreteMarkovNetwork):
            scopes = families(structure)
            require_exact(schema, [*scopes, *affordable(schema.cardinalities(), scopes, cliques)])
        return self._noisy_tables(*with_details(schema, cliques, weights))

    def _read(self, structure: Structure, release: Any) -> None:
        schema, releases = self._schema(structure, release), several(release)
        if isinstance(structure, DAG):
            scopes = families(structure)
            fit = fit_releases(releases, scopes, self.max_iter, self.inference)
            self._warn_unless(fit.finished)
            self.objective_ = fit.objective
            parameters: list[Any] = [tabular_cpd(scope, fit.tables[scope], schema.states) for scope in scopes]
        else:
            markov = fit_markov(structure, releases, schema, self.max_iter, self.prior_scale, self.inference)
            self.objective_, self.prior_scale_ = markov.fit.objective, markov.fit.prior_scale
            parameters = self._fitted_factors(markov, schema)
        self._set_parameters(parameters, schema)
