"""Private choice of the tables that are farthest from what a public model expects.

Sensitivity. A table's score is sum_x w(x) |n(x) - r(x)| minus a public number, over its cells x, where n are the counts
of the records, r the public reference and w public weights of at most 1. A unit adds to the counts of a table
non-negative numbers whose sum is at most its contribution, so adding or removing it changes the score by at most that,
and replacing it by at most twice that. Nothing else in the score depends on records. Scores can rise for one table and
fall for another, so the lower price of monotone scores does not apply. Each pick is one draw among the candidates that
are still allowed, which depends only on public values and earlier picks: the costs of picks add up, as rho for the
exponential mechanism (:func:`~pgmpy_dp.privacy.noise.exponential_scale`) and as epsilon for permute-and-flip.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.data.mechanisms.mechanism import PrivateRecords, PublicRecords, Quote
from pgmpy_dp.privacy.checks import exact_positive, whole_number
from pgmpy_dp.privacy.cost import Pure, Zcdp
from pgmpy_dp.privacy.guarantee import Learned
from pgmpy_dp.privacy.noise import NoiseSource, exponential_scale, selection_scale, table_sensitivity
from pgmpy_dp.records.memory import Counts, require_countable
from pgmpy_dp.schema import Clique

# Weights are integer multiples of one over this number, so that scores are integers.
_GRID = 2**10
# Expected records above which a cell weighs less, to offset the larger standard deviation of its count.
_SOFT = 3000.0
# Each score is reduced by this multiple of the distance expected from sampling alone: among many tables the largest
# such distance exceeds its expectation, the more so the more cells the tables have.
_CHANCE = 2.0
# Largest expected number of units in a table: above it, its score could leave the 64-bit integers.
_MAX_UNITS = 2.0**32


# The noise scale of a pick, and each reference as integers: expected counts, weights, and the usual distance.
_Scored = tuple[Counts, Counts, int]
_Terms = tuple[float, Mapping[Clique, _Scored]]


@dataclass(frozen=True)
class FarthestTables:
    """Draw, one after another, cliques whose tables of the records are farthest from a public reference."""

    references: Mapping[Clique, NDArray[np.float64]]  # expected counts of each candidate, which are public
    picks: int
    allowed: Callable[[Sequence[Clique]], Collection[Clique]]  # by the cliques chosen so far; it sees no record
    epsilon: float | Fraction | None = None
    rho: float | None = None

    def quote(self, public: PublicRecords) -> Quote[_Terms]:
        """Price the picks; the terms are the scale of each draw and the references as integers."""
        cliques = public.schema.require(list(self.references))
        for clique in cliques:
            require_countable(public.schema, clique)
        picks = whole_number("picks", self.picks)
        terms = {clique: _scored(public, clique, self.references[clique]) for clique in cliques}
        sensitivity = _GRID * table_sensitivity(public.neighbours, "l1", public.contribution)
        label = f"choose {picks} of {len(cliques)} tables"
        if (self.epsilon is None) == (self.rho is None):
            raise ValueError("Choosing tables costs either epsilon or rho: give exactly one of them.")
        if self.rho is None:
            epsilon = exact_positive("epsilon", self.epsilon)
            cost = public.cost(label, "permute_and_flip", Pure(epsilon), chooses="tables")
            return Quote(cost, (selection_scale(epsilon / picks, sensitivity), terms))
        cost = public.cost(label, "exponential", Zcdp(self.rho), chooses="tables")
        return Quote(cost, (exponential_scale(exact_positive("rho", self.rho) / picks, sensitivity), terms))

    def read(self, quote: Quote[_Terms], records: PrivateRecords) -> Mapping[Clique, int]:
        """Count the records, and compute the distance of each table from its reference."""
        _, scored = quote.terms
        counts = records.counts(scored)
        return {
            clique: int((weights * np.abs(counts[clique] - expected)).sum()) - usual
            for clique, (expected, weights, usual) in scored.items()
        }

    def draw(
        self, quote: Quote[_Terms], public: PublicRecords, exact: Mapping[Clique, int], noise: NoiseSource
    ) -> tuple[Clique, ...]:
        """Draw cliques one after another, each among the candidates that are still allowed."""
        scale, _ = quote.terms
        minimum = noise.permute_and_flip if self.rho is None else noise.exponential_mechanism
        cliques, scores = list(exact), -np.array(list(exact.values()), dtype=np.int64)
        number = {clique: index for index, clique in enumerate(cliques)}
        chosen: list[int] = []
        for _ in range(self.picks):
            allowed = np.zeros(len(cliques), dtype=bool)
            allowed[[number[clique] for clique in self.allowed([cliques[index] for index in chosen])]] = True
            allowed[chosen] = False
            open_to = np.flatnonzero(allowed)
            if not open_to.size:
                break
            chosen.append(int(open_to[minimum(scores[open_to], scale)]))
        return Learned([cliques[index] for index in chosen], quote.guarantee)


def _scored(public: PublicRecords, clique: Clique, reference: NDArray[np.float64]) -> _Scored:
    """Convert a reference and its weights to integers, and compute the distance expected from sampling alone."""
    expected = np.asarray(reference, dtype=np.float64)
    if expected.shape != public.schema.shape(clique):
        raise ValueError(f"The reference of {clique} needs shape {public.schema.shape(clique)}, got {expected.shape}.")
    if not (np.isfinite(expected).all() and (expected >= 0.0).all() and expected.sum() <= _MAX_UNITS):
        raise ValueError(f"The reference of {clique} must hold non-negative numbers with a sum of at most 2**32.")
    weights = np.floor(_GRID * np.sqrt(_SOFT / (expected + _SOFT))).astype(np.int64)
    usual = math.floor(_CHANCE * float((weights * np.sqrt(2.0 / np.pi * expected)).sum()) * public.parts)
    return np.rint(expected * public.parts).astype(np.int64), weights, usual
