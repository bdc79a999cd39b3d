"""Release of noisy residuals instead of tables, with the Gaussian noise for which tables cost least."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.privacy.blocks import LEAST_SCALE, discrete_gaussian_epsilon
from pgmpy_dp.privacy.checks import checked_number, decimal_above
from pgmpy_dp.privacy.guarantee import Guarantee
from pgmpy_dp.privacy.noise import MAX_SCALE
from pgmpy_dp.release.archive import Contents
from pgmpy_dp.release.coefficients import noise_scales, places
from pgmpy_dp.release.contrasts import Floats, contrasts, residual_sensitivity
from pgmpy_dp.release.descriptor import entry
from pgmpy_dp.release.measured_coefficients import (
    MeasuredCoefficients,
    checked_coefficients,
    coefficient_shape,
    plain_cliques,
    stated_cliques,
    stated_subsets,
)
from pgmpy_dp.release.promises import check_gaussian
from pgmpy_dp.release.tables import holding_cliques
from pgmpy_dp.schema import Clique, Schema

_MOST_PARTS, _MOST_MULTIPLE = 2**10, 2**22


@dataclass(frozen=True, eq=False, repr=False)
class NoisyResiduals(
    MeasuredCoefficients, kind="residuals", properties=("public_total", "cliques", "subsets", "contrasts")
):
    """Release of noisy residuals of some cliques' marginals, whose tables agree with each other.

    The residuals of a set of variables are what its table says beyond the tables of its subsets. Everything computed
    from the release is post-processing and costs no privacy.

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
        cliques, values, total = checked_coefficients(
            "NoisyResiduals", self.schema, self.guarantee, self.cliques, self.values, self.public_total, "gaussian"
        )
        if not isinstance(self.scales, Mapping) or set(self.scales) != set(values):
            raise ValueError("NoisyResiduals: scales and values must have the same subsets.")
        scales = {subset: checked_number("scale", self.scales[subset]) for subset in values}
        if not all(2.0**-50 <= scale <= 2.0**50 for scale in scales.values()):
            raise ValueError("NoisyResiduals: noise scales must be positive, from 2**-50 to 2**50.")
        rho = residual_rho(self.schema, scales, self.guarantee.neighbours)
        stated = self.guarantee.own.rho
        if stated is None:
            raise ValueError("NoisyResiduals: a cost of Gaussian noise states its rho.")
        if rho > stated * (1 + 1e-9):
            raise ValueError(
                f"NoisyResiduals: noise of these scales costs rho={rho:.6g}, more than the guarantee's {stated:.6g}."
            )
        check_gaussian("NoisyResiduals", self.guarantee, rho)
        parts = {
            "cliques": plain_cliques(self.schema, cliques),
            "values": values,
            "scales": scales,
            "public_total": total,
            "guarantee": self.guarantee.after(self.schema.guarantee),
        }
        for name, value in parts.items():
            object.__setattr__(self, name, MappingProxyType(value) if isinstance(value, dict) else value)

    def parts(self, subset: Clique) -> int:
        """Return the number of parts of a record in which `values` count the coefficients of a subset."""
        return coefficient_parts(self.schema, subset)

    @cached_property
    def noise_variances(self) -> Mapping[Clique, Floats]:  # type: ignore[override]
        """The variance of the noise in every integer coefficient, by subset, in records squared."""
        return MappingProxyType({s: coefficient_scales(self.schema, s, each) ** 2 for s, each in self.scales.items()})

    def variance(self, clique: Clique) -> float:
        """Return the noise variance of every cell of a clique's marginal; the noise of cells is correlated."""
        try:
            return residual_variance(self.schema, self.scales, clique)
        except KeyError:
            holding_cliques(self.cliques, clique)  # raises with the measured cliques
            raise

    def noise(self, clique: Clique) -> tuple[float, float]:
        """Return the noise scale of a clique's residuals, and the standard deviation in a cell of its table."""
        deviation = self.variance(clique) ** 0.5
        return self.scales.get(varied_variables(self.schema, clique), 0.0), deviation

    def tables_of(self, variables: Sequence[str]) -> list[tuple[Clique, Floats, float]]:
        """List a table for each set of variables whose residuals are known and that contains no others.

        The deviation is that of the residuals' noise; the rest of a table is that of smaller ones. The table of the
        empty set is the number of records. Variables with one state, which have no residuals, get a table too.
        """
        sets = [subset for subset in self.scales if set(subset) <= set(variables)]
        constant = [(variable,) for variable in variables if self.schema.cardinality(variable) == 1]
        return [
            *((one, self.table(one) if one else np.array(self.total), self.scales[one]) for one in sets),
            *((alone, np.array([self.total]), max(self.scales.values())) for alone in constant),
        ]

    def contents(self) -> dict[str, Any]:
        """Return what the descriptor of the file states about the release."""
        held = super().contents()
        noise = [{"scale": scale, "parts": self.parts(subset)} for subset, scale in self.scales.items()]
        return held | {"subsets": [each | more for each, more in zip(held["subsets"], noise, strict=True)]}

    @classmethod
    def interpret(cls, schema: Schema, guarantee: Guarantee, contents: Mapping[str, Any]) -> Contents[Self]:
        """Invert `contents`."""
        total, cliques = contents["public_total"], stated_cliques(contents, schema)
        subsets = stated_subsets(contents, schema, cliques, ("scale", "parts"))
        scales = {subset: checked_number(f"scale of {subset}", each["scale"]) for subset, each in subsets.items()}
        if any(entry(each, "parts", int) != coefficient_parts(schema, subset) for subset, each in subsets.items()):
            raise ValueError("the parts of a record are not those of this version of the format.")
        shapes = {subset: coefficient_shape(schema, subset) for subset in subsets}
        return Contents(
            cls.kind, cls.drawn, shapes, lambda arrays: cls(schema, cliques, arrays, scales, guarantee, total)
        )


def coefficient_parts(schema: Schema, subset: Clique) -> int:
    """Return the number of parts in which a record is counted, so that integer noise is nearly continuous.

    It is a power of two of at most 2**10, and smaller if sums of records times contrasts and parts might not fit 64
    bits.
    """
    largest = math.prod(int(abs(contrasts(schema.cardinality(variable)).values).max()) for variable in subset)
    return int(min(_MOST_PARTS, 2 ** ((_MOST_MULTIPLE // largest).bit_length() - 1)))


def coefficient_scales(schema: Schema, subset: Clique, scale: float) -> Floats:
    """Return the standard deviation of the noise in each integer coefficient: `scale` times the contrast's length."""
    return noise_scales(schema, subset, scale * math.sqrt(math.prod(schema.cardinality(v) for v in subset)))


def varied_variables(schema: Schema, clique: Clique) -> Clique:
    """Return the variables of a clique with two states or more, in schema order, which have its residuals."""
    return tuple(sorted((v for v in clique if schema.cardinality(v) > 1), key=places(schema).__getitem__))


def residual_variance(schema: Schema, scales: Mapping[Clique, float], clique: Clique) -> float:
    """Compute the noise variance of every cell of a clique's table; KeyError if a subset has no scale."""
    varied = varied_variables(schema, clique)
    sizes = {variable: schema.cardinality(variable) for variable in varied}
    found = 0.0
    for size in range(len(varied) + 1):
        for subset in combinations(varied, size):
            scale = scales[subset] if subset else scales.get((), 0.0)  # 0 if the number of records is public
            found += scale**2 * math.prod((n - 1) / n if v in subset else n**-2.0 for v, n in sizes.items())
    return found


def residual_epsilon(schema: Schema, scales: Mapping[Clique, float], neighbours: str, delta: float) -> float:
    """Compute the epsilon, at a given delta, of residuals with these noise scales as one block, rounded up.

    Raises ValueError if delta is out of range, or the noise is too large or too small for 64-bit integers.
    """
    drawn = [
        coefficient_scales(schema, each, scale) * coefficient_parts(schema, each) for each, scale in scales.items()
    ]
    least, largest = min(float(each.min()) for each in drawn), max(float(each.max()) for each in drawn)
    if not LEAST_SCALE <= least <= largest <= MAX_SCALE:
        raise ValueError(
            f"Noise of {min(scales.values()):.3g} to {max(scales.values()):.3g} records is too small or too large for "
            "64-bit integers: choose other scales."
        )
    squared = 2.0 * residual_rho(schema, scales, neighbours)
    return decimal_above(Fraction(discrete_gaussian_epsilon(squared, least, delta)))


def residual_rho(schema: Schema, scales: Mapping[Clique, float], neighbours: str) -> float:
    """Compute the rho of zCDP of residuals with these noise scales, rounded up."""
    sizes = {variable: schema.cardinality(variable) for subset in scales for variable in subset}
    return residual_sensitivity(scales, sizes, neighbours) / 2.0
