"""Deviations of records from a network, estimated from a release; answers are shifted and widened by them.

If a network's structure is wrong, the error of its answers can be much larger than the noise. The release shows where:
a measured table deviates from the network's by noise of known variance, by the sampling of records, and by misfit.
Misfit is modelled as a random effect: the relative deviation of a cell is normal, with a scale for each table. The
distribution of the scales is estimated by maximum likelihood (nonparametric empirical Bayes), separately for pairs of
variables that the network joins and for other pairs.

An answer about variables that were measured together is shrunk towards their released table, the more so the smaller
the noise. Any other answer gets an effect for every pair of a queried variable and another variable of the query: the
posterior of the pair's own effect if it was measured, otherwise a new effect with the scale of pairs of its kind.

Everything random is a quantile at numbers between 0 and 1 of one simple generator, always with the same seed, so that
`pgmpy_dp.explorer` draws the same effects in a browser.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import log_ndtr, ndtri, ndtri_exp

from pgmpy_dp.fitting.readings.posterior_networks import PosteriorNetworks
from pgmpy_dp.inference.tables.layout import Layout, Vector
from pgmpy_dp.models.answering import Places
from pgmpy_dp.models.trees.conditioning import Conditioning
from pgmpy_dp.release import Release
from pgmpy_dp.release.kinds import first_holding, least_noisy
from pgmpy_dp.release.observations import joined_pairs
from pgmpy_dp.schema import Clique

# Grid of scales of effects: standard deviations of a cell's log ratio to the network's.
SCALES = np.concatenate([[1e-4], np.geomspace(0.02, 2.0, 18)])
# Within a table some cells deviate more than others: factors of the scale, and the shares of cells with each factor.
FACTORS, SHARES = np.array([1.0, 2.0, 4.0, 8.0]), np.array([0.80, 0.14, 0.04, 0.02])
# Scale of three-way effects relative to pairs, which do not determine them. On census and health records (the benchmark
# real_coverage.py) bounds reach their nominal coverage with this factor.
HIGHER = 0.4
# Numbers of measured pairs outside the network: the minimum to estimate the scales of others, and the maximum used.
_FEWEST, _MOST = 3, 100
# Numbers of pseudo-tables in the prior of the distribution of scales. For pairs that the network joins they have no
# effects; for others their scales are uniform over the grid, so that few pairs leave more uncertainty than many.
_JOINED_TABLES, _OTHER_TABLES = 0.5, 2.0
_ROUNDS = 200
_FITTED_DRAWS = 6  # posterior draws; their mean tables are compared with the release
_LEAST_COUNT, _LEAST_KEPT = 0.5, 0.25
_TINY = 1e-12  # variance that counts as zero
_MOST_VARIANCE = 4.0  # relative to the count squared; noisier cells are ignored


@dataclass(frozen=True)
class Effect:
    """A measured table compared with the network's.

    Attributes
    ----------
    expected : ndarray
        Expected counts in the network.
    ratio : ndarray
        Measured over expected counts, minus 1.
    noise, sampling : ndarrays
        Variances of `ratio` due to the mechanism's noise and to the sampling of records.
    freedom : ndarray
        The fraction of a cell's effect that remains after normalisation; it is small if a state is nearly certain.
    likelihood : ndarray of shape (scales,)
        Log-likelihood of each scale of the effects.
    """

    expected: Vector
    ratio: Vector
    noise: Vector
    sampling: Vector
    freedom: Vector
    likelihood: Vector

    def at(self, place: tuple[Any, ...]) -> Effect:
        """Return the slice of the table in which some variables have given states."""
        return replace(
            self,
            expected=self.expected[place],
            ratio=self.ratio[place],
            noise=self.noise[place],
            sampling=self.sampling[place],
            freedom=self.freedom[place],
        )


class Deviations:
    """Deviations of records from a network, estimated from releases of the records.

    Parameters
    ----------
    posterior : PosteriorNetworks
    releases : sequence of Release
        The releases that the posterior was drawn from.
    conditioning : Conditioning
        The conditioning of the posterior's networks.
    target : {"records", "population"}
        The networks with which the release is compared. The population's are those of the records, up to sampling,
        unless they are of parts that borrow from each other.
    """

    def __init__(
        self,
        posterior: PosteriorNetworks,
        releases: Sequence[Release],
        conditioning: Conditioning,
        target: str = "records",
    ) -> None:
        self.posterior, self._releases, self._conditioning = posterior, tuple(releases), conditioning
        self._schema, self._logs = posterior.schema, posterior.draws(target)
        self._records = float(np.mean(posterior.totals))
        self._effects: dict[Clique, Effect] = {}
        self._joined = joined_pairs(posterior.layout.scopes)

    def tell(self, asked: Sequence[str], given: Places) -> bool:
        """Return whether the release determines an answer's error under a wrong network structure."""
        return self.outside is not None or self._held((*asked, *given))

    def applied(self, draws: Vector, asked: Sequence[str], given: Places, records: float, target: str) -> Vector:
        """Shift and widen draws of an answer by the estimated deviations.

        Parameters
        ----------
        draws : ndarray of shape (draws, states of the first variable asked for, ...)
            Each sums to one.
        asked : sequence of str
        given : mapping of variable to int
        records : float
            The number of records with the evidence.
        target : {"records", "population"}

        Returns
        -------
        ndarray
            Draws of the same shape; the result is deterministic.
        """
        generator = random_numbers()
        scope, of_records = self._ordered((*asked, *given)), target == "records"
        whole = self._held(scope)
        logs = np.zeros(draws.shape)
        for part in [scope] if whole else self._parts(asked, given):
            sampled = of_records and len(scope) == len(part) and not self.joins(part)
            effect = self._draw(part, asked, given, len(draws), sampled, of_records, generator)
            if effect is not None:
                logs += _spread(effect, [v for v in part if v in asked], asked)
        if not whole and self.outside is not None:
            for _ in range(len(scope) - 2):
                scale = HIGHER * _chosen(self.outside, len(draws), generator)
                logs += scale.reshape(-1, *[1] * len(asked)) * _normal(draws.shape, generator)
        logs -= logs.max(axis=tuple(range(1, logs.ndim)), keepdims=True)
        moved = (draws * np.exp(logs)).reshape(len(draws), -1)
        moved /= moved.sum(axis=1, keepdims=True)
        if of_records and self.outside is not None and not whole:
            count = max(1, round(records))
            moved = _counted(moved, count, generator) / count
        return np.asarray(moved.reshape(draws.shape))

    def _parts(self, asked: Sequence[str], given: Places) -> Iterator[Clique]:
        for place, variable in enumerate(asked):
            yield from (self._ordered((variable, other)) for other in (*asked[place + 1 :], *self._ordered(given)))

    def _ordered(self, variables: Collection[str]) -> Clique:
        return tuple(sorted(variables, key=self._schema.variables.index))

    def joins(self, scope: Clique) -> bool:
        """Return whether the network joins every two of these variables."""
        return all(frozenset(pair) in self._joined for pair in combinations(scope, 2))

    def _held(self, scope: Clique) -> bool:
        return first_holding(self._releases, scope) is not None

    def weights(self, scope: Clique) -> Vector:
        """Return the probability of each scale of the effects in a measured table."""
        likelihood = self.effect(scope).likelihood
        weights = np.exp(likelihood - likelihood.max()) * self._kind(scope)
        return np.asarray(weights / weights.sum())

    def _kind(self, scope: Clique) -> Vector:
        return self.inside if self.joins(scope) else self.beside

    def measured(self) -> list[Clique]:
        """List the sets of variables of which a released table, or a sum of one, exists, in the schema's order."""
        known = set(self._schema.variables)
        cliques = {self._ordered(set(clique) & known) for release in self._releases for clique in release.cliques}
        found = {part for clique in cliques for size in range(len(clique)) for part in combinations(clique, size + 1)}
        return sorted(part for part in found if self._held(part))

    def effect(self, scope: Clique) -> Effect:
        """Compare the least noisy table of a scope, in the schema's order, with the network's."""
        if scope not in self._effects:
            counts, variance = least_noisy(self._releases, scope)
            table = self._joint.get(scope)
            if table is None:
                table = self._conditioning.distributions(self._few, list(scope), {})[0].mean(axis=0)
            expected = np.maximum(self._records * table, _LEAST_COUNT)
            ratio, noise, sampling = counts / expected - 1.0, variance / expected**2, 1.0 / expected
            freedom = _freedom(table)
            clear = noise + sampling < _MOST_VARIANCE
            variances = SCALES[:, None] ** 2 * freedom[clear]
            likelihood = _log_odds(ratio[clear], variances, (noise + sampling)[clear], _least(expected[clear])).sum(
                axis=1
            )
            self._effects[scope] = Effect(expected, ratio, noise, sampling, freedom, likelihood)
        return self._effects[scope]

    @property
    def _few(self) -> Vector:
        """Return some of the posterior's draws, whose mean tables are compared with the release."""
        return self._logs[:: max(1, len(self._logs) // _FITTED_DRAWS)]

    @cached_property
    def _joint(self) -> dict[Clique, Vector]:
        """Compute the network's tables of all single variables and joined pairs, by one tree."""
        ones = [(variable,) for variable in self._schema.variables]
        pairs = [pair for pair in combinations(self._schema.variables, 2) if self.joins(pair)]
        layout = Layout.of(self._schema.cardinalities(), [*ones, *pairs])
        return layout.tables(self._conditioning.marginals(self._few, layout.scopes).mean(axis=0))

    def _draw(
        self,
        scope: Clique,
        asked: Sequence[str],
        given: Places,
        count: int,
        sampled: bool,
        of_records: bool,
        generator: np.random.Generator,
    ) -> Vector | None:
        """Draw the log factors of the cells of a table; one axis for each queried variable."""
        if not self._held(scope):
            if not self.joins(scope) and self.outside is None:
                return None
            shape = [self._schema.cardinality(v) for v in scope if v in asked]
            scale = _chosen(self._kind(scope), count, generator).reshape(-1, *[1] * len(shape))
            return np.asarray(scale * _normal((count, *shape), generator))
        effect = self.effect(scope)
        here = effect.at(tuple(given.get(v, slice(None)) for v in scope))
        scale = _chosen(self.weights(scope), count, generator).reshape(-1, *[1] * here.ratio.ndim)
        noise = here.noise + (0.0 if of_records else here.sampling)
        variances = (scale[..., None] * FACTORS) ** 2 * here.freedom[..., None]
        if sampled:
            variances += here.sampling[..., None]
        least = _least(here.expected)
        odds = np.log(SHARES) + _log_odds(here.ratio[..., None], variances, noise[..., None], least[..., None])
        odds = np.exp(odds - odds.max(axis=-1, keepdims=True)).cumsum(axis=-1)
        chosen = (generator.random(odds.shape[:-1])[..., None] * odds[..., -1:] > odds).sum(axis=-1)
        variance = np.take_along_axis(variances, chosen[..., None], axis=-1)[..., 0]
        kept = variance / (variance + noise)
        return np.log(_normal_above(least, 1.0 + kept * here.ratio, np.sqrt(kept * noise), generator))

    @cached_property
    def _others(self) -> Sequence[Clique]:
        """List measured pairs that the network does not join, except those chosen for their distance from it."""
        held = joined_pairs(c for release in self._releases for c in release.cliques if c not in release.chosen_among)
        pairs = combinations(self._schema.variables, 2)
        return [pair for pair in pairs if not self.joins(pair) and frozenset(pair) in held][:_MOST]

    @cached_property
    def beside(self) -> Vector:
        """Estimate the distribution of scales of measured pairs that the network does not join."""
        return self._weigh(self._others, np.full(SCALES.size, _OTHER_TABLES / SCALES.size))

    @property
    def outside(self) -> Vector | None:
        """Return the distribution of scales of any pair that the network does not join, if enough were measured."""
        return None if len(self._others) < _FEWEST else self.beside

    @cached_property
    def inside(self) -> Vector:
        """Estimate the distribution of scales of tables that the network could fit."""
        pairs = [pair for pair in combinations(self._schema.variables, 2) if self.joins(pair) and self._held(pair)]
        nothing = np.zeros(SCALES.size)
        nothing[0] = 1.0
        return self._weigh(pairs, _JOINED_TABLES * nothing)

    def _weigh(self, pairs: Sequence[Clique], prior: Vector) -> Vector:
        """Maximise the likelihood of all pairs and of the prior's pseudo-tables by EM."""
        logs = np.array([self.effect(pair).likelihood for pair in pairs]).reshape(-1, SCALES.size)
        likelihoods = np.exp(logs - logs.max(axis=1, keepdims=True))
        weights = np.full(SCALES.size, 1.0 / SCALES.size)
        for _ in range(_ROUNDS):
            shares = likelihoods * weights
            shares /= shares.sum(axis=1, keepdims=True)
            weights = (shares.sum(axis=0) + prior) / (len(pairs) + prior.sum())
        return weights


def _freedom(table: Vector) -> Vector:
    """Compute the variance that independent effects of variance 1 retain in a cell after each axis is normalised."""
    freedom = np.ones_like(table)
    for axis in range(table.ndim):
        shares = table / np.maximum(table.sum(axis=axis, keepdims=True), 1e-300)
        freedom *= np.clip(1.0 - 2.0 * shares + (shares**2).sum(axis=axis, keepdims=True), 1e-3, 1.0)
    return freedom


def random_numbers(seed: int = 0) -> np.random.Generator:
    """Return the generator of effects; every answer uses the same seed."""
    return np.random.Generator(np.random.SFC64(seed))


def _normal(shape: Sequence[int], generator: np.random.Generator) -> Vector:
    return np.asarray(ndtri(generator.random(shape)))


def _counted(shares: Vector, count: int, generator: np.random.Generator) -> Vector:
    """Draw counts of a multinomial for each row of shares, as binomials of what is left."""
    counts, left, rest = np.zeros(shares.shape), np.full(len(shares), float(count)), np.ones(len(shares))
    for state in range(shares.shape[1] - 1):
        share = np.clip(shares[:, state] / np.maximum(rest, _TINY), 0.0, 1.0)
        counts[:, state] = stats.binom.ppf(generator.random(len(shares)), left, share)
        left, rest = left - counts[:, state], rest - shares[:, state]
    counts[:, -1] = left
    return counts


def _chosen(weights: Vector, count: int, generator: np.random.Generator) -> Vector:
    return SCALES[generator.choice(SCALES.size, count, p=weights)]


def _least(expected: Vector) -> Vector:
    """Return the least ratio that an effect may leave in a cell: a fraction of a record."""
    least: Vector = np.minimum(_LEAST_KEPT / expected, 0.5)
    return least


def _log_odds(ratio: Vector, variances: Vector, noise: Vector, least: Vector) -> Vector:
    """Compute the log-likelihood of variances of effects, which are normal and truncated at `least`.

    A ratio far below -1 is then attributed to noise, whatever the variance.
    """
    total = variances + noise
    kept = variances / total
    inside = log_ndtr((1.0 + kept * ratio - least) / np.sqrt(np.maximum(kept * noise, _TINY)))
    before = log_ndtr((1.0 - least) / np.sqrt(variances))
    odds: Vector = inside - before - 0.5 * (np.log(total) + ratio**2 / total)
    return odds


def _normal_above(least: Vector, mean: Vector, spread: Vector, generator: np.random.Generator) -> Vector:
    """Draw from normals truncated below: a count that noise made negative is small, but not known."""
    spread = np.maximum(spread, math.sqrt(_TINY))
    kept = log_ndtr((mean - least) / spread)  # log-probability of the part that is kept
    drawn = mean - spread * ndtri_exp(kept + np.log1p(-generator.random(mean.shape)))
    return np.asarray(np.maximum(drawn, least))


def _spread(effect: Vector, variables: Sequence[str], asked: Sequence[str]) -> Vector:
    """Align the axes of an effect with those of the answer."""
    order = sorted(range(len(variables)), key=lambda place: asked.index(variables[place]))
    moved = effect.transpose(0, *(place + 1 for place in order))
    sizes = iter(moved.shape[1:])
    return moved.reshape(len(effect), *(next(sizes) if variable in variables else 1 for variable in asked))
