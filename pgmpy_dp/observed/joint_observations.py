"""What several releases of the same records say of some variables stands in one system of linear observations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.inference.tables.layout import Layout, Vector
from pgmpy_dp.observed.testing_tables import only
from pgmpy_dp.release import Release
from pgmpy_dp.schema import Clique, Schema


@dataclass(frozen=True, eq=False)
class JointObservations:
    """Several releases of the same records observe y = A n + independent noise together.

    Attributes
    ----------
    releases : tuple of Release
    schema : Schema
        Of the model's variables.
    cliques : tuple of tuples of str
        Tables, end to end, whose counts are n; those of several releases may repeat.
    owners : ndarray of int, shape (observations,)
        The table that each observation is of; -1 for a number of records observed by itself.
    observed, variance : ndarrays of shape (observations,)
    gaussian : ndarray of bool, shape (observations,)
    matrix : sparse array of shape (observations, cells)
        A.
    total : float
        The number of records, or its estimate.
    total_variance : float
        Of that estimate; 0 where the number is public.
    """

    releases: tuple[Release, ...]
    schema: Schema
    cliques: tuple[Clique, ...]
    owners: NDArray[np.int64]
    observed: Vector
    variance: Vector
    gaussian: NDArray[np.bool_]
    matrix: Any
    total: float
    total_variance: float

    @classmethod
    def of(
        cls,
        releases: Sequence[Release],
        variables: Sequence[str],
        chosen: Callable[[Sequence[Clique]], Sequence[Clique]] = list,
    ) -> JointObservations:
        """Join what releases say of some variables, in those of their tables that are chosen.

        Raises
        ------
        SchemaError
            If they disagree on the states of a variable, or one of the variables is in none.
        """
        schema = agreed_schema(releases, variables)
        cliques: list[Clique] = []
        blocks, owners, observed, variance, gaussian = [], [], [], [], []
        parts = [release.observe([variable for variable in variables if variable in release.variables])
                 for release in releases]  # fmt: skip
        kept = chosen([clique for part in parts for clique in part.cliques])
        for seen in (only(part, kept, schema) for part in parts):
            sizes = [schema.cells(clique) for clique in seen.cliques]
            table = np.repeat(np.arange(len(sizes)), sizes) + len(cliques)
            matrix = sparse.csr_array(sparse.eye_array(sum(sizes)) if seen.matrix is None else seen.matrix)
            owners.append(table[matrix.indices[matrix.indptr[:-1]]])
            observed.append(seen.observed)
            variance.append(seen.variance)
            if seen.total is not None:  # the sum of any table
                sums = sparse.csr_array((np.arange(sum(sizes)) < sizes[0]).astype(np.float64)[None, :])
                matrix = sparse.csr_array(sparse.vstack([matrix, sums]))
                owners.append(np.array([-1]))
                observed.append(np.array([seen.total[0]]))
                variance.append(np.array([seen.total[1]]))
            gaussian.append(np.full(matrix.shape[0], seen.gaussian))
            blocks.append(matrix)
            cliques += seen.cliques
        total, total_variance = agreed_total(releases)
        return cls(
            tuple(releases),
            schema,
            tuple(cliques),
            np.concatenate(owners),
            np.concatenate(observed).astype(np.float64),
            np.concatenate(variance).astype(np.float64),
            np.concatenate(gaussian),
            sparse.csr_array(sparse.block_diag(blocks, format="csr")),
            total,
            total_variance,
        )

    @property
    def layout(self) -> Layout:
        """Return the layout of the tables."""
        return Layout.of(self.schema.cardinalities(), self.cliques)


def agreed_schema(releases: Sequence[Release], nodes: Sequence[str]) -> Schema:
    """Take the states of the network's variables, on which all releases must agree."""
    states: dict[str, Any] = {}
    for release in releases:
        for variable in nodes:
            own = release.schema.states.get(variable)
            if own is not None and states.setdefault(variable, own) != own:
                raise SchemaError(f"Variable {variable!r} has other states in one release than in another.")
    missing = [variable for variable in nodes if variable not in states]
    if missing:
        raise SchemaError(f"The model has variables that are in no release: {', '.join(map(repr, missing))}.")
    rules = [rule for release in releases for rule in release.schema.rules if set(rule.variables) <= set(nodes)]
    return Schema({variable: states[variable] for variable in nodes}, rules=rules)


def agreed_total(releases: Sequence[Release]) -> tuple[float, float]:
    """Find the number of records and its variance: public, or the estimates' mean weighted by their precision."""
    variances = np.array([release.total_variance for release in releases])
    totals = np.array([release.total for release in releases])
    if not variances.all():
        return float(totals[variances == 0][0]), 0.0
    return float(np.average(totals, weights=1 / variances)), float(1 / (1 / variances).sum())
