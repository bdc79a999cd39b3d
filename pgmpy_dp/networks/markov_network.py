"""Markov networks that keep their release, and whose cliques may share tables."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from pgmpy.factors.discrete import DiscreteFactor
from pgmpy.models import DiscreteMarkovNetwork

from pgmpy_dp.estimators.base import chosen_estimator, require_informable
from pgmpy_dp.estimators.from_tables import CollectiveEM
from pgmpy_dp.inference import build_engine
from pgmpy_dp.networks.network import NO_GUARANTEE, PrivateNetwork, named
from pgmpy_dp.observed.factors import log_linear
from pgmpy_dp.privacy.guarantee import carry_learned
from pgmpy_dp.release import Guarantee
from pgmpy_dp.schema import Clique, Schema


class PrivateMarkovNetwork(PrivateNetwork, DiscreteMarkovNetwork):
    """A pgmpy `DiscreteMarkovNetwork` that is fitted to private records or to a release.

    Fitted factors have partition function 1, so that pgmpy's own inference gives probabilities; factors from another
    program's file are not changed. Everything after `fit` is post-processing: queries cost no privacy.

    Parameters
    ----------
    edges : iterable of pairs of str, optional
        Undirected edges. As in pgmpy, a variable of the records without an edge is left out unless it is added by
        `add_node`.
    tied : iterable of groups, or mapping of name to group, optional
        A group is a list of edges or nodes, as tuples, that share one table of log-potentials, axis by axis, such as
        all steps of a chain. An edge or node belongs to at most one group.

        In a mapping, the name is the clique under which the group was measured, as one table for all its members: for
        instance ``{("now", "next"): [("x1", "x2"), ("x2", "x3")]}`` for records of single steps. This adds much less
        noise than a table for each member. With ``unit="person_id"``, the steps of a person have a total weight of 1.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> records = pd.DataFrame({"smoke": ["yes", "no"] * 500, "lung": ["yes", "no", "no", "no"] * 250})
    >>> schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
    >>> data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(1.0))
    >>> noisy = data.measure([("smoke", "lung")], epsilon=1.0)
    >>> network = dp.PrivateMarkovNetwork([("smoke", "lung")]).fit(noisy)
    >>> answer = network.query(["lung"], evidence={"smoke": "no"})
    >>> bool(answer.get_value(lung="no") > 0.9)
    True
    """

    def __init__(
        self,
        edges: Iterable[tuple[str, str]] | None = None,
        tied: Iterable[Iterable[Clique]] | Mapping[Clique, Sequence[Clique]] | None = None,
    ) -> None:
        super().__init__(edges, latents=[])
        self.tied = self._checked_groups(() if tied is None else tied)

    def _checked_groups(self, tied: Any) -> tuple[tuple[Clique, ...], ...] | dict[Clique, tuple[Clique, ...]]:
        """Refuse groups with cliques that are not in the network or are in two groups, or with unequal axes."""
        names = [tuple(name) for name in tied] if isinstance(tied, Mapping) else None
        groups = [tuple(tuple(c) for c in g) for g in (tied.values() if isinstance(tied, Mapping) else tied)]
        seen: set[frozenset[str]] = set()
        for number, group in enumerate(groups):
            for clique in group:
                if not (self.has_edge(*clique) if len(clique) == 2 else len(clique) == 1 and self.has_node(*clique)):
                    raise ValueError(f"{clique!r} is neither an edge nor a node (a tuple of one) of the network.")
                if frozenset(clique) in seen:
                    raise ValueError(f"{clique!r} is tied twice.")
                seen.add(frozenset(clique))
            if len({len(clique) for clique in (*group, *(names[number : number + 1] if names else ()))}) != 1:
                raise ValueError(f"The cliques of a tied group, {group!r}, must have the same number of variables.")
        return tuple(groups) if names is None else dict(zip(names, groups, strict=True))

    def fit(self, data: Any = None, estimator: Any = None, public: Any = None, **options: Any) -> PrivateMarkovNetwork:
        """Fit the factors, replacing those of an earlier fit.

        Parameters
        ----------
        data, public
            See `PrivateBayesianNetwork.fit`.
        estimator : "auto", or an estimator of this package, optional
            "auto", the default, means `CollectiveEM()`.
        """
        estimator = chosen_estimator(estimator, CollectiveEM, options)
        if public is None:
            estimator.fit(self, data)
        else:
            require_informable(estimator).fit(self, data, public=public)
        self.set_factors(estimator.parameters_, getattr(estimator, "guarantee_", NO_GUARANTEE))
        self._keep(estimator)
        return self

    def set_factors(self, factors: Sequence[DiscreteFactor], guarantee: Guarantee | None = None) -> None:
        """Replace the factors, which must cover all nodes; without a guarantee for them, the network's is removed."""
        if len({frozenset(factor.variables) for factor in factors}) < len(factors):
            raise ValueError("Two factors have the same variables: multiply them first.")
        if guarantee is not None:
            self._forget()
        self.remove_factors(*self.get_factors())
        self.add_factors(*factors)
        Schema.from_model(self)  # raises if they do not cover all nodes
        if guarantee is not None:
            self.guarantee_ = guarantee

    def add_factors(self, *factors: DiscreteFactor) -> None:
        """Multiply by factors; the guarantee is removed, with a warning, if they differ from those of the fit.

        Their states are then accessed by name: pgmpy's inference refuses positions.
        """
        super().add_factors(*map(named, factors))
        self._follow_parameters()

    def copy(self) -> PrivateMarkovNetwork:
        """Return an independent network with the same structure, factors and release."""
        return copy.deepcopy(self)

    @classmethod
    def of(cls, network: DiscreteMarkovNetwork) -> Self:
        """Build one with the structure and factors of another network; for bounds, call `attach_release`."""
        fresh = cls()
        fresh.add_nodes_from(network.nodes())
        fresh.add_edges_from(network.edges())
        carry_learned(network, fresh)
        fresh.tied = fresh._checked_groups(getattr(network, "tied", ()))
        fresh.set_factors([factor.copy() for factor in network.get_factors()], getattr(network, "guarantee_", None))
        if not all(np.all(factor.values) for factor in fresh.get_factors()):
            layout, potentials, _ = log_linear(fresh, fresh._fitted.schema.states)
            build_engine(layout.cardinalities, layout.scopes).calibrate(potentials)  # refuses a product of zero
        return fresh
