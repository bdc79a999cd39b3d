"""Two cores share large junction trees: branches that do not touch each other are worked on at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pgmpy_dp._threads import cores

# Trees with fewer cells take a few milliseconds, and a thread would take its part of them.
_LEAST_CELLS = 2**19
# Dividing is worth it while the longer way through the divided tree has at most this share of all cells.
_WORTH = 0.8
# At most so many cliques go to the part in which the branches meet.
_LARGEST_TOP = 64

Part = TypeVar("Part")
Result = TypeVar("Result")


def divide(cells: Sequence[int], parents: Sequence[int | None]) -> tuple[list[int], list[int]]:
    """Find two sets of whole branches of a rooted forest, about equally large, whose parents are in neither.

    Starting from the roots, the largest branch is opened again and again: its root goes to the top part, where the
    branches meet, and its children become branches. The division with the shortest way, the top and the larger set, is
    taken. It depends on the tree alone, never on the machine.

    Parameters
    ----------
    cells : sequence of int
        Of each clique.
    parents : sequence of int or None
        Parents come before their children.

    Returns
    -------
    tuple of two lists of int
        Cliques of each set, in the order given; both are empty where dividing does not pay.

    Examples
    --------
    >>> divide([2**18, 2**19, 2**19, 2**10], [None, 0, 0, 1])
    ([1, 3], [2])
    >>> divide([8, 8], [None, 0])
    ([], [])
    """
    total = sum(cells)
    if total < _LEAST_CELLS:
        return [], []
    children: list[list[int]] = [[] for _ in cells]
    for number, parent in enumerate(parents):
        if parent is not None:
            children[parent].append(number)
    weight = list(cells)
    for number in reversed(range(len(cells))):
        parent = parents[number]
        if parent is not None:
            weight[parent] += weight[number]
    open_branches = [number for number, parent in enumerate(parents) if parent is None]
    top, shortest = 0, _WORTH * total
    chosen: tuple[list[int], list[int]] = ([], [])
    for _ in range(min(_LARGEST_TOP, len(cells))):
        open_branches.sort(key=lambda number: (-weight[number], number))
        sets: tuple[list[int], list[int]] = ([], [])
        loads = [0, 0]
        for number in open_branches:
            lighter = loads.index(min(loads))
            sets[lighter].append(number)
            loads[lighter] += weight[number]
        if top + max(loads) < shortest:
            shortest, chosen = top + max(loads), sets
        largest = open_branches.pop(0)
        top += cells[largest]
        open_branches += children[largest]
        if not open_branches:
            break
    return _whole(chosen[0], children), _whole(chosen[1], children)


def _whole(roots: Iterable[int], children: Sequence[Sequence[int]]) -> list[int]:
    """Add to the roots all that is below them."""
    found, waiting = [], list(roots)
    while waiting:
        found.append(waiting.pop())
        waiting += children[found[-1]]
    return sorted(found)


def together(function: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """Call the function on each part, at the same time where there are cores; it must release the interpreter."""
    if len(parts) < 2 or cores() < 2:
        return [function(part) for part in parts]
    with ThreadPoolExecutor(1) as helper:
        other = helper.submit(function, parts[1])
        return [function(parts[0]), other.result()]
