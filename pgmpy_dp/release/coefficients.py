"""Noisy Fourier coefficients of marginals, and the residuals of tables: releases whose tables agree with each other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.privacy.blocks import MIN_SCALE, discrete_gaussian_epsilon
from pgmpy_dp.privacy.checks import checked_number, decimal_above
from pgmpy_dp.privacy.guarantee import Guarantee, counted
from pgmpy_dp.privacy.noise import MAX_SCALE, laplace_variance
from pgmpy_dp.release.archive import Measurements, Numbers, checked_guarantee, entry
from pgmpy_dp.release.contrasts import (
    Coefficients,
    Floats,
    Means,
    coefficients_of,
    contrasts,
    downward_closure,
    fourier_sensitivity,
    marginals_of,
    noise_scales,
    residual_sensitivity,
    subsets_of,
    varied_variables,
)
from pgmpy_dp.release.kinds import Release, checked_total, cliques_containing, frozen_array, guarantee_of_joined
from pgmpy_dp.release.listing import check_arrays, read_arrays, state_arrays
from pgmpy_dp.release.marginals import NoisyMarginals
from pgmpy_dp.schema import Clique, Schema
from pgmpy_dp.schema.schema import places

_MAX_PARTS, _MAX_MULTIPLE = 2**10, 2**22


class MeasuredCoefficients(Release):
    """Coefficients of the cliques' marginals with independent noise, whose tables agree with each other."""

    if TYPE_CHECKING:

        @property
        def values(self) -> Mapping[Clique, NDArray[Any]]: ...
        @property
        def deviations(self) -> Mapping[Clique, float]: ...

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
    def details(self) -> Mapping[Clique, Floats]:
        """Unbiased finer histograms of binned numbers."""
        return {clique: self.table(clique) for clique in _finer(self.schema, self.values)}

    @property
    def tables(self) -> Mapping[Clique, Floats]:
        """Unbiased marginals of the measured cliques, which agree on common variables; cells may be negative."""
        return self._coefficients.tables

    @cached_property
    def noise_variances(self) -> Mapping[Clique, Floats]:
        """The variance of the noise in every integer coefficient, by subset, in records squared."""
        return MappingProxyType({subset: self._noise_variance(subset) for subset in self.values})

    def _noise_variance(self, subset: Clique) -> Floats:
        """Return the variance of the noise in the integer coefficients of a subset."""
        return coefficient_scales(self.schema, subset, self.deviations[subset]) ** 2

    def variance(self, clique: Clique) -> float:
        """Return the (mean) noise variance of the cells of a clique's marginal; the noise of cells is correlated."""
        try:
            return residual_variance(self.schema, self.deviations, clique)
        except KeyError:
            cliques_containing(self.cliques, clique)  # raises with the measured cliques
            raise

    @cached_property
    def variances(self) -> Mapping[Clique, float]:
        """The (mean) variance of the noise in the cells of each measured clique's table, which is correlated."""
        return MappingProxyType({clique: self.variance(clique) for clique in self._measured})

    def means(self) -> Means:
        """Return the coefficients and the deviations of their noise."""
        public = {} if self.public_total is None else {(): 0.0}
        return self._coefficients.values, public | dict(self.deviations)

    def squares(self, clique: Clique, apart: Floats) -> tuple[float, int]:
        """Sum the squares of a table's distance from its expectation, in units of noise; count the dimensions.

        Coefficients have independent noise, so that their squares can be added; those without noise are left out.
        """
        squares, count = 0.0, 0
        for subset, coefficients in coefficients_of(self.schema, clique, apart).items():
            if deviation := self.deviations.get(subset, 0.0):
                part = coefficients / coefficient_scales(self.schema, subset, deviation)
                squares, count = squares + float((part**2).sum()), count + part.size
        return squares, count

    def tables_of(self, variables: Sequence[str]) -> list[tuple[Clique, Floats, float]]:
        """List a table for each set of variables whose residuals are known and that contains no others.

        The stated deviation is that of the residuals' noise; the noise of the other coefficients of a table belongs to
        smaller tables. The table of the empty set is the number of records. Variables with one state, which have no
        residuals, get a table too.
        """
        inside = set(variables)
        sets = [subset for subset, own in self.deviations.items() if own and inside.issuperset(subset)]
        constant = [(variable,) for variable in variables if self.schema.cardinality(variable) == 1]
        tables = marginals_of(self._coefficients, [one for one in sets if one])
        tables = [np.array(self.total), *tables] if () in sets else tables
        return [
            *((one, table, self.deviations[one]) for one, table in zip(sets, tables, strict=True)),
            *((alone, np.array([self.total]), max(self.deviations.values())) for alone in constant),
        ]

    @property
    def total(self) -> float:
        """The number of records, public or measured by the coefficient of the empty set; at least 1."""
        return max(float(self._coefficients.values[()]), 1.0)

    @property
    def total_variance(self) -> float:
        """The variance of `total` before its floor of 1; 0 if the number is public."""
        return 0.0 if self.public_total is not None else float(self._noise_variance(()))

    def marginal(self, clique: Clique) -> tuple[Floats, float]:
        """Return the table of a clique implied by the coefficients, and the mean variance of its cells."""
        if not any(set(clique).issubset(measured) for measured in self.cliques):
            cliques_containing(self.cliques, clique)  # raises with the measured cliques
        return self.table(clique), self.variance(clique)

    def contents(self) -> dict[str, Any]:
        """Return what the descriptor of the file states about the release."""
        return super().contents() | {
            "public_total": self.public_total,
            "cliques": state_arrays(
                self.schema, {c: {"shape": list(map(self.schema.cardinality, c))} for c in self._measured}
            ),
            "subsets": state_arrays(
                self.schema, {s: {"shape": list(a.shape)} | self._stated(s) for s, a in self.values.items()}
            ),
            "contrasts": _contrast_entries(self.schema, self._measured),
        }

    def measurements(self) -> Measurements:
        """Return the arrays of numbers in the file, flat, with the variances of their noise."""
        return [
            (array.ravel(), (variance * self.parts(subset) ** 2).ravel())
            for (subset, array), variance in zip(self.values.items(), self.noise_variances.values(), strict=True)
        ]

    def _stated(self, subset: Clique) -> dict[str, Any]:
        """Return what a file states about a subset besides its shape."""
        return {}

    def _check(self, mechanism: str) -> tuple[Clique, ...]:
        """Check and store what both kinds state; return the cliques with finer histograms."""
        name = type(self).__name__
        guarantee = self._require_promise(mechanism, of_records=True)
        values: Any = self.values
        given = tuple(tuple(clique) for clique in self.cliques)
        subsets = [subset for subset in values if isinstance(subset, tuple)] if isinstance(values, Mapping) else []
        cliques = self.schema.require(list(dict.fromkeys((*given, *_finer(self.schema, subsets)))))
        total = checked_total(name, self.public_total, guarantee)
        closure = downward_closure(self.schema, cliques)
        noisy = closure if total is None else closure[1:]
        if not isinstance(values, Mapping) or set(values) != set(noisy):
            raise ValueError(f"{name}: values must have every subset of the cliques, and no other.")
        for subset in noisy:
            array, shape = np.asarray(values[subset]), coefficient_shape(self.schema, subset)
            if array.dtype != np.int64 or array.shape != shape:
                raise ValueError(
                    f"{name}: the coefficients of {subset} must be int64 of shape {shape}, got {array.dtype} of shape "
                    f"{array.shape}."
                )
        finer = self.schema.details.keys()
        self._settle(
            cliques=tuple(clique for clique in cliques if not set(clique) & finer),
            values={subset: frozen_array(values[subset], np.int64) for subset in noisy},
            public_total=total,
            guarantee=guarantee,
        )
        return cliques

    @classmethod
    def _read(cls, schema: Schema, contents: Mapping[str, Any], further: Iterable[str] = ()) -> tuple[Any, Any]:
        """Read the cliques and the statements about all of their subsets."""
        arrays = read_arrays(schema, entry(contents, "cliques", list))
        cliques = schema.require([clique for clique, _ in arrays])
        check_arrays(arrays, (tuple(map(schema.cardinality, clique)) for clique in cliques), {"shape"})
        closure = downward_closure(schema, cliques)  # raises if it would be too large
        if entry(contents, "contrasts", dict) != _contrast_entries(schema, cliques):
            raise ValueError("the contrasts are not those of this version of the format.")
        expected = closure if contents["public_total"] is None else closure[1:]
        subsets = read_arrays(schema, entry(contents, "subsets", list))
        if [subset for subset, _ in subsets] != list(expected):
            raise ValueError("the subsets are not those of the cliques, in order of their sizes and the schema.")
        check_arrays(subsets, (coefficient_shape(schema, subset) for subset in expected), {"shape", *further})
        return cliques, dict(subsets)

    def __repr__(self) -> str:
        size = sum(array.size for array in self.values.values())
        lines = [
            f"{type(self).__name__}: {counted(size, 'coefficient')} of {counted(len(self.cliques), 'clique')}"
            f"{self._noise_in_words}",
            str(self.guarantee),
        ]
        if self.public_total is not None:
            lines.append(f"public number of {self.guarantee.counted}: {self.public_total}")
        return "\n  ".join(lines)

    @property
    def _noise_in_words(self) -> str:
        return ""


@dataclass(frozen=True, eq=False, repr=False)
class NoisyCoefficients(
    MeasuredCoefficients, kind="coefficients", properties=("public_total", "cliques", "scale", "subsets", "contrasts")
):
    """Release of noisy Fourier coefficients of some cliques' marginals, whose tables agree with each other.

    Everything computed from it is post-processing and costs no privacy.

    Parameters
    ----------
    schema : Schema
        The public schema.
    cliques : tuple of tuples of str
        The measured cliques, in the order of the tables' axes.
    values : mapping of subset to ndarray of int64
        Noisy integer coefficients of every subset of the cliques, with one axis per variable in schema order; under
        ``replace_one`` without the empty subset, whose coefficient is the public number of records.
    scale : float
        Noise scale b of the coefficients with contrasts of mean square 1, in records; an integer coefficient of weight
        w has discrete Laplace noise of scale b / w (`pgmpy_dp.release.contrasts.coefficient_weights`).
    guarantee : Guarantee
    public_total : int or None
        The number of records if it is public (``replace_one``), else None.

    Raises
    ------
    SchemaError
        If a clique does not match the schema, or the closure is too large.
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
        cliques, scale = self._check("laplace"), checked_number("scale", self.scale)
        if not 0 < scale <= 2.0**50:
            raise ValueError(f"NoisyCoefficients: the noise scale must be positive, at most 2**50, got {scale!r}.")
        self._settle(scale=scale)
        closure = downward_closure(self.schema, cliques)
        loss = fourier_sensitivity(self.schema, closure, self.guarantee.neighbours) / scale
        self._require_covered(loss, "noise of this scale")

    @cached_property
    def deviations(self) -> Mapping[Clique, float]:
        """Standard deviation of the noise in each set's coefficients with contrasts of length 1, in records."""
        each, schema = self.noise_variances.items(), self.schema
        return MappingProxyType(
            {s: float((variances / coefficient_scales(schema, s, 1.0) ** 2).mean()) ** 0.5 for s, variances in each}
        )

    def _noise_variance(self, subset: Clique) -> Floats:
        scales = noise_scales(self.schema, subset, self.scale)
        distinct, positions = np.unique(scales, return_inverse=True)
        return np.array([laplace_variance(s) for s in distinct])[positions].reshape(scales.shape)

    def noise(self, clique: Clique) -> tuple[float, float]:
        """Return the noise scale of the coefficients, and the standard deviation in a cell of a clique's table."""
        return self.scale, self.variance(clique) ** 0.5

    def contents(self) -> dict[str, Any]:
        """Return what the descriptor of the file states about the release."""
        return super().contents() | {"scale": self.scale}

    @classmethod
    def interpret(cls, schema: Schema, contents: Mapping[str, Any], numbers: Numbers) -> Self:
        """Invert `contents`."""
        cliques, subsets = cls._read(schema, contents)
        scale = checked_number("scale", contents["scale"])
        values = numbers.take({subset: coefficient_shape(schema, subset) for subset in subsets})
        guarantee = checked_guarantee(contents, values.values())
        return cls(schema, cliques, values, scale, guarantee, contents["public_total"])

    @property
    def _noise_in_words(self) -> str:
        return f", noise scale {self.scale:.6g}"


@dataclass(frozen=True, eq=False, repr=False)
class NoisyResiduals(
    MeasuredCoefficients, kind="residuals", properties=("public_total", "cliques", "subsets", "contrasts")
):
    """Release of noisy residuals of some cliques' marginals, whose tables agree with each other.

    The residuals of a set of variables are the part of its table that the tables of its subsets do not determine.
    Everything computed from the release is post-processing and costs no privacy.

    Parameters
    ----------
    schema : Schema
        The public schema.
    cliques : tuple of tuples of str
        The cliques whose tables the residuals determine, in the order of their axes. Tables of the schema's `details`
        become `details`.
    values : mapping of subset to ndarray of int64
        Noisy integer coefficients of every subset of the cliques, in fractions of a record (`parts`), with one axis per
        variable in schema order; under ``replace_one`` without the empty subset, the public number of records.
    scales : mapping of subset to float
        Standard deviation of the noise in a set's residuals, in records: the noise is independent with this deviation
        on all cells of the table, projected on the tables that sum to 0 along every axis. So are coefficients with
        contrasts of length 1.
    guarantee : Guarantee
    public_total : int or None
        The number of records if it is public (``replace_one``), else None.

    Raises
    ------
    SchemaError
        If a clique does not match the schema, or the closure is too large.
    ValueError
        If coefficients or scales are missing or of the wrong kind, or the scales contradict the guarantee.

    Notes
    -----
    All cells of a table have the same noise variance: the sum over its subsets of their squared scale, times
    ``(n - 1) / n`` for each variable in the subset and ``1 / n**2`` for each other one, where n is its number of states
    (Xiao et al. 2023). The noise of cells of a table is correlated, and tables with common variables share noise.

    Examples
    --------
    >>> import pgmpy_dp as dp
    >>> schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
    >>> plan = dp.plan_accuracy(schema, {("smoke", "lung"): 60}, delta=1e-6)
    >>> budget = dp.PrivacyBudget(1.0, 1e-6)
    >>> data = dp.PrivateDataset({("smoke", "lung"): [[300, 100], [50, 550]]}, schema, budget)
    >>> noisy = data.measure_residuals(plan.residuals, delta=plan.delta)
    >>> round(1.96 * noisy.noise(("smoke", "lung"))[1]), noisy.table(("smoke",)).shape
    (60, (2,))
    """

    schema: Schema
    cliques: tuple[Clique, ...]
    values: Mapping[Clique, NDArray[np.int64]]
    scales: Mapping[Clique, float]
    guarantee: Guarantee
    public_total: int | None = None

    def __post_init__(self) -> None:
        self._check("gaussian")
        if not isinstance(self.scales, Mapping) or set(self.scales) != set(self.values):
            raise ValueError("NoisyResiduals: scales and values must have the same subsets.")
        scales = {subset: checked_number("scale", self.scales[subset]) for subset in self.values}
        if not all(2.0**-50 <= scale <= 2.0**50 for scale in scales.values()):
            raise ValueError("NoisyResiduals: noise scales must be positive, from 2**-50 to 2**50.")
        self._settle(scales=scales)
        self._require_covered(residual_rho(self.schema, scales, self.guarantee.neighbours))

    def parts(self, subset: Clique) -> int:
        """Return the number of parts of a record in which `values` count the coefficients of a subset."""
        return coefficient_parts(self.schema, subset)

    @property
    def deviations(self) -> Mapping[Clique, float]:
        """The scales, which are standard deviations."""
        return self.scales

    def noise(self, clique: Clique) -> tuple[float, float]:
        """Return the noise scale of a clique's residuals, and the standard deviation in a cell of its table."""
        deviation = self.variance(clique) ** 0.5
        return self.scales.get(varied_variables(self.schema, clique), 0.0), deviation

    def join(self, other: NoisyResiduals | NoisyMarginals) -> NoisyResiduals:
        """Join residuals, or tables with Gaussian noise, of the same records; see `NoisyMarginals.join`."""
        if not isinstance(other, (NoisyResiduals, NoisyMarginals)):
            raise TypeError(f"Residuals are joined to residuals or tables, got {type(other).__name__}.")
        guarantee = guarantee_of_joined(self, other)
        if other.guarantee.mechanism != "gaussian" or other.guarantee.weighted or other.chosen_among:
            raise ValueError(
                "Residuals are joined to releases with Gaussian noise, of single records, whose tables were not chosen."
            )
        schema = self.schema.join(other.schema)
        theirs = other.means(other.measured) if isinstance(other, NoisyMarginals) else other.means()
        means, deviations = pooled_means(schema, [self.means(), theirs])
        measured = (*self._measured, *other.cliques, *other.details)
        cliques = tuple({frozenset(clique): clique for clique in reversed(measured)}.values())[::-1]
        values, scales = {}, {}
        for subset in downward_closure(schema, cliques)[self.public_total is not None :]:
            parts, each = coefficient_parts(schema, subset), coefficient_scales(schema, subset, 1.0)
            values[subset] = np.rint(means[subset] * parts).astype(np.int64)
            rounding = 1.0 / (12.0 * (parts * float(each.min())) ** 2)
            scales[subset] = math.sqrt(deviations[subset] ** 2 + rounding)
        return NoisyResiduals(schema, cliques, values, scales, guarantee, self.public_total)

    def __add__(self, other: object) -> NoisyResiduals:
        return self.join(other) if isinstance(other, (NoisyResiduals, NoisyMarginals)) else NotImplemented

    __radd__ = __add__

    def _stated(self, subset: Clique) -> dict[str, Any]:
        return {"scale": self.scales[subset], "parts": self.parts(subset)}

    @classmethod
    def interpret(cls, schema: Schema, contents: Mapping[str, Any], numbers: Numbers) -> Self:
        """Invert `contents`."""
        cliques, subsets = cls._read(schema, contents, ("scale", "parts"))
        scales = {subset: checked_number(f"scale of {subset}", each["scale"]) for subset, each in subsets.items()}
        if any(entry(each, "parts", int) != coefficient_parts(schema, subset) for subset, each in subsets.items()):
            raise ValueError("the parts of a record are not those of this version of the format.")
        values = numbers.take({subset: coefficient_shape(schema, subset) for subset in subsets})
        guarantee = checked_guarantee(contents, values.values())
        return cls(schema, cliques, values, scales, guarantee, contents["public_total"])


def pooled_means(schema: Schema, parts: Iterable[Means]) -> Means:
    """Average coefficients of the same records, weighted by precision; coefficients without noise are unchanged."""
    position = places(schema)
    seen: dict[Clique, list[tuple[Floats, float]]] = {}
    for values, deviations in parts:
        for subset, array in values.items():
            ordered = tuple(sorted(subset, key=position.__getitem__))
            moved = array.transpose([subset.index(variable) for variable in ordered])
            seen.setdefault(ordered, []).append((moved, deviations[subset]))
    means: dict[Clique, Floats] = {}
    noise: dict[Clique, float] = {}
    for subset, same in seen.items():
        arrays, each = zip(*same, strict=True)
        if 0.0 in each:
            means[subset], noise[subset] = arrays[each.index(0.0)], 0.0
            continue
        precisions = [deviation**-2.0 for deviation in each]
        whole = sum(precisions)
        pooled = sum(array * own for array, own in zip(arrays, precisions, strict=True)) / whole
        means[subset] = np.asarray(pooled)  # the empty subset's is no array
        noise[subset] = whole**-0.5
    return means, noise


def coefficient_parts(schema: Schema, subset: Clique) -> int:
    """Return the number of parts in which a record is counted, so that integer noise is nearly continuous.

    It is a power of two of at most 2**10, and smaller if sums of records times contrasts and parts might not fit 64
    bits.
    """
    return _parts(tuple(map(schema.cardinality, subset)))


@lru_cache(maxsize=64)
def _parts(cardinalities: tuple[int, ...]) -> int:
    largest = math.prod(contrasts(states).largest for states in cardinalities)
    return int(min(_MAX_PARTS, 2 ** ((_MAX_MULTIPLE // largest).bit_length() - 1)))


def coefficient_scales(schema: Schema, subset: Clique, scale: float) -> Floats:
    """Return the standard deviation of the noise in each integer coefficient: `scale` times the contrast's length."""
    return noise_scales(schema, subset, scale * math.sqrt(schema.cells(subset)))


def residual_variance(schema: Schema, scales: Mapping[Clique, float], clique: Clique) -> float:
    """Compute the noise variance of every cell of a clique's table; KeyError if a subset has no scale."""
    sizes = {variable: schema.cardinality(variable) for variable in varied_variables(schema, clique)}
    result = 0.0
    for subset in subsets_of(schema, clique):
        scale = scales[subset] if subset else scales.get((), 0.0)  # 0 if the number of records is public
        result += scale**2 * math.prod((n - 1) / n if v in subset else n**-2.0 for v, n in sizes.items())
    return result


def residual_epsilon(schema: Schema, scales: Mapping[Clique, float], neighbours: str, delta: float) -> float:
    """Compute the epsilon of residuals as one block, rounded up; ValueError if 64 bits cannot hold the noise."""
    drawn = [
        coefficient_scales(schema, each, scale) * coefficient_parts(schema, each) for each, scale in scales.items()
    ]
    minimum, largest = min(float(each.min()) for each in drawn), max(float(each.max()) for each in drawn)
    if not MIN_SCALE <= minimum <= largest <= MAX_SCALE:
        raise ValueError(
            f"Noise of {min(scales.values()):.3g} to {max(scales.values()):.3g} records is too small or too large for "
            "64-bit integers: choose other scales."
        )
    squared = 2.0 * residual_rho(schema, scales, neighbours)
    return decimal_above(Fraction(discrete_gaussian_epsilon(squared, minimum, delta)))


def residual_rho(schema: Schema, scales: Mapping[Clique, float], neighbours: str) -> float:
    """Compute the rho of zCDP of residuals with these noise scales, rounded up."""
    sizes = {variable: schema.cardinality(variable) for subset in scales for variable in subset}
    return residual_sensitivity(scales, sizes, neighbours) / 2.0


def _finer(schema: Schema, cliques: Iterable[Clique]) -> list[Clique]:
    """List the finer histograms among cliques."""
    return [clique for clique in cliques if set(clique) & schema.details.keys()]


def coefficient_shape(schema: Schema, subset: Clique) -> tuple[int, ...]:
    """Return the number of contrasts of each variable of a subset."""
    return tuple(schema.cardinality(variable) - 1 for variable in subset)


def _contrast_entries(schema: Schema, cliques: Iterable[Clique]) -> dict[str, Any]:
    states = sorted({schema.cardinality(variable) for clique in cliques for variable in clique})
    return {str(number): contrasts(number).values[1:].tolist() for number in states}
