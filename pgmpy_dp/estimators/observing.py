"""What a release observes of a network's marginals: noisy linear functions of counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse

from pgmpy_dp.estimators.measuring import summed_table
from pgmpy_dp.estimators.networks import maximal, table_places
from pgmpy_dp.inference import Layout
from pgmpy_dp.inference.collective import CollectiveMarginals, Engine
from pgmpy_dp.inference.layout import Vector
from pgmpy_dp.inference.linear import LinearMap, linear_gaussian_dual, linear_laplace_dual
from pgmpy_dp.privacy.fourier import coefficient_weights, contrasts
from pgmpy_dp.release import NoisyCoefficients, NoisyMarginals, Release
from pgmpy_dp.schema import Clique, Schema

# About 0.8 GB for the matrix of all coefficients.
MAX_ENTRIES = 2**26
# Noise of less than half a record is taken for half a record: it is nothing beside sampling, and conditions better.
LEAST_VARIANCE = 0.25


@dataclass(frozen=True)
class Observations:
    """y = A n + independent noise, n being the counts of some tables.

    For noisy tables A is the identity. For noisy coefficients each row of A is a product of contrasts, and the noise on
    the counts themselves would be correlated: it is independent on A n only.

    Attributes
    ----------
    cliques : tuple of tuples of str
        Tables, end to end, whose counts are n.
    observed, variance : ndarrays of shape (observations,)
        y and the variance of its noise, in records and records squared.
    matrix, squares : sparse arrays of shape (observations, cells), or None for the identity
        A, and A with squared entries.
    gaussian : bool
        Gaussian noise, else Laplace.
    """

    cliques: tuple[Clique, ...]
    observed: Vector
    variance: Vector
    gaussian: bool
    matrix: Any = None
    squares: Any = None

    def expected(self, counts: Vector) -> Vector:
        """A n."""
        return counts if self.matrix is None else self.matrix @ counts

    def to_counts(self, values: Vector) -> Vector:
        """A' v: from derivatives by the observations to derivatives by the counts."""
        return values if self.matrix is None else self.matrix.T @ values

    def explain(self, engine: Engine, potentials: Vector, total: float, max_iter: int) -> CollectiveMarginals:
        """The most probable counts behind y, in a model with these log-potentials: the E-step by its dual."""
        scale = np.sqrt(np.maximum(self.variance, LEAST_VARIANCE) / (1 if self.gaussian else 2))
        dual = linear_gaussian_dual if self.gaussian else linear_laplace_dual
        function = LinearMap(table_places(engine.layout, self.cliques), self.matrix)
        return dual(engine, potentials, function, self.observed, scale, total, max_iter)

    def expected_squares(self, values: Vector) -> Vector:
        """A with squared entries, times values of the counts' shape."""
        return values if self.squares is None else self.squares @ values

    def squares_to_counts(self, values: Vector) -> Vector:
        """Transpose of `expected_squares`."""
        return values if self.squares is None else self.squares.T @ values


def observations(release: Release, variables: Sequence[str]) -> tuple[Schema, Observations]:
    """The model's part of the schema, and what the release says of the model's variables.

    Of a release of tables, those that hold some of the variables, summed over the others; of one of coefficients, those
    of all sets of the variables but the empty one, whose coefficient is the number of records. The noise of a sum is
    taken for noise of the mechanism's kind with the sum's variance. Of tables with the same variables there is the
    mean, weighted by their precision.

    Raises
    ------
    ValueError
        If the release says nothing of a variable, or its coefficients are too many to fit.
    """
    known = set(variables)
    parts = {clique: tuple(variable for variable in clique if variable in known) for clique in release.cliques}
    seen = {variable for part in parts.values() for variable in part}
    unseen = [variable for variable in variables if variable not in seen]
    if unseen:
        raise ValueError(
            f"The release says nothing of {', '.join(map(repr, unseen))}: no measured clique holds them. It holds "
            f"{', '.join(map(str, release.cliques))}."
        )
    schema = release.schema.select(variables)
    if isinstance(release, NoisyCoefficients):
        return schema, _of_coefficients(release, maximal(part for part in parts.values() if part))
    return schema, _of_tables(release, {clique: part for clique, part in parts.items() if part})


def _of_tables(release: NoisyMarginals, parts: Mapping[Clique, Clique]) -> Observations:
    names: dict[frozenset[str], Clique] = {}
    tables: dict[Clique, list[tuple[Vector, float]]] = {}
    for clique, part in parts.items():
        name = names.setdefault(frozenset(part), part)
        tables.setdefault(name, []).append(summed_table(release, clique, name))
    mean = [same[0] if len(same) == 1 else _weighted(same) for same in tables.values()]
    schema = release.schema
    layout = Layout.of({v: schema.cardinality(v) for v in schema.variables}, list(tables))
    observed, variance = layout.flatten(table for table, _ in mean), layout.per_cell([noise for _, noise in mean])
    return Observations(tuple(tables), observed, variance, release.guarantee.mechanism == "gaussian")


def _weighted(same: Sequence[tuple[Vector, float]]) -> tuple[Vector, float]:
    """The mean of noisy tables of the same counts, weighted by precision, and its variance."""
    tables, variances = (list(part) for part in zip(*same, strict=True))
    precisions = 1.0 / np.maximum(variances, LEAST_VARIANCE)
    table: Vector = np.average(tables, axis=0, weights=precisions)
    return table, float(1.0 / precisions.sum())


def _of_coefficients(release: NoisyCoefficients, measured: tuple[Clique, ...]) -> Observations:
    """Coefficients with contrasts of mean square 1, each from the smallest clique that holds its set."""
    schema = release.schema
    place = {variable: number for number, variable in enumerate(schema.variables)}
    holder: dict[Clique, Clique] = {}
    for clique in sorted(measured, key=schema.cells):
        varied = sorted((v for v in clique if schema.cardinality(v) > 1), key=place.__getitem__)
        for size in range(1, len(varied) + 1):
            for subset in combinations(varied, size):
                holder.setdefault(subset, clique)
    functions = {v: sparse.csr_array(contrasts(schema.cardinality(v)).scaled) for clique in measured for v in clique}

    def rows(subset: Clique, clique: Clique) -> list[Any]:
        return [functions[v][1:] if v in subset else functions[v][:1] for v in clique]

    # Python's integers: the number of entries may not fit 64 bits.
    entries = sum(reduce(lambda n, part: n * int(part.nnz), rows(s, c), 1) for s, c in holder.items())
    if entries > MAX_ENTRIES:
        raise ValueError(
            f"The coefficients of the release are sums of {entries:,} table cells in all, more than {MAX_ENTRIES:,}: "
            "use PrivateBayesianEstimator, or measure smaller cliques."
        )
    blocks: dict[Clique, list[Any]] = {clique: [] for clique in measured}
    observed: dict[Clique, list[Vector]] = {clique: [] for clique in measured}
    variance: dict[Clique, list[Vector]] = {clique: [] for clique in measured}
    for subset, clique in holder.items():
        blocks[clique].append(reduce(lambda a, b: sparse.kron(a, b, format="csr"), rows(subset, clique)))
        # Rows follow the order of the clique's axes, coefficients that of the schema.
        order = [subset.index(v) for v in clique if v in subset]
        weights = coefficient_weights([schema.cardinality(v) for v in subset])
        observed[clique].append((weights * release.values[subset]).transpose(order).ravel())
        variance[clique].append((weights**2 * release.noise_variances[subset]).transpose(order).ravel())
    cells = [schema.cells(clique) for clique in measured]
    diagonal = [
        sparse.vstack(blocks[clique], format="csr") if blocks[clique] else sparse.csr_array((0, size))
        for clique, size in zip(measured, cells, strict=True)
    ]
    matrix = sparse.csr_array(sparse.block_diag(diagonal, format="csr"))
    return Observations(
        measured,
        np.concatenate([part for clique in measured for part in observed[clique]]),
        np.concatenate([part for clique in measured for part in variance[clique]]),
        False,
        matrix,
        matrix.multiply(matrix).tocsr(),
    )
