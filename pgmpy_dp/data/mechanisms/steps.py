"""Tables measured and chosen in steps, each of which may depend on the answers before it.

Sensitivity. Each step is a mechanism of :mod:`~pgmpy_dp.data.mechanisms.tables` or
:mod:`~pgmpy_dp.data.mechanisms.selection`, at a price that is fixed with the whole, before the first step. With a delta
it is a share of the rho of :mod:`pgmpy_dp.privacy.sequences`, as one (epsilon, delta) block; without a delta it is a
share of epsilon, and shares add up whatever is asked for. What a step asks for is computed from the answers alone, and
may be nothing. Which tables a step measures is such an answer and reveals the choices before it: so each release states
the guarantee of the whole, which the releases of one sequence share. Each step reads the records by itself. With
`max_rows`, lazy records sample the rows of each unit anew in each step, others have sampled them once;
:mod:`pgmpy_dp.privacy.sequences` covers both. Shares of epsilon need no such argument: given all samples each step is
(epsilon, 0), and mixtures of such pairs are too.

Stages are such steps, which all measure: their losses are fixed with the price, and only how tables divide the loss of
a stage follows from earlier answers. The first stage may estimate the number of records, and a later one spend its loss
on pairs or on single variables, whichever that number suggests.

Tables of a step may be of states in groups that earlier answers suggest, as the coarser variables of a schema. Given
these answers a group is a fixed function of a record's own state. So a record is in one cell of a table of groups as in
one of a table of states: a unit adds as much to its sum, and the table has the same sensitivity and the same price.

A step may measure residuals (:mod:`~pgmpy_dp.data.mechanisms.contrasts`) in place of tables, at the rho of the step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

from pgmpy_dp.data.mechanisms.contrasts import Residuals, joined_deviations
from pgmpy_dp.data.mechanisms.mechanism import PrivateRecords, PublicRecords, Quote
from pgmpy_dp.data.mechanisms.selection import FarthestTables
from pgmpy_dp.data.mechanisms.tables import CountedTables, delta_within, deviations, shared
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.privacy.checks import exact_positive, whole_number
from pgmpy_dp.privacy.cost import Approx, Pure
from pgmpy_dp.privacy.noise import NoiseSource, table_sensitivity
from pgmpy_dp.privacy.sequences import sequence_rho, with_discrete_noise
from pgmpy_dp.release import Guarantee, NoisyMarginals, NoisyResiduals
from pgmpy_dp.schema import Clique, Schema

Result = TypeVar("Result")


@dataclass(frozen=True)
class Step:
    """A step with a share of the privacy loss: it chooses at most `picks` tables, or measures tables if that is 0."""

    share: float
    picks: int = 0


@dataclass(frozen=True)
class Measure:
    """Ask for noisy tables, whose weights divide the loss of a step; the answer is a release, or None for no tables.

    A schema, if one is given, is that of the records with groups of states as further, coarser variables.
    """

    cliques: Sequence[Clique]
    weights: Sequence[float]
    schema: Schema | None = None

    @classmethod
    def of(cls, shares: Mapping[Clique, float], schema: Schema | None = None) -> Measure:
        """Ask for tables by their shares of the loss."""
        return cls(tuple(shares), list(shares.values()), schema)

    def mechanism(self, loss: Any, delta: float, public: PublicRecords) -> CountedTables:
        """Return the mechanism for the tables of a step with this loss, in rho or epsilon."""
        if not delta:
            return CountedTables(self.cliques, loss, weights=self.weights)
        squared = table_sensitivity(public.neighbours, "squared_l2", public.contribution)
        whole = math.fsum(self.weights)
        part = {weight: with_discrete_noise(loss * weight / whole, squared) for weight in set(self.weights)}
        parts = [part[weight] for weight in self.weights]
        return CountedTables(self.cliques, delta=delta, weights=parts, rho=math.fsum(parts))


@dataclass(frozen=True)
class MeasureResiduals:
    """Ask for residuals, whose relative scales divide the rho of a step; the answer is a release."""

    scales: Mapping[Clique, float]
    schema: ClassVar[None] = None

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The sets of variables."""
        return tuple(self.scales)

    def mechanism(self, loss: Any, delta: float, public: PublicRecords) -> Residuals:
        """Return the mechanism for the residuals of a step with this rho."""
        return Residuals(self.scales, delta, rho=loss)


@dataclass(frozen=True)
class Choose:
    """Ask for tables far from their references; see :class:`~pgmpy_dp.data.mechanisms.selection.FarthestTables`."""

    references: Mapping[Clique, Vector]
    allowed: Callable[[Sequence[Clique]], Collection[Clique]]


Asking = Generator[Measure | MeasureResiduals | Choose, Any, Result]


@dataclass(frozen=True)
class _Terms:
    losses: Sequence[Any]  # of each step, in rho or epsilon
    singles: Sequence[Clique]  # the tables of single variables


@dataclass(frozen=True)
class TablesInSteps(Generic[Result]):
    """A method of several steps for one price."""

    steps: Sequence[Step]  # whose shares are relative to their sum
    epsilon: float | Fraction
    delta: float
    asking: Callable[[], Asking[Result]]  # yields what each step asks for; it sees no record
    label: str
    chooses: str = ""

    def quote(self, public: PublicRecords) -> Quote[_Terms]:
        """Price all steps; the terms are the loss of each, in rho or epsilon, and the one-way tables."""
        singles = public.schema.require([[variable] for variable in public.schema.variables])
        epsilon = exact_positive("epsilon", self.epsilon)
        whole = sum((exact_positive("share", step.share) for step in self.steps), Fraction(0))
        for step in self.steps:
            whole_number("picks", step.picks, minimum=0)
        if not self.delta:
            # Rounded parts must still fit within the whole.
            parts = [epsilon * exact_positive("share", s.share) / whole * (1 - Fraction(1, 10**12)) for s in self.steps]
            return Quote(
                public.cost(self.label, "laplace", Pure(epsilon), chooses=self.chooses), _Terms(parts, singles)
            )
        delta = delta_within(public, self.delta)
        rho = sequence_rho([(step.share, step.picks) for step in self.steps], epsilon, delta)
        loss = Approx(epsilon, Fraction(str(delta)), rho)
        losses = [rho * step.share / float(whole) * (1 - 1e-12) for step in self.steps]
        return Quote(public.cost(self.label, "gaussian", loss, chooses=self.chooses), _Terms(losses, singles))

    def read(self, quote: Quote[_Terms], records: PrivateRecords) -> PrivateRecords:
        """Read the records once, so that an unreadable source fails before it is paid for; the steps count later."""
        records.counts(quote.terms.singles)
        return records

    def draw(
        self, quote: Quote[_Terms], public: PublicRecords, exact: PrivateRecords, noise: NoiseSource
    ) -> tuple[Result, Guarantee]:
        """Answer step by step; return the result and the guarantee of all answers together."""
        asking, answer = self.asking(), None
        for step, loss in zip(self.steps, quote.terms.losses, strict=True):
            asked = asking.send(answer)
            if isinstance(asked, Choose) != bool(step.picks):
                raise TypeError(f"{type(asked).__name__} was requested, which the next step does not provide.")
            answer = self._answered(asked, step, loss, public, exact, quote, noise)
        try:
            asking.send(answer)
        except StopIteration as end:
            return end.value, quote.guarantee
        raise TypeError("The method asked for more answers than it has steps.")

    def _answered(
        self,
        asked: Measure | MeasureResiduals | Choose,
        step: Step,
        loss: Any,
        public: PublicRecords,
        records: PrivateRecords,
        whole: Quote[_Terms],
        noise: NoiseSource,
    ) -> Any:
        """Answer one step, whose cost is that of all steps."""
        mechanism: FarthestTables | CountedTables | Residuals
        if isinstance(asked, Choose):
            if not asked.references:
                return ()
            price = {"rho": loss} if self.delta else {"epsilon": loss}
            mechanism = FarthestTables(asked.references, step.picks, asked.allowed, **price)
        elif not asked.cliques:
            return None
        else:
            public, records = _under(public, asked), records.under(asked.schema)
            mechanism = asked.mechanism(loss, self.delta, public)
        quote: Quote[Any] = replace(mechanism.quote(public), cost=whole.cost, earlier=whole.earlier)
        return mechanism.draw(quote, public, mechanism.read(quote, records), noise)  # type: ignore[arg-type]


StagedRelease = NoisyMarginals | NoisyResiduals

# Decides what a stage measures, by the number of units, as far as it is known (the first stage's estimate of the number
# of records, less a standard deviation, divided by the maximum per unit), and by the release of all stages before.
Asked = Callable[[float | None, StagedRelease | None], Measure | MeasureResiduals]


@dataclass(frozen=True)
class StagedTables:
    """Tables in stages, as one release that pools them: what a stage measures follows from the stages before."""

    read = TablesInSteps.read

    stages: Sequence[tuple[float, Asked]]
    epsilon: float | Fraction
    delta: float
    label: str = "measure tables in stages"

    def _steps(self, public: PublicRecords) -> TablesInSteps[StagedRelease]:
        asking = partial(self._run, public.rows)
        return TablesInSteps([Step(share) for share, _ in self.stages], self.epsilon, self.delta, asking, self.label)

    def _run(self, rows: int) -> Asking[StagedRelease]:
        units: float | None = None
        joined: Any = None
        for _, asked in self.stages:
            release = yield asked(units, joined)
            if joined is None:  # a standard deviation less, since to overestimate the number does more harm
                units = max(release.total - math.sqrt(release.total_variance), 1.0) / rows
            joined = release if joined is None else joined + release
        return joined  # type: ignore[no-any-return]  # the join of tables and residuals is typed by either

    def quote(self, public: PublicRecords) -> Quote[_Terms]:
        """Price all stages; refuse tables that could not be measured."""
        measures = [asked(None, None) for _, asked in self.stages]
        for number, measure in enumerate(measures):
            if measure in measures[:number]:  # stages may share a plan of very many tables
                continue
            if isinstance(measure, Measure):
                shared(_under(public, measure), measure.cliques, measure.weights)
            else:
                measure.mechanism(1.0, self.delta, public).quote(public)
        return self._steps(public).quote(public)

    def draw(
        self, quote: Quote[_Terms], public: PublicRecords, exact: PrivateRecords, noise: NoiseSource
    ) -> StagedRelease:
        """Draw stage by stage, and pool by precision what was measured twice."""
        return self._steps(public).draw(quote, public, exact, noise)[0]

    def measures_residuals(self, units: float | None) -> bool:
        """Whether a stage is foreseen to measure residuals, for a guess of units."""
        return any(isinstance(asked(units, None), MeasureResiduals) for _, asked in self.stages)

    def foreseen(
        self, quote: Quote[_Terms], public: PublicRecords, units: float | None
    ) -> tuple[Schema, dict[Clique, float]]:
        """Foresee the standard deviation of the noise in each table, and their schema, for a guess of units."""
        precisions: dict[Clique, float] = {}
        residuals: dict[Clique, float] = {}
        schema = public.schema
        for (_, asked), loss in zip(self.stages, quote.terms.losses, strict=True):
            measure = asked(units, None)
            under = _under(public, measure)
            terms: Any = measure.mechanism(loss, self.delta, under).quote(under)
            tables = isinstance(measure, Measure)
            noise, own = (deviations(terms), precisions) if tables else (terms.terms.scales, residuals)
            for clique, deviation in noise.items():
                own[clique] = own.get(clique, 0.0) + deviation**-2
            schema = under.schema
        noise = {clique: precision**-0.5 for clique, precision in precisions.items()}
        return schema, joined_deviations(schema, noise, residuals) if residuals else noise


def _under(public: PublicRecords, asked: Measure | MeasureResiduals) -> PublicRecords:
    """Return the public facts about the records, with the schema of the measured tables."""
    return public if asked.schema is None else replace(public, schema=asked.schema)
