"""A graph is climbed to: edges are added, removed and turned as long as a score of families rises."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Parents = tuple[int, ...]  # in ascending order
Score = Callable[[int, Parents], float]

_GAIN = 1e-6  # least rise of the score that counts
_MOST_STEPS = 10_000


def climb(
    score: Score,
    allowed: NDArray[np.bool_],
    required: Iterable[tuple[int, int]],
    max_indegree: int,
) -> list[Parents]:
    """Find a directed graph without circles at which no single change of an edge raises the score.

    The change that raises it most is made first, as in pgmpy's `HillClimbSearch`; gains are kept, and only those of
    the families that changed are computed again.

    Parameters
    ----------
    score : callable
        Of a node and its parents; a graph's score is the sum.
    allowed : ndarray of bool, shape (nodes, nodes)
        Whether there may be an edge from the row's node to the column's.
    required : iterable of pairs
        Edges that stay; the search starts from them.
    max_indegree : int

    Returns
    -------
    list of tuples of int
        The parents of each node.

    Examples
    --------
    >>> climb(lambda node, parents: float((node, parents) == (1, (0,))), ~np.eye(3, dtype=bool), [], 2)
    [(), (0,), ()]
    """
    nodes = len(allowed)
    parents: list[set[int]] = [set() for _ in range(nodes)]
    fixed = np.zeros((nodes, nodes), dtype=bool)
    for first, second in required:
        parents[second].add(first)
        fixed[first, second] = True
    kept: dict[tuple[int, Parents], float] = {}

    def of(node: int, own: set[int]) -> float:
        key = node, tuple(sorted(own))
        if key not in kept:
            kept[key] = score(*key)
        return kept[key]

    adding, removing = np.full((2, nodes, nodes), -np.inf)

    def renew(node: int) -> None:
        own, now = parents[node], of(node, parents[node])
        adding[:, node] = removing[:, node] = -np.inf
        for other in range(nodes):
            if other in own:
                if not fixed[other, node]:
                    removing[other, node] = of(node, own - {other}) - now
            elif allowed[other, node] and len(own) < max_indegree:
                adding[other, node] = of(node, own | {other}) - now

    for node in range(nodes):
        renew(node)
    for _ in range(_MOST_STEPS):
        reach = reachable(parents)
        first, second = _largest(np.where(reach.T, -np.inf, adding))
        best = adding[first, second] if not reach[second, first] else -np.inf
        changes = [(first, second)]
        removed = _largest(removing)
        if removing[removed] > best:
            best, changes = removing[removed], [removed]
        for source, target in zip(*np.nonzero(np.isfinite(removing)), strict=True):
            full = len(parents[source]) >= max_indegree or not allowed[target, source]
            if full or any(reach[source, other] for other in parents[target] if other != source):
                continue
            turned = (
                removing[source, target] + of(source, parents[source] | {int(target)}) - of(source, parents[source])
            )
            if turned > best:
                best, changes = turned, [(int(source), int(target)), (int(target), int(source))]
        if not best > _GAIN:
            break
        for source, target in changes:
            parents[target] ^= {source}
            renew(target)
    return [tuple(sorted(own)) for own in parents]


def reachable(parents: Sequence[Iterable[int]]) -> NDArray[np.bool_]:
    """Tell which node leads to which, and each to itself.

    Examples
    --------
    >>> reachable([(), (0,), (1,)]).astype(int).tolist()
    [[1, 1, 1], [0, 1, 1], [0, 0, 1]]
    """
    reach = np.eye(len(parents), dtype=np.float32)
    for node, own in enumerate(parents):
        reach[list(own), node] = 1.0
    while True:
        further = np.minimum(reach @ reach, 1.0)
        if (further == reach).all():
            return reach > 0
        reach = further


def _largest(gains: NDArray[np.float64]) -> tuple[int, int]:
    row, column = np.unravel_index(int(gains.argmax()), gains.shape)
    return int(row), int(column)
