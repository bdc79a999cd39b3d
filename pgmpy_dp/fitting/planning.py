"""Structure and sizes, both public, decide which tables to measure and how they share the budget.

A table of c cells measured with a share e of epsilon has noise of expected absolute size about c / e in all. For
given tables the sum over tables is least when shares go with the square root of the cells, and is then the square of

    S = sum over tables of sqrt(cells).

So tables are chosen to make S small: a family inside another is not measured, and overlapping tables are replaced by
their union where that lowers S.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import count

from pgmpy.models import DiscreteMarkovNetwork

from pgmpy_dp.fitting.factors import Network, families, markov_scopes
from pgmpy_dp.inference import JunctionTree
from pgmpy_dp.release.observations import maximal
from pgmpy_dp.schema import Clique, Schema


def plan_measurements(network: Network, schema: Schema) -> tuple[tuple[Clique, ...], list[float]]:
    """Choose what to measure for a network, and in which shares of the budget.

    Decided from the structure and the sizes alone, so it costs no privacy. `CollectiveEM` does this when it is handed
    records; use it to measure once and fit often.

    Parameters
    ----------
    network : pgmpy DAG, DiscreteBayesianNetwork or PrivateMarkovNetwork
    schema : Schema

    Returns
    -------
    cliques : tuple of tuples of str
        For a Bayesian network its families, merged where that lowers the noise; for a Markov network its edges and
        isolated nodes.
    weights : list of float
        For `PrivateDataset.measure`.

    Examples
    --------
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> schema = Schema(dict.fromkeys(["smoke", "lung"], ["yes", "no"]))
    >>> plan_measurements(DiscreteBayesianNetwork([("smoke", "lung")]), schema)
    ((('lung', 'smoke'),), [2.0])
    """
    schema.require([tuple(network.nodes())])
    if isinstance(network, DiscreteMarkovNetwork):
        cliques = markov_scopes(network)
    else:
        cliques = merged_cliques(schema, families(network))
    return cliques, shares(schema, cliques)


def shares(schema: Schema, cliques: Sequence[Clique], power: float = 0.5) -> list[float]:
    """Weigh tables in the budget by a power of their cells."""
    return [float(schema.cells(clique)) ** power for clique in cliques]


def merged_cliques(schema: Schema, scopes: Iterable[Clique]) -> tuple[Clique, ...]:
    """Choose tables whose S is small and which cover all families.

    Greedily from the maximal families: of all pairs of overlapping tables, the one is replaced by its union that, with
    all tables inside the union gone, lowers S most, until none lowers it. Should the junction tree of the unions more
    than double in cells, unions are confined to cliques of the families' own junction tree.

    Parameters
    ----------
    schema : Schema
    scopes : iterable of tuples of str
        The families.

    Returns
    -------
    tuple of tuples of str

    Examples
    --------
    >>> schema = Schema(dict.fromkeys("abc", ["x", "y"]))
    >>> merged_cliques(schema, [("a",), ("b", "a"), ("c", "b")])
    (('b', 'a', 'c'),)
    """
    start = maximal(scopes)
    used = {variable for table in start for variable in table}
    cards = {variable: schema.cardinality(variable) for variable in schema.variables if variable in used}
    own = JunctionTree.cliques_of(cards, start)
    merged = _merge(schema, start, None)
    if _cells(schema, JunctionTree.cliques_of(cards, merged)) > 2 * _cells(schema, own):
        return _merge(schema, start, [frozenset(clique) for clique in own])
    return merged


def _cells(schema: Schema, cliques: Iterable[Clique]) -> int:
    return sum(schema.cells(clique) for clique in cliques)


def _merge(schema: Schema, start: Sequence[Clique], bounds: Sequence[frozenset[str]] | None) -> tuple[Clique, ...]:
    tables = dict(enumerate(start))
    sets = {key: frozenset(table) for key, table in tables.items()}
    root = {key: math.sqrt(schema.cells(table)) for key, table in tables.items()}
    cards = schema.cardinalities()
    numbers = count(len(start))
    queue: list[tuple[float, int, int]] = []
    degree = Counter(variable for held in sets.values() for variable in held)
    # Every set is filed under its rarest variable: a search among all tables would be cubic where many share a parent.
    filed: dict[str, set[int]] = {variable: set() for variable in cards}
    bounding: dict[str, list[frozenset[str]]] = {variable: [] for variable in cards}
    for bound in bounds or ():
        for variable in bound:
            bounding[variable].append(bound)

    def rarest(held: frozenset[str]) -> str:
        return min(held, key=lambda variable: (degree[variable], variable))

    def inside(union: frozenset[str]) -> list[int]:
        return sorted(key for variable in union for key in filed[variable] if sets[key] <= union)

    def gain(union: frozenset[str]) -> float:
        return sum(root[key] for key in inside(union)) - math.sqrt(math.prod([cards[variable] for variable in union]))

    def push(first: int, second: int) -> None:
        if sets[first].isdisjoint(sets[second]):
            return
        union = sets[first] | sets[second]
        if bounds is not None and not any(union <= bound for bound in bounding[rarest(union)]):
            return
        better = gain(union)
        if better > 1e-9:
            heapq.heappush(queue, (-better, first, second))

    for key, held in sets.items():
        filed[rarest(held)].add(key)
    for second in tables:
        for first in range(second):
            push(first, second)
    while queue:
        claimed, first, second = heapq.heappop(queue)
        if first not in tables or second not in tables:
            continue
        union = tuple(dict.fromkeys(tables[first] + tables[second]))
        if gain(frozenset(union)) < -claimed - 1e-9:  # some of the tables inside it are gone
            push(first, second)
            continue
        for key in inside(frozenset(union)):
            filed[rarest(sets[key])].discard(key)
            del tables[key], sets[key], root[key]
        fresh = next(numbers)
        tables[fresh], sets[fresh], root[fresh] = union, frozenset(union), math.sqrt(schema.cells(union))
        filed[rarest(sets[fresh])].add(fresh)
        for key in [key for key in tables if key != fresh]:
            push(key, fresh)
    return tuple(tables.values())
