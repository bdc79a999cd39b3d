"""Networks get exact inference where it fits in memory, else loopy inference."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence

from pgmpy_dp.inference.tables.layout import Scope, Variable
from pgmpy_dp.inference.trees.factor_graph import FactorGraph
from pgmpy_dp.inference.trees.junction_tree import JunctionTree, TreeTooLargeError

# So many cells take about 0.8 GB of tables and index maps.
MAX_TABLE_CELLS = 2**26

INFERENCE = ("auto", "junction_tree", "loopy")


def build_engine(
    cardinalities: Mapping[Variable, int],
    scopes: Iterable[Sequence[Variable]],
    inference: str = "auto",
    cover: Iterable[Sequence[Variable]] = (),
) -> JunctionTree | FactorGraph:
    """Build a junction tree where its tables fit, else loopy belief propagation.

    Parameters
    ----------
    cardinalities, scopes, cover
        As `JunctionTree.build`.
    inference : {"auto", "junction_tree", "loopy"}
        "auto" takes the junction tree up to `MAX_TABLE_CELLS` cells, then loopy propagation with a warning.

    Raises
    ------
    ValueError
        For another name, or (`TreeTooLargeError`) a junction tree asked for that is too large.
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
