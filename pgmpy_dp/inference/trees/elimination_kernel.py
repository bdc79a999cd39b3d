"""Compiled greedy elimination of a graph's nodes, for :mod:`pgmpy_dp.inference.trees.triangulation`."""

from __future__ import annotations

import numpy as np

from pgmpy_dp._compiled import called, compiled

MIN_FILL, WEIGHTED_MIN_FILL, MIN_WEIGHT = range(3)


@compiled
def eliminate(adjacent, cards, rule, factors, left, cliques, order, counts, cells):
    """Eliminate nodes, each with the least cost among those left, and return the cells of the maximal cliques.

    The graph and `left` are overwritten; `cliques` and `order` are written. Room is needed for five rows of counts.
    """
    fill, weight, sizes, follows, around = counts[0], counts[1], counts[2], counts[3], counts[4]
    nodes, total = cards.shape[0], 0.0
    for node in range(nodes):
        fill[node], weight[node], follows[node] = 0, 0, -1
        cells[node] = _cells(adjacent, cards, node)
        for other in range(nodes):
            if adjacent[node, other]:
                missing, states = _missing(adjacent, cards, node, other)
                fill[node] += missing
                weight[node] += states
        fill[node] //= 2  # each missing edge was counted from both ends
        weight[node] //= 2
    for step in range(order.shape[0]):
        chosen, cost, tie = nodes, np.inf, np.inf
        for node in range(nodes):
            if left[node]:
                own, other_own = float(fill[node]), cells[node]
                if rule == WEIGHTED_MIN_FILL:
                    own = float(weight[node])
                elif rule == MIN_WEIGHT:
                    own, other_own = cells[node], float(fill[node])
                if factors.shape[0] > 0:
                    own = (own + 0.5) * factors[node]
                if chosen == nodes or own < cost or (own == cost and other_own < tie):
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
        for before in range(step):
            earlier = order[before]
            if follows[earlier] < 0 and cliques[earlier, chosen]:
                follows[earlier] = chosen
                maximal = maximal and sizes[earlier] != sizes[chosen] + 1
        total += cells[chosen] if maximal else 0.0
        for i in range(number):
            for j in range(i + 1, number):
                one, other = around[i], around[j]
                if not adjacent[one, other]:
                    for third in range(nodes):
                        if adjacent[one, third] and adjacent[other, third]:
                            fill[third] -= 1
                            weight[third] -= cards[one] * cards[other]
                    adjacent[one, other] = adjacent[other, one] = True
                    for _ in range(2):
                        missing, states = _missing(adjacent, cards, one, other)
                        fill[one] += missing
                        weight[one] += states
                        one, other = other, one
        for i in range(number):
            missing, states = _missing(adjacent, cards, around[i], chosen)
            fill[around[i]] -= missing
            weight[around[i]] -= states
        for other in range(nodes):
            adjacent[chosen, other] = adjacent[other, chosen] = False
        for i in range(number):
            cells[around[i]] = _cells(adjacent, cards, around[i])
    return total


@called
def _missing(adjacent, cards, node, other):
    """Count the edges missing between a neighbour and the other neighbours of a node, and the products of states."""
    missing, states = -1, -cards[other]  # but for the neighbour itself
    for third in range(cards.shape[0]):
        if adjacent[node, third] and not adjacent[other, third]:
            missing += 1
            states += cards[third]
    return missing, cards[other] * states


@called
def _cells(adjacent, cards, node):
    """Multiply the states of a node and its neighbours."""
    cells = float(cards[node])
    for other in range(cards.shape[0]):
        if adjacent[node, other]:
            cells *= cards[other]
    return cells
