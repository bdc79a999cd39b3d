"""Coefficients of marginals with noise: by Fourier with Laplace noise, and residuals with Gaussian noise.

Both count integer contrasts of the cliques' tables (:mod:`pgmpy_dp.release.contrasts`), each set's from the smallest
clique that contains it.

Fourier coefficients. Integer coefficients d get independent discrete Laplace noise of scales b / w, with public weights
w. They cost at most the largest change of sum |d| w / b, which is the L1 sensitivity of c = w d divided by b: see
:func:`~pgmpy_dp.release.contrasts.fourier_sensitivity`.

Residuals. For those of a set of variables, ResidualPlanner adds independent noise of standard deviation s to each cell
and projects the result on the tables that sum to 0 along every axis (Xiao et al. 2023); no Gaussian noise on marginals
is cheaper. In coordinates, this measures the set's coefficients with contrasts of length 1, each with independent noise
of standard deviation s. Integer contrasts of length |v| are counted, in fixed fractions of a record, with discrete
Gaussian noise of |v| s. The change of all coefficients by one record, each divided by its noise, has the squared L2
norm of :func:`~pgmpy_dp.release.contrasts.residual_sensitivity`. So they are one Gaussian mechanism, whose price as one
(epsilon, delta) block is :func:`~pgmpy_dp.privacy.blocks.discrete_gaussian_epsilon`. As a step of a sequence they have
the rho of continuous noise which is smaller by the same share, as argued there: of variance s**2 - BLUR for the
smallest s, in parts of a record.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.data.mechanisms.mechanism import PrivateRecords, PublicRecords, Quote
from pgmpy_dp.data.mechanisms.tables import delta_within, epsilon_of, perturbed
from pgmpy_dp.privacy.blocks import BLUR, MIN_SCALE, smallest_scale, table_deviation
from pgmpy_dp.privacy.checks import exact_positive, rounded_down
from pgmpy_dp.privacy.cost import Approx, Pure
from pgmpy_dp.privacy.guarantee import counted
from pgmpy_dp.privacy.noise import MAX_SCALE, NoiseSource
from pgmpy_dp.records.memory import Counts
from pgmpy_dp.release import NoisyCoefficients, NoisyResiduals
from pgmpy_dp.release.coefficients import (
    coefficient_parts,
    coefficient_scales,
    residual_epsilon,
    residual_rho,
    residual_variance,
)
from pgmpy_dp.release.contrasts import (
    coefficients_of_many,
    downward_closure,
    fourier_sensitivity,
    noise_scales,
    subsets_of,
    varied_variables,
)
from pgmpy_dp.schema import Clique, Schema

Tables = Mapping[Clique, Counts]
Holders = Mapping[Clique, Sequence[Clique]]
"""The cliques to count, with the sets whose coefficients each gives."""


@dataclass(frozen=True)
class _Fourier:
    cliques: tuple[Clique, ...]
    holders: Holders
    scale: float


@dataclass(frozen=True)
class FourierCoefficients:
    """Coefficients of cliques' marginals; see :meth:`pgmpy_dp.PrivateDataset.measure_coefficients`."""

    cliques: Iterable[Iterable[str]]
    epsilon: float | Fraction

    def quote(self, public: PublicRecords) -> Quote[_Fourier]:
        """Price the noise; the terms are the cliques to count and the noise scale."""
        public.require_single_records()
        cliques = public.schema.require(self.cliques)
        closure = downward_closure(public.schema, cliques)
        epsilon = exact_positive("epsilon", self.epsilon)
        exact = max(fourier_sensitivity(public.schema, closure, public.neighbours), 1.0)  # 0 if all have one state
        cost, scale = self._price(public.schema, closure, exact, epsilon)
        largest = max(float(noise_scales(public.schema, subset, scale).max(initial=0.0)) for subset in closure)
        if not 0 < scale <= largest <= MAX_SCALE:
            raise ValueError(
                f"epsilon={float(epsilon)!r} needs noise of scale {largest:.3g}, outside the range of 64-bit "
                "integers: choose a larger epsilon."
            )
        subsets = closure if public.neighbours == "add_remove" else closure[1:]
        paid = public.cost(f"measure {len(subsets)} sets of coefficients", "laplace", Pure(cost))
        return Quote(paid, _Fourier(cliques, smallest_holders(public.schema, cliques, subsets), scale))

    def read(self, quote: Quote[_Fourier], records: PrivateRecords) -> Tables:
        """Count the cliques that contain the coefficients."""
        return records.counts(quote.terms.holders)

    def draw(
        self, quote: Quote[_Fourier], public: PublicRecords, exact: Tables, noise: NoiseSource
    ) -> NoisyCoefficients:
        """Add independent noise to every integer coefficient."""
        schema, terms = public.schema, quote.terms
        coefficients = integer_coefficients(schema, exact, terms.holders)
        scales = [noise_scales(schema, subset, terms.scale).ravel() for subset in coefficients]
        values = perturbed(coefficients, np.concatenate([[], *scales]), noise.discrete_laplace)
        return NoisyCoefficients(schema, terms.cliques, values, terms.scale, quote.guarantee, public.total)

    def _price(
        self, schema: Schema, closure: Sequence[Clique], sensitivity: float, epsilon: Fraction
    ) -> tuple[Fraction, float]:
        """Return the charge and the noise scale b, raised by 1e-9 to cover the rounding of scales."""
        return epsilon, sensitivity / float(epsilon) * (1 + 1e-9)


@dataclass(frozen=True)
class _Residuals:
    cliques: tuple[Clique, ...]
    holders: Holders
    scales: Mapping[Clique, float]

    def deviations(self, schema: Schema) -> dict[Clique, float]:
        """Return the standard deviation of the noise in a cell of each set's table."""
        return {subset: residual_variance(schema, self.scales, subset) ** 0.5 for subset in self.scales if subset}


@dataclass(frozen=True)
class Residuals:
    """Measure residuals of sets of variables; see :meth:`pgmpy_dp.PrivateDataset.measure_residuals`."""

    scales: Mapping[Clique, float]
    delta: float
    epsilon: float | Fraction | None = None  # the price to which scales are multiplied; None leaves them unchanged
    rho: float | None = None  # in place of epsilon: one step of a method that has paid for all its steps

    def quote(self, public: PublicRecords) -> Quote[_Residuals]:
        """Price the noise; the terms are the cliques to count and the scale of each set's residuals."""
        public.require_single_records()
        delta, schema = delta_within(public, self.delta), public.schema
        cliques, scales = _closed(schema, self.scales, public.neighbours)
        if self.rho is not None:
            scales = _at_rho(schema, scales, public.neighbours, self.rho)
            paid = epsilon_of(self.rho, delta)
        elif self.epsilon is None:
            paid = Fraction(str(residual_epsilon(schema, scales, public.neighbours, delta)))
        else:
            paid = exact_positive("epsilon", self.epsilon)
            scales = _priced(schema, scales, public.neighbours, rounded_down(paid), delta)
        label = f"measure {counted(len(scales), 'set')} of residuals"
        rho = residual_rho(schema, scales, public.neighbours)
        cost = public.cost(label, "gaussian", Approx(paid, Fraction(str(delta)), rho))
        return Quote(cost, _Residuals(cliques, smallest_holders(schema, cliques, list(scales)), scales))

    def read(self, quote: Quote[_Residuals], records: PrivateRecords) -> Tables:
        """Count the cliques that contain the residuals."""
        return records.counts(quote.terms.holders)

    def draw(
        self, quote: Quote[_Residuals], public: PublicRecords, exact: Tables, noise: NoiseSource
    ) -> NoisyResiduals:
        """Add independent noise to every coefficient, in fractions of a record."""
        schema, terms = public.schema, quote.terms
        coefficients, drawn = {}, []
        for subset, exactly in integer_coefficients(schema, exact, terms.holders).items():
            fraction = coefficient_parts(schema, subset)
            coefficients[subset] = exactly * fraction
            drawn.append((coefficient_scales(schema, subset, terms.scales[subset]) * fraction).ravel())
        values = perturbed(coefficients, np.concatenate([[], *drawn]), noise.discrete_gaussian)
        return NoisyResiduals(schema, terms.cliques, values, terms.scales, quote.guarantee, public.total)


def joined_deviations(
    schema: Schema, tables: Mapping[Clique, float], precisions: Mapping[Clique, float]
) -> dict[Clique, float]:
    """Find the deviation in a cell of each set's table, if tables join residuals of these precisions."""
    together = dict(precisions)
    for clique, deviation in tables.items():
        for subset in subsets_of(schema, clique):
            if not subset and () not in precisions:  # the number of records is public
                continue
            cells = schema.cells(subset) / schema.cells(clique)
            together[subset] = together.get(subset, 0.0) + cells * deviation**-2
    scales = {subset: precision**-0.5 for subset, precision in together.items()}
    return {subset: residual_variance(schema, scales, subset) ** 0.5 for subset in scales if subset}


def _priced(
    schema: Schema, relative: Mapping[Clique, float], neighbours: str, epsilon: float, delta: float
) -> dict[Clique, float]:
    """Multiply scales by nearly the smallest factor with which they cost at most epsilon."""

    def scaled(factor: float) -> dict[Clique, float]:
        return {subset: factor * scale for subset, scale in relative.items()}

    # Start from continuous noise: residuals are then one Gaussian mechanism of this sensitivity.
    start = table_deviation(epsilon, delta, "add_remove") * math.sqrt(2.0 * residual_rho(schema, relative, neighbours))
    price = partial(residual_epsilon, schema, neighbours=neighbours, delta=delta)
    return scaled(smallest_scale(lambda factor: price(scaled(factor)), start, epsilon, delta))


def _at_rho(schema: Schema, relative: Mapping[Clique, float], neighbours: str, rho: float) -> dict[Clique, float]:
    """Multiply scales by a factor with which continuous noise that their discrete noise covers costs at most rho."""
    factor = math.sqrt(residual_rho(schema, relative, neighbours) / rho)
    smallest = factor * min(
        float(coefficient_scales(schema, subset, scale).min()) * coefficient_parts(schema, subset)
        for subset, scale in relative.items()
    )
    if not smallest >= MIN_SCALE:
        raise ValueError(f"A rho of {rho:.3g} needs too little noise for integers: choose a smaller epsilon.")
    factor *= (1.0 - BLUR / smallest**2) ** -0.5 * (1.0 + 1e-9)
    return {subset: factor * scale for subset, scale in relative.items()}


def _closed(
    schema: Schema, given: Mapping[Clique, float], neighbours: str
) -> tuple[tuple[Clique, ...], dict[Clique, float]]:
    """Check scales; return the largest cliques among them and the scale of each of their subsets.

    A variable with one state adds no residuals: a set with such variables stands for the set of its other variables.
    """
    if not isinstance(given, Mapping):
        raise ValueError(f"scales must be a mapping of sets of variables to numbers, got {type(given).__name__}.")
    sets = [subset for subset in given if subset != ()]
    named = dict(zip(schema.require(sets), (given[subset] for subset in sets), strict=True))
    inner = {frozenset(subset) - {variable} for subset in named for variable in subset}
    cliques = tuple(subset for subset in named if frozenset(subset) not in inner)
    scales: dict[Clique, float] = {}
    for subset, number in (named | {(): given[()]} if () in given else named).items():
        scale = float(exact_positive(f"the scale of {subset}", number))
        varied = varied_variables(schema, subset)
        if scales.setdefault(varied, scale) != scale:
            raise ValueError(f"The residuals of {varied} have two scales: variables with one state do not add any.")
    closure = downward_closure(schema, cliques)
    measured = closure[1:] if neighbours == "replace_one" else closure  # the number of records is public there
    missing = [subset for subset in measured if subset not in scales]
    if missing:
        raise ValueError(
            f"The scale of {missing[0] or 'the empty set, the number of records,'} is missing: a table consists of "
            "the residuals of all of its subsets."
        )
    if not measured:
        raise ValueError(
            "There is nothing to measure: the number of records is public, and no variable has two states or more."
        )
    return cliques, {subset: scales[subset] for subset in measured}


def smallest_holders(
    schema: Schema, cliques: Sequence[Clique], subsets: Sequence[Clique]
) -> dict[Clique, list[Clique]]:
    """Assign each subset to the smallest clique that contains it."""
    holders: dict[Clique, list[Clique]] = {}
    missing = {subset: number for number, subset in enumerate(subsets)}
    for clique in sorted(cliques, key=schema.cells):
        if inside := sorted(missing.keys() & {*subsets_of(schema, clique)}, key=missing.__getitem__):
            holders[clique] = inside
        for subset in inside:
            del missing[subset]
    return holders


def integer_coefficients(schema: Schema, tables: Tables, holders: Holders) -> dict[Clique, NDArray[np.int64]]:
    """Compute the exact integer coefficients of the subsets from the tables of the cliques that contain them."""
    found = coefficients_of_many(schema, tables, holders)
    return {subset: np.asarray(own, dtype=np.int64) for subset, own in found.items()}
