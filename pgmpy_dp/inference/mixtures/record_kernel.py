"""Compiled passes for drawing records evenly, and for exchanges of persons between households."""

from __future__ import annotations

import numpy as np

from pgmpy_dp._compiled import called, compiled


@compiled
def even_counts(totals, table, carry, counts, behind):
    """Assign integer numbers of records to every component's cells.

    A component's cells get their expected numbers, rounded up or down so that they sum to the component's total; cells
    are rounded up if they are farthest below their expectation in the components processed before. `behind` is room.
    """
    cells = table.shape[1]
    for k in range(totals.shape[0]):
        left = totals[k]
        for s in range(cells):
            expected = totals[k] * table[k, s]
            counts[k, s] = int(np.floor(expected + 1e-9))
            rest = expected - counts[k, s]
            carry[s] += rest
            left -= counts[k, s]
            behind[s] = carry[s] if rest > 1e-9 else -np.inf
        for _ in range(left):
            maximum = 0
            for s in range(cells):
                maximum = s if behind[s] > behind[maximum] else maximum
            counts[k, maximum] += 1
            carry[maximum] -= 1.0
            behind[maximum] = -np.inf


@compiled
def swap_within_components(records, strata, starts, blocks, owners, excess, price, sweeps, share, generator):
    """Exchange two records' values of a block wherever that brings counts of pairs closer to their expectations.

    Both records belong to one component, so every component's counts within single blocks do not change. Records are
    sorted by component and have places of states among those of all variables; `excess`, records minus expected ones of
    each pair of states by stratum, has `price` for its square; a single state is a pair with itself. Both change in
    place; exchanges are counted.
    """
    made, size = 0, records.shape[1]
    for _ in range(sweeps):
        for k in range(starts.shape[0] - 1):
            begin, many = starts[k], starts[k + 1] - starts[k]
            for i in range(begin, starts[k + 1] if many > 1 else begin):
                for number in range(blocks.shape[0]):
                    if share < 1.0 and generator.random() >= share:
                        continue
                    j = begin + int(generator.random() * many)
                    s, t = strata[i], strata[j]
                    gain = 0.0
                    for exchanging in range(2):  # what it would gain, and then the exchange if it gains
                        if exchanging == 1 and gain >= -1e-6:
                            break
                        for place in range(blocks.shape[1]):
                            p = blocks[number, place]
                            if p < 0:
                                break
                            a, b = records[i, p], records[j, p]
                            if a == b and s == t:
                                continue
                            for v in range(size):
                                c, e = records[i, v], records[j, v]
                                x, y = c, e
                                if owners[v] == number:  # moves too: between strata, and each pair once
                                    if v > p or s == t or (a == b and c == e):
                                        continue
                                    x, y = e, c
                                elif a == b:
                                    continue
                                if exchanging == 0:  # without a branch, which could not be predicted
                                    gain += (c != e or s != t) * (
                                        price[s, a, c] * (1 - 2 * excess[s, a, c])
                                        + price[s, b, x] * (1 + 2 * excess[s, b, x])
                                        + price[t, b, e] * (1 - 2 * excess[t, b, e])
                                        + price[t, a, y] * (1 + 2 * excess[t, a, y])
                                    )
                                    continue
                                if c == e and s == t:
                                    continue
                                excess[s, a, c] -= 1
                                excess[s, b, x] += 1
                                excess[t, b, e] -= 1
                                excess[t, a, y] += 1
                                if v != p:
                                    excess[s, c, a] -= 1
                                    excess[s, x, b] += 1
                                    excess[t, e, b] -= 1
                                    excess[t, y, a] += 1
                    if gain < -1e-6:
                        for place in range(blocks.shape[1]):
                            p = blocks[number, place]
                            if p >= 0:
                                records[i, p], records[j, p] = records[j, p], records[i, p]
                        made += 1
    return made


@called
def _replaced(out, into, begin, end, place, weight, persons, excess, price):
    """Replace a person of a household by another, and return the change of the cost of pairs."""
    cost = 0.0
    for m in range(begin, end):
        if m == place:
            continue
        for u in range(out.shape[0]):
            if out[u] == into[u]:
                continue
            for v in range(out.shape[0]):
                other = persons[m, v]
                for step in range(2):
                    one = out[u] if step == 0 else into[u]
                    change = -weight if step == 0 else weight
                    low, high = (one, other) if one < other else (other, one)
                    if low == high:
                        change *= 2.0
                    cost += price[low, high] * change * (2.0 * excess[low, high] + change)
                    excess[low, high] += change
    return cost


@called
def _linked(one, other, home, away, links, price):
    """Return the change of the cost of links if two persons of different households were exchanged."""
    cost = 0.0
    for h in range(home.shape[0]):
        a, b = home[h], away[h]
        if a == b:
            continue
        for u in range(one.shape[0]):
            x, y = one[u], other[u]
            if x != y:
                cost += (
                    price[a, x] * (1 - 2 * links[a, x]) + price[a, y] * (1 + 2 * links[a, y])
                    + price[b, y] * (1 - 2 * links[b, y]) + price[b, x] * (1 + 2 * links[b, x])
                )  # fmt: skip
    return cost


@compiled
def exchange_persons(
    persons, owners, starts, homes, weights, alike, first, size, excess, price, links, link_price, tries, generator
):
    """Exchange two persons wherever that brings pairs of persons, and links, closer to their expectations.

    Persons are sorted by household, and those of `alike` by equal households, of which `first` and `size` are the
    places. `excess` has weights of pairs, and `links` numbers of persons by a state of their household and their own,
    minus the expected ones, with prices for the squares. Exchanges are counted.
    """
    made, count = 0, persons.shape[0]
    for _ in range(tries):
        i = int(generator.random() * count)
        if generator.random() < 0.5:
            j = alike[first[i] + int(generator.random() * size[i])]
        else:
            j = int(generator.random() * count)
        a, b = owners[i], owners[j]
        if a == b:
            continue
        one, other = persons[i].copy(), persons[j].copy()
        linked = _linked(one, other, homes[a], homes[b], links, link_price)
        cost = linked + _replaced(one, other, starts[a], starts[a + 1], i, weights[a], persons, excess, price)
        cost += _replaced(other, one, starts[b], starts[b + 1], j, weights[b], persons, excess, price)
        if cost < -1e-9:
            persons[i], persons[j] = other, one
            for h in range(homes.shape[1]):
                for u in range(one.shape[0]):
                    links[homes[a, h], one[u]] -= 1
                    links[homes[a, h], other[u]] += 1
                    links[homes[b, h], other[u]] -= 1
                    links[homes[b, h], one[u]] += 1
            made += 1
        else:
            _replaced(other, one, starts[a], starts[a + 1], i, weights[a], persons, excess, price)
            _replaced(one, other, starts[b], starts[b + 1], j, weights[b], persons, excess, price)
    return made
