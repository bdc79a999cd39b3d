"""Noisy coefficients of the marginals of some cliques, whatever their noise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.privacy.guarantee import Guarantee, counted
from pgmpy_dp.release.archive import Measurements
from pgmpy_dp.release.coefficients import Coefficients, downward_closure
from pgmpy_dp.release.contrasts import Floats, coefficient_weights, contrasts
from pgmpy_dp.release.descriptor import check_shape, entry
from pgmpy_dp.release.kinds import Release
from pgmpy_dp.release.promises import checked_total, frozen_array
from pgmpy_dp.release.tables import holding_cliques
from pgmpy_dp.schema import Clique, Schema


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
