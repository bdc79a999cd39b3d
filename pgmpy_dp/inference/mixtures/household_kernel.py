"""Compiled exchanges of persons between households."""

from __future__ import annotations

from pgmpy_dp._compiled import compiled


@compiled
def _replaced(out, into, begin, end, place, weight, persons, excess, price):
    """Replace a person of a household by another, and return the change of the cost of pairs.

    Pairs of states are counted above the diagonal; on it are both orders of two persons with the same state.
    """
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


@compiled
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

    Parameters
    ----------
    persons : ndarray of int32, shape (persons, variables)
        Places of their states among the states of all variables, sorted by household; changed in place.
    owners : ndarray of int64, shape (persons,)
    starts : ndarray of int64, shape (households + 1,)
        Where the persons of each household begin.
    homes : ndarray of int32, shape (households, variables)
        Places of the households' states among theirs.
    weights : ndarray, shape (households,)
        Weight of each ordered pair of persons of a household.
    alike : ndarray of int64, shape (persons,)
        Persons, with those of households with equal values in sequence.
    first, size : ndarrays of int64, shape (persons,)
        Start in `alike` of the persons of households equal to a person's own, and their number.
    excess, links : ndarrays of shape (states, states)
        Weights of pairs of persons, and numbers of persons by a state of their household and one of their own, minus
        the expected ones; changed in place.
    price, link_price : ndarrays of the same shapes
        Price of the squares of these.
    tries : int
    generator : numpy.random.Generator

    Returns
    -------
    int
        Number of exchanges.
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
