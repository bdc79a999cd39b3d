"""A guarantee holds for parameters that follow from a release, and bounds for a network that was fitted to it.

Many methods of pgmpy change a network, and numbers in its tables change without any. So it is not methods that are
watched: what the network holds is compared to what it held when the promise was made.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from pgmpy_dp.observed.factors import Network
from pgmpy_dp.release import Guarantee, Release

# A network and its copies hold under these names what was promised, what bounds come from, and what both were for.
_PROMISE = ("guarantee_", "_promised")
# What values of evidence are read by stays when a network is changed: it is public.
_READING = ("_read_by",)
_BOUNDS = ("release_", "_fitted_as", "_posterior", "_drawn", "_check", "_tried", "_warned")

Tables = frozenset[Any]

NO_GUARANTEE = Guarantee(math.inf, 0.0, None, "add_remove", "none", private=False)


class Provenance:
    """A fitted network knows where its parameters come from.

    Structure is public. Tables that are taken away leave others that still follow from the release; a table that the
    caller brings may come from anywhere, and takes the guarantee away. Any change takes the release away, from which
    the bounds of answers are drawn.
    """

    @property
    def guarantee_(self) -> Guarantee:
        """Return what holds for the records behind the parameters.

        An estimator that promises nothing, such as pgmpy's own, leaves one by the mechanism "none".
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
        """Say what is promised, or why nothing is."""
        self._follow_parameters()
        if "guarantee_" in vars(self):
            return str(vars(self)["guarantee_"])
        return f"no guarantee: it {'holds parameters of other origin' if _tables(self) else 'is not fitted'}"

    @property
    def release_(self) -> Release | tuple[Release, ...]:
        """Return what the network was fitted to, and what the bounds of its answers come from."""
        if vars(self).get("_fitted_as") != _network(self):
            self._forget(_BOUNDS)
        if "release_" not in vars(self):
            raise AttributeError("The network has no release: it is not fitted to one, or was changed since.")
        found: Release | tuple[Release, ...] = vars(self)["release_"]
        return found

    @release_.setter
    def release_(self, release: Release | tuple[Release, ...]) -> None:
        read_by = tuple(one.schema for one in (release if isinstance(release, tuple) else (release,)))
        vars(self).update(release_=release, _fitted_as=_network(self), _read_by=read_by)

    def _follow_parameters(self) -> None:
        """Take the guarantee away if one of the tables was not there when it was given."""
        held = vars(self).get("guarantee_", NO_GUARANTEE)
        if held.mechanism != "none" and not _tables(self) <= vars(self)["_promised"]:
            self._forget()
            warnings.warn(
                "The network has no guarantee any more: parameters that do not come from its fit may tell anything "
                "about the records. Fit it again, or attach_release, if they follow from that release.",
                stacklevel=3,
            )

    def _provenance_of(self, network: Network) -> None:
        """Take over what is known of a network with the same parameters and structure."""
        held = vars(network)
        vars(self).update({name: held[name] for name in (*_PROMISE, *_BOUNDS, *_READING) if name in held})
        if "guarantee_" in held and "_promised" not in held:  # it is noted on a plain network by the file's reader
            self.guarantee_ = held["guarantee_"]

    def _forget(self, names: tuple[str, ...] = (*_PROMISE, *_BOUNDS)) -> dict[str, Any]:
        """Drop what was promised and derived, and return it."""
        return {name: vars(self).pop(name) for name in names if name in vars(self)}


def _tables(network: Network) -> Tables:
    """Take all that the tables of a network say, as something that can be compared."""
    tables = network.get_cpds() if hasattr(network, "get_cpds") else network.get_factors()
    return frozenset(
        (tuple((v, tuple(table.state_names[v])) for v in table.variables), np.asarray(table.values).tobytes())
        for table in tables
    )


def _network(network: Network) -> tuple[dict[str, frozenset[str]], Tables]:
    return {node: frozenset(network.adj[node]) for node in network.nodes()}, _tables(network)
