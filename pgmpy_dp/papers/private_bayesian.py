"""Posteriors of CPDs from noisy counts, and CPDs drawn from truncated posteriors, or near the most likely ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from pgmpy.base import DAG
from pgmpy.factors.continuous import LinearGaussianCPD
from pgmpy.factors.discrete import TabularCPD
from pgmpy.models import DiscreteBayesianNetwork, LinearGaussianBayesianNetwork
from pgmpy.parameter_estimator.base import GaussianParameterEstimator

from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.data.mechanisms.contrasts import FourierCoefficients
from pgmpy_dp.data.mechanisms.posterior import LikelyRows, PosteriorRows
from pgmpy_dp.data.mechanisms.regression import PosteriorRegressions
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.estimators.base import PrivateEstimator, TableEstimator, refuse_weights, require_same
from pgmpy_dp.estimators.network_estimator import PrivateNetworkEstimator
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.observed.factors import families, tabular_cpd
from pgmpy_dp.privacy import PrivacyBudget
from pgmpy_dp.privacy.checks import Constraint, checked_delta, choice, exact_positive, shown, whole_number
from pgmpy_dp.privacy.posterior import total_epsilon
from pgmpy_dp.release import PosteriorDraws, RegressionDraws, Release
from pgmpy_dp.release.coefficients import MeasuredCoefficients
from pgmpy_dp.schema import Clique, Schema


@dataclass(eq=False, repr=False)
class PriorEstimator(PrivateNetworkEstimator):
    """Base class of estimators with Dirichlet priors on the rows of the CPDs."""

    _: KW_ONLY
    prior_type: str = "BDeu"
    equivalent_sample_size: float | Mapping[Any, float] = 5
    pseudo_counts: Any = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_prior(self.prior_type, self.equivalent_sample_size, self.pseudo_counts)

    def _prior(self, structure: DAG, schema: Schema) -> dict[Clique, Vector]:
        """Return the Dirichlet parameters of every family; raises if they are invalid."""
        options = (self.prior_type, self.equivalent_sample_size, self.pseudo_counts)
        return prior_counts(families(structure), schema, *options)


@dataclass(eq=False, repr=False)
class PrivateBayesianEstimator(PriorEstimator, TableEstimator):
    """Update the prior of a Bayesian network's parameters with noisy counts.

    A drop-in replacement for pgmpy's `DiscreteBayesianEstimator`: Dirichlet priors on the rows of the CPDs are updated
    with noisy instead of true counts of the families (Zhang, Rubinstein and Dimitrakakis 2016, Algorithms 1 and 2, for
    variables with any number of states). The posterior is released: its means are the CPDs, and drawing networks from
    it has no privacy cost.

    Parameters
    ----------
    epsilon, neighbours, delta, state_names
        See :class:`~pgmpy_dp.AutoMLE`.
    prior_type : {"BDeu", "K2", "dirichlet"}
    equivalent_sample_size : float or mapping of node to float
        For "BDeu".
    pseudo_counts : float or mapping of node to array of shape (states, configurations of the parents)
        For "dirichlet". All must be positive.
    mechanism : {"auto", "laplace", "gaussian", "fourier"}
        Measurements of raw records. "laplace": a table for each family with Laplace noise of the same scale, whose
        cells are clamped between 0 and the number of records (Algorithm 1). "gaussian": the same with Gaussian noise.
        "auto": one of the two, as for other estimators. "fourier": the Fourier coefficients of all families with
        Laplace noise, so that the released counts are mutually consistent (Algorithm 2).
    increment : "least" or None
        How coefficients become non-negative counts. "least" adds the least number of records, spread evenly, that makes
        all cells non-negative and keeps the counts consistent. None sets cells below 0 to 0, which loses consistency.

    Attributes
    ----------
    parameters_ : list of TabularCPD
        Posterior means, in the order of the nodes.
    posterior_counts_ : dict of node to DataFrame
        Dirichlet parameters, with one row per state and one column per configuration of the parents.
    guarantee_, release_, state_names_
        See :class:`~pgmpy_dp.AutoMLE`.

    Notes
    -----
    Sensitivity: in Algorithm 1 a record is counted once in each of the |I| families. Adding a record changes the counts
    by |I| in L1 norm, and replacing one by 2 |I|, for any numbers of states (Lemma 1). Every cell therefore has noise
    of scale |I| / epsilon or 2 |I| / epsilon. For Algorithm 2 see `pgmpy_dp.release.contrasts`.

    The increment is often many times the number of records: consistency has a price, as the paper says. For a more
    accurate fit to a release of coefficients use `CollectiveEM`.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> records = pd.DataFrame({"smoke": ["yes", "no"] * 500, "lung": ["yes", "no", "no", "no"] * 250})
    >>> schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
    >>> network = DiscreteBayesianNetwork([("smoke", "lung")])
    >>> estimator = dp.papers.PrivateBayesianEstimator(epsilon=1.0, mechanism="fourier", state_names=schema)
    >>> _ = network.fit(records, estimator=estimator)
    >>> estimator.posterior_counts_["lung"].shape
    (2, 2)
    >>> [drawn.check_model() for drawn in estimator.sample_cpds(2, seed=1)]
    [True, True]
    """

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "mechanism": choice("auto", "laplace", "gaussian", "fourier"),
        "increment": choice("least", None),
    }

    _coefficients: ClassVar[type[FourierCoefficients]] = FourierCoefficients

    _: KW_ONLY
    increment: str | None = "least"

    def _plan(self, structure: DAG, public: Any) -> Any:
        self._prior(structure, public.schema)  # refuse an invalid prior before charging
        scopes = families(structure)
        if self.mechanism != "fourier":
            return self._noisy_tables(scopes, [1.0] * len(scopes))
        if checked_delta(self.delta, zero_allowed=True):
            raise ValueError(f"Fourier coefficients have Laplace noise, and no delta: leave out delta={self.delta!r}.")
        return self._coefficients(scopes, self._price())

    def _read(self, structure: DAG, release: Any) -> None:
        scopes, schema = families(structure), self._schema(structure, release)
        prior, counts = self._prior(structure, schema), self._counts(release, scopes)
        posterior = self._posterior = {scope: prior[scope] + counts[scope] for scope in scopes}
        self.posterior_counts_ = {scope[0]: posterior_frame(scope, posterior[scope], schema) for scope in scopes}
        means = {scope: table / table.sum(axis=0, keepdims=True) for scope, table in posterior.items()}
        self._set_parameters([tabular_cpd(scope, mean, schema.states) for scope, mean in means.items()], schema)

    def sample_cpds(self, n: int, seed: Any = None) -> list[DiscreteBayesianNetwork]:
        """Draw networks from the released posterior, at no privacy cost.

        Parameters
        ----------
        n : int
            Number of networks.
        seed : int, optional
            For reproducible draws; privacy does not depend on it.
        """
        schema = self.release_.schema
        number, generator = whole_number("n", n, 0), np.random.default_rng(seed)
        return [draw_network(self._posterior, schema, generator) for _ in range(number)]

    def _counts(self, release: Any, scopes: Sequence[Clique]) -> dict[Clique, Vector]:
        """Return non-negative counts of every family."""
        if isinstance(release, MeasuredCoefficients):
            tables = release if self.increment is None else release.to_coefficients().non_negative()
            return {scope: np.maximum(tables.table(scope), 0.0) for scope in scopes}
        return {scope: np.clip(release.marginal(scope)[0], 0.0, release.total) for scope in scopes}


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
    neighbours, state_names
        See :class:`~pgmpy_dp.AutoMLE`.
    prior_type, equivalent_sample_size, pseudo_counts
        See :class:`PrivateBayesianEstimator`.
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
    guarantee_, state_names_
        See :class:`~pgmpy_dp.AutoMLE`.

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

    _mechanism: ClassVar[type[PosteriorRows]] = PosteriorRows

    draws: int = 1
    split: bool = False

    def _plan(self, structure: DAG, public: Any) -> PosteriorRows:
        each, _ = total_epsilon(self.epsilon, self.draws, self.split)
        return self._mechanism(families(structure), self._prior(structure, public.schema), each, self.draws)

    def _budget(self) -> PrivacyBudget:
        return PrivacyBudget(total_epsilon(self.epsilon, self.draws, self.split)[1])

    def networks(self) -> list[DiscreteBayesianNetwork]:
        """Return the draws, each as a network."""
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
    neighbours, prior_type, equivalent_sample_size, pseudo_counts, state_names, epsilon
        See :class:`PosteriorSampler`.
    floor : float
        Smallest probability in a row, less than one over the number of states of any node. It is public: choose it
        before looking at the records. A smaller floor gives one record more influence, and so a smaller lam.

    Attributes
    ----------
    release_ : PosteriorDraws
        Its `power` is lam.
    guarantee_, parameters_, state_names_
        See :class:`~pgmpy_dp.AutoMLE`.

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

    _mechanism: ClassVar[type[LikelyRows]] = LikelyRows

    floor: float = 0.01

    def _plan(self, structure: DAG, public: Any) -> LikelyRows:
        epsilon = exact_positive("epsilon", self.epsilon)
        return self._mechanism(families(structure), self._prior(structure, public.schema), epsilon, floor=self.floor)


@dataclass(eq=False, repr=False)
class LinearPosteriorSampler(PrivateEstimator, GaussianParameterEstimator):  # type: ignore[misc]
    """Draw a linear Gaussian network from a truncated posterior, whose spread gives privacy without added noise.

    Every node is a Bayesian linear regression on its parents with a known standard deviation. Its coefficients have a
    Gaussian prior truncated to a ball, and one exact draw from their posterior is released (Zhang, Rubinstein and
    Dimitrakakis 2016, section 5.2 and appendix D). The cost does not decrease with the number of records. For a smaller
    epsilon the likelihood is raised to a power below 1, which makes the posterior wider.

    Parameters
    ----------
    neighbours
        See :class:`~pgmpy_dp.AutoMLE`.
    epsilon : float
        Largest cost of one draw; with `split`, of all draws together. The nodes share it equally, except that nodes
        whose untempered posterior costs less leave the rest to the others. If all cost less, only this is charged.
    bounds : mapping of variable to (low, high) or float
        Public bounds to which values are clipped; needed for raw records. A positive number R stands for (-R, R).
        Choose them without looking at the records.
    coefficient_bound : float or mapping of node to float
        Public bound on the Euclidean norm of a node's coefficients, including the intercept, for values scaled to
        [-1, 1] by their bounds. A smaller bound gives a smaller privacy loss, or a larger weight to the likelihood, but
        excludes larger coefficients.
    std : float or mapping of node to float
        Residual standard deviation in the node's own unit: public, and treated as known.
    prior_precision : float
        Precision of the zero-mean prior of the coefficients, for values scaled to [-1, 1].
    draws, split
        See :class:`PosteriorSampler`.

    Attributes
    ----------
    parameters_ : list of LinearGaussianCPD
        The draw, or the mean of the draws.
    release_ : RegressionDraws
        Its `powers` are the powers of the nodes' likelihoods.
    guarantee_
        See :class:`~pgmpy_dp.AutoMLE`.

    Notes
    -----
    `pgmpy_dp.data.mechanisms.regression` derives the sensitivity, and describes the exact sampling on a public grid and
    in exact arithmetic. Rejection sampling continues until it succeeds, since giving up would reveal information about
    the records. `fit` is refused if the sampling could take too long for the least favourable records, which is decided
    beforehand from public numbers.

    Examples
    --------
    >>> import numpy as np, pandas as pd, pgmpy_dp as dp
    >>> from pgmpy.models import LinearGaussianBayesianNetwork
    >>> age = np.tile(np.arange(20.0, 80.0), 400)
    >>> records = pd.DataFrame({"age": age, "pressure": 90.0 + 0.6 * age})
    >>> network = LinearGaussianBayesianNetwork([("age", "pressure")])
    >>> sampler = dp.papers.LinearPosteriorSampler(
    ...     epsilon=5.0,
    ...     bounds={"age": (0, 100), "pressure": (80, 180)},
    ...     coefficient_bound=2.0,
    ...     std={"age": 20.0, "pressure": 5.0},
    ... )
    >>> _ = network.fit(records, estimator=sampler)
    >>> bool(0.4 < network.get_cpds("pressure").beta[1] < 0.8)
    True
    """

    _mechanism: ClassVar[type[PosteriorRegressions]] = PosteriorRegressions

    bounds: Mapping[str, Any] | None = None
    coefficient_bound: float | Mapping[str, float] | None = None
    std: float | Mapping[str, float] | None = None
    prior_precision: float = 1.0
    draws: int = 1
    split: bool = False

    def fit(self, model: LinearGaussianBayesianNetwork, data: Any, sample_weight: None = None) -> Self:
        """Draw the CPDs of a model.

        Parameters
        ----------
        model : LinearGaussianBayesianNetwork
        data : PrivateDataset or data frame
        sample_weight : None
            Not supported.
        """
        refuse_weights(self, sample_weight)
        return self._run(model, data)

    def _structure(self, model: Any) -> list[Clique]:
        if not isinstance(model, LinearGaussianBayesianNetwork):
            raise TypeError(f"LinearPosteriorSampler fits a LinearGaussianBayesianNetwork, got {type(model).__name__}.")
        if model.latents or not model.nodes():
            raise ValueError("LinearPosteriorSampler needs a network with nodes and without latent variables.")
        return [(node, *model.get_parents(node)) for node in model.nodes()]

    def _plan(self, structure: list[Clique], public: Any) -> PosteriorRegressions:
        each, _ = total_epsilon(self.epsilon, self.draws, self.split)
        nodes = [family[0] for family in structure]
        std, bound = (_by_node(name, getattr(self, name), nodes) for name in ("std", "coefficient_bound"))
        return self._mechanism(structure, std, bound, each, self.prior_precision, self.draws)

    def _read(self, structure: list[Clique], release: RegressionDraws) -> None:
        means = release.mean()
        self.parameters_ = [_cpd(family, means[family], release.std[family[0]]) for family in structure]
        self._is_fitted = True

    def networks(self) -> list[LinearGaussianBayesianNetwork]:
        """Return the draws, each as a network."""
        results = []
        for draw in self.release_.draws:
            network = LinearGaussianBayesianNetwork()
            network.add_nodes_from([family[0] for family in draw])
            network.add_edges_from([(parent, family[0]) for family in draw for parent in family[1:]])
            network.add_cpds(*(_cpd(family, beta, self.release_.std[family[0]]) for family, beta in draw.items()))
            results.append(network)
        return results

    def _source(self, structure: list[Clique], data: Any, public: Any) -> PrivateDataset:
        nodes = [family[0] for family in structure]
        if isinstance(data, PrivateDataset):
            require_same("neighbours", self.neighbours, data.neighbours)
            if self.bounds is not None:
                own = Schema(bounds=self.bounds).bounds
                if any(own.get(node) != data.schema.bounds.get(node) for node in nodes):
                    raise SchemaError("bounds differ from those in the data's own schema: leave bounds out.")
            return data
        if self.bounds is None:
            raise SchemaError(
                "Bounds must be declared, not read off private records: give bounds={variable: (low, high)}."
            )
        schema = Schema(bounds=self.bounds)
        for node in nodes:
            if node not in schema.bounds:
                raise SchemaError(f"Variable {node!r} has no bounds: give bounds={{{node!r}: (low, high)}}.")
        chosen = Schema(bounds={node: schema.bounds[node] for node in nodes})
        return PrivateDataset(data, chosen, self._budget(), neighbours=self.neighbours or "add_remove")

    def _budget(self) -> PrivacyBudget:
        return PrivacyBudget(total_epsilon(self.epsilon, self.draws, self.split)[1])


PRIORS = ("BDeu", "K2", "dirichlet")


def check_prior(prior_type: Any, equivalent_sample_size: Any, pseudo_counts: Any) -> None:
    """Check the parameters of a prior before the budget is charged; shapes are checked once the states are known."""
    if not isinstance(prior_type, str) or prior_type.lower() not in [name.lower() for name in PRIORS]:
        raise ValueError(f"prior_type is {prior_type!r}; choose one of {', '.join(PRIORS)}.")
    if prior_type.lower() == "dirichlet":
        if pseudo_counts is None:
            raise ValueError('prior_type="dirichlet" needs pseudo_counts: a number, or a table for each node.')
    elif pseudo_counts is not None:
        raise ValueError(f'pseudo_counts go with prior_type="dirichlet", not {prior_type!r}.')


def prior_counts(
    scopes: Sequence[Clique], schema: Schema, prior_type: str, equivalent_sample_size: Any, pseudo_counts: Any
) -> dict[Clique, Vector]:
    """Compute the Dirichlet parameters of every family, as in pgmpy's `DiscreteBayesianEstimator`."""
    results = {}
    for scope in scopes:
        node, shape = scope[0], schema.shape(scope)
        flat: tuple[int, int] = (shape[0], math.prod(shape[1:]))
        if prior_type.lower() == "k2":
            counts: Any = 1.0
        elif prior_type.lower() == "bdeu":
            counts = _of_node(equivalent_sample_size, node, "equivalent_sample_size")
            if not isinstance(counts, Real):
                raise ValueError(f"equivalent_sample_size of {node!r} must be a number, got {shown(counts)}.")
            counts = float(counts) / math.prod(shape)
        else:
            counts = _of_node(pseudo_counts, node, "pseudo_counts")
        try:
            table = np.asarray(counts, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"The pseudo_counts of {node!r} must be numbers.") from None
        if table.shape not in ((), flat):
            raise ValueError(f"The pseudo_counts of {node!r} must be of shape {flat}, got {table.shape}.")
        if not (np.isfinite(table).all() and (table > 0).all()):
            raise ValueError(
                f"The prior counts of {node!r} must be positive and finite: Dirichlet priors have no zeros."
            )
        results[scope] = np.broadcast_to(table, flat).reshape(shape).copy()
    return results


def _of_node(values: Any, node: str, name: str) -> Any:
    if not isinstance(values, Mapping):
        return values
    if node not in values:
        raise ValueError(f"{name} has no entry for {node!r}: give one for every node.")
    return values[node]


def posterior_frame(scope: Clique, counts: Vector, schema: Schema) -> pd.DataFrame:
    """Return Dirichlet parameters as a frame, with a row per state and a column per configuration of the parents."""
    node, *parents = scope
    index = pd.Index(list(schema.states[node]), name=node)
    values = counts.reshape(counts.shape[0], -1)
    if not parents:
        return pd.DataFrame(values, index=index, columns=[node])
    columns = pd.MultiIndex.from_product([list(schema.states[parent]) for parent in parents], names=parents)
    return pd.DataFrame(values, index=index, columns=columns)


def draw_network(
    counts: Mapping[Clique, Vector], schema: Schema, generator: np.random.Generator
) -> DiscreteBayesianNetwork:
    """Draw the rows of a network from Dirichlet distributions, independently."""
    cpds = []
    for scope, table in counts.items():
        # In logarithms, since gamma variables of small shape underflow, which would give rows of zeros.
        logs = np.log(generator.gamma(table + 1.0)) + np.log(generator.random(table.shape)) / table
        rows = np.exp(logs - logs.max(axis=0, keepdims=True))
        cpds.append(tabular_cpd(scope, rows / rows.sum(axis=0, keepdims=True), schema.states))
    return network_of(cpds)


def network_of(cpds: Sequence[TabularCPD]) -> DiscreteBayesianNetwork:
    """Make the Bayesian network of some CPDs."""
    network = DiscreteBayesianNetwork()
    network.add_nodes_from([cpd.variable for cpd in cpds])
    network.add_edges_from([(parent, cpd.variable) for cpd in cpds for parent in cpd.variables[1:]])
    network.add_cpds(*cpds)
    return network


def _by_node(name: str, given: Any, nodes: list[str]) -> Mapping[str, Any]:
    if given is None:
        raise ValueError(f"{name} is missing: give a positive number, or one for every node.")
    return given if isinstance(given, Mapping) else dict.fromkeys(nodes, given)


def _cpd(family: tuple[str, ...], beta: Any, std: float) -> LinearGaussianCPD:
    return LinearGaussianCPD(family[0], beta.tolist(), std, list(family[1:]))
