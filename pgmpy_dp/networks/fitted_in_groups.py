"""The fit of a network with nodes that were measured in groups of their states.

Questions about states are answered by a network over groups (`pgmpy_dp.fitting.readings.grouped_networks`): evidence
means its group, and what is asked for is divided among the states of groups. Bounds contain the uncertainty of both.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from pgmpy_dp.fitting.checks.misfit import FitCheck
from pgmpy_dp.fitting.readings.grouped_networks import GroupedNodes
from pgmpy_dp.fitting.readings.posterior_networks import PosteriorNetworks
from pgmpy_dp.inference.distribution import Codes, GivenOthers
from pgmpy_dp.inference.grouped import GroupedDistribution, Within
from pgmpy_dp.inference.mixtures.mixture import AnswerTooLargeError
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.models.fitted import assumed_within_groups
from pgmpy_dp.models.questions import Question
from pgmpy_dp.networks.fitted_network import Contents, DrawnAnswers, FittedNetwork, Uncertainty
from pgmpy_dp.privacy.guarantee import FIT_KEY
from pgmpy_dp.schema import Schema

_MAX_CELLS = 2**26  # of all draws of an answer


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedInGroups(FittedNetwork):
    """A network's fit by one over groups of the states of some nodes."""

    nodes: GroupedNodes
    inner: FittedNetwork  # over groups
    within: Mapping[str, Within]

    is_wide = False  # but a part of the network over groups may answer

    @classmethod
    def of(cls, fitted: FittedNetwork) -> FittedNetwork:
        """Return the fit by groups, if nodes were measured in groups and CPDs follow them, or else the same."""
        nodes = GroupedNodes.of(fitted.network, fitted.releases)
        if nodes is None:
            return fitted
        nodes = nodes.in_order(fitted.schema.states)
        recovered = nodes.recovered(fitted.network)
        if recovered is None:
            return fitted
        parameters, within = recovered
        network = type(fitted.network)()
        network.add_nodes_from(nodes.names(fitted.network.nodes()))
        network.add_edges_from(tuple(nodes.names(edge)) for edge in fitted.network.edges())
        (network.add_cpds if nodes.directed else network.add_factors)(*parameters)
        own = {field.name: getattr(fitted, field.name) for field in fields(fitted)}
        inner = FittedNetwork(**own | {"network": network, "contents": Contents.of(network)})
        vars(network)[FIT_KEY] = inner
        return cls(**own, nodes=nodes, inner=inner, within=within)

    def redrawn(self, draws: int, seed: int) -> Self:
        return super().redrawn(draws, seed).changed(("_drawn",), inner=self.inner.redrawn(draws, seed))

    def part(self, names: Collection[str]) -> Self:
        _ = self._drawn  # which parts share
        return self.changed(inner=self.inner.part(self.distribution.names(names)))

    @property
    def _parts(self) -> dict[frozenset[str], FittedNetwork]:
        return self.inner._parts

    @cached_property
    def distribution(self) -> GroupedDistribution:
        return GroupedDistribution(self.inner.tree, self.within)

    @property
    def posterior(self) -> PosteriorNetworks:
        return self.inner.posterior

    @property
    def uncertainty(self) -> Uncertainty:
        return self.inner.uncertainty

    @property
    def check(self) -> FitCheck | None:
        return self.inner.check

    def tested(self) -> FitCheck:
        return self.inner.tested()

    def warn_of_misfit(self, bounds: bool = False) -> None:
        self.inner.warn_of_misfit(bounds)

    def marginal(self, question: Question) -> Vector:
        return self.distribution.spread(question.asked, self.inner.marginal(self._over_groups(question)))

    def bounded(self, question: Question, target: str, numbers: Vector | None = None) -> DrawnAnswers:
        names = self.distribution.names(question.asked)
        shape, size = self.inner.schema.shape(names), math.prod(self.schema.shape(question.asked))
        draws = len(self.posterior.totals)
        if draws * size > _MAX_CELLS:
            raise AnswerTooLargeError(
                f"Bounds of {size:,} joint states need {draws} draws of each: ask for fewer variables, or give the "
                "states of some as evidence."
            )
        answer = self.inner.bounded(self._over_groups(question), target)

        def drawn(of_groups: Vector, of: str) -> Vector:
            """Divide drawn probabilities among the states of groups, by drawn shares."""
            table = of_groups.reshape(-1, *shape)
            for axis, variable in enumerate(question.asked, 1):
                if variable in self.within:
                    within = replace(self.within[variable], shares=self.drawn_shares(variable, of))
                    table = within.spread(table, axis)
            flat = table.reshape(len(table), -1)
            return flat if numbers is None else (flat @ numbers)[:, None]

        value = self.distribution.spread(question.asked, answer.values.reshape(shape)).ravel()
        value = value if numbers is None else np.array([value @ numbers])
        known = [variable for variable in question.given if variable in self.within]
        shares = [self.drawn_shares(variable, target)[:, question.places[variable]] for variable in known]
        records = answer.records * math.prod(float(self.within[v].shares[question.places[v]]) for v in known)
        contained = tuple(drawn(other, "records") for other in answer.contained)
        counts = answer.counts * np.prod(shares, axis=0)
        return DrawnAnswers(value, drawn(answer.drawn, target), contained, counts, records)

    def caveats(self, question: Question) -> list[str]:
        return self.inner.caveats(self._over_groups(question)) + assumed_within_groups(question, self.within)

    def unknown_effects(self, question: Question) -> float:
        return self.inner.unknown_effects(self._over_groups(question))

    def drawn_records(
        self, number: int, given: Mapping[str, Any], count: int, generator: np.random.Generator
    ) -> tuple[Schema, Codes, GivenOthers]:
        within = {
            variable: replace(own, shares=self.drawn_shares(variable, "population")[number])
            for variable, own in self.within.items()
        }
        places = {variable: self.schema.states[variable].index(state) for variable, state in given.items()}
        drawn = GroupedDistribution(self.inner.tree, within).given(places)
        states = self.inner.schema.states
        of_groups = {name: states[name][place] for name, place in drawn.grouped(places).items()}
        schema, codes, others = self.inner.drawn_records(number, of_groups, count, generator)
        fine = {variable: self.schema.states[variable] for variable in within}
        return Schema({**schema.states, **fine}), *drawn.refined(codes, others, generator)

    def _agreement(self, question: Question, positions: tuple[int, ...], target: str) -> float:
        groups = self.distribution.grouped(dict(zip(question.asked, positions, strict=True)))
        return self.inner._agreement(self._over_groups(question), tuple(groups.values()), target)

    def _over_groups(self, question: Question) -> Question:
        """Ask the network over groups."""
        places = self.distribution.grouped(question.places)
        states = self.inner.schema.states
        given = {variable: states[variable][position] for variable, position in places.items()}
        return Question(self.distribution.names(question.asked), given, places)

    def drawn_shares(self, node: str, target: str) -> Vector:
        """Return a draw of the shares of a node's states for each drawn network."""
        key = node, target
        if key not in self._drawn:
            draws, sampled = len(self.posterior.totals), target == "population"
            # By node, whatever was asked before, so that a question has one answer.
            generator = np.random.default_rng([self.seed, sorted(self.nodes.groups).index(node), sampled])
            (chances,) = self.distribution.singles([node])
            self._drawn[key] = self.nodes.drawn(node, chances, self.measured, draws, sampled, generator)
        return self._drawn[key]

    @cached_property
    def _drawn(self) -> dict[tuple[str, str], Vector]:
        return {}
