"""The steps of a search and what each pays, public and decided before the first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pgmpy_dp.data.mechanisms.selection import FarthestTables
from pgmpy_dp.data.mechanisms.tables import GaussianTables, NoisyTables
from pgmpy_dp.inference.layout import Vector
from pgmpy_dp.privacy.accounting import rho_for, zcdp_limit
from pgmpy_dp.privacy.checks import exact_positive
from pgmpy_dp.schema import Clique


@dataclass(frozen=True)
class Round:
    """Edges are chosen one after the other, and the families that they enlarge are measured.

    With a share for families, the graph is then climbed to anew, and its families are measured.
    """

    choosing: float
    measuring: float
    families: float = 0.0


@dataclass(frozen=True)
class Steps:
    """Parts of the privacy loss, of rho or of epsilon; only their proportions count.

    Attributes
    ----------
    singles : float
        Tables of one variable.
    forest : Round
    rounds : tuple of Round
        The last one measures families.
    edges : float
        Edges that a round adds for each variable.
    """

    singles: float
    forest: Round
    rounds: tuple[Round, ...]
    edges: float = 0.25

    def listed(self) -> list[tuple[str, float]]:
        """Name all steps, with their shares of the whole."""
        steps = [("count each variable", self.singles)]
        steps += [("choose a forest", self.forest.choosing), ("measure the forest", self.forest.measuring)]
        for number, each in enumerate(self.rounds, 1):
            steps.append((f"round {number}: choose edges", each.choosing))
            steps.append((f"round {number}: measure their families", each.measuring))
            if each.families:
                steps.append((f"round {number}: climb, and measure all families", each.families))
        whole = sum(part for _, part in steps)
        return [(step, part / whole) for step, part in steps]


@dataclass(frozen=True)
class Prices:
    """The loss of a whole search, of which each step has a share.

    Attributes
    ----------
    epsilon, delta : float
        With a delta, shares are of the rho that implies them; without, of epsilon.
    """

    epsilon: float
    delta: float

    @property
    def rho(self) -> float | None:
        """Return the rho of the whole; None for pure epsilon."""
        return zcdp_limit(self.epsilon, self.delta)[0] if self.delta else None

    def tables(self, share: float, cliques: Sequence[Clique], weights: Sequence[float]) -> NoisyTables | GaussianTables:
        """Plan to measure tables for a share."""
        if self.delta:
            return GaussianTables(cliques, self._rho(share), self.delta, weights)
        return NoisyTables(cliques, self._epsilon(share), weights=weights)

    def choice(
        self,
        share: float,
        references: Mapping[Clique, Vector],
        picks: int,
        allowed: Callable[[Sequence[Clique]], Collection[Clique]],
    ) -> FarthestTables:
        """Plan to choose tables for a share."""
        if self.delta:
            return FarthestTables(references, picks, allowed, rho=self._rho(share))
        return FarthestTables(references, picks, allowed, epsilon=self._epsilon(share))

    def _rho(self, share: float) -> float:
        return rho_for(self.epsilon, self.delta) * share

    def _epsilon(self, share: float) -> Fraction:
        # The shares of all steps, rounded as they are, must fit together in the whole.
        return exact_positive("epsilon", self.epsilon) * exact_positive("share", share) * (1 - Fraction(1, 10**12))
