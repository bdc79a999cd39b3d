"""Division of a large junction tree into separate branches that two cores process at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pgmpy_dp._threads import cores

# Least cells of a tree to divide: smaller ones take a few milliseconds, of which starting a thread is a large part.
_LEAST_CELLS = 2**19
# Largest share of all cells on the longer path through the divided tree for which dividing pays.
_WORTH = 0.8
# Most cliques in the part where the branches meet.
_LARGEST_TOP = 64

Part = TypeVar("Part")
Result = TypeVar("Result")


def divide(cells: Sequence[int], parents: Sequence[int | None]) -> tuple[list[int], list[int]]:
    """Find two sets of whole branches of a rooted forest, of about equal size, whose parents are in neither.

    Starting from the roots, the largest branch is opened repeatedly: its root goes to the top part, where the branches
    meet, and its children become branches. The division with the shortest path (the top and the larger set) is
    returned. It depends only on the tree, never on the machine.

    Parameters
    ----------
    cells : sequence of int
        Number of cells of each clique.
    parents : sequence of int or None
        Parents come before their children.

    Returns
    -------
    tuple of two lists of int
        Cliques of each set, in the given order; both are empty if dividing does not pay.

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
    """Return the roots with all their descendants."""
    found, waiting = [], list(roots)
    while waiting:
        found.append(waiting.pop())
        waiting += children[found[-1]]
    return sorted(found)


def together(function: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """Call the function on each part, in parallel if there are cores; it must release the interpreter lock."""
    if len(parts) < 2 or cores() < 2:
        return [function(part) for part in parts]
    with ThreadPoolExecutor(1) as helper:
        other = helper.submit(function, parts[1])
        return [function(parts[0]), other.result()]
