"""Noisy Fourier coefficients can be released in place of tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.privacy.fourier import Floats, coefficient_weights, contrasts, fourier_sensitivity
from pgmpy_dp.privacy.mechanisms import laplace_variance
from pgmpy_dp.release.archive import Contents, Measurements
from pgmpy_dp.release.coefficients import Coefficients, downward_closure, noise_scales
from pgmpy_dp.release.descriptor import check_shape, entry
from pgmpy_dp.release.guarantee import Guarantee, checked_number, checked_total, counted, frozen_array
from pgmpy_dp.release.kinds import Release
from pgmpy_dp.release.observations import Observations, Vector, holding_cliques, maximal, observed_parts
from pgmpy_dp.schema import Clique, Schema

# The matrix of all coefficients then takes about 0.8 GB.
MAX_ENTRIES = 2**26


@dataclass(frozen=True, eq=False, repr=False)
class NoisyCoefficients(
    Release, kind="coefficients", properties=("public_total", "cliques", "scale", "subsets", "contrasts")
):
    """A release of noisy Fourier coefficients of chosen cliques' marginals has tables that agree with each other.

    All that is computed from it is post-processing and costs no privacy.

    Parameters
    ----------
    schema : Schema
        The public schema.
    cliques : tuple of tuples of str
        What was measured, in the order of the tables' axes.
    values : mapping of subset to ndarray of int64
        Noisy integer coefficients of every subset of the cliques, one axis a variable in schema order; under
        ``replace_one`` without the empty subset, whose coefficient is the public number of records.
    scale : float
        Noise scale b of the coefficients with contrasts of mean square 1, in records; an integer coefficient of weight
        w has discrete Laplace noise of scale b / w (`pgmpy_dp.privacy.fourier.coefficient_weights`).
    guarantee : Guarantee
    public_total : int or None
        The number of records where it is public (``replace_one``), else None.

    Raises
    ------
    SchemaError
        If a clique does not fit the schema, or the closure is too large.
    ValueError
        If coefficients are missing or of the wrong kind, or the scale contradicts the guarantee.

    Notes
    -----
    A cell of a table with c cells has noise of variance about 2 b**2 / c.

    Examples
    --------
    >>> import pgmpy_dp as dp
    >>> schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
    >>> data = dp.PrivateDataset({("smoke", "lung"): [[300, 100], [50, 550]]}, schema, dp.PrivacyBudget(1.0))
    >>> noisy = data.measure_coefficients([("smoke", "lung")], epsilon=1.0)
    >>> bool(abs(noisy.total - 1000) < 100)
    True
    """

    schema: Schema
    cliques: tuple[Clique, ...]
    values: Mapping[Clique, NDArray[np.int64]]
    scale: float
    guarantee: Guarantee
    public_total: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.schema, Schema) or not isinstance(self.guarantee, Guarantee):
            raise ValueError("NoisyCoefficients needs a Schema and a Guarantee.")
        if self.guarantee.mechanism != "laplace":
            raise ValueError(f"NoisyCoefficients have Laplace noise, got mechanism {self.guarantee.mechanism!r}.")
        if self.guarantee.max_rows != 1:
            raise ValueError("NoisyCoefficients are priced for single records: max_rows is 1.")
        cliques = self.schema.require(self.cliques)
        closure = downward_closure(self.schema, cliques)
        total = checked_total(self.public_total, self.guarantee)
        noisy = closure if total is None else closure[1:]
        if not isinstance(self.values, Mapping) or set(self.values) != set(noisy):
            raise ValueError("NoisyCoefficients: values must have every subset of the cliques, and no other.")
        values = {subset: self._checked(subset) for subset in noisy}
        scale = checked_number("scale", self.scale)
        if not 0 < scale <= 2.0**50:
            raise ValueError(f"NoisyCoefficients: the noise scale must be positive, at most 2**50, got {scale!r}.")
        cards = {v: self.schema.cardinality(v) for clique in cliques for v in clique}
        loss = fourier_sensitivity(closure, cards, self.guarantee.neighbours) / scale
        if loss > self.guarantee.epsilon * (1 + 1e-9):
            raise ValueError(
                f"NoisyCoefficients: noise of this scale costs epsilon={loss:.6g}, more than the guarantee's "
                f"{self.guarantee.epsilon:.6g}."
            )
        parts = {"cliques": cliques, "values": MappingProxyType(values), "scale": scale, "public_total": total}
        for name, value in parts.items():
            object.__setattr__(self, name, value)

    def _checked(self, subset: Clique) -> NDArray[np.int64]:
        array = np.asarray(self.values[subset])
        shape = tuple(self.schema.cardinality(v) - 1 for v in subset)
        if array.dtype != np.int64 or array.shape != shape:
            raise ValueError(
                f"NoisyCoefficients: the coefficients of {subset} must be int64 of shape {shape}, got {array.dtype} of "
                f"shape {array.shape}."
            )
        return frozen_array(array, np.int64)

    @cached_property
    def noise_variances(self) -> Mapping[Clique, Floats]:
        """Return the variance of the noise in every integer coefficient, by subset."""
        found = {}
        for subset in self.values:
            scales = noise_scales(self.schema, subset, self.scale)
            distinct, places = np.unique(scales, return_inverse=True)
            found[subset] = np.array([laplace_variance(s) for s in distinct])[places].reshape(scales.shape)
        return MappingProxyType(found)

    @cached_property
    def _coefficients(self) -> Coefficients:
        values = {subset: array.astype(np.float64) for subset, array in self.values.items()}
        if self.public_total is not None:
            values = {(): np.array(float(self.public_total))} | values
        return Coefficients(self.schema, self.cliques, MappingProxyType(values))

    def to_coefficients(self) -> Coefficients:
        """Return the coefficients as plain numbers, from which marginals, and non-negative ones, are made."""
        return self._coefficients

    def table(self, clique: Clique) -> Floats:
        """Compute the unbiased marginal of any clique within a measured one; cells may be negative."""
        return self._coefficients.table(clique)

    @property
    def tables(self) -> Mapping[Clique, Floats]:
        """Return unbiased marginals of the measured cliques, which agree on common variables; cells may be negative."""
        return self._coefficients.tables

    def variance(self, clique: Clique) -> float:
        """Average the noise variance over the cells of the clique's marginal; noise in cells is correlated."""
        inside = set(clique)
        cells = self.schema.cells(clique)
        total = 0.0
        for subset, variances in self.noise_variances.items():
            if inside.issuperset(subset):
                weights = coefficient_weights([self.schema.cardinality(v) for v in subset])
                total += float((variances * weights**2).sum())
        return total / cells**2

    @property
    def total(self) -> float:
        """Return the number of records, public or as measured by the coefficient of the empty set; at least 1."""
        return max(float(self._coefficients.values[()]), 1.0)

    @property
    def total_variance(self) -> float:
        """Return the variance of `total` before its floor of 1; 0 where the number is public."""
        return 0.0 if self.public_total is not None else laplace_variance(self.scale)

    def noise(self, clique: Clique) -> tuple[float, float]:
        """Return the scale of the coefficients' noise, and the standard deviation in a cell of a clique's table."""
        return self.scale, self.variance(clique) ** 0.5

    def marginal(self, clique: Clique) -> tuple[Floats, float]:
        """Return the one table of a clique that the coefficients stand for, and the mean variance of its cells."""
        holding_cliques(self.cliques, clique)
        return self.table(clique), self.variance(clique)

    def observe(self, variables: Sequence[str]) -> Observations:
        """Observe the coefficients of all sets of these variables, with contrasts of mean square 1.

        Each is a function of the smallest measured clique that holds its set. The coefficient of the empty set is the
        number of records, observed apart.

        Raises
        ------
        ValueError
            If they say nothing of a variable, or are too many to fit.
        """
        from scipy import sparse  # it takes long to import, and only fits need it

        measured = maximal(observed_parts(self.cliques, variables).values())
        schema = self.schema
        place = {variable: number for number, variable in enumerate(schema.variables)}
        holder: dict[Clique, Clique] = {}
        for clique in sorted(measured, key=schema.cells):
            varied = sorted((v for v in clique if schema.cardinality(v) > 1), key=place.__getitem__)
            for size in range(1, len(varied) + 1):
                for subset in combinations(varied, size):
                    holder.setdefault(subset, clique)
        functions = {
            v: sparse.csr_array(contrasts(schema.cardinality(v)).scaled) for clique in measured for v in clique
        }

        def rows(subset: Clique, clique: Clique) -> list[Any]:
            return [functions[v][1:] if v in subset else functions[v][:1] for v in clique]

        # These are Python's integers, since the number of entries may not fit 64 bits.
        entries = sum(reduce(lambda n, part: n * int(part.nnz), rows(s, c), 1) for s, c in holder.items())
        if entries > MAX_ENTRIES:
            raise ValueError(
                f"The coefficients of the release are sums of {entries:,} table cells in all, more than "
                f"{MAX_ENTRIES:,}: use PrivateBayesianEstimator, or measure smaller cliques."
            )
        blocks: dict[Clique, list[Any]] = {clique: [] for clique in measured}
        observed: dict[Clique, list[Vector]] = {clique: [] for clique in measured}
        variance: dict[Clique, list[Vector]] = {clique: [] for clique in measured}
        for subset, clique in holder.items():
            blocks[clique].append(reduce(lambda a, b: sparse.kron(a, b, format="csr"), rows(subset, clique)))
            # Rows follow the order of the clique's axes, and coefficients follow that of the schema.
            order = [subset.index(v) for v in clique if v in subset]
            weights = coefficient_weights([schema.cardinality(v) for v in subset])
            observed[clique].append((weights * self.values[subset]).transpose(order).ravel())
            variance[clique].append((weights**2 * self.noise_variances[subset]).transpose(order).ravel())
        cells = [schema.cells(clique) for clique in measured]
        diagonal = [
            sparse.vstack(blocks[clique], format="csr") if blocks[clique] else sparse.csr_array((0, size))
            for clique, size in zip(measured, cells, strict=True)
        ]
        matrix = sparse.csr_array(sparse.block_diag(diagonal, format="csr"))
        apart = None if self.public_total is not None else (self.total, self.total_variance)
        return Observations(
            measured,
            np.concatenate([part for clique in measured for part in observed[clique]]),
            np.concatenate([part for clique in measured for part in variance[clique]]),
            False,
            matrix,
            matrix.multiply(matrix).tocsr(),
            apart,
        )

    def contents(self) -> dict[str, Any]:
        """Give what the descriptor of the release's file says of it."""
        subsets = [{"variables": list(subset), "shape": list(a.shape)} for subset, a in self.values.items()]
        return super().contents() | {
            "public_total": self.public_total,
            "cliques": [{"variables": list(c), "shape": list(self.schema.shape(c))} for c in self.cliques],
            "scale": self.scale,
            "subsets": subsets,
            "contrasts": _contrast_entries(self.schema, self.cliques),
        }

    def measurements(self) -> Measurements:
        """Give the arrays of numbers in the release's file, flat, with the variances of their noise."""
        variances = self.noise_variances
        return [(array.ravel(), variances[subset].ravel()) for subset, array in self.values.items()]

    @classmethod
    def interpret(cls, schema: Schema, guarantee: Guarantee, contents: Mapping[str, Any]) -> Contents[Self]:
        """Invert `contents`."""
        total, entries = contents["public_total"], entry(contents, "cliques", list)
        cliques = schema.require([entry(each, "variables", list) for each in entries])
        for clique, each in zip(cliques, entries, strict=True):
            check_shape(each, clique, schema.shape(clique), {"variables", "shape"})
        shapes = _subset_shapes(contents, schema, cliques, total is None)
        scale = checked_number("scale", contents["scale"])
        return Contents(
            cls.kind, cls.drawn, shapes, lambda arrays: cls(schema, cliques, arrays, scale, guarantee, total)
        )

    def __repr__(self) -> str:
        size = sum(array.size for array in self.values.values())
        lines = [
            f"NoisyCoefficients: {counted(size, 'coefficient')} of {counted(len(self.cliques), 'clique')}, "
            f"noise scale {self.scale:.6g}",
            str(self.guarantee),
        ]
        if self.public_total is not None:
            lines.append(f"public number of {self.guarantee.counted}: {self.public_total}")
        return "\n  ".join(lines)


def _contrast_entries(schema: Schema, cliques: Iterable[Clique]) -> dict[str, Any]:
    states = sorted({schema.cardinality(variable) for clique in cliques for variable in clique})
    return {str(number): contrasts(number).values[1:].tolist() for number in states}


def _subset_shapes(
    contents: Mapping[str, Any], schema: Schema, cliques: Sequence[Clique], private_total: bool
) -> dict[Clique, tuple[int, ...]]:
    closure = downward_closure(schema, cliques)  # this refuses what would be too large
    if entry(contents, "contrasts", dict) != _contrast_entries(schema, cliques):
        raise ValueError("the contrasts are not those of this version of the format.")
    expected = closure if private_total else closure[1:]
    entries = entry(contents, "subsets", list)
    if [entry(each, "variables", list) for each in entries] != [list(subset) for subset in expected]:
        raise ValueError("the subsets are not those of the cliques, in order of their sizes and the schema.")
    shapes = {subset: tuple(schema.cardinality(v) - 1 for v in subset) for subset in expected}
    for (subset, shape), each in zip(shapes.items(), entries, strict=True):
        check_shape(each, subset, shape, {"variables", "shape"})
    return shapes
