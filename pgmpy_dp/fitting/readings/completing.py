"""Expected completion of records with latent variables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pgmpy_dp.inference import JunctionTree, Layout
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.schema import Clique


@dataclass(frozen=True)
class _Part:
    """What a record observes of a family: a table over its latent variables, at the place of the observed ones."""

    start: int  # offset of the family's table in the layout
    observed: tuple[tuple[int, int], ...]  # columns of the records and their strides
    cells: NDArray[np.int64]  # offsets of the latent configurations, in the order of the latent scope
    scope: int  # index of the latent scope; -1 if the family has no latent variable


class Completion:
    """Map from records of the observed variables to expected indicators of all families.

    Given a record, the latent variables form a model whose junction tree contains only latent variables: it is small,
    and the same for all records.

    Parameters
    ----------
    cardinalities : mapping of variable to int
        Of all variables.
    families : sequence of tuples of str
        Each a node followed by its parents.
    observed : sequence of str
        Columns of the records.

    Attributes
    ----------
    layout : Layout
        The concatenated tables of the families.

    Raises
    ------
    TreeTooLargeError
        If the latent variables' junction tree has more than `max_cells` cells.
    """

    def __init__(
        self,
        cardinalities: Mapping[str, int],
        families: Sequence[Clique],
        observed: Sequence[str],
        max_cells: float = math.inf,
    ) -> None:
        self.layout = Layout.of(cardinalities, families)
        column = {variable: number for number, variable in enumerate(observed)}
        latents = [variable for variable in cardinalities if variable not in column]
        hidden = [tuple(latent for latent in latents if latent in family) for family in families]
        scopes = [scope for scope in dict.fromkeys(hidden) if scope]
        self._tree = None
        if scopes:
            cards = {latent: cardinalities[latent] for latent in latents}
            self._tree = JunctionTree.build(cards, scopes, max_cells=max_cells)
        self._parts = []
        for start, family, shape, scope in zip(
            self.layout.offsets[:-1], families, self.layout.shapes, hidden, strict=True
        ):
            stride = {v: math.prod(shape[axis + 1 :]) for axis, v in enumerate(family)}
            cells = np.zeros(1, dtype=np.int64)
            for latent in scope:
                cells = (cells[:, None] + stride[latent] * np.arange(cardinalities[latent])).ravel()
            seen = tuple((column[v], stride[v]) for v in family if v in column)
            self._parts.append(_Part(int(start), seen, cells, scopes.index(scope) if scope else -1))

    def expected(self, records: NDArray[np.integer], log_rows: Vector) -> sparse.csr_array:
        """Compute the expected indicators of all families' cells, one row per record.

        Parameters
        ----------
        records : ndarray of shape (m, number of observed variables)
            State indices.
        log_rows : ndarray of shape (layout.size,)
            Log-potentials of the families' cells, such as expected log-probabilities.

        Returns
        -------
        scipy.sparse.csr_array of shape (m, layout.size)
            In every family's block the posterior of its latent variables, in the cells that match the record:
            non-negative with sum 1, hence of norm at most 1.
        """
        codes = np.asarray(records, dtype=np.int64)
        places = [self._places(part, codes) for part in self._parts]
        posterior = self._posterior(places, codes.shape[0], log_rows)
        values = [np.ones((codes.shape[0], 1)) if part.scope < 0 else posterior[part.scope] for part in self._parts]
        indices = np.concatenate(places, axis=1)
        ends = np.arange(codes.shape[0] + 1) * indices.shape[1]
        shape = (codes.shape[0], self.layout.size)
        return sparse.csr_array((np.concatenate(values, axis=1).ravel(), indices.ravel(), ends), shape=shape)

    def log_likelihood(self, records: NDArray[np.integer], log_rows: Vector) -> Vector:
        """Compute the log-probability of each record, if `log_rows` are logarithms of normalised CPDs."""
        codes = np.asarray(records, dtype=np.int64)
        places = [self._places(part, codes) for part in self._parts]
        constant = np.zeros(codes.shape[0])
        for part, place in zip(self._parts, places, strict=True):
            if part.scope < 0:
                constant += log_rows[place[:, 0]]
        if self._tree is None:
            return constant
        potentials = self._potentials(self._tree, places, codes.shape[0], log_rows)
        constant += [self._tree.calibrate(row).log_partition for row in potentials]
        return constant

    @staticmethod
    def _places(part: _Part, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        base = np.full(codes.shape[0], part.start)
        for column, stride in part.observed:
            base += codes[:, column] * stride
        return base[:, None] + part.cells

    def _potentials(
        self, tree: JunctionTree, places: Sequence[NDArray[np.int64]], count: int, log_rows: Vector
    ) -> Vector:
        potentials = np.zeros((count, tree.layout.size))
        for part, place in zip(self._parts, places, strict=True):
            if part.scope >= 0:
                start = tree.layout.offsets[part.scope]
                potentials[:, start : start + part.cells.size] += log_rows[place]
        return potentials

    def _posterior(self, places: Sequence[NDArray[np.int64]], count: int, log_rows: Vector) -> list[Vector]:
        """Compute the posterior marginals of every latent scope, one row per record."""
        if self._tree is None:
            return []
        marginals = self._potentials(self._tree, places, count, log_rows)
        for row in range(count):
            marginals[row] = self._tree.calibrate(marginals[row]).marginals
        return np.split(marginals, self._tree.layout.offsets[1:-1], axis=1)
