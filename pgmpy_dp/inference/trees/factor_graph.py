"""Loopy belief propagation, for networks whose junction tree does not fit in memory, and the choice between both."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from pgmpy_dp.inference.tables.table import Layout, Scope, Table, Variable, Vector
from pgmpy_dp.inference.trees.junction_tree import Calibration, JunctionTree, TreeTooLargeError

# Largest junction tree, in cells; it takes about 0.8 GB of tables and index maps.
MAX_TABLE_CELLS = 2**26

INFERENCE = ("auto", "junction_tree", "loopy")


def build_engine(
    cardinalities: Mapping[Variable, int], scopes: Iterable[Sequence[Variable]], inference: str = "auto"
) -> JunctionTree | FactorGraph:
    """Build a junction tree if its tables fit, else a factor graph for loopy belief propagation."""
    if inference not in INFERENCE:
        raise ValueError(f"inference is {inference!r}; choose one of {', '.join(INFERENCE)}")
    kept: list[Scope] = [tuple(scope) for scope in scopes]
    if inference != "loopy":
        try:
            return JunctionTree.build(cardinalities, kept, max_cells=MAX_TABLE_CELLS)
        except TreeTooLargeError as error:
            if inference == "junction_tree":
                raise
            warnings.warn(f"{error}: marginals are approximated by loopy belief propagation.", stacklevel=2)
    return FactorGraph.build(cardinalities, kept)


@dataclass(frozen=True)
class FactorGraph:
    """Factor graph for loopy sum-product: marginals and log Z are approximations (Bethe).

    They are exact on trees. With cycles the fixed point is a stationary point of the Bethe free energy (Yedidia,
    Freeman and Weiss 2005), need not be unique, and may not be reached; `Calibration.converged` says whether it was.
    """

    layout: Layout  # order of the log-potentials and of the marginals
    damping: float  # weight of the old message in the new one, in [0, 1)
    tolerance: float  # largest change of a message at which the iteration stops
    max_iter: int  # maximum number of sweeps over all factors
    edges: tuple[NDArray[np.int64], ...]
    repeats: ClassVar[float] = 1.0  # number of cliques that share each table of log-potentials

    @classmethod
    def build(
        cls,
        cardinalities: Mapping[Variable, int],
        scopes: Iterable[Sequence[Variable]],
        damping: float = 0.3,
        tolerance: float = 1e-9,
        max_iter: int = 1000,
    ) -> FactorGraph:
        """Lay out the messages.

        Examples
        --------
        >>> graph = FactorGraph.build({"a": 2, "b": 2}, [("a", "b")])
        >>> graph.calibrate(np.log([0.1, 0.2, 0.3, 0.4])).marginals.round(6)
        array([0.1, 0.2, 0.3, 0.4])
        """
        if not 0.0 <= damping < 1.0:
            raise ValueError(f"damping is {damping}; it must be at least 0 and below 1")
        layout = Layout.of(cardinalities, scopes)
        of_variable: dict[Variable, list[int]] = {}
        cards: list[int] = []
        strides: list[int] = []
        owner: list[Variable] = []
        first_edge = [0]
        for scope, shape in zip(layout.scopes, layout.shapes, strict=True):
            for axis, variable in enumerate(scope):
                of_variable.setdefault(variable, []).append(len(cards))
                owner.append(variable)
                cards.append(shape[axis])
                strides.append(math.prod(shape[axis + 1 :]))
            first_edge.append(len(cards))
        neighbours = [edge for variable in owner for edge in of_variable[variable]]
        first_neighbour = np.cumsum([0, *(len(of_variable[variable]) for variable in owner)])
        starts = np.cumsum([0, *cards])
        arrays = (first_edge, cards, strides, starts, neighbours, first_neighbour)
        return cls(layout, damping, tolerance, max_iter, tuple(np.array(a, dtype=np.int64) for a in arrays))

    def calibrate(self, potentials: Vector) -> Calibration:
        """Compute the Bethe log-partition function and beliefs; arguments as for `JunctionTree.calibrate`."""
        from pgmpy_dp.inference.trees import kernel

        layout = self.layout
        if potentials.shape != (layout.size,):
            raise ValueError(f"log-potentials have shape {potentials.shape}, not ({layout.size},)")
        if np.isnan(potentials).any() or np.isposinf(potentials).any():
            raise ValueError("log-potentials must not be NaN or plus infinity")
        potentials = np.array(potentials, dtype=np.float64)  # a strided or read-only array would be compiled for anew
        first_edge, cards, strides, starts, neighbours, first_neighbour = self.edges
        messages = np.repeat(-np.log(cards), cards)
        incoming, belief = np.empty_like(messages), np.empty(layout.size)
        change = math.inf
        for _ in range(self.max_iter):
            change = kernel.loopy_sweep(
                layout.offsets, first_edge, cards, strides, starts, neighbours, first_neighbour, potentials,
                self.damping, messages, incoming, belief,
            )  # fmt: skip
            if not change > self.tolerance:
                break
        if math.isnan(change):
            raise ValueError("loopy belief propagation found that the log-potentials forbid every configuration")
        np.exp(belief, out=belief)
        # Energy and entropy of the cliques, minus the variables' entropies that are counted too often.
        possible = belief > 0
        log_partition = float(belief[possible] @ potentials[possible] - xlogy(belief, belief).sum())
        last: dict[Variable, Vector] = {}
        degree: dict[Variable, int] = {}
        for scope, table in zip(self.layout.scopes, self.layout.split(belief), strict=True):
            for variable in scope:
                last[variable] = Table(scope, table).margin([variable]).values
                degree[variable] = degree.get(variable, 0) + 1
        for variable, states in self.layout.cardinalities.items():
            if variable in last:
                log_partition += (degree[variable] - 1) * float(xlogy(last[variable], last[variable]).sum())
            else:
                log_partition += math.log(states)
        return Calibration(log_partition, belief, messages, bool(change <= self.tolerance))
