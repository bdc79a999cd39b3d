"""Base class of estimators with a Dirichlet prior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

from pgmpy.base import DAG

from pgmpy_dp.estimators.for_networks.network_estimator import PrivateNetworkEstimator
from pgmpy_dp.fitting.readings.dirichlet import check_prior, prior_counts
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.observed.factors import families
from pgmpy_dp.schema import Clique, Schema


@dataclass(eq=False, repr=False)
class PriorEstimator(PrivateNetworkEstimator):
    """Base class of estimators with Dirichlet priors on the rows of the CPDs.

    Parameters
    ----------
    prior_type : {"BDeu", "K2", "dirichlet"}
    equivalent_sample_size : float or mapping of node to float
        For "BDeu".
    pseudo_counts : float or mapping of node to array of shape (states, configurations of the parents)
        For "dirichlet". All must be positive.
    """

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
