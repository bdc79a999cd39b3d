"""The steps of a search and what each pays, public and decided before the first."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pgmpy_dp.data.mechanisms.steps import Step


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
        One of them measures families.
    edges : float
        Edges that a round adds for each variable.
    """

    singles: float
    forest: Round
    rounds: tuple[Round, ...]
    edges: float = 0.25

    def listed(self, variables: int) -> list[tuple[str, Step]]:
        """Name all steps for so many variables, with their shares of the whole."""
        some = max(1, round(self.edges * variables))
        steps = [
            ("count each variable", Step(self.singles)),
            ("choose a forest", Step(self.forest.choosing, max(1, variables - 1))),
            ("measure the forest", Step(self.forest.measuring)),
        ]
        for number, each in enumerate(self.rounds, 1):
            steps.append((f"round {number}: choose edges", Step(each.choosing, some)))
            steps.append((f"round {number}: measure their families", Step(each.measuring)))
            if each.families:
                steps.append((f"round {number}: climb, and measure all families", Step(each.families)))
        whole = sum(step.share for _, step in steps)
        return [(name, replace(step, share=step.share / whole)) for name, step in steps]
