"""Fit of one Markov network, whose cliques may share parameters, to all noisy tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pgmpy.models import DiscreteMarkovNetwork

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.fitting.plans.planning import shares
from pgmpy_dp.fitting.readings.directed import ITERATIONS
from pgmpy_dp.inference import Calibration, FactorGraph, JunctionTree, Layout, build_engine
from pgmpy_dp.inference.collective.duals import Engine, LinearMap
from pgmpy_dp.inference.collective.expected_losses import expected_loss
from pgmpy_dp.inference.tables.optimisation import minimise
from pgmpy_dp.inference.tables.table import Vector, project_to_simplex
from pgmpy_dp.inference.trees.factor_graph import MAX_TABLE_CELLS
from pgmpy_dp.inference.trees.junction_tree import TiedTree
from pgmpy_dp.observed.factors import forbidden_log_mask, markov_scopes, outside, scope_masks
from pgmpy_dp.observed.informed_marginals import require_tables
from pgmpy_dp.observed.observed import Observed, observed_of
from pgmpy_dp.observed.reading import MeanTables, first_containing, maximal
from pgmpy_dp.release import Release
from pgmpy_dp.release.kinds import MIN_VARIANCE
from pgmpy_dp.schema import Clique, Schema

# Degrees of freedom of the prior: log-potentials have a long lower tail, from states that hardly occur together.
_FREEDOM = 3.0
# The prior's initial squared scale, and its weight as a number of potentials.
_FIRST_SCALE, _FIRST_WEIGHT = 0.6, 2.0
# Share of the interactions in the tables that stay identified despite posterior correlations.
_DETERMINED = 0.75

# Bounds of log-potentials and of log variances: trial steps of the optimiser must not overflow.
_FARTHEST, _SMALLEST, _LARGEST = 1e4, -80.0, 4.0

# Bound on log-potentials: an empty cell pulls its potential to minus infinity, but beyond this only rounding changes.
_CAP = 100.0
_MISSED = 1e-3

_LOOPY_ROUNDS = 10
_ROUNDS = 5
_ROUND_ITERATIONS = 15


@dataclass(frozen=True)
class UndirectedFit:
    """A fitted network; those of loopy propagation are finished after few rounds by design."""

    potentials: Vector  # logarithms in the engine's layout, zero for measured tables without any
    prior_scale: float
    objective: float  # in nats; for loopy propagation the gap of the last E-step
    finished: bool


class _Bound:
    """Minus a lower bound on log p(y), as a function of the posterior's location and log variances."""

    def __init__(
        self, tree: JunctionTree | TiedTree, scopes: Sequence[Clique], seen: Observed, forbidden: Vector | None = None
    ) -> None:
        layout = tree.layout
        self.forbidden = 0.0 if forbidden is None else forbidden
        self.tree, self.total, self.observations = tree, seen.total, seen
        self.free, self.seen = layout.places(scopes), LinearMap(layout.places(seen.cliques))
        self.loss = expected_loss(seen.noise.at_least(MIN_VARIANCE))
        apart = set(outside(seen.cliques, scopes))
        tables = Layout.of(layout.cardinalities, seen.cliques)
        self.outside = tables.per_cell([clique in apart for clique in tables.scopes])
        # Index of the potential of an observed cell; `size` if it has none of its own.
        own = np.full(layout.size, self.free.size)
        own[self.free] = np.arange(self.free.size)
        self.own = own[self.seen.places]
        self.precision = np.ones(self.free.size)
        # Cells without a potential read their (zero) spread from one extra entry.
        self.spread = np.zeros(self.free.size + 1)
        self.potentials = np.zeros(layout.size)

    def calibrate(self, location: Vector) -> Calibration:
        self.potentials[self.free] = location + self.forbidden
        return self.tree.calibrate(self.potentials)

    def _to_potentials(self, by_cell: Vector) -> Vector:
        return np.bincount(self.own, by_cell, self.free.size + 1)[:-1].astype(np.float64)

    def __call__(self, point: Vector) -> tuple[float, Vector]:
        size = self.free.size
        location = np.minimum(np.maximum(point[:size], -_FARTHEST), _FARTHEST)
        logs = np.minimum(np.maximum(point[size:], _SMALLEST), _LARGEST)
        spread = np.exp(logs, out=self.spread[:size])
        calibration = self.calibrate(location)
        counts = self.total * self.seen.apply(calibration.marginals)
        loss, by_count, by_spread = self._loss(counts, self.spread[self.own])
        direction = self.seen.adjoint(self.total * by_count, self.tree.layout.size)
        mean = location - spread / 2
        pull = self.precision * mean
        slope = self.tree.covariance_product(calibration, direction)[self.free] + pull
        slope_spread = self._to_potentials(by_spread) + (self.precision - pull) / 2 - 0.5 / spread
        value = loss - self.loss.minimum + 0.5 * float(self.precision @ (mean**2 + spread) - logs.sum())
        return value, np.concatenate([slope, slope_spread * spread])

    def _loss(self, counts: Vector, spread: Vector) -> tuple[float, Vector, Vector]:
        """Sum E[rho(y - A (n exp(sqrt(v) t - v / 2)))] over t ~ N(0, 1), with derivatives by n and by v."""
        seen = self.observations
        if seen.matrix is None:
            return self.loss.of_counts(counts, spread)
        growth = np.exp(spread)
        sums, fluctuation = seen.expected(counts), seen.expected_squares(counts**2 * (growth - 1))
        value, by_sum, by_fluctuation = self.loss.of_sums(sums, fluctuation)
        by_square = seen.squares_to_counts(by_fluctuation)
        by_count = seen.to_counts(by_sum) + 2 * counts * (growth - 1) * by_square
        return value, by_count, counts**2 * growth * by_square

    def curvature(self, marginals: Vector) -> Vector:
        """Add the Fisher information of each potential from its own observations to the prior's precision."""
        inside = self.seen.apply(marginals)
        information = self.observations.squares_to_counts(self.loss.information)
        return self._to_potentials((self.total * inside * (1 - inside)) ** 2 * information) + self.precision


class _Prior:
    """Student t prior on log-potentials, as a scale mixture of normal ones; its scale is learned by evidence."""

    def __init__(self, layout: Layout, scopes: Sequence[Clique], scale: float | None) -> None:
        cells = int(Layout.of(layout.cardinalities, scopes).offsets[-1])
        self.identified = _DETERMINED * _interactions(layout, scopes) / cells
        self.fixed = scale is not None
        self.square = _FIRST_SCALE if scale is None else scale**2

    def learn(self, mean: Vector, spread: Vector, precision: Vector) -> Vector:
        """Return new precisions of the potentials; the squared scale is updated as well."""
        second = mean**2 + self.identified * spread + (1 - self.identified) / precision
        known = self.identified * np.maximum(1 - precision * spread, 0.0).sum()
        weight = np.ones_like(mean)
        for _ in range(5):
            weight = (_FREEDOM + 1) / (_FREEDOM + second / self.square)
            if not self.fixed:
                fresh = ((weight * mean**2).sum() + _FIRST_WEIGHT * _FIRST_SCALE) / (known + _FIRST_WEIGHT)
                self.square = min(max(float(fresh), self.square / 3), self.square * 3)
        return weight / self.square


def fit_undirected(
    engine: JunctionTree | TiedTree | FactorGraph,
    scopes: Sequence[Clique],
    seen: Observed,
    max_iter: int,
    prior_scale: float | None,
    forbidden: Vector | None = None,
) -> UndirectedFit:
    """Find the network that best explains all observations, with potentials on the scopes.

    On a junction tree, a mean-field posterior N(m, diag v) of the log-potentials minimises

        sum_j E rho_j(y_j - N sum_c A_jc mu_c(a) exp(sqrt(v_c) t_c - v_c / 2))
            + sum_c precision_c (m_c^2 + v_c) / 2 - log(v_c) / 2,

    where rho is minus the log density of the noise, t is standard normal, and a = m + v / 2, the log-potentials of the
    posterior mean, are the fit. The prior is a Student t with three degrees of freedom, whose scale, unless given, is
    learned by MacKay's fixed point: if noise drowns all signal the fit is uniform, and without noise it is that of
    maximum likelihood. Tables larger than the network's own may deviate from it as far as a sample does.

    By loopy propagation, whose marginals have no exact derivative, a few rounds of EM in the collective graphical model
    are run (Bernstein et al. 2017, Algorithm 2), with a normal prior of the given scale (1 if None) in the M-step.
    """
    if isinstance(engine, FactorGraph):
        return _fit_loopy(engine, scopes, seen, max_iter, prior_scale)
    bound = _Bound(engine, scopes, seen, forbidden)
    prior = _Prior(engine.layout, scopes, prior_scale)
    bound.precision = np.full(bound.free.size, 1.0 / prior.square)
    location = naive_start(engine, scopes, seen.releases)[bound.free]
    marginals = bound.calibrate(location).marginals
    # Tables that the network cannot fit may deviate from it as a sample does: a cell's expected count adds to its
    # variance.
    bound.loss = bound.loss.allow(seen.expected_squares(bound.total * bound.seen.apply(marginals) * bound.outside))
    spread = 1.0 / bound.curvature(marginals)
    point, size, value = np.concatenate([location, np.log(spread)]), location.size, math.inf
    for number in range(_ROUNDS):
        curvature = bound.curvature(bound.calibrate(point[:size]).marginals)
        scale = 1.0 / np.sqrt(np.concatenate([curvature, np.full(size, 0.5)]))
        iterations = max_iter if number == _ROUNDS - 1 else min(_ROUND_ITERATIONS, max_iter)
        solution = minimise(bound, point, iterations, gain=1e-7, memory=10, scale=scale)
        point, value = solution.point, solution.value
        if number < _ROUNDS - 1:
            spread = np.exp(np.clip(point[size:], _SMALLEST, _LARGEST))
            bound.precision = prior.learn(point[:size] - spread / 2, spread, bound.precision)
    potentials = np.zeros(engine.layout.size)
    potentials[bound.free] = point[:size]
    return UndirectedFit(potentials, math.sqrt(prior.square), value, solution.finished)


def _fit_loopy(
    engine: FactorGraph, scopes: Sequence[Clique], seen: Observed, max_iter: int, prior_scale: float | None
) -> UndirectedFit:
    layout, total = engine.layout, seen.total
    free = layout.places(scopes)
    precision = 1.0 / (1.0 if prior_scale is None else prior_scale) ** 2
    potentials, gap = naive_start(engine, scopes, seen.releases), math.nan
    for _ in range(min(max_iter, _LOOPY_ROUNDS)):
        step = seen.explain(engine, potentials, max_iter=30)
        # One diagonal Newton step of the M-step; without a prior the tilted potentials themselves are the solution.
        curvature = np.maximum(step.counts[free] * (1 - step.counts[free] / total), 0.0)
        fresh = np.zeros_like(potentials)
        fresh[free] = step.potentials[free] * curvature / (curvature + precision)
        moved, potentials, gap = float(np.abs(fresh - potentials).max()), fresh, step.gap
        if moved < 1e-3:
            break
    return UndirectedFit(potentials, precision**-0.5, gap, True)


def _interactions(layout: Layout, scopes: Sequence[Clique]) -> int:
    """Return the number of independent parameters of a log-linear model with these tables."""
    closure = {
        frozenset(part) for scope in scopes for size in range(1, len(scope) + 1) for part in combinations(scope, size)
    }
    return sum(math.prod(layout.cardinalities[variable] - 1 for variable in part) for part in closure)


def maximise_likelihood(
    engine: Engine,
    marginals: Vector,
    regularization: float,  # per record; positive if a marginal has zeros, or there is no maximum
    max_iter: int,
    tolerance: float,
    gain: float = 1e-15,
    places: NDArray[np.int64] | None = None,
) -> tuple[Vector, bool]:
    """Maximise theta . marginals - A(theta) - regularization |theta|^2 by log-potentials; say if it converged."""
    size = engine.layout.size
    places = np.arange(size) if places is None else places
    # The Hessian is the covariance of the cell indicators: scaling by its diagonal makes equal steps suit rare and
    # common cells.
    repeats = np.broadcast_to(engine.repeats, size)[places]
    share = np.clip(marginals, 0.0, 1.0)
    scale = 1.0 / np.sqrt(repeats * share * (1 - share) + 2 * regularization + 1e-12)
    target = repeats * marginals

    def spread(own: Vector) -> Vector:
        potentials = np.zeros(size)
        potentials[places] = np.clip(own, -_CAP, _CAP)
        return potentials

    def objective(own: Vector) -> tuple[float, Vector]:
        calibration = engine.calibrate(spread(own))
        value = calibration.log_partition - own @ target + regularization * own @ own
        slope = repeats * calibration.marginals[places] * (np.abs(own) < _CAP) - target
        return float(value), slope + 2 * regularization * own

    start = np.zeros(places.size)
    solution = minimise(objective, start, max_iter, slope=tolerance, gain=gain, scale=scale)
    return spread(solution.point), solution.slope <= _MISSED


def noise_regularization(variances: Sequence[float], total: float) -> float:
    """Return a regularisation of the size of the noise: a third of its mean scale, as a share of the records."""
    return max(math.sqrt(float(np.mean(variances)) / 2) / (3 * total), 1e-12)


def naive_start(engine: Engine, scopes: Sequence[Clique], releases: Sequence[Release]) -> Vector:
    """Maximise the likelihood of the measured tables, those of earlier releases first, regularised by their noise."""
    sources = {scope: first_containing(releases, scope) for scope in scopes}
    measured = {scope: source for scope, source in sources.items() if source is not None}
    if not measured:
        return np.zeros(engine.layout.size)
    total = releases[0].total
    positions = engine.layout.places(list(measured))
    tables = [source.marginal(scope) for scope, source in measured.items()]
    layout = Layout.of(engine.layout.cardinalities, list(measured))
    marginals = layout.flatten(project_to_simplex(table / total) for table, _ in tables)
    weight = noise_regularization([variance for _, variance in tables], total)
    return maximise_likelihood(engine, marginals, weight, 200, tolerance=0.0, gain=3e-3 * weight, places=positions)[0]


Groups = dict[Clique, tuple[Clique, ...]]


@dataclass(frozen=True)
class Tying:
    """Groups of cliques of a network that share parameters, by the names under which their tables are measured."""

    groups: Groups
    pooled: bool  # whether each group is measured by name, as one table of all its cliques; else the cliques are
    nodes: tuple[str, ...]

    @classmethod
    def of(cls, network: DiscreteMarkovNetwork) -> Tying | None:
        """Return the groups of a network; None if it has none."""
        tied = getattr(network, "tied", None)
        if not tied:
            return None
        pooled = isinstance(tied, Mapping)
        listed = tied.items() if pooled else ((None, group) for group in tied)
        groups: Groups = {}
        for number, (name, cliques) in enumerate(listed):
            fresh = tuple(f"tied {number}, axis {axis}" for axis in range(len(cliques[0])))
            groups[fresh if name is None else name] = tuple(cliques)
        contained = {frozenset(clique) for cliques in groups.values() for clique in cliques}
        groups |= {scope: (scope,) for scope in markov_scopes(network) if frozenset(scope) not in contained}
        return cls(groups, pooled, tuple(network.nodes()))

    @property
    def variables(self) -> list[str]:
        """The variables that a release must have: the groups' if they are measured by name, else the network's."""
        if not self.pooled:
            return list(self.nodes)
        return list(dict.fromkeys(variable for name in self.groups for variable in name))

    def plan(self, schema: Schema) -> tuple[Sequence[Clique], Sequence[float]]:
        """Choose what to measure and in which shares; raises before the charge if it could not be fitted."""
        self.engine(schema)
        cliques = [clique for group in self.groups.values() for clique in group]
        names = tuple(self.groups) if self.pooled else maximal(cliques)
        return names, shares(schema, names)

    def node_schema(self, schema: Schema) -> Schema:
        """Return the states of the network's nodes; SchemaError if tied cliques disagree about them."""
        states: dict[str, tuple[Any, ...]] = {}
        for name, cliques in self.groups.items():
            of_name = [schema.states[v] for v in (name if self.pooled else cliques[0])]
            for clique in cliques:
                for variable, wanted in zip(clique, of_name, strict=True):
                    own = wanted if self.pooled else schema.states[variable]
                    if own != wanted or states.setdefault(variable, own) != own:
                        raise SchemaError(
                            f"Variable {variable!r} is tied to one with other states: they must be the same."
                        )
        return Schema({node: states[node] for node in self.nodes})

    def name_schema(self, schema: Schema) -> Schema:
        """Return the states of the variables in the groups' names."""
        if self.pooled:
            return schema.select(self.variables)
        axes = (
            (v, schema.states[w]) for name, (first, *_) in self.groups.items() for v, w in zip(name, first, strict=True)
        )
        return Schema(dict(axes))

    def engine(self, schema: Schema) -> TiedTree:
        """Compile the tree, for the states in a release."""
        nodes, names = self.node_schema(schema).cardinalities(), self.name_schema(schema).cardinalities()
        return TiedTree.build(nodes, self.groups, names, MAX_TABLE_CELLS)

    def tables(self, release: Release) -> Any:
        """Return one table per group, as `NoisyMarginals` or `MeanTables`."""
        refusal = "A network with tied parameters is fitted from tables: measure them with `measure`."
        release = require_tables(release, refusal)
        if self.pooled:
            return release
        tables, variances = {}, {}
        for name, cliques in self.groups.items():
            read = [release.marginal(clique) for clique in cliques]
            tables[name] = np.mean([table for table, _ in read], axis=0)
            variances[name] = sum(variance for _, variance in read) / len(read) ** 2
        total, variance = release.total, release.total_variance
        return MeanTables(
            self.name_schema(release.schema), tables, variances, total, variance, release.guarantee, release.law
        )


def fit_markov(
    structure: DiscreteMarkovNetwork | Tying,
    releases: Sequence[Release],
    schema: Schema,
    max_iter: int = ITERATIONS,
    prior_scale: float | None = None,
    inference: str = "auto",
) -> tuple[UndirectedFit, Any, Sequence[Clique] | None]:
    """Find the Markov network behind all observations in releases, its engine, and which of its tables have potentials.

    With tied parameters these are all tables, and None.
    """
    if isinstance(structure, Tying):
        tables = [structure.tables(part) for part in releases]
        names = list(dict.fromkeys(v for name in structure.groups for v in name))
        tree, observed = structure.engine(releases[0].schema), Observed.of(tables, names)
        return fit_undirected(tree, tree.layout.scopes, observed, max_iter, prior_scale), tree, None

    def scopes_of(cliques: Sequence[Clique]) -> Sequence[Clique]:
        return markov_scopes(structure, dict.fromkeys([*cliques, *(rule.variables for rule in schema.rules)]))

    observed = observed_of(releases, list(schema.variables), scopes_of)
    scopes = scopes_of(observed.cliques)
    engine = build_engine(schema.cardinalities(), dict.fromkeys([*scopes, *observed.cliques]), inference)
    forbidden = forbidden_log_mask(scopes, scope_masks(scopes, schema), schema)
    return fit_undirected(engine, scopes, observed, max_iter, prior_scale, forbidden), engine, scopes
