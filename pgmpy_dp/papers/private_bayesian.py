"""Dirichlet posteriors from noisy counts of families."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from pgmpy.base import DAG
from pgmpy.factors.discrete import TabularCPD
from pgmpy.models import DiscreteBayesianNetwork

from pgmpy_dp.data.mechanisms.coefficients import FourierCoefficients
from pgmpy_dp.errors import callers_level
from pgmpy_dp.estimators.base import TableEstimator, require_fitted
from pgmpy_dp.estimators.for_networks.prior_estimator import PriorEstimator
from pgmpy_dp.fitting.readings.dirichlet import draw_network, posterior_frame, posterior_means
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.observed.factors import families
from pgmpy_dp.privacy.checks import Constraint, checked_delta, choice, whole_number
from pgmpy_dp.release.measured_coefficients import MeasuredCoefficients
from pgmpy_dp.schema import Clique, Schema


@dataclass(eq=False, repr=False)
class PrivateBayesianEstimator(PriorEstimator, TableEstimator):
    """Update the prior of a Bayesian network's parameters with noisy counts.

    A drop-in replacement for pgmpy's `DiscreteBayesianEstimator`: Dirichlet priors on the rows of the CPDs are updated
    with noisy instead of true counts of the families (Zhang, Rubinstein and Dimitrakakis 2016, Algorithms 1 and 2, for
    variables with any number of states). The posterior is released: its means are the CPDs, and drawing networks from
    it has no privacy cost.

    Parameters
    ----------
    mechanism : {"auto", "laplace", "gaussian", "fourier"}
        Measurements of raw records. "laplace": a table for each family with Laplace noise of the same scale, whose
        cells are clamped between 0 and the number of records (Algorithm 1). "gaussian": the same with Gaussian noise.
        "auto": one of the two, as for other estimators. "fourier": the Fourier coefficients of all families with
        Laplace noise, so that the released counts are mutually consistent (Algorithm 2).
    increment : "least" or None
        How coefficients become non-negative counts. "least" adds the least number of records, spread evenly, that makes
        all cells non-negative and keeps the counts consistent. None sets cells below 0 to 0, which loses consistency.
    release : {"laplace", "fourier"}, optional
        Deprecated: the former name of `mechanism`.

    Attributes
    ----------
    parameters_ : list of TabularCPD
        Posterior means, in the order of the nodes.
    posterior_counts_ : dict of node to DataFrame
        Dirichlet parameters, with one row per state and one column per configuration of the parents.

    Notes
    -----
    Sensitivity: in Algorithm 1 a record is counted once in each of the |I| families. Adding a record changes the counts
    by |I| in L1 norm, and replacing one by 2 |I|, for any numbers of states (Lemma 1). Every cell therefore has noise
    of scale |I| / epsilon or 2 |I| / epsilon. For Algorithm 2 see `pgmpy_dp.privacy.fourier`.

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

    _: KW_ONLY
    increment: str | None = "least"
    release: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.release is not None:
            warnings.warn(
                "release= of PrivateBayesianEstimator is now called mechanism=; the old name goes in the next version.",
                DeprecationWarning,
                stacklevel=callers_level(),
            )
            self.mechanism, self.release = self.release, None

    def _plan(self, structure: DAG, public: Any) -> Any:
        self._prior(structure, public.schema)  # refuse an invalid prior before charging
        if self.mechanism != "fourier":
            return super()._plan(structure, public)
        if checked_delta(self.delta, zero_allowed=True):
            raise ValueError(f"Fourier coefficients have Laplace noise, and no delta: leave out delta={self.delta!r}.")
        return FourierCoefficients(families(structure), self._price())

    def _tables(self, structure: DAG, schema: Schema) -> tuple[Sequence[Clique], Sequence[float]]:
        scopes = families(structure)
        return scopes, [1.0] * len(scopes)

    def _read(self, structure: DAG, release: Any) -> list[TabularCPD]:
        scopes, schema = families(structure), self._schema(structure, release)
        prior, counts = self._prior(structure, schema), self._counts(release, scopes)
        posterior = self._posterior = {scope: prior[scope] + counts[scope] for scope in scopes}
        self.posterior_counts_ = {scope[0]: posterior_frame(scope, posterior[scope], schema) for scope in scopes}
        return [posterior_means(scope, posterior[scope], schema) for scope in scopes]

    def sample_cpds(self, n: int, seed: Any = None) -> list[DiscreteBayesianNetwork]:
        """Draw networks from the released posterior, at no privacy cost.

        Parameters
        ----------
        n : int
            Number of networks.
        seed : int, optional
            For reproducible draws; privacy does not depend on it.
        """
        require_fitted(self, "_posterior")
        number, generator = whole_number("n", n, 0), np.random.default_rng(seed)
        return [draw_network(self._posterior, self.release_.schema, generator) for _ in range(number)]

    def _counts(self, release: Any, scopes: Sequence[Clique]) -> dict[Clique, Vector]:
        """Return non-negative counts of every family."""
        if isinstance(release, MeasuredCoefficients):
            tables = release if self.increment is None else release.to_coefficients().non_negative()
            return {scope: np.maximum(tables.table(scope), 0.0) for scope in scopes}
        return {scope: np.clip(release.marginal(scope)[0], 0.0, release.total) for scope in scopes}
