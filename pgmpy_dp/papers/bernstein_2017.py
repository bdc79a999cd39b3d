"""Collective graphical models of Bernstein et al. (2017): CGM-EM as published (Algorithm 2), and its baselines.

The algorithm alternates between an E-step, which finds the counts n behind the noisy counts y given the parameters,
and an M-step, which fits the parameters to n. The E-step solves problem 6 of the paper,

    maximise  theta . n + H(n) + log p(y | n)    over N x the marginal polytope,

by non-linear belief propagation (NLBP, Algorithm 1) or by its exact dual. No iteration decreases the maximum
minus N A(theta), which approximates the log-likelihood of y.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from itertools import combinations
from typing import Any, ClassVar

import networkx as nx
import numpy as np
from pgmpy.base import DAG
from pgmpy.models import DiscreteMarkovNetwork
from scipy.special import gammaln, xlogy
from sklearn.exceptions import ConvergenceWarning

from pgmpy_dp._progress import progress
from pgmpy_dp.data.mechanisms.tables import CountedTables
from pgmpy_dp.errors import warn
from pgmpy_dp.estimators.base import TableEstimator
from pgmpy_dp.estimators.network_estimator import PrivateNetworkEstimator, Structure
from pgmpy_dp.fitting.plans.planning import shares
from pgmpy_dp.fitting.readings.directed import read_joint, require_exact
from pgmpy_dp.fitting.readings.undirected import Tying, maximise_likelihood, noise_regularization
from pgmpy_dp.inference import NLBP as NLBP
from pgmpy_dp.inference import (
    GaussianNoise,
    JunctionTree,
    LaplaceNoise,
    Layout,
    Table,
    build_engine,
    counts_by_dual,
)
from pgmpy_dp.inference.collective.duals import Engine
from pgmpy_dp.inference.tables.table import Vector, project_to_simplex
from pgmpy_dp.inference.trees.factor_graph import INFERENCE
from pgmpy_dp.observed.factors import conditional, families, log_linear, markov_scopes, tabular_cpd
from pgmpy_dp.observed.reading import MeanTables, law_of
from pgmpy_dp.privacy.checks import Constraint, choice, exact_positive, number, optional, whole
from pgmpy_dp.release import NoisyMarginals
from pgmpy_dp.schema import Clique

# Relative tolerance of an E-step's maximum, as a share of the loss or of one nat, whichever is larger.
TOLERANCE = 1e-6
# Distance of an E-step from its maximum, in nats per cell, above which it is reported: a tenth of the mean loss from
# the sampling of the records, which is half a nat per free parameter.
NEGLIGIBLE = 0.05


@dataclass(eq=False, repr=False)
class NaiveMLE(PrivateNetworkEstimator, TableEstimator):
    """Maximum likelihood as if noisy marginals were exact: the baseline of Bernstein et al. (2017).

    Each noisy table is divided by the (estimated) number of records and, by default, projected onto the probability
    simplex. Then theta . mu - A(theta) - regularization |theta|^2 is maximised.

    Parameters
    ----------
    epsilon, neighbours, delta, state_names, mechanism
        See :class:`~pgmpy_dp.AutoMLE`.
    regularization : float, optional
        Weight of the squared norm of the log-potentials, per record; by default a third of the noise scale divided by
        the number of records. The paper does not say how it chose the weight.
    projection : bool
        Project each noisy marginal onto the simplex (Duchi et al. 2008). Without it the objective may have no maximum;
        the paper shows the effect.
    inference : {"auto", "junction_tree", "loopy"}
    max_iter : int
        Largest number of iterations.
    tolerance : float
        Largest gradient component at which to stop.

    Attributes
    ----------
    guarantee_, release_, parameters_, state_names_
        See :class:`~pgmpy_dp.AutoMLE`.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> schema = dp.Schema({"a": ["x", "y"], "b": ["x", "y"]})
    >>> records = pd.DataFrame({"a": ["x", "x", "y", "y"] * 25, "b": ["x", "x", "y", "x"] * 25})
    >>> data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(1.0))
    >>> model = dp.PrivateMarkovNetwork([("a", "b")]).fit(data, estimator=dp.papers.NaiveMLE(epsilon=1.0))
    >>> model.query(["a"]).values.sum().round(6)
    np.float64(1.0)
    """

    _tags: ClassVar[dict[str, Any]] = {"supported_model_types": (DiscreteMarkovNetwork,)}
    _ties: ClassVar[bool] = True
    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "regularization": optional(number(minimum=0.0)),
        "inference": choice(*INFERENCE),
        "max_iter": whole(1),
        "tolerance": exact_positive,
    }

    _: KW_ONLY
    regularization: float | None = None
    projection: bool = True
    inference: str = "auto"
    max_iter: int = 1000
    tolerance: float = 1e-6

    def _plan(self, structure: Structure, public: Any) -> CountedTables:
        if isinstance(structure, Tying):
            return self._noisy_tables(*structure.plan(public.schema))
        scopes = markov_scopes(structure, [rule.variables for rule in public.schema.rules])
        return self._noisy_tables(scopes, [1.0] * len(scopes))

    def _read(self, structure: Structure, release: Any) -> None:
        schema = self._schema(structure, release)
        if isinstance(structure, Tying):
            engine: Any = structure.engine(release.schema)
            release = structure.tables(release)
        else:
            scopes = markov_scopes(structure, [*release.cliques, *(rule.variables for rule in schema.rules)])
            engine = build_engine(schema.cardinalities(), scopes, self.inference)
        self._set_parameters(self._factors(engine, self._maximise(engine, release), schema), schema)

    def _maximise(self, engine: Engine, release: Any) -> Vector:
        own = [release.marginal(scope) for scope in engine.layout.scopes]
        shares = [table / release.total for table, _ in own]
        marginals = engine.layout.flatten(map(project_to_simplex, shares) if self.projection else shares)
        weight = self.regularization
        if weight is None:
            weight = noise_regularization([variance for _, variance in own], release.total)
        potentials, converged = maximise_likelihood(engine, marginals, weight, self.max_iter, self.tolerance)
        self._warn_unless(converged)
        return potentials


@dataclass(frozen=True)
class Path:
    """Parameters and likelihoods of CGM-EM at each iteration."""

    potentials: list[Vector]  # log-potentials at the start and after each iteration
    likelihoods: list[float]


def cgm_em(
    engine: Engine,
    start: Vector,
    noise: LaplaceNoise | GaussianNoise,
    total: float,
    iterations: int,
    e_step: str = "dual",
    max_inner: int = 500,
    m_step: Callable[[Vector], Vector] | None = None,
) -> Path:
    """Run CGM-EM (Algorithm 2) from log-potentials theta, for noisy counts of the engine's tables and N.

    `m_step` maps counts n to the log-potentials that maximise theta . n - N A(theta). By default they are those of the
    E-step, theta + l with multipliers l: n = N mu(theta + l), so they are a maximum if potentials are free.

    A warning is issued if E-steps stop more than 0.05 nats per cell below their maximum, or loopy propagation does not
    converge. With a duality gap g, N KL(n / N || n* / N) <= g on a junction tree, since log p(y | n) is concave; by
    Pinsker's inequality no probability is then off by more than sqrt(g / 2 N).
    """
    path, likelihoods, gaps = [start], [], []
    before = engine.calibrate(start)
    for iteration in progress("CGM-EM", "iteration", of=range(iterations + 1)):
        theta = path[-1]
        if e_step == "nlbp":
            tolerance = TOLERANCE * max(1.0, noise.loss(total * before.marginals)) / theta.size
            result = NLBP(engine, max_iter=max_inner, tolerance=tolerance).run(theta, noise, total)
        else:
            result = counts_by_dual(engine, theta, noise, total, TOLERANCE, max_inner)
        after = engine.calibrate(result.potentials)
        # theta . n + H(n) + log p(y | n) - N A(theta), where H(n) = N A(phi) - phi . n for n = N mu(phi).
        gained = total * (after.log_partition - before.log_partition)
        moved = np.where(np.isfinite(theta), result.potentials - theta, 0.0) * engine.repeats
        likelihoods.append(float(gained - moved @ result.counts - noise.loss(result.counts)))
        if result.gap > NEGLIGIBLE * theta.size or not after.converged:
            gaps.append(result.gap)
        if iteration < iterations:
            path.append(result.potentials if m_step is None else m_step(result.counts))
            before = after if m_step is None else engine.calibrate(path[-1])
    if gaps:
        off = min(1.0, math.sqrt(max(gaps) / (2 * total)))
        warn(
            f"{len(gaps)} of {iterations + 1} E-steps of CGM-EM did not converge in {max_inner} iterations (duality "
            f"gap up to {max(gaps):.3g} nats). Their probabilities are off by at most {off:.2g}, or about that with "
            "loopy propagation: answers can be used where this does not matter; otherwise raise max_inner, or choose "
            "e_step='dual' on a junction tree.",
            ConvergenceWarning,
        )
    return Path(path, likelihoods)


@dataclass(eq=False, repr=False)
class CGMEM(NaiveMLE):
    """CGM-EM with non-linear belief propagation (NLBP) or the exact dual, as published by Bernstein et al. (2017).

    It fits noisy tables of the network's own cliques. EM starts from a fit that treats noisy tables as exact, and keeps
    the parameters after each iteration. The paper does not state a stopping rule. At convergence, CGM-EM minimises the
    distance of the model's marginals from the noisy tables and so overfits the noise: the number of iterations is its
    only regularisation. For accurate networks use :class:`~pgmpy_dp.CollectiveEM`, which fits the same likelihood with
    a prior calibrated by the release.

    Parameters
    ----------
    epsilon, neighbours, delta, state_names, mechanism
        See :class:`~pgmpy_dp.AutoMLE`.
    regularization, projection, max_iter, tolerance
        See :class:`NaiveMLE`.
    iterations : int
        Number of EM iterations.
    e_step : {"dual", "nlbp"}
        Solver of the E-step: its dual, which is exact on a junction tree, or NLBP, the paper's Algorithm 1.
    max_inner : int
        Largest number of iterations of an E-step. NLBP's gap to the maximum decreases with their inverse; if more than
        0.05 nats per cell are left, a warning says by how much probabilities may be off.
    total : float, optional
        Number of records N, which the paper takes as known; by default estimated from the release.
    inference : {"auto", "junction_tree", "loopy"}
        With "loopy", both E-step solvers are approximate.

    Attributes
    ----------
    path_ : list of ndarray
        Log-potentials, or log CPDs of a Bayesian network, in the order of the cliques, at the start (index 0) and after
        each iteration k (index k).
    history_ : list of float
        Approximate log-likelihood of the noisy tables for each entry of `path_`, in nats, up to a constant. It does
        not decrease on a junction tree.
    guarantee_, release_, parameters_, state_names_
        See :class:`~pgmpy_dp.AutoMLE`.

    Notes
    -----
    For cliques that share a table but were measured separately, the mean table is fitted. Its noise is approximated by
    noise of the release's kind with the variance of the mean.

    References
    ----------
    G. Bernstein, R. McKenna, T. Sun, D. Sheldon, M. Hay and G. Miklau (2017). Differentially private learning of
    undirected graphical models using collective graphical models. ICML.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> from pgmpy_dp import papers
    >>> schema = dp.Schema({"a": ["x", "y"], "b": ["x", "y"]})
    >>> records = pd.DataFrame({"a": ["x", "x", "y", "y"] * 25, "b": ["x", "x", "y", "x"] * 25})
    >>> data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(0))
    >>> estimator = papers.CGMEM(epsilon=1.0, iterations=8, e_step="nlbp")
    >>> network = dp.PrivateMarkovNetwork([("a", "b")]).fit(data, estimator=estimator)
    >>> len(estimator.path_), estimator.history_[8] > estimator.history_[0]
    (9, True)
    """

    _tags: ClassVar[dict[str, Any]] = {"supported_model_types": (DAG, DiscreteMarkovNetwork)}

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        **NaiveMLE._constraints,
        "iterations": whole(1),
        "e_step": choice("dual", "nlbp"),
        "max_inner": whole(1),
        "total": optional(exact_positive),
    }

    _: KW_ONLY
    iterations: int = 16
    e_step: str = "dual"
    max_inner: int = 500
    total: float | None = None

    def _plan(self, structure: Structure, public: Any) -> CountedTables:
        if not isinstance(structure, DAG):
            return super()._plan(structure, public)
        scopes = families(structure)
        if self.inference == "junction_tree":
            require_exact(public.schema, scopes)
        return self._noisy_tables(scopes, shares(public.schema, scopes))

    def _read(self, structure: Structure, release: Any) -> None:
        if not isinstance(structure, DAG):
            super()._read(structure, release)
            return
        scopes, schema = families(structure), self._schema(structure, release)
        engine = build_engine(schema.cardinalities(), scopes, self.inference)

        def logs_of(tables: Iterable[Vector]) -> Vector:
            with np.errstate(divide="ignore"):
                return engine.layout.flatten(np.log(table) for table in tables)

        def m_step(counts: Vector) -> Vector:
            return logs_of(map(conditional, engine.layout.split(counts)))

        logs = self._iterate(engine, release, logs_of(read_joint(release, scopes, None)), m_step)
        tables = zip(scopes, engine.layout.split(np.exp(logs)), strict=True)
        self._set_parameters([tabular_cpd(scope, table, schema.states) for scope, table in tables], schema)

    def _maximise(self, engine: Engine, release: Any) -> Vector:
        return self._iterate(engine, release, super()._maximise(engine, release))

    def _iterate(
        self, engine: Engine, release: Any, start: Vector, m_step: Callable[[Vector], Vector] | None = None
    ) -> Vector:
        noise, total = tables_noise(engine.layout, release), float(self.total or release.total)
        path = cgm_em(engine, start, noise, total, self.iterations, self.e_step, self.max_inner, m_step)
        self.path_, self.history_ = path.potentials, path.likelihoods
        return path.potentials[-1]


def tables_noise(layout: Layout, release: NoisyMarginals | MeanTables) -> LaplaceNoise | GaussianNoise:
    """Return the noisy tables of the layout's cliques, with the law of their noise; raise if one was not measured."""
    own = {frozenset(clique): clique for clique in release.tables}
    observed, variances = [], []
    for scope in layout.scopes:
        if frozenset(scope) not in own:
            raise ValueError(
                f"CGM-EM fits noisy tables of the network's own cliques, and {scope} was not measured: fit "
                "CollectiveEM, which takes tables of any cliques."
            )
        clique = own[frozenset(scope)]
        observed.append(np.transpose(release.tables[clique], [clique.index(variable) for variable in scope]))
        variances.append(release.variances[clique])
    return law_of(release)(layout.flatten(observed).astype(np.float64), layout.per_cell(variances))


def log_weight(tables: Mapping[Clique, Vector]) -> float:
    """Compute log h(n), the logarithm of the number of ordered data sets with these clique counts.

    Parameters
    ----------
    tables : mapping of clique to ndarray
        Counts n of the cliques of a junction tree, i.e. of the maximal cliques of a decomposable model.

    Returns
    -------
    float
        log N! + sum of log n_S! over the cells of separators - sum of log n_C! over the cells of cliques; -inf if no
        data set has these counts, because they are negative, not whole, or disagree on a separator.

    Examples
    --------
    Of 4 records, 2 have (a, b) = (0, 0), one (0, 1) and one (1, 0): there are 4! / 2! orders.

    >>> round(np.exp(log_weight({("a", "b"): np.array([[2, 1], [1, 0]])})))
    12
    """
    total, separators = _junction_tree_counts(tables)
    possible = all((table >= 0).all() and (table == np.round(table)).all() for table in tables.values())
    if not possible or not all(np.array_equal(*sides) for sides in separators):
        return -np.inf
    return float(
        gammaln(total + 1)
        + sum(gammaln(counts + 1).sum() for counts, _ in separators)
        - sum(gammaln(table + 1).sum() for table in tables.values())
    )


def entropy(tables: Mapping[Clique, Vector]) -> float:
    """Compute H(n), which is log h(n) with Stirling's approximation log k! = k log k - k (Proposition 5).

    It is N times the entropy of the distribution of the model whose marginals are n / N. Arguments are as for
    :func:`log_weight`; counts may be fractions.

    Examples
    --------
    >>> round(entropy({("a",): np.array([2.5, 2.5])}), 4)  # 5 log 2
    3.4657
    """
    total, separators = _junction_tree_counts(tables)
    return float(
        xlogy(total, total)
        + sum(xlogy(counts, counts).sum() for counts, _ in separators)
        - sum(xlogy(table, table).sum() for table in tables.values())
    )


def log_density(network: DiscreteMarkovNetwork, tables: Mapping[Clique, Vector], approximate: bool = False) -> float:
    """Compute log p(n; theta), the log-density of the collective graphical model of a decomposable network.

    It is theta . n - N A(theta) + log h(n), or H(n) in place of log h(n) if `approximate` (Proposition 5 without its
    term for noisy counts).

    Parameters
    ----------
    network : DiscreteMarkovNetwork
        With factors, each within one of the cliques of `tables`.
    tables : mapping of clique to ndarray
        As for :func:`log_weight`, with states in the network's order.
    approximate : bool

    Examples
    --------
    >>> from pgmpy.factors.discrete import DiscreteFactor
    >>> network = DiscreteMarkovNetwork([("a", "b")])
    >>> network.add_factors(DiscreteFactor(["a", "b"], [2, 2], [4, 3, 2, 1]))
    >>> tables = {("a", "b"): np.array([[1, 0], [0, 1]])}
    >>> bool(np.isclose(np.exp(log_density(network, tables)), 2 * 0.4 * 0.1))
    True
    """
    layout, theta, _ = log_linear(network)
    calibration = JunctionTree.build(layout.cardinalities, layout.scopes).calibrate(theta)
    score = -next(iter(tables.values())).sum() * calibration.log_partition
    for scope, part in layout.tables(theta).items():
        clique = next((clique for clique in tables if set(scope) <= set(clique)), None)
        if clique is None:
            raise ValueError(f"No table has the counts of {scope}: give those of all cliques of the junction tree.")
        score += xlogy(Table(clique, tables[clique]).margin(scope).values, np.exp(part)).sum()
    return float(score) + (entropy(tables) if approximate else log_weight(tables))


def _junction_tree_counts(tables: Mapping[Clique, Vector]) -> tuple[float, list[tuple[Vector, Vector]]]:
    """Return N, and the counts of each separator of a junction tree by the cliques on its two sides."""
    joined = nx.Graph()
    joined.add_nodes_from(tables)
    joined.add_weighted_edges_from((one, other, len({*one} & {*other})) for one, other in combinations(tables, 2))
    edges = list(nx.maximum_spanning_edges(joined, data=False))
    # A spanning tree of the cliques is a junction tree if it has each variable in one separator less than in cliques.
    excess = Counter(variable for clique in tables for variable in clique)
    for one, other in edges:
        excess.subtract({*one} & {*other})
    if any(number != 1 for number in excess.values()):
        raise ValueError(
            f"The cliques {list(tables)} have no junction tree, and h(n) is not known for them: give the counts of the "
            "maximal cliques of a triangulated graph."
        )
    shared = [(one, other, [variable for variable in one if variable in other]) for one, other in edges]
    sides = [tuple(Table(side, tables[side]).margin(common).values for side in pair) for *pair, common in shared]
    return float(next(iter(tables.values())).sum()), sides  # type: ignore[return-value]
