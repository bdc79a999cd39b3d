"""CPDs are drawn from a truncated posterior, or near the most likely ones by the exponential mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from pgmpy.base import DAG
from pgmpy.models import DiscreteBayesianNetwork
from pgmpy.parameter_estimator.base import DiscreteParameterEstimator

from pgmpy_dp.data.mechanisms.posterior import LikelyRows, PosteriorRows
from pgmpy_dp.estimators.parameters import Parameters, check_parameters, refuse_weights
from pgmpy_dp.estimators.results import finish
from pgmpy_dp.estimators.steps import dataset_of
from pgmpy_dp.fitting.readings.dirichlet import check_prior, network_of, prior_counts
from pgmpy_dp.observed.factors import bayesian_network, families, tabular_cpd
from pgmpy_dp.observed.rule_tables import require_held
from pgmpy_dp.privacy.checks import exact_positive
from pgmpy_dp.privacy.posterior import total_epsilon
from pgmpy_dp.release import Release
from pgmpy_dp.schema import Schema


@dataclass(eq=False, repr=False)
class PosteriorSampler(Parameters, DiscreteParameterEstimator):
    """Networks are drawn from the posterior itself: no noise is added, the posterior's own spread is the privacy.

    The Dirichlet posterior of every row is truncated to probabilities of at least w, found from epsilon, and sampled
    (Zhang, Rubinstein and Dimitrakakis 2016, section 4, for variables of any number of states). For small epsilon w is
    close to one over the number of states and a draw says little; where epsilon is large beside the number of nodes it
    is close to the exact posterior.

    Parameters
    ----------
    epsilon : float
        What one draw costs; with `split`, what all draws cost together.
    draws : int
        Every draw is a release of its own: k of them cost k epsilon.
    split : bool
        Share epsilon among the draws, each of which is truncated accordingly.
    prior_type, equivalent_sample_size, pseudo_counts
        As `PrivateBayesianEstimator`.
    state_names : mapping of variable to states, or Schema
        Declared states; needed for raw records.
    neighbours : {"add_remove", "replace_one"}, optional
        For raw records; "add_remove" by default. A `PrivateDataset` has its own.

    Attributes
    ----------
    parameters_ : list of TabularCPD
        The draw, or the mean of the draws.
    release_ : PosteriorDraws
    state_names_, guarantee_

    Notes
    -----
    The sensitivity argument is in `pgmpy_dp.privacy.posterior`, that of the exact sampling in
    `pgmpy_dp.data.simplex`: probabilities lie on a public grid, 8192 points for two states and 2048 for each split
    of more, whose steps are small where probabilities are.

    Averaging many draws of one fit, as experiments with posterior sampling do, averages many releases; the paper counts
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

    _tags = {"supports_latent_variables": False, "supports_weighted_data": False}  # noqa: RUF012
    _mechanism: ClassVar[type[PosteriorRows]] = PosteriorRows

    epsilon: float
    draws: int = 1
    split: bool = False
    prior_type: str = "BDeu"
    equivalent_sample_size: float | Mapping[Any, float] = 5
    pseudo_counts: Any = None
    state_names: Mapping[str, Any] | Schema | None = None
    neighbours: str | None = None

    def fit(self, model: DAG, data: Any, sample_weight: None = None) -> PosteriorSampler:
        """Draw CPDs for a model.

        Parameters
        ----------
        model : pgmpy DAG, DiscreteBayesianNetwork or NaiveBayes
        data : PrivateDataset or data frame
        sample_weight : None
            Not supported.

        Returns
        -------
        PosteriorSampler

        Raises
        ------
        SchemaError
            If states are not declared, or the records do not agree with them.
        BudgetExceededError
            If the data set's ledger has less left than the draws cost; nothing is charged.
        ValueError
            If an argument is out of range, or epsilon too small.
        """
        check_parameters(self)
        each, all_of_them = total_epsilon(self.epsilon, self.draws, self.split)
        _fit(self, model, data, sample_weight, all_of_them, each, self.draws)
        return self

    def networks(self) -> list[DiscreteBayesianNetwork]:
        """Return the draws, each as a network."""
        if not hasattr(self, "release_"):
            raise ValueError("The estimator is not fitted yet: call fit first.")
        states = self.release_.schema.states
        return [
            network_of([tabular_cpd(scope, rows, states) for scope, rows in draw.items()])
            for draw in self.release_.draws
        ]


@dataclass(eq=False, repr=False)
class ExponentialMAP(Parameters, DiscreteParameterEstimator):
    """CPDs are drawn close to the most likely ones, by the exponential mechanism.

    Rows are drawn with density proportional to prior(theta) exp(lam log p(records | theta)) over rows whose
    probabilities are at least `floor`: the mechanism's score is the log-likelihood, its base measure the prior (Zhang,
    Rubinstein and Dimitrakakis 2016, Algorithm 3). For Dirichlet priors that is a tempered, truncated posterior, drawn
    exactly. With lam above 1 it concentrates about the maximum.

    Parameters
    ----------
    epsilon : float
    floor : float
        Smallest probability of a row, less than one over the number of states of any node. Public: choose it before
        looking at the records. The smaller it is, the more one record may matter, and the smaller lam.
    prior_type, equivalent_sample_size, pseudo_counts, state_names, neighbours
        As `PosteriorSampler`.

    Attributes
    ----------
    parameters_ : list of TabularCPD
    release_ : PosteriorDraws
        Its `power` is lam.
    state_names_, guarantee_

    Notes
    -----
    Its likelihood is within 2 t of the best but with probability exp(-lam t) / prior(likelihood within t): see
    `pgmpy_dp.evaluation.exponential_map_failure`.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> records = pd.DataFrame({"smoke": ["yes", "no"] * 500, "lung": ["yes", "no", "no", "no"] * 250})
    >>> schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
    >>> network = DiscreteBayesianNetwork([("smoke", "lung")])
    >>> _ = network.fit(records, estimator=dp.papers.ExponentialMAP(epsilon=10.0, state_names=schema))
    >>> bool(0.4 < network.get_cpds("lung").get_value(lung="yes", smoke="yes") < 0.6)
    True
    """

    _tags = {"supports_latent_variables": False, "supports_weighted_data": False}  # noqa: RUF012
    _mechanism: ClassVar[type[LikelyRows]] = LikelyRows

    epsilon: float
    floor: float = 0.01
    prior_type: str = "BDeu"
    equivalent_sample_size: float | Mapping[Any, float] = 5
    pseudo_counts: Any = None
    state_names: Mapping[str, Any] | Schema | None = None
    neighbours: str | None = None

    def fit(self, model: DAG, data: Any, sample_weight: None = None) -> ExponentialMAP:
        """Draw CPDs for a model; arguments and errors as `PosteriorSampler.fit`."""
        check_parameters(self)
        epsilon = exact_positive("epsilon", self.epsilon)
        _fit(self, model, data, sample_weight, epsilon, epsilon, self.floor)
        return self


def _fit(estimator: Any, model: DAG, data: Any, sample_weight: Any, total: Fraction, *public: Any) -> None:
    """Do what both do, for a total epsilon: find the prior, draw by the mechanism of these parameters, make CPDs."""
    name = type(estimator).__name__
    network = bayesian_network(model, name)
    refuse_weights(name, sample_weight)
    prior = (estimator.prior_type, estimator.equivalent_sample_size, estimator.pseudo_counts)
    check_prior(*prior)
    nodes, scopes = list(network.nodes()), families(network)
    if isinstance(data, Release):
        raise ValueError(f"{name} draws from the posterior of records, not of a release: use PrivateBayesianEstimator.")
    dataset = dataset_of(data, nodes, total, 0.0, estimator.neighbours, estimator.state_names)
    require_held(network, dataset.schema)
    release = dataset.release(estimator._mechanism(scopes, prior_counts(scopes, dataset.schema, *prior), *public))
    means = release.mean()
    cpds = [tabular_cpd(scope, means[scope], dataset.schema.states) for scope in scopes]
    finish(estimator, cpds, release, dataset.schema.select(nodes))
