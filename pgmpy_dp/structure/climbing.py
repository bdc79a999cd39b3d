"""Hill climbing: edges of a graph are added, removed and reversed while a score rises, subject to expert knowledge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.errors import SchemaError

Parents = tuple[int, ...]  # in ascending order
Score = Callable[[int, Parents], float]

_GAIN = 1e-6  # minimum gain of the score for which an edge is changed
_MAX_STEPS = 10_000
_SEED = 0
_RESTARTS, _MAX_PERTURBED = 100, 5  # number of restarts, and maximum number of nodes that lose their edges in one


@dataclass(frozen=True)
class Knowledge:
    """Allowed and required edges between variables, by index."""

    allowed: NDArray[np.bool_]  # from the row's variable to the column's
    required: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, expert: Any, variables: Sequence[str], max_indegree: int) -> Knowledge:
        """Read pgmpy's `ExpertKnowledge` without changing it, and refuse contradictions; None allows all edges."""
        position = {variable: number for number, variable in enumerate(variables)}
        allowed = ~np.eye(len(variables), dtype=bool)
        if expert is None:
            return cls(allowed, ())
        from pgmpy.causal_discovery import ExpertKnowledge  # imports pgmpy, which takes seconds

        if not isinstance(expert, ExpertKnowledge):
            raise TypeError(f"expert_knowledge must be pgmpy's ExpertKnowledge, got {type(expert).__name__}.")

        def numbers(edges: Any) -> list[tuple[int, int]]:
            for edge in edges:
                if unknown := [variable for variable in edge if variable not in position]:
                    raise SchemaError(f"An edge names {unknown[0]!r}, which is not a variable of the records.")
            return sorted((position[first], position[second]) for first, second in edges)

        if expert.search_space:
            within = np.zeros_like(allowed)
            within[tuple(np.transpose(numbers(expert.search_space)))] = True
            allowed &= within
        forbidden = numbers(expert.forbidden_edges)
        order = expert.temporal_ordering
        numbers([(variable, variable) for variable in order])
        forbidden += [(position[one], position[other]) for one in order for other in order if order[one] > order[other]]
        for edge in forbidden:
            allowed[edge] = False
        required = numbers(expert.required_edges)
        graph = nx.DiGraph(required)
        if not nx.is_directed_acyclic_graph(graph):
            raise ValueError("The required edges form a cycle.")
        for edge in required:
            named = " -> ".join(variables[number] for number in edge)
            if edge in forbidden:
                raise ValueError(f"The edge {named} is both required and forbidden.")
            if graph.in_degree(edge[1]) > max_indegree:
                raise ValueError(
                    f"More parents of {variables[edge[1]]!r} are required than the indegree allows, {max_indegree}."
                )
            allowed[edge] = True
        return cls(allowed, tuple(required))


def climb(
    score: Score,
    allowed: NDArray[np.bool_],
    required: Iterable[tuple[int, int]],
    max_indegree: int,
) -> list[Parents]:
    """Find an acyclic directed graph with a high score, which no change of one edge increases.

    The change that increases the score most is made first, as in pgmpy's `HillClimbSearch`. This often ends in a poor
    local maximum: a first edge between effects of a common cause stays. So some nodes, drawn at random, lose their
    edges, and the climb continues from there; if it ends higher, that graph is kept (iterated local search; Lourenço,
    Martin and Stützle 2003). The random choices are repeatable.
    """
    generator, known = np.random.default_rng(_SEED), dict[tuple[int, Parents], float]()

    def of(node: int, parents: Iterable[int]) -> float:
        key = node, tuple(sorted(parents))
        if key not in known:
            known[key] = score(*key)
        return known[key]

    best = _Graph(of, allowed, required, max_indegree)
    best.ascend()
    for _ in range(_RESTARTS):
        perturbed = best.perturbed(generator)
        perturbed.ascend()
        if perturbed.score() > best.score() + _GAIN:
            best = perturbed
    return [tuple(sorted(own)) for own in best.parents]


class _Graph:
    """A graph under search. The gain of every change of an edge is stored, and updated for families that change."""

    def __init__(
        self,
        of: Callable[[int, Iterable[int]], float],
        allowed: NDArray[np.bool_],
        required: Iterable[tuple[int, int]],
        max_indegree: int,
    ) -> None:
        self._of, self._allowed, self._max_indegree = of, allowed, max_indegree
        self.parents: list[set[int]] = [set() for _ in allowed]
        self._fixed = np.zeros(allowed.shape, dtype=bool)
        for first, second in required:
            self.parents[second].add(first)
            self._fixed[first, second] = True
        self._adding, self._removing = np.full((2, *allowed.shape), -np.inf)
        for node in range(len(allowed)):
            self._renew(node)

    def score(self) -> float:
        return sum(self._of(node, own) for node, own in enumerate(self.parents))

    def perturbed(self, generator: np.random.Generator) -> _Graph:
        """Copy the graph without the edges of some nodes, drawn at random, except the required ones."""
        perturbed, nodes = copy(self), len(self.parents)
        perturbed._adding, perturbed._removing = self._adding.copy(), self._removing.copy()
        some = min(int(generator.integers(1, _MAX_PERTURBED + 1)), nodes)
        alone = set(generator.choice(nodes, some, replace=False).tolist())
        perturbed.parents = [
            {parent for parent in own if self._fixed[parent, node] or not alone & {parent, node}}
            for node, own in enumerate(self.parents)
        ]
        for node, own in enumerate(perturbed.parents):
            if own != self.parents[node]:
                perturbed._renew(node)
        return perturbed

    def ascend(self) -> None:
        """Change edges until no single change increases the score."""
        for _ in range(_MAX_STEPS):
            gain, changes = self._best()
            if not gain > _GAIN:
                return
            for source, target in changes:
                self.parents[target] ^= {source}
                self._renew(target)

    def _best(self) -> tuple[float, list[tuple[int, int]]]:
        """Find the change of largest gain, as edges to add or remove (both, to reverse an edge)."""
        parents, adding, removing = self.parents, self._adding, self._removing
        reach = reachable(parents)
        first, second = _largest(np.where(reach.T, -np.inf, adding))
        best = adding[first, second] if not reach[second, first] else -np.inf
        changes = [(first, second)]
        removed = _largest(removing)
        if removing[removed] > best:
            best, changes = removing[removed], [removed]
        for source, target in zip(*np.nonzero(np.isfinite(removing)), strict=True):
            full = len(parents[source]) >= self._max_indegree or not self._allowed[target, source]
            if full or any(reach[source, other] for other in parents[target] if other != source):
                continue
            turned = (
                removing[source, target]
                + self._of(source, parents[source] | {int(target)})
                - self._of(source, parents[source])
            )
            if turned > best:
                best, changes = turned, [(int(source), int(target)), (int(target), int(source))]
        return float(best), changes

    def _renew(self, node: int) -> None:
        own = self.parents[node]
        now = self._of(node, own)
        self._adding[:, node] = self._removing[:, node] = -np.inf
        for other in range(len(self.parents)):
            if other in own:
                if not self._fixed[other, node]:
                    self._removing[other, node] = self._of(node, own - {other}) - now
            elif self._allowed[other, node] and len(own) < self._max_indegree:
                self._adding[other, node] = self._of(node, own | {other}) - now


def reachable(parents: Sequence[Iterable[int]]) -> NDArray[np.bool_]:
    """Return which nodes are reachable from each node, including itself."""
    count = len(parents)
    ancestors, size = [1 << node for node in range(count)], -(-count // 8)
    for node in TopologicalSorter(dict(enumerate(parents))).static_order():
        for parent in parents[node]:
            ancestors[node] |= ancestors[parent]
    packed = np.frombuffer(b"".join(bits.to_bytes(size, "little") for bits in ancestors), dtype=np.uint8)
    return np.unpackbits(packed.reshape(count, size), axis=1, count=count, bitorder="little").T > 0


def _largest(gains: NDArray[np.float64]) -> tuple[int, int]:
    row, column = np.unravel_index(int(gains.argmax()), gains.shape)
    return int(row), int(column)
