"""Cliques that share parameters: each group of them is measured and fitted as one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pgmpy.models import DiscreteMarkovNetwork

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.fitting.plans.planning import shares
from pgmpy_dp.inference.trees.engine import MAX_TABLE_CELLS
from pgmpy_dp.inference.trees.tied import TiedTree
from pgmpy_dp.observed.factors import markov_scopes
from pgmpy_dp.release import Guarantee, Release
from pgmpy_dp.release.informed_marginals import require_tables
from pgmpy_dp.release.observations import IndependentTables, maximal
from pgmpy_dp.schema import Clique, Schema

Groups = dict[Clique, tuple[Clique, ...]]


@dataclass(frozen=True)
class PooledTables(IndependentTables):
    """Mean tables of groups of cliques, read like a release of tables."""

    schema: Schema
    tables: Mapping[Clique, NDArray[Any]]
    variances: Mapping[Clique, float]
    total: float
    total_variance: float
    guarantee: Guarantee


@dataclass(frozen=True)
class Tying:
    """Groups of cliques of a network whose tables were measured by group or one by one.

    Attributes
    ----------
    groups : dict of clique to tuple of cliques
        Name of each group to its cliques. Every clique with log-potentials is in exactly one group; a group of one
        usually has its own name.
    pooled : bool
        Whether each group is measured by name, as one table of all its cliques; otherwise the cliques are measured.
    nodes : tuple of str
    """

    groups: Groups
    pooled: bool
    nodes: tuple[str, ...]

    @classmethod
    def of(cls, network: DiscreteMarkovNetwork) -> Tying | None:
        """Return the groups of a network; None if it has none."""
        tied = getattr(network, "tied", None)
        if not tied:
            return None
        pooled = isinstance(tied, Mapping)
        listed = tied.items() if pooled else ((None, group) for group in tied)
        groups: Groups = {}
        for number, (name, cliques) in enumerate(listed):
            fresh = tuple(f"tied {number}, axis {axis}" for axis in range(len(cliques[0])))
            groups[fresh if name is None else name] = tuple(cliques)
        held = {frozenset(clique) for cliques in groups.values() for clique in cliques}
        groups |= {scope: (scope,) for scope in markov_scopes(network) if frozenset(scope) not in held}
        return cls(groups, pooled, tuple(network.nodes()))

    @property
    def variables(self) -> list[str]:
        """The variables that a release must have: those of the names, or the network's."""
        if not self.pooled:
            return list(self.nodes)
        return list(dict.fromkeys(variable for name in self.groups for variable in name))

    def plan(self, schema: Schema) -> tuple[Sequence[Clique], Sequence[float]]:
        """Choose what to measure and in which shares; raises before the charge if it could not be fitted."""
        self.engine(self.node_schema(schema), self.name_schema(schema))
        cliques = [clique for group in self.groups.values() for clique in group]
        names = tuple(self.groups) if self.pooled else maximal(cliques)
        return names, shares(schema, names)

    def node_schema(self, schema: Schema) -> Schema:
        """Return the states of the network's nodes; SchemaError if tied cliques disagree about them."""
        states: dict[str, tuple[Any, ...]] = {}
        for name, cliques in self.groups.items():
            of_name = [schema.states[v] for v in (name if self.pooled else cliques[0])]
            for clique in cliques:
                for variable, wanted in zip(clique, of_name, strict=True):
                    own = wanted if self.pooled else schema.states[variable]
                    if own != wanted or states.setdefault(variable, own) != own:
                        raise SchemaError(
                            f"Variable {variable!r} is tied to one with other states: they must be the same."
                        )
        return Schema({node: states[node] for node in self.nodes})

    def name_schema(self, schema: Schema) -> Schema:
        """Return the states of the variables in the groups' names."""
        if self.pooled:
            return schema.select(self.variables)
        axes = (
            (v, schema.states[w]) for name, (first, *_) in self.groups.items() for v, w in zip(name, first, strict=True)
        )
        return Schema(dict(axes))

    def engine(self, nodes: Schema, names: Schema) -> TiedTree:
        """Compile the tree."""
        return TiedTree.build(nodes.cardinalities(), self.groups, names.cardinalities(), MAX_TABLE_CELLS)

    def tables(self, release: Release) -> Any:
        """Return one table per group, as `NoisyMarginals` or `PooledTables`.

        If each clique was measured, this is their mean, which is all that a fit with tied potentials depends on. Its
        noise is treated as noise of the release's kind with the variance of the mean, the tables' as independent.
        """
        refusal = "A network with tied parameters is fitted from tables: measure them with `measure`."
        release = require_tables(release, refusal)
        if self.pooled:
            return release
        tables, variances = {}, {}
        for name, cliques in self.groups.items():
            read = [release.marginal(clique) for clique in cliques]
            tables[name] = np.mean([table for table, _ in read], axis=0)
            variances[name] = sum(variance for _, variance in read) / len(read) ** 2
        total, variance = release.total, release.total_variance
        return PooledTables(self.name_schema(release.schema), tables, variances, total, variance, release.guarantee)
