"""Residuals of marginals with Gaussian noise, at the lowest price for a given accuracy.

For the residuals of a set of variables, ResidualPlanner adds independent noise of standard deviation s to each cell and
projects the result on the tables that sum to 0 along every axis (Xiao et al. 2023); no Gaussian noise on marginals is
cheaper. In coordinates, this measures the set's coefficients with contrasts of length 1, each with independent noise of
standard deviation s. Integer contrasts of length |v| are counted, in fixed fractions of a record, with discrete
Gaussian noise of |v| s.

Sensitivity and price. The change of all coefficients by one record, each divided by its noise, has the squared L2 norm
of :func:`~pgmpy_dp.release.contrasts.residual_sensitivity`. So they are one Gaussian mechanism, whose price as one
(epsilon, delta) block is :func:`~pgmpy_dp.privacy.blocks.discrete_gaussian_epsilon`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from pgmpy_dp.data.mechanisms.coefficients import integer_coefficients, perturbed_coefficients, smallest_holders
from pgmpy_dp.data.mechanisms.mechanism import Held, PublicTable, Quote
from pgmpy_dp.data.mechanisms.tables import delta_within
from pgmpy_dp.privacy.blocks import least_scale, table_deviation
from pgmpy_dp.privacy.checks import exact_positive, rounded_down
from pgmpy_dp.privacy.cost import Approx
from pgmpy_dp.privacy.guarantee import counted
from pgmpy_dp.privacy.noise import NoiseSource
from pgmpy_dp.records.memory import Counts
from pgmpy_dp.release import NoisyResiduals
from pgmpy_dp.release.coefficients import (
    coefficient_parts,
    coefficient_scales,
    residual_epsilon,
    residual_rho,
    residual_variance,
    varied_variables,
)
from pgmpy_dp.release.contrasts import downward_closure
from pgmpy_dp.schema import Clique, Schema


@dataclass(frozen=True)
class _Terms:
    cliques: tuple[Clique, ...]
    held: Mapping[Clique, list[Clique]]
    scales: Mapping[Clique, float]

    def deviations(self, schema: Schema) -> dict[Clique, float]:
        """Return the standard deviation of the noise in a cell of each set's table."""
        return {subset: residual_variance(schema, self.scales, subset) ** 0.5 for subset in self.scales if subset}


@dataclass(frozen=True)
class Residuals:
    """Measure residuals of sets of variables; see :meth:`pgmpy_dp.PrivateDataset.measure_residuals`.

    Attributes
    ----------
    scales : mapping of clique to float
    delta : float
    epsilon : float or Fraction, optional
        The price. The scales are multiplied by a common factor, with which they cost at most that; without a price,
        they are taken as they are.
    """

    scales: Mapping[Clique, float]
    delta: float
    epsilon: float | Fraction | None = None

    def quote(self, public: PublicTable) -> Quote:
        """Price the noise; the terms are the cliques to count and the scale of each set's residuals."""
        public.require_single_records()
        delta, schema = delta_within(public, self.delta), public.schema
        cliques, scales = _closed(schema, self.scales, public.neighbours)
        if self.epsilon is None:
            paid = Fraction(str(residual_epsilon(schema, scales, public.neighbours, delta)))
        else:
            paid = exact_positive("epsilon", self.epsilon)
            scales = _priced(schema, scales, public.neighbours, rounded_down(paid), delta)
        label = f"measure {counted(len(scales), 'set')} of residuals"
        rho = residual_rho(schema, scales, public.neighbours)
        cost = public.cost(label, "gaussian", Approx(paid, Fraction(str(delta)), rho))
        return Quote(cost, _Terms(cliques, smallest_holders(schema, cliques, list(scales)), scales))

    def read(self, quote: Quote, held: Held) -> dict[Clique, Counts]:
        """Count the cliques that contain the residuals."""
        return held.records.counts(tuple(quote.terms.held))

    def draw(
        self, quote: Quote, public: PublicTable, exact: dict[Clique, Counts], noise: NoiseSource
    ) -> NoisyResiduals:
        """Add independent noise to every coefficient, in fractions of a record."""
        schema, scales = public.schema, quote.terms.scales
        coefficients = {
            subset: values * coefficient_parts(schema, subset)
            for subset, values in integer_coefficients(schema, exact, quote.terms.held).items()
        }
        drawn = {
            subset: coefficient_scales(schema, subset, scales[subset]) * coefficient_parts(schema, subset)
            for subset in coefficients
        }
        values = perturbed_coefficients(coefficients, drawn, noise.discrete_gaussian)
        return NoisyResiduals(schema, quote.terms.cliques, values, scales, quote.guarantee, public.total)


def _priced(
    schema: Schema, relative: Mapping[Clique, float], neighbours: str, epsilon: float, delta: float
) -> dict[Clique, float]:
    """Multiply scales by nearly the smallest factor with which they cost at most epsilon."""

    def scaled(factor: float) -> dict[Clique, float]:
        return {subset: factor * scale for subset, scale in relative.items()}

    # Start from continuous noise: residuals are then one Gaussian mechanism of this sensitivity.
    start = table_deviation(epsilon, delta, "add_remove") * math.sqrt(2.0 * residual_rho(schema, relative, neighbours))
    price = partial(residual_epsilon, schema, neighbours=neighbours, delta=delta)
    return scaled(least_scale(lambda factor: price(scaled(factor)), start, epsilon, delta))


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
    found: dict[Clique, float] = {}
    for subset, number in (named | {(): given[()]} if () in given else named).items():
        scale = float(exact_positive(f"the scale of {subset}", number))
        varied = varied_variables(schema, subset)
        if found.setdefault(varied, scale) != scale:
            raise ValueError(f"The residuals of {varied} have two scales: variables with one state do not add any.")
    closure = downward_closure(schema, cliques)
    measured = closure[1:] if neighbours == "replace_one" else closure  # the number of records is public there
    missing = [subset for subset in measured if subset not in found]
    if missing:
        raise ValueError(
            f"The scale of {missing[0] or 'the empty set, the number of records,'} is missing: a table consists of "
            "the residuals of all of its subsets."
        )
    if not measured:
        raise ValueError(
            "There is nothing to measure: the number of records is public, and no variable has two states or more."
        )
    return cliques, {subset: found[subset] for subset in measured}
