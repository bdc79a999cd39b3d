"""Noisy coefficients of the marginals of some cliques, whatever their noise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, reduce
from itertools import combinations
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference.collective.linear_observations import LinearObservations
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.privacy.fourier import Floats, coefficient_weights, contrasts
from pgmpy_dp.privacy.guarantee import Guarantee, counted
from pgmpy_dp.release.archive import Measurements
from pgmpy_dp.release.coefficients import Coefficients, downward_closure
from pgmpy_dp.release.descriptor import check_shape, entry
from pgmpy_dp.release.kinds import Release
from pgmpy_dp.release.observations import holding_cliques, maximal, observed_parts
from pgmpy_dp.release.promises import checked_total, frozen_array
from pgmpy_dp.schema import Clique, Schema

# Largest number of entries of the matrix of all coefficients, which then takes about 0.8 GB.
MAX_ENTRIES = 2**26


class MeasuredCoefficients(Release):
    """Coefficients of the cliques' marginals with independent noise: tables computed from them agree with each other.

    Attributes
    ----------
    values : mapping of subset to ndarray of int64
        Noisy integer coefficients of every subset of the cliques, with one axis per variable in schema order; under
        ``replace_one`` without the empty subset, whose coefficient is the public number of records.
    noise_variances : mapping of subset to ndarray of float64
        Variances of the noise in every integer coefficient, in records squared.
    """

    values: Mapping[Clique, NDArray[np.int64]]
    noise_variances: Mapping[Clique, Floats]

    def parts(self, subset: Clique) -> int:
        """Return the number of parts of a record in which `values` count the coefficients of a subset."""
        return 1

    @cached_property
    def _coefficients(self) -> Coefficients:
        values = {subset: array / self.parts(subset) for subset, array in self.values.items()}
        if self.public_total is not None:
            values = {(): np.array(float(self.public_total))} | values
        return Coefficients(self.schema, self.cliques, MappingProxyType(values))

    @property
    def _measured(self) -> tuple[Clique, ...]:
        return (*self.cliques, *_finer(self.schema, self.values))

    def to_coefficients(self) -> Coefficients:
        """Return the coefficients as plain numbers, for marginals and non-negative ones."""
        return self._coefficients

    def table(self, clique: Clique) -> Floats:
        """Compute the unbiased marginal of any subset of a measured clique; cells may be negative."""
        return self._coefficients.table(clique)

    @property
    def details(self) -> Mapping[Clique, Floats]:  # type: ignore[override]  # they follow from the coefficients
        """Unbiased finer histograms of binned numbers."""
        return {clique: self.table(clique) for clique in _finer(self.schema, self.values)}

    @property
    def tables(self) -> Mapping[Clique, Floats]:
        """Unbiased marginals of the measured cliques, which agree on common variables; cells may be negative."""
        return self._coefficients.tables

    def variance(self, clique: Clique) -> float:
        """Average the noise variance over the cells of a clique's marginal; the noise of cells is correlated."""
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
        """The number of records, public or measured by the coefficient of the empty set; at least 1."""
        return max(float(self._coefficients.values[()]), 1.0)

    @property
    def total_variance(self) -> float:
        """The variance of `total` before its floor of 1; 0 if the number is public."""
        return 0.0 if self.public_total is not None else float(self.noise_variances[()])

    def marginal(self, clique: Clique) -> tuple[Floats, float]:
        """Return the table of a clique implied by the coefficients, and the mean variance of its cells."""
        holding_cliques(self.cliques, clique)
        return self.table(clique), self.variance(clique)

    def observe(self, variables: Sequence[str]) -> LinearObservations:
        """Observe the coefficients of all sets of these variables, with contrasts of mean square 1.

        Each is a function of the smallest measured clique that contains its set. The coefficient of the empty set, the
        number of records, is observed separately.

        Raises ValueError if the release contains no observation of a variable, or too many coefficients to fit.
        """
        from scipy import sparse  # slow to import, and only fits need it

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

        # Python's integers, since the number of entries may exceed 64 bits.
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
            # Rows follow the clique's order of axes, coefficients that of the schema.
            order = [subset.index(v) for v in clique if v in subset]
            weights = coefficient_weights([schema.cardinality(v) for v in subset])
            observed[clique].append((weights * self._coefficients.values[subset]).transpose(order).ravel())
            variance[clique].append((weights**2 * self.noise_variances[subset]).transpose(order).ravel())
        cells = [schema.cells(clique) for clique in measured]
        diagonal = [
            sparse.vstack(blocks[clique], format="csr") if blocks[clique] else sparse.csr_array((0, size))
            for clique, size in zip(measured, cells, strict=True)
        ]
        matrix = sparse.csr_array(sparse.block_diag(diagonal, format="csr"))
        owners = np.repeat(np.arange(len(measured)), [block.shape[0] for block in diagonal])
        noisy = [
            np.concatenate([part for clique in measured for part in parts[clique]]) for parts in (observed, variance)
        ]
        if self.public_total is None:  # the sum of any table
            sums = sparse.csr_array((np.arange(sum(cells)) < cells[0]).astype(np.float64)[None, :])
            matrix = sparse.csr_array(sparse.vstack([matrix, sums]))
            owners = np.append(owners, -1)
            noisy = [np.append(own, value) for own, value in zip(noisy, (self.total, self.total_variance), strict=True)]
        return LinearObservations(measured, self.law(*noisy), owners, matrix)

    def contents(self) -> dict[str, Any]:
        """Return what the descriptor of the file states about the release."""
        return super().contents() | {
            "public_total": self.public_total,
            "cliques": [{"variables": list(c), "shape": list(self.schema.shape(c))} for c in self._measured],
            "subsets": [{"variables": list(subset), "shape": list(a.shape)} for subset, a in self.values.items()],
            "contrasts": _contrast_entries(self.schema, self._measured),
        }

    def measurements(self) -> Measurements:
        """Return the arrays of numbers in the file, flat, with the variances of their noise."""
        return [
            (array.ravel(), (variance * self.parts(subset) ** 2).ravel())
            for (subset, array), variance in zip(self.values.items(), self.noise_variances.values(), strict=True)
        ]

    def __repr__(self) -> str:
        size = sum(array.size for array in self.values.values())
        lines = [
            f"{type(self).__name__}: {counted(size, 'coefficient')} of {counted(len(self.cliques), 'clique')}"
            f"{self._noise_in_words()}",
            str(self.guarantee),
        ]
        if self.public_total is not None:
            lines.append(f"public number of {self.guarantee.counted}: {self.public_total}")
        return "\n  ".join(lines)

    def _noise_in_words(self) -> str:
        return ""


def checked_coefficients(
    kind: str, schema: Any, guarantee: Any, cliques: Iterable[Iterable[str]], values: Any, total: Any, mechanism: str
) -> tuple[tuple[Clique, ...], dict[Clique, NDArray[np.int64]], int | None]:
    """Check the common parts of such releases; return the cliques, coefficients and public total.

    Raises SchemaError if a clique does not match the schema, or the closure is too large; ValueError if something is
    missing or of the wrong kind.
    """
    if not isinstance(schema, Schema) or not isinstance(guarantee, Guarantee):
        raise ValueError(f"{kind} needs a Schema and a Guarantee.")
    if guarantee.mechanism != mechanism:
        raise ValueError(f"{kind} have {mechanism.title()} noise, got mechanism {guarantee.mechanism!r}.")
    if guarantee.max_rows != 1:
        raise ValueError(f"{kind} are priced for single records: max_rows is 1.")
    given = tuple(tuple(clique) for clique in cliques)
    subsets = [subset for subset in values if isinstance(subset, tuple)] if isinstance(values, Mapping) else []
    checked = schema.require(list(dict.fromkeys((*given, *_finer(schema, subsets)))))
    closure = downward_closure(schema, checked)
    public_total = checked_total(total, guarantee)
    noisy = closure if public_total is None else closure[1:]
    if not isinstance(values, Mapping) or set(values) != set(noisy):
        raise ValueError(f"{kind}: values must have every subset of the cliques, and no other.")
    found = {}
    for subset in noisy:
        array, shape = np.asarray(values[subset]), coefficient_shape(schema, subset)
        if array.dtype != np.int64 or array.shape != shape:
            raise ValueError(
                f"{kind}: the coefficients of {subset} must be int64 of shape {shape}, got {array.dtype} of shape "
                f"{array.shape}."
            )
        found[subset] = frozen_array(array, np.int64)
    return checked, found, public_total


def stated_cliques(contents: Mapping[str, Any], schema: Schema) -> tuple[Clique, ...]:
    """Read the cliques of a descriptor."""
    entries = entry(contents, "cliques", list)
    cliques = schema.require([entry(each, "variables", list) for each in entries])
    for clique, each in zip(cliques, entries, strict=True):
        check_shape(each, clique, schema.shape(clique), {"variables", "shape"})
    return cliques


def stated_subsets(
    contents: Mapping[str, Any], schema: Schema, cliques: Sequence[Clique], further: Iterable[str] = ()
) -> dict[Clique, Mapping[str, Any]]:
    """Read the subsets of a descriptor, which must be all those of the cliques; each states its variables and shape."""
    closure = downward_closure(schema, cliques)  # raises if it would be too large
    if entry(contents, "contrasts", dict) != _contrast_entries(schema, cliques):
        raise ValueError("the contrasts are not those of this version of the format.")
    expected = closure if contents["public_total"] is None else closure[1:]
    entries = entry(contents, "subsets", list)
    if [entry(each, "variables", list) for each in entries] != [list(subset) for subset in expected]:
        raise ValueError("the subsets are not those of the cliques, in order of their sizes and the schema.")
    for subset, each in zip(expected, entries, strict=True):
        check_shape(each, subset, coefficient_shape(schema, subset), {"variables", "shape", *further})
    return dict(zip(expected, entries, strict=True))


def _finer(schema: Schema, cliques: Iterable[Clique]) -> list[Clique]:
    """List the finer histograms among cliques."""
    return [clique for clique in cliques if set(clique) & schema.details.keys()]


def plain_cliques(schema: Schema, cliques: Iterable[Clique]) -> tuple[Clique, ...]:
    """Leave out finer histograms."""
    return tuple(clique for clique in cliques if not set(clique) & schema.details.keys())


def coefficient_shape(schema: Schema, subset: Clique) -> tuple[int, ...]:
    """Return the number of contrasts of each variable of a subset."""
    return tuple(schema.cardinality(variable) - 1 for variable in subset)


def _contrast_entries(schema: Schema, cliques: Iterable[Clique]) -> dict[str, Any]:
    states = sorted({schema.cardinality(variable) for clique in cliques for variable in clique})
    return {str(number): contrasts(number).values[1:].tolist() for number in states}
