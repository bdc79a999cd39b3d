"""Private search of a graph, with a network fitted to everything that was measured."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from pgmpy.base import DAG
from pgmpy.metrics import get_metrics
from pgmpy.models import DiscreteBayesianNetwork
from sklearn.base import BaseEstimator

from pgmpy_dp._progress import progress
from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.data.mechanisms.mechanism import PublicRecords, quoted
from pgmpy_dp.data.mechanisms.steps import Measure, TablesInSteps
from pgmpy_dp.data.mechanisms.tables import deviations
from pgmpy_dp.estimators.base import PrivateEstimator, refuse_rules
from pgmpy_dp.estimators.from_tables import AutoMLE
from pgmpy_dp.fitting.plans.outlook import Outlook
from pgmpy_dp.inference import Layout
from pgmpy_dp.inference.tables.table import Table
from pgmpy_dp.inference.trees.conditioning import Conditioning
from pgmpy_dp.networks import PrivateBayesianNetwork
from pgmpy_dp.observed.factors import families, log_linear
from pgmpy_dp.privacy import SimulatedNoise
from pgmpy_dp.privacy.checks import Constraint, choice, number, whole, whole_number
from pgmpy_dp.privacy.guarantee import GRAPH_KEY, carry_learned, learned_graph
from pgmpy_dp.privacy.noise import table_sensitivity
from pgmpy_dp.release import NoisyMarginals, Release
from pgmpy_dp.schema import Schema
from pgmpy_dp.structure.search import Knowledge, Round, Search, Steps, positions

# Share of the repeated searches that must find an edge for it to be called stable.
_STABLE = 0.75


class FoundGraph(DAG):
    """A graph whose copies keep the guarantee of finding it, unlike pgmpy's."""

    def copy(self) -> FoundGraph:
        """Return an independent graph with the same nodes and edges."""
        made = FoundGraph()
        made.__dict__.update(super().copy().__dict__)
        carry_learned(self, made)
        return made

    def to_pdag(self) -> Any:
        """Return the equivalence class, in which edges whose direction records cannot determine are undirected."""
        pattern = super().to_pdag()
        carry_learned(self, pattern)
        return pattern


@dataclass(eq=False, repr=False)
class PrivateStructureSearch(PrivateEstimator, BaseEstimator):  # type: ignore[misc]
    """Find a directed graph in private records, with the interface of pgmpy's `HillClimbSearch`.

    Parameters
    ----------
    neighbours, state_names
        See :class:`~pgmpy_dp.AutoMLE`.
    epsilon : float
        Privacy loss of the whole search, including the network's tables.
    delta : float
        In (0, 1) for Gaussian noise and the exponential mechanism: all steps together are one (epsilon, delta) block at
        its exact price, which a ledger accepts before Gaussian measurements. 0 for pure epsilon, with Laplace noise and
        permute-and-flip, at a higher price for the many steps.
    max_indegree : int
        Largest number of parents of a variable.
    expert_knowledge : pgmpy.causal_discovery.ExpertKnowledge, optional
        Required and forbidden edges, a search space or a temporal order. They restrict the candidates before anything
        is paid.
    return_type : {"dag", "pdag"}
        Whether `causal_graph_` is the graph itself or its equivalence class, in which edges whose direction records
        cannot determine are undirected.

    Attributes
    ----------
    causal_graph_ : pgmpy.base.DAG or PDAG
        It carries the guarantee of the search, as `network_` and `edges_` do: whatever is fitted or measured by it
        states that cost.
    network_ : PrivateBayesianNetwork
        With this graph, fitted by `AutoMLE` to everything that was measured.
    edges_ : pandas.DataFrame
        One row per edge; `bootstrap` adds how stable each is.

        - parent, child: the edge;
        - oriented: whether its direction follows from the graph's independences, so that records can determine it;
        - information: conditional mutual information of parent and child given the other parents, in nats, in the
          fitted network;
        - residual: mean squared residual of the measured tables that contain both, in units of the variance of noise
          and sampling: far above 1 if the network does not explain them;
        - cost: cost of those tables, in rho, or in epsilon if delta is 0;
        - found, verdict: the share of repeated searches that find it, and "stable" or "doubtful"; missing and "not
          repeated" before `bootstrap`.
    guarantee_, release_
        See :class:`~pgmpy_dp.AutoMLE`; all measured tables.
    releases_ : tuple of NoisyMarginals
        The same, step by step. Later tables depend on earlier answers, so each release has the guarantee of the whole;
        joined releases count it once.

    Notes
    -----
    A forest, then edges in rounds, are chosen by a mechanism of their own (`pgmpy_dp.data.mechanisms.selection`), and
    measured; the analyst's guide has the steps, and `plan` their shares. All charges are one entry in the ledger, made
    or refused with the first step.

    A graph learned from observed records shows independences, not causes.

    Examples
    --------
    >>> import numpy as np, pandas as pd, pgmpy_dp as dp
    >>> draws = np.random.default_rng(0).random((2000, 3))
    >>> smoke = draws[:, 0] < 0.4
    >>> lung = draws[:, 1] < np.where(smoke, 0.6, 0.1)
    >>> records = pd.DataFrame({"smoke": smoke, "lung": lung, "coin": draws[:, 2] < 0.5})
    >>> schema = dp.Schema(dict.fromkeys(records, [False, True]))
    >>> found = dp.PrivateStructureSearch(epsilon=2.0, delta=1e-6, state_names=schema).fit(records)
    >>> {frozenset(edge) for edge in found.causal_graph_.edges()} == {frozenset({"smoke", "lung"})}
    True
    """

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "max_indegree": whole(1),
        "return_type": choice("dag", "pdag"),
    }

    _steps: ClassVar[Steps] = Steps(
        singles=0.04,
        forest=Round(0.10, 0.17),
        rounds=(
            Round(0.06, 0.09),
            Round(0.06, 0.09),
            Round(0.05, 0.08, 0.2),
            Round(0.05, 0.08, 0.42),
            Round(0.04, 0.07),  # restores edges that the last climb removed wrongly
        ),
    )

    delta: float = 0.0
    state_names: Mapping[str, Any] | Schema | None = None
    max_indegree: int = 3
    expert_knowledge: Any = None
    return_type: str = "dag"

    def fit(self, data: Any, y: None = None) -> Self:
        """Measure step by step, choosing tables by earlier answers, and fit the network that is found.

        Parameters
        ----------
        data : PrivateDataset or data frame
            A data set (its ledger is charged epsilon and delta, once), or records.
        y : None
            Ignored; scikit-learn passes it.

        Raises
        ------
        SchemaError, BudgetExceededError, TypeError, ValueError
            As `PrivateMLE.fit`; a release is refused.
        """
        return self._run(None, data)

    def _source(self, structure: None, data: Any, public: Any) -> PrivateDataset:
        if isinstance(data, Release):
            raise TypeError(
                "A search decides what to measure, and a release is already measured: search it at no cost by pgmpy's "
                "HillClimbSearch(scoring_method=score).fit(score.data) with score = dp.NoisyScore(release)."
            )
        dataset = self._dataset(data, self._variables(structure, data), self.state_names)
        self._check_rules(structure, dataset.schema)
        return dataset

    def _check_rules(self, structure: None, schema: Schema) -> None:
        refuse_rules(self, schema, schema.variables)

    def _plan(self, structure: None, public: Any) -> TablesInSteps[Search]:
        return self._mechanism(public.schema, "Searching")

    def _measure(self, structure: None, source: PrivateDataset, public: Any) -> Search:
        result, self.guarantee_ = source.release(self._plan(structure, source))
        self.release_, self.releases_ = result.release, tuple(result.releases)
        return result

    def _read(self, structure: None, release: Search) -> None:
        network = PrivateBayesianNetwork()
        network.add_nodes_from(self.release_.schema.variables)
        network.add_edges_from(release.named_edges())
        network.graph[GRAPH_KEY] = self.release_.guarantee
        self.network_ = result = network.fit(self.release_, estimator=AutoMLE())
        graph = FoundGraph()
        graph.add_nodes_from(result.nodes())
        graph.add_edges_from(result.edges())
        carry_learned(result, graph)
        pattern = graph.to_pdag()
        self.causal_graph_ = graph if self.return_type == "dag" else pattern
        self.edges_ = described(result, self.release_, set(pattern.directed_edges))
        self.edges_.attrs[GRAPH_KEY] = learned_graph(result)

    def bootstrap(self, refits: int = 10, seed: int = 0) -> pd.DataFrame:
        """Repeat the search on records drawn from the fitted network, and count how often each edge is found.

        This costs no privacy; each refit takes as long as the search. If the network describes the records, a stable
        edge is nearly always right, and a doubtful one may be right or wrong. The shares are not probabilities.

        Parameters
        ----------
        refits : int
        seed : int
            Seed of the drawn records and of the simulated noise.

        Returns
        -------
        pandas.DataFrame
            `edges_`, with `found` and `verdict` filled in.

        Raises
        ------
        ValueError
            If the graph is not fitted, or units have several rows.
        """
        whole_number("refits", refits)
        if self.guarantee_.max_rows != 1:
            raise ValueError("Searches are repeated for single records, and these units may have several rows.")
        schema, total = self.release_.schema, max(round(self.release_.total), 1)
        again = np.zeros(len(self.edges_))
        # Without its release, since a failed test of fit would be repeated for each refit.
        network = PrivateBayesianNetwork.of(DiscreteBayesianNetwork.copy(self.network_))
        for position in progress("Repeating", "search", of=range(refits)):
            records = network.simulate(total, seed=seed + position)
            dataset = PrivateDataset(
                positions(records, schema),
                schema,
                self._budget(),
                self.guarantee_.neighbours,
                SimulatedNoise([seed, position]),
            )
            result, _ = dataset.release(self._mechanism(schema, None))
            joined = {frozenset(edge) for edge in result.named_edges()}
            again += [
                frozenset(pair) in joined for pair in zip(self.edges_["parent"], self.edges_["child"], strict=True)
            ]
        self.edges_ = self.edges_.assign(
            found=again / refits, verdict=np.where(again / refits >= _STABLE, "stable", "doubtful")
        )
        return self.edges_

    def score(self, X: pd.DataFrame | None = None, true_graph: Any = None, metric: Any = None) -> Any:
        """Judge the graph against public records or a known graph, as pgmpy's searches do.

        Parameters
        ----------
        X : DataFrame, optional
            Public records: the score is exact, and no budget covers it.
        true_graph : pgmpy.base.DAG, optional
            Either this or `X`.
        metric : str or metric of pgmpy, optional
            From `pgmpy.metrics`; by default the structural Hamming distance to a graph, or the correlation score.

        Returns
        -------
        float, or whatever the metric returns
        """
        graph = self.causal_graph_
        if (X is None) == (true_graph is None):
            raise ValueError("Give X, public records, or true_graph, and not both.")
        if metric is None or isinstance(metric, str):
            kind = {"requires_data": True} if X is not None else {"requires_true_graph": True}
            known = get_metrics(**kind, is_default=True) if metric is None else get_metrics(name=metric)
            if not known:
                raise ValueError(f"pgmpy has no metric {metric!r}.")
            metric = known[0]()
        return metric.evaluate(true_graph if X is None else X, graph)

    def plan(self) -> pd.DataFrame:
        """Show the cost of each step, before anything is charged.

        Returns
        -------
        pandas.DataFrame
            One row per step, with its share: of rho, or of epsilon if delta is 0.
        """
        self._check_parameters()
        rows = [(name, step.share) for name, step in self._steps.listed(variables=2)]  # the same for any number
        return pd.DataFrame(rows, columns=["step", "share"])

    def outlook(self, schema: Schema | PublicRecords, records: float) -> Outlook:
        """Predict how noisy a typical pair of the first forest would be, before anything is charged.

        Which pairs are measured is decided step by step: the noise is that of the pair with the median number of cells.

        Parameters
        ----------
        schema : Schema or PublicRecords
        records : float
            A public guess of the number of records.
        """
        self._check_parameters()
        number(above=0.0)("records", records)
        public = self._public_table(None, schema)
        known = public.schema
        if len(known.variables) < 2:
            raise ValueError("A graph needs at least two variables.")
        mechanism = self._mechanism(known, None)
        quote = quoted(mechanism, public)
        pairs = sorted(combinations(known.variables, 2), key=known.cells)
        measured = [step.picks for step in mechanism.steps].index(0, 1)
        loss = quote.terms.losses[measured] / (len(known.variables) - 1)
        typical = Measure([pairs[len(pairs) // 2]], [1.0]).mechanism(loss, mechanism.delta, public)
        return replace(Outlook.of(known, deviations(typical.quote(public)), records, quote.guarantee), states=None)

    def _mechanism(self, schema: Schema, title: str | None) -> TablesInSteps[Search]:
        knowledge = Knowledge.of(self.expert_knowledge, list(schema.variables), self.max_indegree)
        result = Search(schema, knowledge, self.max_indegree)
        steps = [step for _, step in self._steps.listed(len(result.variables))]
        return TablesInSteps(
            steps, self._price(), self.delta, partial(result.run, self._steps, title), "search for a graph", "a graph"
        )


def described(
    network: PrivateBayesianNetwork, release: NoisyMarginals, oriented: Collection[tuple[str, str]]
) -> pd.DataFrame:
    """Describe the edges of a network in a frame; see `PrivateStructureSearch` for the columns."""
    scopes = families(network)
    layout, potentials, _ = log_linear(network, release.schema.states)
    flat = Conditioning(layout).marginals([potentials], scopes)[0]
    rows = []
    for scope, values in Layout.of(layout.cardinalities, scopes).tables(flat).items():
        joint = Table(scope, values)
        for parent in scope[1:]:
            residual, cost = _measured(release, (scope[0], parent), joint)
            information = _information(joint, scope[0], parent)
            rows.append((parent, scope[0], (parent, scope[0]) in oriented, information, residual, cost))
    frame = pd.DataFrame(rows, columns=["parent", "child", "oriented", "information", "residual", "cost"])
    return frame.assign(found=np.nan, verdict="not repeated")


def _information(joint: Table[np.float64], child: str, parent: str) -> float:
    """Return the conditional mutual information of child and parent given the other parents, in nats."""

    def entropy(variables: list[str]) -> float:
        shares = joint.margin(variables).values
        return -float((shares * np.log(np.where(shares > 0, shares, 1.0))).sum())

    others = [variable for variable in joint.variables if variable not in (child, parent)]
    result = (
        entropy([child, *others]) + entropy([parent, *others]) - entropy([child, parent, *others]) - entropy(others)
    )
    return max(result, 0.0)


def _measured(release: NoisyMarginals, pair: tuple[str, str], joint: Table[np.float64]) -> tuple[float, float]:
    """Return how well the network fits the tables that contain a pair, and the sum of their costs."""
    share = joint.margin(pair).values
    expected, residuals, cost = release.total * share, [], 0.0
    one = table_sensitivity(release.guarantee.neighbours, "squared_l2" if release.guarantee.rho else "l1")
    for clique, table in release.tables.items():
        if set(pair) <= set(clique):
            seen = Table(clique, table).margin(pair).values
            variance = release.variances[clique] * table.size / seen.size + expected * (1 - share)
            residuals.append(float(((seen - expected) ** 2 / variance).mean()))
            scale = release.scales[clique]
            cost += one / scale**2 / 2 if release.guarantee.rho else one / scale
    return float(np.mean(residuals)) if residuals else np.nan, cost
