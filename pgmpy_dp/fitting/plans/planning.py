"""Choice of tables and of their shares of the budget, by structure and sizes alone, which are public.

A table of c cells that is measured with a share e of epsilon has a total expected absolute noise of about c / e. For
given tables the sum of these is least if shares are proportional to the square root of the cells; it is then the square
of

    S = sum over tables of sqrt(cells).

So tables are chosen to make S small: a family inside another is not measured, and overlapping tables are replaced by
their union if that lowers S. Such tables contain little evidence on whether the network is right; for that, pairs of
variables outside the families are measured with a share that is set aside.

How noisy these pairs may be is decided without the number of records, which may be private: if an epsilon was chosen at
which families are worth measuring, pairs that are a few times noisier are useful. A table of c cells has Laplace noise
proportional to S / (share sqrt(c)), with the share and S of all families or of all such pairs; Gaussian noise is
proportional to the root of that. So many pairs may be too noisy with Laplace noise, but not with Gaussian noise.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations, count, islice
from typing import Any

import networkx as nx
from pgmpy.models import DiscreteMarkovNetwork

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.fitting.plans.pairs import with_details
from pgmpy_dp.inference import JunctionTree
from pgmpy_dp.observed.factors import Network, families, markov_scopes
from pgmpy_dp.observed.observed import tree_cells
from pgmpy_dp.observed.reading import joined_pairs, maximal
from pgmpy_dp.privacy.checks import choice, exact_positive, number
from pgmpy_dp.privacy.guarantee import Learned, learned_graph
from pgmpy_dp.release import NoisyMarginals
from pgmpy_dp.schema import Clique, Hierarchy, Schema, State

# Share of the budget for such pairs.
CHECK = 0.15
# Maximum number of pairs measured to test a network, unless it has more variables.
_MAX_PAIRS = 75
# Maximum number of cells of a table that contains several pairs, as a multiple of the pairs' cells (with Laplace noise
# fewer tables have less noise; with Gaussian noise larger ones would have more), and the number of pairs from which
# such a table is grown.
_GROWTH, _STARTS = 2, 10
# Number of joint states up to which testing tables may contain families: any tree is small.
_FEW_CELLS = 2**13
# Largest noise of a testing table, as a multiple of that of a family with as many cells, unless the tables contain
# fewer pairs than bounds need to learn from. On census records (the benchmark real_coverage.py) more and noisier tables
# give bounds that cover the records' answers less often, and less accurate answers.
_NOISIEST, _FEWEST_PAIRS = 6.0, 3


def plan_measurements(
    network: Network, schema: Schema, check: float = CHECK, mechanism: str = "laplace"
) -> tuple[tuple[Clique, ...], list[float]]:
    """Choose what to measure for a network, and in which shares of the budget.

    The choice depends only on the structure and the numbers of states, so it costs no privacy. If these were learned
    from records, the plan states what that cost, and releases measured by it include the cost.

    Parameters
    ----------
    network : pgmpy DAG, DiscreteBayesianNetwork or PrivateMarkovNetwork
    schema : Schema
    check : float
        Share of the budget, at most 0.9, for pairs of variables that the network does not join. With them,
        `check_fit` detects missing edges, and bounds include the records' deviation from the network. With 0, bounds
        hold only if the network is correct.
    mechanism : {"laplace", "gaussian", "gaussian_block"}
        The noise that the tables will have. If there are many pairs, Gaussian noise allows for more of them: with
        Laplace noise the nearest pairs are measured, as long as they are not much noisier than families.

    Returns
    -------
    cliques : tuple of tuples of str
        For a Bayesian network its families, merged if that lowers the noise; for a Markov network its edges and
        isolated nodes. The pairs of `check` follow, and the finer histograms of binned numbers.
    weights : list of float
        For `PrivateDataset.measure`.

    Examples
    --------
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> schema = Schema(dict.fromkeys(["smoke", "lung"], ["yes", "no"]))
    >>> plan_measurements(DiscreteBayesianNetwork([("smoke", "lung")]), schema)
    ((('lung', 'smoke'),), [2.0])
    """
    number(maximum=0.9)("check", check)
    choice("laplace", "gaussian", "gaussian_block")("mechanism", mechanism)
    if not isinstance(schema, Schema) or not hasattr(network, "nodes"):
        raise TypeError(
            "plan_measurements takes a network and a schema, in this order, got "
            f"{type(network).__name__} and {type(schema).__name__}."
        )
    cliques, weights = plan_tables(network, schema, check, mechanism)
    return with_details(schema, Learned(cliques, learned_graph(network)), weights)


def plan_tables(
    network: Network, schema: Schema, check: float, mechanism: str = "laplace"
) -> tuple[tuple[Clique, ...], list[float]]:
    """Plan as :func:`plan_measurements`, without finer histograms."""
    schema.require([tuple(network.nodes())])
    if isinstance(network, DiscreteMarkovNetwork):
        cliques = markov_scopes(network)
    else:
        cliques = merged_cliques(schema, families(network))
    return tested(network, schema, cliques, shares(schema, cliques), check, mechanism)


def tested(
    network: Network, schema: Schema, cliques: Sequence[Clique], weights: Sequence[float], check: float, mechanism: str
) -> tuple[tuple[Clique, ...], list[float]]:
    """Add to the tables of a network, with a share of the budget, pairs of variables that it does not join."""
    odds = check / (1.0 - check) * sum(weights)
    room = odds * _NOISIEST ** (1 if mechanism == "laplace" else 2)
    outside = _pairs_outside(network, schema, cliques, room) if check else ()
    if not outside:
        return tuple(cliques), list(weights)
    pair_shares = shares(schema, outside)
    scale = odds / sum(pair_shares)
    return (*cliques, *outside), [*weights, *(scale * weight for weight in pair_shares)]


def shares(schema: Schema, cliques: Sequence[Clique], power: float = 0.5) -> list[float]:
    """Return weights of tables, proportional to a power of their cells."""
    return [float(schema.cells(clique)) ** power for clique in cliques]


def _pairs_outside(network: Network, schema: Schema, cliques: Sequence[Clique], room: float) -> tuple[Clique, ...]:
    """Combine pairs that no table contains and no edge joins into tables, those that stand for most pairs first."""
    neighbours: nx.Graph = nx.Graph()
    neighbours.add_nodes_from(network.nodes())
    scopes = markov_scopes(network) if isinstance(network, DiscreteMarkovNetwork) else families(network)
    neighbours.add_edges_from(pair for scope in scopes for pair in combinations(scope, 2))
    joined = joined_pairs([*cliques, *scopes])
    distances = dict(nx.all_pairs_shortest_path_length(neighbours))
    # Given its coarser variable, the finer one of a hierarchy is declared to be independent of all others.
    finer = {variable for variable, (coarser, _) in schema.structure.refined.items() if coarser in neighbours}
    nodes = [node for node in network.nodes() if node not in finer]
    pairs = [pair for pair in combinations(nodes, 2) if frozenset(pair) not in joined]
    cards = schema.cardinalities()
    pairs.sort(key=lambda pair: (distances[pair[0]].get(pair[1], 0), cards[pair[0]] * cards[pair[1]]))
    left = nx.Graph(pairs[: max(_MAX_PAIRS, len(neighbours))])
    if schema.cells(tuple(neighbours)) <= _FEW_CELLS:
        neighbours.remove_edges_from(list(neighbours.edges()))
    tables: list[Clique] = []
    wanted = left.size()
    while left.size():
        starts = islice((pair for pair in pairs if left.has_edge(*pair)), _STARTS)
        _, table = max((_grown(pair, left, neighbours, schema) for pair in starts), key=lambda result: result[0])
        room -= math.sqrt(schema.cells(table))
        if room < 0 and wanted - left.size() >= _FEWEST_PAIRS:
            break
        tables.append(table)
        left.remove_edges_from(combinations(table, 2))
    return tuple(tables)


def _grown(pair: Clique, left: nx.Graph, neighbours: nx.Graph, schema: Schema) -> tuple[float, Clique]:
    """Add variables to a pair while this raises the number of remaining pairs in its table, per root of its cells."""
    worth, table, pairs, cells = 1.0 / math.sqrt(schema.cells(pair)), pair, 1, schema.cells(pair)
    while True:
        best = worth, table, pairs, cells
        for variable in dict.fromkeys(new for member in table for new in left.adj[member] if new not in table):
            if not neighbours.adj[variable].keys().isdisjoint(table):
                continue
            new = [(variable, member) for member in table if left.has_edge(variable, member)]
            more, size, covered = (*table, variable), pairs + len(new), cells + sum(map(schema.cells, new))
            gained = size / math.sqrt(schema.cells(more))
            if gained > best[0] + 1e-9 and schema.cells(more) <= _GROWTH * covered:
                best = gained, more, size, covered
        if best[1] == table:
            return worth, table
        worth, table, pairs, cells = best


def merged_cliques(schema: Schema, scopes: Iterable[Clique]) -> tuple[Clique, ...]:
    """Choose tables with a small S that cover all families, by greedy unions that keep the junction tree small."""
    start = maximal(scopes)
    used = {variable for table in start for variable in table}
    cards = {variable: schema.cardinality(variable) for variable in schema.variables if variable in used}
    merged = _merge(schema, start, None)
    if tree_cells(cards, merged) > 2 * tree_cells(cards, start):
        return _merge(schema, start, [frozenset(clique) for clique in JunctionTree.cliques_of(cards, start)])
    return merged


def _merge(schema: Schema, start: Sequence[Clique], bounds: Sequence[frozenset[str]] | None) -> tuple[Clique, ...]:
    tables = dict(enumerate(start))
    sets = {key: frozenset(table) for key, table in tables.items()}
    root = {key: math.sqrt(schema.cells(table)) for key, table in tables.items()}
    cards = schema.cardinalities()
    numbers = count(len(start))
    queue: list[tuple[float, int, int]] = []
    degree = Counter(variable for clique in sets.values() for variable in clique)
    # Every set is indexed by its rarest variable: searching all tables would be cubic if many share a parent.
    filed: dict[str, set[int]] = {variable: set() for variable in cards}
    bounding: dict[str, list[frozenset[str]]] = {variable: [] for variable in cards}
    for bound in bounds or ():
        for variable in bound:
            bounding[variable].append(bound)

    def rarest(clique: frozenset[str]) -> str:
        return min(clique, key=lambda variable: (degree[variable], variable))

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

    for key, clique in sets.items():
        filed[rarest(clique)].add(key)
    for second in tables:
        for first in range(second):
            push(first, second)
    while queue:
        claimed, first, second = heapq.heappop(queue)
        if first not in tables or second not in tables:
            continue
        union = tuple(dict.fromkeys(tables[first] + tables[second]))
        if gain(frozenset(union)) < -claimed - 1e-9:  # some of the tables inside it were removed
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


def merge_rare_states(
    release: NoisyMarginals, variable: str, coarser: str, *, rest: State = "rare", deviations: float = 3.0
) -> Schema:
    """Define a coarser variable with the states that stand out from the noise, and one state for all others.

    The schema has a :class:`~pgmpy_dp.Hierarchy` between the two. Measure pairs under it, and fit both releases:
    answers and synthetic records have all states again, with the rare ones by their shares in the noisy table. All of
    this is post-processing (McKenna, Miklau and Sheldon 2021 merge counts below three standard deviations). Guarantees
    of what is measured under the schema include the release's, since its states depend on it; together both count it
    once.

    Parameters
    ----------
    release : NoisyMarginals
        With the table of the variable, or larger ones.
    variable : str
    coarser : str
        Name of the coarser variable, which the schema must not have.
    rest : state
        Its state for all rare ones.
    deviations : float
        A state is rare if its noisy count is below this number of standard deviations of the noise.

    Raises
    ------
    SchemaError
        If the schema has a variable of this name, or a frequent state is named like `rest`.
    ValueError
        If no table contains the variable, or the number of deviations is not positive.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> records = pd.DataFrame({"place": ["Ulm"] * 5000 + ["Bonn"] * 4000 + ["Kiel", "Trier"]})
    >>> budget = dp.PrivacyBudget(2.0)
    >>> data = dp.PrivateDataset(records, dp.Schema({"place": ["Bonn", "Kiel", "Trier", "Ulm"]}), budget)
    >>> places = data.measure([("place",)], epsilon=0.5)
    >>> schema = dp.merge_rare_states(places, "place", "area", deviations=50)
    >>> schema.states["area"]
    ('Bonn', 'Ulm', 'rare')
    """
    exact_positive("deviations", deviations)
    schema = release.schema
    if coarser in schema.states or coarser in schema.bounds:
        raise SchemaError(f"The schema has a variable {coarser!r}: give the coarser variable another name.")
    counts, variance = release.marginal((variable,))
    rare = counts < deviations * variance**0.5
    states = schema.states[variable]
    frequent = [state for state, is_rare in zip(states, rare.tolist(), strict=True) if not is_rare]
    merged = {state: rest if is_rare else state for state, is_rare in zip(states, rare.tolist(), strict=True)}
    declared: dict[str, Any] = dict(schema.declared)
    declared[coarser] = [*frequent, rest] if rare.any() else frequent
    rules = (*schema.rules, Hierarchy(variable, coarser, merged, column=False, found=release.guarantee))
    return schema.replace(variables=declared, rules=rules, found={**schema.found, coarser: release.guarantee})
