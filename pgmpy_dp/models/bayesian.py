"""A Bayesian network that keeps the release it was fitted to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from pgmpy.models import DiscreteBayesianNetwork

from pgmpy_dp.estimators import PrivateMLE
from pgmpy_dp.estimators.networks import conditional, family, log_linear
from pgmpy_dp.models.answering import AnsweringNetwork, bounds_frame, check_interval
from pgmpy_dp.models.conditioning import Conditioning
from pgmpy_dp.release import Guarantee
from pgmpy_dp.schema import Schema

# Formats of pgmpy's own `save` and `load`, by the end of a file's name.
_FILETYPES = {"": "bif", ".bif": "bif", ".xmlbif": "xmlbif", ".uai": "uai", ".net": "net", ".xdsl": "xdsl"}


class PrivateBayesianNetwork(AnsweringNetwork, DiscreteBayesianNetwork):
    """A pgmpy `DiscreteBayesianNetwork` that keeps its release, so that its answers come with bounds.

    Everything after `fit` is post-processing: queries cost no privacy. It is made as pgmpy's own network is.

    Attributes
    ----------
    guarantee_ : Guarantee
        What holds for the records behind the fit.
    release_ : NoisyMarginals, NoisyCoefficients or tuple of them
        What it was fitted to.
    posterior_ : PosteriorNetworks
        Networks drawn from what the release leaves open.

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

    def fit(self, data: Any, estimator: Any = None, sample_weight: None = None) -> PrivateBayesianNetwork:
        """Estimate the CPDs and keep the release.

        Parameters
        ----------
        data : NoisyMarginals, NoisyCoefficients, PrivateDataset or data frame
            A release costs nothing; a data set is charged the estimator's epsilon.
        estimator : estimator of this package or of pgmpy, optional
            `PrivateMLE()` by default. Bounds need one that releases tables or coefficients.
        sample_weight : None
            As pgmpy; no private estimator takes weights.
        """
        estimator = PrivateMLE() if estimator is None else estimator
        super().fit(data, estimator=estimator, sample_weight=sample_weight)
        self.__dict__.pop("guarantee_", None)
        if hasattr(estimator, "guarantee_"):
            self.guarantee_ = estimator.guarantee_
        self._keep(estimator)
        return self

    def cpd_interval(self, node: str, interval: float = 0.9, target: str = "population") -> pd.DataFrame:
        """P(node | parents) with bounds for every entry.

        Parameters
        ----------
        node : str
        interval, target
            As `query`.

        Returns
        -------
        DataFrame
            A row for each state of the node and configuration of its parents (levels in that order); columns `value`,
            `lower`, `upper`. Of a configuration that hardly occurs the bounds are those of the prior: nearly 0 and 1.
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
        states = [list(schema.states[variable]) for variable in scope]
        index = pd.MultiIndex.from_product(states, names=scope) if len(scope) > 1 else pd.Index(states[0], name=node)
        return bounds_frame(conditional(value[0]).ravel(), np.exp(own), interval, index, records.ravel())

    def fit_update(self, *arguments: Any, **options: Any) -> NoReturn:
        """Refused: pgmpy's adds exact counts of records.

        Raises
        ------
        TypeError
        """
        raise TypeError(
            "fit_update adds exact counts of records, which are not private. Measure the new records, and fit the "
            "release, or several of the same records together by estimator=PosteriorMean()."
        )

    def edge_strength(self, *arguments: Any, **options: Any) -> NoReturn:
        """Refused: pgmpy's are exact statistics of records.

        Raises
        ------
        TypeError
        """
        raise TypeError(
            "edge_strength computes exact statistics of records, which are not private. For public ones, or some "
            "simulated from this network, call it of DAG(network.edges())."
        )

    def copy(self) -> PrivateBayesianNetwork:
        """An independent network with the same structure, CPDs and release."""
        fresh = PrivateBayesianNetwork.of(self)
        for name in ("release_", "guarantee_", "_posterior"):
            if name in self.__dict__:
                setattr(fresh, name, self.__dict__[name])
        return fresh

    @classmethod
    def of(cls, network: DiscreteBayesianNetwork) -> PrivateBayesianNetwork:
        """A network with the structure and CPDs of another, such as one from a file; `attach_release` gives it bounds.

        Examples
        --------
        >>> from pgmpy.factors.discrete import TabularCPD
        >>> plain = DiscreteBayesianNetwork()
        >>> plain.add_node("smoke")
        >>> plain.add_cpds(TabularCPD("smoke", 2, [[0.3], [0.7]], state_names={"smoke": ["yes", "no"]}))
        >>> PrivateBayesianNetwork.of(plain).query(["smoke"]).values.tolist()
        [0.3, 0.7]
        """
        fresh = cls(network.edges())
        fresh.add_nodes_from(network.nodes())
        fresh.add_cpds(*[cpd.copy() for cpd in network.get_cpds()])
        return fresh

    def save(self, filename: str | os.PathLike[str], filetype: str | None = None) -> None:
        """As pgmpy's, the format by the end of the name unless it is given.

        Raises
        ------
        ValueError
            If the end of the name says no format of pgmpy's.
        """
        super().save(os.fspath(filename), filetype=filetype or _filetype(filename))

    @classmethod
    def load(
        cls, filename: str | os.PathLike[str], filetype: str | None = None, **kwargs: Any
    ) -> PrivateBayesianNetwork:
        """As pgmpy's; `attach_release` gives the network bounds. Errors as `save`."""
        kind = filetype or _filetype(filename)
        return cls.of(DiscreteBayesianNetwork.load(os.fspath(filename), filetype=kind, **kwargs))

    def _fitted(self) -> Schema:
        if len(self.get_cpds()) < len(self.nodes()) or not self.nodes():
            raise ValueError("The network is not fitted yet: call fit first.")
        return Schema.from_model(self)


def _filetype(filename: str | os.PathLike[str]) -> str:
    """Of pgmpy's formats, by the end of a name; names without one are BIF, as pgmpy has it."""
    suffix = Path(filename).suffix.lower()
    if suffix not in _FILETYPES:
        raise ValueError(
            f"{filename}: end the name in one of {', '.join(filter(None, _FILETYPES))}; pgmpy_dp.exports.save_network "
            "and load_network have .json, and bring back any names and the guarantee."
        )
    return _FILETYPES[suffix]
