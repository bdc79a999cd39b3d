"""Choice between exact inference, if it fits in memory, and loopy inference."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence

from pgmpy_dp.inference.tables.layout import Scope, Variable
from pgmpy_dp.inference.trees.factor_graph import FactorGraph
from pgmpy_dp.inference.trees.junction_tree import JunctionTree, TreeTooLargeError

# Largest junction tree, in cells; it takes about 0.8 GB of tables and index maps.
MAX_TABLE_CELLS = 2**26

INFERENCE = ("auto", "junction_tree", "loopy")


def build_engine(
    cardinalities: Mapping[Variable, int],
    scopes: Iterable[Sequence[Variable]],
    inference: str = "auto",
    cover: Iterable[Sequence[Variable]] = (),
) -> JunctionTree | FactorGraph:
    """Build a junction tree if its tables fit, else a factor graph for loopy belief propagation.

    Parameters
    ----------
    cardinalities, scopes, cover
        As for `JunctionTree.build`.
    inference : {"auto", "junction_tree", "loopy"}
        "auto" uses the junction tree up to `MAX_TABLE_CELLS` cells, and beyond loopy propagation with a warning.

    Raises
    ------
    ValueError
        For another name, or (`TreeTooLargeError`) if "junction_tree" is requested and too large.
    """
    if inference not in INFERENCE:
        raise ValueError(f"inference is {inference!r}; choose one of {', '.join(INFERENCE)}")
    kept: list[Scope] = [tuple(scope) for scope in scopes]
    covered: list[Scope] = [tuple(scope) for scope in cover]
    if inference != "loopy":
        try:
            return JunctionTree.build(cardinalities, kept, covered, max_cells=MAX_TABLE_CELLS)
        except TreeTooLargeError as error:
            if inference == "junction_tree":
                raise
            warnings.warn(
                f"{error}: marginals are approximated by loopy belief propagation.",
                stacklevel=2,
            )
    have = {frozenset(scope) for scope in kept}
    extra = [scope for scope in covered if not any(set(scope) <= inside for inside in have)]
    return FactorGraph.build(cardinalities, kept + extra)
