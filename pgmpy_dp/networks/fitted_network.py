"""The fit of a network: where its parameters come from, and answers with bounds.

A guarantee holds only for parameters that derive from a release. Many methods of pgmpy change a network, and its tables
can be changed without any method. Therefore a fit holds for the contents that the network had, and is replaced when
these differ. Bounds are computed from networks drawn from their posterior.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations
from typing import Any, Self

import numpy as np
from pgmpy.models import DiscreteMarkovNetwork

from pgmpy_dp.errors import MIXTURE, warn
from pgmpy_dp.fitting.checks.fit_checks import QUICK, check_network
from pgmpy_dp.fitting.checks.misfit import FitCheck
from pgmpy_dp.fitting.readings.posterior_networks import PosteriorNetworks, draw_networks, warn_of_slow_mixing
from pgmpy_dp.inference import TreeTooLargeError
from pgmpy_dp.inference.distribution import Codes, Distribution, GivenOthers, Positions
from pgmpy_dp.inference.posterior.hamiltonian import UNCERTAIN, uncertain
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.inference.trees.conditioning import Conditioning, TreeDistribution
from pgmpy_dp.models.deviations import HIGHER, SCALES, Deviations
from pgmpy_dp.models.fitted import ATTACH_RELEASE, FEW_STATES, Fitted, bounds
from pgmpy_dp.models.questions import Question
from pgmpy_dp.observed.factors import Network, in_order, log_linear
from pgmpy_dp.observed.observed import agreed_schema, agreed_total
from pgmpy_dp.observed.reading import first_containing
from pgmpy_dp.release import Guarantee, Release
from pgmpy_dp.schema import Schema

_COMPARED = 6  # networks whose mean tables are compared with the release
WIDE = 2**12
"""Cells of families beyond which a Bayesian network is tested and drawn in parts, as questions depend on them."""
_CACHED = 50  # maximum number of parts with their draws

_CHANGED = (
    "The network was changed since it was fitted, or is not fitted yet: it has {}. Fit it again, or give its variables "
    "tables by add_cpds or add_factors."
)

_UNINFORMATIVE = (
    "These variables were not measured together, nor enough pairs that the network does not join: the bounds hold if "
    "its structure is right, and otherwise the release cannot tell: "
    "plan_measurements(..., check=0.15) measures such pairs."
)

Tables = frozenset[Any]


@dataclass(frozen=True)
class Contents:
    """Structure and tables of a network, in a form that can be compared."""

    neighbours: Mapping[str, frozenset[str]]
    tables: Tables

    @classmethod
    def of(cls, network: Network) -> Self:
        tables = network.get_cpds() if hasattr(network, "get_cpds") else network.get_factors()
        named = (
            (tuple((v, tuple(table.state_names[v])) for v in table.variables), np.asarray(table.values).tobytes())
            for table in tables
        )
        return cls({node: frozenset(network.adj[node]) for node in network.nodes()}, frozenset(named))


@dataclass(frozen=True)
class DrawnAnswers:
    """The answer in each draw; see `pgmpy_dp.models.fitted.Uncertain`."""

    values: Vector
    drawn: Vector
    contained: tuple[Vector, ...]  # draws of other answers that the bounds must contain, too
    counts: Vector  # the number of records with the evidence
    records: float  # their mean

    @property
    def minimum(self) -> float:
        return float(np.quantile(self.counts, 0.05, method="weibull"))

    def bounds(self, interval: float) -> tuple[Vector, Vector]:
        lower, upper = zip(*(bounds(drawn, interval) for drawn in (self.drawn, *self.contained)), strict=True)
        return np.min(lower, axis=0), np.max(upper, axis=0)


@dataclass(frozen=True, eq=False)
class FittedNetwork(Fitted):
    """A network's fit, for the contents that the network has."""

    network: Network
    contents: Contents
    promised: Tables = frozenset()  # tables for which the guarantee holds
    guarantee: Guarantee | None = None
    releases: tuple[Release, ...] = ()
    declared: tuple[Schema, ...] = ()
    draws: int = 200
    seed: int = 0
    estimated: PosteriorNetworks | None = None  # networks that the estimator drew
    whole: FittedNetwork | None = None  # the network of which this is a part, if that is wide

    def changed(self, without: Sequence[str] = (), **fields: Any) -> Self:
        """Replace fields, and keep cached values except those that are listed."""
        fresh = copy.copy(self)
        vars(fresh).update(fields)
        for name in without:
            vars(fresh).pop(name, None)
        return fresh

    def redrawn(self, draws: int, seed: int) -> Self:
        """Return the fit with other draws."""
        return self.changed(("posterior", "uncertainty", "_parts", "_sampling"), draws=draws, seed=seed, estimated=None)

    @property
    def is_wide(self) -> bool:
        """Whether questions are answered by parts of the network."""
        return self.tree.families and self.tree.layout.size > WIDE and self.whole is None

    def part(self, names: Collection[str]) -> FittedNetwork:
        """Return the fit of these variables and their ancestors, if the network is wide."""
        if not self.is_wide:
            return self
        key = frozenset(self.tree.ancestral(names).layout.cardinalities)
        if key not in self._parts:
            part = type(self.network)()
            part.add_nodes_from(v for v in self.network.nodes() if v in key)
            part.add_edges_from(edge for edge in self.network.edges() if key.issuperset(edge))
            part.add_cpds(*(self.network.get_cpds(v) for v in part.nodes()))
            estimated = None if self.estimated is None else self.estimated.part(key)
            if len(self._parts) == _CACHED:
                self._parts.pop(next(iter(self._parts)))
            self._parts[key] = replace(self, network=part, estimated=estimated, whole=self)
        return self._parts[key]

    @cached_property
    def _parts(self) -> dict[frozenset[str], FittedNetwork]:
        return {}

    @property
    def measured(self) -> list[Release]:
        """The releases as they were measured, before parts borrowed strength from each other."""
        return [release.as_measured for release in self.releases]

    @cached_property
    def schema(self) -> Schema:
        network = self.network
        if self.whole is not None:
            return self.whole.schema.select(network.nodes())
        if not self.contents.tables or not self.contents.neighbours:
            raise ValueError("The network is not fitted yet: call fit first.")
        _require_tables_of(network)
        return Schema.from_model(network)

    @property
    def distribution(self) -> Distribution:
        return self.tree

    @cached_property
    def tree(self) -> TreeDistribution:
        """The distribution, by tables of the network's own parameters."""
        layout, logs, _ = log_linear(self.network, self.schema.states)
        return TreeDistribution(layout, logs, families=not isinstance(self.network, DiscreteMarkovNetwork))

    @property
    def total(self) -> float:
        if not self.releases:
            fact = "The network has no release, which tells the number of records"
            raise ValueError(f"{fact}: give n_samples, or {ATTACH_RELEASE}.")
        return agreed_total(self.releases)[0]

    @cached_property
    def posterior(self) -> PosteriorNetworks:
        """Networks drawn from their posterior given the releases."""
        _, releases = self.schema, self.required_releases()
        return self.estimated or draw_networks(self.network, releases, self.draws, self.seed)

    @cached_property
    def uncertainty(self) -> Uncertainty:
        """The draws, with the deviations of the records from them."""
        return Uncertainty.of(self.posterior, self.measured, self._learned)

    @property
    def check(self) -> FitCheck | None:
        return vars(self).get("possible_check") or vars(self).get("quick_check")

    def tested(self) -> FitCheck:
        return self.possible_check or check_network(self.network, self.required_releases())

    @cached_property
    def possible_check(self) -> FitCheck | None:
        """The test of fit; None if it is impossible, since tables are too large or do not cover the network."""
        return vars(self).get("quick_check") or self._tested(math.inf)

    @cached_property
    def quick_check(self) -> FitCheck | None:
        """The test of fit if it is cheap."""
        return self._tested(QUICK)

    def _tested(self, max_work: float) -> FitCheck | None:
        with suppress(ValueError):
            return check_network(self.network, self.releases, max_work=max_work) if self.releases else None
        return None

    def warn_of_misfit(self, bounds: bool = False) -> None:
        check = self.check or (self.possible_check if bounds else self.quick_check)
        if check is None or not check.fails or "warned" in vars(self):
            return
        vars(self)["warned"] = True
        worst = f": {check.worst(1)[0]}" if check.worst() else ""
        families = self.network._answered_by_families()
        refit = "fit by PrivateMLE(), which reads each family from its own table, " if families else ""
        fact = (
            f"The release contradicts the network ({check.probability}, misfit {check.z2:.3g} times the expected)"
            f"{worst}. Parameters, files and synthetic records may be far off; answers about variables that were "
            "measured together follow the release, and bounds allow for what else it tells"
        )
        advice = f"add edges where check_fit() finds it, {refit}or {MIXTURE}"
        warn(f"{fact}: {advice}.")

    @cached_property
    def correction(self) -> Deviations | None:
        """The release's deviations from the network, by which answers are corrected, if the test of fit fails."""
        return self.compared if self.possible_check is not None and self.possible_check.fails else None

    @cached_property
    def compared(self) -> Deviations:
        """The release's deviations from the network itself."""
        schema = agreed_schema(self.measured, list(self.schema.variables))
        layout, logs, _ = log_linear(self.network, schema.states)
        total = agreed_total(self.measured)[0]
        return Deviations(schema, Conditioning(layout), logs[None], total, self.measured, self._learned)

    @property
    def _learned(self) -> Deviations | None:
        """The deviations of the whole network, whose tables determine the scales of deviations in its parts."""
        return None if self.whole is None else self.whole.compared

    def marginal(self, question: Question) -> Vector:
        asked, answer = question.asked, super().marginal(question)
        self.warn_of_misfit(bounds=True)
        if self.correction is None:
            return answer
        own, states = self.schema.states, self.correction.schema.states
        with suppress(TreeTooLargeError):  # raised if variables are far apart in the network
            moved = in_order(answer, asked, own, states)
            moved = self.correction.corrected(moved, asked, self._places_in(self.correction.schema, question.places))
            return in_order(moved, asked, states, own)
        return answer

    def bounded(self, question: Question, target: str, numbers: Vector | None = None) -> DrawnAnswers:
        value = self.marginal(question).ravel()
        drawn, counts, records = self._drawn_answers(question, target)
        # Given rare evidence the records' answer may be farther from the network's than the population's is.
        both = target == "population" and not self.posterior.borrowed
        contained = [self._drawn_answers(question, "records")[0]] if both else []
        if numbers is not None:
            drawn, value = (drawn @ numbers)[:, None], np.array([value @ numbers])
            contained = [(other @ numbers)[:, None] for other in contained]
        return DrawnAnswers(value, drawn, tuple(contained), counts, records)

    def _drawn_answers(self, question: Question, target: str) -> tuple[Vector, Vector, float]:
        """Draw answers, flat, with deviations; also return numbers of records with the evidence, and their mean."""
        posterior, asked = self.posterior, question.asked
        schema, positions = posterior.schema, self._places_in(posterior.schema, question.places)
        answers, shares = self.uncertainty.conditioning.distributions(posterior.draws(target), asked, positions)
        poor = uncertain(answers.reshape(len(answers), -1), *UNCERTAIN)
        if poor:
            warn_of_slow_mixing(f"this answer's mean {poor}", len(answers))
        counts = posterior.totals * shares
        records = float(np.mean(counts if positions else posterior.totals))
        answers = self.uncertainty.deviations[target].applied(answers, asked, positions, records, target)
        if schema.rules:  # deviations ignore rules
            answers = answers * schema.possible(asked, question.given)
            answers /= answers.sum(axis=tuple(range(1, answers.ndim)), keepdims=True)
        answers = in_order(answers, asked, schema.states, self.schema.states, first=1)
        return answers.reshape(len(answers), -1), counts, records

    def drawn_records(
        self, number: int, given: Mapping[str, Any], count: int, generator: np.random.Generator
    ) -> tuple[Schema, Codes, GivenOthers]:
        """Draw records from one of the posterior's networks, given states; see `Distribution.sample`."""
        posterior = self.posterior
        schema, logs = posterior.schema, posterior.population[number]
        places = {variable: schema.states[variable].index(state) for variable, state in given.items()}
        codes = self._sampling.sample(logs, places, count, generator)
        return schema, codes, partial(TreeDistribution(posterior.layout, logs).given_others, codes)

    @cached_property
    def _sampling(self) -> Conditioning:
        return Conditioning(self.posterior.layout)

    def most_probable_states(self, question: Question, target: str) -> tuple[tuple[int, ...], float]:
        shape = self.schema.shape(tuple(question.asked))
        if math.prod(shape) <= FEW_STATES:
            with suppress(TreeTooLargeError):
                answer = self.bounded(question, target)
                best = int(answer.values.argmax())
                agreeing = float(np.mean(answer.drawn.argmax(axis=1) == best))
                return tuple(int(position) for position in np.unravel_index(best, shape)), agreeing
        positions = self.distribution.given(question.places).most_probable(question.asked)
        return positions, self._agreement(question, positions, target)

    def _agreement(self, question: Question, positions: tuple[int, ...], target: str) -> float:
        """Return the share of draws in which these states are the most probable ones."""
        posterior, conditioning = self.posterior, self.uncertainty.conditioning
        given = self._places_in(posterior.schema, question.places)
        each = conditioning.most_probable(posterior.draws(target), question.asked, given)
        wanted = self._places_in(posterior.schema, dict(zip(question.asked, positions, strict=True)))
        return float(np.mean([tuple(wanted.values()) == result for result in each]))

    def _places_in(self, schema: Schema, places: Positions) -> Positions:
        """Convert positions of states to those in another schema."""
        return {v: schema.states[v].index(self.schema.states[v][position]) for v, position in places.items()}

    def caveats(self, question: Question) -> list[str]:
        informed = self.uncertainty.deviations["records"].informs(question.asked, question.given)
        return [] if informed else [_UNINFORMATIVE]

    def unknown_effects(self, question: Question) -> float:
        deviations, given = self.uncertainty.deviations["records"], question.given
        if deviations.outside is None or first_containing(self.measured, tuple(question.names)) is not None:
            return 0.0

        def scale(weights: Vector) -> float:
            """Return a mean that is not dominated by the prior if few pairs were measured."""
            return float(weights @ np.sqrt(SCALES)) ** 2

        pairs = [(variable, other) for variable in question.asked for other in given]
        unknown = [pair for pair in pairs if first_containing(self.measured, pair) is None]
        scales = [scale(deviations.inside.new if deviations.joins(pair) else deviations.outside) for pair in unknown]
        return math.hypot(*scales, math.sqrt(len(given) - 1) * HIGHER * scale(deviations.outside))


@dataclass(frozen=True)
class Uncertainty:
    """Networks drawn from their posterior, and the deviations of the records from these by target."""

    conditioning: Conditioning
    deviations: Mapping[str, Deviations]

    @classmethod
    def of(cls, posterior: PosteriorNetworks, releases: Sequence[Release], whole: Deviations | None) -> Self:
        """Compare the releases that the networks were drawn from with the mean tables of some of them."""
        conditioning, step = Conditioning(posterior.layout), max(1, len(posterior.totals) // _COMPARED)
        records = float(np.mean(posterior.totals))

        def compared(target: str) -> Deviations:
            networks = posterior.draws(target)[::step]
            return Deviations(posterior.schema, conditioning, networks, records, releases, whole)

        of_records = compared("records")
        population = compared("population") if posterior.borrowed else of_records
        return cls(conditioning, {"population": population, "records": of_records})


def _require_tables_of(network: Network) -> None:
    """Raise if tables do not match the structure, which pgmpy's methods may change without them."""
    if isinstance(network, DiscreteMarkovNetwork):
        for factor in network.get_factors():
            for pair in combinations(factor.variables, 2):
                if not network.has_edge(*pair):
                    raise ValueError(_CHANGED.format(f"a factor of {tuple(factor.variables)}, and no edge {pair}"))
        return
    cpds = {cpd.variable: cpd for cpd in network.get_cpds()}
    for node in network.nodes():
        parents = sorted(map(str, network.get_parents(node)))
        if node not in cpds:
            raise ValueError(_CHANGED.format(f"no CPD of {node!r}, whose parents are {parents}"))
        if (given := sorted(map(str, cpds[node].variables[1:]))) != parents:
            raise ValueError(_CHANGED.format(f"a CPD of {node!r} given {given}, whose parents are {parents}"))
