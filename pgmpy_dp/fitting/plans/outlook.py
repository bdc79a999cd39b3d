"""What noise leaves of a number of records: a guess of the owner's before a release, or its own estimate after it.

The error of pairs of synthetic records is predicted from public numbers alone. Let R be the mean noise-to-signal ratio
of the tables of all pairs (the standard deviation of the noise in a cell over the mean number of records in a cell), as
if most was spent on them. Then the mean total variation of pairs is about exp(b_0 + b_1 log R + b_2 log(R)**2) d**b_3
k**b_4, for d variables with at most k states. A fit averages noise over the tables of a variable, so the error grows
more slowly than R, and is less with more variables; in real records a variable with many states has few that are
frequent; and where noise drowns pairs, single variables are left. The five numbers were fitted by
``tests/benchmarks/outlook.py --fit`` to mixtures of 18 tables of real records: 4 to 22 variables, 500 to 30,000
records, epsilon from 0.03 to 3. Beyond these they extrapolate. How closely variables depend on each other differs
between tables, and is private: of releases of a table that the formula was not fitted to, 19 of 20 were within a
factor of 1.5.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.optimize import brentq

from pgmpy_dp.errors import NoiseWarning, warn
from pgmpy_dp.fitting.plans.pairs import UNGROUPED, pair_shares, paired
from pgmpy_dp.release import Guarantee, NoisyMarginals, NoisyResiduals
from pgmpy_dp.schema import Clique, Schema

LEVELS = ("clear", "visible", "drowned")

_FORMULA = (-1.312, 0.586, -0.044, -0.281, -0.156)
_MAX_LOG = 6.5  # largest log R in the formula, which increases up to 6.6
FACTOR = 1.5  # nearly all errors are within this factor of their prediction
# Median error of independent columns on the tables that the formula was fitted to; eight of ten are within the range.
INDEPENDENT, INDEPENDENT_RANGE = 0.09, (0.04, 0.13)
# Mean error of records drawn again on the same tables, in units of the root of cells over records.
_FILLED = 0.3
ADVICE = ("go", "doubtful", "no go")
# Error, relative to that of independent columns, above which dependence is much weaker. On six tables, the slopes
# of regressions of each column on all others shrank by at most 1.5 times this share.
_WEAKENED = 0.25
# Noise-to-signal ratios at which other tables become doubtful, and useless: in benchmarks of searches, F1 was .69 to
# .99 below the first, and .27 to .52 beyond the second (docs/benchmarks.md).
_RATIOS = (0.1, 0.3)


def noise_level(deviation: float, signal: float) -> str:
    """Classify noise: "clear" below a tenth of the signal, "visible" below the signal, else "drowned"."""
    return LEVELS[(deviation >= 0.1 * signal) + (deviation >= signal)]


@dataclass(frozen=True)
class TableNoise:
    """Noise of one table compared with its counts."""

    variables: Clique
    cells: int
    deviation: float  # standard deviation of the noise in a cell, in records
    mean: float  # mean number of records per cell
    cost: float = math.nan
    detail: bool = False  # whether it is a finer histogram, in which noise may exceed most cells

    @property
    def ratio(self) -> float:
        """Return the noise-to-signal ratio: deviation over mean."""
        return self.deviation / self.mean

    @property
    def level(self) -> str:
        """Classify the noise; see :func:`noise_level`."""
        return noise_level(self.deviation, self.mean)


@dataclass(frozen=True)
class Outlook:
    """How useful some noisy tables are, for a number of records."""

    total: float  # number of records (of units): a public guess, or the estimate of a release
    guarantee: Guarantee
    tables: tuple[TableNoise, ...]
    states: tuple[int, ...] | None = None  # numbers of states of the variables, if all pairs of them are measured

    @classmethod
    def of(cls, schema: Schema, deviations: Mapping[Clique, float], total: float, guarantee: Guarantee) -> Outlook:
        """Return the outlook of tables with noise of given standard deviations."""
        power = 2.0 if guarantee.mechanism == "gaussian" else 1.0
        costs = {clique: deviation**-power if deviation else 0.0 for clique, deviation in deviations.items()}
        whole = math.fsum(costs.values()) or 1.0
        tables = tuple(
            TableNoise(clique, cells, deviation, total / cells, costs[clique] / whole, clique[0] in schema.details)
            for clique, deviation in deviations.items()
            for cells in [schema.cells(clique)]
        )
        return cls(total, guarantee, tables, _states_of_pairs(schema, list(deviations)))

    @classmethod
    def of_release(cls, release: NoisyMarginals | NoisyResiduals) -> Outlook:
        """Return the outlook of a release, for its own estimate of the number of records."""
        deviations = {clique: release.noise(clique)[1] for clique in (*release.cliques, *release.details)}
        return cls.of(release.schema, deviations, release.total, release.guarantee)

    @property
    def ratio(self) -> float:
        """Return the mean noise-to-signal ratio of pairs or, unless all are measured, of tables, each at most 1."""
        if self.states is None:
            return float(np.mean([min(table.ratio, 1.0) for table in self.tables if not table.detail]))
        power = 2.0 if self.guarantee.mechanism == "gaussian" else 1.0
        pairs = [table for table in self.tables if len(table.variables) == 2]
        if not all(table.deviation for table in pairs):
            return 0.0
        loss = math.fsum(table.deviation**-power for table in self.tables if len(table.variables) <= 2)
        bought = [(share * loss) ** (-1.0 / power) for share in pair_shares([table.cells for table in pairs])]
        return float(np.mean([deviation / table.mean for deviation, table in zip(bought, pairs, strict=True)]))

    @property
    def error(self) -> float | None:
        """Predict the mean total variation of pairs of synthetic records; None unless all pairs are measured."""
        return None if self.states is None else _predicted(self.ratio, self.states)

    @property
    def resampled(self) -> float | None:
        """Predict that error for as many records resampled with replacement; None as for `error`."""
        if self.states is None:
            return None
        roots = [math.sqrt(first * second) for first, second in combinations(self.states, 2)]
        return min(1.0, _FILLED * float(np.mean(roots)) / math.sqrt(self.total))

    @property
    def costliest(self) -> TableNoise:
        """Return the table with the largest share of the privacy loss."""
        return max(self.tables, key=lambda table: table.cost)

    @property
    def advice(self) -> str:
        """Return "go", "doubtful" or "no go"."""
        error = self.error
        bounds = _RATIOS if error is None else (_WEAKENED * INDEPENDENT, INDEPENDENT)
        return ADVICE[int(np.searchsorted(bounds, self.ratio if error is None else error, side="right"))]

    @property
    def verdict(self) -> str:
        """Say in a line whether the release is worth its price."""
        return f"{self.advice.capitalize()}: {self.reason}."

    @property
    def reason(self) -> str:
        """Say what the advice rests on."""
        error, which = self.error, ADVICE.index(self.advice)
        if error is None:
            drowned = sum(table.level == "drowned" for table in self.tables if not table.detail)
            more = f", and more than that in {drowned} of {len(self.tables)} tables" if drowned else ""
            return f"in a cell of a table, the noise is on average {100.0 * self.ratio:.3g} % of the records{more}"
        lost = 100.0 * min(FACTOR * error / INDEPENDENT, 1.0)
        weaker = "" if which == 2 else f"; regressions may lose up to {lost:.0f} % of their size"
        return (
            f"synthetic records would be {'no ' if which == 2 else ''}closer than independent columns: the predicted "
            f"mean error of pairs is {error:.2g}, and {INDEPENDENT:.2g} is common for independent columns{weaker}"
        )

    @property
    def error_range(self) -> tuple[float, float] | None:
        """The range that 19 of 20 errors of benchmarks were in; None as for `error`."""
        error = self.error
        return None if error is None else (error / FACTOR, min(error * FACTOR, 1.0))

    def least_epsilon(self, error: float) -> float:
        """Predict the least epsilon at which pairs of synthetic records have at most this mean error."""
        if self.states is None:
            raise ValueError("The error is predicted for tables of all pairs of variables, and some have no table.")
        if not 0.0 < error <= 0.5:
            raise ValueError(f"error is a mean total variation in (0, 0.5], got {error!r}.")
        states = self.states
        log_ratio = brentq(lambda log: _predicted(math.exp(log), states) - error, -30.0, _MAX_LOG)
        factor, guarantee = math.exp(log_ratio) / self.ratio, self.guarantee
        if not guarantee.delta:
            return guarantee.epsilon / factor
        from dp_accounting import get_epsilon_gaussian, get_sigma_gaussian  # the import takes a second

        scale = factor * get_sigma_gaussian(guarantee.epsilon, guarantee.delta)
        return float(get_epsilon_gaussian(scale, guarantee.delta))


def hidden_by_noise(releases: Iterable[object]) -> list[str]:
    """List the reasons why noise hides much of each release, by the releases alone; empty unless it does so in all."""
    reasons = []
    for release in releases:
        if not isinstance(release, (NoisyMarginals, NoisyResiduals)):
            return []
        outlook = Outlook.of_release(release)
        if outlook.advice != ADVICE[-1]:
            return []
        sizes, joined = release.schema.cardinalities(), {v for c in release.cliques if len(c) > 1 for v in c}
        joined -= release.schema.structure.derived.keys()  # groups of states
        wide = [f"{v} has {sizes[v]:,} states" for v in release.variables if v in joined and sizes[v] > UNGROUPED]
        advice = "AutoMLE and PairwiseMixture, fitted to the records, measure such variables in groups of states"
        reasons.append(outlook.reason + (f"; {' and '.join(wide)}: {advice}" if wide else ""))
    return reasons


def warn_of_noise(releases: Iterable[object]) -> None:
    """Warn if noise hides much of the releases, by the rule of :func:`hidden_by_noise`."""
    for reason in hidden_by_noise(releases):
        warn(f"Noise hides much of the release: {reason}.", NoiseWarning)


def _predicted(ratio: float, states: Sequence[int]) -> float:
    if not ratio:
        return 0.0
    log = min(math.log(ratio), _MAX_LOG)
    constant, linear, square, by_variables, by_states = _FORMULA
    sizes = by_variables * math.log(len(states)) + by_states * math.log(max(states))
    return min(1.0, math.exp(constant + (linear + square * log) * log + sizes))


def _states_of_pairs(schema: Schema, cliques: Sequence[Clique]) -> tuple[int, ...] | None:
    """Return the numbers of states of the variables, if every pair that is worth measuring has a table."""
    cliques = [clique for clique in cliques if clique[0] not in schema.details]
    singles = {clique[0] for clique in cliques if len(clique) == 1} or set().union(*cliques)
    selected = schema.select([variable for variable in schema.variables if variable in singles])
    larger, pairs = {frozenset(clique) for clique in cliques if len(clique) > 1}, [*paired(selected)]
    if not pairs or not all(frozenset(pair) in larger for pair in pairs):
        return None
    if 2 * sum(clique <= singles for clique in larger) <= len(larger):
        return None
    wanted = set().union(*pairs)
    return tuple(schema.cardinality(variable) for variable in selected.variables if variable in wanted)
