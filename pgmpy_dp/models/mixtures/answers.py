"""Queries to a mixture are sums over its components; their bounds come from refits to simulated releases."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference.distribution import GivenOthers, ImpossibleEvidenceError
from pgmpy_dp.inference.distribution import Positions as Places
from pgmpy_dp.inference.mixtures.balanced_records import draw_with_components
from pgmpy_dp.inference.mixtures.boxes import Rules, conditioned
from pgmpy_dp.inference.mixtures.mixture import Mixture
from pgmpy_dp.inference.mixtures.refits import MixtureDraws, Prediction
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.models.answering import FEW_STATES

# Number of draws of an answer's error, to estimate how often a state is the most probable one.
_ERRORS = 1000


@dataclass(frozen=True)
class MixtureAnswers:
    """Answer queries from a mixture; see `pgmpy_dp.models.answering`.

    Attributes
    ----------
    mixture : Mixture
    rules : Rules
    drawn : callable
        Maps the variables of a query to the draws from which its bounds are computed.
    """

    mixture: Mixture
    rules: Rules
    drawn: Callable[[Sequence[str]], MixtureDraws]

    def marginal(self, asked: Sequence[str], given: Places) -> Vector:
        return self._given(given).marginal(asked)

    def draws(self, asked: Sequence[str], given: Places, target: str, numbers: Vector | None = None) -> Prediction:
        self._given(given)
        draws = self.drawn([*asked, *given])
        return draws.predict(asked, given, of_records=target == "records", numbers=numbers)

    def surest(self, asked: Sequence[str], given: Places, target: str) -> tuple[tuple[int, ...], float]:
        """Find the most probable joint state, and how often it stays so when the answer's error is drawn.

        Errors have the same standard deviations as in the bounds, and sum to about zero: if two states dominate, their
        difference has twice the error of one of them. For many joint states, it is the mixture's own, and the share of
        refits that agree.
        """
        shape = [self.mixture.cardinalities[variable] for variable in asked]
        if math.prod(shape) > FEW_STATES:
            own = self._given(given).most_probable(asked)
            refits = self.drawn([*asked, *given]).refits
            each = [conditioned(refit, self.rules, given).most_probable(asked) for refit in refits]
            return own, float(np.mean([own == found for found in each]))
        found = self.draws(asked, given, target)
        best = int(found.values.argmax())
        noise = np.random.default_rng(0).standard_t(found.draws, (_ERRORS, found.values.size)) * found.deviations
        shares = found.deviations**2 / max(float((found.deviations**2).sum()), 1e-300)
        centred = (noise - shares * noise.sum(axis=1, keepdims=True)) / np.sqrt(np.maximum(1.0 - shares, 1e-12))
        agreeing = float(np.mean((found.values + centred).argmax(axis=1) == best))
        return tuple(int(place) for place in np.unravel_index(best, shape)), agreeing

    def marginals(self, asked: Sequence[str], givens: Iterable[Places]) -> Iterator[list[Vector]]:
        for given in givens:
            mixture = self._given(given)
            yield [mixture.marginal((variable,)) for variable in asked]

    def most_probable(self, asked: Sequence[str], givens: Iterable[Places]) -> Iterator[tuple[int, ...]]:
        for given in givens:
            yield self._given(given).most_probable(asked)

    def codes(
        self, count: int, given: Places, generator: np.random.Generator, predicting: str | None = None
    ) -> tuple[Mapping[str, NDArray[np.integer]], GivenOthers]:
        mixture = self._given(given)
        drawn, components = draw_with_components(mixture, count, generator, predicting)
        codes = {variable: drawn[:, place] for place, variable in enumerate(mixture.variables)}

        def given_others(variable: str, records: NDArray[np.integer]) -> Vector:
            """Compute it given the record's component, which is known here, and its own block."""
            own = {other: column[records] for other, column in codes.items()}
            return self.mixture.given_component(variable, components[records], own)

        return codes, given_others

    def log_probability(self, codes: Mapping[str, NDArray[np.integer]]) -> Vector:
        records = len(next(iter(codes.values())))
        unknown = np.full(records, -1)
        columns = [codes.get(variable, unknown).astype(np.int64) for variable in self.mixture.variables]
        return self.mixture.log_probability(np.stack(columns, axis=1))

    def _given(self, given: Places) -> Mixture:
        try:
            return conditioned(self.mixture, self.rules, given)
        except ValueError as error:
            raise ImpossibleEvidenceError(str(error)) from error
