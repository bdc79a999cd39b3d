"""Tables are chosen that are farthest from what a public model expects.

Sensitivity. A table's score is sum_x w(x) |n(x) - r(x)| less a public number, over its cells x, where n are the
records' counts, r the public reference and w public weights of at most 1. A unit adds to the counts of a table
non-negative numbers of at most its contribution in sum, so adding or removing it moves the score by at most that, and
replacing it by at most twice that. Nothing else of the score depends on records. Scores can rise for one table and fall
for another, so that no monotone price holds. Each pick is one draw over the candidates that are still allowed, which
depends on public values and earlier picks alone: costs of picks add up, their rho by the exponential mechanism
(:func:`~pgmpy_dp.privacy.selection.exponential_scale`), their epsilon by permute-and-flip.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.data.mechanisms.mechanism import Held, PublicTable, Quote
from pgmpy_dp.privacy.checks import exact_positive, whole_number
from pgmpy_dp.privacy.ledger import Charge
from pgmpy_dp.privacy.mechanisms import table_sensitivity
from pgmpy_dp.privacy.noise import NoiseSource
from pgmpy_dp.privacy.selection import exponential_scale, selection_scale
from pgmpy_dp.records.memory import Counts, require_countable
from pgmpy_dp.schema import Clique

# Weights are whole multiples of one by this number, so that scores are whole numbers.
_GRID = 2**10
# A cell of many more expected records than these weighs less, as the spread of its count would make it anyhow.
_SOFT = 3000.0
# Off a score goes so many times the distance that sampling makes on average: among many tables one is farther off, the
# more so the more cells they have.
_CHANCE = 2.0
# Beyond so many expected units a table's score could leave the 64-bit integers.
_MOST_UNITS = 2.0**32


@dataclass(frozen=True)
class FarthestTables:
    """Cliques whose tables of the records are farthest from a public reference, drawn one after the other.

    Attributes
    ----------
    references : mapping of tuple of str to ndarray
        The candidates, with the counts that are expected of them: public, such as those of a model fitted to earlier
        releases. Axes in clique order.
    picks : int
        The most that are drawn; fewer if none is allowed any more.
    epsilon, rho : float or None
        Of all picks together; exactly one is given. Rho is that of zCDP, paid by the exponential mechanism, and epsilon
        is pure, paid by permute-and-flip.
    allowed : callable
        From the cliques chosen so far to those that may be chosen next. It sees no record.
    """

    references: Mapping[Clique, NDArray[np.float64]]
    picks: int
    allowed: Callable[[Sequence[Clique]], Collection[Clique]]
    epsilon: float | Fraction | None = None
    rho: float | None = None

    def quote(self, public: PublicTable) -> Quote:
        """Price the picks; the terms are the scale of each draw and whole numbers of the references."""
        cliques = public.schema.require(list(self.references))
        for clique in cliques:
            require_countable(public.schema, clique)
        picks = whole_number("picks", self.picks)
        terms = {clique: _scored(public, clique, self.references[clique]) for clique in cliques}
        sensitivity = _GRID * table_sensitivity(public.neighbours, "l1", public.contribution)
        label = f"choose {picks} of {len(cliques)} tables"
        if (self.epsilon is None) == (self.rho is None):
            raise ValueError("Choosing tables costs either epsilon or rho: give one of them.")
        if self.rho is None:
            epsilon = exact_positive("epsilon", self.epsilon)
            charge = Charge(label, "permute-and-flip", epsilon=epsilon)
            return Quote(charge, (selection_scale(epsilon / picks, sensitivity), terms))
        charge = Charge(label, "exponential", rho=self.rho)
        return Quote(charge, (exponential_scale(exact_positive("rho", self.rho) / picks, sensitivity), terms))

    def read(self, quote: Quote, held: Held) -> Mapping[Clique, int]:
        """Count the records, and measure how far each table is from its reference."""
        _, terms = quote.terms
        counts = held.records.counts(tuple(terms))
        return {clique: _distance(counts[clique], *terms[clique]) for clique in terms}

    def draw(
        self, quote: Quote, public: PublicTable, exact: Mapping[Clique, int], noise: NoiseSource
    ) -> tuple[Clique, ...]:
        """Draw one after the other, each from those that are allowed by then."""
        scale, _ = quote.terms
        least = noise.least if self.rho is None else noise.exponential_least
        chosen: list[Clique] = []
        for _ in range(self.picks):
            allowed = self.allowed(tuple(chosen))
            open_to = [clique for clique in exact if clique in allowed and clique not in chosen]
            if not open_to:
                break
            scores = np.array([-exact[clique] for clique in open_to], dtype=np.int64)
            chosen.append(open_to[least(scores, scale)])
        return tuple(chosen)


def _scored(public: PublicTable, clique: Clique, reference: NDArray[np.float64]) -> tuple[Counts, Counts, int]:
    """Put a reference and its weights on whole numbers, and find the distance that sampling alone may make."""
    expected = np.asarray(reference, dtype=np.float64)
    if expected.shape != public.schema.shape(clique):
        raise ValueError(f"The reference of {clique} needs shape {public.schema.shape(clique)}, got {expected.shape}.")
    if not (np.isfinite(expected).all() and (expected >= 0.0).all() and expected.sum() <= _MOST_UNITS):
        raise ValueError(f"The reference of {clique} must hold numbers from 0 to 2**32 in sum.")
    weights = np.floor(_GRID * np.sqrt(_SOFT / (expected + _SOFT))).astype(np.int64)
    usual = math.floor(_CHANCE * float((weights * np.sqrt(2.0 / np.pi * expected)).sum()) * public.parts)
    return np.rint(expected * public.parts).astype(np.int64), weights, usual


def _distance(counts: Counts, expected: Counts, weights: Counts, usual: int) -> int:
    return int((weights * np.abs(counts - expected)).sum()) - usual
