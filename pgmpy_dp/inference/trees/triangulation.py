"""Triangulation of a graph by greedy elimination, and its junction tree.

The order determines the size of the tables and so the cost of all later steps. Several greedy rules are run (Kjaerulff
1990, "Triangulation of graphs: algorithms giving small total state space"); if tables are large, the best result is
improved by local search, which eliminates again with some nodes' priorities changed at random.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations

import networkx as nx
import numpy as np
from numpy.typing import NDArray

Graph = NDArray[np.bool_]  # whether two nodes are neighbours
Nodes = NDArray[np.bool_]  # whether a node is one of some
Steps = list[tuple[int, frozenset[int]]]  # nodes in elimination order, each with the clique of it and its neighbours

RULES = range(3)  # of the kernel

# Maximum number of variables of cliques that the local search visits, table cells per visit for which searching pays (a
# visit took as long as 40 cells in all evaluations of one fit before it was compiled), and maximum number of orders.
_MAX_LOOKS, _CELLS_PER_LOOK, _MAX_ORDERS = 100_000, 40, 300
# Standard deviation of the log of a priority's change, and shares of the nodes that are changed.
_SPREAD, _SHARES = 0.5, (1.0, 0.1, 0.1)


def moral_graph(count: int, scopes: Iterable[Sequence[int]]) -> Graph:
    """Return the graph on 0..count-1 in which every scope is a clique."""
    graph = np.zeros((count, count), dtype=bool)
    for scope in scopes:
        for pair in permutations(scope, 2):
            graph[pair] = True
    return graph


@dataclass(frozen=True)
class Elimination:
    """Nodes in the order of their elimination, the clique of each in its row, and the cells of the maximal cliques."""

    order: NDArray[np.int64]
    cliques: NDArray[np.bool_]
    cells: float

    @classmethod
    def of(
        cls, graph: Graph, cards: Sequence[int], rule: int, factors: Sequence[float] = (), nodes: Nodes | None = None
    ) -> Elimination:
        """Eliminate nodes greedily by a rule, and overwrite the graph; see the kernel for the arguments."""
        from pgmpy_dp.inference.trees.elimination_kernel import eliminate  # imports numba

        states, own = np.array(cards, dtype=np.int64), np.array(factors, dtype=np.float64)
        left = np.ones(len(states), dtype=bool) if nodes is None else nodes.copy()
        cliques, order = np.zeros(graph.shape, dtype=bool), np.empty(int(left.sum()), dtype=np.int64)
        counts, cells = np.empty((5, len(states)), dtype=np.int64), np.empty(len(states))
        return cls(order, cliques, eliminate(graph, states, rule, own, left, cliques, order, counts, cells))

    def steps(self) -> Steps:
        return [(int(node), frozenset(np.flatnonzero(self.cliques[node]).tolist())) for node in self.order]


def total_cells(cliques: Iterable[Iterable[int]], cards: Sequence[int]) -> int:
    """Return the sum of the table sizes, exact however large."""
    return sum(math.prod(cards[node] for node in clique) for clique in cliques)


def best_order(graph: Graph, cards: Sequence[int], nodes: Nodes | None = None, fits: int = 1) -> Steps:
    """Find the elimination order with the fewest cells among those tried, more of them for more evaluations."""
    some = np.ones(len(cards), dtype=bool) if nodes is None else nodes
    return list(_best_order(np.packbits(graph).tobytes(), some.tobytes(), tuple(cards), fits))


@lru_cache(maxsize=64)
def _best_order(packed: bytes, some: bytes, cards: tuple[int, ...], fits: int) -> Steps:
    count, nodes = len(cards), np.frombuffer(some, dtype=bool).copy()  # no other type of array to compile for
    bits = np.unpackbits(np.frombuffer(packed, dtype=np.uint8), count=count**2)
    graph = bits.reshape(count, count).astype(bool)
    if not nodes.any():
        return []
    results = [Elimination.of(graph.copy(), cards, rule, (), nodes) for rule in RULES]
    rule = min(RULES, key=lambda rule: results[rule].cells)
    best, logs = results[rule], [0.0] * count
    orders = min(int(min(_MAX_LOOKS, fits * best.cells // _CELLS_PER_LOOK)) // int(best.cliques.sum()), _MAX_ORDERS)
    generator = random.Random(0)
    for number in range(orders):
        share = _SHARES[number % len(_SHARES)]
        tried = [generator.gauss(0.0, _SPREAD) if generator.random() < share else log for log in logs]
        other = RULES[generator.randrange(len(RULES))] if number % len(RULES) == 0 else rule
        fresh = Elimination.of(graph.copy(), cards, other, [math.exp(log) for log in tried], nodes)
        if fresh.cells <= best.cells:
            best, rule, logs = fresh, other, tried
    return best.steps()


def constrained_order(graph: Graph, cards: Sequence[int], first: Iterable[int]) -> Steps:
    """Eliminate the nodes `first` greedily by weighted fill, then the others by `best_order`."""
    from pgmpy_dp.inference.trees.elimination_kernel import WEIGHTED_MIN_FILL

    chosen, left = np.zeros(len(cards), dtype=bool), graph.copy()
    chosen[list(first)] = True
    steps = Elimination.of(left, cards, WEIGHTED_MIN_FILL, (), chosen).steps()
    return steps + best_order(left, cards, ~chosen)


def junction_tree(cards: Sequence[int], scopes: Sequence[Sequence[int]], fits: int = 1) -> nx.Graph:
    """Build a junction tree (a forest over components) whose cliques cover every scope and every variable."""
    graph = moral_graph(len(cards), scopes)
    steps = best_order(graph, cards, fits=fits)
    position = {node: index for index, (node, _) in enumerate(steps)}
    tree = nx.Graph()
    # Backwards: the clique that a node leaves behind is attached to the clique of its next eliminated neighbour.
    holder: dict[int, frozenset[int]] = {}
    for node, clique in reversed(steps):
        rest = clique - {node}
        parent = holder[min(rest, key=position.__getitem__)] if rest else None
        if parent is not None and parent == rest:
            nx.relabel_nodes(tree, {parent: clique}, copy=False)
            holder.update({key: clique for key, value in holder.items() if value == parent})
        else:
            tree.add_node(clique)
            if parent is not None:
                tree.add_edge(clique, parent)
        holder[node] = clique
    return tree
