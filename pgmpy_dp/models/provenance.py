"""The origin of a network's parameters: guarantees hold only for those derived from a release.

Many methods of pgmpy change a network, and its tables can be changed without any method. Therefore the current contents
of the network are compared with those at the time of the guarantee.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from pgmpy_dp.errors import callers_level
from pgmpy_dp.observed.factors import Network
from pgmpy_dp.privacy.guarantee import GRAPH_KEY, Guarantee, carry_learned, learned
from pgmpy_dp.release import Release
from pgmpy_dp.release.kinds import several

# Attributes of a network and its copies: the guarantee, the source of bounds, and the contents that both are valid for.
_PROMISE = ("guarantee_", "_promised")
# The schemas that evidence is read by are public, and kept when a network is changed.
_READING = ("_read_by",)
_BOUNDS = ("release_", "_fitted_as", "_posterior", "_drawn", "_misfit", "_check", "_tried", "_warned")

Tables = frozenset[Any]

NO_GUARANTEE = Guarantee.of(math.inf, mechanism="none", private=False)


class Provenance:
    """A fitted network tracks the origin of its parameters.

    What finding the edges, or the states of a variable, in records cost is an attribute of the graph and of its nodes,
    which copies and subgraphs keep, and every fit adds it. Removing tables preserves the guarantee, since the others
    still derive from the release. A table from the caller may have any origin, and removes the guarantee. Any change
    removes the release, from which bounds are computed.
    """

    @property
    def guarantee_(self) -> Guarantee:
        """Return the guarantee for the records behind the parameters.

        After an estimator without a guarantee, such as pgmpy's own, its mechanism is "none".
        """
        self._follow_parameters()
        if "guarantee_" not in vars(self):
            raise AttributeError(f"The network has {self._promise()}.")
        found: Guarantee = vars(self)["guarantee_"]
        return found

    @guarantee_.setter
    def guarantee_(self, guarantee: Guarantee) -> None:
        vars(self).update(guarantee_=guarantee, _promised=_tables(self))

    def _promise(self) -> str:
        """Describe the guarantee, or why there is none."""
        self._follow_parameters()
        if "guarantee_" in vars(self):
            return str(vars(self)["guarantee_"])
        return f"no guarantee: it {'holds parameters of other origin' if _tables(self) else 'is not fitted'}"

    @property
    def release_(self) -> Release | tuple[Release, ...]:
        """Return the release that the network was fitted to, from which bounds are computed."""
        if vars(self).get("_fitted_as") != _network(self):
            self._forget(_BOUNDS)
        if "release_" not in vars(self):
            raise AttributeError("The network has no release: it is not fitted to one, or was changed since.")
        found: Release | tuple[Release, ...] = vars(self)["release_"]
        return found

    @release_.setter
    def release_(self, release: Release | tuple[Release, ...]) -> None:
        read_by = tuple(one.schema for one in several(release))
        vars(self).update(release_=release, _fitted_as=_network(self), _read_by=read_by)

    def _follow_parameters(self) -> None:
        """Remove the guarantee if a table differs from those that it was given for."""
        held = vars(self).get("guarantee_", NO_GUARANTEE)
        if held.mechanism != "none" and not _tables(self) <= vars(self)["_promised"]:
            self._forget()
            warnings.warn(
                "The network has no guarantee any more: parameters that do not come from its fit may tell anything "
                "about the records. Fit it again, or attach_release, if they follow from that release.",
                stacklevel=callers_level(),
            )

    def _provenance_of(self, network: Network) -> None:
        """Copy the provenance of a network with the same parameters and structure."""
        carry_learned(network, self)
        held = vars(network)
        vars(self).update({name: held[name] for name in (*_PROMISE, *_BOUNDS, *_READING) if name in held})
        if "guarantee_" in held and "_promised" not in held:  # set on a plain network by the file's reader
            self.guarantee_ = held["guarantee_"]

    def _note_states(self, found: Mapping[str, Guarantee]) -> None:
        """Keep what finding the states of variables in records cost."""
        graph: Any = self
        for node, data in graph.nodes(data=True):
            if node in found:
                data[GRAPH_KEY] = learned(data.get(GRAPH_KEY), found[node])

    def _forget(self, names: tuple[str, ...] = (*_PROMISE, *_BOUNDS)) -> dict[str, Any]:
        """Remove these attributes, by default the guarantee and the release, and return them."""
        return {name: vars(self).pop(name) for name in names if name in vars(self)}


def _tables(network: Network) -> Tables:
    """Return the contents of a network's tables in a form that can be compared."""
    tables = network.get_cpds() if hasattr(network, "get_cpds") else network.get_factors()
    return frozenset(
        (tuple((v, tuple(table.state_names[v])) for v in table.variables), np.asarray(table.values).tobytes())
        for table in tables
    )


def _network(network: Network) -> tuple[dict[str, frozenset[str]], Tables]:
    return {node: frozenset(network.adj[node]) for node in network.nodes()}, _tables(network)
