"""What a release tells for an edge, against the same graph without it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pgmpy_dp.inference.tables.table import Table
from pgmpy_dp.release import NoisyMarginals
from pgmpy_dp.structure.climbing import Parents
from pgmpy_dp.structure.drawn_records import DrawnRecords


def support(
    release: NoisyMarginals, drawn: DrawnRecords, variables: Sequence[str], node: int, parents: Parents, parent: int
) -> float:
    """Compute by how much an edge lowers the squared residuals of a table that holds it, less its parameters there.

    Residuals are in units of the variance of noise and sampling. Without the edge, both ends are independent given what
    the table holds of the node's other parents. An edge that says nothing has no more than 0 on average; the table with
    the most counts.

    Parameters
    ----------
    release : NoisyMarginals
    drawn : DrawnRecords
        From the fitted graph.
    variables : sequence of str
        Their names, in the order of the numbers.
    node, parents, parent
        The family, and the edge's other end.

    Returns
    -------
    float
        Minus infinity if no table holds both.
    """
    best = -np.inf
    for clique, values in release.tables.items():
        if variables[node] not in clique or variables[parent] not in clique:
            continue
        scope = [node, parent, *(other for other in parents if other != parent and variables[other] in clique)]
        seen = Table(clique, values).margin([variables[number] for number in scope]).values
        noise = release.variances[clique] * values.size / seen.size
        expected = release.total * drawn.shares(scope) + 0.5
        apart = expected.sum(axis=0, keepdims=True) * expected.sum(axis=1, keepdims=True)
        apart = apart / expected.sum(axis=(0, 1), keepdims=True)
        without, given = (
            ((seen - apart) ** 2 / (noise + apart)).sum(),
            ((seen - expected) ** 2 / (noise + expected)).sum(),
        )
        parameters = (seen.shape[0] - 1) * (seen.shape[1] - 1) * (seen.size // (seen.shape[0] * seen.shape[1]))
        best = max(best, float(without - given) - parameters)
    return best
