"""Tables measured twice, where the first answer decides which of them get less noise the second time.

Sensitivity. A record is in one cell of each table. Adding or removing it changes one count of each table by 1;
replacing it changes two counts of a table, by 1 and -1, or none if both records are in the same cell.

Price. The noise scales of the second stage are a fixed ladder: how many tables get which scale is public and fixed with
the price, and the first answer only decides which table gets which rung. Write H(P, Q; x) for E_P[max(0, 1 - x Q / P)],
with x > 0, and say that a pair of distributions dominates another if its H is at least as large at every x.

1. A count of scale s that changes by 1 has a pair D(s), the same up to a shift whatever the count and the sign. A count
   that does not change has H = max(0, 1 - x), which is at most that of any pair. So a table of scale s is dominated by
   one D(s) under "add_remove", and by two under "replace_one", whether its counts change or not.
2. If (P1, Q1) is dominated by (A1, B1), and for every first answer y the pair (P2, Q2) given y by (A2, B2), then the
   pair of both answers is dominated by that of independent draws, the product of (A1, B1) and (A2, B2). For with
   X = x Q1(y) / P1(y) and Z = x B2(z) / A2(z)

       H = sum_y P1(y) H(P2, Q2 | y; X) <= sum_y P1(y) H(A2, B2; X)
         = sum_z A2(z) H(P1, Q1; Z) <= sum_z A2(z) H(A1, B1; Z).

3. Tables have independent noise, so by 1 and 2 the first stage is dominated by the product of its D(s), and the second
   stage, given any first answer, by the product of the D(s) of the scales that its tables then have. That product does
   not depend on which table has which scale, since the ladder always has the same scales: it is the same pair for all
   answers, although the actual loss of the second stage may depend on them (under "replace_one" a table that does not
   change may have the least noise). By 2 both stages are dominated by the product over the tables of the first stage
   and the rungs of the second, whose price :mod:`pgmpy_dp.privacy.blocks` computes before the first stage.

Units of one row (``max_rows=1``) have their row sampled once for both stages. Given the sample, neighbours differ as
above; H is convex in the pair of distributions, so the mixture over samples costs no more than the worst of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import ndtri

from pgmpy_dp.data.mechanisms.mechanism import Held, PublicTable, Quote
from pgmpy_dp.data.mechanisms.tables import delta_within, perturbed, shared
from pgmpy_dp.privacy.blocks import block_rho, block_scales
from pgmpy_dp.privacy.checks import exact_positive, number
from pgmpy_dp.privacy.cost import Approx
from pgmpy_dp.privacy.noise import NoiseSource
from pgmpy_dp.records.memory import Counts
from pgmpy_dp.release import NoisyMarginals
from pgmpy_dp.release.observations import pooled_counts
from pgmpy_dp.schema import Clique

# Shares of the second stage are log-normal about their public mean: the standard deviation of the logarithm, and its
# cut-off in standard deviations. Wanted shares on census records have this spread.
_SPREAD, _CUT = 0.7, 1.7

Scales = dict[Clique, float]


@dataclass(frozen=True)
class TwoStageTables:
    """Gaussian tables in one block, whose second stage favours the tables that the first answer wants.

    Attributes
    ----------
    cliques : sequence of tuples of str
    epsilon, delta : float
        Cost of both stages together.
    weights : sequence of float
        The tables' shares of the privacy loss, in the first stage and, on average over a group, in the second.
    groups : sequence of hashable values, or None
        Tables of a group share a ladder in the second stage. Those of the group None keep their share.
    wanted : callable
        Function of the first release that returns a number for each clique of a group: larger ones get less noise. It
        does not see records.
    first : float
        The first stage's share of the privacy loss.
    """

    cliques: Sequence[Clique]
    epsilon: float | Fraction
    delta: float
    weights: Sequence[float]
    groups: Sequence[Any]
    wanted: Callable[[NoisyMarginals], Mapping[Clique, float]]
    first: float = 0.35

    def quote(self, public: PublicTable) -> Quote:
        """Price both stages; the terms are the scales of the first, and the ladder of each group in the second."""
        if public.contribution != 1:
            raise ValueError(
                "Two stages are priced for single records of equal weight, and these have weights, or units of "
                "several: take one stage."
            )
        shares = shared(public, self.cliques, self.weights)
        epsilon, delta = exact_positive("epsilon", self.epsilon), delta_within(public, self.delta)
        number(above=0.0, most=0.999)("first", self.first)
        if len(self.groups) != len(shares):
            raise ValueError(f"groups needs one for each clique: {len(shares)} cliques, {len(self.groups)} groups.")
        first = np.array([float(exact_positive("a table's share", share)) for share in shares.values()])
        second = first.copy()
        for group in {group: None for group in self.groups if group is not None}:
            members = [i for i, own in enumerate(self.groups) if own == group]
            second[members] = rungs(len(members)) * first[members].sum()
        relative = np.concatenate([self.first * first, (1 - self.first) * second]) ** -0.5
        scales = block_scales(relative.tolist(), epsilon, delta, public.neighbours)
        rho = block_rho(scales, public.neighbours)
        terms = dict(zip(shares, scales, strict=False)), dict(zip(shares, scales[len(shares) :], strict=True))
        label = f"measure {len(shares)} tables in two stages"
        return Quote(public.cost(label, "gaussian", Approx(epsilon, Fraction(str(delta)), rho)), terms)

    def read(self, quote: Quote, held: Held) -> Mapping[Clique, Counts]:
        """Count the records once for both stages."""
        return held.records.counts(tuple(quote.terms[0]))

    def draw(
        self, quote: Quote, public: PublicTable, exact: Mapping[Clique, Counts], noise: NoiseSource
    ) -> NoisyMarginals:
        """Draw both stages, and pool them by precision."""
        (scales, ladder), add = quote.terms, noise.discrete_gaussian
        first = NoisyMarginals(public.schema, perturbed(exact, scales, add), scales, quote.guarantee, public.total)
        second = self._assigned(ladder, self.wanted(first))
        again = perturbed(exact, second, add)
        both = {
            c: pooled_counts((table, again[c]), (scales[c], second[c]), first.law)
            for c, table in first.measured.items()
        }
        tables = {clique: table for clique, (table, _) in both.items()}
        deviations = {clique: deviation for clique, (_, deviation) in both.items()}
        return NoisyMarginals(public.schema, tables, deviations, quote.guarantee, public.total)

    def _assigned(self, ladder: Mapping[Clique, float], wanted: Mapping[Clique, float]) -> Scales:
        """Give the lowest scales of each group to the tables with the largest `wanted`."""
        scales = dict(ladder)
        groups: dict[Any, list[Clique]] = {}
        for clique, group in zip(ladder, self.groups, strict=True):
            if group is not None:
                groups.setdefault(group, []).append(clique)
        for members in groups.values():
            own = sorted(ladder[clique] for clique in members)
            scales |= dict(zip(sorted(members, key=lambda clique: -wanted[clique]), own, strict=True))
        return scales


def rungs(count: int) -> np.ndarray[Any, Any]:
    """Return ascending shares of a whole, which are log-normal about their mean."""
    quantiles = ndtri((np.arange(count) + 0.5) / count)
    spread = np.exp(_SPREAD * np.clip(quantiles, -_CUT, _CUT))
    found: np.ndarray[Any, Any] = spread / spread.sum()
    return found
