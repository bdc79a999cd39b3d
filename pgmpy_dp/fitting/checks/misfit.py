"""Test of a model against a release, by the distribution of the misfit if the model is right.

Observations y = A n + noise deviate from the expectation of a model by noise of known size and by the sampling of N
records. Fitted parameters absorb a part of both. Projecting out the span of the tangents of the model's observations
makes the test independent of the estimator (C(alpha) tests, Neyman 1959), once scoring steps have brought the
parameters close to the optimum. Tables that only test a network do not change its parameters, but what the parameters
explain of them is projected out too. The null distribution of the residuals is that of simulated deviations, projected
in the same way.

The power comes from the same draws. Records drawn from the model deviate from it in a pair of variables. What the
parameters and the shares of single variables leave of this deviation is scaled to a total variation of t, and added to
the residuals of another draw: the pair's sum of squares exceeds the critical value from some t on. The t that suffices
in 80 % of the draws is the smallest effect that the test detects with 80 % power, where an effect is the distance of
the pair's true shares from the nearest that the model can have. These deviations are spread over all cells of the pair;
those in few cells, or visible in other tables too, are detected more often. All of this depends on the release only
through its noise and the fitted model.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, lsmr

from pgmpy_dp._threads import one_thread
from pgmpy_dp.inference.tables.table import Table, Vector
from pgmpy_dp.observed.observed import Observed
from pgmpy_dp.observed.reading import lowest_noise
from pgmpy_dp.schema import Clique, State

# Probability with which the smallest detectable effect is detected, and its quantile of the normal distribution.
_POWER, _POWER_QUANTILE = 0.8, 0.8416
# Number of drawn deviations for the detectable effect, and the share of a deviation that parameters must leave: if they
# leave less, the pair's own deviations are used.
_DEVIATIONS, _UNABSORBED = 100, 0.3
# Significance level of the test of fit.
LEVEL = 0.01
# Upper part of a simulated distribution whose tail is taken as exponential.
_TAIL = 0.1
# Least p-value, and the p-value below which only a bound is stated: the far tail is unknown.
_MIN, _STATED = 1e-9, 1e-6
# Share of the deviations that parameters must leave; if they leave less, nothing is tested.
_LEFT = 1e-3
_SHOWN = 3
_NAMED = 6  # pairs that are named as measured
_APART = 1e-10  # regularises near-collinear columns of length 1
_PRECISE, _ITERATIONS = 1e-10, 10_000  # tolerance of a scoring step, and maximum number of products for it

Tangents = Callable[[Sequence[Clique]], Vector]


@dataclass(frozen=True)
class Misfit:
    """Misfit of a table or a pair of variables.

    Attributes
    ----------
    variables : tuple of str
    observed, expected : float
        The sum of squared standardised residuals that parameters cannot absorb, and its mean if the network is right.
    p_value : float
        Probability of at least this sum if the network is right. For tables that were chosen for being far off, the
        probability that any of the candidates reaches it. NaN if the parameters absorb everything.
    excess : float
        Total variation between the measured shares and the network's, beyond that of noise and sampling.
    cell : tuple of states
        The joint state that is farthest off, with its share as `measured` and in the `network`.
    detectable : float
        For a pair, the smallest total variation, from the nearest that the network can have, that the check would have
        detected with a probability of 80 %; see `pgmpy_dp.fitting.checks.misfit`. Infinite if even the strongest
        dependence would have been detected less often. NaN for tables, and for pairs that the parameters fit.
    """

    variables: Clique
    observed: float
    expected: float
    p_value: float
    excess: float
    cell: tuple[State, ...]
    measured: float
    network: float
    detectable: float = math.nan

    def __str__(self) -> str:
        cell = ", ".join(f"{variable} = {state}" for variable, state in zip(self.variables, self.cell, strict=True))
        return f"{cell}: {100 * self.measured:.3g} % measured, {100 * self.network:.3g} % in the network"


@dataclass(frozen=True, repr=False)
class FitCheck:
    """Result of testing a network against a release.

    Attributes
    ----------
    of_tables, of_pairs : tuple of Misfit
        For each measured table, and for all pairs of variables that were measured together, the worst first.
    z2 : float
        Observed over expected misfit of all tables: about 1 if the network is right.
    p_value : float
        Probability of at least this misfit, in all or in the worst table or pair, if the network is right. NaN if the
        parameters absorb everything, so that the release cannot contradict the network.
    left_out : int
        Number of measured tables that were not tested, since derivatives of all do not fit in memory.
    unlike : tuple of tuples of str
        For a union of releases that the network describes together, the variables in which they differ, and pairs that
        differ although their variables do not. This is no misfit: the network describes all of their records.
    variables : tuple of str
        Those of the network; of pairs that are not in `of_pairs` the check knows nothing.
    """

    of_tables: tuple[Misfit, ...]
    of_pairs: tuple[Misfit, ...]
    z2: float
    p_value: float
    left_out: int = 0
    unlike: tuple[Clique, ...] = ()
    variables: Clique = ()

    @property
    def tables(self) -> pd.DataFrame:
        """Frame with a row for each measured table, and the attributes of `Misfit` as columns."""
        return _frame(self.of_tables)

    @property
    def pairs(self) -> pd.DataFrame:
        """The same for pairs of variables."""
        return _frame(self.of_pairs)

    @property
    def fails(self) -> bool:
        """Whether fewer than one in a hundred releases would show this misfit if the network were right."""
        return self.p_value < LEVEL

    @property
    def passes(self) -> bool:
        """Whether the check detected nothing, although it could have."""
        return not self.fails and self.detectable < math.inf

    @property
    def detectable(self) -> float:
        """The smallest total variation, in any of the pairs, that would have been detected with 80 % power.

        Infinite if noise hides every dependence in every pair: passing such a check means nothing. NaN if no pair was
        tested.
        """
        return min(self._effects, default=math.nan)

    @property
    def measured(self) -> str:
        """Say which pairs of variables were measured together, and of how many others nothing is known."""
        count, every = len(self.of_pairs), math.comb(len(self.variables), 2)
        if count >= every:
            return ""
        named = (
            f" ({'; '.join(' with '.join(pair.variables) for pair in self.of_pairs)})" if 0 < count <= _NAMED else ""
        )
        return f"{count} of {every} pairs of variables were measured together{named}: nothing is known of the others"

    @property
    def _effects(self) -> list[float]:
        return [pair.detectable for pair in self.of_pairs if not math.isnan(pair.detectable)]

    @property
    def power(self) -> str:
        """Describe which effect the check would have detected with 80 % power."""
        effects, hidden = sorted(self._effects), sum(map(math.isinf, self._effects))
        if not effects and self.of_pairs:
            return "every measured pair is joined by the network, so that nothing could contradict it"
        if not effects:
            return "no pair of variables was tested, so that no missing edge would have been seen"
        if hidden == len(effects):
            return "the noise would have hidden even the strongest dependence in each pair that was measured"
        seen = [effect for effect in effects if effect < math.inf]
        sizes = f"{seen[0]:.2g} to {seen[-1]:.2g}" if f"{seen[0]:.2g}" != f"{seen[-1]:.2g}" else f"{seen[0]:.2g}"
        text = f"a total variation of {sizes} in a pair of variables would have been found with 80 % probability"
        return f"{text}; in {hidden} of {len(effects)} pairs the noise hides any dependence" if hidden else text

    @property
    def probability(self) -> str:
        """The p-value as text, "p = 0.03", or as a bound if it is too small to be known."""
        return f"p < {_STATED:g}" if self.p_value < _STATED else f"p = {self.p_value:.2g}"

    def worst(self, count: int = _SHOWN) -> list[str]:
        """Describe what fails on its own, pairs of variables or else tables, the farthest off first."""
        for listed in (self.of_pairs, self.of_tables):
            failing = [misfit for misfit in listed if misfit.p_value * len(listed) < LEVEL]
            if failing:
                return [str(misfit) for misfit in sorted(failing, key=lambda misfit: -misfit.excess)[:count]]
        return []

    def __repr__(self) -> str:
        if math.isnan(self.p_value):
            absorbed = "the parameters absorb all that was measured; only further tables would test the network"
            return "\n  ".join([f"FitCheck: {absorbed}", *([self.measured] if self.measured else [])])
        verdict = "the network fails" if self.fails else "the network passes" if self.passes else "nothing is known"
        line = f"FitCheck: {verdict}, {self.probability}, misfit {self.z2:.3g} times the expected"
        parts = [f"of {self.left_out + len(self.of_tables)} tables {self.left_out} were too many to test"]
        apart = [f"the united releases are not alike: {', '.join(' with '.join(names) for names in self.unlike)}"]
        further = [self.measured] if self.measured else []
        further += [*(parts if self.left_out else []), *(apart if self.unlike else [])]
        return "\n  ".join([line, *(self.worst() if self.fails else [self.power]), *further])


def _frame(misfits: Sequence[Misfit]) -> pd.DataFrame:
    names = [field.name for field in fields(Misfit)][1:]
    index = pd.Index([misfit.variables for misfit in misfits], tupleize_cols=False, name="variables")
    return pd.DataFrame([{name: getattr(m, name) for name in names} for m in misfits], index=index, columns=names)


@dataclass(frozen=True)
class _Residuals:
    """Standardised residuals, a row each, in one large array that is changed in place."""

    rows: Vector  # of the release, simulated releases, and some deviations without noise, which come again unprojected
    draws: int
    weights: Vector  # one over the standard deviation of each observation

    @classmethod
    def of(cls, seen: Observed, shares: Vector, deviations: Vector, seed: int) -> _Residuals:
        released, weights = seen.residuals(shares)
        draws = len(deviations)
        some = np.arange(_DEVIATIONS) * draws // _DEVIATIONS
        rows = np.empty((1 + draws + 2 * some.size, weights.size))
        simulated = rows[1 : 1 + draws]
        rows[0] = released
        simulated[:] = (seen.sums @ deviations.T).T
        simulated *= math.sqrt(seen.repeats)
        rows[1 + draws :] = np.tile(simulated[some], (2, 1))
        simulated += seen.noise.draw(draws, np.random.default_rng(seed))
        rows *= weights
        return cls(rows, draws, weights)

    @property
    def noisy(self) -> Vector:
        """Residuals of the release and of simulated releases."""
        return self.rows[: 1 + self.draws]

    @property
    def projected(self) -> Vector:
        return self.rows[:-_DEVIATIONS]


def fit_test(
    seen: Observed,
    shares: Vector,
    deviations: Vector,
    tangents: Tangents | None = None,
    informative: Collection[Clique] | None = None,
    seed: int = 0,
) -> FitCheck:
    """Test observations against a model with these shares of the cells, by some hundred deviations of drawn records.

    `tangents` returns derivatives of some cliques' shares by the fitted parameters, and `informative` are the tables
    that inform these; without tangents the model is treated as not fitted to the release, which is conservative.
    """
    residuals = _Residuals.of(seen, shares, deviations, seed)
    with one_thread():
        informs = np.array([informative is None or clique in informative for clique in (*seen.cliques, None)])
        columns = _columns(seen, shares, residuals.weights, tangents, informs[seen.owners] | (seen.owners < 0))
        _project_out(columns, residuals.projected)
    among = seen.chosen_among
    tables = _squares(residuals.noisy, seen.owners, len(seen.cliques))
    sizes = np.bincount(seen.owners[seen.owners >= 0], minlength=len(seen.cliques))
    tables[:, tables[1:].mean(axis=0) < _LEFT * sizes] = np.nan
    pairs = _pairs(seen.cliques)
    apart, effects = _pair_misfit(seen, pairs, residuals)
    # Tables that were chosen for their distance are tested separately, as if all candidates had been measured.
    factors = np.array([max(among[number] for number in numbers) for numbers in pairs.values()])
    whole = np.nansum(tables[:, among == 0], axis=1)
    if not whole.any():
        whole[:] = np.nan
    roots = np.sqrt(np.hstack([whole[:, None], tables, apart]))
    half, chosen = 1 + residuals.draws // 2, np.concatenate([[0], among, factors])
    single = _tail(roots, roots[1:half])
    with np.errstate(divide="ignore"):
        minimum = -np.log(np.nanmin(np.where(np.isnan(single) | (chosen > 0), 1.0, single), axis=1))
    # The null distribution of the minimum uses other draws than the single p-values, as the release is another draw.
    others = math.nan if np.isnan(whole).any() else float(_tail(minimum[:1, None], minimum[half:, None])[0, 0])
    tests = (not math.isnan(others)) + bool((factors[~np.isnan(apart[0])] > 0).any())
    plain = math.exp(-_quantile(minimum[half:], LEVEL / tests)) if not math.isnan(others) else math.nan
    _, of_tables, of_pairs = np.split(np.minimum(single[0] * np.maximum(chosen, 1), 1.0), [1, 1 + among.size])
    misfit = np.nansum(tables, axis=1)
    model = seen.layout.tables(shares)
    detectable = np.full(len(pairs), math.nan)
    for position, (pair, factor) in enumerate(zip(pairs, factors, strict=True)):
        level = LEVEL / tests / factor if factor else plain
        if not (np.isnan(effects[:, :, position]).any() or math.isnan(level)):
            bar = _quantile(roots[1:half, roots.shape[1] - len(pairs) + position], level) ** 2
            effect = _detected_from(apart[1:, position], effects[0, :, position], effects[1, :, position], bar)
            if tangents is None:
                effect = max(effect, _detected_despite_fit(apart[1:, position], effects[1, :, position], bar))
            detectable[position] = effect if effect < _strongest(_model_table(model, pair)) else math.inf
    # Plain tables, and chosen pairs, whose p-values already account for their candidates.
    tested = np.array([others, np.nanmin(of_pairs[factors > 0], initial=math.inf)])
    tested = tested[tested < math.inf]
    return FitCheck(
        _misfits(seen, model, seen.cliques, tables, of_tables, np.full(len(seen.cliques), math.nan)),
        _misfits(seen, model, list(pairs), apart, of_pairs, detectable),
        float(misfit[0] / misfit[1:].mean()) if misfit.any() else math.nan,
        min(1.0, tested.size * float(tested.min())) if tested.size else math.nan,
    )


def scoring_step(seen: Observed, shares: Vector, derivatives: LinearOperator) -> Vector:
    """Return a step of Fisher scoring of log parameters, regularised where the observations do not identify them."""
    residuals, weights = seen.residuals(shares)
    counts, records = seen.sums * seen.total, weights * (seen.sums @ shares)
    known, parameters = seen.total_variance == 0, derivatives.shape[1]

    def of_observations(step: Vector) -> Vector:
        moved: Vector = weights * (counts @ derivatives.matvec(step[:parameters]))
        return moved if known else moved + records * step[-1]

    def of_parameters(observations: Vector) -> Vector:
        moved: Vector = derivatives.rmatvec(counts.T @ (weights * observations))
        return moved if known else np.append(moved, records @ observations)

    shape = weights.size, parameters if known else parameters + 1
    columns = LinearOperator(shape, matvec=of_observations, rmatvec=of_parameters, dtype=np.float64)
    step: Vector = lsmr(columns, weights * residuals, damp=1.0, atol=_PRECISE, btol=_PRECISE, maxiter=_ITERATIONS)[0]
    return step[:parameters]


def _columns(
    seen: Observed, shares: Vector, weights: Vector, tangents: Tangents | None, informs: NDArray[np.bool_]
) -> Iterator[tuple[NDArray[np.int64], Vector]]:
    """Standardise derivatives by parameters and number of records, of informative tables and then of each other one."""
    holders = np.repeat(np.arange(len(seen.cliques)), np.diff(seen.layout.offsets))
    others = (np.flatnonzero(~informs & (seen.owners == owner)) for owner in np.unique(seen.owners[~informs]))
    for positions in itertools.chain([np.flatnonzero(informs)], others):
        observing = sparse.csr_array(sparse.diags_array(weights[positions]) @ seen.sums[positions])
        columns = (observing @ shares)[:, None] if seen.total_variance > 0 else np.empty((positions.size, 0))
        if tangents is not None:
            numbers = np.unique(holders[observing.indices])
            cells = np.flatnonzero(np.isin(holders, numbers))
            moved = (seen.total * observing[:, cells]) @ tangents([seen.cliques[number] for number in numbers])
            columns = np.hstack([moved, columns]) if columns.size else moved
        yield positions, columns


def _project_out(columns: Iterator[tuple[NDArray[np.int64], Vector]], residuals: Vector) -> None:
    """Subtract from the residuals their fit by the columns H, which the informative tables alone determine."""
    informing, first = next(columns)
    lengths = np.sqrt(np.einsum("ij,ij->j", first, first))
    moved = lengths > 1e-10
    scaled, lengths = first[:, moved] / lengths[moved], lengths[moved]
    cells, parameters = scaled.shape
    if not scaled.size:
        return
    gram = scaled.T @ scaled if parameters < cells else scaled @ scaled.T
    gram[np.diag_indices_from(gram)] += _APART
    factor = cho_factor(gram)
    here = residuals[:, informing].T
    if parameters < cells:
        fitted = cho_solve(factor, scaled.T @ here)
        fitted += cho_solve(factor, scaled.T @ (here - scaled @ fitted))
        residuals[:, informing] -= fitted.T @ scaled.T
    else:  # the remainder of the informative tables is r (HH' + r)^-1 times them
        once = cho_solve(factor, here)
        twice = _APART * cho_solve(factor, once)
        fitted, residuals[:, informing] = scaled.T @ (once + twice), _APART * twice.T
    for positions, further in columns:
        own = further[:, moved]
        used = np.maximum(own.max(axis=0), -own.min(axis=0)) > 1e-12 * lengths
        residuals[:, positions] -= fitted[used].T @ (own[:, used] / lengths[used]).T


def _squares(residuals: Vector, owners: NDArray[np.int64], count: int) -> Vector:
    """Sum the squares of columns by owner; columns without an owner are skipped."""
    parts = (residuals[:, owners == owner] for owner in range(count))
    return np.stack([np.einsum("ij,ij->i", part, part) for part in parts], axis=1)


def _pairs(cliques: Sequence[Clique]) -> dict[Clique, list[int]]:
    """Map the pairs of variables within tables to the indices of those tables."""
    pairs: dict[frozenset[str], tuple[Clique, list[int]]] = {}
    for number, clique in enumerate(cliques):
        for pair in itertools.combinations(clique, 2):
            pairs.setdefault(frozenset(pair), (pair, []))[1].append(number)
    return dict(pairs.values())


def _pair_misfit(seen: Observed, pairs: dict[Clique, list[int]], residuals: _Residuals) -> tuple[Vector, Vector]:
    """Sum squared residuals of each pair of variables, and find what a deviation of total variation t adds to them."""
    # A missing edge does not change the shares of single variables: what these explain is removed, with its noise. With
    # the effects c and e, s + 2 c t + e t^2 is a draw's sum; NaN where parameters absorb most of any deviation.
    layout, draws, weights = seen.layout, residuals.draws, residuals.weights
    result = np.empty((1 + draws, len(pairs)))
    effects = np.full((2, draws, len(pairs)), math.nan)
    for position, (pair, numbers) in enumerate(pairs.items()):
        parts, precisions = [], []
        for number in numbers:
            own = np.flatnonzero(seen.owners == number)
            block = seen.sums[own][:, layout.offsets[number] : layout.offsets[number + 1]]
            spread = np.asarray((block.multiply(block)).sum(axis=1)).ravel()  # contrasts are orthogonal
            counts = (residuals.rows[:, own] / (weights[own] * spread)) @ block
            table = Table((-1, *layout.scopes[number]), counts.reshape(-1, *layout.shapes[number]))
            parts.append(table.margin((-1, *pair)).values.reshape(len(counts), -1))
            precisions.append(1.0 / (parts[-1][1 : 1 + draws] ** 2).mean().clip(1e-12))
        summed = np.average(parts, axis=0, weights=precisions)
        means = (summed[1 : 1 + draws] ** 2).mean(axis=0)
        minimum = _LEFT * min(float((weights[seen.owners == number] ** -2).mean()) for number in numbers)
        tested = means > minimum
        summed = _interaction(summed, np.where(tested, means, 0.0), [layout.cardinalities[v] for v in pair])
        noisy, (added, before) = summed[: 1 + draws], np.split(summed[1 + draws :], 2)
        left = (noisy[1:] ** 2).mean(axis=0)
        tested &= left > _LEFT * means
        if not tested.any():
            result[:, position] = math.nan
            continue
        result[:, position] = (noisy[:, tested] ** 2 / left[tested]).sum(axis=1)
        if np.abs(added).sum() > _UNABSORBED * np.abs(before).sum():
            added = added * (2.0 * seen.total / np.abs(added).sum(axis=1, keepdims=True).clip(1e-300))
            added = added[np.arange(draws) % len(added)][:, tested]
            effects[0, :, position] = (noisy[1:, tested] * added) @ (1.0 / left[tested])
            effects[1, :, position] = added**2 @ (1.0 / left[tested])
    return result, effects


def _detected_from(squares: Vector, crossed: Vector, effects: Vector, bar: float) -> float:
    """Find the smallest t for which s + 2 c t + e t^2 exceeds a threshold in 80 % of the draws."""
    missing = np.maximum(bar - squares, 0.0)
    needed = (np.sqrt(crossed**2 + effects * missing) - crossed) / np.maximum(effects, 1e-300)
    return float(np.quantile(np.where(missing > 0, needed, 0.0), _POWER))


def _detected_despite_fit(squares: Vector, effects: Vector, bar: float) -> float:
    """Find the t from which on a deviation is found, whatever share of the noise a fit has absorbed."""
    # If a share a of the noise is left, the sum is about a^2 E + 2 a c t + e t^2, where E is the mean of the noise's
    # own sum and c has variance e: in 80 % of the draws at least e t^2 (1 - z^2 / E), whatever a is.
    kept = max(1.0 - _POWER_QUANTILE**2 / float(squares.mean()), 0.25)
    return float(np.quantile(np.sqrt(bar / (kept * np.maximum(effects, 1e-300))), _POWER))


def _strongest(table: Vector) -> float:
    """Return the total variation between a table and one with the same margins and a greedily maximised dependence."""
    rows, columns, dependent = table.sum(axis=1), table.sum(axis=0), np.zeros_like(table)
    for _ in range(sum(table.shape)):
        room = np.minimum(rows[:, None], columns)
        position = np.unravel_index(int((np.where(room > 0, room - table, -np.inf)).argmax()), table.shape)
        taken = room[position]
        dependent[position] += taken
        rows[position[0]] -= taken
        columns[position[1]] -= taken
    return 0.5 * float(np.abs(dependent - table).sum())


def _interaction(residuals: Vector, variances: Vector, shape: Sequence[int]) -> Vector:
    """Remove the part of a pair's residuals that its row and column sums explain, given the cells' variances."""
    rows, columns = np.indices(shape).reshape(2, -1)
    sums = np.vstack([rows == np.arange(shape[0])[:, None], columns == np.arange(shape[1])[:, None]]).astype(np.float64)
    among = sums * variances
    expected = np.linalg.pinv(among @ sums.T, rcond=1e-9, hermitian=True) @ among
    taken: Vector = residuals - residuals @ sums.T @ expected
    return taken


def _exponential_tail(law: Vector) -> tuple[float, float]:
    """Return where the tail of a sorted distribution begins, and the mean excess beyond."""
    last = int(law.size * (1.0 - _TAIL))
    start = float(law[last - 1])
    return start, max(float((law[last:] - start).mean()), 1e-300)


def _quantile(law: Vector, level: float) -> float:
    """Return the value at which `_tail` is a given small level."""
    start, excess = _exponential_tail(np.sort(law))
    return start + excess * math.log(_TAIL / level)


def _tail(values: Vector, law: Vector) -> Vector:
    """Return the share of simulated values that are as large as each value; the upper tail is about exponential."""
    law = np.sort(law, axis=0)
    draws, columns = law.shape
    result = np.empty_like(values)
    for column in range(columns):
        own, mine = law[:, column], values[:, column]
        result[:, column] = (draws - np.searchsorted(own, mine) + 1) / (draws + 1)
        if np.isnan(mine).any():
            result[:, column] = np.nan
            continue
        start, excess = _exponential_tail(own)
        beyond = mine > start
        result[beyond, column] = _TAIL * np.exp(-(mine[beyond] - start) / excess)
    return np.maximum(result, _MIN)


def _misfits(
    seen: Observed,
    own: dict[Clique, Vector],
    cliques: Sequence[Clique],
    misfit: Vector,
    p_values: Vector,
    detectable: Vector,
) -> tuple[Misfit, ...]:
    """Combine misfits with their effects, in shares."""
    means = misfit[1:].mean(axis=0)
    parts = zip(cliques, misfit[0].tolist(), means.tolist(), p_values.tolist(), detectable.tolist(), strict=True)
    results = [
        Misfit(clique, observed, expected, p_value, *_effect(seen, own, clique), effect)
        for clique, observed, expected, p_value, effect in parts
    ]
    return tuple(sorted(results, key=lambda each: (math.isnan(each.p_value), each.p_value, -each.excess)))


def _effect(seen: Observed, own: dict[Clique, Vector], clique: Clique) -> tuple[float, tuple[State, ...], float, float]:
    """Compare the least noisy table of a clique with the model's; returns the last four attributes of `Misfit`."""
    total, schema = seen.total, seen.schema
    counts, variance = lowest_noise(seen.releases, clique)
    model = _model_table(own, clique)
    measured = np.asarray(counts) / total
    apart = np.abs(measured - model)
    chance = np.sqrt(2.0 / math.pi * (variance + total * model * (1.0 - model))) / total
    position = np.unravel_index(int(apart.argmax()), apart.shape)
    cell = tuple(schema.states[variable][int(i)] for variable, i in zip(clique, position, strict=True))
    return max(0.0, 0.5 * float((apart - chance).sum())), cell, float(measured[position]), float(model[position])


def _model_table(own: dict[Clique, Vector], clique: Clique) -> Vector:
    """Return a table of the model as a margin of one that contains it."""
    within = next(name for name in own if set(clique) <= set(name))
    return Table(within, own[within]).margin(clique).values
