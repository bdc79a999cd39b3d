"""A mixture or a network: whichever a first release of all pairs suggests, with the rest of the budget spent on it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.data.mechanisms.mechanism import PublicTable
from pgmpy_dp.data.mechanisms.steps import Asking, Measure, Step, TablesInSteps
from pgmpy_dp.estimators.base import Plan, warn_of_releases
from pgmpy_dp.estimators.for_records.pairwise_mixture import PairwiseMixture
from pgmpy_dp.fitting.plans.pairs import favouring, plan_pairs
from pgmpy_dp.fitting.readings.mixture_fits import fit_of_release
from pgmpy_dp.inference.mixtures.balanced_records import independent_records
from pgmpy_dp.inference.mixtures.fit.ensemble import MixtureFit, disagreement
from pgmpy_dp.models.mixtures.mixture_network import PrivateMixtureNetwork
from pgmpy_dp.privacy.checks import Constraint, whole
from pgmpy_dp.release import NoisyMarginals, Release
from pgmpy_dp.schema import Clique, Schema
from pgmpy_dp.structure.drawn_records import DrawnRecords
from pgmpy_dp.structure.knowledge import Knowledge
from pgmpy_dp.structure.private_structure_search import PrivateStructureSearch, StepwiseEstimator, network_of
from pgmpy_dp.structure.search import RECORDS, Search, Steps

_SEED = 0
_SCOUTS = 6  # number of members of the mixture that is fitted to the first release
_THINNING = 0.5  # share of noise added for thinning
_FOREST = 3  # number of steps of a search up to its first forest


@dataclass(frozen=True)
class Chosen:
    """What all steps found.

    Attributes
    ----------
    releases : tuple of NoisyMarginals
    search : Search or None
        With the graph; None if the mixture was chosen.
    excess : float
        Nats per pair by which the network predicts held-out noise worse; infinite if rules exclude networks.
    """

    releases: tuple[NoisyMarginals, ...]
    search: Search | None
    excess: float

    @property
    def release(self) -> NoisyMarginals:
        """All releases joined, the first one last: its tables are the noisiest.

        Where a junction tree has no room for all tables, a fit keeps those that come first.
        """
        first, second, *others = self.releases
        return sum(others, second) + first


@dataclass(eq=False, repr=False)
class AutoModel(StepwiseEstimator):
    """A mixture or a network, chosen by a first release of all pairs, at no further privacy cost.

    Parameters
    ----------
    neighbours : {"add_remove", "replace_one"}, optional
        For raw records; "add_remove" by default. A private data set has its own.
    epsilon : float
        Privacy loss of all measurements.
    delta : float
        In (0, 1) for Gaussian noise and the exponential mechanism, 0 for Laplace noise; see
        :class:`~pgmpy_dp.PrivateStructureSearch`.
    state_names : mapping of variable to states, or Schema
        Declared states; required for raw records.
    components, members : int
        Of the mixture; see :class:`~pgmpy_dp.PairwiseMixture`.
    max_indegree : int
        Largest number of parents of a variable of the network.

    Attributes
    ----------
    chosen_ : {"mixture", "network"}
    network_ : PrivateMixtureNetwork or PrivateBayesianNetwork
        The chosen model, fitted to everything that was measured.
    excess_ : float
        Nats per pair of variables by which the network predicts held-out noise worse than the mixture. Infinite if the
        schema has rules, which only a mixture can hold.
    guarantee_ : Guarantee
        The guarantee for the records behind the fit.
    release_ : NoisyMarginals
        All measured tables.
    releases_ : tuple of NoisyMarginals
        The same, step by step. Later tables depend on earlier answers, so each release has the guarantee of the whole;
        joined releases count it once.

    Notes
    -----
    1. All pairs of variables are measured with a twentieth of the privacy loss. 2. Their release is thinned into two
    with independent noise. A mixture is fitted to the first, and so is a network, whose graph is found by a hill climb
    on records drawn from that mixture. Both predict the tables of the second. 3. If the network is chosen, the rest is
    spent as by :class:`~pgmpy_dp.PrivateStructureSearch`. If the mixture is chosen, the pairs are measured again with a
    third, and then with the rest, with less noise for those on which members of the mixture disagree.

    All steps have one price, which is the same for either choice, and is charged or refused before the first. The
    choice sees the first release alone.

    Measuring a family of two parents for each variable leaves less Gaussian noise in a pair than measuring all pairs:
    the share of its variance that this saves is 1 - states / pairs, by the total number of states and the number of
    pairs of variables. The network is chosen if `excess_` is at most this share, which is negative for few columns,
    where the network has to predict better.

    With more columns noise may hide that a network is farther: at an epsilon of 1 it was chosen for five of seven other
    surveys, of 14 to 22 columns, and its pairs were 1.4 to 2.1 times as far from the records as those of
    :class:`~pgmpy_dp.PairwiseMixture`, the better choice for synthetic records unless a sparse graph is to be expected.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> records = pd.DataFrame({"smoke": ["yes", "no"] * 500, "lung": ["yes", "no", "no", "no"] * 250})
    >>> schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
    >>> found = dp.AutoModel(epsilon=3.0, delta=1e-6, state_names=schema, members=2).fit(records)
    >>> found.chosen_ in ("mixture", "network")
    True
    >>> bool(0.4 < found.network_.query(["lung"], {"smoke": "yes"}).get_value(lung="yes") < 0.6)
    True
    """

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "components": whole(1),
        "members": whole(1),
        "max_indegree": whole(1),
    }

    _first: ClassVar[float] = 0.05  # share of the first release
    _steps: ClassVar[int] = PairwiseMixture._steps
    _searching: ClassVar[Steps] = PrivateStructureSearch._steps

    delta: float = 0.0
    state_names: Mapping[str, Any] | Schema | None = None
    components: int = 100
    members: int = 12
    max_indegree: int = 3

    def plan(self, schema: Schema | PublicTable | None = None, records: float | None = None) -> Plan:
        """Return what `fit` would measure, and its guarantee; this needs no records and charges nothing.

        Parameters
        ----------
        schema : Schema or PublicTable, optional
            By default the estimator's `state_names`.
        records : float, optional
            A public guess of the number of records.

        Returns
        -------
        Plan
            Without the noise of tables, which the first release decides.
        """
        return self._planned(None, schema, records)

    def _source(self, structure: None, data: Any, public: Any) -> PrivateDataset:
        if isinstance(data, Release):
            raise TypeError(
                "What to measure depends on a first release, and this one is measured already: fit PairwiseMixture, or "
                "search a graph by NoisyScore."
            )
        return self._dataset(data, self._variables(structure, data), self.state_names)

    def _plan(self, structure: None, public: Any) -> TablesInSteps[Chosen]:
        schema = public.schema
        self._search(schema)  # refuses pairs that are too large to count
        rest = [step for _, step in self._searching.listed(len(schema.variables))]
        steps = [
            Step(self._first),
            *(replace(step, share=(1 - self._first) * step.share, either=True) for step in rest),
        ]
        asking = partial(self._asking, schema, len(rest))
        return TablesInSteps(steps, self._price(), self.delta, asking, "measure pairs, then what a model needs")

    def _asking(self, schema: Schema, steps: int) -> Asking[Chosen]:
        """Measure pairs, choose, and measure for the chosen model in the steps that are left."""
        cliques, weights = plan_pairs(schema)
        first = yield Measure(cliques, weights)
        excess = self._excess(first, schema)
        if excess <= saved(schema):
            search = self._search(schema)
            yield from search.run(self._searching, "Searching")
            return Chosen((first, *search.releases), search, excess)
        # The steps up to the first forest have a third of the privacy loss.
        second = yield Measure(cliques, weights, min(_FOREST, steps - 1))
        wanted = disagreement(self._scouts(first + second, schema))
        shares = favouring(dict(zip(cliques, weights, strict=True)), wanted)
        third = yield Measure(cliques, list(shares.values()), steps - min(_FOREST, steps - 1))
        return Chosen((first, second, third), None, excess)

    def _excess(self, release: NoisyMarginals, schema: Schema) -> float:
        """Return by how many nats per pair a network predicts held-out noise worse than a mixture."""
        pairs = [clique for clique in release.cliques if len(clique) == 2]
        if schema.rules or not pairs:
            return math.inf
        half, other = release.thinned(_THINNING, np.random.default_rng(_SEED))
        codes = independent_records(self._scouts(half, schema).mixture, RECORDS, np.random.default_rng(_SEED))
        mixture = DrawnRecords(codes.T.astype(np.int64), list(schema.cardinalities().values()))
        search = self._search(schema)
        search.release = half
        search.climb(mixture)
        network, place = search.drawn(), {variable: number for number, variable in enumerate(schema.variables)}

        def loss(drawn: DrawnRecords, pair: Clique) -> float:
            expected = other.total * drawn.shares([place[variable] for variable in pair])
            sampling = expected * (1.0 + other.total / RECORDS)  # of the records, and of those drawn
            return 0.5 * float(((other.tables[pair] - expected) ** 2 / (other.variances[pair] + sampling)).sum())

        return float(np.mean([loss(network, pair) - loss(mixture, pair) for pair in pairs]))

    def _search(self, schema: Schema) -> Search:
        return Search(schema, Knowledge.of(None, list(schema.variables), self.max_indegree), self.max_indegree)

    def _scouts(self, release: NoisyMarginals, schema: Schema) -> MixtureFit:
        return self._mixture(release, schema, min(self.members, _SCOUTS))

    def _mixture(self, release: NoisyMarginals, schema: Schema, members: int) -> MixtureFit:
        return fit_of_release(release, schema, components=self.components, members=members, steps=self._steps)

    def _read(self, structure: None, release: Chosen) -> None:
        self.excess_ = release.excess
        if release.search is None:
            warn_of_releases([self.release_])
            schema = self.release_.schema
            fit = self._mixture(self.release_, schema, self.members)
            self.network_: Any = PrivateMixtureNetwork.fitted(schema, fit, self.release_)
        else:
            self.network_ = network_of(release.search, self.release_)
        self.chosen_ = "mixture" if release.search is None else "network"


def saved(schema: Schema) -> float:
    """Return the share of a pair's variance of Gaussian noise that a network saves, beside tables of all pairs.

    Equal shares of rho among k tables give each cell a variance proportional to k. With families of two parents k is
    the number of variables, and a cell of a pair sums as many cells as a third variable has states.
    """
    states = list(schema.cardinalities().values())
    return 1.0 - sum(states) / max(math.comb(len(states), 2), 1)
