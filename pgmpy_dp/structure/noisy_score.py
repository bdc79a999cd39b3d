"""A score for pgmpy's own structure searches that is computed from a release."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import pandas as pd
from pgmpy.structure_score import BaseStructureScore

from pgmpy_dp.estimators.base import together
from pgmpy_dp.estimators.mixtures import PairwiseMixture
from pgmpy_dp.fitting.readings.mixture_fits import MixtureRelease, fitted_variables
from pgmpy_dp.privacy.checks import number, optional
from pgmpy_dp.release import Release
from pgmpy_dp.schema.states import alike
from pgmpy_dp.structure.search import DrawnRecords, penalty, positions

_RECORDS = 200_000


class NoisyScore(BaseStructureScore):
    """Score of families by a release or a fitted network, so that pgmpy's searches cost no privacy.

    The score of a family is the log-likelihood of its conditional distribution in the network, for as many records as
    were released, minus a price for each of its parameters: that of BIC, plus the expected contribution of noise to the
    likelihood. A release is first fitted by `PairwiseMixture`, which needs no graph and takes seconds.

    Parameters
    ----------
    source : NoisyMarginals, NoisyResiduals, list of them, UnitedMarginals, or a fitted network
        A network must have kept its release.
    penalty : float, optional
        Price of a parameter, in nats of all records. By default half the logarithm of the number of records, plus half
        the mean over the released tables of noise variance times cells divided by records.
    pooled : bool
        For a union of releases: whether the graph describes all records together. Otherwise the union's variable is one
        of its nodes, whose children differ between the parts; forbid edges to it by pgmpy's ``ExpertKnowledge``.

    Attributes
    ----------
    data : pandas.DataFrame
        Two public rows with the names and states for the search: ``search.fit(score.data)``.

    Raises
    ------
    TypeError
        If the source is neither a release nor a network.
    ValueError
        If the network has no release, the penalty is not a number, or something other than a union is to be pooled.

    Notes
    -----
    Marginals are those of 200,000 records drawn from the network. For N records this adds about N / 400,000 nats per
    parameter to a score, far less than the price of a parameter.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> from pgmpy.causal_discovery import HillClimbSearch
    >>> records = pd.DataFrame({"smoke": ["yes", "no"] * 500, "lung": ["yes", "no", "no", "no"] * 250})
    >>> schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
    >>> data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(1.0))
    >>> score = dp.NoisyScore(data.measure([("smoke", "lung")], epsilon=1.0))
    >>> search = HillClimbSearch(scoring_method=score, return_type="dag", show_progress=False).fit(score.data)
    >>> len(search.causal_graph_.edges())
    1
    """

    _tags = {  # noqa: RUF012
        "name": "noisy",
        "supported_datatype": "discrete",
        "default_for": None,
        "is_parameteric": False,
    }

    def __init__(self, source: Any, penalty: float | None = None, pooled: bool = False) -> None:
        self.source, self.penalty, self.pooled = source, penalty, pooled
        optional(number())("penalty", penalty)
        release = _release(source)
        if isinstance(together(source), Release):
            schema = release.schema.select(fitted_variables(release, pooled))
        elif pooled:
            raise ValueError("pooled says how a union is fitted, and this network is fitted: leave it out.")
        else:
            schema = source.schema_
        states = {variable: alike(states) for variable, states in schema.states.items()}
        super().__init__(pd.DataFrame({variable: [own[0], own[-1]] for variable, own in states.items()}), states)

    def _local_score(self, variable: str, parents: tuple[str, ...]) -> float:
        position = {name: number for number, name in enumerate(self.data.columns)}
        node, own = position[variable], tuple(sorted(position[parent] for parent in parents))
        records, price, total = self._drawn
        return total * records.log_likelihood(node, own) - price * records.parameters(node, own)

    @cached_property
    def _drawn(self) -> tuple[DrawnRecords, float, float]:
        release, network = _release(self.source), self.source
        if isinstance(together(self.source), Release):
            network = PairwiseMixture(pooled=self.pooled).fit(release).network_
        schema = network.schema_
        records = DrawnRecords(
            positions(network.simulate(_RECORDS, seed=0), schema).T, list(schema.cardinalities().values())
        )
        price = penalty(release, schema.variables) if self.penalty is None else float(self.penalty)
        return records, price, release.total


def _release(source: Any) -> MixtureRelease:
    """Return the release that a source is or was fitted to."""
    release = together(source)
    if not isinstance(release, Release):
        if not hasattr(source, "simulate"):
            raise TypeError(f"NoisyScore reads a release or a fitted network, got {type(source).__name__}.")
        release = getattr(source, "release_", None)
        release = together(list(release)) if isinstance(release, tuple) else release
    if not isinstance(release, MixtureRelease):
        raise ValueError("NoisyScore needs noisy tables, or a network that was fitted to them and kept them.")
    return release
