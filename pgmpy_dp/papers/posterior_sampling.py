"""CPDs drawn from a truncated posterior, or near the most likely ones by the exponential mechanism."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from pgmpy.base import DAG
from pgmpy.models import DiscreteBayesianNetwork

from pgmpy_dp.data.mechanisms.posterior import LikelyRows, PosteriorRows
from pgmpy_dp.estimators.base import PrivateEstimator, require_fitted
from pgmpy_dp.observed.factors import families, tabular_cpd
from pgmpy_dp.papers.private_bayesian import PriorEstimator, network_of
from pgmpy_dp.privacy import PrivacyBudget
from pgmpy_dp.privacy.checks import exact_positive
from pgmpy_dp.privacy.posterior import total_epsilon
from pgmpy_dp.release import PosteriorDraws, Release
from pgmpy_dp.schema import Schema


@dataclass(eq=False, repr=False)
class _DrawnRows(PriorEstimator, PrivateEstimator):
    """Base of both estimators, with the mean of the draws as CPDs."""

    _: KW_ONLY
    state_names: Mapping[str, Any] | Schema | None = None

    def _check_release(self, release: Release, variables: Sequence[str]) -> None:
        raise ValueError(
            f"{type(self).__name__} draws from the posterior of records, not of a release: use "
            "PrivateBayesianEstimator."
        )

    def _read(self, structure: DAG, release: PosteriorDraws) -> None:
        means, schema = release.mean(), self._schema(structure, release)
        self._set_parameters([tabular_cpd(scope, means[scope], schema.states) for scope in families(structure)], schema)


@dataclass(eq=False, repr=False)
class PosteriorSampler(_DrawnRows):
    """Draw networks from a truncated posterior, whose spread gives privacy without added noise.

    The Dirichlet posterior of every CPD row is truncated to probabilities of at least w, which depends on epsilon, and
    sampled (Zhang, Rubinstein and Dimitrakakis 2016, section 4, for variables with any number of states). For small
    epsilon, w is close to one over the number of states and a draw carries little information. If epsilon is large
    relative to the number of nodes, the truncated posterior is close to the exact one.

    Parameters
    ----------
    neighbours : {"add_remove", "replace_one"}, optional
        For raw records; "add_remove" by default. A private data set has its own.
    prior_type : {"BDeu", "K2", "dirichlet"}
    equivalent_sample_size : float or mapping of node to float
        For "BDeu".
    pseudo_counts : float or mapping of node to array of shape (states, configurations of the parents)
        For "dirichlet". All must be positive.
    state_names : mapping of variable to states, or Schema
        Declared states; needed for raw records.
    epsilon : float
        Cost of one draw; with `split`, of all draws together.
    draws : int
        Number of draws. Each is a release of its own, so k draws cost k epsilon.
    split : bool
        Divide epsilon among the draws, each of which is truncated accordingly.

    Attributes
    ----------
    parameters_ : list of TabularCPD
        The draw, or the mean of the draws.
    release_ : PosteriorDraws
    guarantee_ : Guarantee
        The guarantee for the records behind the fit.
    state_names_ : dict of variable to list

    Notes
    -----
    `pgmpy_dp.privacy.posterior` derives the sensitivity, and `pgmpy_dp.data.mechanisms.posterior` describes the exact
    sampling. Probabilities lie on a public grid of 8192 points for two states, and of 2048 for each split of more
    states. Its steps are smaller for smaller probabilities.

    Experiments with posterior sampling often average many draws of one fit. These are many releases; the paper counts
    one.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> records = pd.DataFrame({"smoke": ["yes", "no"] * 500, "lung": ["yes", "no", "no", "no"] * 250})
    >>> schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
    >>> network = DiscreteBayesianNetwork([("smoke", "lung")])
    >>> _ = network.fit(records, estimator=dp.papers.PosteriorSampler(epsilon=10.0, state_names=schema))
    >>> bool(0.4 < network.get_cpds("lung").get_value(lung="yes", smoke="yes") < 0.6)
    True
    """

    draws: int = 1
    split: bool = False

    def _plan(self, structure: DAG, public: Any) -> PosteriorRows:
        each, _ = total_epsilon(self.epsilon, self.draws, self.split)
        return PosteriorRows(families(structure), self._prior(structure, public.schema), each, self.draws)

    def _budget(self) -> PrivacyBudget:
        return PrivacyBudget(total_epsilon(self.epsilon, self.draws, self.split)[1])

    def networks(self) -> list[DiscreteBayesianNetwork]:
        """Return the draws, each as a network."""
        require_fitted(self)
        states = self.release_.schema.states
        return [
            network_of([tabular_cpd(scope, rows, states) for scope, rows in draw.items()])
            for draw in self.release_.draws
        ]


@dataclass(eq=False, repr=False)
class ExponentialMAP(_DrawnRows):
    """Draw CPDs near the most likely ones by the exponential mechanism.

    The density of the rows is proportional to prior(theta) exp(lam log p(records | theta)), restricted to rows whose
    probabilities are at least `floor`. The mechanism's score is the log-likelihood, and its base measure is the prior
    (Zhang, Rubinstein and Dimitrakakis 2016, Algorithm 3). For Dirichlet priors this is a tempered, truncated
    posterior, which is sampled exactly. With lam above 1 it concentrates near the maximum.

    Parameters
    ----------
    neighbours : {"add_remove", "replace_one"}, optional
        For raw records; "add_remove" by default. A private data set has its own.
    prior_type : {"BDeu", "K2", "dirichlet"}
    equivalent_sample_size : float or mapping of node to float
        For "BDeu".
    pseudo_counts : float or mapping of node to array of shape (states, configurations of the parents)
        For "dirichlet". All must be positive.
    state_names : mapping of variable to states, or Schema
        Declared states; needed for raw records.
    epsilon : float
    floor : float
        Smallest probability in a row, less than one over the number of states of any node. It is public: choose it
        before looking at the records. A smaller floor gives one record more influence, and so a smaller lam.

    Attributes
    ----------
    release_ : PosteriorDraws
        Its `power` is lam.
    guarantee_ : Guarantee
        The guarantee for the records behind the fit.
    parameters_ : list of TabularCPD or DiscreteFactor
        CPDs in the order of the model's nodes, or factors with partition function 1.
    state_names_ : dict of variable to list

    Notes
    -----
    The log-likelihood of the draw is within 2 t nats of the largest, except with a probability of at most
    exp(-lam t) / prior(log-likelihood within t of the largest): see `pgmpy_dp.papers.exponential_map_failure`.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> records, schema = pd.DataFrame({"smoke": ["yes", "no"] * 500}), dp.Schema({"smoke": ["yes", "no"]})
    >>> network = dp.PrivateBayesianNetwork()
    >>> network.add_node("smoke")
    >>> _ = network.fit(records, estimator=dp.papers.ExponentialMAP(epsilon=10.0, state_names=schema))
    >>> bool(0.4 < network.get_cpds("smoke").get_value(smoke="yes") < 0.6)
    True
    """

    floor: float = 0.01

    def _plan(self, structure: DAG, public: Any) -> LikelyRows:
        epsilon = exact_positive("epsilon", self.epsilon)
        return LikelyRows(families(structure), self._prior(structure, public.schema), epsilon, self.floor)
