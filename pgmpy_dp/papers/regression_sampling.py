"""Linear Gaussian networks drawn from a truncated posterior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from pgmpy.factors.continuous import LinearGaussianCPD
from pgmpy.models import LinearGaussianBayesianNetwork
from pgmpy.parameter_estimator.base import GaussianParameterEstimator

from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.data.mechanisms.regression import PosteriorRegressions
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.estimators.base import PrivateEstimator, refuse_weights, require_fitted, require_same
from pgmpy_dp.privacy import PrivacyBudget
from pgmpy_dp.privacy.posterior import total_epsilon
from pgmpy_dp.release import RegressionDraws
from pgmpy_dp.schema import Clique, Schema


@dataclass(eq=False, repr=False)
class LinearPosteriorSampler(PrivateEstimator, GaussianParameterEstimator):  # type: ignore[misc]
    """Draw a linear Gaussian network from a truncated posterior, whose spread gives privacy without added noise.

    Every node is a Bayesian linear regression on its parents with a known standard deviation. Its coefficients have a
    Gaussian prior truncated to a ball, and one exact draw from their posterior is released (Zhang, Rubinstein and
    Dimitrakakis 2016, section 5.2 and appendix D). The cost does not decrease with the number of records. For a smaller
    epsilon the likelihood is raised to a power below 1, which makes the posterior wider.

    Parameters
    ----------
    neighbours : {"add_remove", "replace_one"}, optional
        For raw records; "add_remove" by default. A private data set has its own.
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
    draws : int
        Number of draws. Each is a release of its own, so k draws cost k times as much.
    split : bool
        Divide epsilon among the draws.

    Attributes
    ----------
    parameters_ : list of LinearGaussianCPD
        The draw, or the mean of the draws.
    release_ : RegressionDraws
        Its `powers` are the powers of the nodes' likelihoods.
    guarantee_ : Guarantee
        The guarantee for the records behind the fit.

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

        Returns
        -------
        LinearPosteriorSampler

        Raises
        ------
        SchemaError
            If a variable has no bounds, or the records do not agree with them.
        BudgetExceededError
            If the draws cost more than the data set's ledger has left; nothing is charged.
        TypeError, ValueError
            If the model or another argument is of the wrong kind, missing or out of range, or if exact draws could take
            too long.
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
        return PosteriorRegressions(structure, std, bound, each, self.prior_precision, self.draws)

    def _read(self, structure: list[Clique], release: RegressionDraws) -> None:
        means = release.mean()
        self.parameters_ = [_cpd(family, means[family], release.std[family[0]]) for family in structure]
        self._is_fitted = True

    def networks(self) -> list[LinearGaussianBayesianNetwork]:
        """Return the draws, each as a network."""
        require_fitted(self)
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


def _by_node(name: str, given: Any, nodes: list[str]) -> Mapping[str, Any]:
    if given is None:
        raise ValueError(f"{name} is missing: give a positive number, or one for every node.")
    return given if isinstance(given, Mapping) else dict.fromkeys(nodes, given)


def _cpd(family: tuple[str, ...], beta: Any, std: float) -> LinearGaussianCPD:
    return LinearGaussianCPD(family[0], beta.tolist(), std, list(family[1:]))
