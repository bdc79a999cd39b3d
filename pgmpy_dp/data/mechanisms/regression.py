"""Linear regressions drawn from their truncated posteriors.

Sensitivity: :mod:`pgmpy_dp.privacy.regression` derives the cost of a draw from the range of one record's log-likelihood
over a ball of coefficients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.data.mechanisms.mechanism import Held, PublicTable, Quote
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy.ball import draw_in_ball
from pgmpy_dp.privacy.checks import exact_positive
from pgmpy_dp.privacy.cost import Pure
from pgmpy_dp.privacy.guarantee import counted
from pgmpy_dp.privacy.noise import NoiseSource
from pgmpy_dp.privacy.posterior import require_different_nodes, total_epsilon
from pgmpy_dp.privacy.regression import MOST_TRIES, Regression, expected_tries, grid_steps, temper
from pgmpy_dp.records.frames import MOST_RECORDS, STEPS, Integers, moments
from pgmpy_dp.release import RegressionDraws
from pgmpy_dp.schema import Clique, Schema

Floats = NDArray[np.float64]

_MOST_STEPS = 2**49


@dataclass(frozen=True)
class PosteriorRegressions:
    """Draw linear regressions from their truncated posterior; see `PrivateDataset.sample_regressions`."""

    families: Iterable[Iterable[str]]
    std: Mapping[str, float]
    coefficient_bound: Mapping[str, float]
    epsilon: float | Fraction
    prior_precision: float = 1.0
    draws: int = 1

    _temper: ClassVar[Callable[..., Regression]] = staticmethod(temper)

    def quote(self, public: PublicTable) -> Quote:
        """Price all draws; the terms are the regressions, and a public bound on the number of records."""
        each, _ = total_epsilon(self.epsilon, self.draws, split=False)
        public.require_single_records()
        most = MOST_RECORDS if public.total is None else public.total
        regressions = self._priced(public, each, most)
        cost = self.draws * sum((regression.cost for regression in regressions.values()), Fraction(0))
        paid = public.cost(f"draw {counted(self.draws, 'network')}", "posterior_sampling", Pure(cost))
        return Quote(paid, (regressions, most))

    def read(self, quote: Quote, held: Held) -> Mapping[str, Integers]:
        """Return the numbers on their public grid."""
        return held.numbers

    def draw(
        self, quote: Quote, public: PublicTable, exact: Mapping[str, Integers], noise: NoiseSource
    ) -> RegressionDraws:
        """Draw whole networks by :func:`draw_coefficients`."""
        regressions, most = quote.terms
        found = draw_coefficients(exact, public.schema, regressions, self.draws, most, noise)
        by_node = {family[0]: regression for family, regression in regressions.items()}
        return RegressionDraws(
            public.schema,
            found,
            {node: float(self.std[node]) for node in by_node},
            {node: regression.bound for node, regression in by_node.items()},
            {node: regression.power for node, regression in by_node.items()},
            quote.guarantee,
        )

    def _priced(self, public: PublicTable, epsilon: Fraction, records: int) -> dict[Clique, Regression]:
        """Temper the regressions of one draw of a network, for at most `records` records.

        They share epsilon equally, except that those whose untempered posterior costs less leave the rest of their
        share to the others.

        Raises
        ------
        SchemaError
            If a variable has no bounds.
        ValueError
            If two families start with the same node, a number is missing or not positive, or draws could take too many
            tries for some records. This depends only on public numbers, not on the actual records.
        """
        families: list[Clique] = [tuple(family) for family in self.families]
        require_different_nodes(families)
        prior = float(exact_positive("prior_precision", self.prior_precision))
        precisions = {f: _precision(public.schema, f, self.std, self.coefficient_bound) for f in families}

        def regression(family: Clique, share: Fraction) -> Regression:
            bound = float(exact_positive(f"coefficient_bound of {family[0]!r}", self.coefficient_bound[family[0]]))
            return self._temper(len(family) - 1, bound, precisions[family], prior, share, public.neighbours)

        left = epsilon
        found = {}
        for place, family in enumerate(sorted(families, key=lambda family: regression(family, epsilon).cost)):
            share = left / (len(families) - place)
            chosen = found[family] = regression(family, share)
            left -= share if chosen.power < 1 else chosen.cost
            tries = expected_tries(chosen, records)
            if not (tries <= MOST_TRIES and grid_steps(chosen, records) <= _MOST_STEPS):
                raise ValueError(
                    f"Exact draws for {family[0]!r} could take {tries:.1g} tries for up to {records} records, more "
                    f"than {MOST_TRIES:.0g}: choose a smaller epsilon, a smaller coefficient_bound or a larger std."
                )
        return {family: found[family] for family in families}


def _precision(schema: Schema, family: Clique, std: Mapping[str, Any], coefficient_bound: Mapping[str, Any]) -> float:
    """Return the precision of the scaled node given its parents; raise if a number that it needs is missing."""
    for variable in family:
        if variable not in schema.bounds:
            raise SchemaError(f"Variable {variable!r} has no bounds: declare them in the schema.")
    node = family[0]
    for name, values in (("std", std), ("coefficient_bound", coefficient_bound)):
        if node not in values:
            raise ValueError(f"{name} has no number for {node!r}: give one for every node.")
    width = float(exact_positive(f"std of {node!r}", std[node]))
    return float(exact_positive(f"precision of {node!r}", (_scale(schema, node)[1] / width) ** 2))


def draw_coefficients(
    numbers: Mapping[str, Integers],
    schema: Schema,
    regressions: Mapping[Clique, Regression],
    draws: int,
    records: int,
    noise: NoiseSource,
) -> tuple[Mapping[Clique, Floats], ...]:
    """Draw coefficients of every node exactly from their tempered posterior on a public grid, truncated to a ball.

    Values are integer numbers of steps, so the sums in the posterior are exact, and its density at every grid point is
    a rational power of e: see `pgmpy_dp.privacy.ball`.

    Parameters
    ----------
    numbers : mapping of str to ndarray
    schema : Schema
    regressions : mapping of family to Regression
    draws : int
    records : int
        Public bound on the number of records.
    noise : NoiseSource

    Returns
    -------
    tuple of mappings of family to ndarray, shape (1 + number of parents,)
        Intercept and slopes in the variables' own units.
    """
    found: list[dict[Clique, Floats]] = [{} for _ in range(draws)]
    for family, regression in regressions.items():
        squares, products = moments(numbers, family[0], family[1:])
        posterior = _posterior(squares, products, regression)
        steps = grid_steps(regression, records)
        for network in found:
            point = draw_in_ball(*posterior, steps, noise)
            network[family] = _own_units(schema, family, regression.bound * np.array(point) / steps)
    return tuple(found)


def _posterior(
    squares: list[list[int]], products: list[int], regression: Regression
) -> tuple[list[list[Fraction]], list[Fraction]]:
    """Compute the quadratic and linear parts of the negative log-posterior, in units of the ball's radius."""
    bound, weight = Fraction(regression.bound), Fraction(regression.precision) / STEPS**2
    prior = Fraction(regression.prior_precision)
    square = [
        [bound**2 * (weight * entry + (prior if i == j else 0)) for j, entry in enumerate(row)]
        for i, row in enumerate(squares)
    ]
    return square, [bound * weight * entry for entry in products]


def _own_units(schema: Schema, family: Clique, coefficients: Floats) -> Floats:
    """Convert coefficients of the scaled variables to those of the variables themselves."""
    middle, half = _scale(schema, family[0])
    centres, halves = np.array([_scale(schema, parent) for parent in family[1:]]).reshape(-1, 2).T
    slopes = coefficients[1:] * half / halves
    return np.append(middle + half * coefficients[0] - slopes @ centres, slopes)


def _scale(schema: Schema, variable: str) -> tuple[float, float]:
    low, high = schema.bounds[variable]
    return low + (high - low) / 2, (high - low) / 2
