"""Parametric bootstrap of a fitted mixture: refits to simulated releases give the errors of its answers.

Where noise hides dependence, a fit shrinks it, and so do refits, whose simulated truth has too little of it: they do
not show the error of the missing dependence. Let the interactions of a table, the part that its margins do not
determine, have variance t, their noise n, and that the fit multiplies them by s = t / (t + n). Then the release's
interactions are (1 - s)^2 (t + n) from the fit in mean square, and those of a simulated release, whose truth has
variance s t, are (1 - s)^2 (s t + n) from a refit. The difference is (1 - s)^3 t, and the mean squared error of the
fit, s n, is that of the refits, s^2 n + (1 - s)^2 s t, and the same (1 - s)^3 t. So it is estimated from all tables of
two variables, as a squared correlation, and added to the errors of answers about several variables.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from pgmpy_dp._progress import progress
from pgmpy_dp._threads import cores, one_thread
from pgmpy_dp.inference.distribution import ImpossibleEvidenceError
from pgmpy_dp.inference.mixtures.balanced_records import pair_counts
from pgmpy_dp.inference.mixtures.boxes import conditioned
from pgmpy_dp.inference.mixtures.fit.ensemble import MixtureFit, marginals_of, refined_by, refitting
from pgmpy_dp.inference.mixtures.fit.noisy_tables import NoisyTables, children_within, coarse_table, fine_counts
from pgmpy_dp.inference.mixtures.mixture import Mixture
from pgmpy_dp.inference.tables.table import Variable, Vector, centred

# Maximum number of records drawn; for more, deviations from the mixture are scaled down to the actual number.
_MAX_RECORDS = 50_000
# A state's mean squared error over a few draws is averaged with that of all states of the question, which has the
# weight of this number of draws.
_STRENGTH = 4.0
# Pairs do not determine the dependence of three variables. For it, a refit's own spread between starts has this weight:
# the mean of many members has hardly any spread, but is no closer to the truth than their agreement. Records also
# deviate more than independent ones: this multiple of their variance is added. Both were chosen on the RAND Health
# Insurance Experiment, where a person has several records, on Adult, and on the networks "child" and "insurance".
_STARTS, _DEPENDENT = 0.5, 2.0
_MIN = 0.25  # minimum share of a variance that is kept


@dataclass(frozen=True)
class Prediction:
    """An answer, or a mean under it, with the standard deviation of its error.

    Attributes
    ----------
    values, deviations : ndarray
    hidden : ndarray
        Noise hides shares of this size: a value below this means only that the share is small.
    records : float
        Number of records with the evidence.
    uncertainty : float
        Standard deviation of that number's error.
    draws : int
        Number of draws from which deviations were computed.
    """

    values: Vector
    deviations: Vector
    hidden: Vector
    records: float
    uncertainty: float
    draws: int

    @property
    def minimum(self) -> float:
        """Lower bound on the number of records with the evidence, with a probability of 95 %."""
        return self.records - float(stats.t.ppf(0.95, self.draws)) * self.uncertainty

    def bounds(self, interval: float) -> tuple[Vector, Vector]:
        """Return bounds of the values that contain this share of a t distribution."""
        width = float(stats.t.ppf((1 + interval) / 2, self.draws))
        upper = np.maximum(self.values + width * self.deviations, width * self.hidden)
        return self.values - width * self.deviations, upper


@dataclass(frozen=True)
class MixtureDraws:
    """Parametric bootstrap of a fitted mixture: records drawn from it, and refits to their noisy tables.

    Attributes
    ----------
    fit : MixtureFit
    records : tuple of ndarrays of shape (records, variables)
        State indices, columns in the order of the mixture's variables.
    refits : tuple of Mixture
        One member each.
    noise : mapping of variable to float
        Standard deviation of the noise in the share of a variable's states, from all tables that contain it.
    missing : float
        Mean squared correlation of two variables that noise hides from the fit.
    """

    fit: MixtureFit
    records: tuple[NDArray[np.unsignedinteger], ...]
    refits: tuple[Mixture, ...]
    noise: Mapping[Variable, float]
    missing: float

    def predict(
        self,
        asked: Sequence[Variable],
        given: Mapping[Variable, int],
        *,
        of_records: bool,
        numbers: ArrayLike | None = None,
    ) -> Prediction:
        """Answer a question with its expected error."""
        answer, share = self._answer(self.fit.mixture, asked, given), _share(self.fit.mixture, given)
        unit = np.maximum(answer * (1 - answer), 0.0)  # rounding may leave more than 1
        records, hidden = self.fit.total * share, self._hidden(asked, given)
        beyond = _beyond_pairs([self._shares(v) for v in asked], [self._shares(v)[state] for v, state in given.items()])
        weights, level = None, max(float(unit.sum()), 1e-12)
        values, own = answer, unit
        if numbers is not None:
            weights = np.asarray(numbers, dtype=np.float64).ravel()
            values, beyond, hidden = np.array([answer @ weights]), np.array([unit @ beyond / level]), np.zeros(1)
            own = np.array([answer @ (weights - values) ** 2])

        def variance(errors: Iterable[Vector], freedom: int) -> Vector:
            squares, whole = np.zeros(values.size), 0.0
            for error in errors:
                squares += (error if weights is None else error @ weights) ** 2
                whole += float(error @ error)
            result: Vector = (squares + _STRENGTH * whole / max(freedom, 1) / level * own) / (freedom + _STRENGTH)
            return result

        each = [self._errors(asked, given, answer, share, target) for target in {True, of_records}]
        result = np.max([variance(errors, len(self.refits)) for errors in each], axis=0)
        if len(asked) + len(given) > 2:
            members = self._members
            apart = (self._answer_or(lambda: answer, member, asked, given) - answer for member in members)
            starts = variance(apart, len(members) - 1)
            result = np.maximum(result - (1 - _STARTS) * starts, _MIN * result)
            result += _DEPENDENT * beyond * own / max(records, 1.0)
        # r moves P(a | b) by r sqrt(P(a) (1 - P(a)) odds(b)), and P(a, b) by r P(a, b) sqrt(odds(a) odds(b)).
        result += self.missing * sum(_odds(self._shares(v)[state]) for v, state in given.items()) * own
        if numbers is None and len(asked) > 1:
            odds = np.meshgrid(*(_odds(self._shares(v)) for v in asked), indexing="ij")
            result += self.missing * answer**2 * sum(one * other for one, other in combinations(odds, 2)).ravel()
        return Prediction(values, np.sqrt(result), hidden, records, self._uncertainty(given, share), len(self.refits))

    @cached_property
    def _members(self) -> tuple[Mixture, ...]:
        return self.fit.members

    def _answer(self, mixture: Mixture, asked: Sequence[Variable], given: Mapping[Variable, int]) -> Vector:
        """Compute the distribution of the variables asked for, flat."""
        return conditioned(mixture, self.fit.rules, given).marginal(asked).ravel()

    def _answer_or(
        self,
        otherwise: Callable[[], Vector],
        mixture: Mixture,
        asked: Sequence[Variable],
        given: Mapping[Variable, int],
    ) -> Vector:
        """Compute a member's answer; one that excludes the evidence, which the whole allows, answers `otherwise`."""
        try:
            return self._answer(mixture, asked, given)
        except ImpossibleEvidenceError:
            return otherwise()

    def _shares(self, variable: Variable) -> Vector:
        return self.fit.mixture.marginal((variable,))

    def _errors(
        self, asked: Sequence[Variable], given: Mapping[Variable, int], answer: Vector, share: float, of_records: bool
    ) -> Iterator[Vector]:
        """Yield the errors of the refits' answers relative to the truth that they were drawn from."""
        mixture = self.fit.mixture
        shape = [mixture.cardinalities[variable] for variable in asked]
        for codes, again in zip(self.records, self.refits, strict=True):
            truth = answer
            if of_records:
                kept = codes[self._having(codes, given)]
                states = tuple(kept[:, mixture.variables.index(variable)].astype(np.intp) for variable in asked)
                counted = np.bincount(np.ravel_multi_index(states, shape), minlength=answer.size) / len(codes)
                drawn = self.fit.total * _drawn_to(share * answer, counted, len(codes), self.fit.total)
                # Add one record that matches the mixture, since there may be none.
                truth = (drawn + answer) / (drawn.sum() + 1)
            yield self._answer_or(lambda: mixture.marginal(asked).ravel(), again, asked, given) - truth

    def _having(self, codes: NDArray[np.unsignedinteger], given: Mapping[Variable, int]) -> NDArray[np.bool_]:
        """Mark the drawn records that have the evidence."""
        kept = np.ones(len(codes), dtype=bool)
        for variable, state in given.items():
            kept &= codes[:, self.fit.mixture.variables.index(variable)] == state
        return kept

    def _uncertainty(self, given: Mapping[Variable, int], expected: float) -> float:
        """Return the standard deviation of the error of the evidence's count."""
        errors = [
            _share(again, given) - _drawn_to(expected, self._having(codes, given).mean(), len(codes), self.fit.total)
            for codes, again in zip(self.records, self.refits, strict=True)
        ]
        return self.fit.total * float(np.sqrt(np.mean(np.square(errors))))

    def _hidden(self, asked: Sequence[Variable], given: Mapping[Variable, int]) -> Vector:
        """Return the deviations of joint states' probabilities due to the noise in one variable's share."""
        mixture = conditioned(self.fit.mixture, self.fit.rules, given)
        shares = [mixture.marginal((variable,)) for variable in asked]
        total = np.zeros([share.size for share in shares])
        for number, variable in enumerate(asked):
            factors = [
                np.full(share.size, self.noise[variable]) if position == number else share
                for position, share in enumerate(shares)
            ]
            total += reduce(np.multiply.outer, factors) ** 2
        return np.asarray(np.sqrt(total).ravel())


def draw_refits(
    fit: MixtureFit,
    tables: Iterable[tuple[Sequence[Variable], ArrayLike, float]],
    *,
    ordered: Collection[Variable] = (),
    known_total: float | None = None,
    residuals: bool = False,
    draws: int = 8,
    generator: np.random.Generator,
) -> MixtureDraws:
    """Draw records from a fitted mixture and refit it to their tables with equal noise: a parametric bootstrap.

    `tables`, `ordered`, `known_total` and `residuals` are those of the fit.
    """
    sizes, refined, given = fit.coarse_cardinalities, fit.rules.refined, list(tables)
    consistent = [fit.rules.consistent(*coarse_table(refined, sizes, table)) for table in given]
    noisy = NoisyTables.of(sizes, consistent, known_total, residuals)
    fine = {finer: deviation for finer, (_, deviation) in fine_counts(refined, given).items()}
    with (
        one_thread(),
        ThreadPoolExecutor(cores()) as pool,
        progress("Drawing", "fit", draws) as bar,
    ):
        draw = partial(_draw_and_refit, fit, noisy, fine, refitting(fit, ordered))
        results = []
        for drawn in pool.map(draw, generator.spawn(draws)):
            results.append(drawn)
            bar.update()
    records, refits, misfits = zip(*results, strict=True)
    deviations = zip(sizes, noisy.single_deviations, strict=True)
    noise_of = {variable: deviation / fit.total for variable, deviation in deviations}
    noise_of |= {finer: deviation / fit.total for finer, deviation in fine.items()}
    missing = max(_misfit(fit.mixture.only(sizes), noisy, fit.total) - float(np.mean(misfits)), 0.0)
    return MixtureDraws(fit, records, refits, noise_of, missing)


def _draw_and_refit(
    fit: MixtureFit,
    noisy: NoisyTables,
    fine: Mapping[Variable, float],
    refit: Callable[[NoisyTables, np.random.Generator], Mixture],
    generator: np.random.Generator,
) -> tuple[NDArray[np.unsignedinteger], Mixture, float]:
    """Draw records, refit the mixture to their tables, and compute its misfit."""
    mixture, total = fit.mixture, fit.total
    count = min(max(round(total), 1), _MAX_RECORDS)
    codes = mixture.sample(count, generator)
    coarse, column = mixture.only(fit.coarse_cardinalities), {v: codes[:, n] for n, v in enumerate(mixture.variables)}
    shares = _shares([column[variable] for variable in coarse.variables], list(coarse.cardinalities.values()), noisy)
    alone = {v: np.bincount(column[v], minlength=mixture.cardinalities[v]) / count for v in fine}
    if count == _MAX_RECORDS:  # which may be fewer than all
        for alike, expected in marginals_of(coarse, noisy):
            shares[alike.cells] = _drawn_to(expected, shares[alike.cells], count, total)
        alone = {v: _drawn_to(mixture.marginal((v,)), own, count, total) for v, own in alone.items()}
    noise = noisy.of_cells(noisy.deviations) * generator.standard_normal(shares.size)
    finer = {v: (total * alone[v] + own * generator.standard_normal(alone[v].size), own) for v, own in fine.items()}
    simulated = replace(noisy, counts=total * shares + noise)
    again = refit(simulated, generator)
    misfit = _misfit(again, simulated, total)
    # Records drawn from denoised shares do not show the bias of denoising: the errors of noisy ones stand for it.
    return codes, refined_by(again, mixture.cardinalities, fit.rules, finer, total, children_within), misfit


def _shares(columns: Sequence[NDArray[Any]], sizes: Sequence[int], noisy: NoisyTables) -> Vector:
    """Return the shares of records in the cells of all tables."""
    starts, shares = np.cumsum([0, *sizes]), np.empty_like(noisy.counts)
    together = pair_counts(np.stack(columns, axis=1) + starts[:-1].astype(np.int32), int(starts[-1]))
    for alike in noisy.alike:
        if alike.variables.shape[1] in (1, 2):
            shares[alike.cells] = alike.gathered(together, starts)
            continue
        for variables, cells in zip(alike.variables, alike.cells, strict=True):
            flat = np.zeros(len(columns[0]), np.intp)
            for variable in variables:
                flat = flat * sizes[variable] + columns[variable]
            shares[cells] = np.bincount(flat, minlength=cells.size).reshape(cells.shape)
    return shares / len(columns[0])


def _misfit(mixture: Mixture, noisy: NoisyTables, total: float) -> float:
    """Return how far interactions of two variables are from those of the tables, as a mean squared correlation."""
    pairs = replace(noisy, alike=tuple(alike for alike in noisy.alike if alike.variables.shape[1] == 2))
    squares = units = 0.0
    for alike, expected in marginals_of(mixture, pairs):
        squares += float((centred(noisy.counts[alike.cells] / total - expected, 1) ** 2).sum())
        rows, columns = ((shares * (1 - shares)).sum(axis=1) for shares in (expected.sum(axis=2), expected.sum(axis=1)))
        units += float(rows @ columns)
    return squares / units if units > 0 else 0.0


def _odds(shares: Any) -> Any:
    """Return the odds against states, at most those of one in a million."""
    return (1 - shares) / np.maximum(shares, 1e-6)


def _share(mixture: Mixture, given: Mapping[Variable, int]) -> float:
    """Return the probability of the evidence."""
    return float(np.exp(mixture.log_evidence(given))) if given else 1.0


def _drawn_to(expected: Any, shares: Any, count: int, total: float) -> Any:
    """Scale the deviations of some records' shares to those of more records."""
    near = min(np.sqrt(count / total), 1.0)
    return (1 - near) * expected + near * shares


def _beyond_pairs(asked: Sequence[Vector], given: Sequence[float]) -> Vector:
    """Return the share of the joint states' sampling variance that all tables of pairs together do not determine.

    The indicator of a joint state of independent variables is the sum of uncorrelated parts, one per set of variables,
    in which each variable of the set contributes a factor 1 - p to the variance, and each other variable p. Parts
    without a variable asked for do not matter, given the evidence.

    `asked` are the probabilities of the states of every variable asked for, `given` those of the evidence.
    """
    at_most_two = [np.ones(1), np.zeros(1), np.zeros(1)]  # probability that a set has 0, 1 or 2 variables
    for share in given:
        at_most_two = _one_more(at_most_two, np.array([share]))
    none = reduce(np.multiply.outer, asked).ravel()
    alone = none * sum(at_most_two)
    for shares in asked:
        at_most_two = _one_more(at_most_two, shares)
    all_shares = 1 - none
    beyond = all_shares - (sum(at_most_two) - alone)
    result: Vector = np.clip(beyond / np.maximum(all_shares, 1e-12), 0.0, 1.0)
    return result


def _one_more(sizes: Sequence[Vector], shares: Vector) -> list[Vector]:
    """Update the probabilities of a set's sizes for one more variable, in the set with probability 1 - share."""
    within = [np.multiply.outer(size, 1 - shares).ravel() for size in sizes]
    without = [np.multiply.outer(size, shares).ravel() for size in sizes]
    return [without[0], without[1] + within[0], without[2] + within[1]]
