"""How far a fitted Bayesian network is from another is measured as Chowdhury, Rekatsinas and Jha (2020) do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pgmpy.base import DAG

from pgmpy_dp.fitting.factors import log_linear
from pgmpy_dp.inference import JunctionTree, Maximisation
from pgmpy_dp.inference.engine import MAX_TABLE_CELLS
from pgmpy_dp.inference.layout import Vector

# Fitted probabilities below this are raised to it in divergences: many are zero.
FLOOR = 1e-6

Evidence = Mapping[str, Any]


@dataclass(frozen=True)
class QueryErrors:
    """Mean errors of distributions.

    Attributes
    ----------
    l1 : float
        Sum of absolute differences.
    divergence : float
        KL(reference || fitted) in nats, fitted probabilities raised to a millionth.
    distances : tuple of float
        The L1 error of each distribution.
    """

    l1: float
    divergence: float
    distances: tuple[float, ...]


def parameter_errors(reference: DAG, fitted: DAG) -> QueryErrors:
    """Compare all rows of all CPDs.

    Parameters
    ----------
    reference, fitted : DiscreteBayesianNetwork
        Of one structure.

    Examples
    --------
    >>> from pgmpy.factors.discrete import TabularCPD
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> one, other = DiscreteBayesianNetwork(), DiscreteBayesianNetwork()
    >>> for network, share in ((one, 0.5), (other, 0.25)):
    ...     network.add_node("a")
    ...     network.add_cpds(TabularCPD("a", 2, [[share], [1 - share]]))
    >>> round(parameter_errors(one, other).l1, 6)
    0.5
    """
    layout, logs, states = log_linear(reference)
    other_layout, other_logs, _ = log_linear(fitted, states)
    others = other_layout.tables(other_logs)
    pairs = []
    for scope, table in layout.tables(logs).items():
        held = next(clique for clique in others if clique[0] == scope[0])
        other = others[held].transpose([held.index(variable) for variable in scope])
        pairs += [
            (np.exp(row), np.exp(own))
            for row, own in zip(table.reshape(len(table), -1).T, other.reshape(len(table), -1).T, strict=True)
        ]
    return _errors(pairs)


def marginal_errors(reference: DAG, fitted: DAG, variables: Sequence[Sequence[str]]) -> QueryErrors:
    """Compare the joint distributions of sets of variables."""
    answers = [_Answers(network, log_linear(reference)[2], variables) for network in (reference, fitted)]
    return _errors([(answers[0].joint(asked), answers[1].joint(asked)) for asked in variables])


def conditional_errors(reference: DAG, fitted: DAG, queries: Sequence[tuple[str, Evidence]]) -> QueryErrors:
    """Compare distributions of one variable given others: each query has the variable and the evidence."""
    scopes = [(asked, *given) for asked, given in queries]
    states = log_linear(reference)[2]
    answers = [_Answers(network, states, scopes) for network in (reference, fitted)]
    pairs = []
    for (_, given), scope in zip(queries, scopes, strict=True):
        places = tuple(states[variable].index(state) for variable, state in given.items())
        columns = [found.joint(scope)[(slice(None), *places)] for found in answers]
        pairs.append(tuple(column / max(column.sum(), 1e-300) for column in columns))
    return _errors(pairs)


def map_agreement(reference: DAG, fitted: DAG, queries: Sequence[tuple[Sequence[str], Evidence]]) -> float:
    """Compute the share of queries for the most probable states that both answer alike.

    Each query has the variables that are asked for, up to all, and the evidence.
    """
    layout, logs, states = log_linear(reference)
    other_layout, other_logs, _ = log_linear(fitted, states)
    agreed = 0
    for asked, given in queries:
        places = {variable: states[variable].index(state) for variable, state in given.items()}
        one, other = (
            Maximisation.plan(own, list(asked), places).most_probable(potentials)
            for own, potentials in ((layout, logs), (other_layout, other_logs))
        )
        agreed += one == other
    return agreed / len(queries)


class _Answers:
    """Joint distributions of sets of variables of a network, its states in a given order."""

    def __init__(self, network: DAG, states: Mapping[str, Sequence[Any]], variables: Sequence[Sequence[str]]) -> None:
        layout, logs, _ = log_linear(network, states)
        self.trees: dict[tuple[str, ...], Vector] = {}
        for asked in variables:  # one tree a set: one for all would be large
            scope = tuple(asked)
            tree = JunctionTree.build(layout.cardinalities, layout.scopes, [scope], MAX_TABLE_CELLS)
            self.trees[scope] = tree.marginal(tree.calibrate(logs), scope)

    def joint(self, asked: Sequence[str]) -> Vector:
        return self.trees[tuple(asked)]


def _errors(pairs: Sequence[tuple[Vector, ...]]) -> QueryErrors:
    distances = tuple(float(np.abs(p - q).sum()) for p, q in pairs)
    divergences = [float((p[p > 0] * np.log(p[p > 0] / np.maximum(q[p > 0], FLOOR))).sum()) for p, q in pairs]
    return QueryErrors(float(np.mean(distances)), float(np.mean(divergences)), distances)
