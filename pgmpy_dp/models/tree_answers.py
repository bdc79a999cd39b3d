"""Queries to a network by junction trees; bounds are computed from networks drawn from the posterior."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.errors import callers_level
from pgmpy_dp.fitting.readings.posterior_networks import PosteriorNetworks, mixes_slowly
from pgmpy_dp.inference import Layout, TreeTooLargeError
from pgmpy_dp.inference.distribution import GivenOthers
from pgmpy_dp.inference.distribution import Positions as Places
from pgmpy_dp.inference.posterior.hamiltonian import UNCERTAIN, uncertain
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.inference.trees.conditioning import Conditioning, Reduction
from pgmpy_dp.models.answering import FEW_STATES, bounds
from pgmpy_dp.models.deviations import Deviations
from pgmpy_dp.release import Release
from pgmpy_dp.schema import Schema

_COMPARED = 6  # networks whose mean tables are compared with the release


@dataclass(frozen=True)
class Drawn:
    """Networks drawn from their posterior, with their conditioning and, by target, the deviations of the records."""

    posterior: PosteriorNetworks
    conditioning: Conditioning
    deviations: Mapping[str, Deviations]

    @classmethod
    def of(cls, posterior: PosteriorNetworks, releases: Sequence[Release]) -> Drawn:
        """Compare the releases that the networks were drawn from with the mean tables of some of them.

        The population's networks are those of the records, up to sampling, unless parts borrowed from each other.
        """
        conditioning, step = Conditioning(posterior.layout), max(1, len(posterior.totals) // _COMPARED)
        records = float(np.mean(posterior.totals))

        def compared(target: str) -> Deviations:
            return Deviations(posterior.schema, conditioning, posterior.draws(target)[::step], records, releases)

        of_records = compared("records")
        population = compared("population") if posterior.borrowed else of_records
        return cls(posterior, conditioning, {"population": population, "records": of_records})


@dataclass(frozen=True)
class DrawnAnswers:
    """The answer in each draw; see `pgmpy_dp.models.answering.Uncertain`.

    Attributes
    ----------
    drawn : ndarray of shape (draws, answers)
    held : tuple of ndarrays of the same shape
        Draws of other answers that the bounds hold too.
    counts : ndarray of shape (draws,)
        The number of records with the evidence.
    records : float
        Their mean.
    """

    values: Vector
    drawn: Vector
    held: tuple[Vector, ...]
    counts: Vector
    records: float

    @property
    def least(self) -> float:
        return float(bounds(self.counts, 0.9)[0])

    def bounds(self, interval: float) -> tuple[Vector, Vector]:
        lower, upper = zip(*(bounds(drawn, interval) for drawn in (self.drawn, *self.held)), strict=True)
        return np.min(lower, axis=0), np.max(upper, axis=0)


@dataclass(frozen=True)
class TreeAnswers:
    """Answer queries from log-potentials in a layout; see `pgmpy_dp.models.answering`.

    Attributes
    ----------
    schema : Schema
        States are in the order of the layout's tables.
    layout : Layout
    logs : ndarray of shape (layout.size,)
    drawn : callable
        Returns the draws from which bounds are computed.
    correcting : callable
        Returns the deviations of the release that correct answers, or None if the network's own are right.
    normalised : bool
        Whether the product of the tables is a probability distribution.
    """

    schema: Schema
    layout: Layout
    logs: Vector
    drawn: Callable[[], Drawn]
    correcting: Callable[[], Deviations | None] = lambda: None
    normalised: bool = False

    def marginal(self, asked: Sequence[str], given: Places) -> Vector:
        answer, deviations = Reduction(self.layout, self.logs, asked, given).joint(given), self.correcting()
        if deviations is None:
            return answer
        own = deviations.schema
        with suppress(TreeTooLargeError):  # that of variables far apart in the network may be
            moved = _ordered(answer[None], asked, self.schema, own)
            moved = deviations.corrected(moved[0], asked, self._in_draws(own, given))[None]
            return np.asarray(_ordered(moved, asked, own, self.schema)[0])
        return answer

    def draws(self, asked: Sequence[str], given: Places, target: str, numbers: Vector | None = None) -> DrawnAnswers:
        value = self.marginal(asked, given).ravel()
        drawn, counts, records = self._drawn_answers(asked, given, target)
        # Given rare evidence the records' answer may be farther from the network's than the population's is.
        both = target == "population" and not self.drawn().posterior.borrowed
        held = [self._drawn_answers(asked, given, "records")[0]] if both else []
        if numbers is not None:
            drawn, value = (drawn @ numbers)[:, None], np.array([value @ numbers])
            held = [(other @ numbers)[:, None] for other in held]
        return DrawnAnswers(value, drawn, tuple(held), counts, records)

    def _drawn_answers(self, asked: Sequence[str], given: Places, target: str) -> tuple[Vector, Vector, float]:
        """Draw answers, flat, with deviations; also return numbers of records with the evidence, and their mean."""
        drawn = self.drawn()
        posterior = drawn.posterior
        places = self._in_draws(posterior.schema, given)
        answers, shares = drawn.conditioning.distributions(posterior.draws(target), asked, places)
        poor = uncertain(answers.reshape(len(answers), -1), *UNCERTAIN)
        if poor:
            warnings.warn(slowly(f"this answer's mean {poor}", len(answers)), stacklevel=callers_level())
        counts = posterior.totals * shares
        records = float(np.mean(counts if given else posterior.totals))
        answers = drawn.deviations[target].applied(answers, asked, places, records, target)
        if posterior.schema.rules:  # deviations ignore rules
            states = {v: posterior.schema.states[v][place] for v, place in places.items()}
            answers = answers * posterior.schema.possible(asked, states)
            answers /= answers.sum(axis=tuple(range(1, answers.ndim)), keepdims=True)
        answers = _ordered(answers, asked, posterior.schema, self.schema)
        return answers.reshape(len(answers), -1), counts, records

    def _in_draws(self, own: Schema, given: Places) -> Places:
        """Convert positions of states to those in the draws' schema."""
        return {v: own.states[v].index(self.schema.states[v][place]) for v, place in given.items()}

    def surest(self, asked: Sequence[str], given: Places, target: str) -> tuple[tuple[int, ...], float]:
        shape = self.schema.shape(tuple(asked))
        if math.prod(shape) <= FEW_STATES:
            with suppress(TreeTooLargeError):
                answer = self.draws(asked, given, target)
                best = int(answer.values.argmax())
                agreeing = float(np.mean(answer.drawn.argmax(axis=1) == best))
                return tuple(int(place) for place in np.unravel_index(best, shape)), agreeing
        (places,) = self.most_probable(asked, [given])
        drawn = self.drawn()
        own = drawn.posterior.schema
        each = drawn.conditioning.most_probable(drawn.posterior.draws(target), asked, self._in_draws(own, given))
        wanted = tuple(self._in_draws(own, dict(zip(asked, places, strict=True))).values())
        return places, float(np.mean([wanted == found for found in each]))

    def marginals(self, asked: Sequence[str], givens: Iterable[Places]) -> Iterator[list[Vector]]:
        return (plan.marginals(given) for plan, given in self._planned(asked, givens))

    def most_probable(self, asked: Sequence[str], givens: Iterable[Places]) -> Iterator[tuple[int, ...]]:
        return (plan.most_probable(given) for plan, given in self._planned(asked, givens))

    def _planned(self, asked: Sequence[str], givens: Iterable[Places]) -> Iterator[tuple[Reduction, Places]]:
        """Share one plan among evidence on the same variables."""
        plans = dict[frozenset[str], Reduction]()
        for given in givens:
            known = frozenset(given)
            if known not in plans:
                plans[known] = Reduction(self.layout, self.logs, asked, known)
            yield plans[known], given

    def codes(
        self,
        count: int,
        given: Places,
        generator: np.random.Generator,
        predicting: str | None = None,
    ) -> tuple[Mapping[str, NDArray[np.integer]], GivenOthers]:
        codes = Conditioning(self.layout).sample(self.logs, given, count, generator)
        return codes, partial(self.given_others, codes)

    def given_others(
        self, codes: Mapping[str, NDArray[np.integer]], variable: str, records: NDArray[np.integer]
    ) -> Vector:
        """See `pgmpy_dp.models.answering.GivenOthers`."""
        logs = np.zeros((records.size, self.layout.cardinalities[variable]))
        for scope, table in zip(self.layout.scopes, self.layout.split(self.logs), strict=True):
            if variable in scope:
                own = np.moveaxis(table, scope.index(variable), -1)
                logs += own[tuple(codes[other][records] for other in scope if other != variable)]
        most = logs.max(axis=1, keepdims=True)
        chances: Vector = np.exp(logs - np.where(most > -np.inf, most, 0.0))
        return chances

    def log_probability(self, codes: Mapping[str, NDArray[np.integer]]) -> Vector:
        conditioning = Conditioning(self.layout)
        whole = 0.0 if self.normalised else conditioning.log_partition(self.logs, {})
        if set(codes) >= set(self.layout.cardinalities):
            tables = zip(self.layout.scopes, self.layout.split(self.logs), strict=True)
            return np.asarray(sum(table[tuple(codes[v] for v in scope)] for scope, table in tables) - whole)
        rows, places = np.unique(np.stack(list(codes.values()), axis=1), axis=0, return_inverse=True)
        found = [conditioning.log_partition(self.logs, dict(zip(codes, row, strict=True))) for row in rows.tolist()]
        return np.array(found)[places.ravel()] - whole


def _ordered(answers: Vector, asked: Sequence[str], before: Schema, wanted: Schema) -> Vector:
    """Reorder the states of answers, of which the first axis numbers several, from one schema's order to another's."""
    for axis, variable in enumerate(asked, 1):
        own = before.states[variable]
        if own != wanted.states[variable]:
            answers = np.take(answers, [own.index(state) for state in wanted.states[variable]], axis=axis)
    return answers


def slowly(mean: str, draws: int) -> str:
    """Build the message that a mean is uncertain after this many draws, with the call that draws more."""
    return mixes_slowly(mean, f"sample_draws(draws={4 * draws}), and compare two seeds")
