"""A Bayesian network keeps the release that it was fitted to."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NoReturn, Self

import numpy as np
import pandas as pd
from pgmpy.models import DiscreteBayesianNetwork

from pgmpy_dp.estimators import AutoMLE
from pgmpy_dp.fitting.factors import conditional, family, log_linear
from pgmpy_dp.inference import TreeTooLargeError
from pgmpy_dp.networks.conditioning import Conditioning
from pgmpy_dp.networks.credible_intervals import bounds_frame, check_interval, state_index
from pgmpy_dp.networks.private_network import PrivateNetwork
from pgmpy_dp.privacy.checks import choice
from pgmpy_dp.release import Guarantee
from pgmpy_dp.schema import Schema


class PrivateBayesianNetwork(PrivateNetwork, DiscreteBayesianNetwork):
    """A pgmpy `DiscreteBayesianNetwork` keeps its release here, so that its answers come with bounds.

    It is made as pgmpy's own network is. Everything after `fit` is post-processing: queries cost no privacy.

    Attributes
    ----------
    guarantee_ : Guarantee
        It holds for the records behind the fit.
    release_ : NoisyMarginals, NoisyCoefficients or tuple of them
        The network was fitted to it, and the bounds of its answers come from it.
    posterior_ : PosteriorNetworks
        They are drawn from what the release leaves open.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> records = pd.DataFrame({"smoke": ["yes", "no"] * 500, "lung": ["yes", "no", "no", "no"] * 250})
    >>> schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
    >>> data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(1.0))
    >>> noisy = data.measure([("lung", "smoke")], epsilon=1.0)
    >>> network = dp.PrivateBayesianNetwork([("smoke", "lung")]).fit(noisy)
    >>> bounds = network.query(["lung"], evidence={"smoke": "yes"}, interval=0.9)
    >>> list(bounds.columns)
    ['value', 'lower', 'upper']
    >>> bool(bounds.loc["yes", "lower"] < 0.5 < bounds.loc["yes", "upper"])
    True
    """

    guarantee_: Guarantee

    def fit(self, data: Any, estimator: Any = "auto", sample_weight: None = None) -> PrivateBayesianNetwork:
        """Estimate the CPDs and keep the release.

        Parameters
        ----------
        data : NoisyMarginals, NoisyCoefficients, PrivateDataset or data frame
            A release costs nothing; a data set is charged the estimator's epsilon.
        estimator : "auto", or an estimator of this package or of pgmpy
            "auto" stands for `AutoMLE()`. Bounds need one that releases tables or coefficients.
        sample_weight : None
            pgmpy has it; no private estimator takes weights.
        """
        if estimator is None or isinstance(estimator, str):
            choice(None, "auto")("estimator", estimator)
            estimator = AutoMLE()
        super().fit(data, estimator=estimator, sample_weight=sample_weight)
        self._keep(estimator)
        return self

    def cpd_interval(self, node: str, interval: float = 0.9, target: str = "population") -> pd.DataFrame:
        """Give every entry of P(node | parents) its bounds; `interval` and `target` are those of `query`.

        Returns
        -------
        DataFrame
            It has a row for each state of the node and configuration of its parents (levels in that order), and columns
            `value`, `lower` and `upper`. Where a configuration hardly occurs, bounds are the prior's: nearly 0 and 1.
        """
        schema = self._fitted()
        schema.require([(node,)])
        check_interval(interval)
        posterior = self.posterior_
        scope = family(self, node)
        layout, draws = posterior.layout, posterior.draws(target)
        number = layout.scopes.index(scope)
        own = draws[:, layout.offsets[number] : layout.offsets[number + 1]]
        mass = self._conditioning.marginals(draws, [scope]).mean(axis=0).reshape(layout.shapes[number])
        records = np.broadcast_to(posterior.totals.mean() * mass.sum(axis=0), mass.shape)
        fitted, logs, _ = log_linear(self, schema.states)
        value, _ = Conditioning(fitted, schema).distributions([logs], scope, {})
        index = state_index(schema, scope)
        return bounds_frame(conditional(value[0]).ravel(), np.exp(own), interval, index, records.ravel())

    def simulate(self, n_samples: int = 10, *, seed: int | None = None, **options: Any) -> pd.DataFrame:
        """Draw independent synthetic records exactly, as `pgmpy_dp.networks.simulate` does for any network.

        All options are those of pgmpy. Its own method draws where one of ``do``, ``virtual_evidence``,
        ``virtual_intervention``, ``missing_prob``, ``partial_samples`` and ``return_full`` is given, or a junction tree
        does not fit in memory. In any case numpy's global generator is left alone.
        """
        options = {name: option for name, option in options.items() if option is not None}
        if set(options) <= {"evidence", "include_latents", "show_progress"}:
            with suppress(TreeTooLargeError):
                return super().simulate(n_samples, seed=seed, **options)
        seed = int(np.random.default_rng().integers(2**32)) if seed is None else seed
        held = np.random.get_state()  # noqa: NPY002  # pgmpy's method seeds it
        try:
            drawn: pd.DataFrame = DiscreteBayesianNetwork.simulate(self, n_samples, seed=seed, **options)
        finally:
            np.random.set_state(held)  # noqa: NPY002
        nodes = [node for node in self.nodes() if node in drawn]
        return drawn[nodes + sorted(drawn.columns.difference(nodes))]

    def fit_update(self, *arguments: Any, **options: Any) -> NoReturn:
        """Refuse: pgmpy's method adds exact counts of records.

        Raises
        ------
        TypeError
        """
        raise TypeError(
            "fit_update adds exact counts of records, which are not private. Measure the new records, and fit the "
            "release, or several of the same records together by estimator=PosteriorMean()."
        )

    def edge_strength(self, *arguments: Any, **options: Any) -> NoReturn:
        """Refuse: pgmpy's strengths are exact statistics of records.

        Raises
        ------
        TypeError
        """
        raise TypeError(
            "edge_strength computes exact statistics of records, which are not private. For public ones, or some "
            "simulated from this network, call it of DAG(network.edges())."
        )

    def copy(self) -> PrivateBayesianNetwork:
        """Make an independent network with the same structure, CPDs and release."""
        return type(self).of(self)

    @classmethod
    def of(cls, network: DiscreteBayesianNetwork) -> Self:
        """Make one with the structure and CPDs of another network; `attach_release` gives it bounds.

        Examples
        --------
        >>> from pgmpy.factors.discrete import TabularCPD
        >>> plain = DiscreteBayesianNetwork()
        >>> plain.add_node("smoke")
        >>> plain.add_cpds(TabularCPD("smoke", 2, [[0.3], [0.7]], state_names={"smoke": ["yes", "no"]}))
        >>> PrivateBayesianNetwork.of(plain).query(["smoke"]).values.tolist()
        [0.3, 0.7]
        """
        fresh = cls()
        fresh.add_nodes_from(network.nodes())
        fresh.add_edges_from(network.edges())
        fresh.latents = set(network.latents)
        fresh.add_cpds(*[cpd.copy() for cpd in network.get_cpds()])
        kept = ("release_", "guarantee_", "_posterior")
        fresh.__dict__.update({name: vars(network)[name] for name in kept if name in vars(network)})
        return fresh

    def _fitted(self) -> Schema:
        if len(self.get_cpds()) < len(self.nodes()) or not self.nodes():
            raise ValueError("The network is not fitted yet: call fit first.")
        return Schema.from_model(self)
