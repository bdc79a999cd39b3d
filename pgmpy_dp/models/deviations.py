"""Deviations of records from a network, estimated from a release; answers are shifted and widened by them.

If a network's structure is wrong, the error of its answers can be much larger than the noise. The release shows where:
a measured table deviates from the network's by noise of known variance, by the sampling of records, and by misfit.
Misfit is modelled as a random effect: the relative deviation of a cell is normal, with a scale for each table.

The scales of tables of one kind (single variables, pairs that the network joins, pairs measured outside its families)
are drawn from one law, which is learned from these tables. Either none of them deviates, or there is a typical scale t,
some share of the tables has no effects, and the scales of the others are lognormal about t. With L_k(s) the likelihood
of a scale s in table k, and P(s | h) its law under a hypothesis h = (t, share),

    P(h | all tables) ~ P(h) prod_k m_k(h),    m_k(h) = sum_s L_k(s) P(s | h),
    P(s of table k | all tables) ~ L_k(s) sum_h P(h | all tables) P(s | h) / m_k(h),
    P(s of a table that was not measured) = sum_h P(h | all tables) P(s | h).

So few or noisy tables leave the prior, and many precise ones overrule it. If the structure is right (nine of ten are, a
priori), nothing deviates; otherwise single variables and pairs outside the families do, and pairs that the network
joins in one case of two. So what these show is prior knowledge about the others. Families are measured in larger tables
where that is less noisy; other pairs in these are there by the accident of merging, near the edges, and are not
informative about pairs elsewhere.

Draws of an answer about variables that were measured together are shrunk towards their released table, the more so the
smaller the noise. Any other answer gets an effect for every pair of a queried variable and another variable of the
query: the posterior of the pair's own effect if it was measured, otherwise a new effect with the scale of pairs of its
kind. Where the test of fit fails, the answer itself is moved by the centres of the effects in measured tables.

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
from scipy.special import log_ndtr, logsumexp, ndtri, ndtri_exp

from pgmpy_dp.inference.distribution import Positions as Places
from pgmpy_dp.inference.tables.table import Layout, Vector
from pgmpy_dp.inference.trees.conditioning import Conditioning
from pgmpy_dp.observed.observed import informative_tables
from pgmpy_dp.observed.reading import first_containing, joined_pairs, lowest_noise
from pgmpy_dp.release import Release
from pgmpy_dp.schema import Clique, Schema

# Grid of scales of effects: standard deviations of a cell's log ratio to the network's.
SCALES = np.concatenate([[1e-4], np.geomspace(0.02, 2.0, 18)])
# Prior probabilities that a network's structure is right, and that its own tables do not deviate. Median and log
# standard deviation of the typical scale, if there is one; log standard deviation of scales about it, and shares of
# tables without effects. Chosen on the networks cancer, earthquake, survey, sachs, hepar2 and win95pts, and on guesses
# about census and health records other than those of the benchmark sharp.py.
_RIGHT, _FITTING = 0.9, 0.95
_MEDIAN, _SPREAD = 0.2, 1.0
_ABOUT, _WITHOUT = 0.6, (0.0, 0.5)
# Within a table some cells deviate more than others: factors of the scale, and the shares of cells with each factor.
FACTORS, SHARES = np.array([1.0, 2.0, 4.0, 8.0]), np.array([0.80, 0.14, 0.04, 0.02])
# Scale of three-way effects relative to pairs, which do not determine them. On census and health records (the benchmark
# real_coverage.py) bounds reach their nominal coverage with this factor.
HIGHER = 0.4
# Number of pairs measured outside the families: the minimum that is informative about other pairs, and the maximum
# used.
_FEWEST, _MAX = 3, 100
# Maximum number of tables of the network's own from which scales of a kind are learned.
_LEARNED = 200
_MIN_COUNT, _MIN_KEPT = 0.5, 0.25
_TINY = 1e-12  # variance that counts as zero
_MAX_VARIANCE = 4.0  # relative to the count squared; noisier cells are ignored


def _hypotheses() -> tuple[Vector, Vector]:
    """Return distributions of scales, one row without effects and others with; and prior odds of the others."""
    logs = np.log(SCALES[1:])
    prior = np.exp(-0.5 * ((logs - math.log(_MEDIAN)) / _SPREAD) ** 2)
    about = np.exp(-0.5 * ((logs - logs[:, None]) / _ABOUT) ** 2)
    about /= about.sum(axis=1, keepdims=True)
    some = [np.hstack([np.full((logs.size, 1), share), (1.0 - share) * about]) for share in _WITHOUT]
    return np.vstack([np.eye(1, SCALES.size), *some]), np.tile(prior / prior.sum() / len(_WITHOUT), len(_WITHOUT))


_LAWS, _SOME = _hypotheses()


@dataclass(frozen=True)
class Scales:
    """Posterior distribution of the scales of the effects in tables of one kind."""

    hypotheses: Vector

    @classmethod
    def learned(cls, likelihoods: Sequence[Vector], none: float) -> Scales:
        """Learn from the log-likelihood of each scale in each table; `none` is the prior probability of no effects."""
        prior = np.concatenate([[none], (1.0 - none) * _SOME])
        logs = np.log(prior + _TINY) + sum(_log_mean(own) for own in likelihoods)
        return cls(np.exp(logs - logsumexp(logs)))

    @property
    def new(self) -> Vector:
        """Distribution of the scale in a table that was not measured."""
        return self.hypotheses @ _LAWS

    def measured(self, likelihood: Vector, learned: bool) -> Vector:
        """Distribution of the scale in a measured table, which was or was not one of those learned from."""
        given = self.hypotheses * (np.exp(_log_mean(likelihood) * -1.0) if learned else 1.0)
        weights = np.exp(likelihood - likelihood.max()) * (given @ _LAWS)
        return np.asarray(weights / weights.sum())


def _log_mean(likelihood: Vector) -> Vector:
    """Average a likelihood over the scales of each hypothesis, relative to its maximum."""
    return np.asarray(np.log(_LAWS @ np.exp(likelihood - likelihood.max()) + 1e-300))


@dataclass(frozen=True)
class Effect:
    """A measured table compared with the network's."""

    expected: Vector  # counts in the network
    ratio: Vector  # measured over expected counts, minus 1
    noise: Vector  # variances of the ratio by the mechanism's noise
    sampling: Vector  # and by the sampling of records
    freedom: Vector  # the share of a cell's effect that normalisation leaves; small if a state is nearly certain
    likelihood: Vector  # the log-likelihood of each scale of the effects

    def at(self, place: tuple[Any, ...]) -> Effect:
        """Return the slice of the table in which some variables have given states."""
        tables = "expected", "ratio", "noise", "sampling", "freedom"
        return replace(self, **{name: getattr(self, name)[place] for name in tables})

    def posterior(self, scale: Vector, sampled: bool, of_records: bool) -> tuple[Vector, Vector, Vector]:
        """Return the odds of factors by scale, and means and spreads of 1 plus the effect before truncation."""
        noise = (self.noise + (0.0 if of_records else self.sampling))[..., None]
        variances = (scale.reshape(-1, *[1] * self.ratio.ndim)[..., None] * FACTORS) ** 2 * self.freedom[..., None]
        if sampled:
            variances += self.sampling[..., None]
        kept, ratio = variances / (variances + noise), self.ratio[..., None]
        odds = np.log(SHARES) + _log_odds(ratio, variances, noise, _smallest_ratio(self.expected)[..., None])
        return np.exp(odds - odds.max(axis=-1, keepdims=True)), 1.0 + kept * ratio, np.sqrt(kept * noise)


class Deviations:
    """Deviations of records from a network, estimated from releases of the records."""

    def __init__(
        self,
        schema: Schema,
        conditioning: Conditioning,
        networks: Vector,
        records: float,
        releases: Sequence[Release],
        whole: Deviations | None = None,
    ) -> None:
        self.schema, self._conditioning, self._networks = schema, conditioning, networks
        self._records, self._releases = records, tuple(releases)
        self._effects: dict[Clique, Effect] = {}
        self.scopes = list(map(frozenset, conditioning.layout.scopes))
        self._joined, self._whole = joined_pairs(conditioning.layout.scopes), whole

    def informs(self, asked: Sequence[str], given: Places) -> bool:
        """Return whether the release determines an answer's error under a wrong network structure."""
        return self.informative or self._is_measured((*asked, *given))

    def corrected(self, answer: Vector, asked: Sequence[str], given: Places) -> Vector:
        """Shift the network's answer by the centres of the effects in the measured tables of its variables."""
        moved, parts = answer[None], list(self._parts(asked, given))
        for part in filter(self._is_measured, parts if len(asked) == 1 or len(parts) == 1 else ()):
            centre = self.centre(part)[_place(part, given)]
            moved = moved * _spread(centre[None], [v for v in part if v in asked], asked)
        return np.asarray(moved[0] / moved.sum())

    def centre(self, scope: Clique) -> Vector:
        """Compute the mean of 1 plus the effect in every cell of a measured table."""
        effect = self.effect(scope)
        odds, mean, spread = effect.posterior(SCALES, False, of_records=False)
        means = _mean_above(_smallest_ratio(effect.expected)[..., None], mean, spread)
        each = (odds * means).sum(axis=-1) / odds.sum(axis=-1)
        return np.tensordot(self.weights(scope), each, 1)

    def applied(self, draws: Vector, asked: Sequence[str], given: Places, records: float, target: str) -> Vector:
        """Shift and widen draws of an answer by the estimated deviations."""
        generator = random_numbers()
        scope, of_records = self._ordered((*asked, *given)), target == "records"
        whole = self._is_measured(scope)
        logs = np.zeros(draws.shape)
        for part in self._parts(asked, given):
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
        if of_records and not whole and not self.joins(scope):  # which the records' own network does not fit
            count = max(1, round(records))
            moved = _counted(moved, count, generator) / count
        return np.asarray(moved.reshape(draws.shape))

    def _parts(self, asked: Sequence[str], given: Places) -> Iterator[Clique]:
        """List the tables whose effects apply to an answer: the table of all its variables if measured, else pairs."""
        scope = self._ordered((*asked, *given))
        if self._is_measured(scope):
            yield scope
            return
        for position, variable in enumerate(asked):
            yield from (self._ordered((variable, other)) for other in (*asked[position + 1 :], *self._ordered(given)))

    def _ordered(self, variables: Collection[str]) -> Clique:
        return tuple(sorted(variables, key=self.schema.variables.index))

    def joins(self, scope: Clique) -> bool:
        """Return whether a table of the network has these variables."""
        if len(scope) == 2:
            return frozenset(scope) in self._joined
        return any(own.issuperset(scope) for own in self.scopes)

    def _is_measured(self, scope: Clique) -> bool:
        return first_containing(self._releases, scope) is not None

    def weights(self, scope: Clique) -> Vector:
        """Return the probability of each scale of the effects in a measured table."""
        kind = self.single if len(scope) == 1 else self.inside if self.joins(scope) else self.beside
        return kind.measured(self.effect(scope).likelihood, scope in self._learned_from)

    def measured(self) -> list[Clique]:
        """List the sets of variables of which a released table, or a sum of one, exists, in the schema's order."""
        known = set(self.schema.variables)
        cliques = {self._ordered(set(clique) & known) for release in self._releases for clique in release.cliques}
        results = {part for clique in cliques for size in range(len(clique)) for part in combinations(clique, size + 1)}
        return sorted(part for part in results if self._is_measured(part))

    def effect(self, scope: Clique) -> Effect:
        """Compare the least noisy table of a scope, in the schema's order, with the network's."""
        if scope not in self._effects:
            counts, variance = lowest_noise(self._releases, scope)
            table = self._joint.get(scope)
            if table is None:
                table = self._conditioning.distributions(self._networks, list(scope), {})[0].mean(axis=0)
            expected, freedom = np.maximum(self._records * table, _MIN_COUNT), _freedom(table)
            noise, sampling = variance / expected**2, 1.0 / expected
            ratio = counts / expected - 1.0
            # Records deviate from their own network by sampling, but not in single variables.
            variances = variance + expected if len(scope) > 1 else np.full(expected.shape, variance)
            likelihood = _likelihood(counts - expected, variances, expected, freedom)
            self._effects[scope] = Effect(expected, ratio, noise, sampling, freedom, likelihood)
        return self._effects[scope]

    @cached_property
    def _joint(self) -> dict[Clique, Vector]:
        """Compute the network's tables from which scales are learned, by one tree."""
        if self._whole:
            return {}
        layout = Layout.of(self.schema.cardinalities(), [*self._singles, *self._joined_pairs])
        near = layout.tables(self._conditioning.marginals(self._networks, layout.scopes).mean(axis=0))
        each = [self._conditioning.pairs(logs, self._others) for logs in self._networks]
        far = {pair: np.mean([tables[pair] for tables in each], axis=0) for pair in self._others}
        return {**near, **far}

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
        if not self._is_measured(scope):
            weights = self.inside.new if self.joins(scope) else self.outside
            if weights is None:
                return None
            shape = [self.schema.cardinality(v) for v in scope if v in asked]
            scale = _chosen(weights, count, generator).reshape(-1, *[1] * len(shape))
            return np.asarray(scale * _normal((count, *shape), generator))
        here = self.effect(scope).at(_place(scope, given))
        odds, *law = here.posterior(_chosen(self.weights(scope), count, generator), sampled, of_records)
        odds = odds.cumsum(axis=-1)
        chosen = (generator.random(odds.shape[:-1])[..., None] * odds[..., -1:] > odds).sum(axis=-1, keepdims=True)
        mean, spread = (np.take_along_axis(part, chosen, axis=-1)[..., 0] for part in law)
        return np.log(_normal_above(_smallest_ratio(here.expected), mean, spread, generator))

    @cached_property
    def _joined_pairs(self) -> Sequence[tuple[str, str]]:
        return [pair for pair in combinations(self.schema.variables, 2) if self.joins(pair)]

    @cached_property
    def _others(self) -> Sequence[tuple[str, str]]:
        """List pairs that were measured outside the families, but not chosen for their distance from the network."""
        if self._whole:
            return self._whole._others
        known = set(self.schema.variables)
        cliques = [
            tuple(v for v in clique if v in known)
            for release in self._releases
            for clique in release.cliques
            if clique not in release.chosen_among
        ]
        informative = set(informative_tables(cliques, self._conditioning.layout.scopes))
        joined = joined_pairs(clique for clique in cliques if clique not in informative)
        pairs = combinations(self.schema.variables, 2)
        return [pair for pair in pairs if not self.joins(pair) and frozenset(pair) in joined][:_MAX]

    def _some(self, tables: Sequence[Clique]) -> Sequence[Clique]:
        known = [table for table in tables if self._is_measured(table)]
        return known[:: -(-len(known) // _LEARNED) or 1]

    @cached_property
    def _learned_from(self) -> frozenset[Clique]:
        """The tables from which scales are learned."""
        if self._whole:
            return self._whole._learned_from
        return frozenset(
            table for kind in (self._singles, self._joined_pairs, self._others) for table in self._some(kind)
        )

    @property
    def _singles(self) -> Sequence[Clique]:
        return [(variable,) for variable in self.schema.variables]

    def _learned(self, tables: Sequence[Clique], none: float) -> Scales:
        return Scales.learned([self.effect(table).likelihood for table in self._some(tables)], none)

    @cached_property
    def single(self) -> Scales:
        """Scales of single variables."""
        return self._whole.single if self._whole else self._learned(self._singles, self._right)

    @cached_property
    def inside(self) -> Scales:
        """Scales of pairs that the network joins, and of larger tables that it could fit."""
        return self._whole.inside if self._whole else self._learned(self._joined_pairs, _FITTING)

    @cached_property
    def beside(self) -> Scales:
        """Scales of other tables, by pairs measured outside the families."""
        return self._whole.beside if self._whole else self._learned(self._others, self._right)

    @property
    def _right(self) -> float:
        """The probability that the structure is right, by the network's own tables."""
        return float(self.inside.hypotheses[0]) * _RIGHT / _FITTING

    @property
    def informative(self) -> bool:
        """Whether enough pairs were measured outside the families to be informative about others."""
        return len(self._others) >= _FEWEST

    @property
    def outside(self) -> Vector | None:
        """The distribution of scales of any pair that the network does not join; None if nothing tells it."""
        return self.beside.new if self.informative or self._right < 0.5 else None


def _likelihood(apart: Vector, variances: Vector, expected: Vector, freedom: Vector) -> Vector:
    """Compute the log-likelihood of each scale of effects, from the part of a table that its margins do not explain."""
    margins = 1 + (sum(size - 1 for size in apart.shape) if apart.ndim > 1 else 0)
    left = 1.0 - margins / apart.size
    noise = left * variances / expected**2
    clear = noise < _MAX_VARIANCE
    ratio, minimum = (_without_margins(apart) / expected)[clear], _smallest_ratio(expected[clear])
    odds = _log_odds(ratio, SCALES[:, None] ** 2 * freedom[clear], noise[clear], minimum)
    return np.asarray(left * odds.sum(axis=1))


def _without_margins(table: Vector) -> Vector:
    """Subtract the mean of a table and, if it has several axes, the part that its single margins explain."""
    left: Vector = table - table.mean()
    if table.ndim > 1:
        for axis in range(table.ndim):
            left = left - left.mean(axis=tuple(other for other in range(table.ndim) if other != axis), keepdims=True)
    return left


def _place(scope: Clique, given: Places) -> tuple[Any, ...]:
    return tuple(given.get(variable, slice(None)) for variable in scope)


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
    """Draw counts of a multinomial for each row of shares, as successive binomials of the remaining count."""
    counts, left, rest = np.zeros(shares.shape), np.full(len(shares), float(count)), np.ones(len(shares))
    for state in range(shares.shape[1] - 1):
        share = np.clip(shares[:, state] / np.maximum(rest, _TINY), 0.0, 1.0)
        counts[:, state] = stats.binom.ppf(generator.random(len(shares)), left, share)
        left, rest = left - counts[:, state], rest - shares[:, state]
    counts[:, -1] = left
    return counts


def _chosen(weights: Vector, count: int, generator: np.random.Generator) -> Vector:
    return SCALES[generator.choice(SCALES.size, count, p=weights)]


def _smallest_ratio(expected: Vector) -> Vector:
    """Return the least ratio that an effect may leave in a cell: a fraction of a record."""
    minimum: Vector = np.minimum(_MIN_KEPT / expected, 0.5)
    return minimum


def _log_odds(ratio: Vector, variances: Vector, noise: Vector, minimum: Vector) -> Vector:
    """Compute the log-likelihood of variances of effects, which are normal and truncated at `minimum`."""
    total = variances + noise
    kept = variances / total
    inside = log_ndtr((1.0 + kept * ratio - minimum) / np.sqrt(np.maximum(kept * noise, _TINY)))
    before = log_ndtr((1.0 - minimum) / np.sqrt(variances))
    odds: Vector = inside - before - 0.5 * (np.log(total) + ratio**2 / total)
    return odds


def _normal_above(minimum: Vector, mean: Vector, spread: Vector, generator: np.random.Generator) -> Vector:
    """Draw from normals truncated below: a count that noise made negative is small, but not known."""
    spread = np.maximum(spread, math.sqrt(_TINY))
    kept = log_ndtr((mean - minimum) / spread)  # log-probability of the part that is kept
    drawn = mean - spread * ndtri_exp(kept + np.log1p(-generator.random(mean.shape)))
    return np.asarray(np.maximum(drawn, minimum))


def _mean_above(minimum: Vector, mean: Vector, spread: Vector) -> Vector:
    """Compute the mean of normals truncated below."""
    spread = np.maximum(spread, math.sqrt(_TINY))
    cut = (mean - minimum) / spread
    density = -0.5 * cut**2 - 0.5 * math.log(2.0 * math.pi)
    return np.asarray(np.maximum(mean + spread * np.exp(density - log_ndtr(cut)), minimum))


def _spread(effect: Vector, variables: Sequence[str], asked: Sequence[str]) -> Vector:
    """Align the axes of an effect with those of the answer."""
    order = sorted(range(len(variables)), key=lambda position: asked.index(variables[position]))
    moved = effect.transpose(0, *(position + 1 for position in order))
    sizes = iter(moved.shape[1:])
    return moved.reshape(len(effect), *(next(sizes) if variable in variables else 1 for variable in asked))
