"""Compiled greedy elimination of a graph's nodes, for :mod:`pgmpy_dp.inference.trees.triangulation`."""

from __future__ import annotations

import numpy as np

from pgmpy_dp._compiled import compiled

MIN_FILL, WEIGHTED_MIN_FILL, MIN_WEIGHT = range(3)


@compiled
def eliminate(adjacent, cards, rule, factors, first):
    """Eliminate nodes, each with the least cost among those that are left; the graph is overwritten."""
    nodes = cards.size
    left = first.copy()
    fill, weight, cells = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64), np.empty(nodes)
    for node in range(nodes):
        for other in range(nodes):
            if adjacent[node, other]:
                _count(adjacent, cards, node, other, 1, fill, weight)
        fill[node] //= 2  # each missing edge was counted from both ends
        weight[node] //= 2
        cells[node] = _cells(adjacent, cards, node)
    order, cliques = np.empty(first.sum(), np.int64), np.zeros((nodes, nodes), np.bool_)
    sizes, follows = np.zeros(nodes, np.int64), np.full(nodes, -1)
    total, around = 0.0, np.empty(nodes, np.int64)
    for step in range(order.size):
        chosen, cost, tie = -1, np.inf, np.inf
        for node in range(nodes):
            if left[node]:
                own, other_own = float(fill[node]), cells[node]
                if rule == WEIGHTED_MIN_FILL:
                    own = float(weight[node])
                elif rule == MIN_WEIGHT:
                    own, other_own = cells[node], float(fill[node])
                if factors.size:
                    own = (own + 0.5) * factors[node]
                if chosen < 0 or own < cost or (own == cost and other_own < tie):
                    chosen, cost, tie = node, own, other_own
        order[step], left[chosen], cliques[chosen, chosen] = chosen, False, True
        number = 0
        for other in range(nodes):
            if adjacent[chosen, other]:
                cliques[chosen, other] = True
                around[number] = other
                number += 1
        sizes[chosen] = number + 1
        # A clique is contained in another if it equals what elimination leaves of the other; it is then the other's
        # parent.
        maximal = True
        for earlier in order[:step]:
            if follows[earlier] < 0 and cliques[earlier, chosen]:
                follows[earlier] = chosen
                maximal = maximal and sizes[earlier] != sizes[chosen] + 1
        total += cells[chosen] if maximal else 0.0
        for i in range(number):
            for j in range(i + 1, number):
                if not adjacent[around[i], around[j]]:
                    _connect(adjacent, cards, around[i], around[j], fill, weight)
        for other in around[:number]:
            _count(adjacent, cards, other, chosen, -1, fill, weight)
        adjacent[chosen] = False
        adjacent[:, chosen] = False
        for other in around[:number]:
            cells[other] = _cells(adjacent, cards, other)
    return order, cliques, total


@compiled
def _count(adjacent, cards, node, other, sign, fill, weight):
    """Start (1) or stop (-1) counting edges missing between a neighbour and the other neighbours of a node."""
    missing, states = 0, 0
    for third in range(cards.size):
        if adjacent[node, third] and not adjacent[other, third]:
            missing += 1
            states += cards[third]
    fill[node] += sign * (missing - 1)  # but for the neighbour itself
    weight[node] += sign * cards[other] * (states - cards[other])


@compiled
def _connect(adjacent, cards, one, other, fill, weight):
    for third in range(cards.size):
        if adjacent[one, third] and adjacent[other, third]:
            fill[third] -= 1
            weight[third] -= cards[one] * cards[other]
    adjacent[one, other] = adjacent[other, one] = True
    _count(adjacent, cards, one, other, 1, fill, weight)
    _count(adjacent, cards, other, one, 1, fill, weight)


@compiled
def _cells(adjacent, cards, node):
    cells = float(cards[node])
    for other in range(cards.size):
        if adjacent[node, other]:
            cells *= cards[other]
    return cells
