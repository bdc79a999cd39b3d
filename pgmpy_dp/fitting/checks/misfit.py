"""What a release measured is held against what a model expects, by the law that the misfit has if the model is right.

Observations y = A n + noise deviate from those that a model expects by noise of known size, and by the sampling of N
records. Fitted parameters absorb a part of both: what the tangents of the model's own observations span is projected
out, so that the estimator does not matter (the C(alpha) tests of Neyman 1959), once steps of scoring have brought them
near enough. Tables that only test a network do not move its parameters, but what those explain of them is taken out as
well. What is left of simulated deviations, treated alike, is the law of what is left of the residuals.

What a test could have seen comes from the same draws. Records drawn from the model deviate from it in a pair of
variables. What the parameters and the shares of single variables leave of that is scaled to a total variation of t, and
added to the residuals of another draw: the pair's sum of squares exceeds what makes the test fail from some t on. The t
that suffices in 80 % of the draws is the smallest effect that the test finds with 80 % power, an effect being how far
the pair's true shares are from the nearest that the model can have. Such deviations are spread over all cells of the
pair; those of few cells, or that other tables show as well, are found more often. Of the release, only its noise enters
and the model that was fitted to it.
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

from pgmpy_dp._threads import one_thread
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.inference.tables.table import Table
from pgmpy_dp.observed.observations import Observations
from pgmpy_dp.release.observations import LEAST_VARIANCE
from pgmpy_dp.schema import Clique, State

# The smallest effect is the one that is found with this probability.
_POWER = 0.8
# It is found from deviations of so many drawn samples. Where parameters leave less than this share of them, they are
# those of the pair itself.
_DEVIATIONS, _UNABSORBED = 100, 0.3
# A fit fails where so large a misfit would be so improbable if the model were right.
LEVEL = 0.01
# In the last part of a simulated law, its tail is taken for exponential.
_TAIL = 0.1
# Smaller probabilities are not told apart, and stated as a bound: a tail is not known so far out.
_LEAST, _STATED = 1e-9, 1e-6
# Where no more than this share of the deviations is left by the parameters, nothing is tested.
_LEFT = 1e-3
_SHOWN = 3
_APART = 1e-10  # holds near-collinear columns of length 1 apart

Tangents = Callable[[Sequence[Clique]], Vector]


@dataclass(frozen=True)
class Misfit:
    """A table or pair of variables has this misfit.

    Attributes
    ----------
    variables : tuple of str
    observed, expected : float
        The sum of squared standardised residuals that parameters cannot absorb, and its mean if the network is right.
    p_value : float
        The probability of so large a sum then, and of tables that were chosen for being far off, in any of those that
        they were chosen among. NaN where the parameters absorb everything.
    excess : float
        Total variation between the measured shares and the network's, beyond what noise and sampling make.
    cell : tuple of states
        The joint state that is farthest off, and its share, `measured` and by the `network`.
    detectable : float
        Of a pair: the smallest total variation, from the nearest that the network can have, that the check would have
        found with a probability of 80 %; see `pgmpy_dp.fitting.checks.misfit`. Infinite where even the strongest
        dependence would have been missed more often. NaN of tables, and of pairs that the network's parameters fit.
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
    """A release was held against a network.

    Attributes
    ----------
    of_tables, of_pairs : tuple of Misfit
        Of each measured table, and of all pairs of variables that were measured together, the worst first.
    z2 : float
        Observed over expected misfit of all tables: about 1 if the network is right.
    p_value : float
        The probability of so large a misfit, in all or in the worst table or pair, if the network is right. NaN where
        the parameters absorb everything: the release has nothing to hold against the network.
    left_out : int
        So many measured tables were not tested, since derivatives of all do not fit in memory.
    """

    of_tables: tuple[Misfit, ...]
    of_pairs: tuple[Misfit, ...]
    z2: float
    p_value: float
    left_out: int = 0

    @property
    def tables(self) -> pd.DataFrame:
        """Return a frame with a row for each measured table, and what `Misfit` has as columns."""
        return _frame(self.of_tables)

    @property
    def pairs(self) -> pd.DataFrame:
        """Return the same for pairs of variables."""
        return _frame(self.of_pairs)

    @property
    def fails(self) -> bool:
        """Say whether a right network would have so large a misfit in less than one release of a hundred."""
        return self.p_value < LEVEL

    @property
    def passes(self) -> bool:
        """Say whether the check found nothing, though it could have found something."""
        return not self.fails and self.detectable < math.inf

    @property
    def detectable(self) -> float:
        """Return the smallest total variation that would have been found with 80 % power, in any of the pairs.

        Infinite where the noise hides every dependence of every pair: that such a check does not fail says nothing. NaN
        where no pair was tested.
        """
        return min((effect for effect in self._effects), default=math.nan)

    @property
    def _effects(self) -> list[float]:
        return [pair.detectable for pair in self.of_pairs if not math.isnan(pair.detectable)]

    @property
    def power(self) -> str:
        """Say which effect the check would have found with 80 % power."""
        effects, hidden = sorted(self._effects), sum(map(math.isinf, self._effects))
        if not effects:
            return "no pair of variables was tested, so that no missing edge would have been seen"
        if hidden == len(effects):
            return "the noise would have hidden even the strongest dependence in each pair that was measured"
        seen = [effect for effect in effects if effect < math.inf]
        sizes = f"{seen[0]:.2g} to {seen[-1]:.2g}" if f"{seen[0]:.2g}" != f"{seen[-1]:.2g}" else f"{seen[0]:.2g}"
        told = f"a total variation of {sizes} in a pair of variables would have been found with 80 % probability"
        return f"{told}; in {hidden} of {len(effects)} pairs the noise hides any dependence" if hidden else told

    @property
    def probability(self) -> str:
        """Write the p-value as "p = 0.03", or as a bound where it is too small to be known."""
        return f"p < {_STATED:g}" if self.p_value < _STATED else f"p = {self.p_value:.2g}"

    def worst(self, count: int = _SHOWN) -> list[str]:
        """Describe what fails by itself: pairs of variables, or else tables, the farthest off first."""
        for listed in (self.of_pairs, self.of_tables):
            failing = [misfit for misfit in listed if misfit.p_value * len(listed) < LEVEL]
            if failing:
                return [str(misfit) for misfit in sorted(failing, key=lambda misfit: -misfit.excess)[:count]]
        return []

    def __repr__(self) -> str:
        if math.isnan(self.p_value):
            return "FitCheck: the parameters absorb all that was measured; only further tables would test the network"
        verdict = "the network fails" if self.fails else "the network passes" if self.passes else "nothing is known"
        line = f"FitCheck: {verdict}, {self.probability}, misfit {self.z2:.3g} times the expected"
        parts = [f"of {self.left_out + len(self.of_tables)} tables {self.left_out} were too many to test"]
        return "\n  ".join([line, *(self.worst() if self.fails else [self.power]), *(parts if self.left_out else [])])


def _frame(misfits: Sequence[Misfit]) -> pd.DataFrame:
    names = [field.name for field in fields(Misfit)][1:]
    index = pd.Index([misfit.variables for misfit in misfits], tupleize_cols=False, name="variables")
    return pd.DataFrame([{name: getattr(m, name) for name in names} for m in misfits], index=index, columns=names)


def held_against(
    seen: Observations,
    shares: Vector,
    deviations: Vector,
    tangents: Tangents | None = None,
    telling: Collection[Clique] | None = None,
    seed: int = 0,
) -> FitCheck:
    """Hold observations against a model.

    Parameters
    ----------
    seen : Observations
    shares : ndarray of shape (cells,)
        The model's probabilities of the cells of `seen.cliques`.
    deviations : ndarray of shape (draws, cells)
        Counts of records drawn from the model less their expectation, simulated some hundred times.
    tangents : callable, optional
        From some of the cliques to the derivatives of their shares by the parameters that were fitted, of shape (cells,
        parameters). Without them the law is that of a model which was not fitted to the release: it errs to the side of
        the model.
    telling : collection of tuples of str, optional
        The tables that tell of the parameters; without it, all do.
    seed : int
        The noise of the simulation is repeatable; no privacy hangs on it.
    """
    expected, weights = _expected(seen, shares)
    draws = len(deviations)
    some = np.arange(_DEVIATIONS) * draws // _DEVIATIONS
    # One array, changed in place, for it is large: what was observed, simulations of it, deviations without noise, and
    # these once more as they were before projection.
    rows = np.empty((1 + draws + 2 * some.size, weights.size))
    residuals, projected = rows[: 1 + draws], rows[: -some.size]
    residuals[0] = seen.noise.observed - expected
    residuals[1:] = (seen.sums @ deviations.T).T
    residuals[1:] *= math.sqrt(_repeats(seen))
    rows[1 + draws :] = np.tile(residuals[1 + some], (2, 1))
    residuals[1:] += seen.noise.draw(draws, np.random.default_rng(seed))
    rows *= weights
    with one_thread():
        told = np.array([telling is None or clique in telling for clique in (*seen.cliques, None)])
        parts = _columns(seen, shares, weights, tangents, told[seen.owners] | (seen.owners < 0))
        _project_out(parts, projected)
    among = seen.chosen_among
    tables = _squares(residuals, seen.owners, len(seen.cliques))
    sizes = np.bincount(seen.owners[seen.owners >= 0], minlength=len(seen.cliques))
    tables[:, tables[1:].mean(axis=0) < _LEFT * sizes] = np.nan
    pairs = _pairs(seen.cliques)
    apart, effects = _pair_misfit(seen, pairs, rows, weights, draws)
    # Tables that were chosen for their distance are judged by themselves, as if all candidates had been measured.
    factors = np.array([max(among[number] for number in numbers) for numbers in pairs.values()])
    whole = np.nansum(tables[:, among == 0], axis=1)
    if not whole.any():
        whole[:] = np.nan
    roots = np.sqrt(np.hstack([whole[:, None], tables, apart]))
    half, chosen = 1 + draws // 2, np.concatenate([[0], among, factors])
    single = _tail(roots, roots[1:half])
    with np.errstate(divide="ignore"):
        least = -np.log(np.nanmin(np.where(np.isnan(single) | (chosen > 0), 1.0, single), axis=1))
    # The law of the least comes from draws that those of the single ones were not fitted to, as the release was not.
    others = math.nan if np.isnan(whole).any() else float(_tail(least[:1, None], least[half:, None])[0, 0])
    tests = (not math.isnan(others)) + bool((factors[~np.isnan(apart[0])] > 0).any())
    plain = math.exp(-_quantile(least[half:], LEVEL / tests)) if not math.isnan(others) else math.nan
    _, of_tables, of_pairs = np.split(np.minimum(single[0] * np.maximum(chosen, 1), 1.0), [1, 1 + among.size])
    misfit = np.nansum(tables, axis=1)
    own = dict(zip(seen.cliques, np.split(shares, seen.layout.offsets[1:-1]), strict=True))
    detectable = np.full(len(pairs), math.nan)
    for place, (pair, factor) in enumerate(zip(pairs, factors, strict=True)):
        level = LEVEL / tests / factor if factor else plain
        if not (np.isnan(effects[:, :, place]).any() or math.isnan(level)):
            bar = _quantile(roots[1:half, roots.shape[1] - len(pairs) + place], level) ** 2
            effect = _found_from(apart[1:, place], effects[0, :, place], effects[1, :, place], bar)
            detectable[place] = effect if effect < _strongest(_model_table(seen, own, pair)) else math.inf
    return FitCheck(
        _misfits(seen, own, seen.cliques, tables, of_tables, np.full(len(seen.cliques), math.nan)),
        _misfits(seen, own, list(pairs), apart, of_pairs, detectable),
        float(misfit[0] / misfit[1:].mean()) if misfit.any() else math.nan,
        _either(others, of_pairs[factors > 0]),
    )


def _either(others: float, chosen: Vector) -> float:
    """Join the p-value of plain tables and those of chosen pairs, which count their candidates already."""
    least = float(np.nanmin(chosen)) if not np.isnan(chosen).all() else math.nan
    tested = [p_value for p_value in (others, least) if not math.isnan(p_value)]
    return min(1.0, len(tested) * min(tested)) if tested else math.nan


def scoring_step(seen: Observations, shares: Vector, tangents: Tangents) -> Vector:
    """Find by how much parameters, logarithms, move to what all observations say: one step of Fisher's scoring.

    Of what the observations leave open, steps of the size of one are taken for usual, so that they stay small.
    """
    expected, weights = _expected(seen, shares)
    with one_thread():
        ((_, columns),) = _columns(seen, shares, weights, tangents, np.ones(weights.size, dtype=np.bool_))
        gram = columns.T @ columns
        gram[np.diag_indices_from(gram)] += 1.0
        step: Vector = cho_solve(cho_factor(gram), columns.T @ (weights * (seen.noise.observed - expected)))
    return step[:-1] if seen.total_variance > 0 else step


def _repeats(seen: Observations) -> int:
    """Rows of one unit may be alike: as many are at most counted as if they were one."""
    return max(release.guarantee.max_rows or 1 for release in seen.releases)


def _expected(seen: Observations, shares: Vector) -> tuple[Vector, Vector]:
    """Find what a model expects to be observed, and the weights that standardise deviations from it."""
    expected, squares = seen.total * seen.expected(shares), seen.total * seen.expected_squares(shares)
    sampling = _repeats(seen) * np.maximum(squares - expected**2 / seen.total, 0.0)
    return expected, 1.0 / np.sqrt(np.maximum(seen.noise.variance, LEAST_VARIANCE) + sampling)


def _columns(
    seen: Observations, shares: Vector, weights: Vector, tangents: Tangents | None, told: NDArray[np.bool_]
) -> Iterator[tuple[NDArray[np.int64], Vector]]:
    """Standardise derivatives of observations by what was fitted: parameters, and then an unknown number of records.

    Those that tell come first, all together, and each other table by itself.
    """
    holders = np.repeat(np.arange(len(seen.cliques)), np.diff(seen.layout.offsets))
    others = (np.flatnonzero(~told & (seen.owners == owner)) for owner in np.unique(seen.owners[~told]))
    for places in itertools.chain([np.flatnonzero(told)], others):
        observing = sparse.csr_array(sparse.diags_array(weights[places]) @ seen.sums[places])
        columns = (observing @ shares)[:, None] if seen.total_variance > 0 else np.empty((places.size, 0))
        if tangents is not None:
            numbers = np.unique(holders[observing.indices])
            cells = np.flatnonzero(np.isin(holders, numbers))
            moved = (seen.total * observing[:, cells]) @ tangents([seen.cliques[number] for number in numbers])
            columns = np.hstack([moved, columns]) if columns.size else moved
        yield places, columns


def _project_out(parts: Iterator[tuple[NDArray[np.int64], Vector]], residuals: Vector) -> None:
    """Take off rows of residuals what columns H span, as fitted to the first part of them, where this is a projection.

    Near-collinear columns are held apart a little. Of (H'H + r)^-1 H' = H' (HH' + r)^-1 the one with the smaller matrix
    is taken, twice: what is left is a difference. Any other table depends on few of the columns.
    """
    told, columns = next(parts)
    lengths = np.sqrt(np.einsum("ij,ij->j", columns, columns))
    moved = lengths > 1e-10
    held, lengths = columns[:, moved] / lengths[moved], lengths[moved]
    cells, parameters = held.shape
    if not held.size:
        return
    gram = held.T @ held if parameters < cells else held @ held.T
    gram[np.diag_indices_from(gram)] += _APART
    factor = cho_factor(gram)
    here = residuals[:, told].T
    if parameters < cells:
        fitted = cho_solve(factor, held.T @ here)
        fitted += cho_solve(factor, held.T @ (here - held @ fitted))
        residuals[:, told] -= fitted.T @ held.T
    else:  # what is left of the places that tell is r (HH' + r)^-1 of them
        once = cho_solve(factor, here)
        twice = _APART * cho_solve(factor, once)
        fitted, residuals[:, told] = held.T @ (once + twice), _APART * twice.T
    for places, columns in parts:
        own = columns[:, moved]
        used = np.maximum(own.max(axis=0), -own.min(axis=0)) > 1e-12 * lengths
        residuals[:, places] -= fitted[used].T @ (own[:, used] / lengths[used]).T


def _squares(residuals: Vector, owners: NDArray[np.int64], count: int) -> Vector:
    """Sum the squares of columns by their owner; those of none are left out."""
    parts = (residuals[:, owners == owner] for owner in range(count))
    return np.stack([np.einsum("ij,ij->i", part, part) for part in parts], axis=1)


def _pairs(cliques: Sequence[Clique]) -> dict[Clique, list[int]]:
    """List the pairs of variables that lie in tables, with the numbers of those tables."""
    pairs: dict[frozenset[str], tuple[Clique, list[int]]] = {}
    for number, clique in enumerate(cliques):
        for pair in itertools.combinations(clique, 2):
            pairs.setdefault(frozenset(pair), (pair, []))[1].append(number)
    return dict(pairs.values())


def _pair_misfit(
    seen: Observations, pairs: dict[Clique, list[int]], rows: Vector, weights: Vector, draws: int
) -> tuple[Vector, Vector]:
    """Sum residuals to pairs, from all tables that hold them, and give sums of squares relative to their means.

    A missing edge leaves the shares of single variables as they are: the part of a pair's residuals that those of its
    two variables explain is taken out, with its noise.

    The second result, of shape (2, draws, pairs), has c and e for which s + 2 c t + e t^2 is a draw's sum of squares
    once t times a deviation is added, scaled to a total variation of 1. NaN for pairs that have parameters, which
    absorb most of what a deviation was before.
    """
    found = np.empty((1 + draws, len(pairs)))
    effects = np.full((2, draws, len(pairs)), math.nan)
    layout = seen.layout
    for place, (pair, numbers) in enumerate(pairs.items()):
        parts, precisions = [], []
        for number in numbers:
            own = np.flatnonzero(seen.owners == number)
            block = seen.sums[own][:, layout.offsets[number] : layout.offsets[number + 1]]
            spread = np.asarray((block.multiply(block)).sum(axis=1)).ravel()  # contrasts are orthogonal
            counts = (rows[:, own] / (weights[own] * spread)) @ block
            table = Table((-1, *layout.scopes[number]), counts.reshape(-1, *layout.shapes[number]))
            parts.append(table.margin((-1, *pair)).values.reshape(len(rows), -1))
            precisions.append(1.0 / (parts[-1][1 : 1 + draws] ** 2).mean().clip(1e-12))
        summed = np.average(parts, axis=0, weights=precisions)
        means = (summed[1 : 1 + draws] ** 2).mean(axis=0)
        least = _LEFT * min(float((weights[seen.owners == number] ** -2).mean()) for number in numbers)
        tested = means > least
        summed = _interaction(summed, np.where(tested, means, 0.0), [layout.cardinalities[v] for v in pair])
        left = (summed[1 : 1 + draws] ** 2).mean(axis=0)
        tested &= left > _LEFT * means
        if not tested.any():
            found[:, place] = math.nan
            continue
        found[:, place] = (summed[: 1 + draws, tested] ** 2 / left[tested]).sum(axis=1)
        added, before = np.split(summed[1 + draws :], 2)
        if np.abs(added).sum() > _UNABSORBED * np.abs(before).sum():
            added = added * (2.0 * seen.total / np.abs(added).sum(axis=1, keepdims=True).clip(1e-300))
            added = added[np.arange(draws) % len(added)][:, tested]
            effects[0, :, place] = (summed[1 : 1 + draws, tested] * added) @ (1.0 / left[tested])
            effects[1, :, place] = added**2 @ (1.0 / left[tested])
    return found, effects


def _found_from(squares: Vector, crossed: Vector, effects: Vector, bar: float) -> float:
    """Find the t from which on s + 2 c t + e t^2 is above a bar in 80 % of the draws."""
    missing = np.maximum(bar - squares, 0.0)
    needed = (np.sqrt(crossed**2 + effects * missing) - crossed) / np.maximum(effects, 1e-300)
    return float(np.quantile(np.where(missing > 0, needed, 0.0), _POWER))


def _strongest(table: Vector) -> float:
    """Find how far, in total variation, a table with the same sums of rows and columns is, if dependence is strong.

    Mass goes to one cell after another, to each as much as its row and column have left, first where that adds most.
    """
    rows, columns, dependent = table.sum(axis=1), table.sum(axis=0), np.zeros_like(table)
    for _ in range(sum(table.shape)):
        room = np.minimum(rows[:, None], columns)
        place = np.unravel_index(int((np.where(room > 0, room - table, -np.inf)).argmax()), table.shape)
        taken = room[place]
        dependent[place] += taken
        rows[place[0]] -= taken
        columns[place[1]] -= taken
    return 0.5 * float(np.abs(dependent - table).sum())


def _interaction(residuals: Vector, variances: Vector, shape: Sequence[int]) -> Vector:
    """Take what the sums of rows and columns let expect from the cells of pairs, whose variances these are."""
    rows, columns = np.indices(shape).reshape(2, -1)
    sums = np.vstack([rows == np.arange(shape[0])[:, None], columns == np.arange(shape[1])[:, None]]).astype(np.float64)
    among = sums * variances
    expected = np.linalg.pinv(among @ sums.T, rcond=1e-9, hermitian=True) @ among
    taken: Vector = residuals - residuals @ sums.T @ expected
    return taken


def _exponential_tail(law: Vector) -> tuple[float, float]:
    """Find where the tail of a sorted law begins, and the mean of what is beyond."""
    last = int(law.size * (1.0 - _TAIL))
    start = float(law[last - 1])
    return start, max(float((law[last:] - start).mean()), 1e-300)


def _quantile(law: Vector, level: float) -> float:
    """Find the value for which `_tail` gives a small level."""
    start, excess = _exponential_tail(np.sort(law))
    return start + excess * math.log(_TAIL / level)


def _tail(values: Vector, law: Vector) -> Vector:
    """Give each value of a column the share of simulated ones, the law of the column, that are as large.

    Among the largest, roots of sums of squares and logarithms of probabilities have about exponential tails.
    """
    law = np.sort(law, axis=0)
    draws, columns = law.shape
    found = np.empty_like(values)
    for column in range(columns):
        own, mine = law[:, column], values[:, column]
        found[:, column] = (draws - np.searchsorted(own, mine) + 1) / (draws + 1)
        if np.isnan(mine).any():
            found[:, column] = np.nan
            continue
        start, excess = _exponential_tail(own)
        beyond = mine > start
        found[beyond, column] = _TAIL * np.exp(-(mine[beyond] - start) / excess)
    return np.maximum(found, _LEAST)


def _misfits(
    seen: Observations,
    own: dict[Clique, Vector],
    cliques: Sequence[Clique],
    misfit: Vector,
    p_values: Vector,
    detectable: Vector,
) -> tuple[Misfit, ...]:
    """Put misfits beside their effects, in shares."""
    means = misfit[1:].mean(axis=0)
    parts = zip(cliques, misfit[0].tolist(), means.tolist(), p_values.tolist(), detectable.tolist(), strict=True)
    found = [
        Misfit(clique, observed, expected, p_value, *_effect(seen, own, clique), effect)
        for clique, observed, expected, p_value, effect in parts
    ]
    return tuple(sorted(found, key=lambda each: (math.isnan(each.p_value), each.p_value, -each.excess)))


def _effect(
    seen: Observations, own: dict[Clique, Vector], clique: Clique
) -> tuple[float, tuple[State, ...], float, float]:
    """Compare the least noisy table of a clique with the model's: the last four attributes of a `Misfit`."""
    total, schema = seen.total, seen.schema
    holding = [r for r in seen.releases if any(set(clique) <= set(measured) for measured in r.cliques)]
    counts, variance = min((release.marginal(clique) for release in holding), key=lambda table: table[1])
    model = _model_table(seen, own, clique)
    measured = np.asarray(counts) / total
    apart = np.abs(measured - model)
    chance = np.sqrt(2.0 / math.pi * (variance + total * model * (1.0 - model))) / total
    place = np.unravel_index(int(apart.argmax()), apart.shape)
    cell = tuple(schema.states[variable][int(i)] for variable, i in zip(clique, place, strict=True))
    return max(0.0, 0.5 * float((apart - chance).sum())), cell, float(measured[place]), float(model[place])


def _model_table(seen: Observations, own: dict[Clique, Vector], clique: Clique) -> Vector:
    """Read a table of the model from one that holds it."""
    within = next(name for name in own if set(clique) <= set(name))
    return Table(within, own[within].reshape(seen.schema.shape(within))).margin(clique).values
