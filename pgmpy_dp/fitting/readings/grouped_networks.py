"""Networks some of whose nodes are measured in groups of their states, and CPDs or factors of all states.

A node with many states is measured together with others by groups of its states (`pgmpy_dp.fitting.plans.groups`), or
by the coarser variable of a declared Hierarchy. Given its group, a state does not depend on anything else. So with a
network of the same structure over the groups g, CPDs are

    P(x | parents) = P(g(x) | groups of the parents) * (share of x in g(x)),     P(y | x, ...) = P(y | g(x), ...),

and the network over groups, with the shares, follows from CPDs of this form, whatever program they were stored by. Of
the factors of a Markov network one has the shares of each node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pgmpy.base import DAG
from pgmpy.factors.discrete import DiscreteFactor, TabularCPD
from pgmpy.models import DiscreteMarkovNetwork

from pgmpy_dp.fitting.plans.pairs import UNGROUPED
from pgmpy_dp.inference import Layout
from pgmpy_dp.inference.grouped import Within
from pgmpy_dp.inference.mixtures.children import Child
from pgmpy_dp.inference.mixtures.fit.denoised_children import denoised_within
from pgmpy_dp.inference.mixtures.fit.noisy_tables import children_within
from pgmpy_dp.inference.tables.table import Vector, pooled
from pgmpy_dp.inference.trees.conditioning import TreeDistribution
from pgmpy_dp.observed.factors import Network, family, in_order, tabular_cpd
from pgmpy_dp.observed.observed import agreed_total
from pgmpy_dp.observed.reading import law_of
from pgmpy_dp.release import Release
from pgmpy_dp.schema import Clique, Schema

_FORM = 1e-6  # largest relative difference of CPDs from the form above; formats of files round


@dataclass(frozen=True, eq=False)
class GroupedNodes:
    """The nodes of a network that are measured in groups of their states."""

    states: Mapping[str, Sequence[Any]]  # of nodes and groups
    groups: Mapping[str, tuple[str, NDArray[np.intp]]]  # by node: the variable of its groups, and each state's group
    directed: bool  # whether tables are CPDs

    @classmethod
    def of(cls, network: Any, releases: Iterable[Any]) -> Self | None:
        """Find the nodes whose groups are in tables with other nodes, and they themselves are not."""
        if getattr(network, "tied", ()):
            return None
        for release in releases:
            if not isinstance(release, Release) or not release.cliques:
                continue
            refined = release.schema.structure.refined
            if refined.keys().isdisjoint(network):
                continue
            by = {getattr(release, "variable", None)}  # of a union, in all of its tables
            joined = {variable for clique in release.cliques if len(set(clique) - by) > 1 for variable in clique}
            groups = {
                node: refined[node]
                for node in network.nodes()
                if node in refined
                and node not in joined
                and refined[node][0] in joined
                and refined[node][0] not in network
            }
            if groups:
                return cls(release.schema.states, groups, isinstance(network, DAG))
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

    def network(self, network: Network) -> Network:
        """Return the structure over groups."""
        return relabelled(network, {node: name for node, (name, _) in self.groups.items()})

    def within(self, releases: Sequence[Any], coarse: Sequence[DiscreteFactor]) -> dict[str, Within]:
        """Estimate the shares of states in their groups, from noisy counts of single nodes and a fit over groups."""
        names = {name for name, _ in self.groups.values()}
        sizes = {name: size for own in coarse for name, size in zip(own.variables, own.values.shape, strict=True)}
        layout = Layout.of(sizes, [tuple(own.variables) for own in coarse])
        with np.errstate(divide="ignore"):
            logs = np.log(layout.flatten(own.values for own in coarse))
        distribution = TreeDistribution(layout, logs, families=isinstance(coarse[0], TabularCPD))
        total = agreed_total(releases)[0]
        sums = {name: total * distribution.marginal([name]) for name in names}
        counts = {node: self.counts(node, releases) for node in self.groups}
        children = denoised_within(self.groups, counts, sums)  # type: ignore[arg-type]
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
        total, (_, deviation) = agreed_total(releases)[0], self.counts(node, releases)
        law = law_of(next(release for release in releases if node in release.schema.states))
        noise = law(chances, deviation**2).draw(draws, generator)
        result = []
        for each in noise:
            records = generator.multinomial(max(round(total), 1), chances) if sampled else total * chances
            sums = np.bincount(groups, records, minlength=len(self.states[name]))
            fine = {node: (records + each, deviation)}
            result.append(_shares(children_within({node: self.groups[node]}, fine, {name: sums})[node]))  # type: ignore[dict-item]
        return np.array(result)

    def counts(self, node: str, releases: Sequence[Any]) -> tuple[Vector, float]:
        """Return the noisy counts of a node's states, pooled over releases, and the deviation of their noise."""
        known = []
        for release in releases:
            if node in release.schema.states:
                counts, variance = release.marginal((node,))
                known.append((in_order(counts, (node,), release.schema.states, self.states), 1.0 / variance))
        counts, precision = pooled(*zip(*known, strict=True))
        return counts, float(precision) ** -0.5

    def spread(
        self, network: Network, coarse: Sequence[DiscreteFactor], within: Mapping[str, Within]
    ) -> list[DiscreteFactor]:
        """Return the CPDs, in the order of the nodes, or factors of all states."""
        fine = {name: node for node, (name, _) in self.groups.items()}
        tables = {tuple(fine.get(name, name) for name in own.variables): own.values for own in coarse}
        if isinstance(network, DAG):
            nodes = {scope[0]: (scope, table) for scope, table in tables.items()}
            tables = dict(_in_order_of(family(network, node), *nodes[node]) for node in network.nodes())
        bearers = self._bearers(tables)
        spread = {scope: self._spread(table, scope, bearers[scope], within) for scope, table in tables.items()}
        return [_parameter(network, scope, table, self.states) for scope, table in spread.items()]

    def recovered(self, network: Network) -> tuple[list[DiscreteFactor], dict[str, Within]] | None:
        """Invert `spread`; None if the network's CPDs or factors do not have the form above."""
        tables, within = {}, dict[str, Within]()
        for own in network.get_cpds() if isinstance(network, DAG) else network.get_factors():
            scope = tuple(own.variables)
            tables[scope] = in_order(np.asarray(own.values), scope, own.state_names, self.states)
        bearers, coarse = self._bearers(tables), []
        for scope, table in tables.items():
            result = table
            for axis, node in enumerate(scope):
                if node in bearers[scope]:
                    result, within[node] = self._split(node, result, axis)
                elif node in self.groups:
                    _, firsts = np.unique(self.groups[node][1], return_index=True)
                    result = np.take(result, firsts, axis=axis)
            scale = np.abs(table).max()
            if not np.allclose(
                self._spread(result, scope, bearers[scope], within), table, rtol=_FORM, atol=1e-9 * scale
            ):
                return None
            if isinstance(network, DAG):
                result = result / result.sum(axis=0)
            coarse.append(_parameter(network, tuple(self.names(scope)), result, self.states))
        return coarse, within

    def _bearers(self, scopes: Iterable[Clique]) -> dict[Clique, set[str]]:
        """Choose the table that contains each node's shares: its CPD, or the first factor by the names of its nodes."""
        result: dict[Clique, set[str]] = {scope: set() for scope in scopes}
        for node in self.groups:
            own = [scope for scope in result if node in scope]
            result[min(own, key=lambda scope: (scope[0] != node if self.directed else False, sorted(scope)))].add(node)
        return result

    def _split(self, node: str, table: Vector, axis: int) -> tuple[Vector, Within]:
        """Split a table into one over groups and shares, as they are where the group is most probable."""
        name, groups = self.groups[node]
        rows = np.moveaxis(table, axis, 0)
        sums = np.zeros((len(self.states[name]), *rows.shape[1:]))
        np.add.at(sums, groups, rows)
        flat = sums.reshape(len(sums), -1)
        best = flat.argmax(axis=1)[groups]
        shares = rows.reshape(len(rows), -1)[np.arange(len(rows)), best] / np.maximum(flat[groups, best], 1e-300)
        return np.moveaxis(sums, 0, axis), Within(name, groups, shares)

    def _spread(self, table: Vector, scope: Clique, borne: Collection[str], within: Mapping[str, Within]) -> Vector:
        """Turn a table over groups into one of states, with the shares of some nodes."""
        for axis, node in enumerate(scope):
            if node in borne:
                table = within[node].spread(table, axis)
            elif node in self.groups:
                table = np.take(table, self.groups[node][1], axis=axis)
        return table


def _in_order_of(wanted: Clique, scope: Clique, table: Vector) -> tuple[Clique, Vector]:
    return wanted, table.transpose([scope.index(node) for node in wanted])


def _parameter(network: Network, scope: Clique, table: Vector, states: Mapping[str, Sequence[Any]]) -> DiscreteFactor:
    """Create a CPD of a Bayesian network, or a factor of a Markov network."""
    if isinstance(network, DAG):
        return tabular_cpd(scope, table, states)
    return DiscreteFactor(list(scope), list(table.shape), table.ravel(), {node: list(states[node]) for node in scope})


def declared_coarser(network: Network, schema: Schema, nodes: Collection[str]) -> dict[str, str]:
    """Return the coarser variables that a schema declares for some nodes of many states, unless they are nodes too."""
    return {
        finer: coarser
        for finer, (coarser, _) in schema.structure.refined.items()
        if finer in nodes and coarser not in network and schema.cardinality(finer) > UNGROUPED
    }


def relabelled(network: Network, names: Mapping[str, str]) -> Network:
    """Return the structure with other names of some nodes, in the same order."""
    result = DAG() if isinstance(network, DAG) else DiscreteMarkovNetwork()
    result.add_nodes_from([names.get(node, node) for node in network.nodes()])
    result.add_edges_from([(names.get(one, one), names.get(other, other)) for one, other in network.edges()])
    return result


def _shares(child: Child) -> Vector:
    """Return the shares of a finer variable's states, in their order."""
    entries = child.shares.tocoo()
    result = np.zeros(child.states)
    result[entries.col] = entries.data
    return result
