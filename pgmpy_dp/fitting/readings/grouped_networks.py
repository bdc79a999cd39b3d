"""Bayesian networks some of whose nodes are measured in groups of their states, and CPDs of all states.

A node with many states is measured together with others by groups of its states (`pgmpy_dp.fitting.plans.groups`), or
by the coarser variable of a declared Hierarchy. Given its group, a state does not depend on anything else. So with a
network of the same structure over the groups g, CPDs are

    P(x | parents) = P(g(x) | groups of the parents) * (share of x in g(x)),     P(y | x, ...) = P(y | g(x), ...),

and the network over groups, with the shares, follows from CPDs of this form, whatever program they were stored by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pgmpy.base import DAG
from pgmpy.factors.discrete import TabularCPD

from pgmpy_dp.fitting.plans.pairs import UNGROUPED
from pgmpy_dp.inference import Layout
from pgmpy_dp.inference.grouped import Within
from pgmpy_dp.inference.mixtures.children import Child
from pgmpy_dp.inference.mixtures.fit.denoised_children import denoised_within
from pgmpy_dp.inference.mixtures.fit.noisy_tables import children_within
from pgmpy_dp.inference.tables.table import Vector, pooled
from pgmpy_dp.inference.trees.conditioning import TreeDistribution
from pgmpy_dp.observed.factors import family, in_order, tabular_cpd
from pgmpy_dp.observed.observed import agreed_total
from pgmpy_dp.observed.reading import law_of
from pgmpy_dp.release import Release
from pgmpy_dp.schema import Schema

_FORM = 1e-6  # largest relative difference of CPDs from the form above; formats of files round


@dataclass(frozen=True, eq=False)
class GroupedNodes:
    """The nodes of a network that are measured in groups of their states."""

    states: Mapping[str, Sequence[Any]]  # of nodes and groups
    groups: Mapping[str, tuple[str, NDArray[np.intp]]]  # by node: the variable of its groups, and each state's group

    @classmethod
    def of(cls, network: Any, releases: Iterable[Any]) -> Self | None:
        """Find the nodes whose groups are in tables with other nodes, and they themselves are not."""
        if not isinstance(network, DAG):
            return None
        for release in releases:
            if not isinstance(release, Release) or not release.cliques:
                continue
            joined = {variable for clique in release.cliques if len(clique) > 1 for variable in clique}
            refined = release.schema.structure.refined
            groups = {
                node: refined[node]
                for node in network.nodes()
                if node in refined
                and network.degree(node)
                and node not in joined
                and refined[node][0] in joined
                and refined[node][0] not in network
            }
            if groups:
                return cls(release.schema.states, groups)
        return None

    @property
    def sizes(self) -> dict[str, int]:
        """The number of groups of each node."""
        return {node: len(self.states[name]) for node, (name, _) in self.groups.items()}

    def in_order(self, states: Mapping[str, Sequence[Any]]) -> Self:
        """Reorder the states of nodes."""
        groups = {}
        for node, (name, own) in self.groups.items():
            known = list(self.states[node])
            groups[node] = name, own[[known.index(state) for state in states[node]]]
        return replace(self, states={**self.states, **states}, groups=groups)

    def names(self, nodes: Iterable[str]) -> list[str]:
        """Replace nodes by the variables of their groups."""
        return [self.groups[node][0] if node in self.groups else node for node in nodes]

    def network(self, network: DAG) -> DAG:
        """Return the structure over groups."""
        return relabelled(network, {node: name for node, (name, _) in self.groups.items()})

    def within(self, releases: Sequence[Any], coarse: Sequence[TabularCPD]) -> dict[str, Within]:
        """Estimate the shares of states in their groups, from noisy counts of single nodes."""
        names = {name for name, _ in self.groups.values()}
        layout = Layout.of({cpd.variable: len(cpd.values) for cpd in coarse}, [tuple(cpd.variables) for cpd in coarse])
        with np.errstate(divide="ignore"):
            logs = np.log(layout.flatten(cpd.values for cpd in coarse))
        distribution, total = TreeDistribution(layout, logs, families=True), agreed_total(releases)[0]
        sums = {name: total * distribution.marginal([name]) for name in names}
        children = denoised_within(self.groups, self.counts(releases), sums)  # type: ignore[arg-type]
        return {node: Within(*self.groups[node], _shares(children[node])) for node in self.groups}

    def drawn(
        self,
        node: str,
        chances: Vector,
        releases: Sequence[Any],
        draws: int,
        sampled: bool,
        generator: np.random.Generator,
    ) -> Vector:
        """Draw a node's shares as noise and, with `sampled`, the choice of records would change them.

        They are those of counts simulated from the states' probabilities, estimated without denoising: their errors
        stand for its bias too. Shape (draws, states).
        """
        name, groups = self.groups[node]
        total, (_, deviation) = agreed_total(releases)[0], self.counts(releases)[node]
        law = law_of(next(release for release in releases if node in release.schema.states))
        noise = law(chances, deviation**2).draw(draws, generator)
        result = []
        for each in noise:
            records = generator.multinomial(max(round(total), 1), chances) if sampled else total * chances
            sums = np.bincount(groups, records, minlength=len(self.states[name]))
            fine = {node: (records + each, deviation)}
            result.append(_shares(children_within({node: self.groups[node]}, fine, {name: sums})[node]))  # type: ignore[dict-item]
        return np.array(result)

    def counts(self, releases: Sequence[Any]) -> dict[str, tuple[Vector, float]]:
        """Return the noisy counts of each node's states, pooled over releases, and the deviation of their noise."""
        result = {}
        for node in self.groups:
            known = []
            for release in releases:
                if node in release.schema.states:
                    counts, variance = release.marginal((node,))
                    known.append((in_order(counts, (node,), release.schema.states, self.states), 1.0 / variance))
            counts, precision = pooled(*zip(*known, strict=True))
            result[node] = counts, float(precision) ** -0.5
        return result

    def cpds(self, network: DAG, coarse: Iterable[TabularCPD], within: Mapping[str, Within]) -> list[TabularCPD]:
        """Return the CPDs of all states, in the order of the network's nodes."""
        tables = {cpd.variable: cpd for cpd in coarse}
        result = []
        for node in network.nodes():
            scope = family(network, node)
            cpd = tables[self.names(scope)[0]]
            table = cpd.values.transpose([cpd.variables.index(name) for name in self.names(scope)])
            result.append(tabular_cpd(scope, self._spread(table, scope, within), self.states))
        return result

    def recovered(self, network: Any) -> tuple[list[TabularCPD], dict[str, Within]] | None:
        """Invert `cpds`; None if the network's CPDs do not have the form above."""
        states, tables, within = self.states, {}, {}
        for cpd in network.get_cpds():
            scope = family(network, cpd.variable)
            with suppress(ValueError):
                table = cpd.values.transpose([cpd.variables.index(node) for node in scope])
                tables[scope] = in_order(table, scope, cpd.state_names, states)
        if len(tables) < len(network.nodes()):
            return None
        coarse = {}
        for scope, table in tables.items():
            result = table
            for axis, parent in enumerate(scope[1:], 1):
                if parent in self.groups:
                    _, firsts = np.unique(self.groups[parent][1], return_index=True)
                    result = np.take(result, firsts, axis=axis)
            if scope[0] in self.groups:
                result, within[scope[0]] = self._split(scope[0], result)
            coarse[scope] = result
            own = {node: within[node] for node in scope[:1] if node in within}
            if not np.allclose(self._spread(result, scope, own), table, rtol=_FORM, atol=1e-9):
                return None
        cpds = [tabular_cpd(tuple(self.names(scope)), table, states) for scope, table in coarse.items()]
        return cpds, within

    def _split(self, node: str, table: Vector) -> tuple[Vector, Within]:
        """Split P(state | parents) into P(group | parents) and shares, as they are where the group is most probable."""
        name, groups = self.groups[node]
        sums = np.zeros((len(self.states[name]), *table.shape[1:]))
        np.add.at(sums, groups, table)
        flat, rows = sums.reshape(len(sums), -1), table.reshape(len(table), -1)
        best = flat.argmax(axis=1)[groups]
        shares = rows[np.arange(len(rows)), best] / np.maximum(flat[groups, best], 1e-300)
        return sums / sums.sum(axis=0), Within(name, groups, shares)

    def _spread(self, table: Vector, scope: Sequence[str], within: Mapping[str, Within]) -> Vector:
        """Turn a CPD over groups into one of states."""
        for axis, node in enumerate(scope):
            if node in self.groups:
                table = np.take(table, self.groups[node][1], axis=axis) if axis else within[node].spread(table, 0)
        return table


def declared_coarser(network: DAG, schema: Schema) -> dict[str, str]:
    """Return the coarser variables that a schema declares for nodes of many states, if they are no nodes."""
    return {
        finer: coarser
        for finer, (coarser, _) in schema.structure.refined.items()
        if finer in network and network.degree(finer) and coarser not in network
        if schema.cardinality(finer) > UNGROUPED
    }


def relabelled(network: DAG, names: Mapping[str, str]) -> DAG:
    """Return the structure with other names of some nodes, in the same order."""
    result = DAG()
    result.add_nodes_from([names.get(node, node) for node in network.nodes()])
    result.add_edges_from([(names.get(one, one), names.get(other, other)) for one, other in network.edges()])
    return result


def _shares(child: Child) -> Vector:
    """Return the shares of a finer variable's states, in their order."""
    entries = child.shares.tocoo()
    result = np.zeros(child.states)
    result[entries.col] = entries.data
    return result
