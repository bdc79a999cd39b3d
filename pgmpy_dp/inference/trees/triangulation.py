"""Triangulation of a graph by greedy elimination, and its junction tree.

The order determines the size of the tables and so the cost of all later steps. Several greedy rules are run (Kjaerulff
1990, "Triangulation of graphs: algorithms giving small total state space"); if tables are large, the best result is
improved by local search, which eliminates again with some nodes' priorities changed at random.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import combinations

import networkx as nx

Neighbours = dict[int, set[int]]
Rule = Callable[["_Elimination", int], tuple[int, int]]


class _Elimination:
    """A graph under elimination; what the rules need to know of every node is kept up to date.

    Attributes
    ----------
    fill : dict
        Edges that eliminating the node would add.
    weight : dict
        Sum over these of the product of the two cardinalities.
    cells : dict
        Number of cells of the table of the node and its neighbours, exact however large.
    """

    def __init__(self, graph: Neighbours, cards: Sequence[int]) -> None:
        self.neighbours = {node: set(others) for node, others in graph.items()}
        self.cards = cards
        self.fill: dict[int, int] = {}
        self.weight: dict[int, int] = {}
        self.cells: dict[int, int] = {}
        # Sums of the neighbours' cardinalities: missing edges are counted as all pairs minus the present ones.
        self.around = {node: sum(cards[other] for other in others) for node, others in self.neighbours.items()}
        for node, others in self.neighbours.items():
            pairs, weight = len(others) * (len(others) - 1), self.around[node] ** 2
            for other in others:
                common = others & self.neighbours[other]
                pairs -= len(common)
                weight -= cards[other] * (cards[other] + sum(cards[third] for third in common))
            self.fill[node], self.weight[node] = pairs // 2, weight // 2
            self.cells[node] = cards[node] * math.prod(cards[other] for other in others)

    def _change(self, node: int, other: int, sign: int) -> None:
        """Start (1) or stop (-1) counting edges missing between a neighbour and the other neighbours of a node."""
        common = self.neighbours[node] & self.neighbours[other]
        self.fill[node] += sign * (len(self.neighbours[node]) - 1 - len(common))
        rest = self.around[node] - self.cards[other] - sum(self.cards[third] for third in common)
        self.weight[node] += sign * self.cards[other] * rest

    def _connect(self, first: int, second: int) -> set[int]:
        common = self.neighbours[first] & self.neighbours[second]
        for third in common:
            self.fill[third] -= 1
            self.weight[third] -= self.cards[first] * self.cards[second]
        for node, other in ((first, second), (second, first)):
            self.neighbours[node].add(other)
            self.around[node] += self.cards[other]
            self.cells[node] *= self.cards[other]
        self._change(first, second, 1)
        self._change(second, first, 1)
        return common

    def eliminate(self, node: int) -> set[int]:
        """Connect the node's neighbours and remove the node; return the nodes whose counts changed."""
        changed = set(self.neighbours[node])
        for first, second in combinations(sorted(self.neighbours[node]), 2):
            if second not in self.neighbours[first]:
                changed |= self._connect(first, second)
        for other in self.neighbours[node]:
            self._change(other, node, -1)
            self.neighbours[other].discard(node)
            self.around[other] -= self.cards[node]
            self.cells[other] //= self.cards[node]
        del self.neighbours[node]
        changed.discard(node)
        return changed


def min_fill(state: _Elimination, node: int) -> tuple[int, int]:
    """Prefer the fewest new edges; break ties by table cells."""
    return state.fill[node], state.cells[node]


def weighted_min_fill(state: _Elimination, node: int) -> tuple[int, int]:
    """Prefer the least sum over new edges of the product of cardinalities; break ties by table cells."""
    return state.weight[node], state.cells[node]


def min_weight(state: _Elimination, node: int) -> tuple[int, int]:
    """Prefer the smallest new table; break ties by new edges."""
    return state.cells[node], state.fill[node]


RULES: tuple[Rule, ...] = (min_fill, weighted_min_fill, min_weight)

# Most variables of cliques that the local search looks at in all (about a second), table cells per such look for which
# searching pays (a look takes as long as 40 cells in all evaluations of one fit), and most orders tried.
_MOST_LOOKS, _CELLS_PER_LOOK, _MOST_ORDERS = 100_000, 40, 300
# Standard deviation of the log of a priority's change, and shares of the nodes that are changed.
_SPREAD, _SHARES = 0.5, (1.0, 0.1, 0.1)

Steps = list[tuple[int, frozenset[int]]]


def eliminate(graph: Neighbours, cards: Sequence[int], rule: Rule, factors: Sequence[float] | None = None) -> Steps:
    """Eliminate all nodes greedily by a rule; `factors` multiply each node's cost."""
    state = _Elimination(graph, cards)

    def priority(node: int) -> tuple[float, int]:
        first, second = rule(state, node)
        return (first, second) if factors is None else ((first + 0.5) * factors[node], second)

    cost = {node: priority(node) for node in graph}
    queue = [(*cost[node], node) for node in graph]
    heapq.heapify(queue)
    steps = []
    while queue:
        *entry, node = heapq.heappop(queue)
        if node not in state.neighbours or tuple(entry) != cost[node]:
            continue
        steps.append((node, frozenset(state.neighbours[node] | {node})))
        for other in sorted(state.eliminate(node)):
            fresh = priority(other)
            if fresh != cost[other]:
                cost[other] = fresh
                heapq.heappush(queue, (*fresh, other))
    return steps


def moral_graph(count: int, scopes: Iterable[Sequence[int]]) -> dict[int, set[int]]:
    """Return the graph on 0..count-1 in which every scope is a clique."""
    graph: dict[int, set[int]] = {node: set() for node in range(count)}
    for scope in scopes:
        for first, second in combinations(scope, 2):
            graph[first].add(second)
            graph[second].add(first)
    return graph


def total_cells(cliques: Iterable[Iterable[int]], cards: Sequence[int]) -> int:
    """Return the sum of the table sizes, exact however large."""
    return sum(math.prod(cards[node] for node in clique) for clique in cliques)


def best_order(graph: Neighbours, cards: Sequence[int]) -> Steps:
    """Find the elimination order with the fewest cells in its maximal cliques among all that are tried.

    The random numbers have a fixed seed, so the same graph gives the same order. Results are cached, since a fit, its
    test and its bounds ask for the same graphs.
    """
    return list(_best_order(tuple((node, tuple(sorted(graph[node]))) for node in sorted(graph)), tuple(cards)))


@lru_cache(maxsize=64)
def _best_order(edges: tuple[tuple[int, tuple[int, ...]], ...], cards: tuple[int, ...]) -> Steps:
    graph = {node: set(others) for node, others in edges}

    def cells(steps: Steps) -> int:
        return total_cells(maximal_cliques(steps), cards)

    found = [(rule, eliminate(graph, cards, rule)) for rule in RULES]
    rule, steps = min(found, key=lambda candidate: cells(candidate[1]))
    best, logs = cells(steps), [0.0] * len(cards)
    looks = sum(len(clique) for _, clique in steps)
    orders = min(min(_MOST_LOOKS, best // _CELLS_PER_LOOK) // looks, _MOST_ORDERS)
    generator = random.Random(0)
    for number in range(orders):
        share = _SHARES[number % len(_SHARES)]
        tried = [generator.gauss(0.0, _SPREAD) if generator.random() < share else log for log in logs]
        other = RULES[generator.randrange(len(RULES))] if number % len(RULES) == 0 else rule
        order = eliminate(graph, cards, other, [math.exp(log) for log in tried])
        if (fresh := cells(order)) <= best:
            best, rule, steps, logs = fresh, other, order, tried
    return steps


def constrained_order(graph: Neighbours, cards: Sequence[int], first: Iterable[int]) -> Steps:
    """Eliminate the nodes `first` greedily by `weighted_min_fill`, then the others by `best_order`."""
    state, left = _Elimination(graph, cards), set(first)
    steps = []
    while left:
        node = min(left, key=lambda candidate: (weighted_min_fill(state, candidate), candidate))
        steps.append((node, frozenset(state.neighbours[node] | {node})))
        state.eliminate(node)
        left.discard(node)
    return steps + best_order(state.neighbours, cards) if state.neighbours else steps


def maximal_cliques(steps: Steps) -> list[frozenset[int]]:
    """List the cliques of an elimination that no other contains.

    A clique is contained in another if it is what that one leaves behind; it then follows as its parent.
    """
    position = {node: index for index, (node, _) in enumerate(steps)}
    left = {(min(rest, key=position.__getitem__), rest) for node, clique in steps if (rest := clique - {node})}
    return [clique for node, clique in steps if (node, clique) not in left]


def junction_tree(cards: Sequence[int], scopes: Sequence[Sequence[int]]) -> nx.Graph:
    """Build a junction tree (a forest over components) whose cliques cover every scope and every variable."""
    graph = moral_graph(len(cards), scopes)
    steps = best_order(graph, cards)
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
