"""Draws of networks from their posterior, which show the uncertainty that a release leaves."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pgmpy.base import DAG
from pgmpy.models import DiscreteMarkovNetwork
from scipy.sparse.linalg import LinearOperator, cg

from pgmpy_dp.errors import warn
from pgmpy_dp.fitting.readings.directed import united
from pgmpy_dp.fitting.readings.undirected import naive_start
from pgmpy_dp.inference import Calibration, JunctionTree, Layout, sample
from pgmpy_dp.inference.collective.noise_laws import Noise
from pgmpy_dp.inference.posterior.hamiltonian import (
    Concentrations,
    Judge,
    Scale,
    each_mean,
    log_gamma,
    mean_network,
    sample_posterior,
)
from pgmpy_dp.inference.posterior.log_posterior import LogPosterior
from pgmpy_dp.inference.tables.table import Rows, Vector
from pgmpy_dp.inference.trees.factor_graph import MAX_TABLE_CELLS
from pgmpy_dp.inference.trees.junction_tree import counted
from pgmpy_dp.observed.factors import (
    Network,
    bayesian_network,
    families,
    family_masks,
    forbidden_log_mask,
    markov_scopes,
    outside,
    scope_masks,
)
from pgmpy_dp.observed.observed import Observed, agreed_schema, informative_tables
from pgmpy_dp.observed.partially_pooled_marginals import PartiallyPooledMarginals
from pgmpy_dp.observed.reading import first_containing, maximal
from pgmpy_dp.privacy.checks import choice
from pgmpy_dp.release import Release
from pgmpy_dp.release.kinds import MIN_VARIANCE, refuse_exact, refuse_repeated
from pgmpy_dp.schema import Clique, Schema

# Number of records simulated to find how sampling changes the counts of a Markov network; scaled to the actual number.
_SIMULATED = 10_000
# Maximum number of Newton steps of a fit to counts and of halvings of a step, and the gain of log-likelihood at which
# to stop.
_NEWTON_STEPS, _HALVINGS, _MIN_GAIN = 6, 12, 0.1

# Number of cells above which a smaller tree is searched for, and evaluations of a chain, as a multiple of a fit's.
_LARGE, _FITS = 10_000, 100
# Maximum length of an extended chain, relative to the requested draws, times the cells of the tree; and the number of
# cells above which a chain is not even doubled.
_MAX_WORK, _SINGLE = 600_000, 4_000
_LONGEST = 32  # longest chain, in requested draws, while means are uncertain


def warn_of_slow_mixing(poor: str, draws: int, call: str = "sample_draws(draws={}), and compare two seeds") -> None:
    """Warn of what is uncertain after this many draws, with the call that draws more."""
    families = "measure tables that hold the network's families, if they were not"
    more = call.format(4 * draws)
    warn(f"The chain that draws networks mixes slowly: {poor}: draw more by {more}; {families}.")


@dataclass(frozen=True, eq=False, repr=False)
class PosteriorNetworks:
    """Draws of networks from their posterior, given one or several releases of the same records."""

    layout: Layout  # of families, or of the cliques that carry potentials
    schema: Schema
    records: Vector  # log-potentials (logarithms of CPDs) of the fits to the noiseless records, a row each
    population: Vector  # and of the population behind them
    totals: Vector  # numbers of records
    poor: str = ""  # what is too uncertain, by the chain that drew them
    borrowed: bool = False  # whether the population's were drawn from other tables, since parts borrowed strength
    mean: Vector = field(default_factory=lambda: np.zeros(0))  # the population's mean tables, if they were asked for

    def draws(self, target: str) -> Vector:
        """Return the draws of the records or of the population."""
        choice("population", "records")("target", target)
        return self.records if target == "records" else self.population

    def part(self, nodes: Collection[str]) -> PosteriorNetworks:
        """Restrict Bayesian networks to some variables and all of their ancestors."""
        scopes = [scope for scope in self.layout.scopes if scope[0] in nodes]
        places, schema = self.layout.places(scopes), self.schema.select([scope[0] for scope in scopes])
        layout = Layout.of(schema.cardinalities(), scopes)
        records, population = self.records[:, places], self.population[:, places]
        return replace(self, layout=layout, schema=schema, records=records, population=population, mean=np.zeros(0))

    def __repr__(self) -> str:
        return f"PosteriorNetworks: {len(self.totals)} draws of {len(self.schema.variables)} variables"


def draw_networks(
    network: Network, releases: Sequence[Release], draws: int = 200, seed: int = 0, *, mean: bool = False
) -> PosteriorNetworks:
    """Draw networks from their posterior given releases: post-processing, at no cost to privacy.

    The records' own distribution is in the network's family, up to deviations exp(d / sqrt(n)) by sampling, d standard
    normal, in each measured cell of n records that the family does not fit exactly. Observations have the mechanism's
    noise about it. Rows have Dirichlet priors with a concentration per state, log-potentials a Student t prior, whose
    scales are learned from the release too. Given the records, the population's rows are drawn exactly, and a Markov
    network is fitted to a simulated sample. Parts of a partially pooled union are drawn one by one, with as many
    records as each borrows strength from. With `mean`, chains may be longer, and the mean tables are computed.
    """
    generator = np.random.default_rng(seed)

    def drawn(network: Network, releases: Sequence[Release]) -> PosteriorNetworks:
        judge, longest = (mean_network, _LONGEST) if mean else (each_mean, 2)
        chain = run_chain(network, releases, draws, generator, judge, longest)
        posterior = networks_of(chain, draws, generator)
        return replace(posterior, mean=_mean_tables(chain, posterior)) if mean else posterior

    scopes = () if isinstance(network, DiscreteMarkovNetwork) else families(network)
    union = united(releases, scopes)
    if not isinstance(union, PartiallyPooledMarginals):
        return drawn(network, releases)
    posterior = drawn(network, [union.as_measured])
    own = DAG()
    own.add_nodes_from([node for node in network.nodes() if node != union.variable])
    own.add_edges_from([edge for edge in network.edges() if union.variable not in edge])
    lent = [drawn(own, [part]) for part in union.drawn_releases]
    positions = posterior.layout.places([(union.variable,)])
    order = _side_by_side(scopes, union.variable, lent[0].layout, len(lent))
    population = np.hstack([posterior.population[:, positions], *(each.population for each in lent)])[:, order]
    poor = next((each.poor for each in (posterior, *lent) if each.poor), "")
    tables = np.hstack([posterior.mean[positions], *(each.mean for each in lent)])[order] if mean else posterior.mean
    return replace(posterior, population=population, poor=poor, borrowed=True, mean=tables)


def _side_by_side(scopes: Sequence[Clique], variable: str, layout: Layout, parts: int) -> NDArray[np.int64]:
    """Index the cells of families of a network in a vector of `variable`'s own table and then every state's tables."""
    numbers, states = (
        layout.tables(np.arange(layout.size, dtype=np.float64)),
        np.arange(parts, dtype=np.float64),
    )
    cells = []
    for scope in scopes:
        rest = tuple(v for v in scope if v != variable)
        each: Any = [parts + part * layout.size + numbers[rest] for part in range(parts)] if rest else states
        cells.append(np.stack(each, scope.index(variable)).ravel())
    return np.concatenate(cells).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Chain:
    """Points of a Markov chain whose limit is the posterior, a row each, and what is too uncertain, if anything is."""

    problem: Problem
    density: LogPosterior
    points: Vector
    priors: Vector
    poor: str


def run_chain(
    network: Network,
    releases: Sequence[Release],
    draws: int,
    generator: np.random.Generator,
    judge: Judge = each_mean,
    longest: int = 2,
) -> Chain:
    """Run a chain of at least this number of draws, and, unless the tree is large, up to `longest` times as many."""
    if not releases:
        raise ValueError("Give at least one release.")
    refuse_repeated(releases)
    problem = _problem(network, releases)
    prior = Scale(problem.cells.size) if problem.rows is None else Concentrations(problem.rows)
    density, start = problem.density(prior.first)
    while longest > 2 and longest * problem.tree.table_cells > _MAX_WORK:
        longest //= 2
    longest = 1 if longest == 2 and problem.tree.table_cells > _SINGLE else longest
    sampled = sample_posterior(density, start, draws, prior.renew, generator, longest=longest, judge=judge)
    return Chain(problem, density, *sampled)


def networks_of(chain: Chain, draws: int, generator: np.random.Generator) -> PosteriorNetworks:
    """Convert evenly spaced points of a chain to networks."""
    problem, density, spacing = chain.problem, chain.density, len(chain.points) // draws
    rows, records, population, totals = problem.rows, [], [], []
    layout = Layout.of(problem.tree.layout.cardinalities, problem.scopes)
    for point, own in zip(chain.points[spacing - 1 :: spacing], chain.priors[spacing - 1 :: spacing], strict=True):
        total = density.total(point)
        calibration = problem.tree.calibrate(density.potentials(point))
        if rows is not None:
            marginals = calibration.marginals[problem.cells]
            records.append(rows.normalise(np.log(np.maximum(marginals, 1e-300))))
            population.append(rows.normalise(log_gamma(total * marginals + own, generator)))
        else:
            logs = density.values(point)[0]
            if problem.effects.size:  # the records need not be in the network's family: take the closest network
                logs = _fitted(problem, logs, total * calibration.marginals[problem.cells], own, total)
            records.append(logs)
            population.append(_fitted(problem, logs, _sampled_counts(problem, logs, total, generator), own, total))
        totals.append(total)
    of_records, of_population = (ruled(problem, np.array(drawn)) for drawn in (records, population))
    return PosteriorNetworks(layout, problem.schema, of_records, of_population, np.array(totals), chain.poor)


def ruled(problem: Problem, logs: Vector) -> Vector:
    """Set the probability of forbidden states to zero in every draw, and normalise it."""
    if problem.schema.rules:
        logs = logs + problem.forbidden
    elif problem.rows is not None:
        return logs
    return np.array([problem.normalised(own) for own in logs])


@dataclass(frozen=True)
class Problem:
    """All releases as observations of one network, in a junction tree's layout."""

    schema: Schema
    scopes: tuple[Clique, ...]
    tree: JunctionTree
    cells: NDArray[np.int64]
    rows: Rows | None
    effects: NDArray[np.int64]
    places: NDArray[np.int64]
    sums: Any
    noise: Noise
    total: float
    total_scale: float
    start: Vector

    @cached_property
    def forbidden(self) -> Vector:
        """Log-mask of the scopes' cells: minus infinity for cells that rules forbid, else 0."""
        masks = (scope_masks if self.rows is None else family_masks)(self.scopes, self.schema)
        return np.asarray(forbidden_log_mask(self.scopes, masks, self.schema))

    def normalised(self, logs: Vector) -> Vector:
        """Scale rows of CPDs, or the potentials of a Markov network, to a total probability of 1."""
        if self.rows is not None:
            return self.rows.normalise(logs)
        return logs - calibrated(self, logs).log_partition / len(self.scopes)

    def density(self, prior: Vector) -> tuple[LogPosterior, Vector]:
        """Return the posterior density and a starting point."""
        from pgmpy_dp.inference.posterior.trajectories import Terms

        scale, corner = self.noise.hyperbolic()
        counts = self.total * calibrated(self, self.start).marginals[self.effects]
        spread = 1 / np.sqrt(np.maximum(counts, 1.0))
        rows = np.zeros(0, dtype=np.int64) if self.rows is None else self.rows.numbers
        terms = Terms(
            self.tree.program, self.tree.maps, self.tree.layout.offsets, self.cells, rows,
            np.full(self.cells.size, np.inf), prior, self.effects, spread, self.places,
            self.sums.indptr.astype(np.int32), self.sums.indices.astype(np.int32), self.sums.data.astype(np.float64),
            self.noise.observed, scale, corner, self.total, self.total_scale,
        )  # fmt: skip
        return LogPosterior(self.tree, terms), np.concatenate([self.start, np.zeros(self.effects.size + 1)])


def _problem(network: Network, releases: Sequence[Release]) -> Problem:
    directed = not isinstance(network, DiscreteMarkovNetwork)
    nodes = list((bayesian_network(network, "The posterior") if directed else network).nodes())
    for release in releases:
        refuse_exact(release)
    agreed = agreed_schema(releases, nodes)  # undeclared variables and other states are reported before unmeasured ones
    unseen = [v for v in nodes if not any(v in release.variables for release in releases)]
    if unseen:
        raise ValueError(f"The releases say nothing of {', '.join(map(repr, unseen))}.")

    def scopes_of(cliques: Sequence[Clique]) -> tuple[Clique, ...]:
        rules = (rule.variables for rule in agreed.rules)
        return tuple(families(network)) if directed else markov_scopes(network, dict.fromkeys([*cliques, *rules]))

    seen = Observed.of(releases, nodes, lambda cliques: informative_tables(cliques, scopes_of(cliques)))
    schema, scopes, cliques = seen.schema, scopes_of(seen.cliques), list(dict.fromkeys(seen.cliques))
    # Sampled records may deviate from a network that fits its families in larger tables, and in those of parents.
    parents_of = {frozenset(scope): scope[1:] for scope in scopes if directed and len(scope) > 2}
    parents = [parents_of[frozenset(clique)] for clique in cliques if frozenset(clique) in parents_of]
    deviating = maximal([*parents, *outside(cliques, scopes)])
    cards = schema.cardinalities()
    tables = dict.fromkeys([*scopes, *cliques, *deviating])
    tree = JunctionTree.build(cards, tables, max_cells=MAX_TABLE_CELLS)
    if tree.table_cells > _LARGE:
        tree = JunctionTree.build(cards, tables, fits=_FITS)
    return Problem(
        schema=schema,
        scopes=scopes,
        tree=tree,
        cells=tree.layout.places(scopes),
        rows=Rows(Layout.of(cards, scopes)) if directed else None,
        effects=tree.layout.places(deviating) if deviating else np.zeros(0, dtype=np.int64),
        places=tree.layout.places(seen.cliques),
        sums=seen.sums,
        noise=seen.noise.at_least(MIN_VARIANCE),
        total=seen.total,
        total_scale=math.sqrt(seen.total_variance),
        start=_start(releases, scopes, schema)
        if directed
        # From a distant start, deviations of the sample would explain tables larger than the network's.
        else naive_start(tree, scopes, releases)[tree.layout.places(scopes)],
    )


def _start(releases: Sequence[Release], scopes: Sequence[Clique], schema: Schema) -> Vector:
    """Return logarithms of the families' rows from the first release that contains them, bounded away from zero."""
    rows = []
    for scope in scopes:
        containing = first_containing(releases, scope)
        table, variance = (np.ones(schema.shape(scope)), 1.0) if containing is None else containing.marginal(scope)
        positive = np.maximum(table, 0.0) + 0.5 * math.sqrt(variance / 2)
        rows.append(np.log(positive / positive.sum(axis=0)).ravel())
    return np.concatenate(rows)


def calibrated(problem: Problem, logs: Vector) -> Calibration:
    potentials = np.zeros(problem.tree.layout.size)
    potentials[problem.cells] = logs
    return problem.tree.calibrate(potentials)


def _sampled_counts(problem: Problem, logs: Vector, total: float, generator: np.random.Generator) -> Vector:
    """Simulate tables of `total` records; if there are many, simulate fewer and scale their deviations."""
    size = max(1, min(round(total), _SIMULATED))
    calibration = calibrated(problem, logs)
    codes = sample(problem.tree, calibration, size, generator)
    expected = calibration.marginals[problem.cells]
    counts: Vector = total * expected + math.sqrt(total / size) * (
        counted(problem.tree.layout.cardinalities, codes, problem.scopes)[0] - size * expected
    )
    return counts


def _fitted(problem: Problem, logs: Vector, counts: Vector, precision: Vector, total: float) -> Vector:
    """Maximise the likelihood of counts under a normal prior about `logs`, by Newton steps, halved until they help."""
    tree, cells, size = problem.tree, problem.cells, problem.cells.size

    def value_at(moved: Vector) -> tuple[float, Calibration]:
        calibration = calibrated(problem, moved)
        value = total * calibration.log_partition - moved @ counts + 0.5 * precision @ (moved - logs) ** 2
        return float(value), calibration

    point = logs
    value, calibration = value_at(point)
    for _ in range(_NEWTON_STEPS):
        expected = total * calibration.marginals[cells]

        def product(vector: Vector, here: Calibration = calibration) -> Vector:
            direction = np.zeros(tree.layout.size)
            direction[cells] = vector.ravel()
            curved: Vector = total * tree.covariance_product(here, direction)[cells] + precision * vector.ravel()
            return curved

        def scaled(vector: Vector, diagonal: Vector = expected + precision) -> Vector:
            return vector.ravel() / diagonal

        slope = counts - expected - precision * (point - logs)
        hessian, scaling = (LinearOperator((size, size), matvec=by, dtype=np.float64) for by in (product, scaled))
        step: Vector = cg(hessian, slope, rtol=1e-2, M=scaling)[0]
        for trial in (point + step / 2**halvings for halvings in range(_HALVINGS)):
            lower, there = value_at(trial)
            if lower < value:
                break
        else:
            return point
        gain, point, value, calibration = value - lower, trial, lower, there
        if gain < _MIN_GAIN:
            break
    return point


def _mean_tables(chain: Chain, posterior: PosteriorNetworks) -> Vector:
    """Average tables with control variates, differences of mean zero (see `LogPosterior.row_differences`)."""
    problem, density, rows = chain.problem, chain.density, chain.problem.rows
    if rows is None:
        each = [calibrated(problem, logs).marginals[problem.cells] for logs in posterior.population]
        return np.asarray(np.mean(each, axis=0))
    tables, differences = np.empty((2, len(chain.points), problem.cells.size))
    for number, (point, own) in enumerate(zip(chain.points, chain.priors, strict=True)):
        density.terms = density.terms._replace(prior=own)
        calibration = problem.tree.calibrate(density.potentials(point))
        counts = density.total(point) * calibration.marginals[problem.cells]
        # Given the records rows are independent: the mean of the population's tables is that of the rows' means.
        logs = ruled(problem, rows.normalise(np.log(counts + own))[None])[0]
        tables[number] = calibrated(problem, logs).marginals[problem.cells]
        # Derivative of a mean table by its row, on which, apart from deviations of the sample, it does not depend.
        sizes = rows.sums(counts)
        slope = rows.sums(tables[number]) * sizes / (sizes + rows.sums(own))
        differences[number] = slope * density.row_differences(point)
    mean, off = tables.mean(axis=0), differences.mean(axis=0)
    covariance = rows.totals(((tables - mean) * (differences - off)).mean(axis=0))
    variance = rows.totals(((differences - off) ** 2).mean(axis=0))
    share = np.clip(-covariance / np.maximum(variance, 1e-300), 0.0, 1.0)[rows.numbers]
    corrected = np.where(mean > 0.0, np.maximum(mean + share * off, 1e-12 * mean), 0.0)
    return np.asarray(corrected * rows.sums(mean) / np.maximum(rows.sums(corrected), 1e-300))
