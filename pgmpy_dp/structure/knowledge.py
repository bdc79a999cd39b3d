"""Expert knowledge about the graph, applied before anything is paid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.errors import SchemaError


@dataclass(frozen=True)
class Knowledge:
    """Allowed and required edges between variables, by index.

    Attributes
    ----------
    allowed : ndarray of bool, shape (variables, variables)
        From the row's variable to the column's.
    required : tuple of pairs
    """

    allowed: NDArray[np.bool_]
    required: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, expert: Any, variables: Sequence[str], max_indegree: int) -> Knowledge:
        """Read pgmpy's `ExpertKnowledge` without changing it; None allows all edges.

        Raises TypeError if it is something else; SchemaError if it names an unknown variable; ValueError if the
        required edges form a cycle, are forbidden, or give a variable too many parents.
        """
        place = {variable: number for number, variable in enumerate(variables)}
        allowed = ~np.eye(len(variables), dtype=bool)
        if expert is None:
            return cls(allowed, ())
        from pgmpy.causal_discovery import ExpertKnowledge  # imports pgmpy, which takes seconds

        if not isinstance(expert, ExpertKnowledge):
            raise TypeError(f"expert_knowledge must be pgmpy's ExpertKnowledge, got {type(expert).__name__}.")

        def numbers(edges: Any) -> list[tuple[int, int]]:
            for edge in edges:
                if unknown := [variable for variable in edge if variable not in place]:
                    raise SchemaError(f"An edge names {unknown[0]!r}, which is not a variable of the records.")
            return sorted((place[first], place[second]) for first, second in edges)

        if expert.search_space:
            within = np.zeros_like(allowed)
            within[tuple(np.transpose(numbers(expert.search_space)))] = True
            allowed &= within
        forbidden = numbers(expert.forbidden_edges)
        order = expert.temporal_ordering
        numbers([(variable, variable) for variable in order])
        forbidden += [(place[one], place[other]) for one in order for other in order if order[one] > order[other]]
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
