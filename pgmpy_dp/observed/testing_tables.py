"""Measured tables that only test a network: other tables already give all their information about its families.

They add little to a fit if the network is right, and bias its parameters if it is wrong, but they show how far its
answers are off. There may be too many of them for a junction tree.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence

import numpy as np

from pgmpy_dp.inference import JunctionTree
from pgmpy_dp.schema import Clique

# Limits on the junction tree with such tables: its cells, and its size relative to the tree without them. The larger
# limit applies.
_MOST_CELLS, _GROWTH = 2**17, 2


def telling(cliques: Sequence[Clique], scopes: Sequence[Clique]) -> list[Clique]:
    """Leave out the tables that only test the network.

    Of the tables that contain a family or factor, only the minimal ones are informative. A table is also
    kept if no other kept table covers its overlap with some family.
    """
    sets = [frozenset(clique) for clique in cliques]
    parts = [frozenset(scope) for scope in scopes]
    kept = {own for own in sets if any(own <= part for part in parts)}
    for part in parts:
        holders = {own for own in sets if len(part) > 1 and part <= own}
        kept |= {own for own in holders if not any(other < own for other in holders)}
    for own in sets:
        told = [own & part for part in parts if own & part]
        if any(not any(shared <= other for other in kept) for shared in told):
            kept.add(own)
    return [clique for clique, own in zip(cliques, sets, strict=True) if own in kept]


def affordable(
    cardinalities: Mapping[str, int], scopes: Sequence[Clique], cliques: Sequence[Clique], most: int = _MOST_CELLS
) -> list[Clique]:
    """Keep all informative tables, and the first tests of the network as long as its junction tree stays small.

    Parameters
    ----------
    cardinalities : mapping of variable to int
    scopes : sequence of tuples of str
        Families or factors.
    cliques : sequence of tuples of str
        Measured tables.
    most : int
        Largest number of cells of the junction tree; twice its cells without tests if that is more.
    """
    kept = set(map(frozenset, telling(cliques, scopes)))
    tests = [clique for clique in cliques if frozenset(clique) not in kept]

    def taken(count: int) -> list[Clique]:
        also = set(map(frozenset, tests[:count]))
        return [clique for clique in cliques if frozenset(clique) in kept or frozenset(clique) in also]

    def cells(count: int) -> int:
        return tree_cells(cardinalities, [*scopes, *taken(count)])

    if not tests:
        return list(cliques)
    most = max(most, _GROWTH * cells(0))
    if cells(len(tests)) <= most:
        return list(cliques)
    return taken(bisect_right(range(len(tests)), most, key=cells) - 1)


def first_tests(
    cardinalities: Mapping[str, int], scopes: Sequence[Clique], cliques: Sequence[Clique], most: int
) -> list[Clique]:
    """Keep all informative tables, and the first tests of the network, up to `most` cells of tables in total."""
    kept = set(map(frozenset, telling(cliques, scopes)))
    sizes = {clique: math.prod(cardinalities[variable] for variable in clique) for clique in cliques}
    left = most - sum(size for clique, size in sizes.items() if frozenset(clique) in kept)
    tests = [clique for clique in sizes if frozenset(clique) not in kept]
    held = set(tests[: bisect_right(list(itertools.accumulate(sizes[clique] for clique in tests)), left)])
    return [clique for clique in cliques if frozenset(clique) in kept or clique in held]


def tree_cells(cardinalities: Mapping[str, int], scopes: Sequence[Clique]) -> int:
    """Count the cells of the junction tree of the given scopes."""
    cliques = JunctionTree.cliques_of(cardinalities, scopes)
    return sum(int(np.prod([cardinalities[v] for v in clique], dtype=object)) for clique in cliques)
