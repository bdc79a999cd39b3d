"""Structure and sizes, both public, decide which tables to measure and how they share the budget.

A table of c cells measured with a share e of epsilon has noise of expected absolute size about c / e in all. For
given tables the sum over tables is least when shares go with the square root of the cells, and is then the square of

    S = sum over tables of sqrt(cells).

So tables are chosen to make S small: a family inside another is not measured, and overlapping tables are replaced by
their union where that lowers S. Such tables say little of whether the network is right; for that, pairs of variables
outside the families are measured with a share that is set aside.

How noisy such pairs may be is decided without the number of records, which may be private: whoever chose an epsilon
at which families are worth measuring can use pairs that are a few times noisier. A table of c cells has Laplace noise
in proportion to S / (share sqrt(c)), with the share and S those of all families or of all such pairs; Gaussian noise
goes with the root of that. So many pairs drown by Laplace noise where they do not by Gaussian noise.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations, count, islice

import networkx as nx
from pgmpy.models import DiscreteMarkovNetwork

from pgmpy_dp.inference import JunctionTree
from pgmpy_dp.observed.factors import Network, families, markov_scopes
from pgmpy_dp.privacy.checks import choice, number
from pgmpy_dp.release.observations import joined_pairs, maximal
from pgmpy_dp.schema import Clique, Schema

# The share of the budget that goes to such pairs.
CHECK = 0.15
# At most so many pairs are measured to test a network, or as many as it has variables.
_MOST_PAIRS = 75
# A table that stands for pairs has at most so many times their cells: with Laplace noise pairs have the less noise the
# fewer tables there are, with Gaussian noise they would have more in larger ones. It grows from one of so many pairs.
_GROWTH, _STARTS = 2, 10
# With so few joint states, tables that test may hold families: any tree is small.
_FEW_CELLS = 2**13
# The noise of a table that tests is at most so many times that of a family with as many cells, unless the tables hold
# fewer pairs than bounds need to learn from. On census records (the benchmark real_coverage.py) bounds by more and
# noisier tables hold the records' answers less often, and answers are farther off.
_NOISIEST, _FEWEST_PAIRS = 6.0, 3


def plan_measurements(
    network: Network, schema: Schema, check: float = CHECK, mechanism: str = "laplace"
) -> tuple[tuple[Clique, ...], list[float]]:
    """Choose what to measure for a network, and in which shares of the budget.

    Decided from the structure and the sizes alone, so it costs no privacy. Use it to measure once and fit often.

    Parameters
    ----------
    network : pgmpy DAG, DiscreteBayesianNetwork or PrivateMarkovNetwork
    schema : Schema
    check : float
        This share of the budget, at most 0.9, goes to pairs of variables that the network does not join. From them
        `check_fit` sees missing edges, and bounds of answers learn how far the records are from the network. With 0
        there are none, and bounds hold only if the network is right.
    mechanism : {"laplace", "gaussian", "gaussian_block"}
        The noise that the tables will have. Where pairs are many, Gaussian noise allows for more of them: with Laplace
        noise as many are measured, the nearest first, as are not much noisier than families.

    Returns
    -------
    cliques : tuple of tuples of str
        For a Bayesian network its families, merged where that lowers the noise; for a Markov network its edges and
        isolated nodes. Then the pairs of `check`.
    weights : list of float
        For `PrivateDataset.measure`.

    Examples
    --------
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> schema = Schema(dict.fromkeys(["smoke", "lung"], ["yes", "no"]))
    >>> plan_measurements(DiscreteBayesianNetwork([("smoke", "lung")]), schema)
    ((('lung', 'smoke'),), [2.0])
    """
    number(most=0.9)("check", check)
    choice("laplace", "gaussian", "gaussian_block")("mechanism", mechanism)
    if not isinstance(schema, Schema) or not hasattr(network, "nodes"):
        raise TypeError(
            "plan_measurements takes a network and a schema, in this order, got "
            f"{type(network).__name__} and {type(schema).__name__}."
        )
    schema.require([tuple(network.nodes())])
    if isinstance(network, DiscreteMarkovNetwork):
        cliques = markov_scopes(network)
    else:
        cliques = merged_cliques(schema, families(network))
    weights = shares(schema, cliques)
    odds = check / (1.0 - check) * sum(weights)
    room = odds * _NOISIEST ** (1 if mechanism == "laplace" else 2)
    outside = _pairs_outside(network, schema, cliques, room) if check else ()
    if not outside:
        return cliques, weights
    own = shares(schema, outside)
    scale = odds / sum(own)
    return (*cliques, *outside), [*weights, *(scale * weight for weight in own)]


def shares(schema: Schema, cliques: Sequence[Clique], power: float = 0.5) -> list[float]:
    """Weigh tables in the budget by a power of their cells."""
    return [float(schema.cells(clique)) ** power for clique in cliques]


def _pairs_outside(network: Network, schema: Schema, cliques: Sequence[Clique], room: float) -> tuple[Clique, ...]:
    """Put pairs that no table holds and no edge joins into tables: what nothing joins first, then near and small pairs.

    Tables are those that stand for most such pairs for the root of their cells, one after the other, until these roots
    add up to more than there is room for. None holds two variables that the network joins, so that it says nothing of a
    family.
    """
    neighbours: nx.Graph = nx.Graph()
    neighbours.add_nodes_from(network.nodes())
    scopes = markov_scopes(network) if isinstance(network, DiscreteMarkovNetwork) else families(network)
    neighbours.add_edges_from(pair for scope in scopes for pair in combinations(scope, 2))
    joined = joined_pairs([*cliques, *scopes])
    distances = dict(nx.all_pairs_shortest_path_length(neighbours))
    pairs = [pair for pair in combinations(network.nodes(), 2) if frozenset(pair) not in joined]
    cards = schema.cardinalities()
    pairs.sort(key=lambda pair: (distances[pair[0]].get(pair[1], 0), cards[pair[0]] * cards[pair[1]]))
    left = nx.Graph(pairs[: max(_MOST_PAIRS, len(neighbours))])
    if schema.cells(tuple(neighbours)) <= _FEW_CELLS:
        neighbours.remove_edges_from(list(neighbours.edges()))
    tables: list[Clique] = []
    wanted = left.size()
    while left.size():
        starts = islice((pair for pair in pairs if left.has_edge(*pair)), _STARTS)
        _, table = max((_grown(pair, left, neighbours, schema) for pair in starts), key=lambda found: found[0])
        room -= math.sqrt(schema.cells(table))
        if room < 0 and wanted - left.size() >= _FEWEST_PAIRS:
            break
        tables.append(table)
        left.remove_edges_from(combinations(table, 2))
    return tuple(tables)


def _grown(pair: Clique, left: nx.Graph, neighbours: nx.Graph, schema: Schema) -> tuple[float, Clique]:
    """Add variables to a pair while its table stands for more of the pairs that are left, for the root of its cells.

    Returns
    -------
    worth : float
        Such pairs for the root of its cells.
    table : tuple of str
    """
    worth, table, pairs, cells = 1.0 / math.sqrt(schema.cells(pair)), pair, 1, schema.cells(pair)
    while True:
        best = worth, table, pairs, cells
        for variable in dict.fromkeys(new for held in table for new in left.adj[held] if new not in table):
            if not neighbours.adj[variable].keys().isdisjoint(table):
                continue
            new = [(variable, held) for held in table if left.has_edge(variable, held)]
            more, size, covered = (*table, variable), pairs + len(new), cells + sum(map(schema.cells, new))
            gained = size / math.sqrt(schema.cells(more))
            if gained > best[0] + 1e-9 and schema.cells(more) <= _GROWTH * covered:
                best = gained, more, size, covered
        if best[1] == table:
            return worth, table
        worth, table, pairs, cells = best


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
