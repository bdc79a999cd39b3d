"""Triangulation by greedy elimination, and the junction tree it gives.

The order decides the size of the tables and so the cost of everything after it. Several greedy rules are run and
the order with the fewest table cells is kept (Kjaerulff 1990, "Triangulation of graphs: algorithms giving small
total state space").
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations

import networkx as nx

Neighbours = dict[int, set[int]]
Rule = Callable[[int, Neighbours, Sequence[int]], tuple[float, float]]


def _clique_cells(node: int, neighbours: Neighbours, cards: Sequence[int]) -> float:
    return math.log(cards[node]) + sum(math.log(cards[other]) for other in neighbours[node])


def _fill_edges(node: int, neighbours: Neighbours) -> Iterable[tuple[int, int]]:
    for first, second in combinations(sorted(neighbours[node]), 2):
        if second not in neighbours[first]:
            yield first, second


def min_fill(node: int, neighbours: Neighbours, cards: Sequence[int]) -> tuple[float, float]:
    """Fewest new edges; ties by table cells."""
    return sum(1 for _ in _fill_edges(node, neighbours)), _clique_cells(node, neighbours, cards)


def weighted_min_fill(node: int, neighbours: Neighbours, cards: Sequence[int]) -> tuple[float, float]:
    """Least sum over new edges of the product of cardinalities; ties by table cells."""
    weight = sum(cards[first] * cards[second] for first, second in _fill_edges(node, neighbours))
    return weight, _clique_cells(node, neighbours, cards)


def min_weight(node: int, neighbours: Neighbours, cards: Sequence[int]) -> tuple[float, float]:
    """Smallest new table; ties by new edges."""
    return _clique_cells(node, neighbours, cards), sum(1 for _ in _fill_edges(node, neighbours))


RULES: tuple[Rule, ...] = (min_fill, weighted_min_fill, min_weight)


def eliminate(graph: Mapping[int, set[int]], cards: Sequence[int], rule: Rule) -> list[tuple[int, frozenset[int]]]:
    """Eliminate all nodes greedily by a rule.

    Returns
    -------
    list of (node, clique)
        In elimination order; the clique is the node with its neighbours at that moment.
    """
    neighbours = {node: set(others) for node, others in graph.items()}
    cost = {node: rule(node, neighbours, cards) for node in neighbours}
    queue = [(*cost[node], node) for node in neighbours]
    heapq.heapify(queue)
    steps = []
    while queue:
        *entry, node = heapq.heappop(queue)
        if node not in neighbours or tuple(entry) != cost[node]:
            continue
        around = neighbours[node]
        steps.append((node, frozenset(around | {node})))
        # The costs of the neighbours change, and of every node that sees both ends of a new edge.
        changed = set(around)
        for first, second in list(_fill_edges(node, neighbours)):
            neighbours[first].add(second)
            neighbours[second].add(first)
            changed |= neighbours[first] & neighbours[second]
        for other in around:
            neighbours[other].discard(node)
        del neighbours[node]
        changed.discard(node)
        for other in sorted(changed):
            fresh = rule(other, neighbours, cards)
            if fresh != cost[other]:
                cost[other] = fresh
                heapq.heappush(queue, (*fresh, other))
    return steps


def moral_graph(count: int, scopes: Iterable[Sequence[int]]) -> dict[int, set[int]]:
    """The graph on 0..count-1 in which every scope is a clique."""
    graph: dict[int, set[int]] = {node: set() for node in range(count)}
    for scope in scopes:
        for first, second in combinations(scope, 2):
            graph[first].add(second)
            graph[second].add(first)
    return graph


def total_cells(cliques: Iterable[Iterable[int]], cards: Sequence[int]) -> int:
    """Sum of the table sizes, exact however large."""
    return sum(math.prod(cards[node] for node in clique) for clique in cliques)


def junction_tree(cards: Sequence[int], scopes: Sequence[Sequence[int]]) -> nx.Graph:
    """Junction tree (a forest over components) whose cliques cover every scope and every variable.

    Parameters
    ----------
    cards : sequence of int
        States of variables 0, 1, ...
    scopes : sequence of sequences of int
        Sets of variables that must lie together in a clique.

    Returns
    -------
    networkx.Graph
        Nodes are the maximal cliques (frozensets); neighbouring cliques meet in their separator, and the cliques that
        hold a variable are connected (running intersection).
    """
    graph = moral_graph(len(cards), scopes)
    orders = (eliminate(graph, cards, rule) for rule in RULES)
    steps = min(orders, key=lambda steps: total_cells((clique for _, clique in steps), cards))
    position = {node: index for index, (node, _) in enumerate(steps)}
    tree = nx.Graph()
    # Backwards: the clique that a node leaves behind hangs on the clique of its next eliminated neighbour.
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
